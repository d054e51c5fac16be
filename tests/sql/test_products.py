"""The product form has the answers of the matrix and of DuckDB, and does not grow with the grid of all columns."""

from __future__ import annotations

import itertools
import random
import time
import tracemalloc
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from support.against_duckdb import compare
from support.exact import exact_rows, exact_values_of, product_values
from support.random_sql import query
from tacit.errors import LimitError, TypeMismatchError
from tacit.sql import Catalog, Column, Limits, Range, Source, Table, Workload, compile_batch
from tacit.sql.group_list import GroupList
from tacit.sql.present import key_frame
from tacit.sql.product_scan import ProductScan
from tacit.sql.products import ProductTable
from tacit.sql.refine import grid_of
from tacit.sql.scan import Scan, capped

SPARSE = Limits(dense_cells=1)
"""Whatever has a product form gets no matrix."""


def product_of(workload: Workload) -> ProductTable:
    (part,) = workload.tables
    assert part.product is not None
    return part.product


def written_out(workload: Workload) -> np.ndarray:
    """The product form as a matrix over the full grid of its axes."""
    (part,) = workload.tables
    product = product_of(workload)
    matrix = np.zeros((workload.combine.shape[1], int(np.prod(product.sizes))))
    for group in product.groups:
        whole = np.ones((1, 1))
        held = dict(zip(group.axes, group.factors, strict=True))
        for axis, size in enumerate(product.sizes):
            whole = np.kron(whole, held.get(axis, np.ones((1, size))))
        matrix[group.rows] = whole
    return workload.combine[part.rows] @ matrix


@pytest.mark.parametrize("seed", range(6))
def test_random_batches(source: Source, catalog: Catalog, database: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Both forms of each table of a random batch have the same answers, which are DuckDB's own."""
    rng = random.Random(1000 + seed)
    products = 0
    while products < 20:
        asked = [one for one in (query(rng) for _ in range(rng.choice([1, 2, 3]))) if one.params is None]
        if not asked:
            continue
        try:
            workload = compile_batch([one.text for one in asked], catalog)
            sparse = compile_batch([one.text for one in asked], catalog, limits=SPARSE)
        except (TypeMismatchError, LimitError):
            continue
        assert [part.rows.tolist() for part in workload.tables] == [part.rows.tolist() for part in sparse.tables]
        assert [q.columns for q in workload.queries] == [q.columns for q in sparse.queries]
        for part in workload.tables:
            if part.product is None or not isinstance(part.scan, Scan) or part.matrix is None:
                continue
            products += 1
            exact = part.matrix @ (source.count(part.scan, b"salt") / part.scan.one_row)
            np.testing.assert_allclose(product_values(workload, part, source), exact, rtol=1e-9, atol=1e-6)
            source.rehearse(part.product.scan)
        if len(asked) == 1:
            compare(asked[0], sparse, source, database.cursor())
        np.testing.assert_allclose(
            exact_values_of(sparse, source), exact_values_of(workload, source), rtol=1e-9, atol=1e-6
        )


@pytest.mark.parametrize(
    ("where", "axes"),
    [
        ("i < 5 AND k = 2 AND NOT p", 3),
        ("NOT (i < 5 OR k = 2)", 2),
        ("NOT (i < 5 OR NOT (k = 2 AND p))", 3),
        ("(i < 5 AND k = 2) IS TRUE", 2),
        ("(i < 5 OR k = 2) IS FALSE", 2),
        ("(i < 5 OR k = 2) IS NOT TRUE", 2),
        ("NOT ((i < 5 AND k = 2) IS NOT TRUE)", 2),
        ("NOT (NOT (i < 5) OR k = 2) AND (p IS NULL OR p)", 3),
        ("i NOT BETWEEN 3 AND 7 AND (k = 1 OR k > 3)", 2),
        ("i < 5 OR k = 2", 1),
        ("(i < 5 OR k = 2) AND p", 2),
        ("NOT (i < 5 AND k = 2) AND p", 2),
        ("(i < 5 AND k = 2) IS NULL AND p", 2),
        ("(i < 5 OR k = 2) AND (p OR e = 'ok')", 2),
        ("(i < 5 OR k = 2) AND (k = 3 OR e = 'ok') AND p", 2),
        ("CASE WHEN i < 5 THEN k = 2 ELSE p END AND e = 'ok'", 2),
        ("(NULL OR FALSE) AND i < 5 AND k = 2", 0),
        ("(NULL OR TRUE) AND i < 5 AND k = 2", 2),
    ],
)
def test_conditions_on_single_columns_are_axes_and_mixed_ones_are_fused(
    source: Source, catalog: Catalog, database: duckdb.DuckDBPyConnection, where: str, axes: int
) -> None:
    sql = f"SELECT count(*) FROM t WHERE {where}"
    workload = compile_batch(sql, catalog)
    (part,) = workload.tables
    assert [len(rows.axes) for rows in product_of(workload).groups] == ([axes] if axes else [])
    assert len(product_of(workload).sizes) == axes
    (value,) = product_values(workload, part, source)
    assert [(value,)] == database.cursor().execute(sql).fetchall()


def test_the_product_is_the_matrix(catalog: Catalog) -> None:
    """Point by point, with keys out of order, a key beside its own filter, two keys on one axis, sums, empty groups."""
    batch = [
        "SELECT e, k, count(*) FROM t WHERE p GROUP BY e, k",
        "SELECT k, e, sum(i) FROM t WHERE k < 3 AND i IS NOT NULL GROUP BY k, e",
        "SELECT k, p, count(*) FROM t WHERE k > 3 OR p GROUP BY k, p",
        "SELECT avg(d) - 2 FROM t WHERE FALSE",
        "SELECT sum(d), sum(i), count(*) FROM t",
    ]
    workload = compile_batch(batch, catalog)
    (part,) = workload.tables
    product = product_of(workload)
    fused = [len(axis.columns) for axis in product.scan.axes if isinstance(axis.columns, tuple)]
    assert sorted(fused) == [1, 1, 1, 2]
    assert isinstance(part.scan, Scan) and part.matrix is not None
    assert product.zero.size
    wide = np.hstack([part.matrix, np.zeros((len(part.matrix), 1))])[:, part.scan.cell_of.reshape(-1)]
    np.testing.assert_array_equal(np.unique(written_out(workload), axis=1), np.unique(wide, axis=1))
    for group in product.groups:
        assert list(group.axes) == sorted(set(group.axes))
        assert all(np.any(factor != 0, axis=1).all() for factor in group.factors)
        assert group.rows.size == np.prod([len(factor) for factor in group.factors])


def test_marginals_are_scans_in_the_order_of_their_axes(source: Source, catalog: Catalog) -> None:
    workload = compile_batch(
        ["SELECT sum(d), sum(i) FROM t WHERE e = 'ok'", "SELECT k, count(*) FROM t WHERE k > 3 OR p GROUP BY k"],
        catalog,
    )
    scan = product_of(workload).scan
    axes = range(len(scan.axes))
    scans = {chosen: scan.marginal(chosen) for n in (0, 1, 2, 3) for chosen in itertools.permutations(axes, n)}
    counted = dict(zip(scans, source.count_all(list(scans.values()), b"s"), strict=True))
    for chosen, marginal in scans.items():
        np.testing.assert_array_equal(source.count(marginal, b"s"), counted[chosen])
        assert marginal.cells == scan.points(chosen) and grid_of(marginal).cells == marginal.cells
        assert marginal.rows_per_unit == scan.rows_per_unit
        shape = [scan.sizes[axis] for axis in chosen]
        for place in range(len(chosen)):
            rest = chosen[:place] + chosen[place + 1 :]
            added = counted[chosen].reshape(shape).sum(axis=place).reshape(-1)
            np.testing.assert_array_equal(added // marginal.one_row, counted[rest] // scan.marginal(rest).one_row)
            if scan.marginal(rest).one_row == marginal.one_row:
                np.testing.assert_array_equal(added, counted[rest])
        ascending = tuple(sorted(chosen))
        order = [ascending.index(axis) for axis in chosen]
        turned = counted[ascending].reshape([scan.sizes[axis] for axis in ascending]).transpose(order).reshape(-1)
        np.testing.assert_array_equal(turned, counted[chosen])
    assert len({marginal.fingerprint for marginal in scans.values()}) == len(scans)
    with pytest.raises(ValueError, match="twice"):
        scan.marginal((0, 0))


@pytest.mark.parametrize(
    "batch",
    [
        ["SELECT zone, count(*) FROM t JOIN places USING (k) GROUP BY 1", "SELECT e, count(*) FROM t GROUP BY 1"],
        [
            "SELECT g, k, count(*), sum(w) FROM visits JOIN people USING (pid) GROUP BY g, k",
            "SELECT sum(visits.i) FROM visits JOIN people USING (pid) WHERE da IS NULL OR da > '2024-01-02'",
        ],
        ["SELECT visits.k, zone, sum(size) FROM visits LEFT JOIN places USING (k) GROUP BY ROLLUP (visits.k, zone)"],
        ["SELECT p, e, k, count(*) FROM nothing GROUP BY CUBE (p, e, k)", "SELECT sum(i) FROM t WHERE p AND k = 2"],
    ],
)  # fmt: skip
def test_units_joins_sums_and_empty_tables(source: Source, catalog: Catalog, batch: list[str]) -> None:
    workload, sparse = compile_batch(batch, catalog), compile_batch(batch, catalog, limits=SPARSE)
    assert any(part.matrix is None for part in sparse.tables)
    np.testing.assert_allclose(exact_values_of(sparse, source), exact_values_of(workload, source), rtol=1e-9, atol=1e-6)
    scans = []
    for part in sparse.tables:
        product = part.product
        if product is None:
            continue
        scans += [product.scan.marginal(axes) for axes in product.column_sets]
        scans += [product.scan.marginal(tuple(range(len(product.sizes))))] * 2
        assert isinstance(part.scan, ProductScan)
        source.rehearse(part.scan)
    scans += [part.scan for part in workload.tables if isinstance(part.scan, Scan)]
    source.rehearse_all(scans)
    for scan, x in zip(scans, source.count_all(scans, b"s"), strict=True):
        assert x.dtype == np.int64
        np.testing.assert_array_equal(x, source.count(scan, b"s"))


WIDE = Catalog(
    (Table("w", tuple(Column(f"c{i}", "INTEGER", False, Range(0, 9)) for i in range(15)), version="1"),)
)  # fmt: skip


def test_what_the_grid_of_all_columns_refused() -> None:
    columns = [f"c{i}" for i in range(15)]
    batch = [f"SELECT {c}, count(*) FROM w GROUP BY {c}" for c in columns[:14]]
    workload = compile_batch(batch, WIDE)
    assert (workload.row_count, len(workload.cells)) == (140, 14 * 11)
    assert workload.cells[11 + 3].label == "c1 in {2}"
    assert workload.fingerprint == compile_batch([*batch, batch[0]], WIDE).fingerprint
    assert workload.fingerprint != compile_batch(batch[::-1], WIDE).fingerprint
    with pytest.raises(LimitError, match="matrix of 140 answers by 154 cells"):
        _ = workload.matrix
    counts = compile_batch([f"SELECT count(*) FROM w WHERE {c} < 5" for c in columns] * 2, WIDE)
    assert sorted(group.axes for group in product_of(counts).groups) == [(axis,) for axis in range(15)]


def test_a_cube_and_a_table_that_is_small_beside_one_that_is_not(source: Source, catalog: Catalog) -> None:
    sql = "SELECT k, p, e, {0}, count(*) FROM t GROUP BY CUBE (k, p, e, {0})".format('"select"')
    workload = compile_batch([sql, "SELECT k, count(*) FROM visits GROUP BY k"], catalog, limits=SPARSE)
    cube, small = workload.tables
    assert cube.matrix is None and small.matrix is not None and len(product_of_part(small).sizes) == 1
    assert len(product_of_part(cube).groups) == 16
    assert small.scan.columns == slice(cube.scan.columns.stop, cube.scan.columns.stop + small.scan.cells)  # type: ignore[union-attr]
    assert workload.cells[small.scan.columns][0].table == "visits"
    ours = exact_rows(workload, source)
    assert len(ours) == 8 * 4 * 5 * 4 and len(set(row[:4] for row in ours)) < len(ours)
    total = [row for row in ours if row[:4] == (None,) * 4]
    assert max(row[4] for row in total) == 480


def product_of_part(part: object) -> ProductTable:
    product = part.product  # type: ignore[attr-defined]
    assert isinstance(product, ProductTable)
    return product


def test_sizes() -> None:
    """All pairs of 15 columns, and a million groups: seconds, and memory far below the matrix."""
    columns = [f"c{i}" for i in range(15)]
    pairs = [f"SELECT {a}, {b}, count(*) FROM w GROUP BY {a}, {b}" for a, b in itertools.combinations(columns, 2)]
    start = time.process_time()
    assert compile_batch(pairs, WIDE).row_count == 10_500
    assert time.process_time() - start < 2
    tracemalloc.start()
    workload = compile_batch(f"SELECT {', '.join(columns[:6])}, count(*) FROM w GROUP BY ALL", WIDE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert workload.row_count == len(workload.queries[0].groups) == 1_000_000
    assert workload.queries[0].groups[123_456] == (1, 2, 3, 4, 5, 6)
    assert workload.queries[0].labels[-1] == "c0=9, c1=9, c2=9, c3=9, c4=9, c5=9"
    assert peak < 500e6
    cube = compile_batch(f"SELECT count(*) FROM w GROUP BY CUBE ({', '.join(columns[:5])})", WIDE)
    assert cube.row_count == 11**5 and len(product_of(cube).groups) == 32


EACH = [f"c{i} < 5 AND c{i} <> 7" for i in range(15)]


def test_one_query_over_very_many_columns() -> None:
    sql = f"SELECT count(*) FROM w WHERE {' AND '.join(f'c{i} < 5' for i in range(15))}"
    assert compile_batch(sql, WIDE).row_count == 1


@pytest.mark.parametrize("word", [" AND ", " OR "])
def test_a_condition_over_more_columns_than_a_grid_holds_is_a_column_of_its_own(word: str) -> None:
    """Two points: whether it holds. The grid of its columns has 4·10⁹."""
    workload = compile_batch(
        [f"SELECT count(*) FROM w WHERE {word.join(EACH)}", "SELECT count(*) FROM w WHERE c0 = 1"], WIDE
    )
    assert product_of(workload).sizes == (2, 2) and workload.row_count == 2


def test_answers_that_do_not_fit() -> None:
    with pytest.raises(LimitError, match="19,487,171 groups") as error:
        compile_batch(f"SELECT count(*) FROM w GROUP BY CUBE ({', '.join(f'c{i}' for i in range(7))})", WIDE)
    assert error.value.hint == "group by fewer columns"


def test_sums_end_at_the_largest_integer() -> None:
    upper, lower = np.array([0, 2**31 - 1, 2**31 - 1, 2**31, 5]), np.array([7, 2**32 - 1, 2**32, 0, 2**40])
    largest = 2**63 - 1
    assert capped(upper, lower).tolist() == [7, largest, largest, largest, (5 << 32) + 2**40]


def test_a_table_of_few_cells_has_both_forms_and_one_of_many_a_product_alone() -> None:
    few = compile_batch("SELECT c0, c1, count(*) FROM w GROUP BY CUBE (c0, c1)", WIDE)
    assert few.matrix.shape == (121, 121) and product_of(few).sizes == (11, 11)
    many = compile_batch("SELECT c0, c1, c2, c3, count(*) FROM w GROUP BY ALL", WIDE)
    assert many.tables[0].matrix is None and product_of(many).sizes == (11,) * 4
    one = compile_batch("SELECT c0, count(*) FROM w GROUP BY c0", WIDE, limits=Limits(dense_cells=1))
    assert one.matrix.shape == (10, 10) and product_of(one).sizes == (11,), "one axis is listed whatever the limit"
    halves = compile_batch("SELECT count(*) FROM w WHERE (c0 < 5 OR c1 < 5) AND c2 = 3", WIDE)
    assert product_of(halves).sizes == (2, 2)
    least = compile_batch("SELECT c0, c1, count(*) FROM w GROUP BY c0, c1", WIDE, limits=Limits(dense_cells=101))
    assert least.tables[0].matrix is not None


@pytest.mark.parametrize(
    "sets",
    [((0, 1, 2), (0, 2), (1,), ()), ((),), ((0, 1, 2),), ((2,), (0,))],
    ids=lambda sets: f"{len(sets)} {sets[0]}",
)
def test_groups_are_listed_without_a_list(sets: tuple[tuple[int, ...], ...]) -> None:
    values = ((1, None), ("a", "b", "c"), (True,))
    bundles = tuple(tuple((value,) for value in listed) for listed in values)
    groups = GroupList(bundles, sets, (1, 1, 1))
    listed = [
        group
        for chosen in sets
        for group in itertools.product(*(v if key in chosen else (None,) for key, v in enumerate(values)))
    ]
    assert list(groups) == listed == [groups[i] for i in range(len(groups))] == groups[:]
    assert groups[-1] == listed[-1] and groups[1:3] == listed[1:3]
    again = GroupList(bundles, sets, (1, 1, 1))
    assert groups == again and hash(groups) == hash(again)
    for key in range(3):
        distinct, codes = groups.column(key)
        assert [distinct[code] for code in codes] == [group[key] for group in listed]
    with pytest.raises(IndexError):
        groups[len(listed)]


def test_key_frames_have_the_dtypes_of_a_frame_of_all_groups(catalog: Catalog) -> None:
    for by in ("k, e, da", "CUBE (k, p, e)", "GROUPING SETS ((s, k), (da))"):
        (asked,) = compile_batch(f"SELECT count(*) FROM t GROUP BY {by}", catalog).queries
        listed = replace(asked, groups=tuple(asked.groups))
        pd.testing.assert_frame_equal(key_frame(asked), key_frame(listed))
