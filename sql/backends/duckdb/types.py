"""DuckDB's types: the kind of value that each holds, and what may be done with it.

Kinds of values, by type:

    truth    BOOLEAN
    number   whole numbers of any size, FLOAT, DOUBLE, DECIMAL
    text     VARCHAR, ENUM
    day      DATE
    moment   TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS, TIMESTAMP_NS
    time     TIME
    interval INTERVAL
    opaque   TIMESTAMP WITH TIME ZONE, UUID: compared with their like, and nothing else
    null     the type of a bare NULL, which goes with every kind
    other    everything else: tacit only asks whether it IS NULL
"""

from __future__ import annotations

import re

_KIND_OF = {
    "BOOLEAN": "truth",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "number"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "number"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "number"),
    **dict.fromkeys(("VARCHAR", "ENUM"), "text"),
    "DATE": "day",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "moment"),
    "TIME": "time",
    "INTERVAL": "interval",
    **dict.fromkeys(("TIMESTAMP WITH TIME ZONE", "UUID"), "opaque"),
    '"NULL"': "null",
}


def kind_of(type_: str) -> str:
    """The kind of a DuckDB type.

    >>> kind_of("DECIMAL(10,2)"), kind_of("ENUM('a', 'b')"), kind_of("INTEGER[]"), kind_of("JSON")
    ('number', 'text', 'other', 'other')
    """
    return "other" if type_.endswith("]") else _KIND_OF.get(type_.partition("(")[0], "other")


def is_key(type_: str) -> bool:
    """Whether two values of a type are equal exactly when DuckDB groups, joins and hashes them alike.

    Not so for VARIANT, whose equal values have different hashes; and an INTERVAL of 30 days equals one month.
    """
    return kind_of(type_) not in ("interval", "other", "null")


_WHOLE = {f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")}


def is_joinable(a: str, b: str) -> bool:
    """Whether DuckDB compares values of two types without a cast that could fail.

    >>> is_joinable("INTEGER", "BIGINT"), is_joinable("INTEGER", "VARCHAR")
    (True, False)
    """
    return a == b or {a, b} <= _WHOLE or (kind_of(a) == kind_of(b) == "text")


def is_numeric(type_: str) -> bool:
    """Whether values of a type are numbers, those that tacit does not compute with (BIGNUM) included."""
    return kind_of(type_) == "number" or type_ == "BIGNUM"


_TEXT = r"'(?:[^']|'')*'"
_ENUM = re.compile(rf'("(?:[^"]|"")*")|\bENUM\((?:{_TEXT}(?:, )?)*\)')
"""A quoted name, or an ENUM with its labels, in the text of a type."""


def without_enums(type_: str) -> str:
    """The type with VARCHAR in place of every ENUM, inside nested types too.

    >>> without_enums("STRUCT(a ENUM('x', 'y'), b INTEGER)[]")
    'STRUCT(a VARCHAR, b INTEGER)[]'
    """
    return _ENUM.sub(lambda match: match[1] or "VARCHAR", type_)
