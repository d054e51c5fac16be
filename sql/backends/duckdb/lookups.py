"""Tables that hold the region of every value of a short line, or of every slot of a long one.

A join with such a table costs the same for 100 cuts as for 1,000, and less than a tree of comparisons or a list in the
text of the scan (benchmarks/scan.py). A value outside the table is given a key inside it first, so that every row finds
exactly one row of it, whatever the row holds: nothing is left out and nothing is doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .regions_sql import TREE, slot_grid
from .text import quote

if TYPE_CHECKING:
    from ...ordering import Ordering
    from ...regions import Regions

_LONGEST = 1 << 16
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "DATE")


@dataclass(frozen=True)
class Lookup:
    """A table of regions by key."""

    name: str
    create: str
    """The statement that makes the table. It holds constants of the batch and reads no row."""
    key: str
    """SQL for the key of a row; always one of the table's."""
    value: str = ""
    """SQL for the value of a row, where the table leaves comparisons to be made."""
    comparisons: int = 0

    def number(self, alias: str, value: str) -> str:
        """SQL for the region, from a row of the table and the value."""
        tests = [f"WHEN {value} >= {alias}.c{i} THEN {alias}.r{i}" for i in range(self.comparisons, 0, -1)]
        return f"CASE {' '.join(tests)} ELSE {alias}.r0 END" if tests else f"{alias}.r0"

    @property
    def place(self) -> str:
        """What stands in FROM."""
        return f"temp.main.{quote(self.name)}"


def lookup(regions: Regions, number: int) -> Lookup | None:
    """The table for a column's regions; None where a few comparisons do, or none can be made."""
    order = regions.order
    if regions.numbered or order is None or order.kind not in ("number", "moment") or len(regions.cuts) <= TREE:
        return None
    name = f"tacit lookup {number}"
    return _by_value(regions, order, name) or _by_slot(regions, order, name)


def _by_value(regions: Regions, order: Ordering, name: str) -> Lookup | None:
    """A key for NULL, one for all that lies before the line, every value of the line, one for the rest."""
    column, cuts, pieces = regions.column, regions.cuts, regions.region_of_piece
    span = cuts[-1] - cuts[0] if column.type in _WHOLE else _LONGEST + 1
    if span > _LONGEST:
        return None
    around = min(span, (_LONGEST - span) // 2)  # most values are near the cuts, and those are found at once
    first, last = cuts[0] - around, cuts[-1] + around
    if order.least is not None and order.greatest is not None:
        first, last = max(first, order.least + 2), min(last, order.greatest - 1)
    if not first <= cuts[0] <= cuts[-1] <= last:
        return None
    edges = [first, *cuts, last + 1]
    runs = [(edges[i + 1] - edges[i], region) for i, region in enumerate(pieces)]
    listed = [(1, regions.null_region), (1, pieces[0]), *runs, (1, pieces[-1])]
    numbers = ", ".join(f"list_resize([]::INTEGER[], {count}, {region})" for count, region in listed)
    keys = f"unnest(range({first - 2}, {last + 2}))"
    typed = (
        f"(DATE '1970-01-01' + CAST({keys} AS INTEGER))" if column.type == "DATE" else f"CAST({keys} AS {column.type})"
    )
    create = f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS SELECT {typed} AS k, unnest(flatten([{numbers}])) AS r0"
    value, at = column.reference, order.literal
    key = (
        f"CASE WHEN {value} BETWEEN {at(first)} AND {at(last)} THEN {value} WHEN {value} > {at(last)} "
        f"THEN {at(last + 1)} WHEN {value} IS NULL THEN {at(first - 2)} ELSE {at(first - 1)} END"
    )
    return Lookup(name, create, key)


def _by_slot(regions: Regions, order: Ordering, name: str) -> Lookup | None:
    """A key for what lies before the first cut, one for every slot of a grid, one for the rest, one for NULL."""
    grid, pieces = slot_grid(order, regions.cuts), regions.region_of_piece
    if grid is None:
        return None
    ends = [((), 0), *zip(grid.inside, grid.below(), strict=True), ((), len(regions.cuts))]
    columns = [
        f"unnest([{', '.join(str(pieces[below]) for _, below in ends)}, {regions.null_region}]::INTEGER[]) AS r0"
    ]
    for i in range(grid.most):
        cuts = [grid.literals[held[i]] if i < len(held) else "NULL" for held, _ in ends]
        after = [str(pieces[below + i + 1]) if i < len(held) else "NULL" for held, below in ends]
        columns.append(f"unnest([{', '.join(cuts)}, NULL]) AS c{i + 1}")
        columns.append(f"unnest([{', '.join(after)}, NULL]::INTEGER[]) AS r{i + 1}")
    keys = f"unnest(range({len(ends) + 1})) AS k"
    create = f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS SELECT {', '.join([keys, *columns])}"
    value = regions.column.reference
    key = (
        f"CASE WHEN {value} < {grid.literals[0]} THEN 0 WHEN {value} >= {grid.literals[-1]} THEN {len(ends) - 1} "
        f"WHEN {value} IS NULL THEN {len(ends)} ELSE {grid.slot(value)} END"
    )
    return Lookup(name, create, f"CAST({key} AS BIGINT)", value, grid.most)
