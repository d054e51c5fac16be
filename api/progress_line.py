"""One line that says how far a long search or scan is, for whoever watches a terminal; nothing for anybody else."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TextIO

from tacit.engine import Progress

PATIENCE, EVERY = 1.0, 0.2
"""Seconds before the line appears, and between two changes of it."""
SWITCH = "TACIT_PROGRESS"
"""The environment variable that switches the line off: ``0``. ``tacit --quiet`` sets it."""
_ERASE = "\r\x1b[2K"
_BLANK = "\r" + 100 * " " + "\r"
"""What erases a line of a notebook, which knows no terminal's codes."""


class ProgressLine:
    """Rewrites one line of stderr while its block runs, and erases it at the end."""

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        describe: Callable[[Any, float], str] | None = None,
    ) -> None:
        self._describe = describe_search if describe is None else describe
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._start = clock()
        self._next = self._start + PATIENCE
        self._last: Any = None
        self._shown = False
        self._erase = _BLANK if _is_notebook(self._stream) else _ERASE
        seen = self._erase is _BLANK or _is_terminal(self._stream)
        self._watched = seen and os.environ.get(SWITCH) != "0"

    def note(self, progress: Any) -> None:
        """Take what was reached; None says nothing new."""
        self._last = self._last if progress is None else progress
        self.tick()

    @property
    def is_due(self) -> bool:
        """Whether somebody watches, and it is time to show something."""
        return self._watched and self._clock() >= self._next

    def tick(self) -> bool:
        """Show it when it is time to; never asks the search to end."""
        if self._last is not None and self.is_due:
            now = self._clock()
            self._next = now + EVERY
            self._write(f"{self._erase}{self._describe(self._last, now - self._start)}")
            self._shown = True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._write(self._erase)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # nobody watches any more
            self._watched = False


def describe_search(progress: Progress, seconds: float) -> str:
    """The line: the time, the error so far, and how far above the least it can be."""
    text = f"planning, {seconds:.0f} s: error {progress.error:.4g}"
    if progress.lower_bound > 0.0:
        text += f", at most {progress.error / progress.lower_bound - 1.0:.2%} above the least of its kind"
    return text


def describe_scan(fraction: float, seconds: float) -> str:
    """The line of a scan: the time, and the part of the whole that is done.

    >>> describe_scan(0.4567, 12.3)
    'counting, 12 s: 46%'
    """
    return f"counting, {seconds:.0f} s: {fraction:.0%}"


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):
        return False


def _is_notebook(stream: TextIO | None) -> bool:
    """Whether a Jupyter kernel shows what is written: its streams are no terminals, and somebody watches."""
    return type(stream).__module__.partition(".")[0] == "ipykernel"
