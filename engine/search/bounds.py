"""What no strategy can beat, as functions of the workload.

All figures are in the unit of ``Strategy.error``: sensitivity²·‖B‖²_F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from tacit.engine.linalg import SQUARES_TOTAL, rank, rounding, svd
from tacit.engine.strategy import Matrix, Vector

ROUNDING = 1e-12
"""A bound is lowered by this fraction per unit of √(m·n): singular values carry that much rounding."""


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


def svd_bound(workload: Matrix) -> float:
    """‖W‖_*²/n, the SVD bound of the matrix mechanism (COA, Lemma 4): ``dual_bound`` at equal weights."""
    return dual_bound(workload, np.ones(workload.shape[1]))
