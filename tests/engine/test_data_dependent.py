"""DAWA and MWEM: what is known of them beforehand, their exact parts, and that they answer."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tacit.engine import (
    DataDependent,
    PlanOptions,
    StagedPlan,
    TableWorkload,
    choose_plan,
    data_dependent_strategies,
    measure_in_stages,
    optimize,
    plan_in_stages,
    release,
    strategies,
)
from tacit.engine.inference.unpredicted import estimate_unpredicted
from tacit.engine.linalg import rebuild
from tacit.engine.mechanism.dawa import bucket_questions, buckets_of, expanded_cells
from tacit.engine.mechanism.measurement import Measurement, pack_staged, unpack, unpack_staged
from tacit.engine.mechanism.mwem import query_lattice
from tacit.engine.mechanism.partition import interval_costs, least_cost
from tacit.engine.mechanism.stages import estimated_cells
from tacit.errors import LedgerError, NotSupportedError, PrivacyParameterError, ProgrammingError

from .workloads import prefix, ranges

NAMES = data_dependent_strategies()
STEPS = np.repeat([40, 0, 900, 3], [5, 6, 3, 2])


@pytest.mark.parametrize("name", NAMES)
class TestBeforehand:
    def test_there_is_no_error_and_no_strategy_yet(self, name: str) -> None:
        s = optimize(prefix(4), strategy=name)
        assert isinstance(s, DataDependent) and (s.name, s.privacy, s.trace) == (name, "pure", ())
        assert math.isnan(s.error) and math.isnan(s.gap) and s.lower_bound == 0.0 and s.seconds >= 0.0
        for missing in ("L", "B", "sensitivity"):
            with pytest.raises(NotSupportedError, match="measured, not predicted"):
                getattr(s, missing)
        assert "measured, not predicted" in repr(s)
        assert name in strategies()

    def test_only_pure(self, name: str) -> None:
        with pytest.raises(NotSupportedError, match="pure"):
            optimize(prefix(4), privacy="approximate", strategy=name)
        with pytest.raises(NotSupportedError, match="none to minimise"):
            optimize(prefix(4), objective="largest", strategy=name)

    def test_too_many_cells_are_refused_before_any_count_is_seen(self, name: str) -> None:
        optimize(np.ones((1, 4096)), strategy=name)
        with pytest.raises(NotSupportedError, match="4,096"):
            optimize(np.ones((1, 4097)), strategy=name)

    def test_no_plan_is_made_of_it_that_would_predict(self, name: str) -> None:
        with pytest.raises(NotSupportedError, match="plan_in_stages"):
            choose_plan([TableWorkload(prefix(4), np.arange(4))], 1, 1e-6, PlanOptions(strategy=name))

    @pytest.mark.parametrize("x", [[1.5, 2, 3, 4], [1], None])
    def test_only_whole_numbers(self, name: str, x: Any) -> None:
        with pytest.raises(ProgrammingError):
            release(optimize(prefix(4), strategy=name), x, 1.0)

    @pytest.mark.parametrize("epsilon", [0, -1, math.nan, 1e-7])
    def test_bad_amounts(self, name: str, epsilon: Any) -> None:
        with pytest.raises(PrivacyParameterError):
            release(optimize(prefix(4), strategy=name), [1, 2, 3, 4], epsilon)


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("dawa", {"ratio": 1.0}, "from 0.01 to 0.99"),
        ("dawa", {"ratio": 0.001}, "from 0.01 to 0.99"),
        ("dawa", {"ratio": 0}, "above 0"),
        ("dawa", {"margin": -1}, "at least 0"),
        ("dawa", {"rounds": 3}, "no parameter rounds"),
        ("mwem", {"rounds": 0}, "at least 1"),
        ("mwem", {"rounds": 1001}, "at most 1,000"),
    ],
)
def test_bad_parameters(name: str, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ProgrammingError, match=said):
        optimize(prefix(4), strategy=name, **parameters)


@pytest.mark.parametrize("name", NAMES)
def test_zeros_and_single_cells(name: str) -> None:
    assert release(optimize(np.zeros((2, 3)), strategy=name), [3, 4, 5], 1.0).tolist() == [0, 0]
    answers = release(optimize([[1.0, 1], [0, 0]], strategy=name), [30, 40], 1e3)
    assert answers[1] == 0 and answers[0] == pytest.approx(70, abs=2)
    assert release(optimize([[2.0], [-1.0]], strategy=name), [50], 1e3) == pytest.approx([100, -50], abs=2)


def test_dawa_answers_what_is_even_and_what_is_not() -> None:
    W = ranges(20, 16)
    answers = release(optimize(W, strategy="dawa"), STEPS, 1e4)
    assert answers == pytest.approx(W @ STEPS, abs=1)


def test_dawa_finds_the_steps_and_spreads_them_evenly() -> None:
    plan = plan_in_stages([TableWorkload(ranges(20, 16), np.arange(20))], "dawa")
    ((measurement,),) = measure_in_stages(plan, [STEPS], 1e3)
    _, sizes = buckets_of(measurement)
    ends = set(np.cumsum(sizes).tolist())
    assert {5, 11, 14} <= ends and len(sizes) <= 8
    assert expanded_cells((measurement,)) == pytest.approx(STEPS, abs=0.5)


def test_mwem_learns() -> None:
    W = ranges(40, 16)
    even = np.mean((W @ np.full(16, STEPS.mean()) - W @ STEPS) ** 2)
    answers = release(optimize(W, strategy="mwem", rounds=20), STEPS, 1e4)
    assert np.mean((answers - W @ STEPS) ** 2) < even / 1000


@pytest.mark.parametrize("length", [1, 2, 4, 8])
@pytest.mark.parametrize("size", [10, 10**9, 10**17])
def test_interval_costs_are_exact(length: int, size: int) -> None:
    x = np.random.default_rng(length).integers(0, size, 11)
    for start, cost in enumerate(interval_costs(x, length, 8)):
        part = [Fraction(int(v)) for v in x[start : start + length]]
        assert cost == 8 * sum(abs(v - sum(part) / length) for v in part)


def test_interval_costs_of_many_cells_are_looked_at_in_parts() -> None:
    x = np.arange(3000) % 7
    for length in (512, 1024):
        costs = interval_costs(x, length, 2048)
        middle = x[1000 : 1000 + length]
        assert costs[1000] == 2048 // length * np.abs(length * middle - middle.sum()).sum()
        assert len(costs) == 3000 - length + 1


def partitions(cells: int) -> list[tuple[int, ...]]:
    """All partitions into intervals of 1, 2, 4, … cells, as lengths from the first to the last."""
    if cells == 0:
        return [()]
    return [(*rest, n) for n in (1, 2, 4, 8) if n <= cells for rest in partitions(cells - n)]


@pytest.mark.parametrize("seed", range(20))
def test_the_partition_of_least_cost_is_the_best_of_all_and_ties_have_an_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = int(rng.integers(1, 8))
    lengths = tuple(1 << i for i in range(cells.bit_length()))
    costs = [rng.integers(-3, 4, cells - n + 1).tolist() for n in lengths]

    def total(partition: tuple[int, ...]) -> int:
        starts = itertools.accumulate(partition, initial=0)
        return sum(costs[n.bit_length() - 1][start] + 2 for n, start in zip(partition, starts, strict=False))

    best = min(partitions(cells), key=lambda p: (total(p), p[::-1]))
    assert least_cost(costs, lengths, 2) == best


@pytest.mark.parametrize("seed", range(6))
def test_any_buckets_have_questions_of_full_rank_and_sensitivity_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = rng.integers(-1, 2, (5, 12)) * 10.0 ** rng.integers(-6, 7, (5, 1))
    W[:, 3:7] = 0
    buckets = partitions(12)[int(rng.integers(200))]
    lattice = bucket_questions(W, np.ones(5), buckets)
    assert lattice.L_int.shape[1] == 12
    assert lattice.norm == np.abs(lattice.L_int).sum(axis=0).max()
    noisy = np.zeros(len(lattice.L_int), dtype=np.int64)
    L, sizes = buckets_of(Measurement(lattice.L_int, lattice.exponent, noisy, 0, "laplace", 1.0))
    assert tuple(sizes) == buckets
    assert np.linalg.matrix_rank(L) == len(buckets)


def test_weights_count() -> None:
    """DAWA asks for less error in a query of more weight; MWEM chooses it at a smaller miss."""
    W = np.vstack([np.eye(12), [1.0] * 6 + [0.0] * 6])
    plain, weighted = np.ones(13), np.array([1e-4] * 12 + [1.0])
    spreads = []
    for weights in (plain, weighted):
        lattice = bucket_questions(W, weights, (1,) * 12)
        spreads.append(lattice.sensitivity * np.linalg.norm(rebuild(W[12:], lattice.L)))
    assert spreads[1] < 0.7 * spreads[0]
    assert np.abs(query_lattice(W, weighted)).max(axis=1) == pytest.approx([2**28 / 100] * 12 + [2**28], abs=1)


@pytest.mark.parametrize("name", NAMES)
def test_sums_and_several_rows_of_a_unit(name: str) -> None:
    """x in fixed point: the same figures as in whole rows, and noise for k of them."""
    W = ranges(8, 6)
    x = np.array([10, 0, 700, 1000, 2, 5]) << 30
    workload = TableWorkload(W, np.arange(8), rows_per_unit=3, one_row=1 << 30)
    plan = plan_in_stages([workload], name)
    (table,) = measure_in_stages(plan, [x], 1e5)
    assert W @ estimated_cells(name, table) == pytest.approx(W @ [10, 0, 700, 1000, 2, 5], abs=0.02 * 1717)
    for measurement in table:
        sensitivity = 3 * np.abs(measurement.L).sum(axis=0).max()
        epsilon = 0.75e5 if name == "dawa" else 1e5 / 21
        assert measurement.scale == pytest.approx(sensitivity / epsilon, rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_release_is_read_back_as_it_was_and_by_itself_only(name: str) -> None:
    workload = TableWorkload(ranges(8, 6), np.arange(8))
    plan = plan_in_stages([workload], name)
    drawn = measure_in_stages(plan, [np.arange(6)], Decimal(1))
    payload = pack_staged(name, drawn)
    again = unpack_staged(payload, name)
    here, there = (estimate_unpredicted(name, [workload], m, rows=8).values for m in (drawn, again))
    assert here.tolist() == there.tolist()
    with pytest.raises(LedgerError, match="by itself only"):
        unpack(payload)
    for damaged in (payload[:-1], b"{}", payload.replace(name.encode(), b"none"), b"[1]"):
        with pytest.raises(LedgerError):
            unpack_staged(damaged, name)
    with pytest.raises(LedgerError):
        estimate_unpredicted(name, [TableWorkload(ranges(8, 7), np.arange(8))], again, rows=8)


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_not_stated(name: str) -> None:
    workload = TableWorkload(ranges(8, 6), np.arange(8))
    drawn = measure_in_stages(plan_in_stages([workload], name), [np.arange(6)], Decimal(1))
    estimate = estimate_unpredicted(name, [workload], drawn, rows=9)
    assert not estimate.predicted
    assert np.isnan(estimate.stderr[:8]).all() and estimate.stderr[8] == 0 == estimate.values[8]
    assert np.isnan(estimate.half_width(0.9)[:8]).all()
    whole = estimate_unpredicted(name, [workload], drawn, rows=9, integer=True)
    assert whole.values.tolist() == np.round(estimate.values).tolist()


def test_nonnegative_buckets() -> None:
    workload = TableWorkload(np.eye(16), np.arange(16))
    drawn = measure_in_stages(plan_in_stages([workload], "dawa"), [np.zeros(16, dtype=np.int64)], Decimal("0.1"))
    plain, fitted = (estimate_unpredicted("dawa", [workload], drawn, rows=16, nonnegative=n) for n in (False, True))
    assert fitted.values.min() >= 0
    if plain.values.min() >= 0:
        assert fitted.values == pytest.approx(plain.values)


@pytest.mark.parametrize("one_row", [1, 1 << 30])
@pytest.mark.parametrize("name", NAMES)
def test_the_noise_of_every_stage_fits_its_integers(name: str, one_row: int) -> None:
    """At the least ε, with the most rounds and cells, and the smallest share: as ``choice.coarseness`` says."""
    parameters = {"ratio": 0.01} if name == "dawa" else {"rounds": 1000}
    for n in (2, 4096):
        s = optimize(np.ones((1, n)), strategy=name, **parameters)  # type: ignore[arg-type]
        assert isinstance(s, DataDependent)
        plan = StagedPlan(name, (TableWorkload(s.workload, np.arange(1), 1000, one_row),), (s,))
        scales = [stage.scale for table in plan.stages(Decimal("1e-6")) for stage in table]
        assert 1 < np.nanmax(scales) < 2**44
