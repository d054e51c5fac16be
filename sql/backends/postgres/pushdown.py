"""Scans that PostgreSQL counts by itself, so that only cells travel.

A scan is one of these when every row is a unit of its own, nothing is joined, and every column is stored or a part of a
stored day or moment: then it is a number for each row and a GROUP BY.

Guarantee. The integers are those that the general way gives, for every row:

- a region's number is found by comparisons with constants. A comparison of stored values rounds nothing in either
  engine; NaN is the greatest number in both, -0.0 equals 0.0 in both, an infinite day lies beyond all others in both,
  and COLLATE "C" compares bytes, as tacit has DuckDB do;
- a share of a clamp is the same chain of IEEE operations on DOUBLE: one subtraction, one multiplication, and rounding
  half away from zero, which is written out because PostgreSQL rounds halves to even. What makes PostgreSQL raise where
  DuckDB does not, a result below every DOUBLE or beyond, is excluded by clamping first, and by a comparison where the
  factor is below 1;
- of several clamps, the rows whose shares have the same order are summed together, and the corners of the simplex are
  differences of those sums (``scan_sql.corner_sql`` has the weights);
- days and moments have the same calendar in both; years before the year 1 are counted with a year 0 in DuckDB only, and
  a part of what arrives there as infinity is NULL;
- DECIMAL becomes DOUBLE with one rounding in both where it has at most 15 digits; longer ones are not summed here.

No expression here can fail on a row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...catalog import Column
from ...ordering import Cut
from ...regions import Regions
from ...scan import UNIT, Scan, SummedColumn
from ..date_parts import DatePart, date_part, is_simple
from ..duckdb.lines import ordering
from ..duckdb.text import literal, quote
from .stored_tables import StoredTable
from .travel import BEYOND, LONGEST_TEXT

_EXACT_DIGITS = 15
"""A DECIMAL of so many digits is a whole number below 2^53 divided by a power of ten below 2^53: rounded once."""
_MANY = 9
"""From so many cuts on, a number's region is looked up."""
_FEW_TESTS, _MOST_TESTS = 6, 10
"""Up to so many tests of a column, and of all: 2^10 groups are expected then."""
_GREATEST = 2**63 - 1
_HALF = 1 << 32
_BEFORE_HALF = math.nextafter(0.5, 0)
_EPOCH = datetime(1970, 1, 1)
_AFTER_PYTHON = "10000-01-01 00:00:00"
_PARTS = {"dayofyear": "doy", "dayofweek": "dow"}
_FINITE = "{0} > '-Infinity'::numeric AND {0} < 'Infinity'::numeric"
_COMPARED = {
    "SMALLINT", "INTEGER", "BIGINT", "BOOLEAN", "FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP",
}  # fmt: skip
"""DuckDB's types whose order PostgreSQL has too; DECIMAL and ENUM besides."""


class _General(Exception):
    """Internal: the scan takes the general way."""


def pushed(scan: Scan, stored: StoredTable | None) -> str | None:
    """The statement that counts a scan in PostgreSQL; None where it takes the general way.

    It returns the keys of each group, its rows, and of every clamp the sum of their shares, as two halves. The keys are
    the tests of the columns with few cuts (``_tests``), the place of the row in the grid of all others, and of several
    clamps the order of the shares. Tests are BOOLEAN, because PostgreSQL then knows that they have two values: of a
    number it would expect as many as its columns have, and would not count in parallel.
    """
    table = scan.table
    if stored is None or stored.view is not None or table.rows is not None or table.privacy_unit is not None:
        return None
    if scan.private or scan.joins or any(regions.numbered for regions in scan.regions):
        return None
    if not all(map(is_simple, scan.computed)):
        return None
    tested, numbered = _split(scan)
    try:
        keys = [
            f"{test} AS b{i}t{n}"
            for i in tested
            for n, test in enumerate(_test_sql(scan.regions[i], tested[i], stored))
        ]
        if numbered:
            places = [(_region(scan.regions[i], stored), scan.regions[i].count) for i in numbered]
            keys.append(f"{_place(places)} AS k")
        shares = [f"{_share(summed, stored)} AS f{i}" for i, summed in enumerate(scan.summed)]
    except _General:
        return None
    rows = f"{quote(stored.schema)}.{quote(stored.name)}"
    names = [key.rpartition(" ")[2] for key in keys]
    if shares:
        rows = f"(SELECT {', '.join([*keys, *shares])} FROM {rows}) AS r"  # noqa: S608
        keys = [*names, *(f"f{i} >= f{j} AS o{n}" for n, (i, j) in enumerate(_pairs(len(shares))))]
    halves = [
        f"coalesce({half.format(f'sum(f{i})')}, 0)::int8 AS {name}{i}"
        for i in range(len(shares))
        for name, half in (("h", f"div({{}}, {_HALF})"), ("l", f"mod({{}}, {_HALF})"))
    ]
    group = f" GROUP BY {', '.join(str(1 + i) for i in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join([*keys, 'count(*) AS n', *halves])} FROM {rows}{group}"  # noqa: S608


@dataclass(frozen=True)
class _Tests:
    """Tests of a value, all NULL where it is NULL, and the region that follows from which of them are true.

    Either it lies at a cut or after it, for every cut: as many are true as there are cuts up to the value. Or it equals
    a text, for every listed text: then at most one is true.
    """

    cuts: tuple[Cut, ...]
    regions: tuple[int, ...]
    """By the number of cuts up to the value; or of all other texts, and then of each listed one."""
    equal: bool = False

    def region(self, true: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The regions of values, from the truth of each test (tests × values)."""
        weights = 1 + np.arange(len(true)) if self.equal else np.ones(len(true), dtype=np.int64)
        return np.array(self.regions, dtype=np.int64)[weights @ true]


def _tests(regions: Regions) -> _Tests | None:
    """The tests that tell the regions of a stored column apart, NULL among them; None where there are none."""
    type_, (cuts, pieces) = regions.column.type, _kept(regions)
    if not cuts or regions.column.expression or type_.startswith("DECIMAL"):
        return None  # NaN is NULL in DuckDB, and no comparison says so
    if type_ == "VARCHAR" or type_.startswith("ENUM("):
        texts = [cut for cut in cuts if not cut[1]]
        alone = [(text, 1) in cuts for text, _ in texts]
        if all(alone) and len(cuts) == 2 * len(texts) and len(set(pieces[::2])) == 1:
            return _Tests(tuple(texts), (pieces[0], *pieces[1::2]), equal=True)
    return _Tests(tuple(cuts), tuple(pieces))


def _split(scan: Scan) -> tuple[dict[int, _Tests | None], list[int]]:
    """(the columns that are tested, by their number, those whose region is a number); None tests for NULL alone.

    Idle ones are neither: their region makes no difference.
    """
    tested: dict[int, _Tests | None] = {}
    room = _MOST_TESTS
    for i, regions in enumerate(scan.regions):
        if i in scan.idle:
            continue
        tests = _tests(regions)
        if tests is not None and len(tests.cuts) <= min(_FEW_TESTS, room):
            tested[i], room = tests, room - len(tests.cuts)
        elif not _kept(regions)[0] and regions.count == 2:
            tested[i] = None
    return tested, [i for i in range(len(scan.regions)) if i not in tested and i not in scan.idle]


def _test_sql(regions: Regions, tests: _Tests | None, stored: StoredTable) -> list[str]:
    if tests is None:
        return [f"{_region(regions, stored)} = 1"]
    _, value = _value(regions.column, stored)
    after = [_at_or_after(value, regions.column.type, cut) for cut in tests.cuts]
    return [test.replace(f"{value} >= ", f"{value} = ", 1) for test in after] if tests.equal else after


def _kept(regions: Regions) -> tuple[list[Cut], list[int]]:
    """The cuts that have different regions on their sides, and the regions between them."""
    pieces = list(regions.region_of_piece)
    kept = [i for i in range(len(regions.cuts)) if pieces[i] != pieces[i + 1]]
    return [regions.cuts[i] for i in kept], [*(pieces[i] for i in kept), pieces[-1]]


def _pairs(shares: int) -> list[tuple[int, int]]:
    """The comparisons that tell the order of some shares."""
    return [(i, j) for j in range(shares) for i in range(j)]


def counted(scan: Scan, groups: pa.Table) -> NDArray[np.int64]:
    """The integer vector x, from what ``pushed`` returned."""
    tested, numbered = _split(scan)
    keys = {i: _tested_regions(scan.regions[i], tests, i, groups) for i, tests in tested.items()}
    column = {
        name: groups[name].to_numpy(zero_copy_only=False).astype(np.int64)
        for name in groups.column_names
        if not name.startswith("b")
    }
    count, rows = len(scan.summed), column["n"]
    shape = tuple(scan.regions[i].count for i in numbered)
    keys |= zip(numbered, np.unravel_index(column["k"], shape) if numbered else (), strict=True)
    regions_of = [keys.get(i, 0 * rows) for i in range(len(scan.regions))]
    if not count:
        return scan.in_cells([*regions_of, rows])
    whole = [column[f"h{i}"].astype(object) * _HALF + column[f"l{i}"] for i in range(count)]
    # How many shares come before each one: of two, the one that is not smaller; of equal ones, the first.
    rank = np.zeros((count, len(rows)), dtype=np.int64)
    for number, (i, j) in enumerate(_pairs(count)):
        rank[j] += column[f"o{number}"]
        rank[i] += 1 - column[f"o{number}"]
    ordered = [rows.astype(object) * UNIT, *_by_rank(np.array(whole), rank), 0 * rows]
    corners = np.zeros((1 << count, len(rows)), dtype=np.int64)
    raised = np.zeros(len(rows), dtype=np.int64)
    for step in range(count + 1):  # the corner that raises the first ``step`` columns in their order
        weight = np.minimum(ordered[step] - ordered[step + 1], _GREATEST).astype(np.int64)
        corners[raised, np.arange(len(rows))] = weight
        if step < count:
            raised |= 1 << (count - 1 - np.argmax(rank == step, axis=0))  # the first column is the slowest axis
    return scan.in_cells([*regions_of, *corners])


def _tested_regions(regions: Regions, tests: _Tests | None, number: int, groups: pa.Table) -> NDArray[np.int64]:
    """The region of every group in a column that was tested."""
    found = [groups[f"b{number}t{n}"] for n in range(1 if tests is None else len(tests.cuts))]
    true: NDArray[np.bool_] = np.array(
        [column.fill_null(False).to_numpy(zero_copy_only=False) for column in found], dtype=np.bool_
    )
    if tests is None:
        return np.asarray(true[0], dtype=np.int64)
    is_null = found[0].is_null().to_numpy(zero_copy_only=False)
    return np.asarray(np.where(is_null, regions.null_region, tests.region(true)), dtype=np.int64)


def _by_rank(sums: NDArray[np.object_], rank: NDArray[np.int64]) -> NDArray[np.object_]:
    ordered = np.empty_like(sums)
    np.put_along_axis(ordered, rank, sums, axis=0)
    return ordered


def _place(numbers: Sequence[tuple[str, int]]) -> str:
    """The place of a row in the grid, in row-major order: one number, so that PostgreSQL groups by hashing."""
    place, size = "0", 1
    for number, count in numbers:
        place = f"({place}) * {count} + {number}" if size > 1 else number
        size *= count
    return f"({place})::int8"


def _region(regions: Regions, stored: StoredTable) -> str:
    """The number of the region of a column's value."""
    type_, value = _value(regions.column, stored)
    cuts, pieces = _kept(regions)
    computed = bool(regions.column.expression)
    number = _bucket(value, type_, cuts, pieces, computed=computed)
    if number is not None and computed:  # a bucket of NULL is NULL, and the value is computed once
        return f"coalesce({number}, {regions.null_region})"
    if number is None:
        number = _tree([_at_or_after(value, regions.column.type, cut) for cut in cuts], pieces)
    null = regions.null_region
    if number == str(null):
        return number
    if type_.startswith("DECIMAL"):  # NaN is NULL
        return f"CASE WHEN {_FINITE.format(value)} THEN {number} ELSE {null} END"
    return f"CASE WHEN {value} IS NULL THEN {null} ELSE {number} END"


def _bucket(value: str, type_: str, cuts: Sequence[Cut], pieces: Sequence[int], *, computed: bool) -> str | None:
    """The piece that a number lies in, looked up among many cuts; None where a tree is as good, or a cut is NaN.

    A tree would compute the value for every test.
    """
    if len(cuts) < (1 if computed else _MANY) or type_ not in ("SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"):
        return None
    base, order = ("float8" if type_ in ("FLOAT", "DOUBLE") else "int8"), ordering(type_)
    assert order is not None
    ends = [order.value(cut) for cut in cuts]
    if any(math.isnan(end) for end in ends):  # PostgreSQL looks NaN up as a value, not as an end
        return None
    if base == "int8" and not computed and ends == list(range(ends[0], ends[0] + len(ends))):  # a group for each number
        before, last = f"{ends[0] - 1}::int8", f"{ends[-1]}::int8"
        piece = f"(least(greatest({value}::int8, {before}), {last}) - {before})::int4"
    else:
        piece = f"width_bucket({value}::{base}, '{{{','.join(map(repr, ends))}}}'::{base}[])"
    if list(pieces) == list(range(len(pieces))):
        return piece
    return f"('{{{','.join(map(str, pieces))}}}'::int4[])[1 + {piece}]"


def _tree(tests: Sequence[str], pieces: Sequence[int]) -> str:
    """A balanced tree: PostgreSQL computes only the tests on the way, so 1,000 cuts are ten comparisons for a row."""

    def between(first: int, last: int) -> str:
        if len(set(pieces[first : last + 1])) == 1:
            return str(pieces[first])
        middle = (first + last + 1) // 2
        return f"CASE WHEN {tests[middle - 1]} THEN {between(middle, last)} ELSE {between(first, middle - 1)} END"

    return between(0, len(tests))


def _value(column: Column, stored: StoredTable) -> tuple[str, str]:
    """DuckDB's type of a column, and its value in PostgreSQL where that compares as DuckDB's does."""
    part = date_part(column)
    travel = stored.column((part.column if part is not None else column).name).travel
    if part is not None:
        return column.type, _part(part, f"{quote(part.column.name)}::{travel.base}")
    value = f"{quote(column.name)}::{travel.base}"
    if travel.base == "text" and travel.type != "UUID":
        return travel.type, f'({value} COLLATE "C")'
    if travel.type == "DOUBLE" and travel.base == "numeric":
        return travel.type, f"({travel.sent[0].format(value)})"
    return travel.type, value


def _part(part: DatePart, value: str) -> str:
    """A part of a day or a moment. EXTRACT of a date makes no timestamp of it, which it could be out of range of."""
    finite = f"isfinite({value})"
    if part.column.type == "TIMESTAMP":
        finite += f" AND {value} < '{BEYOND}'::timestamp"
    found = f"extract({_PARTS.get(part.part, part.part)} FROM {value})"
    found = f"floor({found})::int8" if part.part == "second" else f"{found}::int8"
    if part.part == "year":
        found = f"({found} + CASE WHEN {found} < 0 THEN 1 ELSE 0 END)"
    return f"(CASE WHEN {finite} THEN {found} END)"


def _at_or_after(value: str, type_: str, cut: Cut) -> str:
    """Whether a value lies at a cut or after it."""
    if type_ == "VARCHAR" or type_.startswith("ENUM("):
        text, after = cut
        try:
            short = len(text.encode()) < LONGEST_TEXT // 4  # a text that was cut is longer, and compares as before
        except UnicodeEncodeError:
            short = False
        if not short or "\0" in text:
            raise _General
        return f"{value} {'>' if after else '>='} {literal(text)}"
    if type_ == "BOOLEAN":
        return f"{value} >= true"
    if type_ in ("FLOAT", "DOUBLE"):
        order = ordering(type_)
        assert order is not None
        return f"{value} >= '{order.value(cut)!r}'::float8"
    if match := re.fullmatch(r"DECIMAL\(\d+,\s*(\d+)\)", type_):
        return f"{value} >= {_decimal(cut, int(match[1]))}::numeric"
    if type_ == "DATE":
        return f"{value} >= '1970-01-01'::date + {cut}"
    if type_ == "TIMESTAMP":
        return f"{value} >= '{_moment(cut)}'::timestamp"
    if type_ not in _COMPARED:
        raise _General
    return f"{value} >= '{cut}'::int8"


def _decimal(cut: int, scale: int) -> str:
    digits = str(abs(cut)).rjust(scale + 1, "0")
    whole, part = (digits[:-scale], digits[-scale:]) if scale else (digits, "0")
    return f"'{'-' if cut < 0 else ''}{whole}.{part}'"


def _moment(cut: int) -> str:
    try:
        return str(_EPOCH + timedelta(microseconds=cut))
    except OverflowError:
        if cut <= 0:
            raise _General from None
        return _AFTER_PYTHON


def _share(summed: SummedColumn, stored: StoredTable) -> str:
    """Where a value lies between the ends of its clamp, in parts of UNIT: what ``scan_sql`` computes in DuckDB."""
    type_, value = _value(summed.column, stored)
    digits = re.fullmatch(r"DECIMAL\((\d+),\s*\d+\)", type_)
    if digits is not None:
        if int(digits[1]) > _EXACT_DIGITS:
            raise _General
        value = f"(CASE WHEN {_FINITE.format(value)} THEN {value} END)"
    elif type_ not in ("SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"):
        raise _General
    low, high = summed.low, summed.high
    scale = UNIT / (high - low)
    if not (math.isfinite(high - low) and math.isfinite(scale) and scale > 0):
        raise _General
    lowest = f"'{low!r}'::float8"
    clamped = f"least(greatest({value}::float8, {lowest}), '{high!r}'::float8)"  # NULL is the lowest, NaN the highest
    beyond = f"({clamped} - {lowest})"
    # For 0 ≤ x < 2^51, floor(x + the number before one half) rounds half away from zero: the sum is below 1 where x is
    # below one half, and rounds to that of x + 1/2, which is exact, elsewhere.
    rounded = f"floor({beyond} * '{scale!r}'::float8 + '{_BEFORE_HALF!r}'::float8)::int8"
    if scale >= 1:
        return rounded
    # a share below a quarter of a part rounds to 0; the product could lie below every DOUBLE, which is an error
    return f"CASE WHEN {beyond} < '{0.25 / scale!r}'::float8 THEN 0::int8 ELSE {rounded} END"
