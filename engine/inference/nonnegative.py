"""Cell counts that are not negative, fitted to released measurements (the matrix-mechanism talk's last step).

Post-processing only: the input was released already. The estimator is no longer linear, so its standard error has no
formula; it is simulated from the fitted counts, never from data. Single counts and short ranges of sparse data gain
most. Sums over many cells are biased upwards, because noise that was below zero is gone and noise above it stays: with
questions about single cells only, by far more than least squares errs (``benchmarks/inference.py``). Intervals do not
rest on the simulation: see ``estimate.Shifted``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tacit.engine.inference.draws import draw
from tacit.engine.linalg import rebuild
from tacit.engine.strategy import Questions, column_norms

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_DRAWS, _WORK = 400, 2e10
_ITERATIONS, _TOLERANCE = 5000, 1e-8
"""The tolerance is in units of the noise, whatever the counts are."""


def fit(stack: Questions, answers: Matrix, base: Matrix | None = None, iterations: int = _ITERATIONS) -> Matrix:
    """x ≥ 0 that minimises ‖stack·x − answers‖² for each column of ``answers``, all columns at once.

    What is looked for is the change from ``base``, by default least squares, because it is of the size of the noise
    however large the counts are. Accelerated projected gradients with restarts (O'Donoghue & Candès 2015), after
    scaling the cells to equal curvature; it stops when no coordinate moves any more.
    """
    scale = column_norms(stack, "approximate")
    scale = np.where(scale > 0, scale, 1.0)
    A = stack / scale
    near = rebuild(answers.T, A.T).T if base is None else base * scale[:, None]
    gram, target = A.T @ A, A.T @ (answers - A @ near)
    step = 1 / max(_largest_eigenvalue(gram), 1e-300)
    x = np.maximum(0.0, -near)
    y, momentum = x, 1.0
    for _ in range(iterations):
        moved = np.maximum(y - step * (gram @ y - target), -near)
        change = moved - x
        if np.abs(change).max(initial=0.0) <= _TOLERANCE:
            x = moved
            break
        if float(((y - moved) * change).sum()) > 0:
            momentum, y = 1.0, moved
        else:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            y = moved + (momentum - 1) / following * change
            momentum = following
        x = moved
    return np.asarray(np.maximum(near + x, 0.0) / scale[:, None])


def _largest_eigenvalue(gram: Questions) -> float:
    """Of a sparse matrix a bound, the largest row sum: exact where it is diagonal, as for the counts of cells."""
    if isinstance(gram, np.ndarray):
        return float(np.linalg.eigvalsh(gram)[-1])
    return float(abs(gram).sum(axis=1).max())


def simulate(stack: Questions, cells: Vector, laplace: Vector, steps: Vector) -> Matrix:
    """Deviations of the fit (cells × draws) when the truth is ``cells`` and every measurement has variance
    one (``draws.draw``).

    The numbers drawn here protect nobody: they are added to released values to learn how far the estimator
    strays. A fixed seed of numpy's generator is right for that, and for nothing else in tacit.
    """
    rng = np.random.default_rng(20160901)
    n = stack.shape[1]
    draws = int(np.clip(_WORK / (2 * 200 * n * n), 50, _DRAWS))
    noise = draw(laplace, steps, draws, rng)
    again = fit(stack, (stack @ cells)[:, None] + noise, np.repeat(cells[:, None], draws, axis=1), 200)
    return np.asarray(again - cells[:, None])
