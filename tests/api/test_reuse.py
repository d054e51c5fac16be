"""Nothing is paid twice: what was released about a table's state answers every later batch that it can."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
import tacit.ledger
from support import seams
from tacit import Connection
from tacit.sql import compile_batch

from .conftest import POLICY

Connect = Callable[..., Connection]


def ages(*bounds: int) -> list[str]:
    return [f"SELECT count(*) FROM visits WHERE age < {bound}" for bound in bounds]


def stderr(answers: tacit.Answers) -> list[float]:
    return [float(v) for v in answers.df()["stderr"]]


def values(answers: tacit.Answers) -> list[float]:
    return [float(v) for v in answers.df()["value"]]


REWRITTEN = [
    (
        ["SELECT count(*) FROM visits WHERE age < 40 AND state IN ('NY', 'NJ')", "SELECT count(*) FROM visits"],
        [
            "SELECT count(*) FROM visits AS v WHERE NOT (v.state <> 'NY' AND state != 'NJ') AND 40 > age",
            "SELECT count(1) AS everything FROM Visits",
        ],
    ),
    (
        ["SELECT count(*) FROM visits WHERE age BETWEEN 18 AND 65"],
        ["WITH adults AS (SELECT * FROM visits WHERE age > 17) SELECT count(*) FROM adults WHERE age < 66"],
    ),
    (
        ["SELECT sex, count(*) FROM visits GROUP BY sex"],
        [
            "SELECT count(*) FROM visits WHERE sex",
            "SELECT count(*) FROM visits WHERE NOT sex",
            "SELECT count(*) FROM visits WHERE sex IS NULL",
        ],
    ),
    (
        ["SELECT sum(cost) FROM visits WHERE age < 30", "SELECT count(cost) FROM visits WHERE age < 30"],
        ["SELECT avg(cost) FROM visits WHERE age <= 29", "SELECT sum(cost) FROM visits WHERE age <= 29"],
    ),
]


@pytest.mark.parametrize(("first", "again"), REWRITTEN)
def test_the_same_meaning_in_other_words_is_free(
    con: Connection, watch: Any, first: list[str], again: list[str]
) -> None:
    con.answer(first, epsilon=0.5)
    assert not any(con.explain(again, epsilon=0.5).cost)
    answers = con.answer(again, epsilon=0.5)
    assert not any(answers.cost)
    assert answers.epsilon == Decimal("0.5")
    assert watch.reads == 1


def test_the_order_of_the_queries_does_not_matter(con: Connection, watch: Any) -> None:
    batch = ages(*range(10, 90, 10))
    first = con.answer(batch, epsilon=0.5)
    turned = con.answer(batch[::-1], epsilon=0.5)
    assert not any(turned.cost)
    np.testing.assert_allclose(values(turned), values(first)[::-1], rtol=1e-9)
    assert watch.reads == 1


def test_what_follows_from_released_answers_is_free(con: Connection, watch: Any) -> None:
    """Differences and sums of released rows, cut at other constants than any one of the batches."""
    known = con.answer([*ages(20, 40, 60), "SELECT count(*) FROM visits WHERE age IS NOT NULL"], epsilon=1)
    below20, below40, below60, all_ = values(known)
    derived = con.answer(
        [
            "SELECT count(*) FROM visits WHERE age >= 20 AND age < 40",
            "SELECT count(*) FROM visits WHERE age >= 60",
            "SELECT count(*) FROM visits WHERE age < 20 OR age >= 60",
        ],
        epsilon=0.1,
    )
    assert not any(derived.cost)
    expected = [below40 - below20, all_ - below60, below20 + all_ - below60]
    np.testing.assert_allclose(values(derived), expected, atol=1e-6)
    assert watch.reads == 1
    assert all(s > 0 for s in stderr(derived)), "with its true error"


NEVER_NULL = {"state": {"values": ["NY", "NJ", "CA", "TX"], "complete": True, "not_null": True}}


def declared(columns: dict[str, Any]) -> dict[str, Any]:
    return {"budget": {"epsilon": 10.0}, "tables": {"visits": {"version": "1", "columns": columns}}}


def test_the_count_of_all_rows_is_known_from_groups_that_are_complete(connect: Connect, watch: Any) -> None:
    """No row is left out of a column that is declared to hold no NULL, so the groups add up to all rows."""
    con = connect(policy=declared(NEVER_NULL))
    con.answer("SELECT state, count(*) FROM visits GROUP BY state", epsilon=1)
    assert not any(con.answer("SELECT count(*), count(state) FROM visits", epsilon=0.1).cost)
    assert not any(con.answer("SELECT count(*) FROM visits WHERE state > 'NA' OR state = 'XX'", epsilon=0.1).cost)
    assert watch.reads == 1


def test_what_was_counted_under_a_withdrawn_declaration_is_read_as_it_was_counted(connect: Connect, watch: Any) -> None:
    """NULL was counted as CA, the least value of the list; without the declaration that is not the count of CA."""
    with connect(policy=declared(NEVER_NULL)) as con:
        con.answer("SELECT state, count(*) FROM visits GROUP BY state", epsilon=1)
    with connect(policy=declared({})) as con:
        assert not any(con.answer("SELECT count(*) FROM visits", epsilon=0.1).cost), "all rows are all rows"
        assert any(con.answer("SELECT count(*) FROM visits WHERE state = 'CA'", epsilon=0.1).cost)
        assert any(con.answer("SELECT count(*) FROM visits WHERE state IS NULL", epsilon=0.1).cost)
    assert watch.reads == 3


def test_two_releases_together_cover_a_third(con: Connection, watch: Any) -> None:
    con.answer("SELECT count(*) FROM visits WHERE age < 30 AND sex", epsilon=1)
    con.answer("SELECT count(*) FROM visits WHERE age < 30 AND (NOT sex OR sex IS NULL)", epsilon=1)
    both = con.answer("SELECT count(*) FROM visits WHERE age < 30", epsilon=0.1)
    assert not any(both.cost)
    assert both.epsilon == 2, "it stands on two releases"
    assert watch.reads == 2


def test_only_the_rest_is_paid(con: Connection, watch: Any) -> None:
    con.answer(ages(20, 40, 60), epsilon=1)
    batch = [*ages(20, 40, 60), "SELECT count(*) FROM visits WHERE ward = 'surgery'"]
    plan = con.explain(batch, epsilon=1)
    answers = con.answer(batch, epsilon=1)
    assert 0 < answers.cost.epsilon < 1
    assert answers.cost == plan.cost
    assert con.budget.spent.epsilon == 1 + answers.cost.epsilon
    alone = con.explain(batch, epsilon=1)
    scaled = float(np.sum(np.square(stderr(answers))))
    assert scaled <= alone.error * (1 + 1e-6), "and the batch is as exact as the whole ε would have made it"
    again = con.answer(batch, epsilon=1)
    assert not any(again.cost)
    np.testing.assert_allclose(values(again), values(answers), rtol=1e-9)
    assert watch.reads == 2


def test_only_the_rest_is_paid_for_a_stated_error(con: Connection, watch: Any) -> None:
    con.answer(ages(20, 40), error=5)
    fresh = con.explain("SELECT count(*) FROM visits WHERE ward = 'surgery'", error=5).cost
    batch = [*ages(20, 40), "SELECT count(*) FROM visits WHERE ward = 'surgery'"]
    answers = con.answer(batch, error=5)
    assert answers.cost == fresh
    frame = answers.df()
    assert ((frame["high"] - frame["low"]) / 2 <= 5 * (1 + 1e-9)).all()
    assert not any(con.answer(batch, error=5).cost)
    assert watch.reads == 2


def test_answers_only_get_better(con: Connection) -> None:
    """A batch asked again for next to nothing after each of many other releases: its errors never grow."""
    batch = [*ages(30, 50), "SELECT sum(cost) FROM visits WHERE age < 50", "SELECT count(*) FROM visits"]
    before = np.array(stderr(con.answer(batch, epsilon=0.2)))
    improved = 0
    for other, epsilon in [
        (ages(30), 0.5),
        (["SELECT ward, count(*) FROM visits GROUP BY ward"], 0.5),
        (["SELECT count(*) FROM visits WHERE age < 50 AND sex", "SELECT sum(cost) FROM visits"], 0.3),
        (["SELECT sum(cost), sum(age) FROM visits WHERE age < 50"], 0.5),
        (["SELECT count(*) FROM visits WHERE state = 'NY'"], 1e-8),
        (ages(10, 30, 50, 70), 1.0),
    ]:
        con.answer(other, epsilon=epsilon)
        answers = con.answer(batch, epsilon=0.2)
        assert not any(answers.cost)
        now = np.array(stderr(answers))
        assert (now <= before * (1 + 1e-6)).all()
        improved += int((now < before * 0.999).any())
        before = now
    assert improved >= 3


def test_combined_answers_are_right(clinic: Path, connect: Connect) -> None:
    """Many releases with other cells at a large ε: the combination is near the truth within its stated error."""
    con = connect(policy=None, epsilon=1e6)
    for batch in (
        ages(15, 35),
        [
            "SELECT count(*) FROM visits WHERE age < 35 AND sex",
            "SELECT count(*) FROM visits WHERE state IN ('NY', 'CA')",
        ],
        ["SELECT count(*) FROM visits WHERE extract(month FROM day) = 5 AND age >= 35"],
        ["SELECT count(*) FROM visits"],
    ):
        con.answer(batch, epsilon=100)
    batch = [
        "SELECT count(*) FROM visits WHERE age >= 35 OR age IS NULL",
        "SELECT count(*) FROM visits WHERE age < 35 AND (sex IS NULL OR NOT sex)",
        "SELECT count(*) FROM visits WHERE age >= 15 AND age < 35",
        "SELECT count(*) FROM visits WHERE state NOT IN ('NY', 'CA') OR state IS NULL",
    ]
    answers = con.answer(batch, epsilon=1)
    assert not any(answers.cost)
    exact = [f.iloc[0, 0] for f in tacit.testing.exact_answers(con, batch)]
    assert (np.abs(np.array(values(answers)) - exact) < 20 * np.array(stderr(answers))).all()
    assert max(stderr(answers)) < 1


def test_sums_refine_like_counts(connect: Connect) -> None:
    con = connect(policy={**POLICY, "budget": {"epsilon": 1e6}})
    con.answer("SELECT sum(cost) FROM visits WHERE age < 30", epsilon=1000)
    con.answer("SELECT sum(cost), sum(age) FROM visits WHERE age >= 30 OR age IS NULL", epsilon=1000)
    batch = ["SELECT sum(cost) FROM visits"]
    answers = con.answer(batch, epsilon=1)
    assert not any(answers.cost)
    exact = tacit.testing.exact_answers(con, batch)[0].iloc[0, 0]
    assert abs(values(answers)[0] - exact) < 20 * stderr(answers)[0]


def test_public_joins_are_known_by_what_they_join(connect: Connect) -> None:
    con = connect()
    first = "SELECT count(*) FROM visits v JOIN hospitals h ON v.patient_id = h.id WHERE h.name = 'General'"
    con.answer(first, epsilon=0.5)
    again = "SELECT count(*) FROM visits JOIN hospitals AS x ON x.id = visits.patient_id WHERE 'General' = x.name"
    assert not any(con.answer(again, epsilon=0.5).cost)


def test_refresh_buys_new_noise(con: Connection, watch: Any) -> None:
    little = Decimal("0.0001")  # so much noise that two draws are not the same integer
    first = con.answer(ages(40), epsilon=little)
    assert con.explain(ages(40), epsilon=little, refresh=True).cost.epsilon == little
    second = con.answer(ages(40), epsilon=little, refresh=True)
    assert second.cost.epsilon == little
    assert second.epsilon == 2 * little
    assert stderr(second)[0] < stderr(first)[0]
    assert values(second) != values(first)
    assert watch.reads == 2


def test_an_old_version_does_not_mix(connect: Connect, policy: dict[str, Any]) -> None:
    policy["tables"]["visits"]["version"] = "1"
    connect(policy=policy).answer(ages(20, 40), epsilon=1)
    policy["tables"]["visits"]["version"] = "2"
    assert connect(policy=policy).answer(ages(20), epsilon=0.1).cost.epsilon == Decimal("0.1")


def test_another_bound_does_not_mix(connect: Connect, policy: dict[str, Any], clinic: Path) -> None:
    policy["tables"]["visits"] |= {"privacy_unit": "patient_id", "max_rows_per_unit": 1}
    connect(policy=policy).answer(ages(20, 40), epsilon=1)
    policy["tables"]["visits"]["max_rows_per_unit"] = 2
    tacit.ledger.change_policy(f"{clinic}.ledger", policy)
    assert connect(policy=policy).answer(ages(20), epsilon=0.1).cost.epsilon == Decimal("0.1")


def test_tables_of_one_release_are_known_apart(con: Connection) -> None:
    con.answer(["SELECT count(*) FROM labs", *ages(40)], epsilon=1)
    assert not any(con.answer("SELECT count(*) FROM labs", epsilon=0.1).cost)
    assert not any(con.answer(ages(40), epsilon=0.1).cost)


def test_a_release_answers_its_own_batch_however_large_it_is(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tacit.combine, "_ENTRIES", 4)
    histogram = "SELECT age, count(*) FROM visits GROUP BY age"
    assert len(con.answer(histogram, epsilon=1)[0].df) == 122
    assert con.explain(histogram, epsilon=1).cost.epsilon == 0


def test_too_many_common_cells_fall_back_to_equal_ones(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    seams.replace(monkeypatch, "refine", lambda *_, **__: None)  # what it says of a grid that is over the limits
    con.answer(ages(20, 40), epsilon=1)
    assert not any(con.answer(ages(20, 40), epsilon=1).cost), "the same cells are always common"
    assert any(con.answer(ages(20, 30), epsilon=0.1).cost)


class TestAnalysts:
    @pytest.fixture
    def policy(self, policy: dict[str, Any]) -> dict[str, Any]:
        return policy | {"analysts": {"ana": {"epsilon": 1.0}, "bob": {}}}

    def test_partly_read_and_partly_bought(self, connect: Connect, policy: dict[str, Any]) -> None:
        ana, bob = connect(policy=policy, analyst="ana"), connect(policy=policy, analyst="bob")
        bob.answer(ages(20, 40, 60), epsilon=0.1)
        bob.answer("SELECT count(*) FROM visits WHERE state = 'NY'", epsilon=0.1)
        batch = [*ages(20, 40, 60), "SELECT count(*) FROM visits WHERE ward = 'surgery'"]
        plan = ana.explain(batch, epsilon=0.5)
        answers = ana.answer(batch, epsilon=0.5)
        assert plan.cost == answers.cost
        own = ana.budget.analysts["ana"].spent.epsilon
        assert own <= Decimal("0.5"), "never more than what was asked"
        assert not any(ana.answer(batch, epsilon=0.5).cost)

    def test_derived_from_anothers_release(self, connect: Connect, policy: dict[str, Any]) -> None:
        ana, bob = connect(policy=policy, analyst="ana"), connect(policy=policy, analyst="bob")
        bob.answer(ages(20, 40), epsilon=0.5)
        bob.answer("SELECT count(*) FROM visits WHERE sex", epsilon=0.25)
        answers = ana.answer("SELECT count(*) FROM visits WHERE age >= 20 AND age < 40", epsilon=0.5)
        assert not any(answers.cost), "the difference was known"
        assert ana.budget.analysts["ana"].spent.epsilon == Decimal("0.5"), "only what told something was read"


def test_integer_answers(con: Connection) -> None:
    batch = [*ages(20, 40), "SELECT avg(cost) FROM visits"]
    plain = con.answer(batch, epsilon=1).df()
    whole = con.answer(batch, epsilon=1, integer=True).df()
    assert (whole["value"][:2] == np.round(plain["value"][:2])).all()
    np.testing.assert_allclose(whole["stderr"][:2], np.sqrt(plain["stderr"][:2] ** 2 + 1 / 12))
    wider = (whole["high"] - whole["low"]) - (plain["high"] - plain["low"])
    np.testing.assert_allclose(wider[:2], 1)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_cells_agree_with_every_answer(con: Connection, nonnegative: bool) -> None:
    con.answer("SELECT count(*) FROM visits WHERE sex", epsilon=0.5)
    batch = ["SELECT count(*) FROM visits WHERE age < 30", "SELECT count(*) FROM visits WHERE age >= 30 AND sex"]
    answers = con.answer(batch, epsilon=0.5, nonnegative=nonnegative)
    cells = answers.cells()
    assert list(cells.columns) == ["table", "label", "count", "stderr"]
    matrix = compile_batch(batch, con.catalog).matrix
    np.testing.assert_allclose(matrix @ cells["count"].to_numpy(), values(answers), atol=1e-6)
    assert (cells["table"] == "visits").all()
    assert cells["label"].str.contains("age").all()
    assert (cells["stderr"] > 0).all()
    if nonnegative:
        assert (cells["count"] >= 0).all()


def test_a_cell_that_nothing_tells_says_so(con: Connection) -> None:
    batch = [*ages(40), "SELECT count(*) FROM visits WHERE sex"]
    cells = con.answer(batch, epsilon=1, strategy="results").cells()
    assert np.isinf(cells["stderr"]).any()


def test_an_unchanged_file_keeps_its_releases_across_connections(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "t.parquet"
    with duckdb.connect() as raw:
        raw.execute(f"COPY (SELECT i AS a FROM range(1000) AS r(i)) TO '{path}' (FORMAT parquet)")
    connect(path, policy=None, epsilon=10).answer("SELECT count(*) FROM t WHERE a < 500", epsilon=5)
    answers = connect(path, policy=None, epsilon=10).answer("SELECT count(*) FROM t WHERE a <= 499", epsilon=5)
    assert not any(answers.cost)


class TestErrorOfRoundedFigures:
    """``error=`` promises the whole width: rounding moves a figure by up to one half, so the noise gets less."""

    @pytest.mark.parametrize("error", [1.5, 5])
    def test_a_rounded_figure_is_within_the_error(self, error: float, connect: Connect) -> None:
        con = connect(epsilon=10)
        sql = "SELECT count(*) FROM visits WHERE age < 40"
        foreseen = con.explain(sql, error=error, integer=True)
        less = con.explain(sql, epsilon=foreseen.epsilon * Decimal("0.98"), integer=True)
        found = con.answer(sql, error=error, integer=True).df()
        assert foreseen.half_width.max() <= error * (1 + 1e-9)
        assert ((found["high"] - found["low"]) / 2 <= error * (1 + 1e-9)).all()
        assert (found["value"] % 1 == 0).all()
        assert less.half_width.max() > error, "and no more is bought than that needs"

    def test_what_is_known_counts_with_its_rounding(self, connect: Connect) -> None:
        con = connect()
        batch = ["SELECT count(*) FROM visits WHERE age < 40", "SELECT count(*) FROM visits WHERE sex"]
        con.answer(batch[0], error=5)
        assert not any(con.answer(batch[0], error=5).cost)
        assert not any(con.answer(batch[0], error=5.5, integer=True).cost)
        for ask in (batch[0], batch):
            plan = con.explain(ask, error=5, integer=True)
            assert plan.cost.epsilon > 0, "±5 before rounding is not ±5 after it"
            found = con.answer(ask, error=5, integer=True)
            assert plan.half_width.max() <= 5 * (1 + 1e-9)
            frame = found.df()
            assert ((frame["high"] - frame["low"]) / 2 <= 5 * (1 + 1e-9)).all()
            assert not any(con.answer(ask, error=5, integer=True).cost)

    @pytest.mark.parametrize("error", [0.5, 0.1])
    def test_what_rounding_alone_breaks_is_refused(self, error: float, connect: Connect) -> None:
        con = connect()
        for call in (con.explain, con.answer):
            with pytest.raises(tacit.PrivacyParameterError, match=r"hint: ask for more than 0\.5"):
                call("SELECT count(*) FROM visits", error=error, integer=True)
