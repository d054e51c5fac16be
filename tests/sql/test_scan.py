"""The generated scan: bounding by privacy unit, the corners of several clamps, files, versions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tacit.errors import OperationalError, PolicyError
from tacit.sql import Catalog, Column, Range, Source, Table, compile_batch, open_source
from tacit.sql.backends.duckdb.scan_sql import render
from tacit.sql.backends.duckdb.text import quote
from tacit.sql.scan import UNIT


def catalog_of(source: Source, **changes: object) -> Catalog:
    (table,) = source.schema()
    columns = tuple(Column(c.name, c.type, c.nullable, Range(0, 10)) for c in table.columns)
    return Catalog((replace(Table(table.name, columns), **changes),))  # type: ignore[arg-type]


def counts(rows: list[tuple[object, ...]], types: str, batch: str, salt: bytes = b"s", **changes: object) -> np.ndarray:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE v ({types})")
    if rows:
        connection.executemany(f"INSERT INTO v VALUES ({', '.join('?' * len(rows[0]))})", rows)
    source = open_source(connection)
    workload = compile_batch(batch, catalog_of(source, **changes))
    (scan,) = workload.scans
    x = source.count(scan, salt)
    assert x.dtype == np.int64 and len(x) == workload.matrix.shape[1]
    return workload.matrix @ x / scan.one_row


BATCH = "SELECT count(*) FROM v WHERE b < 3; SELECT count(*) FROM v; SELECT sum(b) FROM v WHERE a IS NOT NULL"


def test_at_most_k_rows_of_a_unit_and_none_without_a_unit() -> None:
    rows = [(unit, value) for unit in (1, 2, 3) for value in range(5)] + [(None, 1)] * 4
    for k, condition in itertools.product((1, 2, 4, 5, 9), ("a = 1", "a + 0 = 1")):
        batch = f"SELECT count(*) FROM v; SELECT count(*) FROM v WHERE {condition}"
        total, one = counts(rows, "a INTEGER, b INTEGER", batch, privacy_unit="a", max_rows_per_unit=k)
        assert (total, one) == (3 * min(k, 5), min(k, 5))


def test_the_rows_of_a_unit_that_are_kept_do_not_depend_on_the_batch_or_on_other_units() -> None:
    rows = [(unit, value) for unit in range(6) for value in range(10)]
    chosen: Callable[..., np.ndarray] = lambda rows, extra="", **k: counts(  # noqa: E731
        rows, "a INTEGER, b INTEGER", "SELECT b, count(*) FROM v WHERE a = 3 GROUP BY b" + extra,
        privacy_unit="a", max_rows_per_unit=3, **k,
    )[:11]  # fmt: skip
    first = chosen(rows)
    assert first.sum() == 3
    np.testing.assert_array_equal(first, chosen(rows[::-1]))
    np.testing.assert_array_equal(first, chosen([r for r in rows if r[0] >= 3]))
    np.testing.assert_array_equal(first, chosen(rows, "; SELECT sum(b) FROM v WHERE b > 4"))
    different = [chosen(rows, salt=bytes([salt])) for salt in range(8)]
    assert any(not np.array_equal(first, other) for other in different), "the salt decides which rows are kept"


@pytest.mark.parametrize("k", [1, 2])
def test_removing_any_unit_moves_every_answer_by_at_most_k_column_entries(k: int) -> None:
    """The argument of Scan and of _bounded, on small tables, unit by unit."""
    rows = [(u, v) for u, v in itertools.product(range(4), (0, 2, 7, 10))] + [(5, None), (None, 3)]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v (a INTEGER, b INTEGER)")
    connection.executemany("INSERT INTO v VALUES (?, ?)", rows)
    source = open_source(connection)
    workload = compile_batch(BATCH, catalog_of(source, privacy_unit="a", max_rows_per_unit=k))
    (scan,) = workload.scans
    x = source.count(scan, b"s")
    for unit in range(6):
        without = duckdb.connect()
        without.execute("CREATE TABLE v (a INTEGER, b INTEGER)")
        without.executemany("INSERT INTO v VALUES (?, ?)", [r for r in rows if r[0] != unit])
        moved = x - open_source(without).count(scan, b"s")
        assert np.all(moved >= 0) and moved.sum() <= k * scan.one_row


shares = st.one_of(st.none(), st.floats(-5, 15), st.sampled_from([0.0, 10.0, float("nan"), float("inf")]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(shares, shares, shares), max_size=6))
def test_a_row_adds_exactly_one_unit_in_all_and_sums_are_right(rows: list[tuple[float | None, ...]]) -> None:
    batch = "SELECT count(*), sum(a), sum(b), sum(c) FROM v; SELECT count(*) FROM v WHERE a IS NULL"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v (a DOUBLE, b DOUBLE, c DOUBLE)")
    if rows:
        connection.executemany("INSERT INTO v VALUES (?, ?, ?)", rows)
    source = open_source(connection)
    workload = compile_batch(batch, catalog_of(source))
    (scan,) = workload.scans
    x = source.count(scan, b"s")
    assert np.all(x >= 0) and x.sum() == UNIT * len(rows)
    truth = connection.execute(
        "SELECT count(*), "
        + ", ".join(
            f"coalesce(sum(CASE WHEN {c} IS NULL THEN NULL ELSE greatest(0, least(10, {c})) END), 0)" for c in "abc"
        )
        + " FROM v"
    ).fetchone()
    np.testing.assert_allclose((workload.matrix @ x / scan.one_row)[:4], truth, atol=10 / 2**31 * max(1, len(rows)))


def test_an_empty_table_counts_nothing() -> None:
    np.testing.assert_array_equal(counts([], "a INTEGER, b INTEGER", BATCH), [0, 0, 0])


def test_the_scan_names_only_the_table_and_constants() -> None:
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "we""ird" (a INTEGER, "b c" VARCHAR)')
    source = open_source(connection)
    workload = compile_batch(
        """SELECT count(*) FROM "we""ird" WHERE "b c" = 'x''); DROP TABLE v; --' AND a < 3""", catalog_of(source)
    )
    sql = render(workload.scans[0], b"", lambda table, wanted: quote(table.name))
    assert source.count(workload.scans[0], b"").sum() == 0
    assert "'x''); DROP TABLE v; --'" in sql and '"we""ird"' in sql


def test_parquet_and_csv(tmp_path: Path) -> None:
    for name in ("visits.parquet", "visits.csv"):
        duckdb.sql("SELECT range AS age, 'x' AS state FROM range(40)").write_parquet(
            str(tmp_path / name)
        ) if name.endswith("parquet") else (tmp_path / name).write_text(
            "age,state\n" + "\n".join(f"{i},x" for i in range(40)) + '\nbad,\n"broken\n'
        )
        types = {"visits": {"age": "INTEGER", "state": "VARCHAR"}}
        source = open_source(tmp_path / name, types)
        workload = compile_batch("SELECT count(*) FROM visits WHERE age < 18", catalog_of(source))
        assert source.count(workload.scans[0], b"")[0] == 18
        assert source.version(b"k") == open_source(tmp_path / name, types).version(b"k")
        source.close()
    with pytest.raises(PolicyError, match="csv file has no types"):
        open_source(tmp_path / "visits.csv")


@pytest.mark.parametrize("what", ["missing.duckdb", "text.duckdb", 5, None, "text.parquet"])
def test_what_is_not_a_database(tmp_path: Path, what: object) -> None:
    (tmp_path / "text.duckdb").write_text("this is not a database, " * 400)
    (tmp_path / "text.parquet").write_text("nor is this")
    given = tmp_path / what if isinstance(what, str) else what
    with pytest.raises(OperationalError) as caught:
        open_source(given)
    shown = caught.value
    assert "Error:" not in str(shown) and shown.__cause__ is None
    assert shown.__context__ is None or shown.__suppress_context__


def test_a_source_reads_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE v (a INTEGER)")
    source = open_source(path)
    cursor = source._connection.cursor()  # type: ignore[attr-defined]
    for statement in ("SELECT * FROM read_text('/etc/hostname')", "SET threads = 1", "ATTACH ':memory:' AS x",
                      "CREATE TABLE w (a INTEGER)", "COPY v TO 'out.csv'"):  # fmt: skip
        with pytest.raises(duckdb.Error):
            cursor.execute(statement)
    source.close()


@pytest.mark.parametrize(
    ("column", "constants"),
    [
        ("i", [str(k) for k in range(-12, 115)]),
        ("b", [str(k) for k in range(2**53 - 40, 2**53 + 40)]),
        ("d", [repr(k / 7) for k in range(-60, 200)] + ["0.1", "18.5"]),
        ("f", [repr(k / 7) for k in range(-60, 200)] + ["0.1", "18.5"]),
        ("n", [str(k / 100) for k in range(-50, 1900, 7)] + ["1.105"]),
        (
            "da",
            [f"DATE '2024-01-01' + INTERVAL '{k}' DAY" for k in range(-40, 400, 3)],
        ),
        ("ts", [f"TIMESTAMP '2024-01-01' + INTERVAL '{k}' HOUR" for k in range(-400, 2000, 17)]),
    ],
)
def test_many_cuts_are_looked_up_exactly(
    database: duckdb.DuckDBPyConnection, source: Source, catalog: Catalog, column: str, constants: list[str]
) -> None:
    """The lookup by slots agrees with DuckDB's own comparison for every constant, NaN and infinities included."""
    queries = [f"SELECT count(*) FROM t WHERE {column} {op} {c}" for c in constants for op in ("<", "=", ">=")]
    workload = compile_batch(queries, catalog)
    (scan,) = workload.scans
    assert "tacit lookup" in render(scan, b"", lambda table, wanted: quote(table.name))
    ours = workload.matrix @ source.count(scan, b"")
    expected = [database.execute(query).fetchone()[0] for query in queries]  # type: ignore[index]
    rows = [query.columns[0].output.rows[0] for query in workload.queries]  # type: ignore[union-attr]
    np.testing.assert_array_equal(ours[rows], expected)
