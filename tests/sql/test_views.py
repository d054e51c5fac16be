"""Columns of many points: both readings of their aggregates have DuckDB's answers, and nothing grows with squares."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from datetime import date

import duckdb
import numpy as np
import pytest
from support.exact import exact_values_of
from support.random_sql import query
from tacit.errors import LimitError, SqlError
from tacit.sql import Catalog, Column, Limits, Range, Source, Table, compile_batch
from tacit.sql import digits as digits_module
from tacit.sql import factors as factors_module
from tacit.sql import readings as readings_module
from tacit.sql import views as views_module
from tacit.sql.backends.duckdb.search_sql import search_sql, step_sql
from tacit.sql.dialect import ordering
from tacit.sql.labels import Labels
from tacit.sql.literals import Constant
from tacit.sql.products import ProductTable
from tacit.sql.workload import Workload

SPARSE = Limits(dense_cells=1)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A few points stand for thousands."""
    monkeypatch.setattr(factors_module, "LONG", 4)
    monkeypatch.setattr(digits_module, "_SHORTEST", 3)
    for module in (views_module, readings_module):
        monkeypatch.setattr(module, "FEW", 3)
    yield


def product_of(workload: Workload) -> ProductTable:
    (part,) = workload.tables
    assert part.product is not None
    return part.product


def values_of_readings(workload: Workload, source: Source) -> list[np.ndarray]:
    """Of the aggregates of one table, in each way to read them."""
    product = product_of(workload)
    sets = list(dict.fromkeys(group.axes for reading in product.readings for group in reading.groups))
    scans = [product.scan.marginal(axes) for axes in sets]
    counted = [x / scan.one_row for x, scan in zip(source.count_all(scans, b"salt"), scans, strict=True)]
    counts = dict(zip(sets, counted, strict=True))
    found = []
    for reading in product.readings:
        values = np.zeros(reading.matrix.shape[1])
        for group in reading.groups:
            values[group.rows] = group.answers(counts[group.axes])
        found.append(reading.matrix @ values)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_random_batches(source: Source, catalog: Catalog, seed: int, request: pytest.FixtureRequest) -> None:
    """Every reading has the answers of the matrix of cells."""
    rng = random.Random(seed)
    batches: list[tuple[list[str], np.ndarray]] = []
    while len(batches) < 12:
        asked = [one.text for one in (query(rng) for _ in range(rng.choice([1, 3, 6]))) if one.params is None]
        try:
            workload = compile_batch(asked, catalog)
        except SqlError:
            continue
        if asked and len(workload.tables) == 1:
            batches.append((asked, exact_values_of(workload, source)))
    request.getfixturevalue("short")
    read = 0
    for asked, expected in batches:
        workload = compile_batch(asked, catalog, limits=SPARSE)
        np.testing.assert_allclose(exact_values_of(workload, source), expected, rtol=1e-9, atol=1e-6)
        if workload.tables[0].product is not None:
            found = values_of_readings(workload, source)
            read += len(found)
            for other in found[1:]:
                np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=1e-6)
    assert read >= 2


BATCHES = {
    "groups": ["SELECT i, count(*) FROM t GROUP BY i"],
    "groups and ranges": [
        "SELECT i, count(*), sum(d) FROM t GROUP BY i", "SELECT count(*) FROM t",
        "SELECT count(*) FROM t WHERE i BETWEEN 3 AND 71",
        "SELECT p, count(*) FROM t WHERE i NOT BETWEEN 5 AND 50 GROUP BY p",
    ],
    "a rollup": ["SELECT i, k, count(*) FROM t GROUP BY ROLLUP (i, k)"],
    "ranges": [f"SELECT count(*) FROM t WHERE i BETWEEN {a} AND {a + a % 17}" for a in range(-5, 90, 4)],
    "lists": ["SELECT i, count(*) FROM t WHERE i IN (1, 7, 19, 40, 77, 81) GROUP BY i",
              "SELECT count(*) FROM t WHERE i IN (2, 7, 20, 40, 78, 82, 90)", "SELECT i, count(*) FROM t GROUP BY i"],
    "two long columns": ["SELECT count(*) FROM t WHERE i BETWEEN 3 AND 71 AND u < 20 AND d > 0.2",
                         "SELECT u, count(*) FROM t WHERE i > 12 GROUP BY u"],
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.usefixtures("short")
def test_cells_have_the_same_answers(
    source: Source, catalog: Catalog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = compile_batch(BATCHES[name], catalog, limits=SPARSE)
    assert product_of(long).readings
    assert all(factor.shape[1] <= 16 for group in product_of(long).groups for factor in group.factors)
    found = values_of_readings(long, source)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=1e-6)
    monkeypatch.setattr(factors_module, "LONG", 1 << 20)
    expected = exact_values_of(compile_batch(BATCHES[name], catalog), source)
    np.testing.assert_allclose(exact_values_of(long, source), expected, rtol=1e-9, atol=1e-6)


def test_labels_are_the_rows_of_a_matrix() -> None:
    labels, counted = Labels.of(np.array([-1, 2, 2, 0, -1, 2, 4]), 6)
    assert counted.tolist() == [True, False, True, False, True, False]
    assert (labels.rows, labels.most_runs, labels.vector().tolist()) == (3, 2, [-1, 1, 1, 0, -1, 1, 2])
    assert not labels.is_everything and Labels.of(np.zeros(5, dtype=np.int64), 1)[0].is_everything


ZIP = Column("zip", "INTEGER", True, Range(0, 19_999))
DAY = Column("day", "DATE", False, Range(date(1990, 1, 1), date(2019, 12, 31)))
WIDE = Catalog((Table("w", (ZIP, DAY), version="1"),))


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        (["SELECT zip, count(*) FROM w GROUP BY zip"], 20_001),
        (["SELECT day, count(*) FROM w GROUP BY day"], 10_957),
        ([f"SELECT count(*) FROM w WHERE zip BETWEEN {7 * k} AND {7 * k + 13 * k % 900}" for k in range(1500)], 1500),
    ],
)
def test_memory_grows_with_the_answers(batch: list[str], rows: int) -> None:
    tracemalloc.start()
    workload = compile_batch(batch, WIDE)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert workload.row_count == rows
    assert most < 160e6
    (part,) = workload.tables
    assert part.product is None or max(part.product.sizes) < 300, "a matrix that fits, or short axes"


def test_what_does_not_fit_are_answers() -> None:
    with pytest.raises(LimitError, match="groups"):
        compile_batch("SELECT zip, day, count(*) FROM w GROUP BY zip, day", WIDE)


CUTS = {
    "INTEGER": [*range(3, 60)],
    "BIGINT": [-(2**63) + 1, -50, -4, 0, 1, 2, 7, 50, 2**62],
    "DOUBLE": [-1e300, -0.5, 0.1, 0.25, 3.0, 1e9],
    "DATE": [date(2020, 1, 1 + k) for k in range(20)],
    "VARCHAR": ["", "a", "a\x01", "ab", "b", "it's", "é", "日本"],
}


VALUES = {
    "INTEGER": "range(-5, 80)",
    "BIGINT": "[-9223372036854775808, 9223372036854775807, -5, -4, 0, 1, 3, 49]",
    "DOUBLE": "['nan'::DOUBLE, 'inf', '-inf', 0.1, 0.1000001, 0.0, -0.0, 3, 1e9]",
    "DATE": "['infinity'::DATE, '-infinity', '2020-01-01', '2020-01-05', '2019-12-31', '2020-01-21', '2021-01-01']",
    "VARCHAR": "['', 'a', 'aa', 'ab', 'abc', 'a' || chr(1), 'it''s', 'zz', 'é', '日本', '日本x']",
}


@pytest.mark.parametrize("type_", CUTS)
def test_regions_of_many_cuts_are_those_of_comparisons(type_: str) -> None:
    """By halving, and where values are numbered by their difference, against one comparison for each cut."""
    order = ordering(type_)
    assert order is not None
    cuts = sorted({cut for value in CUTS[type_] for cut in order.locate(Constant.of(value), type_)})
    cuts = [cut for cut in cuts if order.greatest is None or cut <= order.greatest]
    region = [*range(len(cuts) + 1)]
    tested = VALUES[type_]
    count = " + ".join(f"CAST({order.at_or_after('v', cut)} AS INTEGER)" for cut in cuts)
    ways = [search_sql("v", type_, order, cuts, region)]
    if type_ in ("INTEGER", "DATE"):
        steps = step_sql("v", type_, order, cuts, region)
        assert steps is not None
        ways.append(steps)
    for sql in ways:
        rows = duckdb.sql(f"SELECT {sql}, {count} FROM (SELECT unnest({tested})::{type_} AS v)").fetchall()
        assert [found for found, _ in rows] == [expected for _, expected in rows]
    if type_ == "BIGINT":
        assert step_sql("v", type_, order, cuts, region) is None
