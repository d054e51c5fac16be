"""The least sum of standard errors, and of relative errors: against brute force, with bounds that hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize
from tacit.engine import Strategy, optimize
from tacit.engine.search.bounds import absolute_bound
from tacit.engine.search.least_absolute import least_absolute
from tacit.engine.search.least_total import least_total
from tacit.engine.search.options import Options
from tacit.engine.search.reweigh import GAP
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import ProgrammingError

from .workloads import prefix, ranges, real

KINDS: tuple[Privacy, ...] = ("pure", "approximate")
UNEVEN = np.vstack([prefix(4), 20 * np.ones((1, 4))])
TINY = {
    "uneven": UNEVEN,
    "prefix": prefix(3),
    "ranges": ranges(7, 4),
    "thin": real(5, 4, 2),
    "one row": np.array([[3.0, -1.0]]),
    "an empty query": np.vstack([prefix(3), np.zeros((1, 3))]),
}


def standard_errors(s: Strategy) -> Vector:
    return np.asarray(s.sensitivity * np.sqrt(np.einsum("ij,ij->i", s.B, s.B)))


def brute_force(W: Matrix, weights: Vector) -> float:
    """Over all L of n×n with unit columns, from several starts: the problem is convex in LᵀL."""
    n = W.shape[1]

    def value(entries: Vector) -> float:
        L = entries.reshape(n, n)
        L = L / np.linalg.norm(L, axis=0)
        return float(weights @ np.linalg.norm(np.linalg.lstsq(L.T, W.T, rcond=1e-9)[0], axis=0))

    starts = [np.random.default_rng(seed).normal(size=n * n) + 2 * np.eye(n).ravel() for seed in range(4)]
    return min(float(scipy.optimize.minimize(value, start, method="BFGS").fun) for start in starts)


@pytest.mark.parametrize("name", [name for name in TINY if name not in ("thin", "one row")])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_least_sum_of_standard_errors_is_that_of_brute_force(name: str, weighted: bool) -> None:
    W = TINY[name]
    weights = np.linspace(1, 5, len(W)) if weighted else np.ones(len(W))
    s = optimize(W, privacy="approximate", objective="absolute", weights=weights)
    assert s.error == pytest.approx(float(weights @ standard_errors(s)))
    best = brute_force(W, weights)
    assert s.error == pytest.approx(best, rel=2 * GAP)
    assert s.lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("name", list(TINY))
def test_no_strategy_is_below_the_bound_and_the_total_is_not_better(name: str, privacy: Privacy) -> None:
    W = TINY[name]
    s = optimize(W, privacy=privacy, objective="absolute")
    assert np.allclose(s.B @ s.L, W)
    assert s.error == pytest.approx(float(standard_errors(s).sum()))
    assert 0 < s.lower_bound <= s.error
    if privacy == "approximate":
        assert s.gap <= GAP
    total = optimize(W, privacy=privacy)
    assert s.error <= float(standard_errors(total).sum()) * (1 + GAP)
    for other in (
        total,
        optimize(W, privacy=privacy, strategy="identity"),
        optimize(W, privacy=privacy, strategy="results"),
    ):
        assert s.lower_bound <= float(standard_errors(other).sum())
    errors = [error for _, error, _ in s.trace]
    assert errors == sorted(errors, reverse=True) and s.trace[-1][1:] == (s.error, s.lower_bound)


def test_it_differs_from_the_total_where_errors_are_uneven() -> None:
    for privacy in KINDS:
        least, total = (optimize(UNEVEN, privacy=privacy, objective=o) for o in ("absolute", "total"))  # type: ignore[arg-type]
        assert least.error < 0.95 * float(standard_errors(total).sum())


def test_every_reweighting_is_at_least_as_good() -> None:
    values: list[float] = []

    def solve(workload: Matrix, weights: Vector, options: Options, watch: Watch) -> Strategy:
        strategy = least_total(workload, weights, options, watch)
        values.append(float(standard_errors(strategy).sum()))
        return strategy

    W = np.vstack([prefix(10), 100 * ranges(3, 10)])
    least_absolute(W, np.ones(len(W)), Options(privacy="approximate"), Watch(), solve)
    assert len(values) > 2
    assert all(after <= before * (1 + GAP / 10) for before, after in pairwise(values))
    assert values[-1] < 0.99 * values[0]


def test_the_bound_holds_for_any_multipliers_and_any_strategy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        m, n = rng.integers(1, 7, size=2)
        W, L = rng.normal(size=(m, n)), rng.normal(size=(n + 1, n))
        L /= np.linalg.norm(L, axis=0)
        weights, multipliers, cells = rng.exponential(size=m), rng.exponential(size=m), rng.exponential(size=n)
        value = float(weights @ np.linalg.norm(W @ np.linalg.pinv(L), axis=1))
        assert absolute_bound(W, weights, multipliers, cells) <= value * (1 + 1e-12)


def test_the_bound_of_one_query_is_its_largest_entry() -> None:
    assert absolute_bound(np.array([[3.0, -1.0]]), np.ones(1), np.ones(1), np.array([1.0, 0.0])) == pytest.approx(3.0)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_relative_errors_are_weights_of_one_over_the_squared_size(
    privacy: Privacy, weights: list[float] | None
) -> None:
    sizes = np.array([1.0, 2.0, 10.0, 100.0, 1000.0])
    relative = optimize(UNEVEN, privacy=privacy, objective="relative", sizes=sizes, weights=weights)
    omega = (np.ones(5) if weights is None else np.array(weights)) / sizes**2
    weighted = optimize(UNEVEN, privacy=privacy, weights=omega)
    assert relative.L.tobytes() == weighted.L.tobytes()
    assert (relative.error, relative.lower_bound) == (weighted.error, weighted.lower_bound)
    assert relative.error == pytest.approx(float(omega @ standard_errors(relative) ** 2))


def test_an_extreme_scale_of_the_workload_is_a_factor_of_the_measure() -> None:
    plain, large = (
        optimize(scale * UNEVEN, privacy="approximate", objective="absolute") for scale in (2.0**-4, 2.0**200)
    )
    assert large.error == pytest.approx(2.0**204 * plain.error)
    assert large.lower_bound == pytest.approx(2.0**204 * plain.lower_bound)


@pytest.mark.parametrize(
    ("objective", "sizes", "message"),
    [
        ("relative", None, "needs sizes"),
        ("total", [1.0] * 5, 'sizes belong to objective="relative"'),
        ("relative", [1.0] * 4, "one for each of the 5 queries"),
        ("relative", [1.0, 1.0, 0.0, 1.0, 1.0], "positive numbers"),
        ("relative", [1.0, 1.0, np.inf, 1.0, 1.0], "positive numbers"),
        ("relative", "large", "sizes are numbers"),
        ("relative", [1e-40, 1.0, 1.0, 1.0, 1.0], "at most 1e+30 times the least"),
        ("relative", [1e50] * 5, "between 1e-45 and 1e+45"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(objective: str, sizes: object, message: str) -> None:
    with pytest.raises(ProgrammingError) as refusal:
        optimize(UNEVEN, objective=objective, sizes=sizes)  # type: ignore[arg-type]
    assert message in str(refusal.value)
