"""WHERE as a tree over questions, evaluated in three-valued logic on the grid of regions.

No normal form is made: the tree itself is evaluated with min, max and 2 - v over arrays that have one axis per
column, each node as wide only as the columns it mentions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp
from tacit.errors import TypeMismatchError, UnsupportedSqlError

from . import dialect
from .catalog import Column
from .constants import constant, evaluated, is_constant
from .literals import Constant
from .ordering import Incomparable
from .regions import IS_NULL, NOT_NULL, Attribute, Regions
from .scalar import Scope, scalar
from .statement import bare
from .truths import FALSE, TRUE, UNKNOWN, Question, Truth


@dataclass(frozen=True)
class ColumnQuestion:
    """A question put to one column."""

    attribute: str
    question: Question


@dataclass(frozen=True)
class FixedTruth:
    """TRUE, FALSE or unknown whatever the row holds."""

    truth: np.uint8


@dataclass(frozen=True)
class And:
    """AND."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """OR."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not:
    """NOT."""

    part: Predicate


@dataclass(frozen=True)
class IsTruth:
    """``… IS TRUE``, ``… IS FALSE``, ``… IS NULL`` over a predicate: never unknown itself."""

    part: Predicate
    truth: np.uint8


Predicate = ColumnQuestion | FixedTruth | And | Or | Not | IsTruth
ALWAYS = FixedTruth(TRUE)
T = TypeVar("T")

AxisTruth = Callable[[ColumnQuestion], Truth]
"""The truth of a question as an array with its column's axis, and length 1 along every other."""


def evaluate(predicate: Predicate, truth_of: AxisTruth) -> Truth:
    """Three-valued truth of a predicate on the grid (broadcastable to its shape)."""
    match predicate:
        case ColumnQuestion():
            return truth_of(predicate)
        case FixedTruth(truth):
            return np.array(truth, dtype=np.uint8)
        case And(parts):
            return _fold(np.minimum, parts, truth_of)
        case Or(parts):
            return _fold(np.maximum, parts, truth_of)
        case Not(part):
            return 2 - evaluate(part, truth_of)
        case IsTruth(part, truth):
            return np.where(evaluate(part, truth_of) == truth, TRUE, FALSE)


def where_true(predicate: Predicate, regions: Regions) -> NDArray[np.int64]:
    """The regions of its one column in which a predicate is true; a group of many is looked up and not evaluated."""
    if isinstance(predicate, ColumnQuestion):
        return regions.truths.where_true(predicate.question)
    truth = evaluate(predicate, lambda asks: regions.truths[asks.question])
    return np.flatnonzero(np.broadcast_to(truth, regions.count) == TRUE)


def _fold(
    combine: Callable[[NDArray[np.uint8], NDArray[np.uint8]], NDArray[np.uint8]],
    parts: tuple[Predicate, ...],
    truth_of: AxisTruth,
) -> Truth:
    result = evaluate(parts[0], truth_of)
    for part in parts[1:]:
        result = combine(result, evaluate(part, truth_of))
    return result


_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {  # operator, and the operator with sides exchanged
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}


class PredicateReader:
    """sqlglot's tree → ``Predicate``, asking each column's ``Attribute`` on the way.

    A column, or an expression over the row, compared with constants cuts that column. Any other condition that can
    be computed from one row is a column of its own that is true, false or NULL.
    """

    def __init__(self, scope: Scope, attribute: Callable[[Column], Attribute]) -> None:
        self._scope = scope
        self._attribute = attribute

    def read(self, node: exp.Expr) -> Predicate:
        """The predicate that a WHERE expression stands for."""
        if isinstance(node, exp.Paren):
            return self.read(node.this)
        if isinstance(node, exp.And):
            return And(tuple(self.read(part) for part in node.flatten()))
        if isinstance(node, exp.Or):
            return Or(tuple(self.read(part) for part in node.flatten()))
        if isinstance(node, exp.Not):
            return Not(self.read(node.this))
        if isinstance(node, exp.Is):
            return self._is(node)
        if type(node) in _COMPARISONS:
            return self._comparison(node)
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._in(node)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            return self._distinct(node)
        if is_constant(node):
            return self._fixed(node)
        return self._condition(node)

    def _comparison(self, node: exp.Expr) -> Predicate:
        operator, exchanged = _COMPARISONS[type(node)]
        left, right = bare(node.this), bare(node.expression)
        if is_constant(left) and is_constant(right):
            return self._fixed(node)
        if is_constant(right):
            return self._ask(node, left, operator, [right])
        if is_constant(left):
            return self._ask(node, right, exchanged, [left])
        return self._condition(node)

    def _between(self, node: exp.Between) -> Predicate:
        low, high = node.args["low"], node.args["high"]
        if not (is_constant(low) and is_constant(high)) or is_constant(node.this):
            return self._condition(node)
        attribute = self._attribute(scalar(node.this, self._scope))
        if attribute.order is None:
            return self._condition(node)
        return self._between_constants(node, attribute, self._constant(low), self._constant(high))

    def _between_constants(self, node: exp.Expr, attribute: Attribute, low: Constant, high: Constant) -> Predicate:
        """``low <= column AND column <= high``, with both constants read in one comparison type."""
        values = [c for c in (low, high) if c.kind != "null"]
        places = self._located(node, attribute, lambda: attribute.places(values))

        def side(operator: str, bound: Constant) -> Predicate:
            if bound.kind == "null":
                return ColumnQuestion(attribute.column.name, attribute.compare(operator, [bound]))
            question = Question(((operator, places[values.index(bound)]),), FALSE, UNKNOWN)
            return ColumnQuestion(attribute.column.name, attribute.ask(question))

        return And((side(">=", low), side("<=", high)))

    def _in(self, node: exp.In) -> Predicate:
        items = list(node.expressions)
        constants = all(is_constant(item) for item in items)
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field") or not constants:
            return self._condition(node)
        if is_constant(node.this):
            return self._condition(node)
        return self._ask(node, bare(node.this), "=", items)

    def _distinct(self, node: exp.Expr) -> Predicate:
        operator = "=" if isinstance(node, exp.NullSafeEQ) else "<>"
        left, right = bare(node.this), bare(node.expression)
        if is_constant(left):
            left, right = right, left
        if is_constant(left) or not is_constant(right):
            return self._condition(node)
        attribute, value = self._attribute(scalar(left, self._scope)), self._constant(right)
        if attribute.order is None and value.kind != "null":
            return self._condition(node)
        question = self._located(node, attribute, lambda: attribute.compare(operator, [value], null_safe=True))
        return ColumnQuestion(attribute.column.name, question)

    def _is(self, node: exp.Is) -> Predicate:
        subject, what = bare(node.this), node.expression
        if isinstance(what, exp.Boolean):
            return IsTruth(self.read(subject), TRUE if what.this else FALSE)
        if not isinstance(what, exp.Null):
            raise self._scope.error(UnsupportedSqlError, node, "IS takes NULL, TRUE or FALSE", "write IS NULL")
        if isinstance(subject, exp.Connector | exp.Predicate | exp.Not) and not isinstance(subject, exp.Case):
            return IsTruth(self.read(subject), UNKNOWN)
        if is_constant(subject):
            return FixedTruth(TRUE if self._constant(subject).kind == "null" else FALSE)
        attribute = self._attribute(scalar(subject, self._scope))
        attribute.ask(NOT_NULL)
        return ColumnQuestion(attribute.column.name, attribute.ask(IS_NULL))

    def _condition(self, node: exp.Expr) -> Predicate:
        """A condition that is a column of its own: true, false or NULL for each row."""
        column = scalar(node, self._scope)
        if dialect.kind_of(column.type) != "truth":
            raise self._scope.error(
                TypeMismatchError,
                node,
                f"{dialect.write(node, comments=True)[:60]} is a {column.type}, not a condition",
                "compare it with something, as in age <> 0",
            )
        attribute = self._attribute(column)
        return ColumnQuestion(attribute.column.name, attribute.compare("=", [Constant("bool", True)]))

    def _fixed(self, node: exp.Expr) -> Predicate:
        """A condition without columns: DuckDB says what it is."""
        value = evaluated(node, self._scope.statement, self._scope.params)
        if value.kind == "null":
            return FixedTruth(UNKNOWN)
        if value.kind != "bool":
            raise self._scope.error(TypeMismatchError, node, "this constant is not a condition", "write TRUE or FALSE")
        return FixedTruth(TRUE if value.value else FALSE)

    def _ask(self, node: exp.Expr, subject: exp.Expr, operator: str, items: list[exp.Expr]) -> Predicate:
        attribute = self._attribute(scalar(subject, self._scope))
        if attribute.order is None:
            return self._condition(node)
        values = [self._constant(item) for item in items]
        question = self._located(node, attribute, lambda: attribute.compare(operator, values))
        return ColumnQuestion(attribute.column.name, question)

    def _constant(self, node: exp.Expr) -> Constant:
        return constant(node, self._scope.statement, self._scope.params)

    def _located(self, node: exp.Expr, attribute: Attribute, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Incomparable as error:
            kind = attribute.column.type
            raise self._scope.error(
                TypeMismatchError, node, f"{kind} cannot be compared with this", error.hint
            ) from None
