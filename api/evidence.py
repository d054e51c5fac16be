"""What stored releases say about a batch: all of them put over common cells, then generalised least squares.

Post-processing only. Releases of one state of one table mix, whatever their cells; others never do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Amount, Estimate, Measurement, TableWorkload, pack
from tacit.engine.accounting.ledger import Ledger
from tacit.engine.inference.estimate import Stack, estimate_from
from tacit.engine.mechanism.measurement import unpack_with_cells
from tacit.sql.refine import Grid, Integers, Refinement, grid_of, subject_of, union_of_cells
from tacit.sql.scan import Scan

from .compiled import Compiled
from .errors import LedgerError

_POINTS = 1 << 18
_CELLS = 2048
_GRIDS = 24
_WORK = 1e8
"""The common cells stay within these, whatever was released before: points of their grids looked at, cells, releases
that cut the batch's own cells, operations of the least squares. What measures unions of own cells costs no cell."""


@dataclass(frozen=True, eq=False)
class Release:
    """A stored release, paid for: what it cost, and its measurements."""

    cost: Amount
    measurements: tuple[Measurement, ...]
    grids: tuple[Grid, ...] | None = None
    """The cells of each measurement; ``None`` for those of the batch at hand, in its order."""
    charge: int = 0
    analyst: str | None = None


@dataclass(frozen=True, eq=False)
class Evidence:
    """One table's part of a batch over cells that it shares with what was measured."""

    block: TableWorkload
    stack: Stack | None
    """Numbered by the releases that it comes from; None where there are none."""
    origin: NDArray[np.int64]
    """The batch's own cell that holds each common cell; -1 for none."""

    def own_cells(self, common: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """Counts of common cells added up into the batch's own."""
        inside = self.origin >= 0
        counts = np.zeros(count)
        np.add.at(counts, self.origin[inside], common[inside])
        return counts


def write(scans: Sequence[Scan], measurements: Sequence[Measurement]) -> tuple[bytes, list[str]]:
    """A release as the ledger keeps it, and the subjects that it is about."""
    grids = [grid_of(scan) for scan in scans]
    return pack(measurements, [grid.to_json() for grid in grids]), [grid.subject for grid in grids]


def read(payload: bytes, cost: Amount, charge: int, analyst: str | None = None) -> Release:
    """What ``write`` wrote."""
    measurements, described = unpack_with_cells(payload)
    grids = tuple(Grid.from_json(cells) for cells in described)
    if len(grids) != len(measurements) or any(
        m.L_int.shape[1] != g.cells for m, g in zip(measurements, grids, strict=True)
    ):
        raise LedgerError("a stored release is damaged and cannot be read")
    return Release(cost, measurements, grids, charge, analyst)


class Shelf:
    """The releases of the ledger that a connection has read so far: a release never changes and is never taken back."""

    def __init__(self) -> None:
        self._about: dict[str, dict[int, Release]] = {}

    def about(self, ledger: Ledger, subject: str) -> Mapping[int, Release]:
        """Every stored release about a subject, by charge; only those that are new are read."""
        known = self._about.setdefault(subject, {})
        for stored in ledger.releases_about(subject, known):
            amount = Amount(stored.epsilon, stored.delta)
            known[stored.charge_id] = read(stored.payload, amount, stored.charge_id, stored.analyst)
        return dict(known)  # another thread may come to add to it


def stored_about(ledger: Ledger, compiled: Compiled, shelf: Shelf) -> tuple[Release, ...]:
    """Every stored release of the tables of a batch in their present state, oldest first."""
    found: dict[int, Release] = {}
    for scan in compiled.scans:
        for number, release in shelf.about(ledger, subject_of(scan)).items():
            found.setdefault(number, release)  # a release about two tables is one
    return tuple(found[number] for number in sorted(found))


def gather(compiled: Compiled, releases: Sequence[Release]) -> tuple[Evidence, ...]:
    """For each block of a batch, its rows and all measurements of its table over common cells."""
    return tuple(_gathered(compiled, i, releases) for i in range(len(compiled.blocks)))


def combine(
    releases: Sequence[Release],
    compiled: Compiled,
    public: NDArray[np.float64] | None = None,
    *,
    nonnegative: bool = False,
    partial: bool = False,
) -> Estimate:
    """All rows of the batch from all releases at hand, by generalised least squares: post-processing.

    With ``partial``, rows that the releases do not determine have an infinite error. ``used`` of the result says
    which of the releases any answer depends on.
    """
    evidence = gather(compiled, releases)
    estimate = estimate_from(
        [e.block for e in evidence],
        [e.stack or () for e in evidence],
        rows=compiled.rows,
        nonnegative=nonnegative,
        partial=partial,
    )
    cells = tuple(
        e.own_cells(x, block.matrix.shape[1])
        for e, x, block in zip(evidence, estimate.cells, compiled.blocks, strict=True)
    )
    used = np.zeros(len(releases), dtype=np.bool_)
    for mask in estimate.used:
        used[: len(mask)] |= mask
    values = estimate.values if public is None else estimate.values + public
    return replace(estimate, values=values, cells=cells, used=(used,))


def contributing(releases: Sequence[Release], estimate: Estimate) -> tuple[Release, ...]:
    """Those of the releases that were given to ``combine`` on which any of its answers depends."""
    (used,) = estimate.used
    return tuple(release for release, is_used in zip(releases, used, strict=True) if is_used)


def cell_frame(releases: Sequence[Release], compiled: Compiled, *, nonnegative: bool = False) -> pd.DataFrame:
    """The estimated counts of a batch's cells, each with its error."""
    every: dict[str, list[Any]] = {name: [] for name in ("table", "label", "count", "stderr")}
    counts = combine(releases, compiled, nonnegative=nonnegative).cells
    for scan, block, count in zip(compiled.scans, compiled.blocks, counts, strict=True):
        n = block.matrix.shape[1]
        alone = replace(block, matrix=np.eye(n), rows=np.arange(n, dtype=np.int64))
        single = replace(compiled, scans=(scan,), blocks=(alone,))
        [evidence] = gather(single, releases)
        known = estimate_from([evidence.block], [evidence.stack or ()], rows=n, nonnegative=nonnegative, partial=True)
        described = compiled.workload.cells[scan.columns]
        every["table"] += [cell.table for cell in described]
        every["label"] += [cell.label for cell in described]
        every["count"] += count.tolist()
        every["stderr"] += known.stderr.tolist()
    return pd.DataFrame(
        {
            "table": pd.Series(every["table"], dtype="str"),
            "label": pd.Series(every["label"], dtype="str"),
            "count": np.array(every["count"], dtype=np.float64),
            "stderr": np.array(every["stderr"], dtype=np.float64),
        }
    )


def _gathered(compiled: Compiled, position: int, releases: Sequence[Release]) -> Evidence:
    """What measures unions of the batch's cells, all of it; then releases that cut those, the nearest ones first.

    The cost of both is bounded, and so is what one more release can add: a batch beside ten thousand releases takes no
    longer than one beside a few dozen. Nearest are the releases with the fewest columns beside the batch's own, then
    those that cut where the batch cuts and hardly anywhere else, then those with the least noise.
    """
    block, own = compiled.blocks[position], grid_of(compiled.scans[position])
    same_grid: dict[bytes, tuple[Grid, list[tuple[int, Measurement]]]] = {}
    for number, release in enumerate(releases):
        if release.grids is None:
            same_grid.setdefault(own.key, (own, []))[1].append((number, release.measurements[position]))
            continue
        for measurement, grid in zip(release.measurements, release.grids, strict=True):
            if grid.subject == own.subject:
                same_grid.setdefault(grid.key, (grid, []))[1].append((number, measurement))
    axes = {axis.key for axis in own.axes}

    def distance(entry: tuple[Grid, list[tuple[int, Measurement]]]) -> tuple[float, ...]:
        grid, measured = entry
        shared = len(grid.places & own.places)
        beside = sum(axis.key not in axes for axis in grid.axes)
        return grid.key != own.key, beside, -shared, len(grid.places) - shared, min(m.level for _, m in measured)

    common = Refinement.of(own)
    coarse: list[tuple[Integers, Stack]] = []
    fine: list[Stack] = []
    coordinates = looked = 0
    for grid, measured in sorted(same_grid.values(), key=distance):
        size = sum(len(m.noisy) for _, m in measured)
        union = union_of_cells(own, grid)
        finer = None
        if union is None:
            if len(fine) >= _GRIDS:
                continue
            limit = max(_POINTS - looked, len(own.cell_of))
            finer = common.refined(grid, points=limit, cells=max(_CELLS, own.cells))
            if finer is None:
                continue
        cells = common.cells if finer is None else finer.cells
        if grid.key != own.key and _operations(coordinates + size, cells) > max(
            _WORK, _operations(own.cells, own.cells)
        ):
            continue
        coordinates += size
        stack = Stack.of([m for _, m in measured], [number for number, _ in measured])
        if finer is None:
            assert union is not None
            coarse.append((union, stack))
        else:
            common = finer
            looked += len(finer.cell_of)
            fine.append(stack)
    origin, *others = common.origins
    if fine:
        padded = np.hstack([block.matrix, np.zeros((len(block.rows), 1))])
        block = replace(block, matrix=padded[:, origin])
    stacks = [stack.lifted(np.append(union, -1)[origin]) for union, stack in coarse]
    stacks += [stack.lifted(other) for stack, other in zip(fine, others, strict=True)]
    return Evidence(block, Stack.joined(stacks, len(releases)) if stacks else None, origin)


def _operations(coordinates: int, cells: int) -> float:
    """Of one decomposition of the stacked questions."""
    return float(max(coordinates, cells)) * min(coordinates, cells) ** 2
