"""The least largest error: weigh the queries until their errors are even.

For shares λ ≥ 0 of sum 1 the largest error is at least Σ λ_i·(error of i), so the bound of every weighted problem
bounds this one, and the best shares make the two meet. Under (ε, δ) every weighted problem is solved to its
optimum in a moment; under pure ε nothing proves a weighted problem solved, and what counts is what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tacit.engine.search.least_total import least_total
from tacit.engine.search.options import Options
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Strategy, Vector

ROUNDS = 60
"""Reweightings under (ε, δ)."""
GAP = 1e-3
"""Where they stop."""
SOLVED = 0.1 * GAP
"""The gap to which each weighted problem is solved: so small that what is left of ``GAP`` comes from uneven errors."""
LEAST_SHARE = 1e-9
"""Of an even share: with none at all the search would lose the query altogether."""
TRIAL_EFFORT = 0.25
"""Share of the portfolio's work for each trial under pure ε; the last one gets all of it."""
POWERS = (1.0, 0.5, 1.0, 0.5)
"""How far the shares move towards the errors in each further trial under pure ε."""

Solve: TypeAlias = Callable[[Matrix, Vector, Options, Watch], Strategy]
"""The strategy of least Σ ω_i·(error of i) for weights ω."""


@dataclass(frozen=True)
class _Trial:
    """One weighted problem: the shares, and the error of every query under its strategy."""

    shares: Vector
    errors: Vector
    strategy: Strategy

    @property
    def largest(self) -> float:
        return float(self.errors.max())


def least_largest(
    workload: Matrix, weights: Vector, options: Options, watch: Watch, solve: Solve = least_total
) -> Strategy:
    """The strategy of least max ω_i·(error of i), with ``error``, ``lower_bound`` and ``trace`` in that measure.

    The certified search under (ε, δ) comes first, because its bounds hold under pure ε too and its shares are a good
    start; the search that was asked for comes after it where that is another one.
    """
    if not workload.any():
        return solve(workload, weights, options, watch)
    trials = _Trials(workload, weights, watch, solve)
    certified = replace(options, privacy="approximate", strategy=None, parameters={})
    is_certified = options.privacy == "approximate" and options.strategy is None
    best = _balance(trials, certified, reports=is_certified)
    if not is_certified:
        best = _try(trials, options, best.shares)
    bound = min(trials.bound, best.largest)
    trace = (*(p for p in watch.trace if p[1] > best.largest), (watch.seconds, best.largest, bound))
    return replace(best.strategy, error=best.largest, lower_bound=bound, seconds=watch.seconds, trace=trace)


class _Trials:
    """Solves weighted problems and keeps the best bound that they have proven."""

    def __init__(self, workload: Matrix, weights: Vector, watch: Watch, solve: Solve) -> None:
        self.watch = watch
        self._workload, self._weights, self._solve = workload, weights, solve
        self._used: NDArray[np.bool_] = np.any(workload != 0.0, axis=1)
        self.even: Vector = self._used / self._used.sum()
        self.bound = 0.0

    def run(self, options: Options, shares: Vector) -> _Trial:
        shares = np.maximum(shares, LEAST_SHARE * self.even)
        apart = Watch(target_gap=SOLVED, cancel=self.watch.interrupted)
        strategy = self._solve(self._workload, self._weights * shares, options, apart)
        errors = self._weights * strategy.sensitivity**2 * np.einsum("ij,ij->i", strategy.B, strategy.B)
        self.bound = max(self.bound, strategy.lower_bound / float(shares.sum()))
        return _Trial(shares, errors, strategy)

    def moved(self, trial: _Trial, power: float) -> Vector:
        """Shares that grow where the error is above the average, and shrink where it is below."""
        shares = trial.shares * np.where(self._used, trial.errors / trial.largest, 0.0) ** power
        return np.asarray(shares / shares.sum())


def _balance(trials: _Trials, options: Options, *, reports: bool) -> _Trial:
    """Reweigh under (ε, δ) until the largest error meets the bound."""
    trial = best = trials.run(options, trials.even)
    for _ in range(ROUNDS - 1):
        if reports:
            trials.watch.report(best.largest, trials.bound)
        if best.largest <= trials.bound * (1.0 + GAP) or trials.watch.stop():
            return best
        trial = trials.run(options, trials.moved(trial, 1.0))
        best = min(best, trial, key=_largest)
    if reports:
        trials.watch.report(best.largest, trials.bound)
    return best


def _try(trials: _Trials, options: Options, shares: Vector) -> _Trial:
    """Even shares, those of (ε, δ), then shares moved from the best of them; the best measured one wins.

    A named strategy gets the first two only: it takes its full time in every trial.
    """
    watch, quick = trials.watch, replace(options, effort=TRIAL_EFFORT)

    def run(options: Options, shares: Vector, *others: _Trial) -> _Trial:
        best = min(*others, trials.run(options, shares), key=_largest) if others else trials.run(options, shares)
        watch.report(best.largest, trials.bound)
        return best

    best = run(quick, trials.even)
    if not watch.stop():
        best = run(quick, shares, best)
    for power in () if options.strategy is not None else POWERS:
        if watch.stop():
            return best
        best = run(quick, trials.moved(best, power), best)
    return best if options.strategy is not None or watch.stop() else run(options, best.shares, best)


def _largest(trial: _Trial) -> float:
    return trial.largest
