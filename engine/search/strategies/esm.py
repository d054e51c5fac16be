"""The matrix mechanism's L2 approximation by exponential smoothing (LRM, Appendix B; ESM in COA)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy
from tacit.errors import NotSupportedError

LARGEST = 4096
"""Columns beyond which the dense n×n steps are refused."""
MEMORY = 10
"""Past values that the non-monotone line search compares with."""


def esm(
    workload: Matrix,
    privacy: Privacy,
    watch: Watch,
    *,
    smoothing: float = 0.01,
    theta: float = 1e-3,
    iterations: int = 100,
) -> Matrix:
    """L = M^½ where M minimises f_μ(diag M)·tr(WᵀW·M⁻¹) over M ≻ 0, f_μ the soft maximum of Eq. 13.

    Non-monotone spectral projected gradients, as Appendix B has it; μ = ε/(10·log n), ε = ``smoothing``.
    M is kept positive definite by cutting its eigenvalues at a millionth of its mean diagonal.

    Guarantee: none of its own; the caller measures the columns. Under pure ε the same L is used and its L1
    norms are measured, as LRM's experiments do with this approximation.
    Limits: not convex in this form; M⁻¹ is unstable where the solution wants a low rank, so that WᵀW is
    lifted by θ times its mean diagonal; n×n throughout.
    """
    n = workload.shape[1]
    if n > LARGEST:
        raise NotSupportedError(f'strategy "esm" works on n×n matrices: {n} columns are more than {LARGEST}')
    V = workload.T @ workload
    V = V + theta * np.trace(V) / n * np.eye(n)
    mu = smoothing / (10.0 * np.log(max(n, 2)))
    M = np.eye(n)
    value, gradient = _objective(M, V, mu)
    recent, best, best_value = [value], M, value
    step = 1.0 / max(float(np.abs(gradient).max()), 1e-300)
    for _ in range(iterations):
        if watch.interrupted():
            break
        D = _project(M - step * gradient) - M
        slope = float(np.vdot(gradient, D))
        if slope > -1e-12:
            break
        alpha = 1.0
        while True:
            M_next = M + alpha * D
            value_next, gradient_next = _objective(M_next, V, mu)
            if value_next <= max(recent[-MEMORY:]) + 1e-4 * alpha * slope or alpha < 1e-10:
                break
            alpha *= 0.5
        S, Y = M_next - M, gradient_next - gradient
        curvature = float(np.vdot(S, Y))
        step = min(max(float(np.vdot(S, S)) / curvature, 1e-10), 1e10) if curvature > 0 else 10.0 * step
        M, value, gradient = M_next, value_next, gradient_next
        recent.append(value)
        if value < best_value:
            best, best_value = M, value
    eigenvalues, Q = scipy.linalg.eigh(best, check_finite=False)
    return np.asarray((Q * np.sqrt(np.maximum(eigenvalues, 0.0))) @ Q.T)


def _objective(M: Matrix, V: Matrix, mu: float) -> tuple[float, Matrix]:
    """log of f_μ(diag M)·tr(V·M⁻¹) and its gradient (Eqs. 13 and 14); the log only rescales the steps."""
    try:
        factor = scipy.linalg.cho_factor(M, check_finite=False)
    except np.linalg.LinAlgError:
        return float("inf"), np.zeros_like(M)
    inverse = scipy.linalg.cho_solve(factor, np.eye(len(M)), check_finite=False)
    half = inverse @ V
    spread = float(np.trace(half))
    diagonal = np.diag(M)
    peak = float(diagonal.max())
    share = np.exp((diagonal - peak) / mu)
    total = float(share.sum())
    largest = peak + mu * float(np.log(total))
    gradient = -half @ inverse / spread
    gradient[np.diag_indices_from(gradient)] += share / total / largest
    return float(np.log(spread) + np.log(largest)), (gradient + gradient.T) / 2.0


def _project(M: Matrix) -> Matrix:
    eigenvalues, Q = scipy.linalg.eigh(M, check_finite=False)
    floor = 1e-6 * max(float(np.trace(M)) / len(M), 1e-6)
    if eigenvalues[0] >= floor:
        return M
    return np.asarray((Q * np.maximum(eigenvalues, floor)) @ Q.T)
