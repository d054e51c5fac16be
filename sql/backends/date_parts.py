"""Parts of a stored day or moment, such as its year: expressions that engines may compute by themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..catalog import Column

_OF_DAYS = {
    "year": "year", "quarter": "quarter", "month": "month", "day": "day", "dayofmonth": "day", "dayofyear": "dayofyear",
    "doy": "dayofyear", "dayofweek": "dayofweek", "dow": "dayofweek", "weekday": "dayofweek", "isodow": "isodow",
}  # fmt: skip
"""DuckDB's names, and the part that each means. Sunday is the day 0 of a week; of ISO's, Monday is the day 1."""
_OF_MOMENTS = {**_OF_DAYS, "hour": "hour", "minute": "minute", "second": "second"}
_NAME = r'(?P<column>"(?:[^"]|"")+")'
_FORMS = [
    re.compile(rf"TRY\((?P<part>\w+)\({_NAME}\)\)"),
    re.compile(rf"TRY\(EXTRACT\((?P<part>\w+) FROM {_NAME}\)\)"),
    re.compile(rf"TRY\(DATE_PART\('(?P<part>\w+)', {_NAME}\)\)"),
]


@dataclass(frozen=True)
class DatePart:
    """A part of a stored column of type DATE or TIMESTAMP; NULL for NULL and for infinity."""

    part: str
    column: Column


def date_part(column: Column) -> DatePart | None:
    """What a computed column is, if that is a part of a stored one.

    >>> day = Column("day", "DATE")
    >>> date_part(Column("x", "BIGINT", expression='TRY(EXTRACT(DOW FROM "day"))', inputs=(day,))).part
    'dayofweek'
    >>> date_part(Column("x", "BIGINT", expression='TRY(MONTH("day") + 1)', inputs=(day,)))
    """
    if len(column.inputs) != 1 or column.type != "BIGINT":
        return None
    (stored,) = column.inputs
    parts = {"DATE": _OF_DAYS, "TIMESTAMP": _OF_MOMENTS}.get(stored.type, {})
    for form in _FORMS:
        match = form.fullmatch(column.expression)
        if match is not None and match["column"] == stored.reference and match["part"].lower() in parts:
            return DatePart(parts[match["part"].lower()], stored)
    return None


def is_simple(column: Column) -> bool:
    """Whether a column is stored in the base table, or a part of one that is."""
    if column.label:
        return False
    part = date_part(column) if column.expression else None
    return not column.expression or (part is not None and not part.column.label)
