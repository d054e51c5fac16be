"""Tables that are not stored: the rows of a query over public tables, and rows computed from those of private ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .catalog import Table
from .names import folded

if TYPE_CHECKING:
    from .scan import Join


@dataclass(frozen=True)
class PublicQuery:
    """SQL over public tables, each under the name that stands for it in the text. It is run apart from private rows."""

    text: str
    ctes: tuple[tuple[str, str], ...]
    """(name, text) of the queries that it is made of; each may name those before it."""
    tables: tuple[tuple[str, Table], ...]

    @property
    def identity(self) -> Any:
        """Equal for the same query of the same state of its tables."""
        return ["public", self.text, self.ctes, [(name, identity(table)) for name, table in self.tables]]


@dataclass(frozen=True)
class UnitRows:
    """Rows that group those of a private table, and of what is joined to it.

    Guarantee. ``whole``: the keys begin with the privacy unit, so adding or removing a unit adds or removes its own
    groups and changes no other. Where the unit is the only key that is one row, whatever rows the unit has, so all are
    read. Otherwise the rows of a unit are bounded first, and a unit has no more groups than rows. Not ``whole``: there
    are no aggregates, each row is one combination of keys, and a unit's bounded rows add at most as many combinations
    and take none away.
    """

    table: Table
    private: tuple[tuple[str, Join], ...]
    joins: tuple[tuple[str, Join], ...]
    where: tuple[str, ...]
    """Conditions, as SQL that cannot fail."""
    keys: tuple[tuple[str, str], ...]
    """(name, SQL that cannot fail) of what the rows are grouped by."""
    columns: tuple[tuple[str, str], ...]
    """(name, SQL of an aggregate that cannot fail) of what is computed for each group."""
    reads: frozenset[str]
    """The stored columns that the SQL reads, as the scan calls them."""
    whole: bool
    bounded: bool
    """Whether the rows of a unit are bounded before they are grouped."""

    @property
    def identity(self) -> Any:
        """Equal for the same rows of the same state of the tables."""
        every = (*self.private, *self.joins)
        joins = [
            [label, identity(j.table), j.on, j.unit, j.outer, *(c.reference for c in j.where)] for label, j in every
        ]
        return ["rows", identity(self.table), joins, self.where, self.keys, self.columns, self.whole, self.bounded]


def identity(table: Table) -> Any:
    """Equal for equal tables in the same state, whose rows belong to the same units."""
    if table.rows is not None:
        return table.rows.identity
    way = [[identity(step.table), step.key, step.gives] for step in table.unit_path or ()]
    columns = [[column.name, column.type] for column in table.columns]
    return [folded(table.name), table.version, table.privacy_unit, table.max_rows_per_unit, columns, *way]


def stored_tables(table: Table, joins: tuple[tuple[str, Join], ...] = ()) -> Iterator[Table]:
    """The stored tables behind a table and what is joined to it, public ones among them."""
    rows = table.rows
    if rows is None:
        yield table
    elif isinstance(rows, PublicQuery):
        for _, read in rows.tables:
            yield from stored_tables(read)
    else:
        yield from stored_tables(rows.table, (*rows.private, *rows.joins))
    if table.unit_path is not None:
        yield from (step.table for step in table.unit_path)
    for _, join in joins:
        yield from stored_tables(join.table)


def looked_up(table: Table, joins: tuple[tuple[str, Join], ...] = ()) -> Iterator[Join]:
    """Every join with a public table that adds columns to a table, or to the rows that it is computed from."""
    if isinstance(table.rows, UnitRows):
        yield from looked_up(table.rows.table, (*table.rows.private, *table.rows.joins))
    for _, join in joins:
        if join.table.public:
            yield join
        yield from looked_up(join.table)


def public_queries(table: Table, joins: tuple[tuple[str, Join], ...] = ()) -> Iterator[Table]:
    """The tables behind a table and what is joined to it that are queries over public tables."""
    if isinstance(table.rows, PublicQuery):
        yield table
    elif table.rows is not None:
        yield from public_queries(table.rows.table, (*table.rows.private, *table.rows.joins))
    for _, join in joins:
        yield from public_queries(join.table)
