"""A limited-memory quasi-Newton descent with box bounds, objective and gradient in one call, interruptible.

scipy's L-BFGS-B spends several times the objective's own cost on bookkeeping when there are 10⁵ variables and
an evaluation takes milliseconds. This one projects: variables at a bound that their gradient pushes against
are held, the two-loop recursion (Nocedal and Wright, Algorithm 7.4) gives the direction of the others, and
the line search walks along the projected path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tacit.engine.strategy import Vector
from tacit.engine.watch import Watch

Objective: TypeAlias = Callable[[Vector], tuple[float, Vector]]

STALL = 1e-9
"""Relative progress over five steps below which a descent ends."""


def inverse(X: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """X⁻¹ of a positive definite X; None where rounding has made it singular or indefinite."""
    try:
        found = np.linalg.inv(X)
    except np.linalg.LinAlgError:
        return None
    sound = np.isfinite(found).all() and (np.diag(found) > 0.0).all()
    return np.asarray(found, dtype=np.float64) if sound else None


def lbfgs(
    objective: Objective,
    start: Vector,
    iterations: int,
    watch: Watch,
    *,
    box: tuple[float, float] | None = None,
    memory: int = 10,
) -> Vector:
    """Where at most ``iterations`` steps lead from ``start``; ``box`` bounds every variable."""
    low, high = box if box is not None else (-np.inf, np.inf)
    x = np.clip(start, low, high)
    f, g = objective(x)
    pairs: list[tuple[Vector, Vector, float]] = []
    history = [f]
    for _ in range(iterations):
        if box is None:
            d = _two_loop(g, pairs)
            slope = float(g @ d)
        else:
            free = ~(((x <= low) & (g > 0.0)) | ((x >= high) & (g < 0.0)))
            d = _two_loop(np.where(free, g, 0.0), pairs)
            d[~free] = 0.0
            slope = float(g @ d)
        if not slope < 0.0:
            if not pairs:
                break
            pairs.clear()
            continue
        step = 1.0 if pairs else min(1.0, 1.0 / float(np.abs(d).max()))
        x_next, f_next, g_next = _line_search(objective, x, f, g, d, step, (low, high))
        if x_next is None or f_next is None or g_next is None:
            if not pairs:
                break
            pairs.clear()
            continue
        s, y = x_next - x, g_next - g
        curvature = float(s @ y)
        if curvature > 1e-10 * float(y @ y) ** 0.5 * float(s @ s) ** 0.5:
            pairs.append((s, y, curvature))
            del pairs[:-memory]
        x, f, g = x_next, f_next, g_next
        history.append(f)
        if len(history) > 5 and history[-6] - f <= STALL * abs(f):
            break
        if watch.interrupted():
            break
    return x


def _two_loop(g: Vector, pairs: list[tuple[Vector, Vector, float]]) -> Vector:
    """−H·g with H the quasi-Newton inverse Hessian of the remembered pairs."""
    q = -g
    weights = []
    for s, y, curvature in reversed(pairs):
        weight = float(s @ q) / curvature
        q -= weight * y
        weights.append(weight)
    if pairs:
        s, y, curvature = pairs[-1]
        q *= curvature / float(y @ y)
    for (s, y, curvature), weight in zip(pairs, reversed(weights), strict=True):
        q += (weight - float(y @ q) / curvature) * s
    return q


def _line_search(
    objective: Objective, x: Vector, f: float, g: Vector, d: Vector, step: float, box: tuple[float, float]
) -> tuple[Vector | None, float | None, Vector | None]:
    """Backtrack along the projected path until Armijo's condition holds."""
    bounded = box != (-np.inf, np.inf)
    for _ in range(20):
        x_next = np.clip(x + step * d, *box) if bounded else x + step * d
        f_next, g_next = objective(x_next)
        promised = float(g @ (x_next - x))
        if np.isfinite(f_next) and f_next <= f + 1e-4 * promised:
            return x_next, f_next, g_next
        # The minimum of the parabola through f, its slope and f_next, kept within a tenth and a half.
        excess = f_next - f - promised
        ratio = -promised / (2.0 * excess) if np.isfinite(excess) and excess > 0.0 else 0.1
        step *= min(0.5, max(0.1, ratio))
    return None, None, None
