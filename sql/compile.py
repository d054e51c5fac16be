"""SQL batch → Workload: parse, read every SELECT, cut the columns, build and merge the cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .catalog import Catalog
from .cells import CellList, TableCells, build_cells
from .constants import Parameters, Params
from .parse import Limits, parse_batch
from .select import BatchReader
from .workload import Workload


def compile_batch(
    batch: str | Sequence[str], catalog: Catalog, params: Params = None, limits: Limits | None = None
) -> Workload:
    """Compile a batch against a catalog. Deterministic, and reads no data.

    Raises subclasses of SqlError, each with the span that it is about.
    """
    limits = limits or Limits()
    parameters = Parameters(params)
    reader = BatchReader(catalog, parameters, limits)
    queries = tuple(reader.read(statement) for statement in parse_batch(batch, limits))
    parameters.check_all_used()
    parts: list[TableCells] = []
    width = 0
    for table in reader.tables:
        parts.append(build_cells(table.table, table.attributes, table.measures, list(table.blocks), width, limits))
        width = parts[-1].scan.columns.stop
    matrix = np.zeros((reader.row_count, width))
    for table, part in zip(reader.tables, parts, strict=True):
        rows = [number for numbers in table.blocks.values() for number in numbers]
        matrix[rows, part.scan.columns] = part.matrix
    return Workload(matrix, CellList(parts), queries, tuple(part.scan for part in parts))
