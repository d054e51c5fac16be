"""Answers as Arrow tables and polars frames, with the types of DuckDB's own result.

Both libraries are optional: they are imported when a table is asked for, and the error for a missing one names the
extra that brings it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

from .errors import InterfaceError
from .plain_values import decimal_size, plain_values

if TYPE_CHECKING:
    import polars
    import pyarrow

_PLAIN = {
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "VARCHAR": "string",
    "UUID": "string",
    "BLOB": "binary",
    "DATE": "date32",
}
"""DuckDB's types that are one type of Arrow, by the name of its maker."""
_TIMES = {"TIMESTAMP": "us", "TIMESTAMP_S": "s", "TIMESTAMP_MS": "ms", "TIMESTAMP_NS": "ns"}


def arrow_table(names: Sequence[str], types: Sequence[str], columns: Sequence[pd.Series]) -> pyarrow.Table:
    """Columns as one Arrow table: the types that DuckDB's own result would have, NULL and NaN as null.

    Whole numbers beyond 2⁵³ in a column that holds NULL too are rounded, as in the frame they come from.
    """
    pa = needed("pyarrow", "arrow")
    arrays = [_array(pa, column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, names=list(names))


def long_table(frame: pd.DataFrame) -> pyarrow.Table:
    """A long frame of figures as an Arrow table; what has no standard error has null there."""
    pa = needed("pyarrow", "arrow")
    kinds = {"i": pa.int64(), "f": pa.float64()}
    arrays = [
        pa.array(frame[name], type=kinds.get(frame[name].dtype.kind, pa.string()), from_pandas=True) for name in frame
    ]
    return pa.table(arrays, names=list(frame.columns))


def polars_frame(table: pyarrow.Table) -> polars.DataFrame:
    """An Arrow table as a polars frame."""
    frame: polars.DataFrame = needed("polars", "polars").from_arrow(table)
    return frame


def needed(module: str, extra: str) -> Any:
    """An optional library, or the error that says how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise InterfaceError(
            f'this needs {module}, which is not installed\nhint: pip install "tacit[{extra}]"'
        ) from None


def _array(pa: Any, column: pd.Series, type_: str) -> Any:
    wanted = _arrow_type(pa, type_)
    if wanted is not None and (pa.types.is_floating(wanted) or pa.types.is_timestamp(wanted)):
        return pa.array(column, type=wanted, from_pandas=True)  # as they are: Python's moments have no nanoseconds
    values = plain_values(column, type_)
    if wanted is None:
        return pa.array(values)
    if pa.types.is_dictionary(wanted):
        return pa.array(values, type=wanted.value_type).dictionary_encode().cast(wanted)
    return pa.array([None if v is None else str(v) for v in values] if type_ == "UUID" else values, type=wanted)


def _arrow_type(pa: Any, type_: str) -> Any:
    """The type that DuckDB exports as; None for what a column of released values or keys hardly ever has."""
    if type_ in _PLAIN:
        return getattr(pa, _PLAIN[type_])()
    if type_ in _TIMES:
        return pa.timestamp(_TIMES[type_])
    if type_ == "TIMESTAMP WITH TIME ZONE":
        return pa.timestamp("us", tz="UTC")
    if type_ == "TIME":
        return pa.time64("us")
    if type_ in ("HUGEINT", "UHUGEINT"):
        return pa.decimal128(38, 0)
    if type_.startswith("ENUM("):
        labels = len(re.findall(r"'(?:[^']|'')*'", type_))
        return pa.dictionary(
            pa.uint8() if labels < 256 else pa.uint16() if labels < 65_536 else pa.uint32(), pa.string()
        )
    size = decimal_size(type_)
    return None if size is None else pa.decimal128(*size)
