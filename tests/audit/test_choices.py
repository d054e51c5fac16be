"""Choices that look at the data, DAWA's partition and MWEM's queries: private, and every stage of them paid for.

The probabilities of tiny choices are computed, not sampled: the noise is discrete, so they are sums. The statistical
tester looks at what is run, and at engines that are broken on purpose.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support import seams
from tacit.engine import (
    DataDependent,
    StagedPlan,
    TableWorkload,
    data_dependent_strategies,
    measure_in_stages,
    plan_in_stages,
)
from tacit.engine.mechanism import choice
from tacit.engine.mechanism.choice import Selection, calibrate_selection, select_largest
from tacit.engine.mechanism.exact import coarsen, product
from tacit.engine.mechanism.mwem import query_lattice, selection_noise
from tacit.engine.mechanism.partition import (
    PartitionNoise,
    calibrate_partition,
    interval_costs,
    least_cost,
    private_partition,
)
from tacit.engine.search.data_dependent import Mwem

from .cases import LONG, Row, open_table
from .tester import audit

NAMES = data_dependent_strategies()
BROKEN = pytest.mark.parametrize("broken", [False, True])
Probabilities = NDArray[np.float64]


def discrete_laplace(scale: float, reach: int) -> Probabilities:
    """P(−reach), …, P(reach)."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))


def chances(scores: tuple[int, ...], scale: float, reach: int = 150) -> Probabilities:
    """With which probability each index has the largest noisy score, the first of equal ones winning."""
    pmf = discrete_laplace(scale, reach)
    below = np.concatenate([[0.0], np.cumsum(pmf)])
    z = np.arange(-reach, reach + 1)
    result = []
    for i, score in enumerate(scores):
        wins = pmf.copy()
        for j, other in enumerate(scores):
            if j != i:  # Z_j < score + z − other, or ≤ for those that lose ties
                wins *= below[np.clip(score - other + z + reach + (j > i), 0, 2 * reach + 1)]
        result.append(wins.sum())
    return np.array(result)


def worst_loss(selection: Selection) -> float:
    """The largest |log P/P'| over neighbouring scores; those far from the largest lose most."""
    steps = selection.sensitivity
    moves = list(itertools.product((-steps, 0, steps), repeat=3))
    losses = [0.0]
    for here in [(0, 0, 0), (0, 25, 25), (30, 10, 0), (0, 1, 40)]:
        p = chances(here, selection.scale)
        for move in moves:
            q = chances(tuple(a + b for a, b in zip(here, move, strict=True)), selection.scale)
            losses.append(float(np.abs(np.log(p / q)).max()))
    return max(losses)


@pytest.mark.parametrize("reach", [1, 3])
def test_the_probabilities_of_a_choice(reach: int) -> None:
    selection = calibrate_selection(reach, Fraction(1, 2))
    assert selection.sensitivity == reach
    assert 0.45 < worst_loss(selection) <= 0.5 + 1e-9


def test_a_choice_follows_the_noise_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the scores: had the noise been that, the choice would be that. So no other number enters it."""
    for wanted in range(4):
        noise = np.where(np.arange(4) == wanted, 10**6, 0)
        with monkeypatch.context() as patch:
            seams.replace(patch, "laplace", lambda values, scale, noise=noise, **_: values + noise)
            assert select_largest([7, 50, 50, 3], calibrate_selection(1, Fraction(1))) == wanted
    with monkeypatch.context() as patch:
        seams.replace(patch, "laplace", lambda values, scale, **_: values)
        assert select_largest([7, 50, 50, 3], calibrate_selection(1, Fraction(1))) == 1, "the first of equal ones"


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 10**9)])
@pytest.mark.parametrize("reach", [5, 10**17 + 7])
def test_rounded_scores_move_no_further_than_is_paid_for(reach: int, epsilon: Fraction) -> None:
    selection = calibrate_selection(reach, epsilon)
    assert selection.scale <= 2**43
    rng = np.random.default_rng(0)
    for _ in range(200):
        score = int(rng.integers(0, 2**61))
        here, there = coarsen([score, score + reach], selection.shift).tolist()
        assert abs(here - there) <= selection.sensitivity


@BROKEN
def test_flags_a_choice_by_half_the_noise(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    laplace = seams.real("laplace")

    def weak(values: Any, scale: float, *, sensitivity: int, epsilon: Fraction) -> Any:
        return laplace(values, scale / 2, sensitivity=sensitivity, epsilon=3 * epsilon)

    if broken:
        seams.replace(monkeypatch, "laplace", weak)
    selection = calibrate_selection(1, Fraction(2))

    def chosen(scores: list[int]) -> NDArray[np.float64]:
        drawn = [select_largest(scores, selection) for _ in range(20_000 if LONG else 6_000)]
        return (np.array(drawn)[:, None] == np.arange(2)).astype(np.float64)

    assert audit(chosen([1, 0]), chosen([0, 1]), 2.0).flagged == broken


@pytest.mark.parametrize(("rows", "unit"), [(1, 1), (3, 1), (2, 4)])
def test_one_unit_moves_no_score_further_than_is_paid_for(rows: int, unit: int) -> None:
    """Scores |q·x − a| of signed queries of different sizes; the furthest move comes close to what is paid for."""
    W = np.array([[1.0, -1, 0.3, 0], [0, 0.5, 0.5, 0.5], [1, 1, 1, 1]])
    workload = TableWorkload(W, np.arange(3), rows, unit)
    queries = query_lattice(W, np.array([1.0, 4.0, 1.0]))
    selection = selection_noise(workload, queries, Fraction(1))
    x = np.array([5, 0, 7, 2]) * unit
    furthest = 0
    for cell, size in itertools.product(range(4), (-rows * unit, rows * unit)):
        moved = x + size * (np.arange(4) == cell)
        here, there = (
            coarsen([abs(v - 3 * 2**28) for v in product(queries, counts)], selection.shift) for counts in (x, moved)
        )
        furthest = max(furthest, int(np.abs(here - there).max()))
    assert 0.99 * selection.sensitivity <= furthest <= selection.sensitivity


def chance_of_one_interval(x: tuple[int, int], noise: PartitionNoise, reach: int = 400) -> float:
    """The probability that two cells become one interval: c₁₂ + Z₁₂ + p < c₁ + Z₁ + c₂ + Z₂ + 2p (ties: two)."""
    single, double = (discrete_laplace(scale, reach) for scale in noise.scales)
    both = np.convolve(np.convolve(single, single), double)  # of Z₁ + Z₂ − Z₁₂, from −3·reach on
    (cost,) = coarsen(interval_costs(np.array(x), 2, 2), noise.shift).tolist()
    return float(both[max(0, 3 * reach + cost - noise.penalty + 1) :].sum())


@pytest.mark.parametrize("rows", [1, 2])
def test_the_probabilities_of_a_partition(rows: int) -> None:
    epsilon = Fraction(1, 2)
    noise = calibrate_partition(2, rows, 1, epsilon, Fraction(3))
    losses = []
    for a, b in itertools.product(range(0, 41, 8), repeat=2):
        p = chance_of_one_interval((a, b), noise)
        for i, j in itertools.product(range(rows + 1), repeat=2):
            if i + j <= rows:
                q = chance_of_one_interval((a + i, b + j), noise)
                losses += [abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q)))]
    # With two cells the rival's cost moves the same way as the partition's own, so a third of ε is the most.
    assert 0.3 * epsilon < max(losses) <= epsilon


def needed(lengths: tuple[int, ...], here: Any, there: Any) -> dict[tuple[int, int], tuple[int, int]]:
    """The intervals of a partition by place, each with its cost on two neighbours."""
    starts = itertools.accumulate(lengths, initial=0)
    return {(s, n): (here[n][s], there[n][s]) for s, n in zip(starts, lengths, strict=False)}


@pytest.mark.parametrize(("rows", "unit", "epsilon"), [(1, 1, 1), (2, 1, 1), (1, 1 << 20, 1e-6), (3, 1 << 20, 1e-9)])
def test_the_shift_that_keeps_a_partition_is_paid_for(rows: int, unit: int, epsilon: float) -> None:
    """The argument of ``private_partition`` itself, for every pair of partitions of six cells.

    Lower the noise of P by h_b for its intervals: then P stays the least, however the costs move; and the h_b cost no
    more than ε at the scales of the noise. The last two cases round the costs to coarse steps.
    """
    cells = 6
    noise = calibrate_partition(cells, rows, unit, Fraction(epsilon), Fraction(1))
    assert (noise.shift > 0) == (unit > 1)
    rng = np.random.default_rng(rows)
    listed = [p for r in range(1, 7) for p in itertools.product((1, 2, 4), repeat=r) if sum(p) == cells]
    longest = noise.lengths[-1]
    tightest = 0.0
    for _ in range(40):
        x = rng.integers(0, 5 * unit, cells)
        move = rng.multinomial(rows * unit, rng.dirichlet(np.full(cells, 0.2)))
        here, there = (
            {n: coarsen(interval_costs(v, n, longest), noise.shift).tolist() for n in noise.lengths}
            for v in (x, x + move)
        )
        for P in listed:
            mine = needed(P, here, there)
            shifts = {}
            for s, n in mine:
                moved = move[s : s + n]
                rounding = 2 * int((moved > 0).sum()) if noise.shift else 0
                factor = 4 * longest - 2 * longest // n - 2
                shifts[s, n] = -(-factor * int(moved.sum()) >> noise.shift) + rounding
            scales = dict(zip(noise.lengths, noise.scales, strict=True))
            loss = sum(h / scales[n] for (_, n), h in shifts.items())
            assert loss <= epsilon * (1 + 1e-12)
            tightest = max(tightest, loss / epsilon)
            for Q in listed:
                rival = needed(Q, here, there)
                gain = sum(b - a for place, (a, b) in rival.items() if place not in mine)
                gain += sum(shifts[place] - (b - a) for place, (a, b) in mine.items() if place not in rival)
                assert gain >= 0
    assert tightest > 0.8


@BROKEN
def test_flags_a_partition_without_noise(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken:
        seams.replace(monkeypatch, "laplace", lambda values, scale, **_: values)
    noise = calibrate_partition(3, 1, 1, Fraction(2), Fraction(1))

    def partitions(x: list[int]) -> NDArray[np.float64]:
        drawn = [private_partition(np.array(x), noise) for _ in range(20_000 if LONG else 3_000)]
        return np.array([[len(p), p[0], p[-1]] for p in drawn], dtype=np.float64)

    assert audit(partitions([3, 3, 3]), partitions([3, 4, 3]), 2.0).flagged == broken


def test_the_partition_is_that_of_the_noisy_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([9, 9, 0, 0, 0])
    noise = calibrate_partition(5, 1, 1, Fraction(1), Fraction(1))
    rng = np.random.default_rng(1)
    drawn: list[list[int]] = []

    def recorded(values: Any, scale: float, **_: Any) -> Any:
        drawn.append((values + rng.integers(-500, 500, len(values))).tolist())
        return np.array(drawn[-1])

    seams.replace(monkeypatch, "laplace", recorded)
    partition = private_partition(x, noise)
    assert partition == least_cost(drawn, noise.lengths, noise.penalty)


def paid_stages(name: str, tables: int) -> tuple[list[Fraction], Fraction]:
    """The ε of every call for noise in one release over some tables, and the ε that was paid."""
    workloads = [
        TableWorkload(np.array([[1.0, 1, 0], [0, 1, 1], [0, 0, 1]]), np.arange(3) + 3 * t) for t in range(tables)
    ]
    plan = plan_in_stages(workloads, name)
    calls: list[Fraction] = []
    laplace = seams.real("laplace")

    def watched(values: Any, scale: float, *, sensitivity: int, epsilon: Fraction) -> Any:
        assert Fraction(choice.laplace_scale(sensitivity, epsilon)) <= Fraction(scale)
        calls.append(epsilon)
        return laplace(values, scale, sensitivity=sensitivity, epsilon=epsilon)

    with pytest.MonkeyPatch.context() as patch:
        seams.replace(patch, "laplace", watched)
        measure_in_stages(plan, [np.array([5, 6, 7])] * tables, Decimal("0.3"))
    stages = [stage for table in plan.stages(Decimal("0.3")) for stage in table]
    assert sum(stage.epsilon for stage in stages) == Fraction(3, 10)
    return calls, Fraction(3, 10)


@pytest.mark.parametrize("tables", [1, 2])
def test_the_stages_of_mwem_sum_to_what_was_paid(tables: int) -> None:
    calls, paid = paid_stages("mwem", tables)
    assert len(calls) == 21 * tables
    assert sum(calls) == paid


@pytest.mark.parametrize("tables", [1, 2])
def test_the_stages_of_dawa_sum_to_what_was_paid(tables: int) -> None:
    """The costs of two lengths are one stage: the guarantee of the partition is about all of its noise together."""
    calls, paid = paid_stages("dawa", tables)
    assert len(calls) == 3 * tables
    of_length_1, of_length_2, counts = calls[0::3], calls[1::3], calls[2::3]
    assert of_length_1 == of_length_2
    assert sum(of_length_1) + sum(counts) == paid


YOUNG: Row = (9, "NY", 30, 50.0)
BATCH = ("SELECT count(*) FROM v WHERE age < 40", "SELECT count(*) FROM v WHERE age >= 40")


def drawn_losses(plan: StagedPlan, counts: Any, both: tuple[Any, Any], draws: int) -> NDArray[np.float64]:
    """What a tester who knows both tables makes of whole releases: the loss of what was measured, and the questions."""
    scores = []
    for _ in range(draws):
        (table,) = measure_in_stages(plan, counts, Decimal(1))
        losses = [(np.abs(m.values - m.L @ both[1]) - np.abs(m.values - m.L @ both[0])).sum() / m.scale for m in table]
        scores.append([sum(losses), losses[0], losses[-1], sum(float(m.L[0, 0]) for m in table)])
    return np.array(scores)


@BROKEN
@pytest.mark.parametrize("name", NAMES)
def test_flags_a_release_with_a_tenth_of_the_noise(name: str, broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole releases, by the plan and the counts of the front door, of two tables of which one has a row more."""
    laplace = seams.real("laplace")

    def weak(values: Any, scale: float, *, sensitivity: int, epsilon: Fraction) -> Any:
        return laplace(values, scale / 10, sensitivity=sensitivity, epsilon=11 * epsilon)

    calls: list[Any] = []
    for rows in ((YOUNG,), ()):
        with pytest.MonkeyPatch.context() as patch, open_table(rows) as con:
            seams.watch(patch, "measure in stages", lambda *call: calls.append(call))
            con.answer(list(BATCH), epsilon=1, strategy=name)
    (plan, (here,), _), (_, (there,), _) = calls
    assert here.sum() == there.sum() + 1
    if name == "mwem":  # one round: with ten, each draw is worth so little that a few hundred releases tell nothing
        (s,) = plan.strategies
        plan = replace(plan, strategies=(DataDependent(name, Mwem(rounds=1), s.workload, s.weights),))
    if broken:
        seams.replace(monkeypatch, "laplace", weak)
    draws = 4_000 if LONG else 800
    one, other = (drawn_losses(plan, [x], (here, there), draws) for x in (here, there))
    assert audit(one, other, 1.0).flagged == broken
