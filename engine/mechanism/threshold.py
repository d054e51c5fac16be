"""Which of many counts are large, by noise and a threshold: how values that nobody listed are found.

**Keys.** Only the values that some row holds are looked at; a value nobody holds is never found. Each value has a count
of units, discrete noise is added to it, and the values whose noisy count reaches a threshold τ are released: the
values, and not the counts. A unit adds 1 to at most k counts.

Guarantee of keys. Let D' be D with one more unit. Of the values that the unit holds, N are in D' alone, so each has
the count 1, and at most k − N others grow by 1. Let q = P(1 + noise ≥ τ), and let E be the event that none of the N
passes: P(E) = (1 − q)^N ≥ 1 − k·q. It is independent of the noise on all other counts, and given E the output is that
of the other counts alone, which the noise makes (ε, δ₁)-private: in L1 they differ by at most k, in L2 by at most √k.
For every set S of outputs, writing A for the output of the counts of D's values,
  P[M(D') ∈ S] ≤ P[A(D') ∈ S]·P(E) + 1 − P(E) ≤ e^ε·P[M(D) ∈ S] + δ₁ + k·q, and
  P[M(D) ∈ S] ≤ e^ε·P[A(D') ∈ S] + δ₁, where P[A(D') ∈ S]·P(E) ≤ P[M(D') ∈ S]. So
  P[M(D) ∈ S] − e^ε·P[M(D') ∈ S] ≤ P[M(D) ∈ S]·(1 − P(E)) + δ₁ ≤ k·q + δ₁.
So M is (ε, δ₁ + k·q)-private, and a larger τ changes nothing in this. Laplace noise has δ₁ = 0 and leaves all of δ to
the threshold; Gaussian noise takes one half of it, and pays where k is large. Given E the output of D' is A(D'), so M
is also (k·q)-approximately ρ-zCDP (Bun & Steinke 2016, Definition 8.1) for the ρ of its noise.

q is never understated: the tails below are bounded in rational numbers, every rounding upwards.

**Bins.** The list of bins is fixed before any row is looked at, so every bin's count gets Laplace noise, and which
noisy counts reach a level is post-processing: ε-private whatever the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.composition import rho_of_gaussian_squared, rho_of_pure
from tacit.engine.mechanism.calibrate import laplace_scale
from tacit.engine.mechanism.noise import Kind, add_gaussian, add_laplace
from tacit.errors import InternalError

_UP = Context(prec=50, rounding=ROUND_CEILING)
_DOWN = Context(prec=50, rounding=ROUND_FLOOR)
_PI_BELOW = Fraction(314159265, 100000000)
_LAPLACE: Kind = "laplace"
_GAUSSIAN: Kind = "gaussian"
_HALVINGS = 40
"""Of the search for σ: it ends within a billionth of the least one."""
_ROUNDING = Decimal("1e-15")
"""Far above what fifty digits lose in an exponent: a relative error of δ of that size."""
_MOST_EMPTY_BINS = Fraction(1, 100)
"""The probability that any empty bin passes: a matter of use, not of privacy."""


@dataclass(frozen=True)
class Threshold:
    """Noise on every count, and the least noisy count that passes."""

    kind: Kind
    scale: float
    level: int
    touched: int
    """Of one unit: how many counts it raises by 1, or all that it adds to the counts."""
    epsilon: Decimal
    delta: Decimal = Decimal(0)

    @property
    def rho(self) -> Decimal:
        """What the noise costs in zCDP; the δ of a threshold comes on top."""
        if self.kind == "laplace":
            return rho_of_pure(self.epsilon)
        return rho_of_gaussian_squared(self.touched, self.scale)

    def passing(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which counts reach the level after noise.

        Guarantee: as stated above for keys and bins, for integer counts that one unit moves by ``touched`` in L1, and
        for Gaussian noise by 1 each. Counts may be handed over in parts, since their noise is independent.
        """
        if self.kind == "laplace":
            noisy = add_laplace(counts, self.scale, sensitivity=self.touched, epsilon=Fraction(self.epsilon))
        else:
            noisy = add_gaussian(counts, self.scale)
        return np.asarray(noisy >= self.level, dtype=np.bool_)


@lru_cache(maxsize=256)
def key_threshold(values_per_unit: int, epsilon: Decimal, delta: Decimal, at_least: int = 1) -> Threshold:
    """The noise with the lower threshold for counts of units, of which each holds at most so many values.

    Guarantee: what passes is (ε, δ)-private; the module's text has the argument. ``at_least`` can only raise the
    threshold.
    """
    if delta <= 0:
        raise InternalError("a threshold needs a delta")
    k = values_per_unit
    (level, scale), kind = _laplace_level(k, epsilon, Fraction(delta)), _LAPLACE
    if k > 1 and (gaussian := _gaussian_level(k, epsilon, delta))[0] < level:
        (level, scale), kind = gaussian, _GAUSSIAN
    return Threshold(kind, scale, max(level, at_least), k, epsilon, delta)


def bin_threshold(bins: int, rows_per_unit: int, epsilon: Decimal) -> Threshold:
    """Laplace noise for the row counts of a fixed list of bins, and the level that hardly any empty bin reaches."""
    scale = laplace_scale(rows_per_unit, Fraction(epsilon))
    level = _least(lambda at: bins * laplace_tail(scale, at) <= _MOST_EMPTY_BINS)
    return Threshold("laplace", scale, level, rows_per_unit, epsilon)


def _laplace_level(k: int, epsilon: Decimal, delta: Fraction) -> tuple[int, float]:
    scale = laplace_scale(k, Fraction(epsilon))
    return 1 + _least(lambda at: k * laplace_tail(scale, at) <= delta), scale


def _gaussian_level(k: int, epsilon: Decimal, delta: Decimal) -> tuple[int, float]:
    """One half of δ for the noise, the other for the threshold."""
    half = _DOWN.divide(delta, Decimal(2))
    scale = gaussian_scale(k, epsilon, half)
    return 1 + _least(lambda at: k * gaussian_tail(scale, at) <= Fraction(half)), scale


def gaussian_scale(squared: int, epsilon: Decimal, delta: Decimal) -> float:
    """σ of discrete Gaussian noise that is (ε, δ)-private for integer vectors at a squared L2 distance of ``squared``.

    Guarantee: the noise is ρ-zCDP with ρ = ``squared``/2σ² (Canonne, Kamath & Steinke 2020, Theorem 14), which
    ``zcdp_delta`` turns into δ. On whole numbers with a sensitivity of their own size, this is tighter than the way of
    ``calibrate.gaussian_multiplier``, which pays for the distance to continuous noise.
    """
    low, high = 0.0, 1.0
    while zcdp_delta(rho_of_gaussian_squared(squared, high), epsilon) > delta:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        private = middle > 0 and zcdp_delta(rho_of_gaussian_squared(squared, middle), epsilon) <= delta
        low, high = (low, middle) if private else (middle, high)
    return high


def zcdp_delta(rho: Decimal, epsilon: Decimal) -> Decimal:
    """At least a δ at which ρ-zCDP is (ε, δ)-private.

    Canonne, Kamath & Steinke 2020, Proposition 12: exp((α − 1)(αρ − ε))·(1 − 1/α)^α/(α − 1) is one for every α > 1. The
    best of a few is taken.
    """
    best = Decimal(1)
    if rho >= epsilon:
        return best
    with localcontext(_UP):
        around = (epsilon - rho) / (2 * rho)
        for step in range(-4, 13):
            order = 1 + around * (1 + Decimal(step) / 20)
            exponent = (order - 1) * (order * rho - epsilon) + order * (1 - 1 / order).ln() - (order - 1).ln()
            best = min(best, (exponent + _ROUNDING).exp().next_plus())
    return best


def laplace_tail(scale: float, at: int) -> Fraction:
    """P(Z ≥ at) for P(Z = z) ∝ exp(−|z|/scale), rounded up: p^at/(1 + p), p = exp(−1/scale)."""
    if at <= 0:
        return Fraction(1)
    exact = Fraction(scale)
    return _exp_above(-at / exact) / (1 + _exp_below(-1 / exact))


def gaussian_tail(scale: float, at: int) -> Fraction:
    """At least P(Z ≥ at) for P(Z = z) ∝ exp(−z²/2·scale²).

    From ``at`` on each term is at most r = exp(−(2·at + 1)/2σ²) times the one before it, so they sum to no more than
    the first over 1 − r. All terms sum to at least max(1, σ·√2π) (Canonne, Kamath & Steinke 2020, Fact 18).
    """
    if at <= 0:
        return Fraction(1)
    twice = 2 * Fraction(scale) ** 2
    all_terms = max(Fraction(1), Fraction(scale) * _root_below(2 * _PI_BELOW))
    tail = _exp_above(-at * at / twice) / ((1 - _exp_above(-(2 * at + 1) / twice)) * all_terms)
    return min(Fraction(1), tail)


def _least(enough: Callable[[int], bool]) -> int:
    """The least positive integer from which on ``enough`` holds."""
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _exp_above(exponent: Fraction) -> Fraction:
    """At least exp; ``Decimal.exp`` is correct to half a unit in the last place."""
    return Fraction(_UP.next_plus(_UP.exp(_UP.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))))


def _exp_below(exponent: Fraction) -> Fraction:
    decimal = _DOWN.exp(_DOWN.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))
    return Fraction(_DOWN.next_minus(decimal))


def _root_below(value: Fraction) -> Fraction:
    return Fraction(math.isqrt(math.floor(value * 10**18)), 10**9)
