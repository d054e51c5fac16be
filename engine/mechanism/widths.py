"""How far a sum of Laplace and Gaussian noise reaches: the half-width that holds at a stated confidence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from tacit.engine.accounting.amounts import to_confidence
from tacit.engine.linalg import row_norms, row_peaks
from tacit.engine.mechanism.lattice_widths import COARSE, lattice_widths
from tacit.engine.mechanism.noise import LARGEST_EXPONENT

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_LARGEST_COEFFICIENTS = 24
"""So many coefficients of a row are used one by one; the others together, by their first two cumulants."""
_STEP, _NODES = 0.15, 80
_FREQUENCY_STEP, _FREQUENCIES = 0.2, 600
_ROWS_AT_ONCE = 512
_MANY = 1e6
_SMALLEST_TAIL = 1e-9
_NEGLIGIBLE = 1e-9
"""Share of a row's largest coefficient up to which a coefficient is rounding."""


def half_widths(
    laplace: Matrix,
    gaussian_stderr: Vector | None = None,
    confidence: float = 0.95,
    steps: Vector | None = None,
    *,
    convex: bool = False,
) -> Vector:
    """The half-width h of each row with P(|X| ≤ h) = confidence, where X is a sum of independent noises.

    Row i is Σ_j laplace[i, j]·Laplace(1) + gaussian_stderr[i]·N(0, 1). Its characteristic function is
    Π_j 1/(1 + b_j² u²) · exp(−σ² u²/2), and the tail is found by inverting it numerically, so a single
    Laplace, a near-normal sum and anything between come out right to 10⁻⁴ or better for confidences from one
    half up. (A normal quantile would be 21% short for a single Laplace variable at 99%.)

    ``steps`` says of each Laplace variable how far apart its values are, in units of its scale: 1/scale for noise on
    integers, next to nothing on a fine lattice. Then h is the least that ``lattice_widths`` knows to hold, and the
    probability is at least the confidence. With ``convex`` it is that of half a step, which changes little when
    coefficients do: where a figure is not linear, the width in one direction has to tell of its neighbours.
    """
    level = to_confidence(confidence)
    widths = _smooth_widths(laplace, gaussian_stderr, (1 - level) / 2)
    if steps is None or not laplace.size:
        return widths
    normal = np.zeros(len(widths)) if gaussian_stderr is None else np.asarray(gaussian_stderr)
    atoms = np.abs(laplace) * steps
    widths = widths + row_peaks(atoms) / 2
    if convex:
        return widths
    stray = _NEGLIGIBLE * row_peaks(laplace)
    fine = np.abs(laplace[:, steps < COARSE]).sum(axis=1) + normal
    exact = np.flatnonzero((fine <= stray) & (atoms.max(axis=1) > 0))
    if exact.size and (1 - level) / 2 >= _SMALLEST_TAIL:
        coarse = steps >= COARSE
        kept = np.where(np.abs(laplace[exact][:, coarse]) > stray[exact, None], atoms[exact][:, coarse], 0.0)
        widths[exact] = np.minimum(widths[exact], lattice_widths(kept, steps[coarse], (1 - level) / 2))
    return widths


def normal_reach(confidence: float) -> float:
    """The half-width of a normal variable, in standard errors."""
    return -float(ndtri((1 - to_confidence(confidence)) / 2))


def longest_reach(confidence: float) -> float:
    """The half-width in standard errors of whichever is wider: a normal variable or a single Laplace."""
    tail = 1 - to_confidence(confidence)
    return max(normal_reach(confidence), float(-np.log(tail) / np.sqrt(2)))


def lattice_spread(steps: Vector) -> Vector:
    """The standard deviation of Laplace noise on a lattice over that of continuous noise of the same scale.

    ``steps`` are those of the lattice in units of the scale. It is t/sinh t for t = step/2 (``noise.variance``), next
    to 1 where the lattice is fine.
    """
    t = np.maximum(steps / 2, 1e-9)
    return np.asarray(t / np.sinh(np.minimum(t, LARGEST_EXPONENT)))


def _smooth_widths(laplace: Matrix, gaussian_stderr: Vector | None, tail: float) -> Vector:
    """The widths for noise without a lattice, or on a fine one."""
    m = laplace.shape[0]
    normal = np.zeros(m) if gaussian_stderr is None else np.asarray(gaussian_stderr, dtype=np.float64)
    stddev = np.sqrt(2 * np.square(row_norms(laplace)) + normal**2)
    widths: Vector = -float(ndtri(tail)) * stddev
    largest = row_peaks(laplace)
    alone = (stddev > 0) & (2 * largest**2 >= stddev**2 * (1 - 1e-9))
    widths[alone] = -np.log(2 * tail) * largest[alone]
    mixed = np.flatnonzero((largest > 1e-6 * stddev) & ~alone)
    if not mixed.size:
        return widths
    b, power = _compress(laplace[mixed] / stddev[mixed, None], normal[mixed] / stddev[mixed])
    # Workloads repeat themselves: equal shapes are inverted once.
    rows: Matrix = np.round(np.hstack([b, power]), 10).astype(np.float64)
    shapes, where = np.unique(rows, axis=0, return_inverse=True)
    quantiles = np.concatenate(
        [_quantiles(part[:, :-1], _powers(part), tail) for part in _chunks(shapes, _ROWS_AT_ONCE)]
    )
    widths[mixed] = quantiles[where.reshape(-1)] * stddev[mixed]
    return widths


def _chunks(rows: Matrix, size: int) -> list[Matrix]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _powers(shapes: Matrix) -> Matrix:
    """Every coefficient stands for one variable, the last one for as many as its power."""
    powers = np.ones((shapes.shape[0], shapes.shape[1] - 1))
    powers[:, -1] = shapes[:, -1]
    return powers


def _compress(laplace: Matrix, normal: Vector) -> tuple[Matrix, Matrix]:
    """The largest coefficients, and one (b, power) that has the variance and fourth cumulant of all the
    others.

    (1 − b²s²)^−p is the sum of p Laplace variables for whole p and as smooth for any other; a Gaussian
    part is the limit of many small ones.
    """
    b = np.abs(laplace)
    count = min(_LARGEST_COEFFICIENTS, b.shape[1])
    order = np.argpartition(b, b.shape[1] - count, axis=1)
    top = np.sort(np.take_along_axis(b, order[:, b.shape[1] - count :], axis=1), axis=1)[:, ::-1]
    rest = np.take_along_axis(b, order[:, : b.shape[1] - count], axis=1)
    second = np.square(rest).sum(axis=1) + normal**2 / 2
    fourth = np.square(np.square(rest)).sum(axis=1)
    power = np.minimum(second**2 / np.maximum(fourth, second**2 / _MANY + 1e-300), _MANY)
    last = np.sqrt(np.divide(second, power, out=np.zeros_like(second), where=power > 0))
    return np.hstack([top, last[:, None]]), power[:, None]


def _quantiles(b: Matrix, power: Matrix, tail: float) -> Vector:
    """x with P(X > x) = tail for each row."""
    if tail < _SMALLEST_TAIL:
        return _chernoff(b, power, tail)
    u: Vector = _FREQUENCY_STEP * np.arange(1, _FREQUENCIES + 1, dtype=np.float64)
    characteristic = np.zeros((b.shape[0], _FREQUENCIES))
    for j in range(b.shape[1]):
        characteristic -= power[:, j : j + 1] * np.log1p(np.square(b[:, j : j + 1] * u))
    characteristic = np.exp(characteristic)
    # Where the characteristic function has died out, the real integral is exact and cheap; where it has not,
    # one Laplace variable dominates, and the contour through its saddle point is.
    fast = characteristic[:, -1] < 1e-4 * tail
    x = np.zeros(b.shape[0])
    x[fast] = _newton(lambda v: _tail_by_frequencies(characteristic[fast], u, v), int(fast.sum()), tail)
    slow = ~fast
    x[slow] = _newton(lambda v: _tail_by_contour(b[slow], power[slow], v), int(slow.sum()), tail)
    return x


def _chernoff(b: Matrix, power: Matrix, tail: float) -> Vector:
    """min over s of (log E exp(sX) − log tail)/s: beyond what sums of floats resolve, a few percent too wide."""
    x = np.full(b.shape[0], np.inf)
    for t in 1 - np.logspace(-3, -1e-3, 200):
        s = t / b.max(axis=1)
        cumulant = -(power * np.log1p(-np.square(b * s[:, None]))).sum(axis=1)
        x = np.minimum(x, (cumulant - np.log(tail)) / s)
    return x


def _newton(tail_and_density: Callable[[Vector], tuple[Vector, Vector]], count: int, tail: float) -> Vector:
    """Newton's method on log P, which is concave because sums of Laplace variables are log-concave."""
    x = np.full(count, max(-float(ndtri(tail)), 1e-3))
    for _ in range(60 if count else 0):
        probability, density = tail_and_density(x)
        step = probability / density * np.log(probability / tail)
        x = np.clip(x + step, x / 4, x + 4)
        if np.abs(step).max() < 1e-9:
            break
    return x


def _tail_by_frequencies(characteristic: Matrix, u: Vector, x: Vector) -> tuple[Vector, Vector]:
    """Gil-Pelaez: P(X > x) = ½ − (1/π)∫ sin(ux)/u·φ(u) du, by the trapezoid rule, and the density."""
    angle = x[:, None] * u
    h = _FREQUENCY_STEP
    below = (h / np.pi) * ((np.sin(angle) / u * characteristic).sum(axis=1) + x / 2)
    density = (h / np.pi) * ((np.cos(angle) * characteristic).sum(axis=1) + 0.5)
    return 0.5 - below, density


def _tail_by_contour(b: Matrix, power: Matrix, x: Vector) -> tuple[Vector, Vector]:
    """P(X > x) and the density at x, of variables with Σ power·2b² = 1."""
    c = _saddle(b, power, x)
    near, far = 1 / (1 - b * c[:, None]), 1 / (1 + b * c[:, None])
    f2 = (power * b**2 * (near**2 + far**2)).sum(axis=1) + 1 / c**2
    f3 = (2 * power * b**3 * (near**3 - far**3)).sum(axis=1) - 2 / c**3
    bend = np.maximum(f3 / (6 * f2), 0.0)  # the path of steepest descent, to second order
    u = (np.arange(_NODES) * _STEP) / np.sqrt(f2)[:, None]
    s = c[:, None] + 1j * u + bend[:, None] * u**2
    exponent = -s * x[:, None] - np.log(s)
    for j in range(b.shape[1]):
        exponent -= power[:, j : j + 1] * np.log1p(-np.square(b[:, j : j + 1] * s))
    weight = np.full(_NODES, 1.0)
    weight[0] = 0.5
    integrand = np.exp(exponent) * (1 - 2j * bend[:, None] * u) * weight
    factor = (_STEP / np.sqrt(f2)) / np.pi
    return factor * integrand.real.sum(axis=1), factor * (integrand * s).real.sum(axis=1)


def _saddle(b: Matrix, power: Matrix, x: Vector) -> Vector:
    """The root of K'(s) − x − 1/s in (0, 1/max b), found by bisection: the left side only grows."""
    low, high = np.zeros_like(x), 1 / b.max(axis=1)
    for _ in range(50):
        s = (low + high) / 2
        slope = (2 * power * b**2 * s[:, None] / (1 - np.square(b * s[:, None]))).sum(axis=1) - x - 1 / s
        low, high = np.where(slope < 0, s, low), np.where(slope < 0, high, s)
    return low
