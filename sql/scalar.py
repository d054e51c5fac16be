"""Expressions over one row: what may be computed from a row, its type, and what is known of its values.

A scalar becomes a derived column of its own: it can be cut into regions, listed as groups, or summed. The list of
what it may be made of is closed. All of it is deterministic and reads nothing but the row, and the whole is wrapped
in ``TRY``, which turns every error that a value could cause into NULL. So no row can make the scan fail.

``TRY`` alone does not hold: DuckDB's optimizer takes subexpressions that occur twice out of their ``TRY`` and computes
them on their own, where they raise. It may not take anything out of a branch of a ``CASE``, whose very purpose is to
guard, so that is where every ``TRY`` stands; the condition is always true and opaque to the optimizer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from tacit.errors import LimitError, SqlError, TypeMismatchError, UnsupportedSqlError

from . import scratch
from .catalog import Column, Range, Values
from .constants import Parameters, bound_literal, constant, is_constant
from .ordering import ordering
from .parse import Statement, bare

EXPRESSIONS: tuple[type[exp.Expr], ...] = (
    # structure and constants
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Placeholder, exp.Var, exp.Interval,
    exp.IntervalSpan, exp.DataType, exp.DataTypeParam,
    # logic and comparison
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.Escape, exp.Glob,
    # choice
    exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least,
    # numbers
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Sign, exp.Round, exp.Floor, exp.Ceil,
    exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Pow, exp.IsNan, exp.IsInf, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor,
    exp.Cast, exp.TryCast,
    # text
    exp.Length, exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Replace, exp.Concat, exp.DPipe,
    exp.StrPosition, exp.StartsWith, exp.EndsWith, exp.Contains, exp.Reverse,
    # dates
    exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek,
    exp.DayOfMonth, exp.DayOfYear, exp.Hour, exp.Minute, exp.Second, exp.DateDiff, exp.LastDay, exp.Monthname,
    exp.Dayname, exp.TimeToStr,
)  # fmt: skip
_ALLOWED_NAMES = frozenset(
    [
        "strlen",
        "date_part",
        "prefix",
        "suffix",
        "isodow",
        "isoyear",
        "weekday",
        "century",
        "decade",
        "era",
        "log2",
        "log10",
        "trunc",
        "cbrt",
        "sin",
        "cos",
        "tan",
        "isfinite",
        "ltrim",
        "rtrim",
        "instr",
        "ascii",
        "unicode",
        "ord",
        "bit_length",
    ]
)


@dataclass(frozen=True)
class Scope:
    """What names mean inside one SELECT."""

    statement: Statement
    params: Parameters
    resolve: Callable[[exp.Column], Column]
    """The column that a name stands for; raises UnknownNameError."""

    def error(self, kind: type[SqlError], node: exp.Expr | None, message: str, hint: str) -> SqlError:
        """An error that points at a node."""
        start, end = self.statement.span(node)
        return kind(message, sql=self.statement.source, start=start, end=end, hint=hint)

    def constant(self, node: exp.Expr) -> Any:
        """The Python value of an expression without columns."""
        return constant(node, self.statement, self.params).value


def scalar(node: exp.Expr, scope: Scope) -> Column:
    """The column, or the derived column, that an expression over one row stands for."""
    node = bare(node)
    if isinstance(node, exp.Column):
        return scope.resolve(node)
    return _derived(node, scope, stored(check(node, scope)), rendered(node, scope))


def _derived(node: exp.Expr, scope: Scope, inputs: tuple[Column, ...], sql: str) -> Column:
    type_ = scratch.type_of(sql, tuple((c.name, c.type) for c in inputs))
    if type_ is None:
        raise scope.error(
            TypeMismatchError, node, "DuckDB cannot compute this from these types", "check the types, or add a CAST"
        )
    if not inputs and scratch.fold(f"TRY({sql})") is None:
        raise scope.error(TypeMismatchError, node, "this has no value", "check the constants in it")
    return Column(sql, type_, True, None, _guarded(sql, inputs), inputs)


def _guarded(sql: str, inputs: tuple[Column, ...]) -> str:
    """SQL that is NULL where the given SQL would raise, whatever else the optimizer sees beside it."""
    return f"(CASE WHEN hash({inputs[0].reference}) IS NOT NULL THEN TRY({sql}) END)" if inputs else f"TRY({sql})"


def stored(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The stored columns that columns are computed from."""
    return tuple(dict.fromkeys(itertools.chain.from_iterable(c.stored for c in columns)))


def check(node: exp.Expr, scope: Scope) -> tuple[Column, ...]:
    """Refuse everything that is not on the list; the columns that the expression reads."""
    inputs: dict[Column, None] = {}
    for part in node.walk():
        named = isinstance(part, exp.Anonymous) and str(part.this).lower() in _ALLOWED_NAMES
        if not named and not isinstance(part, EXPRESSIONS):
            raise scope.error(UnsupportedSqlError, part, refusal(part), _hint(part))
        if isinstance(part, exp.RegexpLike | exp.SimilarTo) and not is_constant(part.expression):
            raise scope.error(UnsupportedSqlError, part, "a pattern must be a constant", "write the pattern in quotes")
        if isinstance(part, exp.In) and (part.args.get("query") or part.args.get("unnest")):
            raise scope.error(UnsupportedSqlError, part, "IN needs a list of values", "write IN (1, 2, 3)")
        if isinstance(part, exp.Column):
            if isinstance(part.this, exp.Star):
                raise scope.error(UnsupportedSqlError, part, "* stands for no single value", "name a column")
            inputs[scope.resolve(part)] = None
    return tuple(inputs)


def rendered(node: exp.Expr, scope: Scope, value: Callable[[Column], str] | None = None) -> str:
    """The expression as SQL over the columns of the scan, with its parameters written in.

    ``value`` says how to write a column whose value goes into the result; one that is only asked about, in a
    condition, is always written as it is.
    """

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column):
            column = scope.resolve(part)
            clamps = value is not None and not _in_condition(part)
            return exp.Var(this=value(column) if clamps and value is not None else column.reference)
        if isinstance(part, exp.Placeholder):
            return bound_literal(part, scope.statement, scope.params)
        return part

    sql = node.copy().transform(replaced).sql("duckdb", comments=False)
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


def refusal(node: exp.Expr) -> str:
    """Why a node cannot be part of an expression."""
    if isinstance(node, exp.Window):
        return "window functions read other rows and are not supported"
    if isinstance(node, exp.AggFunc):
        return "an aggregate cannot stand here"
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        return "a subquery cannot stand here"
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this).lower()} is not on the list of functions that tacit allows"
    name = node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__
    return f"{name} is not on the list of what tacit allows in an expression"


def _hint(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous | exp.Func) and not isinstance(node, exp.AggFunc):
        return "use arithmetic, comparisons, CASE, COALESCE, CAST, LIKE, or a common text or date function"
    return "write an expression over the columns of one row"


# What is known of the values without looking


def with_domain(node: exp.Expr, scope: Scope, limit: int) -> Column:
    """The (derived) column with the domain that follows from what is declared: listed values, or else a range."""
    column = scalar(node, scope)
    if column.domain is not None or not column.expression:
        return column
    listed = listed_values(bare(node), column, scope, limit)
    if listed is not None:
        values, nullable = listed
        return Column(column.name, column.type, nullable, values, column.expression, column.inputs)
    known = bounds(node, scope)
    domain = Range(*known) if known is not None else None
    return Column(column.name, column.type, True, domain, column.expression, column.inputs)


def listed_values(node: exp.Expr, column: Column, scope: Scope, limit: int) -> tuple[Values, bool] | None:
    """The values that an expression can take, and whether NULL is one of them, where both are known.

    Known are: the results of a CASE between constants; conditions; and any expression over columns whose own values
    are declared, which is then evaluated on all of them, and on NULL where a column can be NULL.
    """
    if isinstance(node, exp.Case | exp.If):
        results = [result for _, result in scalar_conditions(node)]
        if all(result is None or is_constant(result) for result in results):
            return _constants(results, column, scope)
    if column.type == "BOOLEAN":
        return Values((False, True)), True
    lists = [_listed(c) for c in column.inputs]
    if not lists or math.prod(len(values or ()) for values in lists) not in range(1, limit):
        return None
    found = scratch.map_values(
        column.expression, tuple((c.name, c.type, values or ()) for c, values in zip(column.inputs, lists, strict=True))
    )
    return None if found is None else (Values(found), True)


def _constants(results: list[exp.Expr | None], column: Column, scope: Scope) -> tuple[Values, bool] | None:
    """The results of a CASE as values of its own type: '1' and 1 can be one value there."""
    values: list[Any] = []
    for result in results:
        sql = "NULL" if result is None else rendered(result, scope)
        folded = scratch.fold(f"CAST({sql} AS {column.type})")
        if folded is None:
            return None
        values.append(folded[0])
    return Values(scratch.distinct(values)), None in values


def scalar_conditions(node: exp.Case | exp.If) -> list[tuple[exp.Expr | None, exp.Expr | None]]:
    """(condition, result) of every branch of a CASE; the last is the default, with condition None."""
    branches = [node] if isinstance(node, exp.If) else list(node.args["ifs"])
    default = node.args.get("false") if isinstance(node, exp.If) else node.args.get("default")
    subject = node.this if isinstance(node, exp.Case) else None
    found: list[tuple[exp.Expr | None, exp.Expr | None]] = []
    for branch in branches:
        same = branch.this if subject is None else exp.EQ(this=subject.copy(), expression=branch.this.copy())
        found.append((same, branch.args["true"]))
    return [*found, (None, default)]


def _listed(column: Column) -> tuple[Any, ...] | None:
    """The declared values of a column, and NULL where it can be NULL; None where a row may hold any other."""
    order = ordering(column.type)
    null = (None,) if column.nullable else ()
    if column.type == "BOOLEAN":
        return (False, True, *null)
    if isinstance(column.domain, Values) and column.domain.other is None:
        return (*column.domain.values, *null)
    if isinstance(column.domain, Range) and order is not None and order.discrete:
        cuts = order.listed(column.domain.min, column.domain.max)
        return (*(order.value(cut) for cut in cuts), *null) if len(cuts) < 100_000 else None
    return None


def column_bounds(column: Column) -> tuple[float, float] | None:
    """The declared ends of a column of numbers."""
    order = ordering(column.type)
    if order is None or order.kind not in ("number", "truth"):
        return None
    if order.kind == "truth":
        return 0.0, 1.0
    if isinstance(column.domain, Range):
        return float(column.domain.min), float(column.domain.max)  # type: ignore[arg-type]
    if isinstance(column.domain, Values) and column.domain.values and column.domain.other is None:
        return float(min(column.domain.values)), float(max(column.domain.values))
    return None


def bounds(node: exp.Expr, scope: Scope) -> tuple[float, float] | None:
    """The range of an expression whose columns lie within their declared ranges, by interval arithmetic."""
    node = bare(node)
    if isinstance(node, exp.Column):
        return column_bounds(scope.resolve(node))
    if is_constant(node):
        value = scope.constant(node)
        try:
            return (float(value), float(value)) if value is not None and not isinstance(value, str) else None
        except TypeError:
            return None
    if isinstance(node, exp.Case | exp.If):
        results = [result for _, result in scalar_conditions(node) if result is not None]
        return _hull([bounds(r, scope) for r in results if not isinstance(bare(r), exp.Null)])
    if isinstance(node, exp.Coalesce | exp.Least | exp.Greatest):
        return _hull([bounds(part, scope) for part in (node.this, *node.expressions)])
    inner = bounds(node.this, scope) if isinstance(node.this, exp.Expr) else None
    if inner is None:
        return None
    low, high = inner
    if isinstance(node, exp.Neg):
        return -high, -low
    if isinstance(node, exp.Abs):
        return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if isinstance(node, exp.Round | exp.Floor | exp.Ceil | exp.Cast | exp.TryCast):
        numeric = not isinstance(node, exp.Cast | exp.TryCast) or node.is_type(*exp.DataType.NUMERIC_TYPES)
        return (float(math.floor(low)), float(math.ceil(high))) if numeric else None
    other = bounds(node.expression, scope) if isinstance(node.args.get("expression"), exp.Expr) else None
    if other is None:
        return None
    if isinstance(node, exp.Add):
        return low + other[0], high + other[1]
    if isinstance(node, exp.Sub):
        return low - other[1], high - other[0]
    if isinstance(node, exp.Mul):
        corners = [a * b for a in inner for b in other]
        square = bare(node.this) == bare(node.expression) and low < 0 < high
        return 0.0 if square else min(corners), max(corners)
    if isinstance(node, exp.Div) and other[0] == other[1] != 0:
        corners = [a / other[0] for a in inner]
        return min(corners), max(corners)
    return None


def _hull(ranges: list[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [r for r in ranges if r is not None]
    if not known or len(known) < len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def clamped(node: exp.Expr, scope: Scope) -> Column:
    """An expression to be summed: every column in it is clamped to its declared range first, then it is computed."""
    node = bare(node)
    if isinstance(node, exp.Column):
        return scope.resolve(node)
    inputs = stored(check(node, scope))
    column = _derived(node, scope, inputs, rendered(node, scope, _clamp_sql))
    known = bounds(node, scope)
    name = rendered(node, scope, _clamp_words)
    return Column(name, column.type, True, Range(*known) if known is not None else None, column.expression, inputs)


def summands(node: exp.Expr, scope: Scope) -> tuple[Column, ...] | None:
    """The columns of plain arithmetic: with its columns clamped it is NULL exactly where one of them is."""
    if not all(isinstance(part, _ARITHMETIC) for part in node.walk()):
        return None
    columns = tuple(dict.fromkeys(scope.resolve(part) for part in node.find_all(exp.Column)))
    return columns if all(_is_clamped(column) for column in columns) else None


_ARITHMETIC = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg)


def _is_clamped(column: Column) -> bool:
    return column.type != "BOOLEAN" and column_bounds(column) is not None


def _clamp_words(column: Column) -> str:
    ends = column_bounds(column)
    return f"{column.name}[{ends[0]!r}, {ends[1]!r}]" if ends is not None and _is_clamped(column) else column.name


def _clamp_sql(column: Column) -> str:
    ends = column_bounds(column)
    if ends is None or not _is_clamped(column):
        return column.reference
    low, high = (f"CAST('{end!r}' AS DOUBLE)" for end in ends)
    value = column.reference
    return f"(CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END)"
