"""The part of a batch that reads one private table: what a plan is made for and an estimate is made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import row_peaks
from tacit.engine.mechanism.product_table import ProductTable
from tacit.errors import InternalError


@dataclass(frozen=True, eq=False)
class TableWorkload:
    """The part of a batch that reads one private table."""

    matrix: NDArray[np.float64] = field(repr=False)
    """m×n: the rows of the batch restricted to this table's cells, zero rows removed."""
    rows: NDArray[np.int64] = field(repr=False)
    """Which rows of the batch those are."""
    rows_per_unit: int = 1
    """k: one privacy unit owns at most so many rows of the table."""
    one_row: int = 1
    """What one row adds to x in total: 1, or 2^F when x holds fixed-point parts."""
    product: ProductTable | None = field(default=None, repr=False)
    """The same rows as products, if they are; a plan may ask for tables over a few columns in place of cells."""

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.rows.shape != (self.matrix.shape[0],):
            raise InternalError("a block needs one row number for each row of its matrix")
        largest = row_peaks(self.matrix)
        if not np.isfinite(largest).all() or not largest.all():
            raise InternalError("the rows of a block must be finite and not zero")
        if self.rows_per_unit < 1 or self.one_row < 1 or self.one_row & (self.one_row - 1):
            raise InternalError("rows_per_unit must be positive and one_row a power of two")

    @cached_property
    def row_peaks(self) -> NDArray[np.float64]:
        """The largest entry of every row, in size."""
        return row_peaks(self.matrix)

    def only(self, rows: NDArray[np.bool_]) -> TableWorkload:
        """Some rows of the batch."""
        inside = rows[self.rows]
        product = None if self.product is None else self.product.only(rows)
        return replace(self, matrix=self.matrix[inside], rows=self.rows[inside], product=product)


def table_workload(matrix: NDArray[np.float64], *, rows_per_unit: int = 1, one_row: int = 1) -> TableWorkload:
    """The workload of one table, from its columns of the batch's matrix: zero rows belong to other tables."""
    rows = np.flatnonzero(matrix.any(axis=1))
    used = matrix if len(rows) == len(matrix) else matrix[rows]
    return TableWorkload(np.ascontiguousarray(used), rows.astype(np.int64), rows_per_unit, one_row)
