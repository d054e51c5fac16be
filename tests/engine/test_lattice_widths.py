"""Half-widths of noise on coarse lattices: every outcome listed, nothing simulated; true, and hardly too wide."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tacit.engine.mechanism.lattice_widths import COARSE
from tacit.engine.mechanism.noise import variance
from tacit.engine.mechanism.widths import half_widths, lattice_spread

EPSILONS = [0.05, 0.5, 1.0, 2.0, 4.0, 8.0]
LEVELS = [0.1, 0.5, 0.9, 0.95, 0.99, 0.9999]
ROWS = {
    "one": [1.0],
    "two": [1.0, -1.0],
    "three": [1.0, 1.0, 1.0],
    "doubled": [2.0, 1.0],
    "thirds": [1.0, 1 / 3],
    "incommensurable": [1.0, math.sqrt(2)],
    "unlike": [1.0, 0.07, 0.41],
}


def outcomes(row: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The values of |Σ a_j·K_j| in order, and P(|…| > value) for each; K_j with P(k) ∝ exp(−ε·|k|)."""
    values, masses = np.zeros(1), np.ones(1)
    k = np.arange(-math.ceil(18 / epsilon) - 1, math.ceil(18 / epsilon) + 2)
    mass = np.exp(-epsilon * np.abs(k))
    for a in row:
        values = (values[:, None] + a * k).reshape(-1)
        masses = (masses[:, None] * mass / mass.sum()).reshape(-1)
        values, where = np.unique(np.round(np.abs(values) if len(row) == 1 else values, 9), return_inverse=True)
        masses = np.bincount(where.reshape(-1), weights=masses)
    sizes, where = np.unique(np.round(np.abs(values), 9), return_inverse=True)
    probability = np.bincount(where.reshape(-1), weights=masses)
    return sizes, 1 - np.cumsum(probability)


LISTED = [(name, epsilon) for name in ROWS for epsilon in EPSILONS if name != "unlike" or epsilon >= 0.5]
"""Below, three unlike coefficients have hundreds of millions of outcomes, too many to list."""


@pytest.mark.parametrize(("name", "epsilon"), LISTED)
def test_they_cover_and_are_hardly_too_wide(name: str, epsilon: float) -> None:
    row = np.array(ROWS[name])
    sizes, beyond = outcomes(row, epsilon)
    for level in LEVELS:
        width = half_widths(row[None] / epsilon, None, level, np.full(len(row), epsilon))[0]
        place = int(np.searchsorted(sizes, width + 1e-8, side="right")) - 1
        assert beyond[place] <= 1 - level + 1e-7, "the truth is inside as often as stated"
        least = float(sizes[np.argmax(beyond <= (1 - level) * (1 + 1e-9))])
        step = float(np.abs(row).max())
        assert width <= least + (1.5 * step if epsilon < COARSE else 0.02 * least + 0.005 * step)


def test_one_question_is_exact() -> None:
    """P(|K| ≥ k) = 2pᵏ/(1 + p): the width is the last k that is needed, and zero where most draws are zero."""
    for epsilon in EPSILONS[1:]:
        p = math.exp(-epsilon)
        for level in LEVELS:
            width = half_widths(np.array([[5 / epsilon]]), None, level, np.array([epsilon]))[0]
            least = next(k for k in range(1000) if 2 * p ** (k + 1) / (1 + p) <= (1 - level))
            assert width == pytest.approx(5 * least, abs=1e-9)
    assert half_widths(np.array([[0.25]]), None, 0.95, np.array([4.0]))[0] == 0.0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_many_unlike_questions_are_covered(epsilon: float) -> None:
    """Sixty coefficients without a common unit, and sixty equal ones, against simulation."""
    rng = np.random.default_rng(7)
    rows = np.vstack([np.exp(-np.arange(60) / 15), np.ones(60), rng.normal(size=60)])
    chance = -math.expm1(-epsilon)
    draws = 100_000
    noise = rng.geometric(chance, (60, draws)) - rng.geometric(chance, (60, draws))
    errors = np.abs(rows @ noise)
    for level in (0.8, 0.95, 0.99):
        widths = half_widths(rows / epsilon, None, level, np.full(60, epsilon))
        covered = (errors <= widths[:, None] + 1e-9).mean(axis=1)
        assert (covered >= level - 4 * math.sqrt(level * (1 - level) / draws)).all()
        needed = np.quantile(errors, level, axis=1)
        assert (widths <= 1.1 * needed + 0.5 * np.abs(rows).max(axis=1)).all()


def test_coarse_and_fine_noise_together() -> None:
    """A count on the integers beside a fine measurement and a Gaussian one: covered, by half a step more at most."""
    rng = np.random.default_rng(3)
    draws = 400_000
    for epsilon in (1.0, 4.0):
        chance = -math.expm1(-epsilon)
        coarse = (rng.geometric(chance, draws) - rng.geometric(chance, draws)) * 0.6
        errors = np.abs(coarse + 0.3 * rng.laplace(size=draws) + 0.2 * rng.normal(size=draws))
        for level in (0.9, 0.95, 0.99):
            row, steps = np.array([[0.6 / epsilon, 0.3]]), np.array([epsilon, 1e-8])
            width = half_widths(row, np.array([0.2]), level, steps)[0]
            assert (errors <= width).mean() >= level - 4 * math.sqrt(level * (1 - level) / draws)
            assert width == pytest.approx(half_widths(row, np.array([0.2]), level)[0] + 0.3)


def test_a_fine_lattice_shows_nowhere() -> None:
    rows = np.array([[1.0, 0.3, 0.2], [0.0, 2.0, 0.0]])
    fine = half_widths(rows, None, 0.95, np.full(3, 2.0**-28))
    assert fine == pytest.approx(half_widths(rows, None, 0.95), rel=1e-7)
    assert lattice_spread(np.array([2.0**-28, 0.0])) == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [0.01, 0.125, 1.0, 30.0])
def test_the_spread_is_that_of_the_variance(scale: float) -> None:
    assert lattice_spread(np.array([1 / scale]))[0] ** 2 * 2 * scale**2 == pytest.approx(variance("laplace", scale))


def test_widths_never_shrink_with_the_confidence_nor_grow_with_epsilon() -> None:
    row = np.array([[1.0, 1.0, 0.5]])
    levels = [1e-6, 0.1, 0.5, 0.9, 0.99, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12]
    for epsilon in EPSILONS[1:]:
        widths = [half_widths(row / epsilon, None, level, np.full(3, epsilon))[0] for level in levels]
        assert np.isfinite(widths).all() and widths == sorted(widths)
    by_epsilon = [half_widths(row / e, None, 0.95, np.full(3, e))[0] for e in np.geomspace(0.1, 20, 60)]
    assert (np.diff(by_epsilon) <= 1e-9).all()
