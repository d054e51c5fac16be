"""Statements that compute with released results: SELECT over groups, joins and windows of them, set operations.

Every SELECT inside that aggregates private rows is a query of its own, released as a frame. The rest of the statement
is run over those frames, and over public tables, after the release: post-processing, which costs nothing. A statement
over public tables alone is the same without a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
from .replaced import is_star, replaced, replaced_all, replaced_items
from .select import read_counted, read_select
from .stacked_rows import union_select
from .statement import Statement, bare
from .unit_rows import aggregates_of, group_nodes, groupings
from .workload import KeyColumn, OuterQuery, Query, ReleasedPart

_AFTER = ("order", "limit", "offset", "distinct", "qualify", "windows")
"""Clauses that come after the groups are made."""


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
    return items if len(items) == count and not any(map(is_star, items)) else [None] * count


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
    if Kind.ROWS not in kinds or Kind.RELEASED in kinds or _has_window(select) or _uses_results(inner, select):
        return False
    return union_select(inner, select) is None


def _uses_results(reader: RelationReader, select: exp.Select) -> bool:
    """Whether a SELECT over groups computes with a scalar subquery that is more than one COUNT or SUM."""
    return any(not _is_linear(subquery.this) for subquery in _scalar_results(reader, select))


def _scalar_results(reader: RelationReader, select: exp.Select) -> list[exp.Subquery]:
    """The subqueries beside the aggregates of a SELECT that aggregate private rows themselves."""
    parts = [*select.expressions, *(select.args.get(name) for name in ("having", *_AFTER))]
    found = [node for part in parts if isinstance(part, exp.Expr) for node in part.find_all(exp.Subquery)]
    queries = [node for node in found if isinstance(node.this, exp.Select) and node.this.args.get("from_") is not None]
    return [node for node in queries if node.find_ancestor(exp.Query) is select and _releases(reader, node.this)]


def _releases(reader: RelationReader, query: exp.Select) -> bool:
    return reader.kind(query) is Kind.RELEASED and is_plain(reader, query)


def _is_linear(query: exp.Select) -> bool:
    node = bare(query.expressions[0].unalias())
    return isinstance(node, exp.Filter | exp.Count | exp.CountIf | exp.Sum) and not query.args.get("group")


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
        if _has_window(query) or _uses_results(reader, query):
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
        results = _scalar_results(reader, select)
        for result in results:
            part = self._part(reader.with_ctes(result.this), result.this)
            columns[result] = exp.Subquery(this=exp.select("*").from_(exp.to_identifier(part)))
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
            last.set(clause, replaced_all(value, columns))
        last.set("expressions", replaced_items(reader, select, columns, level))
        if results and select.args.get("having") is not None:
            first.set("having", None)
            last.set("where", exp.Where(this=replaced(select.args["having"].this, columns)))
        _check_quotients(self.statement, last)
        last.set("from_", exp.From(this=exp.to_table(self._part(reader, first))))
        return last


def _check_quotients(statement: Statement, query: exp.Expr) -> None:
    """Released numbers are DOUBLE, which // divides without rounding. Queries inside are checked by themselves."""
    for found in query.walk(prune=lambda node: isinstance(node, exp.Query) and node is not query):
        if isinstance(found, exp.IntDiv):
            raise statement.error(UnsupportedSqlError, found, WHOLE_QUOTIENT, "write a / b, or floor(a / b)")


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
    if "" in columns or len(columns) < len(inner.expressions) or any(map(is_star, inner.expressions)):
        return None
    outside = [*select.expressions, *(select.args.get(name) for name in ("where", "order"))]
    if any(part is not None and part.find(exp.Query) is not None for part in outside):
        return None
    if any(folded(c.name) not in columns for part in outside if part is not None for c in part.find_all(exp.Column)
           if not is_star(c)):  # fmt: skip
        return None
    level = inner_reader.with_ctes(inner).level(inner, Tables())
    shown = {name: Named(i.alias_or_name) for name, i in zip(columns, inner.expressions, strict=True)}
    names = [reader.output_name(item, Level(reader.statement, [(items[0].alias_or_name, shown)]))
             if not is_star(item) else "" for item in select.expressions]  # fmt: skip
    return inner_reader, _merge(select, inner, columns, level, names)


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
        if is_star(item):
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
