"""The optimum under (ε, δ) with its certificate: a fixed point of the dual of COA's Program (9), accelerated.

For weights d > 0 let W·diag(√d) = P·Σ·Qᵀ. Then (tr Σ)²/Σd bounds every strategy's error from below, and
L = √Σ·Qᵀ·diag(1/√d) is a strategy whose squared column norms are h_j = (Q·Σ·Qᵀ)_jj/d_j. The map
d ← d·h raises the bound in every round and its fixed points are optimal. Three things make it quick:

* Anderson's mixing on log d, of the longer step d ← d·h², which takes fewer rounds than the plain one. It can
  overshoot, so a mixed point that lowers the bound is dropped and the plain step is taken in its place: the bound
  never falls.
* Two primal points per round. Dividing L by its largest norm costs the *largest* deviation of h from its
  mean, to first order; scaling every column of a full-rank L to norm 1 costs its square, because near the
  optimum the error is flat along the constraint diag(LᵀL) = 1. The better one counts. A thin L has no such
  freedom; there a few columns of small weight keep h uneven long after the bound has settled, and one Newton step
  for each of these weights (``_corrected``) gives a third point.
* One eigen-decomposition per round, on the row side of W (rank × rank), so that a rank-deficient W needs no
  regularisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from tacit.engine.linalg import rank, rounding, svd
from tacit.engine.search.bounds import Dual, dual_point
from tacit.engine.search.contest import Contest
from tacit.engine.search.kronecker import product
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector, sensitivity

MEMORY = 8
"""Steps that the mixing looks back on."""
SETTLED, EVERY = 2e-5, 2
"""Growth of tr Σ in a round from which on thin strategies are corrected, and the rounds between two corrections."""
PATIENCE = 20
"""Rounds without progress after which the digits are used up."""
FLOOR = 1e-13
"""Smallest weight, as a share of the mean: a slack column's weight would reach 0 and never return."""
LARGE = 256
"""Rows from which on W's own decomposition is worth avoiding when that of the first round tells the same."""
CLEARLY_WORSE = 1.001
"""Error against the best so far, from which on what the mixing's last digits hide cannot matter."""
PROOF_SHARE, PROOF_ROUNDS, PROOF_GAP = 0.1, (2, 200), 5e-4
"""Under pure ε, where the L2 optimum is only a bound: the share of the work, the rounds, and a gap tight enough."""


def dual(workload: Matrix, privacy: Privacy, watch: Watch, *, rounds: int = 500) -> Matrix:
    """The best L for L2 columns, to within the watch's target gap of a proven bound or after ``rounds`` rounds.

    Guarantee: L2 column norms at most 1 up to rounding; the caller measures them. The bounds reported to
    ``watch`` hold for every strategy of W, in L2 and in L1 (``bounds.dual_bound``).
    Limits: solves the L2 problem. Under pure ε its L1 norms are whatever they turn out to be.
    """
    return _solve(workload, watch, rounds)[0]


def dual_weights(workload: Matrix, watch: Watch, *, rounds: int = 500) -> Vector:
    """The weights d of the cells with the best bound that ``dual`` proves."""
    return _solve(workload, watch, rounds)[1]


def _solve(workload: Matrix, watch: Watch, rounds: int) -> tuple[Matrix, Vector]:
    W, point = _first_point(workload)
    n = W.shape[1]
    best: Matrix = W
    best_error, best_bound, idle, seen = float("inf"), 0.0, 0, True
    mixing = _Anderson(MEMORY)
    d = best_d = np.full(n, 1.0 / n)
    next_correction = rounds
    for round_ in range(rounds):
        L, error = _primal(W, d, point)
        seen = seen and point.complete
        idle = 0 if error < best_error or point.certain**2 > best_bound else idle + 1
        if error < best_error:
            best, best_error = L, error
        if point.certain**2 > best_bound:
            best_d, best_bound = d, point.certain**2
        if round_ >= next_correction and best_error > best_bound * (1.0 + watch.target_gap):
            corrected = _corrected(d, point)
            L, error = _primal(W, corrected, dual_point(W, corrected))
            next_correction = round_ + EVERY
            if error < best_error:
                best, best_error = L, error
        watch.report(best_error if seen else float("inf"), best_bound)
        if watch.stop() or idle >= PATIENCE:
            break
        plain = _normalised(d * point.leverage)
        longer = _normalised(plain * point.leverage)
        mixed = _normalised(_exp(mixing.step(np.log(d), np.log(longer))))
        after = dual_point(W, mixed)
        if after.trace < point.trace:
            mixing.forget()
            mixed = plain
            after = dual_point(W, mixed)
        if after.trace < point.trace * (1.0 + SETTLED) and W.shape[0] < n:
            next_correction = min(next_correction, round_ + 1)
        d, point = mixed, after
    return best, best_d


def _first_point(workload: Matrix) -> tuple[Matrix, Dual]:
    """W on the fewest rows, and the dual at equal weights, whose decomposition says that W has no row too many."""
    m, n = workload.shape
    equal = np.full(n, 1.0 / n)
    if LARGE <= m <= n:
        point = dual_point(workload, equal)
        if point.complete:
            return workload, point
    W = row_basis(workload)
    return W, dual_point(W, equal)


def find_optimum(contest: Contest) -> None:
    """The L2 optimum, which is the answer under (ε, δ)."""
    watch = contest.watch
    if not contest.shape.factors:
        L = dual(contest.workload, contest.privacy, watch)
        if contest.shape.is_large() and watch.error < float("inf"):  # its last round has measured it, every direction
            contest.accept("dual", L, watch.error)
        else:
            contest.enter("dual", L)
        return
    solved = _solve_factors(contest.shape.factors, watch, watch.target_gap)
    watch.report(watch.error, solved.lower_bound)
    contest.accept("dual", product(solved.strategies), solved.error)


@dataclass(frozen=True, eq=False)
class _Factors:
    """The optima of the factors of a product, and what they come to together (``kronecker``)."""

    strategies: tuple[Matrix, ...]
    error: float
    lower_bound: float


def _solve_factors(parts: tuple[Matrix, ...], watch: Watch, target_gap: float) -> _Factors:
    watches = [Watch(target_gap=target_gap / (2 * len(parts)), cancel=watch.interrupted) for _ in parts]
    strategies = tuple(dual(square_root(V), "approximate", apart) for V, apart in zip(parts, watches, strict=True))
    error = math.prod(apart.error for apart in watches)
    return _Factors(strategies, error, math.prod(apart.lower_bound * (1.0 - 1e-9) for apart in watches))


def square_root(V: Matrix) -> Matrix:
    """R of full row rank with RᵀR = V."""
    squares, Q = scipy.linalg.eigh(V, check_finite=False)
    kept = squares > 4.0 * rounding(squares[::-1], V.shape)
    return np.ascontiguousarray((Q[:, kept] * np.sqrt(squares[kept])).T)


def _prove_by_factors(contest: Contest) -> None:
    solved = _solve_factors(contest.shape.factors, contest.watch, PROOF_GAP)
    worse = math.prod(sensitivity(L, contest.privacy) / sensitivity(L, "approximate") for L in solved.strategies)
    if not solved.error * worse**2 > CLEARLY_WORSE * contest.error:
        contest.enter("dual", product(solved.strategies))
    contest.watch.report(contest.watch.error, solved.lower_bound)


def prove(contest: Contest) -> None:
    """The L2 optimum is a weak strategy in L1, but its bound holds there too."""
    if contest.shape.factors:
        _prove_by_factors(contest)
        return
    W, watch = contest.workload, contest.watch
    m, n = W.shape
    step = 25.0 * m**3 + 4.0 * m * m * n + 1e6  # one eigen-decomposition, two products, the overhead of the calls
    least, most = PROOF_ROUNDS
    rounds = int(min(most, max(least, PROOF_SHARE * contest.work / step)))
    apart = Watch(target_gap=PROOF_GAP, cancel=watch.interrupted)
    L = dual(W, contest.privacy, apart, rounds=rounds)
    # Its B is that of L2: only the norms differ, and they are known before B is.
    known = apart.error * (sensitivity(L, contest.privacy) / sensitivity(L, "approximate")) ** 2
    if not (contest.shape.is_large() and known > CLEARLY_WORSE * contest.error):
        contest.enter("dual", L)
    watch.report(watch.error, apart.lower_bound)


def row_basis(workload: Matrix) -> Matrix:
    """R of full row rank with RᵀR = WᵀW: the same strategies at the same errors, on the fewest rows."""
    m, n = workload.shape
    R = scipy.linalg.qr(workload, mode="r", check_finite=False)[0][:n] if m > n else workload
    sigma = scipy.linalg.svdvals(R, check_finite=False)
    r = rank(sigma, (m, n))
    if r == sigma.size:  # the usual case, at a third of the price of the vectors
        return np.asarray(R)
    _, sigma, V = svd(np.asarray(R, dtype=np.float64))
    return np.ascontiguousarray(sigma[:r, None] * V[:r])


def _primal(W: Matrix, d: Vector, point: Dual) -> tuple[Matrix, float]:
    """The better of the two feasible strategies at d."""
    peak = float(point.leverage.max())
    L, error = point.half, point.trace * peak
    if W.shape[0] < W.shape[1]:
        return L / np.sqrt(peak), error
    # L·S with S = diag(1/√h) has unit columns; its error is ‖W·S⁻¹·L⁻¹‖² with L⁻¹ = D·Lᵀ·Σ^… = D^½·Q·Σ^(-½).
    norms = np.sqrt(point.leverage)
    inverse = (d[:, None] * L.T) / point.spectrum
    if inverse.shape[1] == W.shape[0]:
        scaled = float(np.sum(((W * norms) @ inverse) ** 2))
        if scaled < error:
            return L / norms, scaled
    return L / np.sqrt(peak), error


def _corrected(d: Vector, point: Dual) -> Vector:
    """d with more weight where the norm h_j is above the mean: as much as brings each of them down, taken alone.

    With W·diag(d)·Wᵀ = P·Σ²·Pᵀ and w̃ = Pᵀ·w_j, the derivative of h_j by d_j is −Σ_ab w̃_a²·w̃_b²/(σ_a·σ_b·(σ_a + σ_b)).
    """
    sigma = point.spectrum
    squares = point.half**2 * sigma[:, None]
    kernel = 1.0 / (np.outer(sigma, sigma) * np.add.outer(sigma, sigma))
    slope = np.einsum("ij,ij->j", squares, kernel @ squares)
    excess = np.maximum(point.leverage - point.trace, 0.0)
    return _normalised(d + np.divide(excess, slope, out=np.zeros_like(d), where=slope > 0.0))


def _normalised(d: Vector) -> Vector:
    d = np.maximum(d / d.sum(), FLOOR / d.size)
    return np.asarray(d / d.sum())


def _exp(logarithms: Vector) -> Vector:
    return np.asarray(np.exp(np.maximum(logarithms - logarithms.max(), -100.0)))


class _Anderson:
    """Anderson's mixing (type II) for x ← f(x): the combination of past steps whose residual is least."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.forget()

    def forget(self) -> None:
        self._points: list[Vector] = []
        self._values: list[Vector] = []

    def step(self, x: Vector, value: Vector) -> Vector:
        self._points = [*self._points, x][-self._memory - 1 :]
        self._values = [*self._values, value][-self._memory - 1 :]
        if len(self._points) < 2:
            return value
        residuals = np.array(self._values) - np.array(self._points)
        differences = np.diff(residuals, axis=0)
        # The weights count: log d of a column that hardly matters may move freely without spoiling the rest.
        share = np.sqrt(np.exp(value - value.max()))
        gram = differences * share
        system = gram @ gram.T
        system[np.diag_indices_from(system)] += 1e-12 * np.trace(system)
        try:
            mix = np.linalg.solve(system, gram @ (residuals[-1] * share))
        except np.linalg.LinAlgError:  # the steps no longer differ: this is the fixed point
            return value
        return np.asarray(value - mix @ np.diff(np.array(self._values), axis=0))
