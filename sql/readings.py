"""The rows of a table's aggregates over axes that are all short, in one way or two.

Where an axis is long, its aggregates are asked of views (``views``), each with the classes that it tells apart. Ten
ranges beside the counts of 40,000 groups can be asked for by themselves, or added up from the groups: which is better
depends on the ranges, and on the noise. So both readings are handed over; a plan is made for either, and every row is
answered by the reading that has less noise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from .digits import Axis, Digits, Rows, Splitter
from .labels import Integers, Labels
from .views import FEW, View, apart, together


@dataclass(frozen=True, eq=False)
class Split:
    """Aggregates over short axes."""

    points: dict[Axis, Integers] = field(repr=False)
    """For every axis of a view, the point of it at which each point of the long axis is."""
    readings: tuple[tuple[list[Rows], sparse.csr_array], ...]
    """Groups of product rows, and the rows of the aggregates over the product rows."""


class _Numbers:
    """Product rows, numbered as they come."""

    def __init__(self) -> None:
        self.count = 0

    def take(self, rows: int) -> int:
        self.count += rows
        return self.count - rows


class _Registry:
    """Views that are equal are one."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[int, Digits]] = {}
        self.points: dict[Axis, Integers] = {}

    def add(self, axis: int, digits: Digits) -> tuple[int, Digits]:
        key = (axis, digits.sizes, hashlib.sha256(digits.view.class_of.tobytes()).digest())
        if key not in self._known:
            number = len(self._known)
            self._known[key] = number, digits
            self.points |= {(axis, number, k): digits.point_of(k) for k in range(len(digits.sizes))}
        return self._known[key]


def split(groups: Sequence[Rows], rows: int) -> Split | None:
    """None where no axis is long; ``rows``: how many the aggregates have."""
    labels: dict[int, dict[int, Labels]] = {}
    for group in groups:
        for (axis, _, _), factor in zip(group.axes, group.factors, strict=True):
            if isinstance(factor, Labels):
                labels.setdefault(axis, {})[id(factor)] = factor
    if not labels:
        return None
    of_axis = {axis: list(found.values()) for axis, found in labels.items()}
    views = [{axis: way(found) for axis, found in of_axis.items()} for way in (apart, together)]
    if all(_alike(*(way[axis] for way in views)) for axis in of_axis):
        del views[1]
    registry, numbers = _Registry(), _Numbers()
    found = [_read(groups, rows, of_axis, way, registry, numbers) for way in views]
    return Split(registry.points, tuple((own, _widened(matrix, numbers.count)) for own, matrix in found))


def _alike(first: Sequence[View], second: Sequence[View]) -> bool:
    return all(np.array_equal(a.class_of, b.class_of) for a, b in zip(first, second, strict=True))


def _widened(matrix: sparse.csr_array, columns: int) -> sparse.csr_array:
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], columns))


def _read(
    groups: Sequence[Rows], rows: int, labels: dict[int, list[Labels]], views: dict[int, list[View]],
    registry: _Registry, numbers: _Numbers,
) -> tuple[list[Rows], sparse.csr_array]:  # fmt: skip
    """One axis after the other; the product rows of the last are those that are kept."""
    matrix: sparse.csr_array | None = None
    for place, axis in enumerate(labels):
        last = place == len(labels) - 1
        number: Callable[[int], int] = numbers.take if last else _Numbers().take
        splitter = Splitter(axis, _in_digits(axis, labels[axis], views[axis], registry), number)
        for group in groups:
            splitter.add(group)
        splitter.finish()
        groups = splitter.groups
        step = splitter.entries.matrix((rows, numbers.count if last else sum(len(g.rows) for g in groups)))
        matrix, rows = (step if matrix is None else matrix @ step), step.shape[1]
    assert matrix is not None
    return list(groups), sparse.csr_array(matrix)


def _in_digits(
    axis: int, labels: Sequence[Labels], views: Sequence[View], registry: _Registry
) -> dict[int, tuple[int, Digits]]:
    """For each factor, by its identity, the number of its view and the view in digits."""
    members: dict[int, tuple[View, list[Labels]]] = {}
    for one, view in zip(labels, views, strict=True):
        members.setdefault(id(view), (view, []))[1].append(one)
    result: dict[int, tuple[int, Digits]] = {}
    for view, own in members.values():
        digits = Digits.of(view, ranges=False)
        if not view.is_short and sum(one.rows for one in own if digits.is_ranged(one)) > FEW:
            digits = Digits.of(view, ranges=True)
        found = registry.add(axis, digits)
        result |= dict.fromkeys(map(id, own), found)
    return result
