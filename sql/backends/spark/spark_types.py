"""The types of Spark that have a faithful counterpart in DuckDB, and how their values travel.

    boolean                       BOOLEAN
    tinyint, smallint, int, bigint TINYINT, SMALLINT, INTEGER, BIGINT
    float, double                 FLOAT, DOUBLE
    decimal(p, s)                 DECIMAL(p, s)
    string, varchar(n), char(n)   VARCHAR, if its collation compares bytes
    date                          DATE
    timestamp_ntz, timestamp      TIMESTAMP, TIMESTAMP WITH TIME ZONE

A column of any other type is left out of the catalog.

Guarantee. What a value becomes depends on that value alone, and no value makes the transfer fail: Arrow carries
numbers, days and moments as they are; bytes that are no UTF-8, on which functions of DuckDB fail, become U+FFFD; a text
of more than 4 MiB is cut; the one day and the one moment below DuckDB's -infinity become that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_TEXT = 1 << 22
"""Bytes of a text that travel."""

_PLAIN = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
}
_MOMENTS = {"date": "DATE", "timestamp_ntz": "TIMESTAMP", "timestamp": "TIMESTAMP WITH TIME ZONE"}
_TEXTS = re.compile(r"string( collate utf8_binary)?|(var)?char\(\d+\)", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Passage:
    """How the values of a type travel."""

    type: str
    """DuckDB's type."""
    sent: str = "{0}"
    """What Spark sends, ``{0}`` being the column."""
    received: str = "{0}"
    """What DuckDB makes of what arrives."""


BUILTIN = "system.builtin."
"""Before the name of a function: one of the session's own could have the same name."""
_VALID = f"{BUILTIN}make_valid_utf8({{0}})"
_TEXT = Passage(
    "VARCHAR",
    f"CASE WHEN {BUILTIN}octet_length({_VALID}) <= {LONGEST_TEXT} THEN {_VALID} "
    f"ELSE {BUILTIN}left({_VALID}, {LONGEST_TEXT // 4}) END",
)


def passage(spark_type: str) -> Passage | None:
    """How a type travels, by the name that Spark gives it; None where it has no faithful counterpart.

    >>> passage("int").type, passage("decimal(10,2)").type, passage("string").type, passage("timestamp").type
    ('INTEGER', 'DECIMAL(10,2)', 'VARCHAR', 'TIMESTAMP WITH TIME ZONE')
    >>> passage("array<int>"), passage("binary"), passage("string collate UNICODE_CI")
    (None, None, None)
    """
    if spark_type in _PLAIN:
        return Passage(_PLAIN[spark_type])
    if match := _DECIMAL.fullmatch(spark_type):
        return Passage(f"DECIMAL({match[1]},{match[2]})")
    if spark_type in _MOMENTS:
        type_ = _MOMENTS[spark_type]
        first = f"CAST('-infinity' AS {type_})"
        return Passage(type_, received=f"CASE WHEN {{0}} < {first} THEN {first} ELSE {{0}} END")
    return _TEXT if _TEXTS.fullmatch(spark_type) else None


def identifier(name: str) -> str:
    """A name, quoted as Spark's SQL has it.

    >>> identifier("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
