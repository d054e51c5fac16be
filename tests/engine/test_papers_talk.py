"""The numbers that the talks print: the matrix-mechanism talk (2011), and the slides of the LRM paper.

Every expected figure is from a slide or from its formula, and none is computed by what it is compared with.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tacit.engine import optimize, release
from tacit.engine.inference.nonnegative import fit
from tacit.engine.search.bounds import svd_bound
from tacit.engine.strategy import Matrix, Strategy, sensitivity

from benchmarks.paper.data import SPARSE, unit_counts
from benchmarks.paper.talk_tasks import Plain, Weighted, by_width, every_range
from benchmarks.paper.tasks import EPSILON, GAUSS
from benchmarks.paper.workloads import all_ranges, cube

X = np.array([10, 23, 16, 3])
"""The slides' counts of grades."""
RANGES = every_range(4)
MIDDLE = np.array([0.0, 1.0, 1.0, 0.0])
"""range(x2, x3)."""
TREE = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4)], dtype=np.float64)
Y = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]], dtype=np.float64)
PAIRS = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=np.float64)
Y1 = np.vstack([PAIRS, np.eye(4), np.eye(4)])
Y2 = np.vstack([PAIRS, math.sqrt(2.0) * np.eye(4)])


def per_query(s: Strategy) -> Matrix:
    """Expected squared error of each query at ε = 1."""
    return np.asarray(2.0 * s.sensitivity**2 * np.sum(s.B**2, axis=1))


def formula(A: Matrix, w: Matrix) -> float:
    """The slide "Error of the matrix mechanism": (2/ε²)·‖A‖₁²·w(AᵀA)⁻¹wᵀ at ε = 1."""
    norm = float(np.abs(A).sum(axis=0).max())
    return 2.0 * norm**2 * float(w @ np.linalg.inv(A.T @ A) @ w)


def test_the_slides_ranges_and_their_answers() -> None:
    assert sorted(RANGES @ X) == sorted([52, 49, 42, 33, 39, 19, 10, 23, 16, 3])


def test_sensitivity_of_the_slides_query_matrix_is_4() -> None:
    W = np.ones((4, 10))
    W[1, 5:], W[3, 5:] = 0.0, -1.0
    W[2] = np.eye(10)[[1, 6]].sum(axis=0)
    assert sensitivity(W, "pure") == 4.0
    assert optimize(W, strategy="results").sensitivity == 4.0
    assert sensitivity(W, "approximate") == 2.0


def test_approach_1_laplace_on_all_ranges_of_four_cells_errs_by_72_per_query() -> None:
    s = optimize(RANGES, strategy="results")
    assert s.sensitivity == 6.0
    assert 2.0 * s.sensitivity**2 == 72.0 == pytest.approx(Plain(4).run()["error"] * EPSILON**2)
    assert per_query(s).max() < 72.0  # least squares, which the first approach lacks, can only help


@pytest.mark.parametrize("n", [3, 4, 7, 16])
def test_approach_1_in_closed_form_is_the_sensitivity_of_all_ranges(n: int) -> None:
    expected = 2.0 * sensitivity(every_range(n), "pure") ** 2 / EPSILON**2
    assert Plain(n).run()["error"] == pytest.approx(expected)


def test_approach_2_noisy_counts_err_by_twice_the_width() -> None:
    s = optimize(RANGES, strategy="identity")
    assert per_query(s) == pytest.approx(2.0 * RANGES.sum(axis=1))
    assert 2.0 * by_width(s) == pytest.approx([2.0, 4.0, 6.0, 8.0])


def test_approach_3_the_least_squares_weights_of_the_middle_range() -> None:
    s = optimize(MIDDLE[None, :], strategy="hierarchical")
    assert s.L.tolist() == TREE.tolist()
    assert s.B[0] == pytest.approx(np.array([6, 3, 3, -9, 12, 12, -9]) / 21)
    for other in ([0, 0, 0, 0, 1, 1, 0], [0, 1, 0, -1, 0, 1, 0], [1, 0, 0, -1, 0, 0, -1]):
        assert (np.array(other) @ TREE).tolist() == MIDDLE.tolist()  # the slide's other estimates, unbiased too
        assert np.sum(s.B[0] ** 2) < np.sum(np.square(other))


def test_approach_4_the_wavelet_weights_of_the_middle_range() -> None:
    s = optimize(MIDDLE[None, :], strategy="wavelet")
    assert s.L.tolist() == Y.tolist()
    assert s.B[0] == pytest.approx([0.5, 0.0, -0.5, 0.5])


@pytest.mark.parametrize(("name", "A"), [("identity", np.eye(4)), ("hierarchical", TREE), ("wavelet", Y)])
def test_the_error_formula_of_the_matrix_mechanism(name: str, A: Matrix) -> None:
    s = optimize(RANGES, strategy=name)
    assert per_query(s) == pytest.approx([formula(A, w) for w in RANGES])
    assert 2.0 * s.error == pytest.approx(sum(formula(A, w) for w in RANGES))


def test_the_wavelets_equivalents_have_one_profile_and_sensitivities_3_3_and_2_414() -> None:
    assert [round(sensitivity(A, "pure"), 3) for A in (Y, Y1, Y2)] == [3.0, 3.0, 2.414]
    assert (Y.T @ Y).tolist() == (Y1.T @ Y1).tolist()
    np.testing.assert_allclose(Y2.T @ Y2, Y.T @ Y, atol=1e-15)
    for w in RANGES:
        assert formula(Y1, w) == pytest.approx(formula(Y, w))
        assert formula(Y2, w) == pytest.approx(formula(Y, w) * ((1 + math.sqrt(2.0)) / 3) ** 2)  # of every query


def test_neither_the_tree_nor_the_wavelet_is_efficient() -> None:
    """A strategy with the tree's profile and less sensitivity: the root of its Gram matrix has √7 in place of 3."""
    values, vectors = np.linalg.eigh(TREE.T @ TREE)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    assert sensitivity(root, "pure") == pytest.approx(math.sqrt(7.0))
    assert all(formula(root, w) < formula(TREE, w) * 0.78 for w in RANGES)
    assert all(formula(Y2, w) < formula(Y, w) * 0.65 for w in RANGES)


def test_a_rotation_keeps_the_profile() -> None:
    """LᵀL is all that the error knows of L, but for its sensitivity."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((7, 7)))
    assert [formula(Q @ TREE, w) / sensitivity(Q @ TREE, "pure") ** 2 for w in RANGES] == pytest.approx(
        [formula(TREE, w) / 9.0 for w in RANGES]
    )


def test_tacit_is_below_all_of_the_slides_strategies_for_all_ranges_of_four_cells() -> None:
    ours = 2.0 * optimize(RANGES).error
    assert all(ours <= sum(formula(A, w) for w in RANGES) for A in (np.eye(4), TREE, Y, Y1, Y2))


@pytest.mark.parametrize("name", ["identity", "hierarchical", "wavelet"])
def test_orders_of_growth(name: str) -> None:
    """Noisy counts err by (n + 2)/3 cells on average, O(n); trees and wavelets by O(log³ n)."""
    errors = {n: optimize(all_ranges(n).matrix(), strategy=name).error / all_ranges(n).m for n in (32, 128, 512)}
    if name == "identity":
        assert errors == pytest.approx({n: (n + 2) / 3 for n in errors})
    else:
        scaled = [e / math.log2(2 * n) ** 3 for n, e in errors.items()]
        assert max(scaled) < 1.1 * min(scaled)


def test_least_squares_has_the_least_variance_of_all_unbiased_estimates() -> None:
    """The slide's theorem (Gauss and Markov): any other B with B·L = W has the larger ‖B‖."""
    s = optimize(RANGES, strategy="hierarchical")
    null = np.eye(7) - s.L @ np.linalg.pinv(s.L)
    other = s.B + 0.1 * np.random.default_rng(0).standard_normal(s.B.shape) @ null
    np.testing.assert_allclose(other @ s.L, RANGES, atol=1e-12)
    assert np.all(np.sum(other**2, axis=1) > np.sum(s.B**2, axis=1))


@pytest.mark.parametrize("name", ["results", "hierarchical", "wavelet"])
def test_answers_are_consistent_and_come_from_one_synthetic_vector(name: str) -> None:
    y = release(optimize(RANGES, strategy=name), X, epsilon=1.0)
    cells, _, _, _ = np.linalg.lstsq(RANGES, y, rcond=None)
    np.testing.assert_allclose(RANGES @ cells, y, atol=1e-6)


def test_the_singular_value_bound() -> None:
    """Theorem 3.3: P(ε, δ)·(Σλ)²/n, P = 2·log(2/δ)/ε²; tight for some workloads, data cubes among them."""
    assert pytest.approx(2 * math.log(2 / 1e-4) / 0.1**2) == GAUSS
    for W, tight in ((RANGES, False), (np.eye(5), True), (cube(16).matrix(), True)):
        bound = np.linalg.svd(W, compute_uv=False).sum() ** 2 / W.shape[1]
        s = optimize(W, privacy="approximate")
        assert svd_bound(W) == pytest.approx(bound)
        assert s.error >= bound * (1 - 1e-9)
        assert (s.error <= bound * (1 + 1e-4)) == tight


def test_eigen_queries_are_weighted_eigenvectors_of_the_workload() -> None:
    s = optimize(RANGES, privacy="approximate", strategy="adaptive")
    products = s.L @ s.L.T
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)
    gram = RANGES.T @ RANGES
    for row in s.L:
        image = gram @ row
        np.testing.assert_allclose(image, row * (image @ row) / (row @ row), atol=1e-9)
    assert s.error <= 1.1 * s.lower_bound  # "approximately optimal"


def test_scaled_rows_control_the_error_of_each() -> None:
    plain, weighted = (Weighted(8, "approximate", weight).run() for weight in (1.0, 100.0))
    assert weighted["weighted"] < 0.8 * plain["weighted"]
    assert weighted["others"] > plain["others"]
    W = every_range(8)
    weights = np.ones(len(W))
    weights[:8] = 100.0
    scaled = optimize(W * np.sqrt(weights)[:, None], privacy="approximate")
    assert scaled.error == pytest.approx(optimize(W, privacy="approximate", weights=weights).error, rel=1e-4)


def test_non_negative_least_squares() -> None:
    """x ≥ 0, least squares where that is so already, and on sparse data better for trees and worse for counts.

    The counts of a wide range add up the bias that cutting off at 0 leaves in every empty cell; a tree has measured
    the range itself.
    """
    n = 256
    x = unit_counts(SPARSE, n).astype(np.float64)
    rng = np.random.default_rng(0)  # a simulation: nothing is released
    R = all_ranges(n).matrix()
    gains = {}
    for name in ("identity", "hierarchical"):
        s = optimize(R, strategy=name)
        z = (s.L @ x)[:, None] + rng.laplace(scale=s.sensitivity / EPSILON, size=(len(s.L), 10))
        free, fitted = np.linalg.lstsq(s.L, z, rcond=None)[0], fit(s.L, z)
        assert fitted.min() >= 0.0 > free.min()
        gains[name] = np.sum((R @ (free - x[:, None])) ** 2) / np.sum((R @ (fitted - x[:, None])) ** 2)
    assert gains["hierarchical"] > 1.5
    assert gains["identity"] < 0.5
    np.testing.assert_allclose(fit(TREE, (TREE @ X)[:, None].astype(np.float64))[:, 0], X, atol=1e-6)


def test_the_lrm_slides_three_queries() -> None:
    """Noise on results 2Δ²/ε² = 8/ε² a query, noise on data 16/ε² in all.

    The slide has 4/ε² for the best strategy: there it leaves out the 2 of a Laplace draw's variance, which its other
    two lines have; the paper has 4 + 2 + 2 = 8.
    """
    W = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=np.float64)
    assert 2.0 * sensitivity(W, "pure") ** 2 == 8.0
    assert 2.0 * optimize(W, strategy="identity").error == pytest.approx(16.0)
    best = optimize(W)
    assert best.error == pytest.approx(4.0)
    assert per_query(best) == pytest.approx([4.0, 2.0, 2.0])


def test_when_noise_on_results_is_the_better_of_the_two() -> None:
    """LRM, Section 3.2: "iff m·max Σ W² < Σ Σ W²", and so never for m ≥ n.

    The sensitivity is a sum of absolute values, squared afterwards: the condition has (Σ|W|)² in place of ΣW². As
    printed it is wrong for two equal rows over three cells; the consequence for m ≥ n holds.
    """
    W = np.ones((2, 3))
    results, data = 2.0 * len(W) * sensitivity(W, "pure") ** 2, 2.0 * np.sum(W**2)
    assert len(W) * np.max(np.sum(W**2, axis=0)) < np.sum(W**2)
    assert (results, data) == (16.0, 12.0)
    assert len(W) * sensitivity(W, "pure") ** 2 > np.sum(W**2)
    rng = np.random.default_rng(0)
    for m, n in ((4, 4), (8, 4), (5, 1)):
        W = rng.standard_normal((m, n))
        assert m * sensitivity(W, "pure") ** 2 >= np.sum(W**2)
