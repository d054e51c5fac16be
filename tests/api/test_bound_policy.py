"""A ledger belongs to the policy that it was begun with: another one, or none, is refused wherever it could matter."""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pytest
import tacit
import tacit.ledger
from tacit import Connection
from tacit.binding import PolicyTerms, terms_of
from tacit.engine.accounting.ledger import Ledger
from tacit.policy import load_policy

Connect = Callable[..., Connection]
SQL = "SELECT count(*) FROM visits WHERE age < 40"
OTHER = "SELECT count(*) FROM visits WHERE age < 50"


@pytest.fixture
def policy(policy: dict[str, Any]) -> dict[str, Any]:
    policy["tables"]["visits"] |= {"privacy_unit": "patient_id", "max_rows_per_unit": 2}
    policy["analysts"] = {"ana": {"epsilon": 1.0}, "bob": {}}
    return policy


def changed(policy: dict[str, Any], change: str) -> dict[str, Any] | None:
    """The policy with one thing in it that the guarantee depends on done differently."""
    visits, analysts = policy["tables"]["visits"], policy["analysts"]
    match change:
        case "none":
            return None
        case "unit":
            visits["privacy_unit"] = "age"
        case "no unit":
            del visits["privacy_unit"], visits["max_rows_per_unit"]
        case "bound":
            visits["max_rows_per_unit"] = 3
        case "public":
            policy["tables"]["labs"] = {"public": True}
        case "not public":
            del policy["tables"]["hospitals"]
        case "cap":
            analysts["ana"]["epsilon"] = 9.0
        case "no cap":
            del analysts["ana"]["epsilon"]
        case "analyst":
            analysts["eve"] = {}
        case "anyone":
            del policy["analysts"]
    return policy


CHANGES = ("none", "unit", "no unit", "bound", "public", "not public", "cap", "no cap", "analyst", "anyone")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("analyst", [None, "ana"])
def test_another_policy_is_refused_when_connecting(
    change: str, analyst: str | None, policy: dict[str, Any], connect: Connect
) -> None:
    connect(policy=policy).answer(SQL, epsilon=0.5)
    hint = r"hint: name that policy, connect\(…, policy=…\), or write" if change == "none" else r"hint: (write|leave)"
    with pytest.raises(tacit.LedgerError, match=hint):
        connect(policy=changed(policy, change), analyst=analyst, epsilon=1)


@pytest.mark.parametrize("change", CHANGES)
def test_another_policy_is_refused_inside_the_charge(
    change: str, policy: dict[str, Any], connect: Connect, clinic: Path
) -> None:
    """Both connect before there is a ledger, as two processes at once may; and both have one open when it changes."""
    other = connect(policy=changed(copy.deepcopy(policy), change), epsilon=10)
    first = connect(policy=policy)
    first.answer(SQL, epsilon=0.5)
    second = connect(policy=policy)
    with pytest.raises(tacit.LedgerError):
        other.answer(OTHER, epsilon=0.5)
    tacit.ledger.change_policy(first, policy | {"analysts": {"bob": {}}})
    before = Ledger.open(f"{clinic}.ledger").entries()
    for con in (first, second):
        with pytest.raises(tacit.LedgerError, match="bound to another policy"):
            con.answer(OTHER, epsilon=0.5)
    assert Ledger.open(f"{clinic}.ledger").entries() == before


def test_what_the_guarantee_does_not_depend_on_may_differ(policy: dict[str, Any], connect: Connect) -> None:
    connect(policy=policy).answer(SQL, epsilon=0.5)
    tables = policy["tables"]
    tables["VISITS"] = tables.pop("visits") | {"privacy_unit": "Patient_ID", "version": "2"}
    tables["VISITS"]["columns"] = {"age": {"min": 0, "max": 99}}
    tables["labs"] = {"columns": {"kind": {"values": ["blood"]}}}
    policy["analysts"]["ana"]["epsilon"] = Decimal("1.000")
    policy["limits"] = {"statements": 5}
    policy["budget"]["epsilon"] = 9.0
    connect(policy=policy).answer(SQL, epsilon=0.5)


def test_trusting_the_schema_less_is_no_other_policy_and_more_is(policy: dict[str, Any], connect: Connect) -> None:
    connect(policy=policy | {"trust_schema": True}).answer(SQL, epsilon=0.5)
    connect(policy=policy | {"trust_schema": False})
    tacit.ledger.change_policy(connect(policy=policy), policy | {"trust_schema": False})
    with pytest.raises(tacit.LedgerError, match="trust_schema = false"):
        connect(policy=policy | {"trust_schema": True})


def test_no_policy_is_a_policy_too(policy: dict[str, Any], connect: Connect) -> None:
    connect(policy=None, epsilon=5).answer(SQL, epsilon=0.5)
    connect(policy=None).answer(OTHER, epsilon=0.5)
    connect(policy=None, analyst="ana").answer("SELECT count(*) FROM visits", epsilon=0.5)
    with pytest.raises(tacit.LedgerError, match="leave privacy_unit out"):
        connect(policy=policy | {"budget": {"epsilon": 5.0}})


def test_an_analyst_without_policy_begins_no_ledger(policy: dict[str, Any], connect: Connect, clinic: Path) -> None:
    ana = connect(policy=None, analyst="ana", epsilon=5)
    assert ana.explain(SQL, epsilon=0.5).stderr.size == 1
    with pytest.raises(tacit.LedgerError, match="curator"):
        ana.answer(SQL, epsilon=0.5)
    assert not Path(f"{clinic}.ledger").exists()
    connect(policy=policy, analyst="ana").answer(SQL, epsilon=0.5)
    connect(policy=policy)


class TestChange:
    def test_is_on_record_and_holds_for_everyone(self, policy: dict[str, Any], connect: Connect, clinic: Path) -> None:
        con = connect(policy=policy)
        con.answer(SQL, epsilon=0.5)
        policy["analysts"]["eve"] = {"epsilon": 0.25}
        policy["tables"]["visits"]["max_rows_per_unit"] = 1
        tacit.ledger.change_policy(f"{clinic}.ledger", policy)
        tacit.ledger.change_policy(f"{clinic}.ledger", policy)
        eve = connect(policy=policy, analyst="eve")
        with pytest.raises(tacit.BudgetError, match="'eve'"):
            eve.answer(OTHER, epsilon=0.5)
        kinds = tacit.ledger.log(f"{clinic}.ledger")["kind"].tolist()
        assert kinds == ["cap", "policy", "charge", "release", "policy"], "once, and never in place of the old one"
        assert tacit.ledger.verify(f"{clinic}.ledger") == 5

    @pytest.mark.parametrize("change", ["unit", "no unit"])
    def test_the_unit_of_a_table_with_charges_cannot_change(
        self, change: str, policy: dict[str, Any], connect: Connect, clinic: Path
    ) -> None:
        con = connect(policy=policy)
        con.answer(SQL, epsilon=0.5)
        with pytest.raises(tacit.LedgerError, match="charges that protect patient_id of visits"):
            tacit.ledger.change_policy(con, changed(policy, change))
        assert tacit.ledger.verify(f"{clinic}.ledger") == 4

    def test_the_unit_of_a_table_without_charges_can(self, policy: dict[str, Any], connect: Connect) -> None:
        con = connect(policy=policy)
        con.answer("SELECT count(*) FROM labs", epsilon=0.5)
        tacit.ledger.change_policy(con, changed(policy, "unit"))
        connect(policy=policy).answer(SQL, epsilon=0.5)

    def test_a_table_can_become_public(self, policy: dict[str, Any], connect: Connect) -> None:
        con = connect(policy=policy)
        con.answer(SQL, epsilon=0.5)
        policy["tables"]["visits"] = {"public": True}
        tacit.ledger.change_policy(con, policy)
        assert not any(connect(policy=policy).answer(OTHER, epsilon=0.5).cost)

    def test_in_memory(self) -> None:
        db = duckdb.connect()
        db.execute("CREATE TABLE t AS SELECT range AS a FROM range(100)")
        con = tacit.connect(db, epsilon=1)
        con.answer("SELECT count(*) FROM t", epsilon=0.5)
        rules = {"budget": {"epsilon": 1}, "analysts": {"ana": {}}}
        with pytest.raises(tacit.LedgerError):
            tacit.connect(db, policy=rules)
        tacit.ledger.change_policy(con, rules)
        assert tacit.connect(db, policy=rules, analyst="ana").budget.spent.epsilon == Decimal("0.5")
        with pytest.raises(tacit.LedgerError):
            assert con.budget


class TestBegunByTheFirstVersion:
    """A ledger of tacit 0.1.0 has no policy in it; its charges name the units that they protect."""

    POLICY: ClassVar[dict[str, Any]] = {
        "budget": {"epsilon": 5.0, "delta": 1e-6},
        "analysts": {"ana": {"epsilon": 2.0}, "bob": {}},
        "tables": {"v": {"privacy_unit": "pid", "max_rows_per_unit": 3, "version": "1"}},
    }
    SQL = "SELECT count(*) FROM v WHERE a < 50"

    @pytest.fixture
    def database(self, tmp_path: Path) -> Path:
        path = tmp_path / "v.duckdb"
        with duckdb.connect(str(path)) as db:
            db.execute("CREATE TABLE v AS SELECT (i % 10)::INTEGER AS pid, i::INTEGER AS a FROM range(100) t(i)")
        stored = Path(__file__).parents[1] / "fixtures" / "ledger-0.1.0.gz"
        Path(f"{path}.ledger").write_bytes(gzip.decompress(stored.read_bytes()))
        return path

    def test_it_is_read_as_it_is_and_bound_by_the_next_charge(self, database: Path) -> None:
        before = Path(f"{database}.ledger").read_bytes()
        with tacit.connect(database, policy=self.POLICY, analyst="ana") as ana:
            assert ana.budget.spent.epsilon == Decimal("0.875")
            assert [ana.budget.analysts[name].spent.epsilon for name in ("ana", "bob")] == [Decimal("0.5")] * 2
            assert not any(ana.explain(self.SQL, epsilon=0.5).cost)
            known = ana.answer(self.SQL, epsilon=0.5)
            assert not any(known.cost)
            assert known.df()["value"].tolist() == [16.955874763429165], "what was released then is used today"
            assert Path(f"{database}.ledger").read_bytes() == before, "reading changes nothing"
            ana.answer("SELECT count(*) FROM v WHERE a < 70", epsilon=0.5)
            assert ana.budget.spent.epsilon == Decimal("1.375")
            assert ana.budget.analysts["ana"].spent.epsilon == 1
        assert tacit.ledger.log(f"{database}.ledger")["kind"].tolist()[9:] == (
            ["balance"] * 3 + ["policy", "charge", "release"]
        )
        assert tacit.ledger.verify(f"{database}.ledger") == 15
        with pytest.raises(tacit.LedgerError, match="privacy_unit"):
            tacit.connect(database, policy={"budget": {"epsilon": 5}})

    @pytest.mark.parametrize("unit", [{}, {"privacy_unit": "a", "max_rows_per_unit": 3}])
    def test_what_contradicts_its_charges_is_refused_inside_the_charge(
        self, unit: dict[str, Any], database: Path
    ) -> None:
        before = Path(f"{database}.ledger").read_bytes()
        with (
            tacit.connect(database, policy={"budget": {"epsilon": 5}, "tables": {"v": unit}}) as con,
            pytest.raises(tacit.LedgerError, match="charges that protect pid of v"),
        ):
            con.answer("SELECT count(*) FROM v", epsilon=0.5)
        assert Path(f"{database}.ledger").read_bytes() == before

    def test_an_analyst_without_policy_does_not_bind_it(self, database: Path) -> None:
        with (
            tacit.connect(database, analyst="zoe") as con,
            pytest.raises(tacit.LedgerError, match="no policy on record"),
        ):
            con.answer("SELECT count(*) FROM v", epsilon=0.5)
        tacit.connect(database, policy=self.POLICY).close()

    def test_two_policies_at_once(self, database: Path) -> None:
        """Both have it open before it is bound; the second finds inside its transaction that it is."""
        one = tacit.connect(database, policy=self.POLICY)
        two = tacit.connect(database, policy=self.POLICY | {"analysts": {}})
        one.answer("SELECT count(*) FROM v", epsilon=0.5)
        with pytest.raises(tacit.LedgerError, match="bound to another policy"):
            two.answer("SELECT count(*) FROM v WHERE a < 3", epsilon=0.5)
        one.close(), two.close()


def test_the_form_is_canonical() -> None:
    one = {"budget": {"epsilon": 1}, "tables": {"A": {"privacy_unit": "P", "max_rows_per_unit": 1}, "b": {}}}
    two = {"tables": {"a": {"privacy_unit": "p", "max_rows_per_unit": 1}}, "analysts": {"x": {"epsilon": 0.10}}}
    three = {"tables": {"É": {"public": True}}, "analysts": {}}
    assert terms_of(load_policy(one)).text == '{"tables":{"a":{"max_rows_per_unit":1,"privacy_unit":"p"}}}'
    assert terms_of(load_policy(two)).text.startswith('{"analysts":{"x":{"epsilon":"0.1"}}')
    assert terms_of(load_policy(three)).text != terms_of(load_policy({**three, "tables": {"é": {"public": True}}})).text
    assert terms_of(load_policy({})).text == "{}"
    assert terms_of(load_policy(None)).text == '{"trust_schema":true}'
    with pytest.raises(tacit.PolicyError, match="twice"):
        terms_of(load_policy({"tables": {"A": {"public": True}, "a": {}}}))


def test_a_policy_on_record_that_is_damaged_is_refused() -> None:
    with pytest.raises(tacit.LedgerError):
        PolicyTerms().accepts("[]")
    with pytest.raises(tacit.LedgerError):
        PolicyTerms().accepts("{")


def test_a_ledger_without_terms_is_the_engines_own_business(tmp_path: Path) -> None:
    assert Ledger.create(tmp_path / "x.ledger", 1).policy is None
