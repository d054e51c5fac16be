"""What is written where: results on stdout, everything else on stderr, colours only where somebody watches."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rich.console import Console
from rich.text import Text

WIDTH = 80
"""Columns where no terminal says how wide it is."""


class _Screen(Console):
    """A console that leaves it to the command what happens when nobody reads any more."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console(*, error: bool = False) -> Console:
    """A console for stdout or stderr as they are now. ``NO_COLOR`` and ``COLUMNS`` are obeyed."""
    return _Screen(stderr=error, highlight=False, emoji=False, markup=False)


def is_watched() -> bool:
    """Whether a person sits at both ends: answers can be asked for."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class Notes:
    """Remarks beside the result, on stderr; none of them with ``--quiet``."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        if quiet:
            os.environ["TACIT_PROGRESS"] = "0"

    def __call__(self, text: str, style: str = "dim") -> None:
        if not self.quiet:
            console(error=True).print(Text(text, style=style))


def shortened(text: str, width: int) -> str:
    """A text on one line, cut to a width.

    >>> shortened("SELECT 1\\n  FROM t", 80), shortened("SELECT count(*)", 8)
    ('SELECT 1 FROM t', 'SELECT …')
    """
    line = " ".join(text.split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
