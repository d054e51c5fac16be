"""What one search for a strategy shares among the families: the workload, the work to spend, and the best so far."""

from __future__ import annotations

import numpy as np
from tacit.engine.linalg import NEGLIGIBLE, RESIDUAL, gram
from tacit.engine.search.complete import factorise
from tacit.engine.search.kronecker import factors
from tacit.engine.search.reduce import LARGE, compress_rows
from tacit.engine.search.shape import Shape
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy, Questions, sensitivity

PROBES = 8
"""Random combinations of cells that tell how much of a workload a strategy misses, to within a factor of two."""
BETTER = 1.0 - 1e-12
"""A strategy replaces another when its error is below this share: a tie by rounding leaves the first."""


class Contest:
    """Keeps the best of the strategies that are entered for one block of a workload."""

    def __init__(self, queries: Matrix, privacy: Privacy, watch: Watch, effort: float = 1.0) -> None:
        self.queries, self.privacy, self.watch, self.effort = queries, privacy, watch, effort
        V = gram(queries) if queries.shape[1] >= LARGE and len(queries) > queries.shape[1] else None
        self.workload = compress_rows(queries, V)
        self.shape = Shape(self.workload, len(queries), factors(queries, V) if queries.shape[1] >= LARGE else ())
        self.work = effort * operations(self.shape.cells)
        self.name, self.error = "results", float("inf")
        self.best: Questions = self.workload  # W always spans W
        sizes = np.sqrt(np.einsum("ij,ij->i", queries, queries))
        self._smallest = float(np.min(sizes, where=sizes > 0.0, initial=float("inf")))
        # Compressing drops directions that are smaller than this: a small query may consist of them.
        compressed = len(self.workload) < min(queries.shape)
        self._dropped = NEGLIGIBLE * float(np.linalg.norm(self.workload)) if compressed else 0.0

    def enter(self, name: str, strategy: Questions) -> float:
        """Measure a strategy by its B = W·L⁺; one that does not span W gets the rows that it lacks.

        Only a strategy of every single query is reported: what is returned must be one, and the rows that a tiny
        query needs besides, which W as a whole hides, change the error.
        """
        factors = factorise(self.workload, strategy, self.privacy, by_row=False)
        if factors is None:
            return float("inf")
        strategy, B = factors.L, factors.B
        error = (sensitivity(strategy, self.privacy) * float(np.linalg.norm(B))) ** 2
        if error < self.error * BETTER:
            self.name, self.best, self.error = name, strategy, error
        if error < self.watch.error * BETTER and self._spans_queries(strategy, B):
            self.watch.report(error)
        return error

    def accept(self, name: str, strategy: Questions, error: float) -> None:
        """Enter a strategy of every query whose error is proven, so that its B need not be computed for that."""
        if error < self.error * BETTER:
            self.name, self.best, self.error = name, strategy, error
        self.watch.report(error)

    def _spans_queries(self, strategy: Questions, B: Matrix) -> bool:
        """Whether L asks for all of every query, so that it will be returned as it is.

        Usually W as a whole misses less than would show in its smallest query, which a few random combinations of
        the cells tell without the products of three large matrices. Else every query is looked at.
        """
        W = self.workload
        probes = np.random.default_rng(0).standard_normal((W.shape[1], PROBES))  # of W, not of data
        missing = float(np.linalg.norm(W @ probes - B @ (strategy @ probes))) / PROBES**0.5 + self._dropped
        if missing <= 0.1 * RESIDUAL * self._smallest:
            return True
        factors = factorise(self.queries, strategy, self.privacy)
        return factors is not None and factors.L is strategy


def operations(cells: int) -> float:
    """Floating-point operations to spend: some 0.3 s for up to 60 cells, 0.7 s for 100, 10 s for 256 and more.

    Where low-rank strategies may win they are tried at full length besides, which takes one to five seconds.
    """
    return min(max(2e9, 5e3 * cells**3), 8e10 + 3e8 * max(0, cells - 256), 3e11)
