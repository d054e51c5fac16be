"""Exact reductions: a smaller workload with the same strategies at the same errors, and the way back.

* Columns that are equal, or all zero, need one question (or none) between them: no query separates them.
* Rows that are proportional are one query at the weight of all: only WᵀW enters the error.
* Rows and columns that fall apart into independent blocks are so many separate problems; their strategies are
  asked side by side at the price of one, because a unit is in one column and so in one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components
from tacit.engine.linalg import SQUARES_EACH, TRUSTED, computed_rank, gram, grouped, row_peaks, svd
from tacit.engine.strategy import Matrix, Privacy, Questions, fits, sensitivity, written

LARGE = 512
"""Cells from which on rows are compressed by squares, which is quicker, however few rows there are."""


@dataclass(frozen=True, eq=False)
class Block:
    """One independent part of a workload, without duplicates."""

    workload: Matrix
    original: NDArray[np.intp]
    """The original columns that are in this block."""
    position: NDArray[np.intp]
    """For each of them, its column in ``workload``."""


@dataclass(frozen=True, eq=False)
class Reduction:
    """A workload as independent blocks; ``lift`` leads back."""

    blocks: tuple[Block, ...]
    columns: int

    def lift(self, strategies: Sequence[Questions], privacy: Privacy) -> Questions:
        """The blocks' strategies, each brought to sensitivity 1, as one strategy of the original columns.

        Guarantee: an original column is a column of at most one block's strategy, so the largest column norm
        of the whole is the largest of the blocks', which is 1 up to rounding; the caller measures it again.
        """
        rows = sum(strategy.shape[0] for strategy in strategies)
        filled = sum(_filled(strategy, block) for block, strategy in zip(self.blocks, strategies, strict=True))
        if not fits(rows, self.columns, filled):
            return self._lift_sparse(strategies, privacy)
        whole = np.zeros((rows, self.columns))
        row = 0
        for block, strategy in zip(self.blocks, map(written, strategies), strict=True):
            part = whole[row : row + len(strategy)]
            merged = block.position.size > strategy.shape[1]  # a copy of an n×n strategy is worth avoiding
            part[:, block.original] = strategy[:, block.position] if merged else strategy
            part /= sensitivity(strategy, privacy)
            row += len(strategy)
        return whole

    def _lift_sparse(self, strategies: Sequence[Questions], privacy: Privacy) -> csr_array:
        parts = []
        for block, strategy in zip(self.blocks, strategies, strict=True):
            part = csr_array(strategy)[:, block.position].tocoo()
            values, columns = part.data / sensitivity(strategy, privacy), block.original[part.col]
            parts.append(coo_array((values, (part.row, columns)), shape=(part.shape[0], self.columns)))
        return csr_array(vstack(parts))


def _filled(strategy: Questions, block: Block) -> int:
    """How many entries a block's strategy has over the original columns, about."""
    if isinstance(strategy, np.ndarray):
        return len(strategy) * block.position.size
    return int(strategy.nnz * block.position.size // strategy.shape[1])


def reduce_workload(workload: Matrix) -> Reduction:
    """Drop zero rows and columns, merge equal columns and proportional rows, split into blocks."""
    inside = np.flatnonzero(workload.any(axis=0)).astype(np.intp)
    W, of_inside = merge_columns(workload if inside.size == workload.shape[1] else workload[:, inside])
    W = merge_rows(W)
    members = grouped(of_inside, W.shape[1])
    blocks = []
    for rows, columns in _components(W):
        original = [members[column] for column in columns]
        position = np.repeat(np.arange(columns.size, dtype=np.intp), [part.size for part in original])
        part = W if (rows.size, columns.size) == W.shape else np.ascontiguousarray(W[np.ix_(rows, columns)])
        blocks.append(Block(part, inside[np.concatenate(original)], position))
    return Reduction(tuple(blocks), workload.shape[1])


def merge_columns(workload: Matrix) -> tuple[Matrix, NDArray[np.intp]]:
    """The distinct columns in the order of their first appearance, and where each column went."""
    heads = np.ones(workload.shape[1], dtype=bool)  # of runs of equal columns: ranges have few, and a look finds them
    heads[1:] = np.any(workload[:, 1:] != workload[:, :-1], axis=0)
    if not heads.all():
        merged, of_head = merge_columns(np.ascontiguousarray(workload[:, heads]))
        return merged, of_head[np.cumsum(heads) - 1]
    if _clearly_distinct(workload.T):
        return workload, np.arange(workload.shape[1], dtype=np.intp)
    keys = np.ascontiguousarray(workload.T) + 0.0  # −0.0 + 0.0 is 0.0: equal columns have equal bytes
    return _distinct(workload, keys)


def merge_rows(workload: Matrix) -> Matrix:
    """Proportional rows as one row with the same WᵀW; zero rows dropped."""
    asked = workload.any(axis=1)
    W = workload if asked.all() else workload[asked]
    if W.shape[0] == 0:
        return W
    rows = np.arange(W.shape[0])
    lead = W[rows, np.argmax(W != 0.0, axis=1)]
    for tiny in np.flatnonzero(np.abs(lead) < 2.0**-500 * row_peaks(W)):  # a quotient of the two could overflow
        lead[tiny] = W[tiny, np.argmax(np.abs(W[tiny]))]
    keys = W + 0.0 if (lead == 1.0).all() else W / lead[:, None] + 0.0
    if _clearly_distinct(keys):
        return W
    distinct, group = _distinct(keys.T, keys)
    largest = np.zeros(distinct.shape[1])
    np.maximum.at(largest, group, np.abs(lead))
    unit = np.ldexp(1.0, np.frexp(largest)[1])  # squares of tiny rows would vanish, and the rows with them
    weight = unit * np.sqrt(np.bincount(group, weights=(lead / unit[group]) ** 2))
    first = np.full(distinct.shape[1], -1, dtype=np.intp)
    for row in range(W.shape[0] - 1, -1, -1):
        first[group[row]] = row
    alone = np.bincount(group) == 1
    merged = np.where(alone[:, None], W[first], distinct.T * weight[:, None])
    return np.ascontiguousarray(merged)


def compress_rows(workload: Matrix, squares: Matrix | None = None) -> Matrix:
    """R with RᵀR = WᵀW and no more rows than columns; no row of R is rounding only. ``squares`` is WᵀW, if known."""
    m, n = workload.shape
    if m <= n:
        return workload
    quick = _by_gram(workload, squares) if m >= 8 * n or n >= LARGE else None
    if quick is not None:
        return quick
    R = scipy.linalg.qr(workload, mode="r", check_finite=False)[0][:n]
    pivots = np.abs(np.diag(R))
    if pivots.min() > TRUSTED * pivots.max():
        return np.ascontiguousarray(R)
    _, sigma, V = svd(np.asarray(R, dtype=np.float64))
    r = computed_rank(sigma)
    return np.ascontiguousarray(sigma[:r, None] * V[:r])


def _by_gram(workload: Matrix, squares: Matrix | None = None) -> Matrix | None:
    """The same R from WᵀW, in a fifth of the time; None where squaring W could cost digits of the small directions."""
    try:
        R = scipy.linalg.cholesky(gram(workload) if squares is None else squares, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diag(R)
    return np.ascontiguousarray(R) if pivots.min() > SQUARES_EACH * pivots.max() else None


def _clearly_distinct(keys: Matrix) -> bool:
    """Whether two projections separate all rows: then they need not be compared byte by byte.

    Equal rows project to equal values but for rounding, so a pair that is close in both needs a closer look.
    """
    places = np.arange(1, keys.shape[1] + 1)
    first, second = (keys @ np.stack([np.cos(places), np.sin(places * places)], axis=1)).T
    order = np.argsort(first, kind="stable")
    near = 1e-9 * (np.abs(first).max(initial=0.0) + np.abs(second).max(initial=0.0))
    close = (np.diff(first[order]) <= near) & (np.abs(np.diff(second[order])) <= near)
    return not close.any()


def _distinct(workload: Matrix, keys: Matrix) -> tuple[Matrix, NDArray[np.intp]]:
    seen: dict[bytes, int] = {}
    where = np.array([seen.setdefault(key.tobytes(), len(seen)) for key in keys], dtype=np.intp)
    first = np.unique(where, return_index=True)[1]
    return np.ascontiguousarray(workload[:, first]), where


def _components(W: Matrix) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows and columns of every connected part of the bipartite graph that W's non-zero entries draw."""
    m, n = W.shape
    if m == 0 or n == 0:
        return []
    if _connected(W):
        return [(np.arange(m, dtype=np.intp), np.arange(n, dtype=np.intp))]
    rows, columns = np.nonzero(W)
    graph = coo_array((np.ones(rows.size, dtype=np.int8), (rows, columns + m)), shape=(m + n, m + n))
    count, label = connected_components(graph, directed=False)
    return list(zip(grouped(label[:m], count), grouped(label[m:], count), strict=True))


def _connected(W: Matrix) -> bool:
    """Whether a few steps from the fullest row reach every column: the usual case, at the price of a look."""
    linked = W != 0.0
    reached = linked[np.argmax(linked.sum(axis=1))]
    for _ in range(6):
        if reached.all():
            return True
        reached = linked[linked[:, reached].any(axis=1)].any(axis=0)
    return bool(reached.all())
