"""What declared domains are for: the clamp of a SUM, the grid of a quantile, and the list of groups of a GROUP BY.

These are the only places that need a declaration, because each would otherwise have to look at the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.errors import DomainError, LimitError, SqlError, TypeMismatchError

from .catalog import Column, Range, Table, Values
from .declared import column_bounds, is_listed
from .dialect import kind_of, ordering
from .literals import Constant
from .ordering import Incomparable, Ordering, Place
from .parse import Limits
from .predicate import ColumnQuestion, Not, Predicate
from .regions import IS_NULL, NOT_NULL, Attribute
from .scan import UNIT, SummedColumn
from .statement import Span
from .truths import FALSE, UNKNOWN, Question
from .wanted import What, wanted

_LARGEST = 1e100
"""The square of a larger number would overflow when errors are computed."""


_MOST_LISTED = 1024
"""Values of a column, up to which each is a value of its grid."""
_STEPS = 256
"""Of the grid of a wider column. The noise of a count at or below a value grows with the logarithm of their number, and
a value is known to a part of the declared range that is one of them: more would be lost in the noise of most tables."""


@dataclass(frozen=True)
class Grid:
    """The values that quantiles of a column are read off at, ascending."""

    values: tuple[Any, ...]
    places: tuple[Place, ...]
    """Where each sits on the column's line."""
    every: bool
    """Whether no declared value lies between two of them."""


Holder = Callable[[Column], Table]
"""The table that a stored column belongs to."""


def clamp(holder: Holder, column: Column, span: Span) -> SummedColumn:
    """A summed column with its clamp; a DomainError prints the line that the policy lacks."""
    order = ordering(column.type)
    if order is None or order.kind not in ("number", "truth"):
        raise span.error(
            TypeMismatchError, f"{column.name} is a {column.type} and cannot be summed",
            "sum a column of numbers, or use COUNT",
        )  # fmt: skip
    ends = column_bounds(column)
    if ends is None:
        raise _no_range(holder, column, span, "SUM and AVG need")
    low, high = ends
    width = high - low
    if not (max(abs(low), abs(high)) < _LARGEST and width > 0 and math.isfinite(UNIT / width)):
        raise span.error(
            DomainError, f"the range of {column.name}, {low:g} to {high:g}, cannot be used as a clamp",
            "declare a finite range whose min is less than its max",
        )  # fmt: skip
    return SummedColumn(column, low, high)


def grid(holder: Holder, attribute: Attribute, column: Column, span: Span) -> Grid:
    """The grid of a column, from its declared range or values; a DomainError prints the line that the policy lacks.

    A value beyond the ends is counted at the end, as in SUM, and one between two values of the grid at the greater.
    """
    order = attribute.order
    if order is None or order.kind == "text":
        raise span.error(
            TypeMismatchError, f"{column.name} is a {column.type}, which has no quantiles here",
            "use a column of numbers, dates or timestamps; MODE takes texts too",
        )  # fmt: skip
    domain = column.domain
    if order.kind == "truth":
        return _at_values((False, True), attribute)
    try:
        if isinstance(domain, Values) and domain.values:
            return _at_values(domain.values, attribute)
        if isinstance(domain, Range):
            return _between(domain, attribute, order)
    except (Incomparable, TypeError, ValueError, OverflowError):
        raise span.error(
            DomainError, f"what the policy declares for {column.name} cannot be used as a grid of type {column.type}",
            "declare a finite range whose min is less than its max",
        ) from None  # fmt: skip
    raise _no_range(holder, column, span, "quantiles, MIN and MAX need")


def _at_values(values: tuple[Any, ...], attribute: Attribute) -> Grid:
    """Listed values in the order of the column's line; of very many, some at equal steps through the list."""
    finite = [value for value in values if not isinstance(value, float) or math.isfinite(value)]
    placed = {attribute.places([Constant.of(value)])[0]: value for value in reversed(finite)}
    places = sorted(placed)
    if not places:
        raise ValueError
    chosen = range(len(places)) if len(places) <= _MOST_LISTED else _steps(0, len(places) - 1)
    places = [places[i] for i in chosen]
    return Grid(tuple(placed[place] for place in places), tuple(places), len(places) == len(placed))


def _between(domain: Range, attribute: Attribute, order: Ordering) -> Grid:
    """Every value of a range, or some at equal steps with its two ends."""
    low, high = (attribute.places([Constant.of(bound)])[0] for bound in (domain.min, domain.max))
    first, last = low[0], high[1] - 1
    if first > last:
        raise ValueError
    if isinstance(order.value(first), float):  # positions are ranks of floats there, which are not at equal steps
        ends = order.value(first), order.value(last)
        width = ends[1] - ends[0]
        if not math.isfinite(width):
            raise ValueError
        values = sorted({*(ends[0] + width * (i / _STEPS) for i in range(_STEPS)), ends[1]})
        return Grid(tuple(values), tuple(attribute.places([Constant.of(value)])[0] for value in values), False)
    every = last - first < _MOST_LISTED
    positions = range(first, last + 1) if every else _steps(first, last)
    return Grid(tuple(map(order.value, positions)), tuple((p, p + 1) for p in positions), every)


def _steps(first: int, last: int) -> list[int]:
    return [first + (last - first) * i // _STEPS for i in range(_STEPS + 1)]


def groups(
    holder: Holder, attribute: Attribute, column: Column, span: Span, limits: Limits, asked_by: str = "GROUP BY"
) -> list[tuple[Any, Predicate]]:
    """(key value, predicate) of every group of a column: declared order, then ``other``, then NULL."""
    order = attribute.order
    message = f"{asked_by} {column.own_name} needs a declared list of its values: tacit cannot look them up in the data"
    missing = _missing("keys", holder(column), column, span, message, _group_hint(holder, column))
    table, declared = _home(holder, column)
    if column.domain is None and not column.expression and declared.own_name == table.privacy_unit:
        raise span.error(
            DomainError, f"{column.own_name} is the privacy unit: a group would be one unit, which is never shown",
            "group by it in a derived table and aggregate over that, or group by another column",
        )  # fmt: skip
    if order is None:
        raise missing
    domain = column.domain
    if isinstance(domain, Values):
        values = list(domain.values)
    elif kind_of(column.type) == "truth":
        values = [False, True]
    elif isinstance(domain, Range) and order.discrete:
        values = _listed(domain, attribute, column, limits, span)
    elif (found := holder(column).found_values(column)) is not None:
        values = list(found.values)
    else:
        raise missing
    try:
        places = [attribute.places([Constant.of(value)])[0] for value in values]
    except (Incomparable, TypeError):
        raise span.error(
            DomainError, f"the values that the policy declares for {column.name} are not of its type, {column.type}",
            f"declare values of type {column.type}",
        ) from None  # fmt: skip
    name = attribute.column.name
    once = {place: value for value, place in reversed([*zip(values, places, strict=True)])}  # two spellings, one value
    listed: list[tuple[Any, Predicate]] = [
        (value, ColumnQuestion(name, attribute.ask(Question((("=", place),), FALSE, UNKNOWN))))
        for value, place in zip(values, places, strict=True)
        if once[place] is value
    ]
    if isinstance(domain, Values) and domain.other is not None:
        known = attribute.ask(Question(tuple(("=", place) for place in places), FALSE, UNKNOWN))
        listed.append((domain.other, Not(ColumnQuestion(name, known))))
    if column.nullable:
        attribute.ask(NOT_NULL)
        listed.append((None, ColumnQuestion(name, attribute.ask(IS_NULL))))
    if not listed:  # a list that was found can be empty
        raise span.error(
            DomainError, f"no value of {column.own_name} was found that enough units hold, so there is no group",
            "list values in the policy, or find them with more: con.discover(…, epsilon=…, delta=…)",
        )  # fmt: skip
    return listed


def _listed(domain: Range, attribute: Attribute, column: Column, limits: Limits, span: Span) -> list[Any]:
    order = attribute.order
    assert order is not None
    low, high = (attribute.places([Constant.of(bound)])[0] for bound in (domain.min, domain.max))
    count = high[1] - low[0]
    if count > limits.rows:
        raise span.error(
            LimitError, f"GROUP BY {column.name} has {count:,} groups, more than {limits.rows:,}",
            "declare a narrower range or a list of values",
        )  # fmt: skip
    return [order.value(cut) for cut in range(low[0], high[1])]


def _no_range(holder: Holder, column: Column, span: Span, who: str) -> SqlError:
    """The range of a column is not known: because a column behind it has none, or because it does not follow."""
    for stored in column.stored:
        table, home = _home(holder, stored)
        if not stored.expression and stored.domain is None and home.domain is None and _is_declarable(table, home):
            what: What = "keys" if kind_of(home.type) == "text" else "range"
            hint = f"{_place(table, home)} = {_range_example(home)}"
            return _missing(what, table, home, span, f"{who} to know the range of {stored.own_name}", hint)
    return span.error(
        DomainError, f"the range of {column.own_name} does not follow from its columns, or is not finite",
        "write its range into the query: greatest(0, least(100, …))",
    )  # fmt: skip


def _missing(what: What, table: Table, column: Column, span: Span, message: str, hint: str) -> SqlError:
    """What is not declared, with both ways out: a line for the policy, and to buy it."""
    missing = wanted(what, table, column)
    error = span.error(
        DomainError, message, hint if missing is None else f"{hint}; or find it privately: discover=True"
    )
    assert isinstance(error, DomainError)
    error.wanted = missing
    return error


def _home(holder: Holder, column: Column) -> tuple[Table, Column]:
    """The table and the column of it that the policy declares, for a column that is not computed."""
    return column.origin or (holder(column), column)


def _is_declarable(table: Table, column: Column) -> bool:
    """Whether a domain in the policy would help: the rows are stored, and the values have an order."""
    return table.rows is None and not column.expression and ordering(column.type) is not None


def _place(table: Table, column: Column) -> str:
    """Where the policy declares a column."""
    return f"add to the policy, under [tables.{_toml_key(table.name)}.columns]: {_toml_key(column.own_name)}"


def _group_hint(holder: Holder, column: Column) -> str:
    if column.expression and not column.inputs:
        return "leave it out of GROUP BY: it is the same for every row"
    if ordering(column.type) is None:
        return f"group by an expression of another type: a {column.type[:40]} has no groups here"
    for stored in column.stored:
        table, home = _home(holder, stored)
        if _is_declarable(table, home) and not (column.expression and is_listed(stored)):
            if kind_of(home.type) == "text" and stored is not home:  # what is computed of it has no group of all others
                return f"{_place(table, home)} = {_list_example(home, computed=True)}"
            return f"{_place(table, home)} = {_list_example(home, computed=bool(column.expression))}"
    return "group by a CASE between constants, which lists its own groups"


def _range_example(column: Column) -> str:
    """What a policy can say of a column so that expressions over it have a range."""
    match kind_of(column.type):
        case "text":
            return _list_example(column, computed=True)
        case "day":
            return "{ min = 2024-01-01, max = 2024-12-31 }"
        case "moment":
            return "{ min = 2024-01-01T00:00:00, max = 2024-12-31T23:59:59 }"
    return "{ min = 0, max = 100 }"


def _list_example(column: Column, *, computed: bool) -> str:
    """What a policy can say of a column so that its groups are known, or those of what is computed from it."""
    order = ordering(column.type)
    assert order is not None
    if order.kind == "text":
        return '{ values = ["A", "B"] }' if computed else '{ values = ["A", "B"], other = true }'
    if order.kind == "moment" and (order.discrete or computed):
        return _range_example(column)
    if order.kind == "moment":
        return "{ values = [2024-01-01T00:00:00, 2024-01-02T00:00:00] }"
    return "{ min = 0, max = 9 }" if order.discrete else "{ values = [0.1, 0.2] }"


def _toml_key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return (
        name if bare.isascii() and bare.isalnum() else json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
    )
