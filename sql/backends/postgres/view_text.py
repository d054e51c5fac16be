"""The text of a view of PostgreSQL in DuckDB's SQL, where every part of it means the same in both.

What means the same: columns, constants, AND, OR, NOT, IS NULL, IN with a list, equality of texts, comparisons of
numbers, days and moments, and + - * of numbers. Order among texts does not: PostgreSQL asks a collation, and tacit
compares bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...names import MAIN, folded

Types = Mapping[tuple[str, ...], Mapping[str, str]]
"""DuckDB's types of the columns of every table."""

UNREADABLE = "CREATE VIEW"
"""In place of a text that cannot be read. It is no SELECT, so a query that uses the view is refused."""

_ORDER = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
_SAME = (
    exp.Select, exp.From, exp.Where, exp.Table, exp.TableAlias, exp.Identifier, exp.Alias, exp.Column, exp.Paren,
    exp.Join, exp.And, exp.Or, exp.Not, exp.Is, exp.Null, exp.Boolean, exp.EQ, exp.NEQ, *_ORDER, exp.In, exp.Literal,
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Cast, exp.DataType,
)  # fmt: skip
_TEXT = (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
_WHOLE = (
    exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.DECIMAL,
)  # fmt: skip
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WRITTEN = {
    exp.DataType.Type.DOUBLE: _NUMBER,
    exp.DataType.Type.DATE: re.compile(r"\d{4}-\d\d-\d\d"),
    exp.DataType.Type.TIMESTAMP: re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
}
"""Constants that both read alike, by the type that they are cast to."""


class _Different(Exception):
    """Internal: a part that means something else in DuckDB, or may."""


def duckdb_view(text: str, types: Types) -> str:
    """The SELECT of a view in DuckDB's SQL; ``UNREADABLE`` where it may mean something else there."""
    try:
        tree = sqlglot.parse_one(text.strip().removesuffix(";"), read="postgres")
        if not isinstance(tree, exp.Select) or tree.args.get("distinct") or len(list(tree.find_all(exp.Select))) > 1:
            return UNREADABLE
        _unwrap_joins(tree)
        reader = _Reader(tree, types)
        return reader.read().sql("duckdb", comments=False)
    except (SqlglotError, _Different, RecursionError):
        return UNREADABLE


class _Reader:
    def __init__(self, tree: exp.Select, types: Types) -> None:
        self._tree = tree
        self._columns: dict[str, set[str]] = {}
        for table in tree.find_all(exp.Table):
            schema = MAIN if table.db == "public" else table.db
            known = types.get((folded(schema), folded(table.name)))
            if known is None or table.args.get("joins"):
                raise _Different
            table.set("db", exp.to_identifier(schema, quoted=True))
            for name, type_ in known.items():
                self._columns.setdefault(name, set()).add(type_)

    def read(self) -> exp.Expr:
        for join in self._tree.find_all(exp.Join):
            if join.args.get("method") or join.args.get("using") or str(join.args.get("kind") or "") == "FULL":
                raise _Different
        tree = self._tree.transform(self._rewritten)
        for node in tree.walk():
            if not isinstance(node, _SAME):
                raise _Different
            self._check(node)
        return tree

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        """IN as PostgreSQL writes it, and casts that change nothing."""
        if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
            parts = [part.transform(self._rewritten) for part in _listed(node.expression.this)]
            return exp.In(this=node.this.transform(self._rewritten), expressions=parts)
        if isinstance(node, exp.Cast) and node.to.this in _WHOLE:
            inner = node.this.unnest()
            if isinstance(inner, exp.Literal) and _NUMBER.fullmatch(inner.this):
                return exp.Literal.number(inner.this)
        if isinstance(node, exp.Cast) and node.to.this in (*_TEXT, exp.DataType.Type.BPCHAR):
            inner = node.this.unnest()
            if isinstance(inner, exp.Literal) and inner.is_string:
                # a char(n) has no blanks at its end where tacit reads it
                return exp.Literal.string(inner.this.rstrip(" ")) if node.to.this not in _TEXT else inner
            if isinstance(inner, exp.Column) and self._types(inner) == {"VARCHAR"}:
                return inner
            if isinstance(inner, exp.Cast):
                return self._rewritten(exp.Cast(this=self._rewritten(inner), to=node.to))
        return node

    def _types(self, column: exp.Column) -> set[str]:
        return self._columns.get(column.name, set())

    def _check(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Cast):
            written = _WRITTEN.get(node.to.this)
            literal = node.this.unnest()
            if written is None or not isinstance(literal, exp.Literal) or not written.fullmatch(literal.this):
                raise _Different
        if isinstance(node, _ORDER) and any(self._is_text(side) for side in node.iter_expressions()):
            raise _Different
        if isinstance(node, exp.Column) and not self._types(node):
            raise _Different

    def _is_text(self, side: exp.Expr) -> bool:
        inner = side.unnest()
        if isinstance(inner, exp.Literal):
            return bool(inner.is_string)
        if isinstance(inner, exp.Column):
            return any(type_ == "VARCHAR" or type_.startswith("ENUM(") for type_ in self._types(inner))
        return False


def _unwrap_joins(tree: exp.Select) -> None:
    """PostgreSQL writes FROM ((a JOIN b ON …) JOIN c ON …); without the parentheses it is the same."""
    key = "from_" if "from_" in tree.args else "from"
    clause = tree.args.get(key)
    joins: list[exp.Expr] = []
    node = clause.this if clause is not None else None
    while isinstance(node, exp.Subquery):
        joins = [*(node.args.get("joins") or ()), *joins]
        node = node.this
    if clause is not None and isinstance(node, exp.Table):
        joins = [*(node.args.get("joins") or ()), *joins]
        node.set("joins", None)
        clause.set("this", node)
        tree.set("joins", [*joins, *(tree.args.get("joins") or ())])


def _listed(node: exp.Expr) -> list[exp.Expr]:
    """The parts of ARRAY[…], which may be cast to a list of texts as a whole."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast) and inner.to.this == exp.DataType.Type.ARRAY:
        if any(part.this not in _TEXT for part in inner.to.expressions):
            raise _Different
        inner = inner.this.unnest()
    if not isinstance(inner, exp.Array):
        raise _Different
    return list(inner.expressions)
