"""Constants of the batch: literals, parameters, and expressions without columns, as typed values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp
from tacit.errors import ParameterError, TypeMismatchError, UnsupportedSqlError

from . import dialect
from .literals import MOST_DIGITS, NULL, Constant
from .statement import Statement, bare

Params = Sequence[Any] | Mapping[str, Any] | None

_FOLDABLE = (
    exp.Literal, exp.Neg, exp.Paren, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Boolean, exp.Null,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Interval, exp.Var, exp.IntervalSpan,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In,
)  # fmt: skip
"""What a constant may be made of besides parameters: none of it volatile, none of it reads anything."""
_CONSTANT = (*_FOLDABLE, exp.Placeholder)
_LONGEST_NUMBER = 400
"""Digits; DuckDB's numbers end far earlier."""
_LEAST, _GREATEST = -(2**127), 2**128 - 1
"""The ends of HUGEINT and UHUGEINT: DuckDB has no arithmetic for whole numbers beyond them."""


class Parameters:
    """The values behind ``?``, ``$1``, ``:name`` and ``$name``, and which of them were used."""

    def __init__(self, params: Params) -> None:
        self._values: dict[str, Any] = {}
        if isinstance(params, Mapping):
            self._values = {str(name): value for name, value in params.items()}
        elif isinstance(params, Sequence) and not isinstance(params, str | bytes):
            self._values = {str(i): value for i, value in enumerate(params, start=1)}
        elif params is not None:
            raise ParameterError(
                "parameters come as a sequence or as a mapping", hint="write [18, 'NY'] or {'age': 18}"
            )
        self._named = isinstance(params, Mapping)
        self._used: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        self._used.add(name)
        return value

    def __len__(self) -> int:
        return len(self._values)

    def check_all_used(self) -> None:
        """Refuse parameters that no placeholder asks for: the caller meant something else."""
        unused = [name for name in self._values if name not in self._used]
        if unused:
            given = f"{len(self)} parameters were given and the batch uses {len(self._used)}"
            hint = f"leave out {', '.join(unused[:5])}" if self._named else "give one value for each placeholder"
            raise ParameterError(given, hint=hint)


def is_too_large(node: exp.Literal) -> bool:
    """Whether a literal is a whole number that no type of DuckDB holds but BIGNUM, which tacit does not compute with.

    >>> [is_too_large(exp.Literal.number(n)) for n in (2**128 - 1, 2**128, "9" * 5000, "1e400", "007")]
    [False, True, True, False, False]
    """
    digits = str(node.this).lstrip("0")
    if node.is_string or not digits.isdigit() or len(digits) < len(str(_GREATEST)):
        return False
    return len(digits) > len(str(_GREATEST)) or int(digits) > _GREATEST


def is_constant(node: exp.Expr) -> bool:
    """Whether an expression names no column and calls nothing."""
    if isinstance(node, exp.Literal | exp.Column):  # nearly every operand is one of the two
        return isinstance(node, exp.Literal)
    first: Any = node
    while isinstance(first, exp.Expr):  # the first operand of a long chain is mostly a column: no need for a walk
        if not isinstance(first, _CONSTANT):
            return False
        first = first.args.get("this")
    return all(isinstance(n, _CONSTANT) for n in node.walk())


def constant(node: exp.Expr, statement: Statement, params: Parameters) -> Constant:
    """The value of an expression without columns."""
    node = bare(node)
    if isinstance(node, exp.Literal):
        return _literal(node, statement)
    if isinstance(node, exp.Null):
        return NULL
    if isinstance(node, exp.Boolean):
        return Constant("bool", bool(node.this))
    if isinstance(node, exp.Placeholder):
        return _bound(node, statement, params)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        positive = _literal(node.this, statement)
        decimal = positive.kind == "decimal"  # Python's "-" would round to 28 digits
        return Constant(positive.kind, positive.value.copy_negate() if decimal else -positive.value)
    return evaluated(node, statement, params)


def _literal(node: exp.Literal, statement: Statement) -> Constant:
    text = str(node.this)
    if node.is_string:
        return Constant("string", text)
    if len(text) <= _LONGEST_NUMBER:
        try:
            if text.isdigit():
                return Constant("int", int(text))
            if "e" in text.lower() or sum(map(str.isdigit, text)) > MOST_DIGITS:
                return Constant("double", float(text))
            return Constant("decimal", Decimal(text))
        except (ValueError, ArithmeticError):
            pass
    raise statement.error(
        TypeMismatchError, node, "this is not a number that tacit can read", "write digits, with one point at most"
    )


def _bound(node: exp.Placeholder, statement: Statement, params: Parameters) -> Constant:
    name = str(node.name)
    try:
        bound = Constant.of(params[name])
        if bound.kind == "int" and not _LEAST <= bound.value <= _GREATEST:
            raise TypeError("a whole number of more than 128 bits")
        return bound
    except KeyError:
        raise statement.error(
            ParameterError, node, f"no value for parameter {name}: {len(params)} were given",
            "give one value for each placeholder",
        ) from None  # fmt: skip
    except TypeError as error:
        raise statement.error(
            ParameterError, node, f"parameter {name} cannot be used in SQL: it is {error}",
            "give a number, a string, a boolean, a date, a datetime without time zone, or None",
        ) from None  # fmt: skip


def evaluated(node: exp.Expr, statement: Statement, params: Parameters) -> Constant:
    """Let DuckDB evaluate the expression, with the parameters written in."""
    if not is_constant(node):
        raise statement.error(UnsupportedSqlError, node, "this is not a constant", "compare one column with a constant")
    result = dialect.fold(dialect.write(with_parameters(node, statement, params)))
    try:
        if result is None:
            raise TypeError
        value, type_ = result
        if type_ == "BIGNUM":  # comes as a text
            raise TypeError
        if isinstance(value, float) and not math.isfinite(value) and not type_.startswith(("DOUBLE", "FLOAT")):
            raise TypeError
        typed = Constant.of(value)
        return Constant("float", typed.value) if type_ == "FLOAT" and typed.kind == "double" else typed
    except TypeError:
        raise statement.error(
            TypeMismatchError, node, "this constant has no value that a column could be compared with",
            "write a number, a string, DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00'",
        ) from None  # fmt: skip


def with_parameters(node: exp.Expr, statement: Statement, params: Parameters) -> exp.Expr:
    """The expression with the values of its parameters written in."""
    if node.find(exp.Placeholder) is None:
        return node
    return node.transform(
        lambda part: bound_literal(part, statement, params) if isinstance(part, exp.Placeholder) else part
    )


def bound_literal(node: exp.Placeholder, statement: Statement, params: Parameters) -> exp.Expr:
    """A parameter's value as a literal."""
    return _as_literal(_bound(node, statement, params))


def constant_literal(value: Any) -> exp.Expr:
    """A value that DuckDB has given as a literal of the same value."""
    typed = Constant.of(value)
    return exp.Null() if typed.kind == "null" else _as_literal(typed)


def _as_literal(value: Constant) -> exp.Expr:
    if value.kind in ("date", "timestamp"):
        return exp.cast(exp.Literal.string(str(value.value)), value.kind, dialect=dialect.DUCKDB)
    if value.kind == "decimal":  # Python would write 1E+30, which SQL reads as a DOUBLE
        size = exp.Literal.number(f"{value.value.copy_abs():f}")
        return exp.Neg(this=size) if value.value.is_signed() else size
    return exp.convert(value.value)
