"""Answers are consistent, combine several releases, and their errors are the true ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from support.estimates import estimate, estimate_batch, planned_half_widths
from tacit.engine.inference.estimate import Stack, estimate_from
from tacit.engine.mechanism.choose import PlanOptions, plan_release
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.table_workload import TableWorkload, table_workload
from tacit.engine.strategy import Privacy
from tacit.errors import InternalError

from .workloads import WORKLOADS, paper, prefix, ranges

X = np.array([120, 7, 0, 33])


@pytest.mark.parametrize("strategy", [None, "identity", "results", "lrm"])
def test_answers_add_up(strategy: str | None) -> None:
    workloads = [table_workload(paper())]
    plan = plan_release(workloads, privacy="pure", options=PlanOptions(strategy=strategy))
    answer = estimate(paper(), measure(plan, [X], 0.1))
    assert abs(answer.values[0] - answer.values[1] - answer.values[2]) <= 1e-9 * max(1, abs(answer.values[0]))
    assert paper() @ answer.cells[0] == pytest.approx(answer.values, abs=1e-9 * 1e3)
    assert answer.stderr == pytest.approx(plan.stderr(0.1), rel=1e-6)
    assert answer.half_width(0.9) == pytest.approx(planned_half_widths(plan, 0.1, 0, 0.9), rel=1e-6)


@pytest.mark.parametrize("name", list(WORKLOADS))
@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_every_workload_comes_back(name: str, privacy: Privacy) -> None:
    W = WORKLOADS[name]
    delta = 0 if privacy == "pure" else 1e-6
    x = np.arange(W.shape[1])
    for strategy in ("identity", "results"):
        plan = plan_release([table_workload(W)], privacy=privacy, options=PlanOptions(strategy=strategy))
        answer = estimate(W, measure(plan, [x], 1e5, delta))
        assert (np.abs(answer.values - W @ x) <= 40 * answer.stderr + 1e-9 * np.abs(W @ x)).all()
        assert (answer.stderr <= np.abs(W).max(axis=1)).all()
        assert answer.stderr == pytest.approx(plan.stderr(1e5, delta), rel=1e-6)


def test_two_releases_are_better_than_one() -> None:
    workloads = [table_workload(prefix(6))]
    pure, gaussian = (plan_release(workloads, privacy=p) for p in ("pure", "approximate"))
    x = [np.arange(6)]
    first, second = measure(pure, x, 0.5), measure(gaussian, x, 0.5, 1e-6)
    alone, together = estimate_batch(workloads, [first]), estimate_batch(workloads, [first, second])
    assert (together.stderr < alone.stderr).all()
    twice = estimate_batch(workloads, [first, measure(pure, x, 0.5)])
    assert twice.stderr == pytest.approx(alone.stderr / math.sqrt(2), rel=1e-6)
    worthless = estimate_batch(workloads, [first, measure(pure, x, 1e-6)])
    assert worthless.stderr == pytest.approx(alone.stderr, rel=1e-6)
    assert worthless.values == pytest.approx(alone.values, abs=1e-3 * alone.stderr.max())


def test_combined_errors_are_the_true_ones() -> None:
    """Mixed Laplace and Gaussian releases of different strategies: spread, coverage and covariance."""
    W = prefix(4)
    workloads = [table_workload(W)]
    pure = plan_release(workloads, privacy="pure")
    gaussian = plan_release(workloads, privacy="approximate", options=PlanOptions(strategy="identity"))
    rounds = 700
    errors = np.empty((rounds, 4))
    for i in range(rounds):
        answer = estimate_batch(workloads, [measure(pure, [X], 1), measure(gaussian, [X], 1, 1e-3)])
        errors[i] = answer.values - W @ X
    assert np.abs(errors.var(axis=0) / answer.stderr**2 - 1).max() < 0.45
    hits = (np.abs(errors) <= answer.half_width(0.9)).mean(axis=0)
    assert np.abs(hits - 0.9).max() < 6 * math.sqrt(0.09 / rounds)
    sample = np.cov(errors.T)
    for i, j in ((0, 1), (1, 3), (2, 2)):
        expected = answer.covariance(i, j)[0]
        assert abs(sample[i, j] - expected) < 0.45 * answer.stderr[i] * answer.stderr[j]


def test_covariance() -> None:
    W = np.array([[1.0, 1], [1, 0], [0, 1]])
    other = table_workload(np.vstack([np.zeros((3, 1)), np.ones((1, 1))]))
    workloads = [table_workload(np.vstack([W, np.zeros((1, 2))])), other]
    plan = plan_release(workloads, privacy="pure", options=PlanOptions(strategy="identity"))
    answer = estimate_batch(workloads, [measure(plan, [np.array([5, 6]), np.array([7])], 1)])
    variance = answer.stderr**2
    assert answer.covariance([0, 1, 1], [1, 1, 2]) == pytest.approx([variance[1], variance[1], 0], abs=1e-9)
    assert answer.covariance(0, 3)[0] == 0, "different tables are independent"
    assert answer.covariance([0], [0])[0] == pytest.approx(variance[0])


def test_average_with_exact_covariance() -> None:
    """SUM and COUNT of one group in fixed point: the mean of values clamped to [0, 10]."""
    W = np.array([[0.0, 10.0], [1.0, 1.0]])
    plan = plan_release([table_workload(W, one_row=2**20)], privacy="pure")
    x = np.array([600, 400]) * 2**20  # a thousand rows with mean 4
    hits = 0
    for _ in range(400):
        answer = estimate(W, measure(plan, [x], 0.5)).ratio([0], [1], 0.0, 10.0, confidence=0.9)
        hits += int(answer.low[0] <= 4 <= answer.high[0])
        assert answer.value[0] == pytest.approx(4, abs=0.8)
    assert abs(hits / 400 - 0.9) < 6 * math.sqrt(0.09 / 400)


def determined(rows: NDArray[np.float64], measurements: Sequence[Measurement]) -> list[bool]:
    """Which rows have an answer."""
    workload = TableWorkload(rows, np.arange(len(rows)))
    answer = estimate_from([workload], [measurements], partial=True)
    assert np.array_equal(np.isnan(answer.values), np.isinf(answer.stderr))
    return np.isfinite(answer.values).tolist()


def test_what_was_released_covers_its_row_space() -> None:
    plan = plan_release([table_workload(paper())], privacy="pure")
    measurements = measure(plan, [X], 1)
    rows = np.array([[1.0, 1, 0, 0], [2, 2, -1, -1], [1, 0, 0, 0]])
    assert determined(rows, measurements) == [True, True, False]
    assert determined(rows, []) == [False] * 3
    with pytest.raises(InternalError):
        estimate(rows, measurements)
    with pytest.raises(InternalError):
        estimate(rows, [])
    assert estimate(rows[:2], measurements).values.shape == (2,)


def test_measurements_of_other_cells_do_not_mix() -> None:
    one = measure(plan_release([table_workload(prefix(3))], privacy="pure"), [np.arange(3)], 1)
    other = measure(plan_release([table_workload(prefix(4))], privacy="pure"), [np.arange(4)], 1)
    with pytest.raises(InternalError):
        estimate(prefix(3), [*one, *other])


def test_nothing_to_estimate() -> None:
    answer = estimate(np.zeros((0, 3)), [])
    assert answer.values.shape == answer.half_width().shape == (0,)


def test_nonnegative_cells_and_consistent_answers() -> None:
    W = ranges(20, 10)
    plan = plan_release([table_workload(W)], privacy="pure")
    x = np.array([0, 0, 500, 0, 0, 3, 0, 40, 0, 0])
    answer = estimate(W, measure(plan, [x], 0.2), nonnegative=True)
    assert answer.cells[0].min() >= 0
    assert W @ answer.cells[0] == pytest.approx(answer.values)
    assert (answer.half_width(0.9) <= answer.half_width(0.99)).all()
    assert answer.covariance(np.arange(20), np.arange(20)) == pytest.approx(answer.stderr**2)


def _measured(matrix: list[list[int]], values: list[int], scale: float) -> Measurement:
    return Measurement(
        np.array(matrix, dtype=np.int64), 0, np.array(values, dtype=np.int64), 0, "laplace", lattice_scale=scale
    )


def test_measurements_of_any_noise_go_together() -> None:
    """Noise that differs by 16 orders: the exact one rules where it can, the coarse one is all there is elsewhere."""
    exact, coarse = _measured([[1, 1, 0]], [10], 1e3), _measured([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [3, 4, 5], 1e16)
    rows = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]])
    answer = estimate(rows, [coarse, exact])
    assert answer.stderr[0] == pytest.approx(exact.stddev, rel=1e-6)
    assert answer.values[0] == pytest.approx(10)
    np.testing.assert_allclose(answer.stderr[1], coarse.stddev / np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(answer.stderr[2:], coarse.stddev, rtol=1e-6)
    np.testing.assert_allclose(answer.values[1:], [4.5, 5, 15])
    np.testing.assert_allclose(rows @ answer.cells[0], answer.values, atol=1e-9)
    assert determined(rows, [exact, coarse]) == [True] * 4
    assert determined(rows, [exact]) == [True, False, False, False]


def test_what_is_not_determined_has_no_error_bar() -> None:
    rows = np.array([[1.0, 1], [1, 0]])
    workload = TableWorkload(rows, np.arange(2))
    answer = estimate_from([workload], [[_measured([[1, 1]], [7], 1.0)]], partial=True)
    assert answer.values[0] == pytest.approx(7)
    assert np.isinf(answer.stderr[1])
    assert np.isnan(answer.values[1])
    with pytest.raises(InternalError):
        estimate_from([workload], [[_measured([[1, 1]], [7], 1.0)]])
    nothing = estimate_from([workload], [[]], partial=True)
    assert np.isinf(nothing.stderr).all()


def test_which_measurements_an_answer_depends_on() -> None:
    a, b, c = _measured([[1, 0, 0]], [1], 1.0), _measured([[0, 1, 0]], [2], 1.0), _measured([[0, 0, 1]], [3], 1.0)
    (used,) = estimate(np.array([[1.0, 0, 1]]), [a, b, c]).used
    assert used.tolist() == [True, False, True]


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_rounded_answers_state_their_error(scale: float) -> None:
    """For a whole truth and Laplace noise, the stated variance is at least the true one, and not much more."""
    fine = 2**20
    measured = Measurement(np.array([[fine]]), -20, np.array([3 * fine]), -20, "laplace", lattice_scale=scale * fine)
    answer = estimate(np.eye(1), [measured]).rounded()
    t = 1 / (2 * answer.spreads[0].laplace[0, 0])
    true = np.cosh(t) / (2 * np.sinh(t) ** 2)
    assert true <= answer.stderr[0] ** 2 <= true + 1 / 12
    assert answer.covariance(0, 0)[0] == pytest.approx(answer.stderr[0] ** 2)
    assert answer.values[0] == 3


@pytest.mark.parametrize("scale", [0.125, 0.25, 0.5, 1.0, 2.0, 5.0])
def test_rounded_means_state_their_error(scale: float) -> None:
    """The mean of two noisy counts may lie half way between whole numbers: every pair of noises, one by one."""
    k = np.arange(-200, 201)
    mass = np.exp(-np.abs(k) / scale)
    mass /= mass.sum()
    errors = [np.round(truth + (k[:, None] + k) / 2) - truth for truth in (6, 7)]  # halves go to even numbers
    true = max(float((error**2 * mass[:, None] * mass).sum()) for error in errors)
    answer = estimate(np.eye(1), [_measured([[1]], [6], scale)] * 2).rounded()
    assert true <= answer.stderr[0] ** 2 <= true + 1 / 4


def test_a_measurement_over_finer_cells() -> None:
    measured = _measured([[1, 2], [0, 5]], [1, 2], 1.0)
    stack = Stack.of([measured])
    lifted = stack.lifted(np.array([1, -1, 0, 0])).questions * measured.stddev
    np.testing.assert_allclose(lifted, [[2, 0, 1, 1], [5, 0, 0, 0]])
    assert stack.lifted(np.array([0, 1])) is stack
