"""Intervals of AVG, VARIANCE, STDDEV and computed columns hold at every confidence, with few rows and many.

One plan is made by the real engine; its noise is then drawn many times in numpy, as independent groups of one estimate,
and framed by the code that frames answers. Noise on integers is often drawn alike: each value is framed once, and
counted as often as it was drawn.

Power of 600 draws, for normal noise. Intervals of two thirds of the right width hold 73% and 81% of the time at the
levels 0.9 and 0.95, and the least that is accepted is 85% and 91%: 6 and more standard errors away. Intervals of one
and a half of it hold 98.6% at 0.9, where at most 96.5% is accepted: 4 standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
import tacit
from numpy.typing import NDArray
from scipy.stats import binom
from support.estimates import estimate_batch
from tacit.engine import Estimate, measure, plan_release, table_workload
from tacit.engine.inference.estimate import Spread
from tacit.engine.strategy import Privacy
from tacit.figures import ColumnBuilder, Figures
from tacit.sql import Workload, compile_batch, open_source
from tacit.sql.present import exact_values
from tacit.sql.workload import Computed, Linear, Output, Ratio

DRAWS = 600
LEVELS = (0.9, 0.95, 0.99, 0.999)
COLUMNS = {
    "avg": "avg(x)",
    "variance": "variance(x)",
    "stddev": "stddev(x)",
    "share": "count(*) FILTER (WHERE g) / count(*)",
}
ONE, OTHER = "count(*) FILTER (WHERE h)", "count(*) FILTER (WHERE NOT h)"
TURNING = {
    "distance": "abs(count(*) - 3000)",
    "square": "(count(*) - 3000) * (count(*) - 3000)",
    "difference": f"abs({ONE} - {OTHER})",
    "squared difference": f"({ONE} - {OTHER}) ** 2",
    "greatest": f"greatest({ONE}, {OTHER})",
    "least": f"least({ONE}, {OTHER})",
    "distances": f"abs({ONE} - 1500) + abs({OTHER} - 1500)",
    "below a jump": "CASE WHEN count(*) > 3000 THEN count(*) ELSE 0 END",
    "above a jump": "CASE WHEN count(*) > 2999 THEN count(*) ELSE 0 END",
    "round": "round(count(*) / 10)",
    "step": "round((count(*) - 5) / 10)",
}
"""Two groups of 1500 rows: the exact answers are where these columns turn around, or near where they jump."""
AMOUNT: dict[Privacy, tuple[float, float]] = {"pure": (1.0, 0.0), "approximate": (1.0, 1e-5)}


Tables = tuple[duckdb.DuckDBPyConnection, tacit.Connection]


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    with duckdb.connect() as raw:
        values = "20 + (i * 37 % 61)"
        for name, rows in (("few", 60), ("many", 3000)):
            raw.execute(
                f"CREATE TABLE {name} AS SELECT ({values})::DOUBLE AS x, i % 3 = 0 AS g, i % 2 = 0 AS h "
                f"FROM range({rows}) r(i)"
            )
        column = {"columns": {"x": {"min": 0, "max": 100}}}
        policy = {"budget": {"epsilon": 1.0}, "tables": {"few": column, "many": column}}
        with tacit.connect(raw, policy=policy) as con:
            yield raw, con


def drawn(
    tables: Tables, sql: str, privacy: Privacy, draws: int, amount: tuple[float, float] | None = None
) -> tuple[Workload, Estimate, NDArray[np.float64], NDArray[np.int64]]:
    """A plan of the real engine, one estimate that holds the answers of ``draws`` draws one after the other, the exact
    rows, and how often each of these answers was drawn."""
    database, con = tables
    workload = compile_batch(sql, con.catalog)
    (scan,) = workload.scans
    counts = open_source(database).count(scan, bytes(32))
    blocks = [table_workload(workload.matrix, rows_per_unit=scan.rows_per_unit, one_row=scan.one_row)]
    rows = len(workload.matrix)
    one = estimate_batch(
        blocks, [measure(plan_release(blocks, privacy=privacy), [counts], *(amount or AMOUNT[privacy]))], rows=rows
    )
    exact = workload.matrix @ (counts / scan.one_row)
    (spread,) = one.spreads
    stream = np.random.default_rng(12)
    assert spread.steps is not None
    chance = -np.expm1(-np.maximum(spread.steps, 1e-6))  # a fine lattice is as good as a very fine one
    size = (draws, spread.laplace.shape[1])
    steps = stream.geometric(chance, size=size) - stream.geometric(chance, size=size)
    normal = stream.normal(size=(draws, spread.gaussian.shape[1]))
    distinct, times = np.unique(np.hstack([steps, normal]), axis=0, return_counts=True)
    noise = (distinct[:, : size[1]] * np.maximum(spread.steps, 1e-6)) @ spread.laplace.T
    noise += distinct[:, size[1] :] @ spread.gaussian.T
    count = len(times)
    many = Spread(
        np.arange(count * rows),
        np.tile(spread.laplace, (count, 1)),
        np.tile(spread.gaussian, (count, 1)),
        steps=spread.steps,
    )
    values = (exact + noise).reshape(-1)
    return workload, replace(one, values=values, stderr=np.tile(one.stderr, count), spreads=(many,)), exact, times


def repeated(output: Output, rows: int, draws: int) -> Output:
    """The same output for every draw, as if each were a group."""

    def every(listed: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(listed[0] + rows * i for i in range(draws))

    match output:
        case Ratio():
            return replace(output, numerator=every(output.numerator), denominator=every(output.denominator))
        case Computed():
            leaves = [replace(leaf, rows=every(leaf.rows)) for leaf in output.leaves if isinstance(leaf, Linear)]
            return replace(output, leaves=tuple(leaves))
    raise TypeError


def at_every_level(
    tables: Tables, sql: str, privacy: Privacy, draws: int, amount: tuple[float, float] | None = None
) -> Iterator[tuple[float, int, Figures]]:
    """(confidence, draws that the interval held in, figures of the distinct draws) of a query's first column."""
    workload, estimate, exact, times = drawn(tables, sql, privacy, draws, amount)
    (query,) = workload.queries
    keys = pd.DataFrame(index=pd.RangeIndex(len(times)))
    output = repeated(query.columns[0].output, len(workload.matrix), len(times))
    truth = float(np.asarray(exact_values(query, query.columns[0].output, keys.iloc[:1], exact))[0])
    for level in LEVELS:
        figures = ColumnBuilder(query, keys, estimate, estimate.half_width(level), level).figures(output)
        yield level, int(times[(figures.low <= truth) & (truth <= figures.high)].sum()), figures


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
@pytest.mark.parametrize("table", ["few", "many"])
@pytest.mark.parametrize("column", COLUMNS)
def test_intervals_cover_as_stated(tables: Tables, column: str, table: str, privacy: Privacy) -> None:
    for level, covered, figures in at_every_level(tables, f"SELECT {COLUMNS[column]} FROM {table}", privacy, DRAWS):
        assert covered >= binom.ppf(1e-4, DRAWS, level), (level, covered / DRAWS)
        if table == "many":
            assert covered <= binom.ppf(1 - 1e-4, DRAWS, level + 0.3 * (1 - level)), "nor merely generous"
        if column in ("variance", "stddev"):
            assert (figures.low >= 0).all(), "what cannot be is not in the interval"


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
@pytest.mark.parametrize("column", TURNING)
def test_intervals_cover_where_a_figure_turns_around(tables: Tables, column: str, privacy: Privacy) -> None:
    for level, covered, figures in at_every_level(tables, f"SELECT {TURNING[column]} FROM many", privacy, DRAWS):
        assert (figures.low <= figures.value).all() and (figures.value <= figures.high).all()
        assert covered >= binom.ppf(1e-4, DRAWS, level), (level, covered / DRAWS)
        assert np.isfinite(figures.high).all()
        if column in ("distance", "square", "difference", "squared difference", "distances"):
            assert (figures.low >= 0).all(), "what cannot be is not in the interval"


def test_an_average_of_no_rows_may_be_anything(tables: Tables) -> None:
    sql = "SELECT avg(x), variance(x) FROM few WHERE x < 5"
    workload, estimate, _, times = drawn(tables, sql, "pure", 50)
    assert (times == 1).all()
    (query,) = workload.queries
    keys = pd.DataFrame(index=pd.RangeIndex(50))
    found = ColumnBuilder(query, keys, estimate, estimate.half_width(), 0.95)
    average = found.figures(repeated(query.columns[0].output, len(workload.matrix), 50))
    assert (average.high - average.low == 100).mean() > 0.9, "the whole clamp, up to one draw in twenty"
    variance = found.figures(repeated(query.columns[1].output, len(workload.matrix), 50))
    known = ~np.isnan(variance.value)
    assert (variance.low[known] == 0).all()
    assert np.isinf(variance.high[known]).mean() > 0.8


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize(
    "column",
    [
        "greatest(count(*) FILTER (WHERE h), count(*) FILTER (WHERE NOT h))",
        "abs(count(*) FILTER (WHERE h) - 30) + abs(count(*) FILTER (WHERE NOT h) - 30)",
        "count(*) FILTER (WHERE g) / count(*)",
    ],
)
def test_figures_of_noise_on_integers_are_covered(tables: Tables, column: str, epsilon: float) -> None:
    """Counts that are most often exact: a figure of two of them is wrong more often than either."""
    draws = 2000
    for level, covered, _ in at_every_level(tables, f"SELECT {column} FROM few", "pure", draws, (epsilon, 0.0)):
        assert covered >= binom.ppf(1e-4, draws, level), (level, covered / draws)
