"""The centre of the likelihood: a better estimate than least squares where Laplace noise was measured with redundancy.

Post-processing only: the input was released already. Write the questions as S·x in units of their noise, and let z be
what was measured. Least squares is the best *linear* estimate; under Laplace noise of scale b others are better. Of all
estimates that follow a shift (z + S·c gives x̂ + c) the one of least variance, for every query at once, is Pitman's: the
mean of the likelihood exp(−Σ|z_i − S_i·x|/b_i) over x. The maximum of the likelihood is not: with fewer than three
measurements of everything it is far worse than least squares (``benchmarks/inference.py``). What is computed here is
the mean's variational approximation, which is within a percent of it there and costs a moment:

    x̂ minimises Σ √((z_i − S_i·x)² + h_i)/b_i + Σ (z_i − S_i·x)²/2

over the questions with Laplace and with Gaussian noise. h_i is the leverage of question i, the variance of S_i·x under
least squares: replacing an unknown (z_i − S_i·x)² by its mean adds h_i to its square. So the sum is strictly convex and
x̂ is unique; without redundancy, and with Gaussian noise alone, it is least squares.

The estimate follows shifts, so the distribution of its error is the same for all data. It is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from tacit.engine.inference.draws import draw
from tacit.engine.inference.tiers import first_tier, outside, row_space
from tacit.engine.linalg import computed_rank, rebuild, svd
from tacit.errors import NotSupportedError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

QUESTIONS, ROWS = 2048, 20_000
"""So many questions, and rows of a batch, are estimated this way."""
WORTH_IT = 0.95
"""Least squares stays where the mean squared error does not fall below this share of its own: its intervals are exact,
and those from draws a few percent too wide."""
_STEPS = 50
"""Of the minimisation. Never more and never fewer: answers and simulated errors come of the same function, so that
the intervals hold however near the minimum it ends."""
_LEAST_LEVERAGE = 1e-9
_DRAWS = (1000, 40_000)
_WORK, _NUMBERS = 1e11, 2e7
"""The simulation stays within so many operations and stored numbers, the least number of draws apart."""
_AT_ONCE = 1 << 16
"""Numbers of one chunk of draws: they stay in the processor's cache."""


def check_size(questions: int, rows: int) -> None:
    """NotSupportedError for what would take too long to simulate: to be called before anything is charged."""
    if questions > QUESTIONS or rows > ROWS:
        raise NotSupportedError(
            f'inference="likelihood" is for up to {QUESTIONS:,} measured questions and {ROWS:,} figures of one table; '
            f"this batch has {questions:,} and {rows:,}, with what was released before\n"
            "hint: leave inference= out, or ask for fewer queries at a time"
        )


class _Tier:
    """The minimisation for measurements of comparable noise, many vectors of answers at a time."""

    def __init__(self, questions: Matrix, laplace: Vector) -> None:
        U, s, _ = svd(questions)
        self._basis: Matrix = np.ascontiguousarray(U[:, : computed_rank(s)])
        leverage = np.einsum("ij,ij->i", self._basis, self._basis)
        self.redundant = bool((leverage[laplace > 0] < 1 - 1e-6).any())
        self._leverage: Vector = np.maximum(leverage, _LEAST_LEVERAGE)[:, None]
        self._laplace = (laplace > 0)[:, None]
        self._scale: Vector = np.where(laplace > 0, laplace, 1.0)[:, None]
        # The second derivative of √(e² + h)/b is at most 1/(b·√h), so M bounds the curvature of the whole sum.
        curvature = np.where(self._laplace, 1 / (self._scale * np.sqrt(self._leverage)), 1.0)
        M = self._basis.T @ (curvature * self._basis)
        factor = scipy.linalg.cholesky(M, lower=True)
        self._steps: Matrix = scipy.linalg.solve_triangular(factor, self._basis.T, lower=True).T

    @property
    def operations(self) -> float:
        """Of two products in every step, and of a root and a division for every question, which take as long as 200."""
        questions, directions = self._basis.shape
        return float(_STEPS * questions * (4 * directions + 200))

    def fit(self, answers: Matrix) -> Matrix:
        """S·x̂ for every column of answers: accelerated gradient steps of size one in the metric M, with restarts.

        They start at least squares, and each column restarts by itself (O'Donoghue & Candès 2015).
        """
        least_squares = self._basis @ (self._basis.T @ answers)
        if not self.redundant:
            return np.asarray(least_squares)
        residual, A = answers - least_squares, self._steps
        c = y = np.zeros((A.shape[1], answers.shape[1]))
        momentum = np.ones(answers.shape[1])
        for _ in range(_STEPS):
            e = residual - A @ y
            slope = np.square(e)
            slope += self._leverage
            np.sqrt(slope, out=slope)
            slope *= self._scale
            np.divide(e, slope, out=slope)
            gradient = A.T @ (slope if self._laplace.all() else np.where(self._laplace, slope, e))
            moved = y + gradient
            turns = np.einsum("ij,ij->j", gradient, moved - c) < 0
            momentum[turns] = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            y = moved + np.where(turns, 0.0, (momentum - 1) / following) * (moved - c)
            c, momentum = moved, following
        return np.asarray(least_squares + A @ c)


class Centre:
    """The estimate for one set of questions. Tiers of noise are estimated one after the other: see ``tiers``."""

    def __init__(self, questions: Matrix, laplace: Vector, level: Vector) -> None:
        self._first = first_tier(level)
        upper, lower = questions[self._first], questions[~self._first]
        self._tier = _Tier(upper, laplace[self._first])
        self._rest: Centre | None = None
        if len(lower):
            basis = row_space(upper)
            self._implied = rebuild((lower @ basis) @ basis.T, upper)
            self._rest = Centre(outside(lower, basis), laplace[~self._first], level[~self._first])

    @property
    def redundant(self) -> bool:
        """Whether the estimate differs from least squares at all."""
        return self._tier.redundant or (self._rest is not None and self._rest.redundant)

    @property
    def operations(self) -> float:
        """Of fitting one vector of answers."""
        return self._tier.operations + (0.0 if self._rest is None else self._rest.operations)

    def fit(self, answers: Matrix) -> Matrix:
        """S·x̂ for every column of answers."""
        fitted = np.empty_like(answers)
        fitted[self._first] = self._tier.fit(answers[self._first])
        if self._rest is not None:
            implied = self._implied @ fitted[self._first]
            fitted[~self._first] = implied + self._rest.fit(answers[~self._first] - implied)
        return fitted


@dataclass(frozen=True, eq=False)
class Deviations:
    """Simulated errors of rows, which are the true ones' in distribution, and what they are worth."""

    rows: Matrix
    """Rows × draws."""
    gain: float
    """The mean squared error of a row as a share of least squares' on the same draws; the mean over the rows."""


def simulate(centre: Centre, B: Matrix, laplace: Vector, steps: Vector) -> Deviations:
    """The errors of B·S·x̂ for noise of unit variance on every question (``draws.draw``).

    The numbers drawn here protect nobody, and they depend on no data: a fixed seed makes the same batch state the same
    errors. They must never reach a release.
    """
    rng = np.random.default_rng(20121101)
    m, q = B.shape
    draws = int(np.clip(min(_WORK / centre.operations, _NUMBERS / max(m, 1)), *_DRAWS))
    deviations, squares = np.empty((m, draws)), np.zeros((2, m))
    chunk = max(_AT_ONCE // max(q, 1), 32)
    for start in range(0, draws, chunk):
        count = min(chunk, draws - start)
        noise = draw(laplace, steps, count, rng)
        part = B @ centre.fit(noise)
        deviations[:, start : start + count] = part
        squares += np.square(part).sum(axis=1), np.square(B @ noise).sum(axis=1)
    estimated = squares[:, squares[1] > 0]
    return Deviations(deviations, float((estimated[0] / estimated[1]).mean()) if estimated.size else 1.0)
