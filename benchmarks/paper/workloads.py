"""The four workloads of both papers, and those of the talk."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
PAPERS = ("WDiscrete", "WMarginal", "WRange", "WRelated")
"""COA's four workloads; LRM has three of them."""


@dataclass(frozen=True)
class Setting:
    """One workload of the papers; the same setting is the same matrix everywhere."""

    workload: str
    m: int
    """Queries. The matrix may have fewer rows: all ranges are written as a square root of WᵀW (``_all_ranges``)."""
    n: int
    share: float = 0.5
    """s of WRelated, as a share of min(m, n); 0.5 is LRM's default (its Table 1)."""
    seed: int = 0

    @property
    def base(self) -> int:
        """s, the number of base queries of WRelated."""
        return max(1, round(self.share * min(self.m, self.n)))

    def matrix(self) -> Matrix:
        kind = zlib.crc32(self.workload.encode())  # hash() of a string differs from process to process
        rng = np.random.default_rng([self.seed, kind, self.m, self.n, self.base])
        return _MAKERS[self.workload](self, rng)


def _discrete(setting: Setting, rng: np.random.Generator) -> Matrix:
    """LRM, Section 6: 1 with probability 0.02, else −1."""
    return np.where(rng.random((setting.m, setting.n)) < 0.02, 1.0, -1.0)


def _range(setting: Setting, rng: np.random.Generator) -> Matrix:
    """Both ends uniform on the domain, both included."""
    ends = np.sort(rng.integers(0, setting.n, (setting.m, 2)), axis=1)
    cells = np.arange(setting.n)
    return ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(np.float64)


def _related(setting: Setting, rng: np.random.Generator) -> Matrix:
    """C·A of standard normals, A of s rows: rank s."""
    correlation = rng.standard_normal((setting.m, setting.base))
    return np.asarray(correlation @ rng.standard_normal((setting.base, setting.n)))


def _marginal(setting: Setting, rng: np.random.Generator) -> Matrix:
    """Queries drawn uniformly, with repetition, from the cells of all two-way marginals.

    COA does not say how a domain of n cells is split: here into attributes of four values, the last of two when
    log₂ n is odd.
    """
    cells = np.indices(attributes(setting.n)).reshape(len(attributes(setting.n)), -1)
    queries = [
        (cells[a] == u) & (cells[b] == v)
        for a, b in combinations(range(len(cells)), 2)
        for u in range(int(cells[a].max()) + 1)
        for v in range(int(cells[b].max()) + 1)
    ]
    return np.array(queries, dtype=np.float64)[rng.integers(0, len(queries), setting.m)]


def attributes(n: int) -> tuple[int, ...]:
    """
    >>> attributes(128)
    (4, 4, 4, 2)
    """
    bits = n.bit_length() - 1
    if n < 8 or n != 1 << bits:
        raise ValueError(f"WMarginal needs a domain of 8, 16, 32, … cells, not {n}")
    return (4,) * (bits // 2) + (2,) * (bits % 2)


def all_ranges(n: int) -> Setting:
    return Setting("AllRange", n * (n + 1) // 2, n)


def cube(n: int) -> Setting:
    """The data cube of ``attributes(n)``: every marginal, of no attribute up to all of them."""
    return Setting("Cube", math.prod(d + 1 for d in attributes(n)), n)


def _all_ranges(setting: Setting, _: np.random.Generator) -> Matrix:
    """R with RᵀR = WᵀW, n×n: the error of a strategy, Δ²·tr(WᵀW·(LᵀL)⁺), knows no more of W, and for 1,024 cells W
    would have 524,800 rows. Cells i ≤ j, counted from 1, are together in i·(n + 1 − j) ranges."""
    i = np.arange(1.0, setting.n + 1.0)
    gram = np.minimum.outer(i, i) * (setting.n + 1.0 - np.maximum.outer(i, i))
    return np.asarray(np.linalg.cholesky(gram).T)


def _cube(setting: Setting, _: np.random.Generator) -> Matrix:
    W: Matrix = np.ones((1, 1))
    for d in attributes(setting.n):
        W = np.asarray(np.kron(W, np.vstack([np.ones((1, d)), np.eye(d)])), dtype=np.float64)
    return W


_MAKERS = {
    "WDiscrete": _discrete,
    "WRange": _range,
    "WRelated": _related,
    "WMarginal": _marginal,
    "AllRange": _all_ranges,
    "Cube": _cube,
}
