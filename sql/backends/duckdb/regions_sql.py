"""The region that a value lies in, as a DuckDB expression.

A few cuts are a balanced tree of comparisons. Many cuts on a line of numbers or dates are looked up: an even grid over
the line gives each value a slot, a constant list gives each slot the pieces that can lie in it, and one or two exact
comparisons decide. The tree costs a comparison per cut for every vector of rows, the lookup the same for 10 cuts as for
1,000. Beyond, see ``search_sql``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...ordering import Cut, Ordering
from .scratch import fold_list
from .search_sql import search_sql, step_sql

if TYPE_CHECKING:
    from ...regions import Regions

_TREE = 24
"""Up to so many cuts the tree is faster."""
_SEARCH = 1024
"""From so many on, it is computed or searched for by halving (``search_sql``)."""
_SLOTS = 4096
_COMPARISONS = 4
"""A slot that holds more cuts than this makes the tree the better choice."""


def region_sql(regions: Regions) -> str:
    """The number of the region of a column's value. Every value has one, NULL in a NOT NULL column included."""
    return regions.column.reference if regions.numbered else number_sql(regions, range(regions.count))


def number_sql(regions: Regions, numbers: Sequence[int]) -> str:
    """The number that is given to the region of a column's value. Never NULL, and it fails on no value.

    Cuts with one number on both sides are left out, so the text depends on the numbers and on no other cut.
    """
    pieces = [int(numbers[region]) for region in regions.region_of_piece]
    kept = [i for i in range(len(regions.cuts)) if pieces[i] != pieces[i + 1]]
    cuts, pieces = [regions.cuts[i] for i in kept], [pieces[i] for i in kept] + pieces[-1:]
    column = regions.column.reference
    if regions.column.type.startswith("ENUM("):
        column = f"CAST({column} AS VARCHAR)"
    number = _piece(column, regions.column.type, regions.order, cuts, pieces)
    null = int(numbers[regions.null_region])
    return number if number == str(null) else f"CASE WHEN {column} IS NULL THEN {null} ELSE {number} END"


def _piece(column: str, type_: str, order: Ordering | None, cuts: Sequence[Cut], region: Sequence[int]) -> str:
    """The region of a value that is not NULL."""
    if order is None or len(cuts) <= _TREE:
        return _tree(column, order, cuts, region)
    if len(cuts) > _SEARCH:
        return step_sql(column, type_, order, cuts, region) or search_sql(column, type_, order, cuts, region)
    looked_up = _lookup(column, order, cuts, region) if order.kind in ("number", "moment") else None
    return looked_up or _tree(column, order, cuts, region)


def _tree(column: str, order: Ordering | None, cuts: Sequence[Cut], region: Sequence[int]) -> str:
    """A balanced tree of comparisons with the cuts."""

    def between(first: int, last: int) -> str:
        if len(set(region[first : last + 1])) == 1:
            return str(region[first])
        middle = (first + last + 1) // 2
        assert order is not None
        test = order.at_or_after(column, cuts[middle - 1])
        return f"CASE WHEN {test} THEN {between(middle, last)} ELSE {between(first, middle - 1)} END"

    return between(0, len(cuts))


def _lookup(column: str, order: Ordering, cuts: Sequence[Cut], region: Sequence[int]) -> str | None:
    """A slot on an even grid, the number of cuts below the slot, and exact comparisons with the cuts inside it.

    The slot is computed in floating point and may be off by a little, but it is a monotone function of the value, and
    DuckDB computes the slots of the cuts by the same expression: a cut in a lower slot is at most the value, a cut in a
    higher one is above it, and those in the value's slot are compared exactly. So rounding cannot misplace a value.
    """
    literals = [order.literal(cut) for cut in cuts]
    first, last = literals[0], literals[-1]
    low, high = (f"{_as_double(literal, order)}" for literal in (first, last))

    def slot(value: str) -> str:
        share = f"({_as_double(value, order)} - {low}) / ({high} - {low})"
        return f"CAST(floor(least(1.0, greatest(0.0, {share})) * {_SLOTS - 1}) AS INTEGER) + 1"

    slots = fold_list([slot(literal) for literal in literals])
    if slots is None or any(not isinstance(s, int) for s in slots):
        return None
    inside: list[list[int]] = [[] for _ in range(_SLOTS + 1)]
    for number, place in enumerate(slots):
        inside[place].append(number)
    most = max(map(len, inside))
    if most > _COMPARISONS:
        return None
    below, total = [], 0
    for held in inside[1:]:
        below.append(total)
        total += len(held)
    place = slot(column)
    piece = f"list_extract({_list(map(str, below))}::INTEGER[], {place})"
    for k in range(most):
        # A slot with fewer cuts is compared with the last cut of all, which no value that gets here has reached.
        cut = _list(literals[held[k]] if k < len(held) else last for held in inside[1:])
        piece += f" + CAST({column} >= list_extract({cut}, {place}) AS INTEGER)"
    looked_up = f"list_extract({_list(map(str, region))}::INTEGER[], {piece} + 1)"
    return (
        f"CASE WHEN {column} < {first} THEN {region[0]} WHEN {column} >= {last} THEN {region[-1]} ELSE {looked_up} END"
    )


def _as_double(value: str, order: Ordering) -> str:
    """A monotone map of the line to DOUBLE; for moments the seconds since 1970."""
    return f"CAST(epoch({value}) AS DOUBLE)" if order.kind == "moment" else f"CAST({value} AS DOUBLE)"


def _list(items: Iterable[str]) -> str:
    return "[" + ", ".join(items) + "]"
