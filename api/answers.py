"""What a release looks like to its reader: one frame per query, or all of them long with their error bars."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Amount, Estimate
from tacit.engine.accounting.amounts import NOTHING
from tacit.sql.names import numbered
from tacit.sql.present import arranged, column_type, is_number, key_frame, leaf_values
from tacit.sql.ranks import hidden, mode_places, total
from tacit.sql.workload import Computed, Mode, OuterQuery, Output, Quantile, Query, Ratio, Stacked, Workload

from . import answer_frames
from .arrow_tables import arrow_table, long_table, polars_frame
from .budget import show
from .discovery import Discovery
from .display import TEXT, cut_inside, html_table, odds, one_line, paragraph, plain, plural, shortened
from .figures import ColumnBuilder, Figures
from .outer_figures import Compute, KeyFrames, outer_figures
from .pickled import CELLS, Kept, Unchanging
from .plain_values import plain_values
from .simultaneous import Simultaneous

if TYPE_CHECKING:
    import polars
    import pyarrow
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_NO_ROWS = "no rows: the released count is not above zero"
UNPREDICTED = "chosen by the data: the error is not predicted"
_FEW_ROWS = "too few rows: any value of the declared range is possible"


@dataclass(frozen=True, repr=False, eq=False)
class Answer(Unchanging):
    """One query of the batch, answered."""

    query: Query | OuterQuery
    names: tuple[str, ...]
    """The frame's column names: DuckDB's own, repeated ones numbered as its ``.df()`` does."""
    figures: Mapping[int, Figures]
    """By position of the output column, for the columns that are released numbers."""
    columns: tuple[pd.Series, ...]
    """Every output column, with the dtype of DuckDB's own frame; released numbers are float64."""
    labels: tuple[str, ...]
    """Each row's group in words."""
    notes: Mapping[int, tuple[str, ...]]
    """For each column of ``figures``, what is to be said of each row; mostly nothing."""
    totals: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)
    """By position of a key column, which rows add up over it."""
    joint: Callable[[], Mapping[int, tuple[Floats, Floats]]] = field(default=dict)
    """What ``simultaneous=True`` calls: the (low, high) of each column of ``figures``, where there are such."""
    confidence: float = 0.95
    """With which each interval holds the exact answer."""

    @property
    def sql(self) -> str:
        """The query's own text."""
        return self.query.sql

    @property
    def types(self) -> tuple[tuple[str, str], ...]:
        """The name and DuckDB type of each column."""
        if isinstance(self.query, OuterQuery):
            return tuple((column.column, column.type) for column in self.query.columns)
        return tuple((c.name, column_type(self.query, c.output)) for c in self.query.columns)

    @property
    def df(self) -> pd.DataFrame:
        """The frame that the query would have returned, every group present; a fresh copy each time."""
        return assemble(self.names, self.columns)

    @property
    def df_with_errors(self) -> pd.DataFrame:
        """Keys, figures and errors in one frame, for a report.

        Beside each figure ``n`` stand ``n_stderr``, ``n_low`` and ``n_high``. A key column that has totals or NULL is
        in words: ``(all)`` for the key that a total adds up over, ``NULL`` for rows without a value. Where there is
        something to say of a row, the last column is its ``note``.
        """
        return self.with_errors()

    def with_errors(self, *, simultaneous: bool = False) -> pd.DataFrame:
        """``df_with_errors``; ``simultaneous`` adds ``n_low_all`` and ``n_high_all``, as in ``Answers.df``."""
        return answer_frames.with_errors(self, simultaneous=simultaneous)

    def joint_ends(self, position: int) -> tuple[Floats, Floats]:
        """The simultaneous interval of each figure of a column, around its own; NaN where there is none."""
        figures, found = self.figures[position], self.joint().get(position)
        if found is None:
            exact = figures.stderr == 0
            return np.where(exact, figures.low, np.nan), np.where(exact, figures.high, np.nan)
        low, high = np.fmin(found[0], figures.low), np.fmax(found[1], figures.high)
        return np.where(np.isnan(found[0]), np.nan, low), np.where(np.isnan(found[1]), np.nan, high)

    def plot(self, *, column: str | None = None, simultaneous: bool = False, ax: Axes | None = None) -> Axes:
        """The figures with their intervals: bars, a line over ordered groups, a heat map of two keys."""
        from . import plot

        return plot.answer(self, column=column, simultaneous=simultaneous, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """``df_with_errors`` in plain values that JSON can carry, with the query's text."""
        return answer_frames.to_dict(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def arrow(self) -> pyarrow.Table:
        """The same as an Arrow table: the types of DuckDB's own result, NULL as null. Needs the extra ``arrow``."""
        return arrow_table(self.names, [type_ for _, type_ in self.types], self.columns)

    def pl(self) -> polars.DataFrame:
        """The same as a polars frame. Needs the extra ``polars``."""
        return polars_frame(self.arrow())

    def rows(self) -> list[tuple[Any, ...]]:
        """The same as plain Python values, ``None`` for NULL."""
        typed = zip(self.columns, self.types, strict=True)
        return list(zip(*(plain_values(column, type_) for column, (_, type_) in typed), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "joint": Kept(self.joint())}

    def __repr__(self) -> str:
        """With its figures, as a frame has: a prompt that echoes what was just paid for must show it."""
        return f"<Answer to {shortened(one_line(self.sql), 60)!r}: {len(self.labels)} × {len(self.names)}>\n{self}"

    def __str__(self) -> str:
        return self.df.to_string(index=False, max_rows=40)

    def _repr_html_(self) -> str:
        shown, left = answer_frames.columns_of(self)
        return f"<p><code>{escape(shortened(one_line(self.sql), 200))}</code></p>{html_table(shown, left=left)}"


@dataclass(frozen=True, repr=False, eq=False)
class Answers(Unchanging, Sequence[Answer]):
    """The answers to one batch: one joint release, consistent with itself."""

    answers: tuple[Answer, ...]
    epsilon: Decimal
    """The ε of the release that the answers come from; with several combined, their sum."""
    delta: Decimal
    cost: Amount
    """What this call was charged: zero when a stored release was good enough."""
    strategy: str
    confidence: float
    histogram: Callable[[], pd.DataFrame]
    """What ``cells`` calls."""
    discovered: tuple[Discovery, ...] = ()
    """What this call found first, with ``discover=True``; ``cost`` has that in it."""

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

    def df(self, *, simultaneous: bool = False) -> pd.DataFrame:
        """All answers in one long frame.

        ``query`` counts from 0, ``text`` is what it says, shortened; ``group`` names the keys: empty without GROUP BY,
        without the keys that a subtotal adds up over, after ``select 0:`` in a UNION ALL. ``low`` and ``high`` bound
        the interval that holds the exact answer with probability ``confidence``, for each row by itself. An average
        whose released count is not above zero is NaN, as SQL's average of no rows is NULL, and so is a quantile;
        ``note`` says so, and where too few rows leave the whole declared range possible. MIN and MAX are extreme
        quantiles, as far out as the noise shows any rows; ``note`` says how many lie beyond. Quantiles have an interval
        and no ``stderr``. Dates are in the frames of their queries only.

        ``simultaneous`` adds ``low_all`` and ``high_all``: with probability ``confidence`` all of those intervals hold
        at once, over every group of every query, those that HAVING or LIMIT left out among them (``simultaneous.py``
        has the argument). They are NaN for statements over released results.
        """
        parts: dict[str, list[Any]] = {name: [] for name in ("query", "text", "group", "column", "note")}
        numbers: dict[str, list[Floats]] = {name: [] for name in ("value", "stderr", "low", "high")}
        joint: dict[str, list[Floats]] = {name: [] for name in ("low_all", "high_all") if simultaneous}
        for index, answer in enumerate(self.answers):
            labels, text = answer.labels, cut_inside(one_line(answer.sql), TEXT)
            for position, figures in answer.figures.items():
                parts["query"] += [index] * len(labels)
                parts["text"] += [text] * len(labels)
                parts["group"] += labels
                parts["column"] += [answer.names[position]] * len(labels)
                parts["note"] += answer.notes[position]
                for name, column in numbers.items():
                    column.append(getattr(figures, name))
                ends = answer.joint_ends(position) if simultaneous else ()
                for column, end in zip(joint.values(), ends, strict=True):
                    column.append(end)
        return pd.DataFrame(
            {
                "query": np.array(parts["query"], dtype=np.int64),
                **{name: pd.Series(parts[name], dtype="str") for name in ("text", "group", "column")},
                **{name: np.concatenate(column or [np.zeros(0)]) for name, column in {**numbers, **joint}.items()},
                "note": pd.Series(parts["note"], dtype="str"),
            }
        )

    def arrow(self) -> pyarrow.Table:
        """What ``df`` returns as an Arrow table; null where a figure has no value or no ``stderr``."""
        return long_table(self.df())

    def pl(self) -> polars.DataFrame:
        """What ``df`` returns as a polars frame."""
        return polars_frame(self.arrow())

    def plot(self, *, simultaneous: bool = False, ax: Axes | None = None) -> Axes:
        """Every figure as a bar with its interval, for a few dozen of them (``tacit.plot``)."""
        from . import plot

        return plot.answers(self, simultaneous=simultaneous, ax=ax)

    def cells(self) -> pd.DataFrame:
        """The estimated counts of the batch's cells, with which every answer agrees: a synthetic histogram.

        One row per cell: ``table``, ``label``, ``count``, ``stderr``. A cell that no query tells by itself has
        an infinite ``stderr``: the counts agree with the answers, and many others would too.
        """
        return self.histogram()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "histogram": CELLS}

    def __repr__(self) -> str:
        """With the figures, up to a screenful of queries: a prompt that echoes what was just paid for must show it."""
        return f"{self._headline()}\n{answer_frames.screenful(self)}"

    def __str__(self) -> str:
        return f"{self._headline()}\n{answer_frames.table(self)}"

    def _headline(self) -> str:
        return (
            f"<Answers to {plural(len(self), 'query', 'queries')}: {show(Amount(self.epsilon, self.delta))}, "
            f"strategy={self.strategy}, charged ε={self.cost.epsilon:f}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values that JSON can carry: exact decimals as text, ``None`` for what is missing."""
        return {
            "epsilon": plain(self.epsilon),
            "delta": plain(self.delta),
            "cost": {"epsilon": plain(self.cost.epsilon), "delta": plain(self.cost.delta)},
            "strategy": self.strategy,
            "confidence": self.confidence,
            "answers": [{"query": i, **answer.to_dict()} for i, answer in enumerate(self.answers)],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def _repr_html_(self) -> str:
        charged = "nothing" if not any(self.cost) else show(self.cost)
        said = f"{plural(len(self), 'query', 'queries')} answered, charged {charged}; low to high holds the exact "
        said += f"answer {odds(self.confidence)}, for each figure by itself"
        return paragraph(said) + html_table(answer_frames.columns(self), left=answer_frames.LEFT)


def frame(
    workload: Workload,
    keys: KeyFrames,
    estimate: Estimate,
    confidence: float,
    *,
    compute: Compute,
    paid: Amount = NOTHING,
    cost: Amount = NOTHING,
    strategy: str = "none",
    histogram: Callable[[], pd.DataFrame],
) -> Answers:
    """Rebuild every query's columns from the estimated rows of the workload; ``keys`` are its ``key_frames``.

    ``compute`` runs what a statement computes from released frames.
    """
    half_width = estimate.half_width(confidence)
    answers = []
    together = Simultaneous(workload.queries, estimate, confidence)
    for query in workload.queries:
        if isinstance(query, OuterQuery):
            computed = outer_figures(query, keys, estimate, confidence, compute)
            names = numbered([column.column for column in query.columns])
            parts = computed.figures, computed.columns, computed.labels, computed.notes
            answers.append(Answer(query, names, *parts, confidence=confidence))
        else:
            answers.append(_answer(query, keys[id(query)], estimate, half_width, confidence, together))
    return Answers(tuple(answers), paid.epsilon, paid.delta, cost, strategy, confidence, histogram)


def key_frames(queries: Sequence[Query]) -> KeyFrames:
    """The key columns of every query, by its identity; queries over the same groups share one frame."""
    frames: dict[tuple[Any, ...], pd.DataFrame] = {}
    for query in queries:
        if (query.keys, query.groups) not in frames:
            frames[query.keys, query.groups] = key_frame(query)
    return {id(query): frames[query.keys, query.groups] for query in queries}


def _answer(
    query: Query,
    keys: pd.DataFrame,
    estimate: Estimate,
    half_width: Floats,
    confidence: float,
    together: Simultaneous,
) -> Answer:
    builder = ColumnBuilder(query, keys, estimate, half_width, confidence)
    figures: dict[int, Figures] = {}
    notes: dict[int, tuple[str, ...]] = {}
    for i, c in enumerate(query.columns):
        if is_number(c.output):
            figures[i], notes[i] = _marked(builder.figures(c.output), c.output, estimate, half_width)
    columns = [
        pd.Series(figures[i].value) if i in figures else pd.Series(builder.column(c.output))
        for i, c in enumerate(query.columns)
    ]
    labels, totals = list(query.labels), answer_frames.total_rows(query)
    order = None
    if query.arrangement is not None:
        leaves = leaf_values(query.arrangement.leaves, estimate.values, half_width)
        order = np.array(arranged(query, keys, columns, leaves), dtype=np.int64)
        figures = {i: f.at(order) for i, f in figures.items()}
        columns = [column.iloc[order].reset_index(drop=True) for column in columns]
        labels = [labels[i] for i in order]
        notes = {i: tuple(note[row] for row in order) for i, note in notes.items()}
        totals = {i: mask[order] for i, mask in totals.items()}
    names = numbered([c.name for c in query.columns])
    joint = partial(together.ends, query, keys, order)
    return Answer(query, names, figures, tuple(columns), tuple(labels), notes, totals, joint, confidence)


def _marked(
    figures: Figures, output: Output, estimate: Estimate, half_width: Floats
) -> tuple[Figures, tuple[str, ...]]:
    """The figures with NaN for every average over no rows, as far as the released count tells, and a note for each."""
    size = len(figures.value)
    count, low, high = _averaged(output, estimate.values, size)
    empty, vague = count <= 0, (low < high) & (figures.low <= low) & (figures.high >= high)
    extremes = np.array(_extremes(output, estimate.values, half_width, size), dtype=np.object_)
    notes = np.where(empty, _NO_ROWS, np.where(vague, _FEW_ROWS, extremes))
    if not estimate.predicted:
        notes = np.where((notes == "") & np.isnan(figures.stderr), UNPREDICTED, notes)
    return replace(figures, value=np.where(empty, np.nan, figures.value)), tuple(notes.tolist())


def _averaged(output: Output, values: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """How many rows each average or quantile is over, as released, and the ends of its range; infinite for others."""
    match output:
        case Ratio(denominator=rows):
            return values[list(rows)], np.full(size, output.low), np.full(size, output.high)
        case Quantile(grid=grid):
            return total(output, values), np.full(size, grid[0]), np.full(size, grid[-1])
        case Mode():
            least, greatest = float(min(output.values)), float(max(output.values))
            return (mode_places(output, values) + 1).astype(np.float64), np.full(size, least), np.full(size, greatest)
        case Stacked(parts):
            stacked = [_averaged(part, values, n) for n, part in parts]
            count, low, high = (np.concatenate(column) for column in zip(*stacked, strict=True))
            return count, low, high
    unbounded = np.full(size, np.inf)
    return unbounded, -unbounded, unbounded


def _extremes(output: Output, values: Floats, half_width: Floats, size: int) -> list[str]:
    """What is to be said of MIN, of MAX, and of quantiles as far out, whose own rank the noise hides."""
    match output:
        case Quantile(name=name):
            rows = hidden(output, values, half_width)
            return [f"{name}: an extreme quantile, about {n:,.0f} rows lie at or beyond it" if n else "" for n in rows]
        case Computed(leaves=leaves):
            notes = [_extremes(leaf, values, half_width, size) for leaf in leaves]
            return ["; ".join(dict.fromkeys(filter(None, row))) for row in zip(*notes, strict=True)] or [""] * size
        case Stacked(parts):
            return [note for n, part in parts for note in _extremes(part, values, half_width, n)]
    return [""] * size


def assemble(names: Sequence[str], columns: Sequence[pd.Series]) -> pd.DataFrame:
    """Columns side by side under names that may repeat."""
    frame = pd.DataFrame(dict(enumerate(columns)), copy=True)
    frame.columns = pd.Index(list(names), dtype="str")
    return frame
