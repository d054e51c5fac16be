"""The ledger under faults: many processes, kill -9, damaged, foreign, full and read-only files."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from support import seams
from tacit.engine.accounting import file as ledger_file
from tacit.engine.accounting.amounts import NOTHING
from tacit.engine.accounting.description import MechanismRecord
from tacit.engine.accounting.ledger import ChargeRequest, Ledger, verify
from tacit.errors import BudgetError, LedgerError

FORK = multiprocessing.get_context("fork")
NOBODY = 65534

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def spend(path: str, barrier: Barrier, results: Any, number: int) -> None:
    """One process: asks until it is refused."""
    ledger = Ledger.open(path)
    # A pause between reading the sum and writing the entry: without the lock, others would come in between.
    seams.watch(pytest.MonkeyPatch(), "append", lambda *_, **__: time.sleep(0.003))
    barrier.wait()
    granted = 0
    try:
        while True:
            ledger.charge(ChargeRequest(f"{number} {granted}", 0.1))
            granted += 1
    except BudgetError:
        pass
    finally:
        results.put(granted)


def test_eight_processes_are_granted_the_cap_exactly(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    Ledger.create(path, 4)
    barrier, results = FORK.Barrier(8), FORK.Queue()
    processes = [FORK.Process(target=spend, args=(str(path), barrier, results, i)) for i in range(8)]
    for p in processes:
        p.start()
    granted = [results.get(timeout=60) for _ in processes]
    for p in processes:
        p.join()
    assert [p.exitcode for p in processes] == [0] * 8
    assert sum(granted) == 40
    assert Ledger.open(path).left().epsilon == 0
    assert verify(path) == 41


def create_too(path: str, barrier: Barrier, results: Any) -> None:
    barrier.wait()
    results.put(Ledger.open_or_create(path, 1).salt)


def test_processes_that_create_at_once_share_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    barrier, results = FORK.Barrier(4), FORK.Queue()
    processes = [FORK.Process(target=create_too, args=(str(path), barrier, results)) for _ in range(4)]
    for p in processes:
        p.start()
    salts = {results.get(timeout=60) for _ in processes}
    for p in processes:
        p.join()
    assert len(salts) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["x.ledger"]


def charge_and_store(path: Path, run: int, pipe: int) -> None:
    """A process that lives until it is killed, and reports what the ledger has confirmed to it."""
    ledger = Ledger.open(path)
    for i in itertools.count():
        charge = ledger.charge(ChargeRequest(f"{run} {i}", 0.001))
        os.write(pipe, f"charged {charge.id}\n".encode())
        ledger.store(charge.id, f"draw for {charge.id}".encode() * 100)
        os.write(pipe, f"stored {charge.id}\n".encode())


def test_kill_9_at_random_points_never_loses_a_charge(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    Ledger.create(path, 1000)
    spent = Decimal(0)
    rng = random.Random(5)
    for run in range(40):
        read, write = os.pipe()
        process = FORK.Process(target=charge_and_store, args=(path, run, write))
        process.start()
        os.close(write)
        reports = os.read(read, 1)
        time.sleep(rng.uniform(0, 0.03))  # any moment will do, inside SQLite's commit too: no event marks those
        process.kill()
        process.join()
        while more := os.read(read, 65536):
            reports += more
        os.close(read)
        verify(path)
        ledger = Ledger.open(path)
        charges = {e.id for e in ledger.entries() if e.kind == "charge"}
        released = {e.refers for e in ledger.entries() if e.kind == "release"}
        words = [line.split() for line in reports.decode().splitlines()]
        assert {int(number) for word, number in words if word == "charged"} <= charges
        assert {int(number) for word, number in words if word == "stored"} <= released
        assert released <= charges
        now = ledger.spent().epsilon
        assert now > spent
        spent = now


def test_killed_between_charge_and_store(tmp_path: Path) -> None:
    """The charge is kept, nothing is released, and repeating the batch costs nothing."""
    path = tmp_path / "x.ledger"
    Ledger.create(path, 1)
    code = (
        "import os, sys, signal; from tacit.engine.accounting.ledger import Ledger, ChargeRequest;"
        "Ledger.open(sys.argv[1]).charge(ChargeRequest('a', 0.5)); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -signal.SIGKILL
    ledger = Ledger.open(path)
    assert ledger.spent().epsilon == Decimal("0.5")
    assert ledger.releases("a") == ()
    again = ledger.charge(ChargeRequest("a", 0.5))
    assert again.cost.epsilon == 0
    assert ledger.store(again.id, b"z") == b"z"
    assert ledger.spent().epsilon == Decimal("0.5")


def test_a_forked_process_shares_the_file_and_not_the_memory(tmp_path: Path) -> None:
    file, memory = Ledger.create(tmp_path / "x.ledger", 1), Ledger.create(None, 1)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            file.charge(ChargeRequest("child", 0.5))
            try:
                memory.charge(ChargeRequest("child", 0.5))
            except LedgerError:
                code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert file.spent().epsilon == Decimal("0.5")
    assert memory.spent().epsilon == 0


def test_a_fork_does_not_wait_for_a_lock_that_nobody_in_it_releases() -> None:
    memory = Ledger.create(None, 1)
    with memory.transaction(write=False):  # the lock is held, as by another thread at the moment of the fork
        pid = os.fork()
        if pid == 0:
            refused: list[bool] = []
            try:
                thread = threading.Thread(target=lambda: refused.append(_is_refused(memory)), daemon=True)
                thread.start()
                thread.join(5)
            finally:
                os._exit(0 if refused == [True] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _is_refused(ledger: Ledger) -> bool:
    try:
        ledger.spent()
    except LedgerError:
        return True
    return False


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "x.ledger"
    ledger = Ledger.create(path, 10)
    for i in range(20):
        ledger.store(ledger.charge(ChargeRequest(f"f{i}", 0.1, analyst="ana")).id, bytes([i]) * 3000)
    return path


@pytest.fixture
def filled(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "x.ledger"))


def refused(path: Path) -> None:
    before = path.read_bytes()
    for attempt in (lambda: Ledger.open(path), lambda: Ledger.open_or_create(path, 1), lambda: verify(path)):
        with pytest.raises(LedgerError):
            attempt()
    assert path.read_bytes() == before, "a refused file is left as it is"


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\0" + bytes(4000), os.urandom(9000)])
def test_what_is_no_ledger_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    path.write_bytes(content)
    refused(path)


def test_a_foreign_sqlite_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE meta (x)")
    connection.commit()
    connection.close()
    refused(path)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(kept: float, filled: Path) -> None:
    assert verify(filled) == 41
    content = filled.read_bytes()
    filled.write_bytes(content[: int(kept * len(content))])
    refused(filled)


TAMPERING = [
    "UPDATE entries SET epsilon = '0.01' WHERE id = 4",
    "UPDATE entries SET epsilon = '100' WHERE id = 1",
    "UPDATE entries SET epsilon = 'much' WHERE id = 4",
    "UPDATE entries SET analyst = 'ben' WHERE id = 4",
    "UPDATE entries SET detail = 'x' WHERE id = 4",
    "DELETE FROM entries WHERE id = 4",
    "DELETE FROM entries WHERE id > 1",
    "DELETE FROM entries",
    "DELETE FROM releases WHERE charge = 2",
    "UPDATE releases SET payload = x'00' WHERE charge = 2",
    "INSERT INTO releases VALUES (3, x'00')",
    "UPDATE meta SET rule = 'hope'",
    "UPDATE meta SET salt = x'00'",
    "DELETE FROM meta",
    "DROP TABLE releases",
    "PRAGMA user_version = 7",
]


@pytest.mark.parametrize("statement", TAMPERING)
def test_a_tampered_file_is_refused(statement: str, filled: Path) -> None:
    connection = sqlite3.connect(filled)
    connection.execute(statement)
    connection.commit()
    connection.close()
    refused(filled)


def test_a_ledger_that_went_back_in_time_is_refused_while_open(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.ledger", tmp_path / "copy"
    ledger = Ledger.create(path, 1)
    shutil.copy(path, copy)
    ledger.charge(ChargeRequest("a", 0.9))
    shutil.copy(copy, path)
    with pytest.raises(LedgerError, match="replaced"):
        ledger.charge(ChargeRequest("b", 0.9))


def test_a_ledger_that_was_replaced_or_removed_is_refused_while_open(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, 1)
    path.unlink()
    with pytest.raises(LedgerError, match="no ledger"):
        ledger.charge(ChargeRequest("b", 0.9))
    assert not path.exists(), "a lost ledger is not made anew"
    Ledger.create(path, 1)
    with pytest.raises(LedgerError, match="replaced"):
        ledger.charge(ChargeRequest("b", 0.9))


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "x.ledger", Path("/proc/x.ledger"), tmp_path):
        with pytest.raises(LedgerError):
            Ledger.create(place, 1)
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path)


@pytest.fixture
def folder_of_a_user() -> Iterator[Path]:
    """Where the process has the rights of an ordinary user: root, who may write everywhere, becomes one for a while.

    Not below ``tmp_path``, which other users cannot enter.
    """
    path, root = Path(tempfile.mkdtemp(prefix="tacit-user-")), os.geteuid() == 0
    if root:
        os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield path
    finally:
        if root:
            os.seteuid(0)
        path.chmod(0o700)
        shutil.rmtree(path)


def test_a_read_only_folder(folder_of_a_user: Path) -> None:
    ledger = Ledger.create(folder_of_a_user / "x.ledger", 1)
    folder_of_a_user.chmod(0o500)
    with pytest.raises(LedgerError, match="read-only"):
        ledger.charge(ChargeRequest("a", 0.5))
    with pytest.raises(LedgerError):
        Ledger.create(folder_of_a_user / "y.ledger", 1)


def test_a_read_only_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, 1)
    connect = seams.real("open ledger file")
    seams.replace(monkeypatch, "open ledger file", lambda target: connect(target.replace("mode=rw", "mode=ro")))
    with pytest.raises(LedgerError, match="read-only"):
        ledger.charge(ChargeRequest("a", 0.5))


def test_a_full_disk_charges_and_releases_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, 1)
    charge = ledger.charge(ChargeRequest("a", 0.5))
    connect = seams.real("open ledger file")

    def full(target: str) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(target)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    with monkeypatch.context() as patched:
        seams.replace(patched, "open ledger file", full)
        with pytest.raises(LedgerError, match="full"):
            ledger.store(charge.id, b"x" * 100_000)
        with pytest.raises(LedgerError, match="full"):
            ledger.charge(ChargeRequest("b", 0.5, mechanism=MechanismRecord("x" * 100_000, NOTHING, ())))
    assert ledger.spent().epsilon == Decimal("0.5")
    assert ledger.releases("a") == ()
    assert ledger.store(charge.id, b"x") == b"x"


def test_a_locked_ledger_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "_BUSY_SECONDS", 0.05)
    path = tmp_path / "x.ledger"
    ledger = Ledger.create(path, 1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        ledger.charge(ChargeRequest("a", 0.5))
    other.execute("ROLLBACK")
    other.close()
    ledger.charge(ChargeRequest("a", 0.5))


def test_messages_name_the_file_and_no_library() -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open("/nowhere/x.ledger")
    assert "/nowhere/x.ledger" in str(caught.value)
    assert "sqlite" not in str(caught.value).lower()
    assert caught.value.__cause__ is None
