"""Hostile text and TPC-H: each statement explains or fails with an error of tacit's own, and costs nothing.

How long each takes is printed by benchmarks/hostile.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from tacit import Connection, errors

sys.path.insert(0, str(Path(__file__).parent))
import hostile
import tpch
from conftest import AWKWARD

sys.path.pop(0)

COLUMNS = {
    "i": {"min": -10, "max": 110}, "b": {"min": -1000, "max": 1000}, "u": {"min": 0, "max": 100},
    "d": {"min": -1.5, "max": 20.25}, "f": {"min": 0.0, "max": 19.0}, "n": {"min": 0, "max": 18.5},
    "s": {"values": ["NY", "NJ", "CA"], "other": True}, "k": {"min": 0, "max": 6},
}  # fmt: skip
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 1.0},
    "tables": {
        "t": {"columns": COLUMNS},
        "places": {"public": True},
        "people": {"privacy_unit": "pid", "max_rows_per_unit": 1},
        "visits": {"privacy_unit": "pid", "max_rows_per_unit": 4},
    },
}


def opened(schema: str, policy: dict[str, Any]) -> Iterator[Connection]:
    database = duckdb.connect(config={"threads": 1})
    database.execute(schema)
    connection = tacit.connect(database, policy=policy)
    connection.explain("SELECT 1", epsilon=0.5)  # what is loaded once is not the statement's own cost
    yield connection
    assert connection.budget.spent.epsilon == 0
    connection.close()


@pytest.fixture(scope="module")
def victim() -> Iterator[Connection]:
    yield from opened(AWKWARD, POLICY)


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Connection]:
    yield from opened(tpch.SCHEMA, tpch.POLICY)


def outcome(connection: Connection, sql: str) -> str:
    """ "explained", or the class of the error."""
    try:
        connection.explain(sql, epsilon=0.5)
        result = "explained"
    except errors.Error as error:
        assert not isinstance(error, errors.InternalError), error
        assert not isinstance(error, errors.SqlError) or error.hint
        result = type(error).__name__
    return result


def test_the_corpus_is_large() -> None:
    assert len(set(hostile.statements())) >= 300


@pytest.mark.parametrize("sql", hostile.statements(), ids=lambda sql: ascii(sql)[:50])
def test_hostile(victim: Connection, sql: str) -> None:
    outcome(victim, sql)


@pytest.mark.parametrize("number", range(1, 23))
def test_tpch(warehouse: Connection, number: int) -> None:
    result = outcome(warehouse, tpch.QUERIES[number - 1])
    assert (result == "explained") == (number in (1, 6)), result


def test_nothing_was_charged(victim: Connection) -> None:
    for sql in hostile.statements()[:100]:
        outcome(victim, sql)
    assert victim.budget.spent.epsilon == 0 and victim.budget.left.epsilon == 1


CANARIES = """
INSERT INTO t (i, b, d, s, k, "select") VALUES
    (0, 9223372036854775807, 'nan', 'secret-7f3a', 0, 'secret-7f3b'), (0, 0, 'inf', 'secret-('';--', 0, NULL);
"""


def test_no_canary_shows_in_answers_to_hostile_text(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is asked, and whether it is answered or refused: no row value in a message, a log or a plan."""
    caplog.set_level("DEBUG")
    policy = {**POLICY, "budget": {"epsilon": 10_000.0}}
    database = duckdb.connect(config={"threads": 1})
    database.execute(AWKWARD + CANARIES)
    connection = tacit.connect(database, policy=policy)
    answered = 0
    for sql in hostile.statements():
        try:
            shown = str(connection.answer(sql, epsilon=0.5, strategy="results"))
            answered += 1
        except errors.Error as error:
            assert not isinstance(error, errors.InternalError), error
            shown = f"{error} {error!r} {error.__cause__} {vars(error)}"
        assert "secret-" not in shown.replace(sql, ""), sql[:80]
    assert answered > 20, "or this test would look at errors only"
    assert "secret-" not in caplog.text
