"""Thresholds over noisy counts: tails that are never understated, and δ computed by brute force over all outputs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from tacit.engine.mechanism.calibrate import analytic_sigma
from tacit.engine.mechanism.threshold import (
    Threshold,
    bin_threshold,
    gaussian_scale,
    gaussian_tail,
    key_threshold,
    laplace_tail,
    zcdp_delta,
)
from tacit.errors import InternalError

Passes = Callable[[int], float]
"""The probability that a value of so many units passes."""


def weights(kind: str, scale: float, reach: int) -> list[Decimal]:
    """What P(0), P(1), … are proportional to, to sixty digits."""
    with localcontext(prec=60):
        exact = Decimal(scale)
        exponents = [-(Decimal(z) / exact) if kind == "laplace" else -(z * z / (2 * exact**2)) for z in range(reach)]
        return [exponent.exp() for exponent in exponents]


def tail(kind: str, scale: float, at: int, reach: int = 4000) -> Decimal:
    """P(Z ≥ at), summed term by term."""
    with localcontext(prec=60):
        terms = weights(kind, scale, reach)
        return sum(terms[at:], Decimal(0)) / (2 * sum(terms, Decimal(0)) - terms[0])


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.25, 40.0])
@pytest.mark.parametrize("at", [1, 2, 5, 30])
def test_the_tail_of_laplace_noise_is_exact_and_rounded_up(scale: float, at: int) -> None:
    stated, true = laplace_tail(scale, at), Fraction(tail("laplace", scale, at))
    assert true * (1 - Fraction(1, 10**25)) <= stated <= true * (1 + Fraction(1, 10**25))
    assert stated >= Fraction(math.exp(-at / scale) / (1 + math.exp(-1 / scale))) * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("scale", [1.5, 7.25, 40.0])
@pytest.mark.parametrize("far", [0.5, 1, 3, 6])
def test_the_tail_of_gaussian_noise_is_never_understated(scale: float, far: float) -> None:
    at = math.ceil(scale * far)
    stated, true = gaussian_tail(scale, at), Fraction(tail("gaussian", scale, at, 1000))
    assert true <= stated
    if far >= 3:
        assert stated <= true * Fraction(6, 5)


def pass_probability(noise: Threshold, level: int) -> Passes:
    """Of a value by its number of units; a value that nobody holds is never looked at."""
    reach = 60 * math.ceil(noise.scale) + level
    terms = np.array([float(weight) for weight in weights(noise.kind, noise.scale, reach)])
    both = np.concatenate([terms[:0:-1], terms])
    upward = np.cumsum((both / both.sum())[::-1])[::-1]  # small terms first: the tail keeps its digits

    def passes(count: int) -> float:
        return 0.0 if count == 0 else float(upward[level - count + reach - 1])

    return passes


def exact_delta(passes: Passes, epsilon: float, k: int, counts: list[int]) -> float:
    """The least δ for which two neighbours are (ε, δ)-indistinguishable, over every output and in both directions.

    Values that the unit does not hold pass alike on both sides. Of those that it holds some are its own alone (count 0
    without it), the others have a count from ``counts``.
    """
    worst = 0.0
    for held in itertools.combinations_with_replacement([0, *counts], k):
        p = [passes(count) for count in held]
        q = [passes(count + 1) for count in held]
        one_way = other_way = 0.0
        for output in itertools.product((False, True), repeat=k):
            here = math.prod(a if passed else 1 - a for a, passed in zip(p, output, strict=True))
            there = math.prod(b if passed else 1 - b for b, passed in zip(q, output, strict=True))
            one_way += max(0.0, there - math.exp(epsilon) * here)
            other_way += max(0.0, here - math.exp(epsilon) * there)
        worst = max(worst, one_way, other_way)
    return worst


CASES = [(1, "1", "1e-3"), (1, "0.1", "1e-6"), (2, "1", "1e-4"), (3, "0.5", "1e-2"), (4, "2", "1e-5"), (6, "1", "1e-3")]


@pytest.mark.parametrize(("k", "epsilon", "delta"), CASES)
def test_delta_holds_by_brute_force_and_a_lower_threshold_breaks_it(k: int, epsilon: str, delta: str) -> None:
    noise = key_threshold(k, Decimal(epsilon), Decimal(delta))
    counts = [1, noise.level - 1, noise.level] if k > 3 else [1, 2, noise.level // 2, noise.level - 1, noise.level]
    counts = [count for count in counts if count > 0]
    stated = pass_probability(noise, noise.level)
    assert exact_delta(stated, float(epsilon), k, counts) <= float(delta) * (1 + 1e-9)
    lower = pass_probability(noise, noise.level * 2 // 3)
    assert exact_delta(lower, float(epsilon), k, counts) > float(delta)


@pytest.mark.parametrize(("k", "epsilon", "delta"), [(1, "1", "1e-3"), (1, "0.1", "1e-6"), (2, "1", "1e-6")])
def test_the_threshold_of_laplace_noise_is_the_least(k: int, epsilon: str, delta: str) -> None:
    noise = key_threshold(k, Decimal(epsilon), Decimal(delta))
    assert noise.kind == "laplace"
    lower = pass_probability(noise, noise.level - 1)
    assert exact_delta(lower, float(epsilon), k, [1]) > float(delta)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 100, 10**6])
def test_gaussian_noise_is_taken_where_its_threshold_is_lower(k: int) -> None:
    noise = key_threshold(k, Decimal(1), Decimal("1e-6"))
    laplace = 1 + k * math.log(k / 1e-6)  # over 1 + p, which is between 1 and 2
    assert noise.level <= laplace + 1
    assert noise.kind == ("laplace" if k < 3 else "gaussian")
    if k > 3:
        assert noise.level < laplace - k * math.log(2)


@pytest.mark.parametrize("k", [5, 100])
def test_the_noise_and_the_threshold_share_delta(k: int) -> None:
    noise, half = key_threshold(k, Decimal(1), Decimal("1e-6")), Fraction(1, 2 * 10**6)
    assert noise.kind == "gaussian"
    of_noise = Fraction(zcdp_delta(noise.rho, Decimal(1)))
    of_threshold = k * gaussian_tail(noise.scale, noise.level - 1)
    assert of_noise <= half and of_threshold <= half
    assert of_noise > half * Fraction(99, 100)
    assert k * gaussian_tail(noise.scale, noise.level - 2) > half


@pytest.mark.parametrize("k", [1, 7, 400])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-7), (1.0, 1e-5), (3.0, 1e-3)])
def test_the_scale_of_gaussian_noise(k: int, epsilon: float, delta: float) -> None:
    """The continuous mechanism needs the least σ there is, and the discrete one little more."""
    scale = gaussian_scale(k, Decimal(str(epsilon)), Decimal(str(delta)))
    assert 1 <= scale / (math.sqrt(k) * analytic_sigma(epsilon, delta)) < 1.25


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-4), (1.0, 1e-5), (2.0, 1e-3)])
def test_gaussian_noise_on_one_count_by_brute_force(epsilon: float, delta: float) -> None:
    scale = gaussian_scale(1, Decimal(str(epsilon)), Decimal(str(delta)))
    terms = np.array([float(weight) for weight in weights("gaussian", scale, 60 * math.ceil(scale))])
    both = np.concatenate([terms[:0:-1], terms])
    here, there = (both / both.sum())[1:], (both / both.sum())[:-1]
    assert 0.1 * delta < np.maximum(here - math.exp(epsilon) * there, 0).sum() <= delta


def test_a_minimum_only_raises_the_threshold() -> None:
    plain = key_threshold(1, Decimal(1), Decimal("1e-6"))
    assert key_threshold(1, Decimal(1), Decimal("1e-6"), at_least=100).level == 100
    assert key_threshold(1, Decimal(1), Decimal("1e-6"), at_least=2) == plain


def test_a_threshold_needs_a_delta() -> None:
    with pytest.raises(InternalError):
        key_threshold(1, Decimal(1), Decimal(0))


@pytest.mark.parametrize("k", [1, 20])
def test_what_passes_follows_the_noise(k: int) -> None:
    """Far below the threshold hardly anything passes, far above it everything, at the threshold about one half."""
    noise = key_threshold(k, Decimal(1), Decimal("1e-4"))
    counts = np.repeat(np.array([1, noise.level, 10 * noise.level]), 2000)
    below, at, above = noise.passing(counts).reshape(3, -1).mean(axis=1)
    assert below < 0.01 and above == 1
    assert 0.4 < at < 0.8


def test_the_scale_of_the_noise_is_the_stated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often a value at the threshold less one scale passes; two thirds and one and a half of the noise differ."""
    noise = key_threshold(1, Decimal("0.2"), Decimal("1e-3"))
    assert noise.kind == "laplace" and noise.scale == pytest.approx(5)
    passed = noise.passing(np.full(40_000, noise.level - 5)).mean()
    expected = float(laplace_tail(noise.scale, 5))
    assert passed == pytest.approx(expected, abs=0.012)
    for wrong in (2 / 3, 3 / 2):
        assert abs(float(laplace_tail(noise.scale * wrong, 5)) - expected) > 0.03


def test_hardly_any_empty_bin_passes() -> None:
    noise = bin_threshold(193, 3, Decimal("0.5"))
    assert noise.scale == pytest.approx(6)
    assert 193 * laplace_tail(noise.scale, noise.level) <= Fraction(1, 100)
    assert 193 * laplace_tail(noise.scale, noise.level - 1) > Fraction(1, 100)
    assert not noise.passing(np.zeros(193, dtype=np.int64)).sum() > 1
