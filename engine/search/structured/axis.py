"""Strategies for one axis: the small dense problems that a structured strategy is put together from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from tacit.engine.linalg import is_identity, pseudo_inverse
from tacit.engine.search.least_total import least_total
from tacit.engine.search.optimize import optimize
from tacit.engine.search.options import LARGE_GAP, Options
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Strategy, Vector, sensitivity


@dataclass(frozen=True, eq=False)
class AxisStrategy:
    """Questions over one axis with columns of norm at most 1, and the least error that a bound allows."""

    L: Matrix = field(repr=False)
    error: float
    lower_bound: float

    def error_of(self, rows: Matrix) -> float:
        """The sum of squared errors of other rows over the axis, at noise 1."""
        if is_identity(self.L):
            return float(np.einsum("ij,ij->", rows, rows))
        B = rows @ self.inverse
        return float(np.einsum("ij,ij->", B, B))

    @property
    def inverse(self) -> Matrix:
        found: Matrix | None = self.__dict__.get("_inverse")
        if found is None:
            found = pseudo_inverse(self.L)
            object.__setattr__(self, "_inverse", found)
        return found


class AxisSolver:
    """Solves each different problem once."""

    def __init__(
        self, privacy: Privacy, effort: float = 1.0, seconds_left: Callable[[], float | None] = lambda: None
    ) -> None:
        """``effort``: the share of the work of a full search; ``seconds_left``: of its deadline, if it has one."""
        self.privacy: Privacy = privacy
        self._effort = effort
        self._seconds_left = seconds_left
        self._solved: dict[tuple[tuple[int, ...], bytes], AxisStrategy] = {}

    def rows(self, matrix: Matrix) -> AxisStrategy:
        """The best strategy found for some rows over an axis."""
        key = (matrix.shape, matrix.tobytes())
        if key not in self._solved:
            s = self._in_full(matrix) if self._effort == 1.0 else self._in_short(matrix)
            L = s.L / s.sensitivity
            self._solved[key] = AxisStrategy(self._symmetric(L), s.error, s.lower_bound)
        return self._solved[key]

    def beside(self, privacy: Privacy, effort: float = 1.0) -> AxisSolver:
        """Another solver within the same deadline."""
        return AxisSolver(privacy, effort, self._seconds_left)

    def _in_full(self, matrix: Matrix) -> Strategy:
        return optimize(matrix, privacy=self.privacy, deadline=self._seconds_left())

    def _in_short(self, matrix: Matrix) -> Strategy:
        options = Options(privacy=self.privacy, effort=self._effort)
        watch = Watch(deadline=self._seconds_left(), target_gap=LARGE_GAP)
        return least_total(matrix, np.ones(len(matrix)), options, watch)

    def _symmetric(self, L: Matrix) -> Matrix:
        """Under Gaussian noise only LᵀL matters, and its symmetric root is often a multiple of small integers."""
        if self.privacy == "pure":
            return L
        values, vectors = np.linalg.eigh(L.T @ L)
        values[values <= 1e-9 * values[-1]] = 0.0
        if np.count_nonzero(values) < len(values) - 1:
            return L  # thin: it is rounded over a basis of its rows
        symmetric = (vectors * np.sqrt(values)) @ vectors.T
        return np.asarray(symmetric / sensitivity(symmetric, "approximate"))


def stacked(matrices: Sequence[Matrix], weights: Sequence[float]) -> Matrix:
    """The rows of several factors one below the other, weighed."""
    if len(matrices) == 1:
        return matrices[0]
    top = max(weights)
    return np.ascontiguousarray(np.vstack([m * np.sqrt(w / top) for m, w in zip(matrices, weights, strict=True)]))


def rests(matrix: Matrix, split: Vector) -> Matrix:
    """The rows without their means under the weights."""
    return np.asarray(matrix - (matrix @ split)[:, None])
