"""Tiny domains, every pair of neighbours, every output: the released distribution itself, not a sample of it.

Laplace: P(z)/P'(z) = exp(n(z)/scale) with the integer n(z) = Σ|z − v'| − Σ|z − v|, so the inequality is one between
integers and fractions, and nothing is rounded. Outside the box around v and v' each term of n is constant, so a box
with a margin of one holds every value that n takes. Gauss: δ(ε) is summed over all outputs of a coarse lattice, and
on the real lattice, of 2²⁸ steps, by Euler-Maclaurin in 50 digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare
from tacit.engine import PlanOptions, TableWorkload, measure, optimize, plan_release
from tacit.engine.linalg import rebuild
from tacit.engine.mechanism.exact import largest_column_norm
from tacit.engine.mechanism.lattice import Lattice, exact_answers
from tacit.engine.mechanism.plan import Calibrated, JointPlan, TablePlan
from tacit.engine.strategy import Privacy

from .cases import LONG

WORKLOADS = {
    "one": [[1, 0]],
    "all": [[1, 1]],
    "both": [[1, 0], [0, 1]],
    "nested": [[1, 0], [1, 1]],
    "signed": [[1, -1], [1, 1]],
    "sum": [[0, 7.5]],
    "windows": [[1, 1, 0], [0, 1, 1]],
}


def moves(cells: int, rows: int, unit: int) -> list[NDArray[np.int64]]:
    """Everything that one privacy unit can add to x: up to ``rows`` rows, each ``unit`` split among the cells.

    A row may also fall outside the cells, wholly or in part.
    """
    splits = [s for s in itertools.product(range(unit + 1), repeat=cells) if sum(s) <= unit]
    sums = {tuple(np.sum(choice, axis=0).tolist()) for choice in itertools.combinations_with_replacement(splits, rows)}
    return [np.array(s, dtype=np.int64) for s in sorted(sums)]


def tables(cells: int, unit: int) -> Iterator[NDArray[np.int64]]:
    """Every table of up to two rows a cell; with fractions, of every residue, because rounding looks at it."""
    return (np.array(x, dtype=np.int64) for x in itertools.product(range(3 if unit == 1 else unit + 1), repeat=cells))


Vectors = tuple[NDArray[np.int64], ...]


def neighbours(plan: JointPlan, noises: tuple[Calibrated, ...]) -> set[tuple[tuple[int, ...], ...]]:
    """The distinct differences v − v' over all tables and all moves; one tuple of integers for each part."""
    per_part = []
    for part, noise in zip(plan.parts, noises, strict=True):
        workload = part.workload
        found = set()
        for x in tables(workload.matrix.shape[1], workload.one_row):
            v = exact_answers(part.lattice, x, noise.resolution)
            for move in moves(workload.matrix.shape[1], workload.rows_per_unit, workload.one_row):
                found.add(tuple((exact_answers(part.lattice, x + move, noise.resolution) - v).tolist()))
        per_part.append(sorted(found))
    return set(itertools.product(*per_part))


def largest_loss(difference: tuple[int, ...]) -> int:
    """The largest n(z) over every z, v being 0 and v' the difference."""
    axes = [np.array(sorted({-1, 0, 1, d - 1, d, d + 1}), dtype=np.int64) for d in difference]
    terms = [np.abs(axis - d) - np.abs(axis) for axis, d in zip(axes, difference, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = np.add.outer(total, term)
    return int(total.max())


@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("strategy", [None, "results", "identity"])
@pytest.mark.parametrize("name", [name for name in WORKLOADS if LONG or name != "windows"])
def test_pure(name: str, strategy: str | None, rows: int, unit: int) -> None:
    workload = TableWorkload(np.array(WORKLOADS[name], dtype=np.float64), np.arange(len(WORKLOADS[name])), rows, unit)
    plan = plan_release([workload], privacy="pure", options=PlanOptions(strategy=strategy))
    epsilon = Fraction(3, 10)
    (noise,) = noises = plan.calibrate(Decimal("0.3"))
    losses = [Fraction(largest_loss(d)) / Fraction(noise.scale) for (d,) in neighbours(plan, noises)]
    assert max(losses) <= epsilon
    assert max(losses) > Fraction(999, 1000) * epsilon, "some neighbour comes close: the noise is not merely large"


def test_pure_over_two_tables() -> None:
    """One unit owns rows in both tables, and the losses add up."""
    workloads = [
        TableWorkload(np.array([[1.0, 1, 0], [0, 1, 1]]), np.array([0, 1]), rows_per_unit=2),
        TableWorkload(np.array([[1.0, 0.5]]), np.array([2]), one_row=4),
    ]
    plan = plan_release(workloads, privacy="pure")
    noises = plan.calibrate(Decimal("0.3"))
    for differences in neighbours(plan, noises):
        loss = sum(Fraction(largest_loss(d)) / Fraction(n.scale) for d, n in zip(differences, noises, strict=True))
        assert loss <= Fraction(3, 10)


def coarse(strategies: list[list[list[int]]], privacy: Privacy, rows: int, unit: int) -> JointPlan:
    """A plan on a lattice of a few steps, so that all of its outputs can be listed."""
    parts = []
    for number, entries in enumerate(strategies):
        L = np.array(entries, dtype=np.int64)
        order = 1 if privacy == "pure" else 2
        workload = TableWorkload(L.astype(np.float64), np.arange(len(L)) + 10 * number, rows, unit)
        B = rebuild(workload.matrix, L.astype(np.float64))
        lattice = Lattice(privacy, L, 0, largest_column_norm(L, order), B, 0.0)
        whole = optimize(workload.matrix, privacy=privacy, strategy="results")
        parts.append(TablePlan(workload, whole, lattice, np.ones(len(L)), Fraction(1, len(strategies))))
    return JointPlan(privacy, tuple(parts), 10 * len(strategies))


@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize(("entries", "rows"), [([[5]], 1), ([[4, 1], [0, 3]], 2), ([[3, -2], [1, 2], [0, 1]], 1)])
def test_pure_on_a_coarse_lattice(entries: list[list[int]], rows: int, unit: int) -> None:
    """Where a step is a large part of the sensitivity, so is what rounding to the grid adds to it."""
    plan = coarse([entries], "pure", rows, unit)
    (noise,) = noises = plan.calibrate(Decimal("0.3"))
    losses = [Fraction(largest_loss(d)) / Fraction(noise.scale) for (d,) in neighbours(plan, noises)]
    assert 0 < max(losses) <= Fraction(3, 10)
    if unit > 1 and rows > 1:  # several rows with their own fractions: the grid moves further than they do
        assert max(largest_loss(d) for (d,) in neighbours(plan, noises)) > rows * plan.parts[0].lattice.norm


def discrete_gaussian(scale: float, centre: int, reach: int) -> NDArray[np.longdouble]:
    k = np.arange(-reach, reach + 1, dtype=np.longdouble) - centre
    weights = np.exp(-(k**2) / (2 * np.longdouble(scale) ** 2))
    # Theta sums of σ ≥ 1 are σ·√(2π) up to e^−19; summing far beyond the box leaves no doubt.
    wide = np.arange(-3 * reach, 3 * reach + 1, dtype=np.longdouble)
    return np.asarray(weights / np.exp(-(wide**2) / (2 * np.longdouble(scale) ** 2)).sum())


def true_delta(differences: tuple[tuple[int, ...], ...], scales: list[float], epsilon: float) -> float:
    """Σ max(0, P(z) − e^ε·P'(z)) over every z that matters, plus the mass of all others."""
    flat = [(d, s) for part, s in zip(differences, scales, strict=True) for d in part]
    here, there = np.ones(1, dtype=np.longdouble), np.ones(1, dtype=np.longdouble)
    for d, scale in flat:
        reach = int(8 * scale) + abs(d)
        here = np.multiply.outer(here, discrete_gaussian(scale, d, reach)).ravel()
        there = np.multiply.outer(there, discrete_gaussian(scale, 0, reach)).ravel()
    outside = 1 - float(here.sum())
    return float(np.maximum(here - np.exp(np.longdouble(epsilon)) * there, 0).sum()) + max(outside, 0.0)


@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize(
    ("strategies", "rows"),
    [
        ([[[16]]], 1),
        ([[[16, 5]]], 2),
        ([[[12, 3], [0, 9]]], 1),
        ([[[8, -6], [8, 6]]], 2),
        ([[[16, 0]], [[7, 9]]], 1),
    ],
)
def test_gaussian_on_a_coarse_lattice(strategies: list[list[list[int]]], rows: int, unit: int) -> None:
    plan = coarse(strategies, "approximate", rows, unit)
    epsilon, delta = 1.0, 1e-3
    noises = plan.calibrate(epsilon, delta)
    scales = [noise.scale for noise in noises]
    found = neighbours(plan, noises)
    # δ depends on the sizes of the coordinates only, and falls with each: given the other coordinates it is the
    # largest P[K ≥ t − d] − γ·P[K ≥ t] over t for some γ, and that grows with d.
    sizes = {tuple(tuple(abs(c) for c in part) for part in d) for d in found}
    extreme = [a for a in sizes if not any(a != b and _below(a, b) for b in sizes)]
    deltas = [true_delta(d, scales, epsilon) for d in extreme]
    assert 0 < max(deltas) <= delta
    if unit == 1 and len(strategies) == 1:
        weak = max(true_delta(d, [0.8 * s for s in scales], epsilon) for d in extreme)
        assert weak > delta, "four fifths of the noise would not do"


def _below(a: tuple[tuple[int, ...], ...], b: tuple[tuple[int, ...], ...]) -> bool:
    return all(x <= y for p, q in zip(a, b, strict=True) for x, y in zip(p, q, strict=True))


def tail(t: int, sigma: mpmath.mpf) -> mpmath.mpf:
    """P[K ≥ t] of the discrete Gaussian, σ large: Euler-Maclaurin; what is left out is below σ⁻⁵."""

    def density(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(-(x**2) / (2 * sigma**2)) / (sigma * mpmath.sqrt(2 * mpmath.pi))

    x = mpmath.mpf(t)
    first = -x / sigma**2 * density(x)
    third = (3 * x / sigma**4 - x**3 / sigma**6) * density(x)
    return mpmath.erfc(x / (sigma * mpmath.sqrt(2))) / 2 + density(x) / 2 - first / 12 + third / 720


@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-9), (3.0, 1e-3), (0.01, 1e-4)])
@pytest.mark.parametrize("name", ["one", "all", "sum"])
def test_gaussian_on_the_real_lattice(name: str, epsilon: float, delta: float, unit: int) -> None:
    """One coordinate at distance d: the worst event is {z ≥ t} with t = εσ²/d + d/2, and its δ is two tails."""
    workload = TableWorkload(np.array(WORKLOADS[name], dtype=np.float64), np.arange(1), 2, unit)
    plan = plan_release([workload], privacy="approximate")
    (noise,) = noises = plan.calibrate(epsilon, delta)
    worst = 0.0
    with mpmath.workdps(50):
        sigma, grow = mpmath.mpf(noise.scale), mpmath.exp(mpmath.mpf(epsilon))
        for distance in {abs(d[0][0]) for d in neighbours(plan, noises)} - {0}:
            t = int(mpmath.ceil(mpmath.mpf(epsilon) * sigma**2 / distance + mpmath.mpf(distance) / 2))
            worst = max(worst, float(tail(t - distance, sigma) - grow * tail(t, sigma)))
    assert 0.99 * delta < worst <= delta


def test_the_sampler_follows_the_distribution_that_was_checked() -> None:
    plan = coarse([[[4, 1]]], "pure", 1, 1)
    (noise,) = plan.calibrate(2)
    drawn = np.array([int(measure(plan, [np.array([2, 3])], 2)[0].noisy[0]) for _ in range(2000)])
    centre = 4 * 2 + 1 * 3
    q = math.exp(-1 / noise.scale)
    support = np.arange(-8, 9)
    expected = (1 - q) / (1 + q) * q ** np.abs(support)
    counts = np.array([(drawn == centre + k).sum() for k in support])
    observed = np.append(counts, len(drawn) - counts.sum())
    assert chisquare(observed, len(drawn) * np.append(expected, 1 - expected.sum())).pvalue > 1e-7


def test_the_check_can_fail() -> None:
    """A sensitivity of one step less than the truth breaks the inequality for some neighbour."""
    plan = coarse([[[4, 1]]], "pure", 2, 1)
    part = plan.parts[0]
    weak = replace(plan, parts=(replace(part, lattice=replace(part.lattice, norm=3)),))
    for each, fine in ((plan, True), (weak, False)):
        (noise,) = noises = each.calibrate(Decimal("0.3"))
        worst = max(Fraction(largest_loss(d)) / Fraction(noise.scale) for (d,) in neighbours(each, noises))
        assert (worst <= Fraction(3, 10)) == fine
