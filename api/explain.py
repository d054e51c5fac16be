"""``explain``: what a batch would cost and how exact it would be, before anything is spent."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Amount, baselines
from tacit.engine.accounting.amounts import NOTHING
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

from .answers import UNPREDICTED
from .budget import show
from .compiled_batch import CompiledBatch
from .pricing import Purchase
from .releases import total
from .request import Ask
from .reuse import Decision

Floats = NDArray[np.float64]

_AVG_NOTE = "AVG: depends on the released count"
_QUANTILE_NOTE = "quantile: its rank is known to about ±{:,.3g} rows"
_MODE_NOTE = "mode: each count it compares is known to ±{:,.3g}"
_COMPUTED_NOTE = "computed: depends on the released values"
_INNER_NOTE = "released; the answer is computed from it"
_ROUNDING = 1 + 1e-6
_WORDS = {
    "split": "budget split per query",
    "results": "noise on every result",
    "histogram": "noisy histogram",
}
_MEASURES = {
    "total": "squared error",
    "largest": "largest squared error",
    "absolute": "sum of standard errors",
    "relative": "squared relative error",
}


@dataclass(frozen=True, repr=False, eq=False)
class Plan:
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

    @property
    def gap(self) -> float:
        """How far ``error`` can be from the best strategy with this kind of noise, as a fraction of it."""
        if self.stages:
            return np.nan
        return self.error / self.lower_bound - 1 if self.lower_bound > 0 else 0.0

    def df(self) -> pd.DataFrame:
        """A row for each figure that the batch would release.

        ``stderr`` and ``half_width`` (at ``confidence``) are exact predictions; they are NaN for AVG, with a
        ``note``, and for quantiles, whose ``note`` predicts the error of the rank, not of the value. ``split``,
        ``results`` and ``histogram`` are the standard errors of the alternatives.
        """
        parts: dict[str, list[Any]] = {name: [] for name in ("query", "group", "column", "note")}
        rows: list[int] = []
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
                rows += at
                parts["query"] += [index] * len(labels)
                parts["group"] += labels
                parts["column"] += [name] * len(labels)
                parts["note"] += notes
        numbers = {"stderr": self.stderr, "half_width": self.half_width, **self.alternative_stderr}
        positions = np.array(rows, dtype=np.int64)
        return pd.DataFrame(
            {
                "query": np.array(parts["query"], dtype=np.int64),
                "group": pd.Series(parts["group"], dtype="str"),
                "column": pd.Series(parts["column"], dtype="str"),
                **{name: np.append(column, np.nan)[positions] for name, column in numbers.items()},
                "note": pd.Series(parts["note"], dtype="str"),
            }
        )

    def __repr__(self) -> str:
        return (
            f"<Plan for {_number(len(self.queries), 'query', 'queries')} over {len(self.cells)} cells: "
            f"{show(Amount(self.epsilon, self.delta))}, strategy={self.strategy or 'none'}>"
        )

    def __str__(self) -> str:
        frame = self.df()
        if not frame["note"].any():
            frame = frame.drop(columns="note")
        table = frame.to_string(index=False, max_rows=40, float_format=lambda v: f"{v:,.4g}")
        return "\n".join([*self._summary(), table])

    def _summary(self) -> list[str]:
        if not self.strategy:
            return ["reads no private row: free"]
        lines = [
            f"{_number(len(self.queries), 'query', 'queries')} over {_number(len(self.cells), 'cell', 'cells')}, "
            f"{show(Amount(self.epsilon, self.delta))}"
        ]
        lines += self.discover
        if self.stages:
            return [*lines, *self._staged()]
        if any(self.bought) and self.combined <= self.error * _ROUNDING:  # else its bounds would not be the answer's
            lines += self._strategy()
        elif any(self.bought):
            lines.append(f"strategy {self.strategy} for what is bought, {self._noise} noise")
        lines.append(self.why)
        lines.append(f"half_width is at {self.confidence:.0%} confidence, for each figure by itself")
        return lines

    def _staged(self) -> list[str]:
        return [
            f"strategy {self.strategy} chooses its questions when it sees the counts; "
            "its error is measured, not predicted",
            *(f"  {stage}" for stage in self.stages),
            self.why,
            "split, results and histogram are the standard errors of strategies that do not look at the data",
        ]

    @property
    def _distance(self) -> str:
        if self.least_error is None:
            return f"≤ {1 + self.gap:.3g} times the least with {self._noise} noise"
        if self.least_error < sys.float_info.min:  # at an ε of hundreds the least is no float any more
            return f"{self.error:.2g}"
        return f"≤ {self.error / self.least_error:.3g} times the least of any ε-private mechanism"

    @property
    def _noise(self) -> str:
        return "Laplace" if self.privacy == "pure" else "Gaussian"

    def _strategy(self) -> list[str]:
        lines = [
            f"strategy {self.strategy}, {self._noise} noise; {_MEASURES[self.objective]} {self._distance}",
        ]
        for name, error in self.alternatives.items():
            ratio = error / self.error if self.error > 0 else 1.0
            if self.objective != "absolute":
                ratio = np.sqrt(ratio)
            lines.append(f"  {_WORDS.get(name, name)}: {ratio:.2f} times the error of this plan")
        return lines


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


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


def predicted_plan(ask: Ask, whole: Purchase, decision: Decision, cost: Amount) -> Plan:
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
    )


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
        return f"{text}: with {stored}, that is enough for ±{ask.error:g}"
    return (
        f"{text}: {stored} answers part of the batch; "
        f"buying the rest for that makes the whole as exact as {show(whole.cost)} would"
    )
