"""What it costs that the rows are in PostgreSQL: python benchmarks/engines.py

2 million visits in a server of its own. Three scans that PostgreSQL counts by itself, each against the query that a
person would write for the same cells; and two that go the general way, an expression against the same expression in
PostgreSQL, and a bounded unit against the window function that keeps as many rows of each unit. Medians of interleaved
runs: the machine may be busy, and then it is for both. Then 20 million rows that all travel, with the memory they take.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import tacit
from tacit.sql import Scan, compile_batch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.postgres_server import server

ROWS = 2_000_000
RUNS = 5
TABLE = """
CREATE TABLE visits AS
SELECT (r * 7919 % 400009)::int AS pid, (r * 37 % 120)::int AS age, (r * 104729 % 1000003) / 7.0::float8 AS income,
       (ARRAY['NY', 'NJ', 'CA', 'WA', 'TX'])[1 + (r % 5)::int] AS state, date '2024-01-01' + (r % 700)::int AS day
FROM generate_series(1::bigint, {rows}) AS r
"""
LARGE = """
CREATE UNLOGGED TABLE visits AS
SELECT (r * 7919 % 4000037)::int AS pid, (r * 37 % 120)::int AS age, (r % 1000)::int AS day
FROM generate_series(1::bigint, {rows}) AS r
"""
LARGE_ROWS = 20_000_000
COLUMNS = {"age": {"min": 0, "max": 119}, "income": {"min": 0, "max": 150000}, "state": {"values": ["NY", "NJ", "CA"]}}


@dataclass(frozen=True)
class Case:
    name: str
    batch: str
    own: str
    """The same in PostgreSQL's words."""
    bounded: bool = False


CASES = (
    Case(
        "pushed down: 3 columns, 24 cells",
        "SELECT state, count(*) FROM visits WHERE age < 18 GROUP BY state; "
        "SELECT count(*) FROM visits WHERE income BETWEEN 10000 AND 50000",
        "SELECT state, age < 18, income BETWEEN 10000 AND 50000, count(*) FROM visits GROUP BY 1, 2, 3",
    ),
    Case(
        "pushed down: sums by 120 ages",
        "SELECT age, count(*), sum(income) FROM visits GROUP BY age",
        "SELECT age, count(*), sum(least(greatest(income, 0), 150000)) FROM visits GROUP BY age",
    ),
    Case(
        "pushed down: 1,000 ranges",
        "; ".join(f"SELECT count(*) FROM visits WHERE income < {i * 140}" for i in range(1, 1001)),
        "SELECT width_bucket(income, 140, 140000, 999), count(*) FROM visits GROUP BY 1",
    ),
    Case(
        "pushed down: 12 months by 2 ages",
        "SELECT count(*) FROM visits WHERE month(day) = 5 AND age < 18; "
        "SELECT count(*) FROM visits WHERE month(day) <= 3",
        "SELECT extract(month FROM day), age < 18, count(*) FROM visits GROUP BY 1, 2",
    ),
    Case(
        "general: an expression",
        "SELECT count(*) FROM visits WHERE age % 7 < length(state) AND age < 18",
        "SELECT age % 7 < length(state), age < 18, count(*) FROM visits GROUP BY 1, 2",
    ),
    Case(
        "general: at most 3 rows of a unit",
        "SELECT state, count(*) FROM visits WHERE age < 18 GROUP BY state",
        "SELECT state, age < 18, count(*) FROM (SELECT *, row_number() OVER (PARTITION BY pid ORDER BY "
        "md5(row(v.*)::text)) AS n FROM visits AS v) AS q WHERE n <= 3 GROUP BY 1, 2",
        bounded=True,
    ),
)


def seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def connected(url: str, folder: Path, *, bounded: bool, columns: bool = True) -> tacit.Connection:
    unit = {"privacy_unit": "pid", "max_rows_per_unit": 3} if bounded else {}
    policy = {"budget": {"epsilon": 1.0}, "tables": {"visits": {**unit, "columns": COLUMNS if columns else {}}}}
    return tacit.connect(url, policy=policy, ledger=folder / f"{bounded}.ledger")


def measure(case: Case, con: tacit.Connection, connection: psycopg.Connection[Any]) -> tuple[float, float]:
    (part,) = compile_batch(case.batch, con.catalog).tables
    scan = part.scan
    assert isinstance(scan, Scan)
    source = con._session.source
    ours, theirs = [], []
    for _ in range(RUNS):
        ours.append(seconds(lambda: source.count(scan, b"salt")))
        theirs.append(seconds(lambda: connection.execute(case.own).fetchall()))
    return statistics.median(ours), statistics.median(theirs)


def large(url: str, folder: Path, connection: psycopg.Connection[Any]) -> None:
    """Seconds and memory of a transfer that is larger than what DuckDB may hold here."""
    connection.execute("DROP TABLE visits")
    connection.execute(LARGE.format(rows=LARGE_ROWS))
    for case in CASES[-2:]:
        with connected(url, folder, bounded=case.bounded, columns=False) as con:
            sql = "SELECT count(*) FROM visits WHERE age % 2 = 1"
            (part,) = compile_batch(sql, con.catalog).tables
            scan = part.scan
            assert isinstance(scan, Scan)
            took = seconds(partial(con._session.source.count, scan, b"salt"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{case.name:36}{took:8.2f} s, the process at most {peak:,} MB")


def main() -> None:
    with (
        server() as url,
        tempfile.TemporaryDirectory() as folder,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(TABLE.format(rows=ROWS))
        connection.execute("VACUUM ANALYZE visits")
        connection.execute("SET jit = off")
        print(f"{ROWS:,} rows, medians of {RUNS} runs, seconds")
        print(f"{'':36}{'tacit':>8}{'PostgreSQL':>12}{'ratio':>8}")
        for case in CASES:
            with connected(url, Path(folder), bounded=case.bounded) as con:
                ours, theirs = measure(case, con, connection)
            print(f"{case.name:36}{ours:8.2f}{theirs:12.2f}{ours / theirs:8.2f}")
        print(f"\n{LARGE_ROWS:,} rows of three columns, the general way")
        large(url, Path(folder), connection)


if __name__ == "__main__":
    main()
