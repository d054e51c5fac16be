"""The types of PostgreSQL that have a faithful counterpart in DuckDB, and how their values travel.

    bool                          BOOLEAN
    int2, int4, int8              SMALLINT, INTEGER, BIGINT
    float4, float8                FLOAT, DOUBLE
    numeric(p, s), 0 ≤ s ≤ p ≤ 38 DECIMAL(p, s); NaN, which DuckDB has not, is NULL
    any other numeric             DOUBLE: the nearest; ±infinity beyond every DOUBLE, 0 below the least normal one
    text, varchar(n)              VARCHAR
    char(n)                       VARCHAR without the blanks at the end, as PostgreSQL itself casts it to text
    an enum                       ENUM with the same labels in the same order
    date                          DATE
    time                          TIME
    timestamp, timestamptz        TIMESTAMP, TIMESTAMP WITH TIME ZONE; ±infinity beyond DuckDB's last moment
    uuid                          UUID
    a domain                      what its base type is

A column of any other type is left out of the catalog.

Guarantee. What a value becomes depends on that value alone, and no value makes the transfer fail: each expression here
is made of comparisons and of casts that were compared with both ends first. A text of more than 4 MiB is cut, because
PostgreSQL cannot send a row of more than 1 GB.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..duckdb.text import literal

LONGEST_TEXT = 1 << 22
"""Bytes of a text that travel."""
MOST_TEXTS = 128
"""Columns of texts that one row may have: together they stay below what PostgreSQL can send."""
_LEAST_DOUBLE, _GREATEST_DOUBLE = "2.2250738585072014e-308", "1.7976931348623157e308"
BEYOND = "294247-01-10 04:00:54.775806"
"""The first moment that is +infinity: DuckDB's last one is the microsecond before."""
_NO_DAY = 2147483647
"""Stands for an infinite date while it travels; PostgreSQL's days since 1970 end long before."""


@dataclass(frozen=True)
class Travel:
    """How the values of a type travel."""

    type: str
    """DuckDB's type."""
    base: str
    """PostgreSQL's type, as it is written in a cast."""
    sent: tuple[str, ...] = ("{0}",)
    """What PostgreSQL sends, ``{0}`` being the column cast to ``base``: one or two columns."""
    received: str = "{0}"
    """What DuckDB makes of the columns that arrive."""
    labels: tuple[str, ...] | None = None
    """Of an enum."""

    @property
    def plain(self) -> Travel:
        """The same values without the list of an enum's labels: they arrive as texts."""
        return self if self.labels is None else Travel("VARCHAR", self.base, self.sent)


def _text(base: str) -> Travel:
    short = f"octet_length({{0}}) <= {LONGEST_TEXT}"
    return Travel("VARCHAR", base, (f"CASE WHEN {short} THEN {{0}} ELSE left({{0}}, {LONGEST_TEXT // 4}) END",))


def _moment(type_: str, base: str) -> Travel:
    late, early = f"{{0}} >= '{BEYOND}'::{base}", f"{{0}} = '-infinity'::{base}"
    return Travel(
        type_,
        base,
        (
            f"CASE WHEN {late} OR {early} THEN NULL ELSE {{0}} END",
            f"(CASE WHEN {late} THEN 1 WHEN {early} THEN -1 END)::int2",
        ),
        f"CASE {{1}} WHEN 1 THEN CAST('infinity' AS {type_}) WHEN -1 THEN CAST('-infinity' AS {type_}) ELSE {{0}} END",
    )


_DATE = Travel(
    "DATE",
    "date",
    (
        f"CASE WHEN isfinite({{0}}) THEN {{0}} - '1970-01-01'::date WHEN {{0}} > '1970-01-01'::date THEN {_NO_DAY} "
        f"WHEN {{0}} IS NOT NULL THEN -{_NO_DAY} END",
    ),
    f"CASE {{0}} WHEN {_NO_DAY} THEN DATE 'infinity' WHEN -{_NO_DAY} THEN DATE '-infinity' "
    "ELSE DATE '1970-01-01' + CAST({0} AS INTEGER) END",
)
_DOUBLE_OF_NUMERIC = Travel(
    "DOUBLE",
    "numeric",
    (
        f"CASE WHEN {{0}} = 'NaN' THEN 'NaN'::float8 WHEN {{0}} > {_GREATEST_DOUBLE} THEN 'Infinity'::float8 "
        f"WHEN {{0}} < -{_GREATEST_DOUBLE} THEN '-Infinity'::float8 "
        f"WHEN {{0}} < {_LEAST_DOUBLE} AND {{0}} > -{_LEAST_DOUBLE} THEN 0::float8 ELSE {{0}}::float8 END",
    ),
)
_BASE: dict[int, Travel] = {
    16: Travel("BOOLEAN", "bool"),
    21: Travel("SMALLINT", "int2"),
    23: Travel("INTEGER", "int4"),
    20: Travel("BIGINT", "int8"),
    700: Travel("FLOAT", "float4"),
    701: Travel("DOUBLE", "float8"),
    25: _text("text"),
    1043: _text("text"),
    1042: _text("text"),
    1082: _DATE,
    1083: Travel("TIME", "time"),
    1114: _moment("TIMESTAMP", "timestamp"),
    1184: _moment("TIMESTAMP WITH TIME ZONE", "timestamptz"),
    2950: Travel("UUID", "text", received="CAST({0} AS UUID)"),
}
"""By the number that PostgreSQL gives to a built-in type, which never changes."""
_NUMERIC = 1700
_MOST_DIGITS = 38


def base_travel(oid: int, modifier: int) -> Travel | None:
    """How a built-in type travels; None where it has no faithful counterpart.

    >>> base_travel(23, -1).type, base_travel(1700, (10 << 16 | 2) + 4).type, base_travel(1700, -1).type
    ('INTEGER', 'DECIMAL(10,2)', 'DOUBLE')
    >>> base_travel(1700, (39 << 16 | 2) + 4).type, base_travel(1700, (3 << 16 | 2046) + 4).type, base_travel(114, -1)
    ('DOUBLE', 'DOUBLE', None)
    """
    return _numeric(modifier) if oid == _NUMERIC else _BASE.get(oid)


def _numeric(modifier: int) -> Travel:
    digits = (modifier - 4) >> 16 & 0xFFFF
    scale = ((modifier - 4 & 0x7FF) ^ 0x400) - 0x400
    if modifier < 4 or not 0 <= scale <= digits <= _MOST_DIGITS:
        return _DOUBLE_OF_NUMERIC
    type_ = f"DECIMAL({digits},{scale})"
    finite = "{0} > '-Infinity'::numeric AND {0} < 'Infinity'::numeric"
    return Travel(type_, "numeric", (f"(CASE WHEN {finite} THEN {{0}} END)::text",), f"CAST({{0}} AS {type_})")


def enum_travel(labels: tuple[str, ...]) -> Travel | None:
    """How an enum travels. A label that came after the connection was opened is NULL."""
    if not labels:
        return None
    type_ = f"ENUM({', '.join(map(literal, labels))})"
    return Travel(type_, "text", received=f"TRY_CAST({{0}} AS {type_})", labels=labels)
