"""Laplace noise: tables over some sets of axes, each at its own share of ε, and every query from all of them together.

One factor L_c of norm 1 is chosen for each axis: its points themselves, or a strategy for its ranges. A block over S
asks ⊗ L_c over S with a share θ_S of ε. With the weights p that L_c implies (``components.AxisQuestions.split``) the
component over U is known from S ⊇ U with a precision θ_S² / Π τ_c over S \\ U, τ_c = ‖1ᵀL_c⁺‖², and precisions add
up: so the error is Σ_U E_U / Σ_{S ⊇ U} θ_S²/Π τ_c, in closed form. Weighted marginals are HDMM's (OPT_M); here the
axes need not be asked for their points, and the tables are searched for. At a share of zero the error has no slope in
the share, so descent alone finds no new table: one is added beside the others or put in the place of all that it
holds, from many starts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
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
_MOST_LARGER = 2048
"""Sets up to which those that no query names are listed too, smaller ones first."""
_ADDED = (0.01, 0.03, 0.08, 0.2)
"""Shares of a set that is asked for too."""
_REPLACED = (0.5, 0.7, 0.9)
"""And of one in place of those inside it, as parts of theirs."""
_MOVES = 100
"""From one start."""
_GAIN = 1e-4
"""What a move must pay, as a part of the error."""
_TINY = 1e-4
"""A share that is given up where that costs nothing."""
_ALWAYS, _FEW_SETS = 12, 64
"""Starts that every search tries where sets are so few that one takes milliseconds; with more sets, it tries one."""
_LEVEL = 0.06
"""The share of all sets of one size that are asked beside others."""
_MOST_DRAWN, _WORK = 96, 3_000_000
"""Random starts: fewer where components times sets are many."""
_LARGE = 1_000_000
"""Components times sets beyond which no start but the first is tried."""
_SPREADS, _DECAYS = (0.3, 1.0, 2.0), (0.0, 0.3, 0.6, 1.0)
"""Of the logarithms of the shares: their standard deviation, and how they fall with the size of a set's table."""

Places = NDArray[np.intp]


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
        if best is not None and number >= problem.least_starts and ended():
            break
        found = problem.improved(start)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    if best is None:
        return None
    error, shares = problem.polished(best[1])
    total = sum(shares.values())
    blocks = [Block(S, tuple(factors[a] for a in S), (None,) * len(S)) for S in shares]
    return Candidate(name, tuple(blocks), tuple(share / total for share in shares.values()), error)


def axis_factors(workload: Scaled, solver: AxisSolver, *, points: bool) -> dict[int, Matrix]:
    """For each axis its points, or the best strategy for what is asked of it; where that is thin, its points."""
    factors: dict[int, Matrix] = {}
    for axis in workload.axes:
        identity = np.eye(workload.sizes[axis])
        factors[axis] = identity
        rows = [workload.matrices[f] for f in workload.factors_of(axis)]
        if points or all(np.count_nonzero(matrix, axis=1).max() == 1 for matrix in rows):  # points are all they ask
            continue
        if axis not in workload.common:
            rows.append(np.ones((1, workload.sizes[axis])))
        L = solver.rows(np.ascontiguousarray(np.vstack(rows))).L
        if AxisQuestions(L).split is not None:
            factors[axis] = L
    return factors


class _Problem:
    """Which components matter how much, and what every set of axes tells of them."""

    def __init__(self, workload: Scaled, needs: dict[Axes, float], totals: dict[int, float], sets: list[Axes]) -> None:
        self._workload = workload
        self._components = list(needs)
        self._place = {U: k for k, U in enumerate(self._components)}
        self._needs = np.array([needs[U] for U in self._components])
        self._sets = sets
        self._number = {S: k for k, S in enumerate(sets)}
        self._tells = np.zeros((len(needs), len(sets)))
        for k, S in enumerate(sets):
            for U in subsets(S):
                place = self._place.get(U)
                if place is not None:
                    self._tells[place, k] = 1 / math.prod(totals[a] for a in S if a not in U)
        named = np.zeros((len(sets), len(workload.sizes)))
        for k, S in enumerate(sets):
            named[k, list(S)] = 1.0
        self._inside = (named @ (1 - named).T == 0).astype(float)
        """Whether the first set is a subset of the second."""

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

    @property
    def least_starts(self) -> int:
        return _ALWAYS if len(self._sets) <= _FEW_SETS else 1

    def starts(self) -> Iterator[dict[Axes, float]]:
        """The workload's own sets, and the smallest set that holds all; each with all sets of one size beside it; all
        sets at random shares, larger for those that are about as large as what is asked for."""
        own = {S: self._needs[self._place[S]] ** (1 / 3) for S in self._workload.column_sets if S in self._place}
        whole = {self._workload.axes: 1.0}
        bases = [base for base in (own, whole) if base and base.keys() <= self._number.keys()]
        yield from bases
        if self._tells.size > _LARGE:
            return
        for size in sorted({len(S) for S in self._sets}):
            level = [S for S in self._sets if len(S) == size]
            for base in bases:
                yield dict.fromkeys(level, _LEVEL * sum(base.values()) / len(level)) | base
        sizes = np.array([math.log(self._workload.points(S)) for S in self._sets])
        far = np.abs(sizes - np.mean([math.log(self._workload.points(S)) for S in self._workload.column_sets]))
        rng = np.random.default_rng(0)  # of start points: the same search every time
        for number in range(min(_MOST_DRAWN, _WORK // self._tells.size)):
            spread, decay = _SPREADS[number % len(_SPREADS)], _DECAYS[number % len(_DECAYS)]
            shares = np.exp(rng.normal(0, spread, len(self._sets)) - decay * far)
            yield dict(zip(self._sets, shares.tolist(), strict=True))

    def improved(self, start: dict[Axes, float]) -> tuple[float, dict[Axes, float]] | None:
        """Descend in the shares, then move to other sets as long as that pays; None if the start misses a component."""
        error, chosen, shares = self._descend(*self._as_arrays(start))
        if not np.isfinite(error):
            return None
        for _ in range(_MOVES):
            tried = (self._descend(*move) for move in self._moves(chosen, shares))
            better = next((found for found in tried if found[0] < error * (1 - _GAIN)), None)
            if better is None:
                break
            error, chosen, shares = better
        return error, self._as_shares(chosen, shares)

    def polished(self, found: dict[Axes, float]) -> tuple[float, dict[Axes, float]]:
        """The same sets at their best shares, to all digits."""
        error, chosen, shares = self._descend(*self._as_arrays(found), tolerance=1e-13)
        return error, self._as_shares(chosen, shares)

    def _as_arrays(self, shares: dict[Axes, float]) -> tuple[Places, Vector]:
        values = np.array(list(shares.values()))
        return np.array([self._number[S] for S in shares]), values / values.sum()

    def _as_shares(self, chosen: Places, shares: Vector) -> dict[Axes, float]:
        return {self._sets[k]: float(share) for k, share in zip(chosen, shares, strict=True)}

    def _moves(self, chosen: Places, shares: Vector) -> list[tuple[Places, Vector]]:
        """A few sets to ask for too, or in place of those inside them: the ones with least error before a descent."""
        tells = self._tells[:, chosen]
        precision = tells @ np.square(shares)
        inside = self._inside[chosen]
        replaced = shares @ inside
        without = precision[:, None] - tells @ (np.square(shares)[:, None] * inside)
        listed: list[tuple[float, int, float, bool]] = []
        nothing, every = np.zeros(len(self._sets)), np.ones(len(self._sets))
        for base, taken, shape, amounts in (
            (precision[:, None], nothing, every, _ADDED),
            (np.maximum(without, 0.0), replaced, replaced, _REPLACED),
        ):
            absorbs = shape is replaced
            for amount in (part * shape for part in amounts):
                changed = np.square(amount) * self._tells
                changed += base
                np.maximum(changed, 1e-300, out=changed)
                np.reciprocal(changed, out=changed)
                errors = self._needs @ changed * (1 - taken + amount) ** 2
                errors[replaced == 0 if absorbs else chosen] = math.inf
                k = int(np.argmin(errors))
                listed.append((float(errors[k]), k, float(amount[k]), absorbs))
        moves = []
        for _, k, amount, absorbs in sorted(one for one in listed if math.isfinite(one[0])):
            kept = (self._inside[chosen, k] == 0) if absorbs else np.ones(len(chosen), dtype=bool)
            moved = np.append(shares[kept], amount)
            moves.append((np.append(chosen[kept], k), moved / moved.sum()))
        return moves

    def _error(self, chosen: Places, shares: Vector) -> float:
        precision = self._tells[:, chosen] @ np.square(shares)
        if not precision.all():
            return math.inf
        return float(np.sum(self._needs / precision))

    def _descend(self, chosen: Places, shares: Vector, tolerance: float = 1e-6) -> tuple[float, Places, Vector]:
        """A local minimum over these sets, without those that get next to nothing."""
        from scipy.optimize import minimize  # heavy, and few batches come here

        tells = self._tells[:, chosen]
        if not (tells @ np.square(shares)).all():
            return math.inf, chosen, shares

        def slope(z: Vector) -> tuple[float, Vector]:
            theta = _shares(z)
            precision = np.maximum(tells @ np.square(theta), 1e-100)
            parts = self._needs / precision
            total = parts.sum()
            gradient = -(tells.T @ (parts / precision)) * 2 * theta
            return math.log(total), theta * (gradient - gradient @ theta) / total

        result = minimize(
            slope,
            np.log(np.maximum(shares, 1e-26)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 1000, "ftol": tolerance, "gtol": 1e-9},
        )
        theta = _shares(result.x)
        error = self._error(chosen, theta)
        kept = theta > _TINY
        cut = theta[kept] / theta[kept].sum()
        after = self._error(chosen[kept], cut)
        return (after, chosen[kept], cut) if after <= error * (1 + 100 * tolerance) else (error, chosen, theta)


def _shares(z: Vector) -> Vector:
    """Softmax; a share is never so small that the inverse of its fourth power overflows."""
    theta = np.exp(np.maximum(z - z.max(), -60.0))
    return np.asarray(theta / theta.sum())


def _sets(workload: Scaled) -> list[Axes]:
    """The subsets of what the terms name, and larger sets while these are few and small."""
    sets: dict[Axes, None] = {}
    for S in workload.column_sets:
        sets.update(dict.fromkeys(subsets(S, workload.common)))
    for size in range(len(workload.axes) + 1):
        larger = itertools.combinations(workload.axes, size)
        if math.comb(len(workload.axes), size) + len(sets) > _MOST_LARGER:
            break
        sets.update(dict.fromkeys(S for S in larger if workload.common.issubset(S)))
    return [S for S in sets if workload.points(S) <= LARGEST_TABLE]
