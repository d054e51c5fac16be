"""A free L for pure ε, of any rank between W's and the number of cells: what a small workload wants.

p-identity asks for every cell and so tells apart more than the queries do; low-rank stays in W's row space and so
cannot ask for single cells. The best L of a small workload often lies between the two: pairs of cells that most
queries take together are asked for by their sum and difference, and what no query tells apart is not asked at all.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from tacit.engine.descent import lbfgs
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.engine.watch import Watch
from tacit.errors import NotSupportedError

SPARE = 2
"""Rows that a start point gets besides its own."""
SLACK = 1e-10
"""The last μ: what it hides of the error is less than the digits that count."""
GIVEN_UP = 1e-4
"""Directions that no query sees and L nearly ignores, measured against L's largest singular value."""


def free(
    workload: Matrix, privacy: Privacy, watch: Watch, *, start: int = 0, levels: int = 30, iterations: int = 40
) -> Matrix:
    """A free L from identity; ``start`` says from which side.

    Guarantee: none of its own about norms; the caller measures the largest L1 column norm of L.
    Limits: pure ε only; a step costs O(n³); local minima, more of them the more cells there are.
    """
    if privacy != "pure":
        raise NotSupportedError('strategy "free" has unit L1 columns: it is for privacy="pure"')
    begin = np.eye(workload.shape[1])
    return refined(workload, begin, watch, rounding=0.016, slack=0.3, start=start, levels=levels, iterations=iterations)


def refined(
    workload: Matrix,
    strategy: Matrix,
    watch: Watch,
    *,
    rounding: float,
    slack: float,
    start: int = 0,
    levels: int = 30,
    iterations: int = 40,
) -> Matrix:
    """L near ``strategy``, annealed: L = F·diag(1/s) with s_j = Σ_i √(F_ij² + ε²), so that columns have norm 1.

    What is minimised is tr(W·(LᵀL + μI)⁻¹·Wᵀ) (LRM, Lemma 1, with B = W·L⁺ as μ falls to 0). A large μ lets L give
    up a direction at a finite price, a small one only where no query needs it. ε falls from ``rounding`` and μ from
    ``slack``, in ``levels`` levels of ``iterations`` steps each.
    """
    W = workload
    n = W.shape[1]
    stream = np.random.default_rng(
        start
    )  # which way to leave the start point, not noise: nothing private depends on it
    F = np.vstack([strategy / np.abs(strategy).sum(axis=0).max(), np.zeros((SPARE, n))])
    F = _even(F + 0.1 / np.sqrt(n) * stream.standard_normal(F.shape))
    shape = F.shape
    for epsilon, mu in zip(np.geomspace(rounding, 1e-6, levels), np.geomspace(slack, SLACK, levels), strict=True):

        def objective(z: Vector, epsilon: float = epsilon, mu: float = mu) -> tuple[float, Vector]:
            """log of the error, with its derivative by F."""
            F = z.reshape(shape)
            size = np.sqrt(F * F + epsilon * epsilon)
            s = size.sum(axis=0)
            L = F / s
            error, by_L = _error(W, L, mu)
            if by_L is None:
                return float("inf"), z
            by_s = -np.einsum("ij,ij->j", by_L, L) / s
            return float(np.log(error)), ((by_L / s + F / size * by_s) / error).ravel()

        F = _even(lbfgs(objective, F.ravel(), iterations, watch).reshape(shape))
        if watch.interrupted():
            break
    return _settled(W, F)


def directions(workload: Matrix, extra: int) -> Matrix:
    """A start point in no one's favour: W's own directions and a few random ones, turned at random."""
    _, sigma, R = scipy.linalg.svd(workload, full_matrices=False, check_finite=False)
    rank = int(np.sum(sigma > max(workload.shape) * 1e-15 * sigma[0]))
    stream = np.random.default_rng(extra)  # a start point, not noise: nothing private depends on it
    turn = np.linalg.qr(stream.standard_normal((rank + extra, rank + extra)))[0]
    others = 0.3 / np.sqrt(workload.shape[1]) * stream.standard_normal((extra, workload.shape[1]))
    return np.asarray(turn @ np.vstack([np.sqrt(sigma[:rank, None] / sigma[0]) * R[:rank], others]))


def _even(F: Matrix) -> Matrix:
    return np.asarray(F / np.abs(F).sum(axis=0))


def _error(W: Matrix, L: Matrix, mu: float) -> tuple[float, Matrix | None]:
    """tr(W·X⁻¹·Wᵀ) with X = LᵀL + μI, and its derivative by L: −2·L·X⁻¹·WᵀW·X⁻¹; None where X is singular."""
    X = L.T @ L
    X.flat[:: X.shape[0] + 1] += mu
    factor, failed = scipy.linalg.lapack.dpotrf(X, lower=1)
    if failed:
        return float("inf"), None
    H, _ = scipy.linalg.lapack.dpotrs(factor, W.T, lower=1)
    error = float(np.einsum("ij,ji->", W, H))
    return (error, -2.0 * (L @ H) @ H.T) if error > 0.0 else (float("inf"), None)


def _settled(W: Matrix, L: Matrix) -> Matrix:
    """L without the directions that no query sees and L all but ignores: then W is in its row space to the last digit.

    They are taken from the null space of W itself, so that W loses nothing; L moves by what it had of them.
    """
    L = np.where(np.abs(L) < 1e-5, 0.0, L)
    _, sigma, V = scipy.linalg.svd(W, check_finite=False)
    unseen = V[int(np.sum(sigma > max(W.shape) * 1e-15 * sigma[0])) :]
    if len(unseen):
        _, kept, directions = scipy.linalg.svd(L @ unseen.T, check_finite=False)
        kept = np.concatenate([kept, np.zeros(len(unseen) - kept.size)])
        lost = directions[kept <= GIVEN_UP * float(np.linalg.norm(L, 2))] @ unseen
        L = L - (L @ lost.T) @ lost
    return np.ascontiguousarray(L[np.abs(L).max(axis=1) > 1e-6])
