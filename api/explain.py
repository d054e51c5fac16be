"""``explain``: what a batch would cost and how exact it would be, before anything is spent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Amount, baselines, to_epsilon
from tacit.engine.accounting.amounts import NOTHING, exact_sum
from tacit.engine.accounting.terms import NO_UNIT
from tacit.sql.names import numbered
from tacit.sql.present import is_number, rows_used
from tacit.sql.workload import (
    Cell,
    Linear,
    Mode,
    OuterQuery,
    Output,
    Quantile,
    Query,
    Ratio,
    Stacked,
    released_parts,
)

from . import plan_text
from .answers import UNPREDICTED
from .assumed import RELEASED, Assumed
from .budget import Account, show
from .compiled_batch import CompiledBatch
from .display import TEXT, cut_inside, html_table, one_line, paragraph, plain, plural, records
from .error_targets import in_words
from .errors import ProgrammingError
from .pickled import KeptWhatIf, Unchanging
from .plan_matrices import Matrices, matrices
from .pricing import Pricer, Purchase
from .releases import total
from .request import Ask, Number
from .reuse import Decision
from .simultaneous import Simultaneous
from .what_if import WhatIf

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_AVG_NOTE = "AVG: depends on how many rows it is over; size=1000 predicts it"
_QUANTILE_NOTE = "quantile: its rank is known to about ±{:,.3g} rows"
_MODE_NOTE = "mode: each count it compares is known to ±{:,.3g}"
_COMPUTED_NOTE = 'computed: depends on the released values; after a first release, size="released" predicts it'
_INNER_NOTE = "released; the answer is computed from it"


@dataclass(frozen=True, repr=False, eq=False)
class Plan(Unchanging):
    """What ``answer`` would do and how exact it would be; computed without a private row, free to look at.

    ``stderr`` and ``half_width`` are those of the answer: what was released before and what would be bought, combined.
    ``error``, ``alternatives`` and ``lower_bound`` are about the whole batch bought anew at ``epsilon`` and ``delta``:
    expected squared errors, summed after each row is divided by its largest entry and weighted, which is the figure
    that strategies compete on. With another ``objective`` they are in its measure: the largest of those squared errors,
    the sum of the standard errors themselves, or squared errors divided by the squared sizes.
    """

    epsilon: Decimal
    delta: Decimal
    cost: Amount
    """What answering would charge now: zero when a stored release is good enough."""
    bought: Amount
    """What would be measured anew, at this price; zero where nothing is."""
    why: str
    """Why it costs what it costs, in a sentence."""
    confidence: float
    strategy: str
    privacy: str
    """``pure`` (Laplace noise) or ``approximate`` (Gaussian)."""
    queries: tuple[Query | OuterQuery, ...]
    cells: Sequence[Cell]
    error: float
    """What was minimised: the errors of all figures in one number, as ``objective`` says. Weights, and the sizes of
    relative errors, count in proportion to the largest of them."""
    combined: float
    """The same figure for the answer: what was released before and what would be bought, combined."""
    lower_bound: float
    """No strategy with this kind of noise, Laplace or Gaussian, can have a smaller ``error``."""
    least_error: float | None
    """No ε-private mechanism of any kind can have a smaller ``error``. None for Gaussian noise: no bound for all
    (ε, δ)-private mechanisms is known with its constants."""
    alternatives: Mapping[str, float]
    """The same figure for the budget split per query, noise on every result, and the noisy histogram."""
    stderr: Floats
    """Per row of the workload, as are the next two."""
    half_width: Floats
    alternative_stderr: Mapping[str, Floats]
    objective: str = "total"
    stages: tuple[str, ...] = ()
    """Of a strategy that looks at the data: what it does, and the ε of each. Its error is not predicted: NaN."""
    discover: tuple[str, ...] = ()
    """What would be found first, for how much, and what stands for it here. ``cost`` has that in it."""

    account: Account | None = None
    """The budget that the cost is measured against: the analyst's own, or the whole. None where none is stated."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Whose presence is hidden, by table: the column of the unit, or nothing where every row is one."""
    peaks: Floats | None = None
    """Per row of the workload, the most that one row of the data can add to it."""
    what_if: WhatIf | KeptWhatIf | None = None
    """What can be asked about other budgets, and about queries alone."""

    @property
    def gap(self) -> float:
        """How far ``error`` can be from the best strategy with this kind of noise, as a fraction of it."""
        if self.stages:
            return np.nan
        return self.error / self.lower_bound - 1 if self.lower_bound > 0 else 0.0

    @property
    def noise(self) -> str:
        """The kind of noise."""
        return "Laplace" if self.privacy == "pure" else "Gaussian"

    def df(self, *, size: Any = None, simultaneous: bool = False) -> pd.DataFrame:
        """A row for each figure that the batch would release.

        ``stderr`` and ``half_width`` (at ``confidence``) are exact predictions; they are NaN for AVG, with a
        ``note``, and for quantiles, whose ``note`` predicts the error of the rank, not of the value. ``split``,
        ``results`` and ``histogram`` are the standard errors of the alternatives.

        ``size`` says how large the figures are expected to be, and how many rows an AVG is over: one number, or one
        for each query. It adds ``relative``, the half-width over that size, and predicts AVG: the widest interval of
        any average in the declared range. ``size="released"`` takes what was released before, group by group, and
        predicts every other computed figure there too.

        ``simultaneous`` adds ``half_width_all`` for counts and sums: with probability ``confidence`` all figures of the
        batch are within theirs at once.
        """
        frame = self.figures(size=size)
        if simultaneous:
            place = list(frame.columns).index("half_width") + 1
            frame.insert(place, "half_width_all", np.append(self.joint_half_width, np.nan)[frame["row"]])
        return frame.drop(columns=["kind", "row"])

    @property
    def joint_half_width(self) -> Floats:
        """Per row of the workload: with probability ``confidence`` all figures are within theirs at once."""
        if self.what_if is None:
            return np.full(len(self.half_width), np.nan if self.stages else 0.0)
        return Simultaneous(self.queries, self.what_if.predicted, self.confidence).half_width

    def figures(self, *, size: Any = None) -> pd.DataFrame:
        """``df``, with the ``kind`` of each figure in a word, and the ``row`` of the workload behind it, or -1."""
        assumed = self._assumed(size)
        open_ended: list[tuple[int, Floats, Floats]] = []
        sizes: list[Floats] = []
        parts: dict[str, list[Any]] = {name: [] for name in ("query", "text", "group", "column", "kind", "note")}
        rows: list[int] = []
        texts = [cut_inside(one_line(query.sql), TEXT) for query in self.queries]
        released = [(i, part) for i, whole in enumerate(self.queries) for part in released_parts(whole)]
        for index, query in released:
            labels, names = list(query.labels), numbered([column.name for column in query.columns])
            for name, column in zip(names, query.columns, strict=True):
                if not is_number(column.output):
                    continue
                at, notes = _predicted(column.output, len(labels), self.half_width)
                if isinstance(self.queries[index], OuterQuery):
                    notes = [note or _INNER_NOTE for note in notes]
                if self.stages:
                    notes = [UNPREDICTED if row < 0 or np.isnan(self.stderr[row]) else "" for row in at]
                if assumed is not None:
                    sizes.append(assumed.sizes(index, at))
                    if (found := assumed.predict(index, query, column.output)) is not None:
                        open_ended.append((len(rows), found[0], found[1]))
                        notes = [new if row < 0 else old for row, old, new in zip(at, notes, found[2], strict=True)]
                rows += at
                parts["query"] += [index] * len(labels)
                parts["text"] += [texts[index]] * len(labels)
                parts["group"] += labels
                parts["column"] += [name] * len(labels)
                parts["kind"] += self._kinds(at, self.queries[index])
                parts["note"] += notes
        numbers = {"stderr": self.stderr, "half_width": self.half_width, **self.alternative_stderr}
        positions = np.array(rows, dtype=np.int64)
        shown = {name: np.append(column, np.nan)[positions] for name, column in numbers.items()}
        for start, stderr, half_width in open_ended:
            place = start + np.flatnonzero(positions[start : start + len(stderr)] < 0)
            shown["stderr"][place], shown["half_width"][place] = stderr[place - start], half_width[place - start]
        if assumed is not None:
            whole = np.where(positions >= 0, np.concatenate([*sizes, np.zeros(0)]), np.nan)
            relative = np.divide(shown["half_width"], whole, out=np.full(len(whole), np.nan), where=whole > 0)
            shown = {
                "stderr": shown.pop("stderr"),
                "half_width": shown.pop("half_width"),
                "relative": relative,
                **shown,
            }
        return pd.DataFrame(
            {
                "query": np.array(parts["query"], dtype=np.int64),
                **{name: pd.Series(parts[name], dtype="str") for name in ("text", "group", "column")},
                **shown,
                "note": pd.Series(parts["note"], dtype="str"),
                "kind": pd.Series(parts["kind"], dtype="str"),
                "row": positions,
            }
        )

    def by_query(self, *, size: Any = None, alone: bool = False) -> pd.DataFrame:
        """A row for each query: its ``text``, how many ``figures``, and their ``smallest`` and ``largest`` half-width.

        ``size`` is as in ``df``, and adds the largest ``relative`` half-width. ``alone`` adds the ε that the query
        would cost by itself, as exact as here: each is planned for that, for half a second at most.
        """
        frame = self.figures(size=size)
        grouped = frame.groupby("query")
        places = pd.RangeIndex(len(self.queries))
        widths = grouped["half_width"]
        notes = grouped["note"].agg(lambda notes: "; ".join(dict.fromkeys(note for note in notes if note)))
        summary = pd.DataFrame(
            {
                "query": places,
                "text": pd.Series([cut_inside(one_line(q.sql), TEXT) for q in self.queries], dtype="str"),
                "figures": grouped.size().reindex(places, fill_value=0),
                "smallest": widths.min().reindex(places),
                "largest": widths.max().reindex(places),
            }
        )
        if "relative" in frame:
            summary["relative"] = grouped["relative"].max().reindex(places)
        if alone:
            costs = [None if self.what_if is None else self.what_if.alone(i) for i in range(len(self.queries))]
            summary["alone"] = pd.Series(costs, dtype="object")
        summary["note"] = notes.reindex(places, fill_value="").astype("str")
        return summary

    def cost_of_each_alone(self) -> Decimal | None:
        """The ε of all queries asked one by one, each as exact as here; None where that is not known."""
        if self.what_if is None:
            return None
        costs = [self.what_if.alone(i) for i in range(len(self.queries))]
        return exact_sum(cost for cost in costs if cost is not None)

    @property
    def plain_why(self) -> str:
        """``why`` where there is nothing special about the cost."""
        return f"costs {show(self.cost)}"

    @property
    def other_groups(self) -> bool:
        """Whether some group is of the values that nobody declared, under its usual name."""
        return any("=other" in label for q in self.queries for part in released_parts(q) for label in part.labels)

    def text(self, *, all: bool = False, size: Any = None) -> str:
        """The plan in words: how exact, for how much; with ``all`` also how, against what, and what the words mean.

        ``size`` is as in ``df``.
        """
        return plan_text.text(self, all=all, size=size)

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values that JSON can carry: exact decimals as text, ``None`` for what is not known."""
        account = self.account
        return {
            "summary": plan_text.sentence(self),
            **{name: plain(value) for name, value in (("epsilon", self.epsilon), ("delta", self.delta))},
            "cost": {"epsilon": plain(self.cost.epsilon), "delta": plain(self.cost.delta)},
            "budget": None if account is None else account.to_dict(),
            "why": self.why,
            "confidence": self.confidence,
            "strategy": self.strategy,
            "noise": self.noise,
            "objective": self.objective,
            "cells": len(self.cells),
            "units": dict(self.units),
            **{name: plain(getattr(self, name)) for name in ("error", "combined", "lower_bound", "least_error", "gap")},
            "alternatives": plain(self.alternatives),
            "stages": list(self.stages),
            "discover": list(self.discover),
            "queries": [{"query": i, "sql": query.sql} for i, query in enumerate(self.queries)],
            "figures": records(self.df().drop(columns="text")),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """``to_dict`` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def curve(self, epsilons: Sequence[Number] | None = None, *, query: int | None = None) -> pd.DataFrame:
        """What each ε would buy: the ``smallest``, ``median`` and ``largest`` half-width of counts and sums.

        (Of a batch without any, of those that its figures are computed from.)

        For the whole batch bought anew, at this plan's δ and confidence, and for one ``query`` if it is named. The
        default is a dozen ε from a tenth of this plan's to ten times it, as far as the budget goes. Free, and no row
        is read.
        """
        if self.what_if is None:
            raise ProgrammingError("nothing of this batch has an error that a budget decides, so there is no curve")
        if query is not None and not 0 <= query < len(self.queries):
            raise ProgrammingError(f"the batch has {len(self.queries)} queries, numbered from 0")
        return self._curve(self._grid() if epsilons is None else [to_epsilon(one) for one in epsilons], query)

    def _curve(self, epsilons: Sequence[Number], query: int | None) -> pd.DataFrame:
        assert self.what_if is not None
        frame = self.figures()
        rows = frame.loc[(frame["row"] >= 0) & (True if query is None else frame["query"] == query), "row"]
        used = rows.to_numpy() if len(rows) else np.flatnonzero(self.stderr > 0)
        return self.what_if.curve(epsilons, used)

    def _matrices(self) -> Matrices:
        return matrices(self)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Each query's standard error, beside those of other ways (``tacit.plot``)."""
        from . import plot

        return plot.plan(self, ax=ax)

    def plot_curve(
        self, epsilons: Sequence[Number] | None = None, *, query: int | None = None, ax: Axes | None = None
    ) -> Axes:
        """``curve`` as a picture."""
        from . import plot

        cap = None if self.account is None else float(self.account.cap.epsilon)
        frame = self.curve(epsilons, query=query)
        return plot.curve(frame, epsilon=float(self.epsilon), cap=cap, confidence=self.confidence, ax=ax)

    def plot_workload(self, *, ax: Axes | None = None) -> Axes:
        """Which figure counts which cell, as a heat map."""
        from . import plot

        return plot.workload(self, ax=ax)

    def plot_strategy(self, *, ax: Axes | None = None) -> Axes:
        """The questions that are asked with noise, as a heat map."""
        from . import plot

        return plot.strategy(self, ax=ax)

    def _grid(self) -> list[Decimal]:
        """Even steps on a logarithmic scale; the plan's own ε is one of them."""
        most = float(self.epsilon) * 10
        if self.account is not None and self.account.cap.epsilon > 0:
            most = max(min(most, float(self.account.cap.epsilon)), float(self.epsilon))
        steps = np.geomspace(float(self.epsilon) / 10, most, 12)
        return sorted({Decimal(f"{step:.3g}") for step in steps} | {self.epsilon})

    def _assumed(self, size: Any) -> Assumed | None:
        if size is None or self.what_if is None:
            return None
        released = self.what_if.released() if size == RELEASED else None
        return Assumed.of(size, len(self.queries), self.what_if.predicted, released, self.confidence)

    def _kinds(self, rows: Sequence[int], query: Query | OuterQuery) -> list[str]:
        """What each figure is called in a sentence."""
        if isinstance(query, OuterQuery) or self.peaks is None:
            return ["figure"] * len(rows)
        sums = "sum" if "sum(" in query.sql.lower() else "figure"
        return ["count" if row >= 0 and self.peaks[row] == 1 else sums for row in rows]

    def __getstate__(self) -> dict[str, Any]:
        what_if = self.what_if.kept() if isinstance(self.what_if, WhatIf) else self.what_if
        return {**self.__dict__, "what_if": what_if, "cells": range(len(self.cells))}

    def __repr__(self) -> str:
        return (
            f"<Plan for {plural(len(self.queries), 'query', 'queries')} over {len(self.cells)} cells: "
            f"{show(Amount(self.epsilon, self.delta))}, strategy={self.strategy or 'none'}>"
        )

    def __str__(self) -> str:
        return self.text()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))  # IPython's prompt

    def _repr_html_(self) -> str:
        table = html_table(plan_text.columns(self), left=("query", "note")) if self.strategy else ""
        special = paragraph(self.why) if self.why != self.plain_why and self.strategy else ""
        return "".join([f"<p><b>{escape(plan_text.sentence(self))}</b></p>", special, table])


def _predicted(output: Output, count: int, half_width: Floats) -> tuple[list[int], list[str]]:
    """The row of the workload behind each figure, or -1 and a note where the error depends on released values."""
    match output:
        case Linear(rows):
            return list(rows), [""] * count
        case Stacked(parts):
            stacked = [_predicted(part, size, half_width) for size, part in parts]
            return [row for rows, _ in stacked for row in rows], [note for _, notes in stacked for note in notes]
        case Quantile(prefixes=counts) | Mode(counts=counts):
            widths = np.median(half_width[np.array(counts, dtype=np.int64)], axis=0)
            note = _QUANTILE_NOTE if isinstance(output, Quantile) else _MODE_NOTE
            return [-1] * count, [note.format(width) for width in widths]
        case Ratio():
            return [-1] * count, [_AVG_NOTE] * count
    return [-1] * count, [_COMPUTED_NOTE] * count


def free_plan(batch: CompiledBatch, confidence: float) -> Plan:
    """The plan of a batch that reads no private row."""
    zeros = np.zeros(batch.row_count)
    return Plan(
        epsilon=NOTHING.epsilon,
        delta=NOTHING.delta,
        cost=NOTHING,
        bought=NOTHING,
        why="",
        confidence=confidence,
        strategy="",
        privacy="pure",
        queries=batch.workload.queries,
        cells=batch.workload.cells,
        error=0.0,
        combined=0.0,
        lower_bound=0.0,
        least_error=0.0,
        alternatives={},
        stderr=zeros,
        half_width=zeros,
        alternative_stderr={},
    )


def alternatives(batch: CompiledBatch, epsilon: Decimal, delta: Decimal) -> Mapping[str, Floats]:
    """The standard errors of every row by the three ways that need no search."""
    query_of_row = np.zeros(batch.row_count, dtype=np.int64)
    for index, query in reversed(list(enumerate(batch.workload.queries))):
        query_of_row[rows_used(query)] = index
    return baselines(batch.tables, query_of_row.tolist(), epsilon, delta)


def predicted_plan(ask: Ask, whole: Purchase, decision: Decision, cost: Amount, pricer: Pricer, rule: str) -> Plan:
    """The plan as its reader sees it; ``whole`` is the whole batch bought anew."""
    batch, plan, epsilon, delta = whole.batch, whole.plan, whole.epsilon, whole.delta
    others = alternatives(batch, epsilon, delta)
    error = batch.measured(plan.stderr(epsilon, delta))
    estimate = decision.predicted(batch, ask.inference)
    if ask.integer:
        estimate = estimate.rounded()
    purchase = decision.purchase
    used = plan if purchase is None else purchase.plan
    return Plan(
        epsilon=epsilon,
        delta=delta,
        cost=cost,
        bought=NOTHING if purchase is None else purchase.cost,
        why=_why(ask, whole, decision, cost),
        confidence=ask.confidence,
        strategy=used.name,
        privacy=used.privacy,
        queries=batch.workload.queries,
        cells=batch.workload.cells,
        error=error,
        combined=batch.measured(estimate.stderr),
        lower_bound=min(plan.least_of_kind(epsilon, delta), error),
        least_error=min(plan.least_of_all(epsilon), error) if plan.privacy == "pure" else None,
        alternatives={name: batch.measured(other) for name, other in others.items()},
        stderr=estimate.stderr,
        half_width=estimate.half_width(ask.confidence),
        alternative_stderr=others,
        objective=ask.objective,
        units=shown_units(batch),
        peaks=batch.row_peaks,
        what_if=WhatIf(ask, whole, decision, estimate, pricer, rule),
    )


def shown_units(batch: CompiledBatch) -> dict[str, str]:
    """The unit of every private table; nothing where each row is one."""
    return {table: "" if unit == NO_UNIT else unit for table, unit in batch.units.items()}


def _why(ask: Ask, whole: Purchase, decision: Decision, cost: Amount) -> str:
    """The cost in words, and the reason where it is not what was asked for."""
    reading = f"reading it counts {show(total(r.cost for r in decision.read))} against your own cap"
    stored = f"what others paid for ({reading})" if decision.read else "what was released before"
    if decision.purchase is None:
        if decision.read:
            return f"already released, and others paid for it: answering costs nothing, but {reading}"
        return "already released: answering costs nothing"
    bought = decision.purchase.cost
    if not any(cost):
        return "paid for before, and never released: answering costs nothing"
    text = f"costs {show(cost)}"
    if cost != bought:
        text += f", which is what a release at {show(bought)} adds under this ledger's rule"
    if bought == whole.cost:
        return text if not decision.used or not ask.refresh else f"{text}; the answer combines it with {stored}"
    if ask.error is not None:
        return f"{text}: with {stored}, that is enough for {in_words(ask.error)}"
    return (
        f"{text}: {stored} answers part of the batch; "
        f"buying the rest for that makes the whole as exact as {show(whole.cost)} would"
    )
