"""What stored releases say about a batch: all of them put over common cells, then generalised least squares.

Post-processing only. Releases of one state of one table mix, whatever their cells; others never do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Amount, Block, Estimate, Measurement, pack
from tacit.engine.inference import estimate_from
from tacit.engine.ledger import Ledger, StoredRelease
from tacit.engine.measurement import unpack_with_cells
from tacit.sql.refine import Grid, Refinement, grid_of
from tacit.sql.scan import Scan

from .compiled import Compiled
from .errors import LedgerError

_POINTS = 1 << 18
_CELLS = 2048
_COORDINATES = 4096
_GRIDS = 100
"""The common cells stay within these: past that, a release is used only by batches that cut as it does."""


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

    block: Block
    measurements: tuple[Measurement, ...]
    sources: tuple[int, ...]
    """The release that each measurement comes from."""
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


def stored_about(ledger: Ledger, compiled: Compiled, kept: dict[int, Release]) -> tuple[Release, ...]:
    """Every stored release of the tables of a batch in their present state, oldest first.

    ``kept`` holds those that were read before: a release never changes.
    """
    found: dict[int, StoredRelease] = {}
    for scan in compiled.scans:
        for stored in ledger.releases_about(grid_of(scan).subject):
            found[stored.charge_id] = stored
    for number, stored in found.items():
        if number not in kept:
            kept[number] = read(stored.payload, Amount(stored.epsilon, stored.delta), number, stored.analyst)
    return tuple(kept[number] for number in sorted(found))


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
        [e.measurements for e in evidence],
        rows=compiled.rows,
        nonnegative=nonnegative,
        partial=partial,
    )
    cells = tuple(
        e.own_cells(x, block.matrix.shape[1])
        for e, x, block in zip(evidence, estimate.cells, compiled.blocks, strict=True)
    )
    used = np.zeros(len(releases), dtype=np.bool_)
    for e, mask in zip(evidence, estimate.used, strict=True):
        used[np.array(e.sources, dtype=np.int64)[mask]] = True
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
        known = estimate_from([evidence.block], [evidence.measurements], rows=n, nonnegative=nonnegative, partial=True)
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
    """Releases with the fewest columns beside the batch's own come first: they cost the fewest common cells."""
    block, own = compiled.blocks[position], grid_of(compiled.scans[position])
    found: list[tuple[int, Measurement, Grid]] = []
    for number, release in enumerate(releases):
        if release.grids is None:
            found.append((number, release.measurements[position], own))
            continue
        for measurement, grid in zip(release.measurements, release.grids, strict=True):
            if grid.subject == own.subject:
                found.append((number, measurement, grid))
    names = {axis.key for axis in own.axes}
    found.sort(key=lambda f: (not _same(f[2], own), len({axis.key for axis in f[2].axes} - names)))
    common = Refinement.of(own)
    taken: list[tuple[int, Measurement, int]] = []
    known: list[tuple[Grid, int]] = [(own, 0)]
    coordinates = 0
    for number, measurement, grid in found:
        place = next((i for g, i in known if _same(g, grid)), None)
        if place is None:
            if coordinates + len(measurement.noisy) > _COORDINATES or len(known) > _GRIDS:
                continue
            finer = common.refined(grid, points=max(_POINTS, own.cell_of.size), cells=max(_CELLS, own.cells))
            if finer is None:
                continue
            common, place = finer, len(known)
            known.append((grid, place))
        coordinates += len(measurement.noisy)
        taken.append((number, measurement, place))
    origins = common.origins
    origin = origins[0]
    padded = np.hstack([block.matrix, np.zeros((len(block.rows), 1))])
    lifted = block if len(known) == 1 else replace(block, matrix=padded[:, origin])
    return Evidence(
        block=lifted,
        measurements=tuple(measurement.lifted(origins[place]) for _, measurement, place in taken),
        sources=tuple(number for number, _, _ in taken),
        origin=origin,
    )


def _same(a: Grid, b: Grid) -> bool:
    """Whether two grids have the same cells in the same order."""
    return a is b or (a.axes == b.axes and a.cells == b.cells and np.array_equal(a.cell_of, b.cell_of))
