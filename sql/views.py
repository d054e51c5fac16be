"""How a long axis is looked at: which classes of its points serve which aggregates.

An axis of 40,000 points has no matrix of its own. But one that tells 40,000 groups apart is asked for the count of
every point, and points that are numbered have digits: the count of every point is a product of two axes of 200 each
(``digits``). And ten ranges beside those groups tell twenty classes of points apart, a short axis. Each is a view of
the column: its classes of points are axes, as those of any column are.

Views are axes that depend on each other, which is allowed: every row of the table lies at one point of each, and adds
one unit to it. See ``computed_axes`` for the guarantee; norms are those of all combinations of points, of which fewer
occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .labels import Integers, Labels, first_points, neighbours

FEW = 512
"""Classes of points that are one axis with matrices; more are digits."""
_MOST_RUNS = 2
"""Of a row that is written as ranges: one, or all but one."""
_AS_FINE = 0.5
"""Ranges that cut a column into so many classes, as a part of all, are asked of the same view as its groups."""


@dataclass(frozen=True, eq=False)
class View:
    """Classes of the points of an axis."""

    class_of: Integers = field(repr=False)

    @cached_property
    def is_ordered(self) -> bool:
        """Whether classes are runs of points, numbered in their order."""
        return bool((np.diff(self.class_of) >= 0).all())

    @cached_property
    def classes(self) -> int:
        return int(self.class_of.max()) + 1

    @property
    def is_short(self) -> bool:
        """Whether it is an axis with matrices."""
        return self.classes <= FEW


def apart(labels: Sequence[Labels]) -> list[View]:
    """A view for each factor. What tells few classes apart is one short axis; groups of points are a view of their own.

    Ranges too many for that are one view in the order of the line, with the groups if they are as fine as those.
    """
    few = [one for one in labels if one.rows <= FEW]
    ordered = [one for one in few if one.most_runs <= _MOST_RUNS]
    groups = [one for one in labels if one.rows > FEW]
    own = View(neighbours(ordered)) if ordered else View(np.zeros(labels[0].points, dtype=np.int64))
    listed = [one for one in few if one.most_runs > _MOST_RUNS]
    views = _refined(listed, ordered, own) if own.is_short else _refined(listed, [], None)
    if not own.is_short:
        fine = [one for one in groups if one.most_runs <= _MOST_RUNS]
        joint = View(neighbours([*ordered, *fine]))
        if own.classes >= _AS_FINE * joint.classes:
            own, ordered = joint, [*ordered, *fine]
        views |= {id(one): own for one in ordered}
    views |= _by_groups([one for one in groups if id(one) not in views])
    return [views[id(one)] for one in labels]


def together(labels: Sequence[Labels]) -> list[View]:
    """One view for all factors whose rows are ranges of it, and those of ``apart`` for the others."""
    ordered = [one for one in labels if one.most_runs <= _MOST_RUNS]
    others = iter(apart(rest) if (rest := [one for one in labels if one.most_runs > _MOST_RUNS]) else [])
    joint = View(neighbours(ordered)) if ordered else None
    return [joint if joint is not None and one.most_runs <= _MOST_RUNS else next(others) for one in labels]


def _refined(labels: Sequence[Labels], known: Sequence[Labels], view: View | None) -> dict[int, View]:
    """Lists of many points, in the view of those that are known: as long as all of them tell few classes apart, one
    view; beyond, each its own."""
    classes = None if view is None else view.class_of
    together = [*known]
    alone: dict[int, View] = {}
    for one in labels:
        marks = one.vector() + 1
        finer = np.unique(marks if classes is None else classes * (one.rows + 1) + marks, return_inverse=True)[1]
        if finer.max() < FEW:
            classes = finer.astype(np.int64)
            together.append(one)
        else:
            alone[id(one)] = View(np.unique(marks, return_inverse=True)[1].astype(np.int64))
    return alone if classes is None else alone | dict.fromkeys(map(id, together), View(classes))


def _by_groups(labels: Sequence[Labels]) -> dict[int, View]:
    """Groups whose rows are classes of a view that is known share it."""
    found: list[View] = []
    views: dict[int, View] = {}
    for one in sorted(labels, key=lambda one: -one.rows):
        vector = one.vector()
        view = next((view for view in found if _fits(vector, view)), None)
        if view is None:
            view = View(neighbours([one]) if one.most_runs == 1 else np.unique(vector, return_inverse=True)[1])
            found.append(view)
        views[id(one)] = view
    return views


def _fits(vector: Integers, view: View) -> bool:
    """Whether every row is one class."""
    of_class = vector[first_points(view.class_of)]
    rows = of_class[of_class >= 0]
    return len(np.unique(rows)) == len(rows) and np.array_equal(of_class[view.class_of], vector)
