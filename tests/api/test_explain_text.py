"""What ``explain`` tells its reader: the sentence, the rest on request, sizes, other budgets."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import tacit
from tacit import Connection
from tacit.display import cut_inside, number, odds, percent, text_table, width

Connect = Callable[..., Connection]

COUNTS = ["SELECT count(*) AS n FROM visits", "SELECT count(*) FROM visits WHERE age < 40"]
AVERAGE = "SELECT state, count(cost) AS n, avg(cost) AS mean FROM visits GROUP BY state"


def test_the_first_line_is_the_sentence_an_analyst_needs(connect: Connect) -> None:
    con = connect()
    plan = con.explain(COUNTS[0], epsilon=0.5)
    half = width(plan.half_width[0])
    assert (
        str(plan).splitlines()[0] == f"the count will be within ±{half}, 19 times out of 20, for ε = 0.5 of your 10.0"
    )
    con.answer(COUNTS[0], epsilon=0.5)
    assert "at no cost" in str(con.explain(COUNTS[0], epsilon=0.5)).splitlines()[0]
    later = con.explain("SELECT sum(cost) FROM visits; SELECT count(*) FROM visits", epsilon=1, confidence=0.99)
    first = str(later).splitlines()[0]
    assert first.startswith("each sum will be within ±") and " and each count within ±" in first
    assert ", 99 times out of 100, for ε = " in first and first.endswith(" of the 9.5 left of your 10.0")
    too_much = str(con.explain("SELECT count(*) FROM visits WHERE sex", epsilon=9.9)).splitlines()[0]
    assert too_much.endswith("for ε = 9.9, more than the 9.5 left of your 10.0")
    assert "±" in str(con.explain(COUNTS, epsilon=1, delta=1e-7)).splitlines()[0]


def test_a_width_is_never_rounded_down() -> None:
    assert [width(v) for v in (6.0, 6.21, 0.0123, 61.2, 1234.1, 0.0)] == ["6.0", "6.3", "0.013", "62", "1,235", "0"]
    assert [number(v) for v in (6.126, 61.26, 12345.6, np.inf, np.nan)] == ["6.13", "61.3", "12,346", "∞", ""]
    assert [percent(v) for v in (0.0062, 0.051, 1.2)] == ["0.62%", "5.1%", "120%"]
    assert [odds(c) for c in (0.95, 0.9, 0.999, 0.97)] == [
        *("19 times out of 20", "9 times out of 10", "999 times out of 1,000", "97% of the time")
    ]


def test_everything_is_said_within_80_columns_and_words_are_explained(con: Connection) -> None:
    long = (
        "SELECT count(*) FROM visits WHERE day < DATE '2024-02-01' AND sex AND cost < 500 AND age > 5 AND state <> 'NJ'"
    )
    batch = [*COUNTS, AVERAGE, long]
    plan = con.explain(batch, epsilon=0.5, plan_seconds=0.1)
    lines = plan.text(all=True).splitlines()
    assert max(map(len, lines[1:])) <= 80
    said = " ".join(" ".join(lines).split())
    for word in ("ε = 0.5:", "a unit (here one row of visits)", "a cell is", "- strategy ", "half-width", "charged:",
                 "other:", "budget split per query (", "noisy histogram (", "the gap:", "alone ε:"):  # fmt: skip
        assert said.count(word) == 1, word
    assert "times the least" not in said
    for i, sql in enumerate(batch):
        assert any(line.startswith(f"{i}: {sql[7:15]}") for line in lines), sql
    answers = str(con.answer(batch, epsilon=0.5, plan_seconds=0.2)).splitlines()
    assert max(map(len, answers)) <= 80
    assert "plan.text(all=True)" in str(plan) and len(str(plan)) < len(plan.text(all=True))


def test_what_a_query_costs_alone(con: Connection) -> None:
    """A count alone needs the ε whose noise it has in the batch; never more than the batch."""
    plan = con.explain(COUNTS, epsilon=0.5)
    alone = plan.by_query(alone=True)["alone"].tolist()
    for query, epsilon in enumerate(alone):
        assert epsilon <= Decimal("0.5")
        by_itself = con.explain(COUNTS[query], epsilon=epsilon).stderr[0]
        assert by_itself == pytest.approx(plan.stderr[query], rel=0.02) and by_itself <= plan.stderr[query] * (1 + 1e-6)
    assert plan.cost_of_each_alone() == sum(alone)


def test_relative_errors_and_averages_for_a_named_size(con: Connection) -> None:
    plan = con.explain(AVERAGE, epsilon=1)
    frame = plan.df(size=2000)
    counts, means = frame[frame["column"] == "n"], frame[frame["column"] == "mean"]
    np.testing.assert_allclose(counts["relative"], counts["half_width"] / 2000)
    assert means["half_width"].between(0.1, 100).all() and means["note"].str.contains("2,000 rows").all()
    assert plan.df(size=200)["half_width"].iloc[-1] > 5 * means["half_width"].iloc[-1]
    assert plan.df()["half_width"].iloc[-1:].isna().all()
    with pytest.raises(tacit.ProgrammingError, match="needs a release"):
        plan.df(size="released")
    for wrong in (0, -1, "many", [1, 2], True):
        with pytest.raises(tacit.ProgrammingError, match="size="):
            plan.df(size=wrong)


def test_released_sizes_predict_what_the_next_answer_has(con: Connection) -> None:
    batch = [AVERAGE, "SELECT sum(cost) / count(*) FROM visits WHERE cost >= 0"]
    con.answer(batch, epsilon=1)
    predicted = con.explain(batch, epsilon=4, refresh=True).df(size="released")
    answered = con.answer(batch, epsilon=4, refresh=True).df()
    solid = [0, 1, 2, 6, 7, 8, 12]  # groups with enough rows for their size to be known
    half = np.maximum(answered["high"] - answered["value"], answered["value"] - answered["low"])
    np.testing.assert_allclose(predicted["half_width"].iloc[solid], half.iloc[solid], rtol=0.35)


def test_released_sizes_do_not_show_what_others_paid_for(connect: Connect, policy: dict[str, Any]) -> None:
    policy["analysts"] = {"ana": {"epsilon": 5.0}, "bob": {"epsilon": 5.0}}
    connect(policy=policy, analyst="ana").answer(AVERAGE, epsilon=1)
    bob = connect(policy=policy, analyst="bob")
    with pytest.raises(tacit.ProgrammingError, match="needs a release"):
        bob.explain(AVERAGE, epsilon=1).df(size="released")


def test_the_curve_says_what_explain_says(con: Connection) -> None:
    plan = con.explain(COUNTS, epsilon=0.5)
    curve = plan.curve([2, 0.5])
    assert curve["epsilon"].tolist() == [0.5, 2.0]
    assert curve["largest"].tolist() == [con.explain(COUNTS, epsilon=e).half_width.max() for e in (0.5, 2)]
    assert (np.diff(plan.curve(query=1)["smallest"]) < 1e-6).all() and len(plan.curve()) >= 8
    assert plan.curve()["epsilon"].max() <= 10
    np.testing.assert_array_equal(con.curve(COUNTS, epsilons=[0.5, 2]), curve)
    with pytest.raises(tacit.ProgrammingError, match="numbered from 0"):
        plan.curve(query=2)
    con.close()
    assert len(plan.curve([1])) == 1, "a plan outlives its connection"


def test_plans_and_answers_as_json_and_html(con: Connection) -> None:
    batch = ['SELECT state, count(*) AS "<b>" FROM visits GROUP BY ROLLUP (state)', "SELECT max(day) FROM visits"]
    plan = con.explain(batch[0], epsilon=0.5)
    said = json.loads(plan.to_json())
    assert said["cost"] == {"epsilon": "0.5", "delta": "0"} and said["budget"]["cap"]["epsilon"] == "10.0"
    assert len(said["figures"]) == len(plan.df()) and said["summary"] == str(plan).splitlines()[0]
    answers = con.answer(batch[0], epsilon=0.5)
    told = json.loads(answers.to_json())["answers"][0]
    assert told["sql"] == batch[0] and told["rows"][-1]["state"] == "(all)" and told["rows"][-2]["state"] == "NULL"
    assert told["rows"][0]["<b>"] == answers[0].df["<b>"].iloc[0]
    for shown in (plan, answers, answers[0], con.budget, con):
        page = shown._repr_html_()
        assert "<table>" in page and '<b>"' not in page.replace("<b>each", "")
    assert "&lt;b&gt;" in answers._repr_html_()
    con.close()
    assert "closed" in con._repr_html_()


def test_long_tables_are_cut_and_keep_their_headings() -> None:
    cells = {"query": [f"row {i}" for i in range(90)], "value": [str(i) for i in range(90)]}
    lines = text_table(cells, left=("query",), headings={0: "first", 60: "second"}, limit=40).splitlines()
    assert len(lines) < 50 and lines[-1] == "90 rows, of which 40 are shown"
    assert lines[1] == "first" and lines[lines.index("…") + 1] == "second"
    assert cut_inside("abcdefghij", 5) == "ab…ij"
