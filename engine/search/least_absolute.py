"""The least sum of standard errors, Σ ω_i·√(error of i): the mean absolute error but for the noise's own constant.

√ is concave, so √e ≤ √e₀ + (e − e₀)/(2√e₀): weights ω_i/√(error of i) make a weighted sum of squared errors that lies
above the measure and touches it at the errors reached so far. Its minimum is never worse, and where it stops falling
it is the optimum: √(w·X⁻¹·wᵀ) is convex in X = LᵀL (1/(w·X⁻¹·wᵀ) is concave, and t^(-1/2) convex and falling), and so
is the set diag(X) ≤ 1. ``bounds.absolute_bound`` proves it.
"""

from __future__ import annotations

import numpy as np
from tacit.engine.search.bounds import absolute_bound
from tacit.engine.search.least_total import least_total
from tacit.engine.search.options import Options
from tacit.engine.search.reweigh import SOLVED, Goal, Solve, Trial, least
from tacit.engine.search.strategies.dual import dual_weights
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Strategy, Vector


def least_absolute(
    workload: Matrix, weights: Vector, options: Options, watch: Watch, solve: Solve = least_total
) -> Strategy:
    """The strategy of least Σ ω_i·√(squared error of i)."""
    return least(_Absolute(workload, weights), options, watch, solve)


class _Absolute(Goal):
    def value(self, errors: Vector) -> float:
        return float(self.weights @ np.sqrt(errors))

    def moved(self, trial: Trial, power: float) -> Vector:
        errors = np.where(self.used, trial.errors, 1.0)
        return np.asarray(trial.shares ** (1.0 - power) * errors ** (-0.5 * power))

    def bound(self, trial: Trial, watch: Watch) -> float:
        """At the weights of the trial, and at the weights of the cells that prove its weighted sum least."""
        W, omega, shares = self.workload[self.used], self.weights[self.used], trial.shares[self.used]
        apart = Watch(target_gap=SOLVED, cancel=watch.interrupted)
        cells = dual_weights(W * np.sqrt(omega * shares)[:, None], apart)
        return absolute_bound(W, omega, omega * shares, cells)
