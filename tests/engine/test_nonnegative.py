"""Non-negative least squares agrees with scipy's, and its simulated error with what really happens."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from support.estimates import estimate
from tacit.engine.inference.nonnegative import fit, simulate
from tacit.engine.mechanism.choose import PlanOptions, plan_release
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.table_workload import table_workload

from .workloads import prefix, ranges


@pytest.mark.parametrize("shape", [(5, 5), (12, 8), (6, 20), (60, 40)])
def test_fit_is_scipys(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    A = rng.normal(size=shape) * rng.uniform(0.01, 3, size=shape[1])
    z = rng.normal(size=(shape[0], 3)) * 10
    mine = fit(A, z)
    assert mine.min() >= 0
    for j in range(3):
        _, best = nnls(A, z[:, j])
        assert np.linalg.norm(A @ mine[:, j] - z[:, j]) == pytest.approx(best, rel=1e-6, abs=1e-7)


def test_unconstrained_solution_is_kept_when_it_is_positive() -> None:
    A, x = prefix(5), np.array([[5.0], [4], [3], [2], [1]])
    assert fit(A, A @ x) == pytest.approx(x, abs=1e-6)


def test_simulated_error_is_that_of_repeated_releases() -> None:
    """An empty table: the constrained answers are far better than the linear formula says, and know it."""
    W = ranges(12, 12)
    plan = plan_release([table_workload(W)], privacy="pure", options=PlanOptions(strategy="results"))
    x = np.zeros(12, dtype=np.int64)
    rounds = 100
    errors, stated = np.empty((rounds, 12)), np.empty((rounds, 12))
    for i in range(rounds):
        answer = estimate(W, measure(plan, [x], 0.3), nonnegative=True)
        errors[i], stated[i] = answer.values - W @ x, answer.stderr
    true = np.sqrt((errors**2).mean())
    assert 0.7 * true < np.sqrt((stated**2).mean()) < 1.45 * true
    assert true < 0.75 * np.sqrt((plan.stderr(0.3) ** 2).mean())


def test_simulation_does_not_change_from_call_to_call() -> None:
    A = prefix(4)
    kinds = np.array([True, False, True, False])
    assert np.array_equal(simulate(A, np.ones(4), kinds), simulate(A, np.ones(4), kinds))
