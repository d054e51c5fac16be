"""Answers, plans and budgets go through pickle and copy with all that they show, and with no way to the data."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import duckdb
import pandas as pd
import pytest
import tacit
from pandas.testing import assert_frame_equal

POLICY: dict[str, Any] = {
    "budget": {"epsilon": 5, "delta": 1e-6},
    "tables": {
        "visits": {
            "columns": {"state": {"values": ["NY", "NJ"], "other": True}, "age": {"min": 0, "max": 20}},
        }
    },
}
BATCH = """
    SELECT state, count(*) AS n, avg(age) AS mean, median(age) AS middle FROM visits GROUP BY ROLLUP (state);
    SELECT count(*) AS children FROM visits WHERE age < 9;
    SELECT max(n) AS most FROM (SELECT state, count(*) AS n FROM visits GROUP BY state);
    SELECT 1 + 1 AS two
"""


@pytest.fixture(scope="module")
def con() -> Any:
    db = duckdb.connect()
    db.execute(
        "CREATE TABLE visits AS SELECT i % 20 AS age, ['NY', 'NJ', 'CA'][i % 3 + 1] AS state FROM range(900) t(i)"
    )
    with tacit.connect(db, policy=POLICY) as opened:
        yield opened


def twins(value: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)]


def test_answers(con: tacit.Connection) -> None:
    answers = con.answer(BATCH, epsilon=1, plan_seconds=1)
    for twin in twins(answers):
        assert (str(twin), twin.to_json(), twin.cost) == (str(answers), answers.to_json(), answers.cost)
        assert_frame_equal(twin.df(simultaneous=True), answers.df(simultaneous=True))
        assert twin.arrow().equals(answers.arrow())
        for one, other in zip(twin, answers, strict=True):
            assert_frame_equal(one.df, other.df)
            assert_frame_equal(one.with_errors(simultaneous=True), other.with_errors(simultaneous=True))
            assert (one.sql, one.types, one.rows()) == (other.sql, other.types, other.rows())
            assert one._repr_html_() == other._repr_html_()
    assert_frame_equal(copy.copy(answers).cells(), answers.cells())
    with pytest.raises(tacit.NotSupportedError, match=r"hint: call answers\.cells\(\) where"):
        twins(answers)[0].cells()


def test_one_answer_by_itself(con: tacit.Connection) -> None:
    answer = con.answer(BATCH, epsilon=1, plan_seconds=1)[0]
    assert_frame_equal(pickle.loads(pickle.dumps(answer)).df_with_errors, answer.df_with_errors)


def test_plans(con: tacit.Connection) -> None:
    con.answer("SELECT count(*) FROM visits", epsilon=0.2)
    plan = con.explain(BATCH, epsilon=1, plan_seconds=1)
    alone = plan.by_query(alone=True)
    for twin in twins(plan):
        assert (twin.text(all=True), twin.to_json(), repr(twin)) == (plan.text(all=True), plan.to_json(), repr(plan))
        assert_frame_equal(twin.df(size=100, simultaneous=True), plan.df(size=100, simultaneous=True))
        assert_frame_equal(twin.by_query(alone=True), alone)
        assert twin._repr_html_() == plan._repr_html_()
    restored = twins(plan)[0]
    assert isinstance(pickle.loads(pickle.dumps(restored)).df(), pd.DataFrame)
    for ask in (restored.curve, restored.plot_workload, restored.plot_strategy):
        with pytest.raises(tacit.NotSupportedError, match="was pickled without it\nhint: "):
            ask()


def test_nothing_that_is_pickled_holds_the_secret_salt(con: tacit.Connection) -> None:
    answers, plan = con.answer(BATCH, epsilon=1, plan_seconds=1), con.explain(BATCH, epsilon=1, plan_seconds=1)
    ledger = con._session.access.peek()
    assert ledger is not None
    for value in (answers, answers[0], plan, con.budget):
        assert ledger.salt not in pickle.dumps(value)


def test_a_connection_says_what_to_do_instead(con: tacit.Connection) -> None:
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"call tacit\.connect where it is needed"):
            copied(con)
