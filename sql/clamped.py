"""Expressions to be summed: the columns in them are clamped to their declared ranges first."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from . import dialect
from .catalog import Column, Range
from .declared import bounds, column_bounds, column_ends
from .dialect import kind_of, ordering
from .scalar import Scope, derived, rendered
from .statement import bare


def clamped(node: exp.Expr, scope: Scope) -> Column:
    """An expression to be summed: every column in it is clamped to its declared range first, then it is computed.

    Plain arithmetic is computed with DOUBLEs, which do not overflow where the database's own sum would fail.
    """
    node = bare(node)
    if isinstance(node, exp.Column):
        return scope.resolve(node)
    node = scope.written(node)
    column = derived(node, scope, _clamp_sql if is_arithmetic(node) else _clamp_in_type_sql)
    ends = bounds(node, scope)
    name = rendered(node, scope, _clamp_words)
    return replace(column, name=name, domain=Range(*ends) if ends is not None else None)


def is_arithmetic(node: exp.Expr) -> bool:
    """Whether an expression is made of columns, numbers, +, - and * alone."""
    return all(isinstance(part, _ARITHMETIC) for part in node.walk())


def summands(node: exp.Expr, scope: Scope) -> tuple[Column, ...] | None:
    """The columns of plain arithmetic: with its columns clamped it is NULL exactly where one of them is."""
    if not is_arithmetic(node):
        return None
    columns = tuple(dict.fromkeys(scope.resolve(part) for part in node.find_all(exp.Column)))
    return columns if all(_is_clamped(column) for column in columns) else None


_ARITHMETIC = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg)


def _is_clamped(column: Column) -> bool:
    return kind_of(column.type) != "truth" and column_bounds(column) is not None


def _clamp_words(column: Column) -> str:
    ends = column_bounds(column)
    return f"{column.name}[{ends[0]!r}, {ends[1]!r}]" if ends is not None and _is_clamped(column) else column.name


def _clamp_sql(column: Column) -> str:
    """A column inside its range, as a DOUBLE: no arithmetic of such values can overflow."""
    ends = column_bounds(column)
    if ends is None or not _is_clamped(column):
        return column.reference
    return _between(column.reference, *map(dialect.double, ends))


def _clamp_in_type_sql(column: Column) -> str:
    """A column inside its range, with its own type: what // and CAST make of a value depends on that."""
    ends, order = column_ends(column), ordering(column.type)
    if ends is None or order is None or not _is_clamped(column) or column.type in ("FLOAT", "DOUBLE"):
        return _clamp_sql(column)
    assert order.least is not None and order.greatest is not None
    step = Fraction(order.value(1))
    low, high = max(math.ceil(ends[0] / step), order.least), min(math.floor(ends[1] / step), order.greatest)
    if low > high:
        return _clamp_sql(column)
    return _between(column.reference, order.literal(low), order.literal(high))


def _between(value: str, low: str, high: str) -> str:
    return f"(CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END)"
