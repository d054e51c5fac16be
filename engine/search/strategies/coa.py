"""The convex optimisation approach (COA, Algorithms 1 to 3) for (ε, δ)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpotri
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy
from tacit.errors import NotSupportedError

LARGEST = 4096
"""Columns beyond which the dense n×n Newton steps are refused."""
SHRINK, DECREASE = 0.1, 0.25
"""β and σ of the line search (COA, Section 4.2)."""


def coa(
    workload: Matrix,
    privacy: Privacy,
    watch: Watch,
    *,
    theta: float = 1e-3,
    iterations: int = 10,
    inner: int = 5,
    homotopy: bool = False,
) -> Matrix:
    """L with LᵀL = X, where X minimises ⟨X⁻¹, WᵀW + θI⟩ over diag(X) = 1, X ≻ 0 (Program 10).

    Algorithm 1 with ``iterations`` Newton steps; each direction by ``inner`` steps of the conjugate gradients
    of Algorithm 2. With ``homotopy``, Algorithm 3: θ falls from 1 by tenths to ``theta``, each solution
    starting the next with ``iterations`` steps of its own.

    Guarantee: diag(X) = 1, so every column of L has L2 norm 1 (COA, Section 3).
    Limits: approximate privacy only; n×n throughout; θ > 0 biases the optimum on rank-deficient W; ten steps
    are the authors' default and leave it well above the optimum on thin W.
    """
    if privacy != "approximate":
        raise NotSupportedError('strategy "coa" minimises L2 column norms: it is for privacy="approximate"')
    n = workload.shape[1]
    if n > LARGEST:
        raise NotSupportedError(f'strategy "coa" works on n×n matrices: {n} columns are more than {LARGEST}')
    V = workload.T @ workload
    X = np.eye(n)
    theta_now = max(1.0, theta) if homotopy else theta
    while True:
        X = _newton(X, V, theta_now, iterations, inner, watch)
        if theta_now <= theta or watch.interrupted():
            break
        theta_now = max(theta_now * 0.1, theta)
    return np.asarray(scipy.linalg.cholesky(X, check_finite=False))


def _newton(X: Matrix, gram: Matrix, theta: float, iterations: int, inner: int, watch: Watch) -> Matrix:
    """Algorithm 1 for V = WᵀW + θI; what is reported is the error itself, ⟨X⁻¹, WᵀW⟩, without θ."""
    V = gram + theta * np.eye(len(gram))
    Z = _inverse(X)
    assert Z is not None
    F = float(np.vdot(Z, V))
    for _ in range(iterations):
        if watch.interrupted():
            break
        G = -Z @ V @ Z
        D = _direction(Z, G, inner, watch)
        slope = float(np.vdot(G, D))
        if slope > -1e-14 * F:
            break
        alpha = 1.0
        while alpha > 1e-12:
            Z_next = _inverse(X + alpha * D)
            if Z_next is not None:
                F_next = float(np.vdot(Z_next, V))
                if F_next <= F + alpha * DECREASE * slope:  # Eq. 16
                    X, Z, F = X + alpha * D, Z_next, F_next
                    break
            alpha *= SHRINK
        else:
            break
        watch.report(float(np.vdot(Z, gram)))
    return X


def _direction(Z: Matrix, G: Matrix, steps: int, watch: Watch) -> Matrix:
    """Algorithm 2: conjugate gradients for the Newton direction with a diagonal of zeros (Problem 15)."""
    D = np.zeros_like(G)
    R = -G
    np.fill_diagonal(R, 0.0)
    P, old = R.copy(), float(np.vdot(R, R))
    enough = 1e-26 * max(old, 1e-270)
    for _ in range(steps + 1):  # the paper counts from 0 to T
        if old <= enough or watch.interrupted():
            break
        half = G @ P @ Z
        H = -(half + half.T)  # −GPZ − ZPG: G, P and Z are symmetric, so one product serves both
        np.fill_diagonal(H, 0.0)
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


def _inverse(X: Matrix) -> Matrix | None:
    """X⁻¹ by Cholesky, or None when X is not positive definite (Section 4.2)."""
    try:
        factor = scipy.linalg.cholesky(X, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    lower, info = dpotri(factor, lower=1)
    if info != 0:
        return None
    inverse = np.tril(lower)
    return np.asarray(inverse + np.tril(inverse, -1).T)
