"""``tacit.connect("postgresql://…")``: the same everything as with DuckDB, and what is refused before the charge."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
import tacit
import tacit.testing
from support.postgres_server import NoServer, standby
from tacit.sql import open_source
from tacit.sql.backends.opening import _open_postgres
from tacit.sql.backends.postgres.sessions import RowReader

SCHEMA = """
CREATE TYPE ward AS ENUM ('surgery', 'eye');
CREATE DOMAIN share AS numeric(5, 2) CHECK (VALUE >= 0 AND VALUE <= 100);
CREATE TABLE visits (
    vid int PRIMARY KEY, pid int NOT NULL, age int CHECK (age BETWEEN 0 AND 120), state text, ward ward, paid share,
    day date, notes jsonb, tags text[], raw bytea, initials char(4), "Mixed Case" int, code varchar(3), CODE2 int
);
INSERT INTO visits SELECT r, r % 40, r * 7 % 100, (ARRAY['NY', 'NJ', 'CA', NULL])[1 + r % 4],
    (ARRAY['surgery', 'eye'])[1 + r % 2]::ward, r % 90, date '2024-01-01' + r % 300, '{}', '{}', '', 'ab', r % 3,
    'x', 1 FROM generate_series(1, 200) AS r;
CREATE TABLE tests (vid int, kind text);
INSERT INTO tests SELECT r % 150, (ARRAY['x', 'y', 'z'])[1 + r % 3] FROM generate_series(1, 300) AS r;
CREATE TABLE wards (ward text PRIMARY KEY, floor int);
INSERT INTO wards VALUES ('surgery', 1), ('eye', 2);
CREATE SCHEMA lab;
CREATE TABLE lab.results (pid int, value float8);
INSERT INTO lab.results SELECT r % 40, r FROM generate_series(1, 50) AS r;
"""
POLICY: dict[str, Any] = {
    "trust_schema": True,
    "budget": {"epsilon": 10.0, "delta": 1e-6},
    "tables": {
        "visits": {
            "privacy_unit": "pid",
            "max_rows_per_unit": 3,
            "columns": {"state": {"values": ["NY", "NJ", "CA"], "other": True}},
        },
        "tests": {"privacy_unit": "vid -> visits.pid", "max_rows_per_unit": 6, "columns": {"kind": {"values": ["x"]}}},
        "wards": {"public": True},
        "lab.results": {"columns": {"value": {"min": 0, "max": 50}}},
    },
}

Run = Callable[[str], None]


@pytest.fixture
def url(new_database: Callable[[], str]) -> str:
    made = new_database()
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute(SCHEMA)
    return made


@pytest.fixture
def run(url: str) -> Run:
    def execute(sql: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql)  # type: ignore[arg-type]

    return execute


@pytest.fixture
def con(url: str, tmp_path: Path) -> Iterator[tacit.Connection]:
    connection = tacit.connect(url, policy=POLICY, ledger=tmp_path / "ledger")
    yield connection
    connection.close()


def as_role(url: str, role: str) -> str:
    return url.replace("curator@", f"{role}@")


def test_the_schema_says_what_the_policy_need_not(con: tacit.Connection) -> None:
    visits = {column.name: column for column in con.catalog.table("visits").columns}  # type: ignore[union-attr]
    assert visits["ward"].type == "ENUM('surgery', 'eye')"
    assert (visits["paid"].type, visits["paid"].domain) == ("DECIMAL(5,2)", tacit.sql.Range(0, 100))
    assert visits["age"].domain == tacit.sql.Range(0, 120)
    assert not visits["pid"].nullable and visits["age"].nullable
    assert not {"notes", "tags", "raw"} & set(visits)
    assert con.catalog.table("visits").primary_key == ("vid",)  # type: ignore[union-attr]


def test_explain_answer_budget_and_cursor(con: tacit.Connection) -> None:
    batch = [
        "SELECT ward, count(*), avg(age) FROM visits GROUP BY ward",
        "SELECT floor, count(*) FROM public.visits JOIN wards ON visits.ward = wards.ward GROUP BY floor",
        "SELECT count(*) FROM lab.results WHERE value < 10",
        "SELECT kind, count(*) FROM tests GROUP BY kind",
    ]
    plan = con.explain(batch, epsilon=0.5)
    assert "ε" in str(plan)
    answers = con.answer(batch, epsilon=0.5)
    assert list(answers[0].df["ward"]) == ["surgery", "eye", None] or len(answers[0].df) == 3
    assert float(con.budget.spent.epsilon) == 0.5
    again = con.answer(batch, epsilon=0.5)
    assert float(con.budget.spent.epsilon) == 0.5 and again[0].df.equals(answers[0].df)
    cursor = con.cursor()
    cursor.execute("SELECT count(*) FROM visits WHERE age < ?; SELECT count(*) FROM visits", [18], epsilon=0.1)
    assert len(cursor.fetchall()) == 1 and cursor.nextset() and len(cursor.fetchall()) == 1


def test_exact_answers(con: tacit.Connection) -> None:
    (frame,) = tacit.testing.exact_answers(con, "SELECT ward, count(*) FROM visits GROUP BY ward")
    assert frame.iloc[:, 1].sum() == 40 * 3
    (frame,) = tacit.testing.exact_answers(con, "SELECT sum(value) FROM lab.results")
    assert frame.iloc[0, 0] == pytest.approx(sum(range(1, 51)), abs=1e-6)


def test_an_untrusted_enum_is_a_text(url: str, tmp_path: Path) -> None:
    con = tacit.connect(url, policy={"budget": {"epsilon": 1}}, ledger=tmp_path / "l")
    visits = {column.name: column for column in con.catalog.table("visits").columns}  # type: ignore[union-attr]
    assert visits["ward"].type == "VARCHAR" and visits["age"].domain is None
    for condition in ("ward = 'eye'", "length(ward) = 3", "ward < 'f'"):
        (frame,) = tacit.testing.exact_answers(con, f"SELECT count(*) FROM visits WHERE {condition}")
        assert frame.iloc[0, 0] == 100
    con.close()


def test_an_enum_with_a_cast_of_its_own_is_left_out(url: str, run: Run) -> None:
    run("""
        CREATE FUNCTION f(ward) RETURNS text LANGUAGE sql AS $$ SELECT (1 / 0)::text $$;
        CREATE CAST (ward AS text) WITH FUNCTION f(ward)
    """)
    source = open_source(url)
    (visits,) = (table for table in source.schema() if table.name == "visits")
    assert "ward" not in [column.name for column in visits.columns]
    source.close()


def test_nothing_is_left_on_disk(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = open_source(url)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    source.close()
    assert not list(tmp_path.iterdir())


def test_discover(con: tacit.Connection) -> None:
    found = con.discover("tests.kind", epsilon=8.0, delta=1e-7)
    assert "x" in str(found) and "y" in str(found)


def test_a_write_makes_a_new_version(con: tacit.Connection, run: Run) -> None:
    source = con._session.source
    first = source.version(b"key")
    assert source.version(b"key") == first != source.version(b"other")
    run("INSERT INTO lab.results VALUES (1, 1)")
    assert source.version(b"key") != first


def test_a_writer_that_ends_late_makes_a_new_version(con: tacit.Connection, url: str, run: Run) -> None:
    """The number of the last transaction alone would not show it."""
    source = con._session.source
    with psycopg.connect(url) as writer:
        writer.execute("INSERT INTO lab.results VALUES (1, 1)")
        run("INSERT INTO lab.results VALUES (2, 2)")
        before = source.version(b"key")
        writer.commit()
    assert source.version(b"key") != before


@pytest.fixture
def follower(postgres: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """A server that follows the first, and what makes it one by itself."""
    try:
        with standby(postgres) as (url, promote):
            yield url, promote
    except NoServer as error:
        pytest.skip(f"no standby: {error}")


def test_a_server_that_follows_another_has_versions_of_its_own(
    postgres: str, follower: tuple[str, Callable[[], None]]
) -> None:
    """Its list of transactions says less, and once it stands by itself it gives their numbers to others."""
    (url, promote), count = follower, "SELECT count(*), pg_current_snapshot()::text FROM followed"
    with (
        psycopg.connect(postgres, autocommit=True) as first,
        psycopg.connect(url, autocommit=True) as second,
        closing(_open_postgres(postgres)) as source,
        closing(_open_postgres(url)) as following,
    ):

        def state() -> tuple[Any, str]:
            written = first.execute("SELECT pg_current_wal_insert_lsn()").fetchall()[0]
            while second.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", written).fetchall() != [(True,)]:
                time.sleep(0.01)
            return second.execute(count).fetchall()[0], following.version(b"key")

        first.execute("CREATE TABLE followed (a int)")
        with psycopg.connect(postgres) as early, psycopg.connect(postgres) as late:
            for writer in (early, late, first):
                writer.execute("INSERT INTO followed VALUES (1)")
            before, version = state()
            late.commit()
            after, new_version = state()
        assert (before[0], after[0]) == (1, 2) and before[1] == after[1]
        assert version != new_version

        assert state()[0][0] == 3
        promote()  # as if the first one were lost, with what it is about to write
        first.execute("INSERT INTO followed VALUES (1)")
        second.execute("INSERT INTO followed VALUES (1), (2)")
        (rows, here), (other_rows, there) = (c.execute(count).fetchall()[0] for c in (first, second))
        assert (rows, other_rows) == (4, 5) and here == there
        assert source._identity == following._identity and source.version(b"key") != following.version(b"key")
        first.execute("DROP TABLE followed")


def test_threads_share_a_connection(con: tacit.Connection) -> None:
    results: list[float] = []

    def ask(bound: int) -> None:
        (frame,) = tacit.testing.exact_answers(con, f"SELECT count(*) FROM lab.results WHERE value <= {bound}")
        results.append(float(frame.iloc[0, 0]))

    threads = [threading.Thread(target=ask, args=(bound,)) for bound in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(1, 9))


def test_what_is_left_out(url: str, run: Run, tmp_path: Path) -> None:
    run("""
        CREATE TABLE parts (k int, x int) PARTITION BY RANGE (k);
        CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10);
        INSERT INTO parts SELECT r % 10, r FROM generate_series(1, 30) AS r;
        CREATE TABLE parent (x int); CREATE TABLE child (y int) INHERITS (parent);
        INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2, 3);
        CREATE MATERIALIZED VIEW stored AS SELECT 1 AS x;
        CREATE EXTENSION IF NOT EXISTS plpgsql;
        CREATE TABLE "Visits" (x int); CREATE TABLE twice (a int, "A" int, b int);
        CREATE SCHEMA main; CREATE TABLE main.hidden (x int);
        CREATE TABLE only_json (x json);
    """)
    con = tacit.connect(url, policy={"budget": {"epsilon": 1}}, ledger=tmp_path / "l")
    names = {table.name for table in con.catalog.tables}
    assert {"parts", "parent", "twice", "lab.results"} <= names
    assert not {"parts_low", "child", "stored", "visits", "Visits", "hidden"} & names
    assert [column.name for column in con.catalog.table("twice").columns] == ["b"]  # type: ignore[union-attr]
    for table, rows in (("parts", 30), ("parent", 2), ("only_json", 0)):
        (frame,) = tacit.testing.exact_answers(con, f"SELECT count(*) FROM {table}")
        assert frame.iloc[0, 0] == rows
    con.close()


def test_a_role_sees_what_it_may_read(url: str, run: Run, tmp_path: Path) -> None:
    run("CREATE ROLE reader1 LOGIN; GRANT SELECT (pid, age) ON visits TO reader1; GRANT SELECT ON wards TO reader1")
    con = tacit.connect(as_role(url, "reader1"), policy={"budget": {"epsilon": 1}}, ledger=tmp_path / "l")
    assert {table.name for table in con.catalog.tables} == {"visits", "wards"}
    assert [column.name for column in con.catalog.table("visits").columns] == ["pid", "age"]  # type: ignore[union-attr]
    con.answer("SELECT count(*) FROM visits WHERE age < 10", epsilon=0.1)
    for column, reason in (("state", "may not read it"), ("tags", "may not read it")):
        with pytest.raises(tacit.ProgrammingError, match=f"visits.{column} cannot be used: .*{reason}"):
            con.answer(f"SELECT count(*) FROM visits AS v WHERE v.{column} = 'NY'", epsilon=0.1)
    run("REVOKE SELECT (age) ON visits FROM reader1")
    with pytest.raises(tacit.OperationalError, match="no longer"):
        con.answer("SELECT count(*) FROM visits WHERE age < 11", epsilon=0.1)
    assert float(con.budget.spent.epsilon) == 0.1
    con.close()
    run("DROP OWNED BY reader1; DROP ROLE reader1")


def test_why_a_column_cannot_be_used(con: tacit.Connection, url: str, tmp_path: Path) -> None:
    with pytest.raises(tacit.ProgrammingError, match=r"visits.tags cannot be used: its type, text\[\]"):
        con.answer("SELECT count(tags) FROM public.visits", epsilon=0.1)
    policy = {"budget": {"epsilon": 1}, "tables": {"visits": {"columns": {"tags": {"values": ["a"]}}}}}
    with pytest.raises(tacit.PolicyError, match="cannot be used: its type"):
        tacit.connect(url, policy=policy, ledger=tmp_path / "l")


def test_a_policy_may_name_the_schema_public(url: str, tmp_path: Path) -> None:
    """The ledger is bound to the table, however it is spelt."""
    entry = {"privacy_unit": "pid", "max_rows_per_unit": 3}
    for name in ("public.visits", "visits", "Public.Visits"):
        policy = {"budget": {"epsilon": 10}, "tables": {name: entry}}
        with tacit.connect(url, policy=policy, ledger=tmp_path / "l") as con:
            con.answer("SELECT count(*) FROM visits WHERE age < 10", epsilon=1)
            assert con.catalog.table("visits").privacy_unit == "pid" and con.budget.spent.epsilon == 1  # type: ignore[union-attr]
    policy = {"budget": {"epsilon": 10}, "tables": {"public.visits": entry, "visits": entry}}
    with pytest.raises(tacit.PolicyError, match="declared twice"):
        tacit.connect(url, policy=policy, ledger=tmp_path / "l")


def test_a_release_over_several_tables_reads_one_state(
    con: tacit.Connection, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are written after the first table was read are in none."""
    real, streams = RowReader.stream, list[str]()

    def stream(reader: RowReader, sql: str) -> Any:
        if streams:
            run("INSERT INTO lab.results SELECT r % 40, 1 FROM generate_series(1, 1000) AS r")
        streams.append(sql)
        return real(reader, sql)

    monkeypatch.setattr(RowReader, "stream", stream)
    batch = [
        "SELECT count(*) FROM visits WHERE length(state) = 2",
        "SELECT count(*) FROM lab.results WHERE value <= 50",
    ]
    frames = tacit.testing.exact_answers(con, batch)
    assert len(streams) == 2 and frames[1].iloc[0, 0] == 50


def test_nothing_of_a_session_is_left_behind(con: tacit.Connection) -> None:
    """A pooler may give every transaction another session: settings, prepared statements and locks end with it."""
    tacit.testing.exact_answers(
        con, ["SELECT count(*) FROM visits", "SELECT count(*) FROM visits WHERE length(state) = 2"]
    )
    sessions = con._session.source._sessions  # type: ignore[attr-defined]
    (rows,) = sessions._rows._idle
    with rows.cursor() as cursor:
        for sql, wanted in (
            ("SELECT current_setting('row_security') || current_setting('statement_timeout')", "on0"),
            ("SELECT current_setting('search_path')", '"$user", public'),
            ("SELECT count(*)::text FROM pg_prepared_statements WHERE name <> ''", "0"),
            ("SELECT count(*)::text FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'", "0"),
        ):
            cursor.execute(sql)
            assert cursor.fetchall() == [(wanted,)], sql
    (catalog,) = sessions._catalog._idle
    assert catalog.execute("SHOW search_path").fetchall() == [('"$user", public',)]


def test_a_server_that_goes_away_in_the_middle_of_a_transfer(
    con: tacit.Connection, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had come is not released, the charge stays, and asking again costs nothing."""
    batch = "SELECT count(*) FROM lab.results WHERE length(value::VARCHAR) = 3"
    real = RowReader.stream

    @contextmanager
    def stream(reader: RowReader, sql: str) -> Iterator[Any]:
        with real(reader, "SELECT generate_series(1, 5000000) AS c0") as batches:
            first = batches.read_next_batch()
            run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND datname = current_database()")  # fmt: skip
            yield pa.RecordBatchReader.from_batches(batches.schema, chain([first], batches))

    with monkeypatch.context() as patch:
        patch.setattr(RowReader, "stream", stream)
        with pytest.raises(tacit.OperationalError, match="was charged"):
            con.answer(batch, epsilon=0.5)
    assert con.answer(batch, epsilon=0.5).cost.epsilon == 0 and float(con.budget.spent.epsilon) == 0.5


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE lab.results ADD COLUMN more int",
        "ALTER TABLE lab.results ALTER value TYPE numeric",
        "ALTER TABLE lab.results RENAME value TO other",
        "DROP TABLE lab.results",
    ],
)
def test_a_changed_table_is_not_charged(con: tacit.Connection, run: Run, change: str) -> None:
    run(change)
    with pytest.raises(tacit.OperationalError, match=r"no longer[\s\S]*connect again"):
        con.answer("SELECT count(*) FROM lab.results WHERE value < 10", epsilon=0.1)
    assert con.budget.spent.epsilon == 0


def test_row_level_security_is_not_charged(url: str, run: Run, tmp_path: Path) -> None:
    run("""
        CREATE ROLE reader2 LOGIN; GRANT SELECT ON wards TO reader2;
        ALTER TABLE wards ENABLE ROW LEVEL SECURITY; CREATE POLICY ground ON wards USING (floor = 1)
    """)
    con = tacit.connect(as_role(url, "reader2"), policy={"budget": {"epsilon": 1}}, ledger=tmp_path / "l")
    for sql in ("SELECT count(*) FROM wards", "SELECT count(*) FROM wards WHERE length(ward) < 4"):
        with pytest.raises(tacit.OperationalError, match="row-level security"):
            con.answer(sql, epsilon=0.1)
    assert con.budget.spent.epsilon == 0
    con.close()
    run("DROP OWNED BY reader2; DROP ROLE reader2")


def test_names_of_the_database_shadow_nothing(url: str, run: Run, tmp_path: Path) -> None:
    """Functions and operators are PostgreSQL's own, whatever the role's search_path says."""
    run("""
        CREATE ROLE reader3 LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader3;
        CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO reader3;
        CREATE FUNCTION evil.wrong(int, bigint) RETURNS bool LANGUAGE sql AS 'SELECT true';
        CREATE OPERATOR evil.>= (LEFTARG = int, RIGHTARG = bigint, FUNCTION = evil.wrong);
        CREATE FUNCTION evil.octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT 1 / 0';
        ALTER ROLE reader3 SET search_path = evil, pg_catalog, public;
        ALTER ROLE reader3 SET DateStyle = 'German'; ALTER ROLE reader3 SET TimeZone = 'Asia/Tokyo';
        ALTER ROLE reader3 SET extra_float_digits = -15
    """)
    con = tacit.connect(as_role(url, "reader3"), policy={"budget": {"epsilon": 1}}, ledger=tmp_path / "l")
    for condition in ("age < 50", "age < 50 AND length(state) = 2"):
        sql = f"SELECT count(*) FROM visits WHERE {condition}"
        with psycopg.connect(url) as connection:
            truth = connection.execute(sql).fetchone()  # type: ignore[arg-type]
        (frame,) = tacit.testing.exact_answers(con, sql)
        assert (frame.iloc[0, 0],) == truth
    con.close()
    run("DROP OWNED BY reader3; DROP ROLE reader3")


def test_a_lost_connection_is_opened_again(con: tacit.Connection, run: Run) -> None:
    sql = "SELECT count(*) FROM lab.results WHERE value <= 7"
    (before,) = tacit.testing.exact_answers(con, sql)
    run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname = current_database()")  # fmt: skip
    (after,) = tacit.testing.exact_answers(con, sql)
    assert before.equals(after)


def test_a_connection_lost_while_rows_are_read(con: tacit.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(reader: RowReader, sql: str) -> Any:
        raise psycopg.OperationalError("secret row")

    monkeypatch.setattr(RowReader, "stream", lose)
    with pytest.raises(tacit.OperationalError) as caught:
        con.answer("SELECT count(*) FROM visits WHERE length(state) = 2", epsilon=0.1)
    assert "secret" not in str(caught.value) and "nothing was released" in str(caught.value)


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://u:s3cret@localhost:1/none",
        "postgresql://u:s3cret@no-such-host.invalid/none",
        "postgresql://u:s3cret@localhost:port/none",
        "postgresql://u:s3c@ret@local host/none",
        "postgresql://u:s3cret@localhost/none?unknown=option",
        "postgres://u:s3cret@/none?host=/nowhere",
    ],
)
def test_a_wrong_url_does_not_show_the_password(bad: str, tmp_path: Path) -> None:
    with pytest.raises(tacit.OperationalError) as caught:
        tacit.connect(bad, policy={"budget": {"epsilon": 1}}, ledger=tmp_path / "l")
    assert "s3c" not in str(caught.value)


def test_a_database_that_is_not_there(postgres: str, tmp_path: Path) -> None:
    with pytest.raises(tacit.OperationalError, match="no such database"):
        tacit.connect(postgres.replace("/postgres?", "/nope?"), ledger=tmp_path / "l")


def test_the_password_is_not_shown(url: str, tmp_path: Path) -> None:
    con = tacit.connect(url.replace("curator@", "curator:s3cret@"), policy=POLICY, ledger=tmp_path / "l")
    assert "s3cret" not in repr(con) + repr(con._session.source) + repr(con._session.source.__dict__)
    con.close()


def test_another_encoding_is_refused(new_database: Callable[..., str]) -> None:
    url = new_database("ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    with pytest.raises(tacit.OperationalError, match="LATIN1"):
        open_source(url)


def test_missing_drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tacit.sql.backends.postgres.server", None)
    with pytest.raises(tacit.OperationalError, match=r"tacit\[postgres\]"):
        _open_postgres("postgresql://localhost/x")


def test_the_ledger_must_be_named(url: str, tmp_path: Path) -> None:
    with pytest.raises(tacit.PolicyError, match=r"\[budget\]"):
        tacit.connect(url, policy={"budget": {"epsilon": 1}})
    policy = tmp_path / "policy.toml"
    policy.write_text('[budget]\nepsilon = 1\nledger = "books/clinic.ledger"\n')
    (tmp_path / "books").mkdir()
    con = tacit.connect(url, policy=policy, analyst="ana")
    con.answer("SELECT count(*) FROM visits", epsilon=0.25)
    assert (tmp_path / "books" / "clinic.ledger").exists()
    con.close()
    with tacit.connect(url, policy=policy) as curator:
        assert float(curator.budget.spent.epsilon) == 0.25


def test_through_sqlalchemy(url: str, tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text('[budget]\nepsilon = 5.0\nledger = "p.ledger"\n[tables."lab.results"]\n[tables.visits]\n')
    server = sa.make_url(url).set(drivername="tacit+postgresql")
    engine = sa.create_engine(server.update_query_dict({"policy": str(policy), "spend": "0.5"}))
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "public"
    assert inspector.get_schema_names() == ["lab", "public"]
    assert inspector.get_table_names() == ["tests", "visits", "wards"]
    assert inspector.get_table_names("lab") == ["results"]
    assert [column["name"] for column in inspector.get_columns("results", "lab")] == ["pid", "value"]
    assert len(pd.read_sql("SELECT count(*) FROM visits WHERE age < 40", engine)) == 1
    engine.dispose()
