"""A free low-rank L for pure ε: what a thin workload wants.

Write W = G·R with R an orthonormal basis of its row space (rank × n) and L = C·R. Then W = B·L exactly for
every C of full column rank, B = G·C⁺, and the error tr(GᵀG·(CᵀC)⁻¹)·max_j ‖C·R_j‖₁² (LRM, Formula 7)
depends on k × rank numbers only, however many cells there are.
"""

from __future__ import annotations

import numpy as np
from tacit.engine.linalg import row_space
from tacit.engine.search.descent import inverse, lbfgs
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import NotSupportedError


def low_rank(
    workload: Matrix,
    privacy: Privacy,
    watch: Watch,
    *,
    rows: int | None = None,
    start: int = 0,
    levels: int = 140,
    iterations: int = 30,
) -> Matrix:
    """L = C·R with ``rows`` rows (default: the rank of W) by annealed L-BFGS from start point ``start``.

    |·| is rounded off to √(·² + ε²) and max to a soft maximum of temperature ε, with ε falling from 1e-1 to
    3e-5 in ``levels`` levels of ``iterations`` steps each. The slower it falls, the better the minimum.

    Guarantee: none of its own about norms; the caller measures the largest L1 column norm of L.
    Limits: pure ε only (under (ε, δ) the optimum is known, see ``dual``); L stays inside W's row space.
    """
    if privacy != "pure":
        raise NotSupportedError('strategy "low-rank" has even L1 columns: it is for privacy="pure"')
    sigma, R = row_space(workload)
    R, rank = np.ascontiguousarray(R), sigma.size
    k = max(rank, rows or rank)
    stream = np.random.default_rng(start)  # a start point, not noise: nothing private depends on it
    Q = np.linalg.qr(stream.standard_normal((k, rank)))[0]
    return _anneal(Q * np.sqrt(sigma), sigma**2, R, levels, iterations, watch) @ R


def _anneal(C: Matrix, weights: Vector, R: Matrix, levels: int, iterations: int, watch: Watch) -> Matrix:
    shape = C.shape
    best, best_error = C, _error(C, weights, R)
    for epsilon in np.geomspace(1e-1, 3e-5, levels):
        C = C / np.abs(C @ R).sum(axis=0).max()

        def objective(z: Vector, epsilon: float = epsilon) -> tuple[float, Vector]:
            """log of the error, with its derivative by C."""
            C = z.reshape(shape)
            L = C @ R
            size = np.sqrt(L * L + epsilon * epsilon)
            norms = size.sum(axis=0)
            peak = float(norms.max())
            share = np.exp((norms - peak) / epsilon)
            total = float(share.sum())
            norm = peak + epsilon * float(np.log(total))
            inner = inverse(C.T @ C)
            if inner is None:
                return float("inf"), z
            spread = float(np.dot(weights, np.diag(inner)))
            by_spread = -2.0 * C @ (inner @ (weights[:, None] * inner))
            by_norm = ((L / size) * (share / total)) @ R.T
            return float(np.log(spread) + 2.0 * np.log(norm)), (by_spread / spread + 2.0 * by_norm / norm).ravel()

        C = lbfgs(objective, C.ravel(), iterations, watch, memory=20).reshape(shape)
        error = _error(C, weights, R)
        if error < best_error:
            best, best_error = C, error
        if watch.interrupted():
            break
    return best


def _error(C: Matrix, weights: Vector, R: Matrix) -> float:
    inner = inverse(C.T @ C)
    if inner is None:
        return float("inf")
    spread = float(np.dot(weights, np.diag(inner)))
    return spread * float(np.abs(C @ R).sum(axis=0).max()) ** 2
