"""Awkward sources: views, generated columns, dotted names, csv files, infinite dates, changed files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import tacit
from tacit import testing


def exact(con: tacit.Connection, sql: str, params: Any = None) -> Any:
    return testing.exact_answers(con, sql, params)[0].iloc[0, 0]


def test_a_view_does_not_get_around_the_privacy_unit() -> None:
    db = duckdb.connect()
    db.execute("CREATE TABLE p (pid INTEGER, age INTEGER); INSERT INTO p SELECT 1, i FROM range(50) t(i)")
    db.execute("CREATE TABLE k AS SELECT range AS x FROM range(1000)")
    db.execute("CREATE VIEW old AS SELECT age + 1 AS next, pid FROM p WHERE age >= 10")
    db.execute("CREATE VIEW many AS SELECT p.* FROM p, k")
    db.execute("CREATE VIEW counted AS SELECT count(*) AS n FROM p")
    db.execute("CREATE VIEW raising AS SELECT CAST('x' || age AS INTEGER) AS broken FROM p")
    policy = {"budget": {"epsilon": 5}, "tables": {"p": {"privacy_unit": "pid", "max_rows_per_unit": 3}}}
    con = tacit.connect(db, policy=policy)
    assert exact(con, "SELECT count(*) FROM p") == 3
    assert exact(con, "SELECT count(*) FROM old") <= 3
    assert exact(con, "SELECT count(*) FROM old WHERE next IS NOT NULL") <= 3
    assert exact(con, "SELECT count(*) FROM raising WHERE broken > 0") == 0
    with pytest.raises(tacit.NotSupportedError):
        con.answer("SELECT count(*) FROM many", epsilon=1)
    assert con.budget.spent.epsilon == 0
    assert exact(con, "SELECT n FROM counted") == 3


def test_generated_columns_are_not_offered() -> None:
    db = duckdb.connect()
    db.execute("CREATE TABLE g (a VARCHAR, b INTEGER AS (CAST(a AS INTEGER)), u INTEGER)")
    db.execute("INSERT INTO g VALUES ('2', 1), ('3', 1)")
    unit = {"tables": {"g": {"privacy_unit": "u", "max_rows_per_unit": 9}}, "budget": {"epsilon": 1}}
    con = tacit.connect(db, policy=unit)
    assert exact(con, "SELECT count(*) FROM g") == 2
    with pytest.raises(tacit.ProgrammingError, match="no such column"):
        con.answer("SELECT count(b) FROM g", epsilon=1)


def test_names_with_dots_and_letters_beyond_ascii(tmp_path: Path) -> None:
    db = duckdb.connect()
    db.execute('CREATE TABLE "x.y" AS SELECT range AS a FROM range(5)')
    db.execute('CREATE TABLE "É" ("É" INTEGER, "é" INTEGER); INSERT INTO "É" VALUES (1, NULL), (NULL, 2), (3, NULL)')
    con = tacit.connect(db, epsilon=1)
    assert exact(con, 'SELECT count(*) FROM "x.y"') == 5
    assert exact(con, 'SELECT count("É") FROM "É"') == 2
    assert exact(con, 'SELECT count("é") FROM "É"') == 1
    duckdb.sql("SELECT range AS age FROM range(7)").write_parquet(str(tmp_path / "visits.2024.parquet"))
    con = tacit.connect(tmp_path / "visits.2024.parquet", epsilon=1)
    assert exact(con, 'SELECT count(*) FROM "visits.2024"') == 7


def test_csv_columns_are_found_by_name(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text('id,age,name\n1,30,"two\nlines"\n2,91,b\n3,bad,c\n')
    policy = {"budget": {"epsilon": 1}, "tables": {"v": {"columns": {"age": {"type": "INTEGER"}}}}}
    con = tacit.connect(path, policy=policy)
    assert exact(con, "SELECT count(*) FROM v WHERE age >= 90") == 1
    assert exact(con, "SELECT count(*) FROM v") == 3
    policy["tables"]["v"]["columns"] = {"agee": {"type": "INTEGER"}}  # type: ignore[index]
    with pytest.raises(tacit.PolicyError, match="did you mean age"):
        tacit.connect(path, policy=policy)


HURTING_ROWS = {
    "a bad byte": b"1,\xff\n", "a bad byte where a number stands": b"\xff,x\n", "half a character": b"1,\xe2\x82",
    "a NUL": b"1,a\x00b\n\x00\n", "a surrogate": b"1,\xed\xa0\x80\n", "UTF-16": "1,x\n".encode("utf-16"),
    "a mark in the middle": b"\xef\xbb\xbf1,x\n", "a line of 3 MB": b"1," + b"x" * 3_000_000 + b"\n",
    "a quoted text of 3 MB": b'1,"' + b"x\n" * 1_500_000 + b'"\n', "a quote that is not closed": b'1,"abc\n2,y\n',
    "text after a quote": b'1,"a"b\n', "too many fields": b"1,x,3,4,5\n", "too few": b"1\n", "no line end": b"1,x",
    "other line ends": b"1,x\r2,y\r\n3,z\n", "empty lines": b"\n\n1,x\n\n", "nothing": b"",
}  # fmt: skip
CSV_POLICY = {
    "budget": {"epsilon": 1},
    "tables": {"v": {"columns": {"age": {"type": "INTEGER"}, "name": {"type": "VARCHAR"}}}},
}


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("rows", HURTING_ROWS.values(), ids=list(HURTING_ROWS))
def test_no_row_decides_whether_a_csv_file_opens_or_is_read(tmp_path: Path, rows: bytes, far: bool) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(b"age,name\n" + b"30,b\n" * (20_000 if far else 0) + rows)
    con = tacit.connect(path, policy=CSV_POLICY)
    assert exact(con, "SELECT count(*) FROM v WHERE age >= 30 OR length(name) > 1") >= 20_000 * far


@pytest.mark.parametrize(
    ("header", "opens"),
    [
        (b"age,name\n", True), (b"\xef\xbb\xbfage,name\r\n", True), (b'"age","name"\r', True), (b"age,name", True),
        (b"age,na\xff\n", False), ("age,name\n".encode("utf-16"), False), (b"age,na\x00me\n", False),
        (b'age,"na\nme"\n', False), (b"age,name," + b"x" * (1 << 20), False), (b"age,name,name\n", False), (b"", False),
    ],
)  # fmt: skip
def test_the_first_line_alone_decides_whether_a_csv_file_opens(tmp_path: Path, header: bytes, opens: bool) -> None:
    path = tmp_path / "v.csv"
    for rows in (b"", b"1,\xff\n", b'1,"\n'):
        path.write_bytes(header + rows if header.endswith((b"\n", b"\r")) else header)
        if opens:
            tacit.connect(path, policy=CSV_POLICY).close()
        else:
            with pytest.raises((tacit.OperationalError, tacit.PolicyError)):
                tacit.connect(path, policy=CSV_POLICY)


def test_infinite_dates_and_single_precision_are_refused_not_misread() -> None:
    db = duckdb.connect()
    db.execute("CREATE TABLE t (d DATE, ts TIMESTAMP, i INTEGER, x DOUBLE)")
    db.execute("INSERT INTO t VALUES ('infinity', '-infinity', 5, 0.1), ('2024-01-01', '2024-01-01', 16777217, 0.5)")
    con = tacit.connect(db, epsilon=1)
    for condition in ("d < 'infinity'", "ts >= '-infinity'::TIMESTAMP", "i = 16777217::FLOAT"):
        with pytest.raises(tacit.ProgrammingError):
            con.answer(f"SELECT count(*) FROM t WHERE {condition}", epsilon=0.1)
    assert exact(con, "SELECT count(*) FROM t WHERE d > '2024-01-01'") == 1
    assert exact(con, "SELECT count(*) FROM t WHERE x = ?", [0.1]) == 1
    assert exact(con, "SELECT count(*) FROM t WHERE ts = ?", [pd.NaT]) == 0


def test_what_an_open_connection_wrote_is_a_new_version(tmp_path: Path) -> None:
    db = duckdb.connect(str(tmp_path / "v.duckdb"))
    db.execute("CREATE TABLE v AS SELECT range AS a FROM range(100); CHECKPOINT")
    con = tacit.connect(db, epsilon=100)
    first = con.answer("SELECT count(*) FROM v", epsilon=20)
    db.execute("INSERT INTO v SELECT range FROM range(900)")
    second = con.answer("SELECT count(*) FROM v", epsilon=20)
    assert abs(first[0].df.iloc[0, 0] - 100) < 20 and abs(second[0].df.iloc[0, 0] - 1000) < 20


def test_a_ledger_speaks_of_one_kind_of_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE v AS SELECT i % 10 AS pid, i AS a FROM range(100) t(i)")
    policy = {"budget": {"epsilon": 5}, "tables": {"v": {"privacy_unit": "pid", "max_rows_per_unit": 3}}}
    with tacit.connect(path, policy=policy) as con:
        con.answer("SELECT count(*) FROM v", epsilon=1)
    with pytest.raises(tacit.LedgerError, match="privacy_unit"):
        tacit.connect(path, epsilon=5)
    with tacit.connect(path, policy=policy) as con:
        assert con.budget.spent.epsilon == 1
        con.answer("SELECT count(*) FROM v WHERE a < 50", epsilon=1)


@pytest.mark.parametrize("name", ["v[1].parquet", "v*.parquet", "v?.parquet"])
def test_a_file_name_is_no_pattern(name: str, tmp_path: Path) -> None:
    """The schema came from one file, and the rows from another, or from none."""
    duckdb.sql("SELECT 'x' AS other FROM range(3)").write_parquet(str(tmp_path / "v1.parquet"))
    duckdb.sql("SELECT i AS a FROM range(10) t(i)").write_parquet(str(tmp_path / "plain.parquet"))
    (tmp_path / "plain.parquet").rename(tmp_path / name)
    with tacit.connect(tmp_path / name, epsilon=1) as con:
        table = con.catalog.tables[0].name
        quoted = '"' + table.strip('"') + '"'
        assert tacit.testing.exact_answers(con, f"SELECT count(*) FROM {quoted} WHERE a < 4")[0].iloc[0, 0] == 4


def test_columns_that_changed_under_an_open_connection_are_refused_unpaid(tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    duckdb.sql("SELECT i AS a FROM range(10) t(i)").write_parquet(str(path))
    with tacit.connect(path, epsilon=10) as con:
        con.answer("SELECT count(*) FROM q WHERE a < 5", epsilon=1)
        for changed in ("SELECT i::VARCHAR AS a FROM range(10) t(i)", "SELECT i AS b FROM range(10) t(i)"):
            duckdb.sql(changed).write_parquet(str(path))
            with pytest.raises(tacit.OperationalError, match="connect again"):
                con.answer("SELECT count(*) FROM q WHERE a < 5", epsilon=1)
        assert con.budget.spent.epsilon == 1
    database = duckdb.connect()
    database.execute("CREATE TABLE q AS SELECT i AS a FROM range(10) t(i)")
    with tacit.connect(database, epsilon=10) as con:
        con.answer("SELECT count(*) FROM q WHERE a < 5", epsilon=1)
        for change in ("ALTER TABLE q ALTER a TYPE VARCHAR", "DROP TABLE q"):
            database.execute(change)
            with pytest.raises(tacit.OperationalError, match="connect again"):
                con.answer("SELECT count(*) FROM q WHERE a < 5", epsilon=1)
        assert con.budget.spent.epsilon == 1


def test_a_view_in_the_place_of_a_table_is_refused_unpaid() -> None:
    """Its columns may be those of the table, and what it computes can fail on a row."""
    database = duckdb.connect()
    database.execute("CREATE TABLE q AS SELECT 1 AS a; CREATE TABLE texts AS SELECT unnest(['1', 'x']) AS t")
    with tacit.connect(database, epsilon=10) as con:
        con.answer("SELECT count(*) FROM q WHERE a < 5", epsilon=1)
        database.execute("DROP TABLE q; CREATE VIEW q AS SELECT CAST(t AS INTEGER) AS a FROM texts")
        with pytest.raises(tacit.OperationalError, match="connect again"):
            con.answer("SELECT count(*) FROM q WHERE a < 6", epsilon=1)
        assert con.budget.spent.epsilon == 1


def test_a_relative_path_stays_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb.sql("SELECT i AS a FROM range(10) t(i)").write_parquet(str(tmp_path / "q.parquet"))
    with duckdb.connect(str(tmp_path / "q.duckdb")) as database:
        database.execute("CREATE TABLE q AS SELECT i AS a FROM range(10) t(i)")
    (tmp_path / "elsewhere").mkdir()
    for name in ("q.parquet", "q.duckdb"):
        monkeypatch.chdir(tmp_path)
        with tacit.connect(name, epsilon=10) as con:
            monkeypatch.chdir(tmp_path / "elsewhere")
            con.answer("SELECT count(*) FROM q WHERE a < 5", epsilon=1)
            assert con.budget.spent.epsilon == 1


def test_threads_open_one_file_at_once(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "q.duckdb")) as database:
        database.execute("CREATE TABLE q AS SELECT i AS a FROM range(10) t(i)")
    failed: list[BaseException] = []

    def run() -> None:
        try:
            tacit.connect(tmp_path / "q.duckdb", epsilon=10).close()
        except BaseException as error:
            failed.append(error)

    for _ in range(10):
        threads = [threading.Thread(target=run) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


def test_a_parquet_column_that_a_row_can_make_unreadable_is_refused_when_it_is_used(tmp_path: Path) -> None:
    for name, moments in (("sound", [0, 1]), ("broken", [0, 2**62])):
        frame = pd.DataFrame({"x": np.array(moments, dtype="datetime64[ms]"), "y": [1, 2]})
        duckdb.from_df(frame).write_parquet(str(tmp_path / f"{name}.parquet"))
        with tacit.connect(tmp_path / f"{name}.parquet", epsilon=1) as con:
            assert exact(con, f"SELECT count(*) FROM {name} WHERE y < 3") == 2
            with pytest.raises(tacit.NotSupportedError, match="milliseconds"):
                con.answer(f"SELECT count(*) FROM {name} WHERE x > '2024-01-01'", epsilon=0.1)
            assert con.budget.spent.epsilon == 0
        unit = {"tables": {name: {"privacy_unit": "y", "max_rows_per_unit": 1}}, "budget": {"epsilon": 1}}
        (tmp_path / f"{name}.parquet.ledger").unlink(missing_ok=True)
        # Which rows of a unit are kept looks at all columns.
        con = tacit.connect(tmp_path / f"{name}.parquet", policy=unit)
        with pytest.raises(tacit.NotSupportedError, match="milliseconds"):
            con.explain(f"SELECT count(*) FROM {name} WHERE y < 3", epsilon=0.1)


def lake(folder: Path) -> Path:
    query = "SELECT i % 3 AS a, i AS b, (2020 + i % 2)::VARCHAR AS y FROM range(60) t(i)"
    with duckdb.connect() as database:
        database.execute(f"COPY ({query}) TO '{folder}' (FORMAT parquet, PARTITION_BY (y))")
    return folder


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    folder = lake(tmp_path / "visits")
    policy = {"budget": {"epsilon": 9}, "tables": {"visits": {"columns": {"y": {"values": ["2020", "2021"]}}}}}
    with tacit.connect(folder, policy=policy) as con:
        frame = tacit.testing.exact_answers(con, "SELECT y, count(*) AS n FROM visits WHERE b < 30 GROUP BY y")[0]
        assert frame["n"].tolist() == [15, 15, 0] and frame["y"].tolist()[:2] == ["2020", "2021"]
        con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert (tmp_path / "visits.ledger").exists()
        duckdb.sql("SELECT 1::BIGINT AS a, 2::BIGINT AS b FROM range(9)").write_parquet(
            str(next((folder / "y=2020").glob("*.parquet")))
        )
        con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert con.budget.spent.epsilon == 2, "other files are another version"


def test_a_pattern_means_files_of_one_folder(tmp_path: Path) -> None:
    folder = lake(tmp_path / "visits")
    with tacit.connect(folder / "y=2020" / "*.parquet", epsilon=1) as con:
        (table,) = con.catalog.tables
        assert tacit.testing.exact_answers(con, f'SELECT count(*) FROM "{table.name}"')[0].iloc[0, 0] == 30
    with pytest.raises(tacit.OperationalError, match="no file"):
        tacit.connect(folder / "y=20??.parquet", epsilon=1)


def test_files_of_a_folder_agree_in_their_columns(tmp_path: Path) -> None:
    folder = lake(tmp_path / "visits")
    with tacit.connect(folder, epsilon=9) as con:
        other = folder / "y=2021" / "other.parquet"
        old = next((folder / "y=2021").glob("*.parquet"))
        duckdb.sql("SELECT 'x' AS a, 2::BIGINT AS b").write_parquet(str(old))
        with pytest.raises(tacit.OperationalError, match="nothing was charged"):
            con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert con.budget.spent.epsilon == 0
        old.rename(other)
        with pytest.raises(tacit.OperationalError):
            con.answer("SELECT count(*) FROM visits", epsilon=1)
        assert con.budget.spent.epsilon == 0
    with pytest.raises(tacit.OperationalError, match="different columns"):
        tacit.connect(folder, epsilon=1)
