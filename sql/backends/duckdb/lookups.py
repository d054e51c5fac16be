"""Tables that hold the region of every value of a short line, or of every slot of a long one.

A join with such a table costs the same for 100 cuts as for 1,000, and less than a tree of comparisons or a list in the
text of the scan (benchmarks/scan.py). A value outside the table is given a key inside it first, so that every row finds
exactly one row of it, whatever the row holds: nothing is left out and nothing is doubled.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .regions_sql import TREE, is_stepped, slot_grid
from .text import quote

if TYPE_CHECKING:
    from ...ordering import Ordering
    from ...regions import Regions

_LONGEST = 1 << 16
_SHORT = 64
"""A line of so few values is not made longer than by one at each end: rows are then grouped by its keys."""
_FEW = 3
"""Up to so many cuts comparisons are faster than a table that is read by position."""
_MOST_TEXTS = 4096
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
    keys: int = 0
    """How many keys the table has, where a key alone decides."""

    def number(self, alias: str, value: str) -> str:
        """SQL for the region, from a row of the table and the value."""
        tests = [f"WHEN {value} >= {alias}.c{i} THEN {alias}.r{i}" for i in range(self.comparisons, 0, -1)]
        return f"CASE {' '.join(tests)} ELSE {alias}.r0 END" if tests else f"{alias}.r0"

    @property
    def place(self) -> str:
        """What stands in FROM."""
        return f"temp.main.{quote(self.name)}"


def lookup(regions: Regions, number: int, *, by_position: bool = False) -> Lookup | None:
    """The table for a column's regions; None where a few comparisons do, or none can be made.

    ``by_position``: DuckDB knows the ends of the keys, and reads the table without hashing.
    """
    order, few = regions.order, _FEW if by_position else TREE
    if regions.numbered or order is None or len(regions.cuts) <= few:
        return None
    if not by_position and is_stepped(regions.column.type, regions.cuts, regions.region_of_piece):
        return None
    name = f"tacit lookup {number}"
    if order.kind == "text":
        return _by_text(regions, order, name)
    if order.kind not in ("number", "moment"):
        return None
    return _by_value(regions, order, name) or _by_slot(regions, order, name)


def _by_value(regions: Regions, order: Ordering, name: str) -> Lookup | None:
    """A key for NULL, one for all that lies before the line, every value of the line, one for the rest."""
    column, cuts, pieces = regions.column, regions.cuts, regions.region_of_piece
    span = cuts[-1] - cuts[0] if column.type in _WHOLE else _LONGEST + 1
    if span > _LONGEST:
        return None
    around = (
        1 if span <= _SHORT else min(span, (_LONGEST - span) // 2)
    )  # most values are near the cuts, and those are found at once
    first, last = cuts[0] - around, cuts[-1] + around
    if order.least is not None and order.greatest is not None:
        first, last = max(first, order.least + 2), min(last, order.greatest - 1)
    if not first <= cuts[0] <= cuts[-1] <= last:
        return None
    edges = [first - 2, first - 1, first, *cuts, last + 1, last + 2]
    numbers = [regions.null_region, pieces[0], *pieces, pieces[-1]]
    # one text for all constants: a thousand of them are planned a hundred times as slowly
    listed = ", ".join(
        f"unnest(CAST('{list(items)}' AS BIGINT[])) AS {name}"
        for name, items in (("low", edges[:-1]), ("high", edges[1:]), ("r0", numbers))
    )
    typed = "(DATE '1970-01-01' + CAST(k AS INTEGER))" if column.type == "DATE" else f"CAST(k AS {column.type})"
    create = (
        f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS SELECT {typed} AS k, r0 "  # noqa: S608
        f"FROM (SELECT unnest(range(low, high)) AS k, CAST(r0 AS INTEGER) AS r0 FROM (SELECT {listed}))"
    )
    value, at = column.reference, order.literal if column.type == "DATE" else str  # its plain constants have statistics
    key = (
        f"CASE WHEN {value} BETWEEN {at(first)} AND {at(last)} THEN {value} WHEN {value} > {at(last)} "
        f"THEN {at(last + 1)} WHEN {value} IS NULL THEN {at(first - 2)} ELSE {at(first - 1)} END"
    )
    return Lookup(name, create, key, keys=last - first + 4)


def _by_text(regions: Regions, order: Ordering, name: str) -> Lookup | None:
    """A key for each listed text, one for all others, one for NULL; None where a text is compared by order.

    A cast to an ENUM of the texts finds the key by hashing, and DuckDB does so once for each entry of a dictionary that
    it stores the column with.
    """
    cuts, pieces = regions.cuts, regions.region_of_piece
    texts = sorted({text for text, _ in cuts})
    if len(texts) > _MOST_TEXTS or {pieces[0], *(pieces[bisect_right(cuts, (text, 1))] for text in texts)} != {
        pieces[0]
    }:
        return None
    numbers = [*(pieces[bisect_right(cuts, (text, 0))] for text in texts), pieces[0], regions.null_region]
    create = (
        f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS SELECT CAST(unnest(range({len(numbers)})) AS INTEGER) AS k, "
        f"unnest(CAST('{numbers}' AS INTEGER[])) AS r0"
    )
    value = regions.column.reference
    text = f"CAST({value} AS VARCHAR)" if regions.column.type.startswith("ENUM(") else value
    listed = f"TRY_CAST({text} AS ENUM({', '.join(order.literal((t, 0)) for t in texts)}))"
    found = f"coalesce(CAST(enum_code({listed}) AS INTEGER), {len(texts)})"
    key = f"CASE WHEN {value} IS NULL THEN {len(texts) + 1} ELSE {found} END"
    return Lookup(name, create, key, keys=len(numbers))


def _by_slot(regions: Regions, order: Ordering, name: str) -> Lookup | None:
    """A key for what lies before the first cut, one for every slot of a grid, one for the rest, one for NULL."""
    grid, pieces = slot_grid(order, regions.cuts), regions.region_of_piece
    if grid is None:
        return None
    ends = [((), 0), *zip(grid.inside, grid.below(), strict=True), ((), len(regions.cuts))]
    numbers: list[tuple[str, list[int | None]]] = [("r0", [*(pieces[below] for _, below in ends), regions.null_region])]
    for i in range(grid.most):
        held = [(inside[i] + 1, pieces[below + i + 1]) if i < len(inside) else (None, None) for inside, below in ends]
        numbers += [(f"i{i + 1}", [place for place, _ in held]), (f"r{i + 1}", [after for _, after in held])]
    listed = ", ".join(
        f"unnest(CAST('[{', '.join('NULL' if n is None else str(n) for n in items)}]' AS INTEGER[])) AS {name}"
        for name, items in numbers
    )
    found = [f"list_extract([{', '.join(grid.literals)}], i{i}) AS c{i}" for i in range(1, grid.most + 1)]
    shown = ["k", *(f"r{i}" for i in range(grid.most + 1)), *found]
    keys = f"CAST(unnest(range({len(ends) + 1})) AS INTEGER) AS k"
    create = (
        f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS SELECT {', '.join(shown)} "  # noqa: S608
        f"FROM (SELECT {keys}, {listed})"
    )
    value = regions.column.reference
    key = (
        f"CASE WHEN {value} < {grid.literals[0]} THEN 0 WHEN {value} >= {grid.literals[-1]} THEN {len(ends) - 1} "
        f"WHEN {value} IS NULL THEN {len(ends)} ELSE {grid.slot(value)} END"
    )
    return Lookup(name, create, key, value, grid.most)
