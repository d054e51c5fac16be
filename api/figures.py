"""The numbers of an output column, each with its error bar.

COUNT, SUM and what is linear in them have exact intervals; AVG has Fieller's; anything else computed after release has
the range that it takes over everything that the numbers it is computed from may truly be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Estimate, ratio
from tacit.engine.inference.intervals import joint_stretch
from tacit.engine.inference.ranges import directions, factors, ranges, slopes
from tacit.engine.mechanism.widths import longest_reach
from tacit.sql.present import compute, exact_values, leaf_values, linear_values
from tacit.sql.workload import Computed, Linear, Output, Query, Ratio, Stacked

Floats = NDArray[np.float64]

_MARGIN = 1.01
"""The range is looked for at finitely many points; its true ends lie a little further out."""

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, repr=False, eq=False)
class Figures:
    """The numbers of one output column: an entry per row, each with its error bar."""

    value: Floats
    stderr: Floats
    low: Floats
    high: Floats

    def at(self, rows: NDArray[np.int64]) -> Figures:
        """The figures of some rows, in that order."""
        return Figures(self.value[rows], self.stderr[rows], self.low[rows], self.high[rows])


@dataclass(frozen=True, repr=False, eq=False)
class ColumnBuilder:
    """What it takes to rebuild the columns of one query."""

    query: Query
    keys: pd.DataFrame
    estimate: Estimate
    half_width: Floats
    confidence: float

    def figures(self, output: Output) -> Figures:
        """The released numbers of an output."""
        match output:
            case Linear():
                return self._linear(output)
            case Ratio():
                return self._ratio(output)
            case Computed():
                return self._computed(output)
            case Stacked(parts):
                stacked = [replace(self, keys=self.keys.iloc[:size]).figures(part) for size, part in parts]
                names = ("value", "stderr", "low", "high")
                return Figures(*(np.concatenate([getattr(f, name) for f in stacked]) for name in names))
        raise TypeError(type(output).__name__)

    def column(self, output: Output) -> Any:
        """A column that is not a released number: a key, a constant, or text computed from numbers."""
        return exact_values(self.query, output, self.keys, self.estimate.values)

    def _linear(self, output: Linear) -> Figures:
        rows = np.array(output.rows, dtype=np.int64)
        value, stderr = linear_values(output, self.estimate.values), self.estimate.stderr[rows]
        # Noise on integers may be as far off as the width exactly: the rounding of floats must not tip it over.
        half = self.half_width[rows] + np.where(stderr > 0, 1e-10 * stderr + 1e-13 * np.abs(value), 0.0)
        return Figures(value, stderr, value - half, value + half)

    def _ratio(self, output: Ratio) -> Figures:
        S, N = list(output.numerator), list(output.denominator)
        if np.isnan(self.estimate.stderr[S + N]).any():
            values, exact = self.estimate.values, np.zeros(len(S))
            return _without_errors(ratio(values[S], values[N], exact, exact, exact, output.low, output.high).value)
        answer = self.estimate.ratio(S, N, output.low, output.high, self.confidence)
        return Figures(answer.value, answer.stderr, answer.low, answer.high)

    def _computed(self, output: Computed) -> Figures:
        """The range of the expression over what its leaves may truly be: see ``engine.inference.ranges``.

        The standard error is that of the slopes at the released values. Where a shifted value cannot be computed (a
        division by zero, say), it is not known: NaN.
        """
        leaves = leaf_values(output.leaves, self.estimate.values)
        noisy = [i for i, leaf in enumerate(output.leaves) if isinstance(leaf, Linear)]
        count, d = len(self.keys), len(noisy)
        if not d or not count:
            value = self._evaluated(output, leaves)
            return Figures(value, np.zeros(count), value, value)
        rows = [np.array(output.leaves[i].rows, dtype=np.int64) for i in noisy]  # type: ignore[union-attr]
        if np.isnan(self.estimate.stderr[np.concatenate(rows)]).any():
            return _without_errors(self._evaluated(output, leaves))
        covariance = np.empty((count, d, d))
        for i in range(d):
            for j in range(d):
                covariance[:, i, j] = self.estimate.covariance(rows[i], rows[j])

        def figure(points: NDArray[np.float64]) -> NDArray[np.float64]:
            """Point by point, as ``compute`` wants it: all figures at the first point, then at the second."""
            many = points.shape[1]
            wide = [np.tile(leaf, many) for leaf in leaves]
            for k, i in enumerate(noisy):
                wide[i] = points[:, :, k].T.reshape(-1)
            return self._evaluated(output, wide).reshape(many, count).T

        centre = np.stack([leaves[i] for i in noisy], axis=1)
        factor = factors(covariance)
        near = slopes(figure, centre, factor)
        gradient = np.where(np.isfinite(near.gradient), near.gradient, 0.0)
        # Only its direction matters; the squares of very large and very small slopes are no floats.
        steepest = np.abs(gradient).max(axis=1, keepdims=True)
        gradient = np.divide(gradient, steepest, out=np.zeros_like(gradient), where=steepest > 0)
        width = self.estimate.combined_half_width(list(zip(rows, gradient.T, strict=True)), self.confidence)
        stderr = np.sqrt(np.maximum(np.einsum("gi,gij,gj->g", gradient, covariance, gradient), 0.0))
        # A sum of noises has a shorter tail than the longest of them, which counts where each may miss by itself.
        ones = np.ones(count)
        widths = [self.estimate.combined_half_width([(r, ones)], self.confidence) for r in rows]
        alone = np.stack([w / np.maximum(self.estimate.stderr[r], _TINY) for w, r in zip(widths, rows, strict=True)])
        longest = np.full(count, longest_reach(self.confidence))
        if self.estimate.is_coarse:  # a step of a lattice may be many standard errors
            longest = np.maximum(longest, alone.max(axis=0))
        # Where no slope is known, the longest tail that any noise has.
        reach = np.divide(width, stderr, out=longest.copy(), where=stderr > 0)
        stretch = np.array([joint_stretch(self.confidence, k) for k in range(1, d + 1)])
        turns = directions(figure, centre, factor, reach * stretch[-1])
        reach = np.where(turns > 1, np.maximum(reach, np.minimum(alone.max(axis=0), longest)), reach)
        low, high = ranges(figure, centre, factor, _MARGIN * reach * stretch[turns - 1])
        return Figures(near.value, near.stderr, low, high)

    def _evaluated(self, output: Computed, leaves: Sequence[NDArray[Any]]) -> Floats:
        values = pd.to_numeric(compute(output, self.keys, leaves), errors="coerce")
        return values.to_numpy(np.float64, na_value=np.nan)


def _without_errors(value: Floats) -> Figures:
    """Figures of a release whose errors are not predicted."""
    unknown = np.full(len(value), np.nan)
    return Figures(value, unknown, unknown, unknown)
