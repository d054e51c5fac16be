"""Databases that are attached to a connection, and catalogs whose views stand for files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from tacit import testing

POLICY: dict[str, Any] = {"budget": {"epsilon": 9}}


def exact(con: tacit.Connection, sql: str) -> Any:
    return testing.exact_answers(con, sql)[0].iloc[0, 0]


def clinic(path: Path) -> Path:
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE visits AS SELECT i % 4 AS pid, i AS age FROM range(40) t(i); CREATE SCHEMA lab")
        database.execute("CREATE TABLE lab.results AS SELECT range AS x FROM range(7)")
    return path


@pytest.fixture
def attached(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute(f"ATTACH '{clinic(tmp_path / 'clinic.duckdb')}' AS clinic (READ_ONLY)")
    return database


@pytest.mark.parametrize("table", ["visits", "clinic.visits", "clinic.main.visits", "main.visits", "Clinic.Visits"])
def test_an_attached_file_has_its_tables_and_its_one_ledger(
    tmp_path: Path, attached: duckdb.DuckDBPyConnection, table: str
) -> None:
    policy = {**POLICY, "tables": {table: {"privacy_unit": "pid", "max_rows_per_unit": 3}}}
    with tacit.connect(attached, policy=policy) as con:
        assert exact(con, f"SELECT count(*) FROM {table}") == 12
        assert exact(con, "SELECT count(*) FROM clinic.lab.results WHERE x < 3") == 3
        con.answer(f"SELECT count(*) FROM {table}", epsilon=1)
    assert (tmp_path / "clinic.duckdb.ledger").exists()
    attached.close()
    plain = {**POLICY, "tables": {"visits": {"privacy_unit": "pid", "max_rows_per_unit": 3}}}
    with tacit.connect(tmp_path / "clinic.duckdb", policy=plain) as con:
        assert con.budget.spent.epsilon == 1, "the ledger follows the file, however its tables are spelt"
        con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert con.budget.spent.epsilon == 1


def test_a_table_is_declared_once_however_it_is_spelt(attached: duckdb.DuckDBPyConnection) -> None:
    policy = {**POLICY, "tables": {"visits": {"public": True}, "clinic.visits": {"public": True}}}
    with pytest.raises(tacit.PolicyError, match="declared twice"):
        tacit.connect(attached, policy=policy)


def test_which_of_several_databases(tmp_path: Path, attached: duckdb.DuckDBPyConnection) -> None:
    attached.execute(f"ATTACH '{clinic(tmp_path / 'other.duckdb')}' AS other (READ_ONLY)")
    with pytest.raises(tacit.OperationalError, match=r"clinic, other\)[\s\S]*hint: USE"):
        tacit.connect(attached, epsilon=1)
    attached.execute("USE other")
    with tacit.connect(attached, epsilon=1) as con:
        assert exact(con, "SELECT count(*) FROM other.visits") == 40
        with pytest.raises(tacit.ProgrammingError, match="no such table"):
            con.answer("SELECT count(*) FROM clinic.visits", epsilon=0.1)
    attached.execute("USE memory; CREATE TABLE own AS SELECT 1 AS a")
    with tacit.connect(attached, epsilon=1) as con:
        assert [table.name for table in con.catalog.tables] == ["own"], "the database in memory has tables of its own"


def test_a_schema_called_like_the_database_comes_first(tmp_path: Path) -> None:
    path = clinic(tmp_path / "clinic.duckdb").rename(tmp_path / "lab.duckdb")
    with tacit.connect(path, epsilon=1) as con:
        assert exact(con, "SELECT count(*) FROM lab.results") == 7
        with pytest.raises(tacit.ProgrammingError, match="no such table"):
            con.answer("SELECT count(*) FROM lab.visits", epsilon=0.1)


def lake(folder: Path) -> Path:
    query = "SELECT i AS a, 2020 + i % 2 AS y FROM range(60) t(i)"
    with duckdb.connect() as database:
        database.execute(f"COPY ({query}) TO '{folder}' (FORMAT parquet, PARTITION_BY (y))")
    return folder


def catalog(path: Path, lake: Path, logs: Path) -> Path:
    logs.write_text("age,name\n30,b\nbad,c\n")
    one = shutil.copy(next(lake.glob("y=2020/*")), lake.with_name("one.parquet"))
    with duckdb.connect(str(path)) as database:
        database.execute(f"""
            CREATE TABLE stored AS SELECT range AS x FROM range(5);
            CREATE VIEW visits AS SELECT * FROM read_parquet('{lake}/**/*.parquet', hive_partitioning = true);
            CREATE VIEW one AS FROM '{one}';
            CREATE VIEW late AS SELECT a FROM visits WHERE y = 2021;
            CREATE VIEW logs AS SELECT * FROM read_csv('{logs}');
            CREATE VIEW part AS SELECT a FROM read_parquet('{lake}/**/*.parquet') WHERE a < 3;
            CREATE VIEW odd AS SELECT * FROM read_parquet('{lake}/**/*.parquet', file_row_number = true);
        """)
    return path


FILES = {
    **POLICY,
    "tables": {
        "logs": {"columns": {"age": {"type": "INTEGER"}}},
        "visits": {"columns": {"y": {"values": [2020, 2021]}}},
    },
}


@pytest.mark.parametrize("opened", ["by path", "attached", "connected"])
def test_views_of_a_catalog_that_stand_for_files(tmp_path: Path, opened: str) -> None:
    path = catalog(tmp_path / "cat.duckdb", lake(tmp_path / "lake"), tmp_path / "logs.csv")
    database: Any = path
    if opened == "attached":
        database = duckdb.connect()
        database.execute(f"ATTACH '{path}' AS cat (READ_ONLY)")
    elif opened == "connected":
        database = duckdb.connect(str(path))
    with tacit.connect(database, policy=FILES) as con:
        frame = testing.exact_answers(con, "SELECT y, count(*) AS n FROM visits WHERE a < 30 GROUP BY y")[0]
        assert frame["n"].tolist()[:2] == [15, 15]
        assert exact(con, "SELECT count(*) FROM cat.visits") == 60
        assert exact(con, "SELECT count(*) FROM one") == 30
        assert exact(con, "SELECT count(*) FROM late WHERE a < 30") == 15, "a view over such a view"
        assert exact(con, "SELECT count(*) FROM logs WHERE age = 30") == 1, "with the types of the policy"
        assert exact(con, "SELECT count(*) FROM stored") == 5
        for name in ("part", "odd"):
            with pytest.raises(tacit.NotSupportedError, match=r"SELECT \* FROM read_parquet"):
                con.answer(f"SELECT count(*) FROM {name}", epsilon=0.1)
        con.answer("SELECT count(*) FROM visits", epsilon=1)
        part = next((tmp_path / "lake").glob("y=2020/*"))
        duckdb.sql("SELECT 1::BIGINT AS a FROM range(9)").write_parquet(str(part))
        con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert con.budget.spent.epsilon == 2, "other rows in a file are another version"
        os.rename(part, part.with_name("new.parquet"))
        with pytest.raises(tacit.OperationalError, match=r"connect again|is gone"):
            con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert con.budget.spent.epsilon == 2
    assert (tmp_path / "cat.duckdb.ledger").exists()


def test_a_catalog_reaches_no_other_file(tmp_path: Path) -> None:
    path = catalog(tmp_path / "cat.duckdb", lake(tmp_path / "lake"), tmp_path / "logs.csv")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with tacit.connect(path, policy=FILES) as con:
        cursor = con._session.source._connection.cursor()  # type: ignore[attr-defined]
        for statement in (
            f"SELECT * FROM '{tmp_path}/secret.csv'",
            "SET threads = 1",
            "CREATE TABLE cat.t AS SELECT 1",
        ):
            with pytest.raises(duckdb.Error):
                cursor.execute(statement)


def test_a_view_whose_files_are_gone_is_refused_when_it_is_used(tmp_path: Path) -> None:
    folder = lake(tmp_path / "lake")
    path = catalog(tmp_path / "cat.duckdb", folder, tmp_path / "logs.csv")
    folder.rename(tmp_path / "elsewhere")
    with tacit.connect(path, policy={**POLICY, "tables": {"logs": FILES["tables"]["logs"]}}) as con:
        assert exact(con, "SELECT count(*) FROM stored") == 5
        with pytest.raises(tacit.NotSupportedError):
            con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert con.budget.spent.epsilon == 0
