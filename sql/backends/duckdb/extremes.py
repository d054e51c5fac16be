"""The values of each type that are most likely to make a computation fail: its ends, NULL, NaN, infinities, odd texts.

A scan is rehearsed on rows made of these before anything is charged (``Scanner.rehearse``), and the tests of the
list of functions run over them. They are constants of this file and say nothing about the data.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ...catalog import Table
from .text import quote

_WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_MOMENTS = ("'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00'", "'294247-01-10 04:00:54'", "'1970-01-01'")
_BEYOND = ("make_timestamp(-9223372036854775806)", "make_timestamp(9223372036854775806)")
"""Moments that DuckDB stores and cannot write."""
_LISTED: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "FLOAT": ("'nan'", "'inf'", "'-inf'", "'-0.0'", "0", "3.4e38", "1e-45"),
    "DOUBLE": ("'nan'", "'inf'", "'-inf'", "'-0.0'", "0", "1.7976931348623157e308", "-1.7e308", "5e-324"),
    "VARCHAR": (
        "''", "'a'", "'%_\\'", "chr(0)", "'É'", "'ȺȾ'", "'👩‍👩‍👧'", "'12'", "'1e400'", "'2024-02-30'", "'NaN'", "'['",
        "repeat('aB', 600)",
    ),
    "DATE": ("'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "'1970-01-01'", "'2024-02-29'"),
    "TIME": ("'00:00:00'", "'23:59:59.999999'", "'24:00:00'"),
    "TIMESTAMP": (*_MOMENTS, *_BEYOND),
    "TIMESTAMP_S": _MOMENTS,
    "TIMESTAMP_MS": _MOMENTS,
    "TIMESTAMP_NS": ("'infinity'", "'-infinity'", "'1677-09-22 00:00:00'", "'2262-04-11 23:47:16.854775806'"),
    "TIMESTAMP WITH TIME ZONE": ("'infinity'", "'-infinity'", "'1970-01-01 00:00:00+00'"),
    "INTERVAL": (
        "INTERVAL 0 days", "to_months(2147483647)", "to_months(-2147483648)", "to_days(2147483647)",
        "to_microseconds(9223372036854775807)", "to_microseconds(-9223372036854775808)", "INTERVAL 1 month",
    ),
    "UUID": ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
}  # fmt: skip


def extremes(type_: str) -> tuple[str, ...]:
    """SQL constants that can be cast to a type, NULL last; NULL alone for a type that is not listed.

    >>> extremes("UTINYINT"), extremes("DECIMAL(4,1)")
    (('0', '255', '1', 'NULL'), ("'-999.9'", "'999.9'", '0', 'NULL'))
    """
    listed = _LISTED.get(type_, ())
    if type_ in _WHOLE:
        end = 1 << (_WHOLE[type_] - 1)
        listed = (f"'{-end}'", f"'{end - 1}'", "0", "-1", "7")
    elif type_.removeprefix("U") in _WHOLE:
        listed = ("0", str((1 << _WHOLE[type_[1:]]) - 1), "1")
    elif match := re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", type_):
        digits, scale = int(match[1]), int(match[2])
        most = f"{'9' * (digits - scale) or '0'}{'.' if scale else ''}{'9' * scale}"
        listed = (f"'-{most}'", f"'{most}'", "0")
    elif match := re.match(r"ENUM\(('(?:[^']|'')*')", type_):
        listed = (match[1],)
    return (*listed, "NULL")


def rehearsal(table: Table, wanted: Collection[str]) -> str:
    """Rows of extreme values in place of a stored table; each row combines other values."""
    values = [(c, extremes(c.type)) for c in table.columns if c.name in wanted]
    rows = " UNION ALL ".join(
        "SELECT 1 AS one"
        + "".join(f", CAST({v[(i + j) % len(v)]} AS {c.type}) AS {quote(c.name)}" for j, (c, v) in enumerate(values))
        for i in range(max((len(v) for _, v in values), default=1))
    )
    names = ", ".join(quote(c.name) for c, _ in values)
    return f"(SELECT {names or 'one'} FROM ({rows}))"  # noqa: S608
