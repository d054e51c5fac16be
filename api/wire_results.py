"""What travels as the result of a request: answers as JSON for people and as Arrow for frames."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from . import discovery, wire
from .answers import Answer, Answers, assemble
from .discovery import Discovery
from .errors import OperationalError
from .figures import Figures
from .wire_numbers import Floats, listed, numbers

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
FRAMES = "application/vnd.tacit.frames"
"""Arrow streams one after the other, one for each query (``answers_frames``)."""
_BARS = ("stderr", "low", "high")
_JOINT = ("low_all", "high_all")
"""The intervals that hold all together: computed with the answer, because later releases would move them."""
_LONG = ("query", "group", "column", "note")


@dataclass(frozen=True)
class RemoteQuery:
    """A query that a server has compiled: its text, and the name and DuckDB type of each of its columns."""

    sql: str
    types: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, repr=False, eq=False)
class RemoteAnswer(Answer):
    """One query of the batch, answered by a server."""

    query: RemoteQuery  # type: ignore[assignment]

    @property
    def types(self) -> tuple[tuple[str, str], ...]:
        """The name and DuckDB type of each column."""
        return self.query.types


def answers_head(answers: Answers) -> dict[str, Any]:
    """What is said of a release as a whole."""
    return {
        "epsilon": str(answers.epsilon),
        "delta": str(answers.delta),
        "cost": wire.amount(answers.cost),
        "strategy": answers.strategy,
        "confidence": answers.confidence,
        "discovered": [discovery_body(found) for found in answers.discovered],
    }


def answers_body(answers: Answers) -> dict[str, Any]:
    """Answers as JSON: a list of columns for each query, figures with their error bars."""
    return {**answers_head(answers), "answers": [_answer_body(answer) for answer in answers]}


def _answer_body(answer: Answer) -> dict[str, Any]:
    columns = []
    for i, (name, type_, column) in enumerate(
        zip(answer.names, (t for _, t in answer.types), answer.columns, strict=True)
    ):
        entry: dict[str, Any] = {"name": name, "type": type_}
        if i in answer.figures:
            figures = answer.figures[i]
            entry["values"] = numbers(figures.value)
            entry |= {bar: numbers(getattr(figures, bar)) for bar in _BARS}
            entry["note"] = list(answer.notes[i])
        else:
            entry["values"] = listed(column)
        columns.append(entry)
    return {"sql": answer.sql, "groups": list(answer.labels), "columns": columns}


def answers_long(answers: Answers) -> bytes:
    """``answers.df()`` as one Arrow stream."""
    import pyarrow as pa

    table = pa.Table.from_pandas(answers.df(), preserve_index=False)
    about = {"tacit": json.dumps(answers_head(answers))}
    return _stream(table.replace_schema_metadata({**(table.schema.metadata or {}), **about}))


def answers_frames(answers: Answers) -> Iterator[bytes]:
    """The answers as Arrow streams, one after the other: one for each query.

    The columns of the query come first, then those with its groups, error bars and notes; the metadata ``tacit`` of
    each stream says which is which. The first stream has what is said of the release in it too.
    """
    import pyarrow as pa

    head = answers_head(answers)
    for index, answer in enumerate(answers):
        columns = [_storable(column) for column in answer.columns]
        texts = [i for i, column in enumerate(columns) if column is not answer.columns[i]]
        table = pa.Table.from_pandas(assemble([str(i) for i in range(len(columns))], columns), preserve_index=False)
        names = list(answer.names)
        for position, figures in answer.figures.items():
            for bar in _BARS:
                table = table.append_column(f"{bar}.{position}", pa.array(getattr(figures, bar)))
            for end, column in zip(_JOINT, answer.joint_ends(position), strict=True):
                table = table.append_column(f"{end}.{position}", pa.array(column))
            notes = pa.array(answer.notes[position], type=pa.string())
            table = table.append_column(f"note.{position}", notes)
        table = table.append_column("groups", pa.array(answer.labels, type=pa.string()))
        about: dict[str, Any] = {
            "sql": answer.sql,
            "names": names,
            "types": [list(pair) for pair in answer.types],
            "figures": list(answer.figures),
            "integers": [i for i in texts if all(type(value) is int for value in answer.columns[i].dropna())],
            "totals": {str(i): rows.tolist() for i, rows in answer.totals.items()},
            "confidence": answer.confidence,
        }
        if index == 0:
            about["release"] = {**head, "queries": len(answers)}
        metadata = {**(table.schema.metadata or {}), b"tacit": json.dumps(about).encode()}
        yield _stream(table.replace_schema_metadata(metadata))


def read_answers(data: bytes, histogram: Callable[[], pd.DataFrame]) -> Answers:
    """What ``answers_frames`` wrote."""
    import pyarrow as pa

    source = pa.BufferReader(data)
    answers: list[Answer] = []
    head: Mapping[str, Any] = {}
    try:
        while not head or len(answers) < head["queries"]:
            with pa.ipc.open_stream(source) as reader:
                table = reader.read_all()
            about = json.loads(table.schema.metadata[b"tacit"])
            head = about.get("release", head)
            answers.append(_read_answer(table, about))
    except (pa.ArrowException, KeyError, ValueError, TypeError):
        raise OperationalError("the answers did not arrive whole\nhint: ask again; it costs nothing") from None
    return Answers(
        tuple(answers),
        Decimal(head["epsilon"]),
        Decimal(head["delta"]),
        wire.read_amount(head["cost"]),
        head["strategy"],
        float(head["confidence"]),
        histogram,
        tuple(read_discovery(found) for found in head["discovered"]),
    )


def _read_answer(table: Any, about: Mapping[str, Any]) -> RemoteAnswer:
    names = tuple(about["names"])
    positions: Sequence[int] = about["figures"]
    frame = table.select([str(i) for i in range(len(names))]).to_pandas()
    for i in about["integers"]:
        frame[str(i)] = frame[str(i)].astype(object).map(int, na_action="ignore")
    figures, notes, joint = {}, {}, {}
    for i in positions:
        bars = (_floats(table.column(f"{bar}.{i}")) for bar in _BARS)
        figures[i] = Figures(_floats(table.column(str(i))), *bars)
        notes[i] = tuple(table.column(f"note.{i}").to_pylist())
        low, high = (_floats(table.column(f"{end}.{i}")) for end in _JOINT)
        joint[i] = low, high
    return RemoteAnswer(
        RemoteQuery(about["sql"], tuple((name, type_) for name, type_ in about["types"])),
        names,
        figures,
        tuple(frame[str(i)] for i in range(len(names))),
        tuple(table.column("groups").to_pylist()),
        notes,
        {int(i): np.array(rows, dtype=np.bool_) for i, rows in about["totals"].items()},
        lambda: joint,
        float(about["confidence"]),
    )


def _storable(column: pd.Series) -> pd.Series:
    """A column as Arrow can hold it: values that it has no type for, such as integers of 128 bits, as their text.

    Answers are written after they were paid, so no column may be refused.
    """
    import pyarrow as pa

    try:
        pa.array(column, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        return column.map(str, na_action="ignore").astype("str")
    return column


def _floats(column: Any) -> Floats:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def cells_stream(frame: pd.DataFrame) -> bytes:
    """A frame as one Arrow stream."""
    import pyarrow as pa

    return _stream(pa.Table.from_pandas(frame, preserve_index=False))


def read_cells(data: bytes) -> pd.DataFrame:
    """What ``cells_stream`` wrote."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        frame: pd.DataFrame = reader.read_all().to_pandas()
    return frame


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def discovery_body(found: Discovery) -> dict[str, Any]:
    """What was found, as the ledger writes it, with what was paid."""
    content: dict[str, Any] = json.loads(discovery.write(found))
    return {**content, "epsilon": str(found.epsilon), "delta": str(found.delta), "cost": wire.amount(found.cost)}


def read_discovery(body: Mapping[str, Any]) -> Discovery:
    """What ``discovery_body`` wrote."""
    from dataclasses import replace

    found = discovery.read(json.dumps(dict(body)).encode(), Decimal(body["epsilon"]), Decimal(body["delta"]))
    return replace(found, cost=wire.read_amount(body["cost"]))
