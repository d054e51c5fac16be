"""One table's part of a batch as Kronecker products of small matrices, one for each column that an aggregate mentions.

An aggregate counts rows for which conditions on single columns all hold, in groups that single columns make. Over the
grid of regions its rows are therefore a Kronecker product: a factor for each column, with a row per group that the
column's keys make. Nothing is said of the other columns, whose factor would be a row of ones. A condition that mixes
columns (``a < 5 OR b = 1``) makes their grid one axis, for the whole table, so that all aggregates have the same axes.
Points of an axis that no aggregate tells apart are one point.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.errors import InternalError, LimitError

from .cells import GroupedAggregate
from .conjunction import Condition, mentioned
from .parse import Limits
from .parts import Keys, MixedColumns, Parts, taken_apart
from .predicate import ColumnQuestion, Predicate, evaluate
from .product_scan import MOST_POINTS, ProductAxis, ProductScan, grid_lengths
from .regions import Regions
from .scan import SummedColumn
from .truths import Truth

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = tuple[Regions, ...] | SummedColumn

_LARGEST_SINGLE = 1 << 20
"""Entries of the factors of a table with one axis, up to which it is a product too."""
WIDEST_FUSED = 4096
"""Points of an axis that is the grid of several columns."""


@dataclass(frozen=True, eq=False)
class ProductRows:
    """The rows of one aggregate: the Kronecker product of ``factors`` over the points of ``axes``."""

    axes: tuple[int, ...]
    """Numbers of the table's axes, ascending. Of an axis that is left out nothing is said."""
    factors: tuple[Floats, ...] = field(repr=False)
    """For each axis a matrix: the groups that its keys make, or one row, by the points of the axis. No row is zero."""
    rows: Integers = field(repr=False)
    """For each row of the product, in row-major order, the number of the aggregate's row in the batch."""

    def answers(self, counts: NDArray[np.float64]) -> Floats:
        """The product times a vector over the points of its axes, in row-major order."""
        values = counts.reshape([factor.shape[1] for factor in self.factors])
        for place in sorted(range(len(self.factors)), key=lambda i: self.factors[i].shape[0]):  # filters make it small
            values = np.moveaxis(np.tensordot(self.factors[place], values, axes=(1, place)), 0, place)
        return np.asarray(values, dtype=np.float64).reshape(-1)


@dataclass(frozen=True, eq=False)
class ProductTable:
    """One table's aggregates as products over its axes."""

    scan: ProductScan
    groups: tuple[ProductRows, ...]
    zero: Integers = field(repr=False)
    """The numbers of aggregates' rows that count nothing whatever the table holds."""

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
    axes = _Axes(regions, summed, [parts for _, parts in read if parts is not None], scan.table.name)
    factors = _Factors(axes, limits)
    groups: list[ProductRows] = []
    zero: list[Integers] = []
    for numbers, parts in read:
        rows = np.arange(numbers.start, numbers.stop, dtype=np.int64)
        group, nothing = (None, rows) if parts is None else factors.rows(parts, rows)
        zero.append(nothing)
        if group is not None:
            groups.append(group)
    merged, groups = _merged(axes.axes, groups)
    if len(merged) < 2 and sum(factor.size for group in groups for factor in group.factors) > _LARGEST_SINGLE:
        return None  # one long axis gains nothing from being a product
    product_scan = ProductScan(scan.table, scan.columns, tuple(merged), scan.private, scan.joins)
    product = ProductTable(product_scan, tuple(groups), np.concatenate([*zero, np.zeros(0, dtype=np.int64)]))
    widest = max((product_scan.grid_points(axes_) for axes_ in product.column_sets), default=1)
    if widest > min(MOST_POINTS, limits.points):
        raise LimitError(
            f"a query cuts table {scan.table.name} into {widest:,} cells, more than {limits.points:,}",
            hint="mention fewer columns in one query",
        )
    return product


def _merged(columns: Sequence[Columns], groups: Sequence[ProductRows]) -> tuple[list[ProductAxis], list[ProductRows]]:
    """The axes that are used, with points that no factor tells apart as one, and the aggregates over those."""
    factors: dict[int, dict[int, Floats]] = {}
    for group in groups:
        for axis, factor in zip(group.axes, group.factors, strict=True):
            factors.setdefault(axis, {})[id(factor)] = factor
    axes: list[ProductAxis] = []
    number: dict[int, int] = {}
    narrow: dict[int, Floats] = {}
    for axis in sorted(factors):
        point_of, first = _alike(list(factors[axis].values()))
        number[axis] = len(axes)
        axes.append(ProductAxis(columns[axis], point_of))
        for name, factor in factors[axis].items():
            narrow[name] = factor if len(first) == factor.shape[1] else np.ascontiguousarray(factor[:, first])
            narrow[name].setflags(write=False)  # many aggregates share it
    return axes, [
        replace(
            group,
            axes=tuple(number[axis] for axis in group.axes),
            factors=tuple(narrow[id(factor)] for factor in group.factors),
        )
        for group in groups
    ]


def _alike(factors: Sequence[Floats]) -> tuple[Integers, Integers]:
    """(class of every column, first column of every class): columns are alike where all factors have them equal.

    Groups exclude each other, so a column of a factor has one entry at most that is not zero, and it is 1; a factor of
    a clamp has one row. Either way the place of the entry, or the entry, says all.
    """
    size = factors[0].shape[1]
    point_of, first = np.zeros(size, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for factor in factors:
        if len(first) == size:
            break
        _, entry = np.unique(factor[0], return_inverse=True)
        mark = entry if len(factor) == 1 else np.where(factor.any(axis=0), factor.argmax(axis=0) + 1, 0)
        _, first, point_of = np.unique(point_of * (int(mark.max()) + 1) + mark, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # in the order of first appearance
    return rank[point_of].astype(np.int64), np.sort(first)


class _Axes:
    """The axes of a table: columns that a condition or a key mixes are one."""

    def __init__(
        self, regions: Sequence[Regions], summed: Sequence[SummedColumn], parts: Sequence[Parts], table: str
    ) -> None:
        mixed = MixedColumns(regions)
        self._of_key: dict[int, frozenset[str]] = {}
        used: set[str] = set()
        for one in parts:
            for columns in (*(c.columns for c in one.conditions), *map(self.columns_of_key, one.keys)):
                used |= columns
                mixed.join(columns)
        members: dict[str, list[Regions]] = {}
        for r in regions:
            if r.column.name in used:
                members.setdefault(mixed.leader(r.column.name), []).append(r)
        sums = {one.summed for one in parts}
        self.axes: list[Columns] = [tuple(fused) for fused in members.values()]
        self.axes += [m for m in summed if m.name in sums]
        self._number: dict[str, int] = {}
        self.of_sum: dict[str, int] = {}
        for number, axis in enumerate(self.axes):
            if isinstance(axis, SummedColumn):
                self.of_sum[axis.name] = number
                continue
            self._number |= {r.column.name: number for r in axis}
            points = math.prod(r.count for r in axis)
            if len(axis) > 1 and points > WIDEST_FUSED:
                raise LimitError(
                    f"conditions that mix columns cut table {table} into {points:,} cells, more than {WIDEST_FUSED:,} "
                    f"({', '.join(f'{r.column.name} {r.count}' for r in axis)})",
                    hint="write OR over fewer columns at a time, or split the batch",
                )

    def columns_of_key(self, groups: tuple[Predicate, ...]) -> frozenset[str]:
        """The columns that a key's groups mention. Many aggregates have the same keys, so each is read once."""
        if id(groups) not in self._of_key:
            self._of_key[id(groups)] = frozenset().union(*map(mentioned, groups))
        return self._of_key[id(groups)]

    def of(self, columns: frozenset[str]) -> int:
        """The axis that holds these columns."""
        return self._number[next(iter(columns))]


class _Factors:
    """Evaluates conditions and keys on the axes. Factors that are asked for again are the same array."""

    def __init__(self, axes: _Axes, limits: Limits) -> None:
        self._axes = axes
        self._limits = limits
        self._entries = 0
        self._held: dict[Condition, Floats] = {}
        self._of_key: dict[int, Floats] = {}
        self._factors: dict[object, tuple[Floats, NDArray[np.bool_]]] = {}
        self._places = {
            r.column.name: (place, r)
            for axis in axes.axes
            if not isinstance(axis, SummedColumn)
            for place, r in enumerate(axis)
        }

    def rows(self, parts: Parts, numbers: Integers) -> tuple[ProductRows | None, Integers]:
        """An aggregate's rows as a product, and the numbers of those that are zero."""
        conditions: dict[int, list[Condition]] = {}
        keys: dict[int, list[int]] = {}
        for condition in parts.conditions:
            conditions.setdefault(self._axes.of(condition.columns), []).append(condition)
        for place, groups in enumerate(parts.keys):
            keys.setdefault(self._axes.of(self._axes.columns_of_key(groups)), []).append(place)
        order = sorted({*conditions, *keys})
        lengths = [len(groups) for groups in parts.keys]
        shuffled = [place for axis in order for place in keys.get(axis, ())]
        grid = numbers.reshape(lengths).transpose(shuffled) if lengths else numbers
        axes: list[int] = []
        factors: list[Floats] = []
        kept: list[NDArray[np.bool_]] = []
        for axis in order:
            of_axis = [parts.keys[place] for place in keys.get(axis, ())]
            factor, nonzero = self._factor(axis, conditions.get(axis, []), of_axis)
            kept.append(nonzero)
            if factor.shape[0] != 1 or not np.all(factor == 1):
                axes.append(axis)
                factors.append(factor)
        rows = grid.reshape([len(nonzero) for nonzero in kept])
        if all(nonzero.all() for nonzero in kept):
            nothing = np.zeros(0, dtype=np.int64)
        else:
            counted = np.ix_(*kept)
            left_out = np.ones(rows.shape, dtype=np.bool_)
            left_out[counted] = False
            rows, nothing = rows[counted], rows[left_out]
        if parts.summed is not None:
            axis = self._axes.of_sum[parts.summed]
            summed = self._axes.axes[axis]
            assert isinstance(summed, SummedColumn)
            axes.append(axis)
            factors.append(self._ends(summed))
        group = ProductRows(tuple(axes), tuple(factors), np.ascontiguousarray(rows).reshape(-1))
        return (group if group.rows.size else None), nothing.reshape(-1)

    def _ends(self, summed: SummedColumn) -> Floats:
        if summed not in self._factors:
            self._factors[summed] = np.array([[summed.low, summed.high]]), np.ones(1, dtype=np.bool_)
        return self._factors[summed][0]

    def _factor(
        self, axis: int, conditions: list[Condition], keys: list[tuple[Predicate, ...]]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """The rows of one axis that are not zero, and which those are."""
        known = (axis, frozenset(conditions), tuple(map(id, keys)))
        if known in self._factors:
            return self._factors[known]
        factor = np.ones((1, self._size(axis)))
        for condition in conditions:
            factor = factor * self._condition(axis, condition)
        for groups in keys:
            of_key = self._key(axis, groups)
            self._spend(len(factor) * of_key.size)
            factor = (factor[:, None, :] * of_key[None, :, :]).reshape(-1, factor.shape[1])
        nonzero = np.asarray(factor.any(axis=1), dtype=np.bool_)
        factor = np.ascontiguousarray(factor[nonzero])
        self._spend(factor.size)
        self._factors[known] = factor, nonzero
        return self._factors[known]

    def _spend(self, entries: int) -> None:
        self._entries += entries
        if self._entries > self._limits.entries:
            raise LimitError(
                f"the batch would need matrices of more than {self._limits.entries:,} entries",
                hint="split it into several batches, or name fewer constants",
            )

    def _size(self, axis: int) -> int:
        return math.prod(self._shape(axis))

    def _shape(self, axis: int) -> tuple[int, ...]:
        return grid_lengths(self._axes.axes[axis])

    def _condition(self, axis: int, condition: Condition) -> Floats:
        """1 at the points of the axis where the condition holds."""
        if condition not in self._held:
            shape = self._shape(axis)
            holds = condition.holds(evaluate(condition.predicate, lambda asks: self._asked(asks, len(shape))))
            self._held[condition] = np.broadcast_to(holds, shape).astype(np.float64).reshape(-1)
        return self._held[condition]

    def _key(self, axis: int, groups: tuple[Predicate, ...]) -> Floats:
        if id(groups) not in self._of_key:
            self._spend(len(groups) * self._size(axis))
            of_key = np.zeros((len(groups), self._size(axis)))
            for row, predicate in enumerate(groups):
                of_key[row] = self._condition(axis, Condition(predicate))
            if np.any(of_key.sum(axis=0) > 1):
                raise InternalError("two groups of one key overlap")
            self._of_key[id(groups)] = of_key
        return self._of_key[id(groups)]

    def _asked(self, asks: ColumnQuestion, dimensions: int) -> Truth:
        place, regions = self._places[asks.attribute]
        shape = [1] * dimensions
        shape[place] = regions.count
        return regions.truths[asks.question].reshape(shape)
