"""The rounded strategy answers the same workload, costs the same, and states a true sensitivity."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tacit.engine.linalg import rebuild, residual
from tacit.engine.mechanism.exact import LARGEST, coarsen, integer_vector, largest_column_norm, product
from tacit.engine.mechanism.lattice import BITS, Lattice, Privacy, exact_answers, released_resolution, round_strategy
from tacit.errors import InternalError, ProgrammingError

from .workloads import WORKLOADS, Matrix, candidate_strategies, plain

CASES = [
    pytest.param(W, L, id=f"{name}-{strategy}")
    for name, W in WORKLOADS.items()
    for strategy, L in candidate_strategies(W).items()
]


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
@pytest.mark.parametrize(("W", "L"), CASES)
def test_rounding_costs_at_most_a_thousandth(W: Matrix, L: Matrix, privacy: Privacy) -> None:
    before = plain(W, L, privacy)
    lattice = round_strategy(L, W, privacy)
    assert lattice.residual <= 1e-9
    assert np.abs(W - lattice.B @ lattice.L).max() <= 1e-9 * np.abs(W).max()
    assert lattice.error <= 1.001 * before.error
    order = 1 if privacy == "pure" else 2
    assert np.linalg.norm(lattice.L, order, axis=0).max() <= lattice.sensitivity * (1 + 1e-15)
    step = Fraction(2) ** lattice.exponent
    grid = released_resolution(lattice, 1, 1, 1.0)
    assert step * 2**grid.shift >= Fraction(lattice.sensitivity) / 2 ** (BITS + 2), "the released lattice is too fine"


@pytest.mark.parametrize("name", ["paper", "thin ranges", "sums", "large sums", "negative sums", "thirds"])
def test_thin_strategies_keep_the_row_space_exactly(name: str) -> None:
    """Exact rational rank: adding W's rows to the rounded L adds no dimension."""
    W = WORKLOADS[name]
    lattice = round_strategy(candidate_strategies(W)["thin"], W, "pure")
    rounded = [[Fraction(v) for v in row] for row in lattice.L_int.tolist()]
    workload = [[Fraction(repr(v)).limit_denominator(10**6) for v in row] for row in W.tolist()]
    assert rational_rank(rounded) == rational_rank(rounded + workload) == rational_rank(workload)


def rational_rank(rows: list[list[Fraction]]) -> int:
    rows = [row[:] for row in rows]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def test_a_strategy_that_cannot_answer_is_our_defect() -> None:
    with pytest.raises(InternalError):
        round_strategy(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), "pure")


big = st.integers(-(2**66), 2**66)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_product_is_exact(data: st.DataObject) -> None:
    r, n = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 8))
    entry = st.integers(-(2**62), 2**62)
    M = data.draw(st.lists(st.lists(entry, min_size=n, max_size=n), min_size=r, max_size=r))
    x = data.draw(st.lists(big, min_size=n, max_size=n))
    expected = [sum(a * b for a, b in zip(row, x, strict=True)) for row in M]
    assert product(np.array(M, dtype=np.int64), np.array(x, dtype=np.object_)) == expected
    norms = [sum(v * v for v in column) for column in zip(*M, strict=True)]
    bound = largest_column_norm(np.array(M, dtype=np.int64), 2)
    assert (bound - 1) ** 2 < max(norms) <= bound**2 or max(norms) == bound == 0


def test_product_is_exact_at_the_largest_sizes() -> None:
    rng = np.random.default_rng(3)
    n = 5000
    M = rng.integers(-(2**50), 2**50, size=(3, n))
    x = rng.integers(2**62, 2**63 - 1, size=n)
    expected = [sum(int(a) * int(b) for a, b in zip(row, x, strict=True)) for row in M]
    assert product(M, x) == expected
    assert max(abs(v) for v in expected) > 2**100


@given(st.integers(-(2**80), 2**80), st.integers(0, 2**70), st.integers(0, 40))
def test_coarsening_moves_a_distance_by_less_than_one(value: int, distance: int, shift: int) -> None:
    a, b = coarsen([value, value + distance], shift).tolist()
    assert -LARGEST <= a <= b <= LARGEST
    assert (b - a) * 2**shift < distance + 2**shift or distance == 0
    if shift == 0:
        assert b - a <= distance


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
@pytest.mark.parametrize("unit", [1, 4])
@pytest.mark.parametrize("k", [1, 2])
def test_sensitivity_bounds_every_neighbour(privacy: Privacy, unit: int, k: int) -> None:
    """Brute force: every way in which one privacy unit can move x, in every part of a fixed-point row."""
    W = np.array([[1.0, 1, 0], [0, 1, 1], [0.5, 2, -1]])
    L = np.array([[0.9, -0.3, 0.2], [0.1, 0.7, -0.4]])
    W = rebuild(W, L) @ L
    coarse = [np.rint(np.ldexp(L, bits)).astype(np.int64) for bits in (2, 5)]
    norms = [largest_column_norm(L_int, 1 if privacy == "pure" else 2) for L_int in coarse]
    lattices = [Lattice(privacy, L_int, 0, norm, W, 0.0) for L_int, norm in zip(coarse, norms, strict=True)]
    one_row = [p for p in itertools.product(range(unit + 1), repeat=3) if sum(p) == unit]
    for lattice in (*lattices, round_strategy(L, W, privacy)):
        grid = released_resolution(lattice, k, unit, 1.0)
        seen = 0.0
        rng = np.random.default_rng(0)
        for base in rng.integers(0, 7 * unit, size=(6, 3)):
            y = exact_answers(lattice, base, grid)
            for rows in itertools.combinations_with_replacement(one_row, k):
                moved = exact_answers(lattice, base + np.sum(rows, axis=0), grid) - y
                size = float(np.abs(moved).sum() if privacy == "pure" else np.sqrt((moved**2).sum()))
                seen = max(seen, size)
        assert seen <= grid.sensitivity
        if unit == 1 and privacy == "pure" and grid.shift == 0:
            assert seen == grid.sensitivity, "the bound is attained, so it is not merely generous"


def test_tiny_epsilon_coarsens_instead_of_saturating() -> None:
    lattice = round_strategy(np.eye(3), np.eye(3), "pure")
    plain_grid, coarse = released_resolution(lattice, 1, 1, 1.0), released_resolution(lattice, 1000, 1, 1e9)
    assert plain_grid.shift == 0 and plain_grid.sensitivity == lattice.norm
    assert coarse.shift > 0
    assert coarse.sensitivity * 1e9 <= 2.0**52 * 1.01
    assert coarse.sensitivity * 2**coarse.shift >= 1000 * lattice.norm


def test_norms_of_many_rows() -> None:
    M = np.full((1000, 2), 2**40, dtype=np.int64)
    assert largest_column_norm(M, 1) == 1000 * 2**40
    assert largest_column_norm(M, 2) == isqrt(1000 * 2**80) + 1


@pytest.mark.parametrize("x", [[1.5, 2], [True, False], ["1", "2"], [1], [[1, 2]], [float("nan"), 1], [None, 1]])
def test_x_must_be_whole(x: object) -> None:
    with pytest.raises(ProgrammingError):
        integer_vector(x, 2)


def test_x_of_any_integer_type() -> None:
    for x in (
        [1, 2],
        np.array([1, 2], dtype=np.uint8),
        np.array([1.0, 2.0]),
        [2**63, 2**64],
        np.array([1, 2**63 + 1]),
    ):
        assert [int(v) for v in integer_vector(x, 2)] == [int(v) for v in np.asarray(x, dtype=object)]


def test_rebuild_is_the_pseudo_inverse() -> None:
    for W in WORKLOADS.values():
        for L in candidate_strategies(W).values():
            B = rebuild(W, L)
            assert residual(W, B, L) <= 1e-9
            assert np.allclose(B, W @ np.linalg.pinv(L, rcond=1e-12), atol=1e-7 * np.abs(B).max())
