"""Statements that run: how far they are, and their end from another thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import tacit
from support import seams
from tacit.sql.backends.duckdb.running import Running


def test_a_scan_says_how_far_it_is_and_can_be_ended(tmp_path: Path, monkeypatch: Any) -> None:
    """Of a database that tacit has opened, whose configuration is locked."""
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute("CREATE TABLE v AS SELECT range AS a FROM range(1000)")
    con = tacit.connect(tmp_path / "v.duckdb", epsilon=1)
    source, seen = con._session.source, list[float]()
    slow = "SELECT 0::BIGINT, count(*) FROM range(20000000000) AS t(i) WHERE hash(i) = 1"
    seams.replace(monkeypatch, "render", lambda scan, salt, stored: slow)
    monkeypatch.setattr(source, "rehearse", lambda scan: None)

    def watch() -> None:
        while len(seen) < 3:
            fraction = source.progress()
            seen.extend([] if fraction is None or fraction in (0.0, *seen) else [fraction])
        source.interrupt()

    assert source.progress() is None
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        con.answer("SELECT count(*) FROM v", epsilon=0.5)
        raise AssertionError("it was not ended")
    except tacit.OperationalError:
        pass
    watcher.join()
    assert 0.0 < seen[0] < seen[1] < seen[2] < 1.0
    assert source.progress() is None


def test_an_end_that_fails_is_no_error() -> None:
    def fail() -> float:
        raise ValueError

    running = Running()
    with running.statement(fail, fail):
        running.interrupt()
        assert running.progress() is None
