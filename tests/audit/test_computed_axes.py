"""Conditions and keys that are computed row by row: a row is at one point of every set of axes."""

from __future__ import annotations

import itertools
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from numpy.typing import NDArray
from tacit.sql import ProductScan, Workload, compile_batch, open_source
from tacit.sql.scan import Scan

from .cases import LONG, SALT

COLUMNS = [f"c{k}" for k in range(8)]
KEYS = ", ".join(COLUMNS[:6])
MIXED = " OR ".join(f"{column} = {k}" for k, column in enumerate(COLUMNS))
BATCHES = {
    "a wide condition": [
        f"SELECT count(*) FROM t WHERE {MIXED}",
        f"SELECT c0, sum(x), count(*) FROM t WHERE {MIXED} GROUP BY c0",
        *(f"SELECT count(*) FROM t WHERE {column} < {k}" for column in COLUMNS for k in range(1, 4)),
    ],
    "keys that others cut finely": [
        f"SELECT {KEYS}, count(*) FROM t WHERE x > 3 OR c7 < 2 GROUP BY {KEYS}",
        *(f"SELECT count(*) FROM t WHERE {column} < {k}" for column in COLUMNS for k in range(18)),
    ],
}
Row = tuple[Any, ...]


def connect(rows: list[Row]) -> tuple[tacit.Connection, duckdb.DuckDBPyConnection]:
    database = duckdb.connect()
    database.execute(f"CREATE TABLE t (person INTEGER, x DOUBLE, {', '.join(f'{c} INTEGER' for c in COLUMNS)})")
    database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * (2 + len(COLUMNS)))})", rows)
    columns = {column: {"values": [0, 1, 2]} for column in COLUMNS}
    declared = {"privacy_unit": "person", "max_rows_per_unit": 2, "version": "1"}
    table = {**declared, "columns": {**columns, "x": {"min": 0.0, "max": 9.0}}}
    return tacit.connect(database, policy={"budget": {"epsilon": 10}, "tables": {"t": table}}), database


def table(seed: int) -> list[Row]:
    """Ten people of one to three rows, some with NULL, with values that no key lists and with odd numbers."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(10):
        for _ in range(int(rng.integers(1, 4))):
            values = [None if rng.random() < 0.15 else int(v) for v in rng.integers(0, 20, len(COLUMNS))]
            x = [None, float("nan"), -1e300, 4.5, 9.0][int(rng.integers(5))]
            rows.append((person, x, *values))
    return rows


def counts(rows: list[Row], name: str) -> tuple[Workload, list[tuple[Scan, NDArray[np.int64]]]]:
    """What the scans of every set of axes count, of one axis each and of two more sets as a plan may choose them."""
    con, database = connect(rows)
    with con:
        workload = compile_batch(BATCHES[name], con.catalog)
    (part,) = workload.tables
    assert isinstance(part.scan, ProductScan) and part.product is not None
    axes = range(len(part.scan.axes))
    computed = [a for a in axes if isinstance(c := part.scan.axes[a].columns, tuple) and any(r.numbered for r in c)]
    assert computed, "the grid can be listed"
    sets = [*part.product.column_sets, *((axis,) for axis in axes), *itertools.combinations(computed, 2)]
    scans = [part.scan.marginal(chosen) for chosen in dict.fromkeys(sets)]
    return workload, list(zip(scans, open_source(database).count_all(scans, SALT), strict=True))


@pytest.mark.parametrize("name", BATCHES)
def test_every_row_is_at_one_point_of_every_set_of_axes(name: str) -> None:
    rows = table(3)
    kept = sum(min(2, sum(row[0] == person for row in rows)) for person in range(10))
    _, counted = counts(rows, name)
    for scan, x in counted:
        assert (x >= 0).all() and x.sum() == kept * scan.one_row


@pytest.mark.parametrize("seed", range(5 if LONG else 1))
@pytest.mark.parametrize("name", BATCHES)
def test_removing_any_unit_moves_no_more_than_is_charged_for(name: str, seed: int) -> None:
    rows = table(seed)
    workload, here = counts(rows, name)
    for person in range(10 if LONG else 3):
        other, there = counts([row for row in rows if row[0] != person], name)
        assert other.fingerprint == workload.fingerprint, "nothing that is computed depends on a row"
        for (scan, x), (_, less) in zip(here, there, strict=True):
            moved = x - less
            assert scan.rows_per_unit == 2
            assert (moved >= 0).all() and scan.one_row <= moved.sum() <= 2 * scan.one_row


def test_a_row_of_no_group_fails_nothing() -> None:
    """Whatever a row holds, its number is one of the column's own."""
    odd = [(1, None, *(None,) * 8), (2, 1.0, *(99,) * 8), (3, float("inf"), *(-(2**31),) * 8)]
    for name in BATCHES:
        _, counted = counts(odd, name)
        assert all(x.sum() == 3 * scan.one_row for scan, x in counted)
