"""A workload whose WᵀW is a product V₁ ⊗ V₂ ⊗ …: so many small problems in place of a large one.

Only WᵀW enters errors and bounds. For L = L₁ ⊗ L₂ the error is the product of the errors, in L1 and in L2, and for
d = d₁ ⊗ d₂ the dual bound is the product of the bounds: optima of the factors, with their certificates, make that of
the whole. CUBE is such a workload, and so is every product of per-column queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce as fold

import numpy as np
from tacit.engine.linalg import gram, rank
from tacit.engine.strategy import Matrix, Vector

_EXACT = 2.0**52
"""Integers up to here, and their sums, are floats without rounding."""


def factors(workload: Matrix, squares: Matrix | None = None) -> tuple[Matrix, ...]:
    """V₁, V₂, … with WᵀW = V₁ ⊗ V₂ ⊗ …, exactly, in the order of the cells; none where there is no such product.

    For workloads of integers only: there equality can be told. ``squares`` is WᵀW, if known.
    """
    W = workload
    first = W[:, 0] @ W  # the first row of WᵀW, which most workloads fail by
    if not any(_is_product(first.reshape(a, -1)) for a in _divisors(first.size)):
        return ()
    if not (np.rint(W) == W).all():
        return ()
    V = gram(W) if squares is None else squares
    if float(np.abs(V).max()) ** 2 >= _EXACT:
        return ()
    parts = tuple(_split(V))
    return parts if len(parts) > 1 else ()


def product(matrices: tuple[Matrix, ...]) -> Matrix:
    """A₁ ⊗ A₂ ⊗ …"""
    return fold(lambda left, right: np.asarray(np.kron(left, right)), matrices)


def spectrum(parts: tuple[Matrix, ...]) -> Vector:
    """The singular values of W that are more than rounding, largest first."""
    roots = [np.sqrt(np.maximum(np.linalg.eigvalsh(V)[::-1], 0.0)) for V in parts]
    sigma = np.sort(np.asarray(fold(np.multiply.outer, roots)).ravel())[::-1]
    return np.asarray(sigma[: rank(sigma, (sigma.size, sigma.size))])


def _split(V: Matrix) -> Iterator[Matrix]:
    """V as its smallest factors; the first divisor that fits leaves nothing to split on the left."""
    n = len(V)
    for a in _divisors(n):
        blocks = V.reshape(a, n // a, a, n // a)
        left, right, corner = blocks[:, 0, :, 0], blocks[0, :, 0, :], V[0, 0]
        if not _is_product(V[0].reshape(a, -1)):
            continue
        if np.array_equal(blocks * corner, left[:, None, :, None] * right[None, :, None, :]):
            yield left / corner
            yield from _split(np.ascontiguousarray(right))
            return
    yield V


def _is_product(rows: Matrix) -> bool:
    return bool((rows * rows[0, 0] == np.outer(rows[:, 0], rows[0])).all())


def _divisors(n: int) -> Iterator[int]:
    return (a for a in range(2, n // 2 + 1) if n % a == 0)
