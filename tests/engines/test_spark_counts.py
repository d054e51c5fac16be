"""Spark gives the same integers as DuckDB, over the same hostile rows, for every query of the other suites.

A job of Spark's takes a good part of a second, so the scans of many queries are counted in one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pytest
import tacit
import tacit.testing
from support.awkward import AWKWARD, catalog_of
from support.golden import CASES, CATALOG
from support.random_shapes import CLINIC, POLICY, statement
from support.random_sql import query
from support.spark_session import forget, narrow_for_spark, register
from tacit.errors import Error, LimitError, TypeMismatchError, UnknownNameError
from tacit.sql import Catalog, Scan, Source, Workload, compile_batch, open_source
from tacit.sql.backends.spark.cluster import SparkSource

SALT = bytes(range(32))


class Engines(NamedTuple):
    duckdb: Source
    spark: SparkSource
    catalog: Catalog


def scans_of(workload: Workload) -> list[Scan]:
    """What is counted, of all tables."""
    found: list[Scan] = []
    for part in workload.tables:
        if isinstance(part.scan, Scan):
            found.append(part.scan)
        else:
            assert part.product is not None
            found += [part.product.scan.marginal(axes) for axes in part.product.column_sets]
    return found


def check(engines: Engines, workloads: Sequence[Workload]) -> None:
    asked = [(scan, workload) for workload in workloads for scan in scans_of(workload)]
    scans = [scan for scan, _ in asked]
    ours, theirs = (engine.count_all(scans, SALT) for engine in (engines.spark, engines.duckdb))
    for a, b, (_, workload) in zip(ours, theirs, asked, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=str([q.sql for q in workload.queries]))


def opened(database: duckdb.DuckDBPyConnection, spark: Any, folder: Path) -> tuple[Source, SparkSource]:
    narrow_for_spark(database)
    forget(spark)
    register(database, spark, folder)
    first, second = open_source(database), open_source(spark)
    assert isinstance(second, SparkSource)
    second.schema()
    return first, second


@pytest.fixture(scope="module")
def awkward(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(AWKWARD)
        for view in ("adults", "listed", "side.seen"):
            database.execute(f"DROP VIEW {view}")
        first, second = opened(database, spark, tmp_path_factory.mktemp("awkward"))
        yield Engines(first, second, catalog_of(first))
        first.close()
        second.close()


def test_the_schema_is_the_same(awkward: Engines) -> None:
    ours, theirs = (
        {t.path: [(c.name, c.type) for c in t.columns] for t in source.schema()}
        for source in (awkward.spark, awkward.duckdb)
    )
    assert ours == theirs


@pytest.mark.parametrize("seed", range(2))
def test_random_queries(awkward: Engines, seed: int) -> None:
    rng, compiled = random.Random(2000 + seed), []
    while len(compiled) < 40:
        asked = query(rng)
        try:
            compiled.append(compile_batch(asked.text, awkward.catalog, asked.params))
        except (TypeMismatchError, LimitError, UnknownNameError):
            continue
    check(awkward, compiled)


def test_the_driver_counts_the_same(awkward: Engines) -> None:
    rng, compiled = random.Random(5), []
    while len(compiled) < 20:
        asked = query(rng)
        try:
            compiled.append(compile_batch(asked.text, awkward.catalog, asked.params))
        except (TypeMismatchError, LimitError, UnknownNameError):
            continue
    awkward.spark.splits = False
    try:
        check(awkward, compiled)
    finally:
        awkward.spark.splits = True


@pytest.fixture(scope="module")
def golden(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """The tables of the golden file, with rows."""
    tables = tuple(
        replace(t, columns=tuple(replace(c, type="VARCHAR") if c.type.startswith("ENUM") else c for c in t.columns))
        for t in CATALOG.tables
    )
    with duckdb.connect(config={"threads": 1}) as database:
        for table in tables:
            if not table.view:
                columns = [f'"{c.name}" {c.type}' for c in table.columns]
                database.execute(f"CREATE TABLE {table.name} ({', '.join(columns)})")
        database.execute("""
            INSERT INTO visits SELECT r % 50, [NULL, 'NY', 'NJ', 'CA', 'ny', '', 'é'][1 + r % 7],
                [NULL, 17, 18, 65, 121, -1][1 + r % 6], ['nan', 'inf', '-1', NULL, '20000.5'][1 + r % 5],
                DATE '2024-01-01' + CAST(r * 5 % 400 AS INTEGER), [NULL, true, false][1 + r % 3],
                ['ok', 'sad'][1 + r % 2] FROM range(300) AS t(r);
            INSERT INTO wards SELECT r % 6 FROM range(20) AS t(r);
            INSERT INTO hospitals SELECT r, ['Utica', 'Troy'][1 + r % 2] FROM range(40) AS t(r);
            INSERT INTO stays SELECT r * 3 % 17, r % 33 FROM range(90) AS t(r);
            INSERT INTO patients SELECT r % 19, ['f', 'm', NULL][1 + r % 3] FROM range(25) AS t(r);
        """)
        first, second = opened(database, spark, tmp_path_factory.mktemp("golden"))
        yield Engines(first, second, Catalog(tables))
        first.close()
        second.close()


def test_golden_batches(golden: Engines) -> None:
    check(golden, [compile_batch(text, golden.catalog) for text in CASES.values()])


@pytest.fixture(scope="module")
def clinics(
    spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[tacit.Connection, tacit.Connection]]:
    ledgers = tmp_path_factory.mktemp("ledgers")
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(CLINIC)
        forget(spark)
        register(database, spark, tmp_path_factory.mktemp("clinic"))
        pair = (
            tacit.connect(database, policy=POLICY, ledger=ledgers / "duckdb"),
            tacit.connect(spark, policy=POLICY, ledger=ledgers / "spark"),
        )
        yield pair
        for connection in pair:
            connection.close()


TIGHT = {"patients": 1, "visits": 2, "tests": 1, "calls": 1}
"""Bounds that cut rows of nearly every unit away."""
BOUNDED = [
    "SELECT dept, count(*), sum(cost) FROM visits GROUP BY dept",
    "SELECT kind, count(*) FROM tests GROUP BY kind",
    "SELECT count(*) FROM tests WHERE result < 4 AND length(kind) = 1",
    "SELECT sex, count(*) FROM patients JOIN visits ON patients.pid = visits.pid WHERE cost < 20 GROUP BY sex",
    "SELECT floor, count(*) FROM visits JOIN depts ON visits.dept = depts.dept GROUP BY floor",
    "SELECT count(*) FROM (SELECT pid, count(*) AS n FROM visits GROUP BY pid) WHERE n >= 2",
    "SELECT count(DISTINCT pid) FROM calls WHERE minutes > 3",
    "SELECT count(DISTINCT dept) FROM visits",
]


def test_the_same_rows_of_a_unit_are_kept(clinics: tuple[tacit.Connection, tacit.Connection]) -> None:
    theirs, ours = clinics
    source = ours._session.source
    assert isinstance(source, SparkSource)
    bounded = tuple(replace(t, max_rows_per_unit=TIGHT.get(t.name, 1)) for t in ours.catalog.tables)
    by_key = {t.key: t for t in bounded}
    paths = [t.unit_path and tuple(replace(s, table=by_key[s.table.key]) for s in t.unit_path) for t in bounded]
    catalog = replace(ours.catalog, tables=tuple(replace(t, unit_path=p) for t, p in zip(bounded, paths, strict=True)))
    compiled = [compile_batch(text, catalog) for text in BOUNDED]
    groups, rest = source._split([scan for workload in compiled for scan in scans_of(workload)])
    assert any(group.paths for group in groups) and len(rest) == 1  # distinct values are not of one unit
    check(Engines(theirs._session.source, source, catalog), compiled)


def test_random_shapes(clinics: tuple[tacit.Connection, tacit.Connection]) -> None:
    """Bounded units, key paths, joins and rows of units."""
    theirs, ours = clinics
    rng, compiled = random.Random(0), []
    while len(compiled) < 50:
        text = statement(rng)
        try:
            compiled.append(compile_batch(text, theirs.catalog))
        except Error:
            continue
    source = ours._session.source
    assert isinstance(source, SparkSource)
    engines = Engines(theirs._session.source, source, theirs.catalog)
    scans = [scan for workload in compiled for scan in scans_of(workload)]
    groups, rest = source._split(scans)
    assert sum(group.by_unit for group in groups) >= 3 and len(rest) < len(scans) / 2
    check(engines, compiled)
