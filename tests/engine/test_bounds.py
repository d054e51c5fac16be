"""The bounds against each other, against strategies, and against what is known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.optimize import linprog
from scipy.sparse import coo_array
from tacit.engine import least_error, optimize
from tacit.engine.search.bounds import direction_bound, dual_bound, dual_point, svd_bound
from tacit.errors import PrivacyParameterError

from benchmarks.paper.lemmas import coa_upper_bound, lemma3_bound

WORKLOADS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-2, 2))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(W=WORKLOADS, weights=arrays(np.float64, 6, elements=st.floats(0.0, 1.0)))
def test_lower_bounds_are_below_the_optimum_and_upper_bounds_above(W: np.ndarray, weights: np.ndarray) -> None:
    best = optimize(W, privacy="approximate")
    slack = 1 + 1e-9
    assert svd_bound(W) <= best.error * slack + 1e-12
    assert dual_bound(W, weights[: W.shape[1]]) <= best.error * slack + 1e-12
    assert best.lower_bound >= svd_bound(W) * (1 - 1e-9)
    assert best.error <= coa_upper_bound(W) * (1 + 1e-3) + 1e-12


@settings(max_examples=10, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(W=WORKLOADS)
def test_lemma_3_is_above_the_best_pure_strategy(W: np.ndarray) -> None:
    assert optimize(W, privacy="pure").error <= lemma3_bound(W) * (1 + 1e-9) + 1e-12


def test_identity_workload_meets_its_bound() -> None:
    for privacy in ("pure", "approximate"):
        s = optimize(np.eye(5), privacy=privacy, reduce=False)
        assert s.error == pytest.approx(5.0) and s.lower_bound == pytest.approx(5.0)


def test_one_query_meets_its_bound_in_both_kinds() -> None:
    for privacy in ("pure", "approximate"):
        s = optimize([[3.0, 1.0, -2.0]], privacy=privacy)
        assert s.error == pytest.approx(9.0)
        assert s.lower_bound == pytest.approx(9.0, rel=1e-3)


def test_bounds_hold_for_a_workload_with_a_steep_spectrum() -> None:
    """Singular values down to 1e-12: squaring them must not inflate the certificate."""
    stream = np.random.default_rng(0)
    left, right = (np.linalg.qr(stream.normal(size=(30, 30)))[0] for _ in range(2))
    W = (left * np.geomspace(1.0, 1e-12, 30)) @ right
    exact = dual_bound(W, np.ones(30))
    s = optimize(W, privacy="approximate")
    assert s.lower_bound <= s.error
    assert dual_point(W, np.full(30, 1 / 30)).certain ** 2 <= exact * (1 + 1e-9)


def test_marginals_meet_the_svd_bound() -> None:
    cells = np.indices((3, 4)).reshape(2, -1)
    W = np.array([cells[0] == a for a in range(3)] + [cells[1] == b for b in range(4)], dtype=float)
    assert optimize(W, privacy="approximate").error == pytest.approx(svd_bound(W), rel=1e-6)


def geometric_variance(epsilon: float) -> float:
    p = math.exp(-epsilon)
    return 2 * p / (1 - p) ** 2


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0, 8.0, 41.0, 100.0])
def test_the_least_error_of_counts_is_geometric_noise(epsilon: float) -> None:
    v = geometric_variance(epsilon)
    assert least_error(np.eye(6), epsilon) == pytest.approx(6 * v)
    assert least_error([[3.0, 1.0, -2.0]], epsilon) == pytest.approx(9 * v), "one query: the cell that counts most"
    assert least_error(np.ones((4, 3)), epsilon) == pytest.approx(4 * v), "the same count, four times"
    assert least_error(np.eye(2), epsilon, rows_per_unit=3) == pytest.approx(18 * v)
    assert least_error(np.zeros((2, 2)), epsilon) == 0.0
    for epsilon_too_bad in (0, -1, math.nan):
        with pytest.raises(PrivacyParameterError):
            least_error(np.eye(2), epsilon_too_bad)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(W=WORKLOADS, scale=st.sampled_from([1e-150, 1.0, 1e120]))
def test_every_basis_gives_a_bound_and_no_strategy_is_below(W: np.ndarray, scale: float) -> None:
    """For W = B·L with columns of L2 norm 1, (u·w_j)² ≤ ‖Bᵀu‖²: so the sum over a basis is at most ‖B‖²_F."""
    bound = direction_bound(scale * W) / scale**2
    assert bound <= optimize(W, privacy="approximate").error * (1 + 1e-9) + 1e-12
    for basis in (np.eye(len(W)), np.linalg.qr(np.random.default_rng(0).normal(size=(len(W), len(W))))[0]):
        by_basis = float(np.square(basis.T @ W).max(axis=1, initial=0.0).sum())
        assert by_basis <= optimize(W, privacy="pure").error * (1 + 1e-9) + 1e-12
    assert bound >= np.square(W).max(axis=1, initial=0.0).sum() * (1 - 1e-8), "no worse than the queries themselves"
    assert bound >= np.square(W).sum(axis=0).max(initial=0.0) * (1 - 1e-8), "nor than the longest column"


def test_the_bound_is_near_the_best_that_gaussian_strategies_reach() -> None:
    """Turned bases meet the optimum of the L2 problem, which bounds them: nothing is given away there."""
    for W in (np.tril(np.ones((16, 16))), np.array([[1.0, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])):
        assert direction_bound(W) >= 0.999 * optimize(W, privacy="approximate").lower_bound


def least_by_programme(epsilon: float, largest: int, fine: int) -> float:
    """The least mean squared error of all ε-private mechanisms for one count in 0 … largest, by a linear programme.

    A mechanism is P(answer | count), for answers on a grid of 1/fine; the mean is over all counts alike. The worst case
    is no smaller than the mean, and a mechanism for all counts is one for these.
    """
    counts, answers = np.arange(largest + 1), np.arange(-fine, fine * (largest + 1) + 1) / fine
    shape = (counts.size, answers.size)
    place = np.arange(counts.size * answers.size).reshape(shape)
    rows, columns, values = [], [], []
    row = 0
    for count in range(largest):
        for a, b in ((count, count + 1), (count + 1, count)):
            for k in range(answers.size):
                rows += [row, row]
                columns += [int(place[a, k]), int(place[b, k])]
                values += [1.0, -math.exp(epsilon)]
                row += 1
    private = coo_array((values, (rows, columns)), shape=(row, place.size)).tocsr()
    every = coo_array((np.ones(place.size), (np.repeat(counts, answers.size), place.ravel()))).tocsr()
    cost = np.square(answers[None, :] - counts[:, None]).ravel() / counts.size
    result = linprog(cost, A_ub=private, b_ub=np.zeros(row), A_eq=every, b_eq=np.ones(counts.size), method="highs")
    return float(result.fun)


@pytest.mark.parametrize("epsilon", [0.8, 2.0])
def test_no_mechanism_at_all_does_better_on_many_counts(epsilon: float) -> None:
    """On few counts a mechanism may guess; the more there are, the nearer the best of all comes to the bound."""
    bound = least_error([[1.0]], epsilon)
    few, some, many = (least_by_programme(epsilon, largest, 2) for largest in (4, 8, 16))
    assert few < some < many < bound
    gaps = [bound - few, bound - some, bound - many]
    assert gaps[1] < 0.75 * gaps[0] and gaps[2] < 0.6 * gaps[1], "the gap is that of the two ends: it falls as 1/counts"
    assert 17 * gaps[2] == pytest.approx(9 * gaps[1], rel=0.15)
