"""A relation: the rows that a FROM and a WHERE clause leave, and the columns they offer under their names.

Tables, views, CTEs and derived tables that filter and project all come down to one base table, what is joined to it, a
predicate and columns computed from the columns of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from .batch import BatchReader, TableBatch
from .catalog import Column, Table
from .level import Leaf, Level, Named
from .names import folded
from .predicate import ALWAYS, Predicate
from .scalar import Scope


@dataclass(frozen=True, eq=False)
class Relation:
    """The rows and the names that a FROM clause stands for."""

    base: TableBatch
    level: Level
    column: Callable[[Named], Column]
    """The column of the base, or of what is joined to it, that a name stands for."""
    where: Predicate = ALWAYS
    filters: tuple[Column, ...] = ()
    """The conditions behind ``where`` as columns that are true, false or NULL, where the rows are computed with."""
    equal: Mapping[str, Column] = field(default_factory=dict)
    """The key of a public table that a column must equal, by the column's SQL."""
    conditions_on: Callable[[str], list[Column]] = lambda _: []
    """The conditions that speak of one joined table alone, by its label, as columns that are true, false or NULL."""
    kept: frozenset[Leaf] = frozenset()
    """Private tables of an outer join that keeps rows of a public one without a match: those rows are not counted."""

    optional: frozenset[str] = frozenset()
    """The labels of joined tables whose columns are NULL where there is no match."""

    def named(self, node: exp.Column) -> Named:
        """What a name stands for."""
        return self.level.find(node)


def stored_columns(table: Table, leaf: Leaf) -> dict[str, Named]:
    """The columns of a table by folded name."""
    return {folded(column.name): Named(column.name, leaf, column) for column in table.columns}


def scope_of(batch: BatchReader, relation: Relation) -> Scope:
    """What names mean over a relation."""
    return Scope(relation.level.statement, batch.params, lambda node: relation.column(relation.named(node)))
