"""Errors measured otherwise than by their sum: weigh the queries, solve for the least weighted sum, weigh them again.

What such a goal needs is in ``Goal``; ``minimax.py`` and ``least_absolute.py`` have one each. Under (ε, δ) every
weighted problem is solved to its optimum in a moment; under pure ε nothing proves a weighted problem solved, and what
counts is what was measured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tacit.engine.search.options import Options
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Strategy, Vector

ROUNDS = 60
"""Reweightings under (ε, δ)."""
GAP = 1e-3
"""Where they stop."""
SOLVED = 0.1 * GAP
"""The gap to which each weighted problem is solved: so small that what is left of ``GAP`` comes from the shares."""
LEAST_SHARE = 1e-9
"""Of an even share: with none at all the search would lose the query altogether."""
TRIAL_EFFORT = 0.25
"""Share of the portfolio's work for each trial under pure ε; the last one gets all of it."""
POWERS = (1.0, 0.5, 1.0, 0.5)
"""How far the shares move towards their goal in each further trial under pure ε."""

Solve: TypeAlias = Callable[[Matrix, Vector, Options, Watch], Strategy]
"""The strategy of least Σ ω_i·(error of i) for weights ω."""


@dataclass(frozen=True)
class Trial:
    """One weighted problem: the shares that multiplied the weights, and the squared error of every query."""

    shares: Vector
    errors: Vector
    strategy: Strategy
    value: float
    """Of the goal."""


class Goal(ABC):
    """What is to be least, as a function of the queries' squared errors."""

    def __init__(self, workload: Matrix, weights: Vector) -> None:
        self.workload, self.weights = workload, weights
        self.used: NDArray[np.bool_] = np.any(workload != 0.0, axis=1)

    @abstractmethod
    def value(self, errors: Vector) -> float: ...

    @abstractmethod
    def moved(self, trial: Trial, power: float) -> Vector:
        """Shares for the next trial, for queries that ask something; of any sum."""

    @abstractmethod
    def bound(self, trial: Trial, watch: Watch) -> float:
        """What no strategy can beat, from a trial under (ε, δ)."""


def least(goal: Goal, options: Options, watch: Watch, solve: Solve) -> Strategy:
    """The strategy for which the goal's value is least, with ``error``, ``lower_bound`` and ``trace`` in that measure.

    The certified search under (ε, δ) comes first, because its bounds hold under pure ε too and its shares are a good
    start; the search that was asked for comes after it where that is another one.
    """
    if not goal.workload.any():
        return solve(goal.workload, goal.weights, options, watch)
    trials = _Trials(goal, watch, solve)
    certified = replace(options, privacy="approximate", strategy=None, parameters={})
    is_certified = options.privacy == "approximate" and options.strategy is None
    best = _balance(trials, certified, reports=is_certified)
    if not is_certified:
        best = _try(trials, options, best.shares)
    bound = min(trials.bound, best.value)
    trace = (*(p for p in watch.trace if p[1] > best.value), (watch.seconds, best.value, bound))
    return replace(best.strategy, error=best.value, lower_bound=bound, seconds=watch.seconds, trace=trace)


class _Trials:
    """Solves weighted problems and keeps the best bound that they have proven."""

    def __init__(self, goal: Goal, watch: Watch, solve: Solve) -> None:
        self.watch, self._goal, self._solve = watch, goal, solve
        self.even: Vector = goal.used / goal.used.sum()
        self.bound = 0.0

    def run(self, options: Options, shares: Vector, *, proves: bool = False) -> Trial:
        goal = self._goal
        shares = np.maximum(shares, LEAST_SHARE * self.even)
        apart = Watch(target_gap=SOLVED, cancel=self.watch.interrupted)
        strategy = self._solve(goal.workload, goal.weights * shares, options, apart)
        errors = strategy.sensitivity**2 * np.einsum("ij,ij->i", strategy.B, strategy.B)
        trial = Trial(shares, errors, strategy, goal.value(errors))
        if proves:
            self.bound = max(self.bound, goal.bound(trial, self.watch))
        return trial

    def moved(self, trial: Trial, power: float) -> Vector:
        shares = np.where(self._goal.used, self._goal.moved(trial, power), 0.0)
        return np.asarray(shares / shares.sum())


def _balance(trials: _Trials, options: Options, *, reports: bool) -> Trial:
    """Reweigh under (ε, δ) until the value meets the bound."""
    trial = best = trials.run(options, trials.even, proves=True)
    for _ in range(ROUNDS - 1):
        if reports:
            trials.watch.report(best.value, trials.bound)
        if best.value <= trials.bound * (1.0 + GAP) or trials.watch.stop():
            return best
        trial = trials.run(options, trials.moved(trial, 1.0), proves=True)
        best = min(best, trial, key=_value)
    if reports:
        trials.watch.report(best.value, trials.bound)
    return best


def _try(trials: _Trials, options: Options, shares: Vector) -> Trial:
    """Even shares, those of (ε, δ), then shares moved from the best of them; the best measured one wins.

    A named strategy gets the first two only: it takes its full time in every trial.
    """
    watch, quick = trials.watch, replace(options, effort=TRIAL_EFFORT)

    def run(options: Options, shares: Vector, *others: Trial) -> Trial:
        best = min(*others, trials.run(options, shares), key=_value) if others else trials.run(options, shares)
        watch.report(best.value, trials.bound)
        return best

    best = run(quick, trials.even)
    if not watch.stop():
        best = run(quick, shares, best)
    for power in () if options.strategy is not None else POWERS:
        if watch.stop():
            return best
        best = run(quick, trials.moved(best, power), best)
    return best if options.strategy is not None or watch.stop() else run(options, best.shares, best)


def _value(trial: Trial) -> float:
    return trial.value
