"""Noise on the integers: which strategies get it, what it gains, and that plans at any ε take the best of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from support.estimates import estimate, planned_half_widths
from tacit.engine import Measurement, least_error, measure, pack, release, unpack
from tacit.engine.mechanism.choose import PlanOptions, choose_plan, choose_plan_for_error, plan_release
from tacit.engine.mechanism.lattice import integer_multiple, released_resolution, round_strategy
from tacit.engine.mechanism.table_workload import TableWorkload, table_workload
from tacit.engine.mechanism.whole import on_integers
from tacit.engine.search.optimize import optimize

from .workloads import WORKLOADS, Matrix, paper, prefix, ranges


def geometric(epsilon: float) -> float:
    p = math.exp(-epsilon)
    return 2 * p / (1 - p) ** 2


def marginals(a: int, b: int) -> Matrix:
    cells = np.indices((a, b)).reshape(2, -1)
    return np.array([cells[0] == i for i in range(a)] + [cells[1] == j for j in range(b)], dtype=np.float64)


REPEATED = np.vstack([np.ones((5, 32)), np.eye(32)])


@pytest.mark.parametrize(
    ("L", "integers"),
    [
        (np.eye(3), np.eye(3)),
        (0.1 * np.eye(3), np.eye(3)),
        (np.array([[1.0, -1.0], [0.5, 2.0]]) / 3, [[2, -2], [1, 4]]),
        (np.array([[6.0, 0.0], [0.0, 9.0]]), [[2, 0], [0, 3]]),
        (np.array([[1.0, math.sqrt(2)]]), None),
        (np.array([[1.0, 2.0**-30]]), None),
        (np.zeros((1, 2)), None),
    ],
)
def test_multiples_of_small_integers(L: Matrix, integers: object) -> None:
    result = integer_multiple(L)
    assert (result is None) if integers is None else np.array_equal(result, np.asarray(integers))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-9])
def test_the_sensitivity_on_the_integers_is_exactly_k_times_the_norm(scale: float, k: int) -> None:
    """No shift, so nothing is rounded: k rows move a histogram by k, and nothing is added to that."""
    W = ranges(9, 8)
    for L, norm in ((np.eye(8), 1), (W, int(np.abs(W).sum(axis=0).max()))):
        lattice = round_strategy(scale * L, rebuilt(W, L), "pure", whole=True)
        assert np.array_equal(lattice.L_int, L) and lattice.exponent == 0
        resolution = released_resolution(lattice, k, 1, 1.0)
        assert (resolution.shift, resolution.sensitivity) == (0, k * norm)
    fine = round_strategy(np.eye(8), W, "pure")
    assert fine.norm == 2**28, "where x holds fractions of rows, the lattice is a fine one"
    assert round_strategy(np.eye(8), W, "approximate", whole=True).norm == 2**28


def rebuilt(W: Matrix, L: Matrix) -> Matrix:
    return W if L.shape[0] >= L.shape[1] else L


@pytest.mark.parametrize(("epsilon", "gain"), [(1.0, 1.09), (2.0, 1.38), (4.0, 3.29)])
def test_what_geometric_noise_gains(epsilon: float, gain: float) -> None:
    whole = plan_release([table_workload(np.eye(4))], privacy="pure")
    parts = plan_release([table_workload(np.eye(4), one_row=16)], privacy="pure")
    assert whole.total_error(epsilon) == pytest.approx(4 * geometric(epsilon), rel=1e-9)
    assert whole.total_error(epsilon) == pytest.approx(least_error(np.eye(4), epsilon), rel=1e-8), "none is better"
    assert parts.total_error(epsilon) == pytest.approx(4 * 2 / epsilon**2, rel=1e-3)
    assert parts.total_error(epsilon) / whole.total_error(epsilon) == pytest.approx(gain, abs=0.01)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_releases_have_the_stated_variance_and_coverage(epsilon: float) -> None:
    """The very noise that is drawn: accepted at its variance, and not at two thirds or one and a half of its scale."""
    cells, rounds = 400, 20
    W = np.vstack([np.eye(cells), np.kron(np.eye(cells // 5), np.ones(5))])
    plan = choose_plan([table_workload(np.eye(cells))], epsilon)
    x = np.arange(cells)
    for level in (0.8, 0.95):
        errors, widths, stated = [], [], []
        for _ in range(rounds):
            answer = estimate(W, measure(plan, [x], epsilon))
            errors.append(answer.values - W @ x)
            widths.append(answer.half_width(level))
            stated.append(answer.stderr**2)
        missed = np.abs(np.array(errors)) > np.array(widths) + 1e-9
        for part in (slice(0, cells), slice(cells, None)):
            draws = missed[:, part].size
            assert missed[:, part].mean() <= 1 - level + 4 * math.sqrt(level * (1 - level) / draws)
        squares = np.square(np.array(errors)[:, :cells])
        spread = 5 * squares.std() / math.sqrt(squares.size)
        variance = np.array(stated)[:, :cells].mean()
        assert abs(squares.mean() - variance) < spread
        assert variance == pytest.approx(geometric(epsilon), rel=1e-9)
        for factor in (2 / 3, 1.5):
            assert abs(squares.mean() - geometric(epsilon / factor)) > spread


def test_a_large_epsilon_takes_a_strategy_of_integers() -> None:
    workload = table_workload(prefix(14))
    base = plan_release([workload], privacy="pure")
    assert base.name not in ("identity", "results")
    for epsilon, name in ((0.1, base.name), (0.5, base.name), (2.0, "identity"), (4.0, "identity")):
        plan = on_integers(base, epsilon)
        assert plan.name == name
        assert plan.total_error(epsilon) <= base.total_error(epsilon) * (1 + 1e-12)
    chosen = choose_plan([workload], 4)
    assert chosen.describe(4).text == plan.describe(4).text, "the same again"
    assert chosen.total_error(4) < 0.4 * base.total_error(4)


def test_the_strategy_itself_in_small_multiples() -> None:
    workload = table_workload(REPEATED)
    base, plan = plan_release([workload], privacy="pure"), choose_plan([workload], 2)
    (part,) = plan.parts
    assert plan.name == base.name == "p-identity" and 1 < part.lattice.norm <= 8
    assert plan.total_error(2) < 0.98 * base.total_error(2)
    assert np.allclose(part.lattice.B @ part.lattice.L, REPEATED)


def test_nothing_is_tried_where_nothing_can_be_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.engine.mechanism import whole

    plan = plan_release([table_workload(prefix(16))], privacy="pure")
    monkeypatch.setattr(whole, "rebuild", None)
    monkeypatch.setattr(whole, "merge_columns", None)
    assert on_integers(plan, 0.1) is plan
    with pytest.raises(TypeError):
        on_integers(plan, 2.0)


@pytest.mark.parametrize("one_row", [1, 4])
def test_a_forced_strategy_is_only_rounded(one_row: int) -> None:
    workload = table_workload(prefix(16), one_row=one_row)
    forced = choose_plan([workload], 4, options=PlanOptions(strategy="results"))
    assert forced.name == "results"
    assert (forced.parts[0].lattice.norm == 16) == (one_row == 1)
    if one_row > 1:
        assert choose_plan([workload], 4).name == plan_release([workload], privacy="pure").name


def test_equal_cells_count_once() -> None:
    W = np.repeat(prefix(5), 3, axis=1)
    plan = choose_plan([table_workload(np.hstack([W, np.zeros((5, 2))]))], 4)
    assert plan.name == "identity" and plan.parts[0].lattice.L_int.shape == (5, 17)
    assert plan.parts[0].lattice.norm == 1
    assert plan.total_error(4) == pytest.approx(15 * geometric(4), rel=1e-9)


def test_no_plan_is_below_what_any_mechanism_can_do() -> None:
    rng = np.random.default_rng(5)
    random = [rng.integers(-2, 3, size=(int(m), int(n))).astype(float) for m, n in rng.integers(1, 6, size=(8, 2))]
    for W in [*random, prefix(8), marginals(2, 3), WORKLOADS["paper"], WORKLOADS["sums"]]:
        W = W[W.any(axis=1)]
        for k in (1, 2):
            base = plan_release([table_workload(W, rows_per_unit=k)], privacy="pure")
            scaled = W * base.parts[0].row_weights[:, None]
            for epsilon in (0.3, 1.0, 4.0, 8.0):
                plan = on_integers(base, epsilon)
                assert plan.total_error(epsilon) <= base.total_error(epsilon) * (1 + 1e-12)
                assert least_error(scaled, epsilon, k) <= plan.total_error(epsilon) * (1 + 1e-9)


def test_two_tables_each_take_what_is_best_for_them() -> None:
    whole = TableWorkload(prefix(12), np.arange(12))
    parts = TableWorkload(prefix(12), np.arange(12, 24), one_row=16)
    plan = choose_plan([whole, parts], 8)
    assert plan.parts[0].lattice.norm == 1 and plan.parts[1].lattice.norm > 2**20
    assert sum(part.share for part in plan.parts) == Fraction(1)
    loss = sum(Fraction(n.resolution.sensitivity) / Fraction(n.scale) for n in plan.calibrate(8))
    assert loss <= 8


@pytest.mark.parametrize("error", [0.5, 1.0, 2.5, 10.0, 200.0])
def test_the_smallest_epsilon_for_an_error(error: float) -> None:
    plan, epsilon = choose_plan_for_error([table_workload(prefix(8))], error, 0.9)
    assert planned_half_widths(plan, epsilon, 0, 0.9).max() <= error
    base = plan_release([table_workload(prefix(8))], privacy="pure").epsilon_for(error, 0.9)
    assert epsilon <= base
    if error <= 2.5:
        assert epsilon < base, "a histogram on the integers is cheaper"
    less = replace(plan, parts=plan.parts)
    assert planned_half_widths(less, float(epsilon) * 0.98, 0, 0.9).max() > error


def test_coarse_measurements_are_stored_and_combined() -> None:
    workload = table_workload(paper())
    plan = choose_plan([workload], 4)
    x = np.array([3, 4, 5, 6])
    first, second = measure(plan, [x], 4), measure(plan, [x], 2)
    (again,) = unpack(pack(first))
    assert isinstance(again, Measurement) and again.stddev == first[0].stddev == pytest.approx(math.sqrt(geometric(4)))
    together = estimate(paper(), [again, *second])
    expected = (1 / geometric(4) + 1 / geometric(2)) ** -0.5
    assert together.stderr == pytest.approx(expected * np.sqrt([2, 1, 1]), rel=1e-9)
    exact = estimate(paper(), [*measure(plan, [x], 60)])
    assert exact.values == pytest.approx(paper() @ x, abs=1e-9) and exact.half_width(0.99) == pytest.approx(0, abs=1e-9)
    assert release(optimize(np.eye(4)), x, 60) == pytest.approx(x, abs=1e-9)
