"""The adaptive mechanism (Li and Miklau, VLDB 2012; AM in COA): eigen-queries with optimal weights."""

from __future__ import annotations

import numpy as np
from tacit.engine.linalg import row_space
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector


def adaptive(workload: Matrix, privacy: Privacy, watch: Watch, *, rounds: int = 1000) -> Matrix:
    """L = diag(λ)·Q, Q the right singular vectors of W, λ minimising Σ σ²/λ² under unit columns (COA, Eq. 5).

    With μ = λ² it is convex: Σ σ_i²/μ_i under (Q∘Q)ᵀμ ≤ 1. Its dual is a fixed point of the same kind as
    ``dual``'s, with μ_i = σ_i/√((Q∘Q)y)_i; every round gives a feasible λ by scaling.

    Guarantee: L2 column norms at most 1. Under pure ε the same L is used and its L1 norms are measured, as
    LRM's experiments do with the L2 approximation of the matrix mechanism.
    Limits: searches weights of fixed queries only, so it can be far from the optimum (COA, Section 2).
    """
    sigma, Q = row_space(workload)
    Q = np.ascontiguousarray(Q)
    squares = Q * Q
    y: Vector = np.full(Q.shape[1], 1.0 / Q.shape[1])
    best, best_error = np.ones_like(sigma), float("inf")
    for _ in range(rounds):
        mu = sigma / np.sqrt(np.maximum(squares @ y, 1e-300))
        load = mu @ squares
        peak = float(load.max())
        error = float(np.sum(sigma**2 / mu)) * peak
        if error < best_error * (1.0 - 1e-12):
            best, best_error = mu / peak, error
        bound = float(np.sum(sigma * np.sqrt(squares @ y))) ** 2 / float(y.sum())
        if best_error <= bound * (1.0 + 1e-4) or watch.interrupted():
            break
        y = y * load
        y /= y.sum()
    return np.asarray(np.sqrt(best)[:, None] * Q)
