"""Post-processing: the best linear answers from one or several measurements of the same cells.

Nothing here sees private data, so nothing here costs budget; the whole file could be wrong and privacy
would hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tacit.errors import InternalError

from .intervals import RatioAnswer, half_widths, ratio
from .leastsquares import one_thread, rebuild, residual
from .measurement import Measurement
from .nonnegative import fit, simulate
from .plan import Block

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Index = int | Sequence[int] | NDArray[np.int64]

_ANSWERED = 1e-6


@dataclass(frozen=True, eq=False)
class Spread:
    """How the noise of the measurements reaches some rows of the batch."""

    rows: NDArray[np.int64]
    laplace: Matrix
    """Coefficients on independent Laplace(1) variables."""
    gaussian: Matrix
    """Coefficients on independent N(0, 1) variables."""
    simulated: Matrix | None = None
    """Or simulated deviations of the rows (rows × draws), where no formula holds."""

    def covariance(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Vector:
        """Between rows at positions i and j of this spread."""
        if self.simulated is not None:
            return np.asarray((self.simulated[i] * self.simulated[j]).mean(axis=-1))
        laplace = 2 * (self.laplace[i] * self.laplace[j]).sum(axis=-1)
        return np.asarray(laplace + (self.gaussian[i] * self.gaussian[j]).sum(axis=-1))

    def half_width(self, confidence: float) -> Vector:
        if self.simulated is not None:
            return np.asarray(np.quantile(np.abs(self.simulated), confidence, axis=1), dtype=np.float64)
        return half_widths(self.laplace, np.linalg.norm(self.gaussian, axis=1), confidence)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Answers to the rows of a batch, with their errors."""

    values: Vector
    stderr: Vector
    spreads: tuple[Spread, ...]
    cells: tuple[Vector, ...]
    """For each block, cell counts that every answer agrees with: ``matrix @ cells`` is ``values``."""

    def half_width(self, confidence: float = 0.95) -> Vector:
        """h with P(|value − truth| ≤ h) = confidence, row by row."""
        widths = np.zeros_like(self.values)
        for spread in self.spreads:
            widths[spread.rows] = spread.half_width(confidence)
        return widths

    def covariance(self, i: Index, j: Index) -> Vector:
        """The covariance of the errors of rows i and j, elementwise; different tables are independent."""
        first, second = np.broadcast_arrays(np.atleast_1d(i), np.atleast_1d(j))
        result = np.zeros(first.shape)
        for spread in self.spreads:
            position = np.full(len(self.values), -1)
            position[spread.rows] = np.arange(len(spread.rows))
            a, b = position[first], position[second]
            both = (a >= 0) & (b >= 0)
            result[both] = spread.covariance(a[both], b[both])
        return result

    def ratio(
        self,
        numerator: Sequence[int] | NDArray[np.int64],
        denominator: Sequence[int] | NDArray[np.int64],
        low: Vector | float,
        high: Vector | float,
        confidence: float = 0.95,
    ) -> RatioAnswer:
        """values[numerator] / values[denominator] inside the clamp: see ``intervals.ratio``."""
        S, N = np.asarray(numerator, dtype=np.int64), np.asarray(denominator, dtype=np.int64)
        widths = self.half_width(confidence)
        units = np.divide(widths, self.stderr, out=np.zeros_like(widths), where=self.stderr > 0)
        return ratio(
            self.values[S],
            self.values[N],
            self.stderr[S] ** 2,
            self.stderr[N] ** 2,
            self.covariance(S, N),
            low,
            high,
            confidence,
            np.maximum(units[S], units[N]),
        )


def estimate(matrix_rows: Matrix, measurements: Sequence[Measurement], *, nonnegative: bool = False) -> Estimate:
    """Generalised least squares over all measurements of one table's cells.

    Every measurement is divided by its own standard deviation and B = W·(stacked L)⁺, the best linear
    unbiased estimator (Gauss–Markov; for one measurement, the A⁺ of COA's Eq. 2). More measurements only
    make answers better, and exact relations between rows (q1 = q2 + q3) hold between answers.
    """
    rows = np.arange(matrix_rows.shape[0], dtype=np.int64)
    return estimate_batch(
        [Block(matrix_rows, rows)] if len(rows) else [],
        [(m,) for m in measurements] if len(rows) else [],
        rows=len(rows),
        nonnegative=nonnegative,
    )


def estimate_batch(
    blocks: Sequence[Block],
    releases: Sequence[Sequence[Measurement]],
    *,
    rows: int | None = None,
    nonnegative: bool = False,
) -> Estimate:
    """Answers to every row of the batch from one or several releases of the same blocks."""
    count = max((int(b.rows.max(initial=-1)) + 1 for b in blocks), default=0) if rows is None else rows
    values, stderr = np.zeros(count), np.zeros(count)
    spreads, cells = [], []
    for position, block in enumerate(blocks):
        measurements = [release[position] for release in releases]
        solve = _nonnegative if nonnegative else _linear
        with one_thread():
            values[block.rows], x, spread = solve(block, measurements)
        diagonal = np.arange(len(block.rows))
        stderr[block.rows] = np.sqrt(spread.covariance(diagonal, diagonal))
        spreads.append(spread)
        cells.append(x)
    return Estimate(values, stderr, tuple(spreads), tuple(cells))


def covered(matrix_rows: Matrix, measurements: Sequence[Measurement]) -> NDArray[np.bool_]:
    """Which rows lie in the row space of what was released: those have an unbiased answer already."""
    if not measurements:
        return np.zeros(matrix_rows.shape[0], dtype=np.bool_)
    stack, _ = _stacked(measurements)
    gap = np.abs(matrix_rows - rebuild(matrix_rows, stack) @ stack).max(axis=1, initial=0.0)
    return np.asarray(gap <= 1e-9 * np.abs(matrix_rows).max(axis=1, initial=0.0))


def _linear(block: Block, measurements: Sequence[Measurement]) -> tuple[Vector, Vector, Spread]:
    stack, z = _stacked(measurements)
    B = rebuild(block.matrix, stack)
    if residual(block.matrix, B, stack) > _ANSWERED:
        raise InternalError("these measurements do not answer this workload")
    x = rebuild(z[None, :], stack.T)[0]  # stack⁺ z, the least-squares cells of least norm
    return B @ z, x, _spread(block, B, measurements)


def _nonnegative(block: Block, measurements: Sequence[Measurement]) -> tuple[Vector, Vector, Spread]:
    stack, z = _stacked(measurements)
    x = fit(stack, z[:, None])[:, 0]
    kinds = np.concatenate([np.full(len(m.noisy), m.noise == "laplace") for m in measurements])
    deviations = block.matrix @ simulate(stack, x, kinds)
    nothing = np.zeros((len(block.rows), 0))
    return block.matrix @ x, x, Spread(block.rows, nothing, nothing, deviations)


def _stacked(measurements: Sequence[Measurement]) -> tuple[Matrix, Vector]:
    """All questions and answers, each divided by its standard deviation, so that every error has variance one."""
    if not measurements:
        raise InternalError("there is no measurement to estimate from")
    if len({m.L_int.shape[1] for m in measurements}) != 1:
        raise InternalError("these measurements are not of the same cells")
    stack = np.vstack([m.L / m.stddev for m in measurements])
    return stack, np.concatenate([m.values / m.stddev for m in measurements])


def _spread(block: Block, B: Matrix, measurements: Sequence[Measurement]) -> Spread:
    laplace, gaussian = [np.zeros((len(block.rows), 0))], [np.zeros((len(block.rows), 0))]
    start = 0
    for m in measurements:
        part = B[:, start : start + len(m.noisy)]
        start += len(m.noisy)
        if m.noise == "laplace":
            laplace.append(part * (m.scale / m.stddev))
        else:
            gaussian.append(part)
    return Spread(block.rows, np.hstack(laplace), np.hstack(gaussian))
