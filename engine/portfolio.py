"""The default search: several strategies on one reduced block, the smallest error wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from tacit.engine.bounds import svd_bound
from tacit.engine.strategies.dual import dual
from tacit.engine.strategies.identity import identity
from tacit.engine.strategies.lrm import lrm
from tacit.engine.strategies.results import results
from tacit.engine.strategy import Matrix, Privacy, best_reconstruction, sensitivity
from tacit.engine.watch import Watch
from tacit.errors import InternalError

Maker: TypeAlias = Callable[[Matrix, Privacy, Watch], Matrix]


class Contest:
    """Keeps the best of the strategies that are entered."""

    def __init__(self, workload: Matrix, privacy: Privacy, watch: Watch) -> None:
        self.workload, self.privacy, self.watch = workload, privacy, watch
        self.name, self.error = "", float("inf")
        self.best = workload

    def enter(self, name: str, strategy: Matrix) -> float:
        """Measure a strategy by its own B = W·L⁺; one that does not span W is not an entry."""
        try:
            B = best_reconstruction(self.workload, strategy)
        except InternalError:
            return float("inf")
        error = (sensitivity(strategy, self.privacy) * float(np.linalg.norm(B))) ** 2
        if error < self.error * (1.0 - 1e-12):
            self.name, self.best, self.error = name, strategy, error
            self.watch.report(error)
        return error


def search(workload: Matrix, privacy: Privacy, watch: Watch) -> tuple[str, Matrix]:
    """Name and L of the best strategy found for one block."""
    m, n = workload.shape
    contest = Contest(workload, privacy, watch)
    contest.enter("results", results(workload, privacy, watch))
    watch.report(contest.error, svd_bound(workload))
    if n <= max(4096, 2 * m):  # beyond, I has more entries than a plan is worth
        contest.enter("identity", identity(workload, privacy, watch))
    if not watch.stop():
        # Under pure ε the L2 optimum is a weak strategy, but its bound holds in L1 too.
        apart = watch if privacy == "approximate" else Watch()
        contest.enter("dual", dual(workload, privacy, apart))
        watch.report(contest.error, apart.lower_bound)
    if privacy == "pure" and not watch.stop() and m * n <= 64 * 64:
        contest.enter("lrm", lrm(workload, privacy, Watch()))
    return contest.name, contest.best
