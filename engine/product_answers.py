"""The rows of a product workload from blocks of questions: values, standard errors, covariances.

Each group of rows takes what the sources of evidence say of it (``components``), weighed by the inverse of their mean
variances. Sources have no noise in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.engine.components import Evidence, Index, Source, sources
from tacit.engine.product_workload import ProductRows, ProductWorkload
from tacit.engine.strategy import Vector


class ProductAnswers:
    """What evidence says about the rows of a product workload."""

    def __init__(self, workload: ProductWorkload, evidence: Sequence[Evidence], rows: int) -> None:
        """``rows``: how many rows are numbered; those in no group are zero."""
        self._workload = workload
        self._rows = rows
        self._evidence = tuple(evidence)
        self._said: list[list[tuple[Source, float, Vector]]] = []
        found = sources(evidence)
        for group in workload.groups:
            said = [(source, source.variances(group)) for source in found if source.determines(group)]
            precisions = [1 / max(float(v.mean()), 1e-300) for _, v in said]
            total = sum(precisions)
            self._said.append([(s, p / total, v) for (s, v), p in zip(said, precisions, strict=True)])

    @cached_property
    def stderr(self) -> Vector:
        """Of every row; infinite where the evidence does not determine it."""
        result = np.zeros(self._rows)
        for group, said in zip(self._workload.groups, self._said, strict=True):
            variance = sum((weight**2 * v for _, weight, v in said), start=np.zeros(len(group.rows)))
            result[group.rows] = np.sqrt(variance) if said else np.inf
        return result

    @cached_property
    def values(self) -> Vector:
        """Of every row; zero where it is not determined."""
        result = np.zeros(self._rows)
        for group, said in zip(self._workload.groups, self._said, strict=True):
            for source, weight, _ in said:
                result[group.rows] += weight * source.values(group)
        return result

    @property
    def used(self) -> frozenset[int]:
        """The releases that some row depends on."""
        return frozenset(number for said in self._said for source, _, _ in said for number in source.sources)

    def covariance(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Vector:
        """Between rows i and j, elementwise."""
        result = np.zeros(len(i))
        group_of, place_of = self._places
        pairs = np.stack([group_of[i], group_of[j]], axis=1)
        for g, h in np.unique(pairs, axis=0):
            if g < 0 or h < 0:
                continue
            here = np.flatnonzero((pairs[:, 0] == g) & (pairs[:, 1] == h))
            first, second = self._workload.groups[g], self._workload.groups[h]
            at_first, at_second = _index(first, place_of[i[here]]), _index(second, place_of[j[here]])
            of_second = {id(source): weight for source, weight, _ in self._said[h]}
            for source, weight, _ in self._said[g]:
                if id(source) in of_second:
                    both = weight * of_second[id(source)]
                    result[here] += both * source.covariance(first, at_first, second, at_second)
        return result

    @cached_property
    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For every row, its group and its place in the product."""
        group_of = np.full(self._rows, -1, dtype=np.int64)
        place_of = np.zeros(self._rows, dtype=np.int64)
        for number, group in enumerate(self._workload.groups):
            group_of[group.rows] = number
            place_of[group.rows] = np.arange(len(group.rows))
        return group_of, place_of


def _index(group: ProductRows, places: NDArray[np.int64]) -> Index:
    if not group.axes:
        return []
    return [np.asarray(index, dtype=np.int64) for index in np.unravel_index(places, group.shape)]
