"""Laplace noise: tables over some sets of axes, each at its own share of ε, and every query from all of them together.

One factor L_c of norm 1 is chosen for each axis: its points themselves, or a strategy for its ranges. A block over S
asks ⊗ L_c over S with a share θ_S of ε. With the weights p that L_c implies (``components.AxisQuestions.split``) the
component over U is known from S ⊇ U with a precision θ_S² / Π τ_c over S \\ U, τ_c = ‖1ᵀL_c⁺‖², and precisions add
up: so the error is Σ_U E_U / Σ_{S ⊇ U} θ_S²/Π τ_c, in closed form. Weighted marginals are HDMM's (OPT_M); here the
axes need not be asked for their points, and the tables are searched for: several that are merged into a larger one
may cost less together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize
from tacit.engine.components import AxisQuestions
from tacit.engine.product_workload import Axes, Block
from tacit.engine.search.structured.axis import AxisSolver
from tacit.engine.search.structured.candidate import Candidate
from tacit.engine.search.structured.scaled import Scaled, subsets
from tacit.engine.strategy import Matrix, Vector

MOST_SETS = 4096
"""Sets of axes whose tables may be asked for."""
LARGEST_TABLE = 1 << 22
"""Cells of one of them."""
_WIDEST_COVER = 10
"""Axes of a merged table: beyond, its subsets are too many to list."""
_TRIED = (0.01, 0.03, 0.08, 0.2)
_INSERTIONS = 40
_GAIN = 1e-4
_TINY = 1e-4
_ALWAYS = 3
"""Starts that every search tries."""
_DRAWN, _FEW_SETS = 24, 64
"""Random starts, where sets are so few that one takes milliseconds; with more sets, fewer."""


def marginals(
    workload: Scaled, factors: dict[int, Matrix], name: str, ended: Callable[[], bool] = lambda: False
) -> Candidate | None:
    """The best tables found with these factors; None where they do not fit or a factor does not see every point."""
    questions = {axis: AxisQuestions(L) for axis, L in factors.items()}
    if any(q.split is None for q in questions.values()):
        return None
    problem = _Problem.of(workload, questions)
    if problem is None:
        return None
    best: tuple[float, dict[Axes, float]] | None = None
    for number, start in enumerate(problem.starts()):
        if number and best is not None and number >= _ALWAYS and ended():
            break
        found = problem.improved(start)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is None:
        return None
    error, shares = best
    total = sum(shares.values())
    blocks = [Block(S, tuple(factors[a] for a in S), (None,) * len(S)) for S in shares]
    return Candidate(name, tuple(blocks), tuple(share / total for share in shares.values()), error)


def axis_factors(workload: Scaled, solver: AxisSolver, *, points: bool) -> dict[int, Matrix]:
    """For each axis its points, or the best strategy for what is asked of it; where that is thin, its points."""
    factors: dict[int, Matrix] = {}
    for axis in workload.axes:
        identity = np.eye(workload.sizes[axis])
        factors[axis] = identity
        if points:
            continue
        rows = [workload.matrices[f] for f in workload.factors_of(axis)]
        if axis not in workload.common:
            rows.append(np.ones((1, workload.sizes[axis])))
        L = solver.rows(np.ascontiguousarray(np.vstack(rows))).L
        if AxisQuestions(L).split is not None:
            factors[axis] = L
    return factors


class _Problem:
    """Which components matter how much, and what every set of axes tells of them."""

    def __init__(self, workload: Scaled, needs: dict[Axes, float], totals: dict[int, float], sets: list[Axes]) -> None:
        self._workload, self._totals = workload, totals
        self._components = list(needs)
        self._place = {U: k for k, U in enumerate(self._components)}
        self._needs = np.array([needs[U] for U in self._components])
        self._sets = sets
        self._tells = np.zeros((len(needs), len(sets)))
        for k, S in enumerate(sets):
            for U in subsets(S):
                place = self._place.get(U)
                if place is not None:
                    self._tells[place, k] = 1 / math.prod(totals[a] for a in S if a not in U)

    @classmethod
    def of(cls, workload: Scaled, questions: dict[int, AxisQuestions]) -> _Problem | None:
        if sum(2 ** len(term.axes) for term in workload.terms) > 8 * MOST_SETS:
            return None
        needs: dict[Axes, float] = {}
        means: dict[tuple[int, int], float] = {}
        rest: dict[tuple[int, int], float] = {}
        for term in workload.terms:
            for axis, factor in zip(term.axes, term.factors, strict=True):
                if (axis, factor) in means:
                    continue
                matrix, split = workload.matrices[factor], questions[axis].split
                assert split is not None
                means[axis, factor] = float(np.square(matrix @ split).sum())
                rest[axis, factor] = float(np.square(matrix @ questions[axis].rests(split)).sum())
            for U in subsets(term.axes):
                parts = ((rest if a in U else means)[a, f] for a, f in zip(term.axes, term.factors, strict=True))
                need = term.weight * math.prod(parts)
                if need > 0:
                    needs[U] = needs.get(U, 0.0) + need
        totals = {axis: float(q.total @ q.total) for axis, q in questions.items()}
        sets = _sets(workload)
        if len(sets) > MOST_SETS or len(needs) * len(sets) > 2**25:
            return None
        return cls(workload, needs, totals, sets)

    def starts(self) -> list[dict[Axes, float]]:
        """The workload's own sets; those merged as far as that pays; the smallest set that holds all."""
        own = {S: (self._alone(S, [S])) ** (1 / 3) for S in self._workload.column_sets}
        starts = [own]
        merged = self._merged()
        if merged.keys() != own.keys():
            starts.append(merged)
        if self._workload.axes in self._sets and self._workload.axes not in own:
            starts.append({self._workload.axes: 1.0})
        rng = np.random.default_rng(0)  # of start points: the same search every time
        for _ in range(_DRAWN * _FEW_SETS // max(len(self._sets), _FEW_SETS)):
            base = starts[int(rng.integers(min(len(starts), _ALWAYS)))]
            total = sum(base.values())
            picked = rng.choice(len(self._sets), size=min(int(rng.integers(1, 5)), len(self._sets)), replace=False)
            starts.append(base | {self._sets[k]: 0.05 * total for k in picked.tolist()})
        return starts

    def improved(self, start: dict[Axes, float]) -> tuple[float, dict[Axes, float]] | None:
        """Descend in the shares, then try every other set at a few shares, as long as that pays."""
        place = {S: k for k, S in enumerate(self._sets)}
        if not all(S in place for S in start):
            return None
        chosen = [place[S] for S in start]
        shares = np.array(list(start.values()))
        error, shares = self._descend(chosen, shares / shares.sum())
        for _ in range(_INSERTIONS):
            if not np.isfinite(error):
                return None
            candidate = self._insertion(chosen, shares)
            if candidate is None:
                break
            added, amount = candidate
            tried = [*chosen, added]
            value, weights = self._descend(tried, np.append(shares * (1 - amount), amount))
            if value > error * (1 - _GAIN):
                break
            kept = weights > _TINY
            cut, rest = [k for k, keep in zip(tried, kept, strict=True) if keep], weights[kept] / weights[kept].sum()
            after = self._error(cut, rest)
            chosen, shares, error = (cut, rest, after) if after <= value else (tried, weights, value)
        return error, {self._sets[k]: float(s) for k, s in zip(chosen, shares, strict=True)}

    def _error(self, chosen: Sequence[int], shares: Vector) -> float:
        precision = self._tells[:, chosen] @ np.square(shares)
        if not precision.all():
            return math.inf
        return float(np.sum(self._needs / precision))

    def _descend(self, chosen: Sequence[int], shares: Vector) -> tuple[float, Vector]:
        tells = self._tells[:, chosen]
        if not (tells @ np.square(shares)).all():
            return math.inf, shares

        def slope(z: Vector) -> tuple[float, Vector]:
            theta = _shares(z)
            precision = tells @ np.square(theta)
            parts = self._needs / np.maximum(precision, 1e-300)
            total = parts.sum()
            gradient = -(tells.T @ (parts / np.maximum(precision, 1e-300))) * 2 * theta
            return math.log(total), theta * (gradient - gradient @ theta) / total

        result = minimize(
            slope, np.log(shares), jac=True, method="L-BFGS-B", options={"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-9}
        )
        theta = _shares(result.x)
        return self._error(chosen, theta), theta

    def _insertion(self, chosen: Sequence[int], shares: Vector) -> tuple[int, float] | None:
        """The set, and the share for it, that lowers the error most before the others are adjusted."""
        precision = self._tells[:, chosen] @ np.square(shares)
        current = float(np.sum(self._needs / precision))
        best: tuple[float, int, float] | None = None
        for amount in _TRIED:
            changed = (1 - amount) ** 2 * precision[:, None] + amount**2 * self._tells
            errors = (self._needs[:, None] / changed).sum(axis=0)
            errors[list(chosen)] = math.inf
            k = int(np.argmin(errors))
            if best is None or errors[k] < best[0]:
                best = float(errors[k]), k, amount
        assert best is not None
        return (best[1], best[2]) if best[0] < current * (1 - _GAIN) else None

    def _alone(self, S: Axes, served: Sequence[Axes]) -> float:
        """The error of the terms of some column sets, answered from the table over S alone at the whole budget."""
        k = self._sets.index(S)
        total = 0.0
        for term in self._workload.terms:
            if term.axes in served:
                beside = math.prod(self._totals[a] for a in S if a not in term.axes)
                total += beside * self._of_term(term.axes)
        return total if self._tells[:, k].any() else math.inf

    def _of_term(self, axes: Axes) -> float:
        place = self._place.get(axes)
        return 1.0 if place is None else float(self._needs[place])

    def _merged(self) -> dict[Axes, float]:
        """Two tables become one over the axes of both, as long as that lowers the error of all, each asked alone."""
        groups: dict[Axes, list[Axes]] = {}
        for S in self._workload.column_sets:
            groups.setdefault(S, []).append(S)
        known = set(self._sets)
        errors = {S: self._alone(S, served) for S, served in groups.items()}
        for _ in range(len(groups) - 1):
            roots = {S: error ** (1 / 3) for S, error in errors.items()}
            total = sum(roots.values())
            best: tuple[float, Axes, Axes, Axes, float] | None = None
            listed = list(groups)
            if len(listed) > 120:
                break
            for i, first in enumerate(listed):
                for second in listed[i + 1 :]:
                    union = tuple(sorted({*first, *second}))
                    if union not in known:
                        continue
                    error = self._alone(union, [*groups[first], *groups[second], *groups.get(union, [])])
                    beside = roots.get(union, 0.0) if union not in (first, second) else 0.0
                    value = total - roots[first] - roots[second] - beside + error ** (1 / 3)
                    if value < total and (best is None or value < best[0]):
                        best = value, first, second, union, error
            if best is None:
                break
            _, first, second, union, error = best
            served = [*groups.pop(first), *groups.pop(second), *groups.pop(union, [])]
            errors.pop(first), errors.pop(second), errors.pop(union, None)
            groups[union], errors[union] = served, error
        return {S: error ** (1 / 3) for S, error in errors.items()}


def _shares(z: Vector) -> Vector:
    """Softmax; a share is never so small that the inverse of its fourth power overflows."""
    theta = np.exp(np.maximum(z - z.max(), -60.0))
    return np.asarray(theta / theta.sum())


def _sets(workload: Scaled) -> list[Axes]:
    """The subsets of what the terms name, and of unions of them while these are few and small."""
    sets: dict[Axes, None] = {}
    for S in workload.column_sets:
        sets.update(dict.fromkeys(subsets(S, workload.common)))
    if len(workload.axes) <= _WIDEST_COVER:
        for S in subsets(workload.axes, workload.common):
            if workload.points(S) <= LARGEST_TABLE:
                sets.setdefault(S)
    return [S for S in sets if workload.points(S) <= LARGEST_TABLE]
