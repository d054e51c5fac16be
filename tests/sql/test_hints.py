"""A hint that prints a line for the policy can be followed to the letter: the query then gets further."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import duckdb
import pytest
import tacit
from tacit.errors import DomainError, UnknownNameError
from tacit.sql import compile_batch

DATABASE = """
CREATE TYPE mood AS ENUM ('ok', 'sad');
CREATE TABLE visits (
    vid INTEGER, pid INTEGER NOT NULL, hid INTEGER, code VARCHAR, nights INTEGER, tiny TINYINT, cost DOUBLE,
    price DECIMAL(8, 2), share DECIMAL(2, 2), day DATE, seen TIMESTAMP, clock TIME, mood mood,
    "odd ""name" INTEGER
);
CREATE TABLE patients (pid INTEGER NOT NULL, born INTEGER, city VARCHAR);
CREATE TABLE codes (code VARCHAR, chapter VARCHAR, n INTEGER, w DOUBLE);
INSERT INTO codes VALUES ('A', 'x', 1, 1.5), ('B', 'y', 2, 2.5);
CREATE VIEW recent AS SELECT *, nights + 1 AS more FROM visits WHERE vid > 3;
CREATE VIEW listed AS SELECT code, n * 2 AS n2 FROM codes;
CREATE SCHEMA s;
CREATE TABLE s."odd.t" (a INTEGER, "b.c" INTEGER);
"""
UNITS = "FROM (SELECT pid, {} AS x FROM visits GROUP BY pid)"
CODED = "FROM visits JOIN codes USING (code)"

FOLLOWED = [
    *(f"SELECT {f}({x}) FROM visits" for f in ("sum", "avg", "median") for x in ("nights", "cost", "price", "tiny")),
    *(f"SELECT {f}(seen), {f}(day) FROM visits" for f in ("median", "max")),
    *(
        f"SELECT {x}, count(*) FROM visits GROUP BY {x}"
        for x in ("hid", "code", "cost", "price", "share", "day", "seen", "mood", "tiny", '"odd ""name"')
    ),
    *(
        f"SELECT {x}, count(*) FROM visits GROUP BY 1"
        for x in (
            "nights % 7", "upper(code)", "length(code)", "code || mood", "date_trunc('month', day)",
            "CAST(seen AS DATE)", "hour(seen)", "extract(year FROM seen)", "sqrt(cost)",
            "floor(cost / 10)", "round(price, 1)",
        )
    ),
    *(
        f"SELECT sum({x}) FROM visits"
        for x in ("nights % 7", "nights * cost", "length(code)", "year(seen)", "month(day)", "sqrt(nights)")
    ),
    "SELECT mode(code), mode(seen) FROM visits",
    "SELECT count(*), sum(DISTINCT hid) FROM visits",
    "SELECT code, count(DISTINCT hid) FROM visits GROUP BY code",
    f"SELECT chapter, sum(n), median(w) {CODED} GROUP BY chapter",
    f"SELECT sum(nights * n), sum(DISTINCT n) {CODED}",
    f"SELECT visits.code || chapter, count(*) {CODED} GROUP BY 1",
    f"SELECT chapter, sum(x) FROM (SELECT pid, chapter, max(n) AS x {CODED} GROUP BY pid, chapter) GROUP BY chapter",
    "SELECT city, sum(born) FROM visits JOIN patients USING (pid) GROUP BY city",
    *(f"SELECT sum(x), median(x) {UNITS.format(x)}" for x in ("max(nights)", "sum(cost)", "avg(hid * 2)")),
    *(
        f"SELECT x, count(*) {UNITS.format(x)} GROUP BY x"
        for x in ("max(code)", "min(day)", "any_value(seen)", "max(nights)", "max(upper(code))")
    ),
    "SELECT sum(more), median(nights) FROM recent",
    "SELECT more, code, count(*) FROM recent GROUP BY more, code",
    'SELECT "b.c", sum(a) FROM s."odd.t" GROUP BY 1',
]  # fmt: skip

OTHERS = [
    ("SELECT sum(n2 / (n2 - 3)) FROM visits JOIN listed USING (code)", "greatest(0, least(100, …))"),
    ("SELECT clock, count(*) FROM visits GROUP BY clock", "an expression of another type"),
    ("SELECT pid, count(*) FROM visits GROUP BY pid", "group by it in a derived table"),
    (f"SELECT x, count(*) {UNITS.format('max(pid)')} GROUP BY x", "group by it in a derived table"),
]  # fmt: skip
"""Refusals that no declaration helps, and what they say instead."""


def _policy() -> dict[str, Any]:
    visits, patients = ({"privacy_unit": "pid", "max_rows_per_unit": rows} for rows in (10, 1))
    tables = {"visits": visits, "patients": patients, "codes": {"public": True}, "recent": {}, "listed": {}}
    return {"budget": {"epsilon": 10}, "tables": {**tables, 's."odd.t"': {}}}


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(DATABASE)
    return connection


def _refusal(database: duckdb.DuckDBPyConnection, policy: dict[str, Any], sql: str) -> DomainError | None:
    with tacit.connect(database, policy=policy) as con:
        try:
            compile_batch(sql, con.catalog, None)
        except DomainError as error:
            return error
    return None


def _followed(policy: dict[str, Any], hint: str) -> dict[str, Any]:
    found = re.search(r"under (\[tables\..*\.columns\]): (.*?)(?:; or find it privately.*)?$", hint)
    assert found is not None, hint
    ((table, added),) = tomllib.loads(f"{found[1]}\n{found[2]}")["tables"].items()
    tables = policy["tables"]
    before = tables[table]  # the policy has this table: a line for any other would not help
    columns = {**before.get("columns", {}), **added["columns"]}
    return {**policy, "tables": {**tables, table: {**before, "columns": columns}}}


@pytest.mark.parametrize("sql", FOLLOWED)
def test_a_line_for_the_policy_can_be_added_as_it_stands(database: duckdb.DuckDBPyConnection, sql: str) -> None:
    policy, refusal, said = _policy(), None, set[str]()
    while (refusal := _refusal(database, policy, sql)) is not None:
        assert refusal.hint not in said, "the hint was followed, and the refusal is the same"
        said.add(refusal.hint)
        policy = _followed(policy, refusal.hint)
    assert said or "GROUP BY 1" not in sql


def test_columns_of_public_tables_need_no_line(database: duckdb.DuckDBPyConnection) -> None:
    for sql in (
        "SELECT sum(n2) FROM visits JOIN listed USING (code)",
        "SELECT median(z) FROM visits JOIN (SELECT code, w + 1 AS z FROM codes) USING (code)",
    ):
        assert _refusal(database, _policy(), sql) is None


@pytest.mark.parametrize(("sql", "hint"), OTHERS)
def test_what_no_line_can_help_prints_none(database: duckdb.DuckDBPyConnection, sql: str, hint: str) -> None:
    refusal = _refusal(database, _policy(), sql)
    assert refusal is not None and hint in refusal.hint and "policy" not in refusal.hint


def test_the_range_can_be_written_into_the_query(database: duckdb.DuckDBPyConnection) -> None:
    for sql in (
        "SELECT sum(greatest(0, least(100, n2))) FROM visits JOIN listed USING (code)",
        "SELECT avg(least(100, greatest(0, hid))), median(greatest(0, least(100, cost))) FROM visits",
    ):
        assert _refusal(database, _policy(), sql) is None
    open_ended = _refusal(database, _policy(), "SELECT sum(greatest(0, hid)) FROM visits")
    nullable = _refusal(database, _policy(), "SELECT sum(greatest(0, least(tiny, hid))) FROM visits")
    assert open_ended is not None and nullable is not None


def test_a_column_behind_a_derived_table_is_found() -> None:
    connection = duckdb.connect()
    connection.execute(
        DATABASE + "INSERT INTO visits (pid, hid, code) SELECT r, r % 4, 'A' FROM range(4000) AS rows(r)"
    )
    policy = {**_policy(), "budget": {"epsilon": 100, "delta": 1e-3}}
    with tacit.connect(connection, policy=policy) as con:
        codes = con.answer(
            f"SELECT x, count(*) {UNITS.format('max(code)')} GROUP BY x", epsilon=10, delta=1e-6, discover=True
        )
        con.answer("SELECT sum(DISTINCT hid) FROM visits", epsilon=10, discover=True)
    assert "A" in list(codes[0].df["x"])


def test_a_cte_is_suggested_only_where_its_name_would_do(database: duckdb.DuckDBPyConnection) -> None:
    hints = {
        "SELECT count(*) FROM odl": "did you mean old?",
        "SELECT count(*) FROM main.old": "write old alone",
        "SELECT count(*) FROM main.odl": "there are",
        "SELECT count(*) FROM elsewhere.main.visits": "write visits alone",
    }
    with tacit.connect(database, policy=_policy()) as con:
        for sql, hint in hints.items():
            with pytest.raises(UnknownNameError) as caught:
                con.explain(f"WITH old AS (SELECT * FROM visits) {sql}", epsilon=1)
            assert hint in caught.value.hint
