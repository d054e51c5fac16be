"""What plans make least: the shares of several tables are the best ones, and the figures are in the stated measure."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import scipy.optimize
from tacit.engine import PlanOptions, plan_release, table_workload
from tacit.engine.measures import Measure, joint, measured, row_scales, share_root
from tacit.engine.strategy import Privacy

from .workloads import prefix, ranges

MEASURES: tuple[Measure, ...] = get_args(Measure)
KINDS: tuple[Privacy, ...] = ("pure", "approximate")
WORKLOADS = [
    table_workload(np.vstack([prefix(6), np.zeros((4, 6))])),
    table_workload(np.vstack([np.zeros((6, 5)), 30 * ranges(4, 5)]), rows_per_unit=3),
]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("privacy", KINDS)
def test_the_shares_of_tables_are_the_best_ones(privacy: Privacy, measure: Measure) -> None:
    stderr = [np.array([1.0, 2.0, 0.5]), np.array([7.0]), np.array([0.1, 0.2])]
    fall = 1.0 if privacy == "pure" else 0.5

    def value(shares: np.ndarray) -> float:
        return measured(np.concatenate([e / s**fall for e, s in zip(stderr, shares, strict=True)]), measure)

    values = [measured(e, measure) for e in stderr]
    shares = np.array([v ** share_root(privacy, measure) for v in values])
    shares /= shares.sum()
    assert value(shares) == pytest.approx(joint(values, privacy, measure))
    best = scipy.optimize.minimize(
        lambda logs: np.log(value(np.exp(logs) / np.exp(logs).sum())),
        np.zeros(3),
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000},
    )
    assert value(shares) == pytest.approx(float(np.exp(best.fun)), rel=1e-4)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("privacy", KINDS)
def test_a_plan_is_the_best_in_its_own_measure(privacy: Privacy, measure: Measure) -> None:
    """At an ε so small that noise on the integers is as good as continuous."""
    delta = 0 if privacy == "pure" else 1e-6
    weights = np.linspace(1, 3, 10)
    plans = {
        other: plan_release(WORKLOADS, privacy=privacy, options=PlanOptions(weights, measure=other))
        for other in MEASURES
    }
    peaks = np.concatenate([np.abs(w.matrix).max(axis=1) for w in WORKLOADS])
    values = {
        other: measured(plan.stderr(0.05, delta) * row_scales(weights, measure) / peaks, measure)
        for other, plan in plans.items()
    }
    plan = plans[measure]
    assert plan.total_error(0.05, delta) == pytest.approx(values[measure])
    assert values[measure] <= 1.002 * min(values.values())
    assert 0 < plan.lower_bound <= plan.error
    noise = plan.total_error(0.05, delta) / plan.error
    again = plan.total_error(0.025, delta) / plan.error
    if privacy == "pure":
        assert noise == pytest.approx(2**0.5 / 0.05 if measure == "absolute" else 2 / 0.05**2, rel=1e-3)
        assert again / noise == pytest.approx(2 if measure == "absolute" else 4, rel=1e-3)


def test_weights_multiply_what_is_summed() -> None:
    stderr, weights = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 2.0])
    total, largest, absolute = (measured(stderr * row_scales(weights, m), m) for m in MEASURES)
    assert (total, largest, absolute) == pytest.approx((1 + 20 + 18, 20, 1 + 10 + 6))
