"""The factors of aggregates: what their conditions and keys say of each axis of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tacit.errors import InternalError, LimitError

from .conjunction import Condition, mentioned
from .digits import Factor, Rows
from .labels import Floats, Integers, Labels
from .parse import Limits
from .parts import MixedColumns, Parts
from .predicate import ColumnQuestion, Predicate, evaluate, where_true
from .product_scan import grid_lengths
from .regions import Regions
from .scan import SummedColumn
from .truths import Truth

Columns = tuple[Regions, ...] | SummedColumn
WIDEST_FUSED = 4096
"""Points of an axis that is the grid of several columns."""
LONG = 2048
"""Points of an axis of one column, beyond which factors are kept as labels and not as matrices."""


class Axes:
    """The axes of a table: columns that a condition or a key mixes are one."""

    def __init__(
        self, regions: Sequence[Regions], summed: Sequence[SummedColumn], parts: Sequence[Parts], table: str
    ) -> None:
        mixed = MixedColumns(regions)
        self._of_key: dict[int, frozenset[str]] = {}
        used: set[str] = set()
        for one in parts:
            for columns in (*(c.columns for c in one.conditions), *map(self.columns_of_key, one.keys)):
                used |= columns
                mixed.join(columns)
        members: dict[str, list[Regions]] = {}
        for r in regions:
            if r.column.name in used:
                members.setdefault(mixed.leader(r.column.name), []).append(r)
        sums = {one.summed for one in parts}
        self.axes: list[Columns] = [tuple(fused) for fused in members.values()]
        self.axes += [m for m in summed if m.name in sums]
        self._number: dict[str, int] = {}
        self.of_sum: dict[str, int] = {}
        for number, axis in enumerate(self.axes):
            if isinstance(axis, SummedColumn):
                self.of_sum[axis.name] = number
                continue
            self._number |= {r.column.name: number for r in axis}
            points = math.prod(r.count for r in axis)
            if len(axis) > 1 and points > WIDEST_FUSED:
                raise LimitError(
                    f"conditions that mix columns cut table {table} into {points:,} cells, more than {WIDEST_FUSED:,} "
                    f"({', '.join(f'{r.column.name} {r.count}' for r in axis)})",
                    hint="write OR over fewer columns at a time, or split the batch",
                )

    def columns_of_key(self, groups: tuple[Predicate, ...]) -> frozenset[str]:
        """The columns that a key's groups mention. Many aggregates have the same keys, so each is read once."""
        if id(groups) not in self._of_key:
            self._of_key[id(groups)] = frozenset().union(*map(mentioned, groups))
        return self._of_key[id(groups)]

    def of(self, columns: frozenset[str]) -> int:
        """The axis that holds these columns."""
        return self._number[next(iter(columns))]


class Factors:
    """Evaluates conditions and keys on the axes. Factors that are asked for again are the same array."""

    def __init__(self, axes: Axes, limits: Limits) -> None:
        self._axes = axes
        self._limits = limits
        self._entries = 0
        self._held: dict[Condition, Floats] = {}
        self._of_key: dict[int, Floats] = {}
        self._groups: dict[int, Integers] = {}
        self._factors: dict[object, tuple[Factor, NDArray[np.bool_]]] = {}
        self._places = {
            r.column.name: (place, r)
            for axis in axes.axes
            if not isinstance(axis, SummedColumn)
            for place, r in enumerate(axis)
        }

    def rows(self, parts: Parts, numbers: Integers) -> tuple[Rows | None, Integers]:
        """An aggregate's rows as a product over axes without views, and the numbers of those that are zero."""
        conditions: dict[int, list[Condition]] = {}
        keys: dict[int, list[int]] = {}
        for condition in parts.conditions:
            conditions.setdefault(self._axes.of(condition.columns), []).append(condition)
        for place, groups in enumerate(parts.keys):
            keys.setdefault(self._axes.of(self._axes.columns_of_key(groups)), []).append(place)
        order = sorted({*conditions, *keys})
        lengths = [len(groups) for groups in parts.keys]
        shuffled = [place for axis in order for place in keys.get(axis, ())]
        grid = numbers.reshape(lengths).transpose(shuffled) if lengths else numbers
        axes: list[int] = []
        factors: list[Factor] = []
        kept: list[NDArray[np.bool_]] = []
        for axis in order:
            of_axis = [parts.keys[place] for place in keys.get(axis, ())]
            factor, nonzero = self._factor(axis, conditions.get(axis, []), of_axis)
            kept.append(nonzero)
            if not (factor.is_everything if isinstance(factor, Labels) else len(factor) == 1 and np.all(factor == 1)):
                axes.append(axis)
                factors.append(factor)
        rows = grid.reshape([len(nonzero) for nonzero in kept])
        if all(nonzero.all() for nonzero in kept):
            nothing = np.zeros(0, dtype=np.int64)
        else:
            counted = np.ix_(*kept)
            left_out = np.ones(rows.shape, dtype=np.bool_)
            left_out[counted] = False
            rows, nothing = rows[counted], rows[left_out]
        if parts.summed is not None:
            axis = self._axes.of_sum[parts.summed]
            summed = self._axes.axes[axis]
            assert isinstance(summed, SummedColumn)
            axes.append(axis)
            factors.append(self._ends(summed))
        unsplit = tuple((axis, -1, 0) for axis in axes)
        group = Rows(unsplit, tuple(factors), np.ascontiguousarray(rows).reshape(-1))
        return (group if group.rows.size else None), nothing.reshape(-1)

    def _ends(self, summed: SummedColumn) -> Factor:
        if summed not in self._factors:
            self._factors[summed] = np.array([[summed.low, summed.high]]), np.ones(1, dtype=np.bool_)
        return self._factors[summed][0]

    def _factor(
        self, axis: int, conditions: list[Condition], keys: list[tuple[Predicate, ...]]
    ) -> tuple[Factor, NDArray[np.bool_]]:
        """The rows of one axis that are not zero, and which those are."""
        known = (axis, frozenset(conditions), tuple(map(id, keys)))
        if known in self._factors:
            return self._factors[known]
        if self.is_long(axis):
            self._factors[known] = self._labels(axis, conditions, keys)
            return self._factors[known]
        factor = np.ones((1, self._size(axis)))
        for condition in conditions:
            factor = factor * self._condition(axis, condition)
        for groups in keys:
            of_key = self._key(axis, groups)
            self._spend(len(factor) * of_key.size)
            factor = (factor[:, None, :] * of_key[None, :, :]).reshape(-1, factor.shape[1])
        nonzero = np.asarray(factor.any(axis=1), dtype=np.bool_)
        factor = np.ascontiguousarray(factor[nonzero])
        self._spend(factor.size)
        self._factors[known] = factor, nonzero
        return self._factors[known]

    def is_long(self, axis: int) -> bool:
        """Whether factors over the axis are labels."""
        return len(self._shape(axis)) == 1 and self._size(axis) > LONG

    def _labels(
        self, axis: int, conditions: list[Condition], keys: list[tuple[Predicate, ...]]
    ) -> tuple[Labels, NDArray[np.bool_]]:
        labels = np.zeros(self._size(axis), dtype=np.int64)
        for condition in conditions:
            labels[~self._holds(axis, condition).astype(np.bool_)] = -1
        for groups in keys:
            group = self._group(axis, groups)
            labels = np.where((labels >= 0) & (group >= 0), labels * len(groups) + group, -1)
        factor, nonzero = Labels.of(labels, math.prod(map(len, keys)))
        self._spend(len(factor.starts))
        return factor, nonzero

    def _group(self, axis: int, groups: tuple[Predicate, ...]) -> Integers:
        """The group of a key that holds each point of a long axis; -1 for none."""
        if id(groups) not in self._groups:
            (regions,) = self._regions(axis)
            group = np.full(regions.count, -1, dtype=np.int64)
            for number, predicate in enumerate(groups):
                inside = where_true(predicate, regions)
                if (group[inside] >= 0).any():
                    raise InternalError("two groups of one key overlap")
                group[inside] = number
            self._groups[id(groups)] = group
        return self._groups[id(groups)]

    def _regions(self, axis: int) -> tuple[Regions, ...]:
        columns = self._axes.axes[axis]
        assert not isinstance(columns, SummedColumn)
        return columns

    def _spend(self, entries: int) -> None:
        self._entries += entries
        if self._entries > self._limits.entries:
            raise LimitError(
                f"the batch would need matrices of more than {self._limits.entries:,} entries",
                hint="split it into several batches, or name fewer constants",
            )

    def _size(self, axis: int) -> int:
        return math.prod(self._shape(axis))

    def _shape(self, axis: int) -> tuple[int, ...]:
        return grid_lengths(self._axes.axes[axis])

    def _condition(self, axis: int, condition: Condition) -> Floats:
        """1 at the points of the axis where the condition holds."""
        if condition not in self._held:
            self._held[condition] = self._holds(axis, condition).astype(np.float64)
        return self._held[condition]

    def _holds(self, axis: int, condition: Condition) -> Truth:
        shape = self._shape(axis)
        holds = condition.holds(evaluate(condition.predicate, lambda asks: self._asked(asks, len(shape))))
        return np.broadcast_to(holds, shape).reshape(-1)

    def _key(self, axis: int, groups: tuple[Predicate, ...]) -> Floats:
        if id(groups) not in self._of_key:
            self._spend(len(groups) * self._size(axis))
            of_key = np.zeros((len(groups), self._size(axis)))
            for row, predicate in enumerate(groups):
                of_key[row] = self._condition(axis, Condition(predicate))
            if np.any(of_key.sum(axis=0) > 1):
                raise InternalError("two groups of one key overlap")
            self._of_key[id(groups)] = of_key
        return self._of_key[id(groups)]

    def _asked(self, asks: ColumnQuestion, dimensions: int) -> Truth:
        place, regions = self._places[asks.attribute]
        shape = [1] * dimensions
        shape[place] = regions.count
        return regions.truths[asks.question].reshape(shape)
