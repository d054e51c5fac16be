"""The numbers of an output column, each with its error bar.

COUNT, SUM and what is linear in them have exact intervals; AVG has Fieller's, and quantiles have one of the same kind;
anything else computed after release has the range that it takes over everything that the numbers it is computed from
may truly be.
"""

from __future__ import annotations

import itertools
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
from tacit.sql.present import compute, exact_values, is_number, leaf_values, linear_values
from tacit.sql.ranks import mode_places, mode_values, quantile_values
from tacit.sql.workload import Computed, Linear, Mode, Output, PublicValues, Quantile, Query, Ratio, Stacked

Floats = NDArray[np.float64]

_MARGIN = 1.01
"""The range is looked for at finitely many points; its true ends lie a little further out."""

_MOST_CORNERS = 6
"""Leaves of an expression with a quantile in it, up to which every combination of their ends is tried."""

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
            case Quantile():
                return self._quantile(output)
            case Mode():
                return self._mode(output)
            case Computed(leaves=leaves) if any(isinstance(leaf, Quantile | Mode) for leaf in leaves):
                return self._boxed(output)
            case Computed():
                return self._computed(output)
            case Stacked(parts):
                stacked = [replace(self, keys=self.keys.iloc[:size]).figures(part) for size, part in parts]
                names = ("value", "stderr", "low", "high")
                return Figures(*(np.concatenate([getattr(f, name) for f in stacked]) for name in names))
        raise TypeError(type(output).__name__)

    def column(self, output: Output) -> Any:
        """A column that is not a released number: a key, a constant, or text computed from numbers."""
        return exact_values(self.query, output, self.keys, self.estimate.values, self.half_width)

    def _linear(self, output: Linear) -> Figures:
        rows = np.array(output.rows, dtype=np.int64)
        value, stderr = linear_values(output, self.estimate.values), self.estimate.stderr[rows]
        value = np.where(np.abs(value) < 1e-9 * stderr, 0.0, value)  # what rounding leaves of an exact zero
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

    def _quantile(self, output: Quantile) -> Figures:
        """The values that the quantile may have: each value of the grid is tested for being too low or too high.

        For the counts C of rows at or below a value and N of all rows, a value is too low for the q-quantile where
        C − qN is below zero, and too high where it is above zero at the value before (``_slack`` has the last row).
        C − qN is linear in what was measured, and its width is that of its own noise, N's included. Only the tests at
        the true quantile can leave it out, and together they do so no more often than 1 − confidence. A quantile has
        no standard error: the noise is in its rank, and how far that moves the value depends on the rows.
        """
        value = quantile_values(output, self.estimate.values, self.half_width)
        if np.isnan(self.estimate.stderr[list(itertools.chain(*output.prefixes))]).any():
            return _without_errors(value)
        low, high = self._quantile_ends(output, self.confidence)
        low, high = np.fmin(low, value), np.fmax(high, value)
        return Figures(value, np.full(len(value), np.nan), low, high)

    def _quantile_ends(self, output: Quantile, confidence: float) -> tuple[Floats, Floats]:
        grid = np.array(output.grid)
        below = np.array(output.prefixes[:-1], dtype=np.int64).reshape(
            len(grid) - 1, len(output.prefixes[-1])
        )  # grid × groups
        every = np.broadcast_to(np.array(output.prefixes[-1], dtype=np.int64), below.shape)
        share = np.full(below.size, -output.share)
        excess = self.estimate.values[below] - output.share * self.estimate.values[every]
        width = self.estimate.combined_half_width(
            [(below.reshape(-1), np.ones(below.size)), (every.reshape(-1), share)], confidence
        ).reshape(below.shape)
        width = width * (1 + 1e-10) + 1e-10 * (width > 0)  # the rounding of floats must not tip a count on the lattice
        at_least, at_most = _slack(output)
        certain = np.ones((1, below.shape[1]), dtype=np.bool_)
        lower = np.vstack([excess + width >= at_least, certain])  # the last value has all rows at or below it
        upper = np.vstack([certain, excess - width <= at_most])
        first = lower.argmax(axis=0)
        last = len(grid) - 1 - upper[::-1].argmax(axis=0)
        if not output.every:  # a value lies anywhere after the value of the grid before its own
            first = np.maximum(first - 1, 0)
        return grid[first], grid[last]

    def _mode(self, output: Mode) -> Figures:
        """The least and the greatest value that may have the largest count."""
        estimate, best = self.estimate, mode_places(output, self.estimate.values)
        value = mode_values(output, estimate.values)
        counts = np.array(output.counts, dtype=np.int64)
        if np.isnan(estimate.stderr[counts]).any():
            return _without_errors(value)
        low, high = self._mode_ends(output, best, self.confidence)
        return Figures(value, np.full(len(value), np.nan), low, high)

    def _mode_ends(self, output: Mode, best: NDArray[np.int64], confidence: float) -> tuple[Floats, Floats]:
        """Each value is compared with the one that the data chose, so all comparisons must hold together."""
        counts = np.array(output.counts, dtype=np.int64)
        chosen = np.broadcast_to(counts[best, np.arange(counts.shape[1])], counts.shape)
        ones = np.ones(counts.size)
        alone = 1 - (1 - confidence) / max(len(counts) - 1, 1)
        width = self.estimate.combined_half_width([(chosen.reshape(-1), ones), (counts.reshape(-1), -ones)], alone)
        values = self.estimate.values
        possible = values[chosen] - values[counts] <= width.reshape(counts.shape)
        value = np.array(output.values, dtype=np.float64)[:, None]
        return np.where(possible, value, np.inf).min(axis=0), np.where(possible, value, -np.inf).max(axis=0)

    def _boxed(self, output: Computed) -> Figures:
        """An expression over quantiles: the range that it takes where each leaf is anywhere in its own interval.

        The intervals hold together, each at its part of 1 − confidence. The expression is computed at their ends and
        at the released values, in every combination. Where a leaf is no number, or there are very many, it has no
        interval.
        """
        leaves = leaf_values(output.leaves, self.estimate.values, self.half_width)
        value = self._evaluated(output, leaves)
        noisy = [i for i, leaf in enumerate(output.leaves) if not isinstance(leaf, PublicValues)]
        if len(noisy) > _MOST_CORNERS:
            return _without_errors(value)
        tried: list[tuple[NDArray[Any], ...]] = [(leaf,) for leaf in leaves]
        for i in noisy:
            ends = self._ends(output.leaves[i], 1 - (1 - self.confidence) / len(noisy))
            if ends is None:
                return _without_errors(value)
            tried[i] = (leaves[i], *ends)
        low, high = value, value
        for corner in itertools.product(*tried):
            at_corner = self._evaluated(output, corner)
            low, high = np.fmin(low, at_corner), np.fmax(high, at_corner)
        return Figures(value, np.full(len(value), np.nan), low, high)

    def _ends(self, leaf: Output, confidence: float) -> tuple[Floats, Floats] | None:
        """The interval of a leaf that is a number; None for any other, and where errors are not predicted."""
        if not is_number(leaf):
            return None
        figures = replace(self, confidence=confidence, half_width=self.estimate.half_width(confidence)).figures(leaf)
        return None if np.isnan(figures.low).any() else (figures.low, figures.high)

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


def _slack(output: Quantile) -> tuple[float, float]:
    """(a, b): C − qN is at least a at the quantile, and at most b at the value before it, whatever the rows are.

    That of rank r has C ≥ r at it and C ≤ r − 1 before it. r is max(1, ⌈qN⌉), or ⌊qN⌋ + 1 but N at most where it is
    counted from the greatest value; an interpolated quantile is between those of ranks ⌊q(N − 1)⌋ + 1 and
    ⌈q(N − 1)⌉ + 1.
    """
    if output.interpolated:
        return -output.share, 1 - output.share
    return float(output.share == 0), -float(output.share == 1)


def _without_errors(value: Floats) -> Figures:
    """Figures of a release whose errors are not predicted."""
    unknown = np.full(len(value), np.nan)
    return Figures(value, unknown, unknown, unknown)
