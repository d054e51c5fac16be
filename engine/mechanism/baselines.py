"""What the batch would cost without a strategy: three alternatives, priced at the same (ε, δ).

Each alternative may choose between Laplace and Gaussian noise when δ > 0, and has Laplace noise on the integers where
its questions are whole counts, as tacit does, so that a comparison shows what the strategy is worth and not what the
calibration is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.amounts import Amount, to_amount
from tacit.engine.linalg import row_norms, row_peaks
from tacit.engine.mechanism.calibrate import analytic_sigma
from tacit.engine.mechanism.noise import variance
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
    norms = [_column_norms(workload.matrix, size[workload.rows]) for workload in workloads]
    return size * _noise(workloads, norms, amount)


class _Norms(NamedTuple):
    """Of the questions that are asked of one table: the largest norms of a column, and whether all are integers."""

    first: float
    second: float
    integers: bool


def _column_norms(matrix: NDArray[np.float64], size: Vector) -> _Norms:
    """Once every row is divided by its size; some rows at a time."""
    first, second = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    integers = True
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        part = np.abs(matrix[rows]) / size[rows, None]
        first += part.sum(axis=0)
        second += np.einsum("ij,ij->j", part, part)
        integers = integers and np.array_equal(part, np.rint(part))
    return _Norms(float(first.max(initial=0.0)), float(np.sqrt(second.max(initial=0.0))), integers)


def _histogram(workloads: Sequence[TableWorkload], rows: int, amount: Amount) -> Vector:
    noise = _noise(workloads, [_Norms(1.0, 1.0, integers=True)] * len(workloads), amount)
    result = np.zeros(rows)
    for workload in workloads:
        result[workload.rows] = noise * row_norms(workload.matrix)
    return result


def _noise(workloads: Sequence[TableWorkload], norms: Sequence[_Norms], amount: Amount) -> float:
    """The smaller standard deviation of Laplace and Gaussian noise; one unit may own rows in every table."""
    if not workloads:
        return 0.0
    rows = [workload.rows_per_unit for workload in workloads]
    scale = sum(k * norm.first for k, norm in zip(rows, norms, strict=True)) / float(amount.epsilon)
    whole = all(workload.one_row == 1 and norm.integers for workload, norm in zip(workloads, norms, strict=True))
    laplace = math.sqrt(variance("laplace", scale)) if whole else math.sqrt(2) * scale
    if amount.delta == Decimal(0):
        return laplace
    sigma = analytic_sigma(float(amount.epsilon), float(amount.delta))
    return min(laplace, sigma * float(np.linalg.norm([k * norm.second for k, norm in zip(rows, norms, strict=True)])))


def _restricted(workload: TableWorkload, rows: NDArray[np.int64]) -> TableWorkload:
    """The same table's workload for some rows of the batch."""
    chosen = np.isin(workload.rows, rows)
    if chosen.all():
        return workload
    return TableWorkload(workload.matrix[chosen], workload.rows[chosen], workload.rows_per_unit, workload.one_row)
