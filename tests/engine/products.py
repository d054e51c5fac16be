"""Small product workloads, and the dense matrices that they stand for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tacit.engine.components import Evidence
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.product_workload import Axes, Block, ProductRows, ProductWorkload

Matrix = NDArray[np.float64]


def workload(
    sizes: Sequence[int], groups: Sequence[tuple[Axes, Sequence[Matrix]]], **others: object
) -> ProductWorkload:
    """Rows are numbered in the order of the groups."""
    listed, start = [], 0
    for axes, factors in groups:
        count = math.prod(len(factor) for factor in factors)
        listed.append(ProductRows(axes, tuple(factors), np.arange(start, start + count, dtype=np.int64)))
        start += count
    return ProductWorkload(tuple(sizes), tuple(listed), **others)  # type: ignore[arg-type]


def table(products: ProductWorkload) -> ProductTable:
    """The rows of the products themselves."""
    count = len(products.rows)
    numbers = np.arange(count, dtype=np.int64)
    one = csr_array((np.ones(count), numbers, np.arange(count + 1)), shape=(count, count))
    return ProductTable(products, numbers, one)


def marginals(sizes: Sequence[int], sets: Sequence[Axes], **others: object) -> ProductWorkload:
    """The tables over some sets of axes."""
    points = [np.eye(size) for size in sizes]
    return workload(sizes, [(S, [points[a] for a in S]) for S in sets], **others)


def all_sets(axes: int, smallest: int, largest: int) -> list[Axes]:
    return [S for k in range(smallest, largest + 1) for S in itertools.combinations(range(axes), k)]


def written_out(sizes: Sequence[int], axes: Sequence[int], factors: Sequence[Matrix]) -> Matrix:
    """A product over all cells: ones for the axes that it does not name, rows in the order of its own axes."""
    held = dict(zip(axes, factors, strict=True))
    whole = np.ones((1, 1))
    for axis, size in enumerate(sizes):
        whole = np.kron(whole, held.get(axis, np.ones((1, size))))
    ascending = sorted(axes)
    whole = whole.reshape([*(len(held[a]) for a in ascending), -1])
    order = [ascending.index(a) for a in axes]
    return np.ascontiguousarray(whole.transpose([*order, len(order)]).reshape(-1, math.prod(sizes)))


def matrix_of(products: ProductWorkload) -> Matrix:
    """The whole workload as one matrix."""
    W = np.zeros((len(products.rows), math.prod(products.sizes)))
    for group in products.groups:
        W[group.rows] = written_out(products.sizes, group.axes, group.factors)
    return W


def matrix_of_block(sizes: Sequence[int], block: Block | Evidence) -> Matrix:
    factors = block.factors if isinstance(block, Block) else tuple(q.L for q in block.questions)
    return written_out(sizes, block.axes, factors)


def random_factor(rng: np.random.Generator, size: int) -> Matrix:
    """Points, prefixes, one row, or random reals; no row is zero."""
    kind = rng.integers(5)
    if kind == 0:
        return np.eye(size)
    if kind == 1:
        return np.tril(np.ones((size, size)))
    if kind == 2:
        row = (rng.random((1, size)) < 0.5).astype(float)
        row[0, rng.integers(size)] = 1.0
        return row
    if kind == 3:
        return np.ones((1, size))
    return rng.normal(size=(int(rng.integers(1, 4)), size))


def random_workload(rng: np.random.Generator, *, axes: int | None = None, largest: int = 5) -> ProductWorkload:
    """Two to four axes; several groups over one set, axes in all groups, and the empty set all happen."""
    count = int(rng.integers(2, 5)) if axes is None else axes
    sizes = [int(rng.integers(1, largest + 1)) for _ in range(count)]
    common = {int(rng.integers(count))} if rng.random() < 0.3 else set()
    groups: list[tuple[Axes, list[Matrix]]] = []
    for _ in range(int(rng.integers(2, 6))):
        chosen = common | {a for a in range(count) if rng.random() < 0.45}
        S = [a for a in range(count) if a in chosen]
        rng.shuffle(S)
        groups.append((tuple(S), [random_factor(rng, sizes[a]) for a in S]))
        if rng.random() < 0.3:
            groups.append((groups[-1][0], [random_factor(rng, sizes[a]) for a in S]))
    return workload(sizes, groups)
