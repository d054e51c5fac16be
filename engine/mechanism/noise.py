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

LARGEST_EXPONENT = 20.0
"""Noise that is zero but once in e⁴⁰ draws is given that variance and no smaller one: answers are divided by it, and
they are floats, whose rounding is about as large."""


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
    """The variance of one draw, in squared lattice steps (of a discrete Gaussian: an upper bound, tight).

    Laplace noise of scale b on the integers has 2p/(1 − p)² = ½/sinh²(1/2b), p = e^(−1/b): less than the 2b² of the
    continuous noise, by a factor of 1.09 at b = 1, 1.38 at ½ and 3.3 at ¼.
    """
    if kind == "gaussian":
        return scale**2
    if scale > 1e6:
        return 2 * scale**2
    return 0.5 / math.sinh(min(0.5 / scale, LARGEST_EXPONENT)) ** 2


def geometric_variance(epsilon: float) -> float:
    """2p/(1 − p)², p = e^(−ε), without the floor of ``variance``: for bounds, which may be too low but not too high."""
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


def _run(measurement: Any, values: NDArray[np.int64]) -> NDArray[np.int64]:
    if values.dtype != np.int64 or values.ndim != 1:
        raise InternalError("noise is added to int64 vectors only")
    return np.array(measurement(values), dtype=np.int64).reshape(values.shape)


@lru_cache(maxsize=256, typed=True)
def _laplace(scale: float) -> Any:
    domain = _whole_numbers()
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(domain, l1_distance(T="i64"), scale=_checked(scale))


@lru_cache(maxsize=256, typed=True)
def _gaussian(scale: float) -> Any:
    domain = _whole_numbers()
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(domain, l2_distance(T="f64"), scale=_checked(scale))


def _checked(scale: float) -> float:
    # OpenDP accepts a scale of 0 and then returns the data.
    if not (isinstance(scale, float) and math.isfinite(scale) and scale > 0):
        raise InternalError("a noise scale must be positive and finite")
    return scale


@cache
def _whole_numbers() -> Any:
    """OpenDP's domain of int64 vectors.

    OpenDP is loaded by the first release, not by every import of tacit, and without its ``prelude``, which loads polars
    and scikit-learn where they are installed.
    """
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    # This is a switch of OpenDP for the whole process: other code in it can use these constructors from then on too.
    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))
