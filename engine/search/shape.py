"""The shape of a workload: the few facts about a matrix that decide which families of strategies are searched."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tacit.engine.linalg import is_even_triangle, spectrum
from tacit.engine.search import kronecker
from tacit.engine.strategy import Matrix, Vector

WIDEST = 8192
"""Cells (after merging) beyond which no dense n×n strategy is formed, unless the workload has half as many queries.

L has 512 MB there, and planning takes some 2 GB. Beyond, only strategies with as many rows as W has are searched, and
identity, which is sparse.
"""
TINY = 12
"""Cells up to which every family is so quick that low rank is searched whatever the rank of W is."""
SMALL = 48
"""Cells below which a nearly singular W is searched as a thin one, whatever its rank is, and for longer."""
STIFF = 1e-3
"""Least singular value of a small W, as a share of the largest, below which W is nearly singular."""
THIN = 3
"""Cells for each direction from which on a strategy inside W's row space beats those that ask for every cell."""
MANY_QUERIES = 1024
"""Queries beyond which their best weights take longer to find than they are worth."""
TREES = 256
"""Cells up to which the trees over ordered cells are tried: p-identity finds what they find, only later."""
LARGE = 256
"""Cells from which on a strategy is measured only if it is not known beforehand to be beaten: that takes a moment."""
QUICK = 65_536
"""Entries of W up to which its singular values take a moment."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A workload with its rows compressed, and how many queries it had before."""

    workload: Matrix = field(repr=False)
    queries: int
    factors: tuple[Matrix, ...] = field(default=(), repr=False)
    """WᵀW as a product of small matrices, where it is one and W is large (``kronecker``)."""

    @property
    def rows(self) -> int:
        return int(self.workload.shape[0])

    @property
    def cells(self) -> int:
        return int(self.workload.shape[1])

    @cached_property
    def spectrum(self) -> Vector:
        """The singular values that are more than rounding; a decomposition, made when it is first asked for."""
        return kronecker.spectrum(self.factors) if self.factors else spectrum(self.workload)

    @cached_property
    def rank(self) -> int:
        """The rank of W: a look at the triangle that compressed rows are, if it says so, or the decomposition."""
        return self.cells if is_even_triangle(self.workload) else int(self.spectrum.size)

    def is_tiny(self) -> bool:
        return self.cells <= TINY

    def is_small(self) -> bool:
        return self.cells < SMALL

    def is_stiff(self) -> bool:
        """Small and nearly singular: most of the error is in few directions."""
        return self.is_small() and bool(self.spectrum[-1] < STIFF * self.spectrum[0])

    def is_thin(self) -> bool:
        """Worth a search inside the row space of W."""
        return THIN * self.rank <= self.cells or self.is_tiny() or self.is_stiff()

    def is_large(self) -> bool:
        return self.cells >= LARGE

    def always(self) -> bool:
        return True

    def fits_square(self) -> bool:
        """A dense L of n×n has a place in memory."""
        return self.cells <= max(WIDEST, 2 * self.rows)

    def fits_trees(self) -> bool:
        return self.fits_square() and self.cells <= TREES

    def is_quick_to_decompose(self) -> bool:
        return self.workload.size <= QUICK

    def has_queries_worth_asking(self) -> bool:
        """More queries than four times the cells are never the best questions."""
        return self.queries <= 4 * self.cells

    def has_few_queries(self) -> bool:
        """Few enough to look for the best weight of each."""
        return self.queries <= min(2 * self.cells, MANY_QUERIES)

    def is_thin_with_few_queries(self) -> bool:
        return self.has_few_queries() and self.is_thin()

    def is_full_with_few_queries(self) -> bool:
        return self.has_few_queries() and not self.is_thin()
