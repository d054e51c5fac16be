"""From predicates to the workload matrix: evaluate every aggregate on the grid, then merge equal columns.

Cells that no query tells apart have equal columns and become one; cells that no query counts have a zero
column and are dropped. Within one aggregate a point of the grid counts towards at most one row, so the aggregate's part
of a column is a single small number, its tag, and two columns are equal exactly when all their tags are. Equal
tags are found by a 64-bit hash and then compared, so that a collision of the hash cannot merge different cells.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from tacit.errors import InternalError, LimitError

from .catalog import Table
from .parse import Limits
from .predicate import ColumnQuestion, Predicate, evaluate
from .regions import Regions
from .scan import Scan, SummedColumn, grid_shape
from .truths import TRUE, Truth, multiplier
from .workload import Cell

Integers = NDArray[np.int64]
Tags = NDArray[np.int32]


@dataclass(frozen=True)
class GroupedAggregate:
    """One aggregate of one query: a row of the workload for every combination of its groups.

    A row of the table counts where ``where`` and ``present`` are true, towards the row of the workload whose
    groups hold it. It adds 1, or the clamped value of the column ``summed``.
    """

    where: Predicate
    keys: tuple[tuple[Predicate, ...], ...] = ()
    """For each GROUP BY key the predicates of its groups, of which at most one holds for any row."""
    present: Predicate | None = None
    summed: str | None = None

    @property
    def size(self) -> int:
        """Number of rows of the workload."""
        size = 1
        for groups in self.keys:
            size *= len(groups)
        return size


@dataclass(frozen=True)
class TableCells:
    """One table's part of the workload."""

    matrix: NDArray[np.float64]
    scan: Scan


def build_cells(
    table: Table,
    regions: Sequence[Regions],
    summed: Sequence[SummedColumn],
    aggregates: Sequence[GroupedAggregate],
    first_column: int,
    limits: Limits,
    most_cells: int | None = None,
) -> TableCells:
    """Evaluate the aggregates on the grid of regions and merge its points into cells.

    The rows of the matrix are those of the aggregates, one aggregate after the other. LimitError where it does not fit.
    """
    grid = _RegionGrid(table, regions, summed, limits)
    tags = [grid.tags(aggregate) for aggregate in aggregates]
    cell_of, first = _merge(tags, grid.shape)
    rows = sum(aggregate.size for aggregate in aggregates)
    if rows * len(first) > limits.entries or (most_cells is not None and len(first) > most_cells):
        raise LimitError(
            f"the batch would need a matrix of {rows:,} answers by {len(first):,} cells",
            hint="split it into several batches, or name fewer constants",
        )
    points = np.unravel_index(first, grid.shape)
    matrix = np.zeros((rows, len(first)))
    start = 0
    for aggregate, tag in zip(aggregates, tags, strict=True):
        if aggregate.size == 1 and aggregate.summed is None:
            matrix[start] = _at(tag, points) != 0
            start += 1
            continue
        at = _at(tag, points) - 1
        (counted,) = np.nonzero(at >= 0)
        row, end = divmod(at[counted], 2)
        matrix[start + row, counted] = grid.weights(aggregate)[end]
        start += aggregate.size
    scan = Scan(table, slice(first_column, first_column + len(first)), grid.regions, tuple(summed), cell_of)
    return TableCells(matrix, scan)


class _RegionGrid:
    """The grid of regions: an axis per column and per summed column; arrays are as wide as the columns they mention."""

    def __init__(
        self, table: Table, regions: Sequence[Regions], summed: Sequence[SummedColumn], limits: Limits
    ) -> None:
        self.regions = tuple(r for r in regions if r.count > 1)
        """One region tells no rows apart: a NOT NULL column that is only asked whether it is NULL is no axis."""
        self.shape = grid_shape(self.regions, summed)
        size = 1
        for length in self.shape:
            size *= length
        if size > limits.cells:
            widths = ", ".join(f"{r.column.name} {r.count}" for r in self.regions)
            raise LimitError(
                f"the batch cuts table {table.name} into {size:,} cells, more than {limits.cells:,} ({widths})",
                hint="split it into batches that mention fewer columns at a time",
            )
        self._whole = {r.column.name: r for r in regions if r.count == 1}
        self._axis = {r.column.name: axis for axis, r in enumerate(self.regions, start=1)}
        self._summed = {m.name: (axis, m) for axis, m in enumerate(summed, start=1 + len(self.regions))}
        self._known: dict[Predicate, Truth] = {}

    def tags(self, aggregate: GroupedAggregate) -> Tags:
        """0 where the aggregate counts nothing, else 1 + 2 · (its row) + (1 at the high end of its summed column)."""
        counted = self._truth(aggregate.where) == TRUE
        if aggregate.present is not None:
            counted = counted & (self._truth(aggregate.present) == TRUE)
        row: Integers = np.zeros((1,) * len(self.shape), dtype=np.int64)
        for groups in aggregate.keys:
            group = self._group(groups)
            counted = counted & (group >= 0)
            row = row * len(groups) + group
        if aggregate.summed is not None:
            axis, _ = self._summed[aggregate.summed]
            end = self._along(axis, np.arange(2))
            counted = counted & (self.weights(aggregate)[end] != 0)
            return np.where(counted, 1 + 2 * row + end, 0).astype(np.int32)
        if not aggregate.keys:
            return np.asarray(counted, dtype=np.int32).reshape(counted.shape or row.shape)
        return np.where(counted, 1 + 2 * row, 0).astype(np.int32)

    def weights(self, aggregate: GroupedAggregate) -> NDArray[np.float64]:
        """What a point adds at the low and at the high end of the aggregate's summed column; 1 for a count."""
        if aggregate.summed is None:
            return np.ones(2)
        _, summed = self._summed[aggregate.summed]
        return np.array([summed.low, summed.high])

    def _group(self, groups: tuple[Predicate, ...]) -> Integers:
        """Which of the groups holds a point; -1 for none."""
        group = np.full((1,) * len(self.shape), -1, dtype=np.int64)
        for index, predicate in enumerate(groups):
            holds = self._truth(predicate) == TRUE
            if np.any(holds & (group >= 0)):
                raise InternalError("two groups of one key overlap")
            group = np.where(holds, index, group)
        return group

    def _truth(self, predicate: Predicate) -> Truth:
        truth = self._known.get(predicate)
        if truth is None:
            truth = self._known[predicate] = evaluate(predicate, self._asked)
        return truth

    def _asked(self, asks: ColumnQuestion) -> Truth:
        if asks.attribute in self._whole:
            return self._whole[asks.attribute].truths[asks.question].reshape((1,) * len(self.shape))
        axis = self._axis[asks.attribute]
        return self._along(axis, self.regions[axis - 1].truths[asks.question])

    def _along(self, axis: int, vector: NDArray[Any]) -> NDArray[Any]:
        shape = [1] * len(self.shape)
        shape[axis] = len(vector)
        return vector.reshape(shape)


def _merge(tags: Sequence[Tags], shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """(cell of every grid point or -1, first grid point of every cell)."""
    sums = np.zeros(shape, dtype=np.uint64)
    for k, tag in enumerate(tags):
        sums += tag.astype(np.uint64) * multiplier(k)
    keys = sums.reshape(-1)
    while True:
        _, first, cell_of = np.unique(keys, return_index=True, return_inverse=True)
        clash = next((tag for tag in tags if not _constant_on(tag, shape, cell_of, first)), None)
        if clash is None:
            break
        # Two different columns hashed alike: split the cells by that aggregate and look again.
        split = cell_of * (int(clash.max()) + 1) + np.broadcast_to(clash, shape).reshape(-1)
        keys = split.astype(np.uint64)
    counted = sums.reshape(-1)[first] != 0
    (zero,) = np.nonzero(~counted)  # all tags are zero there, or their hash happens to be
    points = np.unravel_index(first[zero], shape)
    for tag in tags:
        counted[zero] |= _at(tag, points) != 0
    order = np.argsort(np.where(counted, first, np.iinfo(np.int64).max), kind="stable")
    count = int(counted.sum())
    new = np.full(len(first), -1, dtype=np.int64)
    new[order[:count]] = np.arange(count)
    return new[cell_of], first[order[:count]]


def _constant_on(tag: Tags, shape: tuple[int, ...], cell_of: Integers, first: Integers) -> bool:
    flat = np.broadcast_to(tag, shape).reshape(-1)
    return bool(np.array_equal(flat, flat[first][cell_of]))


def _at(tag: Tags, points: tuple[Integers, ...]) -> Tags:
    """A broadcastable array at points of the full grid."""
    index = tuple(p if length > 1 else 0 for p, length in zip(points, tag.shape, strict=True))
    return np.broadcast_to(tag[index], points[0].shape)


class CellList(Sequence[Cell]):
    """The cells in words; each is described when it is asked for, because there can be many.

    ``scans`` makes them when they are wanted: the scan of a table, or of each of its column sets.
    """

    def __init__(self, sizes: Sequence[int], scan: Callable[[int], Scan]) -> None:
        self._ends = [0, *itertools.accumulate(sizes)]
        self._scan = scan

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        number = bisect_right(self._ends, place) - 1
        return _describe(self._scan(number), place - self._ends[number])


def _describe(scan: Scan, cell: int) -> Cell:
    (points,) = np.nonzero(scan.cell_of == cell)
    if not points.size:  # a number that no class of a long axis has (``digits``)
        return Cell(scan.table.name, "no row")
    point = [int(i) for i in np.unravel_index(int(points[0]), scan.shape)][1:]
    parts = [r.label(i) for r, i in zip(scan.regions, point, strict=False)]
    ends = point[len(scan.regions) :]
    parts += [f"{m.column.name} at {(m.low, m.high)[i]:g}" for m, i in zip(scan.summed, ends, strict=True)]
    text = " and ".join(parts) or "every row"
    return Cell(scan.table.name, text + (f" (and {len(points) - 1} more like it)" if len(points) > 1 else ""))
