"""PEP 249's type objects and constructors. Values need no wrapping: dates and bytes are Python's own."""

from __future__ import annotations

import datetime as dt
from typing import Final

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    """The local date of a moment in seconds since the epoch."""
    return dt.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> dt.time:
    """The local time of day of a moment in seconds since the epoch."""
    return dt.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """The local date and time of a moment in seconds since the epoch."""
    return dt.datetime.fromtimestamp(ticks)


class DBAPIType:
    """Equal to the name of every DuckDB type in its family, which is what ``description`` carries.

    >>> NUMBER == "DECIMAL(10,2)", NUMBER == "VARCHAR"
    (True, False)
    """

    def __init__(self, name: str, *types: str) -> None:
        self.name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DBAPIType):
            return self.name == other.name
        return isinstance(other, str) and other.upper().partition("(")[0].strip() in self._types

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tacit.{self.name}"


STRING: Final = DBAPIType("STRING", "VARCHAR", "ENUM", "UUID")
BINARY: Final = DBAPIType("BINARY", "BLOB", "BIT")
NUMBER: Final = DBAPIType(
    "NUMBER",
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    *("FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"),
)
DATETIME: Final = DBAPIType(
    "DATETIME",
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    *("TIMESTAMP WITH TIME ZONE", "TIME WITH TIME ZONE", "INTERVAL"),
)
ROWID: Final = DBAPIType("ROWID")
