"""What a release looks like to its reader: one frame per query, or all of them long with their error bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from string import ascii_lowercase, ascii_uppercase
from typing import Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Amount, Estimate
from tacit.engine.amounts import NOTHING
from tacit.sql.scratch import frame as typed_frame
from tacit.sql.workload import Key, KeyColumn, Linear, Query, Ratio, Workload

from .budget import show

Floats = NDArray[np.float64]

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
"""DuckDB's own idea of case knows ASCII letters only."""


@dataclass(frozen=True, repr=False, eq=False)
class Figures:
    """The numbers of one output column: an entry per group, each with its error bar."""

    value: Floats
    stderr: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, repr=False, eq=False)
class Answer:
    """One query of the batch, answered."""

    query: Query
    names: tuple[str, ...]
    """The frame's column names: DuckDB's own, repeated ones numbered as its ``.df()`` does."""
    figures: Mapping[int, Figures]
    """By position of the output column; the other positions are group keys."""
    keys: pd.DataFrame
    """The key values of every group, with the dtypes of DuckDB's own frame."""

    @property
    def sql(self) -> str:
        """The query's own text."""
        return self.query.sql

    @property
    def df(self) -> pd.DataFrame:
        """The frame that the query would have returned, every group present; a fresh copy each time."""
        return assemble(self.query, self.names, self.keys, {i: f.value for i, f in self.figures.items()})

    def rows(self) -> list[tuple[Any, ...]]:
        """The same as plain Python values, ``None`` for a NULL key."""
        columns: list[Sequence[Any]] = []
        for position, column in enumerate(self.query.columns):
            if isinstance(column.output, Key):
                columns.append([group[column.output.index] for group in self.query.groups])
            else:
                columns.append(self.figures[position].value.tolist())
        return list(zip(*columns, strict=True))

    def __repr__(self) -> str:
        return f"<Answer to {_short(self.sql)}: {len(self.query.groups)} × {len(self.names)}>"

    def __str__(self) -> str:
        return self.df.to_string(index=False, max_rows=40)


@dataclass(frozen=True, repr=False, eq=False)
class Answers(Sequence[Answer]):
    """The answers to one batch: one joint release, consistent with itself."""

    answers: tuple[Answer, ...]
    epsilon: Decimal
    """The ε of the release that the answers come from; with several combined, their sum."""
    delta: Decimal
    cost: Amount
    """What this call was charged: zero when a stored release was good enough."""
    strategy: str
    confidence: float

    @overload
    def __getitem__(self, index: int) -> Answer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Answer, ...]: ...
    def __getitem__(self, index: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[index]

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def df(self) -> pd.DataFrame:
        """All answers in one long frame.

        ``query`` counts from 0; ``group`` names the keys (empty without GROUP BY); ``low`` and ``high`` bound
        the interval that holds the exact answer with probability ``confidence``, for each row by itself.
        """
        parts: dict[str, list[Any]] = {name: [] for name in ("query", "group", "column")}
        numbers: dict[str, list[Floats]] = {name: [] for name in ("value", "stderr", "low", "high")}
        for index, answer in enumerate(self.answers):
            labels = group_labels(answer.query)
            for position, figures in answer.figures.items():
                parts["query"] += [index] * len(labels)
                parts["group"] += labels
                parts["column"] += [answer.names[position]] * len(labels)
                for name, column in numbers.items():
                    column.append(getattr(figures, name))
        return pd.DataFrame(
            {
                "query": np.array(parts["query"], dtype=np.int64),
                "group": pd.Series(parts["group"], dtype="str"),
                "column": pd.Series(parts["column"], dtype="str"),
                **{name: np.concatenate(column or [np.zeros(0)]) for name, column in numbers.items()},
            }
        )

    def __repr__(self) -> str:
        noun = "query" if len(self) == 1 else "queries"
        return (
            f"<Answers to {len(self):,} {noun}: {show(Amount(self.epsilon, self.delta))}, "
            f"strategy={self.strategy}, charged ε={self.cost.epsilon:f}>"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.df().to_string(index=False, max_rows=40, float_format=lambda v: f'{v:,.1f}')}"


def frame(
    workload: Workload,
    keys: Sequence[pd.DataFrame],
    estimate: Estimate,
    confidence: float,
    *,
    paid: Amount = NOTHING,
    cost: Amount = NOTHING,
    strategy: str = "none",
) -> Answers:
    """Rebuild every query's columns from the estimated rows of the workload; ``keys`` are its ``key_frames``."""
    half_width = estimate.half_width(confidence)
    answers = tuple(
        Answer(
            query=query,
            names=frame_names([column.name for column in query.columns]),
            figures={
                position: _figures(column.output, estimate, half_width, confidence)
                for position, column in enumerate(query.columns)
                if not isinstance(column.output, Key)
            },
            keys=frame_of_keys,
        )
        for query, frame_of_keys in zip(workload.queries, keys, strict=True)
    )
    return Answers(answers, paid.epsilon, paid.delta, cost, strategy, confidence)


def _figures(output: Linear | Ratio, estimate: Estimate, half_width: Floats, confidence: float) -> Figures:
    if isinstance(output, Linear):
        rows = np.array(output.rows, dtype=np.int64)
        value, half = estimate.values[rows], half_width[rows]
        return Figures(value, estimate.stderr[rows], value - half, value + half)
    quotient = estimate.ratio(output.numerator, output.denominator, output.low, output.high, confidence)
    return Figures(quotient.value, quotient.stderr, quotient.low, quotient.high)


def key_frames(queries: Sequence[Query]) -> list[pd.DataFrame]:
    """The key columns of every query; queries over the same groups share one frame."""
    known: dict[tuple[Any, ...], pd.DataFrame] = {}
    frames = []
    for query in queries:
        types = tuple(key.type for key in query.keys)
        if (types, query.groups) not in known:
            names = tuple(f"key_{i}" for i in range(len(types)))
            known[types, query.groups] = typed_frame(names, types, query.groups) if types else pd.DataFrame(index=[0])
        frames.append(known[types, query.groups])
    return frames


def assemble(query: Query, names: Sequence[str], keys: pd.DataFrame, values: Mapping[int, Floats]) -> pd.DataFrame:
    """Put key columns and value columns in the order of the SELECT list."""
    frame = pd.DataFrame(
        {
            position: keys.iloc[:, column.output.index] if isinstance(column.output, Key) else values[position]
            for position, column in enumerate(query.columns)
        },
        index=pd.RangeIndex(len(query.groups)),
        copy=True,
    )
    frame.columns = pd.Index(list(names), dtype="str")
    return frame


def frame_names(names: Sequence[str]) -> tuple[str, ...]:
    """Number repeated names as DuckDB's ``.df()`` does: ``x``, ``x_1``; case does not tell names apart.

    >>> frame_names(["x", "x", "X", "x_1"])
    ('x', 'x_1', 'X_2', 'x_1_1')
    """
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        low = name.translate(_LOWER)
        if low in seen:
            while f"{low}_{seen[low]}" in seen:
                seen[low] += 1
            name = f"{name}_{seen[low]}"
        seen[name.translate(_LOWER)] = 1
        unique.append(name)
    return tuple(unique)


def group_labels(query: Query) -> list[str]:
    """Each group in words, such as ``state=NY, sex=NULL``."""
    return [", ".join(map(_key_label, query.keys, group)) for group in query.groups]


def _key_label(key: KeyColumn, value: Any) -> str:
    return f"{key.column}={'NULL' if value is None else value}"


def _short(sql: str) -> str:
    text = " ".join(sql.split())
    return repr(text if len(text) <= 60 else text[:59] + "…")
