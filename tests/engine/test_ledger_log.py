"""The log: sums that every entry carries, damage that is found wherever it is, and no work that grows with the log."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import seams
from tacit.engine.accounting import curator
from tacit.engine.accounting.amounts import Amount
from tacit.engine.accounting.description import MechanismRecord, PartRecord, recorded_units
from tacit.engine.accounting.ledger import Balances, Charge, ChargeRequest, Ledger, verify
from tacit.errors import BudgetError, LedgerError

LONG = os.environ.get("TACIT_AUDIT") == "long"
CAP = Amount(Decimal(1), Decimal(0))


def small(path: Path) -> Path:
    """A ledger with an entry of every kind but a balance."""
    ledger = Ledger.create(path, 10, 1e-6, policy="{}")
    record = MechanismRecord("pure", Amount(Decimal("0.5"), Decimal(0)), ())
    for i, analyst in enumerate(("ana", "ben", None)):
        paid = ledger.charge(ChargeRequest(f"f{i}", 0.5, analyst=analyst, mechanism=record))
        ledger.store(paid.id, bytes(200), [f"subject {i}", "all"])
    ledger.admit_read(3, "ben")
    ledger.charge(ChargeRequest("unused", 0.25, analyst="ana"))
    curator.declare_version(ledger, "visits", "1")
    curator.raise_cap(ledger, 20, 1e-6)
    curator.backup(ledger, path.with_name("backup.ledger"))
    return path


def first_version(path: Path) -> Path:
    """A ledger that tacit 0.1.0 wrote."""
    path.write_bytes(gzip.decompress((Path(__file__).parents[1] / "fixtures" / "ledger-0.1.0.gz").read_bytes()))
    return path


def test_the_text_of_a_mechanism_is_that_of_tacit_0_1_0(tmp_path: Path) -> None:
    """Entries are chained by digests over this text: one byte of difference would be another mechanism."""
    stored = [e.detail for e in Ledger.open(first_version(tmp_path / "old.ledger")).entries() if e.kind == "charge"]
    lattice = "a150c97abcc0b13e72713d18509fb98ca667b784917d52dc085c0fb3d5d1933f"
    records = [
        MechanismRecord(
            privacy="pure",
            cost=Amount(Decimal(epsilon), Decimal(0)),
            parts=(PartRecord("identity", "laplace", scale, 805306368, 1, 3, lattice),),
            units={"v": "pid"},
        )
        for epsilon, scale in (("0.5", 1.5 * 2**30), ("0.25", 1.5 * 2**31))
    ]
    assert stored == [*(record.text for record in records), "{}"]
    assert [recorded_units(text) for text in stored] == [{"v": "pid"}, {"v": "pid"}, {}]


@pytest.mark.parametrize("text", ["", "x", "[]", "3", '{"units":3}', '{"units":null}', "{"])
def test_what_is_no_mechanism_protects_nothing(text: str) -> None:
    assert recorded_units(text) == {}


def facts(ledger: Ledger) -> tuple[Any, ...]:
    """Everything that decides whether a charge is admitted, and what a batch is answered from."""
    now: Balances = ledger.balances()
    about = tuple(ledger.releases_about("all"))
    return now, ledger.policy, ledger.versions(), ledger.read_by("ben"), about


@pytest.fixture(scope="module", params=["small", "first version", "long"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flips") / "x.ledger"
    if request.param == "long":  # too long to be checked whole when it is opened
        grow(Ledger.create(path, 1000), 150)
        return path
    return small(path) if request.param == "small" else first_version(path)


def test_every_flipped_byte_is_harmless_or_refused(sound: Path, tmp_path: Path) -> None:
    """Never a raw exception, never another sum, and never a damaged index that ``verify`` accepts."""
    content = sound.read_bytes()
    rng = random.Random(4)
    written = [place for place, byte in enumerate(content) if byte]
    places = sorted(rng.sample(written, 300) + rng.sample(range(len(content)), 50))
    if LONG:
        places = sorted(rng.sample(range(len(content)), min(len(content), 15_000)))
    reference, number = Ledger.open(sound).balances(), verify(sound)
    path = tmp_path / "x.ledger"
    accepted = 0
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randrange(8) if rng.random() < 0.7 else 0xFF
        for leftover in ("x.ledger-wal", "x.ledger-shm"):
            (tmp_path / leftover).unlink(missing_ok=True)
        path.write_bytes(flipped)
        try:
            assert verify(path) == number
        except LedgerError:
            pass
        else:
            accepted += 1
            assert indexes_are_sound(path), place
        try:
            ledger = Ledger.open(path)
            assert ledger.balances() == reference, place
            ledger.charge(ChargeRequest("one more", 0.125, analyst="ana"))
            assert ledger.spent().epsilon == reference.spent().epsilon + Decimal("0.125")
            facts(ledger)
        except LedgerError:
            continue
    assert accepted < len(places)


def indexes_are_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


@pytest.fixture(scope="module")
def long_original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Too long to be checked whole when it is opened."""
    path = tmp_path_factory.mktemp("long") / "x.ledger"
    ledger = Ledger.create(path, 1000)
    grow(ledger, 400)
    return path


@pytest.fixture
def long(long_original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(long_original, tmp_path / "x.ledger"))


def grow(ledger: Ledger, releases: int) -> None:
    """Many charges and releases in one transaction, as they would be written one by one."""
    with ledger.transaction(write=True) as log:
        for i in range(releases):
            analyst, amount = ("ana", "ben", None)[i % 3], Amount(Decimal("0.01"), Decimal(0))
            paid = log.append("charge", amount, analyst=analyst, fingerprint=f"past {i}", detail="{}")
            log.append_release(paid, b"payload", [f"past {i}"])


def test_sums_are_those_of_the_log(long: Path) -> None:
    assert verify(long) == 801
    ledger = Ledger.open(long)
    assert ledger.spent().epsilon == 4
    assert ledger.spent("ana").epsilon == Decimal("1.34")
    assert ledger.analysts() == ("ana", "ben")


TAMPERED = [
    "UPDATE entries SET epsilon = '0.001' WHERE id = 100",
    "UPDATE entries SET standing = '' WHERE id = 801",
    "UPDATE entries SET standing = (SELECT standing FROM entries WHERE id = 2) WHERE id = 801",
    "DELETE FROM entries WHERE id = 100",
    "DELETE FROM analysts WHERE analyst = 'ana'",
    "UPDATE analysts SET last = 2 WHERE analyst = 'ana'",
    "UPDATE releases SET payload = x'00' WHERE charge = 100",
    "DELETE FROM releases WHERE charge = 100",
    "DROP INDEX entries_by_analyst",
    "CREATE TABLE more (x)",
    "UPDATE meta SET rule = 'hope'",
]


@pytest.mark.parametrize("statement", TAMPERED)
def test_verify_finds_what_opening_a_long_ledger_does_not_look_at(statement: str, long: Path) -> None:
    connection = sqlite3.connect(long)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError):
        verify(long)
    with pytest.raises(LedgerError):  # and what is damaged is not used, when it is come to
        ledger = Ledger.open(long)
        ledger.charge(ChargeRequest("new", 0.1, analyst="ana"))
        for i in (48, 49, 50):
            ledger.releases(f"past {i}")
        ledger.entries()


def test_a_lost_payload_is_not_drawn_again(long: Path) -> None:
    """A charge whose release is on record is spent, even if the release itself is gone."""
    connection = sqlite3.connect(long)
    connection.execute("DELETE FROM releases WHERE charge = 100")
    connection.commit()
    connection.close()
    ledger = Ledger.open(long)
    with pytest.raises(LedgerError):
        ledger.store(100, b"another draw")
    with pytest.raises(LedgerError):
        ledger.charge(ChargeRequest("past 49", 0.001, analyst="ben"))


class Steps:
    """Counts what SQLite does: one step is a handful of its virtual machine's instructions."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.number = 0
        connect = seams.real("open ledger file")

        def counted(target: str) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(target)
            connection.set_progress_handler(self._step, 10)
            return connection

        seams.replace(patch, "open ledger file", counted)

    def _step(self) -> int:
        self.number += 1
        return 0


def work(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The steps of everything that an answer does to a ledger."""
    ledger = Ledger.open(path)
    paid: list[Charge] = []
    request = ChargeRequest("new", 0.001, analyst="ana", analyst_cap=Amount(Decimal(100), Decimal(0)))
    calls = {
        "open": lambda: Ledger.open(path),
        "balances": ledger.balances,
        "quote": lambda: ledger.quote(request),
        "charge": lambda: paid.append(ledger.charge(request)),
        "store": lambda: ledger.store(paid[0].id, b"x", ["new"]),
        "about": lambda: ledger.releases_about("past 3"),
        "nothing about": lambda: ledger.releases_about("nothing"),
        "released": lambda: ledger.releases("past 3"),
        "read": lambda: ledger.admit_read(2, "ben"),
        "read by": lambda: ledger.read_by("ben"),
        "affords": lambda: ledger.affords("ana", CAP, [2, 4]),
        "versions": ledger.versions,
        "policy": lambda: ledger.policy,
    }
    taken = {}
    with monkeypatch.context() as patch:
        steps = Steps(patch)
        for name, call in calls.items():
            before = steps.number
            call()
            taken[name] = steps.number - before
    return taken


def test_nothing_that_an_answer_does_grows_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = tmp_path / "few.ledger", tmp_path / "many.ledger"
    for path, number in ((few, 200), (many, 4000)):
        grow(Ledger.create(path, 1000), number)
    less, more = work(few, monkeypatch), work(many, monkeypatch)
    for name, steps in more.items():
        assert steps <= 2 * less[name] + 20, (name, less[name], steps)


class TestFirstVersion:
    def test_it_is_read_without_being_changed(self, tmp_path: Path) -> None:
        path = first_version(tmp_path / "x.ledger")
        before = path.read_bytes()
        ledger = Ledger.open(path)
        assert ledger.spent().epsilon == Decimal("0.875")
        assert ledger.cap == (6, Decimal("1e-6"))
        assert [ledger.spent(name).epsilon for name in ("ana", "bob")] == [Decimal("0.5")] * 2
        assert ledger.analysts() == ("ana", "bob")
        assert ledger.versions() == {"v": "1"}
        assert ledger.read_by("bob") == {2}
        assert ledger.policy is None
        assert verify(path) == 9
        assert path.read_bytes() == before

    def test_the_first_write_brings_it_up_to_date(self, tmp_path: Path) -> None:
        path = first_version(tmp_path / "x.ledger")
        ledger = Ledger.open(path)
        assert ledger.charge(ChargeRequest("never released", 0.1)).cost.epsilon == 0, (
            "what was charged then counts today"
        )
        ledger.charge(ChargeRequest("new", 1, analyst="ana"))
        assert ledger.spent().epsilon == Decimal("1.875")
        assert ledger.spent("ana").epsilon == Decimal("1.5")
        assert verify(path) == 13
        assert Ledger.open(path).balances() == ledger.balances()
        with pytest.raises(BudgetError):
            ledger.charge(ChargeRequest("too much", 4.2))

    def test_a_refusal_leaves_it_as_it_is(self, tmp_path: Path) -> None:
        path = first_version(tmp_path / "x.ledger")
        with pytest.raises(BudgetError):
            Ledger.open(path).charge(ChargeRequest("too much", 5.5))
        assert verify(path) == 9

    def test_a_process_of_that_version_adds_no_entry_afterwards(self, tmp_path: Path) -> None:
        """It does not know of the sums, and would leave them behind."""
        path = first_version(tmp_path / "x.ledger")
        Ledger.open(path).charge(ChargeRequest("new", 1))
        connection = sqlite3.connect(path)
        with pytest.raises(sqlite3.OperationalError):
            connection.execute(f"INSERT INTO entries VALUES ({', '.join('?' * 11)})", [12, *["x"] * 10])
        connection.close()
