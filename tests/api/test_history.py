"""What a question costs beside many releases of its table is bounded, and what they tell about it is not lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import seams
from support.estimates import estimate
from tacit import Connection
from tacit.engine.inference.estimate import Stack
from tacit.engine.mechanism.measurement import Measurement
from tacit.sql import compile_batch
from tacit.sql.refine import grid_of, union_of_cells

from .conftest import Connect

MANY = 40


@pytest.fixture
def rich(connect: Connect, policy: dict[str, Any]) -> Connection:
    """A budget for many questions."""
    policy["budget"]["epsilon"] = 1e6
    return connect(policy=policy)


def test_what_measures_unions_of_own_cells_is_all_used(rich: Connection) -> None:
    """More releases than are ever refined: each is a union of the cells of a batch that asks all of them again."""
    asked = [f"SELECT count(*) FROM visits WHERE age < {age}" for age in range(10, 10 + MANY)]
    for sql in asked:
        rich.answer(sql, epsilon=1)
    plan = rich.explain(asked, epsilon=1e-6)
    assert not any(plan.cost)
    answers = rich.answer(asked, epsilon=1e-6)
    assert answers.epsilon == MANY, "every one of them is in the answer"
    assert answers.df()["stderr"].max() <= np.sqrt(2) * 1.001


def test_a_question_looks_at_a_bounded_number_of_releases(rich: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    seams.watch(monkeypatch, "refine", lambda *_, **__: looked.append(1))
    counts = []
    for i in range(MANY):
        rich.answer(f"SELECT count(*) FROM visits WHERE age < {20 + i} AND cost > {i + 0.5}", epsilon=0.01)
        looked.clear()
        rich.explain("SELECT count(*) FROM visits WHERE age < 7 AND cost > 33.25", epsilon=5)
        counts.append(len(looked))
    assert counts[9] == 2 * 10, "a few releases are all looked at, to decide and to predict"
    assert set(counts[30:]) == {max(counts)} and max(counts) < 2 * 30, "and of many, so many of the nearest"


def test_the_nearest_releases_come_first(rich: Connection) -> None:
    """Of eighty releases, the two that cut where the question cuts are the ones that answer it."""
    rich.answer("SELECT count(*) FROM visits WHERE age < 20", epsilon=1)
    for i in range(MANY):
        rich.answer(f"SELECT count(*) FROM visits WHERE age < {21 + i} AND cost > {i}", epsilon=1)
        rich.answer(f"SELECT count(*) FROM visits WHERE cost > {i} OR age < {i}", epsilon=1)
    rich.answer("SELECT count(*) FROM visits WHERE age < 90", epsilon=1)
    answers = rich.answer("SELECT count(*) FROM visits WHERE age >= 20 AND age < 90", epsilon=0.5)
    assert not any(answers.cost)


def test_a_release_is_read_once(rich: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    for age in (20, 30, 40):
        rich.answer(f"SELECT count(*) FROM visits WHERE age < {age}", epsilon=1)
    rich.explain("SELECT count(*) FROM visits WHERE age < 50", epsilon=1)
    opened: list[int] = []
    seams.watch(monkeypatch, "unpack", lambda *_: opened.append(1))
    rich.explain("SELECT count(*) FROM visits WHERE age < 60", epsilon=1)
    assert not opened
    rich.answer("SELECT count(*) FROM visits WHERE age < 60", epsilon=1)
    rich.explain("SELECT count(*) FROM visits WHERE age < 70", epsilon=1)
    assert 1 <= len(opened) <= 2, "only what is new: once when it was stored, and once from the ledger"


def test_a_union_of_cells_says_which(untouched: Connection) -> None:
    def grid(sql: str) -> Any:
        return grid_of(compile_batch(sql, untouched.catalog).scans[0])

    fine = grid("SELECT count(*) FROM visits WHERE age < 20; SELECT count(*) FROM visits WHERE age < 40")
    coarse = grid("SELECT count(*) FROM visits WHERE age < 40")
    found = union_of_cells(fine, coarse)
    assert found is not None and found.tolist() == [0, 0]
    assert union_of_cells(coarse, fine) is None
    assert union_of_cells(fine, grid("SELECT count(*) FROM visits WHERE age < 30")) is None
    assert union_of_cells(fine, grid("SELECT count(*) FROM visits WHERE sex")) is None
    assert union_of_cells(fine, grid("SELECT count(*) FROM visits")) is None, "it counts rows that no cell holds"


def test_a_stack_answers_as_its_measurements_do() -> None:
    kinds = (("laplace", [[1, 1, 0]], 2.0), ("gaussian", [[1, 0, 0], [0, 1, 1]], 1.0), ("laplace", [[0, 0, 1]], 9.0))
    measured = [
        Measurement(np.array(rows), 0, np.arange(len(rows)) + 5, 0, kind, scale)  # type: ignore[arg-type]
        for kind, rows, scale in kinds
    ]
    stack = Stack.joined([Stack.of(measured[:1], [4]), Stack.of(measured[1:], [0, 2])], 5)
    assert stack.source.tolist() == [4, 0, 0, 2]
    assert (stack.laplace > 0).tolist() == [True, False, False, True]
    np.testing.assert_allclose(stack.questions[0] * measured[0].stddev, [1, 1, 0])
    lifted = stack.lifted(np.array([0, 0, 1, 2, -1]))
    np.testing.assert_allclose(lifted.questions[0] * measured[0].stddev, [1, 1, 1, 0, 0])
    assert estimate(np.eye(3), measured).stderr.shape == (3,)
