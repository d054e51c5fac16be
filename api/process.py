"""State of the whole Python process that tacit changes, in one place, each safe when several threads use it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_RECURSION = threading.Lock()
_wanted: list[int] = []
"""The limits that callers of ``deep_recursion`` are using now."""
_before = 0
"""The limit that was set before the first of them."""


@contextmanager
def deep_recursion(limit: int) -> Iterator[None]:
    """Allow at least ``limit`` Python frames in this process while the block runs.

    Python has one recursion limit for all threads. Were each caller to set back what it had found, one that leaves
    first would lower the limit under another that still needs it, or leave it raised for good. So the callers are
    listed: the limit is the largest that any of them needs, and the last one restores the limit of before.
    """
    _change(_wanted.append, limit)
    try:
        yield
    finally:
        _change(_wanted.remove, limit)


def _change(change: Callable[[int], None], limit: int) -> None:
    global _before
    with _RECURSION:
        if not _wanted:
            _before = sys.getrecursionlimit()
        change(limit)
        sys.setrecursionlimit(max([_before, *_wanted]))
