"""What one aggregate scan of one table must count: data-free, and independent of the engine that runs it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .catalog import Column, Table
from .derived import identity, stored_tables
from .names import folded
from .regions import Regions
from .sorted_shares import asks_totals, corner_weights, order_of_totals

UNIT = 1 << 30
"""Fixed-point parts that one row is split into when the batch sums something."""


@dataclass(frozen=True)
class Join:
    """A table joined to the base by equality: (what the base has, column of the table) for each pair."""

    table: Table
    on: tuple[tuple[str, str], ...]
    after: frozenset[str] = frozenset()
    """The labels of joined tables that the left sides come from."""
    reads: frozenset[str] = frozenset()
    """The stored columns that the left sides are computed from."""
    unit: bool = False
    """Whether the table is private: then it is joined on the privacy unit too, one row for each unit and key."""
    outer: bool = False
    """Of private tables with several rows for a unit: whether a row without a match stays, once."""
    where: tuple[Column, ...] = ()
    """Of a table that may have no match: which of its rows can match, by conditions over its own columns. A row is
    chosen by what it holds itself, after the rows of a unit are bounded, so no bound changes."""


@dataclass(frozen=True)
class SummedColumn:
    """A summed column and its clamp.

    A value v clamped to [low, high] is the mix of the two ends that has ``high`` with the share
    f = (v - low) / (high - low), rounded to a multiple of 1/UNIT. So a SUM is off by at most
    (high - low) / 2^31 for each row: the fixed-point step. NaN counts as +inf, which is where DuckDB sorts it.
    """

    column: Column
    low: float
    high: float

    @property
    def name(self) -> str:
        """The summed column's name."""
        return self.column.name


def join_reads(label: str, join: Join) -> set[str]:
    """The stored columns that a join compares, as the scan calls them."""
    own = {column for _, column in join.on} | {c.name for condition in join.where for c in condition.stored}
    return {*join.reads, *(f"{label}.{column}" for column in own)}


def rows_per_unit(table: Table, private: tuple[tuple[str, Join], ...]) -> int:
    """At most so many rows of one privacy unit are in a table that private ones are joined to."""
    if table.privacy_unit is None:
        return 1
    return math.prod([table.max_rows_per_unit, *(join.table.max_rows_per_unit for _, join in private)])


def grid_shape(regions: Sequence[Regions], summed: Sequence[SummedColumn]) -> tuple[int, ...]:
    """An axis of length one, so that a grid is never empty, then one per column and one per summed column."""
    return (1, *(r.count for r in regions), *(2 for _ in summed))


@dataclass(frozen=True)
class Scan:
    """How the rows of one table fall into cells.

    The grid has one axis per column of ``regions`` and one axis of length two (low end, high end) per summed column.
    ``cell_of`` maps each point of the grid to a cell, or to -1 for what no query counts.

    Guarantee. A row adds non-negative integers that sum to exactly ``one_row`` to the points of one line of the grid
    (all of it to one point when nothing is summed), hence at most ``one_row`` in total to the cells. It is a convex
    mix of unit vectors; a norm is convex, so adding or removing a row moves L·x by at most ``one_row`` times the
    largest column norm of L, in L1 and in L2. At most ``rows_per_unit`` rows of a privacy unit are kept, so a
    unit moves it by at most ``rows_per_unit`` times that. A public table is joined on a key of its own, so it adds
    columns and no row. So does a private one of which each row of the base matches at most one (``Join.unit``): it is
    joined on the unit, so what it adds to a unit's rows comes from that unit. Other private tables are bounded one by
    one and then joined on the unit itself, so a unit has at most the product of their bounds; a row that stays without
    a match is one, where it could have had more.
    """

    table: Table
    columns: slice
    """This table's columns of the workload matrix."""
    regions: tuple[Regions, ...]
    summed: tuple[SummedColumn, ...]
    cell_of: NDArray[np.int64] = field(repr=False)
    private: tuple[tuple[str, Join], ...] = ()
    """Private tables joined on the privacy unit, each under a label that prefixes its columns."""
    joins: tuple[tuple[str, Join], ...] = ()
    """Tables of which each row has at most one match: public ones joined on a key of theirs, and see ``Join.unit``."""
    factors: tuple[tuple[int, ...], ...] = ()
    """Of a scan whose cells are a product of axes: the grid's axes that each of those is made of, in their order; the
    same one for digits of one column."""
    totals: bool = False
    """Whether all that is asked of the rows at a point is their number and their total shares: see ``asking``."""

    def asking(self, questions: Any) -> Scan:
        """The scan whose vector answers these questions, integers for each cell, as this one's does.

        Guarantee. Where every question is affine in the corners at each point of the grid (``asks_totals``, checked in
        exact integers), L·x depends on x through the number of rows and the total of each share at the point, and on
        nothing else. So any x with those gives the same L·x, to the last bit, and what a unit moves it by is what the
        argument above says of the exact x. An engine then sums d shares and need not tell apart the orders of them.
        No entry of such an x ends at the largest int64 (``uncapped``).
        """
        if len(self.summed) < 2:
            return self
        corners = self.cell_of.reshape(-1, 1 << len(self.summed))
        return replace(self, totals=True) if asks_totals(questions, corners) else self

    @cached_property
    def idle(self) -> frozenset[int]:
        """Axes that only tell NULL from other values of a summed column, where that makes no difference to any cell.

        A NULL has the share 0, so its row lies at the low end of the clamp: where that end and a NULL add the same to
        every query, they are one cell.
        """
        idle, grid = set(), self.cell_of.reshape(self.shape)
        ends = {m.column.reference: 1 + len(self.regions) + i for i, m in enumerate(self.summed)}
        for axis, regions in enumerate(self.regions):
            end = ends.get(regions.column.reference)
            if end is None or regions.cuts or regions.count != 2:
                continue
            low = grid.take([0], end)
            if np.array_equal(low.take(0, axis + 1), low.take(1, axis + 1)):
                idle.add(axis)
        return frozenset(idle)

    @property
    def name(self) -> str:
        """What is counted, in words."""
        return " JOIN ".join([self.table.name, *(join.table.name for _, join in self.private)])

    @property
    def tables(self) -> tuple[Table, ...]:
        """The stored tables that it reads, public ones among them."""
        return tuple(dict.fromkeys(stored_tables(self.table, (*self.private, *self.joins))))

    @property
    def computed(self) -> tuple[Column, ...]:
        """The columns, stored or derived, that it cuts into regions or sums."""
        return (*(r.column for r in self.regions), *(m.column for m in self.summed))

    @property
    def reads(self) -> frozenset[str]:
        """The stored columns that it needs, as the scan calls them."""
        names = {c.name for column in self.computed for c in column.stored}
        for label, join in (*self.private, *self.joins):
            names |= join_reads(label, join)
        return frozenset(names)

    @property
    def one_row(self) -> int:
        """What one whole row counts as in the integer vector x."""
        return UNIT if self.summed else 1

    @property
    def rows_per_unit(self) -> int:
        """At most so many rows of one privacy unit are counted."""
        return rows_per_unit(self.table, self.private)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid."""
        return grid_shape(self.regions, self.summed)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.columns.stop - self.columns.start  # type: ignore[no-any-return]

    def in_cells(self, groups: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """The integer vector x of the table, from the groups that the engine's scan returned.

        ``groups`` are its columns: the region of each group on every axis, then its sum in every corner of the clamps.
        Sums are added in two halves of 32 bits, so that none wraps around, and end at the largest int64.
        """
        keys, sums = groups[: len(self.regions)], groups[len(self.regions) :]
        corners = self.cell_of.reshape(*(r.count for r in self.regions), -1)
        cells = corners[tuple(key.astype(np.int64) for key in keys)].reshape(-1, len(sums))
        amounts = np.stack(sums, axis=-1).astype(np.int64).reshape(-1, len(sums))
        return self._added(cells, amounts >> 32, amounts & 0xFFFFFFFF)

    def in_cells_by_order(self, groups: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """The same from groups by the order of the shares too (``sorted_shares``).

        ``groups`` are: the region on every axis, the number of the order, how many rows, and for each summed column the
        upper and the lower 32 bits of the sum of its shares.
        """
        keys, (order, rows, *halves) = (
            groups[: len(self.regions)],
            (g.astype(np.int64) for g in groups[len(self.regions) :]),
        )
        sums = list(zip(halves[::2], halves[1::2], strict=True))
        if self.totals:
            order = order_of_totals(sums)
        corner, upper, lower = corner_weights(len(self.summed), order, rows, sums, UNIT.bit_length() - 1)
        corners = self.cell_of.reshape(*(r.count for r in self.regions), -1)
        cells = corners[(*(key.astype(np.int64)[:, None] for key in keys), corner)]
        return self._added(cells, upper, lower)

    def of_points(self, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The integer vector x of the table, from what lies at every point of the grid."""
        amounts = amounts.reshape(-1)
        return self._added(self.cell_of.reshape(-1), amounts >> 32, amounts & 0xFFFFFFFF)

    def of_amounts(
        self, places: NDArray[np.int64], corners: NDArray[np.int64], amounts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The same, from amounts at some points of the grid: a place among the regions, and a corner of the clamps."""
        points = places * (1 << len(self.summed)) + corners
        return self._added(self.cell_of.reshape(-1)[points], amounts >> 32, amounts & 0xFFFFFFFF)

    def _added(self, cells: NDArray[np.int64], upper: NDArray[np.int64], lower: NDArray[np.int64]) -> NDArray[np.int64]:
        """Amounts in two halves, added up for each cell."""
        counted = cells >= 0
        sums = np.zeros((2, self.cells), dtype=np.int64)
        np.add.at(sums[0], cells[counted], upper[counted])
        np.add.at(sums[1], cells[counted], lower[counted])
        return uncapped(*sums) if self.totals else capped(*sums)

    @property
    def fingerprint(self) -> str:
        """Equal exactly when two scans count the same thing in the same state of the table."""
        h = hashlib.sha256()
        parts: list[object] = [
            folded(self.table.name),
            self.table.version,
            self.table.privacy_unit,
            self.rows_per_unit,
        ]
        # A column without a region for NULL says so; the others stand as they do in ledgers of earlier versions.
        parts += [
            (_identity(r.column), r.cuts, r.region_of_piece) + (() if r.nullable else (False,)) for r in self.regions
        ]
        parts += [(_identity(m.column), m.low, m.high) for m in self.summed]
        parts += [(label, folded(j.table.name), j.table.version, j.on) for label, j in (*self.private, *self.joins)]
        # So do rows that are computed, and joins with private tables that add columns only.
        tables = (self.table, *(j.table for _, j in (*self.private, *self.joins)))
        if any(table.rows is not None or table.unit_path for table in tables):
            parts += [identity(table) for table in tables]
        parts += [("unit", label) for label, j in self.joins if j.unit]
        parts += [("outer", label) for label, j in self.private if j.outer]
        parts += [("where", label, c.reference) for label, j in (*self.private, *self.joins) for c in j.where]
        h.update(repr(parts).encode("utf-8", "surrogatepass"))
        h.update(self.cell_of.tobytes())
        return h.hexdigest()


def capped(upper: NDArray[np.int64], lower: NDArray[np.int64]) -> NDArray[np.int64]:
    """``upper`` · 2^32 + ``lower``, which is not negative, ending at the largest int64."""
    upper = upper + (lower >> 32)
    fits = upper < 1 << 31
    return np.where(fits, (np.where(fits, upper, 0) << 32) | (lower & 0xFFFFFFFF), np.iinfo(np.int64).max)


def uncapped(upper: NDArray[np.int64], lower: NDArray[np.int64]) -> NDArray[Any]:
    """The same without an end, as Python integers where they need it.

    What rows add to a vector made of totals goes to other cells than theirs, so ending it would move more than one row.
    """
    if int((upper + (lower >> 32)).max(initial=0)) < 1 << 31:
        return capped(upper, lower)
    return upper.astype(object) * (1 << 32) + lower


def _identity(column: Column) -> str:
    """What a column is. Case matters inside the text of an expression and not in a name."""
    return column.expression or folded(column.name)
