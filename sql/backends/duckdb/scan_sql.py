"""The aggregate scan as DuckDB SQL, generated from the compiled scan alone: no text of the analyst's gets here.

It is made of total functions only, so that it cannot fail for a reason that lies in a row: comparisons with constants,
CASE, casts of numbers to DOUBLE, rounding of a value that was compared with both ends of its clamp first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...catalog import Column, Table
from ...scan import UNIT, Scan, SummedColumn
from .regions_sql import region_sql
from .text import double, literal, quote
from .types import kind_of

Stored = Callable[[Table, Collection[str]], str]
"""Where the named columns of a table are: what stands in FROM."""


def render(scan: Scan, salt: bytes, stored: Stored) -> str:
    """The aggregate scan as DuckDB SQL: a group per point of the grid of regions, a sum per corner of the clamps.

    ``stored`` says where the rows of a table are.
    """
    groups = [f"k{i}" for i in range(len(scan.regions))]
    shares = [f"f{i}" for i in range(len(scan.summed))]
    sums = [_corner_sql(corner, len(shares)) for corner in range(1 << len(shares))] if shares else ["count(*)"]
    capped = [f"CAST(least({s}, 9223372036854775807) AS BIGINT) AS s{i}" for i, s in enumerate(sums)]
    tail = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join([*groups, *capped])} FROM ({render_rows(scan, salt, stored)}){tail}"  # noqa: S608


def render_rows(scan: Scan, salt: bytes, stored: Stored) -> str:
    """Every row that the scan counts: its region in each column, then its share of each summed column."""
    keys = [f"{region_sql(regions)} AS k{i}" for i, regions in enumerate(scan.regions)]
    shares = [f"{_share_sql(summed)} AS f{i}" for i, summed in enumerate(scan.summed)]
    return f"SELECT {', '.join([*keys, *shares]) or '1 AS one'} FROM {_rows(scan, salt, stored)}"  # noqa: S608


def render_values(scan: Scan, salt: bytes, stored: Stored) -> str:
    """Every value of the scan's one column, with the number of units that hold it among the rows that are kept.

    Guarantee. At most k rows of a unit are kept, so it is counted in at most k values; it is counted once in each. What
    no Python value or no list can hold (NULL, NaN, infinities, years beyond 9999, texts of more than 4,096 bytes) is
    left out by a condition on the value alone.
    """
    (column,) = scan.computed
    unit = scan.table.privacy_unit
    rows = _bounded(scan.table, salt, stored, scan.reads if unit is None else scan.reads | {unit})
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
    shown = f"{column.reference} AS v" + ("" if unit is None else f", {quote(unit)} AS u")
    return f"SELECT v, CAST({units} AS BIGINT) FROM (SELECT {shown} FROM {rows}) WHERE {listed} GROUP BY v"  # noqa: S608


def _rows(scan: Scan, salt: bytes, stored: Stored) -> str:
    """The rows to count: the base, and what is joined to it under labelled names."""
    reads = scan.reads
    rows = _bounded(scan.table, salt, stored, reads)
    if not scan.private and not scan.joins:
        return rows
    # Only the columns of the catalog, under names that are all different (see Catalog.labels).
    base = ", ".join(quote(c.name) for c in scan.table.columns if c.name in reads)
    rows = f"(SELECT {base or '1 AS one'} FROM {rows})"  # noqa: S608
    for label, join in scan.private:
        wanted = [c.name for c in join.table.columns if c.of(label).name in reads]
        other = f"(SELECT {_labelled(join.table, label, wanted)} FROM {_bounded(join.table, salt, stored, wanted)})"  # noqa: S608
        on = " AND ".join(f"{quote(left)} = {quote(f'{label}.{key}')}" for left, key in join.on)
        rows = f"(SELECT * FROM {rows} JOIN {other} ON {on})"  # noqa: S608
    for label, join in scan.joins:
        wanted = [c.name for c in join.table.columns if c.of(label).name in reads]
        keys = ", ".join(quote(key) for _, key in join.on)
        # A public key that is not unique is refused before the charge. Here one row per key is taken all the same.
        once = (
            f"(SELECT {_labelled(join.table, label, wanted)}, TRUE AS {quote(f'{label}.')} "  # noqa: S608
            f"FROM {stored(join.table, wanted)} QUALIFY row_number() OVER (PARTITION BY {keys}) = 1)"
        )
        on = " AND ".join(f"{left} = {quote(f'{label}.{key}')}" for left, key in join.on)
        rows = f"(SELECT * FROM {rows} LEFT JOIN {once} ON {on})"  # noqa: S608
    return rows


def _labelled(table: Table, label: str, wanted: Collection[str]) -> str:
    return ", ".join(f"{quote(c.name)} AS {quote(c.of(label).name)}" for c in table.columns if c.name in wanted)


def read_column(column: Column, sql: str) -> str:
    """A stored column as the catalog has it: texts in binary order, a private type (ENUM) cast to a public one."""
    value = f"CAST({sql} AS {column.type})" if column.recast else sql
    collated = f"{value} COLLATE C" if column.type == "VARCHAR" else value
    return f"{collated} AS {quote(column.name)}"


def _bounded(table: Table, salt: bytes, stored: Stored, wanted: Collection[str]) -> str:
    """The table, with at most k rows of every privacy unit.

    Guarantee. Which rows of a unit are kept depends on that unit's own rows and on a secret salt alone, so adding
    or removing a unit leaves what is kept of every other unit as it was, and moves at most k rows. Rows without a
    unit are left out. No predicate of the batch plays a part, so every batch sees the same rows.
    """
    if table.privacy_unit is None:
        return stored(table, wanted)
    unit = quote(table.privacy_unit)
    names = [column.name for column in table.columns]
    content = ", ".join([literal(salt.hex()), *map(quote, names)])
    shown = ", ".join(quote(name) for name in names if name in wanted)
    return (
        f"(SELECT {shown or '1 AS one'} FROM {stored(table, names)} "  # noqa: S608
        f"WHERE {unit} IS NOT NULL "
        f"QUALIFY row_number() OVER (PARTITION BY {unit} ORDER BY hash({content})) <= {table.max_rows_per_unit})"
    )


def _share_sql(summed: SummedColumn) -> str:
    """Where a value lies between the ends of its clamp, in parts of UNIT; 0 for NULL, UNIT for NaN."""
    value = f"CAST({summed.column.reference} AS DOUBLE)"
    low, high = double(summed.low), double(summed.high)
    scale = double(UNIT / (summed.high - summed.low))
    inside = f"least({UNIT}, CAST(round(({value} - {low}) * {scale}) AS BIGINT))"
    return f"CASE WHEN {value} >= {high} THEN {UNIT} WHEN {value} > {low} THEN {inside} ELSE 0 END"


def _corner_sql(corner: int, count: int) -> str:
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
