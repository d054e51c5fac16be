"""Statements that compute with released results: SELECT over groups, joins and windows of them, set operations.

Every SELECT inside that aggregates private rows is a query of its own, released as a frame. The rest of the statement
is run over those frames, and over public tables, after the release: post-processing, which costs nothing. A statement
over public tables alone is the same without a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from tacit.errors import UnsupportedSqlError

from . import dialect
from .batch import BatchReader
from .from_clause import RelationReader
from .joins import Tables
from .level import Level, Named
from .name_reader import Kind, from_items, unwrapped
from .names import folded, numbered
from .present import column_type
from .public import TextWriter, described
from .released import WHOLE_QUOTIENT
from .select import read_counted, read_select
from .statement import Statement, bare, parts_of, rebuilt
from .unit_rows import aggregates_of, group_nodes, groupings
from .workload import KeyColumn, OuterQuery, Query, ReleasedPart

_AFTER = ("order", "limit", "offset", "distinct", "qualify", "windows")
"""Clauses that come after the groups are made."""
_PARTIAL = (exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max)
"""Aggregates of a UNION ALL that follow from those of its parts."""


def read_outer(batch: BatchReader, statement: Statement, reader: RelationReader, tree: exp.Expr) -> Query | OuterQuery:
    """A statement over released results and public tables."""
    if (
        isinstance(tree, exp.Select)
        and reader.kind(tree) is Kind.RELEASED
        and (merged := merged_select(reader.with_ctes(tree), tree)) is not None
    ):
        inner, select = merged
        return read_select(batch, statement, inner, select)
    parts = _Parts(batch, statement)
    query = TextWriter(parts.released, rewritten).query(reader, tree)
    shapes = tuple((part.name, frame_columns(part.query)) for part in parts.parts)
    columns = described(reader, tree, query, shapes)
    for name, type_ in columns:
        if not dialect.has_dtype(type_):
            raise statement.error(UnsupportedSqlError, tree, f"no frame can hold {name}, a {type_}", "cast it")
    keys = tuple(_is_name(type_, item) for (_, type_), item in zip(columns, _listed(tree, len(columns)), strict=True))
    described_columns = tuple(KeyColumn(name, type_) for name, type_ in columns)
    return OuterQuery(statement.sql, tuple(parts.parts), query, described_columns, keys)


def _listed(tree: exp.Expr, count: int) -> list[exp.Expr | None]:
    """The items of a SELECT list, of the first SELECT of a set operation; nothing known where * stands for some."""
    while isinstance(tree, exp.SetOperation):
        tree = unwrapped(tree.this)
    items = list(tree.expressions) if isinstance(tree, exp.Select) else []
    return items if len(items) == count and not any(map(_is_star, items)) else [None] * count


def _is_name(type_: str, item: exp.Expr | None) -> bool:
    """Whether a column names a row: released numbers are DOUBLE, and what is computed over rows is an aggregate."""
    computed = item is not None and item.find(exp.Window, exp.AggFunc) is not None
    return not computed and type_ not in ("DOUBLE", "FLOAT", "HUGEINT") and not type_.startswith("DECIMAL")


def rewritten(reader: RelationReader, query: exp.Expr) -> exp.Expr | None:
    """A query that stands for another, in which every part can be released."""
    return union_select(reader, query) if isinstance(query, exp.Select) else None


def frame_columns(query: Query) -> tuple[tuple[str, str], ...]:
    """The names and types of a released query's frame, as SQL sees it."""
    names = numbered([column.name for column in query.columns])
    return tuple((name, column_type(query, c.output)) for name, c in zip(names, query.columns, strict=True))


def is_plain(reader: RelationReader, select: exp.Select) -> bool:
    """Whether a SELECT aggregates private rows itself, and computes nothing else of what it releases."""
    inner = reader.with_ctes(select)
    kinds = {inner.item_kind(node) for node in from_items(select)}
    if Kind.ROWS not in kinds or Kind.RELEASED in kinds or _has_window(select):
        return False
    return union_select(inner, select) is None


def _has_window(select: exp.Select) -> bool:
    clauses = [*select.expressions, select.args.get("order"), select.args.get("qualify")]
    return any(part is not None and part.find(exp.Window) is not None for part in clauses)


@dataclass
class _Parts:
    """The released queries that a statement is made of."""

    batch: BatchReader
    statement: Statement
    parts: list[ReleasedPart] = field(default_factory=list)

    def released(self, reader: RelationReader, query: exp.Expr) -> exp.Expr | None:
        """What stands for a query that aggregates private rows; None for one that does not."""
        if not isinstance(query, exp.Select):
            return None
        kinds = {reader.item_kind(node) for node in from_items(query)}
        if Kind.ROWS not in kinds or Kind.RELEASED in kinds:
            if reader.kind(query) is Kind.RELEASED:
                _check_quotients(self.statement, query)
            return None
        if _has_window(query):
            return self._windowed(reader, query)
        return exp.select("*").from_(exp.to_identifier(self._part(reader, query)))

    def _part(self, reader: RelationReader, select: exp.Select) -> str:
        name = f"tacit_r{len(self.parts)}"
        query, present = read_counted(self.batch, reader.statement, reader, select)
        self.parts.append(ReleasedPart(name, query, present))
        return name

    def _windowed(self, reader: RelationReader, select: exp.Select) -> exp.Expr:
        """Aggregates and keys are released; windows, QUALIFY and what follows are computed over them."""
        level = reader.level(select, Tables())
        nodes, group = groupings(select, level)
        after = [select.args[name] for name in _AFTER if isinstance(select.args.get(name), exp.Expr)]
        marks = [mark for part in (*select.expressions, *after) for mark in part.find_all(exp.Grouping)]
        columns: dict[exp.Expr, exp.Expr] = {}
        asked: list[exp.Expr] = []
        for node in [*nodes, *marks, *aggregates_of(select)]:
            if bare(node) not in columns:
                columns[bare(node)] = exp.column(f"c{len(asked)}", quoted=True)
                asked.append(node)
        first, last = select.copy(), exp.Select()
        first.set("expressions", [exp.alias_(node.copy(), f"c{i}", quoted=True) for i, node in enumerate(asked)])
        first.set("group", group)
        for clause in _AFTER:
            value = select.args.get(clause)
            first.set(clause, None)
            last.set(clause, _replaced_all(value, columns))
        last.set("expressions", _items(reader, select, columns, level))
        _check_quotients(self.statement, last)
        last.set("from_", exp.From(this=exp.to_table(self._part(reader, first))))
        return last


def _replaced_all(value: Any, columns: Mapping[exp.Expr, exp.Expr]) -> Any:
    if isinstance(value, list):
        return [_replaced_all(part, columns) for part in value]
    return replaced(value, columns) if isinstance(value, exp.Expr) else value


def replaced(node: exp.Expr, columns: Mapping[exp.Expr, exp.Expr]) -> exp.Expr:
    """An expression with columns in place of what is listed."""
    if bare(node) in columns:
        return columns[bare(node)].copy()
    if isinstance(node, exp.Query):
        return node.copy()
    if isinstance(node, exp.Window):  # its function is computed over groups: only what stands inside is of a group
        columns = {key: column for key, column in columns.items() if key not in _functions(node)}
    return rebuilt(node, [replaced(part, columns) for part in parts_of(node)])


def _functions(window: exp.Window) -> list[exp.Expr]:
    """The function of a window, without and with its FILTER and the like."""
    found = [window.this]
    while isinstance(found[-1], exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        found.append(found[-1].this)
    return found


def _check_quotients(statement: Statement, query: exp.Expr) -> None:
    """Released numbers are DOUBLE, which // divides without rounding. Queries inside are checked by themselves."""
    for found in query.walk(prune=lambda node: isinstance(node, exp.Query) and node is not query):
        if isinstance(found, exp.IntDiv):
            raise statement.error(UnsupportedSqlError, found, WHOLE_QUOTIENT, "write a / b, or floor(a / b)")


def union_select(reader: RelationReader, select: exp.Select) -> exp.Select | None:
    """Aggregates of a UNION ALL of private rows, as aggregates of those of its parts; None for any other SELECT.

    Other tables may be joined to the rows: each part is joined to them.
    """
    branches = _stacked_in(reader, select)
    if branches is None:
        return None
    parts = [_over(select, reader, branch, branches[0]) for branch in branches]
    found = list(dict.fromkeys(aggregates_of(select)))
    partial = all(isinstance(_core(n), _PARTIAL) and not isinstance(_core(n).this, exp.Distinct) for n in found)
    if not partial or not found or any(part is None for part in parts):
        return None
    level = reader.level(parts[0], Tables())  # type: ignore[arg-type]
    nodes, group = groupings(select, level)
    columns: dict[exp.Expr, exp.Expr] = {}
    asked: list[exp.Expr] = []
    for node in nodes:
        if bare(node) not in columns:
            columns[bare(node)] = exp.column(f"c{len(asked)}", quoted=True)
            asked.append(node)
    keys = len(asked)
    for node in found:
        core = _core(node)
        steps: list[exp.Expr] = [core]
        if isinstance(core, exp.Avg):
            steps = [exp.Sum(this=core.this.copy()), exp.Count(this=core.this.copy())]
        sums = [exp.column(f"c{len(asked) + i}", quoted=True) for i in range(len(steps))]
        columns[node] = _combined(core, sums)
        asked += [_with_core(node, step) for step in steps]
    stacked: exp.Expr | None = None
    for part in parts:
        assert part is not None
        part.set("expressions", [exp.alias_(node.copy(), f"c{i}", quoted=True) for i, node in enumerate(asked)])
        part.set("group", exp.Group(expressions=[node.copy() for node in asked[:keys]]) if keys else None)
        stacked = part if stacked is None else exp.Union(this=stacked, expression=part, distinct=False)
    outer = exp.Select(
        from_=exp.From(this=exp.Subquery(this=stacked, alias=exp.TableAlias(this=exp.to_identifier("parts"))))
    )
    outer.set("expressions", _items(reader, select, columns, level))
    outer.set("group", None if group is None else replaced(group, columns))
    for clause in ("having", "order", "limit", "offset", "distinct"):
        value = select.args.get(clause)
        outer.set(clause, replaced(value, columns) if isinstance(value, exp.Expr) else value)
    return outer


def _stacked_in(reader: RelationReader, select: exp.Select) -> list[exp.Expr] | None:
    """The SELECTs whose private rows lie one below the other in the one item of FROM that is such a UNION ALL."""
    unions = [b[1] for node in from_items(select) if (b := reader.behind(node)) is not None and _is_union(b)]
    return _branches(unions[0]) if len(unions) == 1 else None


def _is_union(behind: tuple[RelationReader, exp.Expr]) -> bool:
    return isinstance(behind[1], exp.Union) and behind[0].kind(behind[1]) is Kind.ROWS


def _over(select: exp.Select, reader: RelationReader, branch: exp.Expr, first: exp.Expr) -> exp.Select | None:
    """A SELECT's FROM and WHERE with one of the stacked SELECTs in place of them all, under the first one's names."""
    names = [item.alias_or_name for item in first.expressions]
    if "" in names or any(map(_is_star, first.expressions)) or len(branch.expressions) != len(names):
        return None
    part = exp.Select(**{name: _copied(select.args.get(name)) for name in ("from_", "joins", "where", "with_")})
    for node in from_items(part):
        behind = reader.behind(node)
        if behind is None or not _is_union(behind):
            continue
        alias = node.args.get("alias")
        renamed = [] if alias is None else [column.name for column in alias.args.get("columns") or ()]
        heads = [exp.to_identifier(name, quoted=True) for name in [*renamed, *names[len(renamed) :]]]
        called = exp.to_identifier(node.alias_or_name or "subquery", quoted=True)
        node.replace(exp.Subquery(this=branch.copy(), alias=exp.TableAlias(this=called, columns=heads)))
        return part
    return None


def _copied(value: Any) -> Any:
    return [part.copy() for part in value] if isinstance(value, list) else value and value.copy()


def _combined(core: exp.Expr, columns: Sequence[exp.Expr]) -> exp.Expr:
    """An aggregate of everything, from those of the parts."""
    if isinstance(core, exp.Min | exp.Max):
        return type(core)(this=columns[0])
    total = exp.Sum(this=columns[0])
    if isinstance(core, exp.Avg):
        count = exp.Nullif(this=exp.Sum(this=columns[1]), expression=exp.Literal.number(0))
        return exp.Paren(this=exp.Div(this=total, expression=count))
    return total


def _items(
    reader: RelationReader, select: exp.Select, columns: Mapping[exp.Expr, exp.Expr], level: Level
) -> list[exp.Expr]:
    """The items of a SELECT list with columns in place of what is listed, under the names that they had."""
    items = []
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        column = bare(node)
        name = item.alias or (column.name if isinstance(column, exp.Column) else reader.output_name(item, level))
        items.append(exp.alias_(replaced(node, columns), name, quoted=True))
    return items


def _core(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Filter) else node


def _with_core(node: exp.Expr, core: exp.Expr) -> exp.Expr:
    return exp.Filter(this=core, expression=node.expression.copy()) if isinstance(node, exp.Filter) else core


def _branches(union: exp.Expr) -> list[exp.Expr]:
    union = unwrapped(union)
    if isinstance(union, exp.Union) and not union.args.get("distinct"):
        return [*_branches(union.this), *_branches(union.expression)]
    return [union]


def merged_select(reader: RelationReader, select: exp.Select) -> tuple[RelationReader, exp.Select] | None:
    """SELECT of expressions over one released derived table, as one SELECT; None where it does more than that.

    Then the figures keep the error bars that they have in any other query.
    """
    allowed = {"expressions", "from_", "where", "order", "limit", "offset", "with_"}
    items = list(from_items(select))
    if len(items) != 1 or any(v for k, v in select.args.items() if k not in allowed) or aggregates_of(select):
        return None
    inner_reader, inner = reader.behind(items[0]) or (reader, None)
    if not isinstance(inner, exp.Select) or _has_window(select):
        return None
    alias = items[0].args.get("alias")
    found = reader.cte(items[0]) if isinstance(items[0], exp.Table) else None
    renamed = [alias, found[0].args.get("alias") if found is not None else None]
    if any(one is not None and one.args.get("columns") for one in renamed) or not is_plain(inner_reader, inner):
        return None
    kept = {"expressions", "from_", "joins", "where", "group", "having", "with_"}
    if any(v for k, v in inner.args.items() if k not in kept):
        return None
    columns = {folded(i.alias_or_name): i.this if isinstance(i, exp.Alias) else i for i in inner.expressions}
    if "" in columns or len(columns) < len(inner.expressions) or any(map(_is_star, inner.expressions)):
        return None
    outside = [*select.expressions, *(select.args.get(name) for name in ("where", "order"))]
    if any(part is not None and part.find(exp.Query) is not None for part in outside):
        return None
    if any(folded(c.name) not in columns for part in outside if part is not None for c in part.find_all(exp.Column)
           if not _is_star(c)):  # fmt: skip
        return None
    level = inner_reader.with_ctes(inner).level(inner, Tables())
    shown = {name: Named(i.alias_or_name) for name, i in zip(columns, inner.expressions, strict=True)}
    names = [reader.output_name(item, Level(reader.statement, [(items[0].alias_or_name, shown)]))
             if not _is_star(item) else "" for item in select.expressions]  # fmt: skip
    return inner_reader, _merge(select, inner, columns, level, names)


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _merge(
    select: exp.Select, inner: exp.Select, columns: Mapping[str, exp.Expr], level: Level, names: Sequence[str]
) -> exp.Select:
    merged = inner.copy()

    def inlined(node: exp.Expr) -> exp.Expr:
        return node.transform(
            lambda part: exp.Paren(this=columns[folded(part.name)].copy()) if isinstance(part, exp.Column) else part
        )

    items: list[exp.Expr] = []
    for item, name in zip(select.expressions, names, strict=True):
        if _is_star(item):
            items += [exp.alias_(i.this if isinstance(i, exp.Alias) else i, i.alias_or_name, quoted=True, copy=True)
                      for i in inner.expressions]  # fmt: skip
            continue
        node = item.this if isinstance(item, exp.Alias) else item
        items.append(exp.alias_(bare(inlined(node)), name, quoted=True))
    merged.set("expressions", items)
    _number_groups(merged, inner, level)
    if select.args.get("where"):
        condition = exp.Paren(this=inlined(select.args["where"].this))
        having = merged.args.get("having")
        joined = exp.And(this=exp.Paren(this=having.this), expression=condition) if having is not None else condition
        merged.set("having", exp.Having(this=joined))
    if select.args.get("order"):
        merged.set("order", inlined(select.args["order"]))
    for clause in ("limit", "offset"):
        merged.set(clause, select.args.get(clause))
    return merged


def _number_groups(merged: exp.Select, inner: exp.Select, level: Level) -> None:
    """GROUP BY 1, an alias or ALL speak of the inner list, which is no longer there."""
    nodes = group_nodes(inner, level)
    clause = merged.args.get("group")
    if clause is not None and nodes is not None:
        merged.set("group", exp.Group(expressions=[node.copy() for node in nodes]))
