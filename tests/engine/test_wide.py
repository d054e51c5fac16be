"""Strategies that would not fit as arrays: sparse ones go the same way, to the same result, in less memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.sparse import csr_array, issparse
from tacit.engine import Privacy, TableWorkload, measure, optimize, plan_release, release
from tacit.engine import strategy as strategy_module
from tacit.engine.inference.estimate import estimate_from
from tacit.engine.linalg import parts_of, rebuild, reconstruct, residual
from tacit.engine.mechanism.choose import PlanOptions, choose_plan
from tacit.engine.mechanism.exact import largest_column_norm, product
from tacit.engine.mechanism.lattice import round_strategy
from tacit.engine.mechanism.measurement import pack, unpack
from tacit.engine.mechanism.stored_plan import read_strategy, write_strategy
from tacit.engine.strategy import Matrix, sensitivity

from .workloads import prefix, ranges, real

KINDS: tuple[Privacy, ...] = ("pure", "approximate")
STREAM = np.random.default_rng(0)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A width at which everything is quick stands for one at which an array does not fit."""
    monkeypatch.setattr(strategy_module, "LARGEST_ARRAY", 64)
    yield


def side_by_side() -> Matrix:
    """Cells, thin real rows, a row of sums and whole ranges, in blocks that share nothing."""
    return np.asarray(block_diag(np.eye(30), real(3, 12, 3), [[0.1, 1234.567, 3.0]], ranges(9, 8), prefix(6)))


def check(W: Matrix, L: Matrix | csr_array, B: Matrix, delta: float, privacy: Privacy) -> None:
    written = L.toarray() if issparse(L) else L
    assert np.abs(B @ written - W).max() <= 1e-8 * np.abs(W).max()
    assert delta == pytest.approx(sensitivity(written, privacy), rel=1e-12)


@pytest.mark.parametrize("privacy", KINDS)
@settings(max_examples=6, deadline=None)
@given(
    rows=st.integers(1, 400),
    cells=st.integers(8_300, 12_000),
    density=st.sampled_from([0.001, 0.05, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_the_default_is_never_above_identity_at_any_width(
    privacy: Privacy, rows: int, cells: int, density: float, seed: int
) -> None:
    stream = np.random.default_rng(seed)
    W = stream.normal(size=(rows, cells)) * (stream.random((rows, cells)) < density)
    s = optimize(W, privacy=privacy, cancel=lambda: True)
    assert s.error <= float(np.sum(W**2)) * (1 + 1e-9)
    assert s.error == pytest.approx(s.sensitivity**2 * float(np.sum(s.B**2)))
    assert np.abs(s.B @ s.L - W).max() <= 1e-8 * np.abs(W).max()


def test_cells_lead_where_many_dense_queries_are_wide() -> None:
    W = STREAM.integers(0, 2, (400, 9000)) * 1.0
    s = optimize(W, cancel=lambda: True)
    assert s.name == "identity" and issparse(s.L) and s.error == float(np.sum(W**2))


@pytest.mark.parametrize("privacy", KINDS)
def test_a_wide_release_has_the_promised_spread_and_little_memory(privacy: Privacy) -> None:
    n, m, delta = 20_000, 500, 0.0 if privacy == "pure" else 1e-6
    W = np.kron(np.eye(m), np.ones(n // m))  # disjoint sums: their errors are independent
    x = STREAM.integers(0, 100, n)
    tracemalloc.start()
    s = optimize(W, privacy=privacy, strategy="identity", cancel=lambda: True)
    answers = release(s, x, epsilon=0.1, delta=delta)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert issparse(s.L)
    assert most < n * n  # bytes; as an array L alone has eight times as many
    plan = plan_release([TableWorkload(W, np.arange(m))], privacy=privacy, options=PlanOptions(strategy="identity"))
    promised = plan.stderr(0.1, delta)
    spread = float(np.sqrt(np.mean(np.square((answers - W @ x) / promised))))
    assert 0.85 < spread < 1.15


@pytest.mark.parametrize("privacy", KINDS)
def test_a_sparse_strategy_is_searched_rounded_and_stored_like_an_array(
    privacy: Privacy, monkeypatch: pytest.MonkeyPatch
) -> None:
    W = side_by_side()
    dense = optimize(W, privacy=privacy)
    monkeypatch.setattr(strategy_module, "LARGEST_ARRAY", 64)
    s = optimize(W, privacy=privacy)
    assert issparse(s.L) and not issparse(dense.L)
    check(W, s.L, s.B, s.sensitivity, privacy)
    assert (s.name, s.error) == (dense.name, pytest.approx(dense.error, rel=1e-9))
    for whole in (False, True):
        lattice = round_strategy(s.L, W, privacy, whole=whole)
        written = lattice.L_int.toarray()
        assert issparse(lattice.L_int) and lattice.L_int.dtype == np.int64
        assert lattice.norm == largest_column_norm(written, 1 if privacy == "pure" else 2)
        assert lattice.residual <= 1e-9 and lattice.error <= 1.001 * s.error
        x = STREAM.integers(0, 2**40, W.shape[1])
        assert lattice.exact(x) == product(written, x)
        assert lattice.digest() == round_strategy(s.L, W, privacy, whole=whole).digest()
    stored = read_strategy(write_strategy(s, None), W, privacy, None, "total")
    assert stored is not None and (stored[0].L != s.L).nnz == 0 and stored[0].error == pytest.approx(s.error)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 8.0])  # at the larger one, integers of small norm are tried
def test_answers_from_sparse_measurements(privacy: Privacy, epsilon: float, narrow: None) -> None:
    W = side_by_side()
    table = TableWorkload(W, np.arange(len(W)))
    delta = 0 if privacy == "pure" else 1e-6
    plan = choose_plan([table], epsilon, delta)
    x = STREAM.integers(0, 50, W.shape[1])
    once = measure(plan, [x], epsilon, delta)
    assert issparse(once[0].L_int)
    (again,) = unpack(pack(once))
    assert issparse(again.L_int) and (again.L_int != once[0].L_int).nnz == 0
    for together in (once, (*once, *measure(plan, [x], epsilon / 3, delta)), (*once, *measure(plan, [x], 1e-6, delta))):
        found = estimate_from([table], [together])
        S = np.vstack([m.L.toarray() / m.stddev for m in together])
        B = W @ np.linalg.pinv(S, rcond=1e-13)
        z = np.concatenate([m.answers for m in together])
        assert found.stderr == pytest.approx(np.linalg.norm(B, axis=1), rel=1e-4)
        assert found.values == pytest.approx(B @ z, rel=1e-4, abs=1e-3)
        assert W @ found.cells[0] == pytest.approx(found.values, rel=1e-6, abs=1e-3)
    assert estimate_from([table], [once]).stderr == pytest.approx(plan.stderr(epsilon, delta), rel=1e-6)
    fitted = estimate_from([table], [once], nonnegative=True)
    assert fitted.cells[0].min() >= 0 and W @ fitted.cells[0] == pytest.approx(fitted.values)


def test_parts_of_a_sparse_strategy() -> None:
    L = csr_array(block_diag([[2.0, 2.0]], [[1.0, 5.0], [1.0, 1.0]], [[3.0]], np.zeros((1, 2))))
    L.data[L.data == 5.0] = 0.0  # written, and still no entry
    cells, parts = parts_of(L)
    assert cells.tolist() == [0, 3, 4]
    assert [(rows.tolist(), columns.tolist()) for rows, columns in parts] == [([1, 2], [2, 3])]
    W = STREAM.normal(size=(4, L.shape[0])) @ L
    for found in (rebuild(W, L), reconstruct(W, L)):
        assert found == pytest.approx(W @ np.linalg.pinv(L.toarray())) and residual(W, found, L) < 1e-12
    assert reconstruct(np.eye(7), L) is None


def test_exact_arithmetic_of_sparse_integers() -> None:
    matrix = csr_array(STREAM.integers(-(2**50), 2**50, (12, 30)) * (STREAM.random((12, 30)) < 0.3))
    x = STREAM.integers(0, 2**60, 30)
    assert product(matrix, x) == [sum(int(a) * int(b) for a, b in zip(row, x, strict=True)) for row in matrix.toarray()]
    for order in (1, 2):
        assert largest_column_norm(matrix, order) == largest_column_norm(matrix.toarray(), order)
