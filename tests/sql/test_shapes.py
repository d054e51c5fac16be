"""Statements over several tables, and over results: without noise, tacit's answer is DuckDB's to the same text.

What tacit does not answer it refuses with an error of its own tree. ``TACIT_FUZZ`` multiplies the number of statements.
"""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

import duckdb
import pandas as pd
import pytest
import tacit
import tacit.testing
from support.random_shapes import CLINIC, POLICY, statement

SEEDS = 12 * int(os.environ.get("TACIT_FUZZ", "1"))
PER_SEED = 60


@pytest.fixture(scope="module")
def truth() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(CLINIC)
        yield database


@pytest.fixture(scope="module")
def con() -> Iterator[tacit.Connection]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute(CLINIC)
        connection = tacit.connect(database, policy=POLICY)
        yield connection
        connection.close()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_shapes(con: tacit.Connection, truth: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = random.Random(seed)
    answered = sum(check(con, truth, statement(rng)) for _ in range(PER_SEED))
    assert answered > 0.4 * PER_SEED


def check(con: tacit.Connection, truth: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether a statement is answered; fails where the answer is wrong."""
    try:
        (ours,) = tacit.testing.exact_answers(con, sql)
    except tacit.InternalError:
        pytest.fail(f"fails on: {sql}")
    except tacit.Error:
        return False
    try:
        theirs = truth.execute(sql).df()
    except duckdb.Error as error:
        pytest.fail(f"answers what DuckDB does not: {sql}\n{error}")
    wrong = difference(ours, theirs)
    assert not wrong, f"{wrong}\n{sql}\ntacit:\n{ours}\nDuckDB:\n{theirs}"
    return True


def difference(ours: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Where two answers differ; groups without rows may be there in one of them only."""
    if list(ours.columns) != list(theirs.columns):
        return f"columns {list(ours.columns)}, DuckDB has {list(theirs.columns)}"
    expected, found = (Counter(tuple(map(plain, row)) for row in f.itertuples(index=False, name=None)) for f in (theirs, ours))
    extra, missing = list((found - expected).elements()), list((expected - found).elements())
    for row in list(extra):
        match = next((other for other in missing if all(map(same, row, other))), None)
        if match is not None:
            extra.remove(row)
            missing.remove(match)
    left = [row for row in extra if not is_empty(row)] or [row for row in missing if not is_empty(row)]
    return f"tacit alone has {extra}, DuckDB {missing}" if left or (missing and len(ours.columns) == 1) else ""


def is_empty(row: tuple[Hashable, ...]) -> bool:
    """Whether a row may be that of a group without rows: its figures, which come last, are zero or NULL."""
    return row[-1] in (0.0, None) and len(row) > 1


def same(a: Hashable, b: Hashable) -> bool:
    if b is None:  # the sum of no rows is NULL in DuckDB, 0 here
        return a is None or a == 0
    return abs(a - b) < 1e-3 if isinstance(a, float) and isinstance(b, float) else a == b


def plain(value: Any) -> Hashable:
    """A value as both sides write it."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, str) else round(float(value), 6) + 0.0
