"""The property suite that every strategy passes, and what is known about single ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import combinations, count
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from tacit.engine import Strategy, optimize
from tacit.engine.search import shape
from tacit.engine.search.named import NAMED
from tacit.errors import NotSupportedError, ProgrammingError

from .workloads import prefix, ranges, real

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
LEEWAY = {(name, "pure"): 1e-2 for name in ("lrm", "low-rank", "adaptive", "free")}
"""Two descents of one family may end in local minima a percent apart. Elsewhere 0.2 %: annealing ends near its minimum,
not at it, and nearly singular workloads cost the certified search a few digits."""
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a failing example costs seconds to try again
WORKLOADS = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(-2, 2))


QUICK = {"low-rank": {"levels": 25}, "lrm": {"rounds": 60, "starts": 2}, "free": {"levels": 10}}
"""Shorter searches where the default is made for larger workloads: the properties hold whenever one stops."""


def run(workload: object, privacy: str, name: str | None) -> Strategy | None:
    """The strategy, or None where a system is published for the other kind of privacy only."""
    try:
        return optimize(workload, privacy=privacy, strategy=name, **QUICK.get(name or "", {}))  # type: ignore
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
    for column in (0, 2):
        assert [point[column] for point in s.trace] == sorted(point[column] for point in s.trace)
    assert s.trace[-1] == (s.seconds, s.error, s.lower_bound)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("name", [None, *NAMED])
@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str, name: str | None, privacy: str) -> None:
    W = np.asarray(EDGES[edge], dtype=float)
    s = run(W, privacy, name)
    if s is not None:
        check(W, s)


def compare(W: np.ndarray, privacy: str, leeway: dict[tuple[str, str], float]) -> None:
    """The default is not above any named strategy, shortened as in ``QUICK``, and its bound is below all of them."""
    best = optimize(W, privacy=privacy)  # type: ignore[arg-type]
    check(W, best)
    for name in NAMED:
        s = run(W, privacy, name)
        if s is not None:
            check(W, s)
            assert best.error <= s.error * (1 + leeway.get((name, privacy), 2e-3)) + 1e-12, name
            assert best.lower_bound <= s.error * (1 + 1e-9) + 1e-12, name


@pytest.mark.parametrize("privacy", KINDS)
@settings(max_examples=8, deadline=None, derandomize=True, phases=NO_SHRINKING)
@given(W=WORKLOADS)
def test_default_is_never_worse_than_any_named_one(privacy: str, W: np.ndarray) -> None:
    compare(W, privacy, {})


Rng: TypeAlias = np.random.Generator


def near_singular(rng: Rng, m: int, n: int) -> np.ndarray:
    U, sigma, V = np.linalg.svd(rng.normal(size=(m, n)), full_matrices=False)
    return (U * sigma * np.geomspace(1.0, 1e-6, len(sigma))) @ V


def in_blocks(rng: Rng, m: int, n: int) -> np.ndarray:
    W = np.zeros((m, n))
    W[: m // 2, : n // 2] = rng.random((m // 2, n // 2)) < 0.5
    W[m // 2 :, n // 2 :] = rng.normal(size=(m - m // 2, n - n // 2))
    return W


FAMILIES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "ranges": lambda rng, m, n: ranges(m, n, int(rng.integers(1000))),
    "prefix": lambda rng, m, n: prefix(n)[np.sort(rng.choice(n, min(m, n), replace=False))],
    "marginals": lambda rng, m, n: marginals((2, 3, 4))[np.sort(rng.choice(26, m, replace=False))],
    "thin": lambda rng, m, n: real(m, n, max(1, min(m, n) // 4), int(rng.integers(1000))),
    "dense": lambda rng, m, n: rng.normal(size=(m, n)),
    "zeros and ones": lambda rng, m, n: (rng.random((m, n)) < 0.3) * 1.0,
    "blocks": in_blocks,
    "duplicates": lambda rng, m, n: ranges(m, n)[rng.integers(0, m, m)][:, rng.integers(0, n, n)],
    "signed": lambda rng, m, n: rng.integers(-1, 2, (m, n)) * 1.0,
    "near-singular": near_singular,
    "scales": lambda rng, m, n: ranges(m, n, int(rng.integers(1000))) * 10.0 ** rng.integers(-3, 4, (m, 1)),
}
SEEDS = range(20 if os.environ.get("TACIT_FUZZ") else 1)
"""One workload of each family, twenty in the long form (``make fuzz``)."""


def marginals(shape: tuple[int, ...]) -> np.ndarray:
    """All two-way marginals."""
    cells = np.indices(shape).reshape(len(shape), -1)
    pairs = combinations(range(len(shape)), 2)
    rows = [(cells[a] == u) & (cells[b] == v) for a, b in pairs for u in range(shape[a]) for v in range(shape[b])]
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_default_is_never_worse_on_any_family(family: str, seed: int, privacy: str) -> None:
    rng = np.random.default_rng([seed, len(family)])
    m, n = int(rng.integers(2, 25)), int(rng.integers(4, 41))
    W = FAMILIES[family](rng, m, n)
    compare(W, privacy, LEEWAY)


def test_sliding_windows_are_no_worse_than_any_named_strategy() -> None:
    """Rank and cells are of one size here, yet a few directions count: low-rank and LRM are 10 % below p-identity."""
    W = np.array([[float(first <= cell < first + 11) for cell in range(26)] for first in range(16)])
    best = optimize(W, privacy="pure").error
    for name in ("identity", "results", "hierarchical", "wavelet", "lrm", "p-identity", "low-rank", "weighted"):
        assert best <= optimize(W, privacy="pure", strategy=name).error * (1 + 2e-3), name
    assert best < 0.95 * optimize(W, privacy="pure", strategy="p-identity").error


def test_rows_of_a_strategy_that_are_next_to_nothing_carry_no_answer() -> None:
    """LRM's spare rows can end as rounding; an exact rebuild through them had a million times the error."""
    W = np.array([[float(first <= cell < first + 20) for cell in range(50)] for first in range(31)])
    weights = np.exp(3.0 * np.random.default_rng(0).standard_normal(31))
    named = optimize(W, privacy="pure", strategy="lrm", weights=weights)
    assert np.allclose(named.B @ named.L, W)
    assert named.error < 2.0 * optimize(W, privacy="pure", strategy="p-identity", weights=weights).error


def test_two_halves_are_asked_alone() -> None:
    s = optimize(TWO_HALVES, privacy="pure")
    assert s.error == pytest.approx(4.0, rel=1e-9)
    variances = 2 * s.sensitivity**2 * np.sum(s.B**2, axis=1)
    assert variances == pytest.approx([4.0, 2.0, 2.0], rel=1e-9)


def test_the_papers_example_is_below_what_the_paper_calls_optimal() -> None:
    """The paper's Figure 1 has 39/ε² and calls it optimal; 38 is reachable."""
    assert 2 * optimize(PAPER, privacy="pure").error <= 38.01


@pytest.mark.parametrize("privacy", KINDS)
def test_tiny_cases_agree_with_brute_force(privacy: str) -> None:
    """Over 2 cells a strategy is a few vectors (cos t, sin t)·w; a fine grid of pairs finds the optimum."""
    W = np.array([[1.0, 1.0], [1.0, -0.5]])
    angles = np.linspace(0.0, np.pi, 181)[:-1]
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    best = np.inf
    for ratio in np.geomspace(0.2, 5.0, 41):
        for i, first in enumerate(vectors):
            L = np.stack([np.broadcast_to(first, vectors[i + 1 :].shape), ratio * vectors[i + 1 :]], axis=1)
            sizes = np.abs(L).sum(axis=1) if privacy == "pure" else np.sqrt((L**2).sum(axis=1))
            if len(L):
                B = W @ np.linalg.inv(L)
                best = min(best, float(np.min(sizes.max(axis=1) ** 2 * np.sum(B**2, axis=(1, 2)))))
    s = optimize(W, privacy=privacy)
    assert best * 0.99 <= s.error <= best * 1.002


def test_lrm_is_behind_identity_on_small_domains_and_far_ahead_on_related_queries() -> None:
    """The ordering of LRM's Figures 4 to 6."""
    stream = np.random.default_rng(0)
    related = stream.normal(size=(32, 3)) @ stream.normal(size=(3, 200))
    assert optimize(related, strategy="lrm").error < optimize(related, strategy="identity").error / 3
    small = stream.normal(size=(40, 8)) @ stream.normal(size=(8, 16))
    assert optimize(small, strategy="lrm").error > optimize(small, strategy="identity").error


def test_wavelet_and_hierarchical_are_close_on_ranges() -> None:
    ends = np.sort(np.random.default_rng(0).integers(0, 64, (64, 2)), axis=1)
    cells = np.arange(64)
    W = ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(float)
    tree, haar = (optimize(W, strategy=name).error for name in ("hierarchical", "wavelet"))
    assert 0.5 < tree / haar < 2.0


def test_coa_converges_to_the_certified_optimum() -> None:
    W = np.tril(np.ones((24, 24)))
    s = optimize(W, privacy="approximate", strategy="coa", iterations=200, theta=1e-8)
    assert s.gap <= 0.005
    assert optimize(W, privacy="approximate", strategy="coa", homotopy=True, theta=1e-6).gap <= 0.05


def test_lrm_takes_the_papers_parameters() -> None:
    W = np.tril(np.ones((6, 6)))
    assert optimize(W, strategy="lrm", rank=9, starts=1).L.shape[0] == 9
    rough, fine = (optimize(W, strategy="lrm", gamma=gamma, starts=2) for gamma in (1.0, 0.01))
    check(W, rough)
    assert rough.L.tobytes() != fine.L.tobytes()
    assert fine.error <= optimize(W, strategy="lrm", starts=1).error
    with pytest.raises(ProgrammingError, match="rank 6"):
        optimize(W, strategy="lrm", rank=5)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("least", [3e-3, 1e-5, 1e-8])
def test_lrm_answers_what_its_gamma_would_lose(least: float, privacy: str) -> None:
    """A direction of W below γ vanishes in the residual that Algorithm 1 may leave; it gets a row of its own."""
    U, V = (np.linalg.qr(np.random.default_rng(seed).normal(size=(12, 12)))[0] for seed in (1, 2))
    sizes = np.concatenate([np.linspace(9.0, 1.0, 11), [least]])
    W, rest = (U * sizes) @ V, (U * np.where(sizes == least, 0.0, sizes)) @ V
    result = optimize(W, privacy=privacy, strategy="lrm", gamma=0.05, starts=1)
    check(W, result)
    assert result.error <= 1.1 * optimize(rest, privacy=privacy, strategy="lrm", gamma=0.05, starts=1).error
    stopped = optimize(W, privacy=privacy, strategy="lrm", deadline=0.0)
    check(W, stopped)
    assert stopped.error <= 100 * result.error


@pytest.mark.parametrize("n", [3, 7, 12, 100])
def test_domains_need_not_be_powers_of_two(n: int) -> None:
    W = np.tril(np.ones((n, n)))
    levels = int(np.ceil(np.log2(n)))
    assert optimize(W, strategy="wavelet").sensitivity == levels + 1
    assert optimize(W, strategy="hierarchical").sensitivity == levels + 1
    assert optimize(W, strategy="hierarchical", branching=n).sensitivity == 2


def test_wavelet_is_privelet_with_its_weights() -> None:
    """Coefficients and weights as published: the mean by n, (mean of the left half − of the right)/2 by the size."""
    x = np.random.default_rng(0).normal(size=16)
    expected, size = [16 * x.mean()], 16
    while size > 1:
        for part in x.reshape(-1, size):
            left, right = part.reshape(2, -1).mean(axis=1)
            expected.append(size * (left - right) / 2)
        size //= 2
    assert optimize(np.eye(16), strategy="wavelet").L @ x == pytest.approx(expected)


@pytest.mark.parametrize("homotopy", [False, True])
def test_coa_reports_the_error_and_not_its_objective(homotopy: bool) -> None:
    W = ranges(6, 12)
    seen: list[float] = []
    s = optimize(
        W,
        privacy="approximate",
        strategy="coa",
        theta=0.5,
        iterations=1,
        homotopy=homotopy,
        progress=lambda p: seen.append(p.error),
    )
    check(W, s)
    assert seen[-1] == pytest.approx(s.error, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_approximate_is_certified_on_random_workloads(seed: int) -> None:
    stream = np.random.default_rng(seed)
    m, n, rank = (int(v) for v in stream.integers(2, 90, 3))
    W = stream.normal(size=(m, rank)) @ stream.normal(size=(rank, n))
    if seed % 2:
        W = (W > 1.0).astype(float)
    assert optimize(W, privacy="approximate").gap <= 1e-3


@pytest.mark.parametrize("decades", [4, 6, 8])
def test_cells_of_very_different_weight_are_certified_too(decades: int) -> None:
    """Squares of such a workload hide its small singular values, and with them whole directions."""
    W = np.tril(np.ones((60, 60))) * np.logspace(-decades, decades, 60)
    reported: list[float] = []
    s = optimize(W, privacy="approximate", progress=lambda p: reported.append(p.error))
    assert s.gap <= 1e-3
    assert s.error <= np.sum(W**2)
    assert min(reported) == pytest.approx(s.error, rel=1e-6)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("rows", [16, 31], ids=["square", "compressed"])
def test_what_is_reported_is_the_error_of_what_is_returned(rows: int, privacy: str) -> None:
    """A search that looks at the workload as a whole misses its smallest queries, and their rows cost something."""
    W = np.vstack([np.tril(np.ones((16, 16))), np.triu(np.ones((16, 16)))])[:rows]
    W = W * np.logspace(-8, 8, rows)[:, None]
    reported: list[float] = []
    s = optimize(W, privacy=privacy, progress=lambda p: reported.append(p.error))
    check(W, s)
    assert min(reported) == pytest.approx(s.error, rel=1e-9)
    assert reported[-1] == min(reported)


def test_the_target_gap_is_reached_and_not_outdone() -> None:
    W = np.random.default_rng(5).integers(0, 2, (30, 80)).astype(float)
    results = [optimize(W, privacy="approximate", target_gap=gap) for gap in (1e-2, 1e-4, 1e-7)]
    assert [s.gap <= gap for s, gap in zip(results, (1e-2, 1e-4, 1e-7), strict=True)] == [True] * 3
    assert results[0].gap > 1e-4 > results[1].gap > 1e-7
    assert optimize(W, privacy="approximate", target_gap=0.0).gap <= 1e-8  # ends when the digits do


def test_weights_move_the_error_to_where_it_hurts_least() -> None:
    W = np.tril(np.ones((12, 12)))
    weights = np.array([100.0] + [1.0] * 11)
    for privacy in KINDS:
        plain, weighed = optimize(W, privacy=privacy), optimize(W, privacy=privacy, weights=weights)
        first = [s.sensitivity**2 * np.sum(s.B[0] ** 2) for s in (plain, weighed)]
        assert first[1] < 0.8 * first[0]
        each = weighed.sensitivity**2 * np.sum(weighed.B**2, axis=1)
        assert weighed.error == pytest.approx(float(weights @ each))
        assert weighed.lower_bound <= weighed.error
    for wrong in ([1.0], [0.0] * 12, [np.nan] * 12, "x"):
        with pytest.raises(ProgrammingError):
            optimize(W, weights=wrong)


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("family", ["prefix", "related"])
def test_largest_error_is_smaller_than_any_other_strategys_and_certified(family: str, privacy: str) -> None:
    stream = np.random.default_rng(0)
    related = stream.normal(size=(24, 4)) @ stream.normal(size=(4, 30))
    W = np.tril(np.ones((20, 20))) if family == "prefix" else related
    seen: list[float] = []
    least = optimize(W, privacy=privacy, objective="largest", progress=lambda p: seen.append(p.error))
    assert least.error == pytest.approx(float(least.sensitivity**2 * np.max(np.sum(least.B**2, axis=1))))
    assert least.lower_bound <= least.error == pytest.approx(seen[-1])
    assert seen == sorted(seen, reverse=True)
    assert np.allclose(least.B @ least.L, W)
    if privacy == "approximate":
        assert least.gap <= 1e-3
    for name in (None, *NAMED):
        other = run(W, privacy, name)
        if other is not None:
            assert least.error < float(other.sensitivity**2 * np.max(np.sum(other.B**2, axis=1))), name
            assert least.lower_bound <= float(other.sensitivity**2 * np.max(np.sum(other.B**2, axis=1)))


@pytest.mark.parametrize("privacy", KINDS)
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("objective", ["largest", "absolute"])
def test_edges_of_other_measures(edge: str, privacy: str, objective: str) -> None:
    W = np.asarray(EDGES[edge], dtype=float)
    s = optimize(W, privacy=privacy, objective=objective)
    rows = np.linalg.norm(W, axis=1)
    assert np.all(np.linalg.norm(s.B @ s.L - W, axis=1) <= 1e-9 * rows)
    each = s.sensitivity**2 * np.sum(s.B**2, axis=1)
    assert s.error == pytest.approx(float(each.max() if objective == "largest" else np.sqrt(each).sum()))
    assert s.lower_bound <= s.error


def test_a_named_strategy_is_weighed_for_the_largest_error_too() -> None:
    W = np.tril(np.ones((20, 20)))
    plain, least = (optimize(W, strategy="p-identity", objective=goal) for goal in ("total", "largest"))
    assert least.name == "p-identity"
    assert least.error < float(plain.sensitivity**2 * np.max(np.sum(plain.B**2, axis=1)))


def test_a_deadline_and_a_cancel_give_the_best_so_far_with_a_true_bound() -> None:
    ends = np.sort(np.random.default_rng(0).integers(0, 300, (150, 2)), axis=1)
    W = ((np.arange(300) >= ends[:, :1]) & (np.arange(300) <= ends[:, 1:])).astype(float)
    for privacy in KINDS:
        best = optimize(W, privacy="approximate")
        for stopped in (
            optimize(W, privacy=privacy, deadline=0.0),
            optimize(W, privacy=privacy, cancel=lambda: True),
        ):
            check(W, stopped)
            assert stopped.lower_bound <= best.error * (1 + 1e-9)
    seen: list[float] = []
    asked = count()
    stopped = optimize(W, cancel=lambda: next(asked) > 100, progress=lambda p: seen.append(p.error))
    check(W, stopped)
    assert seen == sorted(seen, reverse=True) and seen[-1] == pytest.approx(stopped.error)
    assert next(asked) < 200, "every loop ends soon after"


@pytest.mark.parametrize("name", NAMED)
def test_a_deadline_holds_for_named_strategies_and_their_certificates(name: str) -> None:
    W = ranges(300, 600)
    for privacy in KINDS:
        try:
            s = optimize(W, privacy=privacy, strategy=name, deadline=0.0)
        except NotSupportedError:
            continue
        check(W, s)
        assert s.lower_bound > 0.0


CLOSED_FORM = ("identity", "results", "hierarchical", "wavelet")
"""Strategies without a loop to interrupt; every other one is expected to have one."""


@pytest.mark.parametrize("name", [name for name in NAMED if name not in CLOSED_FORM])
def test_every_iteration_can_be_interrupted(name: str) -> None:
    """A loop that never asks the watch would end where it ends without a cancel."""
    W = ranges(12, 18)
    for privacy in KINDS:
        whole = run(W, privacy, name)
        if whole is not None:
            stopped = optimize(W, privacy=privacy, strategy=name, cancel=lambda: True, **QUICK.get(name, {}))  # type: ignore
            check(W, stopped)
            assert stopped.L.tobytes() != whole.L.tobytes()


def test_a_cancelled_certificate_is_a_true_bound_and_its_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question comes from the certificate: identity asks none. Every question takes a second here."""
    W = ranges(60, 90)
    asked: list[bool] = []

    def cancel() -> bool:
        asked.append(True)
        return True

    whole, stopped = optimize(W, strategy="identity"), optimize(W, strategy="identity", cancel=cancel)
    assert asked
    assert 0.0 < stopped.lower_bound < whole.lower_bound <= whole.error == stopped.error
    monkeypatch.setattr(time, "perf_counter", lambda: float(len(asked)))
    asked.clear()
    timed = optimize(W, strategy="identity", cancel=cancel)
    assert 1.0 <= timed.seconds == timed.trace[-1][0] == len(asked)


@pytest.mark.parametrize("reduce", [False, True])
def test_a_bound_that_a_named_run_has_proven_is_kept(reduce: bool) -> None:
    seen: list[float] = []
    s = optimize(
        prefix(8),
        privacy="approximate",
        strategy="dual",
        target_gap=0.0,
        reduce=reduce,
        progress=lambda p: seen.append(p.lower_bound),
    )
    check(prefix(8), s)
    assert s.lower_bound == pytest.approx(max(seen), rel=1e-12)
    assert s.gap <= 1e-8


def after(questions: int) -> Callable[[], bool]:
    """A cancel that ends a search at its n-th question: at the same point on every machine, unlike a deadline."""
    asked = count(1)
    return lambda: next(asked) >= questions


def test_many_cells_are_planned_without_an_n_by_n_matrix() -> None:
    stream = np.random.default_rng(0)
    W = stream.normal(size=(12, 9000))
    for privacy in KINDS:
        s = optimize(W, privacy=privacy, cancel=after(1000))
        check(W, s)
        assert s.L.shape[0] < 100


@pytest.mark.parametrize("privacy", KINDS)
def test_wide_workloads_are_no_worse_than_identity_up_to_the_documented_width(
    privacy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    W = np.random.default_rng(0).integers(0, 2, (60, 1500)) * 1.0
    result = optimize(W, privacy=privacy, cancel=after(1000))
    check(W, result)
    assert result.error <= np.sum(W**2)
    monkeypatch.setattr(shape, "WIDEST", 1000)
    beyond = optimize(W, privacy=privacy, cancel=after(1000))
    check(W, beyond)
    assert beyond.L.shape[0] <= 2 * len(W)
    assert beyond.error <= np.sum(W**2)


def test_same_input_same_strategy() -> None:
    W = np.random.default_rng(3).integers(0, 2, (12, 15))
    one, two = optimize(W), optimize(W)
    assert one.L.tobytes() == two.L.tobytes()
