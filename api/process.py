"""Process-wide state: what tacit changes or remembers for the whole process, in one place and safe for threads.

Three more things are process-wide and stay beside what they are about: caches of pure functions (``functools``), which
at worst compute a value twice; OpenDP's own switch for its samplers (``engine/mechanism/noise.py``), which is only set;
and the marks of DuckDB databases in memory (``sql/backends/duckdb/instance.py``), looked up and set under one lock.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

if TYPE_CHECKING:
    from tacit.engine import Ledger

T = TypeVar("T")


class Registry(Generic[T]):
    """Values by name that live as long as the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, T] = {}

    def get(self, name: str) -> T | None:
        """The value of a name, if there is one."""
        with self._lock:
            return self._values.get(name)

    def get_or_create(self, name: str, create: Callable[[], T]) -> T:
        """The value of a name; of several threads that come at once, one creates it and all get that one."""
        with self._lock:
            if name not in self._values:
                self._values[name] = create()
            return self._values[name]


memory_ledgers: Registry[Ledger] = Registry()
"""The ledgers of databases in memory, by ``Source.memory``. They live as long as the process: no connection object, and
no number of them, tells when a database is gone, and a ledger that ended before its database would be a new budget."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread for a while: on a busy machine two take up to forty times as long for small matrices.

    The limit is one for the whole process, so it is counted: the first to come sets it and the last to go restores
    what was there. Callers in several threads would otherwise restore one another's limit, and keep it for good.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


class _BlasLimit:
    """The one limit on BLAS's threads, and how many callers want it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._callers = 0
        self._restore: Callable[[], None] = lambda: None

    def enter(self) -> None:
        with self._lock:
            if self._callers == 0:
                with _in_control():
                    self._restore = _blas().limit(limits=1).restore_original_limits
            self._callers += 1

    def leave(self) -> None:
        with self._lock:
            self._callers -= 1
            if self._callers == 0:
                with _in_control():
                    self._restore()


_blas_limit = _BlasLimit()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread change the limit: from 3.8 on threadpoolctl ignores all but the thread that was the first to.

    Nobody is in control afterwards, so that a caller who has set a limit of his own around this can take it back.
    """
    release = getattr(OpenBLASController, "clear_controlling_thread", lambda *, force: None)
    release(force=True)
    try:
        yield
    finally:
        release(force=True)


@cache
def _blas() -> ThreadpoolController:
    """Without OpenMP, which keeps its limit per thread: another thread may come to restore it."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def deep_recursion(limit: int) -> Iterator[None]:
    """Allow at least ``limit`` Python frames in this process while the block runs.

    Python has one recursion limit for all threads. Were each caller to restore the limit that it saw when it came, one
    that leaves first would lower the limit under another that still needs it, or leave it raised for good. So the
    callers are listed: the limit is the largest that any of them needs, and the last one restores the original limit.
    """
    _recursion_limit.enter(limit)
    try:
        yield
    finally:
        _recursion_limit.leave(limit)


class _RecursionLimit:
    """Python's one recursion limit, and the limits that callers want now."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._original = 0
        self._wanted: list[int] = []

    def enter(self, limit: int) -> None:
        with self._lock:
            if not self._wanted:
                self._original = sys.getrecursionlimit()
            self._wanted.append(limit)
            sys.setrecursionlimit(max(self._original, *self._wanted))

    def leave(self, limit: int) -> None:
        with self._lock:
            self._wanted.remove(limit)
            sys.setrecursionlimit(max([self._original, *self._wanted]))


_recursion_limit = _RecursionLimit()


def limit_memory(limit: int | None) -> None:
    """Allow this process so many bytes of its own, or as many as it may have; for processes that plan.

    Where the system has no such limit, there is none.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = most if limit is None else limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


@contextmanager
def whole_memory() -> Iterator[None]:
    """Without the limit on memory for a while: whether a scan fails must not depend on what its rows take."""
    try:
        import resource
    except ImportError:
        yield
        return
    limit, most = resource.getrlimit(resource.RLIMIT_DATA)
    if limit == most:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def _renew_locks() -> None:
    """In a forked process: a lock that another thread held when the process forked is never released there."""
    for holder in (memory_ledgers, _blas_limit, _recursion_limit):
        holder._lock = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew_locks)
