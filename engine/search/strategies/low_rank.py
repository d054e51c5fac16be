"""A free low-rank L for pure ε: best for thin workloads.

Write W = G·R with R an orthonormal basis of its row space (rank × n) and L = C·R. Then W = B·L exactly for
every C of full column rank, B = G·C⁺, and the error tr(GᵀG·(CᵀC)⁻¹)·max_j ‖C·R_j‖₁² (LRM, Formula 7)
depends on k × rank numbers only, however many cells there are.
"""

from __future__ import annotations

import numpy as np
from tacit.engine.linalg import row_space
from tacit.engine.search.contest import Contest
from tacit.engine.search.descent import inverse, lbfgs
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import NotSupportedError

LEVELS, ITERATIONS = 140, 30
"""A search at full length: beyond, a slower fall of ε gains less than a thousandth."""
WORK_SHARE = 0.5
"""Share of the contest's work that the first search may spend; p-identity comes after it."""
FEWEST_STEPS = 12
"""Steps below which annealing gets nowhere."""
STEPS_FOR_START, STARTS = 1000, 3
"""Steps that a further start point must get to be worth trying, and the most start points."""
FAR_BEHIND = 1.15
"""Error, against the best so far, at which further start points are not worth trying."""
LONG_ENTRIES, PROBE_ENTRIES = 16_384, 4096
"""rank·cells up to which a second search at full length takes seconds, and up to which one is tried without a sign
that it wins."""
LIKELY, UNLIKELY = 1.5, 4.0
"""How far above the best so far the estimate of ``_expected`` may be: below the first low rank is likely to win, above
the second it is probed first, by a short search of ``PROBE_LEVELS``."""
PROBE_LEVELS, PROBE_BEHIND = 24, 1.5
FEW_DIRECTIONS = 9
"""Directions up to which fewer levels suffice: few numbers settle sooner."""
MORE_ROWS_DIRECTIONS = 12
"""Directions up to which a row or two more than the rank find other minima."""
FEWEST_DIRECTIONS = 3
"""Directions up to which, in a small workload, all start points find the same minimum."""


def low_rank(
    workload: Matrix,
    privacy: Privacy,
    watch: Watch,
    *,
    rows: int | None = None,
    start: int = 0,
    levels: int = LEVELS,
    iterations: int = ITERATIONS,
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


def search(contest: Contest) -> None:
    """Anneal from several start points; give up when the first is far behind the best of the other families."""
    W, watch, rank = contest.workload, contest.watch, contest.shape.rank
    n = W.shape[1]
    # Products of rank×rank with rank×n, the quasi-Newton memory, and the overhead of the calls.
    step = 8.0 * rank * rank * n + 250.0 * rank * n + 2e6
    steps = WORK_SHARE * contest.work / step
    if steps < FEWEST_STEPS:
        return
    tries = int(min(STARTS, max(1, steps // STEPS_FOR_START)))
    levels = int(min(LEVELS, max(4, steps / tries / ITERATIONS)))
    iterations = int(min(ITERATIONS, max(3, steps / tries / levels)))
    for start in range(-1 if tries > 1 else 0, tries):
        if start < 0:  # a quick one first, for those who will not wait
            L = low_rank(W, "pure", watch, levels=max(4, levels // 6), iterations=iterations)
        else:
            L = low_rank(W, "pure", watch, start=start, levels=levels, iterations=iterations)
        behind = contest.enter("low-rank", L) > FAR_BEHIND * contest.error
        if behind or watch.stop():
            return


def search_longer(contest: Contest) -> None:
    """At full length, where a low-rank strategy wins already or the spectrum says that one may."""
    W, watch, shape = contest.workload, contest.watch, contest.shape
    n, rank = shape.cells, shape.rank
    expected = _expected(contest)
    if rank * n > LONG_ENTRIES:
        if expected <= LIKELY and 3 * rank > n:  # a thinner one has been searched
            search(contest)
        return
    if shape.is_tiny() and contest.name not in ("low-rank", "p-identity"):
        return
    if expected > UNLIKELY and contest.name != "low-rank":
        if rank * n > PROBE_ENTRIES:
            return
        error = contest.enter("low-rank", low_rank(W, "pure", watch, levels=PROBE_LEVELS))
        if error > PROBE_BEHIND * contest.error or watch.stop():
            return
    short = 8 + 4 * rank
    levels = min(LEVELS, short) if rank <= FEW_DIRECTIONS or shape.is_small() else LEVELS
    contest.enter("low-rank", low_rank(W, "pure", watch, levels=levels))
    for rows, start in ((rank + 1, 0), (rank + 2, 1)):
        several = rank > FEWEST_DIRECTIONS or not shape.is_small()
        if rank <= MORE_ROWS_DIRECTIONS and several and not watch.stop():
            L = low_rank(W, "pure", watch, rows=rows, start=start, levels=short, iterations=20)
            contest.enter("low-rank", L)


def _expected(contest: Contest) -> float:
    """About twice what a low-rank strategy would have as its error, against the best so far.

    A dense L with the singular values of the L2 optimum has L1 columns of about √k times their L2 norm, with
    k = (Σσ)²/Σσ² the number of directions that count; annealing wins back a half of k·(L2 optimum), seldom more.
    """
    sigma = contest.shape.spectrum
    return float(sigma.sum() ** 2 / np.sum(sigma**2)) * contest.watch.lower_bound / contest.error
