"""The decisions of numerical linear algebra that the whole engine shares: rank and W·L⁺.

Rank. A matrix on a computer nearly always has full rank, by rounding. How small a singular value must be to count as
zero depends on where the matrix comes from and on what is decided. Each case has a name:

* ``rank``: a matrix that was given, such as a workload. Only the decomposition itself rounds.
* ``computed_rank`` (``NEGLIGIBLE``): a matrix that was computed, such as a strategy on its lattice or a stack of
  measurements. Its entries carry rounding too.
* ``TRUSTED``, ``TRUSTED_UNCHECKED``: a direction that a solution is divided by. It must carry digits enough.
* ``INDEPENDENT``: rows of small rationals, which depend on one another exactly or not at all.
* ``SQUARES_TOTAL``, ``SQUARES_EACH``: a matrix that is seen through its squares, AᵀA. Squaring halves the digits.

W·L⁺. ``rebuild`` gives it for an L that is measured as it is, ``reconstruct`` for one that a search considers; both
take the same three ways: cells and sums by Woodbury's identity, full rank by QR, anything else by the SVD. A sparse L
falls apart into cells and parts that share no column, and each is solved by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components
from tacit.engine.strategy import Matrix, Questions, Vector

NEGLIGIBLE = 1e-12
"""Share of the largest singular value up to which a direction of a computed matrix is rounding.

Entries on the finest lattice are rounded by 2⁻⁵¹ of the largest, and √(m·n) of them add up: 5e-13 for a thousand rows
and columns. Dividing by such a direction would turn rounding into answers.
"""
TRUSTED = 1e-10
"""Share of the largest pivot, row or singular value from which on a direction may carry answers that are then checked.

Rounding of 2⁻⁵² there is 2e-6 of the direction, and one step of refinement squares that.
"""
TRUSTED_UNCHECKED = 1e-7
"""The same where nobody checks the result: the least pivot of a QR can be a thousand times the least singular value."""
INDEPENDENT = 1e-9
"""Share of the largest pivot from which on unit rows of small rationals are independent, in a QR with pivoting.

What is decided is exact: such rows depend on one another exactly, and then the pivot is rounding (1e-15), or not at
all, and then it is far above this.
"""
SQUARES_TOTAL = 1e-5
"""Least singular value, as a share of the largest, for which AᵀA gives the sum of all to within 1e-9 of it.

Rounding of 2⁻⁵²·σ₁² moves σ² = (s·σ₁)² by that much, so σ by 2⁻⁵³/s·σ₁: at this s by 1e-11·σ₁.
"""
SQUARES_EACH = 1e-3
"""Least pivot, as a share of the largest, for which AᵀA gives every direction to within 1e-9 of itself: 2⁻⁵²/s²."""
LEFT_OVER = 1e-15
"""Share of ‖W‖ up to which what a strategy leaves of W is the rounding of the subtraction."""
RESIDUAL = 1e-9
"""Largest accepted ‖(W − B·L)ᵢ‖ / ‖Wᵢ‖ of any row: beyond it the answers would be biased visibly."""

_LARGE = 1 << 20
"""Entries from which on a look for zeros is cheap beside a product."""
_SIDE = 256
"""Cells or rows from which on a decomposition takes long enough that a quicker one is looked for."""
_MANY = 512
"""Rows of a strategy from which on a look for cells among them is cheaper than its decomposition."""


def rounding(sigma: Vector, shape: tuple[int, int]) -> float:
    """How far a decomposition may have moved the singular values of an m×n matrix: max(m, n)·2⁻⁵²·σ₁.

    The algorithms are backward stable: what they return belongs to a matrix that differs by that much in norm
    (LAPACK Users' Guide, Section 4.9).
    """
    return max(shape) * 2.0**-52 * float(sigma[0])


def rank(sigma: Vector, shape: tuple[int, int]) -> int:
    """How many singular values of a given m×n matrix, largest first, are more than ``rounding``: four times as much.

    The factor leaves room for the QR decomposition that often comes before.
    """
    return int(np.sum(sigma > 4.0 * rounding(sigma, shape))) if sigma.size and sigma[0] > 0.0 else 0


def computed_rank(sigma: Vector) -> int:
    """How many singular values of a computed matrix, largest first, are more than ``NEGLIGIBLE``."""
    return int(np.sum(sigma > NEGLIGIBLE * sigma[0])) if sigma.size else 0


def spectrum(matrix: Matrix) -> Vector:
    """The singular values of a given matrix, as far as its rank goes."""
    if min(matrix.shape) >= _SIDE:  # a third of the time, where squaring costs no digits that matter
        squares = scipy.linalg.eigvalsh(gram(matrix if matrix.shape[0] > matrix.shape[1] else matrix.T), driver="ev")
        sigma = np.sqrt(np.maximum(squares[::-1], 0.0))
        if sigma[-1] > SQUARES_TOTAL * sigma[0]:
            return np.asarray(sigma)
    sigma = scipy.linalg.svdvals(matrix, check_finite=False)
    return np.asarray(sigma[: rank(sigma, matrix.shape)])


def gram(matrix: Matrix) -> Matrix:
    """AᵀA, through the non-zero entries of a large A that has few."""
    if not _is_sparse(matrix):
        return np.asarray(matrix.T @ matrix)
    sparse = csr_array(matrix)
    return np.asarray((sparse.T @ sparse).toarray())


def is_even_triangle(matrix: Matrix) -> bool:
    """Whether a matrix is an upper triangle whose pivots are all alike: what a QR or Cholesky of full rank leaves."""
    rows, columns = matrix.shape
    if rows != columns:
        return False
    pivots = np.abs(np.diag(matrix))
    return bool(pivots.min() > SQUARES_EACH * pivots.max()) and not np.tril(matrix, -1).any()


def row_space(matrix: Matrix) -> tuple[Vector, Matrix]:
    """Σ and Qᵀ of a given matrix P·Σ·Qᵀ, as far as its rank goes: Qᵀ is an orthonormal basis of the row space."""
    _, sigma, Q = svd(matrix)
    r = rank(sigma, matrix.shape)
    return sigma[:r], Q[:r]


def svd(matrix: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """The thin decomposition; LAPACK's quick driver does not converge on a rare matrix; its slow one always has."""
    try:
        U, s, Vt = scipy.linalg.svd(matrix, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:
        U, s, Vt = scipy.linalg.svd(matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return U, s, Vt


def rebuild(workload: Matrix, strategy: Questions) -> Matrix:
    """The B of least norm with ``B @ strategy`` nearest to ``workload``: W·L⁺ for an L as it is measured, of any rank.

    For independent noise of one variance it is the best linear unbiased estimator (Gauss–Markov), and any
    exact relation between rows of the workload holds between rows of B, which is what makes answers
    consistent.
    """
    W, L = workload, strategy
    if 0 in L.shape:
        return np.zeros((W.shape[0], L.shape[0]))
    if is_identity(L):
        return W
    if not isinstance(L, np.ndarray):
        parts = _by_parts(W, csr_array(L), rebuild)
        assert parts is not None
        return parts
    if (of_cells := by_cells(W, L)) is not None and _relative(of_cells[1], W) <= NEGLIGIBLE:
        return of_cells[0]
    if (quick := _by_lu(W, L, TRUSTED_UNCHECKED)) is not None:
        return quick
    peaks = row_peaks(L)
    even = L.shape[0] >= L.shape[1] or peaks.min() > TRUSTED_UNCHECKED * peaks.max()
    B = _by_qr(W, L, TRUSTED_UNCHECKED) if even else None
    if B is None:
        U, s, Vt = svd(L)
        r = computed_rank(s)  # L⁺ itself would lose digits of a stiff L, and nothing refines B here
        B = np.ascontiguousarray(((W @ Vt[:r].T) / s[:r]) @ U[:, :r].T)
    return B


def reconstruct(workload: Matrix, strategy: Questions, *, by_row: bool = True) -> Matrix | None:
    """B = W·L⁺ with W = B·L, or None when W is not in the row space of L: the search's question about an L.

    It is not when a row (or W as a whole, without ``by_row``) is missed by more than ``RESIDUAL`` of its norm. Of all
    B with W = B·L this one has the least norm, and so the least error.
    """
    W, L = workload, strategy
    if W.shape[0] == 0 or L.shape[0] == 0:
        B, missing = np.zeros((W.shape[0], L.shape[0])), _missing_share(W, W, by_row)
        return B if missing <= RESIDUAL else None
    if is_identity(L):
        return W
    if not isinstance(L, np.ndarray):
        parts = _by_parts(W, L, lambda w, part: reconstruct(w, part, by_row=by_row))
        return parts if parts is not None and _missing_share(W - parts @ L, W, by_row) <= RESIDUAL else None
    safe = RESIDUAL / 10
    of_cells = by_cells(W, L)
    if of_cells is not None and _missing_share(of_cells[1], W, by_row) <= safe:
        return of_cells[0]
    quick = _by_lu(W, L, TRUSTED_UNCHECKED)
    if quick is None:
        quick = _by_qr(W, L, TRUSTED)
    missing = float("inf") if quick is None else _missing_share(W - quick @ L, W, by_row)
    # A row of L that is next to nothing takes rounding for a part of W: without it B may be far smaller.
    peaks = row_peaks(L)
    if quick is not None and missing <= safe and peaks.min() > TRUSTED * peaks.max():
        return quick
    inverse = pseudo_inverse(L)
    B = W @ inverse
    B = B + (W - B @ L) @ inverse  # one step of refinement: W·L⁺ loses digits of a stiff L
    missing_after = _missing_share(W - B @ L, W, by_row)
    if quick is not None:
        smaller = np.linalg.norm(B) < np.linalg.norm(quick) and missing_after <= RESIDUAL
        if not smaller and (missing <= safe or not missing_after < missing):
            B, missing_after = quick, missing
    return B if missing_after <= RESIDUAL else None


def parts_of(strategy: csr_array) -> tuple[NDArray[np.intp], list[tuple[NDArray[np.intp], NDArray[np.intp]]]]:
    """The rows of a sparse L that share no column with another ("cells"); rows and columns of every other part."""
    filled = csr_array(strategy.astype(np.bool_))
    filled.eliminate_zeros()
    shared = np.bincount(filled.indices, minlength=filled.shape[1]) > 1
    others = np.flatnonzero(filled @ shared)
    cells = np.setdiff1d(np.arange(strategy.shape[0]), others)
    if not others.size:
        return cells, []
    k, (rows, inside) = others.size, filled[others].nonzero()
    edges = coo_array((np.ones(rows.size, dtype=np.int8), (rows, inside + k)), shape=(k + filled.shape[1],) * 2)
    count, label = connected_components(edges, directed=False)
    pairs = zip(grouped(label[:k], count), grouped(label[k:], count), strict=True)
    return cells, [(others[own], columns) for own, columns in pairs if own.size]


def grouped(label: NDArray[np.integer], count: int) -> list[NDArray[np.intp]]:
    """For every label its members, in order."""
    order = np.argsort(label, kind="stable").astype(np.intp)
    ends = np.cumsum(np.bincount(label, minlength=count))
    return np.split(order, ends[:-1])


def _by_parts(W: Matrix, L: csr_array, solve: Callable[[Matrix, Matrix], Matrix | None]) -> Matrix | None:
    """W·L⁺ for a sparse L, part by part; cells are orthogonal to one another and need no decomposition."""
    cells, parts = parts_of(L)
    B = np.zeros((W.shape[0], L.shape[0]))
    own = L[cells]
    sizes = np.asarray(own.multiply(own).sum(axis=1))
    B[:, cells] = times(W, own.T.tocsr()) / np.where(sizes > 0.0, sizes, 1.0)
    for rows, inside in parts:
        asked = np.flatnonzero(W[:, inside].any(axis=1))
        of_part = solve(W[np.ix_(asked, inside)], L[rows][:, inside].toarray())
        if of_part is None:
            return None
        B[np.ix_(asked, rows)] = of_part
    return B


def _by_qr(W: Matrix, L: Matrix, least: float) -> Matrix | None:
    """W·L⁺ for an L of full row or column rank; None when a pivot is below ``least`` of the largest."""
    wide = L.shape[0] < L.shape[1]
    sizes = np.sqrt(np.einsum("ij,ij->i", L, L)) if wide else np.ones(1)
    if not sizes.all():
        return None
    # Independent rows may have any sizes: B for rows of size 1 differs by those factors only.
    Q, R = scipy.linalg.qr((L / sizes[:, None]).T if wide else L, mode="economic", check_finite=False)
    pivots = np.abs(np.diag(R))
    if pivots.min() <= least * pivots.max():
        return None
    if wide:  # L = Rᵀ·Qᵀ, so B·Rᵀ = W·Q
        half = scipy.linalg.solve_triangular(R, (W @ Q).T, check_finite=False)
        return np.ascontiguousarray(half.T / sizes)
    half = scipy.linalg.solve_triangular(R, W.T, trans="T", check_finite=False)  # L = Q·R, so B·Q = W·R⁻¹
    return np.ascontiguousarray(half.T @ Q.T)


def _by_lu(W: Matrix, L: Matrix, least: float) -> Matrix | None:
    """W·L⁻¹ for a large square L, in a third of the time of ``_by_qr``; None when its condition is above 1/least."""
    n = L.shape[1]
    if L.shape[0] != n or n < _SIDE:
        return None
    factors, pivots, singular = scipy.linalg.lapack.dgetrf(L)
    if singular or scipy.linalg.lapack.dgecon(factors, float(np.abs(L).sum(axis=0).max()))[0] <= least:
        return None
    return np.ascontiguousarray(scipy.linalg.lapack.dgetrs(factors, pivots, W.T, trans=1)[0].T)


def pseudo_inverse(matrix: Matrix) -> Matrix:
    """L⁺, as far as the ``rank`` of L goes."""
    U, s, Vt = svd(matrix)
    r = rank(s, matrix.shape)
    return np.asarray(((U[:, :r] / s[:r]) @ Vt[:r]).T)


def _missing_share(missing: Matrix, W: Matrix, by_row: bool) -> float:
    """How much of W, or of that row of W of which most is missing, is missing."""
    if not by_row:
        return float(np.linalg.norm(missing) / max(float(np.linalg.norm(W)), 1e-300))
    rows = np.sqrt(np.einsum("ij,ij->i", W, W))
    off = np.sqrt(np.einsum("ij,ij->i", missing, missing))
    return float(np.max(off[rows > 0] / rows[rows > 0], initial=0.0))


def by_cells(workload: Matrix, strategy: Matrix) -> tuple[Matrix, Matrix] | None:
    """B = W·L⁺ and W − B·L, for a large L that asks for every cell and a few sums besides; None for any other L.

    Let D be rows of L that share no column and whose groups of columns ("cells") neither L nor W splits: then
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
    cells = np.unique(narrowest[narrowest >= 0])
    inside = np.isin(rows, cells)
    if np.bincount(columns[inside], minlength=L.shape[1]).max(initial=0) > 1 or 2 * cells.size < L.shape[0]:
        return None
    shape = (cells.size, L.shape[1])
    D = csr_array(
        (L[rows[inside], columns[inside]], (np.searchsorted(cells, rows[inside]), columns[inside])), shape=shape
    )
    inverse = (D.T / np.asarray(D.multiply(D).sum(axis=1))).tocsr()  # D has orthogonal rows
    others = np.setdiff1d(np.arange(L.shape[0]), cells)
    if not others.size:  # every row of L is a cell: no sums to weigh against them, and their order is that of L
        X = times(W, inverse)
        return X, W - times(X, D)
    X, T = times(W, inverse), L[others] @ inverse
    if np.abs(T @ D - L[others]).max(initial=0.0) > NEGLIGIBLE * np.abs(L).max():
        return None
    K = np.linalg.inv(np.eye(others.size) + T @ T.T)
    B = np.empty((W.shape[0], L.shape[0]))
    B[:, cells] = X - ((X @ T.T) @ K) @ T
    B[:, others] = B[:, cells] @ T.T
    return B, W - B[:, cells] @ D - B[:, others] @ L[others]


def is_identity(matrix: Questions) -> bool:
    """Whether a matrix is I: a look at it instead of products of n³ operations and copies of n² numbers."""
    n = matrix.shape[0]
    if matrix.shape != (n, n) or not (matrix.diagonal() == 1.0).all():
        return False
    entries = np.count_nonzero(matrix) if isinstance(matrix, np.ndarray) else matrix.count_nonzero()
    return bool(entries == n)


def equal(one: Questions, other: Questions) -> bool:
    """Whether two matrices, both arrays or both sparse, have the same entries."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one.shape == other.shape and (one != other).nnz == 0)


def columns(matrix: Questions, position: NDArray[np.integer]) -> Questions:
    """The columns at these positions, as they lie best in memory."""
    chosen = matrix[:, position]
    return np.ascontiguousarray(chosen) if isinstance(chosen, np.ndarray) else chosen


def stacked(matrices: Sequence[Questions]) -> Questions:
    """One below the other; sparse if one of them is."""
    arrays = [matrix for matrix in matrices if isinstance(matrix, np.ndarray)]
    return np.vstack(arrays) if len(arrays) == len(matrices) else csr_array(vstack([csr_array(m) for m in matrices]))


def row_norms(matrix: Matrix) -> Vector:
    """The L2 norm of every row, without a second matrix of that size."""
    norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    for row in np.flatnonzero(~((norms > 1e-100) & (norms < 1e100))):  # its squares may have left the floats
        peak = float(np.abs(matrix[row]).max(initial=0.0))
        norms[row] = peak * np.linalg.norm(matrix[row] / peak) if 0.0 < peak < np.inf else peak
    return np.asarray(norms)


def row_peaks(matrix: Matrix) -> Vector:
    """The largest absolute entry of every row, without a second matrix of that size."""
    return np.asarray(np.maximum(matrix.max(axis=1, initial=0.0), -matrix.min(axis=1, initial=0.0)))


def residual(workload: Matrix, B: Matrix, L: Questions) -> float:
    """The largest entry of W − B L, each row measured against its own largest entry."""
    if is_identity(L) and (B is workload or np.array_equal(B, workload)):
        return 0.0
    return _relative(workload - times(B, L), workload)


def times(a: Matrix, b: Questions) -> Matrix:
    """a @ b, through the non-zero entries of large matrices that have few: n² operations for cells, and not n³."""
    right = csr_array(b) if isinstance(b, np.ndarray) and _is_sparse(b) else b
    left = csr_array(a) if not isinstance(right, np.ndarray) and _is_sparse(a) else a
    product = left @ right
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray())


def _is_sparse(matrix: Matrix) -> bool:
    return matrix.size > _LARGE and 64 * int(np.count_nonzero(matrix)) <= matrix.size


def _relative(missing: Matrix, workload: Matrix) -> float:
    gap, size = row_peaks(missing), row_peaks(workload)
    return float(np.divide(gap, size, out=np.where(gap > 0, np.inf, 0.0), where=size > 0).max(initial=0.0))
