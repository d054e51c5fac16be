"""Views of PostgreSQL: those that mean the same in DuckDB are read, the others are refused when a query uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import tacit
import tacit.testing

SCHEMA = """
CREATE TYPE mood AS ENUM ('ok', 'sad');
CREATE TABLE t (k int, x float8, n numeric(8, 2), s text, v varchar(9), c char(3), d date, ts timestamp, p bool,
    m mood);
INSERT INTO t SELECT r % 7, r / 3.0, r / 4.0, (ARRAY['NY', 'NJ', 'a', NULL])[1 + r % 4],
    (ARRAY['NY', 'NJ', ''])[1 + r % 3], (ARRAY['a', 'ab', NULL])[1 + r % 3], date '2024-01-01' + r % 50,
    timestamp '2024-01-01' + r % 50 * interval '1 hour', r % 2 = 0, (ARRAY['ok', 'sad'])[1 + r % 2]::mood
FROM generate_series(1, 200) AS r;
CREATE TABLE other (k int, name text);
INSERT INTO other SELECT r, chr(97 + r) FROM generate_series(0, 5) AS r;
"""
SAME = {
    "filtered": "SELECT k, x AS y, s FROM t WHERE k > 2 AND x <= 40.5",
    "listed": "SELECT k, s, v FROM t WHERE s IN ('NY', 'a') OR v IN ('NJ', '') OR v IS NULL",
    "equal": "SELECT k FROM t WHERE s = 'NY' AND v <> 'NJ'",
    "blanks": "SELECT k FROM t WHERE c = 'a  '",
    "days": "SELECT k, d FROM t WHERE d >= '2024-01-20' AND d < '2024-02-01'",
    "moments": "SELECT k FROM t WHERE ts BETWEEN '2024-01-01 05:00:00' AND '2024-01-02'",
    "negated": "SELECT k FROM t WHERE NOT (p AND k < 3) AND s IS NOT NULL",
    "computed": "SELECT k + 1 AS k, k * 2 - 3 AS twice FROM t WHERE k + 1 > 3",
    "joined": "SELECT t.k, other.name, t.s FROM t JOIN other ON t.k = other.k WHERE t.k > 1",
    "left_joined": "SELECT t.k, o.name FROM (t LEFT JOIN other AS o ON t.k = o.k) JOIN other AS p ON p.k = t.k",
    "numbers": "SELECT k FROM t WHERE k > -1 AND n > 3 AND n < 40.25 AND x <> 5 AND k IN (1, 4, -2)",
    "again": "SELECT k FROM filtered WHERE y < 20",
    "wild": "SELECT * FROM t WHERE p",
}
DIFFERENT = {
    "ordered": "SELECT k FROM t WHERE s < 'b'",
    "in_between": "SELECT k FROM t WHERE v BETWEEN 'a' AND 'b'",
    "divided": "SELECT k / 2 AS h FROM t",
    "function": "SELECT k FROM t WHERE length(s) = 2",
    "grouped": "SELECT k, count(*) AS n FROM t GROUP BY k",
    "distinct_rows": "SELECT DISTINCT k FROM t",
    "limited": "SELECT k FROM t ORDER BY k LIMIT 3",
    "liked": "SELECT k FROM t WHERE s LIKE 'N%'",
    "cast_number": "SELECT k::text AS k FROM t",
    "cast_back": "SELECT k FROM t WHERE s::int = 3",
    "nested": "SELECT k FROM (SELECT k FROM t WHERE k > 1) AS q",
    "united": "SELECT k FROM t UNION ALL SELECT k FROM other",
    "chosen": "SELECT CASE WHEN p THEN 1 ELSE 0 END AS k FROM t",
    "moods": "SELECT k FROM t WHERE m > 'ok'",
    "now": "SELECT k FROM t WHERE d < CURRENT_DATE",
    "in_query": "SELECT k FROM t WHERE k IN (SELECT k FROM other)",
    "windowed": "SELECT k, row_number() OVER () AS n FROM t",
}


@pytest.fixture(scope="module")
def url(new_database: Callable[[], str]) -> str:
    made = new_database()
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute(SCHEMA)
        for name, text in (SAME | DIFFERENT).items():
            connection.execute(f"CREATE VIEW {name} AS {text}")  # type: ignore[arg-type]
    return made


@pytest.fixture(scope="module")
def con(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tacit.Connection]:
    ledger: Path = tmp_path_factory.mktemp("views") / "ledger"
    policy = {"budget": {"epsilon": 1}, "tables": {"other": {"public": True}}}
    with tacit.connect(url, policy=policy, ledger=ledger) as connection:
        yield connection


@pytest.mark.parametrize("view", SAME)
def test_read(con: tacit.Connection, url: str, view: str) -> None:
    for sql in (f"SELECT count(*) FROM {view}", f"SELECT count(*) FROM {view} WHERE k > 3"):
        with psycopg.connect(url) as connection:
            truth = connection.execute(sql).fetchone()  # type: ignore[arg-type]
        (frame,) = tacit.testing.exact_answers(con, sql)
        assert (frame.iloc[0, 0],) == truth


@pytest.mark.parametrize("view", DIFFERENT)
def test_refused(con: tacit.Connection, view: str) -> None:
    with pytest.raises(tacit.Error, match=f"view {view} "):
        con.explain(f"SELECT count(*) FROM {view}", epsilon=0.1)
