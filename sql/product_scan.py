"""What is counted of one table, column set by column set, where the grid of all columns is too large to list."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.errors import LimitError

from .catalog import Table
from .regions import Regions
from .scan import Join, Scan, SummedColumn

Integers = NDArray[np.int64]

MOST_POINTS = 1 << 24
"""Points of the grid of one column set's regions: what a vector of counts may hold."""


@dataclass(frozen=True, eq=False)
class ProductAxis:
    """The regions of one column, or of several that some condition mixes; or the two ends of a clamp.

    A point of the axis is a set of points of their grid that no aggregate tells apart. Several axes can be of the same
    columns: the digits of the number of a region, say (``digits``).
    """

    columns: tuple[Regions, ...] | SummedColumn
    point_of: Integers = field(repr=False)
    """The point of the axis that holds each point of the columns' grid, in row-major order."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """The shape of the columns' grid."""
        return grid_lengths(self.columns)

    @cached_property
    def size(self) -> int:
        """Number of points."""
        return int(self.point_of.max()) + 1


def grid_lengths(columns: tuple[Regions, ...] | SummedColumn) -> tuple[int, ...]:
    """The shape of the grid of some columns."""
    return (2,) if isinstance(columns, SummedColumn) else tuple(regions.count for regions in columns)


@dataclass(frozen=True, eq=False)
class ProductScan:
    """How the rows of one table fall into the points of any few of its axes.

    Guarantee. Every marginal is a ``Scan``, with its guarantee. The marginals of one ``ProductScan`` count the same
    rows, and each is the full grid of all axes added up over the axes that it leaves out (in units of ``one_row``).
    """

    table: Table
    columns: slice
    """This table's cells among those of the workload: the points of its column sets, one set after the other.

    None, where the table has a matrix: the cells are then those of its ``Scan``.
    """
    axes: tuple[ProductAxis, ...]
    private: tuple[tuple[str, Join], ...] = ()
    joins: tuple[tuple[str, Join], ...] = ()
    _marginals: dict[tuple[int, ...], Scan] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of points of each axis."""
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def _whole(self) -> Scan:
        """The scan of no axis: all rows in one cell."""
        cell = np.zeros(1, dtype=np.int64)
        return Scan(self.table, slice(0, 1), (), (), cell, self.private, self.joins)

    @property
    def name(self) -> str:
        """What is counted, in words."""
        return self._whole.name

    @property
    def tables(self) -> tuple[Table, ...]:
        """The stored tables that it reads, public ones among them."""
        return self._whole.tables

    @property
    def rows_per_unit(self) -> int:
        """At most so many rows of one privacy unit are counted."""
        return self._whole.rows_per_unit

    @property
    def one_row(self) -> int:
        """What one row counts as on the scale that all marginals share; one that sums nothing counts rows whole."""
        return max((self.marginal((axis,)).one_row for axis in range(len(self.axes))), default=1)

    def points(self, axes: tuple[int, ...]) -> int:
        """Number of points of a column set."""
        return math.prod(self.sizes[axis] for axis in axes)

    def grid_points(self, axes: tuple[int, ...]) -> int:
        """Number of points of the grid of regions behind a column set."""
        return math.prod(math.prod(axis.lengths) for axis in {id(a.columns): a for a in self._named(axes)}.values())

    def _named(self, axes: tuple[int, ...]) -> list[ProductAxis]:
        return [self.axes[number] for number in axes]

    def marginal(self, axes: tuple[int, ...]) -> Scan:
        """The scan of a few axes. Every point is a cell, and the cells are in the row-major order of ``axes``.

        Raises LimitError where the grid is too large to count.
        """
        known = self._marginals.get(axes)
        if known is not None:
            return known
        if len(set(axes)) < len(axes):
            raise ValueError("an axis occurs twice")
        if (grid := self.grid_points(axes)) > MOST_POINTS:
            raise LimitError(
                f"{grid:,} points of {self.table.name} would have to be counted, more than {MOST_POINTS:,}",
                hint="mention fewer columns in one query",
            )
        regions: list[Regions] = []
        summed: list[SummedColumn] = []
        cut: list[int] = []
        ends: list[int] = []
        lengths: list[int] = []
        places: dict[int, range] = {}
        for axis in self._named(axes):
            if id(axis.columns) in places:
                continue
            own = places[id(axis.columns)] = range(len(lengths), len(lengths) + len(axis.lengths))
            lengths += axis.lengths
            if isinstance(axis.columns, SummedColumn):
                summed.append(axis.columns)
                ends += own
            else:
                regions += axis.columns
                cut += own
        cells = np.zeros([1] * len(lengths), dtype=np.int64)
        for axis in self._named(axes):
            own = places[id(axis.columns)]
            shape = [length if place in own else 1 for place, length in enumerate(lengths)]
            cells = cells * axis.size + axis.point_of.reshape(shape)
        in_order = cells.transpose([*cut, *ends])  # a scan's grid has sums last
        scan = Scan(
            self.table,
            slice(0, self.points(axes)),
            tuple(regions),
            tuple(summed),
            np.ascontiguousarray(in_order).reshape(-1),
            self.private,
            self.joins,
            tuple(tuple([*cut, *ends].index(place) for place in places[id(a.columns)]) for a in self._named(axes)),
        )
        self._marginals[axes] = scan
        return scan

    @property
    def fingerprint(self) -> str:
        """Equal exactly when two scans cut the same rows along the same axes."""
        h = hashlib.sha256()
        for axis in range(len(self.axes)):
            h.update(self.marginal((axis,)).fingerprint.encode())
        h.update(self._whole.fingerprint.encode())
        return h.hexdigest()
