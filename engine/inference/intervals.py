"""Intervals that hold at the stated confidence: for noise in several directions, and for ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrik, chdtri, ndtri
from tacit.engine.accounting.amounts import to_confidence

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_ROUNDS = 1
"""How often the ends of Fieller's set are computed again with the reach that holds there."""
_TAIL_DRAWS = 20
_ROUNDING = 1e-9
"""Errors on a coarse lattice repeat themselves: a width that equals one holds it, however it is rounded."""
_CERTAINTY = 0.99
"""That a width from draws of the error itself covers what it states, over the draws."""
_LEAST_LEVEL = 1e-12
"""Below it the binomial quantile is no number any more; a larger level gives a wider interval."""


@lru_cache(maxsize=256)
def joint_stretch(confidence: float, dimensions: int) -> float:
    """How much further the length of several independent noises reaches than one of them.

    The larger of two: of normal variables, and of Laplace variables of the same variance. For those, S_k(r) is the
    probability that a vector of k is longer than r, and S_k(r) = S_1(r) + 2 ∫ S_{k−1}(√(r² − x²)) f(x) dx over [0, r].
    """
    tail = 1 - to_confidence(confidence)
    normal = float(np.sqrt(chdtri(dimensions, tail)) / -ndtri(tail / 2))
    one = -np.log(tail) / np.sqrt(2)
    r = np.linspace(0, 2 * one + 2 * dimensions, 1000)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    angle, weights = (nodes + 1) * np.pi / 4, weights * np.pi / 4
    log_longer = -np.sqrt(2) * r
    for _ in range(dimensions - 1):
        x, rest = r[:, None] * np.sin(angle), r[:, None] * np.cos(angle)
        density = np.exp(-np.sqrt(2) * x + np.interp(rest, r, log_longer)) * np.sqrt(2)
        log_longer = np.log(np.exp(-np.sqrt(2) * r) + (density * rest) @ weights)
    laplace = float(np.interp(-np.log(tail), -log_longer, r) / one)
    return max(normal, laplace)


def covering_widths(errors: Matrix, confidence: float) -> Vector:
    """The half-width of each row from independent draws of the error itself (rows × draws), never too little.

    The k-th smallest of N draws of |error| covers a new one with a probability of at least c unless k or more of the
    draws lie within c's quantile: a binomial event. k is the least for which that has a probability of at most
    1 − ``_CERTAINTY``. Where the draws do not reach that far, the tail is taken for exponential from the last width
    that they tell: the logarithm of a log-concave tail bends down from there.
    """
    draws = errors.shape[1]
    if draws <= _TAIL_DRAWS:  # so few tell no width
        return np.full(len(errors), np.nan)

    def place(level: float) -> int:
        return int(np.ceil(bdtrik(_CERTAINTY, draws, max(level, _LEAST_LEVEL))))

    level = confidence
    if place(level) >= draws:
        level = 1 - _TAIL_DRAWS / draws
    widths = np.asarray(np.partition(np.abs(errors), place(level), axis=1)[:, place(level)], dtype=np.float64)
    widths *= 1 + _ROUNDING
    return widths * (np.log(1 - confidence) / np.log(1 - level) if confidence > level else 1.0)


@dataclass(frozen=True, eq=False)
class RatioAnswer:
    """Ratios of released sums and counts, each with an interval that lies inside the clamp."""

    value: Vector
    stderr: Vector
    low: Vector
    high: Vector


def ratio(
    numerator: Vector,
    denominator: Vector,
    var_numerator: Vector,
    var_denominator: Vector,
    covariance: Vector,
    low: Vector | float,
    high: Vector | float,
    confidence: float = 0.95,
    reach: Callable[[Vector], Vector] | None = None,
) -> RatioAnswer:
    """S/N for each pair, kept inside [low, high], with Fieller's interval.

    Fieller's set is {t : (S − tN)² ≤ z(t)²·Var(S − tN)}. It covers the true ratio however small N is, because
    S − tN is centred at zero for the true t; the price is that it is unbounded when N is not clearly away
    from zero. True averages lie in the clamp, so the set is intersected with it, and it is the whole clamp
    when it is unbounded, when it misses the clamp, or when N is not positive. The value is S/N clipped to the
    clamp, and the clamp's middle when N ≤ 0. The standard error is the delta method's at the value, never
    more than half the clamp's width (Popoviciu).

    ``reach`` is z: how many standard errors of S − tN the confidence asks for, for each pair at its t. The
    default is the normal quantile; single Laplace noise needs 8% more at 95%, and 48% more at 99.9%. It changes
    slowly with t, so each end of the set is found with the z that holds there.
    """
    z = -float(ndtri((1 - to_confidence(confidence)) / 2))
    S, N, v_s, v_n, c = (
        np.atleast_1d(np.asarray(a, dtype=np.float64))
        for a in (numerator, denominator, var_numerator, var_denominator, covariance)
    )
    lo, hi = (
        np.broadcast_to(low, S.shape).astype(np.float64),
        np.broadcast_to(high, S.shape).astype(np.float64),
    )
    middle = lo + (hi - lo) / 2
    positive = N > 0
    safe = np.where(positive, N, 1.0)
    value = np.where(positive, np.clip(S / safe, lo, hi), middle)
    spread = np.maximum(v_s - 2 * value * c + value**2 * v_n, 0.0)
    stderr = np.where(positive, np.minimum(np.sqrt(spread) / safe, (hi - lo) / 2), (hi - lo) / 2)

    def roots(z: Vector | float) -> tuple[Vector, Vector]:
        """Where a·t² − 2·b·t + q is zero; it is below between the two, if N is clearly away from zero: a > 0."""
        a = N**2 - z**2 * v_n
        b = S * N - z**2 * c
        q = S**2 - z**2 * v_s
        inside = np.sqrt(np.maximum(b**2 - a * q, 0.0))
        bounded = positive & (a > 0)
        scale = np.where(bounded, a, 1.0)
        return np.where(bounded, (b - inside) / scale, -np.inf), np.where(bounded, (b + inside) / scale, np.inf)

    if reach is None:
        first, last = roots(z)
    else:
        first, last = roots(reach(value))
        for _ in range(_ROUNDS):
            first, last = roots(reach(np.clip(first, lo, hi)))[0], roots(reach(np.clip(last, lo, hi)))[1]
    misses = (first > hi) | (last < lo)
    first, last = np.where(misses, lo, first), np.where(misses, hi, last)
    return RatioAnswer(
        value=value,
        stderr=stderr,
        low=np.minimum(np.clip(first, lo, hi), value),
        high=np.maximum(np.clip(last, lo, hi), value),
    )
