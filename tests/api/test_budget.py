"""Caps and what is left of them: exact, shared through the ledger, and never moved by a refusal."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from tacit import Connection

Connect = Callable[..., Connection]


def counts(first: int, number: int = 1) -> list[str]:
    """Batches that share nothing with each other."""
    return [f"SELECT count(*) FROM visits WHERE age < {first + i}" for i in range(number)]


def test_exact_decimals(con: Connection) -> None:
    assert con.budget.cap == (Decimal("10.0"), Decimal("1e-6"))
    for i in range(3):
        con.answer(counts(i), epsilon=0.1)
    con.answer(counts(50), epsilon=Decimal("1e-17"))
    assert con.budget.spent.epsilon == Decimal("0.30000000000000001")
    assert con.budget.left.epsilon == Decimal("9.69999999999999999")
    assert con.budget.spent.delta == 0
    assert "spent ε=0.3" in str(con.budget)


def test_delta_is_charged_only_when_it_is_used(connect: Connect) -> None:
    con = connect(policy=None, epsilon=10, delta=0.01)
    one = con.answer(counts(1), epsilon=0.5, delta=0.001)
    assert one.cost.delta == 0, "Laplace noise is better for a single count"
    wheres = ["age < 40", "sex", "state = 'NY'", "ward = 'surgery'", "cost < 10", "bill < 9"]
    many = con.answer([f"SELECT count(*) FROM visits WHERE {w}" for w in wheres], epsilon=0.5, delta=0.001)
    assert many.cost.delta == Decimal("0.001"), "Gaussian noise is better for many that overlap"
    assert con.budget.spent == (1, Decimal("0.001"))
    assert con.budget.left == (9, Decimal("0.009"))


def test_overspending_is_refused_with_asked_and_left(con: Connection) -> None:
    con.answer(counts(1), epsilon=9.5)
    before = con.budget
    with pytest.raises(tacit.BudgetError) as caught:
        con.answer(counts(2), epsilon=1)
    assert caught.value.asked[0] == 1
    assert caught.value.left[0] == Decimal("0.5")
    with pytest.raises(tacit.BudgetError):
        con.answer([f"SELECT count(*) FROM visits WHERE age < {i}" for i in range(0, 60, 5)], epsilon=0.1, delta=1e-3)
    assert con.budget == before
    con.answer(counts(3), epsilon=0.5)
    assert con.budget.left.epsilon == 0


def test_the_ledger_lies_beside_the_database(con: Connection, clinic: Path, connect: Connect) -> None:
    ledger = clinic.with_name("clinic.duckdb.ledger")
    con.explain(counts(1), epsilon=1)
    assert not ledger.exists()
    con.answer(counts(1), epsilon=1)
    assert ledger.exists()
    assert connect().budget.spent.epsilon == 1


def test_ledger_elsewhere(connect: Connect, tmp_path: Path, clinic: Path) -> None:
    place = tmp_path / "books" / "clinic.ledger"
    place.parent.mkdir()
    connect(ledger=place).answer(counts(1), epsilon=1)
    assert place.exists()
    assert not clinic.with_name("clinic.duckdb.ledger").exists()


def test_a_link_to_the_database_is_no_second_budget(connect: Connect, clinic: Path, tmp_path: Path) -> None:
    connect(policy=None, epsilon=1).answer(counts(1), epsilon=1)
    link = tmp_path / "other name.duckdb"
    link.symlink_to(clinic)
    with tacit.connect(link, epsilon=1) as con, pytest.raises(tacit.BudgetError):
        con.answer(counts(2), epsilon=1)


def test_ledger_and_analyst_together_are_refused(connect: Connect, tmp_path: Path) -> None:
    with pytest.raises(tacit.InterfaceError, match="ledger="):
        connect(ledger=tmp_path / "l", analyst="ana")


def test_a_larger_cap_than_the_ledgers_is_refused(connect: Connect) -> None:
    connect(policy=None, epsilon=1).answer(counts(1), epsilon=0.5)
    with pytest.raises(tacit.LedgerError, match="epsilon = 1"):
        connect(policy=None, epsilon=2)
    with pytest.raises(tacit.LedgerError, match="delta"):
        connect(policy=None, epsilon=1, delta=1e-9)


def test_a_larger_cap_than_the_policys_is_refused(connect: Connect) -> None:
    with pytest.raises(tacit.PolicyError, match=r"budget\.epsilon is 10"):
        connect(epsilon=11)


def test_a_smaller_cap_binds_on_its_connection_only(connect: Connect) -> None:
    small, whole = connect(epsilon=1), connect()
    small.answer(counts(1), epsilon=0.75)
    assert small.budget.left.epsilon == Decimal("0.25")
    assert whole.budget.left.epsilon == Decimal("9.25")
    with pytest.raises(tacit.BudgetError) as caught:
        small.answer(counts(2), epsilon=0.5)
    assert caught.value.left[0] == Decimal("0.25")
    whole.answer(counts(2), epsilon=0.5)


def test_no_budget_explains_but_does_not_answer(connect: Connect, clinic: Path) -> None:
    con = connect(policy=None)
    assert con.explain(counts(1), epsilon=1).stderr.size == 1
    assert con.budget.left.epsilon == 0
    with pytest.raises(tacit.PolicyError, match=r"connect\(…, epsilon=1\.0\)"):
        con.answer(counts(1), epsilon=1)
    with pytest.raises(tacit.PolicyError, match="without epsilon"):
        connect(policy=None, delta=1e-9)
    connect(policy=None, epsilon=1).answer(counts(1), epsilon=0.5)
    assert con.budget.left.epsilon == Decimal("0.5"), "an existing ledger is the budget"


def test_where_nothing_can_be_written_explain_works(connect: Connect, tmp_path: Path) -> None:
    con = connect(ledger=tmp_path / "no such folder" / "clinic.ledger")
    con.explain(counts(1), epsilon=1)
    assert con.budget.left.epsilon == 10
    with pytest.raises(tacit.LedgerError):
        con.answer(counts(1), epsilon=1)


def test_a_ledger_that_is_none_is_never_reset(clinic: Path, connect: Connect) -> None:
    place = clinic.with_name("clinic.duckdb.ledger")
    place.write_bytes(b"not a ledger at all" * 100)
    with pytest.raises(tacit.LedgerError):
        connect().answer(counts(1), epsilon=1)
    assert place.read_bytes() == b"not a ledger at all" * 100


def test_spend(connect: Connect, policy: dict[str, Any]) -> None:
    policy["budget"]["spend"] = 0.25
    con = connect(policy=policy)
    con.answer(counts(1))
    assert con.budget.spent.epsilon == con.spend == Decimal("0.25")
    con.spend = 0.5
    con.answer(counts(2))
    assert con.budget.spent.epsilon == Decimal("0.75")
    assert connect(policy=policy, spend=1).spend == 1
    for bad in (0, -1, float("nan"), "0.1", True):
        with pytest.raises(tacit.PrivacyParameterError):
            con.spend = bad  # type: ignore[assignment]
        with pytest.raises(tacit.PrivacyParameterError):
            connect(spend=bad)
    con.spend = None
    with pytest.raises(tacit.PrivacyParameterError, match="spend"):
        con.answer(counts(3))


class TestAnalysts:
    @pytest.fixture
    def policy(self, policy: dict[str, Any]) -> dict[str, Any]:
        return policy | {"analysts": {"ana": {"epsilon": 1.0}, "bob": {}}}

    def test_unknown_analyst(self, connect: Connect, policy: dict[str, Any]) -> None:
        with pytest.raises(tacit.PolicyError, match="did you mean ana"):
            connect(policy=policy, analyst="anna")
        with pytest.raises(tacit.InterfaceError):
            connect(policy=policy, analyst="")

    def test_anyone_without_a_section(self, connect: Connect) -> None:
        con = connect(analyst="zoe")
        con.answer(counts(1), epsilon=0.5)
        assert con.budget.analysts["zoe"].spent.epsilon == Decimal("0.5")

    def test_own_cap_binds(self, connect: Connect, policy: dict[str, Any]) -> None:
        ana, bob = connect(policy=policy, analyst="ana"), connect(policy=policy, analyst="bob")
        ana.answer(counts(1), epsilon=0.75)
        bob.answer(counts(2), epsilon=2)
        accounts = ana.budget.analysts
        assert accounts["ana"].left.epsilon == Decimal("0.25")
        assert accounts["bob"].spent.epsilon == 2
        assert accounts["bob"].left.epsilon == Decimal("7.25")
        assert ana.budget.spent.epsilon == Decimal("2.75")
        with pytest.raises(tacit.BudgetError) as caught:
            ana.answer(counts(3), epsilon=0.5)
        assert caught.value.left[0] == Decimal("0.25")

    def test_the_whole_binds_too(self, connect: Connect, policy: dict[str, Any]) -> None:
        connect(policy=policy).answer(counts(1), epsilon=9.75)
        ana = connect(policy=policy, analyst="ana")
        assert ana.budget.analysts["ana"].left.epsilon == Decimal("0.25")
        with pytest.raises(tacit.BudgetError):
            ana.answer(counts(2), epsilon=0.5)

    def test_reading_what_another_paid_for(self, connect: Connect, policy: dict[str, Any]) -> None:
        ana, bob = connect(policy=policy, analyst="ana"), connect(policy=policy, analyst="bob")
        paid = bob.answer(counts(1), epsilon=0.5)
        assert not any(ana.explain(counts(1), epsilon=0.5).cost)
        assert ana.budget.analysts["ana"].spent.epsilon == 0, "looking costs nothing"
        read = ana.answer(counts(1), epsilon=0.5)
        assert read[0].df.equals(paid[0].df)
        assert not any(read.cost)
        assert ana.budget.spent.epsilon == Decimal("0.5"), "the whole pays once"
        assert ana.budget.analysts["ana"].spent.epsilon == Decimal("0.5"), "and the reader's cap counts it"
        ana.answer(counts(1), epsilon=0.5)
        assert ana.budget.analysts["ana"].spent.epsilon == Decimal("0.5"), "once"

    def test_a_reader_never_pays_more_than_asked(self, connect: Connect, policy: dict[str, Any]) -> None:
        ana, bob = connect(policy=policy, analyst="ana"), connect(policy=policy, analyst="bob")
        bob.answer(counts(1), epsilon=5)
        assert ana.explain(counts(1), epsilon=0.5).cost.epsilon == Decimal("0.5")
        own = ana.answer(counts(1), epsilon=0.5)
        assert own.cost.epsilon == Decimal("0.5")
        assert ana.budget.analysts["ana"].spent.epsilon == Decimal("0.5")

    def test_one_release_that_is_enough_is_read_alone(self, connect: Connect, policy: dict[str, Any]) -> None:
        policy["analysts"]["eve"] = {}
        policy["budget"]["epsilon"] = 1.5
        ana, bob, eve = (connect(policy=policy, analyst=name) for name in ("ana", "bob", "eve"))
        ana.answer(counts(1), epsilon=1)
        bob.answer(counts(1), epsilon=0.5)
        assert eve.budget.left.epsilon == 0
        assert not any(eve.explain(counts(1), epsilon=1).cost), "and reading needs nothing of the whole"
        assert not any(eve.answer(counts(1), epsilon=1).cost)
        assert eve.budget.analysts["eve"].spent.epsilon == 1


def test_open_connection_in_memory() -> None:
    raw = duckdb.connect()
    raw.execute("CREATE TABLE t AS SELECT i AS a FROM range(100) AS r(i)")
    with tacit.connect(raw, epsilon=1) as con:
        con.answer("SELECT count(*) FROM t WHERE a < 10", epsilon=0.75)
    with tacit.connect(raw, epsilon=1) as again:
        assert again.budget.spent.epsilon == Decimal("0.75"), "one ledger for one DuckDB connection"
        with pytest.raises(tacit.BudgetError):
            again.answer("SELECT count(*) FROM t WHERE a < 20", epsilon=0.5)
    with pytest.raises(tacit.LedgerError):
        tacit.connect(raw, epsilon=2)
    other = duckdb.connect()
    other.execute("CREATE TABLE t AS SELECT i AS a FROM range(100) AS r(i)")
    with tacit.connect(other, epsilon=1) as con:
        assert con.budget.spent.epsilon == 0
    assert raw.execute("SELECT count(*) FROM t").fetchone() == (100,), "the caller's connection stays open"


def test_open_connection_to_a_file(clinic: Path) -> None:
    with duckdb.connect(str(clinic)) as raw, tacit.connect(raw, epsilon=1) as con:
        con.answer(counts(1), epsilon=0.5)
        assert clinic.with_name("clinic.duckdb.ledger").exists()


def test_a_budget_does_not_carry_the_secret_of_its_ledger(con: Connection) -> None:
    con.answer("SELECT count(*) FROM visits", epsilon=0.1)
    ledger = con._session.access.peek()
    assert ledger is not None and len(ledger.salt) >= 16
    with pytest.raises(TypeError, match="its salt is secret"):
        pickle.dumps(ledger)
    budget = con.budget
    for copied in (pickle.loads(pickle.dumps(budget)), copy.deepcopy(budget)):
        assert ledger.salt not in pickle.dumps(copied) and ledger.salt.hex().encode() not in pickle.dumps(copied)
        assert (copied.cap, copied.spent, copied.left) == (budget.cap, budget.spent, budget.left)
        with pytest.raises(tacit.NotSupportedError, match=r"hint: read con\.budget\.realised before"):
            copied.realised  # noqa: B018
