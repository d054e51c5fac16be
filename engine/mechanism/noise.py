"""Exact discrete noise on integer vectors, drawn by OpenDP from the operating system's entropy.

This file is the only one that draws noise. There is no seed and no fallback: numpy's generators are neither
secure nor exact, and the low bits of a float that was added to a count show which count it was.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tacit.errors import InternalError

Kind = Literal["laplace", "gaussian"]


def add_laplace(values: NDArray[np.int64], scale: float, *, sensitivity: int, epsilon: Fraction) -> NDArray[np.int64]:
    """``values`` plus independent discrete Laplace noise: P(k) ∝ exp(−|k|/scale).

    Guarantee: pure ``epsilon``-differential privacy between integer vectors at L1 distance ``sensitivity`` or
    less (Ghosh, Roughgarden & Sundararajan 2009; ε = sensitivity/scale). OpenDP states the ε of the
    measurement that is run, rounded up, and it is compared with the ε that was paid for.
    """
    measurement = _laplace(scale)
    if Fraction(measurement.map(sensitivity)) > epsilon:
        raise InternalError("the noise does not pay for the sensitivity")
    return _run(measurement, values)


def add_gaussian(values: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    """``values`` plus independent discrete Gaussian noise: P(k) ∝ exp(−k²/(2·scale²)).

    Guarantee: sensitivity²/(2·scale²)-zCDP between integer vectors at L2 distance ``sensitivity`` or less
    (Canonne, Kamath & Steinke 2020, Theorem 4 and its form for vectors); for (ε, δ) see
    ``calibrate.gaussian_multiplier``.
    """
    return _run(_gaussian(scale), values)


def laplace_epsilon(scale: float, sensitivity: int) -> Fraction:
    """What OpenDP says that Laplace noise of this scale costs, rounded up by OpenDP."""
    return Fraction(_laplace(scale).map(sensitivity))


def variance(kind: Kind, scale: float) -> float:
    """The variance of one draw, in squared lattice steps (of a discrete Gaussian: an upper bound, tight)."""
    if kind == "gaussian":
        return scale**2
    return 0.5 / math.sinh(0.5 / scale) ** 2 if scale < 1e6 else 2 * scale**2


def _run(measurement: Any, values: NDArray[np.int64]) -> NDArray[np.int64]:
    if values.dtype != np.int64 or values.ndim != 1:
        raise InternalError("noise is added to int64 vectors only")
    return np.array(measurement(values), dtype=np.int64).reshape(values.shape)


@lru_cache(maxsize=256, typed=True)
def _laplace(scale: float) -> Any:
    dp, domain = _library()
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=_checked(scale))


@lru_cache(maxsize=256, typed=True)
def _gaussian(scale: float) -> Any:
    dp, domain = _library()
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=_checked(scale))


def _checked(scale: float) -> float:
    # OpenDP accepts a scale of 0 and then returns the data.
    if not (isinstance(scale, float) and math.isfinite(scale) and scale > 0):
        raise InternalError("a noise scale must be positive and finite")
    return scale


@cache
def _library() -> tuple[Any, Any]:
    import opendp.prelude as dp  # 0.4 s: paid by the first release, not by every import of tacit

    # This is a switch of OpenDP for the whole process: other code in it can use these constructors from then on too.
    dp.enable_features("contrib")
    return dp, dp.vector_domain(dp.atom_domain(T="i64"))
