"""The matrix user's release: right, unbiased, with the predicted error, for whole numbers only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tacit.engine import optimize, release
from tacit.engine.mechanism.calibrate import total_error
from tacit.engine.strategy import Privacy
from tacit.errors import PrivacyParameterError, ProgrammingError

from .workloads import ranges


@pytest.mark.parametrize(("privacy", "delta"), [("pure", 0.0), ("approximate", 1e-4)])
def test_total_error_of_releases_is_the_predicted_one(privacy: Privacy, delta: float) -> None:
    W = ranges(8, 6)
    s = optimize(W, privacy=privacy)
    x = np.array([10, 0, 7, 1000, 2, 5])
    rounds = 500
    errors = np.array([release(s, x, 0.5, delta) for _ in range(rounds)]) - W @ x
    total = (errors**2).sum(axis=1)
    predicted = total_error(s, 0.5, delta)
    spread = 6 * total.std() / math.sqrt(rounds)
    assert abs(total.mean() - predicted) < spread
    for factor in (2 / 3, 1.5):
        assert abs(total.mean() - factor**2 * predicted) > spread


def test_zero_rows_are_answered_with_zero() -> None:
    W = np.array([[1.0, 1], [0, 0]])
    assert release(optimize(W), [3, 4], 1.0)[1] == 0


@pytest.mark.parametrize(("privacy", "delta"), [("pure", 0.0), ("approximate", 1e-4)])
def test_a_workload_of_zeros(privacy: Privacy, delta: float) -> None:
    assert release(optimize(np.zeros((2, 3)), privacy=privacy), [3, 4, 5], 1.0, delta).tolist() == [0, 0]


def test_entries_whose_squares_are_no_floats() -> None:
    with pytest.raises(ProgrammingError, match="scale its rows"):
        release(optimize([[1e-300, 1e-310]]), [3, 4], 1.0)


@pytest.mark.parametrize("x", [[1.5, 2], [1], [True, False], "12", [math.nan, 0], None])
def test_only_whole_numbers(x: Any) -> None:
    with pytest.raises(ProgrammingError):
        release(optimize(np.eye(2)), x, 1.0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (math.nan, 0), ("1", 0), (1, 1), (1, -1), (True, 0)])
def test_bad_amounts(epsilon: Any, delta: Any) -> None:
    with pytest.raises(PrivacyParameterError):
        release(optimize(np.eye(2)), [1, 2], epsilon, delta)


def test_gaussian_needs_a_delta() -> None:
    with pytest.raises(PrivacyParameterError, match="delta"):
        release(optimize(np.eye(2), privacy="approximate"), [1, 2], 1.0)


def test_large_epsilon_gives_the_answer() -> None:
    W = ranges(5, 4)
    assert release(optimize(W), np.array([1.0, 2.0, 3.0, 4.0]), 1e6) == pytest.approx(W @ [1, 2, 3, 4], abs=1e-3)
