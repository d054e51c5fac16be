"""How far noise on a coarse lattice reaches: quantiles of sums of discrete Laplace variables.

Let E = Σ a_j·K_j with P(K_j = k) ∝ p_j^|k|: a_j is what one step of the lattice adds to the answer. Two bounds on the
half-width are known, and the smaller one is used.

*Half a step.* The discrete variable is a continuous one with less spread: X = K + D with independent K and D, because
the whole and the fractional part of an exponential variable are independent. So E is covered by the width of the
continuous sum plus half of the largest step. For one variable that is proven: P(|K| > q + ½) ≤ 2√p/(1 + p)·p^q ≤ p^q.

*The distribution itself.* Where a step is a large part of the noise, E is mostly a few multiples of a step, and half a
step is too much: at ε = 4 a count is exact 19 times out of 20. There the distribution is computed on a grid, through
its characteristic function Π (1 − p)²/(1 − 2p·cos(a·u) + p²). If all a_j are multiples of one number, so is the grid,
and the result is exact. Otherwise every multiple of a_j is moved to the grid, by half a grid step at most, and the
width is widened by that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

COARSE = 1 / 16
"""Steps of the lattice, in units of the noise's scale, from which on the distribution itself is computed."""
_POINTS = 1 << 14
_PLACED = 24
"""So many steps are put on the grid one by one; others, the smallest, are rounded up to it."""
_DIVISORS = range(1, 13)
_LEFT_OVER = 1e-5
"""Of the allowed probability of missing: what may lie outside the grid."""
_ROUNDING = 1e-12
"""A width is narrowed by so much of itself: five steps are not to be more than five. Intervals have room for it."""
_TILTS = 1 - np.logspace(-3, -1e-3, 100)


def lattice_widths(atoms: Matrix, steps: Vector, tail: float) -> Vector:
    """h with P(|E| > h) ≤ 2·tail for every row of ``atoms``, the a_j; p_j = exp(−steps_j)."""
    sizes = np.abs(atoms)
    largest = sizes.max(axis=1, initial=0.0)
    shares = np.divide(sizes, largest[:, None], out=np.zeros_like(sizes), where=largest[:, None] > 0)
    computed: dict[bytes, float] = {}
    widths = np.zeros(len(atoms))
    for row in np.flatnonzero(largest > 0):
        # Workloads repeat themselves: equal noises in any order have one width.
        used = shares[row] > 0
        noises, counts = np.unique(
            np.stack([np.round(shares[row, used], 12), steps[used]], axis=1), axis=0, return_counts=True
        )
        key = noises.tobytes() + counts.tobytes()
        if key not in computed:
            computed[key] = _width(noises[::-1, 0], noises[::-1, 1], counts[::-1], 2 * tail)
        widths[row] = computed[key] * largest[row]
    return widths


def _width(atoms: Vector, steps: Vector, counts: NDArray[np.intp], missing: float) -> float:
    """The width for distinct noises, the largest atom first; each is there as often as its count."""
    reach = _reach(atoms, steps, counts, _LEFT_OVER * missing)
    unit = _common_unit(atoms)
    if unit is not None and 2 * reach / unit < _POINTS / 2:
        points = 1 << int(np.ceil(np.log2(2 * reach / unit + 2)))
        placed = 0
        grid = unit
    else:
        points, placed = _POINTS, min(_PLACED, len(atoms))
        grid = 2 * reach / (points - 2)
    u = 2 * np.pi * np.arange(points // 2 + 1) / points
    characteristic = np.ones(len(u))
    for atom, step, count in zip(atoms[:placed], steps[:placed], counts[:placed], strict=True):
        characteristic *= _on_grid(atom / grid, step, int(count), points)
    for atom, step, count in zip(atoms[placed:], steps[placed:], counts[placed:], strict=True):
        characteristic *= _characteristic(np.ceil(atom / grid - 1e-9) * u, step) ** count
    mass = np.maximum(np.fft.irfft(characteristic, points), 0.0)
    beyond = 2 * np.cumsum(mass[points // 2 : 0 : -1])[::-1]  # P(|E| ≥ i·grid) for i = 1, 2, …
    allowed = (1 - 2 * _LEFT_OVER) * missing
    enough = np.flatnonzero(beyond <= allowed)
    first = int(enough[0]) if enough.size else len(beyond)
    return float((first + placed / 2) * grid) * (1 - _ROUNDING)


def _characteristic(u: Vector, step: float) -> Vector:
    """E cos(u·K)."""
    q = -np.expm1(-step)
    return np.asarray(q**2 / (q**2 + 4 * (1 - q) * np.square(np.sin(u / 2))))


def _on_grid(atom: float, step: float, count: int, points: int) -> Vector:
    """The characteristic function of ``atom`` · (K_1 + … + K_count) with every value moved to the nearest integer."""
    length = 1 << max(4, int(np.ceil(np.log2(2 * points / max(atom, 1.0) + 2))))
    u = 2 * np.pi * np.arange(length // 2 + 1) / length
    mass = np.fft.irfft(_characteristic(u, step) ** count, length)
    k = np.fft.fftfreq(length, 1 / length)
    grid = np.bincount(np.rint(k * atom).astype(np.int64) % points, weights=mass, minlength=points)
    return np.asarray(np.fft.rfft(grid).real)


def _reach(atoms: Vector, steps: Vector, counts: NDArray[np.intp], probability: float) -> float:
    """r with P(|E| > r) ≤ ``probability``: the best of Chernoff's bounds."""
    best = np.inf
    for tilt in _TILTS:
        s = tilt * float((steps / atoms).min())
        turned = atoms * s
        q = -np.expm1(-steps)
        moment = 2 * np.log(q) - np.log(-np.expm1(turned - steps)) - np.log(-np.expm1(-turned - steps))
        best = min(best, (float((counts * moment).sum()) - np.log(probability / 2)) / s)
    return float(best)


def _common_unit(atoms: Vector) -> float | None:
    """A number that all atoms are small multiples of, if there is one."""
    for divisor in _DIVISORS:
        unit = float(atoms.min()) / divisor
        ratios = atoms / unit
        if float(np.abs(ratios - np.rint(ratios)).max()) < 1e-8:
            return unit
    return None
