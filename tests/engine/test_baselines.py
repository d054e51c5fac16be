"""The alternatives are priced by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tacit.engine.mechanism.baselines import baselines
from tacit.engine.mechanism.calibrate import analytic_sigma
from tacit.engine.mechanism.choose import choose_plan
from tacit.engine.mechanism.table_workload import TableWorkload, table_workload
from tacit.errors import ProgrammingError

from .workloads import paper, ranges

ROOT = math.sqrt(2)


def geometric(scale: float) -> float:
    """The standard deviation of Laplace noise on the integers."""
    p = math.exp(-1 / scale)
    return math.sqrt(2 * p) / (1 - p)


def test_the_papers_example() -> None:
    """Whole counts have noise on the integers; fractions of rows have continuous noise, as in the paper."""
    errors = baselines([table_workload(paper())], [0, 1, 2], 0.5)
    assert errors["split"] == pytest.approx([geometric(6)] * 3)
    assert errors["results"] == pytest.approx([geometric(4)] * 3)
    assert errors["histogram"] == pytest.approx([2 * geometric(2), ROOT * geometric(2), ROOT * geometric(2)])
    errors = baselines([table_workload(paper(), one_row=16)], [0, 1, 2], 0.5)
    assert errors["split"] == pytest.approx([6 * ROOT] * 3)
    assert errors["results"] == pytest.approx([4 * ROOT] * 3)
    assert errors["histogram"] == pytest.approx([4 * ROOT, 4, 4])


def test_rows_of_one_query_share_its_part() -> None:
    """A GROUP BY over disjoint groups costs like one count."""
    W = np.vstack([np.eye(3), np.ones((1, 3))])
    errors = baselines([table_workload(W)], [0, 0, 0, 1], 1)
    assert errors["split"] == pytest.approx([geometric(2)] * 4)


def test_sums_are_in_units_of_their_clamp() -> None:
    W = np.array([[0.0, 250.0], [1.0, 1.0]])
    errors = baselines([table_workload(W, one_row=16)], [0, 1], 1)
    assert errors["results"] == pytest.approx([250 * 2 * ROOT, 2 * ROOT])
    assert errors["histogram"] == pytest.approx([250 * ROOT, ROOT * ROOT])


def test_one_unit_may_own_rows_in_every_table() -> None:
    workloads = [
        TableWorkload(np.ones((1, 1)), np.array([0]), rows_per_unit=3),
        TableWorkload(np.ones((1, 1)), np.array([1])),
    ]
    errors = baselines(workloads, [0, 1], 1)
    assert errors["split"] == pytest.approx([geometric(6), geometric(2)])
    for name in ("results", "histogram"):
        assert errors[name] == pytest.approx([geometric(4)] * 2)
    sigma = analytic_sigma(1.0, 0.1)
    errors = baselines(workloads, [0, 1], 1, 0.1)
    assert errors["results"] == pytest.approx([min(geometric(4), sigma * math.sqrt(10))] * 2)


def test_gaussian_where_it_is_better() -> None:
    W = np.tril(np.ones((100, 100)))
    sigma = analytic_sigma(1.0, 1e-6)
    errors = baselines([table_workload(W)], np.zeros(100, dtype=np.int64), 1, 1e-6)
    assert errors["results"] == pytest.approx([sigma * 10] * 100)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0), (1, 0), (1, 1e-6), (4, 0)])
def test_a_plan_is_never_worse(epsilon: float, delta: float) -> None:
    W = ranges(16, 10)
    workloads = [table_workload(W)]
    plan = choose_plan(workloads, epsilon, delta)
    for name, stderr in baselines(workloads, range(16), epsilon, delta).items():
        assert plan.total_error(epsilon, delta) <= 1.001 * (stderr**2).sum(), name


def test_rows_without_a_query_are_refused() -> None:
    with pytest.raises(ProgrammingError):
        baselines([table_workload(paper())], [0, 1], 1)
