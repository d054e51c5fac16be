"""Noise like that of a release, drawn to learn how far an estimate strays. It protects nobody.

A generator of numpy with a fixed seed is right for that, and for nothing else in tacit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_FINE = 1e-3
"""A lattice of such steps, in units of the noise's scale, shows nowhere."""


def draw(laplace: Vector, steps: Vector, draws: int, rng: np.random.Generator) -> Matrix:
    """Noise of variance one on every question (questions × draws).

    Laplace noise of scale ``laplace`` on a lattice of ``steps`` times that, Gaussian noise where it is zero.
    """
    fine, coarse = (laplace > 0) & (steps < _FINE), (laplace > 0) & (steps >= _FINE)
    noise = np.empty((len(laplace), draws))
    noise[laplace == 0] = rng.normal(size=(int((laplace == 0).sum()), draws))
    noise[fine] = laplace[fine, None] * rng.laplace(size=(int(fine.sum()), draws))
    step = steps[coarse, None]  # the difference of two geometric variables
    first, second = (rng.geometric(-np.expm1(-step), (int(coarse.sum()), draws)) for _ in range(2))
    noise[coarse] = laplace[coarse, None] * step * (first - second)
    return noise
