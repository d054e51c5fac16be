"""Aggregates over long axes as combinations of products over short ones.

The classes of a view are numbered 0, 1, …; written in digits, a number is a point of a grid of short axes, as 1234 is a
point of ten by ten by ten by ten. The count of every class is then a product of identities, one for each digit. And a
range of classes is a difference of two prefixes; the classes before 123 are those whose first digit is below 1, those
that begin with 1 and go on below 2, and those that begin with 12 and go on below 3: a product for each digit. So an
aggregate's row is one product row, or a sum of a few.

Guarantee. Every row of the table has one class, and so one value of each digit: it adds one unit to one point of each
grid. What is asked over digits are integers, and their norms are products of norms (``product_lattice``); numbers that
no class has are points that no row is at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .labels import Floats, Integers, Labels, first_points
from .views import View

_FEW_DIGITS, _SHORTEST = 2, 24
"""Of the numbers of groups; and the least that a digit of the numbers of a line has."""

_LARGE_GRID, _SPARSE = 1 << 16, 8
"""Product rows from which on a grid of digits must not have more than so many for each that is used."""

Factor = Floats | Labels
Axis = tuple[int, int, int]
"""An axis of the table, the number of one of its views (-1 without), and the place of the digit."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that are one product. Rows are numbered among all product rows of the table."""

    axes: tuple[Axis, ...]
    factors: tuple[Factor, ...] = field(repr=False)
    rows: Integers = field(repr=False)


@dataclass(frozen=True, eq=False)
class Digits:
    """A view in digits."""

    view: View
    sizes: tuple[int, ...]
    """Of every digit, the first one first; one for a short view."""

    @classmethod
    def of(cls, view: View, *, ranges: bool) -> Digits:
        """Short digits where ranges are asked, which are sums over a digit's values; else two, with the least waste."""
        if view.is_short:
            return cls(view, (view.classes,))
        count = max(2, round(math.log(view.classes) / math.log(_SHORTEST))) if ranges else _FEW_DIGITS
        sizes: list[int] = []
        left = view.classes
        for place in range(count - 1, 0, -1):
            about = left ** (1 / (place + 1))
            tried = range(max(2, int(0.8 * about)), int(1.25 * about) + 2)
            last = min(tried, key=lambda size: (-(-left // size) * size, abs(size - about)))
            sizes.insert(0, last)
            left = -(-left // last)
        return cls(view, (left, *sizes))

    @property
    def is_short(self) -> bool:
        return len(self.sizes) == 1

    def point_of(self, place: int) -> Integers:
        """The digit of every point of the axis."""
        return np.asarray(self.view.class_of // math.prod(self.sizes[place + 1 :]) % self.sizes[place])

    def is_ranged(self, labels: Labels) -> bool:
        """Whether some row is more than one class."""
        runs = self.intervals(labels)
        return len(runs.labels) > runs.rows or bool((runs.stops - runs.starts > 1).any())

    def intervals(self, labels: Labels) -> Labels:
        """The rows of a factor over classes: one run of classes each, or a few."""
        if self.view.is_ordered:
            classes = self.view.class_of
            starts, stops = classes[labels.starts], classes[labels.stops - 1] + 1
            return Labels(self.view.classes, labels.rows, starts, stops, labels.labels)
        return Labels.of(labels.vector()[first_points(self.view.class_of)], labels.rows)[0]


class Entries:
    """Rows of a matrix as they come."""

    def __init__(self) -> None:
        self._parts: list[tuple[Integers, Integers, Floats]] = []

    def add(self, rows: Integers, columns: Integers, value: float) -> None:
        rows, columns = (np.ascontiguousarray(part).reshape(-1) for part in np.broadcast_arrays(rows, columns))
        self._parts.append((rows, columns, np.full(len(rows), value)))

    def matrix(self, shape: tuple[int, int]) -> sparse.csr_array:
        nothing = np.zeros(0, dtype=np.int64)
        parts = [(nothing, nothing, np.zeros(0)), *self._parts]
        rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        found = sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=shape))
        found.sum_duplicates()
        found.eliminate_zeros()
        return found


class Splitter:
    """Writes the rows of a table over the digits of one axis."""

    def __init__(self, axis: int, digits: dict[int, tuple[int, Digits]], number: Callable[[int], int]) -> None:
        """``digits``: by the identity of a factor, the number of its view and the view. ``number`` gives so many new
        product rows a number."""
        self._axis, self._number = axis, number
        self._digits = {factor: own for factor, (_, own) in digits.items()}
        self._views = {id(own): view for view, own in digits.values()}
        self.entries = Entries()
        self.groups: list[Rows] = []
        self._ranges: dict[tuple[object, ...], list[tuple[Rows, Labels, Integers]]] = {}

    def add(self, group: Rows) -> None:
        """A group; those of a view in digits that have all other factors in common are put together."""
        place = next((k for k, axis in enumerate(group.axes) if axis == (self._axis, -1, 0)), None)
        if place is None:
            self._keep(group)
            return
        labels = group.factors[place]
        assert isinstance(labels, Labels)
        digits = self._digits[id(labels)]
        if digits.is_short:
            factor = labels.over(first_points(digits.view.class_of))
            axes = (*group.axes[:place], (self._axis, self._views[id(digits)], 0), *group.axes[place + 1 :])
            self._keep(Rows(axes, (*group.factors[:place], factor, *group.factors[place + 1 :]), group.rows))
            return
        shape = [_rows(factor) for factor in group.factors]
        rows = np.moveaxis(group.rows.reshape(shape), place, 0).reshape(shape[place], -1)
        others = tuple(id(factor) for k, factor in enumerate(group.factors) if k != place)
        self._ranges.setdefault((id(digits), group.axes, others), []).append((group, labels, rows))

    def finish(self) -> None:
        """Write the groups that are in digits."""
        for (_, axes, _), members in self._ranges.items():
            assert isinstance(axes, tuple)
            self._write(axes.index((self._axis, -1, 0)), members)

    def _keep(self, group: Rows) -> None:
        first = self._number(len(group.rows))
        numbers = np.arange(first, first + len(group.rows))
        self.entries.add(group.rows, numbers, 1.0)
        self.groups.append(Rows(group.axes, group.factors, numbers))

    def _write(self, place: int, members: Sequence[tuple[Rows, Labels, Integers]]) -> None:
        group, labels, _ = members[0]
        digits = self._digits[id(labels)]
        runs = [(digits.intervals(one), rows) for _, one, rows in members]
        starts = np.concatenate([one.starts for one, _ in runs])
        stops = np.concatenate([one.stops for one, _ in runs])
        rows = np.concatenate([rows[one.labels] for one, rows in runs])
        single = stops == starts + 1
        if single.any():
            self._add(group, place, digits, len(digits.sizes), starts[single], rows[single], 1.0, prefix=False)
        ends = np.concatenate([stops[~single], starts[~single]])
        sign = np.repeat([1.0, -1.0], int((~single).sum()))
        both = np.concatenate([rows[~single], rows[~single]])
        whole = ends == digits.view.classes
        if whole.any():
            self._add(group, place, digits, 0, ends[whole], both[whole], sign[whole], prefix=False)
        for count in range(1, len(digits.sizes) + 1):
            stride = math.prod(digits.sizes[count:])
            used = ~whole & (ends // stride % digits.sizes[count - 1] > 0)
            if used.any():
                self._add(group, place, digits, count, ends[used] // stride, both[used], sign[used], prefix=True)

    def _add(
        self, group: Rows, place: int, digits: Digits, count: int, numbers: Integers, rows: Integers,
        sign: Floats | float, *, prefix: bool,
    ) -> None:  # fmt: skip
        """Product rows for the first ``count`` digits of some numbers: those before the last of them, or that alone.

        Few of many combinations of digits are written in parts, each of numbers that are near each other.
        """
        beside = rows.shape[1]
        digit = [numbers // math.prod(digits.sizes[k + 1 : count]) % digits.sizes[k] for k in range(count)]
        grid_size = math.prod(len(np.unique(one)) for one in digit) * beside
        if grid_size > max(_LARGE_GRID, _SPARSE * len(numbers) * beside):
            order = np.argsort(numbers, kind="stable")
            signs = np.broadcast_to(sign, len(numbers))
            for half in np.array_split(order, 2):
                self._add(group, place, digits, count, numbers[half], rows[half], signs[half], prefix=prefix)
            return
        factors: list[Floats] = []
        at: list[Integers] = []
        for k in range(count):
            values, position = np.unique(digit[k], return_inverse=True)
            points = np.arange(digits.sizes[k])
            below = prefix and k == count - 1
            factors.append((points < values[:, None] if below else points == values[:, None]).astype(np.float64))
            at.append(position.reshape(-1))
        view = self._views[id(digits)]
        axes = (*group.axes[:place], *((self._axis, view, k) for k in range(count)), *group.axes[place + 1 :])
        every = (*group.factors[:place], *factors, *group.factors[place + 1 :])
        shape = [_rows(factor) for factor in every]
        first = self._number(math.prod(shape))
        grid = np.arange(first, first + math.prod(shape)).reshape(shape)
        self.groups.append(Rows(axes, every, grid.reshape(-1)))
        moved = np.moveaxis(grid, range(place, place + count), range(count)).reshape(*(map(len, factors)), -1)
        chosen = moved[tuple(at)] if count else np.broadcast_to(moved, rows.shape)
        for value in np.unique(sign).tolist():
            same = np.broadcast_to(np.asarray(sign) == value, len(rows))
            self.entries.add(rows[same], chosen[same], value)


def _rows(factor: Factor) -> int:
    return factor.rows if isinstance(factor, Labels) else len(factor)
