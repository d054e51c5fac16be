"""p-identity: every cell asked alone, and p free sums besides (McKenna et al., HDMM, OPT₀), for pure ε.

L = [I; Θ]·diag(1/s) with s_j = 1 + Σ_k |Θ_kj|: every column has L1 norm 1 by construction, L has full column
rank whatever Θ is, and Woodbury's identity makes one evaluation cost O(n²·p). The published family has Θ ≥ 0;
the signed form lets Θ have both signs and is what a good Θ ≥ 0 is polished with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from tacit.engine.search.descent import lbfgs
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import NotSupportedError

LARGEST = 1e3
"""Largest entry of Θ: beyond, s²·V loses the digits that the difference in ``Problem.value`` lives on."""


def p_identity(
    workload: Matrix, privacy: Privacy, watch: Watch, *, rows: int | None = None, iterations: int = 500
) -> Matrix:
    """The published form: Θ ≥ 0 with ``rows`` rows (default n/16), from one random start.

    Guarantee: every column of L has L1 norm 1 (HDMM, Definition 8), so the sensitivity under pure ε is 1.
    Limits: pure ε only; asks n + p questions, so L has more than n² entries; local minima.
    """
    if privacy != "pure":
        raise NotSupportedError('strategy "p-identity" has unit L1 columns: it is for privacy="pure"')
    n = workload.shape[1]
    problem = Problem(workload)
    stream = np.random.default_rng(0)  # a start point, not noise: nothing private depends on it
    start = stream.random((max(1, n // 16 if rows is None else rows), n))
    return assemble(problem.descend(start, iterations, watch)[1])


def assemble(theta: Matrix) -> Matrix:
    """L = [I; Θ]·diag(1/s); rows of Θ that are all zero ask nothing and are left out.

    Guarantee: column j has L1 norm (1 + Σ_k |Θ_kj|)/s_j = 1.
    """
    s = 1.0 + np.abs(theta).sum(axis=0)
    used = theta[np.any(theta != 0.0, axis=1)]
    n = s.size
    L = np.zeros((n + len(used), n))  # filled in place: at 8,192 cells every copy takes half a second
    L[np.arange(n), np.arange(n)] = 1.0 / s
    np.divide(used, s, out=L[n:])
    return L


class Problem:
    """The error of a p-identity strategy as a function of Θ, and descents on it."""

    def __init__(self, workload: Matrix) -> None:
        m, n = workload.shape
        self.columns: int = n
        self.diagonal: Vector = np.einsum("ij,ij->j", workload, workload)
        if 2 * m < n:  # two thin products are cheaper than one with V = WᵀW
            self._gram: Callable[[Matrix], Matrix] = lambda T: (T @ workload.T) @ workload
            self._width: int = 2 * m
        else:
            V = workload.T @ workload
            self._gram = lambda T: T @ V
            self._width = n

    def cost(self, p: int) -> float:
        """Floating-point operations of one evaluation."""
        vectors = 100.0 * p * self.columns + 1.5e6  # the quasi-Newton memory, and the overhead of the calls
        return float(vectors + 4.0 * p * self.columns * (self._width + 4 * p))

    def value(self, theta: Matrix, s: Vector) -> tuple[float, Matrix, Vector]:
        """f = tr(V·(LᵀL)⁻¹) and its derivatives by Θ (at fixed s) and by s.

        LᵀL = S⁻¹(I + ΘᵀΘ)S⁻¹ and (I + ΘᵀΘ)⁻¹ = I − Θᵀ·K·Θ with K = (I + ΘΘᵀ)⁻¹.
        """
        try:
            K = np.linalg.inv(np.eye(theta.shape[0]) + theta @ theta.T)
        except np.linalg.LinAlgError:  # a step so long that the numbers ran out: the line search comes back from it
            return np.inf, np.zeros_like(theta), np.zeros_like(s)
        T = K @ theta
        U = self._gram(theta * s)
        by_s = 2.0 * (self.diagonal * s - np.einsum("ij,ij->j", T, U))
        f = float(np.dot(self.diagonal, s * s) - np.einsum("ij,ij,j->", T, U, s))
        G = (K @ U) * s  # T·S·V·S, because T = K·Θ
        by_theta = -2.0 * (G - (G @ theta.T) @ T)
        return f, by_theta, by_s

    def error(self, theta: Matrix) -> float:
        return self.value(theta, 1.0 + np.abs(theta).sum(axis=0))[0]

    def descend(self, start: Matrix, iterations: int, watch: Watch) -> tuple[float, Matrix]:
        """L-BFGS-B over Θ ≥ 0."""
        shape = start.shape

        def objective(z: Vector) -> tuple[float, Vector]:
            theta = z.reshape(shape)
            f, by_theta, by_s = self.value(theta, 1.0 + theta.sum(axis=0))
            return f, (by_theta + by_s).ravel()

        z = lbfgs(objective, start.ravel(), iterations, watch, box=(0.0, LARGEST))
        theta = z.reshape(shape)
        return self.error(theta), theta

    def polish(self, start: Matrix, iterations: int, watch: Watch) -> tuple[float, Matrix]:
        """L-BFGS-B over Θ = P − N with P, N ≥ 0: both signs, and exact zeros stay exact."""
        shape = (2, *start.shape)

        def objective(z: Vector) -> tuple[float, Vector]:
            P, N = z.reshape(shape)
            f, by_theta, by_s = self.value(P - N, 1.0 + (P + N).sum(axis=0))
            return f, np.concatenate([(by_s + by_theta).ravel(), (by_s - by_theta).ravel()])

        z = np.concatenate([np.maximum(start, 0.0).ravel(), np.maximum(-start, 0.0).ravel()])
        P, N = lbfgs(objective, z, iterations, watch, box=(0.0, LARGEST)).reshape(shape)
        return self.error(P - N), P - N

    def anneal(self, start: Matrix, levels: int, iterations: int, watch: Watch) -> tuple[float, Matrix]:
        """Descend on |Θ| rounded off to √(Θ² + ε²), with ε falling from 1/3 to 1/3000; then ``polish``.

        The rounding melts poor local minima: where this ends depends little on where it starts.
        """
        shape = start.shape
        z, epsilon = start.ravel(), 1.0
        for epsilon in np.geomspace(0.3, 3e-4, levels):

            def objective(z: Vector, epsilon: float = epsilon) -> tuple[float, Vector]:
                theta = z.reshape(shape)
                size = np.sqrt(theta * theta + epsilon * epsilon)
                f, by_theta, by_s = self.value(theta, 1.0 + size.sum(axis=0))
                return f, (by_theta + theta / size * by_s).ravel()

            z = lbfgs(objective, z, iterations, watch)
            if watch.interrupted():
                break
        theta = np.where(np.abs(z) < 3.0 * epsilon, 0.0, z).reshape(shape)
        return self.polish(theta, 4 * iterations, watch)


def hats(n: int, count: int) -> Matrix:
    """``count`` overlapping triangles along the cells: what good Θ of range-like workloads look like."""
    centres = (np.arange(count) + 0.5) * n / count
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(np.arange(n) + 0.5 - centres[:, None]) * count / n))


def starts(workload: Matrix, most: int) -> Iterator[Matrix]:
    """Start points for Θ of about ``most`` rows at most, from those for ordered cells to those that assume nothing."""
    n = workload.shape[1]
    stream = np.random.default_rng(0)  # start points, not noise: nothing private depends on them
    for count in dict.fromkeys(min(most, max(1, round(n / share))) for share in (20, 16, 12, 28, 40, 9)):
        yield np.vstack([hats(n, count), np.full((1, n), 0.3)])
        if count >= 8:
            yield np.vstack([hats(n, count), 0.5 * hats(n, max(2, round(count / 5)))])
    for count in sorted({min(most, max(1, n // 32)), min(most, max(1, n // 16))}):
        yield stream.random((count, n))
