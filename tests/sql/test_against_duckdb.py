"""For every accepted query, W @ x is what DuckDB answers to the same text (sums with the clamp written out)."""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pytest
from support.random_sql import MEASURES, query
from tacit.errors import LimitError, TypeMismatchError
from tacit.sql import Catalog, Source, Workload, compile_batch
from tacit.sql.workload import Key, Linear, Query, Ratio


def exact(source: Source, workload: Workload) -> list[float]:
    """W @ x in exact integers."""
    import numpy as np

    values = [0.0] * len(workload.matrix)
    for scan in workload.scans:
        x = source.count(scan, b"salt") / scan.unit
        values = values + workload.matrix[:, scan.columns] @ x
    return list(np.asarray(values))


def frame(found: Query, values: list[float]) -> dict[tuple[Any, ...], list[float]]:
    rows: dict[tuple[Any, ...], list[float]] = {}
    for g, group in enumerate(found.groups):
        row = []
        for column in found.columns:
            match column.output:
                case Key():
                    continue
                case Linear(lines):
                    row.append(values[lines[g]])
                case Ratio(numerator, denominator):
                    below = values[denominator[g]]
                    row.append(values[numerator[g]] / below if below else math.nan)
        rows[group] = row
    return rows


def clamped(aggregate: str) -> str:
    """The aggregate with its clamp written out, as a person would."""
    name, column = aggregate[:3].lower(), aggregate[4:-1]
    if name not in ("sum", "avg"):
        return aggregate
    low, high = MEASURES[column]
    return f"{name}(CASE WHEN {column} IS NOT NULL THEN greatest({low}, least({high}, {column}::DOUBLE)) END)"


def check(database: duckdb.DuckDBPyConnection, source: Source, catalog: Catalog, seed: int, size: int) -> int:
    rng = random.Random(seed)
    queries = []
    while len(queries) < size:
        text, keys, aggregates, where = query(rng)
        try:
            compile_batch(text, catalog)
        except (TypeMismatchError, LimitError):
            # what tacit calls incomparable, DuckDB must refuse as well (see test_refusals for the limits)
            continue
        queries.append((text, keys, aggregates, where))
    compared = 0
    for text, keys, aggregates, where in queries:
        workload = compile_batch(text, catalog)
        ours = frame(workload.queries[0], exact(source, workload))
        truth_sql = f"SELECT {', '.join(keys + [clamped(a) for a in aggregates])} FROM t WHERE {where}"
        truth_sql += f" GROUP BY {', '.join(keys)}" if keys else ""
        theirs: dict[tuple[Any, ...], list[Any]] = {}
        try:
            found = database.execute(truth_sql).fetchall()
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            continue  # DuckDB's own cast of a huge value fails; tacit compares the numbers and does not
        compared += 1
        for row in found:
            key = tuple(_group(name, value) for name, value in zip(keys, row, strict=False))
            theirs[key] = _merged(theirs.get(key), list(row[len(keys) :]), aggregates)
        steps = [_step(a) for a in aggregates]
        for group, row in ours.items():
            expected = theirs.get(group)
            for k, value in enumerate(row):
                truth = expected[k] if expected is not None else None
                if aggregates[k][:3].lower() == "avg":
                    if group and "other" in group:
                        continue
                    assert (truth is None) == math.isnan(value), (text, group)
                    assert truth is None or value == pytest.approx(truth, abs=steps[k] + 1e-9), (text, group)
                else:
                    assert value == pytest.approx(truth or 0, abs=600 * steps[k] + 1e-6 * (steps[k] > 0)), (text, group)
        listed = {group for group in theirs if group in ours}
        assert listed == {g for g in theirs if _declared(keys, g, catalog)}, text
    return compared


def _group(key: str, value: Any) -> Any:
    if key == "s" and value is not None and value not in ("NY", "NJ", "CA"):
        return "other"
    return value


def _merged(known: list[Any] | None, row: list[Any], aggregates: list[str]) -> list[Any]:
    """Counts and sums of the raw values that make up the group "other" are added; its averages are not compared."""
    if known is None:
        return row
    return [(a or 0) + (b or 0) for a, b in zip(known, row, strict=True)]


def _declared(keys: list[str], group: tuple[Any, ...], catalog: Catalog) -> bool:
    table = catalog.table("t")
    assert table is not None
    for key, value in zip(keys, group, strict=True):
        column = table.column(key.strip('"'))
        assert column is not None
        domain: Any = column.domain
        if value is None or column.type == "BOOLEAN" or (hasattr(domain, "other") and value == domain.other):
            continue
        if hasattr(domain, "values") and value not in domain.values:
            return False
        if hasattr(domain, "min") and not domain.min <= value <= domain.max:
            return False
    return True


def _step(aggregate: str) -> float:
    """The documented fixed-point step of one row."""
    if aggregate[:3].lower() not in ("sum", "avg"):
        return 0.0
    low, high = MEASURES[aggregate[4:-1]]
    return (high - low) / 2**31


@pytest.mark.parametrize("seed", range(8))
def test_random_queries(database: duckdb.DuckDBPyConnection, source: Source, catalog: Catalog, seed: int) -> None:
    assert check(database, source, catalog, seed, 60) > 40
