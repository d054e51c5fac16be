"""Answers as a report shows them: keys, figures and errors in one frame; tables of text and HTML; plain values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.sql.group_list import LabelList
from tacit.sql.names import numbered
from tacit.sql.workload import Key, OuterQuery, Query, Stacked

from .display import MISSING, TOTAL, footnotes, number, plural, query_name, records, text_table, wrapped

if TYPE_CHECKING:
    from .answers import Answer, Answers

_ERRORS = ("stderr", "low", "high")
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_MOST_DIGITS = 6
_SCREENFUL = 30
"""Queries that a prompt shows."""
LEFT = ("query", "group", "column", "note")
"""Columns of words, in the table of all answers."""


def total_rows(query: Query | OuterQuery) -> dict[int, NDArray[np.bool_]]:
    """By position of a key column, which rows add up over that key: their NULL is no value of the column."""
    if isinstance(query, OuterQuery):
        return {}
    found: dict[int, NDArray[np.bool_]] = {}
    for position, column in enumerate(query.columns):
        if isinstance(column.output, Key) and isinstance(query.labels, LabelList):
            values, codes = query.labels.parts.column(column.output.index)
            found[position] = np.array([value is None for value in values], dtype=np.bool_)[codes]
        elif isinstance(column.output, Stacked):  # of a UNION ALL only the labels tell
            null = f"{column.name}={MISSING}"
            found[position] = np.array([null not in label for label in query.labels], dtype=np.bool_)
    return found


def with_errors(answer: Answer, *, simultaneous: bool = False) -> pd.DataFrame:
    """The frame of a query with the errors of each figure beside it."""
    names: list[str] = []
    columns: list[pd.Series] = []
    for position, (name, column) in enumerate(zip(answer.names, answer.columns, strict=True)):
        figures = answer.figures.get(position)
        names.append(name)
        if figures is None:
            columns.append(labelled(column, answer.types[position][1], answer.totals.get(position)))
            continue
        columns.append(column)
        beside = {error: getattr(figures, error) for error in _ERRORS}
        if simultaneous:
            beside["low_all"], beside["high_all"] = answer.joint_ends(position)
        for error, values in beside.items():
            names.append(f"{name}_{error}")
            columns.append(pd.Series(values))
    notes = _joined_notes(answer)
    if any(notes):
        names.append("note")
        columns.append(pd.Series(notes, dtype="str"))
    frame = pd.DataFrame(dict(enumerate(columns)), copy=True)
    frame.columns = pd.Index(numbered(names), dtype="str")
    return frame


def labelled(column: pd.Series, type_: str, totals: NDArray[np.bool_] | None) -> pd.Series:
    """A key column in words where it has totals or NULL; as it is where it has none."""
    missing = column.isna().to_numpy(np.bool_)
    if not missing.any():
        return column
    of_all = np.zeros(len(column), dtype=np.bool_) if totals is None else totals
    words = [(TOTAL if of_all[i] else MISSING) if missing[i] else word(value, type_) for i, value in enumerate(column)]
    return pd.Series(words, dtype="str")


def word(value: Any, type_: str) -> str:
    """A key in words; whole numbers that a frame holds as floats without their point."""
    if isinstance(value, float) and type_ in _WHOLE:
        return str(int(value))
    if type_ == "DATE" and hasattr(value, "date"):
        return str(value.date())
    return str(value)


def _joined_notes(answer: Answer) -> list[str]:
    if len(answer.figures) == 1:
        return list(next(iter(answer.notes.values())))
    rows: list[list[str]] = [[] for _ in answer.labels]
    for position, notes in answer.notes.items():
        for row, note in zip(rows, notes, strict=True):
            if note:
                row.append(f"{answer.names[position]}: {note}")
    return ["; ".join(row) for row in rows]


def columns(answers: Answers) -> dict[str, list[str]]:
    """All answers as columns of text: every figure with as many digits as its error leaves."""
    frame = answers.df()
    texts = [query_name(i, answer.sql) for i, answer in enumerate(answers)]
    digits = [_digits(error) for error in frame["stderr"]]
    shown: dict[str, list[str]] = {
        "query": [texts[i] for i in frame["query"]],
        "group": frame["group"].tolist(),
        "column": frame["column"].tolist(),
    }
    for name in ("value", "stderr", "low", "high"):
        shown[name] = [_figure(value, d) for value, d in zip(frame[name], digits, strict=True)]
    shown["note"] = frame["note"].tolist()
    return shown


def table(answers: Answers) -> str:
    """All answers for a terminal: one line for a query of one figure, and a heading for a query of several."""
    shown = columns(answers)
    marks, notes = footnotes(shown["note"])
    figures, headings, place = [], {}, 0
    for index, answer in enumerate(answers):
        size = len(answer.labels) * len(answer.figures)
        if size == 1:
            figures.append(query_name(index, answer.sql, answer.names[next(iter(answer.figures))]))
        else:
            headings[place] = query_name(index, answer.sql)
        for row in range(place, place + size) if size > 1 else ():
            parts = [shown["group"][row], shown["column"][row] if len(answer.figures) > 1 else ""]
            figures.append("  " + " · ".join(filter(None, parts)))
        place += size
    numbers = {name: shown[name] for name in ("value", "stderr", "low", "high")}
    if not any(marks):
        return text_table({"query": figures, **numbers}, left=("query",), headings=headings)
    lines = text_table({"query": figures, **numbers, "note": marks}, left=("query",), headings=headings)
    return "\n".join([lines, *wrapped(notes)])


def screenful(answers: Answers) -> str:
    """``table`` of the first queries, and how many are left."""
    left = len(answers) - _SCREENFUL
    if left <= 0:
        return table(answers)
    rest = f"… and {plural(left, 'query', 'queries')} more: print(answers), answers.df()"
    return f"{table(replace(answers, answers=answers.answers[:_SCREENFUL]))}\n{rest}"


def _digits(stderr: float) -> int | None:
    """Digits after the point with which an error has two; None where it is exact or not known."""
    if not math.isfinite(stderr) or stderr <= 0:
        return None
    return min(max(0, 1 - math.floor(math.log10(stderr))), _MOST_DIGITS)


def _figure(value: float, digits: int | None) -> str:
    if not math.isfinite(value) or digits is None:
        return f"{value:,.6g}" if math.isfinite(value) and abs(value) < 1e6 else number(value)
    return f"{value:,.{digits}f}"


def columns_of(answer: Answer) -> tuple[dict[str, list[str]], list[str]]:
    """One answer as columns of text, ± in place of three columns of errors; and which of them are words."""
    frame = with_errors(answer)
    shown: dict[str, list[str]] = {}
    words: list[str] = []
    for position, name in enumerate(answer.names):
        figures = answer.figures.get(position)
        if figures is None:
            words.append(name)
            shown[name] = [MISSING if pd.isna(value) else str(value) for value in frame[name]]
            continue
        digits = [_digits(error) for error in figures.stderr]
        shown[name] = [_figure(value, d) for value, d in zip(figures.value, digits, strict=True)]
        shown[f"{name}: low"] = [_figure(value, d) for value, d in zip(figures.low, digits, strict=True)]
        shown[f"{name}: high"] = [_figure(value, d) for value, d in zip(figures.high, digits, strict=True)]
    if "note" in frame and "note" not in answer.names:
        words.append("note")
        shown["note"] = frame["note"].tolist()
    return shown, words


def to_dict(answer: Answer) -> dict[str, Any]:
    """One answer in plain values."""
    frame = with_errors(answer)
    return {"sql": answer.sql, "columns": list(frame.columns), "rows": records(frame)}
