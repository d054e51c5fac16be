"""The rows of a product workload from blocks of questions: values, standard errors, covariances.

Each group of rows takes what the sources of evidence say of it (``components``), weighed by the inverse of their mean
variances. Sources have no noise in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.engine.components import Evidence, Index, Source, sources
from tacit.engine.product_workload import ProductRows, ProductWorkload, peaks
from tacit.engine.strategy import Vector


@dataclass(frozen=True, eq=False)
class View:
    """Groups of rows, and evidence over the same points of the same axes.

    Releases that cut an axis elsewhere are seen over points of their own: groups and questions both lifted to those.
    """

    groups: tuple[ProductRows, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, eq=False)
class _Word:
    """What one source says of one group."""

    source: Source
    group: ProductRows
    variances: Vector


class ProductAnswers:
    """What evidence says about the rows of a product workload."""

    def __init__(self, views: Sequence[View], rows: int) -> None:
        """The groups of all views are the same rows; ``rows``: how many are numbered, those in no group are zero."""
        self._rows = rows
        self._groups = views[0].groups
        self._said: list[list[_Word]] = [[] for _ in self._groups]
        for view in views:
            found = sources(view.evidence)
            for group, words in zip(view.groups, self._said, strict=True):
                words += [_Word(source, group, source.variances(group)) for source in found if source.determines(group)]
        self._weights: list[list[float]] = []
        for words in self._said:
            precisions = [1 / max(float(word.variances.mean()), 1e-300) for word in words]
            self._weights.append([precision / sum(precisions) for precision in precisions])

    @cached_property
    def stderr(self) -> Vector:
        """Of every row; infinite where the evidence does not determine it."""
        result = np.zeros(self._rows)
        for group, words, weights in zip(self._groups, self._said, self._weights, strict=True):
            variance = np.zeros(len(group.rows))
            for word, weight in zip(words, weights, strict=True):
                variance += weight**2 * word.variances
            result[group.rows] = np.sqrt(variance) if words else np.inf
        return result

    @cached_property
    def values(self) -> Vector:
        """Of every row; zero where it is not determined."""
        result = np.zeros(self._rows)
        for group, words, weights in zip(self._groups, self._said, self._weights, strict=True):
            for word, weight in zip(words, weights, strict=True):
                result[group.rows] += weight * word.source.values(word.group)
        return result

    @property
    def used(self) -> frozenset[int]:
        """The releases that some row depends on."""
        return frozenset(number for words in self._said for word in words for number in word.source.sources)

    def covariance(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Vector:
        """Between rows i and j, elementwise."""
        result = np.zeros(len(i))
        group_of, place_of = self._places
        pairs = np.stack([group_of[i], group_of[j]], axis=1)
        for g, h in np.unique(pairs, axis=0):
            if g < 0 or h < 0:
                continue
            here = np.flatnonzero((pairs[:, 0] == g) & (pairs[:, 1] == h))
            at_first = _index(self._groups[g], place_of[i[here]])
            at_second = _index(self._groups[h], place_of[j[here]])
            others = {
                id(word.source): (word, weight) for word, weight in zip(self._said[h], self._weights[h], strict=True)
            }
            for word, weight in zip(self._said[g], self._weights[g], strict=True):
                if id(word.source) in others:
                    other, other_weight = others[id(word.source)]
                    both = word.source.covariance(word.group, at_first, other.group, at_second)
                    result[here] += weight * other_weight * both
        return result

    @cached_property
    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For every row, its group and its place in the product."""
        group_of = np.full(self._rows, -1, dtype=np.int64)
        place_of = np.zeros(self._rows, dtype=np.int64)
        for number, group in enumerate(self._groups):
            group_of[group.rows] = number
            place_of[group.rows] = np.arange(len(group.rows))
        return group_of, place_of


def total_error(workload: ProductWorkload, answers: ProductAnswers, weights: Vector | None = None) -> float:
    """The sum of squared errors of rows that are scaled to a largest entry of 1; a group weighs as its rows do on
    average. Infinite where a row is not determined."""
    total = 0.0
    for group in workload.groups:
        weight = 1.0 if weights is None else float(np.mean(weights[group.rows]))
        total += weight * float(np.sum(np.square(answers.stderr[group.rows] / peaks(group))))
    return total


def _index(group: ProductRows, places: NDArray[np.int64]) -> Index:
    if not group.axes:
        return []
    return [np.asarray(index, dtype=np.int64) for index in np.unravel_index(places, group.shape)]
