"""The proof that an expression cannot fail on any row, made before the row's table is charged for.

``prove`` walks the expression and refuses what is not on the list of functions for the kinds of values that it
is given. Constant parts are computed once, here, where their errors can be shown.

Guarantee. Let e be an expression that ``prove`` accepts. Then ``CASE WHEN hash(c) IS NOT NULL THEN TRY(e) END`` has a
value or NULL for every row, in every order and company of rows: by induction over its tree, each function is on the
list for the kinds of its arguments, and such a function either has a value or raises one of the errors that ``TRY``
catches (measured for every entry, type and extreme value by the long form of ``tests/sql/test_functions.py``, and for
every entry and kind by its ordinary form); its constant arguments were evaluated; and a text in it has at most
``MOST_TIMES`` · ``LONGEST_READ`` + ``MOST_PLUS`` bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from tacit.errors import LimitError, SqlError, TypeMismatchError, UnsupportedSqlError

from . import dialect
from .calls import typed_name
from .constants import is_too_large
from .dialect import BY_NAME, BY_NODE, INTERVAL_UNITS, NUMBER, PLAIN, TRUTH, WORDS, cast_kind, kind_of
from .signature import LONGEST_WORD, ConstantArgument, DatePart, Signature, Takes, Value
from .statement import case_parts

LONGEST_READ = 1 << 16
"""Bytes. Inside an expression that makes a text, a longer stored text counts as NULL (see ``scalar.rendered``)."""
MOST_TIMES = 8
MOST_PLUS = 1 << 12
"""No text may become more than ``MOST_TIMES`` as long as what is read, plus ``MOST_PLUS`` bytes: else whether a scan
runs out of memory would depend on the rows that take a branch of a CASE. DuckDB computes 2,048 values at a time, so a
function takes 1 GiB at the very most, where all of them are as long as can be, and 8 MiB where the texts are short."""
_WORDS = {"truth": "a condition", "number": "a number", "text": "a text", "day": "a date", "moment": "a timestamp"}
_WORDS |= {"time": "a time", "interval": "an interval"}
_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.Neg: "-",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "xor", exp.DPipe: "||", exp.And: "AND", exp.Or: "OR",
}  # fmt: skip


_MEETING = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between,
    exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif,
)  # fmt: skip
"""What brings its arguments to one type: a constant text among others is read as a value of that type."""


@dataclass(frozen=True)
class Prover:
    """Proves expressions of one scope total."""

    leaf: Callable[[exp.Expr], Value]
    """What is known of a column before any row is seen; parameters are written in earlier."""
    write: Callable[[exp.Expr], str]
    """A part of the expression as SQL over the columns of the scan."""
    bind: Callable[[exp.Expr], str | None]
    """The type that DuckDB gives to a part; None when it has none."""
    error: Callable[[type[SqlError], exp.Expr, str, str], SqlError]

    def prove(self, node: exp.Expr) -> Value:
        """What is known of the expression's values. Raises an SqlError for what is not proven total."""
        value = self._value(node)
        if value.constant:
            self._compute(node)
        return value

    def _value(self, node: exp.Expr) -> Value:
        if isinstance(node, exp.Column | exp.Var):
            return self.leaf(node)
        if isinstance(node, exp.Literal):
            if is_too_large(node):
                raise self.error(
                    TypeMismatchError, node, "DuckDB computes with whole numbers of at most 128 bits",
                    "write it with an exponent, as in 1e40",
                )  # fmt: skip
            return Value("text", 0, len(str(node.this).encode())) if node.is_string else Value("number")
        if isinstance(node, exp.Boolean):
            return Value("truth")
        if isinstance(node, exp.Null):
            return Value("null")
        if isinstance(node, exp.Paren):
            return self._value(node.this)
        if isinstance(node, exp.Case | exp.If):
            return self._choice(node)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Interval):
            return self._interval(node)
        if isinstance(node, exp.Escape):
            return self._escape(node)
        if isinstance(node, exp.Anonymous):
            return self._named(node)
        signature = BY_NODE.get(type(node))
        if signature is None:
            raise self.error(UnsupportedSqlError, node, refusal(node), _hint(node))
        return self._apply(node, signature, dict(node.args))

    def _named(self, node: exp.Anonymous) -> Value:
        signature = BY_NAME.get(str(node.this).lower())
        if signature is None or len(node.expressions) != len(signature.takes):
            raise self.error(UnsupportedSqlError, node, refusal(node), _hint(node))
        return self._apply(node, signature, {str(i): argument for i, argument in enumerate(node.expressions)})

    def _apply(self, node: exp.Expr, signature: Signature, args: dict[str, object]) -> Value:
        """One function: every argument of a kind that it takes, and a kind that comes out."""
        arguments: list[exp.Expr] = []
        values: list[Value] = []
        present: set[str] = set()
        for name, argument in args.items():
            if argument is None or argument is False or argument == [] or name in signature.flags:
                continue
            present.add(name)
            takes = signature.takes.get(name)
            for part in argument if isinstance(argument, list) else [argument]:
                if takes is None or not isinstance(part, exp.Expr):
                    raise self._not_taken(node, name)
                if isinstance(takes, DatePart):
                    self._check_part(node, part, takes.names)
                    continue
                values.append(self._argument(node, part, takes))
                arguments.append(part)
        missing = signature.takes.keys() - signature.optional - present
        if missing:
            raise self.error(UnsupportedSqlError, node, f"{_name(node)} needs more arguments", "check its arguments")
        if isinstance(node, _MEETING):
            self._readable(arguments, values)
        kind = self._kind_of_result(node, signature, values)
        return self._result(node, kind, signature, arguments, values)

    def _readable(self, parts: Sequence[exp.Expr], values: Sequence[Value]) -> None:
        """Refuse a constant text that DuckDB cannot read as the type of the values that it meets.

        It would raise on every row that it is computed for, and ``TRY`` would make them all NULL. A text that meets a
        condition is left to ``TRY``.
        """
        kinds = {value.kind for value in values} - {"null"}
        if "text" not in kinds or len(kinds) == 1 or "truth" in kinds:
            return
        if any(value.kind == "text" and not value.constant for value in values):
            return  # then a stored text decides what the others are read as
        others = [part for part, value in zip(parts, values, strict=True) if value.kind not in ("text", "null")]
        first, *rest = (part.copy() for part in others)
        type_ = self.bind(exp.Coalesce(this=first, expressions=rest))
        for part, value in zip(parts, values, strict=True):
            if type_ is None or value.kind != "text":
                continue
            written = self.write(part)
            if dialect.fold(f"CAST({written} AS {type_}) IS NULL") is None:  # Python need not have such a value
                raise self.error(
                    TypeMismatchError, part, f"{written[:40]} is no {type_}", f"write a constant of type {type_}"
                )

    def _not_taken(self, node: exp.Expr, name: str) -> SqlError:
        if isinstance(node, exp.In):
            return self.error(UnsupportedSqlError, node, "IN needs a list of values", "write IN (1, 2, 3)")
        return self.error(UnsupportedSqlError, node, f"{_name(node)} with {name} is not supported", _hint(node))

    def _argument(self, node: exp.Expr, part: exp.Expr, takes: Takes) -> Value:
        value = self._value(part)
        assert not isinstance(takes, DatePart)
        kinds = takes.kinds if isinstance(takes, ConstantArgument) else takes
        if value.kind not in kinds:
            wanted = ", ".join(word for kind, word in _WORDS.items() if kind in kinds)
            raise self.error(
                TypeMismatchError, part, f"{_name(node)} takes {wanted}, and this is {_word(value.kind)}",
                "write strftime(column, '%Y-%m-%d')" if value.kind == "moment" and kinds == WORDS
                else "check the types, or add a CAST",
            )  # fmt: skip
        fixed = isinstance(part, exp.Literal | exp.Boolean | exp.Null | exp.Interval)
        if isinstance(takes, ConstantArgument) and not (fixed and takes.holds(part.args.get("this"))):
            raise self.error(UnsupportedSqlError, part, f"{_name(node)} takes a constant here", "write it in quotes")
        return value

    def _kind_of_result(self, node: exp.Expr, signature: Signature, values: Sequence[Value]) -> str:
        kind = signature.gives if isinstance(signature.gives, str) else signature.gives(values)
        if kind == "bound":
            kind = self._bound(node, values)
        if kind is None:
            kinds = " and ".join(_word(value.kind) for value in values)
            raise self.error(
                TypeMismatchError, node, f"{_name(node)} does not go with {kinds}", "check the types, or add a CAST"
            )
        return kind

    def _bound(self, node: exp.Expr, values: Sequence[Value]) -> str:
        """The kind of what DuckDB makes of several kinds; when all are one kind, it is that."""
        kinds = {value.kind for value in values} - {"null"}
        if len(kinds) == 1 and not kinds & {"day", "moment"}:
            return kinds.pop()
        type_ = self.bind(node)
        kind = "other" if type_ is None else kind_of(type_)
        if kind == "other" or (kind == "text" and not kinds <= WORDS):
            raise self.error(
                TypeMismatchError, node, "DuckDB cannot compute this from these types", "check the types, or add a CAST"
            )
        return kind

    def _result(
        self, node: exp.Expr, kind: str, signature: Signature | None, parts: Sequence[exp.Expr], values: Sequence[Value]
    ) -> Value:
        """The value of a function of proven arguments; constants among others are computed now."""
        constant = all(value.constant for value in values)
        if not constant:
            for part, value in zip(parts, values, strict=True):
                if value.constant:
                    self._compute(part)
        texts = [value for value in values if value.kind == "text"]
        times, plus = 0, 0
        if kind == "text":
            if signature is not None and signature.grows is not None:
                times, plus = signature.grows(values, node)
            else:
                times = max((v.times for v in texts), default=0)
                plus = max([v.plus for v in texts] + [LONGEST_WORD])
        if times > MOST_TIMES or plus > MOST_PLUS:
            raise self.error(
                LimitError, node, "this could make a text too long to compute with",
                f"join fewer texts: at most {MOST_TIMES} times what is stored, and {MOST_PLUS:,} bytes of constants",
            )  # fmt: skip
        made = any(value.made for value in values) or (signature is not None and signature.makes)
        return Value(kind, times, plus, constant, made)

    def _choice(self, node: exp.Case | exp.If) -> Value:
        subject, branches, default = case_parts(node)
        asked: list[exp.Expr] = [] if subject is None else [subject]
        asked += [when for when, _ in branches]
        kinds: Takes = TRUTH if subject is None else PLAIN
        conditions = [self._argument(node, part, kinds) for part in asked]
        if subject is not None:
            self._readable(asked, conditions)
        results = [result for _, result in branches] + ([] if default is None else [default])
        chosen = [self._argument(node, part, PLAIN) for part in results]
        self._readable(results, chosen)
        kind = self._bound(node, chosen) if any(v.kind != "null" for v in chosen) else "null"
        shaped = self._result(node, kind, None, [*asked, *results], [*conditions, *chosen])
        texts = [v for v in chosen if v.kind == "text"]
        if kind != "text":
            return shaped
        return replace(
            shaped,
            times=max((v.times for v in texts), default=0),
            plus=max([v.plus for v in texts] + [LONGEST_WORD]),
        )

    def _cast(self, node: exp.Cast) -> Value:
        kind = cast_kind(node.args["to"])
        extra = [n for n, v in node.args.items() if v and n not in ("this", "to", "safe")]
        if kind is None or extra:
            raise self.error(
                UnsupportedSqlError, node, f"a value cannot be cast to {dialect.write(node.args['to'])[:40]} here",
                "cast to a number, a text, a date, a timestamp or a truth value",
            )  # fmt: skip
        value = self._argument(node, node.this, WORDS if kind == "text" else PLAIN)
        shaped = self._result(node, kind, None, [node.this], [value])
        return replace(shaped, made=shaped.made or (kind == "text" and value.kind != "text"))

    def _interval(self, node: exp.Interval) -> Value:
        unit = node.args.get("unit")
        amount = node.this
        if isinstance(amount, exp.Literal) or amount is None:
            return Value("interval")  # a constant, computed by ``_compute``
        if not isinstance(unit, exp.Var) or unit.name.lower() not in INTERVAL_UNITS:
            raise self.error(UnsupportedSqlError, node, "this interval is not supported", "write INTERVAL 1 DAY")
        value = self._argument(node, amount, NUMBER)
        return self._result(node, "interval", None, [amount], [value])

    def _escape(self, node: exp.Escape) -> Value:
        """LIKE … ESCAPE: how far DuckDB reads the pattern depends on the row, so both parts are checked here."""
        match, sign = node.this, node.expression
        if not isinstance(match, exp.Like | exp.ILike) or not isinstance(match.expression, exp.Literal):
            raise self.error(
                UnsupportedSqlError, node, "a pattern with ESCAPE must be a constant", "write the pattern in quotes"
            )
        if not isinstance(sign, exp.Literal) or not _escapes(str(match.expression.this), str(sign.this)):
            raise self.error(
                UnsupportedSqlError, node, "this pattern does not go with its ESCAPE",
                "escape with one ASCII character that is not % or _, and let the pattern not end with it",
            )  # fmt: skip
        return self._apply(match, BY_NODE[type(match)], dict(match.args))

    def _check_part(self, node: exp.Expr, part: exp.Expr, names: frozenset[str]) -> None:
        named = isinstance(part, exp.Var) or (isinstance(part, exp.Literal) and part.is_string)
        if not named or part.name.lower() not in names:
            raise self.error(
                UnsupportedSqlError, node, f"{_name(node)} cannot take this part of a date",
                "write year, quarter, month, week, day, hour, minute or second",
            )  # fmt: skip

    def _compute(self, node: exp.Expr) -> None:
        """Compute a constant part now: what is wrong with it must not wait for a row."""
        plain = node.this if isinstance(node, exp.Paren) else node
        if isinstance(plain, exp.Literal | exp.Boolean | exp.Null):
            return
        if dialect.fold(self.write(node)) is None:
            raise self.error(TypeMismatchError, node, "this has no value", "check the constants in it")


def _escapes(pattern: str, sign: str) -> bool:
    """Whether every escape sign of a pattern has a character to escape.

    >>> _escapes("50!%%", "!"), _escapes("50!", "!"), _escapes("50!!", "!"), _escapes("A%", "%"), _escapes("a", "é")
    (True, False, True, False, False)
    """
    if len(sign) != 1 or not sign.isascii() or sign in "%_\0":
        return False
    at_the_end = len(pattern) - len(pattern.rstrip(sign))
    return at_the_end % 2 == 0


def _word(kind: str) -> str:
    return {**_WORDS, "null": "NULL", "opaque": "of a type that can only be compared"}.get(
        kind, "of a type that tacit can only ask IS NULL of"
    )


def _name(node: exp.Expr) -> str:
    typed = str(node.this).lower() if isinstance(node, exp.Anonymous) else typed_name(node)
    if typed is not None:
        return typed
    if isinstance(node, exp.Cast):
        return "CAST"
    if isinstance(node, exp.Case | exp.If):
        return "CASE"
    if type(node) in _SIGNS:
        return _SIGNS[type(node)]
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        return _name(node.this)
    return node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__.upper()


def refusal(node: exp.Expr) -> str:
    """Why a node cannot be part of an expression."""
    if isinstance(node, exp.Window):
        return "window functions read other rows and are not supported"
    if isinstance(node, exp.AggFunc):
        return "an aggregate cannot stand here"
    if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
        return "a subquery over private rows cannot stand here"
    if isinstance(node, exp.Star):
        return "* stands for no single value"
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this).lower()} is not on the list of functions that tacit allows"
    return f"{_name(node)} is not on the list of what tacit allows in an expression"


def _hint(node: exp.Expr) -> str:
    if isinstance(node, exp.Star):
        return "name a column"
    if isinstance(node, exp.Query | exp.Subquery):
        return "ask for its figure first, and write the number that was released"
    if isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime | exp.CurrentDatetime):
        return "write a date, such as DATE '2024-01-31', or a parameter"
    if isinstance(node, exp.Anonymous | exp.Func) and not isinstance(node, exp.AggFunc):
        return "use arithmetic, comparisons, CASE, COALESCE, CAST, LIKE, or a common text or date function"
    return "write an expression over the columns of one row"
