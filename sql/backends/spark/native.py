"""Scans that Spark counts by itself, without handing a row to Python.

A scan is one of these when every row is a unit of its own, nothing is joined, and every column is stored or a part of a
stored day or moment: then it is a number for each row and a GROUP BY.

Guarantee. The integers are those that the general way gives, for every row:

- a region's number is found by comparisons with constants of the column's own type, or of one that holds all its
  values. NaN is the greatest number in both engines, -0.0 equals 0.0 in both, texts are compared by bytes in both, days
  are compared as whole numbers;
- among many cuts, a slot that grows with the value is computed first, and the cuts inside it are compared exactly;
- a share of a clamp is the same chain of IEEE operations on DOUBLE: one subtraction, one multiplication, and rounding
  half away from zero, written out;
- days and moments have the same calendar in both; a part of what is infinite in DuckDB is NULL;
- DECIMAL becomes DOUBLE with one rounding in both where it has at most 15 digits; longer ones are not summed here;
- a sum beyond BIGINT, which ``sum`` would raise on, is NULL from ``try_sum`` and stands for the largest.

No expression here can fail on a row, with ANSI mode on or off: no cast narrows a value that was not bounded first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from ...catalog import Column
from ...ordering import Cut
from ...regions import Regions
from ...scan import UNIT, Scan, SummedColumn
from ..date_parts import DatePart, date_part, is_simple
from ..duckdb.lines import ordering
from ..duckdb.regions_sql import is_stepped
from .relations import Relation
from .spark_types import BUILTIN as B
from .spark_types import LONGEST_TEXT, identifier

_EXACT_DIGITS = 15
"""A DECIMAL of so many digits is a whole number below 2^53 divided by a power of ten below 2^53: rounded once."""
_TREE = 24
"""Up to so many cuts are compared one by one."""
_SLOTS = 4096
_INSIDE = 3
"""Cuts that a slot may have."""
_LARGEST = f"{2**63 - 1}L"
_EPOCH = datetime(1970, 1, 1)
_PARTS = {"dayofweek": ("dayofweek", -1), "isodow": ("weekday", 1)}
"""What Spark calls a part, and what is to be added: its weeks begin with Sunday, the day 1, or Monday, the day 0."""
_INFINITE_DAY = 2**31 - 1
_INFINITE = ("-290308-12-21 19:59:05.224193", "+294247-01-10 04:00:54.775807")
"""The days and the moments that are infinite in DuckDB."""
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


class _General(Exception):
    """Internal: the scan takes the general way."""


def pushed(scan: Scan, relation: Relation | None) -> list[str] | None:
    """What Spark computes for each row: its place in the grid, then its share of each summed column.

    None where the scan takes the general way.
    """
    table = scan.table
    if relation is None or relation.view or table.rows is not None or table.privacy_unit is not None:
        return None
    if scan.private or scan.joins or any(regions.numbered for regions in scan.regions):
        return None
    if not all(map(is_simple, scan.computed)):
        return None
    try:
        place = _place([
            ("0" if i in scan.idle else _region(regions, relation), regions.count)
            for i, regions in enumerate(scan.regions)
        ])  # fmt: skip
        shares = [f"{_share(summed, relation)} AS f{i}" for i, summed in enumerate(scan.summed)]
    except _General:
        return None
    return [f"{place} AS place", *shares]


def native_sums(session: Any, relation: Relation, number: int, columns: Sequence[str]) -> Any:
    """The frame of the sums at every place, as the workers' frames have them."""
    from pyspark.sql.functions import expr

    frame = session.table(relation.place).selectExpr(*columns)
    shares = len(columns) - 1
    grouped = frame.groupBy("place")
    if not shares:
        counted = grouped.agg(expr(f"{B}count(1)").alias("amount"))
        return counted.selectExpr(f"{number} AS scan", "place", "0 AS corner", "amount")
    sums = [expr(f"{B}coalesce({B}try_sum({_corner(corner, shares)}), {_LARGEST})").alias(f"s{corner}")
            for corner in range(1 << shares)]  # fmt: skip
    listed = ", ".join(f"{corner}, s{corner}" for corner in range(1 << shares))
    stacked = f"{B}stack({1 << shares}, {listed}) AS (corner, amount)"
    return grouped.agg(*sums).selectExpr(f"{number} AS scan", "place", stacked)


def _corner(corner: int, count: int) -> str:
    """What a row adds to one corner of the box of clamps: see ``scan_sql.corner_sql``."""
    if count == 1:
        return "f0" if corner else f"{UNIT}L - f0"
    raised = [f"f{i}" for i in range(count) if corner >> (count - 1 - i) & 1]
    rest = [f"f{i}" for i in range(count) if f"f{i}" not in raised]
    least = f"{B}least({', '.join(raised)})" if len(raised) > 1 else (raised or [f"{UNIT}L"])[0]
    most = f"{B}greatest({', '.join(rest)})" if len(rest) > 1 else (rest or ["0L"])[0]
    return f"{B}greatest(0L, {least} - {most})"


def _place(numbers: Sequence[tuple[str, int]]) -> str:
    place, size = "0", 1
    for number, count in numbers:
        place = f"({place}) * {count} + {number}" if size > 1 else number
        size *= count
    if size >= 1 << 31:
        raise _General
    return f"CAST({place} AS BIGINT)"


def _region(regions: Regions, relation: Relation) -> str:
    """The number of the region of a column's value."""
    value, type_ = _value(regions.column, relation), regions.column.type
    pieces = list(regions.region_of_piece)
    kept = [i for i in range(len(regions.cuts)) if pieces[i] != pieces[i + 1]]
    cuts, pieces = [regions.cuts[i] for i in kept], [*(pieces[i] for i in kept), pieces[-1]]
    if is_stepped(type_, cuts, pieces):
        number = _stepped(value, cuts, pieces)
    elif len(cuts) > _TREE:
        number = _looked_up(value, type_, cuts, pieces)
    else:
        number = _tree([_at_or_after(value, type_, cut) for cut in cuts], pieces)
    null = regions.null_region
    return number if number == str(null) else f"(CASE WHEN {value} IS NULL THEN {null} ELSE {number} END)"


def _stepped(value: str, cuts: Sequence[Cut], pieces: Sequence[int]) -> str:
    """The piece of one of several whole numbers in a row: computed as a BIGINT, so that nothing overflows."""
    first, step = int(cuts[0]), pieces[2] - pieces[1]
    inside = f"CAST({value} AS BIGINT) * {step}L + {pieces[1] - first * step}L"
    return (
        f"(CASE WHEN {value} BETWEEN {first} AND {int(cuts[-1]) - 1} THEN {inside} "
        f"WHEN {value} < {first} THEN {pieces[0]}L ELSE {pieces[-1]}L END)"
    )


def _tree(tests: Sequence[str], pieces: Sequence[int]) -> str:
    def between(first: int, last: int) -> str:
        if len(set(pieces[first : last + 1])) == 1:
            return str(pieces[first])
        middle = (first + last + 1) // 2
        return f"CASE WHEN {tests[middle - 1]} THEN {between(middle, last)} ELSE {between(first, middle - 1)} END"

    return between(0, len(tests))


def _looked_up(value: str, type_: str, cuts: Sequence[Cut], pieces: Sequence[int]) -> str:
    """The piece among many cuts: how many lie in lower slots, and exact comparisons with those in the value's own."""
    if type_ == "DATE":
        value, ends = f"{B}unix_date({value})", [int(cut) for cut in cuts]
    elif type_ in (*_INTEGERS, "FLOAT", "DOUBLE"):
        order = ordering(type_)
        assert order is not None
        ends = [order.value(cut) for cut in cuts]
    else:
        raise _General
    first, last = float(ends[0]), float(ends[-1])
    scale = _SLOTS / (last - first) if last > first else math.inf
    if not (math.isfinite(first) and math.isfinite(last) and 0 < scale < math.inf):
        raise _General
    inside: list[list[Any]] = [[] for _ in range(_SLOTS)]
    for end in ends:
        inside[max(0, min(_SLOTS - 1, math.floor((float(end) - first) * scale)))].append(end)
    if max(map(len, inside)) > _INSIDE:
        raise _General
    below = [0]
    for held in inside:
        below.append(below[-1] + len(held))
    number = f"{B}floor((CAST({value} AS DOUBLE) - {_double(first)}) * {_double(scale)})"
    slot = f"CAST({B}greatest(0L, {B}least({_SLOTS - 1}L, {number})) AS INT)"
    base = "double" if type_ in ("FLOAT", "DOUBLE") else "bigint"
    piece = f"{B}get({_array(below[:-1], 'int')}, {slot})"
    for k in range(max(map(len, inside))):
        cut = _array([held[k] if k < len(held) else ends[-1] for held in inside], base)
        piece += f" + CAST({value} >= {B}get({cut}, {slot}) AS INT)"
    at = [_constant(end, base) for end in (ends[0], ends[-1])]
    looked_up = piece if list(pieces) == list(range(len(pieces))) else f"{B}get({_array(pieces, 'int')}, {piece})"
    return (
        f"(CASE WHEN {value} < {at[0]} THEN {pieces[0]} WHEN {value} >= {at[1]} THEN {pieces[-1]} ELSE {looked_up} END)"
    )


def _array(items: Sequence[Any], type_: str) -> str:
    """A constant that is read much faster than one item at a time."""
    return f"CAST({B}split('{','.join(map(repr, items))}', ',') AS array<{type_}>)"


def _constant(value: Any, base: str) -> str:
    return f"CAST('{value!r}' AS {base})"


def _double(value: float) -> str:
    return _constant(float(value), "double")


def _value(column: Column, relation: Relation) -> str:
    """A column's value where it compares as DuckDB's does."""
    if (part := date_part(column)) is not None:
        return _part(part, identifier(relation.column(part.column.name).name))
    name = identifier(relation.column(column.name).name)
    return f"{B}make_valid_utf8({name})" if column.type == "VARCHAR" else name


def _part(part: DatePart, value: str) -> str:
    """A part of a day or a moment."""
    if part.column.type == "DATE":
        finite = f"{B}unix_date({value}) BETWEEN {-_INFINITE_DAY + 1} AND {_INFINITE_DAY - 1}"
    else:
        finite = f"{value} > TIMESTAMP_NTZ'{_INFINITE[0]}' AND {value} < TIMESTAMP_NTZ'{_INFINITE[1]}'"
    name, offset = _PARTS.get(part.part, (part.part, 0))
    return f"(CASE WHEN {finite} THEN CAST({B}{name}({value}) AS BIGINT) + {offset}L END)"


def _at_or_after(value: str, type_: str, cut: Cut) -> str:
    """Whether a value lies at a cut or after it."""
    if type_ == "VARCHAR":
        text, after = cut
        try:
            content = text.encode()
        except UnicodeEncodeError:
            raise _General from None
        if len(content) >= LONGEST_TEXT // 4:  # a text that was cut is longer, and compares as before
            raise _General
        constant = f"CAST(X'{content.hex()}' AS STRING)"
        return f"{value} {'>' if after else '>='} {constant}"
    if type_ == "BOOLEAN":
        return f"{value} >= true"
    if type_ in ("FLOAT", "DOUBLE"):
        order = ordering(type_)
        assert order is not None
        return f"CAST({value} AS DOUBLE) >= {_double(order.value(cut))}"
    if match := re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", type_):
        return f"{value} >= {_decimal(int(cut), int(match[1]))}"
    if type_ == "DATE":
        return f"{B}unix_date({value}) >= {_whole(int(cut))}"
    if type_ == "TIMESTAMP":
        return f"{value} >= TIMESTAMP_NTZ'{_moment(cut)}'"
    if type_ not in _INTEGERS:
        raise _General
    return f"CAST({value} AS BIGINT) >= {_whole(int(cut))}"


def _whole(cut: int) -> str:
    if not -(2**63) < cut < 2**63:
        raise _General
    return f"CAST('{cut}' AS BIGINT)"


def _decimal(cut: int, scale: int) -> str:
    digits = str(abs(cut)).rjust(scale + 1, "0")
    if len(digits) > 38:
        raise _General
    whole, part = (digits[:-scale], digits[-scale:]) if scale else (digits, "0")
    return f"CAST('{'-' if cut < 0 else ''}{whole}.{part}' AS DECIMAL(38,{scale}))"


def _moment(cut: int) -> str:
    try:
        return str(_EPOCH + timedelta(microseconds=cut))
    except OverflowError:
        raise _General from None


def _share(summed: SummedColumn, relation: Relation) -> str:
    """Where a value lies between the ends of its clamp, in parts of UNIT: what ``scan_sql`` computes in DuckDB."""
    type_ = summed.column.type
    digits = re.fullmatch(r"DECIMAL\((\d+),\s*\d+\)", type_)
    if int(digits[1]) > _EXACT_DIGITS if digits is not None else type_ not in (*_INTEGERS, "FLOAT", "DOUBLE"):
        raise _General
    low, high = float(summed.low), float(summed.high)
    scale = UNIT / (high - low)
    if not (math.isfinite(high - low) and math.isfinite(scale) and scale > 0):
        raise _General
    v = f"CAST({_value(summed.column, relation)} AS DOUBLE)"
    # For 0 ≤ x < 2^51, floor(x + the number before one half) rounds half away from zero: the sum is below 1 where x is
    # below one half, and rounds to that of x + 1/2, which is exact, elsewhere.
    rounded = f"{B}floor(({v} - {_double(low)}) * {_double(scale)} + {_double(math.nextafter(0.5, 0))})"
    return (
        f"CASE WHEN {v} >= {_double(high)} THEN {UNIT}L WHEN {v} > {_double(low)} "
        f"THEN {B}least({UNIT}L, {rounded}) ELSE 0L END"
    )
