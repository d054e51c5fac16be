"""Numbers as JSON, which has no NaN and no infinities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def number(value: float) -> Any:
    """A number as JSON: null for NaN, and the infinities by name."""
    value = float(value)
    if np.isfinite(value):
        return value
    return None if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def numbers(values: Floats) -> list[Any]:
    """Numbers as JSON."""
    return [number(value) for value in values.tolist()]


def read_number(value: Any) -> float:
    """What ``number`` wrote."""
    return np.nan if value is None else float(value)


def read_numbers(values: Sequence[Any]) -> Floats:
    """What ``numbers`` wrote."""
    return np.array([read_number(value) for value in values], dtype=np.float64)


def listed(column: pd.Series) -> list[Any]:
    """A column as JSON; dates and such as their text."""
    if column.dtype == np.float64:
        return numbers(column.to_numpy())
    return [_plain(value) for value in column.astype(object)]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if pd.isna(value):
        return None
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, (int,)):
        return value
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
