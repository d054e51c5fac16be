"""Ctrl-C while PostgreSQL counts, or sends rows: the server is told to stop, and the connection goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from support.interrupted import outcome_of

OPEN = """
from tacit.sql.backends.postgres import server
con = tacit.connect({url!r}, epsilon=2, ledger={ledger!r})
SQL = "SELECT count(*) FROM v WHERE {condition}"
"""
WAITING = """
def slow(reader, sql):
    interrupt_soon()
    with reader.stream("SELECT pg_sleep(50)::text") as stream:
        return stream.read_all()
patch.setattr(server.RowReader, "table", slow)
"""
SENDING = """
def slow(self, reader, tables, wanted):
    interrupt_soon()
    with reader.stream("SELECT generate_series(1, 100000000000) AS n") as stream:
        self._copy.register("arriving", stream)
        self._copy.execute("CREATE TEMP TABLE arrived AS SELECT count(*) FROM arriving")
patch.setattr(server.PostgresRows, "bring", slow)
"""


@pytest.mark.parametrize(
    ("slow", "condition"),
    [(WAITING, "a < 731934518"), (SENDING, "length(s) = 1")],
    ids=["counting", "sending"],
)
def test_an_interrupt_ends_an_answer(
    new_database: Callable[[], str], tmp_path: Path, slow: str, condition: str
) -> None:
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE v AS SELECT 731934517 AS a, 'x' AS s FROM generate_series(1, 50)")
    outcome = outcome_of(OPEN.format(url=url, ledger=str(tmp_path / "ledger"), condition=condition) + slow)
    assert outcome["raised"] == "KeyboardInterrupt"
    assert outcome["seconds"] < 1.8
    assert "731934517" not in outcome["shown"]
    assert (outcome["spent"], outcome["cost"]) == (0.5, 0.0)
    assert abs(outcome["value"] - 50) < 60
    with psycopg.connect(url) as connection:
        busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        assert connection.execute(busy).fetchone() == (0,), "no statement goes on in the server"
