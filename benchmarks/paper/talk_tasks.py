"""What the matrix-mechanism talk measures and the papers do not: single ranges, weights, and inference with x ≥ 0."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from tacit.engine import TableWorkload, measure, optimize, to_epsilon
from tacit.engine.inference.nonnegative import fit
from tacit.engine.linalg import rebuild
from tacit.engine.mechanism.choose import assemble
from tacit.engine.mechanism.table_plan import TablePlan
from tacit.engine.strategy import Privacy, Strategy
from threadpoolctl import threadpool_limits

from benchmarks.paper.data import ADULT, NET, SEARCH, SOCIAL, SPARSE, unit_counts
from benchmarks.paper.tasks import EPSILON, GAUSS, LAPLACE, RUNS, Measures
from benchmarks.paper.workloads import Matrix, all_ranges

Vector = NDArray[np.float64]
RANGED = (SPARSE, SEARCH, NET, SOCIAL, ADULT)
"""The talk has a sparse data set, the papers the others."""
LEAST_SQUARES, NONNEGATIVE = "least squares", "non-negative"


def every_range(n: int) -> Matrix:
    """The rows themselves, shortest ranges first; for small n."""
    starts = [(i, i + width) for width in range(1, n + 1) for i in range(n + 1 - width)]
    cells = np.arange(n)
    return np.array([(cells >= i) & (cells < j) for i, j in starts], dtype=np.float64)


def by_width(s: Strategy) -> Vector:
    """Δ²·w(LᵀL)⁺wᵀ, the talk's error of a query w, averaged over the ranges of each width from 1 to n.

    A range is the difference of two prefixes, so one table of n + 1 prefixes serves all n(n+1)/2 ranges.
    """
    n = s.L.shape[1]
    covariance = np.linalg.pinv(s.L.T @ s.L, hermitian=True) * s.sensitivity**2
    prefixes = np.zeros((n + 1, n + 1))
    prefixes[1:, 1:] = covariance.cumsum(axis=0).cumsum(axis=1)
    diagonal = np.diag(prefixes)
    return np.array(
        [np.mean(diagonal[w:] + diagonal[:-w] - 2.0 * np.diag(prefixes, w)) for w in range(1, n + 1)], dtype=np.float64
    )


@dataclass(frozen=True)
class Plain:
    """Laplace noise on each of all ranges, without least squares: the talk's first approach, 2(‖W‖₁/ε)² per query.

    A cell in the middle is in the most ranges, ⌊(n + 1)²/4⌋ of them: 6 for n = 4, which is 72/ε².
    """

    n: int

    def run(self) -> Measures:
        return {"error": LAPLACE * ((self.n + 1) ** 2 // 4) ** 2}


def widths(n: int) -> list[int]:
    return [1 << k for k in range(n.bit_length())]


@dataclass(frozen=True)
class Weighted:
    """All ranges over n cells, the single cells counted ``weight`` times: the talk's "scale rows to control error".

    Measures: ``weighted`` (mean error of the single cells), ``others`` (of all wider ranges).
    """

    n: int
    privacy: Privacy
    weight: float

    def run(self) -> Measures:
        W = every_range(self.n)
        weights = np.ones(len(W))
        weights[: self.n] = self.weight
        s = optimize(W, privacy=self.privacy, weights=weights)
        errors = s.sensitivity**2 * np.sum(s.B**2, axis=1) * (LAPLACE if self.privacy == "pure" else GAUSS)
        return {"weighted": float(errors[: self.n].mean()), "others": float(errors[self.n :].mean())}


@dataclass(frozen=True)
class Ranges:
    """All ranges over n cells under pure ε: the error by width, and what x ≥ 0 does to it on each data set.

    Measures: ``error`` and ``lower bound`` as ``Planned``; ``width 1``, ``width 2``, ``width 4``, … (error per query
    of that width); and for each data set ``non-negative …``: cells fitted with x ≥ 0 to 20 measurements by the engine
    itself, per query at ε = 0.1. Least squares, whose error is ``error``, keeps of L·x + noise what L can express,
    which is all that the fit with x ≥ 0 depends on.
    """

    n: int
    strategy: str | None
    folder: str | None = None
    limit: float | None = field(default=None, repr=False)

    def run(self) -> Measures:
        setting = all_ranges(self.n)
        R = setting.matrix()
        s = optimize(R, privacy="pure", strategy=self.strategy, deadline=self.limit)
        measures = {"error": LAPLACE * s.error / setting.m, "lower bound": LAPLACE * s.lower_bound / setting.m}
        with threadpool_limits(limits=1, user_api="blas"):
            cells = TableWorkload(np.eye(self.n), np.arange(self.n))
            of_cells = replace(s, B=rebuild(cells.matrix, s.L))  # the same questions, for the cells
            plan = assemble([cells], [of_cells], [np.ones(self.n)], privacy="pure", rows=self.n)
            (part,) = plan.parts
            assert isinstance(part, TablePlan)
            for data in RANGED:
                counts = unit_counts(data, self.n, self.folder)
                values = [measure(plan, [counts], to_epsilon(EPSILON))[0].values for _ in range(RUNS)]
                free = part.lattice.B @ np.array(values).T
                fitted = fit(s.L, s.L @ free, np.maximum(free, 0.0))
                loss = float(np.sum((R @ (fitted - counts[:, None])) ** 2))
                measures[f"{NONNEGATIVE} {data}"] = loss / RUNS / setting.m
            errors = by_width(s) * LAPLACE
        return {**measures, **{f"width {w}": float(errors[w - 1]) for w in widths(self.n)}}
