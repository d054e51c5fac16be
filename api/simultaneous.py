"""Intervals that hold all together: with probability ``confidence``, every figure of the batch lies in its own.

By Bonferroni's inequality: of m figures each has the interval of confidence 1 − (1 − confidence)/m, so the probability
that any misses is at most the sum of m parts of 1 − confidence. It holds however the errors depend on each other, for
every kind of interval (exact ones of sums of noises, Fieller's, those of quantiles) and for noise on a coarse lattice.
The price is some width where figures err together; the half-widths of the noise itself are computed exactly at that
confidence, not stretched by a rule for normal tails. Figures are counted over every group of every query, before
HAVING, ORDER BY and LIMIT choose among them by noisy values: so the intervals hold for whatever was chosen. Figures
that are one and the same row of the workload count once, and exact ones not at all. Statements over released frames
have simulated errors, for which nothing is proven: they have no such interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Estimate
from tacit.sql.present import is_number, rows_behind
from tacit.sql.workload import Linear, OuterQuery, Output, Query, Stacked

from .figures import ColumnBuilder

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Simultaneous:
    """The joint intervals of a batch."""

    queries: tuple[Query | OuterQuery, ...]
    estimate: Estimate
    confidence: float

    @cached_property
    def figures(self) -> int:
        """How many figures with an error there are."""
        return figure_count(self.queries, self.estimate.stderr)

    @cached_property
    def each(self) -> float:
        """The confidence of each interval by itself."""
        return 1 - (1 - self.confidence) / max(self.figures, 1)

    @cached_property
    def half_width(self) -> Floats:
        """Of every row of the workload."""
        return self.estimate.half_width(self.each)

    def ends(
        self, query: Query, keys: pd.DataFrame, order: NDArray[np.int64] | None
    ) -> Mapping[int, tuple[Floats, Floats]]:
        """By position of an output column, the (low, high) of its figures; ``order`` as the rows were arranged."""
        builder = ColumnBuilder(query, keys, self.estimate, self.half_width, self.each)
        found = {}
        for position, column in enumerate(query.columns):
            if is_number(column.output):
                figures = builder.figures(column.output)
                figures = figures if order is None else figures.at(order)
                found[position] = figures.low, figures.high
        return found


def figure_count(queries: Iterable[Query | OuterQuery], stderr: Floats) -> int:
    """How many figures of a batch have an error."""
    rows: set[int] = set()
    computed = 0
    for query in queries:
        if isinstance(query, OuterQuery):
            continue
        for column in query.columns:
            for size, output in _parts(column.output, len(query.groups)):
                if isinstance(output, Linear):
                    rows.update(output.rows)
                elif is_number(output) and (stderr[rows_behind(output)] != 0).any():
                    computed += size
    return computed + int(np.count_nonzero(stderr[sorted(rows)]))


def _parts(output: Output, size: int) -> Iterable[tuple[int, Output]]:
    return output.parts if isinstance(output, Stacked) else ((size, output),)
