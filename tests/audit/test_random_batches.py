"""Random batches whose cells are not listed: answered within their error bars, or refused before anything is paid.

``TACIT_FUZZ`` multiplies their number, as does ``TACIT_AUDIT=long``.
"""

from __future__ import annotations

import os
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
import tacit.testing
from tacit.engine.search.structured.structured import NAMES
from tacit.sql import compile_batch

from .cases import LONG

SEEDS = (40 if LONG else 4) * int(os.environ.get("TACIT_FUZZ", "1"))
COLUMNS = [f"c{k}" for k in range(6)]
LOWS, HIGHS = [0, -5, 0.1, -10.5, 0], [100, 50, 99.7, 1234.567, 250000]
AGGREGATES = [
    "count(*)", "count(*)", "sum(x)", "sum(y)", "count(y)", "avg(y)", "count(*), sum(x)", "sum(y) + 2 * count(*)",
    "variance(y)", "count(*) FILTER (WHERE c0 < 2)",
]  # fmt: skip


def connection(rng: np.random.Generator, rows: int = 1000) -> tuple[tacit.Connection, dict[str, Any]]:
    """A table of six small columns and two numbers; whether there are NULLs, other values and units is drawn."""
    not_null, complete = rng.random() < 0.5, rng.random() < 0.5
    columns: dict[str, Any] = {}
    made = []
    for column in COLUMNS:
        size = int(rng.integers(2, 9))
        null = 0.0 if not_null else 0.1
        made.append(f"CASE WHEN random() >= {null} THEN CAST(floor(random() * {size}) AS INTEGER) END AS {column}")
        columns[column] = {"values": list(range(size)), "not_null": not_null, "complete": complete}
    columns["x"] = {"min": LOWS[rng.integers(5)], "max": HIGHS[rng.integers(5)]}
    columns["y"] = {"min": 0, "max": 50}
    made += ["random() * 120 - 10 AS x", "CASE WHEN random() > 0.1 THEN CAST(random() * 50 AS INTEGER) END AS y"]
    database = duckdb.connect()
    database.execute("SELECT setseed(0.3)")
    database.execute(f"CREATE TABLE t AS SELECT {', '.join(made)}, i // 3 AS u FROM range({rows}) r(i)")
    table: dict[str, Any] = {"columns": columns, "version": "1"}
    if rng.random() < 0.3:
        table |= {"privacy_unit": "u", "max_rows_per_unit": int(rng.integers(1, 4))}
    return tacit.connect(database, policy={"budget": {"epsilon": 1e6, "delta": 0.9}, "tables": {"t": table}}), columns


def condition(rng: np.random.Generator, columns: dict[str, Any]) -> str:
    column = COLUMNS[rng.integers(6)]
    low, high = sorted(rng.integers(0, len(columns[column]["values"]) + 1, 2).tolist())
    comparisons = [
        f"{column} < {high}", f"{column} BETWEEN {low} AND {high}", f"{column} IN ({low}, {high})",
        f"{column} IS NOT NULL", f"x < {10 * low}",
    ]  # fmt: skip
    return comparisons[rng.integers(5)]


def query(rng: np.random.Generator, columns: dict[str, Any]) -> str:
    keys = [COLUMNS[k] for k in sorted(rng.choice(6, int(rng.integers(0, 4)), replace=False))]
    conditions = [condition(rng, columns) for _ in range(int(rng.integers(0, 3)))]
    if rng.random() < 0.25:  # more columns than an axis can be made of
        conditions.append(
            f"({' OR '.join(f'{c} = {k % 3} OR {c} > {3 + k % 3}' for k, c in enumerate(COLUMNS))} OR x < 7)"
        )
    sql = f"SELECT {', '.join([*keys, AGGREGATES[rng.integers(10)]])} FROM t"
    if conditions:
        sql += " WHERE " + " AND ".join(conditions)
    if keys:
        listed, kind = ", ".join(keys), rng.random()
        sql += " GROUP BY " + (listed if kind < 0.8 else f"ROLLUP ({listed})" if kind < 0.9 else f"CUBE ({listed})")
    return sql


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_answers_are_within_their_errors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    con, columns = connection(rng)
    with con:
        while True:
            batch = [query(rng, columns) for _ in range(int(rng.integers(2, 7)))]
            if any(part.matrix is None for part in compile_batch(batch, con.catalog).tables):
                break
        delta = [0, 1e-6][seed % 2]
        plan = con.explain(batch, epsilon=1, delta=delta, plan_seconds=0.5)
        assert plan.strategy in NAMES
        before = con.budget.spent.epsilon
        answers = con.answer(batch, epsilon=1, delta=delta, plan_seconds=0.5)
        assert con.budget.spent.epsilon - before == plan.cost.epsilon
        figures = answers.df()
        np.testing.assert_allclose(
            figures["stderr"].to_numpy()[plan.df()["note"] == ""],
            plan.df()["stderr"][plan.df()["note"] == ""],
            rtol=1e-6,
        )
        for number, exact in enumerate(tacit.testing.exact_answers(con, batch)):
            for column in exact.columns:
                figure = figures[(figures["query"] == number) & (figures["column"] == column)]
                if column in COLUMNS or "avg" in column or "var" in column or len(figure) != len(exact):
                    continue
                off = np.abs(figure["value"].to_numpy(float) - exact[column].to_numpy(float))
                assert (off <= 14 * figure["stderr"].to_numpy(float) + 1e-6).all(), batch[number]
