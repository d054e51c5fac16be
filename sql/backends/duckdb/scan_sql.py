"""The aggregate scan as DuckDB SQL, generated from the compiled scan alone: no text of the analyst's gets here.

It is made of total functions only, so that it cannot fail for a reason that lies in a row: comparisons with constants,
CASE, casts of numbers to DOUBLE, rounding of a value that was compared with both ends of its clamp first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

from ...catalog import UNIT_NAME, Column, Table
from ...derived import UnitRows
from ...scan import UNIT, Join, Scan, SummedColumn
from .keys_sql import Keys, by_order, joined, lookups
from .regions_sql import region_sql
from .settings import compares_only
from .text import double, literal, quote
from .types import kind_of

Stored = Callable[[Table, Collection[str]], str]
"""Where the named columns of a table are: what stands in FROM."""
Joins = tuple[tuple[str, Join], ...]
_PACKED = 1 << 20
"""A number of so many values leaves 44 bits of a hash."""


def render(scan: Scan, salt: bytes, stored: Stored) -> str:
    """The aggregate scan as DuckDB SQL: groups of rows, with the region of each in every column.

    A group has the number of its rows. Where columns are summed it has the number of the order of the shares, the
    number of rows and the two halves of the sum of each share, for ``Scan.in_cells_by_order``; or a sum for each corner
    of the clamps, where there would be too many orders. Several groups can have the same regions. ``stored`` says where
    the rows of a table are.
    """
    keys, count = Keys(scan), len(scan.summed)
    columns = keys.columns(_shares(scan))
    if scan.table.privacy_unit is not None and compares_only(scan):
        rows = keys.numbered(kept_keys(scan, columns, keys.size, salt, stored))
    else:
        rows = keys.numbered(f"SELECT {_listed(columns)} FROM {_rows(scan, salt, stored)}")  # noqa: S608
    if by_order(scan):
        halves = [half for i in range(count) for half in (f"sum(f{i}) >> 32", f"sum(f{i}) & 4294967295")]
        counted = ["count(*)", *(f"coalesce(CAST({half} AS BIGINT), 0)" for half in halves)]
    else:
        sums = [corner_sql(corner, count) for corner in range(1 << count)] if count else ["count(*)"]
        counted = [f"CAST(least({s}, 9223372036854775807) AS BIGINT)" for s in sums]
    return keys.grouped(rows, [f"{s} AS s{i}" for i, s in enumerate(counted)])


def render_rows(scan: Scan, salt: bytes, stored: Stored) -> str:
    """Every row that the scan counts: its region in each column, then its share of each summed column.

    The tables of ``lookups`` must be there.
    """
    found = lookups(scan)
    inner = [
        (found[i].key, f"g{i}") if i in found else (region_sql(regions), f"k{i}")
        for i, regions in enumerate(scan.regions)
    ] + [(table.value, f"v{i}") for i, table in found.items() if table.comparisons]
    columns = [*inner, *_shares(scan)] or [("1", "one")]
    rows = f"SELECT {_listed(columns)} FROM {_rows(scan, salt, stored)}"  # noqa: S608
    if not found:
        return rows
    outer = [
        f"{found[i].number(f'l{i}', f'v{i}')} AS k{i}" if i in found else f"k{i}" for i in range(len(scan.regions))
    ]
    shown = [*outer, *(f"f{i}" for i in range(len(scan.summed)))]
    return f"SELECT {', '.join(shown)} FROM ({rows}) {joined(found)}"  # noqa: S608


def _shares(scan: Scan) -> list[tuple[str, str]]:
    return [(_share_sql(summed), f"f{i}") for i, summed in enumerate(scan.summed)]


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{sql} AS {name}" for sql, name in columns)


def kept_keys(scan: Scan, columns: Sequence[tuple[str, str]], size: int | None, salt: bytes, stored: Stored) -> str:
    """What the scan looks at of the rows that are kept of every unit; ``size`` values, if that is one number.

    Guarantee. That of ``_bounded``. Rows with the same hash are told apart by what the scan looks at, and rows that
    agree in it are alike to the scan. Of one row for each unit, the least of hash and number, as one whole number, is
    that row: the hash is cut to make room, so rows that agree in the rest of it are told apart by the number.
    """
    table = scan.table
    assert table.unit_column is not None
    names, unit = [column.name for column in table.columns], quote(table.unit_column)
    rows = (
        f"SELECT {unit} AS u, {_row_hash(table, salt)} AS h, {_listed(columns)} "  # noqa: S608
        f"FROM {stored(table, names)} WHERE {unit} IS NOT NULL"
    )
    shown = ", ".join(name for _, name in columns)
    if table.max_rows_per_unit == 1 and size is not None and size <= _PACKED:
        bits = max(1, (size - 1).bit_length())
        least = f"min((h >> {bits} << {bits}) | TRY_CAST({shown} AS UBIGINT))"
        return f"SELECT CAST({least} & {(1 << bits) - 1} AS BIGINT) AS {shown} FROM ({rows}) GROUP BY u"  # noqa: S608
    window = f"row_number() OVER (PARTITION BY u ORDER BY h, {shown})"
    return f"SELECT {shown} FROM ({rows}) QUALIFY {window} <= {table.max_rows_per_unit}"  # noqa: S608


def render_values(scan: Scan, salt: bytes, stored: Stored) -> str:
    """Every value of the scan's one column, with the number of units that hold it among the rows that are kept.

    Guarantee. At most k rows of a unit are kept, so it is counted in at most k values; it is counted once in each. What
    no Python value or no list can hold (NULL, NaN, infinities, years beyond 9999, texts of more than 4,096 bytes) is
    left out by a condition on the value alone.
    """
    (column,) = scan.computed
    table, unit = scan.table, scan.table.privacy_unit
    rows = _bounded(table, salt, stored, scan.reads, unit=unit is not None, most=table.max_rows_per_unit)
    kind = kind_of(column.type)
    if kind == "text":
        listed = "strlen(v) <= 4096"
    elif column.type in ("FLOAT", "DOUBLE"):
        listed = "isfinite(v)"
    elif kind in ("day", "moment"):
        listed = f"v >= {column.type} '0001-01-01' AND v < {column.type} '9999-12-31'"
    else:
        listed = "v IS NOT NULL"
    units = "count(*)" if unit is None else "count(DISTINCT u)"
    shown = f"{column.reference} AS v" + ("" if unit is None else f", {quote(UNIT_NAME)} AS u")
    return f"SELECT v, CAST({units} AS BIGINT) FROM (SELECT {shown} FROM {rows}) WHERE {listed} GROUP BY v"  # noqa: S608


def _rows(scan: Scan, salt: bytes, stored: Stored) -> str:
    """The rows to count: the base, and what is joined to it under labelled names."""
    return _joined(scan.table, scan.private, scan.joins, scan.reads, salt, stored)


def _joined(
    table: Table,
    private: Joins,
    joins: Joins,
    reads: Collection[str],
    salt: bytes,
    stored: Stored,
    *,
    unit: bool = False,
    bounded: bool = True,
) -> str:
    """The rows of a table with all that is joined to it; ``unit``: they say whose they are.

    Not ``bounded``: all rows of a unit, and not only so many as the tables' bounds allow.
    """
    by_unit = unit or any(join.unit for _, join in joins)
    rows = _bounded(table, salt, stored, reads, unit=by_unit, most=table.max_rows_per_unit if bounded else None)
    if not private and not joins:
        return rows
    # Only the columns of the catalog, under names that are all different (see Catalog.labels).
    shown = [quote(c.name) for c in table.columns if c.name in reads] + ([quote(UNIT_NAME)] if by_unit else [])
    rows = f"(SELECT {', '.join(shown) or '1 AS one'} FROM {rows})"  # noqa: S608
    for label, join in private:
        wanted = [c.name for c in join.table.columns if c.of(label).name in reads]
        most = join.table.max_rows_per_unit if bounded else None
        kept = _bounded(join.table, salt, stored, wanted, most=most)
        other = f"(SELECT {_labelled(join.table, label, wanted)} FROM {kept}{_matching(join)})"  # noqa: S608
        on = " AND ".join(f"{quote(left)} = {quote(f'{label}.{key}')}" for left, key in join.on)
        kind = "LEFT JOIN" if join.outer else "JOIN"
        rows = f"(SELECT * FROM {rows} {kind} {other} ON {on})"  # noqa: S608
    for label, join in joins:
        wanted = [c.name for c in join.table.columns if c.of(label).name in reads]
        equal = [f"{left} = {quote(f'{label}.{key}')}" for left, key in join.on]
        if join.unit:
            equal.append(f"{quote(UNIT_NAME)} = {quote(f'{label}.{UNIT_NAME}')}")
        on, other = " AND ".join(equal) or "TRUE", _once(label, join, wanted, salt, stored)
        rows = f"(SELECT * FROM {rows} LEFT JOIN {other} ON {on})"  # noqa: S608
    return rows


def _once(label: str, join: Join, wanted: Collection[str], salt: bytes, stored: Stored) -> str:
    """A joined table with one row for each key, which a row of the base matches or does not.

    A public key that is not unique is refused before the charge. Here one row per key is taken all the same.
    """
    keys = [key for _, key in join.on]
    matched = f"TRUE AS {quote(f'{label}.')}"
    if not join.unit:
        shown = ", ".join(filter(None, (_labelled(join.table, label, wanted), matched)))
        partition = f"PARTITION BY {', '.join(map(quote, keys))}" if keys else ""
        return (
            f"(SELECT {shown} FROM {stored(join.table, wanted)}{_matching(join)} "  # noqa: S608
            f"QUALIFY row_number() OVER ({partition}) = 1)"
        )
    rows = _bounded(join.table, salt, stored, wanted, unit=True, most=1, keys=keys)
    unit = f"{quote(UNIT_NAME)} AS {quote(f'{label}.{UNIT_NAME}')}"
    shown = ", ".join(filter(None, (_labelled(join.table, label, wanted), unit, matched)))
    return f"(SELECT {shown} FROM {rows}{_matching(join)})"  # noqa: S608


def _matching(join: Join) -> str:
    return f" WHERE {' AND '.join(f'({c.reference})' for c in join.where)}" if join.where else ""


def _labelled(table: Table, label: str, wanted: Collection[str]) -> str:
    return ", ".join(f"{quote(c.name)} AS {quote(c.of(label).name)}" for c in table.columns if c.name in wanted)


def read_column(column: Column, sql: str) -> str:
    """A stored column as the catalog has it: texts in binary order, a private type (ENUM) cast to a public one."""
    value = f"CAST({sql} AS {column.type})" if column.recast else sql
    collated = f"{value} COLLATE C" if column.type == "VARCHAR" else value
    return f"{collated} AS {quote(column.name)}"


def _bounded(
    table: Table,
    salt: bytes,
    stored: Stored,
    wanted: Collection[str],
    *,
    unit: bool = False,
    most: int | None,
    keys: Collection[str] = (),
) -> str:
    """The table, with at most ``most`` rows of every privacy unit, or of every unit and combination of ``keys``.

    Guarantee. Which rows of a unit are kept depends on that unit's own rows and on a secret salt alone, so adding
    or removing a unit leaves what is kept of every other unit as it was, and moves at most k rows. Rows without a
    unit are left out. The order in which rows are stored or read plays no part: rows with the same hash are told apart
    by the columns that are wanted, and rows that agree in those are alike to the scan. No predicate of the batch plays
    a part, so every batch sees the same rows (of rows with the same hash, every batch that reads the same columns).
    With ``unit`` the rows say whose they are.
    """
    if isinstance(table.rows, UnitRows):
        rows = _grouped(table.rows, salt, stored)
        if most != 1 or not table.rows.bounded or not table.rows.whole:
            return rows
        partition = ", ".join(map(quote, [UNIT_NAME, *keys]))
        order = ", ".join(quote(name) for name, _ in (*table.rows.keys, *table.rows.columns))
        return f"(SELECT * FROM {rows} QUALIFY row_number() OVER (PARTITION BY {partition} ORDER BY {order}) = 1)"  # noqa: S608
    if table.privacy_unit is None:
        return stored(table, wanted)
    names = [column.name for column in table.columns]
    read = names if most is not None else [*wanted, table.unit_column or table.unit_key]
    owned, owner = _owned(table, read, stored)
    shown = [quote(name) for name in names if name in wanted]
    if unit:
        shown.append(f"{owner} AS {quote(UNIT_NAME)}")
    bound = ""
    if most is not None:
        partition = ", ".join([owner, *map(quote, keys)])
        # Different rows can have one hash, and a contributor could look for such: then what the scan reads decides.
        order = ", ".join([_row_hash(table, salt), *(quote(name) for name in names if name in wanted)])
        bound = f" QUALIFY row_number() OVER (PARTITION BY {partition} ORDER BY {order}) <= {most}"
    return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {owned} WHERE {owner} IS NOT NULL{bound})"  # noqa: S608


def _row_hash(table: Table, salt: bytes) -> str:
    """By which the rows of a unit that are kept are chosen: a hash of all that the row holds."""
    parts = [literal(salt.hex()), *(quote(column.name) for column in table.columns)]
    return f"hash({', '.join(parts)})"


def _owned(table: Table, names: Collection[str], stored: Stored) -> tuple[str, str]:
    """(the rows of a table, SQL for the unit that each belongs to).

    Guarantee. Where the unit is reached by keys, a row counts once for every unit that it leads to, each time as a row
    of that unit. So removing a unit, its rows in the tables on the way among them, removes rows that were counted as
    its own and no others: no key has to be unique for that.
    """
    if table.unit_path is None:
        assert table.privacy_unit is not None
        return stored(table, names), quote(table.privacy_unit)
    rows, last = stored(table, names), quote(table.unit_key)
    for number, step in enumerate(table.unit_path):
        key, gives = quote(f"{UNIT_NAME} key {number}"), quote(f"{UNIT_NAME} {number}")
        way = f"SELECT DISTINCT {quote(step.key)} AS {key}, {quote(step.gives)} AS {gives}"
        rows = f"{rows} JOIN ({way} FROM {stored(step.table, [step.key, step.gives])}) ON {last} = {key}"
        last = gives
    return f"({rows})", last


def _grouped(rows: UnitRows, salt: bytes, stored: Stored) -> str:
    """Rows computed from those of a unit: see the guarantee of ``UnitRows``."""
    read = _joined(
        rows.table, rows.private, rows.joins, rows.reads, salt, stored, unit=rows.whole, bounded=rows.bounded
    )
    shown = [f"{sql} AS {quote(name)}" for name, sql in (*rows.keys, *rows.columns)]  # the first key is the unit
    where = f" WHERE {' AND '.join(f'({condition})' for condition in rows.where)}" if rows.where else ""
    return f"(SELECT {', '.join(shown)} FROM {read}{where} GROUP BY {', '.join(sql for _, sql in rows.keys)})"  # noqa: S608


def _share_sql(summed: SummedColumn) -> str:
    """Where a value lies between the ends of its clamp, in parts of UNIT; 0 for NULL, UNIT for NaN.

    Never NULL, and between 0 and UNIT: with D the width of the clamp in DOUBLE, the product for a value inside is at
    most D · (UNIT / D) with two roundings, less than UNIT + 1/2. Where D or the factor is no ordinary number, a product
    without a value is 0.
    """
    value = f"CAST({summed.column.reference} AS DOUBLE)"
    low, high = double(summed.low), double(summed.high)
    width = summed.high - summed.low
    scale = UNIT / width if width else math.inf
    inside = f"TRY_CAST(round(({value} - {low}) * {double(scale)}) AS INTEGER)"
    if not (math.isfinite(width) and math.isfinite(scale) and scale > 0):
        inside = f"coalesce({inside}, 0)"
    return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {inside} WHEN {value} > {high} THEN {UNIT} ELSE 0 END"


def corner_sql(corner: int, count: int) -> str:
    """What a row adds to one corner of the box of clamps, summed over the rows.

    With the shares f sorted downwards, the point lies in the simplex whose corners raise the columns one by one in that
    order, with weights 1 - f(1), f(1) - f(2), …, f(d). A corner that raises the set S has therefore the weight
    min over S of f minus max over the rest of f where that is positive, and 0 otherwise; the weights sum to UNIT.
    The first column is the slowest axis of the grid, so bit order runs from the last.
    """
    raised = [f"f{i}" for i in range(count) if corner >> (count - 1 - i) & 1]
    rest = [f"f{i}" for i in range(count) if f"f{i}" not in raised]
    least = f"least({', '.join(raised)})" if len(raised) > 1 else (raised or [str(UNIT)])[0]
    most = f"greatest({', '.join(rest)})" if len(rest) > 1 else (rest or ["0"])[0]
    return f"coalesce(sum(greatest(0, {least} - {most})), 0)"
