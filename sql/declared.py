"""What follows for an expression from the declared domains of its columns: its values, its range, its clamp.

No row is looked at. Where the declarations do not say enough, the answer is None.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp
from tacit.errors import SqlError

from . import dialect, steps
from .catalog import Column, Range, Values
from .constants import is_constant
from .dialect import kind_of, ordering
from .scalar import Scope, case_branches, rendered, scalar
from .statement import bare


def with_domain(node: exp.Expr, scope: Scope, limit: int) -> Column:
    """The (derived) column with the domain that follows from what is declared: listed values, or else a range."""
    column = scalar(node, scope)
    if column.domain is not None or not column.expression:
        return column
    listed = listed_values(bare(node), column, scope, limit)
    if listed is not None:
        values, nullable = listed
        return replace(column, nullable=nullable, domain=values)
    ends = bounds(node, scope)
    return replace(column, nullable=True, domain=Range(*ends) if ends is not None else None)


def listed_values(node: exp.Expr, column: Column, scope: Scope, limit: int) -> tuple[Values, bool] | None:
    """The values that an expression can take, and whether NULL is one of them, where both are known.

    Known are: the results of a CASE between constants; the one value of an expression without columns; conditions;
    and any expression over columns whose own values are declared, which is then evaluated on all of them, and on NULL
    where a column can be NULL. Of a range that is too fine to list, an expression that goes in steps (``steps.py``) is
    evaluated once for each.
    """
    if isinstance(node, exp.Case | exp.If):
        results = [result for _, result in case_branches(node)]
        if all(result is None or is_constant(result) for result in results):
            return _constants(results, column, scope)
        together = _together(results, column, scope, limit)
        if together is not None:
            return together
    if not column.inputs:
        only = dialect.fold(column.expression)
        return None if only is None else (Values(dialect.distinct(only[:1])), only[0] is None)
    if kind_of(column.type) == "truth":
        return Values((False, True)), True
    step = steps.resolution(node, lambda part: kind_of(scope.resolve(part).type) == "moment")
    lists = [_listed(c, step) for c in column.inputs]
    if math.prod(len(values or ()) for values in lists) not in range(1, limit):
        return _rounded(node, scope)
    values = dialect.map_values(
        column.expression, tuple((c.name, c.type, values or ()) for c, values in zip(column.inputs, lists, strict=True))
    )
    return None if values is None else (Values(values), True)


def _rounded(node: exp.Expr, scope: Scope) -> tuple[Values, bool] | None:
    """The values of an expression that rounds the only thing that it reads, whose range is known."""
    node = scope.written(node)
    found = steps.rounding(node, scope.constant)
    ends = bounds(found[0], scope) if found is not None else None
    if found is None or ends is None:
        return None
    inner = scalar(found[0], scope)
    points = steps.points(*ends, found[1], inner.type)
    if points is None:
        return None
    rest = node.transform(lambda part: exp.column(_INNER, quoted=True) if bare(part) == found[0] else part)
    if any(column.name != _INNER for column in rest.find_all(exp.Column)):
        return None
    values = dialect.map_values(dialect.guarded(dialect.write(rest)), ((_INNER, inner.type, (*points, None)),))
    return None if values is None else (Values(values), True)


_INNER = "tacit inner"


def _constants(results: list[exp.Expr | None], column: Column, scope: Scope) -> tuple[Values, bool] | None:
    """The results of a CASE as values of its own type: '1' and 1 can be one value there."""
    values: list[Any] = []
    for result in results:
        sql = "NULL" if result is None else rendered(result, scope)
        folded = dialect.fold(f"CAST({sql} AS {column.type})")
        if folded is None:
            return None
        values.append(folded[0])
    return Values(dialect.distinct(values)), None in values


def _together(results: list[exp.Expr | None], column: Column, scope: Scope, limit: int) -> tuple[Values, bool] | None:
    """The values that the results of a CASE can take, where those of each are known."""
    values: list[Any] = []
    nullable = None in results
    for result in results:
        if result is None:
            continue
        one = with_domain(result, scope, limit)
        if one.type != column.type or not isinstance(one.domain, Values) or one.domain.other is not None:
            return None
        values += one.domain.values
        nullable |= one.nullable
    return Values(dialect.distinct(values)), nullable


def is_listed(column: Column) -> bool:
    """Whether all values of a stored column are declared."""
    return _listed(column) is not None


def _listed(column: Column, step: timedelta | None = None) -> tuple[Any, ...] | None:
    """The declared values of a column, and NULL where it can be NULL; None where a row may hold any other.

    ``step``: of a range of moments, one for each step is enough.
    """
    order = ordering(column.type)
    null = (None,) if column.nullable else ()
    if kind_of(column.type) == "truth":
        return (False, True, *null)
    if isinstance(column.domain, Values) and column.domain.other is None:
        return (*column.domain.values, *null)
    if isinstance(column.domain, Range) and order is not None and order.discrete:
        cuts = order.listed(column.domain.min, column.domain.max)
        return (*(order.value(cut) for cut in cuts), *null) if len(cuts) < steps.MOST_POINTS else None
    if isinstance(column.domain, Range) and kind_of(column.type) == "moment" and step is not None:
        low, high = column.domain.min, column.domain.max
        if not isinstance(low, datetime) or not isinstance(high, datetime):
            return None
        moments = steps.moments(low, high, step)
        return None if moments is None else (*moments, *null)
    return None


Ends = tuple[Fraction, Fraction]
"""Least and greatest, exact: a float has no room for a BIGINT, and turns a number that is too large into infinity."""


def column_bounds(column: Column) -> tuple[float, float] | None:
    """The declared ends of a column of numbers."""
    ends = column_ends(column)
    return None if ends is None else (float(ends[0]), float(ends[1]))


def column_ends(column: Column) -> Ends | None:
    """The declared ends of a column of numbers, exact."""
    order = ordering(column.type)
    if order is None or order.kind not in ("number", "truth"):
        return None
    if order.kind == "truth":
        return Fraction(0), Fraction(1)
    if isinstance(column.domain, Range):
        return _hull([_point(column.domain.min), _point(column.domain.max)])
    if isinstance(column.domain, Values) and column.domain.other is None:
        return _hull([_point(value) for value in column.domain.values])
    return None


def _point(value: Any) -> Ends | None:
    """A number as both ends of a range; None for what is no finite number."""
    if not isinstance(value, int | float | Decimal) or not _is_finite(value):
        return None
    return Fraction(value), Fraction(value)


def _is_finite(value: float | Decimal | Fraction) -> bool:
    """Whether a number has a place among the finite DOUBLEs; those of NaN and infinity have none."""
    return -_LARGEST <= value <= _LARGEST


_LARGEST = int(sys.float_info.max)


def bounds(node: exp.Expr, scope: Scope) -> tuple[int | float, int | float] | None:
    """The range of an expression whose columns lie within their declared ranges, by interval arithmetic.

    None where it is not known, or where anything in the expression can become infinite. Whole ends are exact.
    """
    ends = _ends(node, scope)
    if ends is None:
        return None
    low, high = (int(end) if end.denominator == 1 else float(end) for end in ends)
    return low, high


def _ends(node: exp.Expr, scope: Scope) -> Ends | None:
    node = bare(node)
    ends = _computed(node, scope)
    if ends is None and not isinstance(node, exp.Column | exp.Case | exp.If) and not is_constant(node):
        ends = _apart(node, scope) or _by_values(node, scope)
    return ends if ends is not None and all(map(_is_finite, ends)) else None


def _by_values(node: exp.Expr, scope: Scope) -> Ends | None:
    """The range of a condition, and of an expression whose values follow one by one from those of its columns."""
    try:
        column = scalar(node, scope)
    except SqlError:  # said elsewhere, where it is asked for
        return None
    if kind_of(column.type) == "truth":
        return Fraction(0), Fraction(1)
    listed = listed_values(node, column, scope, steps.MOST_POINTS) if kind_of(column.type) == "number" else None
    return None if listed is None else _hull([_point(value) for value in listed[0].values if value is not None])


def _apart(node: exp.Expr, scope: Scope) -> Ends | None:
    """The range of the days, or other steps, from one date or moment to another."""
    if not isinstance(node, exp.Sub | exp.DateDiff):
        return None
    later, earlier = _moments(node.this, scope), _moments(node.expression, scope)
    if later is None or earlier is None:
        return None
    ends = []
    for to, start in ((later[0], earlier[1]), (later[1], earlier[0])):
        between = node.copy()
        between.set("this", _moment(to))
        between.set("expression", _moment(start))
        value = dialect.fold(dialect.write(between))
        ends.append(None if value is None else _point(value[0]))
    return _hull(ends)


def _moments(node: exp.Expr, scope: Scope) -> tuple[date, date] | None:
    """The first and the last date or moment that an expression can be, where it is a column or a constant."""
    node = bare(node)
    if isinstance(node, exp.Column):
        domain = scope.resolve(node).domain
        values = domain.values if isinstance(domain, Values) and domain.other is None else ()
        ends = [domain.min, domain.max] if isinstance(domain, Range) else list(values)
    else:
        ends = [moment] if (moment := constant_moment(node, scope)) is not None else []
    moments = [end for end in ends if isinstance(end, date)]
    return (min(moments), max(moments)) if moments and len(moments) == len(ends) else None


def constant_moment(node: exp.Expr, scope: Scope) -> date | None:
    """The value of a constant date or moment; None for anything else, an INTERVAL among it."""
    try:
        value = scope.constant(node) if is_constant(node) else None
    except SqlError:
        return None
    return value if isinstance(value, date) else None


def _moment(value: date) -> exp.Expr:
    type_ = exp.DataType.Type.TIMESTAMP if isinstance(value, datetime) else exp.DataType.Type.DATE
    return exp.Cast(this=exp.Literal.string(value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()),
                    to=exp.DataType(this=type_))  # fmt: skip


def _computed(node: exp.Expr, scope: Scope) -> Ends | None:
    if isinstance(node, exp.Column):
        return column_ends(scope.resolve(node))
    if is_constant(node):
        return _point(scope.constant(node))
    if isinstance(node, exp.Case | exp.If):
        results = [result for _, result in case_branches(node) if result is not None]
        return _hull([_ends(r, scope) for r in results if not isinstance(bare(r), exp.Null)])
    if isinstance(node, exp.Coalesce):
        return _hull([_ends(part, scope) for part in (node.this, *node.expressions)])
    if isinstance(node, exp.Least | exp.Greatest):
        low, high = _sides(node, scope)
        return None if low is None or high is None else (low, high)
    if isinstance(node.this, exp.Var):  # the part that EXTRACT takes
        return None
    inner = _ends(node.this, scope) if isinstance(node.this, exp.Expr) else None
    if inner is None:
        return None
    low, high = inner
    if isinstance(node, exp.Neg):
        return -high, -low
    if isinstance(node, exp.Abs):
        return (Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if isinstance(node, exp.Round | exp.Floor | exp.Ceil | exp.Trunc | exp.Cast | exp.TryCast):
        if isinstance(node, exp.Cast | exp.TryCast) and node.is_type("double"):
            return inner
        numeric = not isinstance(node, exp.Cast | exp.TryCast) or node.is_type(*exp.DataType.NUMERIC_TYPES)
        return (Fraction(math.floor(low)), Fraction(math.ceil(high))) if numeric else None
    other = _ends(node.expression, scope) if isinstance(node.args.get("expression"), exp.Expr) else None
    if other is None:
        return None
    if isinstance(node, exp.Add):
        return low + other[0], high + other[1]
    if isinstance(node, exp.Sub):
        return low - other[1], high - other[0]
    if isinstance(node, exp.Mul):
        corners = [a * b for a in inner for b in other]
        square = bare(node.this) == bare(node.expression) and low < 0 < high
        return Fraction(0) if square else min(corners), max(corners)
    if other[0] != other[1] or not other[0]:
        return None
    corners = [a / other[0] for a in inner]
    if isinstance(node, exp.Div):
        return min(corners), max(corners)
    if isinstance(node, exp.IntDiv):
        return Fraction(math.floor(min(corners))), Fraction(math.ceil(max(corners)))
    if isinstance(node, exp.Mod):  # the rest has the sign of what is divided
        most = abs(other[0])
        return max(-most, min(low, Fraction(0))), min(most, max(high, Fraction(0)))
    return None


def _sides(node: exp.Expr, scope: Scope) -> tuple[Fraction | None, Fraction | None]:
    """The least and the greatest value, each where it is known.

    A constant is one end of LEAST and GREATEST whatever the others are; a column is not, since a NULL is left out.
    """
    node = bare(node)
    if not isinstance(node, exp.Least | exp.Greatest):
        return _ends(node, scope) or (None, None)
    parts = [bare(part) for part in (node.this, *node.expressions)]
    sides = [_sides(part, scope) for part in parts]
    lows, highs = ([side[i] for side in sides] for i in (0, 1))
    low = None if None in lows else min(end for end in lows if end is not None)
    high = None if None in highs else max(end for end in highs if end is not None)
    fixed = [end for part, (end, _) in zip(parts, sides, strict=True) if is_constant(part) and end is not None]
    if fixed and isinstance(node, exp.Least):
        high = min(fixed) if high is None else min(high, *fixed)
    elif fixed:
        low = max(fixed) if low is None else max(low, *fixed)
    return low, high


def _hull(ranges: list[Ends | None]) -> Ends | None:
    finite = [r for r in ranges if r is not None]
    if not finite or len(finite) < len(ranges):
        return None
    return min(low for low, _ in finite), max(high for _, high in finite)
