"""The convex optimisation approach (COA, Algorithms 1 to 3) for (ε, δ)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotri
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy
from tacit.errors import NotSupportedError

LARGEST = 4096
"""Columns beyond which the dense n×n Newton steps are refused."""
SHORTEST = 50
"""Steps that the line search tries at most; the program's number, and the paper names none."""


@dataclass(frozen=True)
class Settings:
    """Where Algorithms 1 to 3 leave a choice."""

    theta: float
    """θ of Eq. 8, where the search ends."""
    relative: bool
    """Whether θ is a share of the mean of diag(WᵀW) instead of an absolute figure."""
    homotopy: bool
    """Algorithm 3: θ falls from 1 by tenths, each solution starting the next."""
    iterations: int
    """Steps of Algorithm 1 for each θ, at most."""
    inner: int
    """Steps of Algorithm 2."""
    steepest_first: bool
    """Whether the first direction is −G itself, with a diagonal of zeros."""
    shrink: float
    """β of the line search."""
    decrease: float
    """σ of the line search (Eq. 16)."""
    accuracy: float
    """Relative decrease of F in a step at which Algorithm 1 has converged."""
    by_slope: bool
    """Whether −⟨G, D⟩ is compared with it, the decrease that a full step promises, instead of the decrease itself."""


SETTINGS = {
    "program": Settings(
        theta=1e-3,
        relative=True,
        homotopy=False,
        iterations=10,
        inner=5,
        steepest_first=True,
        shrink=0.5,
        decrease=1e-4,
        accuracy=1e-5,
        by_slope=False,
    ),
    "paper": Settings(
        theta=1e-10,
        relative=False,
        homotopy=True,
        iterations=1000,
        inner=6,
        steepest_first=False,
        shrink=0.1,
        decrease=0.25,
        accuracy=1e-5,
        by_slope=True,
    ),
}
"""Two ways in which the authors ran COA.

``program``: the Matlab program that they published with the paper, number by number. Their figures have its ten steps
and its θ = 1e-3 (Section 5). ``paper``: Algorithms 1 to 3 as printed, with β and σ of Section 4.2, T = 5 of Section 4.1
(Algorithm 2 counts from 0 to T: six steps) and θ from 1 to 1e-10 of Section 4.4. The paper does not say when it has
converged: here when ⟨G, D⟩, which "measures the optimality" (Section 4.2), reaches the program's accuracy.
"""


def coa(
    workload: Matrix,
    privacy: Privacy,
    watch: Watch,
    *,
    settings: Literal["program", "paper"] = "program",
    theta: float | None = None,
    iterations: int | None = None,
    inner: int | None = None,
    homotopy: bool | None = None,
) -> Matrix:
    """L with LᵀL = X, where X minimises ⟨X⁻¹, WᵀW + θI⟩ over diag(X) = 1, X ≻ 0 (Program 10).

    Algorithm 1 with at most ``iterations`` Newton steps; each direction by ``inner`` steps of the conjugate
    gradients of Algorithm 2. With ``homotopy``, Algorithm 3: θ falls from 1 by tenths to ``theta``, each
    solution starting the next. ``settings`` says what all of them are unless they are given; ``SETTINGS`` has
    the numbers and where each comes from. θ is absolute in the paper, as in Eq. 8, and a share of the mean of
    diag(WᵀW) in the program.

    Guarantee: diag(X) = 1, so every column of L has L2 norm 1 (COA, Section 3).
    Limits: approximate privacy only; n×n throughout. The program's ten steps end above the optimum on thin W.
    The paper's θ are made for entries of about 1: on W of a very different size its result is above the
    optimum too.
    """
    if privacy != "approximate":
        raise NotSupportedError('strategy "coa" minimises L2 column norms: it is for privacy="approximate"')
    n = workload.shape[1]
    if n > LARGEST:
        raise NotSupportedError(f'strategy "coa" works on n×n matrices: {n} columns are more than {LARGEST}')
    given: dict[str, Any] = {"theta": theta, "iterations": iterations, "inner": inner, "homotopy": homotopy}
    chosen = replace(SETTINGS[settings], **{name: value for name, value in given.items() if value is not None})
    gram = workload.T @ workload
    unit = float(np.mean(np.diag(gram))) if chosen.relative else 1.0
    point = Point(np.eye(n), np.eye(n), np.eye(n))
    for theta_now in thetas(chosen):
        for reached in newton(point, gram + unit * theta_now * np.eye(n), chosen, watch):
            point = reached
            watch.report(float(np.vdot(point.inverse, gram)))  # the error itself, without θ
    return point.factor


def thetas(settings: Settings) -> list[float]:
    """The values of θ in turn: 1, 0.1, … and the last one itself (Algorithm 3), or that one alone."""
    values, theta = [settings.theta], 1.0
    while settings.homotopy and theta > settings.theta * (1.0 + 1e-9):
        values.insert(-1, theta)
        theta *= 0.1
    return values


@dataclass(frozen=True, eq=False)
class Point:
    """A positive definite X."""

    X: Matrix
    factor: Matrix
    """Upper triangular, with factorᵀ·factor = X: the strategy."""
    inverse: Matrix


def newton(start: Point, V: Matrix, settings: Settings, watch: Watch) -> Iterator[Point]:
    """Algorithm 1: the points after each step, with F(X) = ⟨X⁻¹, V⟩ decreasing."""
    point, F = start, float(np.vdot(start.inverse, V))
    for k in range(settings.iterations):
        if watch.interrupted():
            return
        Z = point.inverse
        product = Z @ V @ Z
        G = -0.5 * (product + product.T)  # to the last digit: Cholesky reads one triangle of X and must see both
        D = _off_diagonal(-G) if settings.steepest_first and k == 0 else direction(Z, G, settings.inner, watch)
        slope = float(np.vdot(G, D))
        if slope > -1e-14 * F:
            return
        step = _line_search(point, D, V, F, slope, settings)
        if step is None:
            return
        before, (point, F) = F, step
        yield point
        if (-slope if settings.by_slope else before - F) < settings.accuracy * before:
            return


def _line_search(
    point: Point, D: Matrix, V: Matrix, F: float, slope: float, settings: Settings
) -> tuple[Point, float] | None:
    """X + αD and its F for the first α = 1, β, β², … that passes the two tests of Section 4.2; None if none does."""
    alpha = 1.0
    for _ in range(SHORTEST):
        reached = positive_definite(point.X + alpha * D)
        if reached is not None:
            F_reached = float(np.vdot(reached.inverse, V))
            if F_reached <= F + alpha * settings.decrease * slope:  # Eq. 16
                return reached, F_reached
        alpha *= settings.shrink
    return None


def direction(Z: Matrix, G: Matrix, steps: int, watch: Watch) -> Matrix:
    """Algorithm 2: conjugate gradients for the Newton direction with a diagonal of zeros (Problem 15)."""
    D = np.zeros_like(G)
    R = _off_diagonal(-G)
    P, old = R.copy(), float(np.vdot(R, R))
    enough = 1e-26 * max(old, 1e-270)
    for _ in range(steps):
        if old <= enough or watch.interrupted():
            break
        half = G @ P @ Z
        H = _off_diagonal(-(half + half.T))  # −GPZ − ZPG: G, P and Z are symmetric, so one product serves both
        curvature = float(np.vdot(P, H))
        if curvature <= 0.0:  # rounding: the Hessian of Eq. 11 is positive definite
            break
        alpha = old / curvature
        D += alpha * P
        R -= alpha * H
        new = float(np.vdot(R, R))
        P *= new / old
        P += R
        old = new
    return D


def _off_diagonal(matrix: Matrix) -> Matrix:
    """The matrix with a diagonal of zeros."""
    np.fill_diagonal(matrix, 0.0)
    return matrix


def positive_definite(X: Matrix) -> Point | None:
    """X with its Cholesky factor (Section 4.2), or None where it has none: X is not positive definite.

    On W of less than full rank X approaches a singular matrix as θ falls. The factor that passed this test is the
    strategy itself, and is not computed again: rounding could decide otherwise the second time.
    """
    try:
        factor = scipy.linalg.cholesky(X, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    upper, info = dpotri(factor)
    if info != 0:
        return None
    inverse = np.triu(upper)
    return Point(X, np.asarray(factor), np.asarray(inverse + np.triu(inverse, 1).T))
