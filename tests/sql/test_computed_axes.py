"""Conditions and keys whose grid cannot be listed are computed row by row: the answers are DuckDB's own."""

from __future__ import annotations

import os
import random

import duckdb
import numpy as np
import pytest
from support.exact import exact_rows, exact_values_of
from tacit.errors import LimitError
from tacit.sql import Catalog, Column, Limits, ProductScan, Range, Source, Table, Values, Workload, compile_batch
from tacit.sql.backends.duckdb.database import open_source
from tacit.sql.regions import Regions
from tacit.sql.scan import Scan

SEEDS = 3 * int(os.environ.get("TACIT_FUZZ", "1"))
NUMBERS, DAYS, TEXTS = range(6), range(3), range(3)
ROWS = 700


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    """Six numbers, three dates, three texts and a truth, each with NULLs."""
    numbers = [f"CASE WHEN (i * {7 + k}) % 13 > 0 THEN (i * {31 + 2 * k} + i // 7) % 19 END AS n{k}" for k in NUMBERS]
    days = [
        f"CASE WHEN i % {11 + k} > 0 THEN DATE '2024-01-01' + CAST((i * {5 + k}) % 90 AS INTEGER) END AS d{k}"
        for k in DAYS
    ]
    texts = [f"CASE WHEN i % {9 + k} > 0 THEN chr(CAST(97 + (i * {3 + k}) % 7 AS INTEGER)) END AS s{k}" for k in TEXTS]
    rest = ["CASE WHEN i % 5 > 0 THEN i % 2 = 0 END AS p", "i % 4 AS g", "CASE WHEN i % 6 > 0 THEN i % 100 END AS x"]
    connection = duckdb.connect()
    columns = ", ".join([*numbers, *days, *texts, *rest])
    connection.execute(f"CREATE TABLE t AS SELECT {columns} FROM range({ROWS}) r(i)")
    return connection


@pytest.fixture(scope="module")
def source(database: duckdb.DuckDBPyConnection) -> Source:
    opened = open_source(database)
    opened.schema()
    return opened


def catalog() -> Catalog:
    columns = [Column(f"n{k}", "BIGINT", True, Values(tuple(range(5)))) for k in NUMBERS]
    columns += [Column(f"d{k}", "DATE") for k in DAYS] + [Column(f"s{k}", "VARCHAR") for k in TEXTS]
    columns += [Column("p", "BOOLEAN"), Column("g", "BIGINT", True, Values((0, 1, 2, 3)))]
    return Catalog((Table("t", (*columns, Column("x", "BIGINT", True, Range(0, 100))), version="1"),))


CATALOG = catalog()


def comparison(rng: random.Random) -> str:
    number, text = f"n{rng.randrange(6)}", f"s{rng.randrange(3)}"
    day = (
        f"d{rng.randrange(3)} {rng.choice(['<', '>=', '='])} DATE '2024-0{rng.randrange(1, 4)}-{rng.randrange(10, 28)}'"
    )
    return rng.choice(
        [
            f"{number} {rng.choice(['<', '<=', '=', '<>', '>'])} {rng.randrange(19)}",
            f"{number} NOT BETWEEN {rng.randrange(9)} AND {rng.randrange(9, 19)}",
            f"{number} IN ({rng.randrange(19)}, {rng.randrange(19)}, {rng.choice(['3', 'NULL'])})",
            f"{number} IS {rng.choice(['', 'NOT '])}NULL",
            f"{number} IS DISTINCT FROM {rng.randrange(19)}",
            f"n{rng.randrange(6)} < n{rng.randrange(6)}",
            f"n{rng.randrange(6)} + n{rng.randrange(6)} > {rng.randrange(30)}",
            day, day, f"{text} > '{rng.choice('abcdef')}'", f"{text} LIKE '{rng.choice('abc')}%'", "p",
            "p IS NOT FALSE",
        ]
    )  # fmt: skip


def condition(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return comparison(rng)
    parts = [condition(rng, depth - 1) for _ in range(rng.randrange(2, 5))]
    joined = f"({rng.choice([' OR ', ' AND ']).join(parts)})"
    kind = rng.randrange(8)
    if kind == 0:
        return f"NOT {joined}"
    if kind == 1:
        return f"({joined} IS {rng.choice(['TRUE', 'FALSE', 'NULL', 'NOT TRUE'])})"
    if kind == 2:
        return f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[-1]} END"
    return joined


def computed(workload: Workload) -> list[Regions]:
    """The columns that are computed from conditions or keys."""
    found = []
    for part in workload.tables:
        scan = part.scan
        if isinstance(scan, Scan):
            found += [r for r in scan.regions if r.numbered]
        else:
            assert isinstance(scan, ProductScan)
            of_axes = [axis.columns for axis in scan.axes if isinstance(axis.columns, tuple)]
            found += [r for columns in of_axes for r in columns if r.numbered]
    return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_conditions_have_the_answers_of_duckdb(
    source: Source, database: duckdb.DuckDBPyConnection, seed: int
) -> None:
    rng = random.Random(seed)
    unlisted = 0
    while unlisted < 8:
        where = condition(rng, 3)
        batch = [
            f"SELECT count(*) FROM t WHERE {where}",
            f"SELECT coalesce(sum(x), 0) FROM t WHERE {where} AND n0 < {rng.randrange(19)}",
            f"SELECT g, count(*) FROM t WHERE NOT ({where}) GROUP BY g",
            f"SELECT count(*) FILTER (WHERE {condition(rng, 2)}) - 2 * count(x) FROM t WHERE {condition(rng, 1)}",
            f"SELECT n{rng.randrange(6)}, count(*) FROM t GROUP BY 1",
        ]
        workload = compile_batch(batch, CATALOG, limits=Limits(cells=1 << 12, points=1 << 10))
        unlisted += bool(computed(workload))
        for scan in workload.scans:
            source.rehearse(scan)
        for number, sql in enumerate(batch):
            ours = {row[:-1]: row[-1] for row in exact_rows(workload, source, number)}
            for *key, value in database.cursor().execute(sql).fetchall():
                if tuple(key) in ours:  # groups that nobody declared are left out
                    assert ours[tuple(key)] == pytest.approx(value, abs=1e-4), sql


WIDE = [f"n{k} = {k}" for k in NUMBERS] + [f"d{k} < DATE '2024-02-01'" for k in DAYS] + [f"s{k} = 'a'" for k in TEXTS]


def test_equal_conditions_are_one_column_in_whatever_order_they_are_written() -> None:
    turned = f"SELECT sum(x) FROM t WHERE g = 1 AND ({' OR '.join(WIDE[::-1])})"
    workload = compile_batch([f"SELECT count(*) FROM t WHERE {' OR '.join(WIDE)}", turned], CATALOG)
    (column,) = computed(workload)
    assert column.numbered[2].startswith("((n0 in {0}) or (n1 in {1})") and column.numbered[2].endswith("is true")
    assert not computed(compile_batch(f"SELECT count(*) FROM t WHERE NOT ({' OR '.join(WIDE)})", CATALOG)), (
        "a conjunction"
    )


def test_what_is_computed_does_not_depend_on_what_else_is_asked(source: Source) -> None:
    sql = f"SELECT g, count(*) FROM t WHERE {' OR '.join(WIDE)} GROUP BY g"
    alone, beside = (
        compile_batch([sql, *others], CATALOG)
        for others in ([], [f"SELECT count(*) FROM t WHERE n0 < {c} OR d0 = DATE '2024-01-0{c}'" for c in range(1, 9)])
    )
    assert computed(alone)[0].column == computed(beside)[0].column
    rows = len(alone.queries[0].groups)
    np.testing.assert_array_equal(exact_values_of(alone, source)[:rows], exact_values_of(beside, source)[:rows])


def test_groups_of_columns_that_others_cut_finely(source: Source, database: duckdb.DuckDBPyConnection) -> None:
    keys = ", ".join(f"n{k}" for k in NUMBERS)
    others = [f"SELECT count(*) FROM t WHERE n{k} < {c}" for k in NUMBERS for c in range(19)]
    workload = compile_batch([f"SELECT {keys}, count(*), sum(x) FROM t GROUP BY {keys}", *others], CATALOG)
    assert len(computed(workload)) == 6 and all(r.count == 7 for r in computed(workload)), "the groups, and the rest"
    ours = {row[:-2]: row[-2:] for row in exact_rows(workload, source)}
    listed = 0
    for *key, count, total in (
        database.cursor().execute(f"SELECT {keys}, count(*), coalesce(sum(x), 0) FROM t GROUP BY {keys}").fetchall()
    ):
        if tuple(key) in ours:
            listed += 1
            assert ours[tuple(key)] == pytest.approx((count, total), abs=1e-4)
    assert listed > 0 and sum(count for count, _ in ours.values()) > 0


def test_keys_are_put_together_where_even_their_groups_are_too_many(
    source: Source, database: duckdb.DuckDBPyConnection
) -> None:
    keys = "g, n0, n1, p"
    where = " OR ".join(WIDE)
    sql = f"SELECT {keys}, count(*) FROM t WHERE {where} GROUP BY {keys}"
    workload = compile_batch(sql, CATALOG, limits=Limits(points=2500, cells=2500))
    assert sorted(r.count for r in computed(workload)) == [3, 6, 7, 19], "a truth, two keys, and two in one"
    ours = {row[:-1]: row[-1] for row in exact_rows(workload, source)}
    assert len(ours) == 5 * 6 * 6 * 3
    for *key, value in database.cursor().execute(sql).fetchall():
        assert ours.get(tuple(key), value) == value


def test_a_batch_that_fits_has_no_computed_column() -> None:
    batch = ["SELECT count(*) FROM t WHERE n0 < 5 OR n1 = 2", "SELECT g, count(*) FROM t WHERE p GROUP BY g"]
    assert not computed(compile_batch(batch, CATALOG))
    assert not computed(compile_batch(batch, CATALOG, limits=Limits(dense_cells=1)))


def test_answers_that_do_not_fit_are_refused_at_their_place() -> None:
    groups = ", ".join(f"n{k}" for k in NUMBERS)
    batch = [
        "SELECT g, count(*) FROM t GROUP BY g",
        f"SELECT {groups}, count(*), sum(x), avg(x) FROM t GROUP BY {groups}",
    ]
    with pytest.raises(LimitError, match="more than 60,000 numbers") as error:
        compile_batch([*batch, batch[0]], CATALOG, limits=Limits(rows=60_000))
    assert error.value.sql == batch[1] and error.value.query == 1 and "fewer" in error.value.hint
    assert len(error.value.errors) == 1
