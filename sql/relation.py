"""A relation: the rows that a FROM clause reads, and the columns it offers under their names.

Tables, views, CTEs and derived tables that filter and project all come down to one base table, a predicate and
columns computed from the base's columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from tacit.errors import UnknownNameError, UnsupportedSqlError

from .batch import BatchReader, TableBatch
from .catalog import Column, Table
from .names import MAIN, folded, nearest
from .predicate import ALWAYS, And, Predicate
from .scalar import Scope
from .statement import Statement


@dataclass(frozen=True)
class RelationColumn:
    """A column under the name that its relation gives it, which need not be the stored one."""

    name: str
    column: Column


Names = tuple[tuple[str, Mapping[str, RelationColumn]], ...]
"""(alias, columns by folded name) of everything that FROM brings in."""


@dataclass(frozen=True)
class Relation:
    """The rows and the names that a FROM clause stands for."""

    base: TableBatch
    names: Names
    where: Predicate = ALWAYS
    joined: bool = False
    """Whether a public table is joined to it; the base knows the joins of the whole batch."""

    def narrowed(self, condition: Predicate) -> Relation:
        """The rows among these for which a condition holds."""
        return replace(self, where=condition if self.where == ALWAYS else And((self.where, condition)))


def stored_columns(table: Table) -> dict[str, RelationColumn]:
    """The columns of a stored table by folded name."""
    return {folded(column.name): RelationColumn(column.name, column) for column in table.columns}


def scope_of(batch: BatchReader, statement: Statement, relation: Relation) -> Scope:
    """What names mean over a relation."""
    return Scope(statement, batch.params, lambda node: column_of(statement, relation, node).column)


def column_of(statement: Statement, relation: Relation, node: exp.Column) -> RelationColumn:
    """The column that a name means; it must be of one table alone."""
    name = folded(node.name)
    tables = tables_of(statement, relation, node, node.table)
    columns = [columns[name] for _, columns in tables if name in columns]
    aliases = [alias for alias, _ in relation.names]
    if not columns and not node.table and name in map(folded, aliases):
        raise statement.error(
            UnsupportedSqlError, node, f"{node.name} is a table here and stands for its whole row",
            f"write {node.name}.column",
        )  # fmt: skip
    if not columns:
        existing = [column.name for _, columns in tables for column in columns.values()]
        shown = " and ".join(alias for alias in aliases if alias) or "the table"
        raise statement.error(
            UnknownNameError, node, f"no such column in {shown}: {node.name}", nearest(node.name, existing)
        )
    if len(columns) > 1:
        raise statement.error(
            UnknownNameError, node, f"{node.name} is a column of several tables", f"write {aliases[0]}.{node.name}"
        )
    return columns[0]


def tables_of(statement: Statement, relation: Relation, node: exp.Expr, alias: str) -> Names:
    """The tables of FROM that a name before a dot means: all of them where there is none."""
    tables = tuple((name, columns) for name, columns in relation.names if folded(alias) in ("", folded(name)))
    if not tables or folded(node.text("db")) not in ("", MAIN) or node.text("catalog"):
        first = relation.names[0][0]
        raise statement.error(
            UnknownNameError, node, f"no such table in this query: {alias}", f"write {first}.{node.name}"
        )
    return tables
