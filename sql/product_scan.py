"""What is counted of one table, column set by column set, where the grid of all columns is too large to list."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from tacit.errors import LimitError

from .catalog import Table
from .regions import Regions
from .scan import Join, Scan, SummedColumn

ProductAxis = tuple[Regions, ...] | SummedColumn
"""The grid of one column's regions, or of several columns' that some condition mixes; or the two ends of a clamp."""

MOST_POINTS = 1 << 24
"""Points of one column set: what a vector of counts may hold."""


@dataclass(frozen=True, eq=False)
class ProductScan:
    """How the rows of one table fall into the points of any few of its axes.

    Guarantee. Every marginal is a ``Scan``, with its guarantee. The marginals of one ``ProductScan`` count the same
    rows, and each is the full grid of all axes added up over the axes that it leaves out (in units of ``one_row``).
    """

    table: Table
    columns: slice
    """This table's cells among those of the workload: the points of its column sets, one set after the other."""
    axes: tuple[ProductAxis, ...]
    private: tuple[tuple[str, Join], ...] = ()
    joins: tuple[tuple[str, Join], ...] = ()
    _marginals: dict[tuple[int, ...], Scan] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of points of each axis."""
        return tuple(math.prod(_lengths(axis)) for axis in self.axes)

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

    def marginal(self, axes: tuple[int, ...]) -> Scan:
        """The scan of a few axes. Every point is a cell, and the cells are in the row-major order of ``axes``."""
        known = self._marginals.get(axes)
        if known is not None:
            return known
        if len(set(axes)) < len(axes):
            raise ValueError("an axis occurs twice")
        points = self.points(axes)
        if points > MOST_POINTS:
            raise LimitError(
                f"{points:,} points of {self.table.name} would have to be counted, more than {MOST_POINTS:,}",
                hint="mention fewer columns in one query",
            )
        regions: list[Regions] = []
        summed: list[SummedColumn] = []
        cut: list[int] = []
        ends: list[int] = []
        lengths: list[int] = []
        for axis in (self.axes[number] for number in axes):
            places = range(len(lengths), len(lengths) + len(_lengths(axis)))
            lengths += _lengths(axis)
            if isinstance(axis, SummedColumn):
                summed.append(axis)
                ends += places
            else:
                regions += axis
                cut += places
        cells = np.arange(points, dtype=np.int64).reshape(lengths)
        cell_of = np.ascontiguousarray(cells.transpose([*cut, *ends])).reshape(-1)  # a scan's grid has sums last
        scan = Scan(self.table, slice(0, points), tuple(regions), tuple(summed), cell_of, self.private, self.joins)
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


def _lengths(axis: ProductAxis) -> list[int]:
    """The lengths of an axis' own grid."""
    return [2] if isinstance(axis, SummedColumn) else [regions.count for regions in axis]
