"""SQL batch → Workload: parse, read every query, cut the columns, build and merge the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from tacit.errors import LimitError, SqlError, all_of

from .batch import BatchReader
from .catalog import Catalog
from .cells import CellList, TableCells, build_cells
from .constants import Parameters, Params
from .parse import Chunk, Limits, split_batch
from .query import read_query
from .statement import Statement
from .workload import Query, Workload

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
    parts: list[TableCells] = []
    width = 0
    for table in reader.tables:
        part = build_cells(table.table, table.attributes, table.summed, list(table.aggregates), width, limits)
        joins = tuple((label, join) for join, label in table.joins.items())
        parts.append(replace(part, scan=replace(part.scan, private=table.private, joins=joins)))
        width = part.scan.columns.stop
    if len(reader.specs) * width > limits.entries:
        raise LimitError(
            f"the batch would need a matrix of {len(reader.specs):,} answers by {width:,} cells",
            hint="split it into several batches, or name fewer constants",
        )
    matrix = _combined(reader, parts, width)
    if not np.all(np.isfinite(matrix)):
        raise LimitError("a number in the batch is too large to compute with", hint="use smaller factors")
    return Workload(matrix, CellList(parts), queries, tuple(part.scan for part in parts))


def _read_all(reader: BatchReader, chunks: Sequence[Chunk]) -> tuple[Query, ...]:
    """Every query; or one error that holds those of all queries."""
    queries: list[Query] = []
    errors: list[SqlError] = []
    for number, chunk in enumerate(chunks):
        try:
            queries.append(_read(reader, chunk.parsed(reader.limits)))
        except SqlError as error:
            error.query = number
            errors.append(error)
            if not error.sql or len(errors) == _MOST_ERRORS:  # without a text, it is about the batch as a whole
                break
    if errors:
        raise all_of(errors, complete=len(errors) < _MOST_ERRORS)
    return tuple(queries)


def _read(reader: BatchReader, statement: Statement) -> Query:
    try:
        return read_query(reader, statement)
    except RecursionError:
        raise statement.error(LimitError, None, "the statement nests too deep", "write it with fewer levels") from None


def _combined(reader: BatchReader, parts: list[TableCells], width: int) -> NDArray[np.float64]:
    """The rows of the workload, as the combinations of rows of aggregates that they are."""
    if len(parts) == 1 and list(reader.specs) == [((1.0, i),) for i in range(reader.aggregate_rows)]:
        return parts[0].matrix  # the rows are those of the aggregates, in order: nothing to combine or copy
    matrix = np.zeros((len(reader.specs), width))
    combine = _combinations(reader)
    for table, part in zip(reader.tables, parts, strict=True):
        rows = [number for numbers in table.aggregates.values() for number in numbers]
        matrix[:, part.scan.columns] = combine[:, rows] @ part.matrix
    return matrix


def _combinations(reader: BatchReader) -> sparse.csr_array:
    """The rows of the workload over the rows of all aggregates."""
    entries = [(row, number, weight) for spec, row in reader.specs.items() for weight, number in spec]
    rows, numbers, weights = zip(*entries, strict=True) if entries else ((), (), ())
    return sparse.csr_array((weights, (rows, numbers)), shape=(len(reader.specs), reader.aggregate_rows))
