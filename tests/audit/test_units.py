"""Small tables with every unit removed in turn: nobody moves a count by more than what is charged for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from numpy.typing import NDArray
from tacit import Connection
from tacit.sql import Workload, compile_batch, open_source
from tacit.sql.scan import Scan

from .cases import LONG, SALT

Rows = Sequence[tuple[Any, ...]]
BOUNDS = {"visits": 2, "labs": 3}
BATCHES = {
    "one table": ["SELECT count(*) FROM visits WHERE x < 5", "SELECT sum(x) FROM visits"],
    "two tables": ["SELECT count(*) FROM visits", "SELECT count(*) FROM labs WHERE y >= 2"],
    "joined": ["SELECT count(*) FROM visits v JOIN labs l ON v.person = l.person WHERE v.x < l.y"],
    "joined sum": ["SELECT sum(l.y), count(*) FROM visits v JOIN labs l ON v.person = l.person WHERE v.x > 2"],
    "joined to itself": ["SELECT count(*) FROM visits v JOIN visits w ON v.person = w.person WHERE v.x = 1"],
    "public": [
        "SELECT count(*) FROM visits v JOIN places p ON v.x = p.id WHERE p.size > 1",
        "SELECT avg(x) FROM visits",
    ],
}


def database_of(visits: Rows, labs: Rows, places: Rows = ((1, 1), (2, 2), (3, 3))) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    for name, columns, rows in (
        ("visits", "person INTEGER, x INTEGER", visits),
        ("labs", "person INTEGER, y INTEGER", labs),
        ("places", "id INTEGER, size INTEGER", places),
    ):
        database.execute(f"CREATE TABLE {name} ({columns})")
        if rows:
            database.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
    return database


def connect(database: duckdb.DuckDBPyConnection) -> Connection:
    tables: dict[str, Any] = {
        name: {
            "privacy_unit": "person",
            "max_rows_per_unit": k,
            "version": "1",
            "columns": {"x" if name == "visits" else "y": {"min": 0, "max": 9}},
        }
        for name, k in BOUNDS.items()
    }
    policy = {"budget": {"epsilon": 10}, "tables": {**tables, "places": {"public": True, "version": "1"}}}
    return tacit.connect(database, policy=policy)


def counts(database: duckdb.DuckDBPyConnection, batch: list[str]) -> tuple[Workload, list[tuple[Scan, NDArray[Any]]]]:
    """The batch compiled, and what its scans of private tables count."""
    with connect(database) as con:
        workload = compile_batch(batch, con.catalog)
    source = open_source(database)
    return workload, [(scan, source.count(scan, SALT)) for scan in workload.scans if not scan.table.public]


def table(rng: np.random.Generator, people: int, size: int) -> list[tuple[Any, ...]]:
    rows = rng.integers(0, [people, 10], size=(size, 2)).tolist()
    return [(None if rng.random() < 0.1 else person, None if rng.random() < 0.1 else v) for person, v in rows]


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
@pytest.mark.parametrize("name", BATCHES)
def test_removing_any_unit_moves_no_more_than_is_charged_for(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    visits, labs = table(rng, 4, 20), table(rng, 4, 16)
    workload, here = counts(database_of(visits, labs), BATCHES[name])
    reached = False
    for person in range(4):
        without = database_of([r for r in visits if r[0] != person], [r for r in labs if r[0] != person])
        other, there = counts(without, BATCHES[name])
        assert other.fingerprint == workload.fingerprint
        for (scan, x), (_, less) in zip(here, there, strict=True):
            moved = x - less
            allowed = scan.rows_per_unit * scan.one_row
            assert (moved >= 0).all() and moved.sum() <= allowed, "the sensitivity is too small"
            reached = reached or moved.sum() > allowed / 2
    assert reached or name.startswith("joined"), "the bound is not merely large"


def test_the_bound_of_a_join_is_the_product() -> None:
    """One person with more rows than count in both tables: 2 · 3 pairs, not 5 · 5."""
    _, ((scan, x),) = counts(database_of([(1, 1)] * 5, [(1, 9)] * 5), BATCHES["joined"])
    assert scan.rows_per_unit == 6
    assert x.sum() == 6


def test_a_public_key_that_is_not_unique_is_refused_unpaid() -> None:
    """Each match would count a private row once more."""
    with connect(database_of([(1, 1)], [], places=[(1, 2)] * 50)) as con:
        with pytest.raises(tacit.NotSupportedError, match="several rows"):
            con.answer(BATCHES["public"], epsilon=1)
        assert con.budget.spent.epsilon == 0


def test_a_join_that_does_not_equate_the_units_is_refused() -> None:
    with connect(database_of([(1, 1)], [(2, 1)])) as con, pytest.raises(tacit.SqlError, match="privacy units"):
        con.answer("SELECT count(*) FROM visits v JOIN labs l ON v.x = l.y", epsilon=1)
