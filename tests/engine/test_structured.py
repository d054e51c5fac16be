"""Structured strategies have the error that they state, between the bound that they state and that of their parts."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tacit.engine import optimize
from tacit.engine.components import evidence_of
from tacit.engine.measures import joint
from tacit.engine.product_answers import ProductAnswers, View
from tacit.engine.product_workload import Axes, ProductStrategy, ProductWorkload, peaks
from tacit.engine.search.structured import axis as axis_module
from tacit.engine.search.structured.structured import NAMES, optimize_products
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Privacy, sensitivity

from .products import all_sets, marginals, matrix_of, matrix_of_block, random_workload, workload
from .workloads import prefix

Vector = NDArray[np.float64]
optimize_module = sys.modules[optimize.__module__]
KINDS: tuple[Privacy, ...] = ("pure", "approximate")


def stated_error(products: ProductWorkload, s: ProductStrategy, weights: Vector | None = None) -> float:
    """From the blocks: the squared errors of rows that were divided by their largest entries, weighed by group."""
    view = View(products.groups, tuple(evidence_of(s.blocks, s.spreads)))
    stderr = ProductAnswers([view], len(products.rows)).stderr
    total = 0.0
    for group in products.groups:
        weight = 1.0 if weights is None else float(np.mean(weights[group.rows]))
        total += weight * float(np.sum(np.square(stderr[group.rows] / peaks(group))))
    return total


def dense(products: ProductWorkload, weights: Vector | None = None) -> NDArray[np.float64]:
    """The rows that a search over listed cells would be given."""
    W = matrix_of(products)
    for group in products.groups:
        W[group.rows] /= peaks(group)[:, None]
        if weights is not None:
            W[group.rows] *= math.sqrt(float(np.mean(weights[group.rows])))
    return W


def dense_error(products: ProductWorkload, s: ProductStrategy, weights: Vector | None = None) -> float:
    """The same from matrices that are written out, by least squares: never more than what is stated."""
    parts = [matrix_of_block(products.sizes, b) / spread for b, spread in zip(s.blocks, s.spreads, strict=True)]
    B = dense(products, weights) @ np.linalg.pinv(np.vstack(parts))
    return float(np.square(B).sum())


def check(products: ProductWorkload, s: ProductStrategy, weights: Vector | None = None) -> None:
    """What holds of every structured strategy."""
    assert s.name in NAMES
    assert sum(s.shares) == pytest.approx(1, abs=1e-9)
    assert min(s.shares) > 0
    for block in s.blocks:
        assert sensitivity(matrix_of_block(products.sizes, block), s.privacy) == pytest.approx(1, abs=1e-9)
        for L, split in zip(block.factors, block.splits, strict=True):
            assert split is None or np.abs(L @ split).max() <= 1e-9
    assert stated_error(products, s, weights) == pytest.approx(s.error, rel=1e-6)
    assert s.lower_bound <= s.error
    assert dense_error(products, s, weights) <= s.error * (1 + 1e-6)


def optimum(sizes: Sequence[int], sets: Sequence[Axes], weights: Sequence[float] | None = None) -> float:
    """Of marginals under Gaussian noise (arXiv 2305.08175): (Σ_U √v_U · Π_U (n − 1)/√n)², v_U = Σ_S w_S Π_(S∖U) 1/n."""
    total = 0.0
    for U in all_sets(len(sizes), 0, len(sizes)):
        v = sum(
            (1.0 if weights is None else weights[k]) / math.prod(sizes[a] for a in S if a not in U)
            for k, S in enumerate(sets)
            if set(U) <= set(S)
        )
        total += math.sqrt(v) * math.prod((sizes[a] - 1) / math.sqrt(sizes[a]) for a in U)
    return total**2


def row_weights(products: ProductWorkload, weights: Sequence[float]) -> Vector:
    result = np.zeros(len(products.rows))
    for group, weight in zip(products.groups, weights, strict=True):
        result[group.rows] = weight
    return result


MARGINALS: list[tuple[list[int], list[Axes]]] = [
    ([3, 2], all_sets(2, 0, 2)),
    ([4, 3, 2], all_sets(3, 0, 3)),
    ([4, 3, 2], all_sets(3, 2, 2)),
    ([5, 2, 3], [(0, 1), (1, 2)]),
    ([2, 2, 2, 3], all_sets(4, 1, 1)),
    ([3, 1, 2], [(0, 1), (1, 2), (2,)]),
]


@pytest.mark.parametrize(("sizes", "sets"), MARGINALS)
@pytest.mark.parametrize("privacy", KINDS)
def test_marginals(sizes: list[int], sets: list[Axes], privacy: Privacy) -> None:
    products = marginals(sizes, sets)
    s = optimize_products(products, privacy=privacy)
    check(products, s)
    least = optimum(sizes, sets)
    certified = optimize(dense(products), privacy="approximate")
    assert certified.lower_bound <= least * (1 + 1e-6)
    assert certified.error >= least * (1 - 1e-6)
    if privacy == "approximate":
        assert s.error == pytest.approx(least, rel=1e-6)
        assert s.lower_bound == pytest.approx(least, rel=1e-6)
    else:
        assert s.error >= least * (1 - 1e-9)  # no Laplace strategy has less than the best Gaussian one
        assert s.lower_bound <= least * (1 + 1e-9)


def test_weighted_marginals_and_a_cube_that_nobody_could_write_out() -> None:
    sizes, sets = [4, 3, 2], all_sets(3, 1, 2)
    weights = [0.1, 5.0, 1.0, 20.0, 3.0, 0.5]
    products = marginals(sizes, sets)
    of_rows = row_weights(products, weights)
    s = optimize_products(products, privacy="approximate", weights=of_rows)
    check(products, s, of_rows)
    assert s.error == pytest.approx(optimum(sizes, sets, weights), rel=1e-6)
    pure = optimize_products(products, privacy="pure", weights=of_rows)
    check(products, pure, of_rows)
    plain = optimize_products(products, privacy="pure")
    assert pure.error <= stated_error(products, plain, of_rows) * (1 + 1e-6)
    assert plain.error <= stated_error(products, pure) * (1 + 1e-6)
    wide, pairs = [9] * 12, all_sets(12, 2, 2)
    least = (
        sum(  # by the sizes of the sets: all axes are alike
            math.comb(12, k) * math.sqrt(math.comb(12 - k, 2 - k) / 9 ** (2 - k)) * (8 / 3) ** k for k in range(3)
        )
        ** 2
    )
    found = optimize_products(marginals(wide, pairs), privacy="approximate")
    assert found.error == pytest.approx(least, rel=1e-6)
    assert found.lower_bound == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("privacy", KINDS)
def test_one_product_is_the_product_of_optima(privacy: Privacy) -> None:
    factors = [prefix(6), np.eye(3), np.array([[1.0, 1, 0, 0], [0, 1, 1, 1]])]
    products = workload([6, 3, 4], [((0, 1, 2), factors)])
    s = optimize_products(products, privacy=privacy)
    check(products, s)
    each = [optimize(factor, privacy=privacy) for factor in factors]
    assert s.error <= math.prod(one.error for one in each) * (1 + 1e-9)
    least = math.prod(optimize(factor, privacy="approximate").lower_bound for factor in factors)
    assert s.lower_bound == pytest.approx(least, rel=1e-6)
    if privacy == "approximate":
        assert s.error <= s.lower_bound * 1.001
        whole = optimize(dense(products), privacy=privacy)
        assert s.error <= whole.error * 1.001
        assert s.lower_bound <= whole.error


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("privacy", KINDS)
def test_random_workloads(seed: int, privacy: Privacy) -> None:
    """The stated error is true, the bound holds against what the dense search certifies, and apart is no better."""
    rng = np.random.default_rng(seed)
    products = random_workload(rng, largest=4)
    weights = None if seed % 3 else rng.uniform(0.1, 10, size=len(products.rows))
    s = optimize_products(products, privacy=privacy, weights=weights)
    check(products, s, weights)
    W = dense(products, weights)
    certified = optimize(W, privacy="approximate")
    assert s.lower_bound <= certified.error * (1 + 1e-6)  # a Gaussian strategy exists at this error
    assert s.error >= certified.lower_bound * (1 - 1e-6)
    apart = []
    for S in dict.fromkeys(tuple(sorted(group.axes)) for group in products.groups):
        chosen = np.zeros(len(products.rows), dtype=np.bool_)
        for group in products.groups:
            chosen[group.rows] = tuple(sorted(group.axes)) == S
        apart.append(optimize_products(products.only(chosen), privacy=privacy, weights=weights).error)
    assert s.error <= joint(apart, privacy, "total") * (1 + 1e-6)


RANGES = workload([6, 5, 3], [((0, 1), [prefix(6), np.eye(5)]), ((1, 2), [prefix(5), np.eye(3)]), ((0,), [prefix(6)])])


@pytest.mark.parametrize("privacy", KINDS)
def test_a_search_that_is_cut_short_is_still_true(privacy: Privacy) -> None:
    full = optimize_products(RANGES, privacy=privacy)
    check(RANGES, full)
    asked = 0

    def cancel() -> bool:
        nonlocal asked
        asked += 1
        return True

    for options in ({"quick": True}, {"deadline": 0.0}, {"cancel": cancel}):
        s = optimize_products(RANGES, privacy=privacy, **options)  # type: ignore[arg-type]
        check(RANGES, s)
        assert s.error >= full.error * (1 - 1e-4)
    assert asked > 0


@pytest.mark.parametrize("aside", [False, True])
@pytest.mark.parametrize("privacy", KINDS)
def test_the_searches_over_single_axes_share_the_deadline(
    monkeypatch: pytest.MonkeyPatch, privacy: Privacy, aside: bool
) -> None:
    given: list[float | None] = []

    class Watched(Watch):
        def __init__(self, deadline: float | None = None, **options: Any) -> None:
            given.append(deadline)
            super().__init__(deadline=deadline, **options)

    for module in (axis_module, optimize_module):
        monkeypatch.setattr(module, "Watch", Watched)
    optimize_products(RANGES, privacy=privacy, aside=aside)
    assert given and set(given) == {None}
    given.clear()
    optimize_products(RANGES, privacy=privacy, aside=aside, deadline=0.05)
    left = [seconds for seconds in given if seconds is not None]
    assert len(left) == len(given) > 1 and max(left) <= 0.05
    assert left == sorted(left, reverse=True) and left[0] > left[-1]


def test_the_same_search_finds_the_same_strategy() -> None:
    for privacy in KINDS:
        first, second = (optimize_products(RANGES, privacy=privacy) for _ in range(2))
        assert (first.name, first.shares, first.error) == (second.name, second.shares, second.error)


def test_ranges_are_split_at_better_weights_than_equal_ones() -> None:
    quick = optimize_products(RANGES, privacy="approximate", quick=True)
    full = optimize_products(RANGES, privacy="approximate")
    assert full.error < quick.error * 0.999


def test_a_column_that_every_query_names_is_not_split() -> None:
    """Over ten groups, everything is asked in every group: the optimum is ten times that of one group."""
    inner = workload([4, 3], [((0,), [np.eye(4)]), ((1,), [np.eye(3)]), ((0, 1), [np.eye(4), np.eye(3)])])
    outer = workload(
        [4, 3, 10],
        [((*group.axes, 2), [*group.factors, np.eye(10)]) for group in inner.groups],
    )
    alone = optimize_products(inner, privacy="approximate")
    whole = optimize_products(outer, privacy="approximate")
    check(outer, whole)
    assert whole.error == pytest.approx(10 * alone.error, rel=1e-6)
    assert whole.lower_bound == pytest.approx(10 * alone.lower_bound, rel=1e-6)


def test_sums_and_counts_of_groups() -> None:
    """The clamp of a sum is an axis of two points whose factor is no indicator."""
    clamp = np.array([[-5.0, 250.0]])
    products = workload([4, 2, 2], [((0, 1), [np.eye(4), clamp]), ((0, 2), [np.eye(4), clamp]), ((0,), [np.eye(4)])])
    for privacy in KINDS:
        s = optimize_products(products, privacy=privacy)
        check(products, s)
        assert s.error >= optimize(dense(products), privacy="approximate").lower_bound * (1 - 1e-6)
