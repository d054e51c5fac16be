"""p-identity: every cell asked alone, and p free sums besides (McKenna et al., HDMM, OPT₀), for pure ε.

L = [I; Θ]·diag(1/s) with s_j = 1 + Σ_k |Θ_kj|: every column has L1 norm 1 by construction, L has full column
rank whatever Θ is, and Woodbury's identity makes one evaluation cost O(n²·p). The published family has Θ ≥ 0;
the signed form lets Θ have both signs and is what a good Θ ≥ 0 is polished with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array
from tacit.engine.linalg import gram
from tacit.engine.search.contest import Contest
from tacit.engine.search.descent import lbfgs
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import NotSupportedError

LARGE, SPARSE = 512, 32
"""Cells from which on the non-zero entries of W are counted, and how many dense ones each of them takes as long as."""
LARGEST = 1e3
"""Largest entry of Θ: beyond, s²·V loses the digits that the difference in ``Problem.value`` lives on."""
SCREENING_SHARE = 0.12
"""Share of the work that is left for one start point while start points are compared."""
SCREENING_STEPS = (15, 40)
"""Steps that tell a good start point from a poor one: the fewest, and the most that are worth it."""
CLEARLY_BETTER = 0.98
"""Share of the least error below which a start point is entered at once: to measure it costs a decomposition."""
COLLAPSED, PROBE_CELLS = 1.0 - 1e-4, 40
"""Share of identity's error above which a descent has thrown its sums away; cells for each sum that it is tried on."""
HOPELESS = 1.3
"""Error of the best start point, against the best so far, at which the workload belongs to another family."""
FINALISTS, DESCENT_STEPS, POLISH_STEPS, LAST_POLISH_STEPS = 4, 200, 300, 1000
"""Start points that are followed, and the steps for each; a polish ends sooner when it stalls."""
ANNEAL_LEVELS, ANNEAL_STEPS, ANNEAL_COST = 30, 40, 1400
"""Levels, steps of each, and what both with the polish at the end come to, in steps."""
ANNEAL_RESERVE = 3.0
"""Of the work that is left, annealing leaves one part in so many for the moves."""
ANNEAL_ROWS = (0, 2, -2, 4, -3, 7, -1, 1)
"""Numbers of rows to try, counted from the best one: near and far by turns, because the work may run out."""
MOVE_STEPS, FEWEST_MOVE_STEPS, FAILED_MOVES = 120, 30, 20
"""Steps after a move, the fewest that can judge it, and the failures after which moves end."""
MOVE_GAIN = 1e-6
"""Relative gain from which on a move is kept."""

Point: TypeAlias = tuple[float, Matrix]
"""An error and the Θ that has it."""


def p_identity(
    workload: Matrix, privacy: Privacy, watch: Watch, *, rows: int | None = None, iterations: int = 500
) -> Matrix:
    """The published form: Θ ≥ 0 with ``rows`` rows (default n/16), from one random start.

    Guarantee: every column of L has L1 norm 1 (HDMM, Definition 8), so the sensitivity under pure ε is 1.
    Limits: pure ε only; asks n + p questions, so L has more than n² entries; local minima.
    """
    if privacy != "pure":
        raise NotSupportedError('strategy "p-identity" has unit L1 columns: it is for privacy="pure"')
    n = workload.shape[1]
    problem = Problem(workload)
    stream = np.random.default_rng(0)  # a start point, not noise: nothing private depends on it
    start = stream.random((max(1, n // 16 if rows is None else rows), n))
    return assemble(problem.descend(start, iterations, watch)[1])


def assemble(theta: Matrix) -> Matrix:
    """L = [I; Θ]·diag(1/s); rows of Θ that are all zero ask nothing and are left out.

    Guarantee: column j has L1 norm (1 + Σ_k |Θ_kj|)/s_j = 1.
    """
    s = 1.0 + np.abs(theta).sum(axis=0)
    used = theta[np.any(theta != 0.0, axis=1)]
    n = s.size
    L = np.zeros((n + len(used), n))  # filled in place: at 8,192 cells every copy takes half a second
    L[np.arange(n), np.arange(n)] = 1.0 / s
    np.divide(used, s, out=L[n:])
    return L


class Problem:
    """The error of a p-identity strategy as a function of Θ, and descents on it."""

    def __init__(self, workload: Matrix) -> None:
        m, n = workload.shape
        self.columns: int = n
        self.diagonal: Vector = np.einsum("ij,ij->j", workload, workload)
        self.cells: float = float(self.diagonal.sum())
        """The error of Θ = 0, which asks for the cells alone."""
        entries = int(np.count_nonzero(workload))
        if n >= LARGE and SPARSE * entries < n * min(2 * m, n):
            sparse = csr_array(workload)
            self._gram: Callable[[Matrix], Matrix] = lambda T: np.asarray((sparse.T @ (sparse @ T.T)).T)
            self._width: int = SPARSE * entries // n
        elif 2 * m < n:  # two thin products are cheaper than one with V = WᵀW
            self._gram = lambda T: (T @ workload.T) @ workload
            self._width = 2 * m
        else:
            V = gram(workload)
            self._gram = lambda T: T @ V
            self._width = n

    def cost(self, p: int) -> float:
        """Floating-point operations of one evaluation."""
        vectors = 100.0 * p * self.columns + 1.5e6  # the quasi-Newton memory, and the overhead of the calls
        return float(vectors + 4.0 * p * self.columns * (self._width + 4 * p))

    def value(self, theta: Matrix, s: Vector) -> tuple[float, Matrix, Vector]:
        """f = tr(V·(LᵀL)⁻¹) and its derivatives by Θ (at fixed s) and by s.

        LᵀL = S⁻¹(I + ΘᵀΘ)S⁻¹ and (I + ΘᵀΘ)⁻¹ = I − Θᵀ·K·Θ with K = (I + ΘΘᵀ)⁻¹.
        """
        try:
            K = np.linalg.inv(np.eye(theta.shape[0]) + theta @ theta.T)
        except np.linalg.LinAlgError:  # a step so long that the numbers ran out: the line search comes back from it
            return np.inf, np.zeros_like(theta), np.zeros_like(s)
        T = K @ theta
        U = self._gram(theta * s)
        by_s = 2.0 * (self.diagonal * s - np.einsum("ij,ij->j", T, U))
        f = float(np.dot(self.diagonal, s * s) - np.einsum("ij,ij,j->", T, U, s))
        G = (K @ U) * s  # T·S·V·S, because T = K·Θ
        by_theta = -2.0 * (G - (G @ theta.T) @ T)
        return f, by_theta, by_s

    def error(self, theta: Matrix) -> float:
        return self.value(theta, 1.0 + np.abs(theta).sum(axis=0))[0]

    def descend(self, start: Matrix, iterations: int, watch: Watch) -> Point:
        """L-BFGS-B over Θ ≥ 0."""
        shape = start.shape

        def objective(z: Vector) -> tuple[float, Vector]:
            theta = z.reshape(shape)
            f, by_theta, by_s = self.value(theta, 1.0 + theta.sum(axis=0))
            return f, (by_theta + by_s).ravel()

        z = lbfgs(objective, start.ravel(), iterations, watch, box=(0.0, LARGEST))
        theta = z.reshape(shape)
        return self.error(theta), theta

    def polish(self, start: Matrix, iterations: int, watch: Watch) -> Point:
        """L-BFGS-B over Θ = P − N with P, N ≥ 0: both signs, and exact zeros stay exact."""
        shape = (2, *start.shape)

        def objective(z: Vector) -> tuple[float, Vector]:
            P, N = z.reshape(shape)
            f, by_theta, by_s = self.value(P - N, 1.0 + (P + N).sum(axis=0))
            return f, np.concatenate([(by_s + by_theta).ravel(), (by_s - by_theta).ravel()])

        z = np.concatenate([np.maximum(start, 0.0).ravel(), np.maximum(-start, 0.0).ravel()])
        P, N = lbfgs(objective, z, iterations, watch, box=(0.0, LARGEST)).reshape(shape)
        return self.error(P - N), P - N

    def anneal(self, start: Matrix, levels: int, iterations: int, watch: Watch) -> Point:
        """Descend on |Θ| rounded off to √(Θ² + ε²), with ε falling from 1/3 to 1/3000; then ``polish``.

        The rounding removes poor local minima: where this ends depends little on where it starts.
        """
        shape = start.shape
        z, epsilon = start.ravel(), 1.0
        for epsilon in np.geomspace(0.3, 3e-4, levels):

            def objective(z: Vector, epsilon: float = epsilon) -> tuple[float, Vector]:
                theta = z.reshape(shape)
                size = np.sqrt(theta * theta + epsilon * epsilon)
                f, by_theta, by_s = self.value(theta, 1.0 + size.sum(axis=0))
                return f, (by_theta + theta / size * by_s).ravel()

            z = lbfgs(objective, z, iterations, watch)
            if watch.interrupted():
                break
        theta = np.where(np.abs(z) < 3.0 * epsilon, 0.0, z).reshape(shape)
        return self.polish(theta, 4 * iterations, watch)


def hats(n: int, count: int) -> Matrix:
    """``count`` overlapping triangles along the cells: what good Θ of range-like workloads look like."""
    centres = (np.arange(count) + 0.5) * n / count
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(np.arange(n) + 0.5 - centres[:, None]) * count / n))


def starts(workload: Matrix, most: int) -> Iterator[Matrix]:
    """Start points for Θ of about ``most`` rows at most, from those for ordered cells to those that assume nothing."""
    n = workload.shape[1]
    stream = np.random.default_rng(0)  # start points, not noise: nothing private depends on them
    for count in dict.fromkeys(min(most, max(1, round(n / share))) for share in (20, 16, 12, 28, 40, 9)):
        yield np.vstack([hats(n, count), np.full((1, n), 0.3)])
        if count >= 8:
            yield np.vstack([hats(n, count), 0.5 * hats(n, max(2, round(count / 5)))])
    for count in sorted({min(most, max(1, n // 32)), min(most, max(1, n // 16))}):
        yield stream.random((count, n))


def search(contest: Contest) -> None:
    """Screen the start points, descend from the best, let both signs in, anneal, then try moves from the best."""
    watch = contest.watch
    problem = Problem(contest.queries if contest.shape.cells >= LARGE else contest.workload)  # both have one WᵀW
    budget = _Budget(problem, contest.work)
    screened = _screen(contest, problem, budget)
    if not screened or screened[0][0] > HOPELESS * contest.error:
        return
    descents = [_improve(problem.descend, point, budget, DESCENT_STEPS, watch) for point in screened[:FINALISTS]]
    best = min(descents, key=_error)
    best = _improve(problem.polish, best, budget, POLISH_STEPS, watch)
    contest.enter("p-identity", assemble(best[1]))
    best = _anneal_around(problem, best, budget, watch)
    contest.enter("p-identity", assemble(best[1]))
    best = _try_moves(problem, best, budget, watch)
    best = _improve(problem.polish, best, budget, LAST_POLISH_STEPS, watch)
    contest.enter("p-identity", assemble(best[1]))


class _Budget:
    """Operations left to spend."""

    def __init__(self, problem: Problem, work: float) -> None:
        self._problem, self.left = problem, work

    def take(self, p: int, iterations: int) -> int:
        """As many of the iterations with p rows as can still be paid, and pays them, with a tenth for line searches."""
        paid = int(min(iterations, self.left / self._problem.cost(p)))
        self.left -= 1.1 * paid * self._problem.cost(p)
        return paid


def _error(point: Point) -> float:
    return point[0]


def _screen(contest: Contest, problem: Problem, budget: _Budget) -> list[Point]:
    """Where a few steps lead from every start point that can be paid, least error first."""
    fewest, most = SCREENING_STEPS
    points: list[Point] = []
    rows = _most_rows(problem, SCREENING_SHARE * budget.left / fewest)
    if problem.columns >= LARGE and _collapses(problem, rows, contest.watch):
        return []
    for start in starts(contest.workload, rows):
        affordable = int(min(most, SCREENING_SHARE * budget.left / problem.cost(len(start))))
        if (affordable < fewest and points) or contest.watch.stop():
            continue
        paid = budget.take(len(start), max(affordable, fewest))
        points.append(problem.descend(start, paid, contest.watch))
        if points[-1][0] < CLEARLY_BETTER * contest.error:
            contest.enter("p-identity", assemble(points[-1][1]))
    return sorted(points, key=_error)


def _collapses(problem: Problem, most: int, watch: Watch) -> bool:
    """Whether descents from hats and from random sums both throw their sums away.

    On workloads that ask for most of their cells every descent ends at Θ = 0, which is identity, and nothing is left to
    search.
    """
    n = problem.columns
    few = min(most, n // PROBE_CELLS)
    stream = np.random.default_rng(0)  # a start point, not noise: nothing private depends on it
    probes = (np.vstack([hats(n, few), np.full((1, n), 0.3)]), stream.random((few, n)))
    return all(problem.descend(start, SCREENING_STEPS[0], watch)[0] > COLLAPSED * problem.cells for start in probes)


def _most_rows(problem: Problem, work: float) -> int:
    """Rows of Θ up to which one evaluation stays within ``work``: on wide workloads fewer than would be best."""
    rows = problem.columns
    while rows > 8 and problem.cost(rows) > work:
        rows = rows * 3 // 4
    return rows


def _improve(
    method: Callable[[Matrix, int, Watch], Point], point: Point, budget: _Budget, iterations: int, watch: Watch
) -> Point:
    """The better of a point and where the method leads from it, as far as it can be paid."""
    paid = budget.take(len(point[1]), iterations)
    if paid < 1 or watch.stop():
        return point
    return min(point, method(point[1], paid, watch), key=_error)


def _anneal_around(problem: Problem, best: Point, budget: _Budget, watch: Watch) -> Point:
    """Anneal from hats at numbers of rows around the best one, with two thirds of the work that is left."""
    n, rows = problem.columns, len(best[1])
    reserve = budget.left / ANNEAL_RESERVE
    for count in (rows + offset for offset in ANNEAL_ROWS):
        if count < 2 or watch.stop() or budget.left - ANNEAL_COST * problem.cost(count) < reserve:
            continue
        budget.take(count, ANNEAL_COST)
        start = np.vstack([hats(n, count - 1), np.full((1, n), 0.3)])
        best = min(best, problem.anneal(start, ANNEAL_LEVELS, ANNEAL_STEPS, watch), key=_error)
    return best


def _try_moves(problem: Problem, best: Point, budget: _Budget, watch: Watch) -> Point:
    """Change one thing, polish, keep what is better, until the work is spent or many moves have failed in a row."""
    stream = np.random.default_rng(0)  # which move to try, not noise: nothing private depends on it
    failed = 0
    while failed < FAILED_MOVES:
        start = _moved(best[1], stream)
        paid = budget.take(len(start), MOVE_STEPS)
        if paid < FEWEST_MOVE_STEPS or watch.stop():
            break
        error, theta = problem.polish(start, paid, watch)
        failed += 1
        if error < best[0] * (1.0 - MOVE_GAIN):
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
    rest = np.delete(theta, int(stream.integers(p)), axis=0) if move == 2 else theta
    return np.vstack([rest, fresh])
