"""Reductions are exact: the reduced workload has the same strategies at the same errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tacit.engine import optimize
from tacit.engine.linalg import reconstruct
from tacit.engine.search.reduce import compress_rows, merge_columns, merge_rows, reduce_workload
from tacit.engine.strategy import sensitivity

WORKLOADS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.integers(-1, 2))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(W=WORKLOADS)
def test_lifted_identity_of_the_blocks_rebuilds_the_workload(W: np.ndarray) -> None:
    reduction = reduce_workload(W)
    if not W.any():
        assert reduction.blocks == ()
        return
    L = reduction.lift([np.eye(block.workload.shape[1]) for block in reduction.blocks], "pure")
    assert sensitivity(L, "pure") == 1.0
    B = reconstruct(W, L)
    assert B is not None
    assert np.allclose(B @ L, W, atol=1e-12)
    assert np.sum(B**2) == pytest.approx(sum(np.sum(block.workload**2) for block in reduction.blocks))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(W=WORKLOADS)
def test_rows_keep_the_gram_matrix(W: np.ndarray) -> None:
    assert np.allclose(merge_rows(W).T @ merge_rows(W), W.T @ W, atol=1e-9)
    assert np.allclose(compress_rows(W).T @ compress_rows(W), W.T @ W, atol=1e-9)


@pytest.mark.parametrize("least", [1.0, 1e-2, 1e-6, 1e-9])
def test_tall_workloads_keep_their_small_directions(least: float) -> None:
    """Squaring W would lose a direction of 1e-9: WᵀW is only used where nothing is near that."""
    stream = np.random.default_rng(0)
    W = np.linalg.qr(stream.normal(size=(300, 6)))[0] * [3.0, 1.0, 1.0, 1.0, 1.0, least] @ stream.normal(size=(6, 6))
    R = compress_rows(W)
    assert R.shape[0] <= 6
    assert np.allclose(R.T @ R, W.T @ W, rtol=0, atol=1e-13 * np.sum(W**2))
    computed, true = (np.linalg.svd(A, compute_uv=False) for A in (R, W))
    assert np.abs(computed / true - 1.0).max() <= 1e-9 * max(1.0, 1e-6 / least)


def test_equal_columns_merge_in_order_and_negative_zero_is_zero() -> None:
    W = np.array([[1.0, 0.0, 1.0, 2.0], [-0.0, 1.0, 0.0, 0.0]])
    merged, where = merge_columns(W)
    assert merged.tolist() == [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert where.tolist() == [0, 1, 0, 2]


def test_proportional_rows_merge() -> None:
    assert merge_rows(np.array([[1.0, 2.0], [-2.0, -4.0], [0.0, 0.0], [0.0, 1.0]])).shape == (2, 2)


def test_ranges_over_many_cells_have_few_distinct_columns() -> None:
    ends = np.sort(np.random.default_rng(0).integers(0, 4096, (20, 2)), axis=1)
    cells = np.arange(4096)
    W = ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(float)
    assert sum(block.workload.shape[1] for block in reduce_workload(W).blocks) <= 40


def test_independent_blocks_are_found_and_priced_in_parallel() -> None:
    half = np.tril(np.ones((5, 5)))
    W = np.kron(np.eye(3), half)
    assert [block.workload.shape for block in reduce_workload(W).blocks] == [(5, 5)] * 3
    for privacy in ("pure", "approximate"):
        assert optimize(W, privacy=privacy).error == pytest.approx(3 * optimize(half, privacy=privacy).error)


def test_a_named_strategy_sees_the_workload_as_given_unless_told() -> None:
    W = [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    assert optimize(W, strategy="identity").error == pytest.approx(8.0)
    assert optimize(W, strategy="identity", reduce=True).error == pytest.approx(4.0)
