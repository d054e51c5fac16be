"""What rank is, W·L⁺ in all its ways against the pseudo-inverse, and the threads of BLAS."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
import scipy.linalg
from support import seams
from support.estimates import estimate_batch
from tacit.engine import optimize
from tacit.engine.linalg import (
    INDEPENDENT,
    SQUARES_TOTAL,
    by_cells,
    computed_rank,
    rank,
    rebuild,
    reconstruct,
    row_norms,
    row_peaks,
    row_space,
    spectrum,
    times,
)
from tacit.engine.mechanism.choose import PlanOptions, plan_release
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.search.strategies.p_identity import assemble
from tacit.engine.strategy import Matrix, Privacy
from tacit.process import one_blas_thread
from threadpoolctl import threadpool_info, threadpool_limits

STREAM = np.random.default_rng(0)
CELLS = 520


def sums(count: int) -> Matrix:
    theta = np.maximum(STREAM.normal(size=(count, CELLS)), 0.0) * (STREAM.random((count, CELLS)) < 0.3)
    theta[0] = np.arange(CELLS) == 5  # a sum of one cell: as narrow as the cell's own row
    return theta


STRATEGIES = {
    "cells": np.eye(CELLS),
    "cells of several sizes": np.diag(np.geomspace(1e-3, 1.0, CELLS)),
    "cells and sums": assemble(sums(20)),
    "signed sums": assemble(sums(9) - sums(9)),
    "sums first": assemble(sums(12))[::-1],
}


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("name", STRATEGIES)
def test_cells_and_sums_are_inverted_without_a_decomposition(name: str, merged: bool) -> None:
    place = np.concatenate([np.arange(CELLS), STREAM.integers(0, CELLS, 100 if merged else 0)])
    L, W = STRATEGIES[name][:, place], STREAM.normal(size=(30, CELLS))[:, place]
    L, W = (np.hstack([part, np.zeros((len(part), 3))]) for part in (L, W))  # cells that no query counts
    result = by_cells(W, L)
    assert result is not None
    B, missing = result
    assert np.abs(B - W @ np.linalg.pinv(L)).max() <= 1e-9 * np.abs(B).max()
    assert np.allclose(missing, W - B @ L, atol=1e-10)
    assert np.array_equal(rebuild(W, L), B) and np.array_equal(reconstruct(W, L), B)


def test_other_strategies_are_left_to_the_decomposition() -> None:
    W = STREAM.normal(size=(30, CELLS))
    assert by_cells(W, STREAM.normal(size=(CELLS, CELLS))) is None
    assert by_cells(W[:, :100], np.eye(100)) is None  # too small to be worth a look
    overlapping = np.eye(CELLS) + np.eye(CELLS, k=1)
    assert by_cells(W, overlapping) is None
    split = np.hstack([np.eye(CELLS), np.eye(CELLS)])  # pairs of cells, of which one is asked again
    split = np.vstack([split, np.arange(2 * CELLS) == 3])
    B = reconstruct(np.hstack([W, W]), split)
    assert B is not None
    assert np.abs(B - np.hstack([W, W]) @ np.linalg.pinv(split)).max() <= 1e-9


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads() -> Iterator[None]:
    with threadpool_limits(limits=2, user_api="blas"):
        assert blas_threads() == {2}
        yield


@pytest.mark.usefixtures("two_threads")
def test_the_last_to_go_restores_the_threads() -> None:
    entered, left = Event(), Event()

    def second() -> set[int]:
        with one_blas_thread():
            entered.set()
            assert left.wait(10)
            return blas_threads()

    with ThreadPoolExecutor(1) as pool:
        with one_blas_thread():
            other = pool.submit(second)
            assert entered.wait(10)
        left.set()
        assert other.result(10) == {1}
    assert blas_threads() == {2}
    with pytest.raises(ZeroDivisionError), one_blas_thread(), one_blas_thread():
        assert blas_threads() == {1}
        _ = 1 / 0
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_searches_in_parallel_leave_the_threads_as_they_were() -> None:
    together = Barrier(4)

    def search(size: int) -> set[int]:
        together.wait(10)
        seen: list[set[int]] = []
        for privacy in ("approximate", "pure"):
            optimize(
                np.tril(np.ones((size, size))),
                privacy=privacy,  # type: ignore[arg-type]
                deadline=0.2,
                progress=lambda _: seen.append(blas_threads()),
            )
        return set().union(*seen)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(search, (3, 5, 8, 13))) == [{1}] * 4
    assert blas_threads() == {2}


def test_a_product_is_the_same_through_its_entries() -> None:
    left, right = STREAM.normal(size=(1100, 1100)), np.diag(STREAM.normal(size=1100))
    cells = np.roll(np.diag(STREAM.normal(size=1100)), 7, axis=1)
    for a, b in ((left, right), (cells, right), (cells, left), (left[:3], left)):
        np.testing.assert_allclose(times(a, b), a @ b, rtol=1e-12, atol=1e-12)


def test_norms_and_peaks_of_rows_of_any_size() -> None:
    rows = np.array([[3.0, -4.0], [0.0, 0.0], [3e-200, 4e-200], [-3e200, 4e200]])
    np.testing.assert_allclose(row_norms(rows), [5.0, 0.0, 5e-200, 5e200])
    assert row_peaks(rows).tolist() == [4.0, 0.0, 4e-200, 4e200]
    assert row_norms(np.zeros((2, 0))).tolist() == row_peaks(np.zeros((2, 0))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
@pytest.mark.parametrize("strategy", [None, "identity"])
def test_queries_of_one_cell_each_are_planned_without_a_decomposition(
    strategy: str | None, privacy: Privacy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GROUP BY over thousands of groups: nothing of n³ operations may be done for it, from plan to answer."""
    seams.refuse_decompositions(monkeypatch)
    order = STREAM.permutation(1100)
    W = np.diag(np.geomspace(0.5, 2.0, 1100))[order]
    result = optimize(W, privacy=privacy, strategy=strategy)
    assert result.name == "identity"
    assert result.error == pytest.approx(np.sum(W**2)) and result.gap < 1e-9
    assert np.array_equal(result.B @ result.L, W)
    block = TableWorkload(W, np.arange(1100))
    plan = plan_release([block], privacy=privacy, options=PlanOptions(strategy=strategy))
    answer = estimate_batch([block], [measure(plan, [np.arange(1100)], 1.0, 0 if privacy == "pure" else 1e-6)])
    assert answer.stderr == pytest.approx(plan.stderr(1.0, 0 if privacy == "pure" else 1e-6))


def test_a_decomposition_that_does_not_converge_is_done_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    real = scipy.linalg.svd

    def gives_up(*args: object, lapack_driver: str = "gesdd", **options: object) -> object:
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return real(*args, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(scipy.linalg, "svd", gives_up)
    singular = np.outer(np.arange(1.0, 5), np.arange(1.0, 4))
    B = rebuild(singular, singular)
    np.testing.assert_allclose(B @ singular, singular)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize(("m", "n", "true"), [(30, 20, 7), (20, 30, 20), (5, 400, 3), (1, 1, 1), (60, 60, 59)])
def test_the_rank_of_a_given_matrix_is_its_true_one_at_any_scale(m: int, n: int, true: int, scale: float) -> None:
    stream = np.random.default_rng(m)
    A = scale * stream.normal(size=(m, true)) @ stream.normal(size=(true, n))
    sigma, R = row_space(A)
    assert spectrum(A).size == sigma.size == true
    assert np.allclose(R @ R.T, np.eye(true))
    assert np.allclose((A @ R.T) @ R, A, rtol=0, atol=1e-13 * np.abs(A).max() * n)


def test_directions_of_a_given_matrix_count_down_to_rounding() -> None:
    sigma = np.array([1.0, 1e-6, 1e-12, 1e-14, 1e-17])
    assert rank(sigma, (5, 5)) == 4
    assert rank(sigma, (500, 5)) == 3, "a larger decomposition rounds more"
    assert computed_rank(sigma) == 2
    assert rank(np.zeros(3), (3, 3)) == computed_rank(np.zeros(3)) == computed_rank(np.zeros(0)) == 0


def test_what_the_finest_lattice_adds_to_a_strategy_is_no_direction() -> None:
    """Three directions in eight rows, each entry rounded to 2⁻⁵⁰: the SVD sees eight, and five are rounding."""
    stream = np.random.default_rng(0)
    exact = stream.normal(size=(8, 3)) @ stream.normal(size=(3, 40))
    rounded = np.ldexp(np.rint(np.ldexp(exact / np.abs(exact).max(), 50)), -50)
    assert computed_rank(np.linalg.svd(rounded, compute_uv=False)) == 3
    W = stream.normal(size=(4, 8)) @ exact
    np.testing.assert_allclose(rebuild(W, rounded), W @ np.linalg.pinv(rounded, rcond=1e-9), rtol=1e-9, atol=1e-9)


def test_a_spectrum_that_squares_may_show_is_summed_to_nine_digits() -> None:
    U, V = (np.linalg.qr(np.random.default_rng(seed).normal(size=(20, 20)))[0] for seed in (1, 2))
    sigma = np.geomspace(1.0, SQUARES_TOTAL, 20)
    A = (U * sigma) @ V
    through_squares = np.sqrt(np.maximum(np.linalg.eigvalsh(A @ A.T), 0.0)).sum()
    assert through_squares == pytest.approx(sigma.sum(), rel=1e-9)


def test_rows_of_small_integers_are_independent_exactly_or_not_at_all() -> None:
    stream = np.random.default_rng(0)
    for size in (3, 10, 40):
        rows = stream.integers(-9, 10, (size, size)).astype(float)
        rows[-1] = rows[:-1].sum(axis=0)
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        pivots = np.abs(np.diag(scipy.linalg.qr(unit.T, mode="r", pivoting=True)[0]))
        assert pivots[-1] < 1e-3 * INDEPENDENT * pivots[0]
        assert pivots[-2] > 1e3 * INDEPENDENT * pivots[0]


SHAPES = {"square": (9, 9), "wide": (5, 12), "tall": (14, 6)}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_to_b_is_the_pseudo_inverse(shape: str) -> None:
    stream = np.random.default_rng(0)
    k, n = SHAPES[shape]
    full = stream.normal(size=(k, n))
    for L in (full, full * np.geomspace(1.0, 1e-5, k)[:, None], np.vstack([full, full[:2]]), full * 1e-90):
        W = stream.normal(size=(3, len(L))) @ L
        expected = W @ np.linalg.pinv(L, rcond=1e-13)
        for B in (rebuild(W, L), reconstruct(W, L)):
            assert B is not None
            np.testing.assert_allclose(B @ L, W, rtol=0, atol=1e-11 * np.abs(W).max())
            assert np.linalg.norm(B) == pytest.approx(np.linalg.norm(expected), rel=1e-6)


def test_a_workload_outside_the_row_space_is_projected_or_refused() -> None:
    L = np.eye(6)[:4]
    W = np.ones((2, 6))
    assert np.array_equal(rebuild(W, L), np.ones((2, 4)))
    assert reconstruct(W, L) is None
    assert reconstruct(W, np.zeros((0, 6))) is None


def test_a_row_that_the_whole_hides_is_missed_by_row_only() -> None:
    W = np.diag([1.0, 1.0, 1e-11])
    assert reconstruct(W, np.eye(3)[:2]) is None
    assert reconstruct(W, np.eye(3)[:2], by_row=False) is not None
