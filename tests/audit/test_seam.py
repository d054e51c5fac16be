"""Where tacit meets a real database: collations, macros, settings and odd types may not change what a batch means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from support import seams
from tacit.sql import open_source

ROWS = """SELECT (i % 4)::INTEGER AS k, chr((65 + i % 4 + 32 * ((i // 4) % 2))::INTEGER) AS s, i::INTEGER AS i
          FROM range(40) r(i)"""


def exact(database: Any, sql: str, **policy: Any) -> list[Any]:
    with tacit.connect(database, policy={"budget": {"epsilon": 1}, **policy}) as con:
        return tacit.testing.exact_answers(con, sql)[0].iloc[0].tolist()


class TestCollation:
    def test_texts_are_compared_byte_by_byte(self) -> None:
        database = duckdb.connect()
        database.execute("CREATE TABLE v (k INTEGER, s VARCHAR COLLATE NOCASE, i INTEGER)")
        database.execute(f"INSERT INTO v {ROWS}")
        batch = "SELECT count(*) FILTER (WHERE s = 'a'), count(*) FILTER (WHERE upper(s) = 'A'), count(*) FROM v"
        assert exact(database, batch) == [5, 10, 40]

    def test_a_public_key_is_unique_as_it_is_compared(self) -> None:
        """Declared unique without regard to case, and then compared byte by byte, or the other way round."""
        database = duckdb.connect()
        database.execute(f"CREATE TABLE v AS {ROWS}")
        database.execute("CREATE TABLE p (s VARCHAR COLLATE NOCASE, size INTEGER)")
        database.execute("INSERT INTO p VALUES ('a', 1), ('A', 2), ('b', 3)")
        tables = {"p": {"public": True}}
        batch = "SELECT count(*), count(*) FILTER (WHERE p.size = 1) FROM v JOIN p ON v.s = p.s"
        assert exact(database, batch, tables=tables) == [15, 5]

    def test_one_unit_moves_no_more_than_its_rows(self) -> None:
        """256 spellings of one name are 256 units; each moves what one unit may, and no row joins another's."""
        database = duckdb.connect()
        for name in ("v", "w"):
            database.execute(f"CREATE TABLE {name} (person VARCHAR COLLATE NOCASE, x INTEGER)")
            spelled = "translate(lpad(bin(i), 8, '0'), '01', 'aA')"
            database.execute(f"INSERT INTO {name} SELECT {spelled}, 1 FROM range(256) r(i)")
        unit = {"privacy_unit": "person", "max_rows_per_unit": 1}
        tables = {"v": unit, "w": unit}
        batch = "SELECT count(*) FROM v JOIN w ON v.person = w.person"
        assert exact(database, batch, tables=tables) == [256]

    def test_a_default_collation_changes_nothing(self) -> None:
        database = duckdb.connect()
        database.execute(f"CREATE TABLE v AS {ROWS}")
        database.execute("SET default_collation = 'nocase'")
        assert exact(database, "SELECT count(*) FROM v WHERE s = 'a'") == [5]
        assert database.execute("SELECT current_setting('default_collation')").fetchall() == [("nocase",)], "not ours"


class TestSettings:
    @pytest.mark.parametrize(
        "setting",
        [
            "integer_division = true",
            "ieee_floating_point_ops = false",
            "TimeZone = 'Asia/Tokyo'",
            "default_order = 'desc'",
        ],
    )
    def test_a_setting_of_the_connection_changes_no_cell(self, setting: str) -> None:
        database = duckdb.connect()
        database.execute(f"CREATE TABLE v AS {ROWS}")
        batch = (
            "SELECT count(*) FILTER (WHERE i / 2 = 3.5), count(*) FILTER (WHERE isinf(1e0 / (i * 1e0)) IS TRUE),"
            " count(*) FILTER (WHERE i // 2 = 3), count(*) FILTER (WHERE z < '2020-01-01') FROM v"
        )
        database.execute("ALTER TABLE v ADD COLUMN z TIMESTAMPTZ DEFAULT '2020-06-01 00:00:00+00'")
        plain = exact(database, batch)
        database.execute(f"SET GLOBAL {setting}")
        assert exact(database, batch) == plain
        assert plain[0] == 1

    def test_a_locked_setting_is_refused_before_anything_is_charged(self) -> None:
        database = duckdb.connect()
        database.execute(f"CREATE TABLE v AS {ROWS}")
        database.execute("SET GLOBAL integer_division = true")
        database.execute("SET lock_configuration = true")
        with pytest.raises(tacit.OperationalError, match="hint: RESET integer_division"):
            tacit.connect(database, epsilon=1)


MACROS = [
    "greatest(a, b) AS 0", "least(a, b) AS 0", "hash(a) AS NULL", '"+"(a, b) AS 0', '"-"(a, b) AS 0', '"*"(a, b) AS 0',
    '"~~"(a, b) AS true', "count_star() AS 0", "sum(a) AS 0", "round(a) AS 0", "floor(a) AS 0", "strlen(a) AS NULL",
    "list_extract(a, b) AS 0", "coalesce(a, b) AS 0", "epoch(a) AS 0", "make_timestamp(a) AS NULL", "isnan(a) AS true",
]  # fmt: skip
BATCH = (
    "SELECT count(*), sum(i), count(*) FILTER (WHERE s LIKE 'a%'), count(*) FILTER (WHERE i + k > 20),"
    " count(*) FILTER (WHERE upper(s) = 'B'), sum(i + k), count(*) FILTER (WHERE greatest(i, k) < 5) FROM v"
)
TABLES = {"v": {"columns": {"i": {"min": 0, "max": 40}, "k": {"min": 0, "max": 4}}}}


@pytest.fixture(params=["file", "open"])
def shadowed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """Two databases of the same rows; the second has macros named like what the scan calls."""
    plain, shadows = tmp_path / "plain.duckdb", tmp_path / "shadows.duckdb"
    for path in (plain, shadows):
        with duckdb.connect(str(path)) as database:
            database.execute(f"CREATE TABLE v AS {ROWS}")
    with duckdb.connect(str(shadows)) as database:
        for macro in MACROS:
            database.execute(f"CREATE MACRO {macro}")
    if request.param == "file":
        yield plain, shadows
    else:
        with duckdb.connect(str(plain)) as one, duckdb.connect(str(shadows)) as other:
            yield one, other


class TestMacros:
    def test_macros_of_the_database_change_no_cell(self, shadowed: tuple[Any, Any]) -> None:
        plain, shadows = shadowed
        assert exact(shadows, BATCH, tables=TABLES) == exact(plain, BATCH, tables=TABLES)

    def test_without_the_search_path_they_would(
        self, shadowed: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The broken engine that the test above is there for."""
        plain, shadows = shadowed
        batch = "SELECT count(*) FROM v WHERE i + k > 20"
        (right,) = exact(plain, batch)
        assert exact(shadows, batch) == [right] and right > 0
        seams.replace(monkeypatch, "prepare", lambda *_, **_named: 0)
        assert exact(shadows, batch) == [0], "the macro + is called"

    def test_a_units_bound_holds_under_a_macro(self, tmp_path: Path) -> None:
        database = duckdb.connect()
        database.execute("CREATE TABLE v AS SELECT i % 3 AS person, i FROM range(90) r(i)")
        database.execute('CREATE MACRO "<="(a, b) AS true')
        database.execute("CREATE MACRO hash(a, b, c) AS 1")
        tables = {"v": {"privacy_unit": "person", "max_rows_per_unit": 2}}
        assert exact(database, "SELECT count(*) FROM v", tables=tables) == [6]


STATISTICS = "SELECT count(*) FROM v WHERE CASE WHEN k < 9 THEN (i IS NULL) BETWEEN 'a' AND 'b' ELSE TRUE END"


def rows_with_and_without_null() -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]:
    found = duckdb.connect(), duckdb.connect()
    for database in found:
        database.execute(f"CREATE TABLE v AS {ROWS}")
    found[1].execute("INSERT INTO v VALUES (1, 'a', NULL)")
    return found


class TestStatistics:
    """DuckDB plans with statistics of the rows, and what they make constant it computes outside every TRY."""

    def test_no_statistic_of_the_rows_decides_whether_a_scan_fails(self) -> None:
        for database in rows_with_and_without_null():
            assert exact(database, STATISTICS) == [0]

    def test_with_the_optimizer_one_would(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The broken engine that the test above is there for."""
        wanted = {**seams.real("meaning")(), "enable_optimizer": "true"}
        seams.replace(monkeypatch, "meaning", lambda: wanted)
        without, with_null = rows_with_and_without_null()
        assert exact(with_null, STATISTICS) == [0]
        with pytest.raises(tacit.Error):
            exact(without, STATISTICS)


def test_a_scan_that_cannot_run_is_refused_unpaid(monkeypatch: pytest.MonkeyPatch) -> None:
    database = duckdb.connect()
    database.execute(f"CREATE TABLE v AS {ROWS}")
    with tacit.connect(database, epsilon=1) as con:
        real = seams.real("render")
        seams.replace(monkeypatch, "render", lambda *args: real(*args).replace("count(*)", "no_such_function()"))
        with pytest.raises(tacit.NotSupportedError, match="nothing was charged"):
            con.answer("SELECT count(*) FROM v", epsilon=0.5)
        assert con.budget.spent.epsilon == 0


def test_a_frame_that_cannot_be_made_is_refused_unpaid(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Any:
        raise duckdb.InvalidInputException("what DuckDB says of it")

    database = duckdb.connect()
    database.execute(f"CREATE TABLE v AS {ROWS}")
    with tacit.connect(database, epsilon=1) as con:
        seams.replace(monkeypatch, "evaluate", refuses)
        for sql in ("SELECT sqrt(count(*)) FROM v", "SELECT count(*) FROM v HAVING count(*) > 3"):
            with pytest.raises(tacit.NotSupportedError, match="nothing was charged"):
                con.answer(sql, epsilon=0.5)
        assert con.budget.spent.epsilon == 0


def test_the_rehearsal_reads_no_stored_row() -> None:
    database = duckdb.connect()
    database.execute(f"CREATE TABLE v AS {ROWS}")
    source = open_source(database)
    with tacit.connect(database, epsilon=1) as con:
        from tacit.sql import compile_batch

        (scan,) = compile_batch("SELECT count(*) FROM v WHERE upper(s) = 'A' AND i / k > 2", con.catalog).scans
        database.execute("DROP TABLE v")
        source.rehearse(scan)
        with pytest.raises(tacit.OperationalError):
            source.count(scan, bytes(32))


def test_texts_too_long_to_compute_with_are_null() -> None:
    database = duckdb.connect()
    database.execute("CREATE TABLE v (s VARCHAR)")
    database.execute("INSERT INTO v SELECT repeat('a', n) FROM (VALUES (1), (65536), (65537), (5000000)) t(n)")
    batch = "SELECT count(*) FILTER (WHERE upper(s) LIKE 'A%'), count(*) FILTER (WHERE s LIKE 'a%'), count(*) FROM v"
    assert exact(database, batch) == [2, 4, 4]
    through = "WITH a AS (SELECT coalesce(s, '') AS r FROM v) SELECT count(*) FROM a WHERE replace(r, 'a', 'bb') > 'b'"
    assert exact(database, through) == [2], "a long text is one behind other names too"


@pytest.mark.parametrize("way", ["inline", "cte", "derived", "view"])
def test_no_text_grows_behind_a_name(way: str) -> None:
    """Ten times eight times as long at every step: a gigabyte for one row, and which row is the analyst's choice."""
    database = duckdb.connect()
    database.execute("CREATE TABLE v (s VARCHAR)")
    grown = "replace(s, 'a', 'aaaaaaaa')"
    if way == "inline":
        rows = f"(SELECT {grown.replace('(s', '(' + grown)} AS s FROM v)"
    elif way == "derived":
        rows = "v"
        for _ in range(6):
            rows = f"(SELECT {grown} AS s FROM {rows})"
    elif way == "view":
        database.execute(f"CREATE VIEW w0 AS SELECT {grown} AS s FROM v")
        for i in range(5):
            database.execute(f"CREATE VIEW w{i + 1} AS SELECT {grown} AS s FROM w{i}")
        rows = "w5"
    else:
        steps = ", ".join(f"c{i} AS (SELECT {grown} AS s FROM {f'c{i - 1}' if i else 'v'})" for i in range(6))
        rows = f"(WITH {steps} SELECT s FROM c5)"
    with tacit.connect(database, epsilon=1) as con, pytest.raises(tacit.Error, match="too long"):
        con.explain(f"SELECT count(*) FROM {rows} AS grown WHERE length(s) > 3", epsilon=0.1)


def test_a_moment_that_duckdb_cannot_write_closes_no_database() -> None:
    database = duckdb.connect()
    database.execute("CREATE TABLE v AS SELECT make_timestamp(-9223372036854775000) AS x, 2 AS y")
    with tacit.connect(database, epsilon=1) as con:
        for written in ("CAST(x AS VARCHAR)", "concat(x, 'a')", "x || 'a'", "coalesce(x, 'a')", "x::TEXT"):
            with pytest.raises(tacit.Error):
                con.answer(f"SELECT count(*) FROM v WHERE {written} LIKE '2020%'", epsilon=0.1)
        con.answer(
            "SELECT count(*) FROM v WHERE strftime(x, '%Y') LIKE '2020%' OR x > TIMESTAMP '2024-01-01'", epsilon=0.1
        )
    assert database.execute("SELECT count(*) FROM v").fetchall() == [(1,)]


def test_a_csv_row_that_does_not_cast_is_null_and_not_gone(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("a,b\n1,1\n2,2\nfoo,3\n,4\n")
    types = {"a": {"type": "INTEGER"}, "b": {"type": "INTEGER"}}
    batch = (
        "SELECT count(*), count(*) FILTER (WHERE a IS NULL), count(*) FILTER (WHERE a IS NOT NULL),"
        " count(*) FILTER (WHERE b < 9 AND a IS NULL) FROM c"
    )
    assert exact(tmp_path / "c.csv", batch, tables={"c": {"columns": types}}) == [4, 2, 2, 2]
    assert exact(tmp_path / "c.csv", "SELECT count(*) FROM c WHERE a IS NULL", tables={"c": {"columns": types}}) == [2]


def test_salts_do_not_make_counts_differ() -> None:
    """Rows that tie in everything are equal, so the choice among them cannot be seen."""
    database = duckdb.connect()
    database.execute("CREATE TABLE v AS SELECT 1 AS person, 2 AS x FROM range(50)")
    source = open_source(database)
    tables = {"v": {"privacy_unit": "person", "max_rows_per_unit": 3}}
    with tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": tables}) as con:
        from tacit.sql import compile_batch

        (scan,) = compile_batch("SELECT count(*) FROM v WHERE x = 2", con.catalog).scans
        np.testing.assert_array_equal(source.count(scan, bytes(32)), source.count(scan, bytes([7] * 32)))
