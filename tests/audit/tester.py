"""A statistical tester of differential privacy, with a stated probability of a false alarm.

It is given draws of one mechanism on two neighbouring tables and looks for an event S with
P[M(D) ∈ S] > e^ε · P[M(D') ∈ S] + δ. Events are half-lines of a score. Half of the draws choose the score and the
threshold that look worst; the other half, which knows nothing of that choice, is counted, and the two
probabilities are bounded by Clopper-Pearson intervals, which hold for every sample size. So a private mechanism is
flagged with probability ``alarm`` or less, whatever the scores are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

Scores = NDArray[np.float64]
"""Draws by scores."""

_WIDTH = 5.0
"""Standard errors of a Clopper-Pearson interval at a quarter of 1e-6: rarer events prove less than they promise."""


@dataclass(frozen=True)
class Verdict:
    """What the second half of the draws proves at the stated confidence."""

    flagged: bool
    epsilon: float
    """The mechanism's ε (at the claimed δ) is at least this, unless an event of probability ``alarm`` happened."""
    score: int
    """Which score the event was a half-line of."""


def audit(here: Scores, there: Scores, epsilon: float, delta: float = 0.0, alarm: float = 1e-6) -> Verdict:
    """Test the claim (ε, δ) on draws from two neighbours, in both directions.

    Guarantee: if the claim is true, ``flagged`` is true with probability at most ``alarm``.
    """
    assert here.shape == there.shape and len(here) >= 20
    half = len(here) // 2
    verdicts = []
    for one, other in ((here, there), (there, here)):
        event = _worst_event(one[:half], other[:half], delta)
        # Two directions, two intervals each.
        low = _lower(event.holds(one[half:]), len(one) - half, alarm / 4)
        high = _upper(event.holds(other[half:]), len(other) - half, alarm / 4)
        proven = math.log((low - delta) / high) if low > delta else 0.0
        verdicts.append(Verdict(proven > epsilon, max(proven, 0.0), event.score))
    return max(verdicts, key=lambda verdict: verdict.epsilon)


@dataclass(frozen=True)
class _Event:
    score: int
    threshold: float
    above: bool

    def holds(self, scores: Scores) -> int:
        column = scores[:, self.score]
        return int((column >= self.threshold).sum() if self.above else (column <= self.threshold).sum())


def _worst_event(one: Scores, other: Scores, delta: float) -> _Event:
    """The half-line that would prove the most: the ratio after as many standard errors as the intervals are wide."""
    n = len(one)
    best = (-math.inf, _Event(0, 0.0, True))
    for score in range(one.shape[1]):
        for sign in (1.0, -1.0):
            a, b = np.sort(sign * one[:, score]), np.sort(sign * other[:, score])
            cuts = np.unique(np.concatenate([a, b])[:: max(1, n // 1000)])
            p = 1 - np.searchsorted(a, cuts, side="left") / n
            q = 1 - np.searchsorted(b, cuts, side="left") / n
            p = p - _WIDTH * np.sqrt(p * (1 - p) / n + 1 / n**2) - delta
            q = q + _WIDTH * np.sqrt(q * (1 - q) / n + 1 / n**2)
            value = np.where(p > 0, p / q, 0.0)
            i = int(value.argmax())
            best = max(best, (float(value[i]), _Event(score, float(sign * cuts[i]), sign > 0)), key=lambda x: x[0])
    return best[1]


def _lower(hits: int, n: int, alpha: float) -> float:
    return float(beta.ppf(alpha, hits, n - hits + 1)) if hits else 0.0


def _upper(hits: int, n: int, alpha: float) -> float:
    return float(beta.ppf(1 - alpha, hits + 1, n - hits)) if hits < n else 1.0
