"""The part of a batch that reads one private table whose cells are too many to list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tacit.engine.components import Evidence
from tacit.engine.linalg import is_identity
from tacit.engine.product_answers import ProductAnswers, View
from tacit.engine.product_workload import ProductWorkload, peaks
from tacit.engine.strategy import Vector
from tacit.errors import InternalError


@dataclass(frozen=True, eq=False)
class _Terms:
    """Combinations of product rows, as many terms for each row as the longest has; a factor of 0 is padding."""

    indices: NDArray[np.int64]
    factors: Vector

    @classmethod
    def of(cls, combination: csr_array) -> _Terms:
        counts = np.diff(combination.indptr)
        width = int(counts.max(initial=1))
        indices = np.zeros((len(counts), width), dtype=np.int64)
        factors = np.zeros((len(counts), width))
        inside = np.arange(width) < counts[:, None]
        indices[inside], factors[inside] = combination.indices, combination.data
        return cls(indices, factors)

    def variances(self, answers: ProductAnswers) -> Vector:
        """Infinite where a row is not determined."""
        result = np.zeros(len(self.indices))
        single = np.count_nonzero(self.factors, axis=1) == 1
        result[single] = np.square(self.factors[single, 0] * answers.stderr[self.indices[single, 0]])
        several = np.flatnonzero(~single)
        if several.size:
            used = np.where(self.factors[several] != 0, answers.stderr[self.indices[several]], 0.0)
            known = several[np.isfinite(used).all(axis=1)]
            result[several] = np.inf
            result[known] = np.maximum(self.covariance(answers, known, known), 0.0)
        return result

    def covariance(self, answers: ProductAnswers, i: NDArray[np.int64], j: NDArray[np.int64]) -> Vector:
        """Between rows at positions i and j."""
        result = np.zeros(len(i))
        for a in range(self.indices.shape[1]):
            for b in range(self.indices.shape[1]):
                both = self.factors[i, a] * self.factors[j, b]
                used = np.flatnonzero(both)
                if used.size:
                    first, second = self.indices[i[used], a], self.indices[j[used], b]
                    result[used] += both[used] * answers.covariance(first, second)
        return result

    def values(self, answers: ProductAnswers) -> Vector:
        return np.asarray((self.factors * answers.values[self.indices]).sum(axis=1))

    def where(self, better: NDArray[np.bool_], other: _Terms) -> _Terms:
        """The other's combinations for some rows."""
        width = max(self.indices.shape[1], other.indices.shape[1])
        indices, factors = (
            [np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in (mine, others)]
            for mine, others in ((self.indices, other.indices), (self.factors, other.factors))
        )
        return _Terms(
            np.where(better[:, None], indices[1], indices[0]), np.where(better[:, None], factors[1], factors[0])
        )


@dataclass(frozen=True, eq=False)
class ProductTable:
    """Rows of a batch as combinations of product rows."""

    products: ProductWorkload = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    """Which rows of the batch these are."""
    combination: csr_array = field(repr=False)
    """Each of them over the product rows; mostly it is one of those."""
    others: tuple[csr_array, ...] = field(default=(), repr=False)
    """Other combinations that are the same rows. Each row is answered by the one that has least noise."""
    peaks: Vector | None = field(default=None, repr=False)
    """The largest entry of every row, in size, where combinations do not show it; or no less than that."""
    is_viewed: bool = False
    """Whether some axes are views of one column (``viewed``)."""

    def __post_init__(self) -> None:
        if any(one.shape[0] != len(self.rows) for one in self.readings):
            raise InternalError("a product table needs a combination for each of its rows")

    @property
    def readings(self) -> tuple[csr_array, ...]:
        return (self.combination, *self.others)

    @property
    def rows_per_unit(self) -> int:
        return self.products.rows_per_unit

    @property
    def has_structure(self) -> bool:
        """Whether blocks over a few axes may be better questions than cells: not with one axis."""
        return len(self.products.sizes) > 1

    @cached_property
    def asks_every_point(self) -> bool:
        """Whether the rows are tables of counts, by points of some axes each, and one of them is by all axes."""
        groups = self.products.groups
        return all(is_identity(factor) for group in groups for factor in group.factors) and any(
            len(group.axes) == len(self.products.sizes) for group in groups
        )

    @cached_property
    def row_peaks(self) -> Vector:
        """The largest entry of every row, in size; of a combination, no less than it."""
        if self.peaks is not None:
            return self.peaks
        sizes = np.zeros(self.combination.shape[1])
        for group in self.products.groups:
            sizes[group.rows] = peaks(group)
        return np.asarray(abs(self.combination) @ sizes)

    @cached_property
    def terms(self) -> tuple[NDArray[np.int64], Vector]:
        """Product rows and factors, as many for each row as the longest combination has; a factor of 0 is padding."""
        return self._terms[0].indices, self._terms[0].factors

    @cached_property
    def _terms(self) -> tuple[_Terms, ...]:
        return tuple(map(_Terms.of, self.readings))

    def weights_of_products(self, weights: Vector) -> Vector:
        """How much each product row counts, from the weights of the rows that it is in."""
        result = np.zeros(self.combination.shape[1])
        of_entries = np.repeat(weights, np.diff(self.combination.indptr))
        if self.is_viewed:  # a product row is part of many rows, or of none
            np.add.at(result, self.combination.indices, of_entries * np.square(self.combination.data))
            return result
        np.maximum.at(result, self.combination.indices, of_entries)
        return np.where(result > 0, result, 1.0)

    def only(self, rows: NDArray[np.bool_]) -> ProductTable:
        """Some rows of the batch, with the groups that they need."""
        chosen = rows[self.rows]
        first, *others = (one[np.flatnonzero(chosen)] for one in self.readings)
        needed = np.zeros(self.combination.shape[1], dtype=np.bool_)
        for one in (first, *others):
            needed[one.indices] = True
        return replace(
            self,
            products=self.products.only(needed),
            rows=self.rows[chosen],
            combination=first,
            others=tuple(others),
            peaks=None if self.peaks is None else self.peaks[chosen],
        )

    def read_as(self, number: int) -> ProductTable:
        """The same rows with one of their combinations alone, and the groups that it needs."""
        combination = self.readings[number]
        needed = np.zeros(combination.shape[1], dtype=np.bool_)
        needed[combination.indices] = True
        return replace(self, products=self.products.only(needed), combination=combination, others=())

    def answered(self, evidence: Sequence[Evidence]) -> ProductAnswers:
        """What evidence over the table's own points says of the product rows."""
        return self.seen([View(self.products.groups, tuple(evidence))])

    def seen(self, views: Sequence[View]) -> ProductAnswers:
        """What evidence over several cuts of the axes says of the product rows."""
        return ProductAnswers(views, self.combination.shape[1])

    def stderr(self, answers: ProductAnswers) -> Vector:
        """Of each row of the batch."""
        return np.asarray(np.sqrt(self._read(answers)[1]))

    def values(self, answers: ProductAnswers) -> Vector:
        return self._read(answers)[0].values(answers)

    def covariance(self, answers: ProductAnswers, i: NDArray[np.int64], j: NDArray[np.int64]) -> Vector:
        """Between rows at positions i and j."""
        return self._read(answers)[0].covariance(answers, i, j)

    def _read(self, answers: ProductAnswers) -> tuple[_Terms, Vector]:
        """For each row the combination of least variance, and that: a choice by the noise alone, never by a value."""
        if id(answers) not in self._known:
            terms = self._terms[0]
            variance = terms.variances(answers)
            for other in self._terms[1:]:
                found = other.variances(answers)
                terms, variance = terms.where(found < variance, other), np.minimum(found, variance)
            self._known.clear()
            self._known[id(answers)] = answers, terms, variance
        return self._known[id(answers)][1:]

    @cached_property
    def _known(self) -> dict[int, tuple[ProductAnswers, _Terms, Vector]]:
        return {}
