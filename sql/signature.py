"""What is known of an expression's values before any row is seen, and what a function makes of it.

The signatures themselves are the engine's: a list that is closed, because whether a function can fail on a row is a
fact about one engine, measured for it (``backends/duckdb/functions.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

Kinds = frozenset[str]
"""Some of the kinds of values that ``backends/duckdb/types.py`` lists: truth, number, text and so on."""

LONGEST_WORD = 64
"""No number, date or truth value is written with more characters."""


@dataclass(frozen=True)
class Value:
    """What is known of an expression before any row is seen."""

    kind: str
    times: int = 0
    """A text is at most ``times`` as long as the longest text that it is made from, plus ``plus`` bytes."""
    plus: int = 0
    constant: bool = True
    made: bool = False
    """Whether a function builds a text somewhere in it."""


@dataclass(frozen=True)
class ConstantArgument:
    """An argument that must be a constant of these kinds; ``holds`` looks at its value."""

    kinds: Kinds
    holds: Callable[[object], bool] = lambda value: True


@dataclass(frozen=True)
class DatePart:
    """An argument that is the name of a part of a date."""

    names: frozenset[str]


Takes = Kinds | ConstantArgument | DatePart
Gives = str | Callable[[Sequence[Value]], "str | None"]


@dataclass(frozen=True)
class Signature:
    """One function: the arguments that it takes, by sqlglot's names, and the kind that it gives.

    ``gives`` is a kind, or a function of the arguments that returns None for a combination that is not on the list, or
    ``bound``: the kind of the type that DuckDB's binder finds. An argument that is not named here, and is given, is
    refused.
    """

    takes: Mapping[str, Takes]
    gives: Gives
    flags: frozenset[str] = frozenset()
    """Arguments that are not expressions and cannot make the function fail."""
    grows: Callable[[Sequence[Value], exp.Expr], tuple[int, int]] | None = None
    """The greatest length of the text that it makes, as (times, plus); None when no text is longer than an argument."""
    makes: bool = False
    """Whether it builds a new text."""
    optional: frozenset[str] = frozenset()
    """Arguments that may be left out; all others must be given."""
