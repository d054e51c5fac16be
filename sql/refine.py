"""The cells of a scan described without data, and the cells that several scans have in common.

A stored release knows its cells only through such a description. Two scans of one state of one table cut its columns
at different constants; cut at all of them, and every cell of either scan is a union of the cells of the common
refinement. What was measured over one can then be expressed over the other.

Sums refine like counts. A row's weights on the corners of the clamps are those of the only chain of corners that mixes
to its values, and leaving a summed column out of a chain leaves such a chain: so adding up over its two ends gives
exactly what a scan without that column counts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.errors import InternalError, LedgerError

from .catalog import Column, Table
from .derived import identity
from .names import folded
from .ordering import Cut
from .product_scan import ProductScan
from .scan import Join, Scan

Integers = NDArray[np.int64]

_DAMAGED = "a stored release is damaged and cannot be read"
_LARGEST = 1 << 24


@dataclass(frozen=True)
class Axis:
    """One column cut into regions.

    It says of every row which region it is in, NULL and what breaks a declaration included (see ``regions``). So axes
    of one column that were cut under different declarations are compared exactly too: a row that is NULL is in the last
    region of one and in the first of the other, and the common cells keep such rows apart.

    A summed column is an axis without cuts: its low end takes the place of the one piece, its high end that of NULL.
    """

    key: str
    """What the axis is, whatever a batch calls it: equal for equal expressions over equal tables."""
    cuts: tuple[Cut, ...]
    region_of_piece: tuple[int, ...]
    count: int
    nullable: bool = True
    """Whether NULL has a region of its own, the last; otherwise it is where the line begins."""

    @property
    def null_region(self) -> int:
        """The region of NULL."""
        return self.count - 1 if self.nullable else self.region_of_piece[0]

    def region_after(self, cut: Cut | None) -> int:
        """The region of the values from a cut on; None is the beginning of the line."""
        return self.region_of_piece[0 if cut is None else bisect_right(self.cuts, cut)]


@dataclass(frozen=True, eq=False)
class Grid:
    """A scan's cells: the axes, and the cell of every point of their grid (-1 for what was not counted)."""

    subject: str
    """Which rows were counted: the table, its version, its privacy unit and bound. Other subjects never mix."""
    axes: tuple[Axis, ...]
    cell_of: Integers = field(repr=False)
    cells: int
    factors: tuple[tuple[int, ...], ...] = ()
    """Where the cells are a product: the axes that each of its factors is made of (``Scan.factors``). Factors that are
    digits of one axis are made of the same one."""

    @cached_property
    def key(self) -> bytes:
        """Equal for grids with the same cells in the same order."""
        digest = hashlib.sha256(repr((self.subject, self.axes, self.cells)).encode())
        digest.update(np.ascontiguousarray(self.cell_of, dtype="<i8").tobytes())
        return digest.digest()

    @cached_property
    def places(self) -> frozenset[Any]:
        """Where it cuts the table: its axes, and every (axis, cut)."""
        return frozenset(axis.key for axis in self.axes) | {(axis.key, cut) for axis in self.axes for cut in axis.cuts}

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values."""
        packed = zlib.compress(np.ascontiguousarray(self.cell_of, dtype="<i8").tobytes(), 1)
        return {
            "subject": self.subject,
            "axes": [_axis_to_json(axis) for axis in self.axes],
            "cell_of": base64.b64encode(packed).decode("ascii"),
            "cells": self.cells,
            **({"factors": [list(axes) for axes in self.factors]} if self.factors else {}),
        }

    @classmethod
    def from_json(cls, stored: Any) -> Grid:
        """What ``to_json`` wrote; LedgerError for anything else."""
        try:
            axes = tuple(
                Axis(key, tuple(tuple(c) if isinstance(c, list) else c for c in cuts), tuple(regions), count, *nullable)
                for key, cuts, regions, count, *nullable in stored["axes"]
            )
            points = math.prod(axis.count for axis in axes)
            if not 0 < points <= _LARGEST or not all(_is_sound(axis) for axis in axes):
                raise LedgerError(_DAMAGED)
            inflate = zlib.decompressobj()
            data = inflate.decompress(base64.b64decode(stored["cell_of"], validate=True), points * 8 + 1)
            cell_of = np.frombuffer(data, dtype="<i8").astype(np.int64)
            cells = stored["cells"]
            if cell_of.shape != (points,) or type(cells) is not int or not isinstance(stored["subject"], str):
                raise LedgerError(_DAMAGED)
            if cell_of.min() < -1 or cell_of.max() >= cells:
                raise LedgerError(_DAMAGED)
            factors = tuple(tuple(factor) for factor in stored.get("factors", ()))
            if factors and {place for factor in factors for place in factor} != set(range(len(axes))):
                raise LedgerError(_DAMAGED)
            return cls(stored["subject"], axes, cell_of, cells, factors)
        except (KeyError, TypeError, ValueError, zlib.error):
            raise LedgerError(_DAMAGED) from None


def _axis_to_json(axis: Axis) -> list[Any]:
    """Earlier versions knew no axis without a region for NULL, so only such a one says what it is."""
    described = [axis.key, list(axis.cuts), list(axis.region_of_piece), axis.count]
    return described if axis.nullable else [*described, False]


def _is_sound(axis: Axis) -> bool:
    return (
        isinstance(axis.key, str)
        and type(axis.count) is int
        and type(axis.nullable) is bool
        and len(axis.region_of_piece) == len(axis.cuts) + 1
        and all(type(r) is int and 0 <= r < axis.count - axis.nullable for r in axis.region_of_piece)
        and all(a < b for a, b in zip(axis.cuts, axis.cuts[1:], strict=False))
    )


def grid_of(scan: Scan) -> Grid:
    """The description of a scan's cells. It holds constants of the batch and nothing of the data."""
    joins = dict(scan.joins)
    axes = [Axis(_column_key(r.column, joins), r.cuts, r.region_of_piece, r.count, r.nullable) for r in scan.regions]
    axes += [Axis(_key("sum", _column_key(m.column, joins), m.low, m.high), (), (0,), 2) for m in scan.summed]
    if len({axis.key for axis in axes}) < len(axes):
        raise InternalError("two columns of one scan have one name")
    return Grid(subject_of(scan), tuple(axes), scan.cell_of.reshape(-1), scan.cells, scan.factors)


def subject_of(scan: Scan | ProductScan) -> str:
    """Equal for scans that count the same rows: the table's state, and the rows kept of each privacy unit.

    Public tables joined to it add columns and no row, so they are no part of it.
    """
    private = [(label, _table_key(j.table), j.on, *(["outer"] if j.outer else [])) for label, j in scan.private]
    return hashlib.sha256(_key(_table_key(scan.table), private).encode()).hexdigest()


def _table_key(table: Table) -> Any:
    columns = [(column.name, column.type) for column in table.columns]
    described = [folded(table.name), table.version, table.privacy_unit, table.max_rows_per_unit, columns]
    return described if table.rows is None and not table.unit_path else [*described, identity(table)]


def _column_key(column: Column, joins: dict[str, Join]) -> str:
    """A label of a public join stands for that join; in an expression, the labels that it mentions do."""
    if column.expression:
        mentioned = {label: _join_key(label, joins) for label in joins if label in column.labels}
        return _key("expression", column.expression, column.type, mentioned)
    if column.label in joins:
        return _key("joined", _join_key(column.label, joins), folded(column.own_name), column.type)
    return _key("column", folded(column.name), column.type)


def _join_key(label: str, joins: dict[str, Join]) -> Any:
    """The left side of a join may be a column of a join before it."""
    join = joins[label]
    before = {other: _join_key(other, joins) for other in joins if other in join.after}
    described = [folded(join.table.name), join.table.version, join.on, before]
    return described if join.table.rows is None and not join.unit else [*described, identity(join.table), join.unit]


def _key(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=True)


@dataclass(frozen=True, eq=False)
class Refinement:
    """The common cells of one or several grids of one subject."""

    axes: dict[str, Axis] = field(repr=False)
    cell_of: Integers = field(repr=False)
    cells: int
    history: tuple[tuple[Integers, Integers], ...] = field(default=(), repr=False)
    """For each grid put in after the first, and each common cell then: the common cell before, and the grid's cell."""

    @property
    def origins(self) -> tuple[Integers, ...]:
        """For each grid put in, the cell of it that holds each common cell; -1 where it counts nothing."""
        origins: list[Integers] = []
        now = np.arange(self.cells, dtype=np.int64)
        for parent, cell in reversed(self.history):
            origins.append(np.append(cell, -1)[now])
            now = np.append(parent, -1)[now]
        return (now, *reversed(origins))

    @classmethod
    def of(cls, grid: Grid) -> Refinement:
        """A grid by itself."""
        axes = {axis.key: axis for axis in grid.axes}
        return cls(axes, grid.cell_of, grid.cells)

    def refined(self, grid: Grid, *, points: int, cells: int) -> Refinement | None:
        """With one more grid put in; ``None`` if that takes more points or cells than these."""
        others = {axis.key: axis for axis in grid.axes}
        keys = list(dict.fromkeys([*self.axes, *others]))
        joint = [joint_axis(key, self.axes.get(key), others.get(key)) for key in keys]
        shape = tuple(axis.count for axis, _, _ in joint)
        if math.prod(shape) > points:
            return None
        old = looked_up(self.cell_of, [self.axes[key].count if key in self.axes else 1 for key in keys],
                         [before for _, before, _ in joint])  # fmt: skip
        new = looked_up(_in_order(grid, keys), [others[key].count if key in others else 1 for key in keys],
                         [added for _, _, added in joint])  # fmt: skip
        codes, first, inverse = np.unique(
            (old + 1) * (grid.cells + 1) + new + 1, return_index=True, return_inverse=True
        )
        nothing = int(codes[0] == 0)  # what neither counts is no cell
        first = first[nothing:]
        if len(first) > cells:
            return None
        return replace(
            self,
            axes={axis.key: axis for axis, _, _ in joint},
            cell_of=inverse.reshape(-1).astype(np.int64) - nothing,
            cells=len(first),
            history=(*self.history, (old[first], new[first])),
        )


@lru_cache(maxsize=4096)
def _coarser(fine: _SameCells, grid: _SameCells) -> Integers | None:
    common = Refinement.of(fine.grid).refined(grid.grid, points=len(fine.grid.cell_of), cells=fine.grid.cells)
    if common is None or common.cells > fine.grid.cells:
        return None
    fine_cell, other_cell = common.history[0]
    holder = np.full(fine.grid.cells, -1, dtype=np.int64)
    holder[fine_cell] = other_cell
    holder.setflags(write=False)  # the cache hands one array to all callers
    return holder


def union_of_cells(fine: Grid, grid: Grid) -> Integers | None:
    """For each cell of ``fine``, the cell of ``grid`` that holds it, -1 for none; None where ``grid`` cuts any of them.

    Cached: one batch is compared with many releases, several times.
    """
    if fine.key == grid.key:
        return np.arange(fine.cells, dtype=np.int64)
    if not grid.places <= fine.places:
        return None
    return _coarser(_SameCells(fine), _SameCells(grid))


@dataclass(frozen=True, eq=False)
class _SameCells:
    """A grid that is equal to another with the same cells."""

    grid: Grid

    def __hash__(self) -> int:
        return hash(self.grid.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameCells) and self.grid.key == other.grid.key


def joint_axis(key: str, a: Axis | None, b: Axis | None) -> tuple[Axis, Integers, Integers]:
    """The axis cut at the constants of both, and for each of its regions the region of either; 0 for no such axis."""
    cuts = sorted({*(a.cuts if a else ()), *(b.cuts if b else ())})
    starts: list[Cut | None] = [None, *cuts]
    pairs = [(a.region_after(start) if a else 0, b.region_after(start) if b else 0) for start in starts]
    number = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    null = (a.null_region if a else 0, b.null_region if b else 0)
    regions = [*number] if null == pairs[0] else [*number, null]
    axis = Axis(key, tuple(cuts), tuple(number[pair] for pair in pairs), len(regions), null != pairs[0])
    both = np.array(regions, dtype=np.int64)
    return axis, both[:, 0], both[:, 1]


def _in_order(grid: Grid, keys: Sequence[str]) -> Integers:
    """The grid's cells with its axes in the order of ``keys``."""
    place = {axis.key: i for i, axis in enumerate(grid.axes)}
    order = [place[key] for key in keys if key in place]
    return grid.cell_of.reshape([axis.count for axis in grid.axes] or [1]).transpose(order or [0]).reshape(-1)


def looked_up(cell_of: Integers, counts: Sequence[int], regions: Sequence[Integers]) -> Integers:
    """The cells of an old grid at every point of a finer one; ``regions`` gives the old region per axis."""
    index = np.zeros((1,) * max(len(counts), 1), dtype=np.int64)
    stride = 1
    for axis in reversed(range(len(counts))):
        shape = [1] * len(counts)
        shape[axis] = -1
        index = index + stride * regions[axis].reshape(shape)
        stride *= counts[axis]
    return cell_of[index.reshape(-1)]
