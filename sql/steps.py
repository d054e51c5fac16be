"""Expressions that change in steps: date parts of a moment, and numbers that are rounded.

A range of moments or of fractions has too many values to list. What is computed from them by such an expression has
few, and one point of every step shows them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from .statement import bare, parts_of

MOST_POINTS = 100_000
_DAY, _HOUR, _MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
_OF_DAYS = (
    exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso,
    exp.DayOfMonth, exp.DayOfYear, exp.LastDay, exp.Monthname, exp.Dayname,
)  # fmt: skip
_OF_CLOCKS = {exp.Hour: _HOUR, exp.Minute: _MINUTE}
_PARTS = {
    **dict.fromkeys(
        ("day", "days", "week", "weeks", "month", "months", "quarter", "quarters", "year", "years", "decade", "century",
         "millennium", "dow", "dayofweek", "isodow", "doy", "dayofyear", "weekofyear", "isoyear", "yearweek", "era"),
        _DAY,
    ),
    **dict.fromkeys(("hour", "hours"), _HOUR),
    **dict.fromkeys(("minute", "minutes"), _MINUTE),
}  # fmt: skip
_NAMED = ("isoyear", "weekday", "century", "decade", "era")
_FORMATS = {**dict.fromkeys("YmdaAbBjywuUWGV%-", _DAY), **dict.fromkeys("HIp", _HOUR), "M": _MINUTE}


def resolution(node: exp.Expr, is_moment: Callable[[exp.Column], bool]) -> timedelta | None:
    """The steps in which an expression looks at the moments in it; None where it can tell any two apart."""
    steps = [_step_around(column) for column in node.find_all(exp.Column) if is_moment(column)]
    known = [step for step in steps if step is not None]
    return min(known) if known and len(known) == len(steps) else None


def _step_around(column: exp.Column) -> timedelta | None:
    node: exp.Expr = column
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    around = node.parent
    if isinstance(around, _OF_DAYS):
        return _DAY
    if isinstance(around, exp.Hour | exp.Minute):
        return _OF_CLOCKS[type(around)]
    if isinstance(around, exp.Cast):
        return _DAY if around.is_type(exp.DataType.Type.DATE) else None
    if isinstance(around, exp.TimestampTrunc | exp.DateTrunc):
        return _PARTS.get(around.text("unit").lower())
    if isinstance(around, exp.DateBin):
        return _bin_step(around.this) if len(parts_of(around)) == 2 else None
    if isinstance(around, exp.Extract):
        return _PARTS.get(around.this.name.lower())
    if isinstance(around, exp.Anonymous):
        name = str(around.this).lower()
        if name == "date_part":
            return _PARTS.get(around.expressions[0].name.lower())
        return _DAY if name in _NAMED else None
    if isinstance(around, exp.TimeToStr):
        return _format_step(around.text("format"))
    return None


def _bin_step(width: exp.Expr) -> timedelta | None:
    """A width that divides a day is a step; of whole minutes or days, any other bin is made of those."""
    unit, amount = width.text("unit").lower(), width.this
    step = _PARTS.get(unit)
    if step is None or not isinstance(amount, exp.Literal):
        return None
    whole = step * int(amount.name)
    return whole if step < _DAY and not _DAY % whole else step


def _format_step(text: str) -> timedelta | None:
    letters = [part[:1] or "%" for part in text.replace("%-", "%").replace("%%", "").split("%")[1:]]
    steps = [_FORMATS.get(letter) for letter in letters]
    known = [step for step in steps if step is not None]
    return min(known, default=_DAY) if len(known) == len(steps) else None


def moments(low: datetime, high: datetime, step: timedelta) -> tuple[datetime, ...] | None:
    """The beginning of every step from one moment to another; None where there are too many."""
    midnight = datetime(low.year, low.month, low.day)
    first = midnight + (low - midnight) // step * step
    count = (high - first) // step + 1
    return tuple(first + i * step for i in range(count)) if count < MOST_POINTS else None


def rounding(node: exp.Expr, constant: Callable[[exp.Expr], Any]) -> tuple[exp.Expr, Fraction] | None:
    """(what is rounded, the step) of the innermost rounding that all columns of an expression go through."""
    columns = len(list(node.find_all(exp.Column)))
    found = None
    for part in node.walk():
        step = _rounded_to(part, constant)
        if step is not None and len(list(part.this.find_all(exp.Column))) == columns:
            found = bare(part.this), step
    return found


def _rounded_to(node: exp.Expr, constant: Callable[[exp.Expr], Any]) -> Fraction | None:
    if isinstance(node, exp.Floor | exp.Ceil | exp.Round | exp.Trunc):
        places = node.args.get("decimals")
        if places is None:
            return Fraction(1)
        if places.find(exp.Column) is not None:
            return None
        digits = constant(places)
        return Fraction(10) ** -digits if isinstance(digits, int) and abs(digits) < _MOST_DIGITS else None
    if isinstance(node, exp.Cast) and node.is_type(*exp.DataType.INTEGER_TYPES):
        return Fraction(1)
    return None


_MOST_DIGITS = 9


def points(low: float, high: float, step: Fraction, type_: str) -> tuple[Any, ...] | None:
    """The ends of a range of numbers and the multiples of a step between them: all that rounding can give of it."""
    first, last = math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step)
    if last - first >= MOST_POINTS:
        return None
    between = [k * step for k in range(first, last + 1)]
    if not type_.startswith("DECIMAL("):
        return (float(low), *map(float, between), float(high))
    exact = [Decimal(x.numerator) / Decimal(x.denominator) for x in (Fraction(str(low)), *between, Fraction(str(high)))]
    scale = Decimal(1).scaleb(-int(type_[8:-1].split(",")[1]))
    return tuple(number.quantize(scale) for number in exact)
