"""One table's part of a batch as Kronecker products of small matrices, one for each column that an aggregate mentions.

An aggregate counts rows for which conditions on single columns all hold, in groups that single columns make. Over the
grid of regions its rows are therefore a Kronecker product: a factor for each column, with a row per group that the
column's keys make. Nothing is said of the other columns, whose factor would be a row of ones. A condition that mixes
columns (``a < 5 OR b = 1``) makes their grid one axis, for the whole table, so that all aggregates have the same axes.
Points of an axis that no aggregate tells apart are one point. An axis of one column that stays long all the same is
looked at through short ones (``readings``).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from tacit.errors import LimitError

from .cells import GroupedAggregate
from .digits import Axis, Rows
from .factors import Axes, Columns, Factors
from .labels import Floats, Integers, Labels
from .parse import Limits
from .parts import Keys, taken_apart
from .product_scan import MOST_POINTS, ProductAxis, ProductScan
from .readings import Split, split
from .regions import Regions
from .scan import SummedColumn

_LARGEST_SINGLE = 1 << 20
"""Entries of the factors of a table with one axis, up to which it is a product too."""


@dataclass(frozen=True, eq=False)
class ProductRows:
    """The rows of one aggregate: the Kronecker product of ``factors`` over the points of ``axes``."""

    axes: tuple[int, ...]
    """Numbers of the table's axes, ascending. Of an axis that is left out nothing is said."""
    factors: tuple[Floats, ...] = field(repr=False)
    """For each axis a matrix: the groups that its keys make, or one row, by the points of the axis. No row is zero."""
    rows: Integers = field(repr=False)
    """For each row of the product, in row-major order, the number of the aggregate's row in the batch.

    Where a reading says what the aggregates' rows are made of: its number among the product rows."""

    def answers(self, counts: NDArray[np.float64]) -> Floats:
        """The product times a vector over the points of its axes, in row-major order."""
        values = counts.reshape([factor.shape[1] for factor in self.factors])
        for place in sorted(range(len(self.factors)), key=lambda i: self.factors[i].shape[0]):  # filters make it small
            values = np.moveaxis(np.tensordot(self.factors[place], values, axes=(1, place)), 0, place)
        return np.asarray(values, dtype=np.float64).reshape(-1)


@dataclass(frozen=True, eq=False)
class Reading:
    """What the rows of aggregates are made of."""

    groups: tuple[ProductRows, ...]
    matrix: sparse.csr_array = field(repr=False)
    """The rows of the batch's aggregates, up to the last of this table, over product rows."""


@dataclass(frozen=True, eq=False)
class ProductTable:
    """One table's aggregates as products over its axes."""

    scan: ProductScan
    groups: tuple[ProductRows, ...]
    zero: Integers = field(repr=False)
    """The numbers of aggregates' rows that count nothing whatever the table holds."""
    peaks: Floats = field(repr=False)
    """The largest entry of every row of the batch's aggregates, in size, up to the last of this table."""
    readings: tuple[Reading, ...] = ()
    """Where an axis is long: the ways to read its aggregates, ``groups`` being those of the first."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of points of each axis."""
        return self.scan.sizes

    @cached_property
    def column_sets(self) -> tuple[tuple[int, ...], ...]:
        """The sets of axes that aggregates use, each once, in the order of first use."""
        return tuple(dict.fromkeys(group.axes for group in self.groups))

    @property
    def cells(self) -> int:
        """Points of all column sets together."""
        return sum(map(self.scan.points, self.column_sets))

    @property
    def fewest_cells(self) -> int:
        """No fewer cells can tell apart what one aggregate tells apart: none of its rows is zero."""
        return max((group.rows.size for group in self.groups), default=0)

    def aggregate_rows(self, counts: Mapping[tuple[int, ...], Floats], values: Floats) -> None:
        """Write the aggregates' rows into ``values``, from the counts (in rows) of every column set's points."""
        if self.readings:
            matrix = self.readings[0].matrix
            of_products = np.zeros(matrix.shape[1])
            for group in self.groups:
                of_products[group.rows] = group.answers(counts[group.axes])
            (own,) = np.nonzero(np.diff(matrix.indptr))
            values[own] = (matrix @ of_products)[own]
        else:
            for group in self.groups:
                values[group.rows] = group.answers(counts[group.axes])
        values[self.zero] = 0.0

    @cached_property
    def fingerprint(self) -> str:
        """Equal for tables that measure the same things: the scan, the factors and the rows."""
        h = hashlib.sha256(self.scan.fingerprint.encode())
        digests: dict[int, bytes] = {}  # aggregates share factors
        for group in self.groups:
            h.update(repr((group.axes, [factor.shape for factor in group.factors])).encode())
            for factor in group.factors:
                if id(factor) not in digests:
                    digests[id(factor)] = hashlib.sha256(factor.tobytes()).digest()
                h.update(digests[id(factor)])
            h.update(group.rows.tobytes())
        for reading in self.readings:
            for array in (reading.matrix.indptr, reading.matrix.indices):
                h.update(np.asarray(array, dtype="<i8").tobytes())
            h.update(reading.matrix.data.tobytes())
        h.update(self.zero.tobytes())
        return h.hexdigest()


def build_product(
    scan: ProductScan,
    regions: Sequence[Regions],
    summed: Sequence[SummedColumn],
    aggregates: Sequence[tuple[GroupedAggregate, range]],
    limits: Limits,
) -> ProductTable | None:
    """The product form of a table's aggregates; None where it has one axis, and a long one. ``scan`` says which rows.

    Raises LimitError where a mixed condition makes an axis too long, or the factors do not fit.
    """
    keys = Keys()
    read = [(numbers, taken_apart(aggregate, keys)) for aggregate, numbers in aggregates]
    axes = Axes(regions, summed, [parts for _, parts in read if parts is not None], scan.table.name)
    factors = Factors(axes, limits)
    groups: list[Rows] = []
    zero: list[Integers] = [np.zeros(0, dtype=np.int64)]
    for numbers, parts in read:
        rows = np.arange(numbers.start, numbers.stop, dtype=np.int64)
        group, nothing = (None, rows) if parts is None else factors.rows(parts, rows)
        zero.append(nothing)
        if group is not None:
            groups.append(group)
    peaks = _peaks(groups, max((numbers.stop for numbers, _ in read), default=0))
    found = split(groups, len(peaks))
    readings = ((groups, None),) if found is None else found.readings
    merged, written = _merged(axes.axes, [own for own, _ in readings], found)
    if len(merged) < 2 and sum(factor.size for group in written[0] for factor in group.factors) > _LARGEST_SINGLE:
        return None  # one long axis gains nothing from being a product
    product_scan = ProductScan(scan.table, scan.columns, tuple(merged), scan.private, scan.joins)
    made_of = tuple(
        Reading(own, matrix) for own, (_, matrix) in zip(written, readings, strict=True) if matrix is not None
    )
    product = ProductTable(product_scan, written[0], np.concatenate(zero), peaks, made_of)
    widest = max((product_scan.grid_points(axes_) for axes_ in product.column_sets), default=1)
    if widest > min(MOST_POINTS, limits.points):
        raise LimitError(
            f"a query cuts table {scan.table.name} into {widest:,} cells, more than {limits.points:,}",
            hint="mention fewer columns in one query",
        )
    return product


def _peaks(groups: Sequence[Rows], rows: int) -> Floats:
    """The largest entry of every aggregate's row: its factors have ones, but for the ends of a clamp."""
    peaks = np.zeros(rows)
    for group in groups:
        peaks[group.rows] = math.prod(float(np.abs(f).max()) for f in group.factors if not isinstance(f, Labels))
    return peaks


def _merged(
    columns: Sequence[Columns], readings: Sequence[Sequence[Rows]], found: Split | None
) -> tuple[list[ProductAxis], list[tuple[ProductRows, ...]]]:
    """The axes that are used, with points that no factor tells apart as one, and the aggregates over those."""
    factors: dict[Axis, dict[int, Floats]] = {}
    for group in (group for groups in readings for group in groups):
        for axis, factor in zip(group.axes, group.factors, strict=True):
            assert not isinstance(factor, Labels)
            factors.setdefault(axis, {})[id(factor)] = factor
    axes: list[ProductAxis] = []
    number: dict[Axis, int] = {}
    narrow: dict[int, Floats] = {}
    for axis in sorted(factors):
        point_of, first = _alike(list(factors[axis].values()))
        number[axis] = len(axes)
        view = None if found is None else found.points.get(axis)
        axes.append(ProductAxis(columns[axis[0]], point_of if view is None else point_of[view]))
        for name, factor in factors[axis].items():
            narrow[name] = factor if len(first) == factor.shape[1] else np.ascontiguousarray(factor[:, first])
            narrow[name].setflags(write=False)  # many aggregates share it
    return axes, [
        tuple(
            ProductRows(tuple(number[axis] for axis in g.axes), tuple(narrow[id(f)] for f in g.factors), g.rows)
            for g in groups
        )
        for groups in readings
    ]


def _alike(factors: Sequence[Floats]) -> tuple[Integers, Integers]:
    """(class of every column, first column of every class): columns are alike where all factors have them equal.

    Groups exclude each other, so a column of a factor has one entry at most that is not zero, and it is 1; a factor of
    a clamp has one row. Either way the place of the entry, or the entry, says all. In a factor of prefixes the number
    of entries does.
    """
    size = factors[0].shape[1]
    point_of, first = np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for factor in factors:
        if len(first) == size:
            break
        _, entry = np.unique(factor[0], return_inverse=True)
        mark = entry if len(factor) == 1 else np.where(factor.any(axis=0), factor.argmax(axis=0) + 1, 0)
        if len(factor) > 1 and np.count_nonzero(factor, axis=0).max() > 1:
            mark = np.count_nonzero(factor, axis=0)
        _, first, point_of = np.unique(point_of * (int(mark.max()) + 1) + mark, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # in the order of first appearance
    return rank[point_of].astype(np.int64), np.sort(first)
