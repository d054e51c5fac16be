"""The seal around the one step that sees private rows: nothing of them leaves it but what the step returns."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import TypeVar

from .errors import LedgerError, OperationalError

T = TypeVar("T")


def sealed(step: Callable[[], T]) -> T:
    """Run a step that sees private rows; whatever it raises becomes a new exception that knows nothing of them.

    Even an exception that nobody prints would lead to the rows: DuckDB quotes one in its text, and a traceback keeps
    the frames, with their variables, of every function that it came through. The step has a thread of its own, because
    an interrupt reaches the main thread only: it can come while the rest is being cleared away, and would then carry
    what is not cleared yet. Whoever waits here holds no row, whatever interrupts the waiting.

    Guarantee: what is raised is a new exception with a constant text, raised when the frames that held rows are gone:
    neither its traceback nor what it was raised from leads to them.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(step())
        except BaseException as error:
            failures.append(_without_rows(error))
            _forget(error)

    thread = threading.Thread(target=work, name="tacit release", daemon=True)
    thread.start()
    thread.join()
    if not results:
        raise failures[0] if failures else _without_rows(RuntimeError())
    return results[0]


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
