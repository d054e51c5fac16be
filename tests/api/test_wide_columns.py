"""One column of thousands of groups or constants: answered in seconds, with the errors that are promised."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from numpy.typing import NDArray
from tacit import Connection
from tacit.combine import combine
from tacit.compiled_batch import CompiledBatch, compile_ask, exact_rows
from tacit.engine import measure
from tacit.engine.mechanism.baselines import baselines
from tacit.engine.mechanism.product_table import ProductTable
from tacit.pricing import Purchase
from tacit.releases import Release
from tacit.request import ask
from tacit.sql import digits as digits_module
from tacit.sql import factors as factors_module
from tacit.sql import readings as readings_module
from tacit.sql import views as views_module
from tacit.sql.refine import Grid, grid_of

GROUPS = 20_000
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 10_000.0, "delta": 1e-3},
    "tables": {
        "t": {
            "columns": {
                "zip": {"min": 0, "max": GROUPS - 1},
                "few": {"min": 0, "max": 59},
                "sex": {"min": 0, "max": 1},
                "income": {"min": 0.0, "max": 100.0},
                "day": {"min": date(1990, 1, 1), "max": date(2019, 12, 31)},
            }
        }
    },
}
BOTH = pytest.mark.parametrize("delta", [0.0, 1e-6])


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path: Path = tmp_path_factory.mktemp("wide") / "wide.duckdb"
    with duckdb.connect(str(path)) as raw:
        raw.execute(
            f"CREATE TABLE t AS SELECT (hash(i) % {GROUPS + 50})::INTEGER AS zip, (hash(i) % 61)::INTEGER AS few, "
            "(hash(i + 7) % 2)::INTEGER AS sex, (hash(3 * i) % 100)::DOUBLE AS income, "
            "DATE '1990-01-01' + (hash(5 * i) % 10957)::INTEGER AS day FROM range(5000) AS r(i)"
        )
    with tacit.connect(str(path), policy=POLICY) as opened:
        yield opened


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sixty points stand for thousands."""
    monkeypatch.setattr(factors_module, "LONG", 16)
    monkeypatch.setattr(digits_module, "_SHORTEST", 4)
    for module in (views_module, readings_module):
        monkeypatch.setattr(module, "FEW", 12)
    yield


def between(low: int, high: int, column: str = "few") -> str:
    return f"SELECT count(*) AS n FROM t WHERE {column} BETWEEN {low} AND {high}"


GROUPED = "SELECT few, count(*) AS n FROM t GROUP BY few"
BATCHES = {
    "groups": [GROUPED],
    "a total and ranges": [GROUPED, "SELECT count(*) AS n FROM t", between(3, 40), between(10, 55), between(30, 31)],
    "short ranges": [GROUPED, *(between(7 * k, 7 * k + 1) for k in range(6))],
    "a rollup": ["SELECT few, sex, count(*) AS n FROM t GROUP BY ROLLUP (few, sex)"],
    "sums": ["SELECT few, sum(income) AS s, count(*) AS n FROM t GROUP BY few", between(3, 40)],
    "many ranges": [between(a, min(59, a + 5 + a % 23)) for a in range(0, 58, 2)],
    "points": [between(k, k) for k in range(0, 60, 3)],
}


def priced(con: Connection, queries: list[str], delta: float) -> tuple[CompiledBatch, Purchase]:
    """Without a matrix, however few the cells are."""
    session, request = con._session, ask(queries, epsilon=0.7, delta=delta)
    batch = compile_ask(request, session.catalog, session.source, replace(session.limits, dense_cells=1))
    assert all(isinstance(table, ProductTable) and table.is_viewed for table in batch.tables)
    return batch, session.price(request, batch)


def truth_of(con: Connection, batch: CompiledBatch) -> NDArray[np.float64]:
    truth = np.zeros(batch.row_count)
    for part in batch.workload.tables:
        truth[part.rows] = exact_rows(con._session.source, batch.workload, part, bytes(32))
    return truth


@BOTH
@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.usefixtures("short")
def test_the_spread_is_the_promised_one(con: Connection, name: str, delta: float) -> None:
    batch, purchase = priced(con, BATCHES[name], delta)
    counts = list(con._session.source.count_all(purchase.scans, bytes(32)))
    grids = tuple(Grid.from_json(grid_of(scan).to_json()) for scan in purchase.scans)
    truth, errors, covered = truth_of(con, batch), [], []
    for _ in range(40):
        measured = measure(purchase.plan, counts, purchase.epsilon, purchase.delta)
        estimate = combine((Release(purchase.cost, measured, grids),), batch)
        errors.append((estimate.values - truth) / estimate.stderr)
        covered.append(np.abs(estimate.values - truth) <= estimate.half_width(0.95) * (1 + 1e-9))
    np.testing.assert_allclose(estimate.stderr, purchase.plan.stderr(purchase.epsilon, purchase.delta), rtol=1e-6)
    assert 0.82 < float(np.sqrt(np.mean(np.square(errors)))) < 1.22
    assert float(np.sqrt(np.mean(np.square(errors), axis=0)).max()) < 2.2, "of every row"
    assert abs(float(np.mean(errors))) < 0.25
    assert float(np.mean(covered)) > 0.93


@BOTH
@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.usefixtures("short")
def test_never_worse_than_a_histogram_or_noise_on_results(con: Connection, name: str, delta: float) -> None:
    batch, purchase = priced(con, BATCHES[name], delta)
    stderr = purchase.plan.stderr(purchase.epsilon, purchase.delta)
    others = baselines(batch.tables, np.arange(batch.row_count), purchase.epsilon, purchase.delta)
    for other in ("histogram", "results"):
        assert batch.measured(stderr) <= batch.measured(others[other]) * (1 + 1e-6), other
    assert purchase.plan.lower_bound <= purchase.plan.error * (1 + 1e-9)


@pytest.mark.usefixtures("short")
def test_the_histogram_is_that_of_cells(con: Connection) -> None:
    """What is stated of noise on cells and on results is what it is where both are written out."""
    batch, _ = priced(con, BATCHES["a total and ranges"], 0.0)
    session = con._session
    listed = session.compile(ask(BATCHES["a total and ranges"], epsilon=0.7))
    queries = np.repeat(np.arange(5), [61, 1, 1, 1, 1])
    found, expected = (baselines(b.tables, queries, 0.7) for b in (batch, listed))
    for name in ("split", "histogram", "results"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0.01)  # digits have a few points more


def test_twenty_thousand_groups(con: Connection) -> None:
    batch = ["SELECT zip, count(*) AS n FROM t GROUP BY zip", "SELECT count(*) AS n FROM t"]
    begin = time.perf_counter()
    plan = con.explain(batch, epsilon=1.0)
    answers = con.answer(batch, epsilon=1.0)
    assert time.perf_counter() - begin < 60
    assert answers.cost == plan.cost
    frame = answers[0].df
    assert len(frame) == GROUPS + 1 and frame["zip"].iloc[:3].tolist() == [0, 1, 2]
    one_count = con.explain("SELECT count(*) FROM t", epsilon=1.0, refresh=True).df()["stderr"].iloc[0]
    stated = answers.df()["stderr"].to_numpy()
    assert stated[0] < 1.2 * one_count, "the total takes little of it"
    exact = tacit.testing.exact_answers(con, batch)[0]["n"].to_numpy()
    assert np.sqrt(np.mean(np.square(frame["n"].to_numpy() - exact))) == pytest.approx(stated[0], rel=0.05)
    spent = con.budget.spent
    again = con.answer(batch, epsilon=1.0)
    assert not any(again.cost) and con.budget.spent == spent, "it is the stored release"
    assert again[0].df["n"].equals(frame["n"])
    cells = answers.cells()
    assert "zip in {17}" in set(cells["label"])
    np.testing.assert_allclose(cells["count"].iloc[-GROUPS:].sum(), answers[1].df["n"].iloc[0], atol=1500)


@BOTH
def test_days_beside_a_cumulative_count(con: Connection, delta: float) -> None:
    ends = [date(1990 + 5 * k, 6, 1) for k in range(6)]
    batch = ["SELECT day, count(*) AS n FROM t GROUP BY day"]
    batch += [f"SELECT count(*) AS n FROM t WHERE day < DATE '{end}'" for end in ends]
    answers = con.answer(batch, epsilon=1.0, delta=delta)
    stated = answers.df()["stderr"].to_numpy()
    assert len(stated) == 10_957 + 1 + len(ends), "a day may be NULL"
    assert stated[-len(ends) :].max() < 40 < np.sqrt(10_957 / 2), "less than a sum of days has"
    exact = [frame["n"].iloc[0] for frame in tacit.testing.exact_answers(con, batch)[1:]]
    for answer, true, error in zip(answers[1:], exact, stated[-len(ends) :], strict=True):
        assert abs(answer.df["n"].iloc[0] - true) < 12 * error
