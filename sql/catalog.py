"""What is publicly known about the tables: names, types, declared domains. Never a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from .names import folded

Bound = int | float | Decimal | date | datetime


@dataclass(frozen=True)
class Values:
    """A declared list of values; ``other`` is the label of the group that holds all the rest, if it is wanted."""

    values: tuple[Any, ...]
    other: str | None = None


@dataclass(frozen=True)
class Range:
    """A declared range: the clamp of SUM and AVG, and for whole numbers and dates a list of groups too."""

    min: Bound
    max: Bound


@dataclass(frozen=True)
class Column:
    """A column with its DuckDB type and what is declared of it; or one that is computed from such columns."""

    name: str
    type: str
    nullable: bool = True
    domain: Values | Range | None = None
    expression: str = ""
    """How a derived column is computed, as SQL that cannot fail; empty for a stored one."""
    inputs: tuple[Column, ...] = ()
    """The stored columns that a derived one is computed from."""
    growth: tuple[int, int] = (1, 0)
    """(a, b): a text in it has at most a times the bytes of the longest stored text it reads, plus b."""

    @property
    def reference(self) -> str:
        """SQL for the column's value in the scan."""
        return self.expression or '"' + self.name.replace('"', '""') + '"'

    @property
    def stored(self) -> tuple[Column, ...]:
        """The stored columns behind this one."""
        return self.inputs or (self,)


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
    view: str = ""
    """The SELECT behind a view; a view is read as if that text stood in its place."""

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {folded(column.name): column for column in self.columns}

    def column(self, name: str) -> Column | None:
        """Look a column up as SQL does, without regard to case."""
        return self._by_name.get(folded(name))


@dataclass(frozen=True)
class Catalog:
    """All tables that a batch may name."""

    tables: tuple[Table, ...] = field(default=())

    @cached_property
    def _by_name(self) -> dict[str, Table]:
        return {folded(table.name): table for table in self.tables}

    def table(self, name: str) -> Table | None:
        """Look a table up as SQL does, without regard to case; ``schema.table`` outside the main schema."""
        return self._by_name.get(folded(name))
