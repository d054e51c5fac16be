"""Strategies of small integers, for tables of whole rows: noise on the integers themselves has less variance.

Laplace noise of scale b on the integers has h = (t/sinh t)² of the variance of continuous noise, t = 1/2b
(``noise.variance``). For an integer strategy of norm c at ε, b = c/ε: the smaller the norm, the more is gained, and at
a small ε nothing is. So the strategy with the least error need not be the best one at a large ε. Tried in its place
are the histogram of the cells that the batch tells apart, its results as they are, and the strategy itself in multiples
of 1/N of its sensitivity, N = 1 … 8. Which one is taken depends on the workload and on ε, never on a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tacit.engine.linalg import RESIDUAL, rebuild, residual, row_norms
from tacit.engine.measures import Measure, measured
from tacit.engine.mechanism.exact import IntegerMatrix, largest_column_norm
from tacit.engine.mechanism.lattice import Lattice, integer_multiple, real
from tacit.engine.mechanism.noise import variance
from tacit.engine.mechanism.plan import JointPlan
from tacit.engine.mechanism.table_plan import PartPlan, ProductPlan, TablePlan
from tacit.engine.mechanism.widths import lattice_spread
from tacit.engine.search.reduce import merge_columns
from tacit.engine.strategy import fits, written
from tacit.process import one_blas_thread

Matrix = NDArray[np.float64]

_MULTIPLES = range(1, 9)
_GAIN, _CLEAR_GAIN = 0.999, 0.97
"""The histogram is tried where its noise has less than the first share of the variance of continuous noise; strategies
whose B has to be computed where theirs has less than the second."""
_LARGEST_SIDE = 512
"""Beyond it B takes seconds to compute, and only the histogram is tried, which needs none."""


def on_integers(plan: JointPlan, epsilon: float) -> JointPlan:
    """The plan with a strategy of small integers for each table where one has less error at ε; of Laplace noise only.

    Guarantee: as ``JointPlan.calibrate``, which holds for every lattice; the shares of ε stay as they are.
    """
    if plan.privacy != "pure":
        return plan
    with one_blas_thread():
        parts = tuple(_best(part, epsilon * float(part.share), plan.measure) for part in plan.parts)
    return plan if all(a is b for a, b in zip(parts, plan.parts, strict=True)) else replace(plan, parts=parts)


def _best(part: PartPlan, epsilon: float, measure: Measure) -> PartPlan:
    if isinstance(part, ProductPlan):  # tables of whole counts are asked on the integers as they are
        return part
    if part.workload.one_row != 1 or _share(epsilon / part.workload.rows_per_unit) >= _GAIN:
        return part  # x holds fractions of rows, or no strategy of integers has a smaller norm than 1
    return min((part, *_candidates(part, epsilon, measure)), key=lambda one: _error(one, epsilon, measure))


def _error(part: TablePlan, epsilon: float, measure: Measure) -> float:
    """The expected error of the scaled and weighted rows, in the plan's measure."""
    reach = part.workload.rows_per_unit * part.lattice.norm
    stddev = math.ldexp(math.sqrt(variance("laplace", reach / epsilon)), part.lattice.exponent)
    return measured(stddev * part.row_weights * row_norms(part.lattice.B), measure)


def _candidates(part: TablePlan, epsilon: float, measure: Measure) -> Iterator[TablePlan]:
    W, current = part.workload.matrix, _error(part, epsilon, measure)
    per_row = epsilon / part.workload.rows_per_unit
    merged, position = merge_columns(W)
    used = merged.any(axis=0)
    B = merged[:, used]
    stddev = math.sqrt(variance("laplace", 1 / per_row))
    if measured(stddev * part.row_weights * row_norms(B), measure) < current:
        yield _made(part, "identity", _histogram(np.asarray(used), position), B, measure)
    if max(*W.shape, part.lattice.questions) > _LARGEST_SIDE:
        return
    for name, L_int in _integer_strategies(part, per_row):
        norm = largest_column_norm(L_int, 1)
        if _share(per_row / norm) >= _CLEAR_GAIN:
            continue
        B = rebuild(W, L_int.astype(np.float64))
        if residual(W, B, L_int.astype(np.float64)) <= RESIDUAL:
            yield _made(part, name, L_int, B, measure)


def _histogram(used: NDArray[np.bool_], position: NDArray[np.intp]) -> IntegerMatrix:
    """The count of every distinct column that is used, over all columns."""
    inside = np.flatnonzero(used[position])
    rows = (np.cumsum(used) - 1)[position[inside]]
    shape = (int(used.sum()), position.size)
    L_int = csr_array((np.ones(inside.size, dtype=np.int64), (rows, inside)), shape=shape)
    return np.asarray(L_int.toarray()) if fits(*shape, inside.size) else L_int


def _integer_strategies(part: TablePlan, per_row: float) -> Iterator[tuple[str, NDArray[np.int64]]]:
    results = integer_multiple(part.workload.matrix)
    if results is not None:
        yield "results", results
    L = written(part.strategy.L) / part.strategy.sensitivity
    for n in _MULTIPLES:
        if _share(per_row / n) >= _CLEAR_GAIN:
            break
        rounded = np.rint(n * L)
        integers = integer_multiple(rounded[rounded.any(axis=1)])
        if integers is not None:
            yield part.strategy.name, integers


def _share(epsilon: float) -> float:
    """Of the variance of continuous noise, what noise on integers of sensitivity 1 has."""
    return float(lattice_spread(np.array([epsilon]))[0]) ** 2


def _made(part: TablePlan, name: str, L_int: IntegerMatrix, B: Matrix, measure: Measure) -> TablePlan:
    norm = largest_column_norm(L_int, 1)
    L = real(L_int, 0)
    weighed = B * part.row_weights[:, None]
    strategy = replace(
        part.strategy,
        name=name,
        L=L,
        B=weighed,
        sensitivity=float(norm),
        error=measured(norm * row_norms(weighed), measure),
    )
    lattice = Lattice("pure", L_int, 0, norm, B, residual(part.workload.matrix, B, L))
    return replace(part, strategy=strategy, lattice=lattice)
