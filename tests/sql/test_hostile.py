"""Hostile text and TPC-H: each statement explains or fails with an error of tacit's own, and neither costs anything.

How long each takes is printed by benchmarks/hostile.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from tacit import errors

sys.path.insert(0, str(Path(__file__).parent))
import hostile
import tpch
from support.awkward import AWKWARD

sys.path.pop(0)

COLUMNS = {
    "i": {"min": -10, "max": 110}, "b": {"min": -1000, "max": 1000}, "u": {"min": 0, "max": 100},
    "d": {"min": -1.5, "max": 20.25}, "f": {"min": 0.0, "max": 19.0}, "n": {"min": 0, "max": 18.5},
    "s": {"values": ["NY", "NJ", "CA"], "other": True}, "k": {"min": 0, "max": 6},
}  # fmt: skip
POLICY: dict[str, Any] = {
    "budget": {"epsilon": 1000.0},
    "tables": {
        "t": {"columns": COLUMNS},
        "places": {"public": True},
        "people": {"privacy_unit": "pid", "max_rows_per_unit": 1},
        "visits": {"privacy_unit": "pid", "max_rows_per_unit": 4},
    },
}


CANARIES = """
INSERT INTO t (i, b, d, s, k, "select") VALUES
    (0, 9223372036854775807, 'nan', 'secret-7f3a', 0, 'secret-7f3b'), (0, 0, 'inf', 'secret-('';--', 0, NULL);
"""


class Victim:
    """A connection that everything is asked of, and what it was charged for answers."""

    def __init__(self, path: Path, schema: str, policy: dict[str, Any]) -> None:
        with duckdb.connect(str(path)) as database:
            database.execute(schema)
        self.connection = tacit.connect(path, policy=policy)
        self.charged = Decimal(0)

    def ask(self, sql: str) -> tuple[str, str]:
        """ "explained" or the class of the error, and everything that was shown; what is explained is answered too."""
        try:
            shown = f"{self.connection.explain(sql, epsilon=0.5, strategy='results')}"
            answers = self.connection.answer(sql, epsilon=0.5, strategy="results")
        except errors.Error as error:
            assert not isinstance(error, errors.InternalError), error
            assert not isinstance(error, errors.SqlError) or error.hint
            return type(error).__name__, f"{error} {error!r} {error.__cause__} {vars(error)}"
        self.charged += answers.cost.epsilon
        return "explained", f"{shown} {answers}"

    def close(self) -> None:
        """Explaining and refusing cost nothing."""
        assert self.connection.budget.spent.epsilon == self.charged
        self.connection.close()


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    victim = Victim(tmp_path_factory.mktemp("hostile") / "v.duckdb", AWKWARD + CANARIES, POLICY)
    yield victim
    victim.close()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    warehouse = Victim(tmp_path_factory.mktemp("tpch") / "w.duckdb", tpch.SCHEMA, tpch.POLICY)
    yield warehouse
    warehouse.close()


def test_the_corpus_is_large() -> None:
    assert len(set(hostile.statements())) >= 300


@pytest.mark.parametrize("sql", hostile.statements(), ids=lambda sql: ascii(sql)[:50])
def test_hostile(victim: Victim, sql: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is asked, and whether it is answered or refused: no row value in a message, a log or a plan."""
    caplog.set_level("DEBUG")
    _, shown = victim.ask(sql)
    assert "secret-" not in shown.replace(sql, "")
    assert "secret-" not in caplog.text


def test_some_of_it_is_answered(victim: Victim) -> None:
    """Or the test above would look at errors only."""
    short = [sql for sql in hostile.statements() if sql.startswith(f"{hostile.COUNT} WHERE") and len(sql) < 60]
    assert sum(victim.ask(sql)[0] == "explained" for sql in short) > 20


@pytest.mark.parametrize("number", range(1, 23))
def test_tpch(warehouse: Victim, number: int) -> None:
    found, _ = warehouse.ask(tpch.QUERIES[number - 1])
    assert (found == "explained") == (number in (1, 2, 6, 11, 14, 16, 19)), found  # 2, 11 and 16 read public tables
