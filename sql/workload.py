"""What the compiler hands over: the workload matrix, its cells, and how each query's frame is rebuilt."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .scan import Scan

Rows = tuple[int, ...]
"""One row of the workload matrix for each group of the query, in the order of ``Query.groups``."""


@dataclass(frozen=True)
class Key:
    """An output column that repeats a group key."""

    index: int


@dataclass(frozen=True)
class Linear:
    """COUNT, SUM and what is linear in them: a row of the workload matrix per group, plus a constant."""

    rows: Rows
    offset: float = 0.0


@dataclass(frozen=True)
class Ratio:
    """AVG: computed after release, and kept inside the clamp [low, high]."""

    numerator: Rows
    denominator: Rows
    low: float
    high: float


@dataclass(frozen=True)
class PublicValues:
    """Values that follow from the batch and the policy alone, one per group: GROUPING(), a constant."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Computed:
    """Anything else, computed after release: SQL over the leaves a0, a1, … and the group keys k0, k1, …."""

    sql: str
    leaves: tuple[Linear | PublicValues, ...]
    type: str
    """The DuckDB type of the result, with DOUBLE leaves."""


@dataclass(frozen=True)
class Stacked:
    """UNION ALL: the rows of several outputs one below the other, (number of rows, output) each."""

    parts: tuple[tuple[int, Key | Linear | Ratio | PublicValues | Computed], ...]


Output = Key | Linear | Ratio | PublicValues | Computed | Stacked


@dataclass(frozen=True)
class Arrangement:
    """HAVING, DISTINCT, ORDER BY and LIMIT: what becomes of the released rows.

    SQL over the output columns o0, o1, …, the group keys k0, k1, … and the leaves a0, a1, ….
    """

    leaves: tuple[Linear | PublicValues, ...]
    having: str
    order: str
    limit: int | None
    offset: int
    distinct: bool


@dataclass(frozen=True)
class OutputColumn:
    """One column of the frame: the name that DuckDB would give it, and where its values come from."""

    name: str
    output: Output


@dataclass(frozen=True)
class KeyColumn:
    """One GROUP BY key and its DuckDB type, which decides the dtype of the frame's column."""

    column: str
    type: str


@dataclass(frozen=True)
class Query:
    """One SELECT of the batch."""

    sql: str
    table: str
    keys: tuple[KeyColumn, ...]
    groups: tuple[tuple[Any, ...], ...]
    """The key values of every group; ``((),)`` without GROUP BY."""
    labels: tuple[str, ...]
    """Every group in words, different for different groups."""
    columns: tuple[OutputColumn, ...]
    arrangement: Arrangement | None = None


@dataclass(frozen=True)
class Cell:
    """A set of rows that no query of the batch tells apart, in words."""

    table: str
    label: str


@dataclass(frozen=True)
class Workload:
    """The batch as one matrix: ``matrix @ x`` are its exact answers when x holds the unit counts.

    ``matrix`` is m×n. Rows belong to the queries (see ``Linear.rows``); columns are ``cells``. The columns of
    one private table are contiguous (``Scan.columns``), and a row is zero outside its own table's columns.
    """

    matrix: NDArray[np.float64]
    cells: Sequence[Cell]
    queries: tuple[Query, ...]
    scans: tuple[Scan, ...]
    """How to count each private table that the batch reads; empty when it reads none."""

    @cached_property
    def fingerprint(self) -> str:
        """Equal for two batches that measure the same things: the scans and the rows, not the text."""
        h = hashlib.sha256()
        for scan in self.scans:
            h.update(scan.fingerprint.encode())
        h.update(np.ascontiguousarray(self.matrix).tobytes())
        return h.hexdigest()
