"""How rows are grouped: by position, by keys, by the order of shares, by texts; and that no row makes it fail."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from tacit.sql import Catalog, Column, Range, Table, compile_batch, open_source, sorted_shares
from tacit.sql.backends.duckdb.database import DuckDBSource
from tacit.sql.backends.duckdb.extremes import extremes
from tacit.sql.backends.duckdb.keys_sql import by_order
from tacit.sql.backends.duckdb.scan_sql import render
from tacit.sql.backends.duckdb.settings import compares_only
from tacit.sql.catalog import Values
from tacit.sql.scan import UNIT, Scan, capped
from tacit.sql.scan_sets import joint_scans
from tacit.sql.sorted_shares import corner_weights, pairs

TYPES = {
    "a": "INTEGER",
    "b": "BIGINT",
    "c": "TINYINT",
    "d": "DOUBLE",
    "f": "FLOAT",
    "g": "DATE",
    "s": "VARCHAR",
    "u": "INTEGER",
}
BATCHES = {
    "few keys": ["SELECT a, count(*) FROM v GROUP BY a", "SELECT count(*) FROM v WHERE c < 4 AND b >= 7"],
    "a table for each column": [f"SELECT count(*) FROM v WHERE a < {k} AND b > {3 * k}" for k in range(0, 90, 7)],
    "slots": [f"SELECT count(*) FROM v WHERE d < {k / 3} AND f >= {k}" for k in range(-4, 12)],
    "days": [f"SELECT count(*) FROM v WHERE g < DATE '2024-01-{k:02}'" for k in range(1, 29)],
    "texts": [f"SELECT count(*) FROM v WHERE s IN ('{t}', 'ab')" for t in ("a", "b", "É", "", "it''s", "x" * 40)],
    "texts in order": [f"SELECT count(*) FROM v WHERE s < '{t}'" for t in "abcd"],
    "no key": ["SELECT count(*) FROM v"],
    "1 sum of all": ["SELECT sum(d) FROM v"],
    "2 sums of all": ["SELECT sum(b), sum(d) FROM v"],
    "1 sum": ["SELECT a, sum(d), count(*) FROM v GROUP BY a"],
    "2 sums": ["SELECT sum(d), sum(f) FROM v WHERE a < 5", "SELECT count(*) FROM v WHERE s = 'a'"],
    "4 sums": ["SELECT a, sum(a), sum(b), sum(c), sum(d) FROM v GROUP BY a"],
    "5 sums": ["SELECT sum(a), sum(b), sum(c), sum(d), sum(f), count(*) FROM v"],
}


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    """Random rows around the cuts, and every extreme value of every type."""
    connection.execute(f"CREATE TABLE v ({', '.join(f'{name} {type_}' for name, type_ in TYPES.items())})")
    pick = "CAST(hash(i * 8 + {0}) % 100000 AS INTEGER)"
    connection.execute(
        f"INSERT INTO v SELECT {pick.format(0)} % 14 - 2, {pick.format(1)} % 120, {pick.format(2)} % 9, "
        f"({pick.format(3)} % 1000) / 90.0 - 1, {pick.format(4)} % 12, DATE '2023-12-25' + {pick.format(5)} % 50, "
        f"['a', 'b', 'c', 'ab', 'É', '', 'it''s', NULL][1 + {pick.format(6)} % 8], i % 40 FROM range(600) n(i)"
    )
    for number, (name, type_) in enumerate(list(TYPES.items())[:-1]):
        for value in extremes(type_):
            connection.execute(f"INSERT INTO v ({name}, u) VALUES (CAST({value} AS {type_}), {number})")


def catalog(**changes: object) -> Catalog:
    domains = {"a": Values(tuple(range(10))), "g": None, "s": None}
    columns = tuple(Column(n, t, True, domains.get(n, Range(0, 10))) for n, t in TYPES.items())
    return Catalog((replace(Table("v", columns), **changes),))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[DuckDBSource]:
    """A file that tacit opens, which is planned with statistics alone, and a connection with the whole optimizer."""
    path = tmp_path_factory.mktemp("groups") / "v.duckdb"
    with duckdb.connect(str(path)) as connection:
        fill(connection)
    memory = duckdb.connect()
    fill(memory)
    return [open_source(path), open_source(memory)]


def row_by_row(source: DuckDBSource, scan: Scan) -> np.ndarray:
    """The same count by another way: regions and shares of every row, added up in numpy, corner by corner."""
    ((joint, _),) = joint_scans([scan])
    return source._count_sets(joint, b"s", source._rows)[0]


@pytest.mark.parametrize(("unit", "bound"), [("", 0), ("u", 1), ("u", 2), ("s", 1), ("g", 3), ("d", 1), ("f", 2)])
@pytest.mark.parametrize("name", BATCHES)
def test_groups_add_up_to_what_the_rows_do(sources: list[DuckDBSource], name: str, unit: str, bound: int) -> None:
    changes = {"privacy_unit": unit, "max_rows_per_unit": bound} if bound else {}
    (scan,) = compile_batch(BATCHES[name], catalog(**changes)).scans
    assert compares_only(scan) == (unit not in ("d", "f")) and by_order(scan) == ("sum" in name)
    vectors = [source.count(scan, b"s") for source in sources]
    np.testing.assert_array_equal(vectors[0], row_by_row(sources[0], scan))
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert vectors[0].sum() > 0


def test_too_many_orders_are_summed_corner_by_corner(
    sources: list[DuckDBSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    (scan,) = compile_batch(BATCHES["4 sums"], catalog()).scans
    grouped = sources[0].count(scan, b"s")
    monkeypatch.setattr(sorted_shares, "_MOST_GROUPS", 1)
    assert not by_order(scan)
    np.testing.assert_array_equal(sources[0].count(scan, b"s"), grouped)


@pytest.mark.parametrize("type_", [*dict.fromkeys(TYPES.values()), "DECIMAL(20,3)", "HUGEINT", "TIMESTAMP", "UBIGINT"])
def test_no_statistic_of_the_rows_makes_a_scan_fail(type_: str) -> None:
    """A table of one value makes everything constant while the scan is planned, by the whole optimizer too."""
    numbers = type_ not in ("DATE", "VARCHAR", "TIMESTAMP")
    literal = {"DATE": "DATE '2024-01-{:02}'", "TIMESTAMP": "TIMESTAMP '2024-01-{:02} 00:00:00'"}.get(type_, "'{}'")
    batch = [f"SELECT count(*) FROM v WHERE x = {literal.format(k)} AND y < 3" for k in range(1, 9)]
    batch += ["SELECT sum(x), sum(y), count(*) FROM v"] if numbers else ["SELECT sum(y), count(*) FROM v"]
    columns = (Column("x", type_, True, Range(0, 7) if numbers else None), Column("y", "DOUBLE", True, Range(0, 1e9)))
    (scan,) = compile_batch(batch, Catalog((Table("v", columns),))).scans
    assert compares_only(scan)
    for value, other in itertools.product(extremes(type_), ("'nan'", "'-inf'", "1.7e308", "NULL")):
        connection = duckdb.connect()
        connection.execute(
            f"CREATE TABLE v AS SELECT CAST({value} AS {type_}) AS x, CAST({other} AS DOUBLE) AS y FROM range(3)"
        )
        assert open_source(connection).count(scan, b"").sum() == 3 * UNIT


def test_what_could_fail_is_planned_without_statistics(sources: list[DuckDBSource]) -> None:
    plain = compile_batch("SELECT count(*) FROM v WHERE a < 5", catalog()).scans[0]
    computed = compile_batch("SELECT count(*) FROM v WHERE a + b < 5", catalog()).scans[0]
    bounded = compile_batch("SELECT count(*) FROM v WHERE a < 5", catalog(privacy_unit="u", max_rows_per_unit=1)).scans[
        0
    ]
    floating = compile_batch("SELECT count(*) FROM v WHERE a < 5", catalog(privacy_unit="d")).scans[0]
    settings = ((plain, True), (computed, False), (bounded, True), (floating, False))
    for source, (scan, optimized) in itertools.product(sources, settings):
        with source._cursor(scan) as cursor:
            assert cursor.execute("SELECT current_setting('enable_optimizer')").fetchall() == [(optimized,)]
    with sources[0]._cursor(plain) as cursor:
        passes = {name for (name,) in cursor.execute("SELECT * FROM duckdb_optimizers()").fetchall()}
        (left_out,) = cursor.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0]
        assert passes - set(left_out.split(",")) == {"statistics_propagation"}
        for name in ("disabled_optimizers", "allowed_configs", "enable_external_access"):
            with pytest.raises(duckdb.Error, match="locked"):
                cursor.execute(f"SET GLOBAL {name} = ''")


@pytest.mark.parametrize("type_", ["TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER"])
@pytest.mark.parametrize("unit", [None, "u"])
def test_numbers_of_values_in_a_row_fail_on_no_value(type_: str, unit: str | None) -> None:
    """With the whole optimizer, over every extreme value of the type; each value is where DuckDB itself finds it."""
    (least, greatest) = duckdb.sql(f"SELECT min(x), max(x) FROM (VALUES {_extremes(type_)}) v(x)").fetchall()[0]
    for values in (range(5), range(int(greatest) - 4, int(greatest)), range(int(least) + 1, int(least) + 6)):
        columns = (Column("u", "INTEGER"), Column("x", type_, True, Values(tuple(values))))
        table = Table("v", columns, privacy_unit=unit, max_rows_per_unit=1)
        (scan,) = compile_batch("SELECT x, count(*) FROM v GROUP BY x", Catalog((table,))).scans
        connection = duckdb.connect()
        connection.execute(f"CREATE TABLE v (u INTEGER, x {type_})")
        held = [*values, *values, None, int(least), int(greatest)]
        connection.executemany("INSERT INTO v VALUES (?, ?)", list(enumerate(held)))
        # the declared values in their order, then NULL; what else there is, is in no group
        assert open_source(connection).count(scan, b"").tolist() == [*(held.count(v) for v in values), 1]


def _extremes(type_: str) -> str:
    return ", ".join(f"(CAST({value} AS {type_}))" for value in extremes(type_))


@pytest.mark.parametrize("name", ["2 sums", "4 sums", "5 sums"])
@pytest.mark.parametrize("unit", [None, "u"])
def test_totals_answer_what_is_affine_in_the_corners(sources: list[DuckDBSource], name: str, unit: str | None) -> None:
    batch = compile_batch(BATCHES[name], catalog(privacy_unit=unit))
    (scan,) = batch.scans
    W = np.rint(batch.matrix * 90).astype(np.int64)  # of this batch: whole, and affine in the corners
    by_totals = scan.asking(W)
    assert by_totals.totals and by_totals.fingerprint == scan.fingerprint
    exact, totals = sources[0].count(scan, b"s"), sources[0].count(by_totals, b"s")
    np.testing.assert_array_equal(W @ exact, W @ totals)
    assert (totals >= 0).all() and (exact != totals).any()
    assert not scan.asking(np.eye(scan.cells, dtype=np.int64)).totals
    broken = W.copy()
    broken[0, scan.cell_of.reshape(-1, 1 << len(scan.summed))[0, -1]] += 1
    assert not scan.asking(broken).totals


def test_totals_beyond_64_bits_end_nowhere(sources: list[DuckDBSource]) -> None:
    (scan,) = compile_batch("SELECT sum(d), sum(f), count(*) FROM v", catalog()).scans
    scan, many = replace(scan, totals=True), 1 << 40
    axes = [np.zeros(1, dtype=np.int64)] * len(scan.regions)
    halves = [np.array([many >> 4]), np.array([5]), np.array([many >> 3]), np.array([7])]
    x = scan.in_cells_by_order([*axes, np.zeros(1), np.array([many]), *halves])
    assert sum(x.tolist()) == many * UNIT > 2**63


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("key", ["x", "x + 0"])
def test_rows_with_one_hash_are_told_apart_by_what_they_hold(key: str, k: int) -> None:
    rows = [(unit, value) for unit in range(3) for value in range(5)]
    columns = (Column("u", "INTEGER"), Column("x", "INTEGER", True, Values(tuple(range(5)))))
    table = Table("v", columns, privacy_unit="u", max_rows_per_unit=k)
    batch = [f"SELECT count(*) FROM v WHERE {key} = {value}" for value in range(5)]
    (scan,) = compile_batch(batch, Catalog((table,))).scans
    vectors = []
    for order in (rows, rows[::-1], sorted(rows, key=lambda row: (row[1] * 3) % 5)):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE v (u INTEGER, x INTEGER)")
        connection.executemany("INSERT INTO v VALUES (?, ?)", order)
        source = open_source(connection)
        sql, replaced = re.subn(r"hash\([^()]*\)", "0", render(scan, b"s", source._rows))
        assert replaced == 1
        vectors.append(source._count(scan, sql).tolist())
    assert vectors[0] == vectors[1] == vectors[2] and sum(vectors[0]) == 3 * k


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_weights_of_corners_are_exact(count: int) -> None:
    """Against every row by itself; and where sums leave 64 bits, which no table of a test has rows for."""
    rng = np.random.default_rng(count)
    shares = rng.integers(0, 4, size=(50, count)) * (UNIT // 3)
    expected: dict[tuple[int, int], int] = {}
    order = sum(
        ((shares[:, i] < shares[:, j]).astype(np.int64) << b for b, (i, j) in enumerate(pairs(count))),
        np.zeros(50, int),
    )
    for row, code in zip(shares.tolist(), order.tolist(), strict=True):
        for corner in range(1 << count):
            raised = [f for i, f in enumerate(row) if corner >> (count - 1 - i) & 1]
            rest = [f for i, f in enumerate(row) if not corner >> (count - 1 - i) & 1]
            weight = max(0, min([*raised, UNIT]) - max([*rest, 0]))
            expected[code, corner] = expected.get((code, corner), 0) + weight
    many = 1 << 36
    codes = np.unique(order)
    rows = np.array([(order == code).sum() * many for code in codes])
    totals = [[int(shares[order == code, i].sum()) * many for code in codes] for i in range(count)]
    halves = [(np.array([t >> 32 for t in total]), np.array([t & 0xFFFFFFFF for t in total])) for total in totals]
    corner, upper, lower = corner_weights(count, codes, rows, halves, 30)
    for i, code in enumerate(codes.tolist()):
        found = {int(c): (int(u) << 32) + int(w) for c, u, w in zip(corner[i], upper[i], lower[i], strict=True)}
        assert sum(found.values()) == UNIT * int(rows[i])
        assert all(expected.get((code, c), 0) * many == w for c, w in found.items())
    assert capped(upper, lower).max() == np.iinfo(np.int64).max
