"""What the search for a strategy gives back: a factorisation W = B·L and what it costs.

The mechanism asks L·x with noise and answers B·(L·x + noise). Everything here is a function of the workload
alone; no data is ever seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from tacit.engine.linalg import by_cells
from tacit.errors import InternalError

Matrix: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float64]
Privacy: TypeAlias = Literal["pure", "approximate"]
TracePoint: TypeAlias = tuple[float, float, float]

RESIDUAL = 1e-9
"""Largest accepted ‖(W − B·L)ᵢ‖ / ‖Wᵢ‖ of any row: beyond it the answers would be biased visibly."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """A factorisation W = B·L with its cost and its certificate.

    Guarantee: ``sensitivity`` is the largest column norm of ``L`` (L1 when ``privacy`` is pure, L2 when
    approximate). Neighbours differ by one unit in one cell, so L·x moves by at most ``sensitivity`` in that
    norm, and Laplace noise of scale sensitivity/ε (LRM, Eq. 6) or Gaussian noise of σ(ε, δ)·sensitivity (COA,
    Eq. 2) on L·x is private; B is applied afterwards and costs nothing. ``error`` is sensitivity²·‖B‖²_F
    (LRM, Lemma 1; COA, Eq. 3), the total squared error but for the noise's own constant. No factorisation of
    this kind has an error below ``lower_bound``.
    """

    name: str
    privacy: Privacy
    L: Matrix
    B: Matrix
    sensitivity: float
    error: float
    lower_bound: float
    seconds: float
    trace: tuple[TracePoint, ...]

    @property
    def gap(self) -> float:
        """How far above the lower bound the error is, as a fraction: 0.001 is 0.1 %."""
        return self.error / self.lower_bound - 1.0 if self.lower_bound > 0 else 0.0

    def __repr__(self) -> str:
        (m, n), r = (self.B.shape[0], self.L.shape[1]), self.L.shape[0]
        return (
            f"Strategy({self.name}, {self.privacy}: {m}×{n} through {r} questions, "
            f"error {self.error:.6g}, lower bound {self.lower_bound:.6g})"
        )


def column_norms(strategy: Matrix, privacy: Privacy) -> Vector:
    """The norm of every column: L1 for pure, L2 for approximate."""
    if privacy == "pure":
        return np.asarray(np.abs(strategy).sum(axis=0), dtype=np.float64)
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", strategy, strategy)), dtype=np.float64)


def sensitivity(strategy: Matrix, privacy: Privacy) -> float:
    """The largest column norm of L.

    Guarantee: for neighbours that differ by one unit in one cell, ‖L·x − L·x′‖ is at most this, in L1 (pure)
    or L2 (approximate): the difference is one column of L (LRM, Section 3; COA, Section 2). The figure is a
    float for comparing strategies; what calibrates noise is recomputed in exact integers on the rounded L.
    """
    norms = column_norms(strategy, privacy)
    return float(norms.max()) if norms.size else 0.0


def best_reconstruction(workload: Matrix, strategy: Matrix, *, by_row: bool = True) -> Matrix:
    """B = W·L⁺, the B of least norm (so of least error) with W = B·L; it makes the answers consistent.

    Raises InternalError when W is not in the row space of L: when a row (or W as a whole, without ``by_row``)
    is missed by more than ``RESIDUAL`` of its norm.
    """
    W, L = workload, strategy
    if W.shape[0] == 0 or L.shape[0] == 0:
        return np.zeros((W.shape[0], L.shape[0]))
    found = by_cells(W, L)
    if found is not None and _share(found[1], W, by_row) <= RESIDUAL / 10:
        return found[0]
    B = _by_qr(W, L)
    off = float("inf") if B is None else _share(W - B @ L, W, by_row)
    # A row of L that is next to nothing takes rounding for a part of W: without it B may be far smaller.
    sizes = np.abs(L).max(axis=1)
    if B is None or not off <= RESIDUAL / 10 or sizes.min() <= 1e-10 * sizes.max():
        inverse = scipy.linalg.pinv(L, rtol=max(L.shape) * 1e-15)
        plain = W @ inverse
        plain = plain + (W - plain @ L) @ inverse  # one step of refinement: it loses digits of a stiff L
        missing = _share(W - plain @ L, W, by_row)
        smaller = B is None or np.linalg.norm(plain) < np.linalg.norm(B)
        if B is None or (smaller and missing <= RESIDUAL) or (missing < off and not off <= RESIDUAL / 10):
            B, off = plain, missing
    if not off <= RESIDUAL:
        raise InternalError("the strategy does not span the workload")
    return B


def _by_qr(W: Matrix, L: Matrix) -> Matrix | None:
    """W·L⁺ for an L of full row or column rank; None when L is close to losing it."""
    wide = L.shape[0] < L.shape[1]
    sizes = np.sqrt(np.einsum("ij,ij->i", L, L)) if wide else np.ones(1)
    if not sizes.all():
        return None
    # Independent rows may have any sizes: B for rows of size 1 differs by those factors only.
    Q, R = scipy.linalg.qr((L / sizes[:, None]).T if wide else L, mode="economic", check_finite=False)
    pivots = np.abs(np.diag(R))
    if pivots.min() <= 1e-10 * pivots.max():
        return None
    if wide:  # L = Rᵀ·Qᵀ
        half = scipy.linalg.solve_triangular(R, (W @ Q).T, check_finite=False)
        return np.asarray(half.T / sizes)
    half = scipy.linalg.solve_triangular(R, W.T, trans="T", check_finite=False)
    return np.asarray(half.T @ Q.T)


def _share(missing: Matrix, W: Matrix, by_row: bool) -> float:
    """How much of W, or of that row of W of which most is missing, is missing."""
    if not by_row:
        return float(np.linalg.norm(missing) / max(float(np.linalg.norm(W)), 1e-300))
    rows = np.sqrt(np.einsum("ij,ij->i", W, W))
    off = np.sqrt(np.einsum("ij,ij->i", missing, missing))
    return float(np.max(off[rows > 0] / rows[rows > 0], initial=0.0))
