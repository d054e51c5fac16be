"""Groups and sums of date parts and of rounded numbers, where a range is declared: as DuckDB has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import duckdb
import pytest
import tacit
from tacit.errors import DomainError
from tacit.testing import exact_answers

ROWS = """
CREATE TABLE t AS SELECT
    r AS id, TIMESTAMP '2023-12-30 22:30:00' + INTERVAL (r * 61) MINUTE AS seen, r % 7 - 3.25::DOUBLE AS x,
    (r % 90 / 10)::DECIMAL(8, 2) + 0.05 AS price, 'c' || r % 3 AS code, r % 40 AS n
FROM range(300) AS rows(r)
"""
COLUMNS = {
    "seen": {"min": datetime(2023, 12, 30, 22, 30), "max": datetime(2024, 1, 20)},
    "x": {"min": -3.25, "max": 3.0},
    "price": {"min": 0, "max": 9.5},
    "code": {"values": ["c0", "c1", "c2"]},
}


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(ROWS)
    return connection


@pytest.fixture(scope="module")
def con(database: duckdb.DuckDBPyConnection) -> Iterator[tacit.Connection]:
    policy = {"budget": {"epsilon": 1}, "tables": {"t": {"columns": COLUMNS}}}
    with tacit.connect(database, policy=policy) as opened:
        yield opened


@pytest.mark.parametrize(
    "key",
    [
        *(
            "CAST(seen AS DATE)",
            "seen::DATE + 1",
            "hour(seen)",
            "extract(minute FROM seen)",
            "extract(year FROM (seen))",
        ),
        *("date_trunc('month', seen)", "date_trunc('hour', seen)", "date_part('isodow', seen)", "isodow(seen)"),
        *("strftime(seen, '%Y-%m')", "strftime(seen, '%-d %H%%')", "dayname(seen)", "year(seen) * 100 + month(seen)"),
        *("CASE WHEN hour(seen) < 12 THEN 'am' ELSE dayname(seen) END", "last_day(seen)"),
        *("floor(x / 2) * 2", "round(x, 1)", "round(x)", "ceil(x)", "trunc(x)", "CAST(x AS INTEGER)"),
        *("round(price, 1)", "floor(price)", "round(price, -1)", "round(floor(price / 2) * 2)"),
    ],
)
def test_groups(database: duckdb.DuckDBPyConnection, con: tacit.Connection, key: str) -> None:
    sql = f"SELECT {key} AS k, count(*) AS n FROM t GROUP BY k ORDER BY ALL"
    (ours,) = exact_answers(con, sql)
    theirs = database.cursor().execute(sql).df()
    held = ours[ours["n"] > 0].astype({"n": int})
    assert held["k"].tolist() == theirs["k"].tolist() and held["n"].tolist() == theirs["n"].tolist()


@pytest.mark.parametrize(
    "value",
    [
        *("hour(seen)", "year(seen)", "length(code)", "round(x)", "floor(x / 2) * 2 + 1"),
        *("greatest(0, least(n, 100))", "least(50, greatest(n, -1, x))", "greatest(-9, least(9, NULL, x))"),
    ],
)
def test_sums(database: duckdb.DuckDBPyConnection, con: tacit.Connection, value: str) -> None:
    sql = f"SELECT sum({value}) AS total FROM t"
    ((theirs,),) = database.cursor().execute(sql).fetchall()
    assert exact_answers(con, sql)[0]["total"].tolist() == [pytest.approx(float(theirs), rel=1e-6)]


@pytest.mark.parametrize(
    "key", ["second(seen)", "seen", "x // 2", "seen + INTERVAL 1 DAY", "date_trunc('second', seen)", "x", "round(x, 9)"]
)
def test_what_is_too_fine_to_list(con: tacit.Connection, key: str) -> None:
    with pytest.raises(DomainError):
        exact_answers(con, f"SELECT {key}, count(*) FROM t GROUP BY 1")
