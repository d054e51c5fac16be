"""A batch as the engine sees it: SQL text compiled into one workload for each private table that it reads."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tacit.engine import TableWorkload
from tacit.engine.accounting.terms import NO_UNIT
from tacit.engine.measures import Measure, measured, row_scales
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.product_workload import ProductRows, ProductWorkload
from tacit.sql import Catalog, Limits, Source, compile_batch
from tacit.sql.derived import looked_up
from tacit.sql.names import folded
from tacit.sql.present import figures_behind, is_number, rows_used
from tacit.sql.product_scan import ProductScan
from tacit.sql.products import ProductTable as CompiledProduct
from tacit.sql.scan import UNIT, Scan, SummedColumn
from tacit.sql.workload import Linear, Mode, OuterQuery, Output, Quantile, Stacked, TablePart, Workload

from .error_targets import of_queries
from .errors import NotSupportedError, ProgrammingError
from .request import ROUNDING, WIDEST_WEIGHTS, Ask

Floats = NDArray[np.float64]

_UNPROMISED = 10.0
"""So many times the largest error that is asked for may a query have that is promised nothing: what is promised decides
the ε."""
_QUERIES_NAMED = 20
"""So many queries are named in one error."""


@dataclass(frozen=True)
class CompiledBatch:
    """A batch after compilation. Data-free: a function of the SQL, the catalog and the policy."""

    workload: Workload
    scans: tuple[Scan | ProductScan, ...]
    """How to count each private table that matters to the batch."""
    products: tuple[ProductScan | None, ...]
    """For each of ``scans``, how a few columns of the table are counted, where its rows are products of columns."""
    tables: tuple[TableWorkload | ProductTable, ...]
    """For each of ``scans``, the rows of the workload that are left to measure on it."""
    public: tuple[TablePart, ...]
    """Public tables: read freely, without noise."""
    weights: Floats | None
    """Per row of the workload."""
    measure: Measure = "total"
    """What is made least; relative errors are a total whose weights have the sizes in them."""
    noise_widths: Floats | None = None
    """Under ``error=``, how far the noise alone may move each row; infinite where nothing is promised."""

    @property
    def fingerprint(self) -> str:
        """Of what the batch measures, and of the state of the tables that it measures it on."""
        if all(isinstance(table, TableWorkload) for table in self.tables):
            measured = [table.rows.tolist() for table in self.tables]
            return hashlib.sha256(f"{self.workload.fingerprint} {measured}".encode()).hexdigest()
        digest = hashlib.sha256(self.workload.fingerprint.encode())
        for table in self.tables:
            digest.update(f"{len(table.rows)} ".encode())
            digest.update(np.ascontiguousarray(table.rows, dtype="<i8").tobytes())
        return digest.hexdigest()

    @property
    def units(self) -> dict[str, str]:
        """Whose presence the release hides: the privacy unit of every private table that is read."""
        return units_of(self.scans)

    @property
    def sql(self) -> tuple[str, ...]:
        """The text of every query."""
        return tuple(query.sql for query in self.workload.queries)

    @property
    def row_count(self) -> int:
        return self.workload.row_count

    @property
    def listed(self) -> tuple[TableWorkload, ...]:
        """The tables of a batch whose cells are all listed."""
        return tuple(table for table in self.tables if isinstance(table, TableWorkload))

    @property
    def to_measure(self) -> NDArray[np.bool_]:
        """Which rows of the workload are left to measure."""
        to_measure = np.zeros(self.row_count, dtype=np.bool_)
        for table in self.tables:
            to_measure[table.rows] = True
        return to_measure

    @property
    def answer_rows(self) -> NDArray[np.int64]:
        """The rows left to measure that are figures of the answer."""
        rows = {row for query in self.workload.queries for row in rows_used(query)}
        return np.array(sorted(rows & set(np.flatnonzero(self.to_measure).tolist())), dtype=np.int64)

    @property
    def promised_rows(self) -> NDArray[np.int64]:
        """Those of ``answer_rows`` that ``error=`` speaks of."""
        rows = self.answer_rows
        return rows if self.noise_widths is None else rows[np.isfinite(self.noise_widths[rows])]

    @property
    def row_peaks(self) -> Floats:
        """The largest entry of every row that is left to measure; 0 for others."""
        peaks = np.zeros(self.row_count)
        for table in self.tables:
            peaks[table.rows] = table.row_peaks
        return peaks

    def measured(self, stderr: Floats) -> float:
        """What is made least, from the standard error of every row, divided by the row's largest entry and weighed."""
        scale = np.zeros(self.row_count)
        for table in self.tables:
            scale[table.rows] = 1 / table.row_peaks
        weights = np.ones(self.row_count) if self.weights is None else self.weights
        rows = self.to_measure
        return measured((stderr * scale * row_scales(weights, self.measure))[rows], self.measure)

    def only(self, rows: NDArray[np.bool_]) -> CompiledBatch:
        """The same batch with some of its rows left to measure; the numbers of the rows stay."""
        if rows.all():
            return self
        listed = [
            (scan, product, only)
            for scan, product, table in zip(self.scans, self.products, self.tables, strict=True)
            if (only := table.only(rows)).rows.size
        ]
        return replace(
            self,
            scans=tuple(scan for scan, _, _ in listed),
            products=tuple(product for _, product, _ in listed),
            tables=tuple(table for _, _, table in listed),
        )


def units_of(scans: Iterable[Scan | ProductScan]) -> dict[str, str]:
    """The privacy unit of every private table that scans read, those on the way to a unit among them."""
    tables = [table for scan in scans for table in scan.tables if not table.public]
    return {folded(table.name): folded(table.privacy_unit or NO_UNIT) for table in tables}


def compile_ask(ask: Ask, catalog: Catalog, source: Source, limits: Limits) -> CompiledBatch:
    """SQL text to table workloads. Reads the catalog and, for joins, the keys of public tables.

    Every scan is rehearsed on rows of tacit's own making: a scan that can fail must fail before the charge.
    """
    workload = compile_batch(ask.batch, catalog, ask.params, limits if ask.is_plain else with_matrix(limits))
    for scan in workload.scans:
        _check_joins(source, scan)
        source.rehearse(scan)
    private = [(part, _table(part, workload)) for part in workload.tables if not part.scan.table.public]
    private = [(part, table) for part, table in private if table.rows.size]
    if not ask.is_plain and any(isinstance(table, ProductTable) for _, table in private):
        raise NotSupportedError(
            "strategy=, objective=, inference= and nonnegative= are for batches whose cells can be listed, and this "
            "one has too many\nhint: leave them out, or ask about fewer columns at a time"
        )
    return CompiledBatch(
        workload=workload,
        scans=tuple(part.scan for part, _ in private),
        products=tuple(None if part.product is None else part.product.scan for part, _ in private),
        tables=tuple(table for _, table in private),
        public=tuple(part for part in workload.tables if part.scan.table.public),
        weights=_row_weights(workload, ask),
        measure="total" if ask.objective == "relative" else ask.objective,
        noise_widths=None if ask.error is None else _noise_widths(workload, ask),
    )


def _noise_widths(workload: Workload, ask: Ask) -> Floats:
    """How far the noise may move each row: of several queries that use it, the strictest says."""
    assert ask.error is not None
    widths = np.full(workload.row_count, np.inf)
    for target, query in zip(of_queries(ask.error, len(workload.queries)), workload.queries, strict=True):
        if target is not None:
            rows = rows_used(query)
            widths[rows] = np.minimum(widths[rows], target - (ROUNDING if ask.integer else 0.0))
    return widths


def with_matrix(limits: Limits) -> Limits:
    """Every table that can have a matrix gets one: some strategies and estimates are for listed cells only."""
    return replace(limits, dense_cells=limits.cells)


def _table(part: TablePart, workload: Workload) -> TableWorkload | ProductTable:
    """The rows of one table that are not zero, as the engine sees them."""
    if part.matrix is None:
        products = _products(part, workload, part.rows)
        assert products is not None
        return products
    counted = part.matrix.any(axis=1)
    rows = part.rows[counted]
    assert isinstance(part.scan, Scan)
    return TableWorkload(
        np.ascontiguousarray(part.matrix if counted.all() else part.matrix[counted]),
        rows,
        part.scan.rows_per_unit,
        part.scan.one_row,
        _products(part, workload, rows),
    )


def _products(part: TablePart, workload: Workload, rows: NDArray[np.int64]) -> ProductTable | None:
    product = part.product
    if product is None:
        return None
    combination = workload.combine[rows].copy()
    combination.data[np.isin(combination.indices, product.zero)] = 0.0
    combination.eliminate_zeros()
    counted = np.diff(combination.indptr) > 0
    combination = combination[np.flatnonzero(counted)]
    readings = [combination[:, : len(product.peaks)] @ reading.matrix for reading in product.readings]
    peaks = abs(combination)[:, : len(product.peaks)] @ product.peaks
    summed = [axis for axis, one in enumerate(product.scan.axes) if isinstance(one.columns, SummedColumn)]
    asked_by = _statements(workload, product)
    groups = {id(g): g for g in (*product.groups, *(g for reading in product.readings for g in reading.groups))}
    workload_of_products = ProductWorkload(
        product.sizes,
        tuple(ProductRows(g.axes, g.factors, g.rows, int(asked_by[g.rows].min())) for g in groups.values()),
        product.scan.rows_per_unit,
        frozenset(summed),
        UNIT if summed else 1,
    )
    first, *others = readings or [combination]
    viewed = bool(product.readings)
    return ProductTable(workload_of_products, rows[counted], first, tuple(others), np.asarray(peaks), viewed)


def _statements(workload: Workload, product: CompiledProduct) -> NDArray[np.int64]:
    """The first statement that uses each row of the aggregates, or each product row."""
    of_row = np.full(workload.row_count, len(workload.queries), dtype=np.int64)
    for number, query in reversed(list(enumerate(workload.queries))):
        of_row[rows_used(query)] = number
    first = np.full(workload.combine.shape[1], len(workload.queries), dtype=np.int64)
    np.minimum.at(first, workload.combine.indices, np.repeat(of_row, np.diff(workload.combine.indptr)))
    if not product.readings:
        return first
    of_products = np.full(product.readings[0].matrix.shape[1], len(workload.queries), dtype=np.int64)
    for matrix in (reading.matrix for reading in product.readings):
        of_rows = first[: matrix.shape[0]]
        np.minimum.at(of_products, matrix.indices, np.repeat(of_rows, np.diff(matrix.indptr)))
    return of_products


def read_public(source: Source, batch: CompiledBatch) -> Floats:
    """What public tables add to every row of the workload, exactly."""
    rows = np.zeros(batch.row_count)
    for part in batch.public:
        rows[part.rows] = exact_rows(source, batch.workload, part, bytes(32))
    return rows


def exact_rows(source: Source, workload: Workload, part: TablePart, salt: bytes) -> Floats:
    """The exact rows of one table: for public tables, and for the curator's tests."""
    if part.matrix is not None:
        assert isinstance(part.scan, Scan)
        return np.asarray(part.matrix @ (source.count(part.scan, salt).astype(np.float64) / part.scan.one_row))
    product = part.product
    assert product is not None
    scans = [product.scan.marginal(axes) for axes in product.column_sets]
    counts = [x / scan.one_row for x, scan in zip(source.count_all(scans, salt), scans, strict=True)]
    values = np.zeros(workload.combine.shape[1])
    product.aggregate_rows(dict(zip(product.column_sets, counts, strict=True)), values)
    return np.asarray(workload.combine[part.rows] @ values)


def _check_joins(source: Source, scan: Scan | ProductScan) -> None:
    """Each private row may match at most one row of a public table: the columns joined on must be a key of it.

    Of a private table one row for each unit and key is taken, whatever it holds.
    """
    for join in looked_up(scan.table, (*scan.private, *scan.joins)):
        key = tuple(column for _, column in join.on)
        if not source.unique(join.table, key):
            raise NotSupportedError(
                f"{join.table.name} has several rows for one value of {', '.join(key)}, so a join could count a row "
                f"many times\nhint: join {join.table.name} on a column that is unique in it"
            )


def _row_weights(workload: Workload, ask: Ask) -> Floats | None:
    """How much each row counts; of rows that several queries use, what the query that asks most of them says.

    The counts that a quantile is read from make one figure together, and count as one: a COUNT beside it would get
    little of the budget if each of a few hundred counted as much. Several quantiles make that many figures. For the
    largest error each counts in full, because the quantile may be read off at any of them.

    A relative error is divided by the size of the answer, where other objectives divide by the row's largest entry.
    Under an ``error=`` for each query it is divided by that: what is asked to be exact counts more.
    """
    of_query = _per_query(ask.weights, workload, "weights")
    sizes = None
    if ask.objective == "relative":
        _check_sizes_apply(workload)
        sizes = _per_query(ask.sizes, workload, "sizes")
    elif ask.objective != "absolute" and ask.weights is None and isinstance(ask.error, (tuple, dict)):
        sizes = _targets(of_queries(ask.error, len(workload.queries)))
    if sizes is not None:
        of_query = of_query / sizes**2
    of_row, of_parts = np.zeros(workload.row_count), np.zeros(workload.row_count)
    for weight, query in zip(of_query, workload.queries, strict=True):
        for rows, together in figures_behind(query):
            if together == 1 or ask.objective == "largest":
                of_row[rows] = np.maximum(of_row[rows], weight)
            else:
                of_parts[rows] += weight / together
    of_row = np.maximum(of_row, of_parts)
    if sizes is None:
        used = of_row[of_row > 0]
        equal = ask.weights is None and bool(np.all(used == used[:1]))
        return None if equal else np.where(of_row > 0, of_row, 1.0)
    of_row *= np.square(_row_peaks(workload))
    counted = of_row > 0
    largest, smallest = np.max(of_row, initial=0.0), np.min(of_row, where=counted, initial=np.inf)
    if ask.objective != "relative":  # targets are kept whatever the weights are
        of_row = np.where(counted, np.maximum(of_row, largest / WIDEST_WEIGHTS), 0.0)
    elif largest > smallest * WIDEST_WEIGHTS:
        raise ProgrammingError(
            f"sizes= makes one squared error count more than {WIDEST_WEIGHTS:,.0f} times as much as another: so little "
            "is as good as nothing\nhint: bring them closer, or ask for the queries in two batches"
        )
    return np.where(counted, of_row / max(float(largest), 1e-300), 1.0)


def _targets(targets: Sequence[float | None]) -> Floats:
    """The half-width that is asked for of each query; of those that are promised nothing, a multiple of the largest."""
    largest = _UNPROMISED * max(target for target in targets if target is not None)
    return np.array([largest if target is None else target for target in targets])


def _per_query(values: float | tuple[float, ...] | None, workload: Workload, what: str) -> Floats:
    if values is None:
        return np.ones(len(workload.queries))
    if isinstance(values, float):
        return np.full(len(workload.queries), values)
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


def computed_queries(workload: Workload, among: Collection[int] | None = None) -> str:
    """The numbers of the queries with a figure that is no plain COUNT or SUM, as an error names them."""
    computed = [
        index
        for index, query in enumerate(workload.queries)
        if among is None or index in among
        if isinstance(query, OuterQuery) or any(_is_computed(column.output) for column in query.columns)
    ]
    return ", ".join(map(str, computed[:_QUERIES_NAMED])) + (", …" if len(computed) > _QUERIES_NAMED else "")


def _is_computed(output: Output) -> bool:
    if isinstance(output, Stacked):
        return any(_is_computed(part) for _, part in output.parts)
    return isinstance(output, Quantile | Mode) or (is_number(output) and not isinstance(output, Linear))


def _row_peaks(workload: Workload) -> Floats:
    """The largest entry of every row of the workload, in size."""
    peaks = np.zeros(workload.row_count)
    for part in workload.tables:
        table = _table(part, workload)
        peaks[table.rows] = table.row_peaks
    return peaks
