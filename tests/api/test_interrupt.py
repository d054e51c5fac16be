"""Ctrl-C during an answer: it ends soon, the ledger is left as a crash would leave it, the connection goes on."""

from __future__ import annotations

import signal
from pathlib import Path

import duckdb
import pytest
import tacit
from support import seams
from support.interrupted import outcome_of
from tacit.connection import guarded

SECRET = 731_934_517
OPEN = """
con = tacit.connect({path!r}, epsilon=2)
SQL = "SELECT count(*) FROM v WHERE a < 731934518"
"""
SLOW_SCAN = """
real = seams.real("render")
def slow(scan, salt, stored):
    sql = real(scan, salt, stored)
    if salt == bytes(32):  # the rehearsal
        return sql
    interrupt_soon()
    return "SELECT 0::BIGINT, count(*) FROM range(1000000000000) AS t(i) WHERE hash(i) = 731934517"
seams.replace(patch, "render", slow)
"""
SLOW_NOISE = """
def slow(*args, **options):
    interrupt_soon()
    time.sleep(4)
seams.replace(patch, "laplace", slow)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute(f"CREATE TABLE v AS SELECT {SECRET} AS a FROM range(50)")
    return str(tmp_path / "v.duckdb")


@pytest.mark.parametrize("slow", [SLOW_SCAN, SLOW_NOISE], ids=["scan", "noise"])
def test_an_interrupt_ends_an_answer(path: str, slow: str) -> None:
    outcome = outcome_of(OPEN.format(path=path) + slow)
    assert outcome["raised"] == "KeyboardInterrupt"
    assert outcome["seconds"] < 1.8
    assert str(SECRET) not in outcome["shown"]
    assert (outcome["spent"], outcome["cost"]) == (0.5, 0.0), "charged, and asking again costs nothing"
    assert abs(outcome["value"] - 50) < 60
    if slow is SLOW_SCAN:
        assert not [name for name in outcome["threads"] if name == "tacit release"], "the scan was ended"


def test_an_interrupt_of_the_search_charges_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with tacit.connect(path, epsilon=2) as con:
        with monkeypatch.context() as patch:
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            seams.watch(patch, "search", lambda *_, **__: signal.raise_signal(signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                con.answer([f"SELECT count(*) FROM v WHERE a < {i}" for i in range(2, 9)], epsilon=0.5)
            signal.signal(signal.SIGINT, before)
        assert con.budget.spent.epsilon == 0
        assert con.answer("SELECT count(*) FROM v", epsilon=0.5).cost.epsilon > 0


def test_what_duckdb_makes_of_an_interrupt() -> None:
    """It does so where the main thread waits for it: in rehearsals, and in queries over public tables."""
    with pytest.raises(KeyboardInterrupt), guarded():
        raise RuntimeError("Query interrupted")
