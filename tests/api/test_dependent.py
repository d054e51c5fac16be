"""Batches by DAWA and MWEM: charged whole, answered again for nothing, combined with nothing, without stated errors."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tacit
import tacit.ledger
from support import seams
from tacit import Connection
from tacit.engine import data_dependent_strategies
from tacit.errors import BudgetError, NotSupportedError, OperationalError, PrivacyParameterError

Connect = Callable[..., Connection]
NAMES = data_dependent_strategies()
BATCH = [
    "SELECT count(*) FROM visits WHERE age < 18",
    "SELECT state, count(*), avg(cost) FROM visits GROUP BY state",
    "SELECT count(*) * 2 + 1, sum(cost) FROM visits WHERE age BETWEEN 20 AND 60",
    "SELECT name FROM hospitals",
]


def kinds(con: Connection) -> list[str]:
    return [str(kind) for kind in tacit.ledger.log(con)["kind"]]


@pytest.mark.parametrize("name", NAMES)
class TestAnswer:
    def test_the_whole_epsilon_is_charged_and_no_delta(self, connect: Connect, name: str) -> None:
        with connect() as con:
            answers = con.answer(BATCH[:3], epsilon=0.7, delta=1e-7, strategy=name)
            assert answers.cost == (Decimal("0.7"), 0) == con.budget.spent
            assert (answers.strategy, answers.epsilon) == (name, Decimal("0.7"))

    def test_the_same_batch_again_is_free_and_the_same(self, connect: Connect, name: str) -> None:
        with connect() as con:
            first = con.answer(BATCH[:3], epsilon=0.7, strategy=name)
            second = con.answer(BATCH[:3], epsilon=0.5, strategy=name)
            assert second.cost == (0, 0) and second.epsilon == Decimal("0.7")
            assert second.df()["value"].tolist() == first.df()["value"].tolist()
            assert con.answer(BATCH[:3], epsilon=0.8, strategy=name).cost.epsilon == Decimal("0.8"), "more was asked"
            assert con.answer(BATCH[:3], epsilon=0.1, strategy=name, refresh=True).cost.epsilon == Decimal("0.1")

    def test_no_error_is_stated(self, connect: Connect, name: str) -> None:
        with connect() as con:
            answers = con.answer(BATCH[:3], epsilon=2, strategy=name)
            frame = answers.df()
            assert frame[["stderr", "low", "high"]].isna().all(axis=None)
            values = frame["value"][frame["note"].str.contains("not predicted")]
            assert len(values) > 10 and values.notna().all()
            assert answers.cells()["stderr"].isna().all()

    def test_what_reads_no_private_row_is_exact_beside_it(self, connect: Connect, name: str) -> None:
        with connect() as con:
            frame = con.answer([BATCH[0], "SELECT count(*) FROM hospitals"], epsilon=1, strategy=name).df()
            assert (frame["value"][1], frame["stderr"][1], frame["note"][1]) == (1.0, 0.0, "")

    def test_whole_numbers_and_none_below_zero(self, connect: Connect, name: str) -> None:
        with connect() as con:
            batch = "SELECT state, count(*) FROM visits GROUP BY state"
            whole = con.answer(batch, epsilon=0.01, strategy=name, integer=True).df()["value"]
            assert (whole == whole.round()).all()
            fitted = con.answer(batch, epsilon=0.01, strategy=name, nonnegative=True)
            assert fitted.cost == (0, 0)
            assert (fitted.df()["value"] >= 0).all()

    def test_weights_are_another_release(self, connect: Connect, name: str) -> None:
        with connect() as con:
            con.answer(BATCH[:3], epsilon=0.5, strategy=name)
            assert con.answer(BATCH[:3], epsilon=0.5, strategy=name, weights=[3, 3, 3]).cost.epsilon == 0, "by ratio"
            assert con.answer(BATCH[:3], epsilon=0.5, strategy=name, weights=[1, 1, 5]).cost.epsilon == Decimal("0.5")

    def test_large_epsilon_comes_near(self, connect: Connect, policy: dict[str, Any], name: str) -> None:
        policy["budget"] = {"epsilon": 1e6}
        with connect(policy=policy) as con:
            batch = [f"SELECT count(*) FROM visits WHERE age < {age}" for age in (10, 20, 30, 40)]
            released = con.answer(batch, epsilon=1e5, strategy=name).df()["value"]
            exact = [float(f.iloc[0, 0]) for f in tacit.testing.exact_answers(con, batch)]
            assert released.tolist() == pytest.approx(exact, abs=4)

    def test_several_tables_share_epsilon(self, connect: Connect, policy: dict[str, Any], name: str) -> None:
        policy["tables"]["labs"] = {"columns": {"kind": {"values": ["blood", "urine"], "other": True}}}
        seen: list[Any] = []
        with connect(policy=policy) as con, pytest.MonkeyPatch.context() as patch:
            seams.watch(patch, "measure in stages", lambda plan, *rest: seen.append(plan))
            batch = [BATCH[0], "SELECT kind, count(*) FROM labs GROUP BY kind"]
            assert con.answer(batch, epsilon=1, strategy=name).cost.epsilon == 1
            stages = seen[0].stages(Decimal(1))
            assert [sum(stage.epsilon for stage in table) for table in stages] == [Fraction(1, 2)] * 2
            assert "of labs: " in str(con.explain(batch, epsilon=2, strategy=name))

    def test_under_zcdp(self, connect: Connect, policy: dict[str, Any], name: str) -> None:
        policy["accounting"] = "zcdp"
        with connect(policy=policy) as con:
            con.answer(BATCH[0], epsilon=0.5, delta=1e-8, strategy=name)
            assert con.budget.spent.epsilon > 0


@pytest.mark.parametrize("name", NAMES)
class TestApart:
    """Its questions were chosen by the data, so least squares over it and others would be biased."""

    def test_no_other_batch_uses_it(self, connect: Connect, name: str) -> None:
        with connect() as con:
            con.answer(BATCH[0], epsilon=2, strategy=name)
            plain = con.answer(BATCH[0], epsilon=0.5)
            assert plain.cost.epsilon == plain.epsilon == Decimal("0.5")
            part = con.answer(BATCH[0], epsilon=0.1, strategy="identity")
            assert part.epsilon == Decimal("0.1")

    def test_it_uses_no_other_release(self, connect: Connect, name: str) -> None:
        with connect() as con:
            con.answer(BATCH[0], epsilon=2)
            other = next(other for other in NAMES if other != name)
            con.answer(BATCH[0], epsilon=2, strategy=other)
            answers = con.answer(BATCH[0], epsilon=0.5, strategy=name)
            assert answers.cost.epsilon == answers.epsilon == Decimal("0.5")

    def test_a_ledger_that_holds_one_is_read_back_and_sound(self, connect: Connect, name: str) -> None:
        with connect() as con:
            first = con.answer(BATCH[:3], epsilon=0.7, strategy=name)
            con.answer(BATCH[0], epsilon=0.3)
        with connect() as con:
            tacit.ledger.verify(con)
            again = con.answer(BATCH[:3], epsilon=0.7, strategy=name)
            assert again.cost == (0, 0)
            assert again.df()["value"].tolist() == first.df()["value"].tolist()

    def test_the_charge_says_its_stages(self, connect: Connect, name: str) -> None:
        recorded: list[Any] = []
        with connect() as con, pytest.MonkeyPatch.context() as patch:
            seams.watch(patch, "charge", lambda ledger, request: recorded.append(request.mechanism))
            con.answer(BATCH[0], epsilon=0.7, strategy=name)
        (record,) = recorded
        assert sum(Fraction(part.epsilon) for part in record.parts) == Fraction(7, 10)
        assert {part.strategy for part in record.parts} == {name} and len(record.parts) >= 2
        assert '"stage"' in record.text


@pytest.mark.parametrize("name", NAMES)
class TestExplain:
    def test_it_says_that_the_error_is_measured(self, connect: Connect, name: str) -> None:
        with connect() as con:
            plan = con.explain(BATCH[:3], epsilon=0.7, strategy=name)
            assert "measured, not predicted" in str(plan) and "costs ε=0.7" in str(plan)
            assert all(stage in str(plan) for stage in plan.stages) and len(plan.stages) >= 2
            assert np.isnan([plan.error, plan.combined, plan.gap]).all() and plan.lower_bound == 0
            frame = plan.df()
            assert frame[["stderr", "half_width"]].isna().all(axis=None)
            assert frame["histogram"].notna().any() and frame["note"].str.contains("not predicted").all()
            assert plan.cost.epsilon == Decimal("0.7") and con.budget.spent.epsilon == 0

    def test_it_predicts_the_cost(self, connect: Connect, name: str) -> None:
        with connect() as con:
            con.answer(BATCH[:3], epsilon=0.7, strategy=name)
            plan = con.explain(BATCH[:3], epsilon=0.7, strategy=name)
            assert plan.cost == (0, 0) and "already released" in plan.why


@pytest.mark.parametrize("name", NAMES)
class TestRefused:
    def test_an_error_cannot_be_promised(self, connect: Connect, name: str) -> None:
        with connect() as con:
            for call in (con.explain, con.answer):
                with pytest.raises(NotSupportedError, match=r"error= cannot be promised.*\nhint: name epsilon="):
                    call(BATCH[0], error=5, strategy=name)
            with pytest.raises(PrivacyParameterError, match="no budget was named"):
                con.answer(BATCH[0], strategy=name)
            assert con.budget.spent.epsilon == 0

    def test_too_many_cells_are_refused_unpaid(self, connect: Connect, name: str) -> None:
        ages = [f"SELECT count(*) FROM visits WHERE age < {age}" for age in range(1, 90)]
        costs = [f"SELECT count(*) FROM visits WHERE cost < {cost}" for cost in range(1, 90)]
        both = [f"SELECT count(*) FROM visits WHERE age < {n} AND cost < {n}" for n in range(1, 90)]
        with connect() as con:
            with pytest.raises(NotSupportedError, match="takes up to 4,096 cells"):
                con.answer([*ages, *costs, *both], epsilon=1, strategy=name)
            assert con.budget.spent.epsilon == 0

    def test_a_budget_that_does_not_reach(self, connect: Connect, name: str) -> None:
        reads: list[int] = []
        with connect() as con, pytest.MonkeyPatch.context() as patch:
            seams.watch(patch, "count", lambda *_: reads.append(1))
            with pytest.raises(BudgetError):
                con.answer(BATCH[0], epsilon=11, strategy=name)
            assert not reads

    def test_what_fails_after_the_charge_says_nothing_and_is_not_paid_twice(self, connect: Connect, name: str) -> None:
        def fails(*_: Any) -> Any:
            raise ValueError("a count of 17")

        with connect() as con:
            with pytest.MonkeyPatch.context() as patch:
                seams.replace(patch, "measure in stages", fails)
                with pytest.raises(OperationalError) as caught:
                    con.answer(BATCH[0], epsilon=1, strategy=name)
                assert "17" not in str(caught.value) and caught.value.__context__ is None
            assert con.explain(BATCH[0], epsilon=1, strategy=name).why.startswith("paid for before")
            assert con.answer(BATCH[0], epsilon=1, strategy=name).cost == (0, 0)
            assert con.budget.spent.epsilon == 1 and kinds(con).count("charge") == 1


@pytest.mark.parametrize("name", NAMES)
def test_reading_what_another_paid_for_counts_against_ones_own_cap(
    connect: Connect, policy: dict[str, Any], name: str
) -> None:
    policy["analysts"] = {"ana": {"epsilon": 1.0}, "bob": {"epsilon": 1.0}}
    with connect(policy=policy, analyst="ana") as con:
        first = con.answer(BATCH[0], epsilon=0.6, strategy=name)
    with connect(policy=policy, analyst="bob") as con:
        assert "against your own cap" in con.explain(BATCH[0], epsilon=0.6, strategy=name).why
        for _ in range(2):
            answers = con.answer(BATCH[0], epsilon=0.6, strategy=name)
            assert answers.cost == (0, 0)
            assert answers.df()["value"].tolist() == first.df()["value"].tolist()
        assert con.budget.analysts["bob"].left.epsilon == Decimal("0.4")
        assert "against your own cap" not in con.explain(BATCH[0], epsilon=0.6, strategy=name).why
        with pytest.raises(BudgetError):
            con.answer(BATCH[0], epsilon=0.6, strategy=name, refresh=True)
