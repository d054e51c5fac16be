"""``explain``: what a batch would cost and how exact it would be, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Amount, baselines
from tacit.sql.workload import Cell, Key, Linear, Query

from .answers import frame_names, group_labels
from .budget import show
from .steps import Compiled, Priced, rows_of

Floats = NDArray[np.float64]

_AVG_NOTE = "AVG: depends on the released count"
_WORDS = {
    "split": "budget split per query",
    "results": "noise on every result",
    "histogram": "noisy histogram",
}


@dataclass(frozen=True, repr=False, eq=False)
class Plan:
    """The strategy for a batch and the error that it predicts; computed from the batch alone, free to look at.

    ``error``, ``alternatives`` and ``lower_bound`` are expected squared errors, summed over the batch after
    each row is divided by its largest entry and weighted: the figure that strategies compete on.
    """

    epsilon: Decimal
    delta: Decimal
    cost: Amount
    """What answering would charge now: zero when a stored release is good enough."""
    confidence: float
    strategy: str
    privacy: str
    """``pure`` (Laplace noise) or ``approximate`` (Gaussian)."""
    queries: tuple[Query, ...]
    cells: Sequence[Cell]
    error: float
    lower_bound: float
    """No strategy of this kind can have a smaller ``error``."""
    alternatives: Mapping[str, float]
    """The same figure for the budget split per query, noise on every result, and the noisy histogram."""
    stderr: Floats
    """Per row of the workload, as are the next two."""
    half_width: Floats
    alternative_stderr: Mapping[str, Floats]

    @property
    def gap(self) -> float:
        """How far ``error`` can be from the best possible, as a fraction of it."""
        return self.error / self.lower_bound - 1 if self.lower_bound > 0 else 0.0

    def df(self) -> pd.DataFrame:
        """A row for each figure that the batch would release.

        ``stderr`` and ``half_width`` (at ``confidence``) are exact predictions; they are NaN for AVG, with a
        ``note``. ``split``, ``results`` and ``histogram`` are the standard errors of the alternatives.
        """
        parts: dict[str, list[Any]] = {name: [] for name in ("query", "group", "column", "note")}
        rows: list[int] = []
        for index, query in enumerate(self.queries):
            labels, names = group_labels(query), frame_names([column.name for column in query.columns])
            for name, column in zip(names, query.columns, strict=True):
                if isinstance(column.output, Key):
                    continue
                linear = isinstance(column.output, Linear)
                rows += column.output.rows if isinstance(column.output, Linear) else [-1] * len(labels)
                parts["query"] += [index] * len(labels)
                parts["group"] += labels
                parts["column"] += [name] * len(labels)
                parts["note"] += ["" if linear else _AVG_NOTE] * len(labels)
        numbers = {"stderr": self.stderr, "half_width": self.half_width, **self.alternative_stderr}
        at = np.array(rows, dtype=np.int64)
        return pd.DataFrame(
            {
                "query": np.array(parts["query"], dtype=np.int64),
                "group": pd.Series(parts["group"], dtype="str"),
                "column": pd.Series(parts["column"], dtype="str"),
                **{name: np.append(column, np.nan)[at] for name, column in numbers.items()},
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
        noise = "Laplace" if self.privacy == "pure" else "Gaussian"
        lines = [
            f"{_number(len(self.queries), 'query', 'queries')} over {_number(len(self.cells), 'cell', 'cells')}, "
            f"{show(Amount(self.epsilon, self.delta))}",
            f"strategy {self.strategy}, {noise} noise; squared error ≤ {1 + self.gap:.3g} times the least possible",
        ]
        for name, error in self.alternatives.items():
            ratio = np.sqrt(error / self.error) if self.error > 0 else 1.0
            lines.append(f"  {_WORDS.get(name, name)}: {ratio:.2f} times the error of this plan")
        lines.append("already released: answering costs nothing" if not any(self.cost) else f"costs {show(self.cost)}")
        lines.append(f"half_width is at {self.confidence:.0%} confidence, for each figure by itself")
        return lines


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def predict(compiled: Compiled, priced: Priced | None, cost: Amount, confidence: float) -> Plan:
    """The plan as its reader sees it; ``priced=None`` for a batch that reads no private row."""
    workload, rows = compiled.workload, compiled.rows
    if priced is None:
        nothing = np.zeros(rows)
        return Plan(
            *(cost.epsilon, cost.delta, cost, confidence, "", "pure", workload.queries, workload.cells),
            *(0.0, 0.0, {}, nothing, nothing, {}),
        )
    plan, epsilon, delta = priced.plan, priced.epsilon, priced.delta
    query_of_row = np.zeros(rows, dtype=np.int64)
    for index, query in reversed(list(enumerate(workload.queries))):
        query_of_row[rows_of(query)] = index
    others = baselines(compiled.blocks, query_of_row.tolist(), epsilon, delta)
    largest = np.abs(workload.matrix).max(axis=1, initial=0.0)
    scale = np.divide(1.0, largest, out=np.zeros(rows), where=largest > 0)
    weights = np.ones(rows) if compiled.weights is None else compiled.weights

    def total(stderr: Floats) -> float:
        return float(np.sum(weights * (stderr * scale) ** 2))

    stderr = plan.stderr(epsilon, delta)
    return Plan(
        epsilon=epsilon,
        delta=delta,
        cost=cost,
        confidence=confidence,
        strategy=plan.name,
        privacy=plan.privacy,
        queries=workload.queries,
        cells=workload.cells,
        error=total(stderr),
        lower_bound=total(stderr) * (plan.lower_bound / plan.error if plan.error > 0 else 1.0),
        alternatives={name: total(other) for name, other in others.items()},
        stderr=stderr,
        half_width=plan.half_width(epsilon, delta, confidence),
        alternative_stderr=others,
    )
