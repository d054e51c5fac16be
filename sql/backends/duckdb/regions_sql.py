"""The region that a value lies in, as a DuckDB expression.

A region for each of several whole numbers in a row is computed. A few cuts are a balanced tree of comparisons. Many
cuts on a line of numbers or dates are looked up: an even grid over the line gives each value a slot, a constant list
gives each slot the pieces that can lie in it, and one or two exact comparisons decide. The tree costs a comparison per
cut for every vector of rows, the lookup the same for 10 cuts as for 1,000. Beyond, see ``search_sql``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...ordering import Cut, Ordering
from .scratch import fold_list
from .search_sql import search_sql, step_sql

if TYPE_CHECKING:
    from ...regions import Regions

TREE = 24
"""Up to so many cuts the tree is faster."""
_STEPPED = 3
"""From so many values in a row on, a number that grows with the value is computed."""
_NARROW = ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER")
"""Whole numbers whose differences all fit a BIGINT."""
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
    null = int(numbers[regions.null_region])
    if is_stepped(regions.column.type, cuts, pieces):
        return _stepped(column, cuts, pieces, null)
    number = _piece(column, regions.column.type, regions.order, cuts, pieces)
    return number if number == str(null) else f"CASE WHEN {column} IS NULL THEN {null} ELSE {number} END"


def _piece(column: str, type_: str, order: Ordering | None, cuts: Sequence[Cut], region: Sequence[int]) -> str:
    """The region of a value that is not NULL."""
    if order is None or len(cuts) <= TREE:
        return _tree(column, order, cuts, region)
    if len(cuts) > _SEARCH:
        return step_sql(column, type_, order, cuts, region) or search_sql(column, type_, order, cuts, region)
    looked_up = _lookup(column, order, cuts, region) if order.kind in ("number", "moment") else None
    return looked_up or _tree(column, order, cuts, region)


def is_stepped(type_: str, cuts: Sequence[Cut], region: Sequence[int]) -> bool:
    """Whether the cuts are whole numbers in a row, each with a region of its own whose number grows evenly."""
    inside = region[1:-1]
    if type_ not in _NARROW or len(inside) < _STEPPED or cuts[-1] - cuts[0] != len(inside):
        return False
    return len({after - before for before, after in itertools.pairwise(inside)}) == 1


def _stepped(column: str, cuts: Sequence[Cut], region: Sequence[int], null: int) -> str:
    """The region of a whole number, computed: as a BIGINT, so that no product overflows, guarded or not."""
    first, step = cuts[0], region[2] - region[1]
    number = f"CAST({column} AS BIGINT)" if step == 1 else f"CAST({column} AS BIGINT) * {step}"
    if offset := region[1] - first * step:
        number += f" + {offset}"
    others = [f"WHEN {column} < {first} THEN {region[0]} "] if region[0] != region[-1] else []
    others += [f"WHEN {column} IS NULL THEN {null} "] if null != region[-1] else []
    inside = f"{column} BETWEEN {first} AND {cuts[-1] - 1}"
    return f"CASE WHEN {inside} THEN {number} {''.join(others)}ELSE {region[-1]} END"


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


@dataclass(frozen=True)
class SlotGrid:
    """An even grid over a line of numbers or moments, and the cuts that lie in each of its slots.

    A slot is computed in floating point and may be off by a little, but it is a monotone function of the value, and
    DuckDB computes the slots of the cuts by the same expression: a cut in a lower slot is at most the value, a cut in a
    higher one is above it, and those in the value's slot are compared exactly. So rounding cannot misplace a value.
    """

    order: Ordering
    literals: Sequence[str]
    """The cuts, ascending."""
    inside: Sequence[Sequence[int]] = ()
    """The numbers of the cuts in each slot."""

    def slot(self, value: str) -> str:
        """SQL for the slot of a value between the first and the last cut, from 1 on; NULL for NULL."""
        low, high = (_as_double(literal, self.order) for literal in (self.literals[0], self.literals[-1]))
        # NULL where the place is no INTEGER, which no value between the cuts is if the cuts' own places are
        return f"TRY_CAST(({_as_double(value, self.order)} - {low}) * ({_SLOTS - 1} / ({high} - {low})) + 1 AS INTEGER)"

    def below(self) -> list[int]:
        """How many cuts lie in lower slots, for each slot."""
        return [0, *itertools.accumulate(map(len, self.inside))][:-1]

    @property
    def most(self) -> int:
        """How many cuts a slot has at most."""
        return max(map(len, self.inside))


def slot_grid(order: Ordering, cuts: Sequence[Cut]) -> SlotGrid | None:
    """The grid over some cuts; None where too many lie in one slot."""
    grid = SlotGrid(order, [order.literal(cut) for cut in cuts])
    slots = fold_list([grid.slot(literal) for literal in grid.literals])
    if slots is None or any(not isinstance(s, int) for s in slots):
        return None
    inside: list[list[int]] = [[] for _ in range(_SLOTS)]
    for number, place in enumerate(slots):
        inside[place - 1].append(number)
    grid = replace(grid, inside=inside)
    return grid if grid.most <= _COMPARISONS else None


def _lookup(column: str, order: Ordering, cuts: Sequence[Cut], region: Sequence[int]) -> str | None:
    """The number of cuts below a value's slot, and exact comparisons with the cuts inside it."""
    grid = slot_grid(order, cuts)
    if grid is None:
        return None
    first, last = grid.literals[0], grid.literals[-1]
    place = grid.slot(column)
    piece = f"list_extract({_list(map(str, grid.below()))}::INTEGER[], {place})"
    for k in range(grid.most):
        # A slot with fewer cuts is compared with the last cut of all, which no value that gets here has reached.
        cut = _list(grid.literals[held[k]] if k < len(held) else last for held in grid.inside)
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
