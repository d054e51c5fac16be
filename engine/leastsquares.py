"""B = W·L⁺ in floating point, carefully: the only place where a strategy is inverted."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

_WELL_CONDITIONED = 1e-7
_RELATIVE_RANK = 1e-12


def one_thread() -> AbstractContextManager[object]:
    """BLAS on one thread for a while: on a busy machine two take up to forty times as long for small matrices."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1)
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def rebuild(workload: NDArray[np.float64], strategy: NDArray[np.float64]) -> NDArray[np.float64]:
    """The B of least norm with ``B @ strategy`` nearest to ``workload``.

    For independent noise of one variance it is the best linear unbiased estimator (Gauss–Markov), and any
    exact relation between rows of the workload holds between rows of B, which is what makes answers
    consistent.
    """
    W, L = workload, strategy
    r, n = L.shape
    if r == 0 or n == 0:
        return np.zeros((W.shape[0], r))
    thin = r <= n
    Q, R = scipy.linalg.qr(L.T if thin else L, mode="economic", check_finite=False)
    diagonal = np.abs(np.diag(R))
    if diagonal.min() <= _WELL_CONDITIONED * diagonal.max():
        return _rebuild_by_svd(W, L)
    if thin:  # L = RᵀQᵀ, so B Rᵀ = W Q
        return np.ascontiguousarray(scipy.linalg.solve_triangular(R, (W @ Q).T, check_finite=False).T)
    Y = scipy.linalg.solve_triangular(R, W.T, trans="T", check_finite=False).T  # L = Q R, so B Q = W R⁻¹
    return np.ascontiguousarray(Y @ Q.T)


def residual(workload: NDArray[np.float64], B: NDArray[np.float64], L: NDArray[np.float64]) -> float:
    """The largest entry of W − B L, each row measured against its own largest entry."""
    gap = np.abs(workload - B @ L).max(axis=1, initial=0.0)
    size = np.abs(workload).max(axis=1, initial=0.0)
    return float(np.divide(gap, size, out=np.where(gap > 0, np.inf, 0.0), where=size > 0).max(initial=0.0))


def _rebuild_by_svd(W: NDArray[np.float64], L: NDArray[np.float64]) -> NDArray[np.float64]:
    U, s, Vt = scipy.linalg.svd(L, full_matrices=False, check_finite=False)
    rank = int((s > _RELATIVE_RANK * s[0]).sum()) if s.size else 0
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    return np.ascontiguousarray(((W @ Vt.T) / s) @ U.T)
