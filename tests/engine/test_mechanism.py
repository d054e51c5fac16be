"""Plans predict what releases do, charge what they cost, and spend no more than they were given."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.estimates import estimate_batch, planned_half_widths
from tacit.engine.accounting.description import recorded_units
from tacit.engine.mechanism.calibrate import analytic_sigma
from tacit.engine.mechanism.choose import PlanOptions, choose_plan, choose_plan_for_error, plan_release
from tacit.engine.mechanism.lattice import exact_answers
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.plan import JointPlan
from tacit.engine.mechanism.table_workload import TableWorkload, table_workload
from tacit.engine.strategy import Privacy
from tacit.errors import InternalError, NotSupportedError, PrivacyParameterError, ProgrammingError

from .workloads import WORKLOADS, paper, prefix, sums_and_counts

RELEASES = 2000
AMOUNT: dict[Privacy, tuple[float, float]] = {"pure": (0.7, 0.0), "approximate": (0.7, 1e-5)}


def two_tables() -> list[TableWorkload]:
    """Seven rows: three of a table counted whole, four of one in fixed point with up to two rows a unit."""
    first = TableWorkload(paper(), np.array([0, 2, 4]))
    second = TableWorkload(sums_and_counts(-1.0, 50.0), np.array([1, 3, 5, 6]), rows_per_unit=2, one_row=16)
    return [first, second]


XS = [np.array([10, 0, 3, 400]), np.array([160, 32, 0, 16, 1600, 16_000])]
TRUTH_OF_SECOND = sums_and_counts(-1.0, 50.0) @ (XS[1] / 16)


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_spread_of_releases_is_the_predicted_one_and_no_other(privacy: Privacy) -> None:
    plan = plan_release(two_tables(), privacy=privacy)
    amount = AMOUNT[privacy]
    truth = np.zeros(7)
    truth[[0, 2, 4]] = paper() @ XS[0]
    truth[[1, 3, 5, 6]] = TRUTH_OF_SECOND
    Bs = [part.lattice.B for part in plan.parts]
    answers = np.empty((RELEASES, 7))
    for i in range(RELEASES):
        for part, B, m in zip(plan.parts, Bs, measure(plan, XS, *amount), strict=True):
            answers[i, part.workload.rows] = B @ m.values
    predicted = plan.stderr(*amount)
    error = answers - truth
    assert (np.abs(error.mean(axis=0)) < 6 * predicted / math.sqrt(RELEASES)).all(), "answers are unbiased"
    ratio = error.var(axis=0) / predicted**2
    # A single Laplace has kurtosis 6: the sample variance of 2,000 has a relative deviation of 5%.
    for factor in (2 / 3, 1.0, 1.5):
        accepted = np.abs(ratio / factor**2 - 1) < 0.3
        assert accepted.all() if factor == 1.0 else not accepted.any()
    widths = planned_half_widths(plan, *amount, confidence=0.9)
    covered = (np.abs(error) <= widths).mean(axis=0)
    assert np.abs(covered - 0.9).max() < 6 * math.sqrt(0.09 / RELEASES)


@pytest.mark.parametrize("unit", [1, 4])
def test_pure_privacy_of_every_pair_of_neighbours(unit: int) -> None:
    """The privacy loss of discrete Laplace noise is the sum of distance/scale; here over all neighbours."""
    k = 2
    workloads = [
        TableWorkload(np.array([[1.0, 1, 0], [0, 1, 1]]), np.array([0, 1]), rows_per_unit=k, one_row=unit),
        TableWorkload(np.array([[1.0, 0.5]]), np.array([2])),
    ]
    plan = plan_release(workloads, privacy="pure")
    epsilon = Decimal("0.3")
    noises = plan.calibrate(epsilon)
    rows = [p for p in itertools.product(range(unit + 1), repeat=3) if sum(p) == unit]
    moves = [
        [np.sum(c, axis=0) for c in itertools.combinations_with_replacement(rows, k)],
        [[1, 0], [0, 1], [0, 0]],
    ]
    worst = Fraction(0)
    for bases in itertools.product([[0, 0, 0], [3, 1, 2]], [[5, 0]]):
        losses = []
        for part, noise, base, options in zip(plan.parts, noises, bases, moves, strict=True):
            y = exact_answers(part.lattice, np.array(base), noise.resolution)
            moved = [exact_answers(part.lattice, np.array(base) + option, noise.resolution) - y for option in options]
            losses.append(max(Fraction(int(np.abs(m).sum())) / Fraction(noise.scale) for m in moved))
        worst = max(worst, sum(losses, Fraction(0)))
    assert Fraction(epsilon) * Fraction(999, 1000) < worst <= Fraction(epsilon)


def test_gaussian_parts_are_together_one_mechanism() -> None:
    plan = plan_release(two_tables(), privacy="approximate")
    noises = plan.calibrate(0.5, 1e-6)
    total = math.sqrt(sum((n.resolution.sensitivity / n.scale) ** 2 for n in noises))
    sigma = analytic_sigma(0.5, 1e-6)
    assert total <= 1 / sigma
    assert total >= 0.999 / sigma
    # k rows of the second table really can move it that far.
    part = plan.parts[1]
    norm = np.linalg.norm(part.lattice.L_int.astype(float), axis=0).max() * 2
    assert norm <= noises[1].resolution.sensitivity * 2 ** (noises[1].resolution.shift - 4) * (1 + 1e-9)


def test_shares_sum_to_one_and_are_the_best() -> None:
    for privacy, power in (("pure", 2), ("approximate", 1)):
        plan = plan_release(two_tables(), privacy=privacy)  # type: ignore[arg-type]
        assert sum(part.share for part in plan.parts) == 1
        errors = [p.workload.rows_per_unit**2 * p.strategy.error for p in plan.parts]

        def total(share: float, errors: list[float] = errors, power: int = power) -> float:
            return errors[0] / share**power + errors[1] / (1 - share) ** power

        mine = float(plan.parts[0].share)
        assert total(mine) == pytest.approx(plan.error, rel=1e-6)
        assert total(mine) <= min(total(s) for s in np.linspace(0.01, 0.99, 99)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("paper", None),
        ("sums", None),
        ("prefix", "identity"),
        ("thin ranges", "lrm"),
        ("reals, thin", "results"),
    ],
)
def test_total_error_is_the_strategys(name: str, strategy: str | None) -> None:
    W = WORKLOADS[name]
    plan = plan_release([table_workload(W)], privacy="pure", options=PlanOptions(strategy=strategy))
    assert plan.total_error(0.5) <= 1.001 * 2 * plan.error / 0.25
    gaussian = plan_release([table_workload(W)], privacy="approximate", options=PlanOptions(strategy=strategy))
    sigma = analytic_sigma(0.5, 1e-6)
    assert gaussian.total_error(0.5, 1e-6) <= 1.001 * sigma**2 * gaussian.error
    scaled = plan.stderr(0.5) / np.abs(W).max(axis=1)
    assert (scaled**2).sum() == pytest.approx(plan.total_error(0.5))
    assert plan.lower_bound <= plan.error * (1 + 1e-9)


def test_the_papers_example_asks_the_two_halves() -> None:
    plan = plan_release([table_workload(paper())], privacy="pure")
    assert 2 * plan.error == pytest.approx(8, rel=1e-3), "the paper's figure, for continuous noise"
    v = 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2  # of geometric noise: the halves are whole counts
    assert plan.total_error(1) == pytest.approx(4 * v, rel=1e-9)
    assert plan.stderr(1) == pytest.approx(np.sqrt([2 * v, v, v]), rel=1e-9)


def test_large_sums_do_not_drown_counts() -> None:
    """30 prefix counts and a SUM clamped at 250,000: minimised unscaled the counts would get 247σ."""
    W = np.vstack([np.kron(prefix(30), np.ones((1, 2))), np.tile([0.0, 250_000.0], 30)])
    plan = plan_release([table_workload(W)], privacy="approximate")
    sigma = analytic_sigma(1, 1e-6)
    counts = plan.stderr(1, 1e-6)[:30]
    assert math.sqrt((counts**2).mean()) < 4 * sigma


def test_weights_shift_error() -> None:
    W = prefix(8)
    even = plan_release([table_workload(W)], privacy="approximate").stderr(1, 1e-6)
    weights = np.ones(8)
    weights[7] = 100.0
    skewed = plan_release([table_workload(W)], privacy="approximate", options=PlanOptions(weights=weights)).stderr(
        1, 1e-6
    )
    assert skewed[7] < 0.8 * even[7]
    assert skewed[:7].sum() > even[:7].sum()


@pytest.mark.parametrize("weights", [[1.0] * 7, [1.0] * 9, [0.0] + [1.0] * 7, [-1.0] * 8, [math.nan] * 8])
def test_weights_are_checked(weights: list[float]) -> None:
    with pytest.raises(ProgrammingError):
        plan_release([table_workload(prefix(8))], privacy="pure", options=PlanOptions(weights=np.array(weights)))


def test_strategies_by_name() -> None:
    assert (
        plan_release([table_workload(paper())], privacy="pure", options=PlanOptions(strategy="results")).name
        == "results"
    )
    with pytest.raises(ProgrammingError):
        plan_release([table_workload(paper())], privacy="pure", options=PlanOptions(strategy="hope"))


def test_the_better_kind_of_noise_is_chosen() -> None:
    wide = table_workload(prefix(16))
    narrow = table_workload(np.eye(3))
    assert choose_plan([wide], 1).privacy == "pure"
    assert choose_plan([narrow], 1, 1e-9).privacy == "pure"
    many = table_workload(np.vstack([prefix(40), prefix(40).T]))
    plan = choose_plan([many], 0.1, 1e-3, options=PlanOptions(strategy="results"))
    assert plan.privacy == "approximate"
    other = plan_release([many], privacy="pure", options=PlanOptions(strategy="results"))
    assert plan.total_error(0.1, 1e-3) < other.total_error(0.1)


def test_a_strategy_for_one_kind_of_noise_can_be_forced() -> None:
    workload = table_workload(prefix(6))
    assert choose_plan([workload], 1, 1e-6, options=PlanOptions(strategy="coa")).privacy == "approximate"
    plan, epsilon = choose_plan_for_error([workload], 100.0, 0.95, 1e-6, options=PlanOptions(strategy="coa"))
    assert (plan.name, plan.privacy) == ("coa", "approximate")
    assert planned_half_widths(plan, epsilon, 1e-6).max() <= 100
    with pytest.raises(NotSupportedError, match="approximate"):
        choose_plan([workload], 1, options=PlanOptions(strategy="coa"))


def test_cost_is_what_the_noise_uses() -> None:
    pure = plan_release([table_workload(paper())], privacy="pure")
    gaussian = plan_release([table_workload(paper())], privacy="approximate")
    assert pure.cost(0.1, 1e-6) == (Decimal("0.1"), 0)
    assert gaussian.cost(0.1, 1e-6) == (Decimal("0.1"), Decimal("1e-6"))
    with pytest.raises(PrivacyParameterError, match="delta"):
        gaussian.cost(0.1)
    with pytest.raises(PrivacyParameterError):
        gaussian.stderr(0.1)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None, True])
def test_bad_epsilon(bad: Any) -> None:
    plan = plan_release([table_workload(paper())], privacy="pure")
    for call in (plan.stderr, plan.calibrate, plan.total_error, plan.cost, plan.describe):
        with pytest.raises(PrivacyParameterError):
            call(bad)
    with pytest.raises(PrivacyParameterError):
        measure(plan, [np.array([1, 2, 3, 4])], bad)


@pytest.mark.parametrize("error", [0.5, 3.0, 5000.0])
@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_epsilon_for_an_error(privacy: Privacy, error: float) -> None:
    plan = plan_release(two_tables(), privacy=privacy)
    delta = AMOUNT[privacy][1]
    epsilon = plan.epsilon_for(error, 0.9, delta)
    assert planned_half_widths(plan, epsilon, delta, 0.9).max() <= error
    assert len(epsilon.as_tuple().digits) <= 3 or epsilon >= 1000
    if epsilon > Decimal("0.00001"):
        assert planned_half_widths(plan, epsilon * Decimal("0.98"), delta, 0.9).max() > error
    some = plan.epsilon_for(error, 0.9, delta, rows=[0, 2])
    assert some <= epsilon


def test_epsilon_for_an_error_is_refused_when_it_cannot_be() -> None:
    plan = plan_release([table_workload(paper(), one_row=16)], privacy="pure")
    with pytest.raises(PrivacyParameterError):
        plan.epsilon_for(1e-12)
    with pytest.raises(PrivacyParameterError):
        plan.epsilon_for(0)


def test_the_cheaper_plan_for_an_error() -> None:
    workloads = [table_workload(paper())]
    plan, epsilon = choose_plan_for_error(workloads, 5.0, 0.95, 1e-6)
    assert plan.privacy == "pure" and epsilon == plan.epsilon_for(5.0)
    many = [table_workload(np.vstack([prefix(40), prefix(40).T]))]
    plan, epsilon = choose_plan_for_error(many, 500.0, 0.95, 1e-3, options=PlanOptions(strategy="results"))
    assert plan.privacy == "approximate"
    assert planned_half_widths(plan, epsilon, 1e-3).max() <= 500


def test_rows_of_no_block_are_exactly_zero() -> None:
    plan = plan_release(two_tables(), privacy="pure", options=PlanOptions(rows=9))
    assert plan.stderr(1)[7:].tolist() == [0, 0]
    answers = estimate_batch(plan.workloads, [measure(plan, XS, 1)], rows=9)
    assert answers.values[7:].tolist() == [0, 0] and answers.half_width()[8] == 0
    nothing = plan_release([], privacy="pure", options=PlanOptions(rows=2))
    assert nothing.stderr(1).tolist() == [0, 0]
    assert measure(nothing, [], 1) == ()


def test_large_counts_are_exact_and_huge_ones_clamp() -> None:
    plan = plan_release([TableWorkload(np.eye(2), np.arange(2), one_row=2**30)], privacy="pure")
    x = np.array([2**33 * 2**30, 7 * 2**30], dtype=object)
    (m,) = measure(plan, [x], 1000)
    assert m.values == pytest.approx([2.0**33, 7.0], abs=1)
    (m,) = measure(plan, [np.array([2**90, -(2**90)], dtype=object)], 1000)
    assert np.isfinite(m.values).all() and m.values[0] > 2.0**33


def test_tiny_and_huge_epsilon() -> None:
    plan = plan_release([table_workload(prefix(4))], privacy="pure")
    (m,) = measure(plan, [np.arange(4)], Decimal("1e-12"))
    assert np.isfinite(m.values).all()
    assert plan.stderr(Decimal("1e-12")).max() == pytest.approx(plan.stderr(0.001).max() * 1e9, rel=1e-2)
    (m,) = measure(plan, [np.arange(4)], 1e6)
    assert plan.parts[0].lattice.B @ m.values == pytest.approx([0, 1, 3, 6], abs=1e-3)


@pytest.mark.parametrize(
    "amount", [("1e-17", 0), ("1e-18", 0), ("1e-300", 0), ("1e-399", 0), (1, "1e-301"), (1, "1e-399")]
)
def test_amounts_too_small_for_any_release(amount: tuple[Any, Any]) -> None:
    epsilon, delta = map(Decimal, amount)
    with pytest.raises(PrivacyParameterError, match="no release can"):
        choose_plan([table_workload(prefix(4))], epsilon, delta)


def test_description_is_canonical_and_data_free() -> None:
    plan = plan_release(two_tables(), privacy="pure")
    record = plan.describe(0.5, units={"t": "a row"})
    again = plan_release(two_tables(), privacy="pure").describe(0.5, units={"t": "a row"})
    assert record == again and record.text == again.text
    assert record.text != plan.describe(0.25, units={"t": "a row"}).text
    content = json.loads(record.text)
    assert content["epsilon"] == "0.5" and len(content["parts"]) == 2
    assert content["units"] == recorded_units(record.text) == {"t": "a row"}


def test_wrong_vectors_are_refused() -> None:
    plan = plan_release(two_tables(), privacy="pure")
    with pytest.raises(InternalError):
        measure(plan, XS[:1], 1)
    with pytest.raises(ProgrammingError):
        measure(plan, [XS[0], XS[0]], 1)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.ones((2, 2)), np.arange(3)),
        (np.ones(2), np.arange(2)),
        (np.array([[1.0], [0.0]]), np.arange(2)),
        (np.array([[math.inf]]), np.arange(1)),
        (np.ones((1, 1)), np.arange(1), 0),
        (np.ones((1, 1)), np.arange(1), 1, 3),
    ],
)
def test_blocks_are_checked(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InternalError):
        TableWorkload(*arguments)


def test_noise_is_asked_for_exactly_what_was_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken engine with 0.7 of the noise is caught by OpenDP's own price, before anything is drawn."""
    plan = plan_release([table_workload(paper())], privacy="pure")
    calibrate = JointPlan.calibrate

    def cheap(self: JointPlan, *amount: Any) -> tuple[Any, ...]:
        from dataclasses import replace

        return tuple(replace(n, scale=0.7 * n.scale) for n in calibrate(self, *amount))

    monkeypatch.setattr(JointPlan, "calibrate", cheap)
    with pytest.raises(InternalError, match="pay"):
        measure(plan, [np.array([1, 2, 3, 4])], 1)


def test_whole_counts_are_exact_at_a_finite_epsilon() -> None:
    """The noise on the two halves is zero with a probability that ε decides: their sum is exact 19 times out of 20."""
    epsilon = plan_release([table_workload(paper())], privacy="pure").least_epsilon(1e-9)
    k = np.arange(-60, 61)

    def exact(epsilon: float) -> float:
        mass = np.exp(-epsilon * np.abs(k))
        return float(np.square(mass / mass.sum()).sum())

    assert epsilon is not None
    assert exact(float(epsilon) - 0.01) < 0.95 <= exact(float(epsilon))


def test_an_error_that_no_epsilon_reaches_is_refused() -> None:
    workload = table_workload(paper(), one_row=16)
    plan = plan_release([workload], privacy="pure")
    assert plan.least_epsilon(1e-9) is None
    for refused in (lambda: plan.epsilon_for(1e-9), lambda: choose_plan_for_error([workload], 1e-9, 0.95, 1e-6)):
        with pytest.raises(PrivacyParameterError, match=r"no epsilon up to 1e\+06 gets every query within ±1e-09"):
            refused()
