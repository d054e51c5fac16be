"""Reading one SELECT: its groups, its outputs and what becomes of the rows. What is not understood is refused."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from tacit.errors import LimitError, SqlError, TypeMismatchError, UnknownNameError, UnsupportedSqlError

from . import scratch
from .aggregate import AGGREGATES, VARIANCES, AggregateReader, Form, keyed
from .batch import BatchReader
from .constants import bound_literal, constant, is_constant
from .domains import groups
from .functions import EXPRESSIONS, Value, kind_of
from .grouping import Grouping, group_nodes, key_type, labels_of, sets_of, size_of
from .names import folded
from .ordering import to_double
from .relation import Relation, RelationReader
from .scalar import rendered, with_domain
from .statement import Statement, bare
from .total import Prover, refusal
from .workload import Arrangement, Computed, Key, KeyColumn, Known, Linear, Output, OutputColumn, Query, Ratio

_MOST_CUBED = 6
_LONGEST = 20_000
"""Characters of an expression with its aliases written out: each alias can be twice as long as the one before."""
_LARGEST = 1e100
"""The square of a larger factor, and of one divided by it, would overflow when errors are computed."""
_READ = {"expressions", "from_", "where", "group", "with_", "joins", "having", "order", "limit", "offset", "distinct"}
_CLAUSES = {"sample": "TABLESAMPLE", "laterals": "LATERAL", "windows": "WINDOW", "operation_modifiers": "this modifier"}


@dataclass(frozen=True)
class _Names:
    """What a bare name means in a clause, as in DuckDB.

    An item of the SELECT list may name those before it, HAVING and ORDER BY all; of two with one name the last counts.
    A column of the table comes before an alias, except in HAVING, where it must be a group key for that.
    """

    before: int
    """Only items before this one can be named."""
    columns_first: bool = True


@dataclass(frozen=True)
class _Leaves:
    """What an expression over released values is computed from: aggregates and GROUPING as a0, a1, …."""

    numbers: dict[Linear | Known, int] = field(default_factory=dict)
    written: dict[int, str] = field(default_factory=dict)
    """Items of the SELECT list that an alias led to, as SQL."""

    def leaf(self, output: Linear | Known) -> exp.Expr:
        """The name of a leaf."""
        return exp.Var(this=f"a{self.numbers.setdefault(output, len(self.numbers))}")


class SelectReader:
    """Reads one SELECT over its own FROM clause."""

    def __init__(self, batch: BatchReader, statement: Statement, relations: RelationReader) -> None:
        self._batch = batch
        self._statement = statement
        self._outer = relations

    def read(self, select: exp.Select) -> Query:
        """The whole query."""
        self._open(select)
        keys = self._keys(select)
        sets = self._grouping_sets(select, keys)
        size = sum(size_of([keys[i] for i in chosen]) for chosen in sets)
        if size > self._batch.limits.rows:
            raise self._statement.error(
                LimitError, select.args["group"], f"GROUP BY makes {size:,} groups, too many for one batch",
                "group by fewer columns",
            )  # fmt: skip
        self._keyed, self._sets = keys, sets
        columns = tuple(self._column(item, place) for place, item in enumerate(select.expressions))
        arrangement = self._arrangement(select, columns)
        used = [column.output for column in columns] + list(arrangement.leaves if arrangement is not None else ())
        if self._relation is not None and all(isinstance(output, Key | Known) for output in used):
            raise self._statement.error(
                UnsupportedSqlError, select, "this query aggregates nothing", "add COUNT(*), SUM(…) or AVG(…)"
            )
        return Query(
            self._statement.sql,
            self._relation.base.table.name if self._relation is not None else "",
            tuple(KeyColumn(key.column.name, key_type(key.column)) for key in keys),
            tuple(self._group_values()),
            tuple(labels_of(keys, sets)),
            columns,
            arrangement,
        )

    def scalar_form(self, select: exp.Select) -> Form | None:
        """A scalar subquery's one number as a form; None when it is not linear."""
        for clause in ("group", "having", "order", "limit", "offset", "distinct"):
            if select.args.get(clause):
                raise self._statement.error(
                    UnsupportedSqlError, select, "a scalar subquery is one aggregate", "write (SELECT count(*) FROM …)"
                )
        if len(select.expressions) != 1:
            raise self._statement.error(
                UnsupportedSqlError, select, "a scalar subquery has one column", "write (SELECT count(*) FROM …)"
            )
        self._open(select)
        self._keyed, self._sets = [], [()]
        (item,) = select.expressions
        return self._linear(item.this if isinstance(item, exp.Alias) else item)

    def _open(self, select: exp.Select) -> None:
        for name, value in select.args.items():
            if name not in _READ and value:
                clause = _CLAUSES.get(name, name.strip("_").upper().replace("_", " "))
                node = value[0] if isinstance(value, list) else value
                raise self._statement.error(
                    UnsupportedSqlError, node if isinstance(node, exp.Expr) else None, f"{clause} is not supported",
                    f"leave {clause} out; the answer is a pandas frame and can be worked on there",
                )  # fmt: skip
        self._relations = self._outer.with_ctes(select)
        self._relation: Relation | None = None
        self._aggregates: AggregateReader | None = None
        self._items = select.expressions
        self._forms: dict[int, tuple[exp.Expr, Form | None]] = {}
        """What ``_linear`` found, by the node's identity; the node is kept so that no other can take its place."""
        self._shapes: set[tuple[type[exp.Expr], int]] = set()
        """The shapes of the group keys: only what has one of them can repeat a key."""
        if select.args.get("from_") is not None:
            relation = self._relations.read(select)
            where = select.args.get("where")
            self._relation = self._relations.filtered(relation, where.this if where is not None else None)
            self._aggregates = AggregateReader(self._batch, self._relations, self._relation)

    # groups

    def _keys(self, select: exp.Select) -> list[Grouping]:
        group = select.args.get("group")
        nodes: list[exp.Expr] = []
        if group is not None and group.args.get("all"):
            nodes = [e for e in select.expressions if not e.find(*AGGREGATES, exp.Grouping, exp.Subquery)]
        elif group is not None:
            nodes = list(itertools.chain.from_iterable(group_nodes(node) for node in group.expressions))
        keys: dict[str, Grouping] = {}
        for node in nodes:
            item = self._group_item(node, select)
            text = self._text(item)
            if text not in keys:
                keys[text] = self._grouping(item, text)
                self._shapes.add(_shape(bare(item)))
        return list(keys.values())

    def _grouping(self, node: exp.Expr, text: str) -> Grouping:
        if self._relation is None:
            raise self._statement.error(UnsupportedSqlError, node, "there is no table to group", "add FROM table")
        column = with_domain(node, self._relations.scope(self._relation), self._batch.limits.rows)
        if not scratch.has_dtype(key_type(column)):
            raise self._statement.error(
                TypeMismatchError, node, f"no frame can hold a {column.type}", "group by a CAST to another type"
            )
        base, span = self._relation.base, self._statement.span(node)
        found = groups(base.holder, base.attribute(column), column, span, self._batch.limits)
        return Grouping(text, column, tuple(found))

    def _group_item(self, node: exp.Expr, select: exp.Select) -> exp.Expr:
        """GROUP BY 1 and GROUP BY alias name an item of the SELECT list; a column comes before an alias."""
        node = bare(node)
        items = select.expressions
        if isinstance(node, exp.Alias):
            return _plain(node)
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            place = _place(node)
            if not 1 <= place <= len(items):
                raise self._statement.error(
                    UnknownNameError, node, f"there is no column {str(node.this)[:40]} in the SELECT list",
                    f"write a number from 1 to {len(items)}",
                )  # fmt: skip
            return _plain(items[place - 1])
        if isinstance(node, exp.Column):
            item = self._alias(node, _Names(len(items)))
            return node if item is None else _plain(items[item])
        return node

    def _grouping_sets(self, select: exp.Select, keys: list[Grouping]) -> list[tuple[int, ...]]:
        """The sets of keys that rows are grouped by: one for a plain GROUP BY, several for ROLLUP and its kin."""
        group = select.args.get("group")
        everything = tuple(range(len(keys)))
        if group is None or group.args.get("all"):
            return [everything]
        number = {key.text: i for i, key in enumerate(keys)}

        def index(node: exp.Expr) -> int:
            return number[self._text(self._group_item(node, select))]

        too_many = self._statement.error(
            LimitError, group, "too many grouping sets", "use fewer columns in CUBE or ROLLUP"
        )
        if any(len(cube.expressions) > _MOST_CUBED for cube in group.find_all(exp.Cube)):
            raise too_many
        products: list[list[tuple[int, ...]]] = []
        for node in group.expressions:
            products.append(sets_of(node, index))
            if math.prod(map(len, products)) > 1 << _MOST_CUBED:
                raise too_many
        return [tuple(sorted(set(itertools.chain(*chosen)))) for chosen in itertools.product(*products)]

    def _group_values(self) -> list[tuple[Any, ...]]:
        """The key values of every group; a key that a grouping set leaves out is NULL."""
        found: list[tuple[Any, ...]] = []
        for chosen in self._sets:
            lists = [[v for v, _ in key.groups] if i in chosen else [None] for i, key in enumerate(self._keyed)]
            found += itertools.product(*lists)
        return found

    # outputs

    def _column(self, item: exp.Expr, place: int) -> OutputColumn:
        output = self._output(_plain(item), _Names(place))
        return OutputColumn(self._relations.output_name(item, self._relation), output)

    def _output(self, node: exp.Expr, names: _Names) -> Output:
        node = bare(node)
        key = self._key(node)
        if key is not None:
            return Key(key)
        if isinstance(node, exp.Grouping):
            return self._known(node)
        form = self._linear(node)
        if form is not None and form.terms:
            return self._finish(form)
        core = node.this if isinstance(node, exp.Filter) else node
        if isinstance(core, exp.Avg):
            total, count, low, high = self._reader(node).ratio(node)
            return Ratio(self._finish(total).rows, self._finish(count).rows, low, high)
        leaves = _Leaves()
        sql = self._proven(node, leaves, names)
        type_ = self._type(node, sql, leaves)
        if not leaves.numbers and not any(f"k{i}" in sql for i in range(len(self._keyed))):
            folded = scratch.fold(sql)
            if folded is not None:
                return Known((folded[0],) * len(self._group_values()))
        return Computed(sql, tuple(leaves.numbers), type_)

    def _leaf_types(self, leaves: _Leaves) -> tuple[tuple[str, str], ...]:
        types = [(f"a{i}", "DOUBLE" if isinstance(leaf, Linear) else "BIGINT") for leaf, i in leaves.numbers.items()]
        return (*types, *((f"k{i}", key_type(key.column)) for i, key in enumerate(self._keyed)))

    def _linear(self, node: exp.Expr) -> Form | None:
        """An expression that is linear in aggregates of one base; None for any other. Each node is read once."""
        node = bare(node)
        if id(node) not in self._forms:
            self._forms[id(node)] = node, self._read_linear(node)
        return self._forms[id(node)][1]

    def _read_linear(self, node: exp.Expr) -> Form | None:
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        if isinstance(node, exp.Filter | exp.Count | exp.CountIf | exp.Sum):
            return self._reader(node).linear(node)
        if is_constant(node):
            value = self._constant(node)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return Form(offset=to_double(value)) if number or _is_decimal(value) else None
        if isinstance(node, exp.Cast) and node.is_type("double", "float"):
            return self._linear(node.this)
        if isinstance(node, exp.Neg):
            inner = self._linear(node.this)
            return inner.times(-1.0) if inner is not None else None
        if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return None
        left, right = self._linear(node.this), self._linear(node.expression)
        if left is None or right is None:
            return None
        if isinstance(node, exp.Add | exp.Sub):
            total = left + right.times(1.0 if isinstance(node, exp.Add) else -1.0)
            return total if len(total.bases) <= 1 else None
        if isinstance(node, exp.Mul):
            if not left.terms:
                return right.times(left.offset)
            return left.times(right.offset) if not right.terms else None
        return left.times(1.0 / right.offset) if not right.terms and right.offset else None

    def _subquery(self, node: exp.Subquery) -> Form | None:
        if not isinstance(node.this, exp.Select) or any(v for k, v in node.args.items() if k not in ("this", "alias")):
            raise self._statement.error(
                UnsupportedSqlError, node, "a scalar subquery is one aggregate", "write (SELECT count(*) FROM …)"
            )
        form = SelectReader(self._batch, self._statement, self._relations).scalar_form(node.this)
        if form is None:
            raise self._statement.error(
                UnsupportedSqlError, node, "a scalar subquery is one COUNT or SUM", "write (SELECT count(*) FROM …)"
            )
        return Form(tuple((w, atom.__class__(atom.base, atom.block, True)) for w, atom in form.terms), form.offset)

    def _finish(self, form: Form) -> Linear:
        """Ask for the form's rows: one for each group."""
        factors = (form.offset, *(weight for weight, _ in form.terms))
        if not all(factor == 0 or 1 / _LARGEST <= abs(factor) <= _LARGEST for factor in factors):
            raise self._statement.error(
                LimitError, None, "a number in this statement is too large or too small to compute with",
                "use other factors",
            )  # fmt: skip
        count = len(self._group_values())
        per_group: list[list[tuple[float, int]]] = [[] for _ in range(count)]
        for weight, atom in form.terms:
            numbers: list[int] = []
            for chosen in self._sets:
                keys = tuple(tuple(p for _, p in self._keyed[i].groups) for i in chosen)
                numbers += self._batch.block_rows(atom.base, keyed(atom, keys))
            if atom.single:
                numbers = numbers[:1] * count
            for group, number in zip(per_group, numbers, strict=True):
                group.append((weight, number))
        return Linear(tuple(self._batch.row(tuple(spec)) for spec in per_group), form.offset)

    def _rewritten(self, node: exp.Expr, leaves: _Leaves, names: _Names) -> exp.Expr:
        """An expression over released values: aggregates become a0, a1, …, group keys k0, k1, …."""
        key = self._key(bare(node))
        if key is not None:
            return exp.Var(this=f"k{key}")
        if isinstance(node, exp.Grouping):
            return leaves.leaf(self._known(node))
        form = None if is_constant(node) else self._linear(node)
        if form is not None and form.terms:
            return leaves.leaf(self._finish(form))
        core = node.this if isinstance(node, exp.Filter) else node
        if isinstance(core, exp.Avg):
            total, count, low, high = self._reader(node).ratio(node)
            above, below = (leaves.leaf(self._finish(part)) for part in (total, count))
            inside = f"least({high!r}, greatest({low!r}, {above.this} / {below.this}))"
            return exp.Var(this=f"(CASE WHEN {below.this} > 0 THEN {inside} END)")
        if type(core) in VARIANCES:
            squares, total, count, sql = self._reader(node).variance(node)
            parts = {n: leaves.leaf(self._finish(f)).this for n, f in (("s2", squares), ("s1", total), ("n", count))}
            return exp.Var(this=_substituted(sql, parts))
        if isinstance(node, exp.Column):
            place = self._alias(node, names)
            if place is not None:
                return self._item(place, leaves, node)
            self._text(node)  # an unknown name is the better error
            raise self._statement.error(
                UnsupportedSqlError, node, f"{node.name} is neither grouped by nor aggregated",
                f"add GROUP BY {node.name}, or write SUM({node.name})",
            )  # fmt: skip
        if isinstance(node, exp.Placeholder):
            return self._literal(node)
        if not isinstance(node, EXPRESSIONS) or isinstance(node, exp.AggFunc):
            raise self._statement.error(
                UnsupportedSqlError, node, _output_refusal(node),
                "write COUNT(*), COUNT(column), SUM(column) or AVG(column)",
            )  # fmt: skip
        args: dict[str, Any] = {}  # put together anew: copying the whole at every level would take quadratic time
        for name, value in node.args.items():
            if isinstance(value, list):
                args[name] = [self._rewritten(v, leaves, names) if isinstance(v, exp.Expr) else v for v in value]
            else:
                args[name] = self._rewritten(value, leaves, names) if isinstance(value, exp.Expr) else value
        return type(node)(**args)

    def _item(self, place: int, leaves: _Leaves, node: exp.Expr) -> exp.Expr:
        """An item of the SELECT list that an alias stands for, rewritten once however often it is named."""
        if place not in leaves.written:
            found = self._rewritten(_plain(self._items[place]), leaves, _Names(place))
            text = found.sql("duckdb", comments=False)
            leaves.written[place] = text if isinstance(found, exp.Var) else f"({text})"
        if len(leaves.written[place]) > _LONGEST:
            raise self._statement.error(
                LimitError, node, "this is too long with its aliases written out", "use each alias fewer times"
            )
        return exp.Var(this=leaves.written[place])

    def _alias(self, node: exp.Column, names: _Names) -> int | None:
        """The item of the SELECT list that a name stands for; None where it is a column, or nothing."""
        if node.table:
            return None
        places = [i for i, item in enumerate(self._items) if _is_called(item, node.name)]
        if not places or (names.columns_first and self._is_column(node)):
            return None
        if places[-1] >= names.before:
            raise self._statement.error(
                UnknownNameError, node, f"{node.name} is the name of a later column of the SELECT list",
                "name a column before it is used",
            )  # fmt: skip
        return places[-1]

    def _is_column(self, node: exp.Column) -> bool:
        try:
            self._text(node)
        except UnknownNameError:
            return False
        return True

    def _known(self, node: exp.Grouping) -> Known:
        """GROUPING(a, b): a bit for each key, set where a grouping set leaves it out."""
        wanted = [self._key(bare(part)) for part in node.expressions]
        if not wanted or None in wanted:
            raise self._statement.error(
                UnsupportedSqlError, node, "GROUPING takes GROUP BY columns", "name columns of the GROUP BY"
            )
        values: list[int] = []
        for chosen in self._sets:
            bits = 0
            for key in wanted:
                bits = bits * 2 + (key not in chosen)
            values += [bits] * size_of([self._keyed[i] for i in chosen])
        return Known(tuple(values))

    # what becomes of the released rows

    def _arrangement(self, select: exp.Select, columns: tuple[OutputColumn, ...]) -> Arrangement | None:
        args = select.args
        if not any(args.get(clause) for clause in ("having", "order", "limit", "offset", "distinct")):
            return None
        if args.get("distinct") and args["distinct"].args.get("on"):
            raise self._statement.error(
                UnsupportedSqlError, args["distinct"], "DISTINCT ON is not supported", "write DISTINCT"
            )
        leaves = _Leaves()
        anything = _Names(len(columns), columns_first=False)
        having = self._condition(args["having"].this, leaves, anything) if args.get("having") else ""
        order = (
            ", ".join(self._ordered(part, columns, leaves) for part in args["order"].expressions)
            if args.get("order")
            else ""
        )
        limit, offset = (self._whole(args.get(clause)) for clause in ("limit", "offset"))
        return Arrangement(tuple(leaves.numbers), having, order, limit, offset or 0, bool(args.get("distinct")))

    def _ordered(self, part: exp.Expr, columns: tuple[OutputColumn, ...], leaves: _Leaves) -> str:
        """One term of ORDER BY. A name on its own is an alias before it is a column; inside an expression it is not."""
        if not isinstance(part, exp.Ordered) or isinstance(part.this, exp.Var):
            raise self._statement.error(
                UnsupportedSqlError, part, "this ORDER BY is not supported", "write ORDER BY column"
            )
        node = bare(part.this)
        if isinstance(node, exp.Literal) and not node.is_string:
            place = _place(node)
            if not 1 <= place <= len(columns):
                raise self._statement.error(
                    UnknownNameError, node, f"there is no column {str(node.this)[:40]} in the SELECT list",
                    f"write a number from 1 to {len(columns)}",
                )  # fmt: skip
            sql = f"o{place - 1}"
        elif isinstance(node, exp.Column) and (item := self._alias(node, _Names(len(columns), False))) is not None:
            sql = f"o{item}"
        else:
            sql = self._total(node, leaves, _Names(len(columns)))
        down = " DESC" if part.args.get("desc") else ""
        first = part.args.get("nulls_first")
        return f"{sql}{down} NULLS {'FIRST' if first else 'LAST'}"

    def _total(self, node: exp.Expr, leaves: _Leaves, names: _Names) -> str:
        """An expression over released values that can fail on none of them, or is refused before the charge."""
        sql = f"TRY({self._proven(node, leaves, names)})"
        self._type(node, sql, leaves)
        return sql

    def _proven(self, node: exp.Expr, leaves: _Leaves, names: _Names) -> str:
        """SQL over released values that ``TRY`` makes total: an answer must not fail after it was paid for."""
        tree = self._rewritten(node, leaves, names)
        Prover(
            leaf=lambda part: Value(kind_of(self._type(node, part.sql("duckdb"), leaves)), 1, 0, False),
            write=lambda part: part.sql("duckdb"),
            bind=lambda part: scratch.type_of(part.sql("duckdb"), self._leaf_types(leaves)),
            error=lambda kind, _, message, hint: self._statement.error(kind, node, message, hint),
        ).prove(tree)
        return tree.sql("duckdb", comments=False)

    def _condition(self, node: exp.Expr, leaves: _Leaves, names: _Names) -> str:
        """HAVING. What is no condition would be cast to one outside the TRY, where it can fail."""
        sql = self._total(node, leaves, names)
        type_ = self._type(node, sql, leaves)
        if type_ not in ("BOOLEAN", '"NULL"'):
            raise self._statement.error(
                TypeMismatchError, node, f"HAVING takes a condition, and this is a {type_}", "write HAVING count(*) > 0"
            )
        return sql

    def _type(self, node: exp.Expr, sql: str, leaves: _Leaves) -> str:
        type_ = scratch.type_of(sql, self._leaf_types(leaves))
        if type_ is None or not scratch.has_dtype(type_):
            raise self._statement.error(
                TypeMismatchError, node, "DuckDB cannot compute this", "check the types, or compute it in pandas"
            )
        return type_

    def _whole(self, node: exp.Expr | None) -> int | None:
        if node is None:
            return None
        count = node.expression if isinstance(node.args.get("expression"), exp.Expr) else node
        value = self._constant(count) if is_constant(count) else None
        extra = [k for k, v in node.args.items() if v and k not in ("expression", "this", "offset")]
        if not isinstance(value, int) or isinstance(value, bool) or value < 0 or extra:
            raise self._statement.error(
                UnsupportedSqlError, node, "LIMIT and OFFSET take a whole number", "write LIMIT 10"
            )
        return min(value, self._batch.limits.rows)  # there are no more rows than that

    # names, texts, errors

    def _reader(self, node: exp.Expr) -> AggregateReader:
        if self._aggregates is None:
            raise self._statement.error(UnsupportedSqlError, node, "there is no table to aggregate", "add FROM table")
        return self._aggregates

    def _key(self, node: exp.Expr) -> int | None:
        """Which GROUP BY key an expression repeats."""
        if _shape(node) not in self._shapes or is_constant(node):
            return None
        if node.find(*AGGREGATES, exp.Query, exp.Window, exp.Grouping):
            return None
        try:
            text = self._text(node)
        except SqlError:
            return None
        return next((i for i, key in enumerate(self._keyed) if key.text == text), None)

    def _text(self, node: exp.Expr) -> str:
        """What identifies an expression over the row."""
        if self._relation is None:
            raise self._statement.error(
                UnknownNameError, node, "there is no table that has this column", "add FROM table"
            )
        return rendered(bare(node), self._relations.scope(self._relation))

    def _constant(self, node: exp.Expr) -> Any:
        return constant(node, self._statement, self._batch.params).value

    def _literal(self, node: exp.Placeholder) -> exp.Expr:
        return bound_literal(node, self._statement, self._batch.params)


def _plain(item: exp.Expr) -> exp.Expr:
    """An item of the SELECT list without its alias."""
    node: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    return node


def _place(node: exp.Literal) -> int:
    """The place in the SELECT list that a number names; 0, which is none, for what names none."""
    text = str(node.this)
    return int(text) if text.isdecimal() and len(text) < _LONGEST_PLACE else 0


_LONGEST_PLACE = 10
"""Digits; Python refuses to read thousands of them."""


def _shape(node: exp.Expr) -> tuple[type[exp.Expr], int]:
    """What equal expressions have in common and is quick to compare: the kind, and how deep the first operand lies."""
    depth = 0
    first: Any = node
    while isinstance(first, exp.Expr) and not isinstance(first, exp.Column | exp.Literal | exp.Placeholder):
        depth, first = depth + 1, first.args.get("this")
    return type(node), depth


def _is_called(item: exp.Expr, name: str) -> bool:
    return isinstance(item, exp.Alias) and folded(item.alias) == folded(name)


def _substituted(sql: str, names: Mapping[str, str]) -> str:
    return "(" + re.sub(r"\b(s2|s1|n)\b", lambda match: names[match[1]], sql) + ")"


def _output_refusal(node: exp.Expr) -> str:
    if isinstance(node, exp.Star):
        return "* stands for every column of a row, and rows are not released"
    if isinstance(node, exp.AggFunc):
        return "tacit releases COUNT, SUM and AVG, and what can be computed from them, not this"
    return refusal(node)


def _is_decimal(value: Any) -> bool:
    return type(value).__name__ == "Decimal"
