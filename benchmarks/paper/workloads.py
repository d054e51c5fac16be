"""The four workloads of both papers, and the data that two of LRM's figures need."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

ENTRIES = 2**16
"""Cells of the generated data before merging; LRM's Search Log has as many."""


@dataclass(frozen=True)
class Setting:
    """One workload of the papers; the same setting is the same matrix everywhere."""

    workload: str
    m: int
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


_MAKERS = {"WDiscrete": _discrete, "WRange": _range, "WRelated": _related, "WMarginal": _marginal}


def unit_counts(n: int, path: str | None) -> Vector:
    """Counts of n cells, merged from neighbours as LRM's Section 6 does; generated unless a file is named.

    Only an answer with a residual, W ≠ B·L, depends on them: LRM's Figures 2 and 3.
    """
    if path is None:
        rng = np.random.default_rng(0)
        counts = np.minimum(rng.zipf(2.0, ENTRIES), 1000).astype(np.float64)  # heavy-tailed, as search keywords are
    elif Path(path).suffix == ".npy":
        counts = np.load(path).astype(np.float64)
    else:
        counts = np.loadtxt(path)
    if counts.ndim != 1 or len(counts) < n:
        raise ValueError(f"the data must be one list of at least {n} counts")
    return np.array([part.sum() for part in np.array_split(counts, n)])
