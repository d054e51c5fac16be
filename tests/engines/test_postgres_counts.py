"""PostgreSQL gives the same integers as DuckDB, over the same hostile rows, for every query of the other suites."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pytest
import tacit
import tacit.testing
from support.awkward import AWKWARD, catalog_of
from support.golden import CASES, CATALOG
from support.mirror import mirror, narrow
from support.random_shapes import CLINIC, POLICY, statement
from support.random_sql import query
from tacit.errors import LimitError, TypeMismatchError, UnknownNameError
from tacit.sql import Catalog, Scan, Source, Workload, compile_batch, open_source

SALT = bytes(range(32))


class Engines(NamedTuple):
    duckdb: Source
    postgres: Source
    catalog: Catalog


def scans_of(workload: Workload) -> list[list[Scan]]:
    """What is counted for each table."""
    return [
        [part.scan]
        if isinstance(part.scan, Scan)
        else [part.product.scan.marginal(axes) for axes in part.product.column_sets]  # type: ignore[union-attr]
        for part in workload.tables
    ]


def check(engines: Engines, workload: Workload) -> None:
    for scans in scans_of(workload):
        ours, theirs = (engine.count_all(scans, SALT) for engine in (engines.postgres, engines.duckdb))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=str([q.sql for q in workload.queries]))


def opened(database: duckdb.DuckDBPyConnection, url: str) -> Iterator[tuple[Source, Source]]:
    mirror(database, url)
    sources = open_source(database), open_source(url)
    sources[1].schema()
    yield sources
    for source in sources:
        source.close()


@pytest.fixture(scope="module")
def awkward(new_database: Callable[[], str]) -> Iterator[Engines]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(AWKWARD)
        for view in ("adults", "listed", "side.seen"):
            database.execute(f"DROP VIEW {view}")
        narrow(database)
        for first, second in opened(database, new_database()):
            yield Engines(first, second, catalog_of(first))


def test_the_schema_is_the_same(awkward: Engines) -> None:
    ours, theirs = ({t.path: t for t in source.schema()} for source in (awkward.postgres, awkward.duckdb))
    assert ours == theirs


@pytest.mark.parametrize("seed", range(6))
def test_random_queries(awkward: Engines, seed: int) -> None:
    rng, compared = random.Random(1000 + seed), 0
    while compared < 50:
        asked = query(rng)
        try:
            workload = compile_batch(asked.text, awkward.catalog, asked.params)
        except (TypeMismatchError, LimitError, UnknownNameError):
            continue
        check(awkward, workload)
        compared += 1


@pytest.fixture(scope="module")
def golden(new_database: Callable[[], str]) -> Iterator[Engines]:
    """The tables of the golden file, with rows."""
    with duckdb.connect(config={"threads": 1}) as database:
        for table in CATALOG.tables:
            if not table.view:
                columns = [f'"{c.name}" {c.type}{"" if c.nullable else " NOT NULL"}' for c in table.columns]
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
        for first, second in opened(database, new_database()):
            yield Engines(first, second, CATALOG)


@pytest.mark.parametrize("name", CASES)
def test_golden_batches(golden: Engines, name: str) -> None:
    check(golden, compile_batch(CASES[name], golden.catalog))


@pytest.fixture(scope="module")
def clinics(
    new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[tacit.Connection, tacit.Connection]]:
    ledgers: Path = tmp_path_factory.mktemp("ledgers")
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(CLINIC)
        url = new_database()
        mirror(database, url)
        # the keys of the schema are not mirrored, and a path of keys needs none
        pair = (
            tacit.connect(database, policy=POLICY, ledger=ledgers / "duckdb"),
            tacit.connect(url, policy=POLICY, ledger=ledgers / "postgres"),
        )
        yield pair
        for connection in pair:
            connection.close()


@pytest.mark.parametrize(
    "sql",
    ["SELECT kind, count(*) FROM tests GROUP BY kind", "SELECT dept, avg(minutes) FROM calls GROUP BY dept",
     "SELECT upper(city), count(*) FROM patients GROUP BY 1"],
)  # fmt: skip
def test_what_is_found(clinics: tuple[tacit.Connection, tacit.Connection], sql: str) -> None:
    theirs, ours = (tacit.testing.exact_answers(con, sql, discover=True) for con in clinics)
    pd.testing.assert_frame_equal(ours[0], theirs[0], obj=sql)


@pytest.mark.parametrize("seed", range(4))
def test_random_shapes(clinics: tuple[tacit.Connection, tacit.Connection], seed: int) -> None:
    """Joins, subqueries, rows of units and results of results; no bound of the policy cuts a row away."""
    rng = random.Random(500 + seed)
    answered = 0
    for _ in range(25):
        sql = statement(rng)
        try:
            (theirs,) = tacit.testing.exact_answers(clinics[0], sql)
        except tacit.Error as error:
            with pytest.raises(type(error)):
                tacit.testing.exact_answers(clinics[1], sql)
            continue
        (ours,) = tacit.testing.exact_answers(clinics[1], sql)
        if "ORDER BY" not in sql:  # what is computed of released frames comes in whatever order DuckDB finds
            ours, theirs = (frame.sort_values([*frame], key=by_text, ignore_index=True) for frame in (ours, theirs))
        pd.testing.assert_frame_equal(ours, theirs, obj=sql)
        answered += 1
    assert answered > 8


def by_text(column: pd.Series) -> pd.Series:
    return column.astype(str)
