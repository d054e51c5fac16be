"""Answers as tables for people: a figure with its ±, rounded to what the noise leaves of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from .terminal import shortened

if TYPE_CHECKING:
    from tacit import Answer, Answers

_MOST_ROWS = 200
_DIGITS = 2
"""Of an interval: more would be noise."""
_GAP = 3
"""Between two columns, and at both ends together."""
_KEY_WIDTH = 24
"""What a long key is left with before figures go into a table of their own."""


def decimals(half: float) -> int:
    """How many decimals a figure has that is known to ±half.

    >>> decimals(6.2), decimals(0.041), decimals(812.0), decimals(0.0)
    (1, 3, 0, 0)
    """
    if not math.isfinite(half) or half <= 0:
        return 0
    return min(12, max(0, _DIGITS - 1 - math.floor(math.log10(half))))


def figure(value: float, low: float, high: float) -> tuple[str, str]:
    """A figure and its interval in words: ``± 6.2``, or both ends where it is not symmetric.

    >>> figure(3727.4, 3721.25, 3733.55), figure(9.0, 9.0, 9.0), figure(5.0, 1.0, 6.0)
    (('3,727.4', '± 6.2'), ('9', 'exact'), ('5.0', '1.0 … 6.0'))
    """
    if math.isnan(value):
        return "–", "" if math.isnan(low) else f"{low:,.4g} … {high:,.4g}"
    half = (high - low) / 2
    if half == 0:
        return f"{value:,.15g}", "exact"
    places = decimals(half)
    shown = f"{value:,.{places}f}"
    if math.isnan(half):
        return f"{value:,.6g}", ""
    if abs((high - value) - (value - low)) <= 1e-6 * (high - low):
        step = 10.0**-places  # rounded up: an error is never said to be smaller than it is
        return shown, f"± {math.ceil(half / step * (1 - 1e-9)) * step:,.{places}f}"
    return shown, f"{low:,.{places}f} … {high:,.{places}f}"


def answer_tables(answers: Answers, width: int) -> Iterable[Table | Text]:
    """Everything that was answered: figures without groups in one table, every query with groups in its own."""
    interval = f"{answers.confidence:.0%} interval"
    single: Table | None = None
    for index, answer in enumerate(answers):
        if len(answer.labels) == 1 and len(answer.figures) == len(answer.names) and not answer.labels[0]:
            if single is None:
                single = new_table(["query", "", "answer", interval], left=2)
            for position, name in enumerate(answer.names):
                single.add_row(str(index), shortened(name, 40), *_cells(answer, position, 0))
            continue
        if single is not None:
            yield single
            single = None
        yield Text(f" query {index}: {shortened(answer.sql, width - 11)}", style="bold")
        yield from _grouped(answer, interval, width)
        yield from _notes(answer)
    if single is not None:
        yield single


def new_table(names: Sequence[str], left: int) -> Table:
    """An empty table: so many columns flush left, the others flush right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for position, name in enumerate(names):
        table.add_column(name, justify="left" if position < left else "right", overflow="fold")
    return table


@dataclass(frozen=True)
class _Column:
    """A column of a table for people; of those that belong to figures, no word and no number is broken."""

    name: str
    cells: Sequence[str]
    is_key: bool = False
    is_interval: bool = False

    @property
    def width(self) -> int:
        """What it needs, its header as tall as that takes; keys can be folded."""
        header = self.name.split() if self.is_interval else [self.name]
        needed = max(map(len, (*header, *self.cells)))
        return min(needed, _KEY_WIDTH) if self.is_key else needed


def _grouped(answer: Answer, interval: str, width: int) -> Iterable[Table]:
    """The groups of a query; in several tables, each with the keys, where the figures do not fit beside each other."""
    rows = shown_rows(answer)
    cells = list(zip(*rows[:_MOST_ROWS], strict=True)) or [()] * (len(answer.names) + len(answer.figures))
    keys, figures = [], []
    for position, name in enumerate(answer.names):
        if position in answer.figures:
            figures.append((_Column(name, cells.pop(0)), _Column(interval, cells.pop(0), is_interval=True)))
        else:
            keys.append(_Column(name, cells.pop(0), is_key=True))
    tables = [_table([*keys, *chain.from_iterable(some)], width) for some in _beside_each_other(keys, figures, width)]
    if len(rows) > _MOST_ROWS:
        tables[-1].caption = f"{len(rows) - _MOST_ROWS:,} more rows; --format csv has them all"
    return tables


def _beside_each_other(
    keys: Sequence[_Column], figures: Sequence[tuple[_Column, _Column]], width: int
) -> list[list[tuple[_Column, _Column]]]:
    """The figures in as many lots as it takes for each to fit, with the keys, into a width."""
    lots: list[list[tuple[_Column, _Column]]] = [[]]
    for figure in figures:
        if lots[-1] and _total([*keys, *chain.from_iterable(lots[-1]), *figure]) > width:
            lots.append([])
        lots[-1].append(figure)
    return lots


def _total(columns: Sequence[_Column]) -> int:
    return sum(column.width + _GAP for column in columns)


def _table(columns: Sequence[_Column], width: int) -> Table:
    is_tight = sum(max(c.width, len(c.name)) + _GAP for c in columns) > width
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        name = column.name.replace(" ", "\n") if column.is_interval and is_tight else column.name
        table.add_column(name, justify="left" if column.is_key else "right", overflow="fold",
                         style="dim" if column.is_interval else "", no_wrap=not column.is_key)  # fmt: skip
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def shown_rows(answer: Answer) -> list[list[str]]:
    """The rows of an answer in words: keys, and two cells for each figure."""
    keys, columns = answer.df_with_errors, []
    place = 0
    for position, (_, type_) in enumerate(answer.types):
        if position in answer.figures:
            columns += list(zip(*(_cells(answer, position, row) for row in range(len(answer.labels))), strict=True))
            place += 4  # the figure, and three columns of errors
        else:
            columns.append(tuple(cell(value, type_) for value in keys.iloc[:, place]))
            place += 1
    return [list(row) for row in zip(*columns, strict=True)]


def _cells(answer: Answer, position: int, row: int) -> tuple[str, str]:
    figures = answer.figures[position]
    return figure(float(figures.value[row]), float(figures.low[row]), float(figures.high[row]))


def _notes(answer: Answer) -> Iterable[Text]:
    """What is to be said of rows, each remark once."""
    for position, notes in answer.notes.items():
        for note in dict.fromkeys(filter(None, notes)):
            where = [
                label or answer.names[position] for label, n in zip(answer.labels, notes, strict=True) if n == note
            ]
            yield Text(f" {shortened(', '.join(where), 30)}: {note}", style="dim")


def cell(value: Any, type_: str = "") -> str:
    """A value of a key for people."""
    if value is None or value != value:
        return "NULL"
    if type_ == "DATE" and isinstance(value, datetime):
        return str(value.date())
    return f"{value:g}" if isinstance(value, float) else str(value)
