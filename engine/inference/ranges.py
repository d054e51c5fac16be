"""The range of a computed figure over all values that its released parts may truly have.

A figure f(a) is computed from released numbers a = θ + noise, and the exact answer is f(θ). Let Σ = A·Aᵀ be the noise's
covariance. The interval is the range of f over the ellipsoid {a + A·u : ‖u‖ ≤ z}. Where f is linear and z the quantile
of its noise that is the exact interval; for a ratio and normal noise it is Fieller's. In general it is the
profile-likelihood interval: no slope at one point is trusted to hold in another.

The range is searched: f is evaluated at fixed points of the whole ellipsoid first, then at points ever closer to the
lowest and the highest value so far. A margin covers what lies between the last points: as much as f still varies there.
Near a division by zero the range has no end: closer points keep giving larger values, and that side is infinite.

That z is enough where f rises along one side of the ellipsoid and falls along the other. Where it turns around inside,
as abs and greatest do, the truth may be missed in several directions at once: ``directions`` counts them.
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

_LINE = np.linspace(1 / 16, 1, 16)
"""Radii of the first points on the axes."""
_SHELLS = (1.0, 3 / 4, 1 / 2, 1 / 4)
"""Radii of the first points in all other directions."""
_CLOSER = (0.4, 0.2, 0.1, 0.03, 0.01, 0.003)
"""How close the points are to the best one so far, round by round."""
_RADII = (1.0, 0.4)
"""Of the two spheres that stand for a ball."""
_UPHILL = np.concatenate([2.0 ** -np.arange(8), -(2.0 ** -np.arange(8))])[:, None]
"""Steps up and down the slope."""
_WIDER = 1.3
"""How much wider than the best points the points around them are spread."""
_ENDLESS = 2.0
"""A range that grows by more than this factor while the points come closer has no end."""
_JUMP = 0.7
"""Where f still varies by this factor once the points are closer, it jumps, and both sides of the jump were seen."""
_TURN = 0.02
"""A figure turns around where it both rises and falls, along one line, by this part of its range."""
_DISTINCT = 0.1
"""Gradients span a further direction where their singular value is above this part of the largest."""
_POINTS = 2_000_000
"""At most so many values of f at a time: they are all in memory."""


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
    values = figure(_moved(centre, factor, np.broadcast_to(steps, (len(centre), 2 * d + 1, d))))
    with np.errstate(invalid="ignore", over="ignore"):  # infinite on both sides: the slope is not known
        rise = (values[:, 1 : d + 1] - values[:, d + 1 :]) / 2
    lengths = np.square(factor).sum(axis=1)  # factor's columns are orthogonal
    inverse = np.divide(factor, lengths[:, None, :], out=np.zeros_like(factor), where=lengths[:, None, :] > 0)
    gradient = np.einsum("gij,gj->gi", inverse, rise)
    return Slopes(values[:, 0], gradient, np.sqrt(np.square(rise).sum(axis=1)))


def directions(figure: Figure, centre: Array, factor: Array, radius: Vector) -> NDArray[np.int64]:
    """In how many independent directions each figure may miss: one, unless it turns around inside the ellipsoid.

    A figure that only rises or only falls along every line has flat level sets, and only the noise across them matters.
    """
    count, d = centre.shape
    result = np.ones(count, dtype=np.int64)
    if d == 1:
        return result
    wide = factor * radius[:, None, None]
    steps = np.linspace(-1, 1, 9)
    lines = _sphere(d, 12 * d)
    u = (lines[:, None, :] * steps[:, None]).reshape(1, -1, d)
    with np.errstate(invalid="ignore", over="ignore"):
        f = figure(_moved(centre, wide, np.broadcast_to(u, (count, *u.shape[1:]))))
        f = np.where(np.isfinite(f), f, np.nan).reshape(count, len(lines), len(steps))
        moves = np.nan_to_num(np.diff(f, axis=2))
        turn = np.minimum(np.maximum(moves, 0).sum(axis=2), np.maximum(-moves, 0).sum(axis=2)).max(axis=1)
        whole = np.fmax.reduce(f, axis=(1, 2)) - np.fmin.reduce(f, axis=(1, 2))
        turning = turn > _TURN * whole
    if not turning.any():
        return result
    half = np.concatenate([np.zeros((1, d)), np.eye(d) / 2, -np.eye(d) / 2])
    around = np.concatenate([np.eye(d), -np.eye(d)]) / 4
    u = (half[:, None, :] + around).reshape(1, -1, d)
    with np.errstate(invalid="ignore", over="ignore"):
        f = figure(_moved(centre, wide, np.broadcast_to(u, (count, *u.shape[1:])))).reshape(count, len(half), 2, d)
        gradients = f[:, :, 0] - f[:, :, 1]
    gradients = np.where(np.isfinite(gradients), gradients, 0.0)
    gradients /= np.maximum(np.abs(gradients).max(axis=(1, 2), keepdims=True), np.finfo(np.float64).tiny)
    sizes = np.linalg.svd(gradients, compute_uv=False)
    seen = (sizes > _DISTINCT * sizes[:, :1]).sum(axis=1)
    return np.where(turning, np.maximum(seen, 1), 1)


def ranges(figure: Figure, centre: Array, factor: Array, radius: Vector) -> tuple[Vector, Vector]:
    """The lowest and highest value of f over the ellipsoid around each centre; NaN where f has none at the centre.

    An end inside the ellipsoid has a margin for what lies between the points. An end on its surface has none: there a
    radius that is a little larger does the same. No margin carries an end over zero: what was never seen below zero,
    such as a distance, has no negative end.

    The points are fixed, not private noise: the same figures always get the same interval.
    """
    count, d = centre.shape
    most = max(4, _POINTS // max(1, count * len(_SHELLS)))
    axes, sphere = _sphere(d, 0), _sphere(d, min(most, 32 * d))
    wide = factor * radius[:, None, None]
    first = np.concatenate(
        [np.zeros((1, d)), *(r * sphere for r in _SHELLS if d > 1), *(r * axes for r in _LINE[::-1])]
    )
    around = _around(d, min(most, 12 * d))
    u = np.broadcast_to(first, (count, *first.shape))
    with np.errstate(invalid="ignore", over="ignore"):
        f = figure(_moved(centre, wide, u))
        value = f[:, 0]
        sides = [_Side(sign, f, u) for sign in (1.0, -1.0)]
        whole = sides[0].best + sides[1].best
        for scale in _CLOSER:
            parts = [side.points_near(scale, around) for side in sides]
            near = np.concatenate(parts, axis=1)
            f = figure(_moved(centre, wide, near))
            for side, at_side, u in zip(sides, np.split(f, 2, axis=1), parts, strict=True):
                side.come_closer(scale, len(around) + len(_UPHILL), at_side, u)
                side.observe(f, near)
        top, bottom = (side.end(value, whole) for side in sides)
    defined = ~np.isnan(value)
    return np.where(defined, 0.0 - bottom, np.nan), np.where(defined, top, np.nan)


class _Side:
    """The highest of sign·f that was seen, and where, for each figure."""

    def __init__(self, sign: float, f: Array, u: Array) -> None:
        self.sign = sign
        self.best = np.full(len(f), -np.inf)
        self.at = np.zeros((len(f), u.shape[2]))
        self.uphill = _uphill(sign * f, u)
        self.middle, self.shape = _cloud(sign * f, u)
        self.inside = np.zeros(len(f), dtype=bool)
        self.gains: list[Vector] = []
        self.varies: list[Vector] = []
        self.observe(f, u)

    def observe(self, f: Array, u: Array) -> None:
        """Values of f at further points."""
        seen = np.where(np.isnan(f), -np.inf, self.sign * f)
        place = seen.argmax(axis=1)
        rows = np.arange(len(f))
        better = seen[rows, place] > self.best
        self.gains.append(np.where(better, seen[rows, place] - self.best, 0.0))
        self.best = np.where(better, seen[rows, place], self.best)
        self.at = np.where(better[:, None], u[rows, place], self.at)

    def points_near(self, scale: float, around: Array) -> Array:
        """Points around the best one, up and down its slope, where a straight slope would end, and among the best."""
        uphill = self.uphill[:, None, :]
        ball = np.broadcast_to(scale * around, (len(self.at), *around.shape))
        points = self.at[:, None, :] + np.concatenate([ball, scale * _UPHILL * uphill], axis=1)
        among = self.middle[:, None, :] + np.einsum("gij,pj->gpi", self.shape, around)
        points = np.concatenate([points, uphill, self.middle[:, None, :], among], axis=1)
        return np.asarray(points / np.maximum(1.0, np.linalg.norm(points, axis=2, keepdims=True)))

    def come_closer(self, scale: float, ball: int, f: Array, u: Array) -> None:
        """What f does at the points of ``points_near``, of which the first ``ball`` are within the scale."""
        change = np.abs(self.sign * f[:, :ball] - self.best[:, None])
        self.varies.append(np.fmax.reduce(change, axis=1))
        self.inside = np.linalg.norm(self.at, axis=1) + scale < 1
        self.uphill = _uphill(self.sign * f[:, :ball], u[:, :ball])
        self.middle, self.shape = _cloud(self.sign * f, u)

    def end(self, value: Vector, whole: Vector) -> Vector:
        """The best with its margin; ``whole`` is the range that was seen at first."""
        smooth = self.varies[-1] < _JUMP * self.varies[-2]
        between = np.where(smooth, self.varies[-1], 0.0) + self.gains[-1] + self.gains[-2]
        margin = np.where(self.inside & np.isfinite(self.best), between, 0.0)
        endless = self.best - self.sign * value > _ENDLESS * whole + 1e-9 * np.abs(value)
        end = np.where(endless, np.inf, self.best + margin)
        return np.where(self.best <= 0, np.minimum(end, 0.0), end)


def _uphill(f: Array, u: Array) -> Array:
    """The direction in which f rises most, by least squares over the points where it is finite; zero if it is flat."""
    finite = np.isfinite(f)
    count = np.maximum(finite.sum(axis=1), 1)
    f = np.where(finite, f, 0.0)
    f = f / np.maximum(np.abs(f).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    u = np.where(finite[:, :, None], u, 0.0)
    f = np.where(finite, f - (f.sum(axis=1) / count)[:, None], 0.0)
    u = np.where(finite[:, :, None], u - (u.sum(axis=1) / count[:, None])[:, None, :], 0.0)
    square = np.einsum("gpi,gpj->gij", u, u)
    ridge = 1e-9 * np.trace(square, axis1=1, axis2=2) + np.finfo(np.float64).tiny
    slope = np.linalg.solve(
        square + ridge[:, None, None] * np.eye(u.shape[2]), np.einsum("gpi,gp->gi", u, f)[..., None]
    )
    length = np.linalg.norm(slope[..., 0], axis=1, keepdims=True)
    return np.asarray(np.divide(slope[..., 0], length, out=np.zeros_like(slope[..., 0]), where=length > 0))


def _cloud(f: Array, u: Array) -> tuple[Array, Array]:
    """The middle and the shape of the points where f is highest, which lie along a ridge if there is one."""
    d = u.shape[2]
    highest = np.argsort(np.where(np.isnan(f), np.inf, -f), axis=1, kind="stable")[:, : 2 * d + 2]
    points = np.take_along_axis(u, highest[:, :, None], axis=1)
    middle = points.mean(axis=1)
    apart = points - middle[:, None, :]
    return middle, _WIDER * np.sqrt(d + 2) * factors(np.einsum("gpi,gpj->gij", apart, apart) / points.shape[1])


def _moved(centre: Array, factor: Array, u: Array) -> Array:
    return np.asarray(centre[:, None, :] + np.einsum("gij,gpj->gpi", factor, u))


def _around(d: int, points: int) -> Array:
    """Points of a ball."""
    if d == 1:
        return np.linspace(-1, 1, 33)[:, None]
    return np.concatenate([radius * _sphere(d, points) for radius in _RADII])


def _sphere(d: int, points: int) -> Array:
    """Directions on all sides: the axes and evenly spread others."""
    axes = np.concatenate([np.eye(d), -np.eye(d)])
    if d == 1:
        return axes
    others = np.random.default_rng(20160902).normal(size=(max(0, points - 2 * d), d))
    return np.concatenate([axes, others / np.linalg.norm(others, axis=1, keepdims=True)])
