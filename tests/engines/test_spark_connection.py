"""``tacit.connect(spark_session)``: the same everything as with DuckDB, and what is refused before the charge."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tacit
import tacit.testing
from support.spark_session import forget, register
from tacit.sql.backends.spark import cluster, spark_jobs
from tacit.sql.backends.spark.cluster import SparkSource
from tacit.sql.backends.spark.relations import UNREADABLE, read_plan, read_relations
from tacit.sql.backends.spark.spark_worker import Work, counting

CLINIC = """
CREATE TABLE visits AS SELECT r AS vid, r % 40 AS pid, CAST(r * 7 % 100 AS INTEGER) AS age,
    ['NY', 'NJ', 'CA', NULL][1 + r % 4] AS state, DATE '2024-01-01' + CAST(r % 300 AS INTEGER) AS day,
    [1, 2] AS tags FROM range(1, 201) AS t(r);
CREATE TABLE tests AS SELECT r % 150 AS vid, ['x', 'y', 'z'][1 + r % 3] AS kind, ['p', 'q'][1 + r % 2] AS tool
    FROM range(1, 301) AS t(r);
CREATE TABLE states AS SELECT * FROM (VALUES ('NY', 1), ('NJ', 2)) AS t(state, zone);
CREATE SCHEMA lab;
CREATE TABLE lab.results AS SELECT r % 40 AS pid, CAST(r AS DOUBLE) AS value, ['x\\', 'y'][1 + r % 2] AS kind
    FROM range(1, 51) AS t(r);
"""
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 10.0, "delta": 1e-6},
    "tables": {
        "visits": {
            "privacy_unit": "pid",
            "max_rows_per_unit": 3,
            "columns": {"state": {"values": ["NY", "NJ", "CA"], "other": True}, "age": {"min": 0, "max": 99}},
        },
        "tests": {"privacy_unit": "vid -> visits.pid", "max_rows_per_unit": 6, "columns": {"kind": {"values": ["x"]}}},
        "states": {"public": True},
        "lab.results": {"columns": {"value": {"min": 0, "max": 50}}},
    },
}
BATCH = [
    "SELECT state, count(*), avg(age) FROM visits GROUP BY state",
    "SELECT zone, count(*) FROM visits JOIN states ON visits.state = states.state GROUP BY zone",
    "SELECT count(*) FROM lab.results WHERE value < 10",
    "SELECT kind, count(*) FROM tests GROUP BY kind",
]


@pytest.fixture(scope="module")
def clinic(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    forget(spark)
    with duckdb.connect() as database:
        database.execute(CLINIC)
        register(database, spark, tmp_path_factory.mktemp("clinic"), files=2)
    return spark


@pytest.fixture
def con(clinic: Any, tmp_path: Path) -> Iterator[tacit.Connection]:
    connection = tacit.connect(clinic, policy=POLICY, ledger=tmp_path / "ledger")
    yield connection
    connection.close()


def source_of(con: tacit.Connection) -> SparkSource:
    source = con._session.source
    assert isinstance(source, SparkSource)
    return source


def test_a_ledger_must_be_named(clinic: Any) -> None:
    with pytest.raises(tacit.Error, match=r"ledger = "):
        tacit.connect(clinic, policy=POLICY)


def test_explain_answer_and_exact_answers(con: tacit.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the private tables is read before the charge; what was released is not paid for again."""
    read: list[str] = []
    fetch = spark_jobs.Jobs.table
    monkeypatch.setattr(
        spark_jobs.Jobs, "table", lambda self, frame: read.append(str(frame.columns)) or fetch(self, frame)
    )
    assert "tags" not in [column.name for column in con.catalog.table("visits").columns]  # type: ignore[union-attr]
    assert "ε" in str(con.explain(BATCH, epsilon=0.5))
    assert read == ["['version']"]
    answers = con.answer(BATCH, epsilon=0.5)
    assert len(answers[0].df) == 5 and len(read) == 2  # one job for all tables
    again = con.answer(BATCH, epsilon=0.5)
    assert float(con.budget.spent.epsilon) == 0.5 and again[0].df.equals(answers[0].df)
    frames = tacit.testing.exact_answers(con, BATCH)
    assert frames[0].iloc[:, 1].sum() == 40 * 3 and frames[2].iloc[0, 0] == 9


def test_discover(con: tacit.Connection) -> None:
    assert "'p', 'q'" in str(con.discover("tests.tool", epsilon=8.0, delta=1e-7))


def test_the_version_follows_the_files(con: tacit.Connection, clinic: Any) -> None:
    source = source_of(con)
    first = source.version(b"key")
    assert source.version(b"key") == first != source.version(b"other")
    file = Path(clinic.table("states").inputFiles()[0].removeprefix("file://"))
    before = file.stat()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    assert source.version(b"key") != first


def test_settings_and_functions_of_the_session_change_nothing(con: tacit.Connection, clinic: Any) -> None:
    settings = {
        "spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parser.escapedStringLiterals": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    }  # fmt: skip
    asked = [
        "SELECT state, sum(age), count(*) FROM visits WHERE day < DATE '2024-05-01' GROUP BY state",
        "SELECT sum(value) FROM lab.results WHERE value < 10 OR value > 40.5",
        "SELECT count(*) FROM visits WHERE upper(state) < 'NK\\'",
        "SELECT count(*) FROM lab.results WHERE kind <= 'x\\'",
    ]
    truth = tacit.testing.exact_answers(con, asked)
    before = {name: clinic.conf.get(name) for name in settings}
    shadowed = ("floor", "greatest", "least", "coalesce", "make_valid_utf8", "octet_length", "left", "try_sum", "stack")
    try:
        for name, value in settings.items():
            clinic.conf.set(name, value)
        for name in shadowed:
            clinic.udf.register(name, lambda *values: 1 // 0)
        frames = tacit.testing.exact_answers(con, asked)
    finally:
        for name in shadowed:
            clinic.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
        for name, value in before.items():
            clinic.conf.set(name, value)
    assert all(a.equals(b) for a, b in zip(truth, frames, strict=True))


def test_views(clinic: Any, con: tacit.Connection, tmp_path: Path) -> None:
    """A view that only picks columns of a table has the table's units; what may fail or is volatile is refused."""
    folder = str(tmp_path / "folder")
    clinic.range(20).selectExpr("id", "cast(id AS string) AS t").write.parquet(folder)
    files = clinic.read.parquet(folder)
    files.select(files.t.alias("text"), "id").where("id < 5 AND text <> 'q'").createOrReplaceTempView("picked")
    files.selectExpr("cast(t AS int) AS n").createOrReplaceTempView("casts")
    files.selectExpr("id + 1 AS n").createOrReplaceTempView("adds")
    files.where("id < unix_date(current_date())").createOrReplaceTempView("volatile")
    files.limit(3).createOrReplaceTempView("some")
    files.join(files.withColumnRenamed("t", "u"), "id").createOrReplaceTempView("joined")
    clinic.createDataFrame([("1",), ("x",)], "a string").createOrReplaceTempView("rdd")
    clinic.sql("CREATE TEMPORARY VIEW subquery AS SELECT * FROM lab.results WHERE pid = (SELECT max(pid) FROM visits)")
    clinic.sql("CREATE VIEW lab.seen AS SELECT value AS v, pid FROM lab.results")
    clinic.sql("CREATE VIEW lab.few AS SELECT pid FROM lab.results WHERE pid / 0 > 1")
    found = {relation.path[1]: relation for relation in read_relations(clinic).values()}
    try:
        for name in ("casts", "adds", "volatile", "some", "joined", "rdd", "subquery", "few"):
            assert found[name].view == UNREADABLE, name
        assert found["picked"].view == "" and read_plan(clinic, "`picked`") is not None
        assert found["seen"].view == 'SELECT "value" AS "v", "pid" AS "pid" FROM "lab"."results"'
        policy = {
            "budget": {"epsilon": 1.0},
            "tables": {"lab.results": {"privacy_unit": "pid", "max_rows_per_unit": 1}},
        }
        with tacit.connect(clinic, policy=policy, ledger=tmp_path / "other") as other:
            (frame,) = tacit.testing.exact_answers(other, "SELECT count(*) FROM lab.seen")
            assert frame.iloc[0, 0] == 40  # units, and not rows
            (frame,) = tacit.testing.exact_answers(other, "SELECT count(*) FROM picked WHERE text < '3'")
            assert frame.iloc[0, 0] == 3
            with pytest.raises(tacit.Error):
                other.answer("SELECT count(*) FROM casts", epsilon=0.1)
            files.createOrReplaceTempView("twice")
        with (
            tacit.connect(clinic, policy=policy, ledger=tmp_path / "other") as other,
            pytest.raises(tacit.NotSupportedError, match=r"same files[\s\S]*dropTempView"),
        ):
            other.answer("SELECT count(*) FROM picked WHERE text < '4'", epsilon=0.1)
    finally:
        for name in ("picked", "casts", "adds", "volatile", "some", "joined", "rdd", "subquery", "twice"):
            clinic.catalog.dropTempView(name)
        clinic.sql("DROP VIEW lab.seen")
        clinic.sql("DROP VIEW lab.few")


def test_two_names_of_the_same_rows_are_not_charged(clinic: Any, tmp_path: Path) -> None:
    """Tables over one folder, views of one frame: the policy may speak of units under one of the names only."""
    folder = tmp_path / "a b"  # Spark lists its files as URLs
    clinic.range(20).selectExpr("id % 4 AS u", "id").write.parquet(str(folder))
    frame = clinic.createDataFrame(pa.table({"u": [1, 1, 2], "id": [1, 2, 3]}))
    names = {"tables": ["one", "two"], "views": ["frame", "again", "renamed"]}
    budget = {"epsilon": 1.0}
    try:
        clinic.sql(f"CREATE TABLE one USING parquet LOCATION '{folder}'")
        with tacit.connect(clinic, policy={"budget": budget}, ledger=tmp_path / "ledger") as con:
            con.answer("SELECT count(*) FROM one", epsilon=0.1)
        clinic.sql(f"CREATE TABLE two USING parquet LOCATION '{folder}'")
        frame.createOrReplaceTempView("frame")
        frame.createOrReplaceTempView("again")
        frame.selectExpr("id AS other").createOrReplaceTempView("renamed")
        with tacit.connect(clinic, policy={"budget": budget}, ledger=tmp_path / "ledger") as con:
            for _ in range(2):  # what was listed once is not relied on
                for name in (*names["tables"], *names["views"]):
                    with pytest.raises(tacit.NotSupportedError, match="two tables of the same rows"):
                        con.answer(f"SELECT count(*) FROM {name}", epsilon=0.1)
                clinic.sql("INSERT OVERWRITE one SELECT id % 4, id FROM range(5)")
                clinic.catalog.refreshTable("two")
            assert str(con.budget.spent.epsilon) == "0.1"
    finally:
        for name in names["views"]:
            clinic.catalog.dropTempView(name)
        for name in names["tables"]:
            clinic.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize("kind", ["double", "float"])
def test_one_row_does_not_decide_which_rows_of_a_view_are_read(clinic: Any, tmp_path: Path, kind: str) -> None:
    """Writers leave NaN out of the greatest value that a part of a file states, and Spark skips parts by it."""
    path = str(tmp_path / "rows.parquet")
    column = pa.array([float("nan")] * 50 + [1.0], pa.float64() if kind == "double" else pa.float32())
    pq.write_table(pa.table({"v": column, "a": list(range(51)), "s": ["v"] * 51}), path)
    rows = clinic.read.parquet(path)
    views = {
        "high": rows.where("v >= 10"),
        "high_a": rows.where("v >= 10").select("a"),
        "low": rows.where("NOT v < 10 AND a > 3"),
        "known": rows.where("v IS NOT NULL AND a >= 1"),
        "renamed": rows.selectExpr("v AS w", "a AS v").where("v < 7"),
    }
    try:
        for name, view in views.items():
            view.createOrReplaceTempView(name)
        plans = {name: read_plan(clinic, f"`{name}`") is not None for name in views}
        assert plans == {"high": False, "high_a": False, "low": False, "known": True, "renamed": True}
    finally:
        for name in views:
            clinic.catalog.dropTempView(name)


def test_what_is_not_charged(clinic: Any, con: tacit.Connection, tmp_path: Path) -> None:
    ask = "SELECT count(*) FROM moving WHERE id < 3"
    clinic.range(9).write.csv(str(tmp_path / "csv"))
    clinic.range(9).write.parquet(str(tmp_path / "first"))
    clinic.range(9).selectExpr("id", "id AS more").write.parquet(str(tmp_path / "second"))
    clinic.sql(f"CREATE TABLE lab.texts (id INT) USING csv LOCATION '{tmp_path / 'csv'}'")
    clinic.read.parquet(str(tmp_path / "first")).createOrReplaceTempView("moving")
    mode = "spark.sql.parquet.datetimeRebaseModeInRead"
    with tacit.connect(clinic, policy={"budget": {"epsilon": 1.0}}, ledger=tmp_path / "other") as other:
        with pytest.raises(tacit.NotSupportedError, match="parquet or orc"):
            other.answer("SELECT count(*) FROM lab.texts WHERE id < 3", epsilon=0.1)
        clinic.conf.set(mode, "EXCEPTION")
        with pytest.raises(tacit.NotSupportedError, match=mode):
            other.answer(ask, epsilon=0.1)
        clinic.conf.unset(mode)
        clinic.read.parquet(str(tmp_path / "second")).createOrReplaceTempView("moving")
        with pytest.raises(tacit.OperationalError, match=r"no longer[\s\S]*connect again"):
            other.answer(ask, epsilon=0.1)
        assert other.budget.spent.epsilon == 0
    clinic.sql("DROP TABLE lab.texts")
    clinic.catalog.dropTempView("moving")


def test_a_worker_that_fails_tells_nothing(con: tacit.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(duckdb.__version__, (), (), (), ("SELECT CAST(s AS INTEGER) FROM arriving",), (), (), by_chunk=True)
    import pyarrow as pa

    with pytest.raises(RuntimeError) as told:
        list(counting(work)(iter(pa.table({"s": ["secret"]}).to_batches())))
    assert "secret" not in str(told.value) and told.value.__context__ is None
    monkeypatch.setattr(cluster, "counting", lambda work: lambda batches: 1 // 0)
    with pytest.raises(tacit.OperationalError) as caught:
        con.answer("SELECT count(*) FROM visits WHERE length(state) = 2", epsilon=0.1)
    assert "nothing was released" in str(caught.value) and "Division" not in str(caught.value)


def test_workers_without_duckdb_are_not_charged(con: tacit.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb, "__version__", "0.0.1")
    with pytest.raises(tacit.OperationalError, match=r"duckdb 0.0.1[\s\S]*pip install"):
        con.answer("SELECT count(*) FROM visits", epsilon=0.1)
    assert con.budget.spent.epsilon == 0


def test_an_interrupt_ends_the_job(con: tacit.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """From another thread, as ``sealed`` does it."""
    source, began = source_of(con), threading.Event()

    def endless(work: Work) -> Any:
        def wait(batches: Any) -> Any:
            import time

            while True:
                time.sleep(0.05)
            yield

        return wait

    table = spark_jobs.Jobs.table
    monkeypatch.setattr(cluster, "counting", endless)
    monkeypatch.setattr(spark_jobs.Jobs, "table", lambda self, frame: began.set() or table(self, frame))
    failures: list[BaseException] = []

    def run() -> None:
        try:
            tacit.testing.exact_answers(con, "SELECT count(*) FROM visits WHERE length(state) = 2")
        except BaseException as error:
            failures.append(error)

    source._ready = True
    thread = threading.Thread(target=run)
    thread.start()
    assert began.wait(60)
    for _ in range(100):
        source.interrupt()
        thread.join(0.2)
        if not thread.is_alive():
            break
    assert isinstance(failures[0], tacit.OperationalError)


def test_a_remote_session(clinic: Any, tmp_path: Path) -> None:
    """Spark Connect, in a process of its own: a process has one kind of session."""
    folder = Path(clinic.table("visits").inputFiles()[0].removeprefix("file://")).parents[1]
    script = Path(__file__).parents[1] / "support" / "remote_spark.py"
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["120", "9", "40"]
