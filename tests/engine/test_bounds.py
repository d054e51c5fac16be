"""The bounds against each other, against strategies, and against what is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tacit.engine import optimize
from tacit.engine.search.bounds import dual_bound, dual_point, svd_bound

from benchmarks.paper.lemmas import coa_upper_bound, lemma3_bound, lemma4_figure

WORKLOADS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-2, 2))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(W=WORKLOADS, weights=arrays(np.float64, 6, elements=st.floats(0.0, 1.0)))
def test_lower_bounds_are_below_the_optimum_and_upper_bounds_above(W: np.ndarray, weights: np.ndarray) -> None:
    best = optimize(W, privacy="approximate")
    slack = 1 + 1e-9
    assert svd_bound(W) <= best.error * slack + 1e-12
    assert dual_bound(W, weights[: W.shape[1]]) <= best.error * slack + 1e-12
    assert best.lower_bound >= svd_bound(W) * (1 - 1e-9)
    assert best.error <= coa_upper_bound(W) * (1 + 1e-3) + 1e-12


@settings(max_examples=10, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(W=WORKLOADS)
def test_lemma_3_is_above_the_best_pure_strategy(W: np.ndarray) -> None:
    assert optimize(W, privacy="pure").error <= lemma3_bound(W) * (1 + 1e-9) + 1e-12


def test_identity_workload_meets_its_bound() -> None:
    for privacy in ("pure", "approximate"):
        s = optimize(np.eye(5), privacy=privacy, reduce=False)
        assert s.error == pytest.approx(5.0) and s.lower_bound == pytest.approx(5.0)


def test_one_query_meets_its_bound_in_both_kinds() -> None:
    for privacy in ("pure", "approximate"):
        s = optimize([[3.0, 1.0, -2.0]], privacy=privacy)
        assert s.error == pytest.approx(9.0)
        assert s.lower_bound == pytest.approx(9.0, rel=1e-3)


def test_bounds_hold_for_a_workload_with_a_steep_spectrum() -> None:
    """Singular values down to 1e-12: squaring them must not inflate the certificate."""
    stream = np.random.default_rng(0)
    left, right = (np.linalg.qr(stream.normal(size=(30, 30)))[0] for _ in range(2))
    W = (left * np.geomspace(1.0, 1e-12, 30)) @ right
    exact = dual_bound(W, np.ones(30))
    s = optimize(W, privacy="approximate")
    assert s.lower_bound <= s.error
    assert dual_point(W, np.full(30, 1 / 30)).certain ** 2 <= exact * (1 + 1e-9)


def test_marginals_meet_the_svd_bound() -> None:
    cells = np.indices((3, 4)).reshape(2, -1)
    W = np.array([cells[0] == a for a in range(3)] + [cells[1] == b for b in range(4)], dtype=float)
    assert optimize(W, privacy="approximate").error == pytest.approx(svd_bound(W), rel=1e-6)


def test_lemma_4_is_no_bound() -> None:
    """One row of n ones has error 1 whatever n is; the figure grows with n."""
    assert optimize(np.ones((1, 50))).error == pytest.approx(1.0)
    assert lemma4_figure(np.ones((1, 50))) > 50
