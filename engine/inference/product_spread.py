"""How the noise of blocks of products reaches the rows of a batch: what an ``Estimate`` asks of a spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.engine.mechanism.noise import Kind
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.table_plan import product_widths
from tacit.engine.product_answers import ProductAnswers
from tacit.engine.strategy import Vector


@dataclass(frozen=True, eq=False)
class ProductSpread:
    """The errors of a table whose cells are not listed."""

    table: ProductTable
    answers: ProductAnswers = field(repr=False)
    noises: tuple[tuple[Kind, float], ...] = field(repr=False)
    """Kind and scale, in steps, of every noise behind the answers."""

    @property
    def rows(self) -> NDArray[np.int64]:
        return self.table.rows

    @cached_property
    def stderr(self) -> Vector:
        """The standard error of each row; infinite where it is not determined."""
        return self.table.stderr(self.answers)

    @property
    def steps(self) -> Vector | None:
        """How far apart the values of each Laplace noise are, in units of its scale."""
        steps = [1 / scale for kind, scale in self.noises if kind == "laplace"]
        return np.array(steps) if steps else None

    def covariance(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Vector:
        """Between rows at positions i and j of this spread."""
        return self.table.covariance(self.answers, np.asarray(i), np.asarray(j))

    def combined(self, terms: Sequence[tuple[NDArray[np.int64], Vector]]) -> CombinedSpread:
        """The spread of Σ coefficient·row, elementwise; a row at position -1 is not of this spread."""
        inside = [(np.maximum(rows, 0), np.where(rows >= 0, factor, 0.0)) for rows, factor in terms]
        variance = np.zeros(len(inside[0][0]))
        for rows, factor in inside:
            for others, other in inside:
                both = factor * other
                if both.any():
                    variance += both * self.covariance(rows, others)
        return CombinedSpread(np.sqrt(np.maximum(variance, 0.0)), self.noises)

    def half_width(self, confidence: float, *, convex: bool = False) -> Vector:
        """The half-width of each row: see ``product_widths``."""
        finite = np.where(np.isfinite(self.stderr), self.stderr, 0.0)
        return product_widths(finite, self.noises, confidence)


@dataclass(frozen=True, eq=False)
class CombinedSpread:
    """The errors of combinations of rows."""

    stderr: Vector
    noises: tuple[tuple[Kind, float], ...]

    def half_width(self, confidence: float, *, convex: bool = False) -> Vector:
        return product_widths(self.stderr, self.noises, confidence)
