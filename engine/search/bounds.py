"""What no strategy can beat, as functions of the workload, and what no private mechanism of any kind can.

All figures but the last are in the unit of ``Strategy.error``: sensitivity²·‖B‖²_F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from tacit.engine.linalg import SQUARES_TOTAL, rank, rounding, svd
from tacit.engine.search.reduce import compress_rows, merge_columns
from tacit.engine.strategy import Matrix, Vector

ROUNDING = 1e-12
"""A bound is lowered by this fraction per unit of √(m·n): singular values carry that much rounding."""
_TURNS, _WORK, _GAIN = 30, 3e8, 1.0003
"""A basis is turned so often, for so many operations, and while it gains so much: each turn decomposes a matrix."""


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual of COA's Program (9) at weights d: W·diag(√d) = P·Σ·Qᵀ."""

    trace: float
    """tr Σ."""
    certain: float
    """The part of it that squaring W·diag(√d) cannot have blurred: its square bounds from below."""
    leverage: Vector
    """(Q·Σ·Qᵀ)_jj / d_j: the squared column norms of ``half``; all equal where d > 0 at the optimum."""
    half: Matrix
    """Σ^(-1/2)·Pᵀ·W, which is the strategy √Σ·Qᵀ·diag(1/√d)."""
    spectrum: Vector
    complete: bool
    """Whether no singular value was too small to be seen: only then is ``half`` a strategy for all of W."""


def dual_point(workload: Matrix, weights: Vector) -> Dual:
    """Evaluate the dual by one eigen-decomposition of the row side; W must have full row rank.

    The row side is the small one once W is written over a basis of its row space, and no regularisation of
    WᵀW (COA, Eq. 8) is needed there. Squaring loses singular values below 1e-8 of the largest: a spectrum that
    comes near that is decomposed as it is, which takes several times as long.
    """
    scaled = workload * np.sqrt(weights)
    squares, P = scipy.linalg.eigh(scaled @ scaled.T, driver="evd", check_finite=False)
    sigma = np.sqrt(np.maximum(squares, 0.0))
    if sigma[0] > SQUARES_TOTAL * sigma[-1]:
        half = (P / np.sqrt(sigma)).T @ workload
        certain = float(sigma.sum()) * (1.0 - 1e-9)
        complete = True
    else:
        _, sigma, Q = svd(scaled)
        certain = max(0.0, float(sigma.sum()) * (1.0 - 1e-9) - rounding(sigma, scaled.shape) * sigma.size)
        r = rank(sigma, scaled.shape)
        complete = r == sigma.size
        sigma, Q = sigma[:r], np.ascontiguousarray(Q[:r])
        half = np.sqrt(sigma)[:, None] * Q / np.sqrt(weights)
    leverage = np.einsum("ij,ij->j", half, half)
    return Dual(float(sigma.sum()), certain, leverage, half, sigma, complete)


def dual_bound(workload: Matrix, weights: Vector) -> float:
    """(tr Σ)²/Σd for W·diag(√d) = P·Σ·Qᵀ: a lower bound on the error of every strategy, whatever d ≥ 0 is.

    For L with column norms at most 1, tr Σ = ‖W·D^½‖_* ≤ ‖B‖_F·‖L·D^½‖_F ≤ ‖B‖_F·√Σd. It holds in L2 and so
    in L1 too, whose unit ball is inside.
    """
    total = float(weights.sum())
    if total <= 0.0 or workload.size == 0:
        return 0.0
    sigma = scipy.linalg.svdvals(workload * np.sqrt(weights), check_finite=False)
    slack = 1.0 - ROUNDING * math.sqrt(workload.size)
    return float(sigma.sum()) ** 2 / total * slack


def absolute_bound(workload: Matrix, weights: Vector, multipliers: Vector, cells: Vector) -> float:
    """A lower bound on Σ ω_i·√(error of i), for weights ω and whatever multipliers λ > 0 and d ≥ 0 of the cells are.

    Let diag(√λ)·W·diag(√d) = P·Σ·Qᵀ and N = Q·Pᵀ, and take any W = B·L whose columns of L have norms of at most 1. With
    g_i = L·diag(√d)·N_i, Cauchy and Schwarz give p_i = w_i·diag(√d)·N_i = B_i·g_i ≤ ‖B_i‖·‖g_i‖, where p_i is
    (P·Σ·Pᵀ)_ii/√λ_i. ‖N‖ ≤ 1, so Σ‖g_i‖² ≤ ‖L·diag(√d)‖²_F ≤ Σd. So the measure is at least Σ ω_i·p_i/‖g_i‖, which by
    Hölder is at least (Σ (ω_i·p_i)^⅔)^(3/2)/√Σd. It holds in L2, and so in L1 too.
    """
    m, n = workload.shape
    scaled = workload * np.sqrt(multipliers)[:, None] * np.sqrt(cells)
    if m > n:
        left, R = scipy.linalg.qr(scaled, mode="economic", check_finite=False)
        P, sigma, _ = svd(np.asarray(R, dtype=np.float64))
        P = left @ P
    else:
        P, sigma, _ = svd(scaled)
    p = np.maximum((P * P) @ sigma / np.sqrt(multipliers), 0.0)
    slack = 1.0 - 1e-9 - ROUNDING * math.sqrt(workload.size)
    total = float(np.sum((weights * p) ** (2 / 3)))
    return total * math.sqrt(total / float(cells.sum())) * slack


def svd_bound(workload: Matrix) -> float:
    """‖W‖_*²/n, the SVD bound of the matrix mechanism (COA, Lemma 4): ``dual_bound`` at equal weights."""
    return dual_bound(workload, np.ones(workload.shape[1]))


def direction_bound(workload: Matrix) -> float:
    """Σ_k max_j (u_k·w_j)² over an orthonormal basis u of the space of answers, w_j the columns of W.

    It is what ``calibrate.least_error`` needs of W: whatever the mechanism, its error in direction u_k is that of a
    private count times |u_k·w_j|. Every basis gives a bound. Three are tried: the queries themselves, the singular
    vectors, and the columns of W made orthogonal, the longest rest first (QR with pivots); then the best one is turned
    towards the columns that it points at, which never makes the sum smaller.
    """
    W = merge_columns(np.asarray(workload, dtype=np.float64))[0]
    scale = float(np.abs(W).max(initial=0.0))
    if scale == 0.0:
        return 0.0
    W = W / scale
    by_query = float(np.square(W).max(axis=1).sum())
    R = compress_rows(W)  # only WᵀW matters to a basis that is free
    Q = scipy.linalg.qr(R, mode="economic", pivoting=True, check_finite=False)[0]
    U = max((np.asarray(Q, dtype=np.float64), svd(R)[0]), key=lambda basis: _furthest(basis, R)[1])
    best = _furthest(U, R)[1]
    for _ in range(min(_TURNS, int(_WORK / min(R.shape) ** 3))):
        aims = R[:, _furthest(U, R)[0]]
        left, _, right = svd(aims * np.einsum("mk,mk->k", U, aims))
        U = left @ right  # of all orthonormal U the one with the largest Σ_k u_k·aim_k
        before, best = best, max(best, _furthest(U, R)[1])
        if best <= before * _GAIN:
            break
    slack = 1e-9 + ROUNDING * math.sqrt(W.size)  # the basis and R may be off by so much
    return max(best, by_query) * scale**2 * (1.0 - slack)


def _furthest(basis: Matrix, workload: Matrix) -> tuple[NDArray[np.intp], float]:
    """For every direction of the basis the column of W that reaches furthest in it, and the squares of how far."""
    squares = np.square(basis.T @ workload)
    return squares.argmax(axis=1), float(squares.max(axis=1).sum())
