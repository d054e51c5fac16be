"""The centre of the likelihood minimises what it says, follows shifts, has less variance, and its intervals hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from scipy.special import bdtr
from support.estimates import estimate, estimate_batch
from tacit.engine import Measurement, optimize
from tacit.engine.inference.estimate import Inference, Stack
from tacit.engine.inference.intervals import covering_widths
from tacit.engine.inference.likelihood import QUESTIONS, ROWS, Centre, check_size, simulate
from tacit.engine.mechanism.choose import PlanOptions, plan_release
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.table_workload import table_workload
from tacit.engine.strategy import Matrix, Vector
from tacit.errors import NotSupportedError

from .workloads import prefix, ranges

HOW: tuple[Inference, Inference] = ("least squares", "likelihood")
B_ONE = np.sqrt(0.5)
"""Laplace's scale at unit variance."""


def evidence(kind: str) -> tuple[Matrix, Vector]:
    """Questions and the scale of their Laplace noise, 0 for Gaussian noise."""
    rng = np.random.default_rng(3)
    S = {
        "hierarchy": optimize(np.eye(8), strategy="hierarchical").L,
        "five times": np.vstack([prefix(4)] * 5),
        "thin": rng.normal(size=(12, 3)) @ rng.normal(size=(3, 6)),
        "mixed": np.vstack([prefix(4)] * 4),
    }[kind]
    laplace = np.full(len(S), B_ONE)
    if kind == "mixed":
        laplace[::3] = 0.0
    return S, laplace


def noise(laplace: Vector, draws: int, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    scale = np.where(laplace > 0, laplace, 1.0)[:, None]
    size = (len(laplace), draws)
    return np.asarray(scale * np.where(laplace[:, None] > 0, rng.laplace(size=size), rng.normal(size=size)))


@pytest.mark.parametrize("kind", ["hierarchy", "five times", "thin", "mixed"])
def test_it_minimises_the_stated_sum(kind: str) -> None:
    S, laplace = evidence(kind)
    h = np.einsum("ij,ji->i", S, np.linalg.pinv(S))
    is_laplace = laplace > 0

    def total(x: Vector, z: Vector) -> float:
        e = z - S @ x
        smooth = np.sqrt(e**2 + h) / np.where(is_laplace, laplace, 1.0)
        return float(np.where(is_laplace, smooth, e**2 / 2).sum())

    Z = 3.0 * noise(laplace, 5)
    fitted = Centre(S, laplace, np.ones(len(S))).fit(Z)
    for z, y in zip(Z.T, fitted.T, strict=True):
        x = np.linalg.pinv(S) @ y
        assert S @ x == pytest.approx(y, abs=1e-9)
        best = scipy.optimize.minimize(total, x, args=(z,), method="BFGS", options={"gtol": 1e-7})
        assert total(x, z) <= best.fun * (1 + 1e-7)
        assert total(x, z) < total(np.linalg.pinv(S) @ z, z) * (1 - 1e-4), "least squares is not the minimum"


@pytest.mark.parametrize("kind", ["hierarchy", "five times", "thin", "mixed"])
def test_it_follows_shifts(kind: str) -> None:
    """So its error does not depend on the data, which is what the simulated intervals rest on."""
    S, laplace = evidence(kind)
    centre, z = Centre(S, laplace, np.ones(len(S))), noise(laplace, 3)
    shift = S @ np.arange(1.0, S.shape[1] + 1)[:, None] * 1e4
    assert centre.fit(z + shift) == pytest.approx(centre.fit(z) + shift, abs=1e-6)


def test_without_redundancy_and_with_gaussian_noise_it_is_least_squares() -> None:
    square, tall = prefix(5), np.vstack([prefix(5)] * 3)
    assert not Centre(square, np.full(5, B_ONE), np.ones(5)).redundant
    gaussian = Centre(tall, np.zeros(15), np.ones(15))
    assert not gaussian.redundant
    z = noise(np.zeros(15), 4)
    assert gaussian.fit(z) == pytest.approx(tall @ np.linalg.pinv(tall) @ z, abs=1e-9)


def test_it_is_nearly_the_mean_of_the_likelihood() -> None:
    """Pitman's estimate of one number from five measurements, by integrating the likelihood."""
    S, laplace = np.ones((5, 1)), np.full(5, B_ONE)
    Z = noise(laplace, 2000)
    x = np.linspace(-8, 8, 4001)
    log = -np.abs(Z[:, None, :] - x[:, None]).sum(axis=0) / B_ONE
    likelihood = np.exp(log - log.max(axis=0))
    pitman = (x[:, None] * likelihood).sum(axis=0) / likelihood.sum(axis=0)
    centre = Centre(S, laplace, np.ones(5)).fit(Z)[0]
    best, least_squares = np.mean(pitman**2), np.mean(Z.mean(axis=0) ** 2)
    assert best < 0.9 * least_squares
    assert np.mean(centre**2) <= 1.02 * best
    assert np.mean(np.median(Z, axis=0) ** 2) > 1.02 * best, "the maximum is worse than the mean"


@pytest.mark.parametrize("kind", ["hierarchy", "five times", "mixed"])
def test_simulated_errors_are_those_of_other_draws(kind: str) -> None:
    S, laplace = evidence(kind)
    W = ranges(10, S.shape[1])
    B = W @ np.linalg.pinv(S)
    centre = Centre(S, laplace, np.ones(len(S)))
    stated = simulate(centre, B, laplace, np.zeros(len(S)))
    errors = B @ centre.fit(noise(laplace, 8000, seed=5))
    ratio = np.sqrt((errors**2).mean(axis=1) / (stated.rows**2).mean(axis=1))
    assert ratio == pytest.approx(np.ones(10), abs=0.08)
    for confidence in (0.5, 0.95, 0.99, 0.9995):
        covered = (np.abs(errors) <= covering_widths(stated.rows, confidence)[:, None]).mean(axis=1)
        slack = np.sqrt(confidence * (1 - confidence) / errors.shape[1])
        assert (covered >= confidence - 4 * slack).all(), confidence
        assert covered.mean() >= confidence - slack
    short = (np.abs(errors) <= covering_widths(stated.rows, 0.95)[:, None] / 1.5).mean(axis=1)
    assert (short < 0.93).all(), "two thirds of the width would be too little"


@pytest.mark.parametrize(("draws", "confidence"), [(1000, 0.95), (1000, 0.99), (10_000, 0.95), (10_000, 0.5)])
def test_a_width_from_draws_is_the_order_statistic_that_covers(draws: int, confidence: float) -> None:
    errors = np.random.default_rng(0).permutation(np.arange(1.0, draws + 1))[None, :]
    k = int(covering_widths(errors, confidence)[0])
    # Of N draws, at most k − 1 lie within the true quantile with the stated certainty, and k is the least such number.
    assert bdtr(k - 1, draws, confidence) >= 0.99 > bdtr(k - 2, draws, confidence)


@pytest.mark.parametrize("confidence", [5e-324, 1e-300, 1e-17, 1e-12, 1 - 2**-53])
def test_a_width_is_there_for_every_confidence(confidence: float) -> None:
    errors = np.random.default_rng(0).laplace(size=(2, 1000))
    widths = covering_widths(errors, confidence)
    assert np.isfinite(widths).all()
    assert (widths >= np.abs(errors).min(axis=1)).all()


def test_releases_are_estimated_better_and_their_intervals_hold() -> None:
    """The whole way, over exact lattice noise: five releases of one batch, again and again."""
    W, x = ranges(9, 6), np.array([40, 3, 0, 0, 17, 250])
    plan = plan_release([table_workload(W)], privacy="pure")
    first: list[tuple[Measurement, ...]] = [measure(plan, [x], 0.2) for _ in range(5)]
    plain, better = (estimate_batch([table_workload(W)], first, inference=how) for how in HOW)
    assert better.values == pytest.approx(W @ better.cells[0], abs=1e-6)
    assert (better.stderr < 0.95 * plain.stderr).all()
    assert (better.half_width(0.9) < plain.half_width(0.9)).all()
    assert better.covariance(2, 2) == pytest.approx(better.stderr[2] ** 2)
    stack = Stack.of([release[0] for release in first])
    centre, inverse = Centre(stack.questions, stack.laplace, stack.level), np.linalg.pinv(stack.questions)
    assert W @ inverse @ centre.fit(stack.answers[:, None])[:, 0] == pytest.approx(better.values, abs=1e-6)
    again = [Stack.of([measure(plan, [x], 0.2)[0] for _ in range(5)]) for _ in range(600)]
    assert all(np.array_equal(other.questions, stack.questions) for other in again)
    answers = np.stack([other.answers for other in again], axis=1)
    errors = W @ inverse @ centre.fit(answers) - (W @ x)[:, None]
    linear = W @ inverse @ answers - (W @ x)[:, None]
    assert np.mean(errors**2) < 0.95 * np.mean(linear**2)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.sqrt(np.mean(better.stderr**2)), rel=0.1)
    assert (np.abs(errors) <= better.half_width(0.9)[:, None]).mean() >= 0.9 - 0.02
    assert (np.abs(errors) <= better.half_width(0.9)[:, None] / 1.5).mean() < 0.85


def test_where_little_is_gained_least_squares_stays() -> None:
    W = prefix(6)
    plan = plan_release([table_workload(W)], privacy="pure", options=PlanOptions(strategy="p-identity"))
    measured = measure(plan, [np.arange(6)], 0.5)
    plain, same = (estimate(W, measured, inference=how) for how in HOW)
    assert same.values == pytest.approx(plain.values)
    assert same.stderr == pytest.approx(plain.stderr)
    assert same.half_width(0.99) == pytest.approx(plain.half_width(0.99))


def test_measurements_of_very_different_noise_are_weighed_in_tiers() -> None:
    """Three exact measurements of a sum and three very noisy ones of each cell."""
    W = np.array([[1.0, 1.0], [1.0, 0.0]])
    total, cells = (plan_release([table_workload(M)], privacy="pure") for M in (W[:1], np.eye(2)))
    x = [np.array([1000, 500])]
    measured = [measure(total, x, 100.0)[0] for _ in range(3)] + [measure(cells, x, 1e-5)[0] for _ in range(3)]
    answer = estimate(W, measured, inference="likelihood")
    stack = Stack.of(measured)
    assert stack.level.max() > 1e6 * stack.level.min(), "far beyond what one matrix can weigh"
    assert answer.values[0] == pytest.approx(1500, abs=1.0)
    assert answer.stderr[0] < 0.1
    assert 1e4 < answer.stderr[1] < 1e5 * np.sqrt(2 / 3)
    assert abs(answer.values[1] - 500) < 10 * answer.stderr[1]


def test_all_that_the_centre_depends_on_is_named() -> None:
    """2a + b from a and from a + b: least squares has no use for b by itself, the centre has."""
    questions = [np.array([[1.0, 0.0]])] * 5 + [np.array([[1.0, 1.0]])] * 5 + [np.array([[0.0, 1.0]])] * 4
    plans = [plan_release([table_workload(Q)], privacy="pure") for Q in questions]
    measured = [measure(plan, [np.array([900, 400])], 0.1)[0] for plan in plans]
    plain, centre = (estimate(np.array([[2.0, 1.0]]), measured, inference=how) for how in HOW)
    assert centre.stderr[0] < 0.95 * plain.stderr[0]
    assert plain.used[0].sum() == 10
    assert centre.used[0].all()


@pytest.mark.parametrize(("questions", "rows"), [(QUESTIONS + 1, 1), (1, ROWS + 1)])
def test_what_is_too_large_is_refused(questions: int, rows: int) -> None:
    check_size(QUESTIONS, ROWS)
    with pytest.raises(NotSupportedError, match="hint: leave inference= out"):
        check_size(questions, rows)
