"""Queries over public tables and over what was released, written anew as text that names nothing else.

The text of an analyst is run by the engine only here, and only in a database of its own that holds copies of public
tables and released frames: whatever it asks, there is no private row that it could reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from tacit.errors import TypeMismatchError, UnsupportedSqlError

from . import dialect
from .catalog import Column, Table
from .constants import bound_literal
from .derived import PublicQuery
from .statement import parts_of, rebuilt

if TYPE_CHECKING:
    from .from_clause import RelationReader

_OUTSIDE = ("getenv", "current_setting", "getvariable", "nextval", "currval", "sleep")
"""Functions that ask something of the machine and not of the values."""

Rewrite = Callable[["RelationReader", exp.Expr], exp.Expr | None]
"""What stands in place of a query; None where it stays as it is."""


class TextWriter:
    """Writes queries as text over tables ``tacit_t0``, …; CTEs and views become CTEs ``tacit_c0``, …."""

    def __init__(self, released: Rewrite | None = None, rewritten: Rewrite | None = None) -> None:
        """``released`` gives text over released frames, ``rewritten`` another query that is written in its place."""
        self._released = released
        self._rewritten = rewritten
        self._tables: dict[tuple[str, ...], tuple[str, Table]] = {}
        self._named: dict[int | tuple[str, ...], str] = {}
        self._ctes: list[tuple[str, str]] = []

    def query(self, reader: RelationReader, query: exp.Expr) -> PublicQuery:
        """A query with all that it needs."""
        text = dialect.write(self._written(reader, query), functions_as_typed=True)
        return PublicQuery(text, tuple(self._ctes), tuple(self._tables.values()))

    def _written(self, reader: RelationReader, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery | exp.Table):
            reader = reader.with_ctes(node)
            other = self._rewritten(reader, node) if self._rewritten is not None else None
            if other is not None:
                return self._written(reader, other)
            text = self._released(reader, node) if self._released is not None else None
            if text is not None:
                return text
        if isinstance(node, exp.Table):
            return self._table(reader, node)
        if isinstance(node, exp.Placeholder):
            return bound_literal(node, reader.statement, reader.batch.params)
        self._check(reader, node)
        left_out = ("with_", "db", "catalog") if isinstance(node, exp.Column) else ("with_",)
        return rebuilt(node, [self._written(reader, part) for part in parts_of(node, left_out)], left_out)

    def _check(self, reader: RelationReader, node: exp.Expr) -> None:
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if name in _OUTSIDE or name.startswith(("pg_", "duckdb_", "read_")) or isinstance(node, exp.Command):
            raise reader.statement.error(
                UnsupportedSqlError, node, f"{name or 'this'} is not supported", "compute it outside of the query"
            )

    def _table(self, reader: RelationReader, node: exp.Table) -> exp.Expr:
        extra = [n for n, v in node.args.items() if v and n not in ("this", "db", "catalog", "alias", "joins")]
        if not isinstance(node.this, exp.Identifier) or extra:
            raise reader.statement.error(
                UnsupportedSqlError, node,
                "a query reads tables by name; table functions and files are not supported", "write FROM table",
            )  # fmt: skip
        written = exp.to_table(self._name(reader, node))
        alias = node.args.get("alias")
        columns = [column.copy() for column in alias.args.get("columns") or ()] if alias is not None else []
        shown = exp.to_identifier(node.alias or node.name, quoted=True)
        written.set("alias", exp.TableAlias(this=shown, columns=columns))
        if node.args.get("joins"):
            written.set("joins", [self._written(reader, join) for join in node.args["joins"]])
        return written

    def _name(self, reader: RelationReader, node: exp.Table) -> str:
        """What stands for a table in the text."""
        found = reader.cte(node)
        if found is not None:
            cte, inner = found
            alias = cte.args.get("alias")
            return self._cte(id(cte), inner, cte.this, alias.args.get("columns") or () if alias is not None else ())
        table = reader.table(node)
        if table.view:
            query, inner = reader.view(table, node)
            return self._cte(table.key, inner, query, ())
        if not table.public:
            raise reader.statement.error(
                UnsupportedSqlError, node, f"the rows of {table.name} are private, and only counts and sums of them "
                "are released", "aggregate them in a query of its own",
            )  # fmt: skip
        return self._tables.setdefault(table.key, (f"tacit_t{len(self._tables)}", table))[0]

    def _cte(self, key: int | tuple[str, ...], reader: RelationReader, query: exp.Expr, columns: Any) -> str:
        if key not in self._named:
            text = dialect.write(self._written(reader, query), functions_as_typed=True)
            name = f"tacit_c{len(self._named)}"
            self._named[key] = name
            heads = ", ".join(dialect.write(column) for column in columns)
            self._ctes.append((f"{name}({heads})" if heads else name, text))
        return self._named[key]


def public_table(reader: RelationReader, query: exp.Expr) -> Table:
    """The rows of a query over public tables, as a public table."""
    rows = TextWriter().query(reader, query)
    columns = described(reader, query, rows)
    name = ", ".join(table.name for _, table in rows.tables) or "values"
    return Table(name, tuple(Column(name, type_) for name, type_ in columns), public=True, rows=rows)


def described(
    reader: RelationReader, place: exp.Expr, query: PublicQuery, frames: tuple[dialect.RelationShape, ...] = ()
) -> tuple[tuple[str, str], ...]:
    """The names and types of a query's columns; refused where DuckDB cannot run it."""
    shapes = tuple((name, tuple((c.name, c.type) for c in table.columns)) for name, table in query.tables)
    columns = dialect.describe(query.text, query.ctes, (*shapes, *frames))
    if isinstance(columns, str):
        raise reader.statement.error(
            TypeMismatchError, place, f"DuckDB cannot run this: {columns}", "check the names and the types"
        )
    return columns
