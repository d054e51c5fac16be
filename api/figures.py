"""The numbers of an output column, each with its error bar.

COUNT, SUM and what is linear in them have exact intervals; AVG has Fieller's; anything else computed after release has
an interval from the spread of the numbers it is computed from, carried through to first order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import Estimate, ratio
from tacit.sql.present import compute, exact_values, leaf_values, linear_values
from tacit.sql.workload import Computed, Linear, Output, Query, Ratio, Stacked

Floats = NDArray[np.float64]


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
class Reckoning:
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
                found = [replace(self, keys=self.keys.iloc[:size]).figures(part) for size, part in parts]
                names = ("value", "stderr", "low", "high")
                return Figures(*(np.concatenate([getattr(f, name) for f in found]) for name in names))
        raise TypeError(type(output).__name__)

    def column(self, output: Output) -> Any:
        """A column that is not a released number: a key, a constant, or text computed from numbers."""
        return exact_values(self.query, output, self.keys, self.estimate.values)

    def _linear(self, output: Linear) -> Figures:
        rows = np.array(output.rows, dtype=np.int64)
        value, half = linear_values(output, self.estimate.values), self.half_width[rows]
        return Figures(value, self.estimate.stderr[rows], value - half, value + half)

    def _ratio(self, output: Ratio) -> Figures:
        top = np.array(output.numerator, dtype=np.int64)
        bottom = np.array(output.denominator, dtype=np.int64)
        quotient = ratio(
            self.estimate.values[top],
            self.estimate.values[bottom],
            self.estimate.stderr[top] ** 2,
            self.estimate.stderr[bottom] ** 2,
            self.estimate.covariance(top, bottom),
            output.low,
            output.high,
            self.confidence,
        )
        return Figures(quotient.value, quotient.stderr, quotient.low, quotient.high)

    def _computed(self, output: Computed) -> Figures:
        """First order: slopes over one standard error of each leaf, joined by the leaves' covariance.

        Where a shifted value cannot be computed (a division by zero, say), the error is not known: NaN.
        """
        leaves = leaf_values(output.leaves, self.estimate.values)
        noisy = [i for i, leaf in enumerate(output.leaves) if isinstance(leaf, Linear)]
        rows = {i: np.array(output.leaves[i].rows, dtype=np.int64) for i in noisy}  # type: ignore[union-attr]
        steps = {i: self.estimate.stderr[rows[i]] for i in noisy}
        count = len(self.keys)
        shifts = [(i, sign) for i in noisy for sign in (1.0, -1.0)]
        wide = [
            np.concatenate([leaf, *(leaf + sign * steps[i] if i == j else leaf for i, sign in shifts)])
            for j, leaf in enumerate(leaves)
        ]
        found = pd.to_numeric(compute(output, self.keys, wide), errors="coerce").to_numpy(np.float64, na_value=np.nan)
        value, shifted = found[:count], found[count:].reshape(len(shifts), count) if shifts else np.zeros((0, count))
        with np.errstate(invalid="ignore", over="ignore"):  # infinite on both sides: the error is not known
            slopes = {i: (shifted[2 * k] - shifted[2 * k + 1]) / 2 for k, i in enumerate(noisy)}  # per standard error
            variance = np.zeros(count)
            for i in noisy:
                for j in noisy:
                    scale = steps[i] * steps[j]
                    covariance = self.estimate.covariance(rows[i], rows[j])
                    correlation = np.divide(covariance, scale, out=np.zeros(count), where=scale > 0)
                    variance += slopes[i] * slopes[j] * correlation
            stderr = np.sqrt(np.maximum(variance, 0.0))
            half = NormalDist().inv_cdf(0.5 + self.confidence / 2) * stderr
            return Figures(value, stderr, value - half, value + half)
