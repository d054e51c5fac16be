"""Half-widths cover as stated; ratios stay in their clamp and are honest near a zero denominator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import chdtri, log_ndtr, ndtri
from scipy.stats import norm
from tacit.engine.inference.intervals import joint_stretch, ratio
from tacit.engine.mechanism.widths import half_widths
from tacit.errors import PrivacyParameterError

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99, 0.9999]


@pytest.mark.parametrize("confidence", LEVELS)
def test_one_laplace(confidence: float) -> None:
    for row in ([2.0], [2.0, 0.0, 0.0], [-2.0, 1e-9]):
        width = half_widths(np.array([row]), None, confidence)[0]
        assert width == pytest.approx(2 * math.log(1 / (1 - confidence)), rel=1e-6)


@pytest.mark.parametrize("confidence", LEVELS)
def test_two_equal_laplace(confidence: float) -> None:
    x = half_widths(np.array([[1.0, -1.0]]), None, confidence)[0]
    assert (x / 2 + 1) * math.exp(-x) == pytest.approx(1 - confidence, rel=1e-4)


@pytest.mark.parametrize("confidence", LEVELS)
@pytest.mark.parametrize("b", [[3.0, 2, 1, 0.5, 0.1], [1.0, 0.05], [1.0, 0.3, 0.2], [5.0, 4.9, 0.01]])
def test_distinct_laplace_by_partial_fractions(b: list[float], confidence: float) -> None:
    x = half_widths(np.array([b]), None, confidence)[0]
    weights = [math.prod(1 / (1 - c**2 / a**2) for c in b if c != a) for a in b]
    tail = sum(w * math.exp(-x / a) for w, a in zip(weights, b, strict=True))
    assert tail == pytest.approx(1 - confidence, rel=1e-4)


@pytest.mark.parametrize("confidence", LEVELS)
@pytest.mark.parametrize("sigma", [0.05, 0.1, 0.3, 1.0, 3.0, 30.0])
def test_laplace_plus_gaussian(sigma: float, confidence: float) -> None:
    x = half_widths(np.ones((1, 1)), np.array([sigma]), confidence)[0]
    half = sigma**2 / 2
    tail = (
        norm.sf(x / sigma)
        + 0.5 * math.exp(half - x + float(log_ndtr(x / sigma - sigma)))
        - 0.5 * math.exp(half + x + float(log_ndtr(-x / sigma - sigma)))
    )
    assert 2 * tail == pytest.approx(1 - confidence, rel=2e-4)


@pytest.mark.parametrize("confidence", LEVELS)
def test_gaussian_alone_and_many_laplace_are_normal(confidence: float) -> None:
    z = -float(ndtri((1 - confidence) / 2))
    assert half_widths(np.zeros((1, 3)), np.array([2.0]), confidence)[0] == pytest.approx(2 * z)
    many = half_widths(np.full((1, 200_000), math.sqrt(0.5 / 200_000)), None, confidence)[0]
    assert many == pytest.approx(z, rel=1e-4)


def test_coefficients_beyond_the_kept_ones_count() -> None:
    """Against simulation, with a heavy part, many small ones and a Gaussian."""
    rng = np.random.default_rng(8)
    rows = np.vstack([np.exp(-np.arange(60) / 15), np.ones(60), 1 / np.arange(1.0, 61)])
    normal = np.array([0.5, 0.0, 0.3])
    draws = rows @ rng.laplace(size=(60, 400_000)) + normal[:, None] * rng.normal(size=400_000)
    for confidence in (0.8, 0.95):
        covered = (np.abs(draws) <= half_widths(rows, normal, confidence)[:, None]).mean(axis=1)
        assert np.abs(covered - confidence).max() < 5 * math.sqrt(confidence * (1 - confidence) / 400_000)


def test_any_shape_at_any_confidence() -> None:
    """Finite, never shrinking with the confidence, and beyond 1 − 10⁻⁸ wide rather than wrong."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        r = int(rng.integers(1, 40))
        rows = rng.normal(size=(4, r)) * np.exp(rng.normal(size=r) * rng.choice([0, 1, 4]))
        normal = np.abs(rng.normal(size=4)) * rng.choice([0, 1e-3, 0.1, 1, 10, 1e3])
        before = np.zeros(4)
        for confidence in (1e-6, 0.01, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 1e-15):
            width = half_widths(rows, normal, confidence)
            assert np.isfinite(width).all() and (width >= before * (1 - 1e-6)).all()
            before = width
    pair = half_widths(np.ones((1, 2)), None, 1 - 1e-12)[0]
    assert (pair / 2 + 1) * math.exp(-pair) < 1e-12
    assert pair < 1.1 * half_widths(np.ones((1, 2)), None, 1 - 1e-11)[0] + 3


def test_scales_and_zero_rows() -> None:
    rows = np.array([[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]])
    width = half_widths(rows, None, 0.9)
    assert width[1] == 0
    assert half_widths(1e9 * rows, None, 0.9)[0] == pytest.approx(1e9 * width[0])
    assert half_widths(rows[:, ::-1], None, 0.9)[0] == pytest.approx(width[0])
    assert half_widths(np.zeros((0, 3)), None, 0.9).shape == (0,)


@pytest.mark.parametrize("confidence", [0, 1, 95, float("nan"), "0.9", None])
def test_confidence_is_checked(confidence: float) -> None:
    with pytest.raises(PrivacyParameterError):
        half_widths(np.ones((1, 1)), None, confidence)


def arrays(*values: float) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    return [np.array([v]) for v in values]


def test_ratio_with_a_clear_denominator_is_the_delta_method() -> None:
    S, N, vs, vn, c = arrays(5000.0, 1000.0, 100.0, 4.0, 3.0)
    answer = ratio(S, N, vs, vn, c, 0.0, 10.0)
    assert answer.value[0] == 5
    expected = math.sqrt(100 - 2 * 5 * 3 + 25 * 4) / 1000
    assert answer.stderr[0] == pytest.approx(expected)
    assert answer.high[0] - answer.low[0] == pytest.approx(2 * 1.96 * expected, rel=1e-3)


@pytest.mark.parametrize(("S", "N"), [(3.0, 1.0), (3.0, 0.0), (3.0, -5.0), (1e6, 1e-9)])
def test_ratio_without_a_clear_denominator_is_the_whole_clamp(S: float, N: float) -> None:
    answer = ratio(*arrays(S, N, 4.0, 4.0, 0.0), 2.0, 8.0)  # type: ignore[arg-type]
    assert (answer.low[0], answer.high[0]) == (2.0, 8.0)
    assert 2.0 <= answer.value[0] <= 8.0
    if N <= 0:
        assert answer.value[0] == 5.0
    assert answer.stderr[0] <= 3.0


def test_ratio_stays_in_the_clamp_and_holds_its_value() -> None:
    rng = np.random.default_rng(4)
    S, N = rng.normal(50, 60, 500), rng.normal(10, 10, 500)
    answer = ratio(S, N, np.full(500, 30.0), np.full(500, 4.0), np.full(500, 2.0), -1.0, 9.0)
    assert (answer.low >= -1).all() and (answer.high <= 9).all()
    assert ((answer.low <= answer.value) & (answer.value <= answer.high)).all()


@pytest.mark.parametrize("count", [0.5, 3.0, 30.0])
def test_ratio_covers_however_small_the_denominator(count: float) -> None:
    rng = np.random.default_rng(6)
    true = 4.0
    S = true * count + rng.normal(0, 10.0, 20_000)
    N = count + rng.normal(0, 1.0, 20_000)
    answer = ratio(S, N, np.full(20_000, 100.0), np.ones(20_000), np.zeros(20_000), 0.0, 10.0)
    covered = ((answer.low <= true) & (true <= answer.high)).mean()
    assert covered >= 0.95 - 4 * math.sqrt(0.05 * 0.95 / 20_000)
    if count == 30.0:
        assert covered <= 0.97, "nor merely generous where there is something to know"


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_length_of_several_noises_is_covered_as_stated(dimensions: int, confidence: float) -> None:
    noise = np.random.default_rng(5).laplace(size=(400_000, dimensions))
    reach = -math.log(1 - confidence) * joint_stretch(confidence, dimensions)
    assert (np.linalg.norm(noise, axis=1) <= reach).mean() == pytest.approx(confidence, abs=0.0025)
    normal = -ndtri((1 - confidence) / 2) * joint_stretch(confidence, dimensions)
    assert normal**2 >= chdtri(dimensions, 1 - confidence) * (1 - 1e-9)
