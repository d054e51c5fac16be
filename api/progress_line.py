"""One line that says how far a long search is, for whoever watches a terminal; nothing for anybody else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from tacit.engine import Progress

PATIENCE, EVERY = 1.0, 0.2
"""Seconds before the line appears, and between two changes of it."""
_ERASE = "\r\x1b[2K"


class ProgressLine:
    """Rewrites one line of stderr while its block runs, and erases it at the end."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._start = clock()
        self._next = self._start + PATIENCE
        self._last: Progress | None = None
        self._shown = False
        self._watched = _is_terminal(self._stream)

    def note(self, progress: Progress) -> None:
        """Take what a search has reached."""
        self._last = progress
        self.tick()

    def tick(self) -> bool:
        """Show it when it is time to; never asks the search to end."""
        now = self._clock()
        if self._watched and self._last is not None and now >= self._next:
            self._next = now + EVERY
            self._write(f"{_ERASE}{describe(self._last, now - self._start)}")
            self._shown = True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # nobody watches any more
            self._watched = False


def describe(progress: Progress, seconds: float) -> str:
    """The line: the time, the error so far, and how far above the least it can be."""
    text = f"planning, {seconds:.0f} s: error {progress.error:.4g}"
    if progress.lower_bound > 0.0:
        text += f", at most {progress.error / progress.lower_bound - 1.0:.2%} above the least of its kind"
    return text


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):
        return False
