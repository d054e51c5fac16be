"""The frame of a compiled query compared with DuckDB's own answer to the same text."""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
from tacit.sql import Source, Workload

from .exact import exact_rows
from .random_sql import Asked


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
        with database.cursor() as cursor:
            # b - 1 <> -1 becomes b <> 0 in DuckDB's optimizer, which then has an answer where b - 1 has none
            cursor.execute("SET SESSION enable_optimizer = false")
            expected = [tuple(map(plain, row)) for row in cursor.execute(asked.truth, asked.params).fetchall()]
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
