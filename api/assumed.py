"""Errors that depend on how large things are: relative errors, and those of AVG, for sizes that a reader names.

Everything here is a function of the plan, of the caller's numbers and of what was released to the caller before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Estimate
from tacit.sql.workload import Computed, Mode, Output, Quantile, Query, Ratio, Stacked

from .answers import key_frames
from .display import number
from .errors import ProgrammingError
from .figures import ColumnBuilder

Floats = NDArray[np.float64]

RELEASED = "released"
_HINT = 'hint: size=1000, size=[1000, 50] with one for each query, or size="released" after a first release'


@dataclass(frozen=True, repr=False, eq=False)
class Assumed:
    """How large the figures and the groups of each query are taken to be."""

    of_query: tuple[float, ...] | None
    """None where the released values say it."""
    released: Estimate | None
    predicted: Estimate
    """The errors of the answer; its values are zeros."""
    confidence: float

    @classmethod
    def of(cls, size: Any, count: int, predicted: Estimate, released: Estimate | None, confidence: float) -> Assumed:
        """From the argument ``size=``: a number, one for each query, or ``"released"``."""
        sizes = checked_size(size, count)
        if isinstance(sizes, tuple):
            return cls(sizes, None, predicted, confidence)
        if released is None:
            raise ProgrammingError(f'size="released" needs a release to know the sizes from\n{_HINT}')
        return cls(None, released, predicted, confidence)

    def sizes(self, query: int, rows: Sequence[int]) -> Floats:
        """How large the figures behind some rows of the workload are; NaN where nobody knows."""
        if self.of_query is not None:
            return np.full(len(rows), self.of_query[query])
        assert self.released is not None
        known = np.where(np.isfinite(self.released.stderr), np.abs(self.released.values), np.nan)
        return np.append(known, np.nan)[np.array(rows, dtype=np.int64)]

    def predict(self, index: int, query: Query, output: Output) -> tuple[Floats, Floats, list[str]] | None:
        """(standard errors, half-widths, notes) of an output whose error depends on sizes; None where it stays open."""
        if self.of_query is not None:
            return self._of_averages(output, self.of_query[index])
        assert self.released is not None
        if not isinstance(output, Ratio | Computed | Quantile | Mode | Stacked):
            return None
        values = np.where(np.isfinite(self.released.stderr), self.released.values, np.nan)
        as_released = replace(self.predicted, values=values)
        keys = key_frames([query])[id(query)]
        builder = ColumnBuilder(query, keys, as_released, self.predicted.half_width(self.confidence), self.confidence)
        figures = builder.figures(output)
        half = np.maximum(figures.high - figures.value, figures.value - figures.low)
        return figures.stderr, half, ["predicted at the released values"] * len(half)

    def _of_averages(self, output: Output, size: float) -> tuple[Floats, Floats, list[str]] | None:
        """Of AVG over so many rows, for the average at which its interval is widest.

        Fieller's interval is computed at both ends of the declared range and in its middle: the variance of S − tN is
        convex in t, so it is largest at an end.
        """
        if isinstance(output, Stacked):
            parts = [(n, self._of_averages(part, size)) for n, part in output.parts]
            if all(part is None for _, part in parts):
                return None
            unknown = [(np.full(n, np.nan), np.full(n, np.nan), [""] * n) if p is None else p for n, p in parts]
            stderr, half, notes = zip(*unknown, strict=True)
            return np.concatenate(stderr), np.concatenate(half), [note for listed in notes for note in listed]
        if not isinstance(output, Ratio):
            return None
        S, N = np.array(output.numerator, dtype=np.int64), np.array(output.denominator, dtype=np.int64)
        stderr, half = np.zeros(len(S)), np.zeros(len(S))
        for average in (output.low, (output.low + output.high) / 2, output.high):
            values = np.zeros_like(self.predicted.values)
            values[S], values[N] = average * size, size
            there = replace(self.predicted, values=values).ratio(S, N, output.low, output.high, self.confidence)
            stderr = np.maximum(stderr, there.stderr)
            half = np.maximum(half, np.maximum(there.high - there.value, there.value - there.low))
        return stderr, half, [f"AVG over {number(size)} rows, at most"] * len(S)


def checked_size(size: Any, count: int) -> str | tuple[float, ...]:
    """``size=`` as the sizes of each query, or as the word for what was released."""
    if isinstance(size, str):
        if size != RELEASED:
            raise ProgrammingError(f"size= is a number of rows, not {size[:40]!r}\n{_HINT}")
        return RELEASED
    listed = list(size) if isinstance(size, (list, tuple, np.ndarray)) else [size] * count
    try:
        sizes = tuple(np.nan if isinstance(one, (str, bytes, bool)) else float(one) for one in listed)
    except (TypeError, ValueError, OverflowError):
        sizes = ()
    if len(sizes) != count or not all(np.isfinite(one) and one > 0 for one in sizes):
        raise ProgrammingError(f"size= must be one positive number, or one for each of {count} queries\n{_HINT}")
    return sizes
