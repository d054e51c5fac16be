"""The lines of DuckDB's types (``tacit.sql.ordering``): where constants sit on them, and how a cut is written.

    whole numbers, BOOLEAN   the number itself
    DECIMAL(p, s)            the number times 10^s
    DATE, TIMESTAMP          days, microseconds since 1970
    DOUBLE, FLOAT            the rank of the IEEE number; -0.0 is 0.0 and NaN the greatest, as in DuckDB
    VARCHAR, ENUM            (text, 0) at the text and (text, 1) right after it, by code points

Which of two literal types wins in a comparison is DuckDB's rule, measured and tested against DuckDB itself.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ...literals import Constant
from ...ordering import Incomparable, Ordering, Place
from .scratch import cast_text
from .text import double
from .text import literal as text_literal

_INTEGER_BITS = {
    "TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128,
    "UTINYINT": -8, "USMALLINT": -16, "UINTEGER": -32, "UBIGINT": -64, "UHUGEINT": -128,
}  # fmt: skip
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_LOWER = 2**64 - 1
_SHORT_DECIMAL = 18
"""Digits of a DECIMAL that DuckDB keeps in 64 bits."""


def ordering(type_: str) -> Ordering | None:
    """The line of a DuckDB type, or None for a type that tacit can only test for NULL."""
    if type_ in _INTEGER_BITS:
        return _integers(type_)
    if type_ == "BOOLEAN":
        return _booleans()
    if match := re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", type_):
        return _decimals(type_, int(match[1]), int(match[2]))
    if type_ in ("DOUBLE", "FLOAT"):
        return _floats()
    if type_ == "DATE":
        return _dates()
    if type_ == "TIMESTAMP":
        return _timestamps()
    if type_ == "VARCHAR" or (type_.startswith("ENUM(") and not type_.endswith("]")):
        return _texts()
    return None


def comparison_type(column_type: str, constants: list[Constant]) -> str:
    """The type that DuckDB compares in: string constants take the type of everything else around them."""
    kinds = {constant.kind for constant in constants}
    if column_type in _INTEGER_BITS or column_type == "BOOLEAN" or column_type.startswith("DECIMAL"):
        if "double" in kinds:
            return "DOUBLE"
        scales = [-int(c.value.as_tuple().exponent) for c in constants if c.kind == "decimal"]
        if scales:
            decimal = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", column_type)
            return f"DECIMAL(38,{max([*scales, int(decimal[2]) if decimal else 0])})"
        if column_type == "BOOLEAN" and "int" in kinds:
            return "INTEGER"
    if column_type == "FLOAT" and "double" in kinds:
        return "DOUBLE"
    if column_type == "DATE" and "timestamp" in kinds:
        return "TIMESTAMP"
    return column_type


def _typed(constant: Constant, type_: str) -> Constant:
    """A constant as DuckDB reads it in that comparison: strings take its type, numbers become DOUBLE if one is."""
    if type_ == "DOUBLE" and constant.kind in ("int", "decimal", "bool"):
        return Constant("double", to_double(constant.value))
    if constant.kind != "string" or type_ == "VARCHAR" or type_.startswith("ENUM("):
        return constant
    value = cast_text(constant.value, type_)
    if value is None:
        raise Incomparable(f"{text_literal(constant.value)} is no {type_}")
    return Constant.of(value)


def to_double(value: Any) -> float:
    """A number as the DOUBLE that DuckDB makes of it; infinite beyond every DOUBLE, where Python would raise."""
    if isinstance(value, int) and 2**63 <= abs(value) < 2**127:  # a HUGEINT, in DuckDB
        return _huge_to_double(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _exact(value: Fraction) -> Place:
    return math.ceil(value), math.floor(value) + 1


def _through_double(value: float, as_double: Callable[[int], float], least: int, greatest: int) -> Place:
    """Cuts for a DOUBLE constant on a line of whole positions: DuckDB converts the column, which is monotone."""
    if math.isnan(value):
        return greatest + 1, greatest + 1

    def first(reached: Callable[[int], bool]) -> int:
        low, high = least, greatest + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle + 1, high)
        return low

    return first(lambda i: as_double(i) >= value), first(lambda i: as_double(i) > value)


def _huge_to_double(number: int) -> float:
    """A whole number of 128 bits as the DOUBLE that DuckDB casts it to: it rounds the two halves one by one."""
    upper, lower = number >> 64, number & _LOWER
    if upper == -1:
        return -float(_LOWER - lower) - 1.0
    return float(lower) + float(upper) * float(_LOWER)


def _decimal_to_double(precision: int, scale: int) -> Callable[[int], float]:
    """From the position of a DECIMAL to the DOUBLE that DuckDB casts it to, rounding for rounding."""
    if scale == 0:
        return float if precision <= _SHORT_DECIMAL else _huge_to_double
    return lambda position: position / 10**scale  # Python divides whole numbers with one rounding, as DuckDB does


def _numeric_place(
    constant: Constant, scale: int, as_double: Callable[[int], float], least: int, greatest: int
) -> Place:
    if constant.kind == "double":
        return _through_double(constant.value, as_double, least, greatest)
    if constant.kind in ("int", "decimal", "bool"):
        return _exact(Fraction(constant.value) * 10**scale)
    if constant.kind == "float":  # DuckDB would compare in single precision, where many numbers are one
        raise Incomparable("write a DOUBLE or a DECIMAL, not a FLOAT")
    raise Incomparable("write a number")


def _integers(type_: str) -> Ordering:
    bits = _INTEGER_BITS[type_]
    least, greatest = (0, 2**-bits - 1) if bits < 0 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    as_double = _huge_to_double if abs(bits) == 128 else float

    def locate(constant: Constant, comparison: str) -> Place:
        return _numeric_place(_typed(constant, comparison), 0, as_double, least, greatest)

    return Ordering("number", least, greatest, locate, lambda cut: f"CAST('{cut}' AS {type_})", lambda cut: cut, True)


def _booleans() -> Ordering:
    def locate(constant: Constant, comparison: str) -> Place:
        return _numeric_place(_typed(constant, comparison), 0, float, 0, 1)

    return Ordering("truth", 0, 1, locate, lambda cut: "TRUE" if cut else "FALSE", bool, True)


def _decimals(type_: str, precision: int, scale: int) -> Ordering:
    greatest = 10**precision - 1
    as_double = _decimal_to_double(precision, scale)

    def locate(constant: Constant, comparison: str) -> Place:
        return _numeric_place(_typed(constant, comparison), scale, as_double, -greatest, greatest)

    def value(cut: int) -> Decimal:
        digits = tuple(map(int, str(abs(cut))))  # put together, not computed: Decimal arithmetic rounds to 28 digits
        return Decimal((int(cut < 0), digits, -scale))

    return Ordering(
        "number",
        -greatest,
        greatest,
        locate,
        lambda cut: f"CAST('{value(cut):f}' AS {type_})",
        value,
        scale == 0,
    )


def _rank(value: float) -> int:
    """Doubles in DuckDB's order as integers: -inf … -0.0 = 0.0 … inf, then NaN."""
    if math.isnan(value):
        return _rank(math.inf) + 1
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _unrank(rank: int) -> float:
    if rank > _rank(math.inf):
        return math.nan
    value: float = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return -value if rank < 0 else value


def _floats() -> Ordering:
    def locate(constant: Constant, comparison: str) -> Place:
        constant = _typed(constant, comparison)
        if constant.kind not in ("int", "decimal", "double", "float", "bool"):
            raise Incomparable("write a number")
        value = to_double(constant.value)
        if comparison == "FLOAT":
            with np.errstate(over="ignore"):
                value = float(np.float32(value))
        rank = _rank(value)
        return rank, rank + 1

    def literal(cut: int) -> str:
        return double(_unrank(cut))

    return Ordering("number", _rank(-math.inf), _rank(math.nan), locate, literal, _unrank, False)


def _dates() -> Ordering:
    def locate(constant: Constant, comparison: str) -> Place:
        constant = _typed(constant, comparison)
        if constant.kind == "date":
            day = constant.value.toordinal() - _EPOCH_DAY
            return day, day + 1
        if constant.kind == "timestamp":
            return _exact(Fraction((constant.value - _EPOCH) // _MICROSECOND, _DAY))
        raise Incomparable("write a date, as in DATE '2024-01-31'")

    def value(cut: int) -> date | str:
        try:
            return date.fromordinal(cut + _EPOCH_DAY)
        except ValueError:  # the day after Python's last one; DuckDB's calendar goes on
            return f"day {cut}"

    def literal(cut: int) -> str:
        return f"(DATE '1970-01-01' + CAST({cut} AS INTEGER))"

    return Ordering("moment", None, None, locate, literal, value, True)


def _timestamps() -> Ordering:
    def locate(constant: Constant, comparison: str) -> Place:
        constant = _typed(constant, comparison)
        if constant.kind == "date":
            moment = (constant.value.toordinal() - _EPOCH_DAY) * _DAY
        elif constant.kind == "timestamp":
            moment = (constant.value - _EPOCH) // _MICROSECOND
        else:
            raise Incomparable("write a timestamp, as in TIMESTAMP '2024-01-31 12:00:00'")
        return moment, moment + 1

    def value(cut: int) -> datetime | str:
        try:
            return _EPOCH + cut * _MICROSECOND
        except OverflowError:
            return f"microsecond {cut}"

    return Ordering("moment", None, None, locate, lambda cut: f"make_timestamp({cut})", value, False)


def _texts() -> Ordering:
    def locate(constant: Constant, comparison: str) -> Place:
        if constant.kind != "string":
            raise Incomparable("write a string, in single quotes")
        return (constant.value, 0), (constant.value, 1)

    return Ordering("text", None, None, locate, lambda cut: text_literal(cut[0]), lambda cut: cut[0], False)
