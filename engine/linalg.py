"""B = W·L⁺ in floating point, carefully, for strategies as they are measured: rounded, weighted, of any rank.

``strategy.best_reconstruction`` is its counterpart for the search, which refuses an L that does not span W.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import OpenBLASController, ThreadpoolController

_WELL_CONDITIONED = 1e-7
_RELATIVE_RANK = 1e-12
_LARGE = 1 << 20
"""Entries from which on a look for zeros is cheap beside a product."""
_MANY = 512
"""Rows of a strategy from which on a look for cells among them is cheaper than its decomposition."""


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on one thread for a while: on a busy machine two take up to forty times as long for small matrices.

    The limit is one for the whole process, so it is counted: the first to come sets it and the last to go restores
    what was there. Callers in several threads would otherwise restore one another's limit, and keep it for good.
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


class _Limit:
    """The one limit and how many want it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted = 0
        self._restore: Callable[[], None] = lambda: None

    def enter(self) -> None:
        with self._lock:
            if self._wanted == 0:
                with _in_control():
                    self._restore = _blas().limit(limits=1).restore_original_limits
            self._wanted += 1

    def leave(self) -> None:
        with self._lock:
            self._wanted -= 1
            if self._wanted == 0:
                with _in_control():
                    self._restore()


_limit = _Limit()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread change the limit: from 3.8 on threadpoolctl ignores all but the thread that was the first to.

    Nobody is in control afterwards, so that a caller who has set a limit of his own around this can take it back.
    """
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda *, force: None)
    release(force=True)
    try:
        yield
    finally:
        release(force=True)


@cache
def _blas() -> ThreadpoolController:
    """Without OpenMP, which keeps its limit per thread: another thread may come to restore it."""
    return ThreadpoolController().select(user_api="blas")


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
    if (found := by_cells(W, L)) is not None and _relative(found[1], W) <= _RELATIVE_RANK:
        return found[0]
    thin = r <= n
    Q, R = scipy.linalg.qr(L.T if thin else L, mode="economic", check_finite=False)
    diagonal = np.abs(np.diag(R))
    if diagonal.min() <= _WELL_CONDITIONED * diagonal.max():
        return _rebuild_by_svd(W, L)
    if thin:  # L = RᵀQᵀ, so B Rᵀ = W Q
        return np.ascontiguousarray(scipy.linalg.solve_triangular(R, (W @ Q).T, check_finite=False).T)
    Y = scipy.linalg.solve_triangular(R, W.T, trans="T", check_finite=False).T  # L = Q R, so B Q = W R⁻¹
    return np.ascontiguousarray(Y @ Q.T)


def is_identity(matrix: NDArray[np.float64]) -> bool:
    """Whether a matrix is I: a look at it instead of products of n³ operations and copies of n² numbers."""
    n = matrix.shape[0]
    return matrix.shape == (n, n) and bool((np.diag(matrix) == 1.0).all()) and np.count_nonzero(matrix) == n


def row_norms(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The L2 norm of every row, without a second matrix of that size."""
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    for row in np.flatnonzero(~((norms > 1e-100) & (norms < 1e100))):  # its squares may have left the floats
        peak = float(np.abs(matrix[row]).max(initial=0.0))
        norms[row] = peak * np.linalg.norm(matrix[row] / peak) if 0.0 < peak < np.inf else peak
    return np.asarray(norms)


def row_peaks(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest absolute entry of every row, without a second matrix of that size."""
    return np.asarray(np.maximum(matrix.max(axis=1, initial=0.0), -matrix.min(axis=1, initial=0.0)))


def by_cells(
    workload: NDArray[np.float64], strategy: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """B = W·L⁺ and W − B·L, for a large L that asks for every cell and a few sums besides; None for any other L.

    Let D be rows of L that share no column and whose groups of columns ("cells") L and W never tell apart: then
    L = [I; T]·D and W = X·D up to the order of rows. With (I + TᵀT)⁻¹ = I − Tᵀ·K·T, K = (I + T·Tᵀ)⁻¹
    (Woodbury), B = X·(I + TᵀT)⁻¹·[I, Tᵀ] takes m·n·p operations where a decomposition of L takes n³.
    """
    W, L = workload, strategy
    if L.shape[0] < _MANY or len(W) > 8 * L.shape[0] or 4 * np.count_nonzero(L) > L.size:
        return None
    rows, columns = np.nonzero(L)
    width = np.bincount(rows, minlength=L.shape[0])
    narrowest = np.full(L.shape[1], -1)
    order = np.lexsort((-rows, -width[rows]))  # the narrowest row of a column, the first of equals, is written last
    narrowest[columns[order]] = rows[order]
    own = np.unique(narrowest[narrowest >= 0])
    inside = np.isin(rows, own)
    if np.bincount(columns[inside], minlength=L.shape[1]).max(initial=0) > 1 or 2 * own.size < L.shape[0]:
        return None
    shape = (own.size, L.shape[1])
    D = csr_array(
        (L[rows[inside], columns[inside]], (np.searchsorted(own, rows[inside]), columns[inside])), shape=shape
    )
    inverse = (D.T / np.asarray(D.multiply(D).sum(axis=1))).tocsr()  # D has orthogonal rows
    others = np.setdiff1d(np.arange(L.shape[0]), own)
    if not others.size:  # every row of L is a cell: no sums to weigh against them, and their order is L's own
        X = times(W, inverse)
        return X, W - times(X, D)
    X, T = times(W, inverse), L[others] @ inverse
    if np.abs(T @ D - L[others]).max(initial=0.0) > _RELATIVE_RANK * np.abs(L).max():
        return None
    K = np.linalg.inv(np.eye(others.size) + T @ T.T)
    B = np.empty((W.shape[0], L.shape[0]))
    B[:, own] = X - ((X @ T.T) @ K) @ T
    B[:, others] = B[:, own] @ T.T
    return B, W - B[:, own] @ D - B[:, others] @ L[others]


def residual(workload: NDArray[np.float64], B: NDArray[np.float64], L: NDArray[np.float64]) -> float:
    """The largest entry of W − B L, each row measured against its own largest entry."""
    if B is workload and is_identity(L):
        return 0.0
    return _relative(workload - times(B, L), workload)


def times(a: NDArray[np.float64], b: NDArray[np.float64] | csr_array) -> NDArray[np.float64]:
    """a @ b, through the non-zero entries of large matrices that have few: n² operations for cells, and not n³."""
    right = csr_array(b) if isinstance(b, np.ndarray) and _is_sparse(b) else b
    left = csr_array(a) if not isinstance(right, np.ndarray) and _is_sparse(a) else a
    product = left @ right
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray())


def _is_sparse(matrix: NDArray[np.float64]) -> bool:
    return matrix.size > _LARGE and 64 * int(np.count_nonzero(matrix)) <= matrix.size


def _relative(missing: NDArray[np.float64], workload: NDArray[np.float64]) -> float:
    gap, size = row_peaks(missing), row_peaks(workload)
    return float(np.divide(gap, size, out=np.where(gap > 0, np.inf, 0.0), where=size > 0).max(initial=0.0))


def svd(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The thin decomposition; LAPACK's quick way gives up on a rare matrix, its slow way on none seen yet."""
    try:
        U, s, Vt = scipy.linalg.svd(matrix, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:
        U, s, Vt = scipy.linalg.svd(matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, s, Vt


def _rebuild_by_svd(W: NDArray[np.float64], L: NDArray[np.float64]) -> NDArray[np.float64]:
    U, s, Vt = svd(L)
    rank = int((s > _RELATIVE_RANK * s[0]).sum()) if s.size else 0
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    return np.ascontiguousarray(((W @ Vt.T) / s) @ U.T)
