"""Frames: named, ordered and typed as DuckDB's own, and honest about their error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import tacit
from tacit import Connection
from tacit.sql.names import numbered

Connect = Callable[..., Connection]

QUERIES = [
    "SELECT count(*) FROM visits",
    "SELECT count(*), count(*) FROM visits",
    "SELECT count(age) FROM visits WHERE state = 'NY'",
    "SELECT count(*) AS n, sum(cost) AS total, avg(cost) FROM visits WHERE age BETWEEN 10 AND 65",
    "SELECT sum(age) FROM visits",
    'SELECT count(*) AS "a b", count(*) AS "A B" FROM visits',
    "SELECT ward, count(*) FROM visits GROUP BY ward",
    "SELECT count(*) AS n, sex FROM visits GROUP BY sex",
    "SELECT sex, ward, sex, avg(cost) AS x, count(*) AS x FROM visits GROUP BY sex, ward",
]


def _own(path: Path, sql: str) -> pd.DataFrame:
    with duckdb.connect(str(path), read_only=True) as raw:
        return raw.execute(sql).df()


@pytest.mark.parametrize("sql", QUERIES)
def test_names_order_and_key_dtypes_are_duckdbs(sql: str, con: Connection, clinic: Path) -> None:
    ours = con.answer(sql, epsilon=1.0)[0].df
    con.close()
    theirs = _own(clinic, sql)
    assert list(ours.columns) == list(theirs.columns)
    assert len(ours) == len(theirs), "the test data has every group"
    for position, dtype in enumerate(theirs.dtypes):
        mine = ours.dtypes.iloc[position]
        if ours.columns[position] in ("ward", "sex", "sex_1"):
            assert mine == dtype
        else:
            assert mine == np.float64


@pytest.mark.parametrize(
    "names", [["x", "x", "x", "x_1"], ["x", "x_1", "x"], ["a", "A", "a_1", "a"], ["x", "y"], ["Ä", "ä"]]
)
def test_repeated_names_as_in_duckdb(names: list[str]) -> None:
    with duckdb.connect() as raw:
        frame = raw.execute("SELECT " + ", ".join(f'1 AS "{name}"' for name in names)).df()
    assert numbered(names) == tuple(frame.columns)


def test_every_group_comes_back(con: Connection) -> None:
    frame = con.answer("SELECT state, count(*) AS n FROM visits WHERE age < 1 GROUP BY state", epsilon=1)[0].df
    assert frame["state"].tolist()[:5] == ["NY", "NJ", "CA", "WA", "other"]
    assert pd.isna(frame["state"].iloc[5])


def test_answers_add_up(con: Connection, batch: list[str]) -> None:
    a, b, c = (answer.df.iloc[0, 0] for answer in con.answer(batch, epsilon=0.5))
    assert abs(a - b - c) < 1e-9


def test_long_frame(con: Connection) -> None:
    answers = con.answer(
        ["SELECT count(*) AS n, avg(cost) AS mean FROM visits", "SELECT sex, count(*) AS n FROM visits GROUP BY sex"],
        epsilon=2,
        confidence=0.9,
    )
    frame = answers.df()
    assert list(frame.columns) == ["query", "text", "group", "column", "value", "stderr", "low", "high", "note"]
    assert frame["query"].tolist() == [0, 0, 1, 1, 1]
    assert frame["group"].tolist() == ["", "", "sex=False", "sex=True", "sex=NULL"]
    assert frame["column"].tolist() == ["n", "mean", "n", "n", "n"]
    assert frame["value"].tolist()[2:] == answers[1].df["n"].tolist()
    assert (frame["stderr"] > 0).all()
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["value"] <= frame["high"]).all()
    mean = frame.iloc[1]
    assert mean["low"] >= 0
    assert mean["high"] <= 1000


def test_answers_is_a_sequence(con: Connection, batch: list[str]) -> None:
    answers = con.answer(batch, epsilon=0.5)
    assert len(answers) == 3
    assert [a.sql for a in answers] == batch
    assert answers[-1].sql == batch[2]
    assert len(answers[:2]) == 2
    with pytest.raises(IndexError):
        answers[3]
    assert float(answers.epsilon) == float(answers.cost.epsilon) == 0.5
    assert "3 queries" in repr(answers)
    assert "n" in str(answers)
    assert str(answers[1])


def test_frames_are_fresh(con: Connection) -> None:
    answer = con.answer("SELECT state, count(*) AS n FROM visits GROUP BY state", epsilon=0.5)[0]
    frame = answer.df
    kept = frame.copy()
    frame.iloc[0, 0] = "XX"
    frame.iloc[0, 1] = -1e9
    pd.testing.assert_frame_equal(answer.df, kept)


def test_intervals_hold_the_exact_answer(con: Connection) -> None:
    batch = [f"SELECT count(*) FROM visits WHERE age < {i}" for i in range(5, 95, 5)]
    batch += ["SELECT sum(cost) FROM visits", "SELECT avg(cost) FROM visits WHERE age < 50"]
    frame = con.answer(batch, epsilon=1, confidence=0.999999).df()
    exact = [f.iloc[0, 0] for f in tacit.testing.exact_answers(con, batch)]
    assert ((frame["low"] <= exact) & (exact <= frame["high"])).all()


def test_an_error_is_not_promised_of_what_is_never_negative(con: Connection) -> None:
    """Cut off at zero, many small counts add up to more than their sum errs."""
    with pytest.raises(tacit.ProgrammingError, match="cannot be promised with nonnegative=True"):
        con.answer("SELECT count(*) FROM visits", error=10, nonnegative=True)
    assert con.budget.spent.epsilon == 0


@pytest.mark.filterwarnings("error")
def test_noise_that_is_mostly_zero_is_not_called_none(connect: Connect, policy: dict[str, Any]) -> None:
    """At ε = 12 a count is exact but once in 80,000 times; no simulation of a few hundred draws shows that."""
    policy["budget"] = {"epsilon": 30.0}
    batch = [
        "SELECT state, count(*) FROM visits GROUP BY state",
        "SELECT 100.0 * count(*) FILTER (WHERE state = 'NY') / count(*) FROM visits",
    ]
    with connect(policy=policy) as con:
        figures = con.answer(batch, epsilon=12, nonnegative=True).df()
    assert (figures["stderr"] > 0).all()
    assert figures[["low", "high"]].notna().all(axis=None)
    assert (figures["low"] <= figures["value"]).all() and (figures["value"] <= figures["high"]).all()


def test_nonnegative(con: Connection) -> None:
    batch = [f"SELECT count(*) FROM visits WHERE age = {i}" for i in range(100, 140)]
    plain = con.answer(batch, epsilon=0.1).df()
    assert (plain["value"] < 0).any(), "forty empty cells"
    fitted = con.answer(batch, epsilon=0.1, nonnegative=True)
    assert not any(fitted.cost), "post-processing of the same release"
    assert (fitted.df()["value"] >= 0).all()


def test_explain_predicts_and_compares(con: Connection, batch: list[str]) -> None:
    plan = con.explain([*batch, "SELECT avg(cost) FROM visits"], epsilon=0.5)
    frame = plan.df()
    assert list(frame.columns) == [
        *("query", "text", "group", "column", "stderr", "half_width", "split", "results", "histogram", "note")
    ]
    assert frame["stderr"].notna().tolist() == [True, True, True, False]
    assert "AVG" in frame["note"].iloc[3]
    assert plan.lower_bound <= plan.error * (1 + 1e-9)
    assert plan.gap >= -1e-9
    assert set(plan.alternatives) == {"split", "results", "histogram"}
    assert all(other >= plan.error * (1 - 1e-3) for other in plan.alternatives.values())
    assert float(plan.cost.epsilon) == 0.5
    text = plan.text(all=True)
    assert plan.strategy in text
    assert "costs ε=0.5" in text
    assert "4 queries" in repr(plan)


def test_explain_and_answer_agree(con: Connection, batch: list[str]) -> None:
    plan = con.explain(batch, epsilon=0.5, confidence=0.9).df()
    frame = con.answer(batch, epsilon=0.5, confidence=0.9).df()
    np.testing.assert_allclose(plan["stderr"], frame["stderr"], rtol=1e-6)
    np.testing.assert_allclose(plan["half_width"], (frame["high"] - frame["low"]) / 2, rtol=1e-3)
    again = con.explain(batch, epsilon=0.5)
    assert not any(again.cost)
    assert "costs nothing" in str(again)


def test_error_in_place_of_epsilon(con: Connection, batch: list[str]) -> None:
    plan = con.explain(batch, error=20, confidence=0.9)
    assert (plan.half_width <= 20).all()
    assert plan.half_width.max() > 19
    frame = con.answer(batch, error=20, confidence=0.9).df()
    assert ((frame["high"] - frame["low"]) / 2 <= 20 * (1 + 1e-6)).all()
    assert con.budget.spent.epsilon == plan.epsilon
    con.answer(batch, error=25, confidence=0.9)
    assert con.budget.spent.epsilon == plan.epsilon, "a coarser one is there already"


def test_weights_move_error_to_where_it_matters_less(con: Connection) -> None:
    batch = [f"SELECT count(*) FROM visits WHERE {where}" for where in ("state = 'NY'", "age < 40", "sex")]
    even = con.explain(batch, epsilon=1).stderr
    tilted = con.explain(batch, epsilon=1, weights=[1, 10_000, 1]).stderr
    assert tilted[1] < even[1]


def test_strategy_by_name(con: Connection, batch: list[str]) -> None:
    assert con.explain(batch, epsilon=1, strategy="identity").strategy == "identity"
    con.answer(batch, epsilon=1)
    forced = con.answer(batch, epsilon=1, strategy="results")
    assert forced.strategy == "results"
    assert any(forced.cost), "another strategy's release does not stand in for it"


def test_free_batches(connect: Connect) -> None:
    con = connect(policy=None)
    for sql in ("SELECT count(*) FROM visits WHERE false", "SELECT count(*) FROM visits WHERE age < 3 AND age > 3"):
        answers = con.answer(sql)
        assert answers[0].df.iloc[0, 0] == 0
        assert not any(answers.cost)
        assert "free" in str(con.explain(sql))


def test_public_tables_are_free_and_exact(con: Connection) -> None:
    alone = con.answer("SELECT count(*) AS n FROM hospitals WHERE id > 0")
    assert alone.df()[["value", "stderr", "low", "high"]].values.tolist() == [[1, 0, 1, 1]]
    assert con.budget.spent.epsilon == 0
    both = con.answer(["SELECT count(*) FROM hospitals", "SELECT count(*) FROM visits"], epsilon=1e-6)
    assert both[0].df.iloc[0, 0] == 1
    assert both[1].df.iloc[0, 0] != 400
    assert both.df()["stderr"][1] == pytest.approx(con.explain("SELECT count(*) FROM visits", epsilon=1e-6).stderr[0])


LABELLED = [
    "SELECT state, sex, count(*) FROM visits GROUP BY CUBE (state, sex)",
    "SELECT state, sex, count(*) FROM visits GROUP BY ROLLUP (state, sex) ORDER BY 3 DESC",
    "SELECT sex, count(*) FROM visits GROUP BY GROUPING SETS ((sex), ())",
    "SELECT sex, count(*) FROM visits GROUP BY sex UNION ALL SELECT NULL, count(*) FROM visits "
    "UNION ALL SELECT sex, count(*) FROM visits GROUP BY CUBE (sex)",
    "SELECT count(*) FROM visits UNION ALL SELECT count(*) FROM labs",
]


@pytest.mark.parametrize("sql", LABELLED)
def test_no_two_rows_of_a_query_have_one_label(con: Connection, sql: str) -> None:
    for frame in (con.explain(sql, epsilon=1).df(), con.answer(sql, epsilon=1).df()):
        assert frame["group"].is_unique
        assert frame["group"].ne("").all()


def test_a_subtotal_is_not_labelled_as_the_group_of_nulls(con: Connection) -> None:
    frame = con.answer("SELECT sex, count(*) AS n FROM visits GROUP BY CUBE (sex)", epsilon=5).df()
    assert frame["group"].tolist() == ["sex=False", "sex=True", "sex=NULL", "(all)"]
    assert frame["value"].iloc[-1] == pytest.approx(frame["value"].iloc[:-1].sum())


def test_labels_of_values_that_look_like_something_else(connect: Connect, policy: dict[str, Any]) -> None:
    policy["tables"]["visits"]["columns"]["state"] = {"values": ["NULL", "", "a, sex=NULL", "'a'", "plain one"]}
    plan = connect(policy=policy).explain("SELECT state, count(*) FROM visits GROUP BY state", epsilon=1)
    assert [label.removeprefix("state=") for label in plan.df()["group"]] == [
        *("'NULL'", "''", "'a, sex=NULL'", "'''a'''", "plain one", "NULL")
    ]


def test_an_average_over_no_rows_is_marked(con: Connection) -> None:
    """As SQL has NULL for it; the count is noise around zero, so about every second one is at most zero."""
    rows = "FROM visits WHERE patient_id > 5000 GROUP BY age"
    answers = con.answer(
        [f"SELECT age, count(cost) AS n, avg(cost) AS m, round(avg(cost)) AS r {rows} ORDER BY m"], epsilon=1
    )
    frame, long = answers[0].df, answers.df()
    empty = frame["n"] <= 0
    assert empty.any() and not empty.all()
    assert frame["m"].isna().equals(empty) and frame["r"].isna().equals(empty)
    assert [row[2] is None for row in answers[0].rows()] == empty.tolist()
    averages = long[long["column"] == "m"].reset_index(drop=True)
    assert averages["note"].str.startswith("no rows").equals(empty)
    assert averages.loc[empty, ["low", "high"]].to_numpy().tolist() == [[0.0, 1000.0]] * int(empty.sum())
    vague = (averages["low"] <= 0.0) & (averages["high"] >= 1000.0)
    assert averages["note"].ne("").equals(vague)
    assert long.loc[long["column"] == "n", "note"].eq("").all()
    assert "note" in str(answers) and "note" not in str(con.answer(QUERIES[0], epsilon=1))


def test_a_note_stays_with_its_row_in_a_union(con: Connection) -> None:
    average = "SELECT avg(cost) FROM visits WHERE age > 119"
    sql = f"SELECT count(*) FROM visits UNION ALL {average} UNION ALL SELECT 5 * count(*) FROM labs"
    frame = con.answer(sql, epsilon=1, confidence=1 - 1e-9).df()
    assert frame["note"].ne("").tolist() == [False, True, False]
    assert frame["value"].isna().tolist()[::2] == [False, False]


def test_a_label_has_the_name_that_the_analyst_wrote(connect: Connect, policy: dict[str, Any]) -> None:
    policy["tables"]["hospitals"]["columns"] = {"name": {"values": ["General"]}}
    sql = "SELECT name, count(*) FROM visits JOIN hospitals ON patient_id = hospitals.id GROUP BY name"
    assert connect(policy=policy).explain(sql, epsilon=1).df()["group"].tolist() == ["name=General", "name=NULL"]


def test_a_computed_key_goes_by_its_name_in_the_select(con: Connection) -> None:
    named, bare = con.answer(
        [
            "SELECT age // 50 AS half, count(*) FROM visits GROUP BY half",
            "SELECT age // 50, count(*) FROM visits GROUP BY 1",
        ],
        epsilon=1,
    )
    assert named.labels == ("half=0", "half=1", "half=2", "half=NULL")
    assert bare.labels[0] == f"{bare.names[0]}=0"


class Printer:
    """The part of IPython's printer that is called."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, text: str) -> None:
        self.said += text


def test_prompts_show_figures_and_budgets(con: Connection) -> None:
    """What a prompt echoes: Python's is ``repr``, IPython's ``_repr_pretty_`` where there is one."""
    answers = con.answer("SELECT count(*) AS n FROM visits", epsilon=0.1)
    figure = f"{answers[0].df['n'][0]:,.0f}"
    assert figure in repr(answers) and repr(answers) == str(answers)
    assert answers[0].df.to_string(index=False) in repr(answers[0])
    assert repr(con.budget) == f"<Budget: {con.budget}>"
    for shown, words in ((con, str(con.budget)), (con.explain("SELECT count(*) FROM visits", epsilon=0.1), "already")):
        printer = Printer()
        shown._repr_pretty_(printer, False)
        assert words in printer.said and max(map(len, printer.said.splitlines())) <= 100


def test_a_long_release_is_cut_at_the_prompt_and_not_in_print(con: Connection) -> None:
    answers = con.answer([f"SELECT count(*) FROM visits WHERE age < {i}" for i in range(40)], epsilon=0.1)
    assert "… and 10 queries more" in repr(answers) and "39: " in str(answers) and "39: " not in repr(answers)
