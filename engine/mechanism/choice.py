"""A private choice: which of several integer scores is the largest, and nothing else about them.

The noise is that of ``noise.py``, on integers. A float exponential mechanism would show, in the last bits of its
weights and in where they underflow, what the scores were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from tacit.engine.mechanism.calibrate import laplace_scale
from tacit.engine.mechanism.exact import coarsen
from tacit.engine.mechanism.noise import add_laplace

_SCALE_BITS = 40


@dataclass(frozen=True)
class Selection:
    """How scores become the integers that noise is added to, and the noise. Data-free."""

    shift: int
    """Scores are divided by 2^shift and rounded."""
    sensitivity: int
    """In those steps: one privacy unit moves no score further."""
    scale: float
    epsilon: Fraction


def coarseness(reach: int, epsilon: Fraction) -> int:
    """The least shift at which noise of reach/ε fits 2⁴⁰ steps.

    The sampler's integers end at ±2⁶³ and scores are clamped to ±2⁶². Rounding up adds a few steps, so scales stay
    below 2⁴⁴ down to the least ε of ``stages``, and a draw reaches the ends with a probability below e^(−2¹⁷). The
    arguments here and in ``partition`` are about noise without ends; that remainder, with 50,000 zeros behind the
    point, is left out of them.
    """
    return max(0, int(reach / epsilon).bit_length() - _SCALE_BITS)


def calibrate_selection(reach: int, epsilon: Fraction) -> Selection:
    """The noise for scores of which one privacy unit moves each by ``reach`` at most.

    Rounding to steps of 2^s brings two scores at distance d to at most ⌈d/2^s⌉ steps, because it never changes their
    order and moving by a whole step moves the result by exactly one.
    """
    shift = coarseness(2 * reach, epsilon)
    sensitivity = -(-reach >> shift)
    return Selection(shift, sensitivity, laplace_scale(2 * sensitivity, epsilon), epsilon)


def select_largest(scores: Sequence[int], selection: Selection) -> int:
    """The index of the largest noisy score; of equal ones the first.

    Guarantee: ``selection.epsilon``-private, where neighbours differ by Δ = ``sensitivity`` at most in every score
    (report noisy max). Let s, s' be the scores of neighbours, Z the noise, and fix all of Z but Z_i. Then i is chosen
    on s exactly when Z_i is at least an integer t: the least with s_i + t > s_j + Z_j for j < i, ≥ for j > i. On s'
    the same holds with a t' ≤ t + 2Δ, because s'_i ≥ s_i − Δ and s'_j ≤ s_j + Δ; ties are no exception, since the
    order that decides them is fixed. Noise of scale b has P(Z_i = z + 2Δ) ≥ e^(−2Δ/b)·P(Z_i = z) for every integer z,
    so P(Z_i ≥ t') ≥ e^(−ε)·P(Z_i ≥ t) for b ≥ 2Δ/ε. That holds for every value of the rest of Z, hence on average.
    """
    noisy = add_laplace(
        coarsen(scores, selection.shift),
        selection.scale,
        sensitivity=2 * selection.sensitivity,
        epsilon=selection.epsilon,
    )
    return int(np.argmax(noisy))
