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
from tacit.errors import SqlError, TypeMismatchError, UnsupportedSqlError

from .constants import Constant, Parameters, constant, is_constant
from .ordering import Incomparable
from .parse import Statement
from .regions import FALSE, IS_NULL, NOT_NULL, TRUE, UNKNOWN, Attribute, Question, Truth


@dataclass(frozen=True)
class Asks:
    """A question put to one column."""

    attribute: str
    question: Question


@dataclass(frozen=True)
class Fixed:
    """TRUE, FALSE or unknown whatever the row holds."""

    truth: np.uint8


@dataclass(frozen=True)
class All:
    """AND."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Some:
    """OR."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Negated:
    """NOT."""

    part: Predicate


@dataclass(frozen=True)
class IsTruth:
    """``… IS TRUE``, ``… IS FALSE``, ``… IS NULL`` over a predicate: never unknown itself."""

    part: Predicate
    truth: np.uint8


Predicate = Asks | Fixed | All | Some | Negated | IsTruth
ALWAYS = Fixed(TRUE)
T = TypeVar("T")

AxisTruth = Callable[[Asks], Truth]
"""The truth of a question as an array with its column's axis, and length 1 along every other."""


def evaluate(predicate: Predicate, truth_of: AxisTruth) -> Truth:
    """Three-valued truth of a predicate on the grid (broadcastable to its shape)."""
    match predicate:
        case Asks():
            return truth_of(predicate)
        case Fixed(truth):
            return np.array(truth, dtype=np.uint8)
        case All(parts):
            return _fold(np.minimum, parts, truth_of)
        case Some(parts):
            return _fold(np.maximum, parts, truth_of)
        case Negated(part):
            return 2 - evaluate(part, truth_of)
        case IsTruth(part, truth):
            return np.where(evaluate(part, truth_of) == truth, TRUE, FALSE)


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
    """sqlglot's tree → ``Predicate``, asking each column's ``Attribute`` on the way."""

    def __init__(self, statement: Statement, params: Parameters, attribute: Callable[[exp.Column], Attribute]) -> None:
        self._statement = statement
        self._params = params
        self._attribute = attribute

    def read(self, node: exp.Expr) -> Predicate:
        """The predicate that a WHERE expression stands for."""
        if isinstance(node, exp.Paren):
            return self.read(node.this)
        if isinstance(node, exp.And):
            return All(tuple(self.read(part) for part in node.flatten()))
        if isinstance(node, exp.Or):
            return Some(tuple(self.read(part) for part in node.flatten()))
        if isinstance(node, exp.Not):
            return Negated(self.read(node.this))
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
        if isinstance(node, exp.Column):
            return self._bare_column(node)
        if is_constant(node):
            return self._fixed(node)
        raise self._unsupported(node, "tacit does not know this predicate")

    def _comparison(self, node: exp.Expr) -> Predicate:
        operator, exchanged = _COMPARISONS[type(node)]
        left, right = _bare(node.this), _bare(node.expression)
        if isinstance(left, exp.Column) and is_constant(right):
            return self._ask(left, operator, [right])
        if isinstance(right, exp.Column) and is_constant(left):
            return self._ask(right, exchanged, [left])
        if is_constant(left) and is_constant(right):
            return self._fixed(node)
        raise self._unsupported(node, "a comparison needs one column on one side and a constant on the other")

    def _between(self, node: exp.Between) -> Predicate:
        column, low, high = _bare(node.this), node.args["low"], node.args["high"]
        if not (isinstance(column, exp.Column) and is_constant(low) and is_constant(high)):
            raise self._unsupported(node, "BETWEEN needs a column and two constants")
        attribute = self._attribute(column)
        low, high = self._constant(low), self._constant(high)
        inside = self._between_constants(attribute, column, low, high)
        if node.args.get("symmetric"):
            return Some((inside, self._between_constants(attribute, column, high, low)))
        return inside

    def _between_constants(self, attribute: Attribute, column: exp.Column, low: Constant, high: Constant) -> Predicate:
        """``low <= column AND column <= high``, with both constants read in one comparison type."""

        def side(operator: str, index: int) -> Predicate:
            bound = (low, high)[index]
            if bound.kind == "null":
                return Asks(attribute.column.name, self._asked(column, lambda: attribute.compare(operator, [bound])))
            known = [c for c in (low, high) if c.kind != "null"]
            place = self._located(column, lambda: attribute.places(known))[known.index(bound)]
            question = attribute.ask(Question(((operator, place),), FALSE, UNKNOWN))
            return Asks(attribute.column.name, question)

        return All((side(">=", 0), side("<=", 1)))

    def _in(self, node: exp.In) -> Predicate:
        column, items = _bare(node.this), list(node.expressions)
        if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            raise self._unsupported(node, "IN needs a list of constants")
        if not (isinstance(column, exp.Column) and all(is_constant(item) for item in items)):
            raise self._unsupported(node, "IN needs a column and a list of constants")
        return self._ask(column, "=", items)

    def _distinct(self, node: exp.Expr) -> Predicate:
        operator = "=" if isinstance(node, exp.NullSafeEQ) else "<>"
        left, right = _bare(node.this), _bare(node.expression)
        if isinstance(right, exp.Column):
            left, right = right, left
        if not (isinstance(left, exp.Column) and is_constant(right)):
            raise self._unsupported(node, "IS DISTINCT FROM needs one column and one constant")
        attribute, value = self._attribute(left), self._constant(right)
        question = self._asked(node, lambda: attribute.compare(operator, [value], null_safe=True))
        return Asks(attribute.column.name, question)

    def _is(self, node: exp.Is) -> Predicate:
        subject, what = _bare(node.this), node.expression
        if isinstance(what, exp.Null) and isinstance(subject, exp.Column):
            attribute = self._attribute(subject)
            attribute.ask(NOT_NULL)
            return Asks(attribute.column.name, attribute.ask(IS_NULL))
        if isinstance(what, exp.Null):
            return IsTruth(self.read(subject), UNKNOWN)
        if isinstance(what, exp.Boolean):
            return IsTruth(self.read(subject), TRUE if what.this else FALSE)
        raise self._unsupported(node, "IS takes NULL, TRUE or FALSE")

    def _bare_column(self, node: exp.Column) -> Predicate:
        attribute = self._attribute(node)
        if attribute.column.type != "BOOLEAN":
            raise self._error(
                TypeMismatchError,
                node,
                f"{attribute.column.name} is a {attribute.column.type}, not a condition",
                f"compare it with something, as in {attribute.column.name} <> 0",
            )
        return Asks(attribute.column.name, attribute.compare("=", [Constant("bool", True)]))

    def _fixed(self, node: exp.Expr) -> Predicate:
        bare = _bare(node)
        value = self._constant(bare) if type(bare) not in _COMPARISONS else self._folded_comparison(bare)
        if value.kind == "null":
            return Fixed(UNKNOWN)
        if value.kind != "bool":
            raise self._error(TypeMismatchError, node, "this constant is not a condition", "write TRUE or FALSE")
        return Fixed(TRUE if value.value else FALSE)

    def _folded_comparison(self, node: exp.Expr) -> Constant:
        """Two constants compared: put the left one in a column of its own type and ask that."""
        left, right = self._constant(_bare(node.this)), self._constant(_bare(node.expression))
        if left.kind == "null" or right.kind == "null":
            return Constant("null", None)
        try:
            less, equal = left.value < right.value, left.value == right.value
        except TypeError:
            raise self._error(
                TypeMismatchError, node, "these two constants cannot be compared", "write both in one type"
            ) from None
        operator = _COMPARISONS[type(node)][0]
        truth = {"=": equal, "<>": not equal, "<": less, "<=": less or equal, ">": not (less or equal)}
        return Constant("bool", truth.get(operator, not less))

    def _ask(self, column: exp.Column, operator: str, items: list[exp.Expr]) -> Predicate:
        attribute = self._attribute(column)
        values = [self._constant(item) for item in items]
        span = column.parent or column
        question = self._asked(span, lambda: attribute.compare(operator, values))
        return Asks(attribute.column.name, question)

    def _constant(self, node: exp.Expr) -> Constant:
        return constant(node, self._statement, self._params)

    def _asked(self, node: exp.Expr, ask: Callable[[], Question]) -> Question:
        return self._located(node, ask)

    def _located(self, node: exp.Expr, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Incomparable as error:
            column = node if isinstance(node, exp.Column) else node.find(exp.Column)
            kind = self._attribute(column).column.type if isinstance(column, exp.Column) else "column"
            raise self._error(TypeMismatchError, node, f"a {kind} cannot be compared with this", error.hint) from None

    def _unsupported(self, node: exp.Expr, message: str) -> SqlError:
        return self._error(
            UnsupportedSqlError, node, message, "write conditions such as age < 18 or state IN ('NY', 'NJ')"
        )

    def _error(self, kind: type[SqlError], node: exp.Expr, message: str, hint: str) -> SqlError:
        start, end = self._statement.span(node)
        return kind(message, sql=self._statement.source, start=start, end=end, hint=hint)


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node
