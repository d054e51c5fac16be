"""The statements that run at the moment: how far they are, and how to end them from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import duckdb

_WATCHED = {"enable_progress_bar_print": "false", "enable_progress_bar": "true", "progress_bar_time": "0"}
"""So that DuckDB keeps count of how far a statement is. It prints nothing: tacit shows the line, or nobody does."""
CONFIGS = tuple(_WATCHED)
"""The settings that a locked DuckDB lets tacit change: they are local to a connection, and there is no other way."""


class Running:
    """Of one source. A statement enters when it may be interrupted, and leaves before its connection is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statements: list[tuple[Callable[[], Any], Callable[[], float]]] = []

    @contextmanager
    def statement(self, interrupt: Callable[[], Any], progress: Callable[[], float] = lambda: -1.0) -> Iterator[None]:
        """While the block runs, another thread may call ``interrupt``, and ask ``progress`` for a percentage."""
        entry = (interrupt, progress)
        with self._lock:
            self._statements.append(entry)
        try:
            yield
        finally:
            with self._lock:  # nobody is inside interrupt() any more when the connection is closed
                self._statements.remove(entry)

    def cursor(self, cursor: duckdb.DuckDBPyConnection) -> Any:
        """The same for whatever a cursor of DuckDB runs."""
        return self.statement(cursor.interrupt, cursor.query_progress)

    def interrupt(self) -> None:
        """End what runs now. What begins later is not touched, so a caller that wants an end repeats it."""
        with self._lock:
            for interrupt, _ in self._statements:
                with suppress(Exception):  # it has ended already, or cannot be reached
                    interrupt()

    def progress(self) -> float | None:
        """How much of the latest statement is done, from 0 to 1; None where nobody can say."""
        with self._lock, suppress(Exception):
            percent = self._statements[-1][1]() if self._statements else -1.0
            return min(percent / 100.0, 1.0) if percent >= 0.0 else None
        return None


def keep_count(cursor: duckdb.DuckDBPyConnection) -> int:
    """Let a cursor know how far its statements are; returns how many statements that took."""
    ran = 0
    with suppress(duckdb.Error):  # a configuration that somebody else has locked: then nobody can say
        for name, value in _WATCHED.items():
            ran += 1
            cursor.execute(f"SET SESSION {name} = {value}")
    return ran
