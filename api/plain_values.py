"""The values of a frame's column as Python's own, by the DuckDB type of the column.

A frame has no whole numbers beside NULL, no DECIMAL and no DATE: it has floats and moments in their place. The rows of
a cursor and of an Arrow table have what DuckDB itself would return.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pandas as pd

_WHOLE = {f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")}


def plain_values(column: pd.Series, type_: str) -> list[Any]:
    """Every value of a column; ``None`` for NULL, and for NaN, which a frame does not tell from it.

    Whole numbers beyond 2⁵³ in a column that holds NULL too are rounded, as in the frame they come from.

    >>> plain_values(pd.Series([1.0, float("nan")]), "INTEGER"), plain_values(pd.Series([0.5]), "DECIMAL(4,2)")
    ([1, None], [Decimal('0.50')])
    """
    convert = _converter(type_)
    return [None if missing else convert(value) for value, missing in zip(column, column.isna(), strict=True)]


def decimal_size(type_: str) -> tuple[int, int] | None:
    """How many digits a DECIMAL has, and how many of them behind the point; None for any other type."""
    match = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", type_)
    return None if match is None else (int(match[1]), int(match[2]))


def _converter(type_: str) -> Callable[[Any], Any]:
    if type_ in _WHOLE:
        return int
    if type_ == "DATE":
        return _day
    size = decimal_size(type_)
    if size is not None:
        step = Decimal(1).scaleb(-size[1])
        return lambda value: _decimal(value, step)
    return _native


def _day(value: Any) -> date:
    return value.date() if isinstance(value, datetime) else value


def _decimal(value: Any, step: Decimal) -> Decimal:
    with localcontext(prec=76):
        return Decimal(str(_native(value))).quantize(step)


def _native(value: Any) -> Any:
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)  # Python's moments have no nanoseconds
    return value.item() if isinstance(value, np.generic) else value
