"""Aggregates over a public table that keeps its rows without a match: such a row is in no private table.

``public LEFT JOIN private`` is counted as the inner join, whose rows are those of people. A row of the public table
without a match is then missing, which is right for aggregates that leave it out anyway: its private columns are NULL.
"""

from __future__ import annotations

from sqlglot import exp

from .level import Leaf, Level
from .statement import bare

_STRICT = (
    *(exp.Binary, exp.Neg, exp.Cast, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Lower, exp.Upper, exp.Length),
    *(exp.Extract, exp.Between, exp.In),
)
"""What is NULL if its first operand is, and binary operators if either is."""
_TWO_VALUED = (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Connector)


def leaves_out(node: exp.Expr, level: Level, kept: frozenset[Leaf]) -> bool:
    """Whether an aggregate is the same with and without rows whose columns of the kept tables are all NULL."""
    if isinstance(node, exp.Filter):
        if not_true(node.expression.this, level, kept):
            return True
        node = node.this
    if isinstance(node, exp.WithinGroup):
        return False
    argument = node.this
    if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
        argument = argument.expressions[0]
    if not isinstance(argument, exp.Expr) or isinstance(argument, exp.Star):
        return False
    if isinstance(node, exp.CountIf):
        return not_true(argument, level, kept)
    return is_null(argument, level, kept, zero=isinstance(node, exp.Sum))


def is_null(node: exp.Expr, level: Level, kept: frozenset[Leaf], *, zero: bool = False) -> bool:
    """Whether an expression is NULL where the kept tables have no row; with ``zero``, it may also be 0."""
    node = bare(node)
    if isinstance(node, exp.Null):
        return True
    if isinstance(node, exp.Literal):
        return zero and not node.is_string and float(node.this) == 0
    if isinstance(node, exp.Column):
        named = level.find(node)
        if named.leaf is not None:
            return named.leaf in kept
        return named.level is not None and named.node is not None and is_null(named.node, named.level, kept, zero=zero)
    if isinstance(node, exp.Coalesce):
        return all(is_null(part, level, kept, zero=zero) for part in (node.this, *node.expressions))
    if isinstance(node, exp.Case | exp.If):
        branches = node.args.get("ifs") or [node] if isinstance(node, exp.Case) else [node]
        default = node.args.get("default") or node.args.get("false")
        plain = node.this is None or isinstance(node, exp.If)
        results = [
            (plain and not_true(branch.this, level, kept)) or is_null(branch.args["true"], level, kept, zero=zero)
            for branch in branches
        ]
        return all(results) and (default is None or is_null(default, level, kept, zero=zero))
    if not isinstance(node, _STRICT) or isinstance(node, _TWO_VALUED):
        return False
    operands = (node.this, node.expression) if isinstance(node, exp.Binary) else (node.this,)
    return any(isinstance(part, exp.Expr) and is_null(part, level, kept) for part in operands)


def not_true(node: exp.Expr, level: Level, kept: frozenset[Leaf]) -> bool:
    """Whether a condition holds for no row in which the kept tables have no row."""
    node = bare(node)
    if isinstance(node, exp.And):
        return not_true(node.this, level, kept) or not_true(node.expression, level, kept)
    if isinstance(node, exp.Or):
        return not_true(node.this, level, kept) and not_true(node.expression, level, kept)
    if isinstance(node, exp.Not):
        inner = bare(node.this)
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
            return is_null(inner.this, level, kept)
        return is_null(inner, level, kept)
    return is_null(node, level, kept)
