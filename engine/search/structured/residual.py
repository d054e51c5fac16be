"""Gaussian noise: every query is split into components over subsets of its columns, and each subset is asked for
itself.

With weights p on every axis (``engine.components``), the components over one set S form a problem of their own,
whose Gram matrix is a sum of products Σ_g w_g · Π (means of g over the axes that S lacks)² · ⊗ (rests of g over S).
Where one product is left, a product of the axes' certified optima solves it; the sets share the budget by the roots
of their errors. For marginals of any order, weighted or not, equal p are the optimum (ResidualPlanner, arXiv
2305.08175; Weighted Fourier Factorizations, 2512.21499). For ranges they are not: the means of prefixes are far from
uncorrelated with their rests, and p is found here by descent. An axis that every query names is not split at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from tacit.engine.product_workload import Axes, Block
from tacit.engine.search.structured.axis import AxisSolver, AxisStrategy, rests, stacked
from tacit.engine.search.structured.candidate import Candidate
from tacit.engine.search.structured.scaled import Scaled, subsets
from tacit.engine.strategy import Matrix, Vector

MOST_SETS = 20_000
"""Sets of axes beyond which components are not listed."""
_STEPS = 4096
"""Weights p are multiples of one part in so many, so that an integer lattice keeps every query reachable."""
_EVEN = 1e-9
_LONGEST_DESCENT = 128
"""Points of an axis up to which p is looked for by descent; beyond, among a few."""
_ROUNDS = 40
_TOTAL_WEIGHT = 1e-3
"""Of the total beside the rests while p is looked for: it keeps the strategy of full rank, so that it has a slope."""
_ALTERNATIONS = 3


@dataclass(frozen=True, eq=False)
class _Sets:
    """The sets of axes with components, and which terms they come from."""

    sets: tuple[Axes, ...]
    terms: tuple[tuple[int, ...], ...] = field(repr=False)
    """For each set, the numbers of the terms that hold it."""


def residual_split(
    workload: Scaled, solver: AxisSolver, ended: Callable[[], bool] = lambda: False
) -> tuple[Candidate, dict[int, Vector]] | None:
    """The strategy, and the weights that each axis was split by; None where there are too many sets of axes.

    ``ended`` ends the search for weights.
    """
    if sum(2 ** (len(term.axes) - len(workload.common)) for term in workload.terms) > 8 * MOST_SETS:
        return None
    found = _sets(workload)
    if len(found.sets) > MOST_SETS:
        return None
    splits = {axis: np.zeros(workload.sizes[axis]) for axis in workload.common}
    splits |= _best_splits(workload, found, solver, ended)
    means = _Means(workload, splits)
    blocks, errors = [], []
    shared: dict[int, Vector] = dict(splits)  # one object for each axis: blocks of equal questions are known by it
    for axes, numbers in zip(found.sets, found.terms, strict=True):
        error, strategies = _solve(workload, means, axes, numbers, solver)
        if error > 0:
            blocks.append(Block(axes, tuple(s.L for s in strategies), tuple(shared[axis] for axis in axes)))
            errors.append(error)
    return Candidate.of("components", "approximate", blocks, errors), splits


def _sets(workload: Scaled) -> _Sets:
    listed: dict[Axes, list[int]] = {}
    for number, term in enumerate(workload.terms):
        for axes in subsets(term.axes, workload.common):
            listed.setdefault(axes, []).append(number)
    ordered = sorted(listed, key=lambda axes: (len(axes), axes))
    return _Sets(tuple(ordered), tuple(tuple(listed[axes]) for axes in ordered))


class _Means:
    """The parts of every factor: the size of its mean, and its rests."""

    def __init__(self, workload: Scaled, splits: dict[int, Vector]) -> None:
        self._workload, self._splits = workload, splits
        self._mean: dict[tuple[int, int], float] = {}
        self._rest: dict[tuple[int, int], Matrix] = {}

    def mean(self, axis: int, factor: int) -> float:
        """The squared length of the means of a factor's rows."""
        if (axis, factor) not in self._mean:
            self._mean[axis, factor] = float(np.square(self._workload.matrices[factor] @ self._splits[axis]).sum())
        return self._mean[axis, factor]

    def rest(self, axis: int, factor: int) -> Matrix:
        if (axis, factor) not in self._rest:
            rows = rests(self._workload.matrices[factor], self._splits[axis])
            small = np.abs(rows).max() <= 1e-12 * np.abs(self._workload.matrices[factor]).max()
            self._rest[axis, factor] = np.zeros_like(rows) if small else rows
        return self._rest[axis, factor]


def _solve(
    workload: Scaled, means: _Means, axes: Axes, numbers: Sequence[int], solver: AxisSolver
) -> tuple[float, list[AxisStrategy]]:
    """The error of the components over one set of axes at the whole budget, and the strategies of its axes."""
    weights: dict[tuple[int, ...], float] = {}
    for number in numbers:
        term = workload.terms[number]
        by_axis = dict(zip(term.axes, term.factors, strict=True))
        weight = term.weight * math.prod(means.mean(a, f) for a, f in by_axis.items() if a not in axes)
        key = tuple(by_axis[a] for a in axes)
        weights[key] = weights.get(key, 0.0) + weight
    weights = {
        key: w for key, w in weights.items()
        if w > 0 and all(means.rest(a, f).any() for a, f in zip(axes, key, strict=True))
    }  # fmt: skip
    if not weights:
        return 0.0, []
    rest = {key: [means.rest(a, f) for a, f in zip(axes, key, strict=True)] for key in weights}
    rounds = _ALTERNATIONS if len(weights) > 1 and len(axes) > 1 else 1
    sizes = {key: [float(np.square(r).sum()) for r in rows] for key, rows in rest.items()}
    strategies: list[AxisStrategy] = []
    for _ in range(rounds):
        strategies = []
        for k in range(len(axes)):
            per_factor: dict[int, float] = {}
            for key, weight in weights.items():
                other = math.prod(s for j, s in enumerate(sizes[key]) if j != k)
                per_factor[key[k]] = per_factor.get(key[k], 0.0) + weight * other
            rows = [means.rest(axes[k], f) for f in per_factor]
            strategies.append(solver.rows(stacked(rows, list(per_factor.values()))))
        sizes = {key: [s.error_of(r) for s, r in zip(strategies, rows, strict=True)] for key, rows in rest.items()}
    return sum(weight * math.prod(sizes[key]) for key, weight in weights.items()), strategies


def _best_splits(workload: Scaled, found: _Sets, solver: AxisSolver, ended: Callable[[], bool]) -> dict[int, Vector]:
    """Weights for every axis that is split: equal ones where that is the optimum, else found by descent.

    Axes with the same factors have the same weights.
    """
    splits: dict[int, Vector] = {}
    uneven: dict[tuple[int, ...], list[int]] = {}
    for axis in workload.axes:
        if axis in workload.common:
            continue
        n = workload.sizes[axis]
        splits[axis] = np.full(n, 1 / n)
        if not all(_is_even(workload.matrices[f]) for f in workload.factors_of(axis)):
            uneven.setdefault(workload.factors_of(axis), []).append(axis)
    if not uneven or ended():
        return splits
    model = _Model(workload, found, list(uneven.values()), splits)
    for axes, weights in zip(uneven.values(), model.best(solver, ended), strict=True):
        for axis in axes:
            splits[axis] = weights
    return splits


def _is_even(matrix: Matrix) -> bool:
    """Whether the mean under equal weights is uncorrelated with the rests: then no other weights are better."""
    sums = matrix.T @ matrix.sum(axis=1)
    return bool(np.abs(sums - sums.mean()).max() <= _EVEN * max(np.abs(sums).max(), 1e-300))


class _Model:
    """The error as a function of the weights p of some axes: (Σ_S √(v_S · Π e_c))², v_S = Σ_T w_T Π a_c.

    a is the squared length of an axis' means and e the error of its rests; an axis with several factors has the sums
    over them, each weighed as the terms weigh it: near enough to choose p by.
    """

    def __init__(
        self, workload: Scaled, found: _Sets, tied: Sequence[Sequence[int]], splits: dict[int, Vector]
    ) -> None:
        self._workload, self._tied, self._even = workload, tied, splits
        self._place = {axis: k for k, axis in enumerate(workload.axes)}
        weights: dict[int, dict[int, float]] = {}
        for term in workload.terms:
            for axis, factor in zip(term.axes, term.factors, strict=True):
                of_axis = weights.setdefault(axis, {})
                of_axis[factor] = of_axis.get(factor, 0.0) + term.weight
        self._rows = {}
        for axis, of_axis in weights.items():
            total = sum(of_axis.values())
            self._rows[axis] = np.vstack([workload.matrices[f] * math.sqrt(w / total) for f, w in of_axis.items()])
        pairs = [(s, t) for s, numbers in enumerate(found.terms) for t in numbers]
        self._set = np.array([s for s, _ in pairs])
        self._weight = np.array([workload.terms[t].weight for _, t in pairs])
        inside = np.zeros((len(found.sets), len(self._place)), dtype=bool)
        for s, axes in enumerate(found.sets):
            inside[s, [self._place[a] for a in axes]] = True
        named = np.zeros((len(workload.terms), len(self._place)), dtype=bool)
        for t, term in enumerate(workload.terms):
            named[t, [self._place[a] for a in term.axes]] = True
        self._inside = csr_array(inside.astype(float))
        self._beside = csr_array((named[[t for _, t in pairs]] & ~inside[self._set]).astype(float))
        self._sets = len(found.sets)

    def best(self, solver: AxisSolver, ended: Callable[[], bool]) -> list[Vector]:
        """For each group of tied axes, its weights as multiples of 1/_STEPS."""
        log_a, log_e = np.zeros(len(self._place)), np.zeros(len(self._place))
        for axis, place in self._place.items():
            if axis in self._even and all(axis not in axes for axes in self._tied):
                log_a[place], log_e[place] = self._parts(axis, self._even[axis], solver)
        starts = [self._start(axes, log_a, log_e, solver) for axes in self._tied]
        rounded = [_rounded(start) for start in starts]
        if ended() or max(self._workload.sizes[axes[0]] for axes in self._tied) > _LONGEST_DESCENT:
            return rounded
        lengths = [len(start) for start in starts]
        ends = np.cumsum(lengths)[:-1]

        def slope(point: Vector) -> tuple[float, Vector]:
            gradients = []
            parts = [
                self._with_slopes(axes, p, solver) for axes, p in zip(self._tied, _sums_one(point, ends), strict=True)
            ]
            for axes, (a, e, _, _) in zip(self._tied, parts, strict=True):
                for axis in axes:
                    log_a[self._place[axis]], log_e[self._place[axis]] = math.log(a), math.log(e)
            value, by_a, by_e = self._value(log_a, log_e)
            if ended():  # a point without slope: the descent stays where it is
                return value, np.zeros(len(point))
            for axes, (a, e, slope_a, slope_e) in zip(self._tied, parts, strict=True):
                places = [self._place[axis] for axis in axes]
                gradient = by_a[places].sum() / a * slope_a + by_e[places].sum() / e * slope_e
                gradients.append(gradient - gradient.mean())
            return value, np.concatenate(gradients)

        from scipy.optimize import minimize  # heavy, and few batches come here

        result = minimize(
            slope, np.concatenate(starts), jac=True, method="L-BFGS-B", options={"maxiter": _ROUNDS, "ftol": 1e-6}
        )
        return [_rounded(p) for p in _sums_one(result.x, ends)]

    def _value(self, log_a: Vector, log_e: Vector) -> tuple[float, Vector, Vector]:
        """log Σ_S √(v_S Π e), and its slopes in log a and log e of every axis."""
        products = self._weight * np.exp(self._beside @ log_a)
        v = np.bincount(self._set, products, self._sets)
        roots = np.sqrt(v * np.exp(self._inside @ log_e))
        total = roots.sum()
        by_e = self._inside.T @ (roots / 2) / total
        by_a = self._beside.T @ (products * (roots / (2 * np.maximum(v, 1e-300)))[self._set]) / total
        return math.log(total), np.asarray(by_a), np.asarray(by_e)

    def _parts(self, axis: int, split: Vector, solver: AxisSolver) -> tuple[float, float]:
        rows = self._rows[axis]
        e = solver.rows(np.ascontiguousarray(rests(rows, split))).error if len(split) > 1 else 1.0
        return math.log(max(float(np.square(rows @ split).sum()), 1e-300)), math.log(max(e, 1e-300))

    def _start(self, axes: Sequence[int], log_a: Vector, log_e: Vector, solver: AxisSolver) -> Vector:
        """The best of a few: (V + τI)⁻¹1 lies between equal weights and those with the shortest means."""
        rows = self._rows[axes[0]]
        n = rows.shape[1]
        V = rows.T @ rows
        places = [self._place[axis] for axis in axes]
        best: tuple[float, Vector] | None = None
        for tau in (np.inf, 100.0, 30.0, 10.0, 3.0):
            p = np.full(n, 1 / n) if np.isinf(tau) else np.linalg.solve(V + tau * n * np.eye(n), np.ones(n))
            p = p / p.sum()
            log_a[places], log_e[places] = self._parts(axes[0], p, solver)
            value = self._value(log_a, log_e)[0]
            if best is None or value < best[0]:
                best = value, p
        assert best is not None
        return best[1]

    def _with_slopes(self, axes: Sequence[int], p: Vector, solver: AxisSolver) -> tuple[float, float, Vector, Vector]:
        """a(p) = pᵀVp and e(p) = tr G(p)Y with their slopes, Y = (LᵀL)⁻¹ of the best strategy at p
        (envelope theorem)."""
        rows = self._rows[axes[0]]
        V = rows.T @ rows
        rest = rests(rows, p)
        size = _TOTAL_WEIGHT * float(np.square(rest).sum()) / len(p)
        L = solver.rows(np.vstack([rest, np.full((1, len(p)), math.sqrt(size / len(p)))])).L
        Y = np.linalg.pinv(L.T @ L)
        ones = Y.sum(axis=1)
        e = float(np.einsum("ij,jk,ik->", rest, Y, rest))
        return float(p @ V @ p), e, 2 * V @ p, -2 * V @ ones + 2 * ones.sum() * (V @ p)


def _sums_one(point: Vector, ends: Vector) -> list[Vector]:
    return [p + (1 - p.sum()) / len(p) for p in np.split(point, ends)]


def _rounded(weights: Vector) -> Vector:
    """Multiples of 1/_STEPS that add up to 1; equal weights stay as they are."""
    if np.abs(weights - weights[0]).max() <= 1e-12:
        return weights
    steps = np.rint(weights * _STEPS)
    steps[np.argmax(steps)] += _STEPS - steps.sum()
    return np.asarray(steps / _STEPS)
