"""Rows that a strategy lacks: what a search has lost of a nearly singular workload is asked for all the same."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from tacit.engine.strategy import Matrix, Privacy, best_reconstruction, sensitivity
from tacit.errors import InternalError


def reconstructed(
    workload: Matrix, strategy: Matrix, privacy: Privacy, *, by_row: bool = True
) -> tuple[Matrix, Matrix]:
    """L and B = W·L⁺; L is as given when W is in its row space, and has rows for the rest of W when it is not.

    Let s·V be what is left of W outside L's row space. A row c·v costs some 2c·v·Δ·‖B‖² more (in L2: c²·v²·‖B‖²)
    for the columns' larger norm and Δ²·s²/c² for its own noise: least at c³ = s²·Δ/(v·‖B‖²), and in L2 at
    c⁴ = s²·Δ²/(v²·‖B‖²). Searches lose only what is tiny, and so the rows cost next to nothing.

    Raises InternalError when even that does not help.
    """
    W, L = workload, strategy
    try:
        return L, best_reconstruction(W, L, by_row=by_row)
    except InternalError:
        rows = _missing_rows(W, L, privacy)
        if not len(rows):
            raise
    L = np.vstack([L, rows])
    return L, best_reconstruction(W, L, by_row=by_row)


def _missing_rows(W: Matrix, L: Matrix, privacy: Privacy) -> Matrix:
    norms = np.sqrt(np.einsum("ij,ij->i", L, L))
    _, sigma, V = scipy.linalg.svd(L[norms > 0.0] / norms[norms > 0.0, None], full_matrices=False, check_finite=False)
    basis = V[sigma > 1e-10 * sigma[0]] if sigma.size else V
    left = W - (W @ basis.T) @ basis
    left = left - (left @ basis.T) @ basis  # once more: the first pass leaves rounding of W's own size
    _, lost, V = scipy.linalg.svd(left, full_matrices=False, check_finite=False)
    lost = lost[lost > 1e-15 * float(np.linalg.norm(W))]
    V = V[: lost.size]
    delta = sensitivity(L, privacy)
    spread = np.sum(((W @ basis.T) @ scipy.linalg.pinv(L @ basis.T)) ** 2) + np.sum(lost**2)
    peaks = np.abs(V).max(axis=1)
    if privacy == "pure":
        sizes = np.cbrt(lost**2 * delta / (peaks * spread))
    else:
        sizes = np.sqrt(lost * delta / (peaks * np.sqrt(spread)))
    return np.asarray(sizes[:, None] * V)
