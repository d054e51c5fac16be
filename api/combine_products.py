"""What releases say about a table whose cells are not listed: blocks of products put over the batch's own axes.

Post-processing only. Releases that cut all axes as the batch does are estimated together; one that cuts some
elsewhere is estimated over the common refinement of its axes and the batch's, and the two estimates are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Estimate, Measurement
from tacit.engine.components import AxisQuestions, Evidence
from tacit.engine.inference.product_estimate import estimate_products
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.product_answers import View
from tacit.engine.product_workload import ProductRows
from tacit.sql.product_refine import AxisCut, axis_cut, axis_cuts, common_points
from tacit.sql.product_scan import ProductScan
from tacit.sql.refine import Grid, Integers, subject_of

from .releases import Release

Floats = NDArray[np.float64]

_RELEASES = 24
"""So many releases are used beside the latest: those that speak of most of the batch."""


def combine_products(
    releases: Sequence[Release], scan: ProductScan, table: ProductTable, *, rows: int, partial: bool = False
) -> Estimate:
    """The rows of one table from all releases at hand that asked for products of its columns."""
    reader = _Reader(scan, table)
    used: list[Measurement] = []
    for number in reader.nearest(releases):
        used += reader.add(number, releases[number])
    return estimate_products(table, reader.views, used, rows=rows, releases=len(releases), partial=partial)


@dataclass(frozen=True, eq=False)
class _Place:
    """An axis of a stored block among those of the batch: its number, and for every common point the
    point of either."""

    axis: int
    of_batch: Integers | None
    """None where the two cuts are the same, or the batch does not have the axis."""
    of_stored: Integers | None


_Places = dict[tuple[str, ...], list[tuple[AxisCut, _Place]]]
"""The axes of one release, by what they are: each with its place."""


class _Reader:
    """Sorts stored blocks by how they cut the batch's axes."""

    def __init__(self, scan: ProductScan, table: ProductTable) -> None:
        self._subject = subject_of(scan)
        self._groups = table.products.groups
        self._cuts = [axis_cut(scan.marginal((axis,))) for axis in range(len(scan.axes))]
        self._axes: dict[tuple[str, ...], list[int]] = {}
        for axis, cut in enumerate(self._cuts):
            self._axes.setdefault(cut.keys, []).append(axis)
        self._beside: dict[tuple[tuple[str, ...], bytes], int] = {}
        """Axes that the batch says nothing of."""
        self._questions: dict[tuple[bytes, ...], AxisQuestions] = {}
        self._own: list[Evidence] = []
        self._others: list[View] = []

    @property
    def views(self) -> list[View]:
        own = [View(self._groups, tuple(self._own))] if self._own else []
        return [*own, *self._others]

    def nearest(self, releases: Sequence[Release]) -> list[int]:
        """The latest release, which may be the one that is being bought, and those that hold most sets of columns."""
        if len(releases) <= _RELEASES + 1:
            return list(range(len(releases)))
        sets = {frozenset(key for axis in group.axes for key in self._cuts[axis].keys) for group in self._groups}

        def held(number: int) -> int:
            grids = [grid for grid in releases[number].grids if grid.subject == self._subject]
            blocks = {frozenset(axis.key for axis in grid.axes) for grid in grids}
            return sum(any(keys <= block for block in blocks) for keys in sets)

        ranked = sorted(range(len(releases) - 1), key=lambda number: (-held(number), -number))
        return sorted([*ranked[:_RELEASES], len(releases) - 1])

    def add(self, number: int, release: Release) -> list[Measurement]:
        """The blocks of one release; what is returned are those that are used."""
        blocks = [
            (m, grid)
            for m, grid in zip(release.measurements, release.grids, strict=True)
            if m.product is not None and len(grid.factors) == len(m.product.factors) and grid.subject == self._subject
        ]
        places: _Places = {}
        evidence = [e for m, grid in blocks if (e := self._evidence(number, m, grid, places)) is not None]
        lifted = {
            place.axis: place.of_batch for own in places.values() for _, place in own if place.of_batch is not None
        }
        if not lifted:
            self._own += evidence
        elif evidence:
            self._others.append(View(tuple(_lifted(group, lifted) for group in self._groups), tuple(evidence)))
        return [m for m, _ in blocks] if evidence else []

    def _evidence(self, number: int, m: Measurement, grid: Grid, places: _Places) -> Evidence | None:
        assert m.product is not None
        sizes = [factor.shape[1] for factor in m.product.factors]
        axes, questions = [], []
        cuts = axis_cuts(grid, sizes)
        for cut, factor, exponent, split in zip(
            cuts, m.product.factors, m.product.exponents, m.product.splits, strict=True
        ):
            place = self._placed(cut, places)
            if place is None:
                return None
            axes.append(place.axis)
            L = np.ldexp(factor.astype(np.float64), exponent)
            questions.append(self._asked(L, split, place.of_stored))
        answers = m.values.reshape([len(factor) for factor in m.product.factors])
        return Evidence(tuple(axes), tuple(questions), m.stddev, answers, number)

    def _placed(self, cut: AxisCut, places: _Places) -> _Place | None:
        """Where a stored axis is; None where what it says cannot be used beside the rest of its release.

        A release can have several axes of one column, such as the digits of its regions. Those that the batch has as
        they are can all be used; only one can be put over a common refinement with the batch's own.
        """
        known = places.setdefault(cut.keys, [])
        for other, place in known:
            if cut.same_as(other):
                return place
        found = self._found(cut)
        if found is None or (known and any(p.of_batch is not None for p in (found, *(place for _, place in known)))):
            return None
        known.append((cut, found))
        return found

    def _found(self, cut: AxisCut) -> _Place | None:
        axes = self._axes.get(cut.keys)
        if axes is None:  # the batch says nothing of it
            number = len(self._cuts) + len(self._beside)
            return _Place(self._beside.setdefault((cut.keys, cut.digest), number), None, None)
        for axis in axes:
            if cut.same_as(self._cuts[axis]):
                return _Place(axis, None, None)
        points = common_points(self._cuts[axes[0]], cut) if len(axes) == 1 else None
        return None if points is None else _Place(axes[0], *points)

    def _asked(self, L: Floats, split: Floats | None, of_stored: Integers | None) -> AxisQuestions:
        """Equal questions are one object, so that what is computed of them is found again."""
        if of_stored is not None:
            L = np.ascontiguousarray(L[:, of_stored])
            if split is not None:  # a point's weight, divided among the points that it was cut into
                parts = np.bincount(of_stored, minlength=len(split))
                split = split[of_stored] / parts[of_stored]
        key = (str(L.shape).encode(), L.tobytes(), b"" if split is None else split.tobytes())
        return self._questions.setdefault(key, AxisQuestions(L, split))


def _lifted(group: ProductRows, points: dict[int, Integers]) -> ProductRows:
    if not any(axis in points for axis in group.axes):
        return group
    factors = [
        np.ascontiguousarray(factor[:, points[axis]]) if axis in points else factor
        for axis, factor in group.by_axis.items()
    ]
    return ProductRows(group.axes, tuple(factors), group.rows)
