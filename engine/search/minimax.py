"""The least largest error: weigh the queries until their errors are even.

For shares λ ≥ 0 of sum 1 the largest error is at least Σ λ_i·(error of i), so the bound of every weighted problem
bounds this one, and the best shares make the two meet.
"""

from __future__ import annotations

import numpy as np
from tacit.engine.search.least_total import least_total
from tacit.engine.search.options import Options
from tacit.engine.search.reweigh import Goal, Solve, Trial, least
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Strategy, Vector


def least_largest(
    workload: Matrix, weights: Vector, options: Options, watch: Watch, solve: Solve = least_total
) -> Strategy:
    """The strategy of least max ω_i·(squared error of i)."""
    return least(_Largest(workload, weights), options, watch, solve)


class _Largest(Goal):
    def value(self, errors: Vector) -> float:
        return float((self.weights * errors).max())

    def moved(self, trial: Trial, power: float) -> Vector:
        """Shares that grow where the error is above the average, and shrink where it is below."""
        return np.asarray(trial.shares * (self.weights * trial.errors / trial.value) ** power)

    def bound(self, trial: Trial, watch: Watch) -> float:
        return trial.strategy.lower_bound / float(trial.shares.sum())
