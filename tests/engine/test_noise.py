"""Noise: the right distribution and no other, never the raw data, never more than was paid for."""

from __future__ import annotations

import math
import os
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from dp_accounting import get_sigma_gaussian
from tacit.engine.mechanism.calibrate import analytic_sigma, gaussian_multiplier, laplace_scale, total_error
from tacit.engine.mechanism.noise import add_gaussian, add_laplace, laplace_epsilon, variance
from tacit.errors import InternalError, PrivacyParameterError

from .workloads import paper, plain

SCALE = 2.0**20
DRAWS = 20_000
BOUND = 1e-7
"""A right engine is flagged once in ten million runs."""


def laplace_draws(scale: float, n: int = DRAWS) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return add_laplace(np.zeros(n, dtype=np.int64), scale, sensitivity=1, epsilon=Fraction(2) / Fraction(scale))


def fits(draws: np.ndarray[tuple[int], np.dtype[np.int64]], law: str, scale: float) -> bool:
    return bool(scipy.stats.kstest(draws / scale, law).pvalue > BOUND)


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 1.5])
def test_laplace_has_the_right_scale_and_no_other(factor: float) -> None:
    assert fits(laplace_draws(SCALE), "laplace", factor * SCALE) == (factor == 1.0)


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 1.5])
def test_gaussian_has_the_right_scale_and_no_other(factor: float) -> None:
    draws = add_gaussian(np.zeros(DRAWS, dtype=np.int64), SCALE)
    assert fits(draws, "norm", factor * SCALE) == (factor == 1.0)


def test_coordinates_are_independent_and_calls_differ() -> None:
    a, b = laplace_draws(SCALE), laplace_draws(SCALE)
    assert not np.array_equal(a, b)
    for x, y in ((a, b), (a[:-1], a[1:])):
        assert abs(np.corrcoef(x, y)[0, 1]) < 6 / math.sqrt(DRAWS)


def test_low_bits_tell_nothing() -> None:
    """Naive floating-point noise shows in the low bits of the output; here they are uniform."""
    counts = np.bincount(laplace_draws(SCALE) & 15, minlength=16)
    assert scipy.stats.chisquare(counts).pvalue > BOUND


def test_small_scale_is_the_discrete_law() -> None:
    draws = laplace_draws(1.0)
    q = math.exp(-1)
    support = np.arange(-6, 7)
    expected = (1 - q) / (1 + q) * q ** np.abs(support)
    counts = np.array([(draws == k).sum() for k in support])
    rest = len(draws) - counts.sum()
    observed = np.append(counts, rest)
    assert scipy.stats.chisquare(observed, len(draws) * np.append(expected, 1 - expected.sum())).pvalue > BOUND


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1, None, "1"])
def test_scales_that_would_return_raw_data_are_refused(scale: float) -> None:
    values = np.arange(3, dtype=np.int64)
    with pytest.raises(InternalError):
        add_gaussian(values, scale)
    with pytest.raises(InternalError):
        add_laplace(values, scale, sensitivity=1, epsilon=Fraction(1))


def test_noise_that_does_not_pay_is_refused() -> None:
    with pytest.raises(InternalError):
        add_laplace(np.zeros(2, dtype=np.int64), 10.0, sensitivity=11, epsilon=Fraction(1))


def test_only_integer_vectors() -> None:
    with pytest.raises(InternalError):
        add_gaussian(np.zeros(3), 1.0)  # type: ignore[arg-type]
    assert add_gaussian(np.zeros(0, dtype=np.int64), 1.0).shape == (0,)


@pytest.mark.parametrize("epsilon", ["1", "0.1", "0.3", "1e-9", "7.77777777777777777", "1e9"])
@pytest.mark.parametrize("sensitivity", [1, 3, 2**28, 2**28 + 1, 10**15 + 1])
def test_laplace_scale_is_rounded_up_and_barely(epsilon: str, sensitivity: int) -> None:
    exact = Fraction(sensitivity) / Fraction(epsilon)
    scale = laplace_scale(sensitivity, Fraction(epsilon))
    assert Fraction(scale) >= exact
    assert Fraction(scale) <= exact * (1 + Fraction(1, 10**14))
    assert laplace_epsilon(scale, sensitivity) <= Fraction(epsilon)


def test_variance_of_a_draw() -> None:
    q = math.exp(-1 / 3.0)
    assert variance("laplace", 3.0) == pytest.approx(2 * q / (1 - q) ** 2)
    assert variance("laplace", 1e5) == pytest.approx(2e10, rel=1e-9)
    assert variance("gaussian", 3.0) == 9.0


GRID = [(e, d) for e in (1e-3, 0.1, 1.0, 5.0, 30.0) for d in (1e-3, 1e-6, 1e-9, 1e-15, 1e-40)]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_sigma_is_within_half_a_percent_of_the_analytic_one(epsilon: float, delta: float) -> None:
    questions = [(1000, 2.0**28), (3000, 2.0**27)]
    sigma = gaussian_multiplier(Decimal(repr(epsilon)), Decimal(repr(delta)), questions)
    reference = get_sigma_gaussian(epsilon, delta)
    assert reference < sigma <= 1.005 * reference


@pytest.mark.parametrize("lattice", [3.0, 16.0, 256.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.5, 1e-6), (4.0, 1e-5)])
def test_discrete_gaussian_keeps_its_delta_exactly(epsilon: float, delta: float, lattice: float) -> None:
    """One coordinate: the true δ of the discrete Gaussian, summed over the integers, is what was promised."""
    sigma = lattice * gaussian_multiplier(Decimal(repr(epsilon)), Decimal(repr(delta)), [(1, lattice)])
    assert true_delta(sigma, int(lattice), epsilon) <= delta
    if lattice >= 16:  # not merely generous
        assert true_delta(0.9 * sigma, int(lattice), epsilon) > delta


def test_the_analytic_sigma_alone_would_not_do_on_a_coarse_lattice() -> None:
    """Why the remainder is bounded: on steps of the whole sensitivity the continuous σ misses its δ."""
    misses = [true_delta(get_sigma_gaussian(e, d), 1, e) > d for e in (0.5, 1.0, 2.0, 4.0) for d in (1e-3, 1e-6)]
    assert any(misses)


def true_delta(sigma: float, distance: int, epsilon: float) -> float:
    k = np.arange(-int(12 * sigma) - distance, int(12 * sigma) + 2 * distance)
    weight = np.exp(-(k**2) / (2 * sigma**2))
    weight /= weight.sum()
    moved = np.exp(-((k - distance) ** 2) / (2 * sigma**2))
    moved /= moved.sum()
    return float(np.maximum(moved - math.exp(epsilon) * weight, 0).sum())


def test_the_three_inequalities_of_the_remainder() -> None:
    """The pointwise bounds in the text of calibrate.py, evaluated."""
    for sigma in (1.0, 2.5, 10.0):
        k = np.arange(-int(40 * sigma), int(40 * sigma) + 1)
        phi = scipy.stats.norm.pdf(k, scale=sigma)
        discrete = phi / phi.sum()
        for j in (0, 1, 3, int(2 * sigma), int(6 * sigma)):
            rounded = -float(np.diff(scipy.stats.norm.sf([j - 0.5, j + 0.5], scale=sigma))[0])
            p = discrete[int(40 * sigma) + j]
            c = j / sigma
            assert p <= rounded * math.exp(1 / (24 * sigma**2)) * (1 + 1e-9)
            assert rounded <= p * math.exp(c * c / (8 * sigma**2) + 1 / (24 * sigma**2)) * (1 + 1e-9)
            assert 2 * scipy.stats.norm.sf(c - 0.5 / sigma) <= math.exp(-((c - 0.5) ** 2) / 2) or c < 0.5


def test_a_lattice_too_coarse_for_gaussian_noise_is_our_defect() -> None:
    with pytest.raises(InternalError):
        gaussian_multiplier(Decimal(1), Decimal("1e-6"), [(1, 0.01)])
    with pytest.raises(InternalError):
        gaussian_multiplier(Decimal("0.01"), Decimal("1e-6"), [(10_000, 0.01)])


def test_tiny_amounts_are_rounded_up_past_cancellation() -> None:
    for e, d in ((1e-9, 1e-12), (1e-6, 1e-9)):
        assert get_sigma_gaussian(e, d) < analytic_sigma(e, d) < 1.005 * get_sigma_gaussian(e, d)


def test_total_error() -> None:
    s = plain(paper(), np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]), "pure")
    assert total_error(s, 0.5) == pytest.approx(2 * 4 / 0.25)
    assert total_error(s, 1, 1e-6) == pytest.approx(4 * 4.224678889**2, rel=1e-5)
    with pytest.raises(PrivacyParameterError):
        total_error(s, 0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_draws_its_own_noise() -> None:
    values = np.zeros(50, dtype=np.int64)
    add_gaussian(values, SCALE)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, add_gaussian(values, SCALE).tobytes())
        os._exit(0)
    mine = add_gaussian(values, SCALE)
    os.waitpid(pid, 0)
    theirs = np.frombuffer(os.read(read, 400), dtype=np.int64)
    os.close(read)
    os.close(write)
    assert theirs.shape == mine.shape
    assert (mine != theirs).sum() > 40
