"""SQL batch → Workload: parse, read every query, cut the columns, build the matrix or the product of each table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sqlglot import exp
from tacit.errors import LimitError, SqlError, UnknownNameError, all_of

from .batch import BatchReader, TableBatch
from .catalog import Catalog
from .cells import CellList, build_cells
from .computed_axes import Aggregates, with_computed_axes
from .constants import Parameters, Params
from .names import folded
from .parse import Chunk, Limits, split_batch
from .product_scan import ProductScan
from .products import ProductTable, build_product
from .query import read_query
from .regions import Regions
from .scan import Scan
from .statement import Statement
from .workload import OuterQuery, Query, TablePart, Workload

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FEW_ENTRIES, _WIDEST_OF_FEW = 1 << 19, 8192
"""Of the matrix of few queries, and its cells."""
_MOST_ERRORS = 20
"""So many errors are shown at once."""


def compile_batch(
    batch: str | Sequence[str], catalog: Catalog, params: Params = None, limits: Limits | None = None
) -> Workload:
    """Compile a batch against a catalog. Deterministic, and reads no data.

    Raises subclasses of SqlError, each with the span that it is about: all errors of the batch's queries at once, as
    ``errors`` of the first.
    """
    limits = limits or Limits()
    parameters = Parameters(params)
    reader = BatchReader(catalog, parameters, limits)
    queries = _read_all(reader, split_batch(batch, limits))
    parameters.check_all_used()
    combine = reader.combinations()
    owners = _owners(reader, combine)
    parts: list[TablePart] = []
    width = 0
    for number, table in enumerate(reader.tables):
        part = _part(table, np.flatnonzero(owners == number), combine, width, limits)
        parts.append(part)
        width = part.scan.columns.stop
    return Workload(tuple(parts), _cells(parts), queries, combine, limits.entries)


def _owners(reader: BatchReader, combine: sparse.csr_array) -> Integers:
    """The table of every row of the workload: that of any of its aggregates."""
    of_aggregate = np.zeros(reader.aggregate_rows, dtype=np.int64)
    for number, table in enumerate(reader.tables):
        for rows in table.aggregates.values():
            of_aggregate[rows.start : rows.stop] = number
    return of_aggregate[combine.indices[combine.indptr[:-1]]]


def _part(table: TableBatch, rows: Integers, combine: sparse.csr_array, width: int, limits: Limits) -> TablePart:
    """One table's part. Where its columns make too many points, what it asks is computed row by row."""
    regions, aggregates = [attribute.regions() for attribute in table.attributes], list(table.aggregates.items())
    try:
        return _listed(table, regions, aggregates, rows, combine, width, limits)
    except LimitError:
        regions, aggregates = with_computed_axes(regions, aggregates, limits)
        return _listed(table, regions, aggregates, rows, combine, width, limits)


def _listed(
    table: TableBatch, regions: Sequence[Regions], aggregates: Aggregates, rows: Integers, combine: sparse.csr_array,
    width: int, limits: Limits,
) -> TablePart:  # fmt: skip
    """A matrix where the cells are few or there is no product, and the product where there is one."""
    joins = tuple((label, join) for join, label in table.joins.items())
    product, refusal = None, None
    try:
        rows_counted = ProductScan(table.table, slice(width, width), (), table.private, joins)
        product = build_product(rows_counted, regions, table.summed, aggregates, limits)
    except LimitError as error:
        refusal = error
    structured = product is not None and len(product.sizes) > 1  # one axis gains nothing from not being listed
    fits = product is None or len(rows) * product.fewest_cells <= limits.entries
    most = _most_cells(len(rows), limits) if structured or refusal is not None else None
    if product is None or not structured or (fits and product.fewest_cells <= limits.dense_cells):
        try:
            part = build_cells(table.table, regions, table.summed, [a for a, _ in aggregates], width, limits, most)
            scan = replace(part.scan, private=table.private, joins=joins)
            return TablePart(rows, scan, _dense(aggregates, rows, combine, part.matrix, limits), product)
        except LimitError as error:
            if product is None:
                raise (refusal or error) from None
    return _product_part(rows, combine, product, width)


def _most_cells(rows: int, limits: Limits) -> int:
    """Cells that are listed although there are products: more for few queries, which a search over cells serves."""
    if limits.dense_cells < Limits.dense_cells:
        return limits.dense_cells
    return max(limits.dense_cells, min(_WIDEST_OF_FEW, _FEW_ENTRIES // max(rows, 1)))


def _dense(aggregates: Aggregates, rows: Integers, combine: sparse.csr_array, matrix: Floats, limits: Limits) -> Floats:
    """The rows of the workload, as the combinations of rows of aggregates that they are."""
    if len(rows) * matrix.shape[1] > limits.entries:
        raise LimitError(
            f"the batch would need a matrix of {len(rows):,} answers by {matrix.shape[1]:,} cells",
            hint="split it into several batches, or name fewer constants",
        )
    numbers = np.concatenate([np.arange(own.start, own.stop) for _, own in aggregates])
    own = combine[rows][:, numbers]
    if not _is_identity(own):  # else the rows are those of the aggregates, in order: nothing to combine or copy
        matrix = own @ matrix
    _check_finite(matrix)
    return matrix


def _is_identity(matrix: sparse.csr_array) -> bool:
    size = matrix.shape[0]
    return (
        matrix.shape == (size, size)
        and matrix.nnz == size
        and np.array_equal(matrix.indices, np.arange(size))
        and np.array_equal(matrix.indptr, np.arange(size + 1))
        and bool(np.all(matrix.data == 1.0))
    )


def _product_part(rows: Integers, combine: sparse.csr_array, product: ProductTable, width: int) -> TablePart:
    _check_finite(abs(combine[rows])[:, : len(product.peaks)] @ product.peaks)
    scan = replace(product.scan, columns=slice(width, width + product.cells))
    return TablePart(rows, scan, None, replace(product, scan=scan))


def _check_finite(values: Floats) -> None:
    if not np.all(np.isfinite(values)):
        raise LimitError("a number in the batch is too large to compute with", hint="use smaller factors")


def _cells(parts: Sequence[TablePart]) -> CellList:
    """The cells of all tables; those of a product are listed column set by column set."""
    sizes: list[int] = []
    scans: list[Callable[[], Scan]] = []
    for part in parts:
        if isinstance(part.scan, Scan):
            sizes.append(part.scan.cells)
            scans.append(partial(_same, part.scan))
            continue
        assert part.product is not None
        for axes in part.product.column_sets:
            sizes.append(part.scan.points(axes))
            scans.append(partial(part.scan.marginal, axes))
    return CellList(sizes, lambda number: scans[number]())


def _same(scan: Scan) -> Scan:
    return scan


def _read_all(reader: BatchReader, chunks: Sequence[Chunk]) -> tuple[Query | OuterQuery, ...]:
    """Every query; or one error that holds those of all queries."""
    queries: list[Query | OuterQuery] = []
    errors: list[SqlError] = []
    for number, chunk in enumerate(chunks):
        try:
            queries.append(_read(reader, chunk.parsed(reader.limits)))
        except SqlError as error:
            errors.append(error if error.sql else chunk.located(error))
            errors[-1].query = number
            if not error.sql or len(errors) == _MOST_ERRORS:  # without a text, all queries to come would say the same
                break
    if errors:
        raise all_of(errors, complete=len(errors) < _MOST_ERRORS)
    return tuple(queries)


def _read(reader: BatchReader, statement: Statement) -> Query | OuterQuery:
    try:
        return read_query(reader, statement)
    except RecursionError:
        raise statement.error(LimitError, None, "the statement nests too deep", "write it with fewer levels") from None
    except UnknownNameError as error:
        _explain_left_out(error, statement, reader.catalog)
        raise


def _explain_left_out(error: UnknownNameError, statement: Statement, catalog: Catalog) -> None:
    """Say why a column that the database has is none that a batch can use."""
    name = folded(error.sql[error.start : error.end].rpartition(".")[2].strip('"'))
    for node in statement.tree.find_all(exp.Table):
        table = catalog.at(node.db, node.name)
        reason = {folded(column): text for column, text in table.left_out}.get(name) if table is not None else None
        if table is not None and reason is not None and table.column(name) is None:
            error.message, error.hint = (
                f"{table.name}.{name} cannot be used: {reason}",
                "ask the curator, or leave it out",
            )
            error.args = (error.message,)
            return
