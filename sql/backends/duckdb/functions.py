"""What may be computed from a row: the closed list of functions, and for each the kinds of values that it takes.

A scan must never fail because of a row. ``TRY`` turns conversion, overflow and range errors of a value into NULL, but
DuckDB has errors that it lets through: a function that is not implemented for a type (``week`` of an INTERVAL), a
pattern that is wrong only when it is used (``LIKE … ESCAPE``), a text that outgrows memory. So an expression reaches
the scan only if every function in it is on this list *for the kinds of its arguments*, everything that could be wrong
about a constant argument was looked at, and no text can become much longer than what was read.

The list is data, and adding a function is one entry: in ``BY_NODE`` where sqlglot has a node of its own for the
function, in ``BY_NAME`` where it only has its name. ``tests/sql/test_functions.py`` runs every entry over types of
every kind that it takes and over the extreme values of each, with and without each optional argument, and no exception
of any kind may come out. Its long form takes every combination of types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from ...signature import LONGEST_WORD, ConstantArgument, DatePart, Gives, Kinds, Signature, Takes, Value
from .scratch import fold
from .text import literal


def _kinds(*names: str) -> Kinds:
    return frozenset((*names, "null"))


TRUTH = _kinds("truth", "number")
"""What DuckDB takes for a condition."""
NUMBER = _kinds("number")
TEXT = _kinds("text")
DAY = _kinds("day", "moment")
CLOCK = _kinds("day", "moment", "time")
PLAIN = _kinds("truth", "number", "text", "day", "moment", "time", "interval")
ANY = PLAIN | {"opaque"}
WORDS = _kinds("truth", "number", "text", "day")
"""What can be written as a text. A TIMESTAMP before the year 290,309 BC, which DuckDB stores, it cannot write: the cast
fails in a way that no TRY catches and that closes the whole database. ``strftime`` writes all of them."""

_DAY_PARTS = {"year", "quarter", "month", "week", "day", "isoyear", "century", "decade", "millennium"}
_CLOCK_PARTS = {"hour", "minute", "second", "millisecond", "microsecond"}
_PLURALS = {f"{name}s" for name in (_DAY_PARTS | _CLOCK_PARTS) - {"isoyear", "century"}} | {"centuries", "millennia"}
STEPS = frozenset(_DAY_PARTS | _CLOCK_PARTS | _PLURALS)
"""What date_trunc and date_diff count in."""
PARTS = STEPS | {"dow", "isodow", "dayofweek", "doy", "dayofyear", "weekday", "epoch", "era", "yearweek", "julian"}
"""What extract and date_part take of a date or a timestamp; time zones are not among them."""
INTERVAL_UNITS = STEPS - {"isoyear", "millenniums"}
"""What an INTERVAL is written in."""

_SUMS: dict[tuple[str, str], str] = {
    ("number", "number"): "number",
    ("day", "number"): "day",
    ("number", "day"): "day",
    ("day", "interval"): "moment",
    ("interval", "day"): "moment",
    ("moment", "interval"): "moment",
    ("interval", "moment"): "moment",
    ("time", "interval"): "time",
    ("interval", "interval"): "interval",
}
_DIFFERENCES: dict[tuple[str, str], str] = {
    ("number", "number"): "number",
    ("day", "number"): "day",
    ("day", "day"): "number",
    ("moment", "moment"): "interval",
    ("day", "moment"): "interval",
    ("moment", "day"): "interval",
    ("day", "interval"): "moment",
    ("moment", "interval"): "moment",
    ("time", "interval"): "time",
    ("interval", "interval"): "interval",
}


def _pair(table: Mapping[tuple[str, str], str]) -> Callable[[Sequence[Value]], str | None]:
    def gives(arguments: Sequence[Value]) -> str | None:
        left, right = (argument.kind for argument in arguments)
        if "null" in (left, right):
            return "number" if left == right else (right if left == "null" else left)
        return table.get((left, right))

    return gives


def _compared(arguments: Sequence[Value]) -> str | None:
    """Any two kinds compare, after a cast that ``TRY`` guards; an opaque one with its like or with a constant."""
    if any(a.kind == "opaque" for a in arguments):
        alike = all(a.kind in ("opaque", "null") or (a.kind == "text" and a.constant) for a in arguments)
        return "truth" if alike else None
    return "truth"


def _joined(arguments: Sequence[Value], _: exp.Expr) -> tuple[int, int]:
    texts = [a for a in arguments if a.kind == "text"]
    others = (len(arguments) - len(texts)) * LONGEST_WORD
    return sum(a.times for a in texts), sum(a.plus for a in texts) + others


def _several(arguments: Sequence[Value]) -> str | None:
    """sqlglot writes the concat of one argument as that argument, which is no text."""
    return "text" if len(arguments) > 1 else None


def _recased(arguments: Sequence[Value], _: exp.Expr) -> tuple[int, int]:
    """Two bytes of UTF-8 can become three in the other case."""
    return 2 * arguments[0].times, 2 * arguments[0].plus


def _replaced(arguments: Sequence[Value], node: exp.Expr) -> tuple[int, int]:
    old, new = (len(str(node.args[name].this).encode()) for name in ("expression", "replacement"))
    factor = max(1, -(-new // max(1, old)))
    return factor * arguments[0].times, factor * arguments[0].plus


def _rewritten(arguments: Sequence[Value], node: exp.Expr) -> tuple[int, int]:
    """Each match becomes the new text; at most bytes and one, and what \\1 copies of them does not overlap."""
    new = len(str(node.args["replacement"].this).encode())
    return (1 + new) * arguments[0].times, (1 + new) * (arguments[0].plus + 1)


def _formatted(_: Sequence[Value], node: exp.Expr) -> tuple[int, int]:
    return 0, LONGEST_WORD * max(1, len(str(node.args["format"].this)))


def _first(arguments: Sequence[Value], _: exp.Expr) -> tuple[int, int]:
    return arguments[0].times, arguments[0].plus


def _word(_: Sequence[Value], __: exp.Expr) -> tuple[int, int]:
    return 0, LONGEST_WORD


def _is_format(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 100


def _are_flags(value: object) -> bool:
    return isinstance(value, str) and set(value) <= set("cilmnps")


def _are_replacing(value: object) -> bool:
    return isinstance(value, str) and set(value) <= set("cgilmnps")


def _is_width(value: object) -> bool:
    """Whether the amount of an INTERVAL is a small whole number above zero; others fail in a way no TRY catches."""
    return isinstance(value, exp.Literal) and re.fullmatch(r"[1-9]\d{0,3}", value.name) is not None


def _is_pattern(value: object) -> bool:
    """Whether a text is a regular expression: these functions fail on another for any rows, and no TRY catches it."""
    return isinstance(value, str) and len(value) <= 1000 and fold(f"regexp_extract('', {literal(value)})") is not None


def _is_replacement(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 1000 and re.fullmatch(r"(?s)(?:[^\\]|\\[0-9])*", value) is not None


def _is_group(value: object) -> bool:
    return str(value).isdecimal() and int(str(value)) < 10


def _unary(kinds: Kinds, gives: str = "number") -> Signature:
    return Signature({"this": kinds}, gives)


def _binary(kinds: Kinds, gives: Gives, flags: str = "") -> Signature:
    return Signature({"this": kinds, "expression": kinds}, gives, frozenset(flags.split()))


_COMPARISON = _binary(ANY, _compared)
_MATCH = Signature({"this": TEXT, "expression": TEXT}, "truth", frozenset({"negate"}))
_PATTERN = Signature({"this": TEXT, "expression": ConstantArgument(TEXT)}, "truth")
_EXTREME = Signature(
    {"this": PLAIN, "expressions": PLAIN}, "bound", frozenset({"ignore_nulls"}), optional=frozenset({"expressions"})
)

BY_NODE: dict[type[exp.Expr], Signature] = {
    exp.And: _binary(TRUTH, "truth"),
    exp.Or: _binary(TRUTH, "truth"),
    exp.Not: _unary(TRUTH, "truth"),
    exp.Is: Signature({"this": ANY | {"other"}, "expression": ConstantArgument(_kinds("truth"))}, "truth"),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _COMPARISON),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _COMPARISON),
    exp.In: Signature({"this": ANY, "expressions": ANY}, _compared, optional=frozenset({"expressions"})),
    exp.Between: Signature({"this": ANY, "low": ANY, "high": ANY}, _compared),
    **dict.fromkeys((exp.Like, exp.ILike, exp.Glob), _MATCH),
    **dict.fromkeys((exp.SimilarTo, exp.RegexpFullMatch), _PATTERN),
    exp.RegexpLike: Signature(
        {"this": TEXT, "expression": ConstantArgument(TEXT), "flag": ConstantArgument(TEXT, _are_flags)},
        "truth",
        optional=frozenset({"flag"}),
    ),
    # choice
    exp.Coalesce: Signature({"this": PLAIN, "expressions": PLAIN}, "bound", optional=frozenset({"expressions"})),
    exp.Greatest: _EXTREME,
    exp.Least: _EXTREME,
    exp.Nullif: Signature({"this": PLAIN, "expression": PLAIN}, "bound"),
    # numbers
    exp.Add: _binary(PLAIN, _pair(_SUMS)),
    exp.Sub: _binary(PLAIN, _pair(_DIFFERENCES)),
    exp.Mul: _binary(NUMBER, "number"),
    **dict.fromkeys((exp.Div, exp.IntDiv, exp.Mod), _binary(NUMBER, "number", "typed safe")),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _binary(NUMBER, "number")),
    exp.Pow: _binary(NUMBER, "number"),
    exp.Neg: Signature({"this": NUMBER | {"interval"}}, lambda arguments: arguments[0].kind),
    **dict.fromkeys((exp.Abs, exp.Sign, exp.Floor, exp.Ceil, exp.Sqrt, exp.Cbrt, exp.Ln, exp.Exp), _unary(NUMBER)),
    **dict.fromkeys((exp.Sin, exp.Cos, exp.Tan), _unary(NUMBER)),
    exp.Log: Signature({"this": NUMBER, "expression": NUMBER}, "number", optional=frozenset({"expression"})),
    **dict.fromkeys(
        (exp.Round, exp.Trunc),
        Signature({"this": NUMBER, "decimals": NUMBER}, "number", optional=frozenset({"decimals"})),
    ),
    exp.IsNan: _unary(NUMBER, "truth"),
    exp.IsInf: _unary(NUMBER | DAY, "truth"),
    # text
    **dict.fromkeys((exp.Length, exp.Ascii, exp.Unicode, exp.BitLength), _unary(TEXT)),
    **dict.fromkeys((exp.Upper, exp.Lower), Signature({"this": TEXT}, "text", grows=_recased, makes=True)),
    exp.Reverse: Signature({"this": TEXT}, "text", grows=_first, makes=True),
    exp.Trim: Signature(
        {"this": TEXT, "expression": TEXT}, "text", frozenset({"position"}), _first, True, frozenset({"expression"})
    ),
    exp.Substring: Signature(
        {"this": TEXT, "start": NUMBER, "length": NUMBER},
        "text",
        grows=_first,
        makes=True,
        optional=frozenset({"length"}),
    ),
    **dict.fromkeys(
        (exp.Left, exp.Right), Signature({"this": TEXT, "expression": NUMBER}, "text", grows=_first, makes=True)
    ),
    exp.Replace: Signature(
        {"this": TEXT, "expression": ConstantArgument(TEXT), "replacement": ConstantArgument(TEXT)},
        "text",
        grows=_replaced,
        makes=True,
    ),
    exp.RegexpReplace: Signature(
        {
            "this": TEXT,
            "expression": ConstantArgument(TEXT, _is_pattern),
            "replacement": ConstantArgument(TEXT, _is_replacement),
            "modifiers": ConstantArgument(TEXT, _are_replacing),
        },
        "text",
        frozenset({"single_replace"}),
        _rewritten,
        True,
        frozenset({"modifiers"}),
    ),
    exp.RegexpExtract: Signature(
        {"this": TEXT, "expression": ConstantArgument(TEXT, _is_pattern), "group": ConstantArgument(NUMBER, _is_group)},
        "text",
        frozenset({"null_if_pos_overflow"}),
        _first,
        True,
        frozenset({"group"}),
    ),
    exp.SplitPart: Signature(
        {"this": TEXT, "delimiter": TEXT, "part_index": NUMBER}, "text", grows=_first, makes=True
    ),
    exp.Concat: Signature({"expressions": WORDS}, _several, frozenset({"safe", "coalesce"}), _joined, True),
    exp.DPipe: Signature({"this": WORDS, "expression": WORDS}, "text", frozenset({"safe"}), _joined, True),
    exp.StrPosition: Signature({"this": TEXT, "substr": TEXT}, "number"),
    **dict.fromkeys((exp.StartsWith, exp.EndsWith, exp.Contains), _binary(TEXT, "truth")),
    # dates
    exp.Extract: Signature({"this": DatePart(PARTS), "expression": DAY}, "number"),
    **dict.fromkeys(
        (exp.TimestampTrunc, exp.DateTrunc),
        Signature({"this": DAY, "unit": DatePart(STEPS)}, "bound"),
    ),
    exp.DateDiff: Signature(
        {"this": DAY, "expression": DAY, "unit": DatePart(STEPS)}, "number", frozenset({"date_part_boundary"})
    ),
    **dict.fromkeys((exp.Year, exp.Quarter, exp.Month, exp.Week, exp.WeekOfYear, exp.Day), _unary(DAY)),
    **dict.fromkeys((exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfMonth, exp.DayOfYear), _unary(DAY)),
    **dict.fromkeys((exp.Hour, exp.Minute, exp.Second, exp.TimeToUnix), _unary(CLOCK)),
    exp.LastDay: _unary(DAY, "day"),
    exp.DateBin: Signature({"this": ConstantArgument(_kinds("interval"), _is_width), "expression": DAY}, "bound"),
    **dict.fromkeys((exp.Monthname, exp.Dayname), Signature({"this": DAY}, "text", grows=_word, makes=True)),
    exp.TimeToStr: Signature(
        {"this": DAY, "format": ConstantArgument(TEXT, _is_format)}, "text", frozenset(), _formatted, True
    ),
}  # fmt: skip


def _positional(gives: str, *takes: Takes) -> Signature:
    """A function that sqlglot knows by name only: its arguments by place."""
    return Signature({str(place): kinds for place, kinds in enumerate(takes)}, gives)


BY_NAME: dict[str, Signature] = {
    **dict.fromkeys(("strlen", "ord"), _positional("number", TEXT)),
    **dict.fromkeys(("prefix", "suffix"), _positional("truth", TEXT, TEXT)),
    **dict.fromkeys(("isoyear", "weekday", "century", "decade", "era"), _positional("number", DAY)),
    "date_part": _positional("number", DatePart(PARTS), DAY),
    "isfinite": _positional("truth", NUMBER | DAY),
}

CASTS = {
    **dict.fromkeys(
        ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "INT128", "UTINYINT", "USMALLINT", "UINT", "UBIGINT",
         "UINT128", "FLOAT", "DOUBLE", "DECIMAL"), "number"
    ),
    "BOOLEAN": "truth",
    **dict.fromkeys(("VARCHAR", "TEXT", "CHAR", "NVARCHAR"), "text"),
    "DATE": "day",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), "moment"),
    "TIME": "time",
    "INTERVAL": "interval",
}  # fmt: skip
"""The types that a value may be cast to, by sqlglot's names, and the kind that comes out."""

_PARAMETER = re.compile(r"\d{1,3}")


def cast_kind(to: exp.Expr) -> str | None:
    """The kind that a CAST gives; None for a type that is not on the list."""
    if not isinstance(to, exp.DataType) or not isinstance(to.this, exp.DataType.Type):
        return None
    if any(value for name, value in to.args.items() if name not in ("this", "expressions")):
        return None
    if not all(isinstance(p, exp.DataTypeParam) and _PARAMETER.fullmatch(p.name) for p in to.expressions):
        return None
    return CASTS.get(to.this.value)


EXPRESSIONS: tuple[type[exp.Expr], ...] = (
    *BY_NODE,
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Placeholder, exp.Var),
    *(exp.Interval, exp.IntervalSpan, exp.DataType, exp.DataTypeParam, exp.Case, exp.If, exp.Cast, exp.Escape),
)
"""Every node that an expression can be made of."""
