"""Workloads whose WᵀW is a product: told exactly, solved by factors, and as good as the whole."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from tacit.engine import optimize
from tacit.engine.search import contest
from tacit.engine.search.kronecker import factors, product, spectrum
from tacit.engine.search.strategies.dual import square_root
from tacit.engine.strategy import Matrix, Privacy

from .workloads import prefix, ranges


def with_total(n: int) -> Matrix:
    return np.vstack([np.eye(n), np.ones((1, n))])


def cube(*sides: int) -> Matrix:
    return np.asarray(reduce(np.kron, [with_total(n) for n in sides]))


@pytest.mark.parametrize(
    ("W", "sides"),
    [
        (cube(3, 4, 5), [3, 4, 5]),
        (cube(6, 6), [6, 6]),
        (np.kron(prefix(4), prefix(7)), [4, 7]),
        (np.kron(prefix(9), np.ones((1, 2))), [9, 2]),
        (cube(3, 4)[np.random.default_rng(0).permutation(20)], [3, 4]),
    ],
    ids=["cube", "equal sides", "prefixes", "a total", "queries in another order"],
)
def test_a_product_is_found(W: Matrix, sides: list[int]) -> None:
    parts = factors(W)
    assert [len(V) for V in parts] == sides
    assert np.array_equal(product(parts), W.T @ W)
    sigma = np.linalg.svd(W, compute_uv=False)
    assert spectrum(parts) == pytest.approx(sigma[sigma > 1e-9])


@pytest.mark.parametrize(
    "W",
    [
        ranges(20, 12),
        np.vstack([cube(3, 4), np.eye(12)[:1]]),
        cube(3, 4) * 0.1,
        cube(3, 4) * 2.0**30,
        cube(3, 4)[:, np.random.default_rng(0).permutation(12)],
        np.ones((2, 7)),
    ],
    ids=["ranges", "one query more", "fractions", "too large to be exact", "cells in another order", "a prime"],
)
def test_what_is_no_product_of_integers_is_not_taken_for_one(W: Matrix) -> None:
    assert factors(W) == ()


def test_the_root_has_full_row_rank() -> None:
    V = np.kron(np.ones((3, 3)), np.eye(4))
    R = square_root(V)
    assert R.shape == (4, 12) and pytest.approx(V) == R.T @ R


@pytest.mark.parametrize("privacy", ["pure", "approximate"])
@pytest.mark.parametrize("W", [cube(3, 4, 5), np.kron(prefix(4), with_total(5))], ids=["cube", "ranges and groups"])
def test_factors_give_what_the_whole_gives(W: Matrix, privacy: Privacy, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = optimize(W, privacy=privacy)
    monkeypatch.setattr(contest, "LARGE", 2)
    by_factors = optimize(W, privacy=privacy)
    assert by_factors.error <= dense.error * (1 + 2e-5)
    assert by_factors.lower_bound == pytest.approx(dense.lower_bound, rel=1e-3)
    assert by_factors.lower_bound <= dense.error * (1 + 1e-12)
    assert np.abs(by_factors.B @ by_factors.L - W).max() < 1e-9


def test_a_cube_of_many_cells_reaches_its_known_optimum() -> None:
    s = optimize(cube(10, 10, 10), privacy="approximate")
    assert s.error == pytest.approx(3491.003, rel=1e-6) and s.gap <= 1e-5
