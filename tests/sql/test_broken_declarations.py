"""NOT NULL columns and complete lists: fewer cells, the same answers, and rows that break what is declared."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import numpy as np
import pytest
from support.exact import exact_rows, exact_values_of
from tacit.sql import Catalog, Column, Range, Source, Table, Values, Workload, compile_batch, open_source
from tacit.sql.refine import Refinement, grid_of

KEPT = (
    Column("s", "VARCHAR", False, Values(("NJ", "CA", "NY"), complete=True)),
    Column("k", "INTEGER", True, Values((10, 20, 30), complete=True)),
    Column("i", "INTEGER", False, Range(0, 10)),
    Column("d", "DOUBLE", False, Values((0.5, 2.5), complete=True)),
    Column("p", "BOOLEAN", False),
    Column("u", "INTEGER", False),
)
OPEN = tuple(Column(c.name, c.type, True, c.domain if c.name == "i" else None) for c in KEPT)
"""The same columns with nothing declared."""
ROWS: list[tuple[Any, ...]] = [
    (s, k, i, d, p, u)
    for u, (s, k, i, d, p) in enumerate(
        itertools.product(("CA", "NY", "NJ"), (10, 30, None), (0, 4, 12), (0.5, 2.5), (True, False))
    )
]
BROKEN: list[tuple[Any, ...]] = [
    (None, None, None, None, None, None),
    ("", 11, -5, -1.0, None, 1),
    ("CB", -(2**31), None, float("nan"), True, 1),
    ("ZZ", 2**31 - 1, 3, float("inf"), None, 2),
    (None, 25, None, float("-inf"), False, None),
    ("NJ", 10, None, 1.5, True, 7),
]
BATCH = [
    "SELECT s, count(*) FROM v GROUP BY s",
    "SELECT k, count(*), sum(i) FROM v WHERE s >= 'D' GROUP BY k",
    "SELECT count(*), sum(i), avg(i), sum(i * d), count(i), count(k) FROM v",
    "SELECT count(*) FROM v WHERE s = 'XX' OR d > 1 OR k <> 20",
    "SELECT count(*) FROM v WHERE NOT (s IN ('CA', 'NJ')) AND i IS NOT NULL",
    "SELECT p, d, count(*) FROM v GROUP BY CUBE (p, d)",
    "SELECT count(*) FROM v WHERE i IS NULL OR s IS NULL OR p IS NULL",
    "SELECT count(*) FROM v WHERE i + 1 IS NULL",
    "SELECT count(*) FROM v WHERE p",
]


def source_of(rows: list[tuple[Any, ...]]) -> tuple[duckdb.DuckDBPyConnection, Source]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v (s VARCHAR, k INTEGER, i INTEGER, d DOUBLE, p BOOLEAN, u INTEGER)")
    connection.executemany("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)", rows)
    return connection, open_source(connection)


def catalog(columns: tuple[Column, ...] = KEPT, **changes: Any) -> Catalog:
    return Catalog((Table("v", columns, version="1", **changes),))


def column(**changes: Any) -> Catalog:
    return Catalog((Table("v", (Column("c", **changes), Column("n", "INTEGER", domain=Range(0, 9)))),))


def cells(workload: Workload) -> list[str]:
    return [cell.label for cell in workload.cells]


def test_a_cube_of_not_null_enums_has_the_cells_that_can_exist() -> None:
    labels = tuple(f"v{i}" for i in range(10))
    enum = f"ENUM({', '.join(map(repr, labels))})"
    columns = tuple(Column(name, enum, False, Values(labels, complete=True)) for name in "abc")
    workload = compile_batch("SELECT a, b, c, count(*) FROM t GROUP BY CUBE (a, b, c)", Catalog((Table("t", columns),)))
    assert workload.matrix.shape == (11**3, 1000)
    assert workload.scans[0].shape == (1, 10, 10, 10)


@pytest.mark.parametrize("batch", [*([sql] for sql in BATCH), BATCH], ids=[*map(str, range(len(BATCH))), "all"])
def test_a_declaration_that_holds_changes_no_answer(batch: list[str]) -> None:
    _, source = source_of(ROWS)
    kept, plain = compile_batch(batch, catalog()), compile_batch(batch, catalog(_listed()))
    for number in range(len(batch)):
        wanted = {row[: _keys(plain, number)]: row for row in exact_rows(plain, source, number)}
        for row in exact_rows(kept, source, number):
            np.testing.assert_allclose(_numbers(row), _numbers(wanted[row[: _keys(plain, number)]]), atol=1e-5)
    assert len(kept.cells) <= len(plain.cells)


def _listed() -> tuple[Column, ...]:
    """The same columns and lists of groups, neither NOT NULL nor complete: what tacit made of them before."""
    return tuple(
        Column(c.name, c.type, True, Values(c.domain.values) if isinstance(c.domain, Values) else c.domain)
        for c in KEPT
    )


def _keys(workload: Workload, number: int) -> int:
    return len(workload.queries[number].keys)


def _numbers(row: tuple[Any, ...]) -> list[float]:
    return [float(value) for value in row if isinstance(value, int | float | np.number) and value == value]


@pytest.mark.parametrize("declared", [{}, {"privacy_unit": "u", "max_rows_per_unit": 2}], ids=["rows", "units"])
@pytest.mark.parametrize("batch", [*([sql] for sql in BATCH), BATCH], ids=[*map(str, range(len(BATCH))), "all"])
def test_a_row_that_breaks_a_declaration_adds_at_most_one_unit(batch: list[str], declared: dict[str, Any]) -> None:
    """The scan answers whatever the rows hold, and each row still adds at most one whole row, in one place."""
    workload = compile_batch(batch, catalog(**declared))
    (scan,) = workload.scans
    before = source_of(ROWS)[1].count(scan, b"salt")
    for broken in [*([row] for row in BROKEN), BROKEN]:
        added = source_of([*ROWS, *broken])[1].count(scan, b"salt") - before
        if declared:
            units = {row[5] for row in broken} - {None}
            assert np.abs(added).sum() <= 2 * scan.rows_per_unit * len(units) * scan.one_row
        else:
            assert np.all(added >= 0) and added.sum() <= len(broken) * scan.one_row
        alone = source_of(broken)[1].count(scan, b"salt")
        assert np.all(alone >= 0) and alone.sum() <= len(broken) * scan.one_row


def test_no_row_is_lost_to_a_declaration() -> None:
    """count(*) is the same beside any other query, so what different batches say of it agrees."""
    _, source = source_of([*ROWS, *BROKEN])
    for sql in BATCH:
        workload = compile_batch([sql, "SELECT count(*) FROM v"], catalog())
        (output,) = workload.queries[1].columns
        (row,) = output.output.rows  # type: ignore[union-attr]
        assert exact_values_of(workload, source)[row] == len(ROWS) + len(BROKEN)


@pytest.mark.parametrize(
    ("value", "read_as"),
    [(None, "CA"), ("", "CA"), ("CA", "CA"), ("CB", "CA"), ("NJ", "NJ"), ("NX", "NJ"), ("NY", "NY"), ("ZZ", "NY")],
)
def test_what_is_not_declared_is_read_as_a_declared_value(value: str | None, read_as: str) -> None:
    _, source = source_of([(value, 10, 10, 0.5, True, 1)])
    answers = exact_rows(compile_batch("SELECT s, count(*), sum(i) FROM v GROUP BY s", catalog()), source)
    assert answers == [(s, float(s == read_as), 10.0 * (s == read_as)) for s in ("NJ", "CA", "NY")]


def test_null_in_a_summed_column_that_is_not_null_counts_as_its_least_value() -> None:
    _, source = source_of([("NY", 10, None, 0.5, True, 1), ("NY", 10, 7, 0.5, True, 1)])
    columns = tuple(Column("i", "INTEGER", False, Range(-3, 10)) if c.name == "i" else c for c in KEPT)
    workload = compile_batch("SELECT sum(i), count(i), count(*), avg(i) FROM v", catalog(columns))
    ((total, count, rows, mean),) = exact_rows(workload, source)
    assert (total, count, rows) == (pytest.approx(4, abs=1e-6), 2, 2) and mean == pytest.approx(2, abs=1e-6)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM v WHERE c = 'XX'", []),
        ("SELECT count(*) FROM v WHERE c <> 'XX'", ["every row"]),
        ("SELECT count(*) FROM v WHERE c IS NULL", []),
        ("SELECT count(c) FROM v", ["every row"]),
        ("SELECT count(*) FROM v WHERE c >= 'b' AND c < 'bb'", ["c in {'b'}"]),
        ("SELECT count(*) FROM v WHERE c IN ('d', 'b', 'x')", ["c in {'b', 'd'}"]),
        ("SELECT count(*) FROM v WHERE c IN ('d', 'b', 'a')", ["c not in {'c'}"]),
        ("SELECT c, count(*) FROM v GROUP BY c", ["c in {'a'}", "c in {'b'}", "c in {'c'}", "c in {'d'}"]),
        ("SELECT count(*) FROM v WHERE c <= 'b' OR n IS NULL", ["c in {'a', 'b'} and n is not NULL (and 2 more like it)"]),  # noqa: E501
    ],
)  # fmt: skip
def test_regions_of_a_complete_list(sql: str, expected: list[str]) -> None:
    declared = column(type="VARCHAR", nullable=False, domain=Values(("d", "a", "c", "b"), complete=True))
    assert sorted(cells(compile_batch(sql, declared))) == expected


def test_a_count_of_a_not_null_column_is_the_count_of_rows() -> None:
    batches = ("SELECT count(*) FROM v", "SELECT count(i) FROM v WHERE s IS NOT NULL")
    first, second = (compile_batch(sql, catalog()) for sql in batches)
    assert first.fingerprint == second.fingerprint and grid_of(second.scans[0]).axes == ()


def test_an_expression_over_not_null_columns_can_be_null() -> None:
    _, source = source_of(ROWS)
    workload = compile_batch("SELECT count(*) FROM v WHERE nullif(i, 4) IS NULL", catalog())
    assert exact_rows(workload, source) == [(sum(row[2] == 4 for row in ROWS),)]


def test_a_range_is_no_complete_list() -> None:
    _, source = source_of(ROWS)
    workload = compile_batch("SELECT count(*) FROM v WHERE i > 10; SELECT i, count(*) FROM v GROUP BY i", catalog())
    assert exact_rows(workload, source) == [(sum(row[2] == 12 for row in ROWS),)]


def test_columns_of_a_public_table_are_null_where_it_has_no_match() -> None:
    connection, _ = source_of(ROWS)
    connection.execute("CREATE TABLE h (k INTEGER NOT NULL, z VARCHAR NOT NULL); INSERT INTO h VALUES (10, 'n')")
    zone = Column("z", "VARCHAR", False, Values(("n", "s"), complete=True))
    public = Table("h", (Column("k", "INTEGER", False), zone), public=True)
    joined = Catalog((*catalog().tables, public))
    sql = "SELECT z, count(*) FROM v LEFT JOIN h ON v.k = h.k GROUP BY z"
    ten = sum(row[1] == 10 for row in ROWS)
    rows = exact_rows(compile_batch(sql, joined), open_source(connection))
    assert rows == [("n", ten), ("s", 0), (None, len(ROWS) - ten)]


def test_what_is_declared_of_a_view_holds_for_its_rows_alone() -> None:
    """The view says that k is not NULL, and lists two of its values; the table has others."""
    connection, _ = source_of(ROWS)
    connection.execute("CREATE VIEW w AS SELECT k, i FROM v WHERE k + 0 IN (10, 20)")
    seen = Column("k", "INTEGER", False, Values((10, 20), complete=True))
    view = Table("w", (seen, KEPT[2]), view="SELECT k, i FROM v WHERE k + 0 IN (10, 20)")
    batch = [
        "SELECT k, count(*) FROM w GROUP BY k",
        "SELECT count(*) FROM v WHERE k IS NULL",
        "SELECT count(*) FROM v WHERE k = 30",
        "SELECT count(*) FROM w WHERE k IS NOT NULL",
    ]
    for order in (batch, batch[::-1]):
        workload = compile_batch(order, Catalog((*catalog(OPEN).tables, view)))
        answers = {sql: exact_rows(workload, open_source(connection), n) for n, sql in enumerate(order)}
        assert list(answers[batch[0]]) == [(10, sum(row[1] == 10 for row in ROWS)), (20, 0)]
        assert answers[batch[1]] == [(sum(row[1] is None for row in ROWS),)]
        assert answers[batch[2]] == [(sum(row[1] == 30 for row in ROWS),)]
        assert answers[batch[3]] == [(sum(row[1] == 10 for row in ROWS),)]


COUNTS = [
    "SELECT s, count(*) FROM v GROUP BY s",
    "SELECT count(*) FROM v WHERE s = 'CA' OR d > 1; SELECT count(*) FROM v WHERE i < 5",
    "SELECT p, d, count(*) FROM v GROUP BY CUBE (p, d)",
    "SELECT count(*) FROM v WHERE i IS NULL OR k = 10",
]


@pytest.mark.parametrize("batch", COUNTS)
def test_grids_cut_under_different_declarations_are_compared_exactly(batch: str) -> None:
    """For rows that keep a declaration and for rows that break it: the common cells know the cells of both."""
    plain = "SELECT count(*) FROM v WHERE s < 'NJ' OR i IS NULL; SELECT count(*) FROM v WHERE k > 15 OR d > 2 OR NOT p"
    scans = [compile_batch(batch, catalog()).scans[0], compile_batch(plain, catalog(OPEN)).scans[0]]
    for first, second in (scans, scans[::-1]):
        common = Refinement.of(grid_of(first)).refined(grid_of(second), points=1 << 20, cells=1 << 20)
        assert common is not None
        pairs = {tuple(pair) for pair in np.stack(common.origins, axis=-1).tolist()} | {(-1, -1)}
        for row in [*ROWS[::3], *BROKEN]:
            _, source = source_of([row])
            assert tuple(_cell(source.count(scan, b"salt")) for scan in (first, second)) in pairs


def _cell(x: np.ndarray) -> int:
    """The cell of the only row; -1 where it is in none."""
    return int(np.argmax(x)) if x.any() else -1
