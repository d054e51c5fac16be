"""Releases as the ledger stores them and as a connection reads them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tacit.engine import Amount, Ledger, Measurement, pack
from tacit.engine.accounting.amounts import exact_sum
from tacit.engine.mechanism.measurement import unpack_with_cells
from tacit.sql.product_scan import ProductScan
from tacit.sql.refine import Grid, grid_of, subject_of
from tacit.sql.scan import Scan

from .errors import LedgerError


@dataclass(frozen=True, eq=False)
class Release:
    """What one charge bought: noisy measurements, the cells that they speak of, and what they cost."""

    cost: Amount
    measurements: tuple[Measurement, ...]
    grids: tuple[Grid, ...]
    """The cells of each measurement."""
    charge: int = 0
    analyst: str | None = None


@dataclass(frozen=True)
class StoredReleases:
    """What was released about the tables of a batch, oldest first."""

    readable: tuple[Release, ...] = ()
    """Those that the reader may use at no cost: paid for, or read before; for the curator, all."""
    others: tuple[Release, ...] = ()
    """Those that other analysts paid for. Reading one counts against the reader's own cap."""


def write(scans: Sequence[Scan], measurements: Sequence[Measurement]) -> tuple[bytes, list[str]]:
    """A release as the ledger stores it, and the subjects that it is about."""
    grids = [grid_of(scan) for scan in scans]
    return pack(measurements, [grid.to_json() for grid in grids]), [grid.subject for grid in grids]


def read(payload: bytes, cost: Amount, charge: int, analyst: str | None = None) -> Release:
    """What ``write`` wrote."""
    measurements, described = unpack_with_cells(payload)
    grids = tuple(Grid.from_json(cells) for cells in described)
    if len(grids) != len(measurements) or any(m.cells != g.cells for m, g in zip(measurements, grids, strict=True)):
        raise LedgerError("a stored release is damaged and cannot be read")
    return Release(cost, measurements, grids, charge, analyst)


class ReleaseCache:
    """The releases of the ledger that a connection has read so far: a release never changes and is never taken back."""

    def __init__(self) -> None:
        self._by_subject: dict[str, dict[int, Release]] = {}

    def about(self, ledger: Ledger, scans: Sequence[Scan | ProductScan]) -> tuple[Release, ...]:
        """Every stored release of these tables in their present state, oldest first."""
        releases: dict[int, Release] = {}
        for scan in scans:
            for charge, release in self._about(ledger, subject_of(scan)).items():
                releases.setdefault(charge, release)  # a release about two tables is one
        return tuple(releases[charge] for charge in sorted(releases))

    def _about(self, ledger: Ledger, subject: str) -> Mapping[int, Release]:
        """Every stored release about a subject, by charge; only those that are new are read."""
        cached = self._by_subject.setdefault(subject, {})
        for stored in ledger.releases_about(subject, cached):
            amount = Amount(stored.epsilon, stored.delta)
            cached[stored.charge_id] = read(stored.payload, amount, stored.charge_id, stored.analyst)
        return cached


def total(costs: Iterable[Amount]) -> Amount:
    """The exact sum: Python's own sum of decimals rounds to 28 digits."""
    listed = list(costs)
    return Amount(exact_sum(c.epsilon for c in listed), exact_sum(c.delta for c in listed))
