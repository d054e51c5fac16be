"""What the batch would cost without a strategy: three alternatives, priced at the same (ε, δ).

Each alternative may choose between Laplace and Gaussian noise when δ > 0, as tacit does, so that a
comparison shows what the strategy is worth and not what the calibration is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.amounts import Amount, to_amount
from tacit.engine.linalg import row_norms, row_peaks
from tacit.engine.mechanism.calibrate import analytic_sigma
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.errors import ProgrammingError

Vector = NDArray[np.float64]

_ROWS_AT_ONCE = 256


def baselines(
    workloads: Sequence[TableWorkload],
    query_of_row: Sequence[int] | NDArray[np.int64],
    epsilon: Any,
    delta: Any = 0,
) -> dict[str, Vector]:
    """Standard error of each row of the batch, for each alternative.

    ``split``: every query alone with an equal part of (ε, δ). ``results``: noise on every result at
    once. ``histogram``: noise on every cell, and every row added up from the cells.
    """
    amount = to_amount(epsilon, delta)
    queries = np.asarray(query_of_row, dtype=np.int64)
    if any(workload.rows.max(initial=-1) >= len(queries) for workload in workloads):
        raise ProgrammingError("query_of_row must name a query for each row of the batch")
    return {
        "split": _split(workloads, queries, amount),
        "results": _results(workloads, len(queries), amount),
        "histogram": _histogram(workloads, len(queries), amount),
    }


def _split(workloads: Sequence[TableWorkload], queries: NDArray[np.int64], amount: Amount) -> Vector:
    result = np.zeros(len(queries))
    names = np.unique(queries)
    part = Amount(amount.epsilon / len(names), amount.delta / len(names)) if len(names) else amount
    for query in names:
        alone = [_restricted(workload, np.flatnonzero(queries == query)) for workload in workloads]
        result += _results([workload for workload in alone if len(workload.rows)], len(queries), part)
    return result


def _results(workloads: Sequence[TableWorkload], rows: int, amount: Amount) -> Vector:
    """Noise on every row, in units of its largest entry, which is how tacit itself weighs rows."""
    size = np.zeros(rows)
    for workload in workloads:
        size[workload.rows] = row_peaks(workload.matrix)
    both = [_column_norms(workload.matrix, size[workload.rows]) for workload in workloads]
    norms = {1: [first for first, _ in both], 2: [second for _, second in both]}
    return size * _noise(workloads, norms, amount)


def _column_norms(matrix: NDArray[np.float64], size: Vector) -> tuple[float, float]:
    """The largest L1 and L2 norm of a column once every row is divided by its size; some rows at a time."""
    first, second = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        part = np.abs(matrix[rows]) / size[rows, None]
        first += part.sum(axis=0)
        second += np.einsum("ij,ij->j", part, part)
    return float(first.max(initial=0.0)), float(np.sqrt(second.max(initial=0.0)))


def _histogram(workloads: Sequence[TableWorkload], rows: int, amount: Amount) -> Vector:
    noise = _noise(workloads, {1: [1.0] * len(workloads), 2: [1.0] * len(workloads)}, amount)
    result = np.zeros(rows)
    for workload in workloads:
        result[workload.rows] = noise * row_norms(workload.matrix)
    return result


def _noise(workloads: Sequence[TableWorkload], norms: dict[int, list[Any]], amount: Amount) -> float:
    """The smaller standard deviation of Laplace and Gaussian noise; one unit may own rows in every table."""
    reach = {
        order: [w.rows_per_unit * float(v) for w, v in zip(workloads, norms[order], strict=True)] for order in (1, 2)
    }
    laplace = float(np.sqrt(2)) * sum(reach[1]) / float(amount.epsilon)
    if amount.delta == Decimal(0):
        return laplace
    sigma = analytic_sigma(float(amount.epsilon), float(amount.delta))
    return min(laplace, sigma * float(np.linalg.norm(reach[2])))


def _restricted(workload: TableWorkload, rows: NDArray[np.int64]) -> TableWorkload:
    """The same table's workload for some rows of the batch."""
    chosen = np.isin(workload.rows, rows)
    if chosen.all():
        return workload
    return TableWorkload(workload.matrix[chosen], workload.rows[chosen], workload.rows_per_unit, workload.one_row)
