"""How numbers, queries and tables are written for a reader: plain text of 80 columns, and HTML for notebooks."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

WIDTH = 80
"""Columns of a terminal that nobody has widened."""
ROWS = 40
"""Of a printed table; of longer ones the first and the last are shown."""
TEXT = 60
"""Characters of a query's text in a frame."""
_NARROWEST = 8
"""Characters of a column that was cut to fit."""
TOTAL, MISSING = "(all)", "NULL"
"""What stands for the key of a total, and for a key that is NULL."""


def number(value: float) -> str:
    """A figure to three digits, or to the ones: ``6.13``, ``61.3``, ``12,345``."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if size == 0 or size >= 99.95:
        return f"{value:,.0f}" if size < 1e15 else f"{value:.3g}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}" if size >= 0.0995 else f"{value:.2g}"


def width(value: float) -> str:
    """A half-width to two digits, or to the ones, rounded up: an error is never said to be smaller than it is."""
    if not math.isfinite(value) or value <= 0:
        return number(value)
    step = 10.0 ** min(math.floor(math.log10(value)) - 1, 0)
    rounded = math.ceil(value / step * (1 - 1e-9)) * step
    digits = max(0, -round(math.log10(step)))
    return f"{rounded:,.{digits}f}" if digits <= 6 and rounded < 1e15 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share to two digits: ``0.62%``, ``5.1%``, ``120%``."""
    if not math.isfinite(share):
        return ""
    points = 100 * share
    if points >= 9.95:
        return f"{points:,.0f}%"
    return f"{points:.1f}%" if points >= 0.995 else f"{points:.2g}%"


def odds(confidence: float) -> str:
    """``19 times out of 20``."""
    share = Fraction(confidence).limit_denominator(1_000_000)
    if share.numerator == share.denominator - 1 and math.isclose(float(share), confidence, rel_tol=1e-12):
        return f"{share.numerator:,} times out of {share.denominator:,}"
    return f"{100 * confidence:.6g}% of the time"


def plural(count: int, one: str, many: str) -> str:
    """``1 query``, ``4 queries``."""
    return f"{count:,} {one if count == 1 else many}"


def exact(value: Decimal) -> str:
    """An exact decimal without an exponent."""
    return f"{value:f}"


def one_line(sql: str) -> str:
    """The text of a query with its white space made single."""
    return " ".join(sql.split())


def shortened(text: str, length: int) -> str:
    """At most so many characters, with an ellipsis where something is missing."""
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"


def cut_inside(text: str, length: int) -> str:
    """At most so many characters, of both ends: queries of a batch differ at their ends most."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return text[: length - 1 - tail] + "…" + text[len(text) - tail :]


def query_name(index: int, sql: str, column: str = "") -> str:
    """A query in a table: its number, the name of its only column where it has one, and its text after SELECT.

    It is to be cut to what fits.
    """
    text = one_line(sql)
    named = f" {column}" if column and "(" not in column else ""
    return f"{index}{named}: {text[7:] if text[:7].upper() == 'SELECT ' else text}"


def text_table(
    columns: Mapping[str, Sequence[str]],
    *,
    left: Sequence[str] = (),
    headings: Mapping[int, str] | None = None,
    limit: int = WIDTH,
) -> str:
    """Columns of text under their names, no line longer than ``limit``.

    Columns in ``left`` are text: they stand to the left, and the longest of them are cut until the table fits. Columns
    of text without any are left out. ``headings`` stand on lines of their own before the rows they are for. Of a long
    table the first and the last rows are shown.
    """
    columns = {name: cells for name, cells in columns.items() if name not in left or any(cells)}
    count = len(next(iter(columns.values()), ()))
    shown = list(range(count)) if count <= ROWS else [*range(ROWS // 2), *range(count - ROWS // 2, count)]
    cells = {name: [name, *(column[i] for i in shown)] for name, column in columns.items()}
    widths = {name: max(map(len, column)) for name, column in cells.items()}
    while sum(widths.values()) + 2 * (len(widths) - 1) > limit:
        longest = max((name for name in cells if name in left), key=lambda n: widths[n], default=None)
        if longest is None or widths[longest] <= _NARROWEST:
            break
        widths[longest] -= 1
    headed, last = dict(headings or {}), -1
    lines = []
    for place, row in zip([-1, *shown], zip(*cells.values(), strict=True), strict=True):
        if place > last + 1:
            lines.append("…")
            before = max((start for start in headed if start <= place), default=place)
            headed.setdefault(place, headed.get(before, ""))
        if headed.get(place):
            lines.append(cut_inside(headed[place], limit))
        last = place
        parts = [
            cut_inside(text, widths[name]).ljust(widths[name]) if name in left else text.rjust(widths[name])
            for name, text in zip(cells, row, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    if count > ROWS:
        lines.append(f"{count:,} rows, of which {ROWS} are shown")
    return "\n".join(lines)


def footnotes(notes: Sequence[str]) -> tuple[list[str], list[str]]:
    """(a mark for each row, the lines that say what the marks mean): tables have no room for sentences."""
    numbers = {note: i for i, note in enumerate(dict.fromkeys(note for note in notes if note), start=1)}
    marks = [f"[{numbers[note]}]" if note else "" for note in notes]
    return marks, [f"[{i}] {note}" for note, i in numbers.items()]


def wrapped(paragraphs: Iterable[str], *, first: str = "", rest: str = "  ") -> list[str]:
    """Sentences in lines that fit."""
    return [
        line
        for words in paragraphs
        for line in textwrap.wrap(
            words, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        )
    ]


def html_table(columns: Mapping[str, Sequence[str]], *, left: Sequence[str] = ()) -> str:
    """The same as a table of a notebook; cells are escaped, because labels and texts may hold anything."""
    columns = {name: cells for name, cells in columns.items() if name not in left or any(cells)}
    if not columns:
        return ""
    count = len(next(iter(columns.values())))
    shown: list[int | None] = list(range(count))
    if count > ROWS:
        shown = [*range(ROWS // 2), None, *range(count - ROWS // 2, count)]
    style = {name: "text-align:left" if name in left else "text-align:right" for name in columns}
    head = "".join(f'<th style="{style[name]}">{html.escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{style[name]}">{"…" if i is None else html.escape(cells[i])}</td>'
            for name, cells in columns.items()
        )
        + "</tr>"
        for i in shown
    )
    more = f"<p>{count:,} rows, of which {ROWS} are shown</p>" if count > ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def paragraph(text: str) -> str:
    """A line of text in HTML."""
    return f"<p>{html.escape(text)}</p>"


def plain(value: Any) -> Any:
    """A value as JSON can carry it: exact decimals as text, dates in ISO's form, ``None`` for what is missing."""
    if value is None or value is pd.NaT:
        return None
    if isinstance(value, Decimal):
        return exact(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return None if value is pd.NA else str(value)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, each a dictionary that JSON can carry."""
    columns = [[plain(value) for value in frame.iloc[:, i]] for i in range(frame.shape[1])]
    return [dict(zip(map(str, frame.columns), row, strict=True)) for row in zip(*columns, strict=True)]
