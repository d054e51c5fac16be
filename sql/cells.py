"""From predicates to the workload matrix: evaluate every row on the grid, then merge equal columns.

Cells that no query tells apart have equal columns and become one; cells that no query counts have a zero
column and are dropped. Columns are found equal by a 64-bit hash and then compared exactly, so merging never
depends on luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from tacit.errors import LimitError

from .catalog import Table
from .parse import Limits
from .predicate import Asks, Predicate, evaluate
from .regions import TRUE, Attribute, Regions, Truth
from .scan import Measure, Scan, grid_shape
from .workload import Cell

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One row of the workload: what a row of the table adds when ``where`` and all of ``group`` are true.

    It adds 1, or the clamped value of the measure of that name.
    """

    where: Predicate
    group: tuple[Predicate, ...]
    measure: str | None = None


@dataclass(frozen=True)
class TableCells:
    """One table's part of the workload."""

    matrix: Values
    scan: Scan
    first: NDArray[np.int64]
    """A grid point of every cell."""


def build_cells(
    table: Table,
    attributes: Sequence[Attribute],
    measures: Sequence[Measure],
    rows: Sequence[Row],
    first_column: int,
    limits: Limits,
) -> TableCells:
    """Evaluate the rows on the grid of regions and merge its points into cells."""
    grid = _Grid(table, attributes, measures, limits)
    values = [grid.values(row) for row in rows]
    cell_of, first = _merge(values, grid.shape)
    if len(rows) * len(first) > limits.entries:
        raise LimitError(
            f"the batch would need a matrix of {len(rows):,} answers by {len(first):,} cells",
            hint="split it into several batches, or name fewer constants",
        )
    points = np.unravel_index(first, grid.shape)
    matrix = np.empty((len(rows), len(first)))
    for k, value in enumerate(values):
        matrix[k] = _at(value, points)
    scan = Scan(
        table,
        slice(first_column, first_column + len(first)),
        grid.regions,
        tuple(measures),
        cell_of,
    )
    return TableCells(matrix, scan, first)


class _Grid:
    """One axis per column, one per measure; arrays on it are as wide only as what they mention."""

    def __init__(
        self, table: Table, attributes: Sequence[Attribute], measures: Sequence[Measure], limits: Limits
    ) -> None:
        self.regions: tuple[Regions, ...] = tuple(attribute.regions() for attribute in attributes)
        self.shape = grid_shape(self.regions, measures)
        size = 1
        for length in self.shape:
            size *= length
        if size > limits.cells:
            widths = ", ".join(f"{r.column.name} {r.count}" for r in self.regions)
            raise LimitError(
                f"the batch cuts table {table.name} into {size:,} cells, more than {limits.cells:,} ({widths})",
                hint="split it into batches that mention fewer columns at a time",
            )
        self._axis = {r.column.name: axis for axis, r in enumerate(self.regions, start=1)}
        self._measures = {m.column.name: (axis, m) for axis, m in enumerate(measures, start=1 + len(self.regions))}
        self._known: dict[Predicate, Truth] = {}

    def values(self, row: Row) -> Values:
        """The row's weight at every point of the grid (broadcastable to its shape)."""
        truth = self._truth(row.where)
        for part in row.group:
            truth = np.minimum(truth, self._truth(part))
        counted: Values = (truth == TRUE).astype(np.float64).reshape(truth.shape or (1,) * len(self.shape))
        if row.measure is None:
            return counted
        axis, measure = self._measures[row.measure]
        ends: Values = self._along(axis, np.array([measure.low, measure.high]))
        return counted * ends + 0.0  # never -0.0, whose bits differ

    def _truth(self, predicate: Predicate) -> Truth:
        truth = self._known.get(predicate)
        if truth is None:
            truth = self._known[predicate] = evaluate(predicate, self._asked)
        return truth

    def _asked(self, asks: Asks) -> Truth:
        axis = self._axis[asks.attribute]
        return self._along(axis, self.regions[axis - 1].truths[asks.question])

    def _along(self, axis: int, vector: NDArray[Any]) -> NDArray[Any]:
        shape = [1] * len(self.shape)
        shape[axis] = len(vector)
        return vector.reshape(shape)


def _merge(values: Sequence[Values], shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(cell of every grid point or -1, first grid point of every cell)."""
    sums = np.zeros(shape, dtype=np.uint64)
    for k, value in enumerate(values):
        sums += _scrambled(value) * _multiplier(k)
    keys = sums.reshape(-1)
    while True:
        _, first, cell_of = np.unique(keys, return_index=True, return_inverse=True)
        clash = next((v for v in values if not _constant_on(v, shape, cell_of, first)), None)
        if clash is None:
            break
        # Two different columns hashed alike: split the cells by that row and look again.
        _, ids = np.unique(np.broadcast_to(clash, shape).reshape(-1), return_inverse=True)
        keys = (cell_of * (ids.max() + 1) + ids).astype(np.uint64)
    points = np.unravel_index(first, shape)
    counted = np.zeros(len(first), dtype=bool)
    for value in values:
        counted |= _at(value, points) != 0
    order = np.argsort(np.where(counted, first, np.iinfo(np.int64).max), kind="stable")
    kept = int(counted.sum())
    new = np.full(len(first), -1, dtype=np.int64)
    new[order[:kept]] = np.arange(kept)
    return new[cell_of], first[order[:kept]]


def _constant_on(value: Values, shape: tuple[int, ...], cell_of: NDArray[np.int64], first: NDArray[np.int64]) -> bool:
    flat = np.broadcast_to(value, shape).reshape(-1)
    return bool(np.array_equal(flat, flat[first][cell_of]))


def _at(value: Values, points: tuple[NDArray[np.int64], ...]) -> Values:
    """A broadcastable array at points of the full grid."""
    index = tuple(p if length > 1 else np.zeros_like(p) for p, length in zip(points, value.shape, strict=True))
    return value[index]


def _scrambled(value: Values) -> NDArray[np.uint64]:
    """The bits of a weight spread over all 64: those of 1.0 sit in the top twelve, where a product loses them."""
    bits = value.view(np.uint64)
    return (bits ^ (bits >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)


def _multiplier(k: int) -> np.uint64:
    """The k-th number of the splitmix64 sequence, made odd."""
    z = (0x9E3779B97F4A7C15 * (k + 1)) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return np.uint64((z ^ (z >> 31)) | 1)


class CellList(Sequence[Cell]):
    """The cells in words, made when somebody looks."""

    def __init__(self, parts: Sequence[TableCells]) -> None:
        self._parts = tuple(parts)

    def __len__(self) -> int:
        return sum(len(part.first) for part in self._parts)

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> list[Cell]: ...
    def __getitem__(self, index: int | slice) -> Cell | list[Cell]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        part = next(p for p in self._parts if place < p.scan.columns.stop)
        return _describe(part, place - part.scan.columns.start)


def _describe(part: TableCells, cell: int) -> Cell:
    scan = part.scan
    point = [int(i) for i in np.unravel_index(int(part.first[cell]), scan.shape)][1:]
    parts = [r.label(i) for r, i in zip(scan.regions, point, strict=False)]
    ends = point[len(scan.regions) :]
    parts += [f"{m.column.name} at {(m.low, m.high)[i]:g}" for m, i in zip(scan.measures, ends, strict=True)]
    merged = int(np.count_nonzero(scan.cell_of == cell)) - 1
    text = " and ".join(parts) or "every row"
    return Cell(scan.table.name, text + (f" (and {merged} more like it)" if merged else ""))
