"""A workload that is never written out: groups of queries, each a Kronecker product of small matrices over a few axes.

A batch over fifteen columns of ten values has 10¹⁵ cells, but each of its queries speaks of two or three columns. Its
rows are kept as groups: one group holds every combination of one row of each of its factors. Axes that a group does not
name are added up over. What is asked of the data is kept alike: a block of questions is a product of one small matrix
for each of its axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import row_peaks
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import InternalError

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ProductRows:
    """Rows of the workload that are one Kronecker product."""

    axes: Axes
    factors: tuple[Matrix, ...] = field(repr=False)
    """One for each axis: some rows over the points of the axis."""
    rows: NDArray[np.int64] = field(repr=False)
    """Which rows those are, in the order of the product: the last factor's rows run fastest."""
    part: int = 0
    """Groups of one number were asked by one statement: a plan is never worse than those of the statements apart."""

    def __post_init__(self) -> None:
        if len(self.axes) != len(self.factors) or len(set(self.axes)) != len(self.axes):
            raise InternalError("a group of rows needs one factor for each of its axes")
        if math.prod(self.shape) != len(self.rows):
            raise InternalError("a group of rows needs a number for each row of the product")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows each factor has."""
        return tuple(len(factor) for factor in self.factors)

    @cached_property
    def by_axis(self) -> Mapping[int, Matrix]:
        return dict(zip(self.axes, self.factors, strict=True))


@dataclass(frozen=True, eq=False)
class ProductWorkload:
    """The part of a batch that reads one private table, as groups of product rows."""

    sizes: tuple[int, ...]
    """The number of points of each axis."""
    groups: tuple[ProductRows, ...]
    rows_per_unit: int = 1
    """k: one privacy unit owns at most so many rows of the table."""
    summed: frozenset[int] = frozenset()
    """The axes over whose points one row is divided."""
    fixed_point: int = 1
    """What one row adds to the counts in total where it is divided: a power of two."""

    def __post_init__(self) -> None:
        for group in self.groups:
            if any(f.ndim != 2 or f.shape[1] != self.sizes[a] for a, f in group.by_axis.items()):
                raise InternalError("a factor does not fit its axis")
            if any(not np.isfinite(f).all() or not row_peaks(f).all() for f in group.factors):
                raise InternalError("the rows of a factor must be finite and not zero")

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The rows of the batch that the groups hold."""
        return np.concatenate([group.rows for group in self.groups] or [np.zeros(0, dtype=np.int64)])

    def one_row(self, axes: Sequence[int]) -> int:
        """What one row of the table adds to the counts over these axes."""
        return self.fixed_point if self.summed.intersection(axes) else 1

    def points(self, axes: Sequence[int]) -> int:
        """How many cells these axes have."""
        return math.prod(self.sizes[axis] for axis in axes)

    def only(self, rows: NDArray[np.bool_]) -> ProductWorkload:
        """The groups that hold some of these rows; a group is kept whole."""
        return replace(self, groups=tuple(group for group in self.groups if rows[group.rows].any()))


def peaks(group: ProductRows) -> Vector:
    """The largest entry of every row, in size."""
    return kron([row_peaks(factor) for factor in group.factors])


def kron(vectors: Sequence[Vector]) -> Vector:
    """The Kronecker product of vectors."""
    result = np.ones(1)
    for vector in vectors:
        result = np.multiply.outer(result, vector).reshape(-1)
    return result


@dataclass(frozen=True, eq=False)
class Block:
    """Questions over one set of axes: every combination of one row of each factor, each factor of column norm 1."""

    axes: Axes
    factors: tuple[Matrix, ...] = field(repr=False)
    splits: tuple[Vector | None, ...] = field(repr=False)
    """For a factor that sees no total: the weights p that all of its rows are orthogonal to; they add up to 1."""

    @property
    def questions(self) -> int:
        return math.prod(len(factor) for factor in self.factors)


@dataclass(frozen=True, eq=False)
class ProductStrategy:
    """Blocks of questions that determine a product workload, and what they cost.

    Guarantee: a unit adds to one cell of every set of axes, so it moves the answers to a block by one column of a
    product, whose norm is the product of the factors' norms: 1. With a share of the budget for each block, all blocks
    together cost what one question of norm 1 does (``JointPlan.calibrate``). What calibrates noise is recomputed in
    exact integers on the rounded factors.
    """

    name: str
    privacy: Privacy
    blocks: tuple[Block, ...]
    shares: tuple[float, ...]
    """Of ε (pure), or of 1/σ² (approximate); they sum to one."""
    error: float
    """The sum of squared errors of the scaled rows, but for the noise's own constant, as ``Strategy.error``."""
    lower_bound: float
    seconds: float = 0.0

    @property
    def spreads(self) -> tuple[float, ...]:
        """The noise on each block's questions, where noise on one question of norm 1 for the whole budget is 1."""
        return tuple(1 / s if self.privacy == "pure" else 1 / math.sqrt(s) for s in self.shares)
