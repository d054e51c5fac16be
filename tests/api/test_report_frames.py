"""Frames for a report: keys, figures and errors together; intervals that hold all at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tacit import Connection
from tacit.simultaneous import Simultaneous, figure_count


def test_keys_figures_and_errors_stand_in_one_frame(con: Connection) -> None:
    sql = "SELECT state, sex, count(*) AS n, avg(cost) AS mean FROM visits GROUP BY CUBE (state, sex) ORDER BY n DESC"
    answer = con.answer(sql, epsilon=5)[0]
    frame, plain = answer.df_with_errors, answer.df
    assert list(frame.columns)[:6] == ["state", "sex", "n", "n_stderr", "n_low", "n_high"]
    assert list(frame.columns)[6:10] == ["mean", "mean_stderr", "mean_low", "mean_high"]
    assert frame["n"].equals(plain["n"]) and frame["state"].notna().all()
    assert frame.iloc[0][["state", "sex"]].tolist() == ["(all)", "(all)"]
    of_keys = frame.groupby(["state", "sex"])["n"].sum()
    assert len(of_keys) == len(frame), "every row has keys of its own: a total is not NULL"
    states = ["NY", "NJ", "CA", "WA", "other", "NULL"]
    assert of_keys["(all)", "NULL"] == pytest.approx(sum(of_keys[s, "NULL"] for s in states))
    assert plain["state"].isna().any(), "df stays what DuckDB returns"


def test_keys_without_totals_and_nulls_keep_their_type(con: Connection) -> None:
    answers = con.answer(
        [
            "SELECT age, count(*) AS n FROM visits GROUP BY age",
            "SELECT sex, count(*) FROM visits GROUP BY sex UNION ALL SELECT NULL, count(*) FROM visits",
            "SELECT avg(n) AS mean FROM (SELECT sex, count(*) AS n FROM visits GROUP BY sex)",
        ],
        epsilon=1,
        plan_seconds=0.1,
    )
    with_null = answers[0].df_with_errors["age"]
    assert with_null.tolist()[:2] == ["0", "1"] and with_null.iloc[-1] == "NULL"
    assert answers[1].df_with_errors["sex"].tolist() == ["False", "True", "NULL", "(all)"]
    assert list(answers[2].df_with_errors.columns) == ["mean", "mean_stderr", "mean_low", "mean_high", "note"]


def test_simultaneous_intervals_hold_all_at_once_and_single_ones_do_not(con: Connection) -> None:
    """On draws of the noise that the plan states: 30 ranges, at a confidence of 90%."""
    batch = [f"SELECT count(*) FROM visits WHERE age BETWEEN {i} AND {i + 20}" for i in range(0, 60, 2)]
    plan = con.explain(batch, epsilon=1, confidence=0.9)
    assert plan.what_if is not None
    (spread,) = plan.what_if.predicted.spreads
    generator = np.random.default_rng(5)
    noise = spread.laplace @ generator.laplace(size=(spread.laplace.shape[1], 4000))  # type: ignore[union-attr]
    errors = np.abs(noise)
    frame = plan.df(simultaneous=True)
    single, joint = frame["half_width"].to_numpy(), frame["half_width_all"].to_numpy()
    held = (errors <= joint[:, None]).all(axis=0).mean()
    assert 0.89 <= held < 1.0
    assert (errors <= single[:, None]).all(axis=0).mean() < 0.6


def test_simultaneous_columns_stand_beside_the_single_ones(con: Connection) -> None:
    batch = [
        "SELECT state, count(*) AS n, avg(cost) AS mean FROM visits GROUP BY state ORDER BY n DESC LIMIT 2",
        "SELECT count(*) FROM hospitals",
        "SELECT max(n) FROM (SELECT state, count(*) AS n FROM visits GROUP BY state)",
        "SELECT median(sex::INTEGER) FROM visits",
    ]
    answers = con.answer(batch, epsilon=2)
    frame = answers.df(simultaneous=True)
    known = frame["query"] != 2
    assert frame.loc[~known, ["low_all", "high_all"]].isna().all(axis=None)
    assert (frame["low_all"] <= frame["low"])[known].all() and (frame["high"] <= frame["high_all"])[known].all()
    assert (frame["high_all"] > frame["high"])[frame["query"] == 0].all()
    assert frame.loc[frame["query"] == 1, ["low_all", "high_all"]].to_numpy().tolist() == [[1.0, 1.0]]
    assert answers[0].with_errors(simultaneous=True)["n_low_all"].tolist() == frame["low_all"].tolist()[:2]
    pd.testing.assert_frame_equal(frame.drop(columns=["low_all", "high_all"]), answers.df())


def test_figures_are_counted_before_a_limit_chooses_and_once_each(con: Connection) -> None:
    batch = [
        "SELECT state, count(*) FROM visits GROUP BY state LIMIT 1",
        "SELECT state, count(*) FROM visits GROUP BY 1",
    ]
    plan = con.explain([*batch, "SELECT avg(cost) FROM visits", "SELECT count(*) FROM hospitals"], epsilon=1)
    assert plan.what_if is not None
    assert figure_count(plan.queries, plan.stderr) == 6 + 1
    assert Simultaneous(plan.queries, plan.what_if.predicted, 0.93).each == pytest.approx(0.99)
