"""The ledger: exact sums, caps, releases that are read again, refusals that write nothing."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tacit.engine.accounting import curator
from tacit.engine.accounting.amounts import Amount
from tacit.engine.accounting.description import MechanismRecord, PartRecord
from tacit.engine.accounting.ledger import ChargeRequest, Ledger, verify
from tacit.errors import BudgetError, InternalError, LedgerError, PrivacyParameterError, ProgrammingError


def amount(epsilon: str, delta: str = "0") -> Amount:
    return Amount(Decimal(epsilon), Decimal(delta))


@pytest.fixture(params=["file", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "x.ledger" if request.param == "file" else None, 1, 1e-6)


def test_charges_add_up_exactly_to_the_cap(ledger: Ledger) -> None:
    for i in range(10):
        ledger.charge(ChargeRequest(f"f{i}", 0.1, 1e-7))
    assert ledger.spent() == ledger.cap == amount("1", "0.000001")
    assert ledger.left() == amount("0")
    with pytest.raises(BudgetError):
        ledger.charge(ChargeRequest("more", Decimal("1e-300")))


def test_a_refusal_says_what_was_asked_and_left_and_writes_nothing(ledger: Ledger) -> None:
    ledger.charge(ChargeRequest("a", 0.75))
    before = ledger.entries()
    with pytest.raises(BudgetError, match=r"epsilon 0\.5.*0\.25 left.*0\.25 is missing") as caught:
        ledger.charge(ChargeRequest("b", 0.5))
    assert caught.value.asked == amount("0.5")
    assert caught.value.left == amount("0.25", "0.000001")
    with pytest.raises(BudgetError, match=r"delta"):
        ledger.charge(ChargeRequest("b", 0.1, 2e-6))
    assert ledger.entries() == before


@pytest.mark.parametrize("epsilon", [float("nan"), 0, -1, float("inf"), "0.1", None, True])
def test_what_is_no_amount_is_refused_before_anything_is_written(ledger: Ledger, epsilon: Any) -> None:
    with pytest.raises(PrivacyParameterError):
        ledger.charge(ChargeRequest("a", epsilon))
    assert ledger.spent() == amount("0")


def test_an_unreleased_charge_is_handed_back(ledger: Ledger) -> None:
    first = ledger.charge(ChargeRequest("a", 0.5, 1e-7))
    again = ledger.charge(ChargeRequest("a", 0.5, 1e-7))
    smaller = ledger.charge(ChargeRequest("a", 0.25))
    assert first.cost == amount("0.5", "1e-7")
    assert again.id == smaller.id == first.id
    assert again.cost == smaller.cost == amount("0")
    assert ledger.spent().epsilon == Decimal("0.5")
    other_analyst = ledger.charge(ChargeRequest("a", 0.1, analyst="ana"))
    other_batch = ledger.charge(ChargeRequest("b", 0.1))
    assert len({first.id, other_analyst.id, other_batch.id}) == 3


def test_an_unreleased_charge_covers_no_more_than_it_paid(ledger: Ledger) -> None:
    first = ledger.charge(ChargeRequest("a", 0.25))
    assert ledger.charge(ChargeRequest("a", 0.5)).id != first.id
    assert ledger.charge(ChargeRequest("a", 0.1, 1e-9)).id != first.id
    assert ledger.spent() == amount("0.85", "1e-9")


def test_a_released_charge_is_not_handed_back(ledger: Ledger) -> None:
    first = ledger.charge(ChargeRequest("a", 0.25))
    ledger.store(first.id, b"z")
    second = ledger.charge(ChargeRequest("a", 0.25))
    assert second.id != first.id
    assert second.cost.epsilon == Decimal("0.25")


def test_the_first_release_wins(ledger: Ledger) -> None:
    record = MechanismRecord("pure", amount("0.25"), (), {"t": "a row"})
    charge = ledger.charge(ChargeRequest("a", 0.25, mechanism=record))
    assert ledger.releases("a") == ()
    assert ledger.store(charge.id, b"first") == b"first"
    assert ledger.store(charge.id, b"second") == b"first"
    (stored,) = ledger.releases("a")
    assert (stored.charge_id, stored.payload) == (charge.id, b"first")
    assert [e.detail for e in ledger.entries() if e.kind == "charge"] == [record.text]
    assert (stored.epsilon, stored.delta, stored.analyst) == (Decimal("0.25"), 0, None)
    assert "first" not in repr(stored)


def test_a_race_to_store_has_one_winner(ledger: Ledger) -> None:
    charge = ledger.charge(ChargeRequest("a", 0.25))
    barrier = threading.Barrier(8)
    seen: list[bytes] = []

    def run(i: int) -> None:
        barrier.wait()
        seen.append(ledger.store(charge.id, f"draw {i}".encode()))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(seen) == 8 and len(set(seen)) == 1


def test_a_release_needs_a_charge(ledger: Ledger) -> None:
    for number in (1, 99):  # entry 1 is the cap
        with pytest.raises(InternalError):
            ledger.store(number, b"x")


def test_releases_come_oldest_first(ledger: Ledger) -> None:
    for i in range(3):
        ledger.store(ledger.charge(ChargeRequest("a", 0.1)).id, str(i).encode())
    assert [r.payload for r in ledger.releases("a")] == [b"0", b"1", b"2"]


def test_an_analyst_is_bound_by_both_caps(ledger: Ledger) -> None:
    own = amount("0.5", "1e-6")
    ledger.charge(ChargeRequest("a", 0.4, analyst="ana", analyst_cap=own))
    with pytest.raises(BudgetError, match="'ana'") as caught:
        ledger.charge(ChargeRequest("b", 0.2, analyst="ana", analyst_cap=own))
    assert caught.value.left.epsilon == Decimal("0.1")
    ledger.charge(ChargeRequest("b", 0.5, analyst="ben"))
    with pytest.raises(BudgetError, match="the budget has") as caught:
        ledger.charge(ChargeRequest("c", 0.2, analyst="cem", analyst_cap=own))
    assert ledger.left("ana", own).epsilon == Decimal("0.1")
    assert ledger.left("cem", own).epsilon == Decimal("0.1")
    assert ledger.spent("ana").epsilon == Decimal("0.4")
    assert ledger.analysts() == ("ana", "ben")


def test_a_smaller_cap_of_the_connection_binds(ledger: Ledger) -> None:
    with pytest.raises(BudgetError):
        ledger.charge(ChargeRequest("a", 0.4, cap=amount("0.3")))
    assert ledger.left(cap=amount("0.3")).epsilon == Decimal("0.3")
    with pytest.raises(BudgetError):
        ledger.charge(ChargeRequest("a", 1.5, cap=amount("30")))


def test_reading_counts_once_against_the_readers_cap(ledger: Ledger) -> None:
    charge = ledger.charge(ChargeRequest("a", 0.4, analyst="ana"))
    ledger.store(charge.id, b"x")
    assert ledger.admit_read(charge.id, "ana", amount("0.1")) == amount("0")
    assert ledger.admit_read(charge.id, None) == amount("0")
    assert ledger.admit_read([charge.id, charge.id], "ben", amount("0.5")) == amount("0.4")
    assert ledger.admit_read(charge.id, "ben", amount("0.5")) == amount("0")
    assert ledger.spent("ben") == amount("0.4")
    assert ledger.spent() == amount("0.4"), "the whole budget is not touched"
    with pytest.raises(BudgetError, match="'cem'"):
        ledger.admit_read(charge.id, "cem", amount("0.3"))
    with pytest.raises(BudgetError):
        ledger.charge(ChargeRequest("b", 0.2, analyst="ben", analyst_cap=amount("0.5")))
    with pytest.raises(InternalError):
        ledger.admit_read(77, "ben", amount("0.5"))


def test_the_cap_of_a_file_is_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    first = Ledger.open_or_create(path, 1, 1e-9)
    first.charge(ChargeRequest("a", 0.5))
    second = Ledger.open_or_create(path, 100)
    assert second.cap == amount("1", "1e-9")
    assert second.salt == first.salt and len(first.salt) == 32
    assert second.spent() == amount("0.5")
    assert second.rule == "sum"
    assert Ledger.create(tmp_path / "y.ledger", 1).salt != first.salt
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.ledger", "y.ledger"], "no drafts, no log files left"


def test_create_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    Ledger.create(path, 1).charge(ChargeRequest("a", 1))
    with pytest.raises(LedgerError, match="already"):
        Ledger.create(path, 1)
    assert Ledger.open(path).left() == amount("0")


@pytest.mark.parametrize("cap", [0, -1, float("nan"), "1"])
def test_a_cap_is_an_amount(cap: Any, tmp_path: Path) -> None:
    with pytest.raises(PrivacyParameterError):
        Ledger.create(tmp_path / "x.ledger", cap)
    assert not list(tmp_path.iterdir())


def test_unknown_rule(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="rule"):
        Ledger.create(tmp_path / "x.ledger", 1, rule="hope")


def test_verify_counts_entries(tmp_path: Path) -> None:
    path = tmp_path / "sub dir & ?#%.ledger"
    ledger = Ledger.create(path, 1)
    ledger.store(ledger.charge(ChargeRequest("a", 0.1)).id, b"x")
    assert verify(path) == 3


def test_releases_are_found_by_what_they_are_about(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "x.ledger", 10)
    for i, subjects in enumerate((["visits"], ["visits", "labs", "visits"], [])):
        ledger.store(ledger.charge(ChargeRequest(f"f{i}", 1)).id, f"{i}".encode(), subjects)
    assert [r.payload for r in ledger.releases_about("visits")] == [b"0", b"1"]
    assert [r.payload for r in ledger.releases_about("labs")] == [b"1"]
    assert ledger.releases_about("nothing") == ()
    assert verify(tmp_path / "x.ledger") == 7


def test_a_quote_is_what_charging_adds() -> None:
    for rule, delta in (("sum", 0), ("zcdp", 1e-6)):
        ledger = Ledger.create(None, 10, delta, rule=rule)
        for name in ("a", "b"):
            request = ChargeRequest(name, 0.1, rho=Decimal("0.005"))
            quoted = ledger.quote(request)
            assert ledger.charge(request).cost == quoted
            assert ledger.quote(request).epsilon == 0, "a charge that was never released is handed back"


def test_what_an_analyst_can_afford() -> None:
    ledger = Ledger.create(None, 10)
    paid = ledger.charge(ChargeRequest("a", 1, analyst="bob"))
    cap = Amount(Decimal("1.5"), Decimal(0))
    assert ledger.affords("ana", cap, [paid.id])
    assert ledger.affords("ana", cap, [paid.id], ChargeRequest("b", 0.5))
    assert not ledger.affords("ana", cap, [paid.id], ChargeRequest("b", 0.6))
    assert ledger.affords("ana", None, [paid.id], ChargeRequest("b", 9))


def test_threads_that_ask_for_versions_while_they_change(tmp_path: Path) -> None:
    """A thread may still see the log as it was before what another thread has read of it."""
    ledger = Ledger.create(tmp_path / "x.ledger", 1)
    errors: list[BaseException] = []
    finished = threading.Event()

    def ask() -> None:
        try:
            while not finished.is_set():
                ledger.versions()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i in range(50):
        curator.declare_version(ledger, "t", str(i))
    finished.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ledger.versions() == {"t": "49"}


def test_a_request_with_a_pending_charge_gets_that_one_or_none(ledger: Ledger) -> None:
    first = ledger.charge(ChargeRequest("a", 0.25))
    with pytest.raises(ProgrammingError, match="charged before and never released"):
        ledger.charge(ChargeRequest("b", 0.25, pending=first.id))
    assert ledger.spent() == amount("0.25")
    again = ledger.charge(ChargeRequest("a", 0.25, pending=first.id))
    assert (again.id, again.cost) == (first.id, amount("0"))
    ledger.store(first.id, b"released")
    assert ledger.charge(ChargeRequest("b", 0.25, pending=first.id)).cost == amount("0.25")


def test_an_unused_charge_is_taken_up_only_by_the_mechanism_on_record(tmp_path: Path) -> None:
    """Another version of tacit may find other questions for the same request; the record must say what is measured."""

    def request(lattice: str) -> ChargeRequest:
        part = PartRecord("identity", "laplace", 1.0, 1, 1, 1, lattice)
        return ChargeRequest("a", 0.5, mechanism=MechanismRecord("pure", Amount(Decimal("0.5"), Decimal(0)), (part,)))

    ledger = Ledger.create(tmp_path / "x.ledger", 2)
    first = ledger.charge(request("one"))
    assert ledger.charge(request("one")) == replace(first, cost=Amount(Decimal(0), Decimal(0)))
    assert ledger.quote(request("other")).epsilon == Decimal("0.5")
    assert ledger.charge(request("other")).id != first.id


def test_reading_is_affordable_only_if_the_whole_can_pay_the_rest(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "x.ledger", 1)
    paid = ledger.charge(ChargeRequest("a", 0.8, analyst="bob"))
    assert ledger.affords("ana", None, [paid.id], ChargeRequest("b", 0.2))
    assert not ledger.affords("ana", None, [paid.id], ChargeRequest("b", 0.3))


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_ledger_is_not_copied_out_of_its_process(copied: Callable[[Ledger], object], tmp_path: Path) -> None:
    for path in (None, tmp_path / "x.ledger"):
        with pytest.raises(TypeError, match="its salt is secret"):
            copied(Ledger.create(path, 1))
