"""Weighted queries for pure ε: ask the queries themselves, each at its best weight.

Noise on results (LRM, Eq. 5) spends the same share on every query. With L = diag(u)·W the error is
tr(V·(LᵀL)⁺)·max_j (Σ_i u_i·|W_ij|)² and m numbers decide: for marginals and other batches whose queries are
already the right questions, this is the optimum that HDMM's weighted marginals reach.
"""

from __future__ import annotations

import numpy as np
from tacit.engine.linalg import row_space
from tacit.engine.search.contest import Contest
from tacit.engine.search.descent import inverse, lbfgs
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import NotSupportedError

THIN_WORK, THIN_STEPS = 2e10, (3, 60)
"""Operations for each temperature on a thin workload, some two seconds, and the steps that may come of them."""
COMPLETE = 128
"""Cells up to which the weights are searched in full on a workload of nearly full rank; beyond, p-identity wins."""


def weighted(workload: Matrix, privacy: Privacy, watch: Watch, *, levels: int = 10, iterations: int = 60) -> Matrix:
    """L = diag(u)·W; u by L-BFGS on log u, the maximum over cells softened at a falling temperature.

    Guarantee: none of its own about norms; the caller measures the largest L1 column norm of L.
    Limits: pure ε only; a query that nothing needs keeps a tiny weight instead of none.
    """
    if privacy != "pure":
        raise NotSupportedError('strategy "weighted" weighs L1 columns: it is for privacy="pure"')
    asked = np.any(workload != 0.0, axis=1)
    W = workload[asked] / np.abs(workload[asked]).max(axis=1, keepdims=True)
    size = np.abs(W)
    sigma, R = row_space(workload)
    C = W @ R.T
    u: Vector = np.ones(len(W))
    best, best_error = u, float("inf")
    for temperature in np.geomspace(1.0, 3e-3, levels):
        u = u / (u @ size).max()

        def objective(z: Vector, temperature: float = temperature) -> tuple[float, Vector]:
            """log of the error, with its derivative by log u."""
            u = np.exp(z)
            norms = u @ size
            peak = float(norms.max())
            share = np.exp((norms - peak) / temperature)
            total = float(share.sum())
            norm = peak + temperature * float(np.log(total))
            inner = inverse((C * (u * u)[:, None]).T @ C)
            if inner is None:
                return float("inf"), z
            half = C @ inner
            by_u = -2.0 * u * u * np.einsum("ij,ij,j->i", half, half, sigma**2)
            spread = -0.5 * float(by_u.sum())  # the error is homogeneous of degree −2 in u
            by_norm = (size @ (share / total)) * u
            return float(np.log(spread) + 2.0 * np.log(norm)), by_u / spread + 2.0 * by_norm / norm

        start = np.maximum(np.log(u), -17.0)  # below e⁻¹⁸ the spread could no longer be inverted
        u = np.exp(lbfgs(objective, start, iterations, watch, box=(-18.0, 5.0)))
        error = float(np.exp(objective(np.log(u), 1e-9)[0]))
        if error < best_error:
            best, best_error = u, error
        elif error > 1.001 * best_error:  # the sharper maximum only jams the line search
            break
        if watch.interrupted():
            break
    L = np.zeros_like(workload)
    L[asked] = best[:, None] * W
    return L


def search_thin(contest: Contest) -> None:
    """At full length: on thin workloads the weighted queries often win."""
    queries, rank = contest.queries, contest.shape.rank
    # Three products of m×r and r×r in every step, and W read four times; both are nearly those of W.
    step = 8.0 * len(queries) * rank * rank + 8.0 * queries.size
    least, most = THIN_STEPS
    iterations = int(min(most, max(least, THIN_WORK / step)))
    contest.enter("weighted", weighted(queries, "pure", contest.watch, iterations=iterations))


def search_full(contest: Contest) -> None:
    """On workloads of nearly full rank, after p-identity: at full length only where that is quick."""
    independent = contest.shape.is_large() and contest.shape.rank == len(contest.queries)
    if independent and _least(contest.queries) > contest.error:
        return
    short = {} if contest.shape.cells <= COMPLETE else {"levels": 2, "iterations": 30}
    contest.enter("weighted", weighted(contest.queries, "pure", contest.watch, **short))


def _least(queries: Matrix) -> float:
    """What no weights of independent queries can get below.

    With L = diag(u)·W, B is diag(1/u), and max_j Σ_i u_i·|W_ij| is at least the mean over j, Σ_i u_i·a_i for the means
    a of the rows of |W|. By Hölder Σ 1/u_i²·(Σ u_i·a_i)² ≥ (Σ a_i^⅔)³.
    """
    means = np.abs(queries).mean(axis=1)
    return float(np.sum(np.cbrt(means**2)) ** 3)
