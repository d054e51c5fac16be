"""For every accepted query, W @ x is what DuckDB answers to the same text (sums with the clamp written out).

1,000 of them; ``TACIT_FUZZ`` asks 3,000 times as many as it says: ``make fuzz`` sets it.
"""

from __future__ import annotations

import os
import random

import duckdb
import pytest
from support.against_duckdb import compare
from support.exact import exact_rows
from support.random_sql import query
from tacit.errors import LimitError, TypeMismatchError
from tacit.sql import Catalog, Source, compile_batch

SEEDS = 30 * int(os.environ["TACIT_FUZZ"]) if "TACIT_FUZZ" in os.environ else 10
PER_SEED = 100


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
