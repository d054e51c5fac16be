"""How much noise (ε, δ) asks for: exact rationals for Laplace, the analytic Gaussian with a bounded remainder.

Guarantee for the discrete Gaussian. Let q be the distribution of a continuous N(0, σ²) rounded to the nearest
integer, and p the discrete Gaussian of the same σ ≥ 1, both over the integers; write φ for the density of
N(0, σ²) and Z = Σ φ(k), so that p = φ/Z. The exact answers are integers, so rounding the output of the
continuous mechanism is the same as adding q: adding q is post-processing of the continuous mechanism and
satisfies every (ε', δ') that the analytic Gaussian mechanism (Balle & Wang 2018, Theorem 8) states for σ.

1. q(k)/φ(k) = ∫ exp(−(2kt + t²)/2σ²) dt over |t| ≤ ½. By Jensen it is at least exp(−1/24σ²). And Z ≥ 1
   (Poisson summation: Z = 1 + 2·Σ exp(−2π²σ²j²)). So p ≤ φ ≤ e^η₁·q for every k, with η₁ = 1/24σ².
2. The same integral is at most cosh(k/2σ²) ≤ exp(k²/8σ⁴), and log Z ≤ 3·exp(−2π²σ²) ≤ 1/24σ². So
   q ≤ e^η₂·p for |k| ≤ cσ, with η₂ = c²/8σ² + 1/24σ².
3. Outside, q has mass at most exp(−(c − ½)²/2) per coordinate: call the sum over all coordinates τ.

Over independent coordinates with σ_i the exponents add: H₁ = Σ η₁, H₂ = Σ η₂. For neighbours x, x' and a set S,
  P[M(x) ∈ S] ≤ e^H₁·Q[x] ≤ e^H₁·(e^ε'·Q[x'] + δ') ≤ e^(H₁+ε')·(e^H₂·P[M(x') ∈ S] + τ) + e^H₁·δ',
so M is (ε, δ)-private for ε = ε' + H₁ + H₂ and δ = e^H₁·δ' + e^ε·τ. ``gaussian_multiplier`` inverts this: it
takes c so that e^ε·τ is a thousandth of δ, and asks the analytic mechanism for the ε' and δ' that remain.
On a lattice of 2⁻²⁸ of the sensitivity, H₁ + H₂ is below 10⁻¹¹ even for 10⁴ coordinates, and what is lost
is that thousandth of δ: about 0.002% of σ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import log_ndtr
from tacit.engine.accounting.amounts import to_delta, to_epsilon
from tacit.engine.mechanism.noise import geometric_variance, laplace_epsilon
from tacit.engine.search.bounds import direction_bound
from tacit.engine.strategy import Strategy
from tacit.errors import InternalError

_ROUNDING = 1e-6
_TAIL_SHARE = 1e-3


@lru_cache(maxsize=4096)
def laplace_scale(sensitivity: int, epsilon: Fraction) -> float:
    """The smallest float scale, up to a few units in the last place, that OpenDP prices at ``epsilon`` or less.

    Guarantee: discrete Laplace noise of this scale on integers of L1 sensitivity ``sensitivity`` is
    ``epsilon``-differentially private; every rounding here is upwards.
    """
    exact = Fraction(sensitivity) / epsilon
    scale = float(exact)
    if Fraction(scale) < exact:
        scale = math.nextafter(scale, math.inf)
    while laplace_epsilon(scale, sensitivity) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


@lru_cache(maxsize=4096)
def analytic_sigma(epsilon: float, delta: float) -> float:
    """σ of the analytic Gaussian mechanism at L2 sensitivity 1, rounded up past the error of its computation.

    Guarantee: N(0, σ²) per coordinate is (ε, δ)-private at L2 sensitivity 1 (Balle & Wang 2018, Theorem 8).
    dp_accounting finds the root of log δ(σ) in floating point; the last lines bound the cancellation in it.
    """
    from dp_accounting import get_sigma_gaussian  # 2 s: paid by the first (ε, δ) batch only

    sigma = float(get_sigma_gaussian(epsilon, delta))
    upper = float(log_ndtr(0.5 / sigma - epsilon * sigma))
    lower = epsilon + float(log_ndtr(-0.5 / sigma - epsilon * sigma))
    cancelled = 1e-15 * (1 + abs(upper) + abs(lower)) * math.exp(upper - math.log(delta))
    return sigma * (1 + _ROUNDING + cancelled)


def gaussian_multiplier(epsilon: Decimal, delta: Decimal, questions: Sequence[tuple[int, float]] = ()) -> float:
    """σ at L2 sensitivity 1 for discrete Gaussian noise on integers.

    ``questions`` lists (how many, sensitivity in lattice steps over the root of its share of the budget)
    for each part of the release: σ of that part is its figure times the result. See the module's text for the
    argument.
    """
    bare = analytic_sigma(float(epsilon), float(delta))
    if not questions:
        return bare
    total = sum(count for count, _ in questions)
    smallest = min(reach for _, reach in questions) * bare
    if smallest < 1:
        raise InternalError("the lattice is too coarse for Gaussian noise")
    e, d = float(epsilon), float(delta)
    c = 0.5 + math.sqrt(2 * (math.log(total / _TAIL_SHARE) - math.log(d) + e))
    # Evaluated at the σ without remainder, which is smaller than the one returned: the bounds fall with σ.
    inverse_variances = sum(count / (reach * bare) ** 2 for count, reach in questions)
    h1 = inverse_variances / 24
    h2 = inverse_variances * (c * c / 8 + 1 / 24)
    remaining_epsilon = e - h1 - h2
    remaining_delta = d * (math.exp(-h1) - _TAIL_SHARE)
    if remaining_epsilon <= 0 or remaining_delta <= 0:
        raise InternalError("the lattice is too coarse for Gaussian noise")
    return analytic_sigma(remaining_epsilon, remaining_delta)


def total_error(strategy: Strategy, epsilon: Any, delta: Any = 0) -> float:
    """Expected sum of squared errors of a release: 2·error/ε² (δ = 0) or σ²(ε, δ)·error."""
    e, d = to_epsilon(epsilon), to_delta(delta)
    if d == 0:
        return 2 * strategy.error / float(e) ** 2
    return analytic_sigma(float(e), float(d)) ** 2 * strategy.error


def least_error(workload: Any, epsilon: Any, rows_per_unit: int = 1) -> float:
    """No ε-private mechanism answers W x with a smaller sum of squared errors, whatever it does.

    The error is the expected one in the worst case over x, or on average over all x up to a bound that grows. For one
    count it is v(ε) = 2p/(1 − p)², p = e^−ε, the variance of geometric noise; for W it is at least
    v(ε)·Σ_k max_j (u_k·w_j)², w_j the columns of W, for every orthonormal basis u (``bounds.direction_bound``).

    Proof. *One count.* Translating count and answer together and averaging over all translations keeps privacy and
    does not raise the worst error, so the answer may be taken for the count plus noise that does not depend on it.
    Given the noise's fractional part φ, its law on φ + Z has neighbouring ratios of at most e^ε. A second moment is
    linear in the law, so its least value is at one whose ratios are all e^ε or e^−ε with a single peak: a geometric
    law on both sides of φ or of φ − 1, whose second moment is v(ε) + φ² or v(ε) + (1 − φ)². *Many queries.*
    ‖error‖² = Σ_k (u_k·error)². In direction k, u_k·M(x) is an ε-private estimate of u_k·W x, which moves by
    u_k·w_j with every unit in cell j: that is a count, times |u_k·w_j|. Averaged over a growing box of x, all
    directions have their error at once. *Units of k rows* may move a cell by k, so the same holds for counts of k.

    Disjoint counts with geometric noise attain it. It needs unbounded counts: on few rows a mechanism may guess. For
    δ > 0 no bound of this kind with its constants is known.

    >>> round(least_error([[1, 0], [0, 1]], epsilon=1.0), 6)  # two disjoint counts
    3.682694
    """
    W = np.asarray(workload, dtype=np.float64)
    return rows_per_unit**2 * geometric_variance(float(to_epsilon(epsilon))) * direction_bound(W)
