"""Expressions over one row: what they compute, and their type.

A scalar becomes a derived column: it can be cut into regions, listed as groups, or summed. What it may be
made of is a closed list (``backends/duckdb/functions.py``), and each expression is proven total (``total.py``). What is
left are errors of a value, a cast or an overflow, which ``TRY`` turns into NULL.

``TRY`` alone is not enough where DuckDB's optimizer runs: it takes subexpressions that occur twice out of their ``TRY``
and computes them separately, where they raise. So the scan runs without the optimizer (``settings.meaning``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from tacit.errors import LimitError, SqlError, TypeMismatchError, UnsupportedSqlError

from . import dialect
from .catalog import Column
from .constants import Parameters, bound_literal, constant, with_parameters
from .dialect import kind_of
from .signature import Value
from .statement import Statement, bare, case_parts
from .total import LONGEST_READ, Prover, refusal


@dataclass(frozen=True)
class Scope:
    """What names mean inside one SELECT."""

    statement: Statement
    params: Parameters
    resolve: Callable[[exp.Column], Column]
    """The column that a name stands for; raises UnknownNameError."""

    def error(self, kind: type[SqlError], node: exp.Expr | None, message: str, hint: str) -> SqlError:
        """An error that points at a node."""
        return self.statement.error(kind, node, message, hint)

    def constant(self, node: exp.Expr) -> Any:
        """The Python value of an expression without columns."""
        return constant(node, self.statement, self.params).value

    def written(self, node: exp.Expr) -> exp.Expr:
        """The expression with the values of its parameters written in."""
        return with_parameters(node, self.statement, self.params)


def scalar(node: exp.Expr, scope: Scope) -> Column:
    """The column, or the derived column, that an expression over one row stands for."""
    node = bare(node)
    if isinstance(node, exp.Column):
        return scope.resolve(node)
    return derived(scope.written(node), scope)


def truth(node: exp.Expr, scope: Scope) -> Column:
    """A condition over one row: true, false or NULL.

    Anything else is refused. DuckDB would cast it to BOOLEAN, and a text that is no truth value would fail the scan.
    """
    column = scalar(node, scope)
    if kind_of(column.type) not in ("truth", "null"):
        raise scope.error(
            TypeMismatchError, node, f"a condition is true or false, and this is a {column.type[:40]}", "compare it"
        )
    return column


def derived(node: exp.Expr, scope: Scope, value: Callable[[Column], str] | None = None) -> Column:
    """The column that an expression computes, proven total; ``value`` as in ``rendered``."""
    proven = Prover(
        leaf=lambda part: _column_value(part, scope),
        write=lambda part: rendered(part, scope),
        bind=lambda part: _type(rendered(part, scope), _inputs(part, scope)),
        error=scope.error,
    ).prove(node)
    inputs = _inputs(node, scope)
    sql = rendered(node, scope, value)
    type_ = _type(sql, inputs)
    if type_ is None:
        raise scope.error(
            TypeMismatchError, node, "DuckDB cannot compute this from these types", "check the types, or add a CAST"
        )
    short = proven.made or proven.kind == "text"
    safe = rendered(node, scope, value, short=True) if short else sql
    return Column(sql, type_, True, None, dialect.guarded(safe), inputs, (proven.times, proven.plus))


def _inputs(node: exp.Expr, scope: Scope) -> tuple[Column, ...]:
    return stored(scope.resolve(column) for column in node.find_all(exp.Column))


def _type(sql: str, inputs: tuple[Column, ...]) -> str | None:
    return dialect.type_of(sql, tuple((c.name, c.type) for c in inputs))


def _column_value(node: exp.Expr, scope: Scope) -> Value:
    if not isinstance(node, exp.Column):
        raise scope.error(UnsupportedSqlError, node, refusal(node), "write an expression over the columns of one row")
    if isinstance(node.this, exp.Star):
        raise scope.error(UnsupportedSqlError, node, refusal(node.this), "name a column")
    column = scope.resolve(node)
    return Value(kind_of(column.type), *column.growth, constant=False)


def stored(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The stored columns that columns are computed from."""
    return tuple(dict.fromkeys(itertools.chain.from_iterable(c.stored for c in columns)))


def rendered(node: exp.Expr, scope: Scope, value: Callable[[Column], str] | None = None, *, short: bool = False) -> str:
    """The expression as SQL over the columns of the scan, with its parameters written in.

    ``value`` says how to write a column whose value goes into the result; one that is only asked about, in a
    condition, is always written as it is. With ``short`` a stored text that is too long to compute with is NULL.
    """

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column):
            column = scope.resolve(part)
            if short and kind_of(column.type) == "text" and not column.expression:
                return exp.Var(this=dialect.short(column.reference, LONGEST_READ))
            clamps = value is not None and not _in_condition(part)
            return exp.Var(this=value(column) if clamps and value is not None else column.reference)
        if isinstance(part, exp.Placeholder):
            return bound_literal(part, scope.statement, scope.params)
        return part

    sql = dialect.write(node.transform(replaced))
    if len(sql) > _LONGEST:
        raise scope.error(LimitError, node, "this expression is too long to compute", "write a shorter one")
    return sql


_LONGEST = 20_000
_CONDITIONS = (exp.Connector, exp.Not, exp.Binary, exp.In, exp.Between, exp.IsNan, exp.IsInf)
_VALUES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)


def _in_condition(node: exp.Expr) -> bool:
    """Whether an expression is inside something that is true or false: a comparison, or WHEN …."""
    while node.parent is not None:
        parent = node.parent
        if isinstance(parent, _CONDITIONS) and not isinstance(parent, _VALUES):
            return True
        if isinstance(parent, exp.If | exp.Case) and node is parent.args.get("this"):
            return True
        node = parent
    return False


def case_branches(node: exp.Case | exp.If) -> list[tuple[exp.Expr | None, exp.Expr | None]]:
    """(condition, result) of every branch of a CASE; the last is the default, with condition None."""
    subject, branches, default = case_parts(node)
    pairs: list[tuple[exp.Expr | None, exp.Expr | None]] = []
    for when, result in branches:
        condition = when if subject is None else exp.EQ(this=subject.copy(), expression=when.copy())
        pairs.append((condition, result))
    return [*pairs, (None, default)]
