"""The seal around the one step that sees private rows: nothing of them leaves it but what the step returns."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

from tacit.sql import Source

from .errors import LedgerError, OperationalError
from .process import whole_memory
from .progress_line import ProgressLine, describe_scan

_EVERY, _AGAIN, _PATIENCE = 0.1, 0.02, 1.0
"""Seconds between two looks at a step, between two interrupts of one, and until one that goes on is left to itself."""

T = TypeVar("T")


def sealed(step: Callable[[], T], source: Source | None = None) -> T:
    """Run a step that sees private rows; whatever it raises becomes a new exception that knows nothing of them.

    Even an exception that nobody prints would lead to the rows: DuckDB quotes one in its text, and a traceback keeps
    the frames, with their variables, of every function that it came through. The step has a thread of its own, because
    an interrupt reaches the main thread only: it can come while the rest is being cleared away, and would then carry
    what is not cleared yet. Whoever waits here holds no row, whatever interrupts the waiting. Then ``source`` is told
    to end what it runs, and is waited for a second: a step that has come to its noise ends by itself, and if it stores
    its release, that is the one that asking again returns. The ledger is left as a crash would leave it.

    A terminal is shown how far ``source`` is.

    Guarantee: what is raised is a new exception with a constant text, raised when the frames that held rows are gone:
    neither its traceback nor what it was raised from leads to them.
    """
    results: list[T] = []
    failures: list[BaseException] = []
    ended = threading.Event()  # a thread whose join() is interrupted is taken for ended by Python 3.11

    def work() -> None:
        try:
            with whole_memory():
                results.append(step())
        except BaseException as error:
            failures.append(_without_rows(error))
            _forget(error)
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="tacit release", daemon=True)
    with ProgressLine(describe=describe_scan) as line:
        try:
            thread.start()
            while not ended.wait(_EVERY):
                line.note(source.progress() if source is not None and line.is_due else None)
        except BaseException:
            if source is not None:
                _interrupt(source, ended)
            raise
    if not results:
        raise failures[0] if failures else _without_rows(RuntimeError())
    return results[0]


def _interrupt(source: Source, ended: threading.Event) -> None:
    """End a step, within a second or not at all. An interrupt between two statements ends neither: it is repeated."""
    last = time.monotonic() + _PATIENCE
    while not ended.is_set() and time.monotonic() < last:
        source.interrupt()
        ended.wait(_AGAIN)


def _without_rows(error: BaseException) -> BaseException:
    """What may be said of an error: that the ledger could not be written, that it was an interrupt, or nothing."""
    if isinstance(error, LedgerError):  # a constant text and the file's name
        return LedgerError(f"{error}\nhint: the batch was charged; repeating it costs nothing")
    if isinstance(error, SystemExit):
        return SystemExit(error.code if isinstance(error.code, int) else 1)
    if not isinstance(error, Exception):
        return KeyboardInterrupt()
    return OperationalError(
        "the batch was charged, and then the tables could not be read; nothing was released\n"
        "hint: check that the database is intact, and repeat the batch: that costs nothing"
    )


def _forget(error: BaseException) -> None:
    """Empty the frames of an error and of all that it was raised from, also where they hold each other in a circle."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = one.__cause__ = one.__context__ = None
