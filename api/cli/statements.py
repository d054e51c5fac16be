"""Where a typed statement ends: at a semicolon that stands in no quotes and no comment."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""'(?:[^']|'')*('|\Z)|"(?:[^"]|"")*("|\Z)|--[^\n]*|/\*.*?(\*/|\Z)|;|\s+|[^'"\-/;\s]+|.""", re.DOTALL
)


def is_complete(text: str) -> bool:
    """Whether the last thing of a text, comments aside, is a semicolon.

    >>> is_complete("SELECT 1;"), is_complete("SELECT ';"), is_complete("SELECT 1; -- done"), is_complete("SELECT 1")
    (True, False, True, False)
    """
    last = ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        if not token.isspace() and not token.startswith(("--", "/*")):
            last = token
    return last == ";"


def is_empty(text: str) -> bool:
    """Whether there is no statement in a text: blanks, comments and semicolons.

    >>> is_empty(" ; -- nothing"), is_empty("SELECT 1")
    (True, False)
    """
    return all(t[0].isspace() or t[0] == ";" or t[0].startswith(("--", "/*")) for t in _TOKEN.finditer(text))
