"""The hierarchical mechanism with least squares (Hay et al., VLDB 2010; HM in both papers)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from tacit.engine.search.watch import Watch
from tacit.engine.strategy import Matrix, Privacy


def hierarchical(workload: Matrix, privacy: Privacy, watch: Watch, *, branching: int = 2) -> Matrix:
    """A tree of interval sums over the cells in their order, each node split into ``branching`` even parts.

    The published system rebuilds consistent counts from the tree by least squares: B = W·L⁺ is that.

    Guarantee: a cell is in one node per level, so the L1 sensitivity is the number of levels and the L2
    sensitivity its square root; a cell that becomes a leaf early is in fewer.
    Limits: made for ranges over ordered cells; n need not be a power of the branching factor.
    """
    n = workload.shape[1]
    rows: list[tuple[int, int]] = []
    level = [(0, n)]
    while level:
        rows += level
        level = [part for low, high in level if high - low > 1 for part in _split(low, high, branching)]
    L = np.zeros((len(rows), n))
    for k, (low, high) in enumerate(rows):
        L[k, low:high] = 1.0
    return L


def _split(low: int, high: int, branching: int) -> list[tuple[int, int]]:
    cuts = np.unique(np.linspace(low, high, branching + 1).round().astype(int)).tolist()
    return list(pairwise(cuts))
