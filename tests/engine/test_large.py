"""Large workloads: the quicker ways give what the slow ones do."""

from __future__ import annotations

import numpy as np
import pytest
from tacit.engine import optimize, plan_release, table_workload
from tacit.engine.linalg import gram, is_even_triangle, rebuild, reconstruct, spectrum
from tacit.engine.mechanism import lattice
from tacit.engine.mechanism.exact import largest_column_norm
from tacit.engine.mechanism.lattice import integer_multiple, round_strategy
from tacit.engine.search.bounds import dual_point
from tacit.engine.search.reduce import compress_rows, merge_columns
from tacit.engine.search.strategies.dual import _corrected
from tacit.engine.search.strategies.p_identity import Problem
from tacit.engine.search.strategies.weighted import _least, weighted
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, sensitivity

from .workloads import prefix, ranges, real

STREAM = np.random.default_rng(0)


def spread_out(W: Matrix, width: int) -> Matrix:
    """W with its columns repeated until there are so many, in runs."""
    return np.repeat(W, -(-width // W.shape[1]), axis=1)[:, :width]


@pytest.mark.parametrize("n", [256, 300])
def test_a_large_square_strategy_is_inverted(n: int) -> None:
    L, W = np.eye(n) + 0.1 * STREAM.normal(size=(n, n)) / np.sqrt(n), STREAM.normal(size=(n + 7, n))
    exact = W @ np.linalg.inv(L)
    assert rebuild(W, L) == pytest.approx(exact) and reconstruct(W, L) == pytest.approx(exact)
    L[-1] = L[0]  # singular: what is left of W is told as before
    assert reconstruct(W, L) is None
    assert rebuild(W, L) == pytest.approx(W @ np.linalg.pinv(L), abs=1e-6)


def test_cells_alone_leave_the_workload_as_it_is() -> None:
    W = STREAM.normal(size=(5, 40))
    assert rebuild(W, np.eye(40)) is W and reconstruct(W, np.eye(40)) is W


def test_the_spectrum_by_squares_is_that_of_the_matrix() -> None:
    for W in (STREAM.normal(size=(300, 400)), STREAM.normal(size=(400, 300)), real(300, 400, 270)):
        sigma = np.linalg.svd(W, compute_uv=False)
        assert spectrum(W) == pytest.approx(sigma[sigma > 1e-9])


def test_sparse_matrices_are_multiplied_by_their_entries() -> None:
    W = np.where(STREAM.random((1100, 1000)) < 0.005, 3.0, 0.0)
    assert np.array_equal(gram(W), W.T @ W)


def test_a_triangle_of_full_rank_is_known_by_its_pivots() -> None:
    W = STREAM.normal(size=(900, 520))
    R = compress_rows(W)
    assert is_even_triangle(R)
    assert np.abs(R.T @ R - W.T @ W).max() < 1e-9
    assert not is_even_triangle(R[:-1]) and not is_even_triangle(R.T)
    R[3, 3] = 1e-6
    assert not is_even_triangle(R)


def test_runs_of_equal_columns_are_merged_like_any_others() -> None:
    W = spread_out(ranges(9, 14), 80)[:, :77]
    merged, position = merge_columns(W)
    assert np.array_equal(merged[:, position], W)
    assert merged.shape[1] == len(np.unique(W, axis=1).T)
    first = [int(np.flatnonzero(position == k)[0]) for k in range(merged.shape[1])]
    assert first == sorted(first), "in the order of their first appearance"


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_a_lattice_of_repeated_columns_is_that_of_each_one_once(privacy: Privacy) -> None:
    W = ranges(9, 14)
    L = optimize(W, privacy=privacy).L
    position = STREAM.integers(0, 14, 200)
    narrow, wide = round_strategy(L, W, privacy), round_strategy(L[:, position], W[:, position], privacy)
    assert wide.L_int.shape == (len(L), 200)
    assert wide.residual <= 1e-9
    order = 1 if privacy == "pure" else 2
    assert wide.norm >= largest_column_norm(wide.L_int, order)
    assert wide.error == pytest.approx(narrow.error, rel=1e-3)


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_few_ranges_over_very_many_cells(privacy: Privacy) -> None:
    W = ranges(12, 100_000)
    plan = plan_release([table_workload(W)], privacy=privacy)
    s = plan.parts[0].strategy
    narrow = merge_columns(W)[0]
    assert s.L.shape[1] == W.shape[1]
    assert s.error <= min(float((narrow**2).sum()), optimize(narrow, privacy=privacy).error * (1 + 1e-9))
    assert s.sensitivity == pytest.approx(sensitivity(s.L, privacy))
    assert np.abs(plan.parts[0].lattice.B @ plan.parts[0].lattice.L - W).max() < 1e-6


def test_all_rows_of_a_basis_are_kept_where_their_products_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    W = ranges(20, 60)
    rank = int(np.linalg.matrix_rank(W))
    rows = W / np.linalg.norm(W, axis=1, keepdims=True)
    kept = lattice._independent(rows)
    assert len(kept) == rank == np.linalg.matrix_rank(rows[kept])
    monkeypatch.setattr(lattice, "SQUARES_EACH", 2.0)
    assert lattice._independent(np.eye(3)) == [0, 1, 2], "the decomposition says the same"


@pytest.mark.parametrize("matrix", [2.0 * np.eye(3), np.array([[6.0, -4.0], [0.0, 2.0]]), np.eye(2) / 3])
def test_integers_are_told_at_sight(matrix: Matrix) -> None:
    integers = integer_multiple(matrix)
    assert integers is not None and np.gcd.reduce(integers, axis=None) == 1
    assert integers * (matrix[0, 0] / integers[0, 0]) == pytest.approx(matrix)


def test_reals_are_no_integers() -> None:
    assert integer_multiple(STREAM.normal(size=(200, 200))) is None
    assert integer_multiple(np.zeros((2, 2))) is None


def test_a_correction_evens_the_columns_of_a_thin_strategy() -> None:
    W = ranges(40, 200)
    W = W[np.linalg.qr(W.T)[1].diagonal() != 0.0]
    d = np.full(W.shape[1], 1.0 / W.shape[1])
    for _ in range(30):
        point = dual_point(W, d)
        d = d * point.leverage
        d = d / d.sum()
    point = dual_point(W, d)
    after = dual_point(W, _corrected(d, point))
    assert after.trace * after.leverage.max() < point.trace * point.leverage.max()


@pytest.mark.parametrize("W", [ranges(9, 50), prefix(20), np.eye(6), real(7, 30, 7)])
def test_no_weights_of_independent_queries_get_below_their_bound(W: Matrix) -> None:
    assert np.linalg.matrix_rank(W) == len(W)
    for u in (np.ones(len(W)), STREAM.random(len(W)) + 0.1):
        L = u[:, None] * W
        error = sensitivity(L, "pure") ** 2 * float(np.sum((W @ np.linalg.pinv(L)) ** 2))
        assert _least(W) <= error * (1 + 1e-9)
    L = weighted(W, "pure", Watch())
    assert _least(W) <= sensitivity(L, "pure") ** 2 * float(np.sum((W @ np.linalg.pinv(L)) ** 2)) * (1 + 1e-9)


def test_sums_are_valued_by_the_entries_of_a_sparse_workload() -> None:
    W = np.where(STREAM.random((700, 600)) < 0.004, 1.0, 0.0)
    theta = STREAM.random((5, 600))
    s = 1.0 + theta.sum(axis=0)
    L = np.vstack([np.eye(600), theta]) / s
    assert Problem(W).error(theta) == pytest.approx(float(np.sum((W @ np.linalg.pinv(L)) ** 2)))


def test_a_cube_is_planned_by_its_cells_and_says_how_far_from_the_least_it_is() -> None:
    F = np.vstack([np.eye(8), np.ones((1, 8))])
    W = np.kron(np.kron(F, F), F)
    s = optimize(W, privacy="pure")
    assert s.error <= float((W**2).sum()) * (1 + 1e-12)
    assert s.lower_bound == pytest.approx(optimize(W, privacy="approximate").error, rel=1e-3)


def test_the_default_stops_sooner_on_large_workloads_and_on_request_later() -> None:
    W = ranges(530, 2000)
    s = optimize(W, privacy="approximate")
    assert s.gap <= 8e-4
    assert optimize(W, privacy="approximate", target_gap=2e-5).gap <= 2e-5
