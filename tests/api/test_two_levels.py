"""Tables of one row for each unit, and statements over what was released: what they cost and how exact they are."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
import tacit
import tacit.testing
from tacit import Connection

POLICY = {
    "budget": {"epsilon": 1000.0, "delta": 1e-5},
    "tables": {
        "visits": {
            "privacy_unit": "pid",
            "max_rows_per_unit": 50,
            "columns": {"cost": {"min": 0, "max": 100}, "dept": {"values": ["a", "b", "c"], "not_null": True}},
        },
        "lines": {"privacy_unit": "vid -> visits.pid", "max_rows_per_unit": 100},
        "wards": {"public": True},
    },
}


@pytest.fixture(scope="module")
def con() -> Iterator[Connection]:
    db = duckdb.connect()
    db.execute(
        """CREATE TABLE visits AS SELECT i AS vid, i % 400 AS pid, (i * 7 % 100)::DOUBLE AS cost,
        ['a', 'b', 'c'][1 + i % 3] AS dept FROM range(2000) AS r(i);
        CREATE TABLE lines AS SELECT i AS lid, i % 2500 AS vid FROM range(4000) AS r(i);
        CREATE TABLE wards AS SELECT * FROM (VALUES ('a', 'north', 10), ('b', 'south', 20)) AS w(dept, wing, beds)"""
    )
    with tacit.connect(db, policy=POLICY) as opened:
        yield opened


def stderr(con: Connection, sql: str, **options: float) -> float:
    return float(con.explain(sql, epsilon=0.01, refresh=True, **options).df()["stderr"].iloc[0])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT pid) FROM visits WHERE cost > 50",
        "SELECT count(*) FROM (SELECT pid FROM visits GROUP BY pid HAVING count(*) >= 3)",
    ],
)
def test_a_count_of_units_has_the_noise_of_one_row(con: Connection, sql: str) -> None:
    rows = stderr(con, "SELECT count(*) FROM visits WHERE cost > 50")
    assert stderr(con, sql) == pytest.approx(rows / 50, rel=1e-3)


def test_distinct_values_have_the_noise_of_a_unit_s_rows(con: Connection) -> None:
    rows = stderr(con, "SELECT count(*) FROM visits WHERE cost > 50")
    assert stderr(con, "SELECT count(DISTINCT cost) FROM visits") == pytest.approx(rows, rel=1e-3)


def test_a_unit_is_reached_by_keys(con: Connection) -> None:
    (frame,) = tacit.testing.exact_answers(con, "SELECT count(*) FROM lines")
    assert frame.iloc[0, 0] == 3500, "lines of visits that are not there belong to nobody"
    charge = con.explain("SELECT count(*) FROM lines", epsilon=1)
    assert charge.df()["stderr"].iloc[0] == pytest.approx(np.sqrt(2) * 100, rel=0.01)


def test_the_simulated_error_is_that_of_the_answers(con: Connection) -> None:
    sql = "SELECT max(n) - min(n) AS gap FROM (SELECT dept, count(*) AS n FROM visits WHERE dept <> 'a' GROUP BY dept)"
    answers = [con.answer(sql, epsilon=2, refresh=True)[0] for _ in range(3)]
    promised = answers[0].figures[0].stderr[0]
    assert answers[0].notes[0] == ("computed from released values: its error is simulated",)
    assert np.isfinite(promised) and promised > 0
    exact = tacit.testing.exact_answers(con, sql)[0].iloc[0, 0]
    assert exact == 1.0


def test_a_projection_of_released_groups_keeps_its_error_bars(con: Connection) -> None:
    plain = con.explain("SELECT dept, count(*) AS n FROM visits GROUP BY dept", epsilon=1).df()
    outer = con.explain("SELECT dept, n FROM (SELECT dept, count(*) AS n FROM visits GROUP BY dept)", epsilon=1).df()
    np.testing.assert_allclose(outer["stderr"], plain["stderr"])


def test_public_tables_are_free_and_exact(con: Connection) -> None:
    spent = con.budget.spent
    frame = con.answer("SELECT wing, sum(beds) AS beds FROM wards GROUP BY wing ORDER BY wing")[0].df
    assert frame.values.tolist() == [["north", 10], ["south", 20]]
    assert con.budget.spent == spent


@pytest.mark.parametrize("sql", ["SELECT * FROM wards, visits", "SELECT * FROM tacit_t0", "SELECT * FROM visits"])
def test_an_analyst_s_text_meets_no_private_row(con: Connection, sql: str) -> None:
    with pytest.raises(tacit.Error):
        con.answer(sql, epsilon=1)


def test_the_same_statement_again_is_free(con: Connection) -> None:
    sql = "SELECT dept, rank() OVER (ORDER BY count(*) DESC) AS place FROM visits GROUP BY dept"
    first, again = con.answer(sql, epsilon=1), con.answer(sql, epsilon=1)
    assert first[0].df.equals(again[0].df) and not any(again.cost)
