"""The bound of a joint plan holds for questions that mix tables, and the corners are all that a unit can do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tacit.engine import TableWorkload, optimize, plan_release
from tacit.engine.search.across import Share, corners, joint_bound
from tacit.engine.strategy import Matrix, Privacy, sensitivity

from .workloads import paper, prefix


def joint(tables: list[tuple[Matrix, int]]) -> list[TableWorkload]:
    """The tables' blocks, one below the other."""
    starts = np.cumsum([0, *(len(W) for W, _ in tables)])
    return [
        TableWorkload(W, np.arange(start, start + len(W)), rows_per_unit=k)
        for (W, k), start in zip(tables, starts, strict=False)
    ]


def stacked(tables: list[tuple[Matrix, int]]) -> Matrix:
    whole = np.zeros((sum(len(W) for W, _ in tables), sum(W.shape[1] for W, _ in tables)))
    row = column = 0
    for W, _ in tables:
        whole[row : row + len(W), column : column + W.shape[1]] = W / np.abs(W).max(axis=1, keepdims=True)
        row, column = row + len(W), column + W.shape[1]
    return whole


@pytest.mark.parametrize("order", [1, 2])
def test_the_corners_are_the_sensitivity_over_all_neighbours(order: int) -> None:
    """Every unit with up to two rows in one table and up to three in the other, added to any state, against V."""
    cells, k = (2, 3), (2, 3)
    units = [
        [
            np.bincount(rows, minlength=n)
            for count in range(most + 1)
            for rows in itertools.product(range(n), repeat=count)
        ]
        for n, most in zip(cells, k, strict=True)
    ]
    moves = np.array([np.concatenate(pair) for pair in itertools.product(*units)]).T
    V = corners(cells, k)
    assert V.shape == (5, 3 * 4 - 1)
    for seed in range(20):
        L = np.random.default_rng(seed).normal(size=(4, 5))
        reached = np.linalg.norm(L @ moves, order, axis=0).max()
        assert np.linalg.norm(L @ V, order, axis=0).max() == pytest.approx(reached)


@pytest.mark.parametrize(("privacy", "separate", "mixed"), [("pure", 8.0, 4.0), ("approximate", 4.0, 8 / 3)])
def test_two_counts_are_not_said_to_be_optimal(privacy: Privacy, separate: float, mixed: float) -> None:
    """L = [[1, 1], [1, −1]] (in L2 with the better sizes) beats every plan that keeps the tables apart."""
    plan = plan_release(joint([(np.ones((1, 1)), 1), (np.ones((1, 1)), 1)]), privacy=privacy)
    assert plan.error == pytest.approx(separate)
    L = np.array([[1.0, 1], [1, -1]]) * ([[1], [1]] if privacy == "pure" else [[0.5], [np.sqrt(0.75)]])
    error = sensitivity(L @ corners([1, 1], [1, 1]), privacy) ** 2 * np.sum(np.linalg.inv(L) ** 2)
    assert error == pytest.approx(mixed)
    assert plan.lower_bound <= error
    assert plan.lower_bound == pytest.approx(8 / 3, rel=2e-3), "no weaker than what L2 reaches"


@pytest.mark.parametrize(
    "tables",
    [
        [(np.eye(3), 1), (np.ones((1, 2)), 2)],
        [(paper(), 1), (prefix(3), 3)],
        [(np.ones((1, 1)), 1), (np.eye(2), 1), (prefix(2), 2)],
        [(prefix(8), 1), (prefix(8), 1)],
    ],
)
@pytest.mark.parametrize("privacy", ["pure", "approximate"])
def test_no_mixed_strategy_is_below_the_bound(tables: list[tuple[Matrix, int]], privacy: Privacy) -> None:
    """A strategy of W·V with rows in the row space of W·V is one of W over the stacked cells: it mixes tables."""
    V = corners([W.shape[1] for W, _ in tables], [k for _, k in tables])
    plan = plan_release(joint(tables), privacy=privacy)
    best = optimize(stacked(tables) @ V, privacy="approximate")
    assert plan.lower_bound <= best.error * (1 + 1e-6)
    assert plan.lower_bound >= 0.998 * best.error, "in L2 it is what can be reached"
    assert plan.lower_bound <= plan.error
    stream = np.random.default_rng(3)
    W = stacked(tables)
    for _ in range(200):
        L = stream.normal(size=(W.shape[1], W.shape[1]))
        assert sensitivity(L @ V, privacy) ** 2 * np.sum((W @ np.linalg.inv(L)) ** 2) >= plan.lower_bound


@pytest.mark.parametrize("size", [40, 140])
def test_with_many_cells_apart_is_nearly_the_best(size: int) -> None:
    """Mixing gains one direction of many: the bound says so at every size."""
    plan = plan_release(joint([(np.eye(size), 1), (np.eye(size), 2)]), privacy="approximate")
    assert plan.lower_bound <= plan.error
    assert plan.error / plan.lower_bound < (1.02 if size == 40 else 1.25)


def test_bounds_of_any_size_agree() -> None:
    """Each way to the bound is below the optimum over all corners."""
    W = np.eye(12)
    lower = 12.0
    whole = joint_bound([Share(W, 1, lower), Share(W, 1, lower)])
    best = optimize(np.kron(np.eye(2), W) @ corners([12, 12], [1, 1]), privacy="approximate").error
    assert 2 * lower < whole <= best * (1 + 1e-9)
    wide = np.eye(150)
    assert 2 * 150.0 < joint_bound([Share(wide, 1, 150.0), Share(wide, 1, 150.0)]) < 4 * 150.0
    assert joint_bound([Share(W, 3, lower)]) == 9 * lower
