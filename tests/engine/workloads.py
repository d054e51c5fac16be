"""Workloads and plain strategies that several tests share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import rebuild
from tacit.engine.strategy import Privacy

Matrix = NDArray[np.float64]


def prefix(n: int) -> Matrix:
    return np.tril(np.ones((n, n)))


def ranges(m: int, n: int, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, n + 1, size=(m, 2)), axis=1)
    ends[:, 1] = np.maximum(ends[:, 1], ends[:, 0] + 1)
    columns = np.arange(n)
    return ((columns >= ends[:, :1]) & (columns < ends[:, 1:])).astype(np.float64)


def paper() -> Matrix:
    return np.array([[1.0, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])


def sums_and_counts(low: float = 0.1, high: float = 1234.567) -> Matrix:
    """Three groups; each cell has a low and a high column; SUM everywhere, COUNT in one group only."""
    W = np.zeros((4, 6))
    for group in range(3):
        W[group, 2 * group : 2 * group + 2] = low, high
    W[3, :2] = 1, 1
    return W


def real(m: int, n: int, rank: int, seed: int = 1) -> Matrix:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))


WORKLOADS: dict[str, Matrix] = {
    "paper": paper(),
    "paper 2": np.array([[0.0, 2, 1, 1], [0, 1, 0, 2], [1, 0, 2, 2]]),
    "one row": np.ones((1, 5)),
    "one entry": np.ones((1, 1)),
    "prefix": prefix(24),
    "thin ranges": ranges(12, 60),
    "tall ranges": ranges(60, 12),
    "equal columns": np.repeat(ranges(9, 8), 3, axis=1),
    "unused columns": np.hstack([prefix(5), np.zeros((5, 2))]),
    "sums": sums_and_counts(),
    "large sums": sums_and_counts(0.0, 250_000.0),
    "negative sums": sums_and_counts(-12.5, 99.99),
    "thirds": ranges(10, 30) / 3,
    "reals, thin": real(20, 40, 6),
    "reals, full": real(30, 10, 10),
    "tiny": 1e-9 * prefix(6),
    "huge": 1e12 * prefix(6),
}


@dataclass(frozen=True)
class PlainStrategy:
    """What the mechanism needs of a strategy, without an optimiser."""

    name: str
    privacy: Privacy
    L: Matrix
    B: Matrix
    sensitivity: float
    error: float
    lower_bound: float = 0.0


def plain(W: Matrix, L: Matrix, privacy: Privacy, name: str = "plain") -> PlainStrategy:
    B = rebuild(W, L)
    sensitivity = float(np.linalg.norm(L, 1 if privacy == "pure" else 2, axis=0).max())
    return PlainStrategy(name, privacy, L, B, sensitivity, sensitivity**2 * float((B**2).sum()))


def candidate_strategies(W: Matrix, seed: int = 0) -> dict[str, Matrix]:
    """Identity, results, a thin random factor, and a weighted p-identity: each answers W exactly."""
    rng = np.random.default_rng(seed)
    _, s, Vt = np.linalg.svd(W, full_matrices=False)
    rank = int((s > 1e-9 * s[0]).sum())
    thin = rng.normal(size=(rank + 1, rank)) @ (np.sqrt(s[:rank])[:, None] * Vt[:rank])
    n = W.shape[1]
    theta = rng.uniform(size=(2, n))
    p_identity = np.vstack([np.diag(rng.uniform(1e-4, 1, size=n)), theta])
    return {"identity": np.eye(n), "results": W.copy(), "thin": thin, "p-identity": p_identity}
