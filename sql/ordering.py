"""The order of a column's values, so that constants can cut the column into regions.

Every supported type is a line of positions. A constant c sits on that line as a pair of cuts (below, above):
values before ``below`` are less than c, values from ``above`` on are greater, and what lies between is equal
to c. For ``age < 18.5`` on whole numbers both cuts are 19: nothing is equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .literals import Constant

Cut = Any
"""A position on a column's line: int, or (str, int) for text. Comparable within one column."""

Place = tuple[Cut, Cut]
"""Where a constant sits: (below, above)."""


class Incomparable(Exception):
    """Internal: a constant that this column cannot be compared with; ``hint`` says what to write."""

    def __init__(self, hint: str) -> None:
        super().__init__(hint)
        self.hint = hint


@dataclass(frozen=True)
class Ordering:
    """One type's line: its ends, where a constant sits on it, and how a cut is written in SQL."""

    kind: str
    """"number", "moment", "text" or "truth"; what the column is, for messages and for SUM."""
    least: Cut | None
    greatest: Cut | None
    locate: Callable[[Constant, str], Place]
    """(constant, comparison type) → (below, above); raises Incomparable."""
    literal: Callable[[Cut], str]
    """A cut as an SQL constant c such that ``column >= c`` holds from the cut on (see ``at_or_after``)."""
    value: Callable[[Cut], Any]
    """The Python value at a cut."""
    discrete: bool
    """Whether a declared range lists its groups: whole numbers and days."""

    def listed(self, low: Any, high: Any) -> range:
        """The positions from one value to another, both included."""
        first, last = (self.locate(Constant.of(value), "")[0] for value in (low, high))
        return range(first, last + 1)

    def at_or_after(self, column: str, cut: Cut) -> str:
        """SQL for "the value lies at this cut or after it"."""
        if self.kind == "text" and cut[1]:
            return f"{column} > {self.literal(cut)}"
        return f"{column} >= {self.literal(cut)}"
