"""What travels as the result of a request: a plan as JSON; answers as JSON for people and as Arrow for frames."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import discovery, wire
from .answers import Answer, Answers, assemble
from .discovery import Discovery
from .errors import NotSupportedError, OperationalError, ProgrammingError
from .explain import Plan
from .figures import Figures
from .pickled import CURVE
from .request import Number

Floats = NDArray[np.float64]
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
FRAMES = "application/vnd.tacit.frames"
"""Arrow streams one after the other, one for each query (``answers_frames``)."""
_BARS = ("stderr", "low", "high")
_LONG = ("query", "group", "column", "note")
_NUMBERS = ("error", "combined", "lower_bound")


@dataclass(frozen=True)
class RemoteQuery:
    """A query that a server has compiled: its text, and the name and DuckDB type of each of its columns."""

    sql: str
    types: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, repr=False, eq=False)
class RemoteAnswer(Answer):
    """One query of the batch, answered by a server."""

    query: RemoteQuery  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @property
    def types(self) -> tuple[tuple[str, str], ...]:
        """The name and DuckDB type of each column."""
        return self.query.types


@dataclass(frozen=True, repr=False, eq=False)
class RemotePlan(Plan):
    """What a server would do. ``cells`` has their number and not what each is."""

    queries: tuple[RemoteQuery, ...]  # type: ignore[assignment]
    frame: pd.DataFrame = None  # type: ignore[assignment]
    others: bool = False
    ask_curve: Callable[[], pd.DataFrame] | None = None
    """Asks the server for the curve."""

    def df(self, *, size: Any = None, simultaneous: bool = False) -> pd.DataFrame:
        """A row for each figure that the batch would release: see ``Plan.df``."""
        if simultaneous:
            raise _not_remote("simultaneous=True")
        return super().df(size=size)

    def figures(self, *, size: Any = None) -> pd.DataFrame:
        """``df`` with the kind of each figure: see ``Plan.figures``."""
        if size is not None:
            raise _not_remote("size=")
        return self.frame.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "ask_curve": None if self.ask_curve is None else CURVE}

    @property
    def other_groups(self) -> bool:
        """Whether some group is of the values that nobody declared, under its usual name."""
        return self.others

    def curve(self, epsilons: Sequence[Number] | None = None, *, query: int | None = None) -> pd.DataFrame:
        """What each ε would buy: see ``Plan.curve``."""
        if epsilons is not None or query is not None or self.ask_curve is None:
            raise _not_remote("a curve over epsilons= or of one query=")
        return self.ask_curve()


def _not_remote(what: str) -> NotSupportedError:
    return NotSupportedError(
        f"{what} is not offered over a server yet\nhint: con.explain(…, epsilon=…) says what a budget buys"
    )


def plan_body(plan: Plan, *, rows: bool = False, curve: bool = False) -> dict[str, Any]:
    """A plan as JSON; with ``rows`` also the errors of each row of the workload, with ``curve`` of other budgets."""
    frame = plan.figures()
    body: dict[str, Any] = {
        "epsilon": str(plan.epsilon),
        "delta": str(plan.delta),
        "cost": wire.amount(plan.cost),
        "bought": wire.amount(plan.bought),
        "why": plan.why,
        "confidence": plan.confidence,
        "strategy": plan.strategy,
        "privacy": plan.privacy,
        "objective": plan.objective,
        "cells": len(plan.cells),
        "queries": [query.sql for query in plan.queries],
        **{name: number(getattr(plan, name)) for name in _NUMBERS},
        "least_error": None if plan.least_error is None else number(plan.least_error),
        "gap": number(plan.gap),
        "alternatives": {name: number(error) for name, error in plan.alternatives.items()},
        "stages": list(plan.stages),
        "discover": list(plan.discover),
        "text": plan.text(),
        "account": None if plan.account is None else wire.account(plan.account),
        "units": dict(plan.units),
        "other_groups": plan.other_groups,
        "figures": {name: _listed(frame[name]) for name in frame.columns},
    }
    if rows:
        body["rows"] = {"stderr": numbers(plan.stderr), "half_width": numbers(plan.half_width)}
        body["alternative_rows"] = {name: numbers(row) for name, row in plan.alternative_stderr.items()}
    if curve:
        found = None if plan.what_if is None else plan.curve()
        body["curve"] = None if found is None else {name: _listed(found[name]) for name in found.columns}
    return body


def read_plan(body: Mapping[str, Any], ask_curve: Callable[[], pd.DataFrame] | None = None) -> RemotePlan:
    """The plan that a server sends."""
    columns = {
        name: pd.Series(values, dtype="str")
        if name in ("text", "group", "column", "note", "kind")
        else np.array(values, dtype=np.int64)
        if name in ("query", "row")
        else read_numbers(values)
        for name, values in body["figures"].items()
    }
    rows = body.get("rows", {"stderr": [], "half_width": []})
    least = body["least_error"]
    return RemotePlan(
        epsilon=Decimal(body["epsilon"]),
        delta=Decimal(body["delta"]),
        cost=wire.read_amount(body["cost"]),
        bought=wire.read_amount(body["bought"]),
        why=body["why"],
        confidence=float(body["confidence"]),
        strategy=body["strategy"],
        privacy=body["privacy"],
        queries=tuple(RemoteQuery(sql) for sql in body["queries"]),
        cells=range(body["cells"]),  # type: ignore[arg-type]
        least_error=None if least is None else _number(least),
        alternatives={name: _number(value) for name, value in body["alternatives"].items()},
        stderr=read_numbers(rows["stderr"]),
        half_width=read_numbers(rows["half_width"]),
        alternative_stderr={name: read_numbers(r) for name, r in body.get("alternative_rows", {}).items()},
        objective=body["objective"],
        stages=tuple(body["stages"]),
        discover=tuple(body["discover"]),
        account=None if body["account"] is None else wire.read_account(body["account"]),
        units=dict(body["units"]),
        others=bool(body["other_groups"]),
        frame=pd.DataFrame(columns),
        ask_curve=ask_curve,
        error=_number(body["error"]),
        combined=_number(body["combined"]),
        lower_bound=_number(body["lower_bound"]),
    )


def read_curve(columns: Mapping[str, Sequence[Any]] | None) -> pd.DataFrame:
    """The curve that a server sends."""
    if columns is None:
        raise ProgrammingError("nothing of this batch has an error that a budget decides, so there is no curve")
    return pd.DataFrame({name: read_numbers(column) for name, column in columns.items()})


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
            entry["values"] = _listed(column)
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
    figures, notes = {}, {}
    for i in positions:
        bars = (_floats(table.column(f"{bar}.{i}")) for bar in _BARS)
        figures[i] = Figures(_floats(table.column(str(i))), *bars)
        notes[i] = tuple(table.column(f"note.{i}").to_pylist())
    return RemoteAnswer(
        RemoteQuery(about["sql"], tuple((name, type_) for name, type_ in about["types"])),
        names,
        figures,
        tuple(frame[str(i)] for i in range(len(names))),
        tuple(table.column("groups").to_pylist()),
        notes,
        {int(i): np.array(rows, dtype=np.bool_) for i, rows in about["totals"].items()},
        _no_joint,
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


def _no_joint() -> NoReturn:
    raise _not_remote("simultaneous=True")


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


def number(value: float) -> Any:
    """A number as JSON: null for NaN, and the infinities by name."""
    value = float(value)
    if np.isfinite(value):
        return value
    return None if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def numbers(values: Floats) -> list[Any]:
    """Numbers as JSON."""
    return [number(value) for value in values.tolist()]


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def read_numbers(values: Sequence[Any]) -> Floats:
    """What ``numbers`` wrote."""
    return np.array([_number(value) for value in values], dtype=np.float64)


def _listed(column: pd.Series) -> list[Any]:
    """A column as JSON; dates and such as their text."""
    if column.dtype == np.float64:
        return numbers(column.to_numpy())
    return [_plain(value) for value in column.astype(object)]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if pd.isna(value):
        return None
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, (int,)):
        return value
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
