"""The property suite that every strategy passes, and what is known about single ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tacit.engine import Strategy, optimize, strategies
from tacit.errors import NotSupportedError, ProgrammingError

KINDS = ("pure", "approximate")
TWO_HALVES = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
PAPER = [[0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]]
EDGES = {
    "one entry": [[3.0]],
    "one row": [[1.0, 2.0, 0.0, 2.0]],
    "one column": [[1.0], [2.0], [-4.0]],
    "zero row": [[1.0, 1.0], [0.0, 0.0]],
    "zero column": [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
    "all zero": [[0.0, 0.0], [0.0, 0.0]],
    "duplicate rows": [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]],
    "two halves": TWO_HALVES,
    "the paper's example": PAPER,
    "thin": np.random.default_rng(1).normal(size=(6, 2)) @ np.random.default_rng(2).normal(size=(2, 9)),
    "prefix of 7": np.tril(np.ones((7, 7))),
    "negative": [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]],
}
WORKLOADS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-2, 2))


def run(workload: object, privacy: str, name: str | None) -> Strategy | None:
    """The strategy, or None where a system is published for the other kind of privacy only."""
    try:
        return optimize(workload, privacy=privacy, strategy=name)  # type: ignore[arg-type]
    except NotSupportedError:
        assert name is not None
        return None


def check(W: np.ndarray, s: Strategy) -> None:
    scale = max(float(np.linalg.norm(W)), 1e-300)
    assert np.linalg.norm(s.B @ s.L - W) <= 1e-9 * scale
    norms = np.abs(s.L).sum(axis=0) if s.privacy == "pure" else np.sqrt((s.L**2).sum(axis=0))
    assert s.sensitivity == pytest.approx(norms.max(), rel=1e-12)
    assert s.error == pytest.approx(s.sensitivity**2 * np.sum(s.B**2), rel=1e-9, abs=1e-300)
    assert s.lower_bound <= s.error
    errors = [e for _, e, _ in s.trace]
    assert errors == sorted(errors, reverse=True)
    assert s.trace[-1][1:] == (s.error, s.lower_bound)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("name", [None, *strategies()])
@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str, name: str | None, privacy: str) -> None:
    W = np.asarray(EDGES[edge], dtype=float)
    s = run(W, privacy, name)
    if s is not None:
        check(W, s)


@pytest.mark.parametrize("privacy", KINDS)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(W=WORKLOADS)
def test_default_is_never_worse_than_any_named_one(privacy: str, W: np.ndarray) -> None:
    best = optimize(W, privacy=privacy)
    check(W, best)
    for name in strategies():
        s = run(W, privacy, name)
        if s is not None:
            check(W, s)
            # Under approximate privacy the search stops 0.05 % above its bound by design.
            assert best.error <= s.error * (1 + 1e-3) + 1e-12
            assert best.lower_bound <= s.error * (1 + 1e-9) + 1e-12


def test_two_halves_are_asked_alone() -> None:
    s = optimize(TWO_HALVES, privacy="pure")
    assert s.error == pytest.approx(4.0, rel=1e-9)
    variances = 2 * s.sensitivity**2 * np.sum(s.B**2, axis=1)
    assert variances == pytest.approx([4.0, 2.0, 2.0], rel=1e-9)


def test_the_papers_example_is_at_most_what_the_paper_calls_optimal() -> None:
    assert 2 * optimize(PAPER, privacy="pure").error <= 39


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_is_only_a_factor(privacy: str, scale: float) -> None:
    W = np.tril(np.ones((6, 6)))
    plain, scaled = optimize(W, privacy=privacy), optimize(W * scale, privacy=privacy)
    check(W, plain)
    assert np.linalg.norm((scaled.B / scale) @ scaled.L - W) <= 1e-9 * np.linalg.norm(W)
    assert scaled.error / scale / scale == pytest.approx(plain.error, rel=2e-3)


def test_same_input_same_strategy() -> None:
    W = np.random.default_rng(3).integers(0, 2, (12, 15))
    one, two = optimize(W), optimize(W)
    assert one.L.tobytes() == two.L.tobytes()


@pytest.mark.parametrize(
    "wrong",
    [
        [[np.nan, 1.0]],
        [[np.inf, 1.0]],
        [1.0, 2.0],
        [[[1.0]]],
        [[]],
        np.zeros((0, 3)),
        [["a"]],
        [[1.0], [1.0, 2.0]],
    ],
)
def test_what_is_no_workload_is_refused(wrong: object) -> None:
    with pytest.raises(ProgrammingError):
        optimize(wrong)  # type: ignore[arg-type]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ProgrammingError, match="identity"):
        optimize([[1.0]], strategy="magic")
    with pytest.raises(ProgrammingError, match="gamma"):
        optimize([[1.0]], strategy="lrm", gama=1.0)
    with pytest.raises(ProgrammingError, match="name one"):
        optimize([[1.0]], gamma=1.0)
    with pytest.raises(ProgrammingError, match="approximate"):
        optimize([[1.0]], privacy="gaussian")  # type: ignore[arg-type]
