"""SQL batch → Workload: parse, read every query, cut the columns, build and merge the cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from tacit.errors import LimitError

from .batch import BatchReader
from .catalog import Catalog
from .cells import CellList, TableCells, build_cells
from .constants import Parameters, Params
from .parse import Limits, Statement, parse_batch
from .statement import read_query
from .workload import Query, Workload


def compile_batch(
    batch: str | Sequence[str], catalog: Catalog, params: Params = None, limits: Limits | None = None
) -> Workload:
    """Compile a batch against a catalog. Deterministic, and reads no data.

    Raises subclasses of SqlError, each with the span that it is about.
    """
    limits = limits or Limits()
    parameters = Parameters(params)
    reader = BatchReader(catalog, parameters, limits)
    queries = tuple(_read(reader, statement) for statement in parse_batch(batch, limits))
    parameters.check_all_used()
    parts: list[TableCells] = []
    width = 0
    for table in reader.tables:
        part = build_cells(table.table, table.attributes, table.measures, list(table.blocks), width, limits)
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


def _read(reader: BatchReader, statement: Statement) -> Query:
    try:
        return read_query(reader, statement)
    except RecursionError:
        raise LimitError(
            "the statement nests too deep",
            sql=statement.source, start=statement.start, end=statement.end, hint="write it with fewer levels",
        ) from None  # fmt: skip


def _combined(reader: BatchReader, parts: list[TableCells], width: int) -> NDArray[np.float64]:
    """The rows of the workload, as the combinations of rows of blocks that they are."""
    if len(parts) == 1 and list(reader.specs) == [((1.0, i),) for i in range(reader.block_count)]:
        return parts[0].matrix  # every row is a block's own row, in order: nothing to combine and nothing to copy
    matrix = np.zeros((len(reader.specs), width))
    combine = _combinations(reader)
    for table, part in zip(reader.tables, parts, strict=True):
        rows = [number for numbers in table.blocks.values() for number in numbers]
        matrix[:, part.scan.columns] = combine[:, rows] @ part.matrix
    return matrix


def _combinations(reader: BatchReader) -> sparse.csr_array:
    """The rows of the workload over the rows of all blocks."""
    entries = [(row, number, weight) for spec, row in reader.specs.items() for weight, number in spec]
    rows, numbers, weights = zip(*entries, strict=True) if entries else ((), (), ())
    return sparse.csr_array((weights, (rows, numbers)), shape=(len(reader.specs), reader.block_count))
