"""Blocks of questions over a few columns each: what one unit moves in all of them together, against
what was charged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import numpy as np
import pytest
import scipy.sparse
import tacit
from numpy.typing import NDArray
from scipy.special import ndtr
from tacit.engine.mechanism.choose import plan_release
from tacit.engine.mechanism.lattice import exact_answers
from tacit.engine.mechanism.plan import JointPlan
from tacit.engine.mechanism.product_lattice import ProductLattice
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.product_workload import ProductRows, ProductWorkload
from tacit.engine.strategy import Privacy

Matrix = NDArray[np.float64]
UNIT = 16
"""Parts of a row where it is divided."""


def prefix(n: int) -> Matrix:
    return np.tril(np.ones((n, n)))


def table(sizes: tuple[int, ...], sets: list[tuple[int, ...]], factors: dict[int, Matrix], summed: frozenset[int],
          rows_per_unit: int) -> ProductTable:  # fmt: skip
    groups, count = [], 0
    for axes in sets:
        used = tuple(factors.get(a, np.eye(sizes[a])) for a in axes)
        size = math.prod(len(f) for f in used)
        groups.append(ProductRows(axes, used, np.arange(count, count + size)))
        count += size
    products = ProductWorkload(sizes, tuple(groups), rows_per_unit, summed, UNIT if summed else 1)
    return ProductTable(products, np.arange(count), scipy.sparse.csr_array(scipy.sparse.identity(count)))


CUBE = [axes for size in range(4) for axes in itertools.combinations(range(3), size)]
CASES = {
    "cube": table((2, 3, 2), CUBE, {}, frozenset(), 1),
    "pairs of units": table((2, 3, 2), [(0, 1), (0, 2), (1, 2)], {}, frozenset(), 3),
    "ranges": table((4, 2, 3), [(0,), (1, 2), (0, 2)], {0: prefix(4)}, frozenset(), 1),
    "sums": table((2, 3, 2), [(0, 2), (1, 2), (0, 1)], {2: np.array([[-1.5, 7.25]])}, frozenset([2]), 2),
    "product": table((3, 3), [(0, 1)], {0: prefix(3), 1: prefix(3)}, frozenset(), 1),
}


def rows_of(workload: ProductWorkload) -> list[NDArray[np.int64]]:
    """What one row can add to the full grid: one point, or two where it is divided."""
    added = []
    divided = sorted(workload.summed)
    for point in itertools.product(*(range(n) for n in workload.sizes)):
        if not divided:
            row = np.zeros(workload.sizes, dtype=np.int64)
            row[point] = 1
            added.append(row)
            continue
        (axis,) = divided
        for part in (0, 5, UNIT):
            row = np.zeros(workload.sizes, dtype=np.int64)
            low, high = (tuple(end if a == axis else p for a, p in enumerate(point)) for end in (0, 1))
            row[low] += UNIT - part
            row[high] += part
            added.append(row)
    return added


def units_of(workload: ProductWorkload) -> Iterator[NDArray[np.int64]]:
    """What one unit can add: up to k rows, all alike or of two kinds."""
    rows, k = rows_of(workload), workload.rows_per_unit
    yield from (k * row for row in rows)
    if k > 1:
        yield from ((k - 1) * a + b for a, b in zip(rows, rows[1:] + rows[:1], strict=True))


def counts(workload: ProductWorkload, lattice: ProductLattice, x: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts over the axes of a block: whole rows where none of them divides a row."""
    rest = tuple(a for a in range(len(workload.sizes)) if a not in lattice.axes)
    kept = sorted(lattice.axes)
    summed = x.sum(axis=rest).transpose([kept.index(a) for a in lattice.axes])
    whole = workload.one_row(lattice.axes) == 1 and workload.fixed_point > 1
    return np.asarray(summed // workload.fixed_point if whole else summed).reshape(-1)


def moves(plan: JointPlan, table: ProductTable, epsilon: float, delta: float) -> list[list[tuple[float, float]]]:
    """For every unit, how far it moves each block, in units of the block's noise: (L1, L2)."""
    noises = plan.calibrate(epsilon, delta)
    base = np.random.default_rng(5).integers(0, 9, table.products.sizes) * table.products.fixed_point
    result = []
    for unit in units_of(table.products):
        moved = []
        for block, noise in zip(plan.blocks, noises, strict=True):
            lattice = block.lattice
            assert isinstance(lattice, ProductLattice)
            before, after = (
                exact_answers(lattice, counts(table.products, lattice, x), noise.resolution)
                for x in (base, base + unit)
            )
            difference = (after - before).astype(float)
            moved.append((np.abs(difference).sum() / noise.scale, float(np.linalg.norm(difference)) / noise.scale))
        result.append(moved)
    return result


@pytest.mark.parametrize("name", CASES)
def test_pure_blocks_together_cost_what_is_charged(name: str) -> None:
    plan = plan_release([CASES[name]], privacy="pure")
    losses = [sum(first for first, _ in moved) for moved in moves(plan, CASES[name], 0.7, 0)]
    assert max(losses) <= 0.7 * (1 + 1e-12)
    assert max(losses) >= 0.7 * 0.99, "and no less: noise that nobody needs is a defect too"
    assert sum(block.share for block in plan.blocks) == Fraction(1)


@pytest.mark.parametrize("name", CASES)
def test_gaussian_blocks_are_together_one_mechanism(name: str) -> None:
    epsilon, delta = 0.7, 1e-5
    plan = plan_release([CASES[name]], privacy="approximate")
    largest = max(
        math.sqrt(sum(second**2 for _, second in moved)) for moved in moves(plan, CASES[name], epsilon, delta)
    )

    def reached(mu: float) -> float:
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))

    assert reached(largest) <= delta
    assert reached(largest) >= delta * 0.9, "and no less"
    assert sum(block.share for block in plan.blocks) == Fraction(1)


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
@pytest.mark.parametrize("name", CASES)
def test_the_norm_of_a_block_is_that_of_the_matrix_written_out(name: str, privacy: Privacy) -> None:
    for block in plan_release([CASES[name]], privacy=privacy).blocks:
        lattice = block.lattice
        assert isinstance(lattice, ProductLattice)
        written = np.ones((1, 1), dtype=object)
        for factor in lattice.factors:
            written = np.kron(written, factor.astype(object))
        written = written * (1 << lattice.shift)
        columns = [written[:, j] for j in range(written.shape[1])]
        if privacy == "pure":
            assert lattice.norm == max(sum(abs(v) for v in column) for column in columns)
        else:
            square = max(sum(v * v for v in column) for column in columns)
            assert (lattice.norm - 1) ** 2 < square <= lattice.norm**2
        for j in (0, written.shape[1] - 1):
            x = np.zeros(written.shape[1], dtype=np.int64)
            x[j] = 3
            assert lattice.exact(x) == [3 * v for v in written[:, j]]


def test_every_set_of_columns_counts_the_same_rows() -> None:
    database = duckdb.connect()
    database.execute("CREATE TABLE v (person INTEGER, a INTEGER, b INTEGER, c INTEGER, cost DOUBLE)")
    database.execute("INSERT INTO v SELECT i // 3, i % 4, i % 5, i % 70, i % 90 FROM range(900) r(i)")
    values = {column: {"values": list(range(n))} for column, n in (("a", 4), ("b", 5), ("c", 70))}
    declared = {"privacy_unit": "person", "max_rows_per_unit": 2, "version": "1"}
    policy = {
        "budget": {"epsilon": 1e9},
        "tables": {"v": {**declared, "columns": {**values, "cost": {"min": 0.0, "max": 100.0}}}},
    }
    con = tacit.connect(database, policy=policy)
    sets = ["a", "b", "c", "a, b", "b, c", "a, c", "a, b, c"]
    batch = [f"SELECT {columns}, count(*) AS n, sum(cost) AS s FROM v GROUP BY {columns}" for columns in sets]
    totals = [frame[["n", "s"]].sum().tolist() for frame in tacit.testing.exact_answers(con, batch)]
    assert all(total == pytest.approx(totals[0], abs=1e-4) for total in totals)
    assert con.explain(batch, epsilon=1).strategy not in tacit.engine.strategies(), "the cells are not listed"
    assert totals[0][0] == 600, "at most two rows of each of 300 people"
