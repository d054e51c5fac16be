"""Answers and plans in the formats that other programs read.

A batch of one query is written as that query's own frame: its keys, and each figure with its error. A batch of several
is one long frame with a ``query`` column, ``answers.df()``; in a folder it is a file for each query, each with its own
frame. json and markdown have every query with its own frame anyway.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .shared_options import Format
from .tables import cell, shown_rows
from .terminal import shortened

if TYPE_CHECKING:
    import pandas as pd
    from tacit import Answer, Answers, Plan


def frame(answer: Answer) -> pd.DataFrame:
    """A query's frame with the error of each figure beside it."""
    return answer.df_with_errors


def written(answers: Answers, how: Format) -> bytes:
    """The whole batch in one file."""
    if how is Format.json:
        return _json(answers.to_dict())
    if how is Format.markdown:
        return "\n".join(f"### query {i}\n\n{_markdown_answer(a)}" for i, a in enumerate(answers)).encode()
    return frame_bytes(frame(answers[0]) if len(answers) == 1 else answers.df(), how)


def written_apart(answers: Answers, how: Format) -> dict[str, bytes]:
    """A file for each query, by its name."""
    digits = len(str(len(answers) - 1))
    return {f"query-{i:0{digits}d}.{_ENDING[how]}": _one(answer, how) for i, answer in enumerate(answers)}


def _one(answer: Answer, how: Format) -> bytes:
    if how is Format.markdown:
        return _markdown_answer(answer).encode()
    return frame_bytes(frame(answer), how)


_ENDING = {Format.csv: "csv", Format.json: "json", Format.parquet: "parquet", Format.markdown: "md"}


def format_for(said: Format | None, output: str | None) -> Format:
    """The format that was named; else the one that a file's name ends in.

    >>> [format_for(None, name).value for name in ("a.csv", "a.md", "a.txt", None)]
    ['csv', 'markdown', 'table', 'table']
    >>> format_for(Format.json, "a.csv").value
    'json'
    """
    if said is not None or output is None:
        return said or Format.table
    endings = {f".{ending}": how for how, ending in _ENDING.items()}
    return endings.get(Path(output).suffix.lower(), Format.table)


def frame_bytes(table: pd.DataFrame, how: Format) -> bytes:
    """One frame as a file."""
    if how is Format.csv:
        return table.to_csv(index=False, lineterminator="\n").encode()
    if how is Format.json:
        return _json([dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)])
    if how is Format.markdown:
        rows = [[_plain(value) for value in row] for row in table.itertuples(index=False, name=None)]
        return markdown(list(map(str, table.columns)), rows).encode()
    return _parquet(table)


def left_out(answers: Answers) -> list[str]:
    """The columns that the long frame has no place for: dates and texts that are no keys."""
    from tacit.sql.workload import Key

    names = []
    for index, answer in enumerate(answers):
        for position, column in enumerate(answer.query.columns):
            if position not in answer.figures and not isinstance(getattr(column, "output", None), Key):
                names.append(f"{answer.names[position]} of query {index}")
    return names


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown(["a", "b"], [["x|y", "1"]]), end="")
    | a | b |
    |---|---|
    | x\\|y | 1 |
    """
    lines = [names, ["---"] * len(names), *rows]
    texts = ["| " + " | ".join(_escaped(value) for value in line) + " |" for line in lines]
    texts[1] = texts[1].replace(" ", "")
    return "\n".join(texts) + "\n"


def _markdown_answer(answer: Answer) -> str:
    names: list[str] = []
    for position, name in enumerate(answer.names):
        names += [name, "±"] if position in answer.figures else [name]
    text = shortened(answer.sql, 10_000).replace("`", "'")
    return f"`{text}`\n\n{markdown(names, shown_rows(answer))}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _plain(value: Any) -> str:
    return "" if isinstance(value, float) and math.isnan(value) else cell(value)


def _json(content: Any) -> bytes:
    return (json.dumps(_jsonable(content), ensure_ascii=False, indent=2) + "\n").encode()


def _jsonable(value: Any) -> Any:
    """NaN and infinities are no JSON; amounts are texts, because they are exact."""
    if isinstance(value, dict):
        return {str(key): _jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(entry) for entry in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if hasattr(value, "item"):
        return _jsonable(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def _parquet(table: pd.DataFrame) -> bytes:
    """Written by DuckDB, which is there anyway."""
    import duckdb

    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "frame.parquet"
        connection.register("answers", table)
        connection.execute(f"COPY answers TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
        return path.read_bytes()


def plan_bytes(plan: Plan, how: Format, size: Any = None) -> bytes:
    """A plan for other programs: json has all of it, the other formats its figures."""
    if how is Format.json:
        return _json(plan.to_dict())
    return frame_bytes(plan.df(size=size), how)
