"""The default search on one reduced block: several strategies, polished from the best; least error wins.

Under (ε, δ) the dual optimum is proven and little else is needed. Under pure ε no family wins everywhere:
p-identity on batches of nearly full rank, a free low-rank L on thin ones, the cells or the weighted queries
on others. The work is counted in operations, so that what is found does not depend on the machine's speed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from tacit.engine.linalg import NEGLIGIBLE, RESIDUAL
from tacit.engine.linalg import rank as rank_of
from tacit.engine.search.bounds import svd_bound
from tacit.engine.search.complete import factorise
from tacit.engine.search.reduce import compress_rows
from tacit.engine.search.strategies.adaptive import adaptive
from tacit.engine.search.strategies.dual import dual
from tacit.engine.search.strategies.free import Begin, directions, refined
from tacit.engine.search.strategies.hierarchical import hierarchical
from tacit.engine.search.strategies.identity import identity
from tacit.engine.search.strategies.low_rank import low_rank
from tacit.engine.search.strategies.lrm import lrm
from tacit.engine.search.strategies.p_identity import Problem, assemble, hats, starts
from tacit.engine.search.strategies.results import results
from tacit.engine.search.strategies.wavelet import wavelet
from tacit.engine.search.strategies.weighted import weighted
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector, sensitivity

WIDEST = 8192
"""Cells (after merging) beyond which no n×n strategy is formed, unless the workload has half as many queries.

L has 512 MB there, and planning takes some 2 GB. Beyond, only strategies with as many rows as W has are searched,
and the result can be above identity and p-identity, which have no counterpart of so few rows.
"""

SCREENING = 15
"""Steps that tell a good start point from a poor one."""
SMALL_ENOUGH = 128
"""Cells up to which the queries' best weights are found in full, whatever family wins."""
REFINED = 96
"""Cells up to which a free L is tried from the best so far."""
SMALL = 48
"""Cells below which a nearly singular W is searched as a thin one, whatever its rank is, and for longer."""
PROBES = 8
"""Random combinations of cells that tell how much of a workload a strategy misses, to within a factor of two."""


class Contest:
    """Keeps the best of the strategies that are entered."""

    def __init__(self, queries: Matrix, workload: Matrix, privacy: Privacy, watch: Watch, effort: float) -> None:
        """``workload`` is ``queries`` with its rows compressed."""
        self.queries, self.workload, self.privacy, self.watch = queries, workload, privacy, watch
        self.effort, self.work = effort, effort * _work(workload.shape[1])
        self.name, self.error, self.best = "results", float("inf"), workload  # W always spans W
        sizes = np.sqrt(np.einsum("ij,ij->i", queries, queries))
        self._smallest = float(np.min(sizes, where=sizes > 0.0, initial=float("inf")))
        # Compressing drops directions that are smaller than this: a small query may consist of them.
        self._dropped = NEGLIGIBLE * float(np.linalg.norm(workload)) if len(workload) < min(queries.shape) else 0.0

    def enter(self, name: str, strategy: Matrix) -> float:
        """Measure a strategy by its own B = W·L⁺; one that does not span W gets the rows that it lacks.

        Only a strategy of every single query is reported: what is returned must be one, and the rows that a tiny
        query needs besides, which W as a whole hides, change the error.
        """
        factors = factorise(self.workload, strategy, self.privacy, by_row=False)
        if factors is None:
            return float("inf")
        strategy, B = factors.L, factors.B
        error = (sensitivity(strategy, self.privacy) * float(np.linalg.norm(B))) ** 2
        if error < self.error * (1.0 - 1e-12):
            self.name, self.best, self.error = name, strategy, error
        if error < self.watch.error * (1.0 - 1e-12) and self._spans_queries(strategy, B):
            self.watch.report(error)
        return error

    def _spans_queries(self, strategy: Matrix, B: Matrix) -> bool:
        """Whether L asks for all of every query, so that it will be returned as it is.

        Usually W as a whole misses less than would show in its smallest query, which a few random combinations of
        the cells tell without the products of three large matrices. Else every query is looked at.
        """
        W = self.workload
        probes = np.random.default_rng(0).standard_normal((W.shape[1], PROBES))  # of W, not of data
        missing = float(np.linalg.norm(W @ probes - B @ (strategy @ probes))) / PROBES**0.5 + self._dropped
        if missing <= 0.1 * RESIDUAL * self._smallest:
            return True
        factors = factorise(self.queries, strategy, self.privacy)
        return factors is not None and factors.L is strategy


def search(workload: Matrix, privacy: Privacy, watch: Watch, effort: float = 1.0) -> tuple[str, Matrix]:
    """Name and L of the best strategy found for one block, at a share of the full effort."""
    W = compress_rows(workload)
    m, n = W.shape
    if n == 1:
        watch.report(float(np.sum(W**2)), svd_bound(W))
        return "identity", np.eye(1)
    contest = Contest(workload, W, privacy, watch, effort)
    if privacy == "approximate":
        contest.enter("dual", dual(W, privacy, watch))
    if contest.error == float("inf") or not watch.stop():
        if len(workload) <= 4 * n:  # more queries than that are never the best questions
            contest.enter("results", results(workload, privacy, watch))
        if n <= max(WIDEST, 2 * m):
            contest.enter("identity", identity(W, privacy, watch))
    if W.size <= 65_536:  # the dual is certified through squares and loses a few digits that this one keeps
        watch.report(watch.error, svd_bound(W))
    if privacy == "pure":
        _bound(W, contest, watch)
        if not watch.stop():
            _search_pure(workload, W, contest, watch)
    return contest.name, contest.best


def _bound(W: Matrix, contest: Contest, watch: Watch) -> None:
    """The L2 optimum is a weak strategy in L1, but its bound holds there too; it gets a tenth of the work."""
    m, n = W.shape
    rounds = int(min(200, max(2, 0.1 * contest.work / (25.0 * m**3 + 4.0 * m * m * n + 1e6))))
    apart = Watch(target_gap=5e-4, cancel=watch.interrupted)
    contest.enter("dual", dual(W, "pure", apart, rounds=rounds))
    watch.report(watch.error, apart.lower_bound)


def _search_pure(queries: Matrix, W: Matrix, contest: Contest, watch: Watch) -> None:
    """The families that compete under pure ε; ``queries`` is W before its rows were compressed."""
    m, n = W.shape
    square = n <= max(WIDEST, 2 * m)
    if square and n <= 256:
        for make in (hierarchical, wavelet):
            contest.enter(make.__name__, make(W, "pure", watch))
    sigma = scipy.linalg.svdvals(W, check_finite=False)
    rank = rank_of(sigma, W.shape)
    stiff = n < SMALL and sigma[rank - 1] < 1e-3 * sigma[0]
    thin = 3 * rank <= n or n <= 12 or stiff
    few = len(queries) <= min(2 * n, 1024)
    if thin and few and not watch.stop():
        # Three products of m×r and r×r in every step, and W read four times; m and r are all but W's own.
        step = 8.0 * len(queries) * rank * rank + 8.0 * queries.size
        contest.enter("weighted", weighted(queries, "pure", watch, iterations=int(min(60, max(3, 2e10 / step)))))
    if thin and not watch.stop():
        _search_low_rank(W, rank, contest, watch)
    if square and not watch.stop():
        _search_p_identity(W, contest, watch)
    if few and not thin and not watch.stop():
        short = {} if n <= SMALL_ENOUGH else {"levels": 2, "iterations": 30}
        contest.enter("weighted", weighted(queries, "pure", watch, **short))
    if stiff and not watch.stop():
        contest.enter("adaptive", adaptive(W, "pure", watch))
    if contest.effort >= 1.0 and not watch.stop():
        _retry_low_rank(W, sigma[:rank], contest, watch)
        _refine(W, rank, contest, watch)


def _refine(W: Matrix, rank: int, contest: Contest, watch: Watch) -> None:
    """A free L of few cells, from many sides: up to 9 % better (``benchmarks/strategies.py small``)."""
    n = W.shape[1]
    if not 7 <= n <= REFINED or rank < 3:  # of fewer cells or directions the families before find the same
        return
    if n < SMALL:
        tries = 1 if rank <= 3 else 2 if n >= SMALL // 2 else 3
        begins = [Begin(directions(W, extra, start), 0.016, 0.1) for extra in (1, 2, 4) for start in range(tries)]
        if rank > 3:
            begins += [Begin(np.eye(n), 0.016, 0.3)] * tries
            begins += [Begin(L, 0.004, 0.07) for L in (np.eye(n), contest.best)] * 2
            begins += [Begin(contest.best, 0.016, 0.04)] * 2
        for L in refined(W, begins, watch, levels=24 if rank > 3 else 12):
            contest.enter("free", L)
    if rank > 3 and n < SMALL // 2 and not watch.stop():
        # One in ten descents finds the best minimum of some workloads: many short ones do not leave that to chance.
        begins = [Begin(directions(W, extra, 100 + start), 0.016, 0.1) for extra in (2, 3, 4) for start in range(12)]
        for L in refined(W, begins, watch, start=2, levels=12, iterations=30):
            contest.enter("free", L)
    again = rank > 3 if n < SMALL else 3 * rank > n  # thin and wide, it gains nothing
    if again and n >= SMALL // 2:
        _hop_free(W, contest, watch, rounds=3 if n < SMALL else 1)


def _hop_free(W: Matrix, contest: Contest, watch: Watch, rounds: int) -> None:
    """Leave the best so far and come down again, until a round after the first gains nothing."""
    for start in range(1, rounds + 1):
        if watch.stop():
            return
        before = contest.error
        for L in refined(W, [Begin(contest.best, 0.004, 0.07), Begin(contest.best, 0.016, 0.04)], watch, start=start):
            contest.enter("free", L)
        if start > 1 and contest.error > before * (1.0 - 1e-3):
            return


def _retry_low_rank(W: Matrix, sigma: Vector, contest: Contest, watch: Watch) -> None:
    """Low-rank strategies at full length, where one wins already or the spectrum says that one may.

    A dense L with the singular values of the L2 optimum has L1 columns of about √k times their L2 norm, with
    k = (Σσ)²/Σσ² the number of directions that count; annealing wins back a half of k·(L2 optimum), seldom more.
    """
    n, rank = W.shape[1], sigma.size
    hope = float(sigma.sum() ** 2 / np.sum(sigma**2)) * watch.lower_bound / contest.error
    if rank * n > 16_384:
        if hope <= 1.5 and 3 * rank > n:  # else it has been searched
            _search_low_rank(W, rank, contest, watch)
        return
    if n <= 12 and contest.name not in ("low-rank", "p-identity"):
        return
    if hope > 4.0 and contest.name != "low-rank":
        if rank * n > 4096:
            return
        if contest.enter("low-rank", low_rank(W, "pure", watch, levels=24)) > 1.5 * contest.error or watch.stop():
            return
    levels = min(140, 8 + 4 * rank) if rank <= 9 or n < SMALL else 140  # few numbers settle sooner
    contest.enter("low-rank", low_rank(W, "pure", watch, levels=levels))
    for rows, start in ((rank + 1, 0), (rank + 2, 1)):  # of few directions, a row or two more find other minima
        if rank <= 12 and (rank > 3 or n >= SMALL) and not watch.stop():
            L = low_rank(W, "pure", watch, rows=rows, start=start, levels=8 + 4 * rank, iterations=20)
            contest.enter("low-rank", L)
    if contest.name == "low-rank" and rank > 12 and rank * n <= 2400 and not watch.stop():
        contest.enter("lrm", lrm(W, "pure", watch))


def _work(n: int) -> float:
    """Operations to spend: some 0.3 s for up to 60 cells, 0.7 s for 100, 10 s for 256 and more.

    Where low-rank strategies may win they are tried at full length besides, which takes one to five seconds.
    """
    return min(max(2e9, 5e3 * n**3), 8e10 + 3e8 * max(0, n - 256), 3e11)


def _search_low_rank(W: Matrix, rank: int, contest: Contest, watch: Watch) -> None:
    """Anneal from several start points; give up when the first is far behind the rest of the field."""
    n = W.shape[1]
    per_step = 8.0 * rank * rank * n + 250.0 * rank * n + 2e6
    steps = 0.5 * contest.work / per_step
    if steps < 12:  # too few to get anywhere
        return
    tries = int(min(3, max(1, steps // 1000)))
    levels = int(min(140, max(4, steps / tries / 30)))
    iterations = int(min(30, max(3, steps / tries / levels)))
    for start in range(-1 if tries > 1 else 0, tries):
        if start < 0:  # a quick one first, for those who will not wait
            L = low_rank(W, "pure", watch, levels=max(4, levels // 6), iterations=iterations)
        else:
            L = low_rank(W, "pure", watch, start=start, levels=levels, iterations=iterations)
        behind = contest.enter("low-rank", L) > 1.15 * contest.error
        if behind or watch.stop():
            return


class _Purse:
    """Operations left to spend."""

    def __init__(self, problem: Problem, work: float) -> None:
        self._problem, self.left = problem, work

    def take(self, p: int, iterations: int) -> int:
        """As many of the iterations as can still be paid, and pays them."""
        paid = int(min(iterations, self.left / self._problem.cost(p)))
        self.left -= 1.1 * paid * self._problem.cost(p)
        return paid


def _search_p_identity(W: Matrix, contest: Contest, watch: Watch) -> None:
    """Screen the start points, descend from the best, let both signs in, anneal, then hop from the best."""
    problem = Problem(W)
    purse = _Purse(problem, contest.work)
    screened: list[tuple[float, Matrix]] = []
    for start in starts(W, _most_rows(problem, 0.12 * purse.left / SCREENING)):
        affordable = int(min(40, 0.12 * purse.left / problem.cost(len(start))))
        if (affordable < SCREENING and screened) or watch.stop():
            continue
        paid = purse.take(len(start), max(affordable, SCREENING))
        screened.append(problem.descend(start, paid, watch))
        if screened[-1][0] < 0.98 * contest.error:
            contest.enter("p-identity", assemble(screened[-1][1]))
    if not screened or min(entry[0] for entry in screened) > 1.3 * contest.error:  # another family's ground
        return
    screened.sort(key=lambda entry: entry[0])
    descents = [_kept(problem.descend, entry, purse, 200, watch) for entry in screened[:4]]
    best = min(descents, key=lambda entry: entry[0])
    best = _kept(problem.polish, best, purse, 300, watch)
    contest.enter("p-identity", assemble(best[1]))
    best = _annealed(problem, best, purse, watch)
    contest.enter("p-identity", assemble(best[1]))
    best = _hop(problem, best, purse, watch)
    best = _kept(problem.polish, best, purse, 1000, watch)
    contest.enter("p-identity", assemble(best[1]))


def _most_rows(problem: Problem, budget: float) -> int:
    """Rows of Θ up to which one evaluation stays within a budget: on wide workloads fewer than would be best."""
    rows = problem.columns
    while rows > 8 and problem.cost(rows) > budget:
        rows = rows * 3 // 4
    return rows


def _kept(
    improve: Callable[[Matrix, int, Watch], tuple[float, Matrix]],
    entry: tuple[float, Matrix],
    purse: _Purse,
    iterations: int,
    watch: Watch,
) -> tuple[float, Matrix]:
    paid = purse.take(len(entry[1]), iterations)
    if paid < 1 or watch.stop():
        return entry
    return min(entry, improve(entry[1], paid, watch), key=lambda found: found[0])


def _annealed(problem: Problem, best: tuple[float, Matrix], purse: _Purse, watch: Watch) -> tuple[float, Matrix]:
    """Anneal from hats at numbers of rows around the best one, with two thirds of the work that is left."""
    n, rows = problem.columns, len(best[1])
    reserve = purse.left / 3.0
    for count in (rows, rows + 2, rows - 2, rows + 4, rows - 3, rows + 7, rows - 1, rows + 1):
        if count < 2 or watch.stop() or purse.left - 1400 * problem.cost(count) < reserve:
            continue
        purse.take(count, 1400)
        start = np.vstack([hats(n, count - 1), np.full((1, n), 0.3)])
        best = min(best, problem.anneal(start, 30, 40, watch), key=lambda found: found[0])
    return best


def _hop(problem: Problem, best: tuple[float, Matrix], purse: _Purse, watch: Watch) -> tuple[float, Matrix]:
    """Change one thing, polish, keep what is better, until the work is spent or twenty hops have failed."""
    stream = np.random.default_rng(0)  # which hop to try, not noise: nothing private depends on it
    failed = 0
    while failed < 20:
        start = _moved(best[1], stream)
        paid = purse.take(len(start), 120)
        if paid < 30 or watch.stop():
            break
        error, theta = problem.polish(start, paid, watch)
        failed += 1
        if error < best[0] * (1.0 - 1e-6):
            used = np.any(theta != 0.0, axis=1)
            best, failed = (error, theta[used]), 0
    return best


def _moved(theta: Matrix, stream: np.random.Generator) -> Matrix:
    """Θ with a row added, exchanged or joined with its neighbour, or with the cells shifted somewhere."""
    p, n = theta.shape
    cells = np.arange(n)
    move = stream.integers(4) if p else 3
    if move == 0:
        centre, width = n * stream.random(), n * stream.uniform(0.05, 0.3)
        shift = 0.03 * n * stream.standard_normal() * np.exp(-(((cells - centre) / width) ** 2))
        return np.array([np.interp(cells + shift, cells, row) for row in theta])
    if move == 1 and p > 2:
        centres = np.abs(theta) @ cells / np.maximum(np.abs(theta).sum(axis=1), 1e-300)
        order = np.argsort(centres, kind="stable")
        at = int(stream.integers(p - 1))
        pair = order[at : at + 2]
        return np.vstack([np.delete(theta, pair, axis=0), theta[pair].sum(axis=0) / 1.5])
    centre, width = n * stream.random(), n * np.exp(stream.uniform(np.log(0.02), np.log(0.5)))
    fresh = 0.5 * np.maximum(0.0, 1.0 - np.abs(cells + 0.5 - centre) / max(width, 1.0))
    kept = np.delete(theta, int(stream.integers(p)), axis=0) if move == 2 else theta
    return np.vstack([kept, fresh])
