"""Subqueries inside conditions and expressions: IN (SELECT …), EXISTS (SELECT …), and single values of public tables.

What a query over public tables gives is constants. EXISTS, and IN over private rows, look up whether a row of the other
table is there: an outer join with its distinct keys, which adds a column and no row (``joins.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from tacit.errors import TypeMismatchError, UnknownNameError, UnsupportedSqlError

from .constants import constant_literal
from .joins import Tables, conjuncts
from .level import Level
from .public import TextWriter, described
from .statement import bare, parts_of, rebuilt
from .unit_rows import aggregates_of

if TYPE_CHECKING:
    from .from_clause import RelationReader

_MOST_VALUES = 20_000
"""Of a list of constants; a longer one is looked up."""


class SubqueryReader:
    """Replaces the subqueries of one SELECT."""

    def __init__(self, reader: RelationReader, level: Level, tables: Tables) -> None:
        self._reader = reader
        self._level = level
        self._tables = tables
        self._error = reader.statement.error

    def without(self, node: exp.Expr) -> exp.Expr:
        """A condition without subqueries."""
        if node.find(exp.Query) is None:
            return node
        return self._replaced(node, required=True)

    def _replaced(self, node: exp.Expr, *, required: bool = False) -> exp.Expr:
        """``required``: the row is left out where this is not true, so that false and NULL are the same."""
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            return self._in(node, required=required)
        if isinstance(node, exp.Exists):
            return self._exists(node)
        if isinstance(node, exp.Subquery):
            return public_value(self._reader, node) or node
        all_required = required and isinstance(node, exp.And | exp.Or | exp.Paren)
        return rebuilt(node, [self._replaced(part, required=all_required) for part in parts_of(node)])

    def _in(self, node: exp.In, *, required: bool) -> exp.Expr:
        query = _select(node.args["query"])
        subject = self._replaced(node.this)
        if query is None or len(query.expressions) != 1:
            raise self._error(
                UnsupportedSqlError, node, "IN takes a SELECT of one column", "write IN (SELECT column …)"
            )
        values = _public_rows(self._reader, query, _MOST_VALUES + 1)
        if values is not None and len(values) <= _MOST_VALUES:
            if not values:
                return exp.Boolean(this=False)
            listed = exp.In(this=subject, expressions=[constant_literal(value) for (value,) in values])
            listed.meta.update(node.meta)
            return listed
        item = query.expressions[0]
        own = bare(item.this if isinstance(item, exp.Alias) else item)
        inner, tables = self._reader.with_ctes(query), Tables()
        if not required and not (
            query.args.get("from_") is not None
            and _never_null(subject, self._level, self._tables)
            and _never_null(own, inner.level(_without_where(query), tables), tables)
        ):
            raise self._error(
                UnsupportedSqlError, node, "NOT IN holds for no row if the SELECT has a NULL, and whether it has one "
                "is not known", "write NOT EXISTS (SELECT 1 FROM … WHERE column = …), or declare not_null",
            )  # fmt: skip
        return self._looked_up(node, query, [(subject, own)])

    def _exists(self, node: exp.Exists) -> exp.Expr:
        query = _select(node.this)
        if query is None:
            raise self._error(UnsupportedSqlError, node, "EXISTS takes one SELECT", "write EXISTS (SELECT 1 FROM …)")
        return self._looked_up(node, query, [])

    def _looked_up(self, node: exp.Expr, query: exp.Select, pairs: list[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
        """Whether the distinct keys of another table hold those of this row."""
        grouped = query.args.get("group") is not None and bool(pairs)
        refused = ["limit", "offset", "qualify", "windows", *([] if grouped else ["group", "having"])]
        aggregated = any(query.args.get(clause) for clause in refused) or (aggregates_of(query) and not grouped)
        if aggregated or query.args.get("from_") is None:
            raise self._error(
                UnsupportedSqlError, node, "a subquery in a condition reads rows, or is IN (SELECT … GROUP BY …)",
                "leave aggregates, GROUP BY, HAVING and LIMIT out, or join a derived table",
            )  # fmt: skip
        inner = self._reader.with_ctes(query).level(_without_where(query), Tables())
        rest: list[exp.Expr] = []
        for part in conjuncts(query.args["where"].this) if query.args.get("where") is not None else []:
            pair = None if grouped else self._correlated(part, inner)
            if pair is None:
                rest.append(part)
            else:
                pairs.append(pair)
        if not pairs:
            raise self._error(
                UnsupportedSqlError, node, "EXISTS says nothing of the row that it is asked for",
                "equate a column inside with one outside",
            )  # fmt: skip
        keys = query.copy()
        keys.set(
            "expressions", [exp.alias_(own.copy(), f"tacit key {i}", quoted=True) for i, (_, own) in enumerate(pairs)]
        )
        keys.set("where", exp.Where(this=exp.and_(*(part.copy() for part in rest))) if rest else None)
        keys.set("distinct", None if grouped else exp.Distinct())
        first = len(self._tables.conditions)
        alias = f"tacit lookup {len(self._level.hidden)}"
        leaf = self._reader.hidden_item(keys, alias, node, self._level, self._tables)
        columns = [exp.column(f"tacit key {i}", table=alias, quoted=True) for i in range(len(pairs))]
        equal = [exp.EQ(this=side, expression=key) for (side, _), key in zip(pairs, columns, strict=True)]
        having = self._tables.conditions[first:]
        del self._tables.conditions[first:]
        self._tables.outer[leaf] = [*((self._level, condition) for condition in equal), *having]
        return exp.Paren(this=exp.Not(this=exp.Is(this=columns[0].copy(), expression=exp.Null())))

    def _correlated(self, part: exp.Expr, inner: Level) -> tuple[exp.Expr, exp.Expr] | None:
        """(side outside, side inside) of an equality between the two; None for a condition on the inside alone."""
        if _is_inside(part, inner):
            return None
        if isinstance(part, exp.EQ):
            for own, side in ((part.this, part.expression), (part.expression, part.this)):
                outside = [c for c in side.find_all(exp.Column) if _is_inside(c, inner)]
                if _is_inside(own, inner) and own.find(exp.Column) is not None and not outside:
                    return side, own
        raise self._error(
            UnsupportedSqlError, part, "a subquery is connected to the query around it by equalities only",
            "equate a column inside with one outside",
        )  # fmt: skip


def _never_null(node: exp.Expr, level: Level, tables: Tables) -> bool:
    """Whether an expression is a column that holds no NULL."""
    node = bare(node)
    if not isinstance(node, exp.Column):
        return False
    try:
        named = level.find(node).traced()
    except UnknownNameError:
        return False
    return named.column is not None and not named.column.nullable and named.leaf not in {*tables.outer, *tables.kept}


def _is_inside(node: exp.Expr, inner: Level) -> bool:
    """Whether all columns of an expression are of the subquery's own tables."""
    for column in node.find_all(exp.Column):
        try:
            inner.find(column)
        except UnknownNameError:
            return False
    return True


def _without_where(query: exp.Select) -> exp.Select:
    bared = query.copy()
    bared.set("where", None)
    return bared


def _select(query: exp.Expr) -> exp.Select | None:
    while isinstance(query, exp.Subquery):
        query = query.this
    return query if isinstance(query, exp.Select) else None


def public_value(reader: RelationReader, node: exp.Subquery) -> exp.Expr | None:
    """The single value of a query over public tables, as a constant; None for any other query."""
    query = node.this
    if not isinstance(query, exp.Query):
        return None
    rows = _public_rows(reader, query, 2)
    if rows is None:
        return None
    if len(rows) > 1 or (rows and len(rows[0]) != 1):
        raise reader.statement.error(
            UnsupportedSqlError,
            node,
            "a subquery in an expression gives one value",
            "let it have one row and one column",
        )
    return exp.Paren(this=constant_literal(rows[0][0] if rows else None))


def _public_rows(reader: RelationReader, query: exp.Expr, most: int) -> list[tuple[Any, ...]] | None:
    """The rows of a query over public tables alone, so many at most; None where it reads anything else."""
    read: Callable[..., list[tuple[Any, ...]]] | None = reader.batch.catalog.read_public
    if read is None or not reader.is_public(query):
        return None
    try:
        written = TextWriter().query(reader, query)
        described(reader, query, written)
    except (TypeMismatchError, UnknownNameError):
        return None  # it names columns of the query around it
    limited = f"SELECT * FROM ({written.text}) LIMIT {most}"  # noqa: S608
    return read(type(written)(limited, written.ctes, written.tables))


def with_public_values(reader: RelationReader, node: exp.Expr) -> exp.Expr:
    """An expression with constants in place of the single values of public tables that it asks for."""
    if node.find(exp.Subquery) is None:
        return node

    def replaced(part: exp.Expr) -> exp.Expr:
        return (public_value(reader, part) or part) if isinstance(part, exp.Subquery) else part

    return node.copy().transform(replaced)
