"""What the search for a strategy gives back: a factorisation W = B·L and what it costs.

The mechanism asks L·x with noise and answers B·(L·x + noise). Everything here is a function of the workload
alone; no data is ever seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float64]
Questions: TypeAlias = Matrix | Any
"""An L: an array, or a csr_array where that would not fit (``fits``). Both share operators that scipy's types lack."""
Privacy: TypeAlias = Literal["pure", "approximate"]
TracePoint: TypeAlias = tuple[float, float, float]

LARGEST_ARRAY = 1 << 26
"""Entries up to which an L is an array, also if most of them are zero: 512 MB, every cell of 8,192."""
MOSTLY_ZEROS = 4
"""Entries to each that is not zero, from which on those alone take less memory than all."""


@dataclass(frozen=True, eq=False)
class Strategy:
    """A factorisation W = B·L with its cost and its certificate.

    Guarantee: ``sensitivity`` is the largest column norm of ``L`` (L1 when ``privacy`` is pure, L2 when
    approximate). Neighbours differ by one unit in one cell, so L·x moves by at most ``sensitivity`` in that
    norm, and Laplace noise of scale sensitivity/ε (LRM, Eq. 6) or Gaussian noise of σ(ε, δ)·sensitivity (COA,
    Eq. 2) on L·x is private; B is applied afterwards and costs nothing. ``error`` is sensitivity²·‖B‖²_F
    (LRM, Lemma 1; COA, Eq. 3), the total squared error but for the noise's own constant. No factorisation of
    this kind has an error below ``lower_bound``.
    """

    name: str
    privacy: Privacy
    L: Questions
    B: Matrix
    sensitivity: float
    error: float
    lower_bound: float
    seconds: float
    trace: tuple[TracePoint, ...]

    @property
    def gap(self) -> float:
        """How far above the lower bound the error is, as a fraction: 0.001 is 0.1 %."""
        return self.error / self.lower_bound - 1.0 if self.lower_bound > 0 else 0.0

    def __repr__(self) -> str:
        (m, n), r = (self.B.shape[0], self.L.shape[1]), self.L.shape[0]
        return (
            f"Strategy({self.name}, {self.privacy}: {m}×{n} through {r} questions, "
            f"error {self.error:.6g}, lower bound {self.lower_bound:.6g})"
        )


def fits(rows: int, columns: int, filled: int) -> bool:
    """Whether an L is an array: a few long rows are, however wide, but not cells, nor blocks side by side."""
    return rows * columns <= max(LARGEST_ARRAY, MOSTLY_ZEROS * filled)


def written(strategy: Questions) -> Matrix:
    """L as an array, where it is known to fit."""
    return strategy if isinstance(strategy, np.ndarray) else np.asarray(strategy.toarray(), dtype=np.float64)


def column_norms(strategy: Questions, privacy: Privacy) -> Vector:
    """The norm of every column: L1 for pure, L2 for approximate."""
    if privacy == "pure":
        return np.asarray(abs(strategy).sum(axis=0), dtype=np.float64)
    if not isinstance(strategy, np.ndarray):
        return np.asarray(np.sqrt(strategy.multiply(strategy).sum(axis=0)), dtype=np.float64)
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", strategy, strategy)), dtype=np.float64)


def sensitivity(strategy: Questions, privacy: Privacy) -> float:
    """The largest column norm of L.

    Guarantee: for neighbours that differ by one unit in one cell, ‖L·x − L·x′‖ is at most this, in L1 (pure)
    or L2 (approximate): the difference is one column of L (LRM, Section 3; COA, Section 2). The figure is a
    float for comparing strategies; what calibrates noise is recomputed in exact integers on the rounded L.
    """
    norms = column_norms(strategy, privacy)
    return float(norms.max()) if norms.size else 0.0
