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
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Vector

Objective: TypeAlias = Callable[[Vector], tuple[float, Vector]]

CURVED = 1e-10
"""Least sᵀy/(‖s‖·‖y‖) of a step s and the change y of its gradient: below it rounding decides the curvature."""
STALL = 1e-9
"""Relative progress over five steps below which a descent ends."""
SHARED_MEMORY = 6
"""Steps that ``lbfgs_together`` remembers of every descent."""


def inverse(X: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """X⁻¹ of a positive definite X; None where rounding has made it singular or indefinite."""
    try:
        inverted = np.linalg.inv(X)
    except np.linalg.LinAlgError:
        return None
    sound = np.isfinite(inverted).all() and (np.diag(inverted) > 0.0).all()
    return np.asarray(inverted, dtype=np.float64) if sound else None


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
        if curvature > CURVED * float(y @ y) ** 0.5 * float(s @ s) ** 0.5:
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
        # The minimum of the parabola through f, its slope and f_next, held between a tenth and a half.
        excess = f_next - f - promised
        ratio = -promised / (2.0 * excess) if np.isfinite(excess) and excess > 0.0 else 0.1
        step *= min(0.5, max(0.1, ratio))
    return None, None, None


Objectives: TypeAlias = Callable[[Matrix, NDArray[np.intp]], tuple[Vector, Matrix]]
"""Points (one in each row) and which descents they belong to, in; values and gradients out."""


def lbfgs_together(objective: Objectives, start: Matrix, iterations: int, watch: Watch) -> Matrix:
    """Where at most ``iterations`` steps of ``lbfgs``, without bounds, lead from every row of ``start``.

    The descents are independent; they share the calls, which is what small ones spend their time on.
    """
    x = start.copy()
    going = np.arange(len(x))
    f, g = objective(x, going)
    pairs: list[tuple[Matrix, Matrix, Vector]] = []
    history = [f.copy()]
    for _ in range(iterations):
        d = _two_loop_together(g, pairs)
        slope = np.einsum("ki,ki->k", g, d)
        lost = ~(slope < 0.0)  # back to the gradient
        d[lost], slope[lost] = -g[lost], -np.einsum("ki,ki->k", g[lost], g[lost])
        step = np.ones(len(x)) if pairs else np.minimum(1.0, 1.0 / np.maximum(np.abs(d).max(axis=1), 1e-300))
        x_next, f_next, g_next = x.copy(), f.copy(), g.copy()
        rest = going[slope[going] < 0.0]
        for _ in range(20):
            if not rest.size:
                break
            trial = x[rest] + step[rest, None] * d[rest]
            value, gradient = objective(trial, rest)
            promised = step[rest] * slope[rest]
            good = np.isfinite(value) & (value <= f[rest] + 1e-4 * promised)
            done = rest[good]
            x_next[done], f_next[done], g_next[done] = trial[good], value[good], gradient[good]
            excess = np.where(np.isfinite(value), value, np.inf)[~good] - f[rest[~good]] - promised[~good]
            rest, promised = rest[~good], promised[~good]
            curved = np.isfinite(excess) & (excess > 0.0)
            ratio = np.where(curved, -promised / (2.0 * np.where(curved, excess, 1.0)), 0.1)
            step[rest] *= np.clip(ratio, 0.1, 0.5)
        s, y = x_next - x, g_next - g
        curvature = np.einsum("ki,ki->k", s, y)
        sizes = np.einsum("ki,ki->k", s, s) * np.einsum("ki,ki->k", y, y)
        curvature[curvature <= CURVED * np.sqrt(sizes)] = np.inf  # no information: its weights become zero
        pairs.append((s, y, curvature))
        del pairs[:-SHARED_MEMORY]
        x, f, g = x_next, f_next, g_next
        history.append(f.copy())
        if len(history) > 5:
            going = going[(history[-6] - f > STALL * np.abs(f))[going]]
        if not going.size or watch.interrupted():
            break
    return x


def _two_loop_together(g: Matrix, pairs: list[tuple[Matrix, Matrix, Vector]]) -> Matrix:
    """``_two_loop`` for every row."""
    q = -g
    weights = []
    for s, y, curvature in reversed(pairs):
        weight = np.einsum("ki,ki->k", s, q) / curvature
        q -= weight[:, None] * y
        weights.append(weight)
    if pairs:
        s, y, curvature = pairs[-1]
        length = np.einsum("ki,ki->k", y, y)
        sound = np.isfinite(curvature) & (length > 0.0)
        q *= np.where(sound, curvature / np.where(length > 0.0, length, 1.0), 1.0)[:, None]
    for (s, y, curvature), weight in zip(pairs, reversed(weights), strict=True):
        q += (weight - np.einsum("ki,ki->k", y, q) / curvature)[:, None] * s
    return q
