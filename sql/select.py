"""Reading one SELECT: its groups, its outputs and what becomes of the rows. What is not understood is refused."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

from sqlglot import exp
from tacit.errors import LimitError, SqlError, TypeMismatchError, UnknownNameError, UnsupportedSqlError

from . import scratch
from .aggregate import AGGREGATES, VARIANCES, AggregateReader, Form, keyed
from .batch import BatchReader
from .constants import bound_literal, constant, is_constant
from .domains import groups
from .grouping import Grouping, group_nodes, key_type, labels_of, sets_of, size_of
from .names import folded
from .parse import Statement, bare
from .relation import Relation, RelationReader
from .scalar import EXPRESSIONS, refusal, rendered, with_domain
from .workload import Arrangement, Computed, Key, KeyColumn, Known, Linear, Output, OutputColumn, Query, Ratio

_MOST_CUBED = 6
_READ = {"expressions", "from_", "where", "group", "with_", "joins", "having", "order", "limit", "offset", "distinct"}
_CLAUSES = {"sample": "TABLESAMPLE", "laterals": "LATERAL", "windows": "WINDOW", "operation_modifiers": "this modifier"}


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
            raise self._error(
                LimitError, select.args["group"], f"GROUP BY makes {size:,} groups, too many for one batch",
                "group by fewer columns",
            )  # fmt: skip
        self._keyed, self._sets = keys, sets
        columns = tuple(self._column(item, place) for place, item in enumerate(select.expressions))
        arrangement = self._arrangement(select, columns)
        used = [column.output for column in columns] + list(arrangement.leaves if arrangement is not None else ())
        if self._relation is not None and all(isinstance(output, Key | Known) for output in used):
            raise self._error(
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
                raise self._error(
                    UnsupportedSqlError, select, "a scalar subquery is one aggregate", "write (SELECT count(*) FROM …)"
                )
        if len(select.expressions) != 1:
            raise self._error(
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
                raise self._error(
                    UnsupportedSqlError, node if isinstance(node, exp.Expr) else None, f"{clause} is not supported",
                    f"leave {clause} out; the answer is a pandas frame and can be worked on there",
                )  # fmt: skip
        self._relations = self._outer.with_ctes(select)
        self._relation: Relation | None = None
        self._aggregates: AggregateReader | None = None
        self._opened: list[str] = []
        if select.args.get("from_") is not None:
            relation = self._relations.read(select)
            where = select.args.get("where")
            self._relation = self._relations.filtered(relation, where.this if where is not None else None)
            self._aggregates = AggregateReader(self._batch, self._relations, self._relation)
        self._items: dict[str, exp.Expr] = {
            folded(item.alias): item.this for item in select.expressions if isinstance(item, exp.Alias)
        }

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
        return list(keys.values())

    def _grouping(self, node: exp.Expr, text: str) -> Grouping:
        if self._relation is None:
            raise self._error(UnsupportedSqlError, node, "there is no table to group", "add FROM table")
        column = with_domain(node, self._relations.scope(self._relation), self._batch.limits.rows)
        start, end = self._statement.span(node)
        base = self._relation.base
        found = groups(
            base.table, base.attribute(column), column, self._statement.source, start, end, self._batch.limits
        )
        return Grouping(text, column, tuple(found))

    def _group_item(self, node: exp.Expr, select: exp.Select) -> exp.Expr:
        """GROUP BY 1 and GROUP BY alias name an item of the SELECT list."""
        node = bare(node)
        items = select.expressions
        if isinstance(node, exp.Alias):
            return _plain(node)
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            place = int(str(node.this))
            if not 1 <= place <= len(items):
                raise self._error(
                    UnknownNameError, node, f"there is no column {place} in the SELECT list",
                    f"write a number from 1 to {len(items)}",
                )  # fmt: skip
            return _plain(items[place - 1])
        if isinstance(node, exp.Column) and not node.table and folded(node.name) in self._items:
            try:
                self._text(node)
            except UnknownNameError:
                return self._items[folded(node.name)]
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

        too_many = self._error(LimitError, group, "too many grouping sets", "use fewer columns in CUBE or ROLLUP")
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
        node = item.this if isinstance(item, exp.Alias) else item
        output = self._output(node)
        return OutputColumn(self._name(item, place), output)

    def _output(self, node: exp.Expr) -> Output:
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
        leaves: dict[Linear | Known, int] = {}
        sql = self._rewritten(node, leaves).sql("duckdb", comments=False)
        type_ = scratch.type_of(sql, self._leaf_types(leaves))
        if type_ is None:
            raise self._error(
                TypeMismatchError, node, "DuckDB cannot compute this", "check the types, or compute it in pandas"
            )
        if not leaves and not any(f"k{i}" in sql for i in range(len(self._keyed))):
            folded = scratch.fold(sql)
            if folded is not None:
                return Known((folded[0],) * len(self._group_values()))
        return Computed(sql, tuple(leaves), type_)

    def _leaf_types(self, leaves: Mapping[Linear | Known, int]) -> tuple[tuple[str, str], ...]:
        types = [(f"a{i}", "DOUBLE" if isinstance(leaf, Linear) else "BIGINT") for leaf, i in leaves.items()]
        return (*types, *((f"k{i}", key_type(key.column)) for i, key in enumerate(self._keyed)))

    def _linear(self, node: exp.Expr) -> Form | None:
        """An expression that is linear in aggregates of one base; None for any other."""
        node = bare(node)
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        if isinstance(node, exp.Filter | exp.Count | exp.CountIf | exp.Sum):
            return self._reader(node).linear(node)
        if is_constant(node):
            value = self._constant(node)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return Form(offset=float(value)) if number or _is_decimal(value) else None
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
            raise self._error(
                UnsupportedSqlError, node, "a scalar subquery is one aggregate", "write (SELECT count(*) FROM …)"
            )
        form = SelectReader(self._batch, self._statement, self._relations).scalar_form(node.this)
        if form is None:
            raise self._error(
                UnsupportedSqlError, node, "a scalar subquery is one COUNT or SUM", "write (SELECT count(*) FROM …)"
            )
        return Form(tuple((w, atom.__class__(atom.base, atom.block, True)) for w, atom in form.terms), form.offset)

    def _finish(self, form: Form) -> Linear:
        """Ask for the form's rows: one for each group."""
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

    def _rewritten(self, node: exp.Expr, leaves: dict[Linear | Known, int]) -> exp.Expr:
        """An expression over released values: aggregates become a0, a1, …, group keys k0, k1, …."""
        key = self._key(bare(node))
        if key is not None:
            return exp.Var(this=f"k{key}")
        if isinstance(node, exp.Grouping):
            return _leaf(self._known(node), leaves)
        form = None if is_constant(node) else self._linear(node)
        if form is not None and form.terms:
            return _leaf(self._finish(form), leaves)
        core = node.this if isinstance(node, exp.Filter) else node
        if isinstance(core, exp.Avg):
            total, count, low, high = self._reader(node).ratio(node)
            above, below = (_leaf(self._finish(part), leaves) for part in (total, count))
            inside = f"least({high!r}, greatest({low!r}, {above.this} / {below.this}))"
            return exp.Var(this=f"(CASE WHEN {below.this} > 0 THEN {inside} END)")
        if type(core) in VARIANCES:
            squares, total, count, sql = self._reader(node).variance(node)
            names = {n: _leaf(self._finish(f), leaves).this for n, f in (("s2", squares), ("s1", total), ("n", count))}
            return exp.Var(this=_substituted(sql, names))
        if isinstance(node, exp.Column):
            name = folded(node.name)
            if not node.table and name in self._items and name not in self._opened:
                self._opened.append(name)  # an alias that leads back to itself is a column, or nothing
                found = self._rewritten(exp.Paren(this=self._items[name]), leaves)
                self._opened.remove(name)
                return found
            self._text(node)  # an unknown name is the better error
            raise self._error(
                UnsupportedSqlError, node, f"{node.name} is neither grouped by nor aggregated",
                f"add GROUP BY {node.name}, or write SUM({node.name})",
            )  # fmt: skip
        if isinstance(node, exp.Placeholder):
            return self._literal(node)
        if not isinstance(node, EXPRESSIONS) or isinstance(node, exp.AggFunc):
            raise self._error(
                UnsupportedSqlError, node, _output_refusal(node),
                "write COUNT(*), COUNT(column), SUM(column) or AVG(column)",
            )  # fmt: skip
        copy = node.copy()
        for own, child in zip(list(copy.iter_expressions()), list(node.iter_expressions()), strict=True):
            own.replace(self._rewritten(child, leaves))
        return copy

    def _known(self, node: exp.Grouping) -> Known:
        """GROUPING(a, b): a bit for each key, set where a grouping set leaves it out."""
        wanted = [self._key(bare(part)) for part in node.expressions]
        if not wanted or None in wanted:
            raise self._error(
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
            raise self._error(UnsupportedSqlError, args["distinct"], "DISTINCT ON is not supported", "write DISTINCT")
        leaves: dict[Linear | Known, int] = {}
        having = self._total(args["having"].this, leaves) if args.get("having") else ""
        order = (
            ", ".join(self._ordered(part, columns, leaves) for part in args["order"].expressions)
            if args.get("order")
            else ""
        )
        limit, offset = (self._whole(args.get(clause)) for clause in ("limit", "offset"))
        return Arrangement(tuple(leaves), having, order, limit, offset or 0, bool(args.get("distinct")))

    def _ordered(self, part: exp.Expr, columns: tuple[OutputColumn, ...], leaves: dict[Linear | Known, int]) -> str:
        if not isinstance(part, exp.Ordered) or isinstance(part.this, exp.Var):
            raise self._error(UnsupportedSqlError, part, "this ORDER BY is not supported", "write ORDER BY column")
        node = bare(part.this)
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(str(node.this)) if str(node.this).isdigit() else 0
            if not 1 <= place <= len(columns):
                raise self._error(
                    UnknownNameError, node, f"there is no column {node.this} in the SELECT list",
                    f"write a number from 1 to {len(columns)}",
                )  # fmt: skip
            sql = f"o{place - 1}"
        else:
            sql = self._total(node, leaves)
        down = " DESC" if part.args.get("desc") else ""
        first = part.args.get("nulls_first")
        return f"{sql}{down} NULLS {'FIRST' if first else 'LAST'}"

    def _total(self, node: exp.Expr, leaves: dict[Linear | Known, int]) -> str:
        """An expression over released values that can fail on none of them, or is refused before the charge."""
        sql = f"TRY({self._rewritten(node, leaves).sql('duckdb', comments=False)})"
        if scratch.type_of(sql, self._leaf_types(leaves)) is None:
            raise self._error(
                TypeMismatchError, node, "DuckDB cannot compute this", "check the types, or compute it in pandas"
            )
        return sql

    def _whole(self, node: exp.Expr | None) -> int | None:
        if node is None:
            return None
        count = node.expression if isinstance(node.args.get("expression"), exp.Expr) else node
        value = self._constant(count) if is_constant(count) else None
        extra = [k for k, v in node.args.items() if v and k not in ("expression", "this", "offset")]
        if not isinstance(value, int) or isinstance(value, bool) or value < 0 or extra:
            raise self._error(UnsupportedSqlError, node, "LIMIT and OFFSET take a whole number", "write LIMIT 10")
        return min(value, self._batch.limits.rows)  # there are no more rows than that

    # names, texts, errors

    def _reader(self, node: exp.Expr) -> AggregateReader:
        if self._aggregates is None:
            raise self._error(UnsupportedSqlError, node, "there is no table to aggregate", "add FROM table")
        return self._aggregates

    def _key(self, node: exp.Expr) -> int | None:
        """Which GROUP BY key an expression repeats."""
        if not self._keyed or is_constant(node) or node.find(*AGGREGATES, exp.Query, exp.Window, exp.Grouping):
            return None
        try:
            text = self._text(node)
        except SqlError:
            return None
        return next((i for i, key in enumerate(self._keyed) if key.text == text), None)

    def _text(self, node: exp.Expr) -> str:
        """What identifies an expression over the row."""
        if self._relation is None:
            raise self._error(UnknownNameError, node, "there is no table that has this column", "add FROM table")
        return rendered(bare(node), self._relations.scope(self._relation))

    def _constant(self, node: exp.Expr) -> Any:
        return constant(node, self._statement, self._batch.params).value

    def _literal(self, node: exp.Placeholder) -> exp.Expr:
        return bound_literal(node, self._statement, self._batch.params)

    def _name(self, item: exp.Expr, place: int) -> str:
        """The name DuckDB gives the output column."""
        if isinstance(item, exp.Alias):
            return item.alias
        if isinstance(item, exp.Count) and (item.this is None or isinstance(item.this, exp.Star)):
            return "count_star()"
        if isinstance(item, exp.Column):
            return item.name
        named = self._relation.names if self._relation is not None else ()
        relations = tuple(
            (alias or "t", tuple((c.name if folded(c.name) == n else n, c.type) for n, c in columns.items()))
            for alias, columns in named
        )
        inner = {table.name: self._batch.catalog.table(table.name) for table in item.find_all(exp.Table)}
        tables = tuple(
            (name, tuple((c.name, c.type) for c in table.columns)) for name, table in inner.items() if table is not None
        )
        text = item.sql("duckdb", normalize_functions=False)
        return scratch.display_name(text, relations, tables) or text

    def _error(self, kind: type[SqlError], node: exp.Expr | None, message: str, hint: str) -> SqlError:
        start, end = self._statement.span(node)
        return kind(message, sql=self._statement.source, start=start, end=end, hint=hint)


def _plain(item: exp.Expr) -> exp.Expr:
    """An item of the SELECT list without its alias."""
    node: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    return node


def _leaf(output: Linear | Known, leaves: dict[Linear | Known, int]) -> exp.Expr:
    return exp.Var(this=f"a{leaves.setdefault(output, len(leaves))}")


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
