"""Answers from blocks of products are those of the dense matrices, written out with ``np.kron``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tacit.engine.components import AxisQuestions, Direct, Evidence, Frame, sources
from tacit.engine.product_answers import ProductAnswers, View
from tacit.engine.product_workload import Axes, ProductWorkload

from .products import all_sets, matrix_of, matrix_of_block, random_workload, workload

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


def answered(products: ProductWorkload, evidence: Sequence[Evidence]) -> ProductAnswers:
    return ProductAnswers([View(products.groups, tuple(evidence))], len(products.rows))


def stacked(products: ProductWorkload, evidence: Sequence[Evidence]) -> tuple[Matrix, Vector]:
    """All questions over all cells, and the standard deviation of the noise on each."""
    parts = [matrix_of_block(products.sizes, e) for e in evidence]
    stddevs = [np.full(len(part), e.stddev) for part, e in zip(parts, evidence, strict=True)]
    return np.vstack(parts), np.concatenate(stddevs)


def with_answers(evidence: Sequence[Evidence], values: Vector) -> list[Evidence]:
    given, start = [], 0
    for e in evidence:
        shape = [len(q.L) for q in e.questions]
        count = math.prod(shape)
        given.append(replace(e, answers=values[start : start + count].reshape(shape)))
        start += count
    return given


def implied(products: ProductWorkload, evidence: Sequence[Evidence]) -> Matrix:
    """B: the estimator is linear in the answers, so it is known by what it makes of each unit answer."""
    L, _ = stacked(products, evidence)
    columns = [answered(products, with_answers(evidence, unit)).values for unit in np.eye(len(L))]
    return np.stack(columns, axis=1)


def agrees(products: ProductWorkload, evidence: Sequence[Evidence], *, seed: int = 0) -> NDArray[np.bool_]:
    """Exact without noise, and variances and covariances those of B; which rows are determined."""
    rng = np.random.default_rng(seed)
    W = matrix_of(products)
    L, stddevs = stacked(products, evidence)
    found = answered(products, evidence)
    determined = np.isfinite(found.stderr)
    x = rng.integers(0, 50, size=W.shape[1]).astype(float)
    values = answered(products, with_answers(evidence, L @ x)).values
    size = np.abs(W) @ x + 1
    np.testing.assert_allclose(values[determined] / size[determined], (W @ x)[determined] / size[determined], atol=1e-8)
    B = implied(products, evidence)
    np.testing.assert_allclose((B @ L)[determined], W[determined], atol=1e-8 * max(1.0, np.abs(W).max()))
    covariances = (B * stddevs**2) @ B.T
    np.testing.assert_allclose(
        found.stderr[determined], np.sqrt(np.diag(covariances))[determined], rtol=1e-7, atol=1e-9
    )
    rows = np.flatnonzero(determined)
    if rows.size:
        i, j = rng.choice(rows, size=200), rng.choice(rows, size=200)
        expected = covariances[i, j]
        scale = found.stderr[i] * found.stderr[j] + 1e-12
        np.testing.assert_allclose(found.covariance(i, j) / scale, expected / scale, atol=1e-7)
    return determined


def in_row_space(rows: Matrix, L: Matrix) -> NDArray[np.bool_]:
    missing = np.abs(rows @ np.linalg.pinv(L) @ L - rows).max(axis=1)
    return np.asarray(missing <= 1e-7 * np.abs(rows).max(axis=1))


def by_group(products: ProductWorkload, rows: NDArray[np.bool_]) -> list[bool]:
    return [bool(rows[group.rows].all()) for group in products.groups]


def square(rng: np.random.Generator, size: int) -> Matrix:
    """Questions that determine every point: few or many, of one sign or of both."""
    rows = size + int(rng.integers(0, 3))
    return np.asarray(rng.normal(size=(rows, size)) + rng.choice([0.0, 2.0])) + np.eye(rows, size)


def residuals(rng: np.random.Generator, split: Vector) -> Matrix:
    """Questions that determine all that is orthogonal to the weights."""
    n = len(split)
    basis = np.linalg.svd(split[None, :])[2][1:] if n > 1 else np.zeros((0, 1))
    return np.asarray(rng.normal(size=(n - 1 + int(rng.integers(2)), n - 1)) @ basis)


def some_sets(rng: np.random.Generator, products: ProductWorkload, *, cover: bool) -> list[Axes]:
    """Sets of axes to ask about; with ``cover`` they hold those of every group."""
    every = all_sets(len(products.sizes), 0, len(products.sizes))
    sets = [every[k] for k in rng.choice(len(every), size=min(3, len(every)), replace=False)]
    if cover:
        sets += [tuple(sorted(group.axes)) for group in products.groups]
    return [tuple(rng.permutation(S).tolist()) for S in dict.fromkeys(sets)]


@pytest.mark.parametrize("seed", range(14))
def test_tables_of_any_full_questions(seed: int) -> None:
    """One factor for every axis: values, errors, and least squares to the last digit."""
    rng = np.random.default_rng(seed)
    products = random_workload(rng, largest=4)
    questions = [AxisQuestions(square(rng, size)) for size in products.sizes]
    sets = some_sets(rng, products, cover=seed % 3 > 0)
    evidence = [
        Evidence(S, tuple(questions[a] for a in S), float(rng.uniform(0.3, 3)), source=int(rng.integers(3)))
        for S in sets
    ]
    (frame,) = sources(evidence)
    assert isinstance(frame, Frame)
    determined = agrees(products, evidence, seed=seed)
    W = matrix_of(products)
    L, stddevs = stacked(products, evidence)
    assert by_group(products, determined) == by_group(products, in_row_space(W, L))
    if seed % 3 > 0:
        assert determined.all()
    if not determined.any():
        return
    best = W[determined] @ np.linalg.pinv(L / stddevs[:, None])
    np.testing.assert_allclose(
        answered(products, evidence).stderr[determined], np.linalg.norm(best, axis=1), rtol=1e-6, atol=1e-9
    )
    noisy = rng.normal(size=len(L))
    np.testing.assert_allclose(
        answered(products, with_answers(evidence, noisy)).values[determined], best @ (noisy / stddevs), atol=1e-6
    )


@pytest.mark.parametrize("seed", range(12))
def test_blocks_of_components(seed: int) -> None:
    """Each set of axes asked for its own component only, by questions that are orthogonal to given weights."""
    rng = np.random.default_rng(100 + seed)
    products = random_workload(rng)
    splits = [rng.uniform(0.5, 2, size=size) for size in products.sizes]
    splits = [split / split.sum() for split in splits]
    axis_questions = [AxisQuestions(residuals(rng, split), split) for split in splits]
    sets = [S for S in all_sets(len(products.sizes), 0, len(products.sizes)) if all(products.sizes[a] > 1 for a in S)]
    if seed % 4 == 0:
        sets.pop(int(rng.integers(len(sets))))
    evidence = [Evidence(S, tuple(axis_questions[a] for a in S), float(rng.uniform(0.3, 3))) for S in sets]
    ones = [a for a, size in enumerate(products.sizes) if size == 1]
    if ones:  # an axis of one point has no component: the sum over it is itself
        evidence.append(Evidence((ones[0],), (AxisQuestions(np.ones((1, 1))),), 1.5))
    found = sources(evidence)
    known = {a for e in evidence for a in e.axes}
    products = replace(products, groups=tuple(g for g in products.groups if set(g.axes) <= known))
    if not products.groups:
        return
    renumbered = workload(products.sizes, [(g.axes, g.factors) for g in products.groups])
    assert len(found) == 1
    determined = agrees(renumbered, evidence, seed=seed)
    L, _ = stacked(renumbered, evidence)
    assert by_group(renumbered, determined) == by_group(renumbered, in_row_space(matrix_of(renumbered), L))


@pytest.mark.parametrize("seed", range(8))
def test_a_release_of_tables_beside_one_of_components(seed: int) -> None:
    """Blocks that split an axis alike are one source, however they ask; those that do not are averaged."""
    rng = np.random.default_rng(200 + seed)
    products = random_workload(rng, largest=4)
    evidence = []
    for number in range(3):
        for S in some_sets(rng, products, cover=number == 0):
            factors = []
            for a in S:
                size = products.sizes[a]
                even = np.full(size, 1 / size)
                if number == 1 and size > 1 and seed % 2:
                    factors.append(AxisQuestions(residuals(rng, even), even))
                else:
                    factors.append(AxisQuestions(np.eye(size) if number < 2 else square(rng, size)))
            evidence.append(Evidence(S, tuple(factors), float(rng.uniform(0.3, 3)), source=number))
    assert agrees(products, evidence, seed=seed).all()
    L, stddevs = stacked(products, evidence)
    best = matrix_of(products) @ np.linalg.pinv(L / stddevs[:, None])
    assert (answered(products, evidence).stderr >= np.linalg.norm(best, axis=1) * (1 - 1e-7)).all()


@pytest.mark.parametrize("seed", range(8))
def test_thin_blocks_speak_for_themselves(seed: int) -> None:
    """Questions that do not determine every point: the rows that they were made for, and no others."""
    rng = np.random.default_rng(300 + seed)
    products = random_workload(rng)
    evidence = []
    for number, group in enumerate(products.groups):
        thin = [rng.normal(size=(len(f) + 1, len(f))) @ f for f in group.factors]
        extra = [a for a in range(len(products.sizes)) if a not in group.axes and rng.random() < 0.4]
        thin += [np.vstack([np.ones((1, products.sizes[a])), rng.normal(size=(1, products.sizes[a]))]) for a in extra]
        axes = (*group.axes, *extra)
        evidence.append(Evidence(axes, tuple(map(AxisQuestions, thin)), float(rng.uniform(0.3, 3)), source=number))
    assert agrees(products, evidence, seed=seed).all()
    for e, group in zip(evidence, products.groups, strict=True):
        one = workload(products.sizes, [(group.axes, group.factors)])
        (source,) = sources([e])
        alone = answered(one, [e])
        B = matrix_of(one) @ np.linalg.pinv(matrix_of_block(products.sizes, e))
        np.testing.assert_allclose(alone.stderr, e.stddev * np.linalg.norm(B, axis=1), rtol=1e-7)
        assert source.sources == {e.source}
        for other in products.groups:
            other_one = workload(products.sizes, [(other.axes, other.factors)])
            expected = in_row_space(matrix_of(other_one), matrix_of_block(products.sizes, e)).all()
            # Nor must a row of ones over an axis that the block does not name be looked for: SQL leaves those out.
            assert source.determines(other) == expected or not set(other.axes) <= set(e.axes)
            assert expected or not source.determines(other)


def test_a_thin_block_is_direct_and_points_are_a_frame() -> None:
    thin = Evidence((0,), (AxisQuestions(np.array([[1.0, 1, 0]])),), 1.0)
    points = Evidence((0,), (AxisQuestions(np.eye(3)),), 1.0)
    other = Evidence((0,), (AxisQuestions(np.diag([1.0, 2, 3])),), 1.0)
    kinds = [type(source) for source in sources([thin, points, other])]
    assert kinds == [Frame, Frame, Direct]


def test_rows_that_one_block_holds_and_another_does_not() -> None:
    """Two releases over one axis: the second knows one difference only, so it counts for some rows and not for all."""
    even = np.full(4, 1 / 4)
    whole = AxisQuestions(np.eye(4) - 1 / 4, even)
    thin = AxisQuestions(np.array([[1.0, 1, -1, -1]]), even)
    evidence = [
        Evidence((), (), 1.0),
        Evidence((0,), (whole,), 1.0),
        Evidence((0,), (thin,), 0.7, source=1),
    ]
    half = np.array([[1.0, 1, 0, 0]])
    products = workload([4], [((0,), [half]), ((0,), [np.eye(4)]), ((), [])])
    assert agrees(products, evidence).all()


def test_what_no_block_speaks_of_is_not_determined() -> None:
    products = workload([3, 2], [((0,), [np.eye(3)]), ((1,), [np.eye(2)]), ((0, 1), [np.eye(3), np.eye(2)])])
    evidence = [Evidence((0,), (AxisQuestions(np.eye(3)),), 1.0)]
    found = answered(products, evidence)
    assert np.isfinite(found.stderr).tolist() == [True] * 3 + [False] * 8
    assert answered(products, []).used == frozenset()
    assert not np.isfinite(answered(products, []).stderr).any()


def test_overlapping_tables_agree_to_the_last_digit() -> None:
    """A table added up over an axis is the coarser table, whatever the noise was."""
    rng = np.random.default_rng(5)
    sizes = [3, 4, 2]
    products = workload(sizes, [(S, [np.eye(sizes[a]) for a in S]) for S in all_sets(3, 0, 3)])
    questions = [AxisQuestions(square(rng, size)) for size in sizes]
    evidence = [Evidence(S, tuple(questions[a] for a in S), 1.0) for S in [(0, 1), (1, 2), (2, 1, 0), (2,)]]
    L, _ = stacked(products, evidence)
    values = answered(products, with_answers(evidence, rng.normal(size=len(L)) * 100)).values
    tables = {g.axes: values[g.rows].reshape(g.shape) for g in products.groups}
    for S, held in tables.items():
        for k in range(len(S)):
            np.testing.assert_allclose(held.sum(axis=k), tables[S[:k] + S[k + 1 :]], atol=1e-9)


def test_a_constant_row_needs_no_block_over_its_axis() -> None:
    """The sum of a column whose clamp is one value is a multiple of a count."""
    products = workload([3, 1, 2], [((0, 1), [np.eye(3), np.array([[5.0]])]), ((2,), [np.full((1, 2), -2.0)])])
    even = np.full(3, 1 / 3)
    evidence = [Evidence((), (), 0.5), Evidence((0,), (AxisQuestions(np.eye(3) - 1 / 3, even),), 1.0)]
    assert agrees(products, evidence).all()
