"""kill -9 at random points of ``con.answer``: budget is never won back, and nothing is released that was not paid."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
import tacit
from tacit.engine.accounting.ledger import Entry, Ledger, verify

from .cases import LONG, policy

KILLS = 200 if LONG else 12

VICTIM = """
import os, sys, tacit

# One process for many runs: starting Python takes longer than a run, and would take most of the kills. A run is a
# child that is forked before any thread of DuckDB or BLAS exists, with all modules loaded.
import tacit.engine, duckdb, opendp.prelude
for line in sys.stdin:
    path, run = line.split()
    child = os.fork()
    if child == 0:
        con = tacit.connect(path, policy=eval(sys.argv[1]))
        con.explain("SELECT count(*) FROM v", epsilon=1, strategy="results")
        os.write(1, f"{os.getpid()} ready\\n".encode())
        for i in range(1000):
            batch = f"SELECT count(*) FROM v WHERE age < {int(run) % 90 + i % 7}; SELECT count(*) FROM v"
            answers = con.answer(batch, epsilon=0.001, strategy="results")
            os.write(1, f"{answers.cost.epsilon} {answers[0].df.iloc[0, 0]!r}\\n".encode())
        os._exit(0)
    os.write(1, f"{child} forked\\n".encode())
    os.waitpid(child, 0)
    os.write(1, b"reaped\\n")
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "v.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE v (person INTEGER, state VARCHAR, age INTEGER, cost DOUBLE)")
        connection.execute("INSERT INTO v SELECT i, 'NY', i % 90, i FROM range(500) AS r(i)")
    return path


class Victim:
    """A process whose children are killed one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", VICTIM, repr(policy(None))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, path: Path, number: int, seconds: float, *, warm: bool) -> list[tuple[Decimal, str]]:
        """Start one run and kill it so many seconds after it is ready, or (warm) after its first answer.

        Returns what it had shown: costs and values.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{path} {number}\n")
        self._process.stdin.flush()
        child = 0
        lines: list[str] = []
        for line in self._process.stdout:
            words = line.split()
            if words[-1] in ("forked", "ready"):
                child = int(words[0])
            else:
                lines.append(line)
            if words[-1] not in ("forked", "ready") if warm else words[-1] == "ready":
                break
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        for line in self._process.stdout:
            if line == "reaped\n":
                break
            lines.append(line)
        # The last line may be cut; the order of "forked" and of the child's own lines is not fixed.
        shown = [line.split() for line in lines if line.endswith("\n") and "forked" not in line]
        return [(Decimal(cost), value) for cost, value in shown]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(timeout=30) == 0


def test_kill_9_during_answer(database: Path) -> None:
    rng = random.Random(11)
    spent, shown = Decimal(0), 0
    stages: set[str] = set()
    victim = Victim()
    try:
        for number in range(KILLS):
            said = victim.run(database, number, rng.uniform(0, 0.1), warm=number % 4 > 0)
            place = Path(f"{database}.ledger")
            if not place.exists():
                assert not said, "a release without a ledger"
                stages.add("before the ledger")
                continue
            assert verify(place) >= 1
            ledger = Ledger.open(place)
            log = ledger.entries()
            now = ledger.spent().epsilon
            assert now >= spent + sum(cost for cost, _ in said), "what was shown as paid is in the ledger"
            spent = now
            shown += len(said)
            stages.add(stage(log))
        with tacit.connect(database, policy=policy(None)) as con:
            assert con.budget.spent.epsilon == spent
            con.answer("SELECT count(*) FROM v WHERE cost > 3", epsilon=0.001)
            assert con.budget.spent.epsilon == spent + Decimal("0.001")
    finally:
        victim.close()
    assert shown > 0, "some runs must have got as far as an answer"
    if LONG:
        assert {"after a charge", "after a release"} <= stages


def stage(log: tuple[Entry, ...]) -> str:
    """Where the killed run stood; on the way it checks that every release has its charge, and only one."""
    charges = [entry.id for entry in log if entry.kind == "charge"]
    released = [entry.refers for entry in log if entry.kind == "release"]
    assert set(released) <= set(charges)
    assert len(set(released)) == len(released)
    return {"charge": "after a charge", "release": "after a release"}.get(log[-1].kind, "before a charge")
