"""The rows of an aggregate over one long axis, without a matrix: for each row the points that count towards it.

Groups exclude each other, so a point counts towards one row at most, its label; and neighbouring points mostly have
the same one. What is kept are the runs of points with one label. They need as much memory as the batch has constants,
where the matrix needs its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Labels:
    """A factor of zeros and ones over a long axis, with one entry at most in every column. No row is zero."""

    points: int
    rows: int
    starts: Integers = field(repr=False)
    """Of every run, ascending: its first point,"""
    stops: Integers = field(repr=False)
    """the point after its last one,"""
    labels: Integers = field(repr=False)
    """and its row."""

    @classmethod
    def of(cls, labels: Integers, rows: int) -> tuple[Labels, NDArray[np.bool_]]:
        """From the row of every point, -1 for none: the rows that are not zero, and which those are."""
        edges = np.flatnonzero(np.diff(labels)) + 1
        starts = np.concatenate([np.zeros(1, dtype=np.int64), edges])
        stops = np.append(edges, len(labels))
        inside = labels[starts] >= 0
        starts, stops = starts[inside], stops[inside]
        counted = np.zeros(rows, dtype=np.bool_)
        counted[labels[starts]] = True
        number = np.cumsum(counted) - 1
        return cls(len(labels), int(counted.sum()), starts, stops, number[labels[starts]]), counted

    @property
    def is_everything(self) -> bool:
        """Whether it is one row of ones."""
        return self.rows == 1 and len(self.starts) == 1 and int(self.stops[0] - self.starts[0]) == self.points

    @property
    def most_runs(self) -> int:
        """Of one row."""
        return int(np.bincount(self.labels).max(initial=0))

    def vector(self) -> Integers:
        """The row of every point; -1 for none."""
        labels = np.full(self.points, -1, dtype=np.int64)
        for start, stop, label in zip(self.starts.tolist(), self.stops.tolist(), self.labels.tolist(), strict=True):
            labels[start:stop] = label
        return labels

    def over(self, first: Integers) -> Floats:
        """The factor over classes of points, from the first point of each."""
        labels = self.vector()[first]
        factor = np.zeros((self.rows, len(first)))
        (inside,) = np.nonzero(labels >= 0)
        factor[labels[inside], inside] = 1.0
        return factor


def neighbours(labels: Sequence[Labels]) -> Integers:
    """The class of every point: neighbours that none of the factors tells apart are in one."""
    edges = np.zeros(labels[0].points + 1, dtype=np.int64)
    for one in labels:
        edges[one.starts] = 1
        edges[one.stops] = 1
    edges[0] = 0
    return np.cumsum(edges[:-1])


def first_points(class_of: Integers) -> Integers:
    """The first point of every class."""
    return np.unique(class_of, return_index=True)[1].astype(np.int64)
