"""What releases say about a batch: all of them put over common cells, then estimated together.

Post-processing only. Releases of one state of one table mix, whatever their cells; others never do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tacit.engine import Estimate, Measurement, TableWorkload
from tacit.engine.inference import likelihood
from tacit.engine.inference.estimate import Inference, Stack, estimate_from, joined
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.product_workload import ProductRows
from tacit.sql.product_scan import ProductScan
from tacit.sql.refine import Grid, Integers, Refinement, grid_of, subject_of, union_of_cells
from tacit.sql.scan import Scan

from .combine_products import combine_products
from .compiled_batch import CompiledBatch
from .releases import Release

_POINTS = 1 << 18
_CELLS = 2048
_GRIDS = 24
_WORK = 1e8
_ENTRIES = 1 << 22
"""The common cells stay within these, whatever was released before: points of their grids looked at, cells, releases
that cut the batch's own cells, operations of the least squares, entries of one measurement over other cells.
What measures unions of own cells costs no cell."""


@dataclass(frozen=True, eq=False)
class _CommonCells:
    """One table's part of a batch over cells that it shares with what was measured."""

    table: TableWorkload
    stack: Stack | None
    """Numbered by the releases that it comes from; None where there are none."""
    origin: NDArray[np.int64]
    """The batch's own cell that holds each common cell; -1 for none."""

    def in_batch_cells(self, common: NDArray[np.float64], cells: int) -> NDArray[np.float64]:
        """Counts of common cells added up into the batch's own."""
        inside = self.origin >= 0
        counts = np.zeros(cells)
        np.add.at(counts, self.origin[inside], common[inside])
        return counts


def combine(
    releases: Sequence[Release],
    batch: CompiledBatch,
    public: NDArray[np.float64] | None = None,
    *,
    inference: Inference = "least squares",
    nonnegative: bool = False,
    partial: bool = False,
) -> Estimate:
    """All rows of the batch from all releases at hand (``estimate_from``): post-processing.

    With ``partial``, rows that the releases do not determine have an infinite error. ``used`` of the result says
    which of the releases any answer depends on.
    """
    estimates: list[tuple[NDArray[np.int64], Estimate]] = []
    listed: list[int] = []
    for k, (scan, product, table) in enumerate(zip(batch.scans, batch.products, batch.tables, strict=True)):
        found = None
        if isinstance(table, ProductTable):
            assert isinstance(scan, ProductScan)
            found = combine_products(releases, scan, table, rows=batch.row_count, partial=partial)
        elif product is not None and inference == "least squares" and not nonnegative:
            found = _from_products(releases, batch, k, product, table)
        if found is None:
            listed.append(k)
        else:
            estimates.append((np.array([k]), found))
    if listed or not batch.tables:
        found = _combine_listed(releases, batch, listed, inference, nonnegative=nonnegative, partial=partial)
        estimates.append((np.array(listed, dtype=np.int64), found))
    estimate = estimates[0][1] if len(estimates) == 1 else joined(estimates, batch.row_count)
    used = np.zeros(len(releases), dtype=np.bool_)
    for mask in estimate.used:
        used[: len(mask)] |= mask
    values = estimate.values if public is None else estimate.values + public
    return replace(estimate, values=values, used=(used,))


def _from_products(
    releases: Sequence[Release], batch: CompiledBatch, k: int, product: ProductScan, table: TableWorkload
) -> Estimate | None:
    """A listed table from blocks of products alone, where they determine it and nothing else says more.

    Then a query has the answer that it had in the batch that was released, whose cells may not have been listed.
    """
    subject = subject_of(product)
    measured = [m for r in releases for m, g in zip(r.measurements, r.grids, strict=True) if g.subject == subject]
    if table.product is None or all(m.product is None for m in measured):
        return None
    found = combine_products(releases, product, table.product, rows=batch.row_count, partial=True)
    if not np.isfinite(found.stderr).all():
        return None
    if any(m.product is None for m in measured):
        cells = _combine_listed(releases, batch, [k], "least squares", nonnegative=False, partial=True)
        rows, peaks = table.rows, table.row_peaks
        if np.sum(np.square(cells.stderr[rows] / peaks)) < np.sum(np.square(found.stderr[rows] / peaks)):
            return None
    return found


def _combine_listed(
    releases: Sequence[Release],
    batch: CompiledBatch,
    places: Sequence[int],
    inference: Inference,
    *,
    nonnegative: bool,
    partial: bool,
) -> Estimate:
    """The tables of a batch whose cells are listed."""
    pairs = [(batch.scans[k], batch.tables[k]) for k in places]
    tables = [table for _, table in pairs if isinstance(table, TableWorkload)]
    scans = [scan for scan, _ in pairs if isinstance(scan, Scan)]
    common = [_common_cells(scan, table, releases) for scan, table in zip(scans, tables, strict=True)]
    estimate = estimate_from(
        [c.table for c in common],
        [c.stack or () for c in common],
        rows=batch.row_count,
        inference=inference,
        nonnegative=nonnegative,
        partial=partial,
    )
    cells = tuple(
        c.in_batch_cells(x, table.matrix.shape[1]) for c, x, table in zip(common, estimate.cells, tables, strict=True)
    )
    return replace(estimate, cells=cells)


def check_size(releases: Sequence[Release], batch: CompiledBatch) -> None:
    """Refuse what is too large for the centre of the likelihood: a function of what was asked and not of any value."""
    for scan, table in zip(batch.scans, batch.tables, strict=True):
        assert isinstance(scan, Scan) and isinstance(table, TableWorkload)  # see Ask.is_plain
        stack = _common_cells(scan, table, releases).stack
        likelihood.check_size(0 if stack is None else len(stack.answers), len(table.rows))


def contributing(releases: Sequence[Release], estimate: Estimate) -> tuple[Release, ...]:
    """Those of the releases that were given to ``combine`` on which any of its answers depends."""
    (used,) = estimate.used
    return tuple(release for release, is_used in zip(releases, used, strict=True) if is_used)


def cell_frame(
    releases: Sequence[Release],
    batch: CompiledBatch,
    *,
    inference: Inference = "least squares",
    nonnegative: bool = False,
) -> pd.DataFrame:
    """The estimated counts of a batch's cells, each with its error."""
    columns: dict[str, list[Any]] = {name: [] for name in ("table", "label", "count", "stderr")}
    listed = [k for k, table in enumerate(batch.tables) if isinstance(table, TableWorkload)]
    found = _combine_listed(releases, batch, listed, inference, nonnegative=nonnegative, partial=True)
    counts = iter(found.cells)
    for scan, table in zip(batch.scans, batch.tables, strict=True):
        cells = batch.workload.cells[scan.columns]
        columns["table"] += [cell.table for cell in cells]
        columns["label"] += [cell.label for cell in cells]
        if isinstance(scan, ProductScan) and isinstance(table, ProductTable):
            points = _every_point(table)
            of_points = combine_products(releases, scan, points, rows=len(points.rows), partial=True)
            columns["count"] += of_points.values.tolist()
            columns["stderr"] += of_points.stderr.tolist()
            continue
        assert isinstance(scan, Scan) and isinstance(table, TableWorkload)
        n = table.matrix.shape[1]
        single = replace(table, matrix=np.eye(n), rows=np.arange(n, dtype=np.int64))
        common = _common_cells(scan, single, releases)
        estimate = estimate_from(
            [common.table],
            [common.stack or ()],
            rows=n,
            inference=inference,
            nonnegative=nonnegative,
            partial=True,
        )
        columns["count"] += next(counts).tolist()
        columns["stderr"] += estimate.stderr.tolist()
    return pd.DataFrame(
        {
            "table": pd.Series(columns["table"], dtype="str"),
            "label": pd.Series(columns["label"], dtype="str"),
            "count": np.array(columns["count"], dtype=np.float64),
            "stderr": np.array(columns["stderr"], dtype=np.float64),
        }
    )


def _every_point(table: ProductTable) -> ProductTable:
    """In place of the rows of a table, the counts of the points of every set of axes that its rows name."""
    groups: list[ProductRows] = []
    total = 0
    identities = [np.eye(size) for size in table.products.sizes]
    for axes in dict.fromkeys(group.axes for group in table.read_as(0).products.groups):
        count = table.products.points(axes)
        groups.append(ProductRows(axes, tuple(identities[a] for a in axes), np.arange(total, total + count)))
        total += count
    rows = np.arange(total, dtype=np.int64)
    one = csr_array((np.ones(total), rows, np.arange(total + 1)), shape=(total, total))
    return ProductTable(replace(table.products, groups=tuple(groups)), rows, one)


def _common_cells(scan: Scan, table: TableWorkload, releases: Sequence[Release]) -> _CommonCells:
    """What measures unions of the batch's cells, all of it; then releases that cut those, the nearest ones first.

    The cost of both is bounded, and so is what one more release can add: a batch beside ten thousand releases takes no
    longer than one beside a few dozen.
    """
    target = grid_of(scan)
    common = Refinement.of(target)
    coarse: list[tuple[Integers, Stack]] = []
    fine: list[Stack] = []
    coordinates = points = 0
    for grid, measured in _nearest_first(target, releases):
        union = union_of_cells(target, grid)
        refined = None
        if union is None:
            if len(fine) >= _GRIDS:
                continue
            limit = max(_POINTS - points, len(target.cell_of))
            refined = common.refined(grid, points=limit, cells=max(_CELLS, target.cells))
            if refined is None:
                continue
        size = sum(len(m.noisy) for _, m in measured)
        cells = common.cells if refined is None else refined.cells
        allowed = max(_WORK, _operations(target.cells, target.cells))
        if grid.key != target.key and _operations(coordinates + size, cells) > allowed:
            continue
        coordinates += size
        stack = Stack.of([m for _, m in measured], [number for number, _ in measured])
        if refined is None:
            assert union is not None
            coarse.append((union, stack))
        else:
            common = refined
            points += len(refined.cell_of)
            fine.append(stack)
    origin, *others = common.origins
    if fine:
        padded = np.hstack([table.matrix, np.zeros((len(table.rows), 1))])
        table = replace(table, matrix=padded[:, origin])
    stacks = [stack.lifted(np.append(union, -1)[origin]) for union, stack in coarse]
    stacks += [stack.lifted(other) for stack, other in zip(fine, others, strict=True)]
    return _CommonCells(table, Stack.joined(stacks, len(releases)) if stacks else None, origin)


Measured = list[tuple[int, Measurement]]
"""Measurements over one grid, each with the number of the release that it comes from."""


def _nearest_first(target: Grid, releases: Sequence[Release]) -> list[tuple[Grid, Measured]]:
    """The measurements about one table, by grid.

    Nearest are those over the batch's own cells, then those with the fewest columns beside the batch's own, then those
    that cut where the batch cuts and hardly anywhere else, then those with the least noise.
    """
    by_grid: dict[bytes, tuple[Grid, Measured]] = {}
    for number, release in enumerate(releases):
        for measurement, grid in zip(release.measurements, release.grids, strict=True):
            if grid.subject == target.subject and (measurement.entries <= _ENTRIES or grid.key == target.key):
                by_grid.setdefault(grid.key, (grid, []))[1].append((number, measurement))
    axes = {axis.key for axis in target.axes}

    def distance(entry: tuple[Grid, Measured]) -> tuple[float, ...]:
        grid, measured = entry
        shared = len(grid.places & target.places)
        beside = sum(axis.key not in axes for axis in grid.axes)
        return grid.key != target.key, beside, -shared, len(grid.places) - shared, min(m.level for _, m in measured)

    return sorted(by_grid.values(), key=distance)


def _operations(coordinates: int, cells: int) -> float:
    """Of one decomposition of the stacked questions."""
    return float(max(coordinates, cells)) * min(coordinates, cells) ** 2
