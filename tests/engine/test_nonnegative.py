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


@pytest.mark.parametrize("size", [1.0, 1e6, 1e9])
def test_large_counts_are_fitted_as_exactly_as_small_ones(size: float) -> None:
    """Far above zero the fit is least squares, to a small part of the noise, and errs as that does."""
    A, rng = prefix(48), np.random.default_rng(3)
    x = size * rng.uniform(50, 90, 48)
    z = A @ x + rng.laplace(size=48)
    assert np.abs(fit(A, z[:, None])[:, 0] - np.linalg.solve(A, z)).max() < 1e-3
    deviations = simulate(A, x, np.full(48, np.sqrt(0.5)), np.zeros(48))
    assert np.sqrt((deviations**2).mean()) == pytest.approx(np.sqrt((np.linalg.inv(A) ** 2).sum() / 48), rel=0.05)


def test_simulation_does_not_change_from_call_to_call() -> None:
    A = prefix(4)
    noise = np.array([0.7, 0.0, 0.7, 0.0]), np.array([1e-8, 0.0, 2.0, 0.0])
    assert np.array_equal(simulate(A, np.ones(4), *noise), simulate(A, np.ones(4), *noise))


@pytest.mark.parametrize("strategy", ["identity", "hierarchical"])
def test_intervals_hold_although_long_sums_are_biased(strategy: str) -> None:
    """Sixty cells, most of them empty: what is cut off below zero adds up in their total."""
    n = 60
    W = np.vstack([np.eye(n)[:6], np.kron(np.eye(6), np.ones((1, 10))), np.ones((1, n)), np.eye(n)[1] - np.eye(n)[2]])
    x = np.zeros(n, dtype=np.int64)
    x[[0, 20, 31]] = 300, 40, 5
    plan = plan_release([table_workload(W)], privacy="pure", options=PlanOptions(strategy=strategy))
    rounds = 60
    errors, widths, linear = (np.empty((rounds, len(W))) for _ in range(3))
    for i in range(rounds):
        measured = measure(plan, [x], 0.1)
        answer, plain = estimate(W, measured, nonnegative=True), estimate(W, measured)
        errors[i], widths[i], linear[i] = answer.values - W @ x, answer.half_width(0.9), plain.half_width(0.9)
        shown = np.abs(plain.values - W @ x) <= plain.half_width(0.9)
        assert (np.abs(errors[i]) <= widths[i] + 1e-6)[shown].all(), "it covers whenever least squares covers"
    assert (np.abs(errors) <= widths).mean() >= 0.9
    assert errors[:, 12].mean() > 0, "the total is too large"
    assert widths[:, :6].mean() < 1.3 * linear[:, :6].mean(), "cells, which are not biased as much, pay little for it"
