"""The keys of a column in the policy: how each is read, what is refused, and what it makes of the column."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from tacit.sql import Column, Range, Values
from tacit.sql.dialect import frame as typed_frame

from .policy_section import Place, Section, kind, show, suggestion

if TYPE_CHECKING:
    from tacit.sql import SourceColumn

Scalar = str | bool | int | float | Decimal | dt.date | dt.datetime

_TYPE = re.compile(r"[A-Za-z][A-Za-z_ ]*(\(\d+(, ?\d+)?\))?")
"""A type's name and nothing else: it is written into the view over a csv file."""
_INTEGERS = frozenset(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")) | {
    "INTEGER",
    "UINTEGER",
}
_EXAMPLES = {
    "integer": "a whole number, such as 18",
    "number": "a number, such as 0.5",
    "text": 'text in quotes, such as "NY"',
    "boolean": "true or false",
    "date": "a date, such as 2024-01-31",
    "timestamp": "a time, such as 2024-01-31T12:00:00",
}


@dataclass(frozen=True)
class ColumnPolicy:
    """What the policy says about one column. Its fields are the keys of a column."""

    values: tuple[Scalar, ...] | None = None
    """The values that GROUP BY lists, in this order."""
    other: str | None = None
    """``true``, or a label: all values that are not listed are one group. Without it those rows are in none."""
    complete: bool = False
    """Whether rows hold none but the listed values; one that does all the same is read as one that is listed."""
    not_null: bool = False
    """Whether no row holds NULL; one that does all the same is read as if its value lay before all others."""
    min: Scalar | None = None
    """The least value that SUM, AVG and quantiles tell apart; what is below counts as this. Comes with ``max``."""
    max: Scalar | None = None
    """The largest one; what is above counts as this. Whole numbers and days from min to max are groups too."""
    type: str | None = None
    """A DuckDB type, for files that do not carry one (csv)."""


def read_column(raw: Any, place: Place) -> ColumnPolicy:
    """Check what can be checked without the database."""
    if not isinstance(raw, Mapping):
        place.refuse(
            "",
            f"must say what the column may hold, not {kind(raw)}",
            'write { min = 0, max = 120 } or { values = ["a", "b"], other = true }',
        )
    section = Section(raw, place.origin, place.path, ColumnPolicy)
    if ("min" in section or "max" in section) and "values" in section:
        section.refuse("", "has both a list of values and a range", "keep values, or min and max")
    for key, twin in (("min", "max"), ("max", "min")):
        if key in section and twin not in section:
            section.refuse(twin, f"is missing next to {key}", f"write {twin} = … as well")
    type_ = section.get("type", "INTEGER")
    if not isinstance(type_, str) or not _TYPE.fullmatch(type_):
        section.refuse("type", "must be the name of a DuckDB type", 'write type = "INTEGER"')
    return ColumnPolicy(
        values=_read_values(section) if "values" in section else None,
        other=_read_other(section),
        complete=_read_complete(section),
        not_null=section.flag("not_null"),
        min=section.get("min"),
        max=section.get("max"),
        type=section.get("type"),
    )


def declared_column(declared: ColumnPolicy, column: SourceColumn, place: Place) -> Column:
    """The column as the compiler sees it: what the policy declares, then what the schema does."""
    domain: Values | Range | None
    if declared.values is not None:
        domain = _values(declared, column, place)
    elif declared.min is not None:
        domain = _range(declared, column, place)
    else:
        domain = _schema_domain(column)
    nullable = column.nullable and not declared.not_null
    return Column(name=column.name, type=column.type, nullable=nullable, domain=domain, recast=column.recast)


def _read_values(section: Section) -> tuple[Scalar, ...]:
    raw = section.get("values")
    if not isinstance(raw, (list, tuple)) or not raw:
        section.refuse("values", "must be a list with at least one value", 'write values = ["a", "b"]')
    seen = set()
    for value in raw:
        if not isinstance(value, (str, bool, int, float, Decimal, dt.date)):
            section.refuse("values", f"lists {kind(value)}, which is no value of a column", "list plain values")
        if value in seen:
            section.refuse("values", f"lists {show(value)} twice", "list every value once")
        seen.add(value)
    return tuple(raw)


def _read_other(section: Section) -> str | None:
    other = section.get("other", False)
    if not isinstance(other, (bool, str)) or other == "":
        section.refuse("other", f"must be true or a label, not {show(other)}", "write other = true")
    if other is False:
        return None
    if "values" not in section:
        section.refuse("other", "needs the list of values that it is other than", 'write values = ["a", "b"] as well')
    label = "other" if other is True else str(other)
    if label in section.get("values"):
        section.refuse("other", f"has the label {label!r}, which is one of the values", 'write other = "none of these"')
    return label


def _read_complete(section: Section) -> bool:
    complete = section.flag("complete")
    if complete and "values" not in section:
        section.refuse("complete", "needs the list of values that is complete", 'write values = ["a", "b"] as well')
    if complete and section.get("other", False) is not False:
        section.refuse("complete", "contradicts other: a complete list leaves nothing else", "keep one of the two")
    return complete


def _schema_domain(column: SourceColumn) -> Values | Range | None:
    """What the schema itself declares; where it is not trusted, that is no more than BOOLEAN, a fact about SQL."""
    if _family(column.type) == "boolean":
        return Values((False, True), None)
    if column.enum is not None:
        return Values(tuple(column.enum), None, complete=True)
    low: Any = column.minimum
    high: Any = column.maximum
    return None if low is None or high is None or low > high else Range(low, high)


def _values(declared: ColumnPolicy, column: SourceColumn, place: Place) -> Values:
    assert declared.values is not None
    family = _domain_family(column, place)
    if declared.other is not None and family != "text":
        place.refuse("other", f"is for text; {column.name} is {column.type}", "leave other out")
    values = tuple(_value(v, column, family, place, "values") for v in declared.values)
    if column.type.upper() == "FLOAT":  # as the column itself would hold them: 0.1 of a FLOAT is not 0.1 of a DOUBLE
        values = tuple(float(np.float32(value)) for value in values)
    for value in values:
        if column.enum is not None and value not in column.enum:
            place.refuse(
                "values",
                f"lists {value!r}, which is not in the ENUM {column.name}",
                suggestion(str(value), column.enum),
            )
    if family in ("integer", "number", "text"):
        _check_held(values, column, family, place, "values")
    every_label = column.enum is not None and declared.other is None and set(column.enum) <= set(values)
    return Values(values, declared.other, declared.complete or every_label)


def _range(declared: ColumnPolicy, column: SourceColumn, place: Place) -> Range:
    family = _domain_family(column, place)
    if family in ("text", "boolean"):
        place.refuse("", f"gives a range for {column.type}", "write values = [ … ] in place of min and max")
    low = _value(declared.min, column, family, place, "min")
    high = _value(declared.max, column, family, place, "max")
    if low > high:
        place.refuse("min", f"is {low}, above max = {high}", "swap the two")
    if family == "integer":  # whole numbers in a range can be listed as groups, and then they must be of the type
        for key, end in (("min", low), ("max", high)):
            _check_held((end,), column, family, place, key)
    return Range(low, high)


def _check_held(values: tuple[Any, ...], column: SourceColumn, family: str, place: Place, key: str) -> None:
    """A group that the column's type cannot hold would fail when its frame is built, so it is refused here."""
    if not _held(values, column.type):
        wrong = next((value for value in values if not _held((value,), column.type)), values[0])
        _refuse_value(wrong, column, family, place, key)


def _held(values: tuple[Any, ...], type_: str) -> bool:
    try:
        held = typed_frame(("value",), (type_,), tuple((value,) for value in values))["value"]
    except Exception:  # whatever DuckDB has against it
        return False
    if not type_.upper().startswith("DECIMAL"):
        return True
    return bool(np.array_equal(held, np.array([float(value) for value in values])))


def _domain_family(column: SourceColumn, place: Place) -> str:
    family = _family(column.type)
    if family is None:
        place.refuse("", f"declares a column of type {column.type}, which can have no domain", "remove it")
    return family


def _family(type_: str) -> str | None:
    """What kind of constant a column of this DuckDB type is compared with."""
    name = type_.upper().partition("(")[0].strip()
    if type_.endswith("]"):
        return None
    if name in _INTEGERS:
        return "integer"
    if name in ("FLOAT", "DOUBLE", "DECIMAL"):
        return "number"
    if name in ("VARCHAR", "ENUM"):
        return "text"
    if name.startswith("TIMESTAMP"):
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(name)


def _value(value: Any, column: SourceColumn, family: str, place: Place, key: str) -> Any:
    """The value as the column's own kind, or a refusal that shows one."""
    converted = _converted(value, column.type, family)
    if converted is None:
        _refuse_value(value, column, family, place, key)
    return converted


def _refuse_value(value: Any, column: SourceColumn, family: str, place: Place, key: str) -> NoReturn:
    what = f"has {show(value)}, which is no value of {column.name} ({column.type[:40]})"
    place.refuse(key, what, f"write {_EXAMPLES[family]}")


def _converted(value: Any, type_: str, family: str) -> Any:
    number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if number and not _finite(value):
        return None
    if isinstance(value, str) and family in ("date", "timestamp"):  # a dict, or a date in quotes
        value = _moment(value)
    match family:
        case "integer":
            return int(value) if number and value == int(value) else None
        case "number" if number:
            return Decimal(str(value)) if type_.upper().startswith("DECIMAL") else float(value)
        case "text":
            return value if isinstance(value, str) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None
        case "timestamp" if isinstance(value, dt.datetime):
            aware = value.tzinfo is not None
            return value if aware == ("TIME ZONE" in type_.upper()) else None
        case "timestamp" if isinstance(value, dt.date) and "TIME ZONE" not in type_.upper():
            return dt.datetime(value.year, value.month, value.day)
    return None


def _moment(text: str) -> dt.date | None:
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (OverflowError, ValueError):  # beyond every float
        return False
