"""The range of a computed figure over all values that its released parts may truly have.

A figure f(a) is computed from released numbers a = θ + noise, and the exact answer is f(θ). Let Σ = A·Aᵀ be the noise's
covariance. The interval is the range of f over the ellipsoid {a + A·u : ‖u‖ ≤ z}. Where f is linear and z the quantile
of its noise that is the exact interval; for a ratio and normal noise it is Fieller's. In general it is the
profile-likelihood interval: no slope at one point is trusted to hold in another.

The range is found by looking: at fixed points of the ellipsoid first, then ever closer around the lowest and the
highest. Near a division by zero the range has no end: looking closer keeps finding more, and that side is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Array = NDArray[np.float64]

Figure = Callable[[Array], Array]
"""f, for many points at once: (figures, points, leaves) in, (figures, points) out; NaN where it has no value."""

_SHELLS = (1.0, 2 / 3, 1 / 3)
_CLOSER = (0.4, 0.1, 0.03)
_ENDLESS = 2.0
"""A range that grows by more than this while it is looked at more closely has no end."""
_POINTS = 2_000_000


@dataclass(frozen=True, eq=False)
class Slopes:
    """A figure near its released value."""

    value: Vector
    gradient: Array
    """Per leaf, in units of f per unit of the leaf; NaN where f has no value on both sides."""
    stderr: Vector
    """To first order."""


def factors(covariance: Array) -> Array:
    """A with A·Aᵀ = covariance, for each figure; leaves that move together make it singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def slopes(figure: Figure, centre: Array, factor: Array) -> Slopes:
    """Central differences over one standard deviation in each independent direction of the noise."""
    d = centre.shape[1]
    steps = np.concatenate([np.zeros((1, d)), np.eye(d), -np.eye(d)])
    found = figure(_moved(centre, factor, np.broadcast_to(steps, (len(centre), 2 * d + 1, d))))
    with np.errstate(invalid="ignore", over="ignore"):  # infinite on both sides: the slope is not known
        rise = (found[:, 1 : d + 1] - found[:, d + 1 :]) / 2
    lengths = np.square(factor).sum(axis=1)  # factor's columns are orthogonal
    inverse = np.divide(factor, lengths[:, None, :], out=np.zeros_like(factor), where=lengths[:, None, :] > 0)
    gradient = np.einsum("gij,gj->gi", inverse, rise)
    return Slopes(found[:, 0], gradient, np.sqrt(np.square(rise).sum(axis=1)))


def extremes(figure: Figure, centre: Array, factor: Array, radius: Vector) -> tuple[Vector, Vector]:
    """The lowest and highest value of f over the ellipsoid around each centre; NaN where f has none at the centre.

    The directions that are looked at are fixed, not private noise: the same figures always get the same interval.
    """
    count, d = centre.shape
    stream = np.random.default_rng(20160902)
    most = max(4, _POINTS // max(1, count * len(_SHELLS)))
    sphere = _sphere(d, min(most, 32 * d), stream)
    around = _sphere(d, min(most, 12 * d), stream)
    wide = factor * radius[:, None, None]
    first = np.concatenate([*(shell * sphere for shell in _SHELLS), np.zeros((1, d))])
    u = np.broadcast_to(first, (count, *first.shape))
    with np.errstate(invalid="ignore", over="ignore"):
        f = figure(_moved(centre, wide, u))
        value = f[:, -1]
        top, bottom = _Side(f - value[:, None], u), _Side(value[:, None] - f, u)
        before = top.best, bottom.best
        for scale in _CLOSER:
            near = np.concatenate([side.at[:, None, :] + scale * around for side in (top, bottom)], axis=1)
            near = near / np.maximum(1.0, np.linalg.norm(near, axis=2, keepdims=True))
            f = figure(_moved(centre, wide, near))
            top.look(f - value[:, None], near)
            bottom.look(value[:, None] - f, near)
        grown = [
            np.where(side.best > _ENDLESS * seen + 1e-9 * np.abs(value), np.inf, side.best)
            for side, seen in zip((top, bottom), before, strict=True)
        ]
        return value - grown[1], value + grown[0]


class _Side:
    """How far to one side of the released value f was seen, and where, for each figure."""

    def __init__(self, f: Array, u: Array) -> None:
        self.best = np.full(len(f), -np.inf)
        self.at = np.zeros((len(f), u.shape[2]))
        self.look(f, u)

    def look(self, f: Array, u: Array) -> None:
        seen = np.where(np.isnan(f), -np.inf, f)
        place = seen.argmax(axis=1)
        rows = np.arange(len(f))
        better = seen[rows, place] > self.best
        self.best = np.where(better, seen[rows, place], self.best)
        self.at = np.where(better[:, None], u[rows, place], self.at)


def _moved(centre: Array, factor: Array, u: Array) -> Array:
    return np.asarray(centre[:, None, :] + np.einsum("gij,gpj->gpi", factor, u))


def _sphere(d: int, points: int, stream: np.random.Generator) -> Array:
    """Directions on all sides: the axes and evenly spread others."""
    axes = np.concatenate([np.eye(d), -np.eye(d)])
    if d == 1:
        return axes
    others = stream.normal(size=(max(0, points - 2 * d), d))
    return np.concatenate([axes, others / np.linalg.norm(others, axis=1, keepdims=True)])
