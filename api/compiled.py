"""A batch as the caller asked it, and as the engine sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine import TableWorkload
from tacit.engine.accounting.terms import NO_UNIT
from tacit.sql.names import folded
from tacit.sql.scan import Scan
from tacit.sql.workload import Workload

ROUNDING = 0.5
"""So far can rounding move a figure (``Estimate.rounded``)."""


@dataclass(frozen=True)
class Ask:
    """One request as the caller made it, its numbers checked."""

    batch: str | Sequence[str]
    params: Sequence[Any] | Mapping[str, Any] | None = None
    epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)
    error: float | None = None
    confidence: float = 0.95
    weights: tuple[float, ...] | None = None
    strategy: str | None = None
    nonnegative: bool = False
    integer: bool = False
    refresh: bool = False
    """Buy new noise for the whole batch, whatever is known of it."""

    @property
    def noise_width(self) -> float | None:
        """How far the noise alone may move a figure under ``error=``: rounding adds up to one half to it."""
        return self.error - ROUNDING if self.error is not None and self.integer else self.error


@dataclass(frozen=True)
class Compiled:
    """The batch as the engine sees it: one block for each private table that matters to it."""

    workload: Workload
    scans: tuple[Scan, ...]
    blocks: tuple[TableWorkload, ...]
    public: tuple[Scan, ...]
    """The scans of public tables: read freely, without noise."""
    weights: NDArray[np.float64] | None
    """Per row of the workload."""

    @property
    def fingerprint(self) -> str:
        """Of what the batch measures, and of the state of the tables that it measures it on."""
        measured = [block.rows.tolist() for block in self.blocks]
        return hashlib.sha256(f"{self.workload.fingerprint} {measured}".encode()).hexdigest()

    @property
    def units(self) -> dict[str, str]:
        """Whose presence the release hides: the privacy unit of every private table that is read."""
        tables = [table for scan in self.scans for table in (scan.table, *(join.table for _, join in scan.private))]
        return {folded(table.name): folded(table.privacy_unit or NO_UNIT) for table in tables}

    @property
    def rows(self) -> int:
        return int(self.workload.matrix.shape[0])

    def only(self, rows: NDArray[np.bool_]) -> Compiled:
        """The same batch with some of its rows left to measure; the numbers of the rows stay."""
        if rows.all():
            return self
        pairs = [(scan, _kept(block, rows)) for scan, block in zip(self.scans, self.blocks, strict=True)]
        pairs = [(scan, block) for scan, block in pairs if block.rows.size]
        return replace(self, scans=tuple(s for s, _ in pairs), blocks=tuple(b for _, b in pairs))


def _kept(block: TableWorkload, rows: NDArray[np.bool_]) -> TableWorkload:
    inside = rows[block.rows]
    return replace(block, matrix=block.matrix[inside], rows=block.rows[inside])
