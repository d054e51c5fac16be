"""What the compiler hands over: the workload in both its forms, its cells, and how each query's frame is rebuilt."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from tacit.errors import LimitError

if TYPE_CHECKING:
    from .derived import PublicQuery
    from .product_scan import ProductScan
    from .products import ProductTable
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
class Quantile:
    """MEDIAN, QUANTILE, MIN, MAX: read off after release, from how many rows lie at or below each value of a grid."""

    name: str
    """What the notes call it."""
    share: float
    """The part of the rows that lies below it: 0 for MIN, 1 for MAX."""
    interpolated: bool
    """Whether it may lie between two values, as MEDIAN does."""
    descending: bool
    """Whether ranks were counted from the greatest value, which matters for values that are not interpolated."""
    grid: tuple[float, ...]
    """Ascending: numbers, or days or microseconds since 1970 (see ``type``)."""
    every: bool
    """Whether a value is one of the grid's; or else it lies before the next one of them."""
    prefixes: tuple[Rows, ...]
    """For each value of the grid the count of rows at or below it; at the last, of all rows that are not NULL."""
    type: str
    """DOUBLE, BOOLEAN, DATE (days) or TIMESTAMP (microseconds)."""


@dataclass(frozen=True)
class Mode:
    """MODE: the listed value with the largest released count, the first of several."""

    values: tuple[Any, ...]
    counts: tuple[Rows, ...]
    """Of each value."""
    type: str
    """DOUBLE for numbers, or else the type of the values."""


@dataclass(frozen=True)
class PublicValues:
    """Values that follow from the batch and the policy alone, one per group: GROUPING(), a constant."""

    values: tuple[Any, ...]


Leaf = Linear | Quantile | Mode | PublicValues
"""What an expression over released values is computed from."""


@dataclass(frozen=True)
class Computed:
    """Anything else, computed after release: SQL over the leaves a0, a1, … and the group keys k0, k1, …."""

    sql: str
    leaves: tuple[Leaf, ...]
    type: str
    """The DuckDB type of the result, with DOUBLE leaves."""


@dataclass(frozen=True)
class Stacked:
    """UNION ALL: the rows of several outputs one below the other, (number of rows, output) each."""

    parts: tuple[tuple[int, Key | Linear | Ratio | Quantile | Mode | PublicValues | Computed], ...]


Output = Key | Linear | Ratio | Quantile | Mode | PublicValues | Computed | Stacked


@dataclass(frozen=True)
class Arrangement:
    """HAVING, DISTINCT, ORDER BY and LIMIT: what becomes of the released rows.

    SQL over the output columns o0, o1, …, the group keys k0, k1, … and the leaves a0, a1, ….
    """

    leaves: tuple[Leaf, ...]
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
    groups: Sequence[tuple[Any, ...]]
    """The key values of every group; one ``()`` without GROUP BY. Hashable, as a tuple is."""
    labels: Sequence[str]
    """Every group in words, different for different groups."""
    columns: tuple[OutputColumn, ...]
    arrangement: Arrangement | None = None


@dataclass(frozen=True)
class ReleasedPart:
    """A released query that a statement computes with."""

    name: str
    """What its frame is called in the text."""
    query: Query
    present: Linear | None
    """How many rows each group has: one without any is no group to SQL. None where there is no GROUP BY."""


@dataclass(frozen=True)
class OuterQuery:
    """A statement over released frames and public tables: it is computed after the release."""

    sql: str
    parts: tuple[ReleasedPart, ...]
    query: PublicQuery
    columns: tuple[KeyColumn, ...]
    """The names and DuckDB types of its columns."""
    keys: tuple[bool, ...]
    """Which columns name a row, and are no figures."""


@dataclass(frozen=True)
class Cell:
    """A set of rows that no query of the batch tells apart, in words."""

    table: str
    label: str


def released_parts(query: Query | OuterQuery) -> tuple[Query, ...]:
    """The released queries that a statement is made of: itself, mostly."""
    return (query,) if isinstance(query, Query) else tuple(part.query for part in query.parts)


@dataclass(frozen=True, eq=False)
class TablePart:
    """One table's part of a workload: a matrix where that fits, a product where there is one, or both."""

    rows: NDArray[np.int64]
    """The rows of the workload that speak of this table, ascending."""
    scan: Scan | ProductScan
    """How its cells are counted: a ``Scan`` exactly where there is a matrix."""
    matrix: NDArray[np.float64] | None
    """``rows`` by the cells of the scan."""
    product: ProductTable | None
    """The aggregates that ``Workload.combine`` makes the rows of; None where there are fewer than two axes."""


@dataclass(frozen=True, eq=False)
class Workload:
    """The batch as linear queries: ``matrix @ x`` are its exact answers when x holds the unit counts.

    ``matrix`` is m×n. Rows belong to the queries (see ``Linear.rows``); columns are ``cells``. The columns of
    one private table are contiguous (``Scan.columns``), and a row is zero outside its own table's columns. A batch
    whose cells are too many to list has no matrix; its tables have products.
    """

    tables: tuple[TablePart, ...]
    """Each table that the batch reads; empty when it reads none. A row of the workload belongs to one of them."""
    cells: Sequence[Cell]
    """Of a table without a matrix: the points of each column set that is used, one set after the other."""
    queries: tuple[Query | OuterQuery, ...]
    combine: sparse.csr_array
    """The rows of the workload over the rows of the aggregates (see ``ProductRows.rows``)."""
    entries: int
    """The most entries that ``matrix`` may have."""

    @property
    def released(self) -> list[Query]:
        """The queries whose figures are released, those inside other statements among them."""
        return [part for query in self.queries for part in released_parts(query)]

    @property
    def scans(self) -> tuple[Scan | ProductScan, ...]:
        """How to count each table that the batch reads."""
        return tuple(part.scan for part in self.tables)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return int(self.combine.shape[0])

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The workload as one matrix; LimitError where it does not fit."""
        parts = [(part, part.matrix) for part in self.tables if part.matrix is not None]
        shape = self.row_count, len(self.cells)
        if len(parts) < len(self.tables) or shape[0] * shape[1] > self.entries:
            raise LimitError(
                f"the batch would need a matrix of {shape[0]:,} answers by {shape[1]:,} cells",
                hint="split it into several batches, or name fewer constants",
            )
        if len(parts) == 1:
            return parts[0][1]
        whole = np.zeros(shape)
        for part, matrix in parts:
            whole[part.rows, part.scan.columns] = matrix
        return whole

    @cached_property
    def fingerprint(self) -> str:
        """Equal for two batches that measure the same things: the scans and the rows, not the text."""
        h = hashlib.sha256()
        for part in self.tables:
            h.update(part.scan.fingerprint.encode())
        try:
            h.update(np.ascontiguousarray(self.matrix).tobytes())
        except LimitError:
            h.update(self._parts_fingerprint)
        return h.hexdigest()

    @property
    def _parts_fingerprint(self) -> bytes:
        h = hashlib.sha256()
        for part in self.tables:
            h.update(np.ascontiguousarray(part.rows).tobytes())
            if part.matrix is not None:
                h.update(np.ascontiguousarray(part.matrix).tobytes())
            elif part.product is not None:
                h.update(part.product.fingerprint.encode())
        for array in (self.combine.indptr, self.combine.indices):
            h.update(np.asarray(array, dtype="<i8").tobytes())
        h.update(np.asarray(self.combine.data, dtype="<f8").tobytes())
        return h.digest()
