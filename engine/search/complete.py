"""The rows that a strategy lacks: a search can lose the smallest directions of a nearly singular workload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tacit.engine.linalg import LEFT_OVER, TRUSTED, pseudo_inverse, reconstruct, svd
from tacit.engine.strategy import Matrix, Privacy, Questions, sensitivity


@dataclass(frozen=True, eq=False)
class Factorisation:
    """W = B·L."""

    L: Questions
    B: Matrix


def factorise(workload: Matrix, strategy: Questions, privacy: Privacy, *, by_row: bool = True) -> Factorisation | None:
    """L and B = W·L⁺; L is as given when W is in its row space, and has rows for the rest of W when it is not.

    Let s·V be what is left of W outside L's row space. A row c·v costs some 2c·v·Δ·‖B‖² more (in L2: c²·v²·‖B‖²)
    for the columns' larger norm and Δ²·s²/c² for its own noise: least at c³ = s²·Δ/(v·‖B‖²), and in L2 at
    c⁴ = s²·Δ²/(v²·‖B‖²). Searches lose only what is tiny, and so the rows cost next to nothing.

    None when these rows do not suffice either: L misses so much of W that rounding decides what is left. A sparse L is
    one of cells and of blocks that were completed before they were put side by side.
    """
    W, L = workload, strategy
    B = reconstruct(W, L, by_row=by_row)
    if B is None and isinstance(L, np.ndarray):
        rows = _missing_rows(W, L, privacy)
        if not len(rows):
            return None
        L = np.vstack([L, rows])
        B = reconstruct(W, L, by_row=by_row)
    return None if B is None else Factorisation(L, B)


def _missing_rows(W: Matrix, L: Matrix, privacy: Privacy) -> Matrix:
    norms = np.sqrt(np.einsum("ij,ij->i", L, L))
    _, sigma, V = svd(L[norms > 0.0] / norms[norms > 0.0, None])
    basis = V[sigma > TRUSTED * sigma[0]] if sigma.size else V
    left = W - (W @ basis.T) @ basis
    left = left - (left @ basis.T) @ basis  # once more: the first pass leaves rounding of W's own size
    _, lost, V = svd(left)
    lost = lost[lost > LEFT_OVER * float(np.linalg.norm(W))]
    V = V[: lost.size]
    delta = sensitivity(L, privacy)
    spread = np.sum(((W @ basis.T) @ pseudo_inverse(L @ basis.T)) ** 2) + np.sum(lost**2)
    peaks = np.abs(V).max(axis=1)
    if privacy == "pure":
        sizes = np.cbrt(lost**2 * delta / (peaks * spread))
    else:
        sizes = np.sqrt(lost * delta / (peaks * np.sqrt(spread)))
    return np.asarray(sizes[:, None] * V)
