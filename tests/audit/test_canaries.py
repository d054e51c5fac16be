"""Rows that must not show: in no error, log, repr, plan or ledger, whatever is asked.

Words are looked for. NaN and 0 cannot be looked for, so everything that is shown is also compared with what a
database without the canaries shows: it must be the same to the last letter.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from support import seams
from tacit import Connection
from tacit.engine import unpack

from .cases import LONG
from .statements import BAD, GOOD, UNLUCKY

LARGEST = 2**63 - 1
WORDS = ("secret-", str(LARGEST), f"{float(LARGEST)!r}")
CANARIES: list[tuple[Any, ...]] = [
    ("secret-7f3a", LARGEST, float("nan"), 0, True),
    ("secret-7f3b", LARGEST, float("nan"), 0, None),
    ("secret-(", -LARGEST, float("-inf"), 0, False),
    ("secret-'; DROP", 0, float("inf"), None, True),
]
ORDINARY: list[tuple[Any, ...]] = [("a", 5, 0.25, 1, True), ("b", 7, 0.75, 2, False)]
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 1000, "delta": 1e-3},
    "tables": {
        "v": {
            "version": "1",
            "columns": {
                "name": {"values": ["a", "b"], "other": True},
                "big": {"min": 0, "max": 100_000_000},
                "ratio": {"min": 0.0, "max": 1.0},
                "zero": {"min": 0, "max": 9},
            },
        }
    },
}


def fill(database: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]) -> None:
    database.execute("CREATE TABLE v (name VARCHAR, big BIGINT, ratio DOUBLE, zero INTEGER, flag BOOLEAN, day DATE)")
    database.executemany("INSERT INTO v VALUES (?, ?, ?, ?, ?, DATE '2024-01-31')", rows)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Connection, Connection]]:
    """A connection to a table with the canaries, and one to a table without."""
    opened = []
    for rows in (ORDINARY + CANARIES, ORDINARY):
        database = duckdb.connect()
        fill(database, rows)
        opened.append(tacit.connect(database, policy=POLICY))
    yield opened[0], opened[1]
    for con in opened:
        con.close()


def shown_by(error: BaseException) -> Iterator[str]:
    """Everything that an exception, its causes and a curious error reporter would print."""
    seen: BaseException | None = error
    while seen is not None:
        yield f"{type(seen).__name__} {seen} {seen!r} {seen.args} {getattr(seen, '__notes__', '')} {vars(seen)}"
        seen = seen.__cause__ or seen.__context__


def locals_of(error: BaseException) -> str:
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


@dataclass(frozen=True)
class Shown:
    """What a statement shows."""

    fixed: list[str]
    """What must not depend on the rows at all."""
    free: list[str]
    """Noisy values and the insides of frames: they may differ, but must hold no canary."""
    refused: bool

    def words(self) -> set[str]:
        return {word for word in WORDS for text in (*self.fixed, *self.free) if word in text}


def ask(con: Connection, sql: str) -> Shown:
    fixed, free, refused = [], [], False
    # The strategy is named to save the search for one; what is looked for here does not depend on it.
    for call in (con.explain, con.answer):
        try:
            result = call(sql, epsilon=0.01, strategy="results")
        except Exception as error:
            refused = True
            fixed += shown_by(error)
            if call == con.answer:
                free.append(locals_of(error))
            continue
        if isinstance(result, tacit.Answers):
            fixed += [str(list(answer.df.columns)) for answer in result]
            free += [str(result), repr(result), repr(vars(result)), result.df().to_string()]
        else:
            fixed += [str(result), repr(result)]
    if not refused:
        free += [repr(con), repr(vars(con)), str(con.budget), repr(con.budget), repr(con.catalog)]
    return Shown(fixed, free, refused)


@pytest.mark.parametrize("sql", GOOD + UNLUCKY + BAD)
def test_nothing_shows(
    sql: str,
    both: tuple[Connection, Connection],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = []
    for con in both:
        caplog.clear()
        shown = ask(con, sql)
        shown.fixed.extend([caplog.text, *capfd.readouterr()])
        seen.append(shown)
    assert seen[0].fixed == seen[1].fixed, "what is shown depends on the rows"
    assert "secret-" not in seen[0].words()
    assert seen[0].words() == seen[1].words(), "a canary shows (the largest integer is also the end of a type)"
    if sql in GOOD:
        assert not seen[0].refused, "or this test would look at errors only"


def test_the_canaries_would_be_seen() -> None:
    """DuckDB's own messages do quote them."""
    database = duckdb.connect()
    fill(database, CANARIES)
    with pytest.raises(duckdb.Error, match="secret-"):
        database.execute("SELECT CAST(name AS INTEGER) FROM v").fetchall()


def test_the_ledgers_bytes(tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    with duckdb.connect(str(path)) as database:
        fill(database, ORDINARY + CANARIES)
    with tacit.connect(path, policy=POLICY, analyst="ana") as con:
        for sql in (*GOOD, *UNLUCKY, *BAD)[:: 1 if LONG else 4]:
            try:
                con.answer(sql, epsilon=0.01, strategy="results")
            except tacit.Error:
                continue
        con.answer(GOOD[:5], epsilon=0.5, delta=1e-6, strategy="identity")
        files = [file for file in tmp_path.rglob("*") if file != path and file.is_file()]
        assert files
        for file in files:
            content = file.read_bytes()
            assert not any(word.encode() in content for word in WORDS)
            for packed in (struct.pack("<q", LARGEST), struct.pack(">q", LARGEST)):
                assert packed not in content
    with sqlite3.connect(f"{path}.ledger") as ledger:
        payloads = [bytes(row[0]) for row in ledger.execute("SELECT payload FROM releases")]
    ledger.close()
    assert len(payloads) >= 6
    for payload in payloads:
        for measurement in unpack(payload):
            assert not np.isin([LARGEST, -LARGEST], measurement.noisy).any()
            assert not np.isin([LARGEST, -LARGEST], measurement.L_int).any()


def test_a_source_that_fails_on_a_row_says_nothing(
    both: tuple[Connection, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a scan ever fail for a reason that lies in a row, then in one constant sentence."""
    con = both[0]
    seams.replace(
        monkeypatch,
        "render",
        lambda scan, salt, stored: (
            f"SELECT sum(CAST(name AS INTEGER)) FROM {stored(scan.table, ['name'])} WHERE name LIKE 'secret-%'"
        ),
    )
    seams.replace(monkeypatch, "rehearse", lambda self, scan: None)
    with pytest.raises(tacit.OperationalError) as caught:
        con.answer("SELECT count(*) FROM v WHERE zero = 8", epsilon=0.01, refresh=True)
    texts = [*shown_by(caught.value), locals_of(caught.value)]
    assert not any("secret-" in text for text in texts)
