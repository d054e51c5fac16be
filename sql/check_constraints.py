"""Ranges that CHECK constraints of the schema spell out, such as ``CHECK (age BETWEEN 0 AND 120)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlglot import exp
from tacit.errors import SqlError

from .catalog import Bound
from .constants import Parameters, constant, is_constant
from .names import folded
from .parse import Limits, parse_batch
from .statement import Statement, bare

Bounds = tuple[Bound | None, Bound | None]


def check_ranges(expressions: Iterable[str]) -> dict[str, Bounds]:
    """(least, greatest) value of each column, by lower-case name; what is not a plain range is passed over.

    >>> check_ranges(["((b >= 0) AND (b <= 10))", "(i BETWEEN 1 AND 50)", "(length(s) < 3)"])
    {'b': (0, 10), 'i': (1, 50)}
    """
    ranges: dict[str, Bounds] = {}
    for expression in expressions:
        for name, low, high in _comparisons(expression):
            old_low, old_high = ranges.get(name, (None, None))
            ranges[name] = (_tighter(old_low, low, max), _tighter(old_high, high, min))
    return ranges


def _comparisons(expression: str) -> Iterator[tuple[str, Bound | None, Bound | None]]:
    try:
        (statement,) = parse_batch(f"SELECT 1 WHERE {expression}", Limits())
    except SqlError:
        return
    where = bare(statement.tree.args["where"].this)
    for part in where.flatten() if isinstance(where, exp.And) else [where]:
        node = bare(part)
        column = bare(node.this) if isinstance(node.this, exp.Expr) else None
        if not isinstance(column, exp.Column):
            continue
        if isinstance(node, exp.Between):
            yield (
                folded(column.name),
                _bound(node.args["low"], statement),
                _bound(node.args["high"], statement),
            )
        elif isinstance(node, exp.GTE):
            yield folded(column.name), _bound(node.expression, statement), None
        elif isinstance(node, exp.LTE):
            yield folded(column.name), None, _bound(node.expression, statement)


def _bound(node: exp.Expr, statement: Statement) -> Bound | None:
    if not is_constant(node):
        return None
    try:
        bound = constant(node, statement, Parameters(None))
    except SqlError:
        return None
    if bound.kind not in ("int", "decimal", "double", "date", "timestamp"):
        return None
    if isinstance(bound.value, float) and not math.isfinite(bound.value):
        return None
    value: Bound = bound.value
    return value


def _tighter(old: Bound | None, new: Bound | None, choose: Callable[[Any, Any], Any]) -> Bound | None:
    if old is None or new is None:
        return new if old is None else old
    bound: Bound = choose(old, new)
    return bound
