"""The least largest error, over a weighted problem that is solved in closed form.

Errors e are reachable when Σ a_i/e_i ≤ 1. Then Σ ω_i·e_i is least at e_i = √(a_i/ω_i)·Σ √(a_j·ω_j), where it is
(Σ √(a_j·ω_j))², and the largest error is least where all are equal: at Σ a_i.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from tacit.engine import Strategy
from tacit.engine.search.minimax import least_largest
from tacit.engine.search.options import Options
from tacit.engine.search.reweigh import GAP, POWERS, ROUNDS, TRIAL_EFFORT
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Vector

A = np.array([1.0, 4.0, 9.0])
LEAST = float(A.sum())


@dataclass
class Solver:
    """Solves the weighted problem exactly, and notes what it was asked."""

    excess: list[float] = field(default_factory=list)
    """Factors on the errors under pure ε, one for each trial: a search that ends above the optimum."""
    asked: list[Options] = field(default_factory=list)
    weights: list[Vector] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)

    def __call__(self, workload: Matrix, weights: Vector, options: Options, watch: Watch) -> Strategy:
        self.asked.append(options)
        self.weights.append(weights)
        used = workload.any(axis=1)
        errors = np.where(used, np.sqrt(A / np.where(used, weights, 1.0)), 0.0) * np.sqrt(A * weights).sum()
        bound = float(weights @ errors)
        if options.privacy == "pure":
            trial = sum(other.privacy == "pure" for other in self.asked) - 1
            errors = errors * self.excess[trial]
            self.errors.append(float(errors.max()))
        total = float(weights @ errors)
        return Strategy("made up", options.privacy, np.eye(3), np.diag(np.sqrt(errors)), 1.0, total, bound, 0.0, ())


def test_the_errors_are_evened_out_until_they_meet_the_bound() -> None:
    solver, watch = Solver(), Watch()
    result = least_largest(np.eye(3), np.ones(3), Options(privacy="approximate"), watch, solver)
    assert result.lower_bound <= LEAST * (1 + 1e-9)
    assert LEAST * (1 - 1e-9) <= result.error <= result.lower_bound * (1 + GAP)
    assert result.error == pytest.approx(float(np.max(result.B**2)))
    assert 2 < len(solver.asked) < ROUNDS
    errors = [error for _, error, _ in result.trace]
    assert errors == sorted(errors, reverse=True) and result.trace[-1][1:] == (result.error, result.lower_bound)


def test_weights_of_the_queries_multiply_their_errors() -> None:
    weights = np.array([4.0, 1.0, 1.0])
    result = least_largest(np.eye(3), weights, Options(privacy="approximate"), Watch(), Solver())
    each = weights * np.diag(result.B) ** 2
    assert result.error == pytest.approx(float(each.max()))
    assert each == pytest.approx(np.full(3, float(weights @ A)), rel=2e-2)


def test_queries_that_ask_nothing_have_no_share() -> None:
    solver = Solver()
    least_largest(np.diag([1.0, 0.0, 1.0]), np.ones(3), Options(privacy="approximate"), Watch(), solver)
    assert solver.weights[0] == pytest.approx([0.5, 0.0, 0.5])


def test_under_pure_epsilon_the_best_measured_trial_wins_and_the_last_has_the_full_effort() -> None:
    solver = Solver(excess=[2.0, 1.5, 1.8, 1.2, 1.9, 1.7, 1.6])
    watch = Watch()
    result = least_largest(np.eye(3), np.ones(3), Options(privacy="pure"), watch, solver)
    trials = [options for options in solver.asked if options.privacy == "pure"]
    assert [options.effort for options in trials] == [TRIAL_EFFORT] * (2 + len(POWERS)) + [1.0]
    assert solver.asked[0] == Options(privacy="approximate"), "its shares come first, and its bound holds"
    assert result.error == pytest.approx(min(solver.errors))
    assert result.privacy == "pure"
    assert result.lower_bound == pytest.approx(LEAST, rel=1e-3)
    assert watch.error == result.error == watch.trace[-1][1]


def test_a_named_strategy_is_tried_with_two_shares_only() -> None:
    solver = Solver(excess=[2.0, 1.5])
    options = Options(privacy="pure", strategy="lrm", parameters={"gamma": 1.0})
    least_largest(np.eye(3), np.ones(3), options, Watch(), solver)
    trials = [asked for asked in solver.asked if asked.strategy == "lrm"]
    assert len(trials) == 2
    assert all(asked.parameters == {"gamma": 1.0} for asked in trials)
    assert all(not asked.parameters for asked in solver.asked if asked.strategy is None)


def test_a_cancel_leaves_one_trial_of_each_kind() -> None:
    solver = Solver(excess=[1.5])
    result = least_largest(np.eye(3), np.ones(3), Options(), Watch(cancel=lambda: True), solver)
    assert [options.privacy for options in solver.asked] == ["approximate", "pure"]
    assert result.lower_bound <= LEAST < result.error == pytest.approx(solver.errors[0])


def test_a_workload_of_zeros_is_solved_as_it_is() -> None:
    solver = Solver(excess=[1.0])
    least_largest(np.zeros((3, 3)), np.ones(3), Options(), Watch(), solver)
    assert [options.privacy for options in solver.asked] == ["pure"]
