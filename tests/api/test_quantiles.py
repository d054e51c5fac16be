"""Quantiles, MIN, MAX and MODE: exact where every value is on the grid, honest about the noise, and labelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import tacit
from numpy.typing import NDArray
from scipy.stats import binom
from support.estimates import estimate_batch
from tacit import Connection, testing
from tacit.engine import Estimate, measure, plan_release, table_workload
from tacit.engine.inference.estimate import Spread
from tacit.engine.mechanism.choose import PlanOptions
from tacit.figures import ColumnBuilder
from tacit.sql import Workload, compile_batch, open_source
from tacit.sql.present import exact_values
from tacit.sql.ranks import quantile_values
from tacit.sql.workload import Computed, Mode, Output, Quantile

SCHEMA = """
CREATE TABLE stays AS SELECT
    CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 37) % 97 END::INTEGER AS nights,
    [(i * 7919 % 12000) / 10.0, NULL][1 + (i % 17 = 0)::INTEGER]::DOUBLE AS cost,
    (i % 3)::INTEGER AS ward, ['a', 'b', 'b', 'c', 'x'][1 + i % 5] AS state, i % 4 = 0 AS urgent,
    DATE '2024-01-01' + (i * 13 % 300)::INTEGER AS day,
    TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * (i * 13 % 3000)::INTEGER AS moment,
    (i * 31 % 9000)::INTEGER AS wide
FROM range(1501) AS r(i);
"""
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 1000.0},
    "tables": {
        "stays": {
            "columns": {
                "nights": {"min": 0, "max": 100},
                "cost": {"min": 0.0, "max": 1200.0},
                "ward": {"min": 0, "max": 3},
                "state": {"values": ["a", "b", "c"], "other": True},
                "day": {"min": date(2024, 1, 1), "max": date(2024, 12, 31)},
                "moment": {"min": date(2024, 1, 1), "max": date(2024, 6, 30)},
                "wide": {"min": 0, "max": 10_000},
            }
        }
    },
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quantiles") / "stays.duckdb"
    with duckdb.connect(str(path)) as raw:
        raw.execute(SCHEMA)
    return path


@pytest.fixture(scope="module")
def con(database: Path) -> Iterator[Connection]:
    with tacit.connect(database, policy=POLICY) as opened:
        yield opened


def duckdbs(sql: str) -> pd.DataFrame:
    with duckdb.connect() as raw:
        raw.execute(SCHEMA)
        return raw.execute(sql).df()


EXACT = [
    "SELECT median(nights), quantile_cont(nights, 0.37), quantile_disc(nights, 0.9), quantile(nights, 0.1) FROM stays",
    "SELECT min(nights), max(nights), max(nights) - min(nights), round(median(nights), 1), max(-nights) FROM stays",
    "SELECT median(nights) FROM stays WHERE ward = 0 AND nights < 30",
    "SELECT quantile_disc(nights, 0), quantile_disc(nights, 1), quantile_cont(nights, 0), quantile(nights, -0.2) "
    "FROM stays",
    "SELECT percentile_disc(0.2) WITHIN GROUP (ORDER BY nights DESC) AS a, "
    "percentile_cont(0.2) WITHIN GROUP (ORDER BY nights DESC) AS b FROM stays",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY nights) FILTER (WHERE urgent) FROM stays",
    "SELECT ward, median(nights), max(nights) FILTER (WHERE cost < 100) FROM stays WHERE ward < 3 GROUP BY ward "
    "HAVING max(nights) > 50 ORDER BY median(nights) DESC, ward",
    "SELECT min(day), max(day), median(day), quantile_disc(day, 0.3), max(day) - min(day) FROM stays",
    "SELECT max(date_trunc('month', day)) AS m, max(urgent), min(urgent), median(nights + 1), min(nights // 10) "
    "FROM stays",
    "SELECT mode(state) FROM stays WHERE nights > 10",
    "SELECT mode() WITHIN GROUP (ORDER BY nights % 2) FROM stays",
    "SELECT 'least' AS what, min(nights) FROM stays UNION ALL SELECT 'most', max(nights) FROM stays",
    "SELECT median(nights), min(day), max(nights) + 1 FROM stays WHERE nights > 99",
]


@pytest.mark.parametrize("sql", EXACT)
def test_duckdbs_own_answer_where_every_value_is_on_the_grid(con: Connection, sql: str) -> None:
    expected = duckdbs(sql)
    (found,) = testing.exact_answers(con, sql)
    kept = found[found["ward"].notna()] if "ward" in found else found
    assert list(found.columns) == list(expected.columns)
    for name in expected:
        ours, theirs = kept[name].tolist(), expected[name].tolist()
        assert all((pd.isna(a) and pd.isna(b)) or a == b for a, b in zip(ours, theirs, strict=True)), name
        if not pd.api.types.is_numeric_dtype(expected[name]):
            assert found[name].dtype == expected[name].dtype


@pytest.mark.parametrize(("column", "step"), [("cost", 1200 / 256), ("wide", 10_000 / 256 + 1)])
def test_a_wide_column_is_known_to_a_step_of_its_grid(con: Connection, column: str, step: float) -> None:
    sql = f"SELECT median({column}), quantile_disc({column}, 0.9), min({column}), max({column}) FROM stays"
    expected = duckdbs(sql).iloc[0].to_numpy(np.float64)
    (found,) = testing.exact_answers(con, sql)
    assert np.all(np.abs(found.iloc[0].to_numpy(np.float64) - expected) <= step)


def test_timestamps_are_interpolated_between_the_steps(con: Connection) -> None:
    sql = "SELECT median(moment), max(moment) FROM stays"
    expected, (found,) = duckdbs(sql), testing.exact_answers(con, sql)
    assert (found.dtypes == expected.dtypes).all()
    assert abs(found.iloc[0, 0] - expected.iloc[0, 0]) < pd.Timedelta(hours=6)
    assert pd.Timedelta(0) <= found.iloc[0, 1] - expected.iloc[0, 1] < pd.Timedelta(hours=18)


def test_several_quantiles_of_a_column_cost_no_more_than_one(con: Connection) -> None:
    one = compile_batch("SELECT median(nights) FROM stays", con.catalog)
    shares = ", ".join(f"quantile_cont(nights, 0.{i})" for i in range(1, 10))
    many = compile_batch(f"SELECT {shares}, min(nights), max(nights), count(nights) FROM stays", con.catalog)
    assert one.matrix.shape == many.matrix.shape == (101, 101)


def test_a_quantile_counts_as_one_figure(con: Connection) -> None:
    """Or the count beside it would be left with a tenth of the budget."""
    rank, count = "SELECT median(nights // 4) FROM stays", "SELECT count(*) FROM stays WHERE urgent"
    plan = con.explain([rank, count], epsilon=1.0)
    assert plan.stderr[-1] < np.sqrt(np.mean(plan.stderr[:-1] ** 2)), "a count is easier than a rank, and as important"


def test_explain_predicts_the_rank_and_no_value(con: Connection) -> None:
    frame = con.explain(
        "SELECT ward, median(nights), mode(nights) FROM stays GROUP BY ward", epsilon=1.0, strategy="hierarchical"
    ).df()
    assert frame[["stderr", "half_width"]].isna().all(axis=None)
    assert frame["note"].str.contains("rank is known to about ±").sum() == 5
    assert frame["note"].str.contains("each count it compares").sum() == 5


def test_the_answer_is_labelled(con: Connection) -> None:
    sql = ["SELECT min(nights), median(nights), max(nights) - min(nights) FROM stays",
           "SELECT median(nights), max(nights) FROM stays WHERE nights > 99"]  # fmt: skip
    answers = con.answer(sql, epsilon=1.0, strategy="hierarchical")
    frame = answers.df()
    low, middle, spread, *empty = frame["note"]
    assert low.startswith("MIN: an extreme quantile, about ") and middle == ""
    assert "MIN: " in spread and "MAX: " in spread
    assert all(note.startswith(("no rows", "too few rows", "MAX: ")) for note in empty)
    assert frame["stderr"].isna().all()
    known = frame[frame["value"].notna()]
    assert ((known["low"] <= known["value"]) & (known["value"] <= known["high"])).all()
    assert answers[0].df.shape == (1, 3)


@pytest.mark.parametrize(
    ("sql", "near"),
    [
        ("SELECT min(day), median(day), mode(day) FROM stays", pd.Timedelta(days=7)),
        ("SELECT median(moment), max(moment) FROM stays", pd.Timedelta(days=7)),
        ("SELECT mode(state), max(urgent) FROM stays", None),
    ],
)
def test_dates_come_back_as_dates(con: Connection, sql: str, near: pd.Timedelta | None) -> None:
    answers = con.answer(sql, epsilon=200.0, strategy="hierarchical")
    expected = duckdbs(sql)
    assert (answers[0].df.dtypes == expected.dtypes).all()
    for name in answers[0].names:
        if near is None:
            assert answers[0].df[name].tolist() == expected[name].tolist()
        elif "mode" not in name:
            assert abs(answers[0].df[name][0] - expected[name][0]) <= near


@pytest.mark.parametrize("figure", ["median(nights)", "max(day)", "mode(state)"])
def test_no_error_of_a_value_is_promised(con: Connection, figure: str) -> None:
    with pytest.raises(tacit.errors.PrivacyParameterError, match="error= cannot be promised"):
        con.explain(f"SELECT {figure} FROM stays", error=10)


# intervals

LEVELS = (0.9, 0.99)
COVERED = {
    "median": "median(nights)",
    "decile": "quantile_disc(nights, 0.1)",
    "from above": "percentile_disc(0.05) WITHIN GROUP (ORDER BY nights DESC)",
    "least": "min(nights)",
    "greatest": "max(nights)",
    "between steps": "quantile_cont(cost, 0.75)",
    "mode": "mode(ward)",
    "computed": "max(nights) - median(nights)",
    "few": "median(nights) FILTER (WHERE cost < 20)",
}


def drawn(con: Connection, sql: str, draws: int) -> tuple[Workload, Estimate, NDArray[np.float64]]:
    """A plan of the real engine, and one estimate that holds the answers of many draws of its noise."""
    workload = compile_batch(sql, con.catalog)
    (scan,) = workload.scans
    with duckdb.connect() as raw:
        raw.execute(SCHEMA)
        counts = open_source(raw).count(scan, bytes(32))
    rows = len(workload.matrix)
    blocks = [table_workload(workload.matrix)]
    plan = plan_release(blocks, privacy="pure", options=PlanOptions(strategy="hierarchical"))
    one = estimate_batch(blocks, [measure(plan, [counts], 1.0, 0.0)], rows=rows)
    exact = workload.matrix @ counts
    (spread,) = one.spreads
    noise = np.random.default_rng(5).laplace(size=(draws, spread.laplace.shape[1])) @ spread.laplace.T
    many = Spread(np.arange(draws * rows), np.tile(spread.laplace, (draws, 1)), np.zeros((draws * rows, 0)))
    values = (exact + noise).reshape(-1)
    return workload, replace(one, values=values, stderr=many.stderr, spreads=(many,)), exact


def repeated(output: Output, rows: int, draws: int) -> Output:
    """The same output for every draw, as if each were a group."""

    def every(counts: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(count[0] + rows * i for i in range(draws)) for count in counts)

    match output:
        case Quantile():
            return replace(output, prefixes=every(output.prefixes))
        case Mode():
            return replace(output, counts=every(output.counts))
        case Computed():
            return replace(output, leaves=tuple(repeated(leaf, rows, draws) for leaf in output.leaves))  # type: ignore[misc]
    raise TypeError


@pytest.mark.parametrize("column", COVERED)
def test_intervals_cover_as_stated(con: Connection, column: str) -> None:
    draws = 100
    workload, estimate, exact = drawn(con, f"SELECT {COVERED[column]} FROM stays", draws)
    (query,) = workload.queries
    keys = pd.DataFrame(index=pd.RangeIndex(draws))
    truth = float(np.asarray(exact_values(query, query.columns[0].output, keys.iloc[:1], exact))[0])
    output = repeated(query.columns[0].output, len(workload.matrix), draws)
    for level in LEVELS:
        figures = ColumnBuilder(query, keys, estimate, estimate.half_width(level), level).figures(output)
        covered = int(((figures.low <= truth) & (truth <= figures.high)).sum())
        assert covered >= binom.ppf(1e-4, draws, level), (level, covered / draws)
        known = ~np.isnan(figures.value)
        assert (figures.low <= figures.value)[known].all() and (figures.value <= figures.high)[known].all()
        if column in ("median", "decile", "from above"):
            assert np.mean(figures.high - figures.low) < 12, "nor merely generous"


# reading off

GRID = Quantile("QUANTILE", 0.5, True, False, (0.0, 1.0, 2.0, 3.0), True, ((0,), (1,), (2,), (3,)), "DOUBLE")


def test_counts_that_fall_are_made_to_rise() -> None:
    assert quantile_values(GRID, np.array([10.0, 4.0, 30.0, 40.0])) == [2.0]
    assert quantile_values(replace(GRID, share=0.1), np.array([-9.0, -2.0, 60.0, 40.0])) == [2.0]


def test_no_rows_have_no_quantile() -> None:
    assert np.isnan(quantile_values(GRID, np.array([3.0, 4.0, 2.0, 0.0]))).all()
    assert np.isnan(quantile_values(GRID, np.array([3.0, 4.0, 2.0, -1.0]))).all()


def test_the_least_value_is_not_the_first_noise() -> None:
    rows, width = np.array([3.0, 2.0, 50.0, 100.0]), np.full(4, 8.0)
    least = replace(GRID, share=0.0, interpolated=False)
    assert quantile_values(least, rows) == [0.0]
    assert quantile_values(least, rows, width) == [2.0]
    most = replace(GRID, share=1.0, interpolated=False)
    assert quantile_values(most, np.array([0.0, 50.0, 97.0, 100.0]), width) == [2.0]
