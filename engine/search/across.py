"""What no plan over several tables can beat, not even one whose questions mix the tables' cells.

One privacy unit may own rows in every table. Adding it adds v = (v_1, …, v_T) to the stacked cells x = (x_1, …, x_T):
table t gets at most k_t rows, each a convex mix of unit vectors, so v_t is in k_t·conv{0, e_1, …, e_n}; removing it
takes v away, so all tables move with one sign. The moves are therefore ± a product of simplices. A norm is convex, so
over that set ‖L·v‖ is largest at a corner: for every table either nothing or k_t rows in one cell j_t.

Guarantee. The sensitivity of any L over the stacked cells is the largest ‖Σ_t k_t·L·e_(t, j_t)‖ over those corners,
that is the largest column norm of L·V, where the columns of V are the corners. With W = B·L, W·V = B·(L·V) is a
workload over the corners with that strategy, and every lower bound for W·V holds for W, for questions that mix
tables too. For weights d ≥ 0 on the corners that sum to one, the bound of ``bounds.dual_bound`` is (tr √(W·G·Wᵀ))² with
G = V·diag(d)·Vᵀ. It is an L2 bound, so it holds in L1 as well. Leaving corners out leaves a bound.

Questions that mix tables do win: of two counts, x₁ + x₂ and x₁ − x₂ have half the squared error of x₁ and x₂.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from tacit.engine.search.bounds import dual_point
from tacit.engine.search.reduce import merge_columns, merge_rows
from tacit.engine.search.strategies.dual import dual, row_basis
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Vector
from tacit.process import one_blas_thread

_CORNERS = 1024
"""Corners up to which all of them are looked at."""
_CELLS = 256
"""Cells, all tables together, up to which one distribution of the unit's rows is evaluated."""
_ROUNDS = 30
_SLACK = 1 - 1e-9


@dataclass(frozen=True, eq=False)
class Share:
    """One table's part of a joint workload."""

    workload: Matrix
    rows_per_unit: int
    lower_bound: float
    """For strategies of this table alone, at one row per unit; a dual bound."""


def joint_bound(tables: Sequence[Share]) -> float:
    """No strategy over the cells of all the tables, mixed or not, has a smaller error."""
    if len(tables) == 1:
        return tables[0].rows_per_unit ** 2 * tables[0].lower_bound
    bounds = [_one_at_a_time(tables), _everywhere(tables)]
    reduced = [merge_columns(t.workload[:, t.workload.any(axis=0)])[0] for t in tables]
    with one_blas_thread():
        if math.prod(W.shape[1] + 1 for W in reduced) <= _CORNERS:
            bounds.append(_all_corners(reduced, [t.rows_per_unit for t in tables]))
        elif sum(W.shape[1] for W in reduced) <= _CELLS:
            bounds.append(_independent(reduced, [t.rows_per_unit for t in tables]))
    return max(bounds) * _SLACK


def corners(cells: Sequence[int], rows_per_unit: Sequence[int]) -> Matrix:
    """V: for every table nothing or all k rows in one cell, without the corner that is nothing at all."""
    choices = np.indices([n + 1 for n in cells]).reshape(len(cells), -1)[:, 1:]
    parts = [
        k * np.vstack([np.zeros((1, n)), np.eye(n)]).T[:, chosen]
        for n, k, chosen in zip(cells, rows_per_unit, choices, strict=True)
    ]
    return np.vstack(parts)


def _one_at_a_time(tables: Sequence[Share]) -> float:
    """Corners with rows in one table only: G has the blocks q_t·k_t²·G_t, and Σ_t k_t²·bound_t is its best at any q."""
    return sum(t.rows_per_unit**2 * t.lower_bound for t in tables)


def _everywhere(tables: Sequence[Share]) -> float:
    """A unit that is in every table, its cells drawn independently from the weights π_t behind each table's own bound.

    Then W·G·Wᵀ is at least the blocks k_t²·(A_t − u_t·u_tᵀ), A_t = W_t·diag(π_t)·W_tᵀ and u_t = W_t·π_t. tr √ is
    monotone and subadditive, so tr √(A − u·uᵀ) ≥ tr √A − ‖u‖, and ‖u_t‖ is at most the largest column norm of W_t.
    """
    total = 0.0
    for t in tables:
        largest = math.sqrt(float(np.einsum("ij,ij->j", t.workload, t.workload).max(initial=0.0)))
        total += t.rows_per_unit * max(0.0, math.sqrt(t.lower_bound) - largest)
    return total**2


def _all_corners(workloads: Sequence[Matrix], rows_per_unit: Sequence[int]) -> float:
    """The optimum over all distributions, nearly: it is what questions that mix tables reach in L2."""
    V = corners([W.shape[1] for W in workloads], rows_per_unit)
    whole = scipy.linalg.block_diag(*(merge_rows(W) for W in workloads)) @ V
    watch = Watch(target_gap=1e-3)
    dual(whole, "approximate", watch)
    return watch.lower_bound


def _independent(workloads: Sequence[Matrix], rows_per_unit: Sequence[int]) -> float:
    """The distribution of ``_everywhere``, evaluated as it is, at weights that are nearly each table's best."""
    bases = [row_basis(merge_rows(W)) for W in workloads]
    squares, means = [], []
    for W, k in zip(bases, rows_per_unit, strict=True):
        weights = _weights(W)
        squares.append(k * k * (W * weights) @ W.T)
        means.append(k * W @ weights)
    whole = scipy.linalg.block_diag(*(A - np.outer(u, u) for A, u in zip(squares, means, strict=True)))
    u = np.concatenate(means)
    spectrum = scipy.linalg.eigvalsh(whole + np.outer(u, u), check_finite=False)
    return float(np.sqrt(np.maximum(spectrum, 0.0)).sum()) ** 2


def _weights(W: Matrix) -> Vector:
    """The fixed point of ``strategies.dual``, from a few plain rounds."""
    d = np.full(W.shape[1], 1 / W.shape[1])
    for _ in range(_ROUNDS):
        d = d * dual_point(W, d).leverage
        d /= d.sum()
    return np.asarray(d)
