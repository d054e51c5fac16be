"""A batch as the engine sees it: SQL text compiled into one workload for each private table that it reads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tacit.engine import TableWorkload, table_workload
from tacit.engine.accounting.terms import NO_UNIT
from tacit.engine.measures import Measure, measured, row_scales
from tacit.sql import Catalog, Limits, Source, compile_batch
from tacit.sql.names import folded
from tacit.sql.present import is_number, rows_used
from tacit.sql.scan import Scan
from tacit.sql.workload import Linear, Output, Stacked, Workload

from .errors import NotSupportedError, ProgrammingError
from .request import WIDEST_WEIGHTS, Ask

Floats = NDArray[np.float64]

_QUERIES_NAMED = 20
"""So many queries are named in one error."""


@dataclass(frozen=True)
class CompiledBatch:
    """A batch after compilation. Data-free: a function of the SQL, the catalog and the policy."""

    workload: Workload
    scans: tuple[Scan, ...]
    """How to count each private table that matters to the batch."""
    tables: tuple[TableWorkload, ...]
    """For each of ``scans``, the rows of the workload that are left to measure on it."""
    public: tuple[Scan, ...]
    """The scans of public tables: read freely, without noise."""
    weights: Floats | None
    """Per row of the workload."""
    measure: Measure = "total"
    """What is made least; relative errors are a total whose weights have the sizes in them."""

    @property
    def fingerprint(self) -> str:
        """Of what the batch measures, and of the state of the tables that it measures it on."""
        measured = [table.rows.tolist() for table in self.tables]
        return hashlib.sha256(f"{self.workload.fingerprint} {measured}".encode()).hexdigest()

    @property
    def units(self) -> dict[str, str]:
        """Whose presence the release hides: the privacy unit of every private table that is read."""
        tables = [table for scan in self.scans for table in (scan.table, *(join.table for _, join in scan.private))]
        return {folded(table.name): folded(table.privacy_unit or NO_UNIT) for table in tables}

    @property
    def row_count(self) -> int:
        return int(self.workload.matrix.shape[0])

    @property
    def to_measure(self) -> NDArray[np.bool_]:
        """Which rows of the workload are left to measure."""
        to_measure = np.zeros(self.row_count, dtype=np.bool_)
        for table in self.tables:
            to_measure[table.rows] = True
        return to_measure

    @property
    def answer_rows(self) -> NDArray[np.int64]:
        """The rows left to measure that are figures of the answer; ``error=`` speaks of those."""
        rows = {row for query in self.workload.queries for row in rows_used(query)}
        return np.array(sorted(rows & set(np.flatnonzero(self.to_measure).tolist())), dtype=np.int64)

    def measured(self, stderr: Floats) -> float:
        """What is made least, from the standard error of every row, divided by the row's largest entry and weighed."""
        scale = np.zeros(self.row_count)
        for table in self.tables:
            scale[table.rows] = 1 / np.abs(table.matrix).max(axis=1)
        weights = np.ones(self.row_count) if self.weights is None else self.weights
        rows = self.to_measure
        return measured((stderr * scale * row_scales(weights, self.measure))[rows], self.measure)

    def only(self, rows: NDArray[np.bool_]) -> CompiledBatch:
        """The same batch with some of its rows left to measure; the numbers of the rows stay."""
        if rows.all():
            return self
        pairs = [(scan, _only(table, rows)) for scan, table in zip(self.scans, self.tables, strict=True)]
        pairs = [(scan, table) for scan, table in pairs if table.rows.size]
        return replace(self, scans=tuple(s for s, _ in pairs), tables=tuple(t for _, t in pairs))


def compile_ask(ask: Ask, catalog: Catalog, source: Source, limits: Limits) -> CompiledBatch:
    """SQL text to table workloads. Reads the catalog and, for joins, the keys of public tables.

    Every scan is rehearsed on rows of tacit's own making: a scan that can fail must fail before the charge.
    """
    workload = compile_batch(ask.batch, catalog, ask.params, with_matrix(limits))
    matrix = workload.matrix
    scans = tuple(scan for scan in workload.scans if isinstance(scan, Scan))
    for scan in scans:
        _check_joins(source, scan)
        source.rehearse(scan)
    pairs = [
        (scan, table_workload(matrix[:, scan.columns], rows_per_unit=scan.rows_per_unit, one_row=scan.one_row))
        for scan in scans
        if not scan.table.public
    ]
    pairs = [(scan, table) for scan, table in pairs if table.rows.size]
    return CompiledBatch(
        workload=workload,
        scans=tuple(scan for scan, _ in pairs),
        tables=tuple(table for _, table in pairs),
        public=tuple(scan for scan in scans if scan.table.public),
        weights=_row_weights(workload, ask),
        measure="total" if ask.objective == "relative" else ask.objective,
    )


def with_matrix(limits: Limits) -> Limits:
    """Every table that can have a matrix gets one: what follows knows no other form yet."""
    return replace(limits, dense_cells=limits.cells)


def read_public(source: Source, batch: CompiledBatch) -> Floats:
    """What public tables add to every row of the workload, exactly."""
    rows = np.zeros(batch.row_count)
    for scan in batch.public:
        counts = source.count(scan, bytes(32)).astype(np.float64) / scan.one_row
        rows += batch.workload.matrix[:, scan.columns] @ counts
    return rows


def _check_joins(source: Source, scan: Scan) -> None:
    """Each private row may match at most one row of a public table: the columns joined on must be a key of it."""
    for _, join in scan.joins:
        key = tuple(column for _, column in join.on)
        if not source.unique(join.table, key):
            raise NotSupportedError(
                f"{join.table.name} has several rows for one value of {', '.join(key)}, so a join could count a row "
                f"many times\nhint: join {join.table.name} on a column that is unique in it"
            )


def _row_weights(workload: Workload, ask: Ask) -> Floats | None:
    """How much each row counts; of rows that several queries use, what the query that asks most of them says.

    A relative error is divided by the size of the answer, where other objectives divide by the row's largest entry.
    """
    of_query = _per_query(ask.weights, workload, "weights")
    if ask.objective == "relative":
        _check_sizes_apply(workload)
        sizes = _per_query(ask.sizes, workload, "sizes")
        of_query = of_query / sizes**2
    elif ask.weights is None:
        return None
    of_row = np.zeros(workload.matrix.shape[0])
    for weight, query in zip(of_query, workload.queries, strict=True):
        rows = rows_used(query)
        of_row[rows] = np.maximum(of_row[rows], weight)
    if ask.objective != "relative":
        return np.where(of_row > 0, of_row, 1.0)
    of_row *= np.square(np.abs(workload.matrix).max(axis=1, initial=0.0))
    counted = of_row > 0
    largest, smallest = np.max(of_row, initial=0.0), np.min(of_row, where=counted, initial=np.inf)
    if largest > smallest * WIDEST_WEIGHTS:
        raise ProgrammingError(
            f"sizes= makes one squared error count more than {WIDEST_WEIGHTS:,.0f} times as much as another: so little "
            "is as good as nothing\nhint: bring them closer, or ask for the queries in two batches"
        )
    return np.where(counted, of_row / max(float(largest), 1e-300), 1.0)


def _per_query(values: tuple[float, ...] | None, workload: Workload, what: str) -> Floats:
    if values is None:
        return np.ones(len(workload.queries))
    if len(values) != len(workload.queries):
        raise ProgrammingError(
            f"{what}= has {len(values)} entries for {len(workload.queries)} queries\n"
            "hint: give one positive number per query"
        )
    return np.array(values)


def _check_sizes_apply(workload: Workload) -> None:
    if numbers := computed_queries(workload):
        raise ProgrammingError(
            f'objective="relative" has no meaning for query {numbers}: the relative error of AVG and of other computed '
            "figures is not that of the sums and counts that are measured\n"
            "hint: ask for SUM and COUNT in its place, or leave objective= out"
        )


def computed_queries(workload: Workload) -> str:
    """The numbers of the queries with a figure that is no plain COUNT or SUM, as an error names them."""
    computed = [
        index
        for index, query in enumerate(workload.queries)
        if any(is_number(column.output) and not _is_linear(column.output) for column in query.columns)
    ]
    return ", ".join(map(str, computed[:_QUERIES_NAMED])) + (", …" if len(computed) > _QUERIES_NAMED else "")


def _is_linear(output: Output) -> bool:
    if isinstance(output, Stacked):
        return all(_is_linear(part) for _, part in output.parts)
    return isinstance(output, Linear)


def _only(table: TableWorkload, rows: NDArray[np.bool_]) -> TableWorkload:
    inside = rows[table.rows]
    return replace(table, matrix=table.matrix[inside], rows=table.rows[inside])
