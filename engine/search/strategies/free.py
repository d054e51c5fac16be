"""A free L for pure ε, of any rank between that of W and the number of cells: best for small workloads.

p-identity asks for every cell and so separates more than the queries do; low-rank stays in the row space of W and so
cannot ask for single cells. The best L of a small workload often lies between the two: pairs of cells that most
queries take together are asked for by their sum and difference, and what no query separates is not asked at all.
There are many local minima, so many start points descend together: on matrices this small, sixteen descents in one
array cost little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from tacit.engine.linalg import rank, row_space
from tacit.engine.search.contest import Contest
from tacit.engine.search.descent import lbfgs_together
from tacit.engine.search.shape import SMALL, THIN, Shape
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import NotSupportedError

BEHIND = 1.05
"""Descents with so many times the least error half-way down are given up."""
SPARE = 2
"""Rows that a start point gets besides those it has."""
SLACK = 1e-10
"""The last μ: what it hides of the error is less than the digits that count."""
GIVEN_UP = 1e-4
"""Directions that no query sees and L nearly ignores, measured against L's largest singular value."""
CELLS = (7, 96)
"""Cells from which on the portfolio tries it, because the other families find the same with fewer, and up to which it
does, because a step costs n³."""
LEVELS, ITERATIONS = 24, 40
"""A descent at full length."""
FEW_DIRECTIONS = 3
"""Directions up to which one start point of each kind and half the levels find what more would; with fewer than these
the other families do."""
SHORT_LEVELS, SHORT_ITERATIONS = 12, 30
"""A short descent, of which many are tried."""
SHORT_STARTS, SHORT_SEED = 12, 100
"""Short descents for each number of random directions, and the first seed: others than those before."""
CELLS_SMOOTHING, DIRECTIONS_SMOOTHING = (0.016, 0.3), (0.016, 0.1)
NEAR_SMOOTHING = ((0.004, 0.07), (0.016, 0.04))
"""The first ε and μ from the cells, from directions, and near a good L, which is left in two ways: with little rounding
and much slack, and the reverse. More would end in the same minimum wherever it starts, less in the nearest one."""
ENTRY, ROW = 1e-5, 1e-6
"""Largest entry that is 0 at the end, ε being 1e-6 there, and largest entry of a row that asks nothing."""
GAIN = 1e-3
"""Relative gain below which a further round from the best so far is the last."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where a descent starts, and how strongly the objective is smoothed there."""

    L: Matrix
    rounding: float
    """The first ε."""
    slack: float
    """The first μ."""


def free(
    workload: Matrix,
    privacy: Privacy,
    watch: Watch,
    *,
    start: int = 0,
    levels: int = LEVELS,
    iterations: int = ITERATIONS,
) -> Matrix:
    """A free L from identity; ``start`` seeds the random step with which it leaves.

    Guarantee: none of its own about norms; the caller measures the largest L1 column norm of L.
    Limits: pure ε only; a step costs O(n³); local minima, more of them the more cells there are.
    """
    if privacy != "pure":
        raise NotSupportedError('strategy "free" has unit L1 columns: it is for privacy="pure"')
    return refined(workload, [_from_cells(workload)], watch, seed=start, levels=levels, iterations=iterations)[0]


def refined(
    workload: Matrix,
    starts: Sequence[Start],
    watch: Watch,
    *,
    seed: int = 0,
    levels: int = LEVELS,
    iterations: int = ITERATIONS,
) -> list[Matrix]:
    """What annealing makes of the best of ``starts``: L = F·diag(1/s), s_j = Σ_i √(F_ij² + ε²), has columns of norm 1.

    What is minimised is tr(W·(LᵀL + μI)⁻¹·Wᵀ) (LRM, Lemma 1, with B = W·L⁺ as μ falls to 0). A large μ lets L give
    up a direction at a finite price, a small one only where no query needs it. ε and μ fall in ``levels`` levels of
    ``iterations`` steps each.
    """
    W = workload
    n = W.shape[1]
    stream = np.random.default_rng(seed)  # how to leave a start point, not noise: nothing private depends on it
    rows = max(len(start.L) for start in starts) + SPARE
    F = np.zeros((len(starts), rows, n))
    used = np.zeros((len(starts), rows, 1))  # rows of zeros make all start points one array; they stay zeros
    for k, start in enumerate(starts):
        count = len(start.L) + SPARE
        used[k, :count] = 1.0
        F[k, : len(start.L)] = start.L / np.abs(start.L).sum(axis=0).max()
        F[k, :count] += 0.1 / np.sqrt(n) * stream.standard_normal((count, n))
    F = _even(F)
    roundings = np.geomspace([start.rounding for start in starts], 1e-6, levels)
    slacks = np.geomspace([start.slack for start in starts], SLACK, levels)
    for level in range(levels):
        if level == levels // 2:  # those that are far behind by now stay behind
            reached, _ = _errors(W, F, slacks[level])
            ahead = reached <= BEHIND * reached.min()
            F, used, roundings, slacks = F[ahead], used[ahead], roundings[:, ahead], slacks[:, ahead]

        def objective(
            z: Matrix,
            which: NDArray[np.intp],
            used: Matrix = used,
            rounding: Vector = roundings[level],
            slack: Vector = slacks[level],
        ) -> tuple[Vector, Matrix]:
            """log of the error of every descent in ``which``, with its derivative by F."""
            F = z.reshape(-1, rows, n)
            size = np.sqrt(F * F + np.square(rounding[which, None, None])) * used[which] + (1.0 - used[which])
            s = np.einsum("kij,ki->kj", size, used[which, :, 0])[:, None]
            L = F / s
            error, by_L = _errors(W, L, slack[which])
            by_s = -(by_L * L).sum(axis=1, keepdims=True) / s
            by_F = (by_L / s + F / size * by_s) / error[:, None, None]
            return np.log(error), by_F.reshape(len(z), -1)

        F = _even(lbfgs_together(objective, F.reshape(len(F), -1), iterations, watch).reshape(F.shape))
        if watch.interrupted():
            break
    return [_settled(W, L) for L in F]


def directions(workload: Matrix, extra: int, seed: int = 0) -> Matrix:
    """A start point that favours no family: the directions of W and ``extra`` random ones, turned at random."""
    sigma, R = row_space(workload)
    count = sigma.size + extra
    stream = np.random.default_rng([seed, extra])  # a start point, not noise: nothing private depends on it
    turn = np.linalg.qr(stream.standard_normal((count, count)))[0]
    others = 0.3 / np.sqrt(workload.shape[1]) * stream.standard_normal((extra, workload.shape[1]))
    return np.asarray(turn @ np.vstack([np.sqrt(sigma[:, None] / sigma[0]) * R, others]))


def _even(F: Matrix) -> Matrix:
    return np.asarray(F / np.abs(F).sum(axis=1, keepdims=True))


def _errors(W: Matrix, L: Matrix, mu: Vector) -> tuple[Vector, Matrix]:
    """tr(W·X⁻¹·Wᵀ) with X = LᵀL + μI, and its derivative by L, −2·L·X⁻¹·WᵀW·X⁻¹, for every L; inf where X fails."""
    T = np.swapaxes(L, 1, 2)
    X = T @ L
    n = X.shape[1]
    X.reshape(len(X), -1)[:, :: n + 1] += mu[:, None]
    H = np.linalg.solve(X, W.T)
    error = np.einsum("ij,kji->k", W, H)
    sound = np.isfinite(error) & (error > 0.0)
    by_L = -2.0 * (L @ H) @ np.swapaxes(H, 1, 2)
    return np.where(sound, error, np.inf), np.where(sound[:, None, None], by_L, 0.0)


def _settled(W: Matrix, L: Matrix) -> Matrix:
    """L without the directions that no query sees and L nearly ignores: then W is in its row space to the last digit.

    They are taken from the null space of W itself, so that W loses nothing; L moves by what it had of them.
    """
    L = np.where(np.abs(L) < ENTRY, 0.0, L)
    _, sigma, V = scipy.linalg.svd(W, check_finite=False)
    unseen = V[rank(sigma, W.shape) :]
    if len(unseen):
        _, sizes, turned = scipy.linalg.svd(L @ unseen.T, check_finite=False)
        sizes = np.concatenate([sizes, np.zeros(len(unseen) - sizes.size)])
        lost = turned[sizes <= GIVEN_UP * float(np.linalg.norm(L, 2))] @ unseen
        L = L - (L @ lost.T) @ lost
    return np.ascontiguousarray(L[np.abs(L).max(axis=1) > ROW])


def applies(shape: Shape) -> bool:
    """Whether the portfolio tries it."""
    fewest, most = CELLS
    return fewest <= shape.cells <= most and shape.rank >= FEW_DIRECTIONS


def search(contest: Contest) -> None:
    """From many start points: up to 9 % better than the other families (``benchmarks/strategies.py small``)."""
    shape = contest.shape
    few = shape.rank <= FEW_DIRECTIONS
    very_small = shape.cells < SMALL // 2
    if shape.is_small():
        _descend_from_many(contest, tries=1 if few else 3 if very_small else 2)
    if very_small and not few and not contest.watch.stop():
        _descend_briefly(contest)
    gains = not few if shape.is_small() else THIN * shape.rank > shape.cells  # thin and wide, it gains nothing
    if gains and not very_small:
        _leave_the_best(contest, rounds=3 if shape.is_small() else 1)


def _from_cells(workload: Matrix) -> Start:
    return Start(np.eye(workload.shape[1]), *CELLS_SMOOTHING)


def _from_directions(workload: Matrix, extra: int, seed: int) -> Start:
    return Start(directions(workload, extra, seed), *DIRECTIONS_SMOOTHING)


def _near(L: Matrix) -> list[Start]:
    return [Start(L, *smoothing) for smoothing in NEAR_SMOOTHING]


def _descend_from_many(contest: Contest, tries: int) -> None:
    """From the directions of W and, where there are more than a few, from the cells and from the best so far."""
    W, cells = contest.workload, np.eye(contest.shape.cells)
    few = contest.shape.rank <= FEW_DIRECTIONS
    starts = [_from_directions(W, extra, seed) for extra in (1, 2, 4) for seed in range(tries)]
    if not few:
        slack, rounded = _near(contest.best)
        starts += [_from_cells(W)] * tries
        starts += [_near(cells)[0], slack] * 2
        starts += [rounded] * 2
    for L in refined(W, starts, contest.watch, levels=LEVELS // 2 if few else LEVELS):
        contest.enter("free", L)


def _descend_briefly(contest: Contest) -> None:
    """One in ten descents finds the best minimum of some workloads: many short ones do not leave that to chance."""
    W = contest.workload
    seeds = range(SHORT_SEED, SHORT_SEED + SHORT_STARTS)
    starts = [_from_directions(W, extra, seed) for extra in (2, 3, 4) for seed in seeds]
    for L in refined(W, starts, contest.watch, seed=2, levels=SHORT_LEVELS, iterations=SHORT_ITERATIONS):
        contest.enter("free", L)


def _leave_the_best(contest: Contest, rounds: int) -> None:
    """Leave the best so far and descend again, until a round after the first gains nothing."""
    for seed in range(1, rounds + 1):
        if contest.watch.stop():
            return
        before = contest.error
        for L in refined(contest.workload, _near(contest.best), contest.watch, seed=seed):
            contest.enter("free", L)
        if seed > 1 and contest.error > before * (1.0 - GAIN):
            return
