"""Constants as typed values, as a comparison sees them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Constant:
    """A value and the literal type that DuckDB would give it."""

    kind: str
    """"null", "bool", "int", "decimal", "double", "float", "string", "date" or "timestamp"."""
    value: Any

    @staticmethod
    def of(value: Any) -> Constant:
        """The constant that a Python value stands for; raises TypeError for what has no SQL form here."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or value is pd.NaT or value is pd.NA:
            return NULL
        if isinstance(value, datetime) and value.tzinfo is not None:
            raise TypeError("a timestamp with a time zone")
        if isinstance(value, Decimal):
            return Constant("decimal", value) if _fits_decimal(value) else Constant("double", float(value))
        for kind, type_ in _KINDS:
            if isinstance(value, type_):
                return Constant(kind, value)
        raise TypeError(type(value).__name__)


_KINDS: tuple[tuple[str, type], ...] = (
    ("bool", bool),
    ("int", int),
    ("double", float),
    ("string", str),
    ("timestamp", datetime),
    ("date", date),
)
NULL = Constant("null", None)
MOST_DIGITS = 38
"""Of a DECIMAL; DuckDB takes a number with a point and more digits for a DOUBLE."""


def _fits_decimal(value: Decimal) -> bool:
    """Whether a DECIMAL can hold the number exactly; raises TypeError for NaN and infinity."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise TypeError("a decimal that is not finite")
    return max(len(digits) + max(exponent, 0), -exponent) <= MOST_DIGITS
