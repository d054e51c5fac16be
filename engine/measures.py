"""What a plan makes least: one number from the standard errors of all rows of a batch.

Every row's standard error enters multiplied by its scale (``row_scales``). ``total`` is the sum of their squares,
``largest`` the largest square, ``absolute`` the sum of the errors themselves. Relative errors are a total whose weights
say how large the answers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from tacit.engine.strategy import Privacy, Vector

Objective: TypeAlias = Literal["total", "largest", "absolute", "relative"]
"""What a caller may ask for."""
Measure: TypeAlias = Literal["total", "largest", "absolute"]
"""What it comes down to."""


def row_scales(weights: Vector, measure: Measure) -> Vector:
    """What each row is multiplied by, so that its weight multiplies its squared error, or its error if ``absolute``."""
    return weights if measure == "absolute" else np.asarray(np.sqrt(weights))


def measured(scaled: Vector, measure: Measure) -> float:
    """The number, from standard errors that were multiplied by their scales."""
    if measure == "absolute":
        return float(np.sum(scaled))
    return float(np.max(np.square(scaled), initial=0.0) if measure == "largest" else np.sum(np.square(scaled)))


def for_rows_per_unit(value: float, rows_per_unit: int, measure: Measure) -> float:
    """The number when a unit may own so many rows: every standard error is so many times as large."""
    return value * (rows_per_unit if measure == "absolute" else rows_per_unit**2)


def joint(values: Sequence[float], privacy: Privacy, measure: Measure) -> float:
    """The least number over several tables that share one budget, from each one's at the whole budget.

    A share s divides a table's squared errors by s² (pure) or s (approximate). With v/s^a for each table, Σ v/s^a is
    least at s ∝ v^(1/(a+1)), where it is (Σ v^(1/(a+1)))^(a+1); max v/s^a is least at s ∝ v^(1/a), where it is
    (Σ v^(1/a))^a.
    """
    root = share_root(privacy, measure)
    return float(sum(v**root for v in values) ** (1 / root))


def share_root(privacy: Privacy, measure: Measure) -> float:
    """The shares are proportional to this power of the tables' values; see ``joint``."""
    a = 2.0 if privacy == "pure" else 1.0
    if measure == "largest":
        return 1 / a
    return 1 / (a / 2 + 1) if measure == "absolute" else 1 / (a + 1)
