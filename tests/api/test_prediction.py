"""``explain`` says what ``answer`` then does: the cost, the strategy and every error, whatever is known already."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import tacit
from support import seams
from tacit import Connection

Connect = Callable[..., Connection]

ONE = "SELECT count(*) AS n FROM visits WHERE age < 40"


def ages(*bounds: int) -> list[str]:
    return [f"SELECT count(*) AS n FROM visits WHERE age < {bound}" for bound in bounds]


def geometric(epsilon: float) -> float:
    """The variance of the noise on one count."""
    return float(2 * np.exp(-epsilon) / (1 - np.exp(-epsilon)) ** 2)


def said_and_done(con: Connection, batch: str | list[str], **how: Any) -> tuple[tacit.Plan, tacit.Answers]:
    """The plan and the answers, which must agree in everything that a plan states."""
    plan = con.explain(batch, **how)
    before = con.budget.spent
    answers = con.answer(batch, **how)
    assert plan.cost == answers.cost
    assert float(con.budget.spent.epsilon - before.epsilon) == pytest.approx(float(plan.cost.epsilon), abs=1e-12)
    assert plan.strategy == answers.strategy
    told, found = plan.df(), answers.df()
    exact = found["stderr"].notna() & told["stderr"].notna()
    np.testing.assert_allclose(told["stderr"][exact], found["stderr"][exact], rtol=1e-6)
    np.testing.assert_allclose(told["half_width"][exact], (found["high"] - found["low"])[exact] / 2, rtol=1e-6)
    return plan, answers


SITUATIONS: dict[str, tuple[list[tuple[Any, dict[str, Any]]], Any, dict[str, Any]]] = {
    "nothing is known": ([], ages(20, 40), {"epsilon": 0.5}),
    "all is known": ([(ages(20, 40), {"epsilon": 0.5})], ages(20, 40), {"epsilon": 0.5}),
    "all is known better": ([(ages(20, 40), {"epsilon": 2})], ages(20), {"epsilon": 0.5}),
    "known from two releases": ([(ONE, {"epsilon": 0.5}), (ONE, {"epsilon": 1})], ONE, {"epsilon": 0.5}),
    "a finer answer": ([(ONE, {"epsilon": 0.5})], ONE, {"epsilon": 1.5}),
    "a part is known": ([(ages(20, 40), {"epsilon": 1})], ages(20, 40, 60, 80), {"epsilon": 0.5}),
    "new noise": ([(ages(20, 40), {"epsilon": 1})], ages(20, 40), {"epsilon": 0.5, "refresh": True}),
    "new noise for an error": ([(ONE, {"epsilon": 1})], ONE, {"error": 3, "refresh": True}),
    "an error": ([], ages(20, 40), {"error": 5, "confidence": 0.9}),
    "an error that is known": ([(ages(20, 40), {"epsilon": 2})], ages(20, 40), {"error": 5}),
    "an error a little out of reach": ([(ages(20, 40), {"epsilon": 1})], ages(20, 40), {"error": 3}),
    "an error out of reach for one row": ([(ages(20, 40), {"epsilon": 1})], ages(20, 40, 60), {"error": 5}),
    "both kinds of noise": ([(ages(20, 40), {"epsilon": 1})], ages(*range(20, 90, 3)), {"epsilon": 0.5, "delta": 1e-7}),
    "both kinds, for an error": ([(ages(20), {"epsilon": 1})], ages(*range(20, 90, 3)), {"error": 20, "delta": 1e-7}),
    "whole numbers": ([(ages(20), {"epsilon": 1})], ages(20, 40), {"epsilon": 0.5, "integer": True}),
    "weights": ([(ages(20), {"epsilon": 1})], ages(20, 40, 60), {"epsilon": 0.5, "weights": [1, 5, 1]}),
    "a forced strategy": ([(ages(20), {"epsilon": 1})], ages(20, 40), {"epsilon": 0.5, "strategy": "identity"}),
    "sums and averages": (
        [("SELECT sum(cost) FROM visits", {"epsilon": 1})],
        "SELECT sex, sum(cost), avg(cost), count(cost) FROM visits GROUP BY CUBE (sex)",
        {"epsilon": 0.5},
    ),
    "two tables": (
        [("SELECT count(*) FROM labs", {"epsilon": 1})],
        [ONE, "SELECT count(*) FROM labs", "SELECT count(*) FROM hospitals"],
        {"epsilon": 0.5},
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_plan_is_what_is_done(con: Connection, name: str) -> None:
    before, batch, how = SITUATIONS[name]
    for earlier, options in before:
        con.answer(earlier, **options)
    said_and_done(con, batch, **how)


@pytest.mark.parametrize("name", ["nothing is known", "a part is known", "a finer answer", "both kinds of noise"])
def test_the_plan_is_what_is_done_under_zcdp(connect: Connect, policy: dict[str, Any], name: str) -> None:
    policy["accounting"] = "zcdp"
    con = connect(policy=policy)
    before, batch, how = SITUATIONS[name]
    for earlier, options in before:
        con.answer(earlier, **options)
    plan, _ = said_and_done(con, batch, **how)
    assert "under this ledger's rule" in str(plan)


@pytest.mark.parametrize("how", [{"epsilon": 0.5}, {"epsilon": 1.5}, {"error": 6}, {"error": 2}])
def test_the_plan_is_what_is_done_with_what_another_paid_for(connect: Connect, how: dict[str, Any]) -> None:
    connect(analyst="bob").answer(ages(20, 40), epsilon=1)
    con = connect(analyst="ana")
    plan, answers = said_and_done(con, ages(20, 40), **how)
    if not any(answers.cost):
        assert "counts ε=1, δ=0 against your own cap" in str(plan)


def test_what_is_known_is_predicted_not_what_it_would_cost_anew(con: Connection) -> None:
    con.answer(ONE, epsilon=1)
    plan = con.explain(ONE, epsilon=0.5)
    assert plan.stderr[0] == pytest.approx(np.sqrt(geometric(1)), rel=1e-9)
    assert not any(plan.cost) and "already released: answering costs nothing" in str(plan)
    finer = con.explain(ONE, epsilon=1.5)
    assert finer.stderr[0] == pytest.approx((1 / geometric(1) + 1 / geometric(1.5)) ** -0.5, rel=1e-9)
    assert finer.error == pytest.approx(geometric(1.5), rel=1e-9), "the strategy by itself"


def test_an_error_buys_the_difference(con: Connection) -> None:
    known = con.answer(ONE, epsilon=0.07).df().eval("(high - low) / 2")[0]
    assert known > 40.0
    alone = con.explain(ONE, error=40.0, refresh=True)
    plan, answers = said_and_done(con, ONE, error=40.0)
    reached = answers.df().eval("(high - low) / 2")[0]
    assert 39.6 < reached <= 40.0
    assert answers.cost.epsilon < Decimal("0.6") * alone.cost.epsilon
    assert "with what was released before, that is enough for ±40" in str(plan)
    assert not any(con.explain(ONE, error=40.0).cost)


@pytest.mark.parametrize("epsilon", [0.7, 1.5, 1.7])
def test_an_error_of_one_is_kept_beside_what_was_released(con: Connection, epsilon: float) -> None:
    """Two counts whose noise is often zero: their mean is wider at 95% than the better one by itself."""
    con.answer(ONE, epsilon=epsilon)
    alone = con.explain(ONE, error=1.0, refresh=True)
    plan, _ = said_and_done(con, ONE, error=1.0)
    assert plan.half_width[0] <= 1.0 and alone.half_width[0] <= 1.0
    assert plan.cost.epsilon <= alone.cost.epsilon == Decimal("1.77"), "2p²/(1 + p) is a twentieth at 1.77"
    assert not any(con.answer(ONE, error=1.0).cost), "and what was bought is enough from then on"


@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_the_difference_is_the_smallest(con: Connection, delta: float) -> None:
    """Of a batch of which some rows are known well, some not well enough, and some not at all."""
    batch = ages(*range(10, 95, 5))
    con.answer(batch[::2], epsilon=0.6)
    con.answer(batch[:6], epsilon=1.5)
    plan, answers = said_and_done(con, batch, error=8.0, delta=delta)
    widths = answers.df().eval("(high - low) / 2")
    assert 0.97 * 8.0 < widths.max() <= 8.0
    assert any(plan.cost)


@pytest.mark.parametrize("name", ["a part is known", "a finer answer"])
def test_a_price_that_is_not_what_was_named_says_why(con: Connection, name: str) -> None:
    before, batch, how = SITUATIONS[name]
    for earlier, options in before:
        con.answer(earlier, **options)
    plan = con.explain(batch, **how)
    if plan.cost.epsilon != plan.epsilon:
        assert "what was released before answers part of the batch" in str(plan)
        assert f"ε={plan.cost.epsilon:f}" in str(plan) and f"as exact as ε={plan.epsilon:f}" in str(plan)
    assert (plan.cost.epsilon == plan.epsilon) is (name != "a part is known")


def test_a_charge_that_was_never_released_is_not_called_released(con: Connection, monkeypatch: Any) -> None:
    seams.replace(monkeypatch, "count", lambda *_: 1 / 0)
    with pytest.raises(tacit.OperationalError):
        con.answer(ONE, epsilon=0.5)
    plan = con.explain(ONE, epsilon=0.5)
    assert not any(plan.cost)
    assert "paid for before, and never released: answering costs nothing" in str(plan)


AVERAGE = "SELECT avg(cost) FROM visits WHERE age < 30"
SAME_ROWS = ["SELECT sum(cost) FROM visits WHERE age < 30", "SELECT count(cost) FROM visits WHERE age < 30"]


@pytest.mark.parametrize("before", [[], ["explain"], ["explain", "answer"]])
def test_a_refusal_does_not_depend_on_what_was_asked_before(con: Connection, before: list[str]) -> None:
    for call in before:
        getattr(con, call)(SAME_ROWS, error=500)
    for call in (con.explain, con.answer):
        with pytest.raises(tacit.PrivacyParameterError, match="cannot be promised for query 0"):
            call(AVERAGE, error=500)
    with pytest.raises(tacit.PrivacyParameterError, match="cannot be promised for query 1, 3:"):
        con.explain([ONE, AVERAGE, ONE, AVERAGE], error=500)


def test_a_missing_budget_does_not_depend_on_what_was_asked_before(con: Connection) -> None:
    con.answer(ONE, epsilon=0.5)
    with pytest.raises(tacit.PrivacyParameterError, match="no budget was named"):
        con.answer(ONE)


def test_weights_of_other_queries_make_another_plan(con: Connection) -> None:
    """The same rows in the same order, but the middle ones belong to the other query."""
    counts = [f"count(*) FILTER (age < {bound})" for bound in range(10, 90, 5)]
    batches = [[f"SELECT {', '.join(part)} FROM visits" for part in (counts[:n], counts[n:])] for n in (3, 13)]
    plans = [con.explain(batch, epsilon=1, weights=[1, 1000]).df()["stderr"] for batch in batches]
    assert plans[0][8] < 0.9 * plans[1][8]
