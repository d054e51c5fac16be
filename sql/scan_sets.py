"""Several scans of the same rows counted in one pass: which sets of columns to group by, and how to split the result.

A scan whose columns are among another's is not grouped for: adding the other's points up gives its own, exactly. What
remains are the largest sets, and one statement with GROUPING SETS counts them all. Scans that sum something are counted
apart from those that do not, so that a sum is not computed for every set of columns that is merely counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.errors import InternalError

from .regions import Regions, multiplier
from .scan import Scan, SummedColumn, capped

Integers = NDArray[np.int64]

_MOST_SETS = 128
"""Grouping sets of one statement: each is a table of groups in the engine's memory."""


@dataclass(frozen=True, eq=False)
class SetStatement:
    """One statement: group the rows by each of some sets of columns, and sum in each."""

    rows: Scan
    """Which rows, with the regions of all columns and all summed columns; its cells mean nothing."""
    sets: tuple[tuple[int, ...], ...]
    """The columns of each grouping set, by number. None is part of another."""
    sums: tuple[tuple[int, ...], ...]
    """The sets of summed columns: a sum for each corner of their clamps; of no column, the number of rows."""


@dataclass(frozen=True, eq=False)
class ScanSets:
    """Scans of the same rows, of which all sum something or none does."""

    rows: Scan
    wanted: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """The columns and the summed columns of each scan, by ascending numbers."""
    scans: tuple[Scan, ...]

    @property
    def statements(self) -> Iterator[SetStatement]:
        """What to run: a group for each point of a set that any row has, NULL for the columns that are not in the set,
        then the sums."""
        largest: list[frozenset[int]] = []
        for columns in sorted(dict.fromkeys(map(frozenset, (columns for columns, _ in self.wanted))), key=_by_size):
            if not any(columns <= other for other in largest):
                largest.append(columns)
        sums = tuple(dict.fromkeys(summed for _, summed in self.wanted))
        for start in range(0, len(largest), _MOST_SETS):
            sets = tuple(tuple(sorted(columns)) for columns in largest[start : start + _MOST_SETS])
            yield SetStatement(self.rows, sets, sums)

    def split(self, results: Sequence[tuple[SetStatement, Sequence[NDArray[Any]]]]) -> list[Integers]:
        """The integer vector x of every scan, from the columns that each statement returned."""
        points = _Points(self.rows)
        for statement, columns in results:
            points.add(statement, columns)
        vectors: dict[int, Integers] = {}
        order = sorted(range(len(self.scans)), key=lambda i: -len(self.wanted[i][0]))  # so that small ones find parents
        for number in order:
            vectors[number] = self._vector(number, points)
        return [vectors[number] for number in range(len(self.scans))]

    def _vector(self, number: int, points: _Points) -> Integers:
        scan, (columns, summed) = self.scans[number], self.wanted[number]
        amounts = points.of(columns, summed)
        place = {_identity(self.rows.regions[c]): i for i, c in enumerate(columns)}
        end = {self.rows.summed[m]: len(columns) + i for i, m in enumerate(summed)}
        order = [*(place[_identity(r)] for r in scan.regions), *(end[m] for m in scan.summed)]
        return scan.of_points(amounts.transpose(order))


def joint_scans(scans: Sequence[Scan]) -> list[tuple[ScanSets, list[int]]]:
    """Scans put together that can be counted together, and the number of each of them."""
    together: dict[object, list[int]] = {}
    for number, scan in enumerate(scans):
        together.setdefault((scan.table, scan.private, scan.joins, bool(scan.summed)), []).append(number)
    return [(_put_together([scans[n] for n in numbers]), numbers) for numbers in together.values()]


def _put_together(scans: Sequence[Scan]) -> ScanSets:
    regions: dict[object, tuple[int, Regions]] = {}
    summed: dict[SummedColumn, int] = {}
    for scan in scans:
        for r in scan.regions:
            regions.setdefault(_identity(r), (len(regions), r))
        for m in scan.summed:
            summed.setdefault(m, len(summed))
    wanted = [
        (
            tuple(sorted(regions[_identity(r)][0] for r in scan.regions)),
            tuple(sorted(summed[m] for m in scan.summed)),
        )
        for scan in scans
    ]
    rows = replace(
        scans[0],
        columns=slice(0, 0),
        regions=tuple(r for _, r in regions.values()),
        summed=tuple(summed),
        cell_of=np.zeros(0, dtype=np.int64),
    )
    return ScanSets(rows, tuple(wanted), tuple(scans))


def _identity(regions: Regions) -> object:
    """Equal for columns cut alike."""
    column = regions.column
    return column.reference, column.type, regions.cuts, regions.region_of_piece, regions.count


def _by_size(columns: frozenset[int]) -> tuple[int, list[int]]:
    return -len(columns), sorted(columns)


@dataclass(frozen=True, eq=False)
class _Points:
    """What lies at every point of the sets of columns counted so far."""

    rows: Scan
    known: dict[tuple[frozenset[int], tuple[int, ...]], Integers] = field(default_factory=dict)

    def add(self, statement: SetStatement, columns: Sequence[NDArray[Any]]) -> None:
        """Put the groups of a statement where they belong. A region is never NULL, so NULL tells the sets apart."""
        width = len(self.rows.regions)
        keys, sums = columns[:width], [np.asarray(column, dtype=np.int64) for column in columns[width:]]
        signature = np.zeros(len(sums[0]), dtype=np.uint64)
        for number, key in enumerate(keys):
            signature += multiplier(number) * ~np.ma.getmaskarray(key)
        signatures = [self._signature(chosen) for chosen in statement.sets]
        if len(set(signatures)) < len(signatures):
            raise InternalError("two sets of columns look alike")
        for chosen, wanted in zip(statement.sets, signatures, strict=True):
            (held,) = np.nonzero(signature == wanted)
            shape, place = self._shape(chosen), np.zeros(len(held), dtype=np.int64)
            for column, count in zip(chosen, shape, strict=True):
                place = place * count + np.ma.getdata(keys[column])[held].astype(np.int64)
            first = 0
            for summed in statement.sums:
                corners = 1 << len(summed)
                amounts = np.zeros((math.prod(shape), corners), dtype=np.int64)
                for corner in range(corners):
                    amounts[place, corner] = sums[first + corner][held]
                first += corners
                self.known[frozenset(chosen), summed] = amounts.reshape(*shape, *(2 for _ in summed))

    def of(self, columns: tuple[int, ...], summed: tuple[int, ...]) -> Integers:
        """The points of a set of columns, from the least of those that hold it."""
        wanted = frozenset(columns)
        if (wanted, summed) not in self.known:
            more = (wanted | {other} for other in range(len(self.rows.regions)) if other not in wanted)
            holders = [chosen for chosen in more if (chosen, summed) in self.known]
            holders = holders or [chosen for chosen, other in self.known if other == summed and wanted < chosen]
            holder = min(holders, key=lambda chosen: math.prod(self._shape(sorted(chosen))))
            left_out = tuple(i for i, column in enumerate(sorted(holder)) if column not in wanted)
            amounts = self.known[holder, summed]
            upper, lower = (amounts >> 32).sum(axis=left_out), (amounts & 0xFFFFFFFF).sum(axis=left_out)
            self.known[wanted, summed] = capped(upper, lower)
        return self.known[wanted, summed]

    def _shape(self, columns: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.rows.regions[column].count for column in columns)

    def _signature(self, columns: Sequence[int]) -> int:
        return sum(int(multiplier(column)) for column in columns) & 0xFFFFFFFFFFFFFFFF
