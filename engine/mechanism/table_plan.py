"""One table's share of a joint plan: a strategy on its lattice, written out or as blocks of products."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import row_norms, row_peaks
from tacit.engine.mechanism.calibrate import least_error
from tacit.engine.mechanism.lattice import Asked, Lattice, Resolution, released_resolution
from tacit.engine.mechanism.noise import Kind, variance
from tacit.engine.mechanism.product_lattice import ProductLattice, evidence_from
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.mechanism.viewed import rows_apart
from tacit.engine.mechanism.widths import half_widths, longest_reach, normal_reach
from tacit.engine.product_workload import ProductStrategy
from tacit.engine.strategy import Strategy

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QuestionBlock:
    """Questions of one table that share one noise: what ``calibrate`` and ``measure`` go through one by one."""

    strategy: str
    lattice: Asked
    share: Fraction
    """Of ε (pure), or of 1/σ² (approximate); the shares of a plan sum to one."""
    rows_per_unit: int
    one_row: int

    def resolution(self, noise_per_sensitivity: float) -> Resolution:
        """Of what is released of these questions; see ``lattice.released_resolution``."""
        return released_resolution(self.lattice, self.rows_per_unit, self.one_row, noise_per_sensitivity)


@dataclass(frozen=True)
class Calibrated:
    """One block of questions at one (ε, δ)."""

    kind: Kind
    resolution: Resolution
    scale: float
    """In steps of the released lattice."""
    step: int
    """One step of the released lattice is 2^step."""
    epsilon: Fraction
    """The block's share of ε (pure), or the whole ε (approximate)."""

    @property
    def stddev(self) -> float:
        return math.ldexp(math.sqrt(variance(self.kind, self.scale)), self.step)

    @property
    def real_scale(self) -> float:
        return math.ldexp(self.scale, self.step)

    @property
    def steps(self) -> float:
        """How far apart the values of the noise are, in units of its scale."""
        return 1 / self.scale


@dataclass(frozen=True, eq=False)
class TablePlan:
    """A table whose cells are listed."""

    workload: TableWorkload
    strategy: Strategy
    lattice: Lattice
    """``lattice.B @ lattice.L`` is the workload's matrix, unscaled."""
    row_weights: Vector = field(repr=False)
    """What each row was multiplied by when the error was minimised."""
    share: Fraction
    """Of ε (pure), or of 1/σ² (approximate); the shares of a plan sum to one."""

    @property
    def blocks(self) -> tuple[QuestionBlock, ...]:
        workload = self.workload
        return (QuestionBlock(self.strategy.name, self.lattice, self.share, workload.rows_per_unit, workload.one_row),)

    @property
    def rows(self) -> NDArray[np.int64]:
        return self.workload.rows

    @property
    def rows_per_unit(self) -> int:
        return self.workload.rows_per_unit

    @property
    def counts_whole_rows(self) -> bool:
        return self.workload.one_row == 1

    def stderr(self, noises: Sequence[Calibrated]) -> Vector:
        (noise,) = noises
        return noise.stddev * row_norms(self.lattice.B)

    def least_of_all(self, epsilon: float) -> float:
        """No ε-private mechanism has a smaller sum of squared errors of the scaled rows: ``calibrate.least_error``."""
        return least_error(self.workload.matrix * self.row_weights[:, None], epsilon, self.rows_per_unit)

    @property
    def scaled_peaks(self) -> Vector:
        """The largest entry of every scaled row."""
        return row_peaks(self.workload.matrix * self.row_weights[:, None])

    def widths(self, noises: Sequence[Calibrated], level: float) -> Vector:
        """The half-width of every row at a confidence."""
        (noise,) = noises
        B = noise.real_scale * self.lattice.B
        if noise.kind == "laplace":
            return half_widths(B, None, level, np.full(B.shape[1], noise.steps))
        return half_widths(np.zeros((len(B), 1)), row_norms(B), level)

    def unit_widths(self, level: float) -> Vector:
        """The widths for noise of scale one on a fine lattice."""
        if self.strategy.privacy == "pure":
            return half_widths(self.lattice.B, None, level)
        return normal_reach(level) * row_norms(self.lattice.B)

    def scaled_widths(self, unit: Vector, noises: Sequence[Calibrated], level: float) -> Vector:
        """Widths that hold on any lattice (``lattice_widths``): those of fine ones, and half of the largest step."""
        (noise,) = noises
        half_step = 0.5 * noise.steps * row_peaks(self.lattice.B) if noise.kind == "laplace" else 0.0
        return np.asarray(noise.real_scale * (unit + half_step))


@dataclass(frozen=True, eq=False)
class ProductPlan:
    """A table whose cells are not listed."""

    workload: ProductTable
    strategy: ProductStrategy
    lattices: tuple[ProductLattice, ...] = field(repr=False)
    row_weights: Vector = field(repr=False)
    """What each row is multiplied by in the error that is minimised."""
    share: Fraction
    block_shares: tuple[Fraction, ...] = field(repr=False)
    """Of the table's share, for each block."""

    @property
    def blocks(self) -> tuple[QuestionBlock, ...]:
        products = self.workload.products
        return tuple(
            QuestionBlock(
                self.strategy.name, lattice, self.share * share, products.rows_per_unit, products.one_row(lattice.axes)
            )
            for lattice, share in zip(self.lattices, self.block_shares, strict=True)
        )

    @property
    def rows(self) -> NDArray[np.int64]:
        return self.workload.rows

    @property
    def rows_per_unit(self) -> int:
        return self.workload.rows_per_unit

    @property
    def counts_whole_rows(self) -> bool:
        return all(block.one_row == 1 for block in self.blocks)

    @property
    def is_sound(self) -> bool:
        """Whether the rounded blocks determine every row."""
        return all(lattice.norm > 0 for lattice in self.lattices) and bool(np.isfinite(self._unit_stderr).all())

    def stderr(self, noises: Sequence[Calibrated]) -> Vector:
        reference = self._reference
        ratios = [n.stddev / r for n, r in zip(noises, reference, strict=True)]
        if max(ratios) <= min(ratios) * (1 + 1e-9):  # the noise of all blocks grows together
            return self._unit_stderr * ratios[0]
        return self._stderr([n.stddev for n in noises])

    @cached_property
    def _reference(self) -> list[float]:
        """The noise of every block, in real numbers, where noise for the whole budget at norm 1 is 1."""
        spreads = self.strategy.spreads
        return [
            math.ldexp(lattice.norm, lattice.exponent) * s for lattice, s in zip(self.lattices, spreads, strict=True)
        ]

    @cached_property
    def _unit_stderr(self) -> Vector:
        return self._stderr(self._reference)

    def _stderr(self, stddevs: Sequence[float]) -> Vector:
        """One (ε, δ) is asked about several times in a row."""
        known, key = self._last, tuple(stddevs)
        if key not in known:
            known.clear()
            known[key] = self.workload.stderr(self.workload.answered(evidence_from(self.lattices, stddevs)))
        return known[key]

    @cached_property
    def _last(self) -> dict[tuple[float, ...], Vector]:
        return {}

    def least_of_all(self, epsilon: float) -> float:
        """As for a listed table, of the group of rows that needs most.

        The bound of ``calibrate.least_error`` is v(ε)·Σ_k max_j (u_k·w_j)² for an orthonormal basis u; for a product of
        bases of the factors the sum is the product of their sums. Fewer rows never need more. Rows that exclude each
        other hold the points where each is largest.
        """
        one_count = least_error(np.ones((1, 1)), epsilon)
        if one_count < sys.float_info.min:  # at an ε of hundreds the least is no float any more
            return 0.0
        weights = np.zeros(self.workload.combination.shape[1])
        indices, factors = self.workload.terms
        single = np.count_nonzero(factors, axis=1) == 1
        weights[indices[single, 0]] = (np.abs(factors[:, 0]) * self.row_weights)[single]
        known: dict[int, float] = {}
        apart = rows_apart(self.workload) if self.workload.is_viewed else []
        best = max((float(np.square(self.scaled_peaks[rows]).sum()) for rows in apart), default=0.0)
        for group in self.workload.products.groups:
            for factor in group.factors:
                if id(factor) not in known:
                    known[id(factor)] = least_error(factor, epsilon) / one_count
            least = float(np.min(weights[group.rows])) ** 2
            best = max(best, least * math.prod(known[id(factor)] for factor in group.factors))
        return best * one_count * self.rows_per_unit**2

    @property
    def scaled_peaks(self) -> Vector:
        return self.row_weights * self.workload.row_peaks

    def widths(self, noises: Sequence[Calibrated], level: float) -> Vector:
        """Wider than need be for sums of many Laplace variables: each row as if it had one of them alone."""
        return product_widths(self.stderr(noises), [(n.kind, n.scale) for n in noises], level)

    def unit_widths(self, level: float) -> Vector:
        return np.zeros(0)

    def scaled_widths(self, unit: Vector, noises: Sequence[Calibrated], level: float) -> Vector:
        return self.widths(noises, level)


def product_widths(stderr: Vector, noises: Sequence[tuple[Kind, float]], level: float) -> Vector:
    """Half-widths of sums of independent noises, from their standard errors; (kind, scale in steps) of each noise.

    Of all sums of Laplace variables with one variance, a single variable or a normal one reaches furthest
    (``longest_reach``). On a coarse lattice the width is that of continuous noise and half of the largest step
    (``lattice_widths``); no coefficient is larger than the standard error in units of its noise. Where one noise is far
    below its step, that says less than Chebyshev's inequality, which holds for every row whatever noises are in it.
    """
    laplace = [(scale, math.sqrt(variance(kind, scale))) for kind, scale in noises if kind == "laplace"]
    if not laplace:
        return normal_reach(level) * stderr
    continuous = max(math.sqrt(2) * scale / stddev for scale, stddev in laplace)
    half_step = max(0.5 / stddev for _, stddev in laplace)
    return min(longest_reach(level) * max(continuous, 1.0) + half_step, 1 / math.sqrt(1 - level)) * stderr


PartPlan = TablePlan | ProductPlan
