"""The Low-Rank Mechanism (LRM, Algorithms 1 and 2), and its L2 variant for (ε, δ)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from tacit.engine.linalg import NEGLIGIBLE, spectrum, svd
from tacit.engine.search.contest import Contest
from tacit.engine.search.shape import Shape
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy
from tacit.errors import ProgrammingError

PENALTY_LIMIT = 1e10
"""β that ends Algorithm 1 (its line 8, "β is sufficiently large")."""
ROUNDS = 300
"""Rounds of Algorithm 1 at most."""
STEPS = 25
"""Steps of Algorithm 2 for every B."""
MOST_STARTS, START_ENTRIES = 10, 4096
"""Start points unless their number is given. Of a larger L fewer are tried, so that its r·n entries, summed over the
starts, stay within the second figure: a few seconds in all."""
_LEFT_OVER = 1e-14
"""Share of ‖W‖ up to which what the strong directions leave of W is rounding: of a product and of a subtraction."""
FEWEST_DIRECTIONS, MOST_ENTRIES = 12, 2400
"""The portfolio tries LRM beyond so many directions (up to there low-rank's many start points find the same) and up to
so large a rank·cells (beyond, 300 rounds take minutes)."""


def lrm(
    workload: Matrix,
    privacy: Privacy,
    watch: Watch,
    *,
    rank: int | None = None,
    gamma: float = 0.01,
    rounds: int = ROUNDS,
    starts: int | None = None,
) -> Matrix:
    """L of the best decomposition from several start points, changed so that W = B·L can be exact.

    ``rank`` is the paper's r (default 1.2·rank(W), its Table 1), ``gamma`` its γ: the residual ‖W − B·L‖_F at
    which Algorithm 1 stops. The paper answers with the residual left in; here it is corrected, so that no
    answer is biased and γ costs error only. Singular values of W below γ may be lost altogether in the
    residual: what is lost gets rows of its own.

    ``starts`` is the number of start points: Lemma 3's decomposition, which can be a stationary point that is
    far from the best, and random ones from fixed streams ("the random initialization strategy makes LRM avoid
    undesirable local minima", COA, Section 5).

    Guarantee: the columns leave Algorithm 2 with norm at most 1 (L1 for pure, Formula 11; L2 for approximate,
    by projection on that ball); the correction changes them slightly, and the caller measures the result.
    Limits: a local method with no bound of its own; slow on W of full rank; r below rank(W) is refused.
    """
    needed = spectrum(workload).size
    if rank is not None and rank < needed:
        raise ProgrammingError(f"rank={rank} cannot express a workload of rank {needed}: ask for at least {needed}")
    r = _default_rank(needed) if rank is None else rank
    contest = Contest(workload, privacy, watch)
    for start in range(_default_starts(r * workload.shape[1]) if starts is None else starts):
        if start and watch.interrupted():
            break
        contest.enter("lrm", _exact(workload, *decompose(workload, privacy, watch, r, gamma, rounds, start)))
    return contest.best


def search(contest: Contest) -> None:
    """The portfolio's entry: one start point, because low-rank has tried many before it."""
    contest.enter("lrm", lrm(contest.workload, contest.privacy, contest.watch, starts=1))


def applies(shape: Shape) -> bool:
    """Whether the portfolio tries it.

    At full rank it takes longest, and did not become the best in any workload that it was tried on, unless few
    directions matter.
    """
    gains = shape.rank < shape.cells or shape.is_stiff()
    return gains and shape.rank > FEWEST_DIRECTIONS and shape.rank * shape.cells <= MOST_ENTRIES


def decompose(
    workload: Matrix, privacy: Privacy, watch: Watch, rank: int, gamma: float, rounds: int = ROUNDS, start: int = 0
) -> tuple[Matrix, Matrix]:
    """Algorithm 1 as published: (B, L) with ‖W − B·L‖_F ≤ γ when it converges, for any r = ``rank``.

    γ is absolute, as in Formula 8: the same relaxation for workloads of different sizes is a share of ‖W‖_F.
    ``start`` 0 is Lemma 3's decomposition, every other number a random start point of its own.

    Minimises tr(BᵀB) under ‖W − B·L‖_F ≤ γ and column norms of L at most 1 (Formula 8) by the inexact
    augmented Lagrangian: B in closed form (Eq. 9), L by Nesterov's projected gradient (Formula 10), β doubled
    in every tenth round.
    """
    W, r = workload, rank
    B, L = np.zeros((len(W), r)), _start(W, r, privacy, start)
    multiplier, penalty = np.zeros_like(W), 1.0
    for k in range(1, rounds + 1):
        for _ in range(5):
            before = L
            right = (penalty * W + multiplier) @ L.T
            B = scipy.linalg.solve(penalty * L @ L.T + np.eye(r), right.T, assume_a="pos", check_finite=False).T
            L = _nesterov(B, W, multiplier, penalty, L, privacy, watch)
            if watch.interrupted():
                return B, L
            if float(np.linalg.norm(L - before)) <= 1e-3 * float(np.linalg.norm(L)):
                break
        residual = W - B @ L
        tau = float(np.linalg.norm(residual))
        if tau <= gamma or penalty >= PENALTY_LIMIT or k == rounds:
            break
        _revive(L, residual)
        if k % 10 == 0:
            penalty *= 2.0
        multiplier = multiplier + penalty * residual
    return B, L


def _default_rank(needed: int) -> int:
    return max(1, int(np.ceil(1.2 * needed)))


def _default_starts(entries: int) -> int:
    return min(max(START_ENTRIES // entries, 1), MOST_STARTS)


def _exact(W: Matrix, B: Matrix, L: Matrix) -> Matrix:
    """L changed so that W is in its row space: by little where B is strong, by new rows where it has lost W.

    With B = P·Σ·N the directions of B in which the residual would move L by less than 1 are strong, and
    L + B⁺(W − B·L) is right in them. What they leave of W is s·V, small as Algorithm 1 has converged; rows
    c·V in directions of L that B no longer uses cost about 2c·‖B‖² + s²/c² more, which is least at
    c³ = s²/‖B‖². There are enough such directions, because r ≥ rank(W) and B's columns stay in W's.
    """
    wide = B.shape[0] < B.shape[1]  # N has all directions of L; of P the strong ones do
    P, sigma, N = scipy.linalg.svd(B, full_matrices=wide, check_finite=False)
    P = P[:, : sigma.size]
    residual = P.T @ (W - B @ L)
    strong = np.flatnonzero((np.abs(residual).max(axis=1) <= sigma) & (sigma > NEGLIGIBLE * sigma[0]))
    L = L + N[strong].T @ (residual[strong] / sigma[strong, None])
    _, lost, V = svd(W - P[:, strong] @ (P[:, strong].T @ W))
    lost = lost[lost > _LEFT_OVER * np.linalg.norm(W)]
    unused = np.delete(N, strong, axis=0)[: lost.size]
    sizes = np.cbrt(lost**2 / (np.sum(sigma[strong] ** 2) + np.sum(lost**2)))[: len(unused)]
    return np.asarray(L + unused.T @ (sizes[:, None] * V[: len(unused)] - unused @ L))


def _start(W: Matrix, r: int, privacy: Privacy, start: int) -> Matrix:
    """The first L: V/√r of Lemma 3 with spare rows, which must not be zero or they would stay it; or a random one."""
    stream = np.random.default_rng(start)  # a start point, not noise: nothing private depends on it
    L = stream.standard_normal((r, W.shape[1]))
    if start == 0:
        L = 1e-2 * L / np.sqrt(W.shape[1])
        V = svd(W)[2][:r]
        L[: len(V)] += V
        L = L / np.sqrt(r)
    return _project(L, privacy)


def _revive(L: Matrix, residual: Matrix) -> None:
    """Turn rows of L that the projection has emptied towards what is still missing.

    An empty row gets an empty column of B and stays empty: the loss of rank that COA's Section 2 holds
    against LRM, after which Algorithm 1 cannot converge.
    """
    empty = np.flatnonzero(~L.any(axis=1))
    if empty.size and residual.any():
        missing = svd(residual)[2][: empty.size]
        L[empty[: len(missing)]] = 1e-3 * missing


def _nesterov(
    B: Matrix, W: Matrix, multiplier: Matrix, penalty: float, L: Matrix, privacy: Privacy, watch: Watch
) -> Matrix:
    """Algorithm 2: minimise G(L) = β/2·tr(LᵀBᵀBL) − tr((βW + π)ᵀBL) over the columns' unit balls."""
    quadratic = penalty * B.T @ B
    linear = B.T @ (penalty * W + multiplier)
    # The Lipschitz constant of ∇G is known, ‖βBᵀB‖: the search for ω (lines 6 to 13) would end there.
    omega = max(float(scipy.linalg.eigvalsh(quadratic, check_finite=False)[-1]), 1e-300)
    chi = L.size * 1e-12
    previous, current, old_delta, delta = L, L, 0.0, 1.0
    for _ in range(STEPS):
        S = current + (old_delta - 1.0) / delta * (current - previous)
        step = _project(S - (quadratic @ S - linear) / omega, privacy)
        if float(np.linalg.norm(S - step)) < chi or watch.interrupted():
            return step
        previous, current = current, step
        old_delta, delta = delta, (1.0 + float(np.sqrt(1.0 + 4.0 * delta * delta))) / 2.0
    return current


def _project(L: Matrix, privacy: Privacy) -> Matrix:
    """The nearest matrix whose columns have norm at most 1 (Formula 11)."""
    if privacy == "approximate":
        norms = np.sqrt(np.einsum("ij,ij->j", L, L))
        return np.asarray(L / np.maximum(norms, 1.0))
    size = np.abs(L)
    outside = size.sum(axis=0) > 1.0
    if not outside.any():
        return L
    inside = L.copy()
    ordered = -np.sort(-size[:, outside], axis=0)
    counts = np.arange(1, L.shape[0] + 1)[:, None]
    excess = (np.cumsum(ordered, axis=0) - 1.0) / counts
    last = np.sum(ordered > excess, axis=0) - 1
    threshold = excess[last, np.arange(last.size)]
    inside[:, outside] = np.sign(L[:, outside]) * np.maximum(size[:, outside] - threshold, 0.0)
    return inside
