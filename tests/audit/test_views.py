"""A column of many points is several axes: a row is at one point of each, and of every set of them."""

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

POINTS = 2100
BATCHES = {
    "numbers": [
        "SELECT zip, count(*), sum(x) FROM t GROUP BY zip",
        "SELECT count(*) FROM t WHERE zip BETWEEN 7 AND 900",
        "SELECT count(*) FROM t WHERE zip IN (3, 5, 1000, 1007, 2000)",
    ],
    "texts": [
        "SELECT code, count(*) FROM t GROUP BY code",
        "SELECT count(*) FROM t WHERE code BETWEEN 'z17' AND 'z3'",
    ],
}
Row = tuple[Any, ...]


def table(seed: int) -> list[Row]:
    """Ten people of one to three rows, with NULL, with values that no list has and with odd numbers."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for person in range(10):
        for _ in range(int(rng.integers(1, 4))):
            zip_ = [None, -(2**31), 2**31 - 1, int(rng.integers(POINTS)), 0, POINTS - 1][int(rng.integers(6))]
            code = [None, "", "z\x00", f"z{rng.integers(POINTS)}", "日本"][int(rng.integers(5))]
            rows.append((person, [None, float("nan"), -1e300, 4.5][int(rng.integers(4))], zip_, code))
    return rows


def counts(rows: list[Row], name: str) -> tuple[Workload, list[tuple[Scan, NDArray[np.int64]]]]:
    """What the scans of every set of up to three axes count."""
    database = duckdb.connect()
    database.execute("CREATE TABLE t (person INTEGER, x DOUBLE, zip INTEGER, code VARCHAR)")
    database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    columns = {
        "zip": {"min": 0, "max": POINTS - 1},
        "code": {"values": [f"z{k}" for k in range(POINTS)]},
        "x": {"min": 0.0, "max": 9.0},
    }
    declared = {"privacy_unit": "person", "max_rows_per_unit": 2, "version": "1", "columns": columns}
    with tacit.connect(database, policy={"budget": {"epsilon": 10}, "tables": {"t": declared}}) as con:
        workload = compile_batch(BATCHES[name], con.catalog)
    (part,) = workload.tables
    assert isinstance(part.scan, ProductScan) and part.product is not None and part.product.readings
    axes = range(len(part.scan.axes))
    sets = [chosen for size in (1, 2, 3) for chosen in itertools.combinations(axes, size)]
    scans = [part.scan.marginal(chosen) for chosen in sets if part.scan.points(chosen) < 1 << 18]
    return workload, list(zip(scans, open_source(database).count_all(scans, SALT), strict=True))


@pytest.mark.parametrize("name", BATCHES)
def test_every_row_is_at_one_point_of_every_set_of_digits(name: str) -> None:
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
    for person in range(10 if LONG else 1):
        other, there = counts([row for row in rows if row[0] != person], name)
        assert other.fingerprint == workload.fingerprint, "nothing that is computed depends on a row"
        for (scan, x), (_, less) in zip(here, there, strict=True):
            moved = x - less
            assert scan.rows_per_unit == 2
            assert (moved >= 0).all() and scan.one_row <= moved.sum() <= 2 * scan.one_row
