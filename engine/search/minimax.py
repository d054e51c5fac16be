"""The least largest error: weigh the queries until their errors even out.

For shares λ ≥ 0 of sum 1 the largest error is at least Σ λ_i·(error of i), so the bound of every weighted problem
bounds this one, and the best shares make the two meet. Under (ε, δ) every weighted problem is solved to its
optimum in a moment; under pure ε nothing proves a weighted problem solved, and what counts is what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Strategy, Vector

ROUNDS = 60
"""Reweightings under (ε, δ)."""
GAP = 1e-3
"""Where they stop."""
POWERS = (1.0, 0.5, 1.0, 0.5)
"""How far the shares move towards the errors in each further trial under pure ε."""

Solve: TypeAlias = Callable[[Vector, float, Watch], Strategy]
"""The strategy of least Σ ω_i·(error of i) for weights ω, at a share of the full effort."""


@dataclass(frozen=True)
class _Trial:
    shares: Vector
    errors: Vector
    strategy: Strategy

    @property
    def largest(self) -> float:
        return float(self.errors.max())


def least_largest(
    workload: Matrix, weights: Vector, certified: Solve, asked_for: Solve | None, *, named: bool, watch: Watch
) -> Strategy:
    """The strategy of least max ω_i·(error of i), with ``error``, ``lower_bound`` and ``trace`` in that measure.

    ``certified`` solves the weighted problem under (ε, δ), whose bounds hold under pure ε too; ``asked_for``
    is the search that was asked for, where that is another one.
    """
    used = np.any(workload != 0.0, axis=1)
    record = _Record(watch, weights, used)
    best = _balance(certified, record, reports=asked_for is None)
    if asked_for is not None:
        best = _try(asked_for, best.shares, record, named)
    bound = min(record.bound, best.largest)
    trace = (*(p for p in watch.trace if p[1] > best.largest), (watch.seconds, best.largest, bound))
    return replace(best.strategy, error=best.largest, lower_bound=bound, seconds=watch.seconds, trace=trace)


class _Record:
    """What has been tried and proven."""

    def __init__(self, watch: Watch, weights: Vector, used: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        self.watch, self.weights, self.used = watch, weights, used
        self.even: Vector = used / used.sum()
        self.bound = 0.0

    def solve(self, solve: Solve, shares: Vector, effort: float) -> _Trial:
        # A share of zero would let the search lose the query altogether.
        shares = np.maximum(shares, 1e-9 * self.even)
        inner = Watch(target_gap=0.1 * GAP, cancel=self.watch.interrupted)
        found = solve(self.weights * shares, effort, inner)
        errors = self.weights * found.sensitivity**2 * np.einsum("ij,ij->i", found.B, found.B)
        self.bound = max(self.bound, found.lower_bound / float(shares.sum()))
        return _Trial(shares, errors, found)

    def moved(self, trial: _Trial, power: float) -> Vector:
        """Shares that grow where the error is above the average, and shrink where it is below."""
        shares = trial.shares * np.where(self.used, trial.errors / trial.largest, 0.0) ** power
        return np.asarray(shares / shares.sum())


def _balance(solve: Solve, record: _Record, *, reports: bool) -> _Trial:
    """Reweigh under (ε, δ) until the largest error meets the bound."""
    shares, best = record.even, None
    for _ in range(ROUNDS):
        trial = record.solve(solve, shares, 1.0)
        if best is None or trial.largest < best.largest:
            best = trial
        if reports:
            record.watch.report(best.largest, record.bound)
        if best.largest <= record.bound * (1.0 + GAP) or record.watch.stop():
            break
        shares = record.moved(trial, 1.0)
    assert best is not None
    return best


def _try(solve: Solve, shares: Vector, record: _Record, named: bool) -> _Trial:
    """Even shares, those of (ε, δ), then shares moved from the best of them; the best measured one wins."""
    watch = record.watch

    def measured(shares: Vector, effort: float, best: _Trial | None) -> _Trial:
        trial = record.solve(solve, shares, effort)
        best = trial if best is None or trial.largest < best.largest else best
        watch.report(best.largest, record.bound)
        return best

    best = measured(record.even, 0.25, None)
    if not watch.stop():
        best = measured(shares, 0.25, best)
    for power in () if named else POWERS:
        if watch.stop():
            return best
        best = measured(record.moved(best, power), 0.25, best)
    return best if named or watch.stop() else measured(best.shares, 1.0, best)
