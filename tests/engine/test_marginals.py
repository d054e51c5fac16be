"""The search for weighted marginals reaches what is known of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tacit.engine.components import evidence_of
from tacit.engine.product_answers import ProductAnswers, View
from tacit.engine.product_workload import ProductRows, ProductWorkload
from tacit.engine.search.structured.structured import optimize_products


def marginals_of(sizes: tuple[int, ...], ways: list[int]) -> ProductWorkload:
    groups, first = [], 0
    points = [np.eye(n) for n in sizes]
    for axes in itertools.chain.from_iterable(itertools.combinations(range(len(sizes)), k) for k in ways):
        rows = np.arange(first, first + int(np.prod([sizes[a] for a in axes])))
        groups.append(ProductRows(axes, tuple(points[a] for a in axes), rows))
        first += len(rows)
    return ProductWorkload(sizes, tuple(groups))


@pytest.mark.parametrize(
    ("sizes", "ways", "known"),
    [
        pytest.param((10,) * 5, [0, 1, 2, 3, 4, 5], 2_996_406, id="cube: one column at a time beside the cells"),
        pytest.param((10,) * 5, [2], 85_600, id="as asked"),
        pytest.param((8, 6, 5, 4), [2], 4_260.6, id="three pairs in one table"),
        pytest.param((4,) * 5, [2], 7_074.6, id="overlapping tables"),
        pytest.param((3,) * 12, [2], 470_000, id="tables of many columns"),
    ],
)
def test_known_errors(sizes: tuple[int, ...], ways: list[int], known: float) -> None:
    workload = marginals_of(sizes, ways)
    strategy = optimize_products(workload, privacy="pure")
    assert strategy.error <= known * (1 + 1e-5)
    answers = ProductAnswers(
        [View(workload.groups, tuple(evidence_of(strategy.blocks, strategy.spreads)))], len(workload.rows)
    )
    assert np.sum(np.square(answers.stderr)) == pytest.approx(strategy.error, rel=1e-6)
