"""What it costs that the rows are in Spark: python benchmarks/spark.py [ratios] [plans] [large] [growth]

ratios: 5 million visits in parquet files, a local session with two workers. Each scan against the query that a person
would write for the same cells in Spark's own SQL; medians of interleaved runs, so a busy machine is busy for both.
plans: what Spark prints of how it counts three of them.
large: 100 million rows (``--rows``) in parquet files through local Spark, with the peak memory of Java and of Python.
growth: the same scan over 1, 2, 4, … files of a million rows, and the exponent of its seconds.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import tacit
from tacit.sql import Scan, compile_batch
from tacit.sql.backends.spark.cluster import SparkSource

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.spark_session import session

RUNS = 3
FILE = 1_000_000
VISITS = """
COPY (
    SELECT CAST(r * 7919 % 400009 AS INTEGER) AS pid, CAST(r * 37 % 120 AS INTEGER) AS age,
        (r * 104729 % 1000003) / 7.0 AS income, ['NY', 'NJ', 'CA', 'WA', 'TX'][1 + CAST(r % 5 AS INTEGER)] AS state,
        DATE '2024-01-01' + CAST(r % 700 AS INTEGER) AS day
    FROM range({first}, {last}) AS t(r)
) TO '{path}' (FORMAT parquet)
"""
COLUMNS = {"age": {"min": 0, "max": 119}, "income": {"min": 0, "max": 150000}, "state": {"values": ["NY", "NJ", "CA"]}}


@dataclass(frozen=True)
class Case:
    name: str
    batch: str
    own: str
    """The same in Spark's words."""
    bounded: bool = False


CASES = (
    Case(
        "Spark: 3 columns, 24 cells",
        "SELECT state, count(*) FROM visits WHERE age < 18 GROUP BY state; "
        "SELECT count(*) FROM visits WHERE income BETWEEN 10000 AND 50000",
        "SELECT state, age < 18, income BETWEEN 10000 AND 50000, count(*) FROM visits GROUP BY 1, 2, 3",
    ),
    Case(
        "Spark: sums by 120 ages",
        "SELECT age, count(*), sum(income) FROM visits GROUP BY age",
        "SELECT age, count(*), sum(least(greatest(income, 0), 150000)) FROM visits GROUP BY age",
    ),
    Case(
        "Spark: 1,000 ranges",
        "; ".join(f"SELECT count(*) FROM visits WHERE income < {i * 140}" for i in range(1, 1001)),
        "SELECT width_bucket(income, 140, 140000, 999), count(*) FROM visits GROUP BY 1",
    ),
    Case(
        "Spark: 12 months by 2 ages",
        "SELECT count(*) FROM visits WHERE month(day) = 5 AND age < 18; "
        "SELECT count(*) FROM visits WHERE month(day) <= 3",
        "SELECT month(day), age < 18, count(*) FROM visits GROUP BY 1, 2",
    ),
    Case(
        "workers: an expression",
        "SELECT count(*) FROM visits WHERE age % 7 < length(state) AND age < 18",
        "SELECT age % 7 < length(state), age < 18, count(*) FROM visits GROUP BY 1, 2",
    ),
    Case(
        "workers: at most 3 rows of a unit",
        "SELECT state, count(*) FROM visits WHERE age < 18 GROUP BY state",
        "SELECT state, age < 18, count(*) FROM (SELECT *, row_number() OVER (PARTITION BY pid ORDER BY "
        "xxhash64(pid, age, income, state, day)) AS n FROM visits) WHERE n <= 3 GROUP BY 1, 2",
        bounded=True,
    ),
)


def seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def write(folder: Path, files: int) -> None:
    folder.mkdir(exist_ok=True)
    with duckdb.connect() as database:
        for i in range(files):
            path = folder / f"{i:04}.parquet"
            if not path.exists():
                database.execute(VISITS.format(first=i * FILE, last=(i + 1) * FILE, path=path))


def counter(spark: Any, case: Case, folder: Path, *, explained: bool = False) -> Callable[[], Any]:
    """What counts the cells of a case; ``explained``: Spark prints its plan."""
    unit = {"privacy_unit": "pid", "max_rows_per_unit": 3} if case.bounded else {}
    policy = {"budget": {"epsilon": 1.0}, "tables": {"visits": {**unit, "columns": COLUMNS}}}
    con = tacit.connect(spark, policy=policy, ledger=folder / f"{case.bounded}.ledger")
    (part,) = compile_batch(case.batch, con.catalog).tables
    scan, source = part.scan, con._session.source
    assert isinstance(scan, Scan) and isinstance(source, SparkSource)
    if explained:
        table = source._jobs.table
        source._jobs.table = lambda frame: (frame.explain(), table(frame))[1]  # type: ignore[method-assign]
    return lambda: source.count(scan, b"salt")


def ratios(spark: Any, folder: Path) -> None:
    rows = folder / "ratios"
    write(rows, 5)
    spark.read.parquet(str(rows)).createOrReplaceTempView("visits")
    print(f"{5 * FILE:,} rows, medians of {RUNS} runs, seconds")
    print(f"{'':36}{'tacit':>8}{'Spark':>8}{'ratio':>8}")
    for case in CASES:
        count = counter(spark, case, folder)
        count()
        spark.sql(case.own).collect()
        ours, theirs = [], []
        for _ in range(RUNS):
            ours.append(seconds(count))
            theirs.append(seconds(lambda: spark.sql(case.own).collect()))  # noqa: B023
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"{case.name:36}{a:8.2f}{b:8.2f}{a / b:8.2f}", flush=True)


def plans(spark: Any, folder: Path) -> None:
    rows = folder / "ratios"
    write(rows, 5)
    spark.read.parquet(str(rows)).createOrReplaceTempView("visits")
    for case in (CASES[0], *CASES[-2:]):
        print(case.name)
        counter(spark, case, folder, explained=True)()


class Peak:
    """The most memory that this process's children of a kind have held, in MB, looked at four times a second."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.25):
            for kind, size in _resident().items():
                self.most[kind] = max(self.most.get(kind, 0), size)


def _resident() -> dict[str, int]:
    """Resident MB of this process and its descendants: Java's, and all of Python's together."""
    parents: dict[int, tuple[int, str, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition(") ")
            fields = rest.split()
            parents[int(stat.parent.name)] = (int(fields[1]), name.partition("(")[2], int(fields[21]) * 4096)
        except OSError:
            continue
    import os

    own, sizes = {os.getpid()}, {"java": 0, "python": 0}
    for _ in range(6):
        own |= {pid for pid, (parent, _, _) in parents.items() if parent in own}
    for pid in own & set(parents):
        sizes["java" if "java" in parents[pid][1] else "python"] += parents[pid][2] >> 20
    return sizes


def large(spark: Any, folder: Path, files: int) -> None:
    rows = folder / "large"
    write(rows, files)
    spark.read.parquet(str(rows)).createOrReplaceTempView("visits")
    print(f"{files * FILE:,} rows in {files} parquet files; peak resident MB of Java (heap at most 2 GB) and of Python")
    print(f"{'':36}{'seconds':>8}{'rows/s':>12}{'Java':>8}{'Python':>8}")
    for case in (CASES[0], *CASES[-2:]):
        count = counter(spark, case, folder)
        with Peak() as peak:
            took = seconds(count)
        speed = files * FILE / took
        print(f"{case.name:36}{took:8.1f}{speed:12,.0f}{peak.most['java']:8}{peak.most['python']:8}", flush=True)


def growth(spark: Any, folder: Path) -> None:
    rows = folder / "growth"
    sizes = [1, 2, 4, 8]
    print("seconds by millions of rows, one file of parquet each")
    print(f"{'':36}" + "".join(f"{size:8}" for size in sizes) + f"{'exponent':>10}")
    for case in (CASES[0], *CASES[-2:]):
        took = []
        for size in sizes:
            write(rows, size)
            frame = spark.read.parquet(*(str(rows / f"{i:04}.parquet") for i in range(size)))
            frame.createOrReplaceTempView("visits")
            count = counter(spark, case, folder)
            count()
            took.append(statistics.median(seconds(count) for _ in range(RUNS)))
        exponent = math.log(took[-1] / took[0]) / math.log(sizes[-1] / sizes[0])
        print(f"{case.name:36}" + "".join(f"{t:8.2f}" for t in took) + f"{exponent:10.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["ratios"], choices=["ratios", "plans", "large", "growth"])
    parser.add_argument("--rows", type=int, default=100_000_000)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tacit-spark-"))
    try:
        with session(folder) as spark:
            for what in arguments.what:
                if what == "ratios":
                    ratios(spark, folder)
                elif what == "plans":
                    plans(spark, folder)
                elif what == "large":
                    large(spark, folder, math.ceil(arguments.rows / FILE))
                else:
                    growth(spark, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
