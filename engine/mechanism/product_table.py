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
class ProductTable:
    """Rows of a batch as combinations of product rows."""

    products: ProductWorkload = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    """Which rows of the batch these are."""
    combination: csr_array = field(repr=False)
    """Each of them over the product rows; mostly it is one of those."""

    def __post_init__(self) -> None:
        if self.combination.shape[0] != len(self.rows):
            raise InternalError("a product table needs a combination for each of its rows")

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
        sizes = np.zeros(self.combination.shape[1])
        for group in self.products.groups:
            sizes[group.rows] = peaks(group)
        return np.asarray(abs(self.combination) @ sizes)

    @cached_property
    def terms(self) -> tuple[NDArray[np.int64], Vector]:
        """Product rows and factors, as many for each row as the longest combination has; a factor of 0 is padding."""
        counts = np.diff(self.combination.indptr)
        width = int(counts.max(initial=1))
        indices = np.zeros((len(self.rows), width), dtype=np.int64)
        factors = np.zeros((len(self.rows), width))
        inside = np.arange(width) < counts[:, None]
        indices[inside], factors[inside] = self.combination.indices, self.combination.data
        return indices, factors

    def weights_of_products(self, weights: Vector) -> Vector:
        """How much each product row counts, from the weights of the rows that it is in."""
        result = np.zeros(self.combination.shape[1])
        counts = np.diff(self.combination.indptr)
        np.maximum.at(result, self.combination.indices, np.repeat(weights, counts))
        return np.where(result > 0, result, 1.0)

    def only(self, rows: NDArray[np.bool_]) -> ProductTable:
        """Some rows of the batch, with the groups that they need."""
        chosen = rows[self.rows]
        combination = self.combination[np.flatnonzero(chosen)]
        needed = np.zeros(self.combination.shape[1], dtype=np.bool_)
        needed[combination.indices] = True
        return replace(self, products=self.products.only(needed), rows=self.rows[chosen], combination=combination)

    def answered(self, evidence: Sequence[Evidence]) -> ProductAnswers:
        """What evidence over the table's own points says of the product rows."""
        return self.seen([View(self.products.groups, tuple(evidence))])

    def seen(self, views: Sequence[View]) -> ProductAnswers:
        """What evidence over several cuts of the axes says of the product rows."""
        return ProductAnswers(views, self.combination.shape[1])

    def stderr(self, answers: ProductAnswers) -> Vector:
        """Of each row of the batch."""
        indices, factors = self.terms
        if indices.shape[1] == 1:
            return np.asarray(np.abs(factors[:, 0]) * answers.stderr[indices[:, 0]])
        return np.asarray(np.sqrt(np.maximum(self.covariance(answers, np.arange(len(self.rows)), None), 0.0)))

    def values(self, answers: ProductAnswers) -> Vector:
        return np.asarray(self.combination @ answers.values)

    def covariance(self, answers: ProductAnswers, i: NDArray[np.int64], j: NDArray[np.int64] | None) -> Vector:
        """Between rows at positions i and j; without j, the variances, infinite where a row is not determined."""
        indices, factors = self.terms
        second = i if j is None else j
        result = np.zeros(len(i))
        for a in range(indices.shape[1]):
            for b in range(indices.shape[1]):
                both = factors[i, a] * factors[second, b]
                used = np.flatnonzero(both)
                if used.size:
                    result[used] += both[used] * answers.covariance(indices[i[used], a], indices[second[used], b])
        if j is None:
            open_rows = ~np.isfinite(np.where(factors[i] != 0, answers.stderr[indices[i]], 0.0)).all(axis=1)
            result[open_rows] = np.inf
        return result
