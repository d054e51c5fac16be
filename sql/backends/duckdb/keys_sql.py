"""What the rows of a scan are grouped by, as DuckDB SQL.

Columns with a few regions make one number together, premultiplied, so that it takes additions only. A column with a
table of regions (``lookups``) is a key of its own: its region, or, where the keys of all columns are few, the key of
the table, and groups are joined with the table in place of rows. The order of the shares of summed columns
(``sorted_shares``) is part of the number, or another key.

DuckDB knows the least and the greatest value of each of these keys, from constants of the batch and from statistics of
the columns, and counts groups by position where there are not too many positions; with its optimizer off it hashes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...scan import Scan
from ...sorted_shares import is_grouped, most_groups, pairs
from .lookups import Lookup, lookup
from .regions_sql import number_sql, region_sql
from .settings import compares_only

_FEW_KEYS = 1 << 12
_FEW_SUMMED = 4
"""Of so many summed columns the order is found by CASE, which has statistics."""
_LARGEST = 1 << 30


def lookups(scan: Scan) -> dict[int, Lookup]:
    """The tables that a scan joins, by the number of the column.

    Where rows of a unit are bounded, one number is carried through that, and tables would be joined before.
    """
    plain = compares_only(scan) and scan.table.privacy_unit is None
    found = {i: lookup(regions, i, by_position=plain) for i, regions in enumerate(scan.regions)}
    return {i: table for i, table in found.items() if table is not None}


def joined(found: dict[int, Lookup]) -> str:
    """The joins with the tables, by the keys of the rows."""
    return " ".join(f"JOIN {table.place} l{i} ON g{i} = l{i}.k" for i, table in found.items())


def by_order(scan: Scan) -> bool:
    """Whether the scan groups rows by the order of their shares: see ``Scan.in_cells_by_order``.

    A NULL has the share 0 and stands behind the others, so the orders with e of d columns NULL are (d - e)! in each of
    "d choose e" ways, less than 3 · d! in all: whether a summed column is NULL triples the groups at most. Where totals
    are all that is asked for there is one order, that of the totals.
    """
    if scan.totals:
        return True
    summed = {column.column.reference for column in scan.summed}
    points = math.prod(r.count for r in scan.regions if r.cuts or r.column.reference not in summed)
    return is_grouped(len(scan.summed), 3 * points)


@dataclass(frozen=True, eq=False)
class Keys:
    """The keys of a scan's rows.

    Guarantee. Every row has one value of every key, never NULL, and belongs to one group; the group has the row's
    region in each column. Nothing in them can fail: see ``compares_only``.
    """

    scan: Scan

    @cached_property
    def _found(self) -> dict[int, Lookup]:
        return lookups(self.scan)

    @cached_property
    def _late(self) -> bool:
        """Whether groups, and not rows, are joined with the tables."""
        if not self._found or not compares_only(self.scan) or self.scan.table.privacy_unit is not None:
            return False
        keys = (self._found[i].keys if i in self._found else r.count for i, r in enumerate(self.scan.regions))
        return 0 < math.prod(keys) <= min(_FEW_KEYS, most_groups(len(self.scan.summed)))

    @cached_property
    def _strides(self) -> dict[int, int]:
        """What a region counts for in the common number, by the number of the column."""
        strides, size = {}, 1
        for i, regions in enumerate(self.scan.regions):
            if i in self.scan.idle:
                continue
            if i not in self._found and not regions.numbered and size * regions.count <= _LARGEST:
                strides[i], size = size, size * regions.count
        return strides

    @cached_property
    def _by_themselves(self) -> list[int]:
        """Columns whose region is a key of its own, found without a table."""
        apart = {*self._found, *self._strides, *self.scan.idle}
        return [i for i in range(len(self.scan.regions)) if i not in apart]

    @cached_property
    def _size(self) -> int:
        return math.prod(self.scan.regions[i].count for i in self._strides)

    @cached_property
    def _order(self) -> str:
        """How the order of the shares is found: not at all, in the common number, or as a key of its own."""
        count = len(self.scan.summed)
        if count < 2 or self.scan.totals or not by_order(self.scan):
            return ""
        return "n" if count <= _FEW_SUMMED and self._size << len(pairs(count)) <= _LARGEST else "z"

    @property
    def size(self) -> int | None:
        """How many values the common number has, where it is all that ``columns`` selects: no other key, no share."""
        return None if self._found or self._by_themselves or self.scan.summed else self._size

    def columns(self, shares: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """What is selected of the stored rows: keys, then what is needed to find regions, then the shares.

        (SQL, name) of each; one at least.
        """
        found, parts = self._found, []
        columns = [(table.key, f"g{i}") for i, table in found.items()]
        columns += [(table.value, f"v{i}") for i, table in found.items() if table.comparisons]
        for i, regions in enumerate(self.scan.regions):
            if i in self._strides:
                parts.append(number_sql(regions, range(0, regions.count * self._strides[i], self._strides[i])))
            elif i in self._by_themselves:
                columns.append((region_sql(regions), f"k{i}"))
        if parts:
            columns.append((" + ".join(parts), "n"))
        return [*columns, *shares] or [("1", "one")]

    def numbered(self, rows: str) -> str:
        """The rows with all keys, from those that have ``columns``."""
        found, count = self._found, len(self.scan.summed)
        others = [f"k{i}" for i in self._by_themselves]
        if self._strides:
            others.append("n")
        others += [f"f{i}" for i in range(count)]
        if found and not self._late:
            regions = [f"{table.number(f'l{i}', f'v{i}')} AS k{i}" for i, table in found.items()]
            rows = f"SELECT {', '.join([*regions, *others])} FROM ({rows}) {joined(found)}"  # noqa: S608
        if not self._order:
            return rows
        order = _order_sql(count, self._size if self._order == "n" else 1)
        if self._order == "n" and self._strides:
            order = f"n + {order}"
        shown = [name for name in self._names if name != self._order]
        shown += [f"f{i}" for i in range(count)]
        return f"SELECT {', '.join([*shown, f'{order} AS {self._order}'])} FROM ({rows})"  # noqa: S608

    @cached_property
    def _names(self) -> list[str]:
        """The keys of a group."""
        names = [
            f"g{i}" if self._late and i in self._found else "n" if i in self._strides else f"k{i}"
            for i in range(len(self.scan.regions))
            if i not in self.scan.idle
        ]
        return list(dict.fromkeys([*names, *([self._order] if self._order else [])]))

    def grouped(self, rows: str, counted: Sequence[str]) -> str:
        """The groups: the region of each in every column, the number of its order, and what is counted of it."""
        names = self._names
        tail = f" GROUP BY {', '.join(names)}" if names else ""
        groups = f"SELECT {', '.join([*names, *counted])} FROM ({rows}){tail}"  # noqa: S608
        shown = []
        for i, regions in enumerate(self.scan.regions):
            if i in self._strides:
                shown.append(f"n // {self._strides[i]} % {regions.count} AS k{i}")
            elif i in self.scan.idle:
                shown.append(f"0 AS k{i}")
            else:
                shown.append(f"l{i}.r0 AS k{i}" if self._late and i in self._found else f"k{i}")
        if by_order(self.scan):
            shown.append({"": "0 AS z", "z": "z", "n": f"n // {self._size} AS z"}[self._order])
        shown += [f"s{i}" for i in range(len(counted))]
        tables = f" {joined(self._found)}" if self._late else ""
        return f"SELECT {', '.join(shown)} FROM ({groups}){tables}"  # noqa: S608


def _order_sql(count: int, stride: int) -> str:
    """The number of the order of the shares (``sorted_shares``), a bit for each pair of them, times a stride.

    Few bits are CASEs, which have statistics. Many are found faster as the sign of a difference; shares lie between 0
    and 2^30, so that none overflows.
    """
    bits = [(stride << bit, f"f{i}", f"f{j}") for bit, (i, j) in enumerate(pairs(count))]
    if count <= _FEW_SUMMED:
        return " + ".join(f"CASE WHEN {one} < {other} THEN {bit} ELSE 0 END" for bit, one, other in bits)
    return " | ".join(f"((({one} - {other}) >> 31) & {bit})" for bit, one, other in bits)
