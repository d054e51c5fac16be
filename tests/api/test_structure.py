"""Batches whose cells are planned as products of columns: everything that holds of listed cells holds of them."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from numpy.typing import NDArray
from tacit import Connection
from tacit.combine import combine
from tacit.compiled_batch import CompiledBatch, exact_rows
from tacit.engine import measure
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.table_plan import ProductPlan
from tacit.releases import Release
from tacit.request import ask
from tacit.sql.refine import grid_of

SIZES = (5, 4, 3, 3, 2, 2, 4, 3, 2, 5, 3, 2, 2, 3)
SUMS = 10
POLICY: dict[str, Any] = {
    "trust_schema": True,
    "budget": {"epsilon": 1000.0, "delta": 1e-3},
    "tables": {
        "people": {
            "columns": {"age": {"min": 0, "max": 99}, **{f"m{k}": {"min": 0.0, "max": 100.0} for k in range(SUMS)}}
        }
    },
}

OWNED = POLICY | {
    "tables": {"people": POLICY["tables"]["people"] | {"privacy_unit": "id", "max_rows_per_unit": 2}},
}


def grouped(*columns: int) -> str:
    listed = ", ".join(f"c{k}" for k in columns)
    return f"SELECT {listed}, count(*) AS n FROM people GROUP BY {listed}"


WIDE = " OR ".join([*(f"c{k} = 'v{k % 2}'" for k in range(14)), "age < 30"])
"""More columns than one axis can be made of."""
BATCHES: dict[str, list[str]] = {
    "cube": ["SELECT c0, c1, c6, c9, count(*) AS n FROM people GROUP BY CUBE (c0, c1, c6, c9)"],
    "pairs": [grouped(*pair) for pair in itertools.combinations(range(6), 2)],
    "counts": [
        f"SELECT count(*) FROM people WHERE c{k % 14} = 'v0' AND c{(k + 5) % 14} <> 'v1' AND m{k % SUMS} > {k}"
        if k % 2
        else f"SELECT count(*) FROM people WHERE c{k % 14} = 'v1' AND age < {5 * k + 3}"
        for k in range(20)
    ],
    "histograms": [grouped(k) for k in range(14)],
    "six columns": [grouped(0, 2, 3, 4, 6, 7)],
    "sums": [f"SELECT c0, {', '.join(f'sum(m{k}) AS s{k}' for k in range(SUMS))} FROM people GROUP BY c0"],
    "averages": [
        "SELECT c0, c1, avg(m0) AS a, sum(m1) / count(*) AS b, count(*) - 2 * count(m2) AS c FROM people GROUP BY ALL",
        "SELECT c9, avg(m3) AS a FROM people GROUP BY c9",
        "SELECT count(*) AS n FROM people WHERE age < 30 AND c3 = 'v1'",
        "SELECT c6, c7, sum(m4) AS s FROM people GROUP BY c6, c7",
    ],
    "fused": [
        "SELECT c2, count(*) AS n FROM people WHERE age < 30 OR c0 = 'v1' GROUP BY c2",
        grouped(0, 3),
        grouped(9, 6),
        "SELECT c7, c6, c1, count(*) AS n FROM people WHERE age >= 50 GROUP BY c7, c6, c1",
    ],
    "computed": [
        f"SELECT count(*) AS n FROM people WHERE {WIDE}",
        f"SELECT c2, count(*) AS n, sum(m0) AS s FROM people WHERE {WIDE} GROUP BY c2",
        f"SELECT c0, c3, count(*) AS n FROM people WHERE NOT ({WIDE}) IS TRUE GROUP BY c0, c3",
        grouped(0, 3),
    ],
}
BOTH = pytest.mark.parametrize("delta", [0, 1e-6], ids=["pure", "delta"])
EACH = pytest.mark.parametrize("name", BATCHES)

Connect = Callable[..., Connection]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Fourteen closed columns, an age with NULLs and ten measures; plans are kept for all tests of the module."""
    folder = tmp_path_factory.mktemp("people")
    path = folder / "people.duckdb"
    with duckdb.connect(str(path)) as raw:
        for k, size in enumerate(SIZES):
            raw.execute(f"CREATE TYPE kind{k} AS ENUM ({', '.join(repr(f'v{i}') for i in range(size))})")
        columns = [f"c{k} kind{k} NOT NULL" for k in range(len(SIZES))] + [f"m{k} DOUBLE" for k in range(SUMS)]
        raw.execute(f"CREATE TABLE people (id INTEGER NOT NULL, age INTEGER, {', '.join(columns)})")
        kinds = [f"('v' || (i * {2 * k + 7} + i // {k + 3}) % {size})::kind{k}" for k, size in enumerate(SIZES)]
        values = [f"CASE WHEN (i + {k}) % 17 > 0 THEN (i * {31 + k}) % 1200 / 10.0 - 5 END" for k in range(SUMS)]
        raw.execute(
            f"INSERT INTO people SELECT i // 3, CASE WHEN i % 23 > 0 THEN (i * 37) % 100 END, "
            f"{', '.join(kinds + values)} FROM range(2000) AS r(i)"
        )
    patch = pytest.MonkeyPatch()
    patch.setenv("TACIT_CACHE", str(folder / "plans"))
    yield path
    patch.undo()


@pytest.fixture
def open_people(people: Path, tmp_path: Path) -> Iterator[Connect]:
    opened: list[Connection] = []

    def open_connection(**options: Any) -> Connection:
        options = {"policy": POLICY, "ledger": tmp_path / "ledger"} | options
        opened.append(tacit.connect(people, **options))
        return opened[-1]

    yield open_connection
    for con in opened:
        con.close()


@pytest.fixture
def con(open_people: Connect) -> Connection:
    return open_people()


def values(answers: tacit.Answers) -> NDArray[np.float64]:
    return answers.df()["value"].to_numpy()


def stderr(answered: tacit.Answers | tacit.Plan) -> NDArray[np.float64]:
    return answered.df()["stderr"].to_numpy()


def exact(con: Connection, answers: tacit.Answers, batch: list[str]) -> NDArray[np.float64]:
    """In the order of ``Answers.df``."""
    columns = [
        frame.iloc[:, place].to_numpy(dtype=np.float64)
        for answer, frame in zip(answers, tacit.testing.exact_answers(con, batch), strict=True)
        for place in answer.figures
    ]
    return np.concatenate(columns)


@dataclass
class Drawn:
    """Many releases of one batch beside the truth, over the rows of its workload."""

    batch: CompiledBatch
    structured: bool
    errors: NDArray[np.float64]
    """Released less exact, in standard errors: one line for each release."""
    covered: NDArray[np.bool_]
    """By the intervals of 95 %."""


def drawn(con: Connection, queries: list[str], delta: float, times: int) -> Drawn:
    """Straight from the measurement, so that a ledger is not written for each."""
    session, request = con._session, ask(queries, epsilon=Decimal("0.7"), delta=delta)
    batch = session.compile(request)
    purchase = session.price(request, batch)
    counts = list(session.source.count_all(purchase.scans, bytes(32)))
    truth = np.zeros(batch.row_count)
    for part in batch.workload.tables:
        truth[part.rows] = exact_rows(session.source, batch.workload, part, bytes(32))
    rows = batch.to_measure
    grids = tuple(grid_of(scan) for scan in purchase.scans)
    errors, covered = [], []
    for _ in range(times):
        measured = measure(purchase.plan, counts, purchase.epsilon, purchase.delta)
        estimate = combine((Release(purchase.cost, measured, grids),), batch)
        off = (estimate.values - truth)[rows]
        errors.append(off / estimate.stderr[rows])
        covered.append(np.abs(off) <= estimate.half_width(0.95)[rows] * (1 + 1e-9))  # on integers, often just so
    np.testing.assert_allclose(estimate.stderr, purchase.plan.stderr(purchase.epsilon, purchase.delta), rtol=1e-6)
    structured = any(isinstance(part, ProductPlan) for part in purchase.plan.parts)
    return Drawn(batch, structured, np.stack(errors), np.stack(covered))


def test_these_batches_are_planned_as_products(con: Connection) -> None:
    """Else the tests of this file would be about something else; some have no matrix at all."""
    plans = {name: drawn(con, batch, 1e-6, 1) for name, batch in BATCHES.items()}
    assert [name for name, plan in plans.items() if not plan.structured] == ["cube"], "all of its cells are counted"
    unlisted = [name for name, plan in plans.items() if isinstance(plan.batch.tables[0], ProductTable)]
    assert {"histograms", "counts", "sums", "averages"} <= set(unlisted)


@EACH
@BOTH
def test_the_spread_is_the_promised_one(con: Connection, name: str, delta: float) -> None:
    found = drawn(con, BATCHES[name], delta, 5 if name in ("six columns", "cube") else 40)
    size = float(np.sqrt(np.mean(np.square(found.errors))))
    assert 0.82 < size < 1.22, "two thirds and one and a half of it are both outside"
    assert abs(found.errors.mean()) < 0.25, "no answer is biased"
    coverage = float(found.covered.mean())
    assert 0.93 < coverage <= 1
    assert float(np.mean(np.abs(found.errors) <= 1.0)) < 0.9, "intervals that cover because errors are overstated"


@EACH
@BOTH
def test_from_explain_to_answers(con: Connection, name: str, delta: float) -> None:
    batch = BATCHES[name]
    plan = con.explain(batch, epsilon=1, delta=delta)
    answers = con.answer(batch, epsilon=1, delta=delta)
    assert answers.cost == plan.cost
    predicted, stated = stderr(plan), stderr(answers)
    known = np.isfinite(predicted)
    assert known.all() == (name != "averages")
    np.testing.assert_allclose(stated[known], predicted[known], rtol=1e-9)
    frame = answers.df()
    np.testing.assert_allclose((frame["high"] - frame["low"])[known] / 2, plan.df()["half_width"][known], rtol=1e-9)
    truth = exact(con, answers, batch)
    assert (np.abs(values(answers) - truth)[known] <= 12 * stated[known]).all()
    spent = con.budget.spent
    again = con.answer(batch, epsilon=1, delta=delta)
    assert not any(again.cost)
    np.testing.assert_array_equal(values(again), values(answers))
    part = con.answer(batch[-1:], epsilon=Decimal("0.01"), delta=delta)
    assert not any(part.cost), "a query of what was released"
    same = frame[frame["query"] == len(batch) - 1]
    assert (stderr(part) <= same["stderr"] * 1.3).all()
    assert (np.abs(values(part) - same["value"]) <= 8 * same["stderr"]).all()
    assert con.budget.spent == spent


@pytest.mark.parametrize("name", ["pairs", "histograms", "averages"])
@BOTH
def test_a_query_of_a_batch_has_the_same_answer(con: Connection, name: str, delta: float) -> None:
    """It is estimated over its own few cells, which are listed, from the same release."""
    batch = BATCHES[name]
    frame = con.answer(batch, epsilon=1, delta=delta).df()
    part = con.answer(batch[-1:], epsilon=Decimal("0.01"), delta=delta)
    np.testing.assert_allclose(values(part), frame[frame["query"] == len(batch) - 1]["value"], rtol=1e-9, atol=1e-9)


def test_listed_cells_whose_plan_is_made_of_products(con: Connection) -> None:
    """1,980 cells are listed and the plan asks for blocks; rows outside the groups are in the blocks, not the cells."""
    batch = [f"SELECT c{k}, age // 10 AS decade, count(*) AS n FROM people GROUP BY ALL" for k in (0, 1, 2, 3)]
    con.explain(batch, epsilon=1)


@BOTH
def test_a_cube_adds_up(con: Connection, delta: float) -> None:
    """Every coarser table is the sum of the finer ones, to the last digit."""
    (answer,) = con.answer(BATCHES["cube"], epsilon=0.5, delta=delta)
    keys = ["c0", "c1", "c6", "c9"]
    cube = answer.df
    whole = cube[cube[keys].notna().all(axis=1)]
    for held in itertools.chain.from_iterable(itertools.combinations(keys, k) for k in range(4)):
        left_out = [key for key in keys if key not in held]
        coarse = (
            cube[cube[list(held)].notna().all(axis=1) & cube[left_out].isna().all(axis=1)]
            if held
            else cube[cube[keys].isna().all(axis=1)]
        )
        fine = whole.groupby(list(held), observed=True)["n"].sum() if held else whole["n"].sum()
        if held:
            expected = coarse.set_index(list(held))["n"].sort_index()
            np.testing.assert_allclose(fine.sort_index().to_numpy(), expected.to_numpy(), atol=1e-9 * 2000)
        else:
            assert float(coarse["n"].iloc[0]) == pytest.approx(fine, abs=1e-9 * 2000)


@BOTH
def test_overlapping_tables_agree(con: Connection, delta: float) -> None:
    answers = con.answer(BATCHES["pairs"], epsilon=0.5, delta=delta)
    by_column: dict[str, list[NDArray[np.float64]]] = {}
    for answer in answers:
        first, second = answer.df.columns[:2]
        for key in (first, second):
            by_column.setdefault(key, []).append(answer.df.groupby(key, observed=True)["n"].sum().to_numpy())
    for sums in by_column.values():
        for other in sums[1:]:
            np.testing.assert_allclose(other, sums[0], atol=1e-9 * 2000)


@BOTH
def test_a_larger_batch_pays_for_the_rest_only(con: Connection, delta: float) -> None:
    con.answer(BATCHES["histograms"][:10], epsilon=0.5, delta=delta)
    whole = con.explain(BATCHES["histograms"], epsilon=0.5, delta=delta, refresh=True)
    more = con.explain(BATCHES["histograms"], epsilon=0.5, delta=delta)
    assert 0 < more.cost.epsilon <= whole.cost.epsilon
    answers = con.answer(BATCHES["histograms"], epsilon=0.5, delta=delta)
    assert answers.cost == more.cost
    np.testing.assert_allclose(stderr(answers), stderr(more), rtol=1e-9)


def cut(where: str) -> list[str]:
    return [f"SELECT c{k}, count(*) AS n FROM people WHERE {where} GROUP BY c{k}" for k in range(8)]


@BOTH
def test_another_cut_of_a_column_uses_what_is_stored(con: Connection, delta: float) -> None:
    con.answer([*cut("age < 30"), *cut("age >= 60")], epsilon=1, delta=delta)
    coarse = cut("age < 30 OR age >= 60")
    answers = con.answer(coarse, epsilon=Decimal("0.01"), delta=delta)
    assert not any(answers.cost), "a union of what was counted"
    assert np.isfinite(stderr(answers)).all()
    assert (np.abs(values(answers) - exact(con, answers, coarse)) <= 12 * stderr(answers)).all()
    elsewhere = cut("age < 45")
    bought = con.answer(elsewhere, epsilon=Decimal("0.01"), delta=delta)
    assert any(bought.cost), "it cuts what was counted"
    assert (np.abs(values(bought) - exact(con, bought, elsewhere)) <= 12 * stderr(bought)).all()


@BOTH
def test_a_second_release_is_averaged_with_the_first(con: Connection, delta: float) -> None:
    batch = BATCHES["histograms"]
    first = con.answer(batch, epsilon=0.5, delta=delta)
    second = con.answer(batch, epsilon=0.5, delta=delta, refresh=True)
    assert any(second.cost)
    np.testing.assert_allclose(stderr(second), stderr(first) / np.sqrt(2), rtol=1e-3)
    assert (np.abs(values(second) - exact(con, second, batch)) <= 12 * stderr(second)).all()


@pytest.mark.parametrize("name", ["pairs", "histograms", "sums"])
@BOTH
def test_promised_errors(con: Connection, name: str, delta: float) -> None:
    error = 500.0 if name == "sums" else 40.0
    plan = con.explain(BATCHES[name], error=error, delta=delta)
    assert plan.df()["half_width"].max() <= error * (1 + 1e-9)
    assert plan.df()["half_width"].max() >= error * 0.9, "no larger ε than need be"
    answers = con.answer(BATCHES[name], error=error, delta=delta)
    frame = answers.df()
    assert ((frame["high"] - frame["low"]) / 2).max() <= error * (1 + 1e-9)
    assert not any(con.explain(BATCHES[name], error=error, delta=delta).cost)


@BOTH
def test_weights(con: Connection, delta: float) -> None:
    batch = BATCHES["histograms"]
    plain = con.explain(batch, epsilon=1, delta=delta).df()
    heavy = con.explain(batch, epsilon=1, delta=delta, weights=[100, *[1] * 13]).df()
    ratio = heavy["stderr"] / plain["stderr"]
    assert (ratio[plain["query"] == 0] < 0.8).all()
    assert (ratio[plain["query"] > 0] > 1).all()
    answers = con.answer(batch, epsilon=1, delta=delta, weights=[100, *[1] * 13])
    np.testing.assert_allclose(stderr(answers), heavy["stderr"], rtol=1e-9)


def test_zero_concentrated_accounting(open_people: Connect) -> None:
    con = open_people(policy=POLICY | {"accounting": "zcdp", "budget": {"epsilon": 3.0, "delta": 1e-6}})
    for _ in range(3):
        plan = con.explain(BATCHES["histograms"], epsilon=0.5, delta=1e-6, refresh=True)
        answers = con.answer(BATCHES["histograms"], epsilon=0.5, delta=1e-6, refresh=True)
        assert plan.privacy == "approximate"
        assert answers.cost == plan.cost
    assert con.budget.spent.epsilon < Decimal("1.2"), "the sums would be 1.5"
    assert con.budget.spent.delta == Decimal("1e-6")


@BOTH
def test_units_that_own_several_rows(open_people: Connect, delta: float) -> None:
    con = open_people(policy=OWNED)
    plan = con.explain(BATCHES["histograms"], epsilon=1, delta=delta)
    answers = con.answer(BATCHES["histograms"], epsilon=1, delta=delta)
    np.testing.assert_allclose(stderr(answers), stderr(plan), rtol=1e-9)
    truth = exact(con, answers, BATCHES["histograms"])
    assert truth[: SIZES[0]].sum() == 2 * 666 + 2, "two rows of each of 666 units with three, and two of the last"
    assert (np.abs(values(answers) - truth) <= 12 * stderr(answers)).all()


def test_two_rows_of_a_unit_are_twice_the_error(open_people: Connect, tmp_path: Path) -> None:
    one = open_people().explain(BATCHES["histograms"], epsilon=1, delta=1e-6)
    two = open_people(policy=OWNED, ledger=tmp_path / "owned").explain(BATCHES["histograms"], epsilon=1, delta=1e-6)
    np.testing.assert_allclose(stderr(two), 2 * stderr(one), rtol=1e-3)


@BOTH
def test_cells_are_those_of_every_set_of_columns(con: Connection, delta: float) -> None:
    answers = con.answer(BATCHES["histograms"], epsilon=1, delta=delta)
    cells = answers.cells()
    assert len(cells) == sum(SIZES)
    np.testing.assert_allclose(np.sort(cells["count"]), np.sort(values(answers)), rtol=1e-9)
    np.testing.assert_allclose(np.sort(cells["stderr"]), np.sort(stderr(answers)), rtol=1e-9)
    x = tacit.testing.unit_counts(con, BATCHES["histograms"])
    assert (np.abs(cells["count"] - x) <= 12 * cells["stderr"]).all()


@BOTH
def test_whole_numbers(con: Connection, delta: float) -> None:
    plain = con.answer(BATCHES["pairs"], epsilon=1, delta=delta)
    whole = con.answer(BATCHES["pairs"], epsilon=1, delta=delta, integer=True)
    assert not any(whole.cost)
    assert (values(whole) == np.rint(values(whole))).all()
    assert np.abs(values(whole) - values(plain)).max() <= 0.5 + 1e-9


def test_exact_answers_are_duckdbs(con: Connection, people: Path) -> None:
    batch = BATCHES["histograms"] + BATCHES["six columns"] + BATCHES["fused"]
    ours = tacit.testing.exact_answers(con, batch)
    con.close()
    with duckdb.connect(str(people), read_only=True) as raw:
        for sql, frame in zip(batch, ours, strict=True):
            keys = list(frame.columns[:-1])
            theirs = raw.execute(sql).df().set_index(keys)["n"]
            mine = frame.set_index(keys)["n"]
            assert mine.sum() == theirs.sum()
            assert (mine[mine > 0].sort_index() == theirs.sort_index()).all()


LISTED: list[dict[str, Any]] = [
    {"strategy": "identity"},
    {"strategy": "dawa"},
    {"nonnegative": True},
    {"inference": "likelihood"},
    {"objective": "largest"},
    {"objective": "absolute"},
]


@pytest.mark.parametrize("options", LISTED, ids=str)
def test_what_goes_through_every_cell_is_refused_where_they_are_not_listed(
    con: Connection, options: dict[str, Any]
) -> None:
    for name in ("histograms", "sums"):
        for call in (con.explain, con.answer):
            with pytest.raises(tacit.NotSupportedError, match=r"cells can be listed[^\0]*\nhint: leave them out"):
                call(BATCHES[name], epsilon=1, **options)
    assert con.budget.spent.epsilon == 0


@pytest.mark.parametrize("options", [LISTED[0], LISTED[2]], ids=str)
def test_what_goes_through_every_cell_works_where_they_can_be_listed(con: Connection, options: dict[str, Any]) -> None:
    batch = [grouped(0, 1), grouped(1, 2), grouped(0, 2)]
    plan = con.explain(batch, epsilon=1, **options)
    answers = con.answer(batch, epsilon=1, **options)
    assert answers.cost == plan.cost
    assert (np.abs(values(answers) - exact(con, answers, batch)) <= 20 * stderr(plan)).all()


def test_products_and_listed_cells_use_each_others_releases(con: Connection) -> None:
    """What was asked as products serves a batch whose few cells are listed, and the other way round."""
    con.answer(BATCHES["histograms"], epsilon=1)
    few = con.answer(grouped(3), epsilon=1 / 50)
    assert not any(few.cost)
    assert (np.abs(values(few) - exact(con, few, [grouped(3)])) <= 12 * stderr(few)).all()


def test_refusals_leave_the_budget_as_it_is(open_people: Connect) -> None:
    con = open_people(policy=POLICY | {"budget": {"epsilon": 1.0, "delta": 1e-6}})
    con.answer(BATCHES["histograms"], epsilon=0.5)
    spent = con.budget.spent
    with pytest.raises(tacit.BudgetError):
        con.answer(BATCHES["pairs"], epsilon=0.6)
    with pytest.raises(tacit.Error, match="hint"):
        con.answer(BATCHES["averages"], error=10)
    with pytest.raises(tacit.Error, match="hint"):
        con.answer([*BATCHES["histograms"], "SELECT string_agg(age) FROM people"], epsilon=0.1)
    assert con.budget.spent == spent


def test_another_connection_reads_what_was_released(open_people: Connect) -> None:
    first, second = open_people(), open_people()
    answers = first.answer(BATCHES["fused"], epsilon=1)
    again = second.answer(BATCHES["fused"], epsilon=1)
    assert not any(again.cost)
    np.testing.assert_array_equal(values(again), values(answers))


def test_another_process_reads_what_was_released(open_people: Connect, people: Path, tmp_path: Path) -> None:
    con = open_people()
    answers = con.answer(BATCHES["histograms"], epsilon=1)
    con.close()
    code = (
        "import tacit, sys\n"
        f"con = tacit.connect({str(people)!r}, policy={POLICY!r}, ledger={str(tmp_path / 'ledger')!r})\n"
        f"answers = con.answer({BATCHES['histograms']!r}, epsilon=1)\n"
        "print(answers.cost.epsilon, answers.df()['value'].tolist())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    cost, _, listed = ran.stdout.partition(" ")
    assert float(cost) == 0
    np.testing.assert_array_equal(np.array(eval(listed)), values(answers))
