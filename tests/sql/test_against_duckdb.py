"""For every accepted query, W @ x is what DuckDB answers to the same text (sums with the clamp written out).

``TACIT_FUZZ`` multiplies the number of queries: ``make fuzz`` sets it.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import pytest
from support.exact import exact_rows
from support.random_sql import Asked, query
from tacit.errors import LimitError, TypeMismatchError
from tacit.sql import Catalog, Source, Workload, compile_batch

SEEDS = 30 * int(os.environ.get("TACIT_FUZZ", "1"))
PER_SEED = 100


def plain(value: Any) -> Hashable:
    """A value as both sides write it: NaN and NULL are one."""
    if isinstance(value, Decimal):
        value = float(value)
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if not hasattr(value, "item") else value.item()


def close(answer: Hashable, expected: Hashable, tolerance: float) -> bool:
    if isinstance(answer, str | None) or isinstance(expected, str | None):
        return answer == expected
    a, b = float(answer), float(expected)  # type: ignore[arg-type]
    return a == b or abs(a - b) <= tolerance + 1e-9 * max(abs(a), abs(b), 1.0)


def compare(asked: Asked, workload: Workload, source: Source, database: duckdb.DuckDBPyConnection) -> bool:
    """Whether DuckDB had an answer; fails where the two differ."""
    try:
        expected = [tuple(map(plain, row)) for row in database.execute(asked.truth, asked.params).fetchall()]
    except duckdb.Error:
        return False  # a value that DuckDB itself stumbles over; tacit takes it as NULL
    ours = [tuple(map(plain, row)) for row in exact_rows(workload, source)]
    about = f"{asked.text}\n{asked.truth}\n{asked.params}"

    def key(row: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        return tuple(row[i] for i in asked.keys)

    by_key = {key(row): row for row in ours}
    assert len(by_key) == len(ours), about
    for row in expected:
        answer = by_key.pop(key(row), None)
        if answer is None:
            listed = [{other[i] for other in ours} for i in asked.keys]
            declared = all(row[i] in values for i, values in zip(asked.keys, listed, strict=True))
            assert not declared and not asked.tidy, (about, row, ours)
            continue
        for i, (answer_value, value, tolerance) in enumerate(zip(answer, row, asked.tolerances, strict=True)):
            assert i in asked.keys or close(answer_value, value, tolerance), (about, answer, row)
    if asked.ordered:
        wanted = [key(row) for row in expected if key(row) not in by_key]
        order = [key(row) for row in ours if key(row) not in by_key]
        assert order == [k for k in wanted if k in set(order)], about
        assert not by_key, (about, by_key)
    return True


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_queries(database: duckdb.DuckDBPyConnection, source: Source, catalog: Catalog, seed: int) -> None:
    rng = random.Random(seed)
    accepted = compared = 0
    cursor = database.cursor()
    while accepted < PER_SEED:
        asked = query(rng)
        try:
            workload = compile_batch(asked.text, catalog, asked.params)
        except (TypeMismatchError, LimitError):
            continue
        accepted += 1
        compared += compare(asked, workload, source, cursor)
    assert compared > 0.8 * accepted


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) - (SELECT count(*) FROM c), (SELECT sum(k) FROM t WHERE i < 5), sum(I)+1 FROM t",
        "SELECT count(places.zone), sum(SIZE), count(t.i) FROM t LEFT JOIN places ON t.k = places.k",
        "SELECT (SELECT count(*) FROM t), 1+1, 'a'",
        "SELECT k//2, 100.0*count_if(p)/count(*) FROM t GROUP BY 1",
    ],
)
def test_unnamed_columns_have_duckdbs_names(database: duckdb.DuckDBPyConnection, catalog: Catalog, sql: str) -> None:
    ours = [column.name for column in compile_batch(sql, catalog).queries[0].columns]
    assert ours == [column[0] for column in database.cursor().execute(sql).description]


def test_expressions_that_share_a_part_that_can_raise(source: Source, catalog: Catalog) -> None:
    """DuckDB computes a shared part once, outside the TRY of either; the scan must not fail for it."""
    workload = compile_batch(
        "SELECT count(2 * b), count(2 * b + 1), count(CAST(s AS INTEGER) + CAST(s AS INTEGER)) FROM t", catalog
    )
    ((doubled, more, _),) = exact_rows(workload, source)
    assert doubled == more > 0
