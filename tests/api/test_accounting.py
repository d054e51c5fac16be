"""The rule that charges add up by, what was really spent, and the curator's operations on the ledger."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
import tacit.ledger
from tacit import Connection

Connect = Callable[..., Connection]
WHERES = ["age < 40", "sex", "state = 'NY'", "ward = 'surgery'", "cost < 10", "bill < 9", "day < '2024-05-01'"]


def counts(first: int) -> str:
    return f"SELECT count(*) FROM visits WHERE age < {first}"


def gaussian(i: int) -> list[str]:
    """Overlapping counts, for which Gaussian noise is the better one; nothing shared between two of them."""
    return [f"SELECT count(*) FROM visits WHERE ({where}) AND patient_id < {10 + i}" for where in WHERES]


class TestZeroConcentrated:
    @pytest.fixture
    def policy(self, policy: dict[str, Any]) -> dict[str, Any]:
        return policy | {"accounting": "zcdp", "budget": {"epsilon": 3.0, "delta": 1e-6}}

    def test_many_gaussian_batches_cost_far_less(self, connect: Connect, policy: dict[str, Any]) -> None:
        con = connect(policy=policy)
        assert con.budget.rule == "zcdp"
        foreseen = con.explain(gaussian(0), epsilon=0.5, delta=1e-6).cost
        first = con.answer(gaussian(0), epsilon=0.5, delta=1e-6)
        assert first.cost == foreseen
        assert first.cost.delta == Decimal("1e-6"), "the δ of the cap, used up by the first charge"
        for i in range(1, 8):
            con.answer(gaussian(i), epsilon=0.5, delta=1e-6)
        assert con.budget.spent.epsilon < 2, "the sums would be 4"
        assert con.budget.spent.delta == Decimal("1e-6")
        assert 0 < con.budget.realised < float(con.budget.spent.epsilon)

    def test_admission_is_by_rho(self, connect: Connect, policy: dict[str, Any]) -> None:
        con = connect(policy=policy)
        con.answer(counts(20), epsilon=0.25)
        before = con.budget
        with pytest.raises(tacit.BudgetError) as caught:
            con.answer(counts(30), epsilon=2.5)
        assert caught.value.asked[0] > caught.value.left[0] == before.left.epsilon
        assert con.budget == before

    def test_analyst_caps(self, connect: Connect, policy: dict[str, Any]) -> None:
        policy["analysts"] = {"ana": {"epsilon": 2.0}, "bob": {}}
        ana, bob = connect(policy=policy, analyst="ana"), connect(policy=policy, analyst="bob")
        ana.answer(counts(20), epsilon=0.2)
        with pytest.raises(tacit.BudgetError, match="'ana'"):
            ana.answer(counts(30), epsilon=0.5)
        bob.answer(counts(30), epsilon=0.2)
        read = ana.answer(counts(30), epsilon=0.2)
        assert not any(read.cost)
        accounts = ana.budget.analysts
        assert accounts["ana"].spent.epsilon > accounts["bob"].spent.epsilon, "reading counts like paying"

    def test_no_cap_has_a_delta_of_zero(self, connect: Connect, policy: dict[str, Any], clinic: Path) -> None:
        """What was spent is stated at the cap's δ, so at a δ of 0 neither a balance nor an admission has a meaning."""
        silent = {key: value for key, value in policy.items() if key != "accounting"}
        nothing = {"ana": {"delta": 0}}
        refused = pytest.raises(tacit.PolicyError, match=r"zcdp.*\nhint: write delta = 1e-9")
        for options in (
            {"policy": policy | {"analysts": nothing}},
            {"policy": policy, "delta": 0},
            {"policy": {"accounting": "zcdp"}, "epsilon": 1},
        ):
            with refused:
                connect(**options)
        connect(policy=policy).answer(counts(20), epsilon=0.1)
        for options in (
            {"policy": policy, "delta": 0},
            {"policy": silent, "delta": 0},
            {"policy": silent | {"budget": {"epsilon": 3.0}}},
            {"policy": silent | {"analysts": nothing}, "analyst": "ana"},
        ):
            with refused:
                connect(**options)
        for books in (f"{clinic}.ledger", connect(policy=policy)):
            with refused:
                tacit.ledger.change_policy(books, silent | {"analysts": nothing})
        assert connect(policy=policy, delta=1e-9).budget.cap.delta == Decimal("1e-9")

    def test_the_rule_is_the_ledgers(self, connect: Connect, policy: dict[str, Any]) -> None:
        connect(policy=policy).answer(counts(20), epsilon=0.1)
        with pytest.raises(tacit.LedgerError, match='"zcdp", fixed when it was created'):
            connect(policy=policy | {"accounting": "sum"})
        silent = {key: value for key, value in policy.items() if key != "accounting"}
        assert connect(policy=silent).budget.rule == "zcdp"

    def test_a_ledger_of_sums_stays_one(self, connect: Connect, policy: dict[str, Any]) -> None:
        plain = {key: value for key, value in policy.items() if key != "accounting"}
        con = connect(policy=plain)
        con.answer(counts(20), epsilon=0.1)
        assert con.budget.rule == "sum"
        with pytest.raises(tacit.LedgerError, match='"sum", fixed'):
            connect(policy=policy)

    def test_delta_is_needed(self, connect: Connect, policy: dict[str, Any]) -> None:
        with pytest.raises(tacit.PolicyError, match=r"budget\.delta"):
            connect(policy=policy | {"budget": {"epsilon": 1.0}})
        with pytest.raises(tacit.PolicyError, match="is no rule"):
            connect(policy=policy | {"accounting": "renyi"})

    def test_in_memory(self, policy: dict[str, Any]) -> None:
        raw = duckdb.connect()
        raw.execute("CREATE TABLE t AS SELECT i AS a FROM range(100) AS r(i)")
        rules = {"accounting": "zcdp", "budget": {"epsilon": 1.0, "delta": 1e-6}}
        with tacit.connect(raw, policy=rules) as con:
            con.answer("SELECT count(*) FROM t WHERE a < 10", epsilon=0.1)
            assert con.budget.rule == "zcdp"


def test_realised_beside_the_sums(con: Connection) -> None:
    assert con.budget.realised == 0
    for i in range(4):
        con.answer(counts(10 * i + 5), epsilon=0.1)
    assert con.budget.spent.epsilon == Decimal("0.4")
    assert 0.3 < con.budget.realised <= 0.4 + 1e-3


def test_realised_without_delta(connect: Connect) -> None:
    con = connect(policy=None, epsilon=1)
    con.answer(counts(5), epsilon=0.1)
    con.answer(counts(15), epsilon=0.2)
    assert con.budget.realised == pytest.approx(0.3, rel=1e-2)


class TestCurator:
    def test_verify(self, con: Connection, clinic: Path) -> None:
        con.answer(counts(20), epsilon=0.1)
        path = f"{clinic}.ledger"
        assert tacit.ledger.verify(path) == tacit.ledger.verify(con) == 4
        damaged = Path(path).read_bytes().replace(b"laplace", b"gaussia", 1)
        copy = clinic.with_name("tampered.ledger")
        copy.write_bytes(damaged)
        with pytest.raises(tacit.LedgerError):
            tacit.ledger.verify(copy)
        with pytest.raises(tacit.LedgerError):
            tacit.ledger.verify(clinic.with_name("nothing.ledger"))

    def test_raise_cap(self, connect: Connect, policy: dict[str, Any]) -> None:
        con = connect(policy=policy)
        con.answer(counts(20), epsilon=10)
        tacit.ledger.raise_cap(con, 20, 1e-6)
        with pytest.raises(tacit.BudgetError):
            con.answer(counts(30), epsilon=1)
        policy["budget"]["epsilon"] = 20.0
        assert connect(policy=policy).budget.left.epsilon == 10
        with pytest.raises(tacit.PrivacyParameterError, match="lowered"):
            tacit.ledger.raise_cap(con, 1)
        with pytest.raises(tacit.PrivacyParameterError):
            tacit.ledger.raise_cap(con, -1)

    def test_declare_version(self, con: Connection, connect: Connect) -> None:
        con.answer(counts(20), epsilon=0.1)
        tacit.ledger.declare_version(con, "Visits", "2026-02")
        assert con.answer(counts(20), epsilon=0.1).cost.epsilon == Decimal("0.1")
        assert not any(connect().answer(counts(20), epsilon=0.1).cost), "for everyone"
        assert not any(con.answer("SELECT count(*) FROM hospitals", epsilon=0.1).cost)
        tacit.ledger.declare_version(con, "visits", "2026-03")
        assert any(connect().answer(counts(20), epsilon=0.1).cost)
        with pytest.raises(tacit.PolicyError, match="did you mean visits"):
            tacit.ledger.declare_version(con, "visit", "1")
        with pytest.raises(tacit.InterfaceError):
            tacit.ledger.declare_version(con, "visits", "")

    def test_backup(self, con: Connection, tmp_path: Path, clinic: Path) -> None:
        con.answer(counts(20), epsilon=0.1)
        copy = tmp_path / "copy.ledger"
        tacit.ledger.backup(f"{clinic}.ledger", copy)
        assert tacit.ledger.verify(copy) == tacit.ledger.verify(con)
        with pytest.raises(tacit.LedgerError, match="already"):
            tacit.ledger.backup(con, copy)

    def test_each_is_an_entry(self, con: Connection, tmp_path: Path) -> None:
        con.answer(counts(20), epsilon=0.1)
        tacit.ledger.raise_cap(con, 11, 1e-6)
        tacit.ledger.declare_version(con, "visits", "2")
        tacit.ledger.backup(con, tmp_path / "copy.ledger")
        frame = tacit.ledger.log(con)
        assert frame["kind"].tolist() == ["cap", "policy", "charge", "release", "cap", "version", "backup"]
        assert frame["epsilon"][2] == Decimal("0.1")

    def test_not_for_analysts(self, connect: Connect, tmp_path: Path) -> None:
        ana = connect(analyst="ana")
        ana.answer(counts(20), epsilon=0.1)
        for call in (
            lambda: tacit.ledger.raise_cap(ana, 20, 1e-6),
            lambda: tacit.ledger.declare_version(ana, "visits", "2"),
            lambda: tacit.ledger.change_policy(ana, {}),
            lambda: tacit.ledger.backup(ana, tmp_path / "copy.ledger"),
            lambda: tacit.ledger.verify(ana),
            lambda: tacit.ledger.log(ana),
        ):
            with pytest.raises(tacit.InterfaceError, match="analyst"):
                call()
        assert not (tmp_path / "copy.ledger").exists()


def test_an_analyst_finds_no_way_to_rows_by_public_names(connect: Connect) -> None:
    """Walk everything that public names lead to: no DuckDB connection, no source, no ledger, no salt."""
    ana = connect(analyst="ana")
    answers = ana.answer(["SELECT sum(cost) FROM visits WHERE age < 40", counts(20)], epsilon=1)
    start = [ana, answers, answers[0], ana.explain(counts(30), epsilon=1), ana.cursor(), ana.budget, ana.catalog]
    seen: set[int] = set()
    kinds: set[str] = set()
    todo: list[Any] = list(start)
    while todo:
        thing = todo.pop()
        if id(thing) in seen or len(seen) > 20_000:
            continue
        seen.add(id(thing))
        kinds.add(f"{type(thing).__module__}.{type(thing).__name__}")
        if type(thing).__module__.partition(".")[0] != "tacit":
            continue
        for name in dir(thing):
            if not name.startswith("_"):
                try:
                    todo.append(getattr(thing, name))
                except (tacit.Error, AttributeError):
                    continue
    forbidden = ("duckdb", "DuckDBSource", "Ledger", "Session", "LedgerAccess", "sqlite3")
    assert not [kind for kind in kinds if any(word in kind for word in forbidden)]
    assert len(kinds) > 10
    for exact in (tacit.testing.unit_counts, tacit.testing.exact_answers):
        with pytest.raises(tacit.InterfaceError):
            exact(ana, counts(20))
