"""COA as its authors ran it, and every lemma and theorem of the paper against an independent figure.

Names as in the paper: F(X) = ⟨X⁻¹, V⟩ with gradient G and Hessian H (Eq. 11), λ₁ the least eigenvalue.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tacit.engine import optimize
from tacit.engine.search.strategies.coa import SETTINGS, Point, Settings, direction, newton, positive_definite, thetas
from tacit.engine.search.watch import Watch

from benchmarks.paper.lemmas import coa_upper_bound

from .workloads import Matrix, prefix, ranges, real


def zeros_and_ones(m: int, n: int, seed: int) -> Matrix:
    W = (np.random.default_rng(seed).random((m, n)) < 0.4).astype(float)
    W[0] = 1.0
    return W


RANK_DEFICIENT: dict[str, Matrix] = {
    **{f"product, rank {r} of {n}": real(m, n, r, seed=r) for m, n, r in [(20, 24, 1), (9, 40, 3), (40, 30, 7)]},
    **{f"product, seed {k}": real(30, 20 + k, 1 + 3 * k, seed=k) for k in range(6)},
    **{f"ranges {m}×{n}": ranges(m, n) for m, n in [(3, 30), (8, 40), (12, 60), (20, 33)]},
    **{f"zeros and ones {m}×{n}": zeros_and_ones(m, n, m) for m, n in [(2, 9), (5, 20), (10, 40), (16, 17)]},
    **{f"equal columns, {k} of each": np.repeat(prefix(6), k, axis=1) for k in (2, 3, 7)},
    **{f"equal rows, {k} of each": np.repeat(zeros_and_ones(4, 12, k), k, axis=0) for k in (2, 5)},
    "zero columns": np.hstack([prefix(8), np.zeros((8, 5))]),
    "one row": np.ones((1, 25)),
    "one large row": 1e4 * np.ones((1, 12)),
    "one column of 6": np.outer(np.arange(1.0, 7.0), np.eye(6)[2]),
    "nearly singular": prefix(12) * np.logspace(0.0, -7.0, 12),
    "a hundred times as large": 100.0 * real(12, 18, 5),
}


@pytest.mark.parametrize("settings", ["program", "paper"])
@pytest.mark.parametrize("name", RANK_DEFICIENT)
def test_both_settings_answer_workloads_of_less_than_full_rank(name: str, settings: str) -> None:
    """X approaches a singular matrix there; ``paper`` still ends within 0.5 % of the proven bound."""
    W = RANK_DEFICIENT[name]
    s = optimize(W, privacy="approximate", strategy="coa", settings=settings)
    sizes = np.linalg.norm(W, axis=1)
    assert np.max(np.linalg.norm(s.B @ s.L - W, axis=1)) <= 1e-9 * sizes.max()
    assert s.sensitivity == pytest.approx(1.0, rel=1e-9)
    assert np.isfinite(s.error)
    assert s.error <= s.lower_bound * (1.005 if settings == "paper" else 1.7)


@pytest.mark.parametrize("size", [1e-6, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("settings", ["program", "paper"])
def test_a_size_that_theta_is_not_made_for_costs_error_and_nothing_else(settings: str, size: float) -> None:
    """θ = 1 is no large regularisation of entries of 1e6, and 1e-10 no small one of 1e-6: the paper's is absolute."""
    W = size * real(12, 18, 5)
    s = optimize(W, privacy="approximate", strategy="coa", settings=settings)
    assert np.linalg.norm(s.B @ s.L - W) <= 1e-9 * np.linalg.norm(W)
    assert s.error <= 5.0 * s.lower_bound


def test_the_settings_are_the_authors() -> None:
    """Numbers of the published program, and of Sections 4.1, 4.2 and 4.4."""
    program, paper = SETTINGS["program"], SETTINGS["paper"]
    assert (program.theta, program.iterations, program.inner, program.accuracy) == (1e-3, 10, 5, 1e-5)
    assert (program.shrink, program.decrease, program.relative, program.steepest_first) == (0.5, 1e-4, True, True)
    assert (paper.shrink, paper.decrease, paper.inner) == (0.1, 0.25, 6)  # Algorithm 2 counts from 0 to T = 5
    assert thetas(paper) == pytest.approx([10.0**-k for k in range(11)], rel=1e-9)
    assert thetas(program) == [1e-3]


def test_the_first_direction_of_the_program_is_the_steepest() -> None:
    W = prefix(5)
    s = optimize(W, privacy="approximate", strategy="coa", iterations=1)
    moved = s.L.T @ s.L - np.eye(5)
    V = W.T @ W - np.diag(np.diag(W.T @ W))  # −G at X = I, with a diagonal of zeros
    assert moved / np.abs(moved).max() == pytest.approx(V / V.max(), abs=1e-12)


N = 6
RNG = np.random.default_rng(3)
WORKLOAD = RNG.normal(size=(9, N))
V = WORKLOAD.T @ WORKLOAD + 0.1 * np.eye(N)
LEAST, MOST = (float(value) for value in np.linalg.eigvalsh(V)[[0, -1]])
ROOT = np.vstack([WORKLOAD, np.sqrt(0.1) * np.eye(N)])
"""A workload with WᵀW = V."""
EXACT = Settings(
    theta=0.1,
    relative=False,
    homotopy=False,
    iterations=60,
    inner=400,
    steepest_first=False,
    shrink=0.1,
    decrease=0.25,
    accuracy=1e-14,
    by_slope=True,
)
"""The paper's line search with Newton directions that are solved to the last digit."""


def F(X: Matrix, gram: Matrix = V) -> float:
    return float(np.trace(np.linalg.solve(X, gram)))


def G(X: Matrix) -> Matrix:
    Z = np.linalg.inv(X)
    return np.asarray(-Z @ V @ Z)


def H(X: Matrix) -> Matrix:
    Z = np.linalg.inv(X)
    return np.asarray(-np.kron(G(X), Z) - np.kron(Z, G(X)))


def correlation(rng: np.random.Generator, n: int = N) -> Matrix:
    """A random X ≻ 0 with diag(X) = 1, from well to badly conditioned."""
    A = rng.normal(size=(n + 2, n)) @ np.diag(rng.uniform(0.2, 1.0, n)) + rng.uniform(0, 2) * rng.normal(
        size=(n + 2, 1)
    )
    X = A.T @ A
    d = np.sqrt(np.diag(X))
    return np.asarray(X / np.outer(d, d))


SAMPLES = [correlation(RNG) for _ in range(40)]


def constants(start: Matrix) -> tuple[float, float]:
    """C₁ and C₂ of Lemma 6 for the level set of ``start``, with the inverse that its printed form lost."""
    return 1.0 / (F(start) / LEAST - 1.0 + 1.0 / N), float(N)


def optimum() -> tuple[Matrix, float]:
    """X* and F* by the dual fixed point, which shares no code with COA."""
    s = optimize(ROOT, privacy="approximate", target_gap=0.0)
    L = s.L / s.sensitivity
    assert s.gap <= 1e-8
    return np.asarray(L.T @ L), s.error


DRAWN = RNG.bit_generator.state


def run(settings: Settings, start: Matrix | None = None) -> list[Point]:
    first = positive_definite(np.eye(N) if start is None else start)
    assert first is not None
    return [first, *newton(first, V, settings, Watch())]


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Each test draws what it draws alone, whichever ran before it in the same process."""
    RNG.bit_generator.state = DRAWN


def test_equation_11_gives_the_derivatives() -> None:
    X, D, step = (SAMPLES[0] + np.eye(N)) / 2, np.tril(np.ones((N, N)), -1), 1e-4
    D = D + D.T
    above, below = F(X + step * D), F(X - step * D)
    assert (above - below) / (2 * step) == pytest.approx(float(np.vdot(G(X), D)), rel=1e-5)
    assert (above - 2 * F(X) + below) / step**2 == pytest.approx(float(D.ravel() @ H(X) @ D.ravel()), rel=1e-4)


@pytest.mark.parametrize("norm", [1, 2])
def test_lemma_1_any_strategy_can_be_scaled_to_norm_one(norm: int) -> None:
    A = RNG.normal(size=(8, N))
    size = np.linalg.norm(A, norm, axis=0).max()
    errors = [
        np.linalg.norm(S, norm, axis=0).max() ** 2 * np.sum((WORKLOAD @ np.linalg.pinv(S)) ** 2) for S in (A, A / size)
    ]
    assert errors[0] == pytest.approx(errors[1])


def test_lemma_2_the_objective_is_convex_and_strictly_so_for_full_rank() -> None:
    for X, Y in pairwise(SAMPLES):
        assert F((X + Y) / 2) < (F(X) + F(Y)) / 2
        assert np.linalg.eigvalsh(H(X))[0] > 0.0
    single = np.zeros((N, N))
    single[0, 0] = 1.0  # of rank 1: convex still, and constant between these two
    X, Y = np.eye(N), np.diag([1.0] + [0.5] * (N - 1))
    assert F((X + Y) / 2, single) == pytest.approx((F(X, single) + F(Y, single)) / 2, rel=1e-12)


def test_lemma_3_the_dual_has_no_gap_with_the_term_that_is_not_printed() -> None:
    """−⟨y, 1⟩ alone is at most 0; the Lagrangian's minimum over X is 2⟨X⁻¹, V⟩ − ⟨y, 1⟩ where X·diag(y)·X = V."""

    def dual(y: np.ndarray) -> tuple[float, Matrix]:
        half = np.sqrt(y)
        sigma, P = np.linalg.eigh(V * np.outer(half, half))
        X = (P * np.sqrt(sigma)) @ P.T / np.outer(half, half)
        return 2.0 * float(np.sqrt(sigma).sum()) - float(y.sum()), np.asarray(X)

    X_best, F_best = optimum()
    y_best = -np.diag(G(X_best))
    value, X = dual(y_best)
    assert X_best == pytest.approx(X, abs=1e-3)
    assert value == pytest.approx(F_best, rel=1e-7)
    for _ in range(50):
        y = y_best * np.exp(RNG.normal(size=N))
        value, X = dual(y)
        assert value <= F_best * (1 + 1e-9)
        assert (X * y) @ X == pytest.approx(V, abs=1e-9)  # feasible in the printed program too
        assert -y.sum() < 0.0 < F_best  # whose objective is nowhere near


def test_lemma_4_the_lower_side_holds_everywhere() -> None:
    nuclear = float(np.linalg.svd(WORKLOAD)[1].sum())
    lower = max(2.0 * nuclear - N, nuclear**2 / N) + 0.1
    assert all(lower <= F(X) for X in SAMPLES)
    assert lower <= optimum()[1]


def test_lemma_4_the_upper_side_holds_for_the_optimum_without_theta_only() -> None:
    """It is said of any feasible X, whose F has no limit; with θ it fails for the optimum of thin W too."""
    thin = real(4, N, 2)
    assert optimize(thin, privacy="approximate").error <= coa_upper_bound(thin) * (1 + 1e-4)
    nearly_singular = np.full((N, N), 1.0 - 1e-6) + 1e-6 * np.eye(N)
    assert F(nearly_singular) > np.sum(WORKLOAD**2) + 0.1 * N  # ρ = 1 for W of full rank
    theta, ones = 0.5, np.ones((1, N))
    regularised = optimize(np.vstack([ones, np.sqrt(theta) * np.eye(N)]), privacy="approximate")
    rho = 1.0 / np.sqrt(N)
    assert regularised.lower_bound > rho**2 * (N + theta * N)


def test_lemma_5_the_constraint_is_an_equality_at_the_optimum() -> None:
    assert np.diag(optimum()[0]) == pytest.approx(np.ones(N), abs=1e-4)
    for X in SAMPLES:
        smaller = np.sqrt(RNG.uniform(0.3, 1.0, N))
        inside = X * np.outer(smaller, smaller)
        assert F(inside + np.diag(1.0 - np.diag(inside))) < F(inside)


def test_lemma_6_holds_with_the_inverse_and_not_as_printed() -> None:
    for X in SAMPLES:
        low, high = constants(X)
        eigenvalues = np.linalg.eigvalsh(X)
        assert low <= eigenvalues[0] and eigenvalues[-1] <= high
    printed = F(np.eye(N)) / LEAST - 1.0 + 1.0 / N
    assert printed > 1.0  # the least eigenvalue of X⁰ = I, which is in its own level set


def test_lemma_7_holds_with_cubes_and_signs_and_not_as_printed() -> None:
    """2λ₁(V)/C₂³ ≤ H ≤ 2λₙ(V)/C₁³ and λ₁(V)/C₂² ≤ −G ≤ λₙ(V)/C₁²."""
    for X in SAMPLES:
        low, high = constants(X)
        hessian, gradient = np.linalg.eigvalsh(H(X)), np.linalg.eigvalsh(-G(X))
        assert 2 * LEAST / high**3 <= hessian[0] and hessian[-1] <= 2 * MOST / low**3
        assert LEAST / high**2 <= gradient[0] and gradient[-1] <= MOST / low**2
        assert np.linalg.eigvalsh(G(X))[-1] < 0.0  # printed: between two positive constants
    ones, scaled = np.ones((N, N)), np.eye(N)
    X = 0.999 * ones + 0.001 * np.eye(N)
    Z = np.linalg.inv(X)
    curvature = 2.0 * float(np.trace(Z @ scaled @ Z @ ones @ Z @ ones)) / N**2  # along 11ᵀ/n, with V = I
    assert curvature < 1.0 / N**2  # λ₁(V)/C₂², which is printed as its lower bound


def test_lemma_8_is_self_concordant_with_another_constant() -> None:
    """|f‴| ≤ C·f″^(3/2) for C = 3·√(C₂/(2λ₁(V))); with the printed C it fails at X = V = I already."""

    def ratio(X: Matrix, gram: Matrix, D: Matrix) -> float:
        turned = np.linalg.solve(X, D)
        second = 2.0 * np.trace(turned @ turned @ np.linalg.solve(X, gram))
        third = 6.0 * np.trace(turned @ turned @ turned @ np.linalg.solve(X, gram))
        return float(abs(third) / second**1.5)

    for X in SAMPLES:
        for _ in range(5):
            D = np.triu(RNG.normal(size=(N, N)), 1)
            assert ratio(X, V, D + D.T) <= 3.0 * np.sqrt(N / (2.0 * LEAST))
    n, C3 = 3, 1.0 / 3**2
    for C1 in (n - 1 + 1 / n, 1 / (n - 1 + 1 / n)):  # of Lemma 6, as printed and inverted
        printed = 6.0 * C3**3 / np.sqrt(n) / (2**1.5 * C1**3)
        assert ratio(np.eye(n), np.eye(n), np.ones((n, n)) - np.eye(n)) > 10 * printed


def test_lemma_9_a_step_of_stated_length_always_passes() -> None:
    for X in SAMPLES:
        low, high = constants(X)
        C3, C4 = 2 * LEAST / high**3, 2 * MOST / low**3
        alpha = 0.99 * min(1.0, low / (2 * MOST / (low**2 * C3)), 2 * (1 - 0.25) * C3 / C4)
        D = direction(np.linalg.inv(X), G(X), 400, Watch())
        assert alpha > 0.0
        assert np.linalg.eigvalsh(X + alpha * D)[0] > 0.0
        assert F(X + alpha * D) <= F(X) + alpha * 0.25 * float(np.vdot(G(X), D)) + 1e-12 * F(X)


def test_lemma_10_full_steps_are_taken_near_the_optimum() -> None:
    points = run(EXACT)
    near = []
    for before, after in pairwise(points):
        D = direction(before.inverse, G(before.X), 400, Watch())
        promised = -float(np.vdot(G(before.X), D)) / F(before.X)
        if 1e-6 < promised < 0.05:  # below, a direction is rounding
            near.append(np.allclose(after.X, before.X + D))
    assert len(near) >= 3 and all(near)


@pytest.mark.parametrize("settings", [EXACT, replace(EXACT, inner=6, iterations=400)], ids=["exact", "T = 5"])
def test_theorem_1_the_objective_falls_to_the_certified_optimum(settings: Settings) -> None:
    values = [F(point.X) for point in run(settings)]
    assert all(after <= before for before, after in pairwise(values))
    assert values[-1] == pytest.approx(optimum()[1], rel=1e-8)


def test_theorem_2_convergence_is_linear() -> None:
    """With T = 5, as published: every step leaves at most a fixed share of what is left above the optimum."""
    best = F(run(EXACT)[-1].X)
    for start in (None, *SAMPLES[:5]):
        left = np.array([F(point.X) - best for point in run(replace(EXACT, inner=6, iterations=400), start)])
        left = left[left > 1e-10 * best]
        assert np.max(left[1:] / left[:-1]) < 0.9


def test_theorem_3_convergence_is_quadratic_where_the_direction_is_exact() -> None:
    """‖X − X*‖ is squared by a step; with T = 5 it only shrinks by a factor."""
    best = run(EXACT)[-1].X

    def distances(settings: Settings) -> np.ndarray:
        left = np.array([np.linalg.norm(point.X - best) for point in run(settings)])
        return left[(left < 0.3) & (left > 1e-9)]

    exact, short = distances(EXACT), distances(replace(EXACT, inner=2, iterations=400))
    assert 2 <= len(exact) <= 5
    assert np.all(exact[1:] <= 10.0 * exact[:-1] ** 2)
    assert np.max(short[1:] / short[:-1] ** 2) > 1e3
