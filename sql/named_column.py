"""A column, or an expression over columns, named outside of a query: ``visits.city``, ``lower(visits.city)``."""

from __future__ import annotations

from sqlglot import exp
from tacit.errors import SqlSyntaxError, UnsupportedSqlError

from . import dialect
from .batch import BatchReader
from .catalog import Catalog, Column, Table
from .constants import Parameters
from .declared import with_domain
from .from_clause import RelationReader
from .names import folded
from .parse import Limits, split_batch
from .selection import Selection
from .statement import Statement

_HINT = "write table.column, as in visits.city, or an expression over one table's columns, as in lower(visits.city)"


def named_column(text: str, catalog: Catalog, limits: Limits) -> tuple[Table, Column]:
    """The table that a column is stored in, or computed over, and the column with what is declared of it.

    A view is read through: its column is one of the table behind it.
    """
    named = _select(f"SELECT {text}", limits, "expressions")
    (item,) = named.tree.expressions
    columns = list(item.find_all(exp.Column))
    places = {(folded(column.text("db")), folded(column.table)) for column in columns}
    if len(places) != 1 or not columns[0].table or any(column.text("catalog") for column in columns):
        raise named.error(UnsupportedSqlError, item, "this names no column of one table", _HINT)
    table = exp.Table(this=columns[0].args["table"].copy(), db=columns[0].args.get("db"))
    for column in columns:
        column.set("db", None)
    statement = _select(f"SELECT {dialect.write(item)} FROM {dialect.write(table)}", limits, "expressions", "from_")  # noqa: S608
    reader = BatchReader(catalog, Parameters(None), limits)
    assert isinstance(statement.tree, exp.Select)
    selection = Selection(reader, statement, RelationReader(reader, statement), statement.tree)
    assert selection.relation is not None
    found = with_domain(selection.items[0], selection.relations.scope(selection.relation), limits.rows)
    return selection.relation.base.holder(found), found


def _select(sql: str, limits: Limits, *clauses: str) -> Statement:
    """One SELECT of one item, with these clauses and no other."""
    chunks = split_batch(sql, limits)
    statement = chunks[0].parsed(limits)
    tree = statement.tree
    others = {name for name, value in tree.args.items() if value}.difference(clauses)
    if len(chunks) > 1 or not isinstance(tree, exp.Select) or others:
        raise statement.error(SqlSyntaxError, None, "this is no column", _HINT)
    if len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Alias):
        raise statement.error(SqlSyntaxError, None, "this is not one column", _HINT)
    return statement
