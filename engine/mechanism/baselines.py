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
from tacit.engine.mechanism import viewed
from tacit.engine.mechanism.calibrate import analytic_sigma
from tacit.engine.mechanism.noise import variance
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.product_workload import kron
from tacit.errors import ProgrammingError

Vector = NDArray[np.float64]

_ROWS_AT_ONCE = 256


AnyWorkload = TableWorkload | ProductTable


def baselines(
    workloads: Sequence[AnyWorkload],
    query_of_row: Sequence[int] | NDArray[np.int64],
    epsilon: Any,
    delta: Any = 0,
) -> dict[str, Vector]:
    """Standard error of each row of the batch, for each alternative.

    ``split``: every query alone with an equal part of (ε, δ). ``results``: noise on every result at
    once. ``histogram``: noise on every cell, and every row added up from the cells. Of a table whose cells are not
    listed, the norm of all results is the sum of those of its groups of rows: for marginals, that is what it is.
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


def _split(workloads: Sequence[AnyWorkload], queries: NDArray[np.int64], amount: Amount) -> Vector:
    result = np.zeros(len(queries))
    names = np.unique(queries)
    part = Amount(amount.epsilon / len(names), amount.delta / len(names)) if len(names) else amount
    rows_of = np.split(np.argsort(queries, kind="stable"), np.cumsum(np.unique(queries, return_counts=True)[1])[:-1])
    rest = _alone(workloads, queries, part, result)
    for rows in (rows for rows in rows_of if rest[rows].any()):
        chosen = np.zeros(len(queries), dtype=np.bool_)
        chosen[rows] = True
        alone = [workload.only(chosen) for workload in workloads]
        result += _results([workload for workload in alone if len(workload.rows)], len(queries), part)
    return result


def _alone(
    workloads: Sequence[AnyWorkload], queries: NDArray[np.int64], amount: Amount, result: Vector
) -> NDArray[np.bool_]:
    """Write the rows that are a query by themselves, where that is quicker than one by one; which rows are left."""
    counts = np.bincount(queries)[queries] if len(queries) else np.zeros(0)
    left = np.ones(len(queries), dtype=np.bool_)
    for table in (w for w in workloads if isinstance(w, ProductTable) and w.is_viewed):
        inside = counts[table.rows] == 1
        noise = _noise([table], [_Norms(1.0, 1.0, integers=not table.products.summed)], amount)
        result[table.rows[inside]] = noise * table.row_peaks[inside]
        left[table.rows[inside]] = False
    return left


def _results(workloads: Sequence[AnyWorkload], rows: int, amount: Amount) -> Vector:
    """Noise on every row, in units of its largest entry, which is how tacit itself weighs rows."""
    size = np.zeros(rows)
    for workload in workloads:
        size[workload.rows] = workload.row_peaks
    norms = [
        _column_norms(w.matrix, size[w.rows]) if isinstance(w, TableWorkload) else _product_norms(w) for w in workloads
    ]
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


def _product_norms(table: ProductTable) -> _Norms:
    """Of all rows of a table, each of a largest entry of 1."""
    first, second, integers = 0.0, 0.0, True
    if table.is_viewed and (norms := viewed.result_norms(table)) is not None:
        return _Norms(*norms, integers=not table.products.summed)
    for group in table.products.groups:
        scaled = [np.abs(factor) / row_peaks(factor)[:, None] for factor in group.factors]
        first += math.prod(float(factor.sum(axis=0).max()) for factor in scaled)
        second += math.prod(float(np.square(factor).sum(axis=0).max()) for factor in scaled)
        integers = integers and all(np.array_equal(factor, np.rint(factor)) for factor in scaled)
    return _Norms(first, math.sqrt(second), integers)


def _histogram(workloads: Sequence[AnyWorkload], rows: int, amount: Amount) -> Vector:
    noise = _noise(workloads, [_Norms(1.0, 1.0, integers=True)] * len(workloads), amount)
    result = np.zeros(rows)
    for workload in workloads:
        norms = row_norms(workload.matrix) if isinstance(workload, TableWorkload) else _from_every_cell(workload)
        result[workload.rows] = noise * norms
    return result


def _from_every_cell(table: ProductTable) -> Vector:
    """The length of every row over all cells, which are not listed; of a combination, the sum of its rows' lengths."""
    if table.is_viewed:
        return viewed.lengths(table)
    products = table.products
    lengths = np.zeros(table.combination.shape[1])
    for group in products.groups:
        beside = math.prod(math.sqrt(n) for axis, n in enumerate(products.sizes) if axis not in group.by_axis)
        lengths[group.rows] = beside * kron([row_norms(factor) for factor in group.factors])
    return np.asarray(abs(table.combination) @ lengths)


def _noise(workloads: Sequence[AnyWorkload], norms: Sequence[_Norms], amount: Amount) -> float:
    """The smaller standard deviation of Laplace and Gaussian noise; one unit may own rows in every table."""
    if not workloads:
        return 0.0
    rows = [workload.rows_per_unit for workload in workloads]
    scale = sum(k * norm.first for k, norm in zip(rows, norms, strict=True)) / float(amount.epsilon)
    whole = all(_is_whole(workload) and norm.integers for workload, norm in zip(workloads, norms, strict=True))
    laplace = math.sqrt(variance("laplace", scale)) if whole else math.sqrt(2) * scale
    if amount.delta == Decimal(0):
        return laplace
    sigma = analytic_sigma(float(amount.epsilon), float(amount.delta))
    return min(laplace, sigma * float(np.linalg.norm([k * norm.second for k, norm in zip(rows, norms, strict=True)])))


def _is_whole(workload: AnyWorkload) -> bool:
    return workload.one_row == 1 if isinstance(workload, TableWorkload) else not workload.products.summed
