"""What is publicly known about the tables: names, types, declared domains. Never a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .names import folded

if TYPE_CHECKING:
    from .derived import PublicQuery, UnitRows

_LABELS = ("p", "j")
"""What the labels of joined private and public tables begin with."""

UNIT_NAME = "tacit unit"
"""What the scan calls the privacy unit of a row; no column may be named so."""

Bound = int | float | Decimal | date | datetime


@dataclass(frozen=True)
class Values:
    """A declared list of values; ``other`` is the label of the group that holds all the rest, if it is wanted."""

    values: tuple[Any, ...]
    other: str | None = None
    complete: bool = False
    """Whether a row can hold nothing else; NULL is a matter of its own (``Column.nullable``)."""


@dataclass(frozen=True)
class Range:
    """A declared range: the clamp of SUM and AVG, and for whole numbers and dates a list of groups too."""

    min: Bound
    max: Bound


@dataclass(frozen=True)
class Column:
    """A column with its DuckDB type and what is declared of it; or one that is computed from such columns."""

    name: str
    """Unlike that of any other column of a scan; a column of a joined table has the table's label before it."""
    type: str
    nullable: bool = True
    domain: Values | Range | None = None
    expression: str = ""
    """How a derived column is computed, as SQL that cannot fail; empty for a stored one."""
    inputs: tuple[Column, ...] = ()
    """The stored columns that a derived one is computed from."""
    growth: tuple[int, int] = (1, 0)
    """(a, b): a text in it has at most a times the bytes of the longest stored text it reads, plus b."""
    label: str = ""
    """The joined table that holds a stored column; empty for the base."""
    recast: bool = False
    """Whether the scan must cast the stored column to ``type``, because the type that it is stored with is private."""
    origin: tuple[Table, Column] | None = field(default=None, compare=False, repr=False)
    """The stored column whose values are those of a computed table's column, and its table: for hints and discovery."""

    @property
    def reference(self) -> str:
        """SQL for the column's value in the scan."""
        return self.expression or '"' + self.name.replace('"', '""') + '"'

    @property
    def stored(self) -> tuple[Column, ...]:
        """The stored columns behind this one."""
        return self.inputs or (self,)

    @property
    def own_name(self) -> str:
        """The name that the column has in its own table."""
        return self.name.removeprefix(f"{self.label}.") if self.label else self.name

    @property
    def labels(self) -> frozenset[str]:
        """The joined tables that the column's value comes from."""
        return frozenset(column.label for column in self.stored if column.label)

    def of(self, label: str) -> Column:
        """The column as the scan calls it when its table is joined under a label."""
        return replace(self, name=f"{label}.{self.name}", label=label)


@dataclass(frozen=True)
class KeyStep:
    """One step on the way from a row to its privacy unit: the rows of a table with this key, and what they say."""

    table: Table
    key: str
    """The column of the table that is equal to what the step before says."""
    gives: str
    """The column that holds the next key, or the unit in the last step."""


@dataclass(frozen=True)
class Table:
    """A table, and the bound on what one privacy unit can add to it.

    Without ``privacy_unit`` every row is a unit of its own. ``version`` names the state of the data: releases
    of different versions are never mixed.
    """

    name: str
    columns: tuple[Column, ...]
    privacy_unit: str | None = None
    max_rows_per_unit: int = 1
    public: bool = False
    version: str = ""
    path: tuple[str, ...] = ()
    """Schema and name in the database; the name alone when empty."""
    view: str = field(default="", repr=False)
    """The SELECT behind a view; a view is read as if that text stood in its place."""
    rows: PublicQuery | UnitRows | None = None
    """How the rows of a table that is not stored are computed; None for a stored one."""
    unit_path: tuple[KeyStep, ...] | None = None
    """How the privacy unit is reached, where the table does not hold it; ``privacy_unit`` is then the path in words."""
    unit_key: str = ""
    """The column that the path begins with."""
    primary_key: tuple[str, ...] = ()
    minimum_frequency: int = 1
    """A value of fewer units is not found, but for noise."""
    found: tuple[tuple[tuple[str, str], Values], ...] = ()
    """The values that were found for expressions over its columns, and for columns of which a range is declared, by
    the expression's SQL or the column's name, and the type."""

    left_out: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """Columns of the stored table that no batch can use, each with the reason."""

    @property
    def unit_column(self) -> str | None:
        """The column that holds the privacy unit, where the table has one."""
        return None if self.unit_path is not None else self.privacy_unit

    @property
    def key(self) -> tuple[str, ...]:
        """Which table of the database this is: equal for equal tables only."""
        return tuple(map(folded, self.path or ("main", self.name)))

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {folded(column.name): column for column in self.columns}

    def found_values(self, column: Column) -> Values | None:
        """The values that were found for an expression over the table's columns, or for a column with a range."""
        if column.expression and column.labels:
            return None
        return dict(self.found).get((column.expression or column.own_name, column.type))

    def column(self, name: str) -> Column | None:
        """Look a column up as SQL does, without regard to case."""
        return self._by_name.get(folded(name))


@dataclass(frozen=True)
class Catalog:
    """All tables that a batch may name."""

    tables: tuple[Table, ...] = field(default=())
    read_public: Callable[[PublicQuery], list[tuple[Any, ...]]] | None = field(default=None, compare=False, repr=False)
    """The rows of a query over public tables, where a database is at hand."""
    main: str = "main"
    """What the database calls the schema whose tables go by their bare name."""
    database: str = ""
    """What SQL may call the database, before the schema or in its place; empty where it has no such name."""

    @cached_property
    def _by_name(self) -> dict[str, Table]:
        return {folded(table.name): table for table in self.tables}

    @cached_property
    def _by_key(self) -> dict[tuple[str, ...], Table]:
        return {table.key: table for table in self.tables}

    def table(self, name: str) -> Table | None:
        """A table by the name that it has here (see ``names.spelled``), without regard to case."""
        return self._by_name.get(folded(name))

    def at(self, schema: str, name: str) -> Table | None:
        """A table by its place in the database; an empty schema is the main one, which the database may call so too."""
        place = folded(schema)
        is_main = place in ("", self.main, folded(self.database))
        return self._by_key.get(("main" if is_main else place, folded(name)))

    @cached_property
    def labels(self) -> tuple[str, str]:
        """What labels of joined private and public tables begin with: such that no column is spelt ``label.name``."""
        names = [folded(column.name) for table in self.tables for column in table.columns]
        return tuple(_unspelt(letter, names) for letter in _LABELS)  # type: ignore[return-value]


def _unspelt(start: str, names: Iterable[str]) -> str:
    while any(re.match(rf"{start}[0-9]+\.", name) for name in names):
        start += "_"
    return start
