"""The axes of a product scan described without data, and the points that two cuts of one axis have in common.

A stored block of questions over a few axes knows its points only through such a description. A batch that cuts a column
elsewhere sees that axis over the common refinement, where every point of either cut is a union of points.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from tacit.errors import LedgerError

from .refine import Axis, Grid, Integers, grid_of, joint_axis, looked_up
from .scan import Scan

_MOST_POINTS = 1 << 14
"""Points of the grid of one axis' columns, cut at the constants of both sides."""


@dataclass(frozen=True, eq=False)
class AxisCut:
    """One axis of a product: its columns, how they are cut, and the point that each combination of regions is in."""

    axes: tuple[Axis, ...]
    point_of: Integers = field(repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """What the axis is, whatever a batch calls it."""
        return tuple(axis.key for axis in self.axes)

    @cached_property
    def digest(self) -> bytes:
        """Of the points: an axis can be cut in several ways at once, as into the digits of a number."""
        return hashlib.sha256(np.ascontiguousarray(self.point_of, dtype="<i8").tobytes()).digest()

    def same_as(self, other: AxisCut) -> bool:
        return self.axes == other.axes and np.array_equal(self.point_of, other.point_of)


def axis_cut(scan: Scan) -> AxisCut:
    """Of the scan of a single axis."""
    grid = grid_of(scan)
    return AxisCut(grid.axes, grid.cell_of)


def axis_cuts(grid: Grid, sizes: Sequence[int]) -> tuple[AxisCut, ...]:
    """The axes of a stored product, from the number of points of each; LedgerError if that is not what it holds.

    A cell is the place of its points in row-major order.
    """
    if len(sizes) != len(grid.factors) or math.prod(sizes) != grid.cells:
        raise LedgerError("a stored release is damaged and cannot be read")
    cells = grid.cell_of.reshape([axis.count for axis in grid.axes] or [1])
    cuts = []
    for number, places in enumerate(grid.factors):
        at_first = tuple(slice(None) if place in places else 0 for place in range(len(grid.axes)))
        order = [sorted(places).index(place) for place in places]
        stride = math.prod(sizes[number + 1 :])
        point_of = cells[at_first].transpose(order).reshape(-1) // stride % sizes[number]
        cuts.append(AxisCut(tuple(grid.axes[place] for place in places), point_of))
    return tuple(cuts)


def common_points(first: AxisCut, second: AxisCut) -> tuple[Integers, Integers] | None:
    """For every point of the common refinement, the point of either; None where it is too large. The keys are equal."""
    if first.same_as(second):
        identity = np.arange(int(first.point_of.max()) + 1, dtype=np.int64)
        return identity, identity
    both = [joint_axis(a.key, a, b) for a, b in zip(first.axes, second.axes, strict=True)]
    if math.prod(axis.count for axis, _, _ in both) > _MOST_POINTS:
        return None
    left = looked_up(first.point_of, [axis.count for axis in first.axes], [regions for _, regions, _ in both])
    right = looked_up(second.point_of, [axis.count for axis in second.axes], [regions for _, _, regions in both])
    pairs = np.unique(np.stack([left, right], axis=1), axis=0)
    return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
