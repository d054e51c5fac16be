"""Integer arithmetic that cannot round and cannot wrap: products, norms, coarsening.

The secret is an integer vector until noise has been added to it. int64 products wrap and float64 products
lose bits, so a product is cut into limbs small enough for float64 to be provably exact, and the limbs are put
together in Python integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from tacit.errors import InternalError, ProgrammingError

Integers = NDArray[np.int64] | NDArray[np.object_]
IntegerMatrix = NDArray[np.int64] | Any
"""An array of int64 or a csr_array of them: see ``strategy.Questions``."""

LARGEST = 2**62
"""Coordinates are clamped to ±2⁶²: half the range of int64 stays free for noise."""

_FLOAT_BITS = 53


def integer_vector(x: Any, length: int) -> Integers:
    """``x`` as int64, or as Python integers where those are too small; fractions are refused, not rounded."""
    vector = np.asarray(x)
    if vector.ndim != 1 or vector.shape[0] != length:
        raise ProgrammingError(f"x must be one-dimensional with one entry for each of the {length} columns")
    if vector.dtype == np.bool_ or vector.dtype.kind not in "iufO":
        raise ProgrammingError("x must hold integers: how many units fall into each cell")
    if vector.dtype.kind == "u":
        return vector.astype(np.object_) if vector.dtype.itemsize == 8 else vector.astype(np.int64)
    if vector.dtype.kind == "i":
        return vector.astype(np.int64)
    whole = [_whole(v) for v in vector.tolist()]
    return np.array(whole, dtype=np.object_)


def product(matrix: IntegerMatrix, x: Integers) -> list[int]:
    """``matrix @ x`` in exact integers.

    Both are cut into limbs of a and b bits with a + b + log2(n) ≤ 53, so every product of two limbs and every
    partial sum of n of them is an integer below 2⁵³ in size: float64 holds it exactly, in any order of
    addition.
    """
    _, n = matrix.shape
    room = _FLOAT_BITS - 1 - max(1, n).bit_length()
    a = room // 2
    b = room - a
    x_limbs = np.stack(_limbs_of_vector(x, b), axis=1)
    totals: list[int] = [0] * matrix.shape[0]
    for i, part in enumerate(_limbs(entries(matrix), a)):
        sums = (with_entries(matrix, part.astype(np.float64)) @ x_limbs).astype(np.int64)
        for row, values in enumerate(sums.tolist()):
            for j, value in enumerate(values):
                totals[row] += value << (a * i + b * j)
    return totals


def entries(matrix: Any) -> NDArray[Any]:
    """The entries that are written: all of them, or those of a sparse matrix."""
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.data)


def with_entries(matrix: Any, changed: NDArray[Any]) -> Any:
    """A matrix of the same form with other entries."""
    if isinstance(matrix, np.ndarray):
        return changed
    return csr_array((changed, matrix.indices, matrix.indptr), shape=matrix.shape)


def coarsen(values: Sequence[int], shift: int) -> NDArray[np.int64]:
    """Each value divided by 2^shift, rounded to the nearest integer (halves up), clamped to ±2⁶².

    Rounding moves the distance of two values by less than one unit, clamping never widens it.
    """
    half = (1 << shift) >> 1
    rounded = ((value + half) >> shift for value in values)
    return np.array([max(-LARGEST, min(LARGEST, value)) for value in rounded], dtype=np.int64)


def largest_column_norm(matrix: IntegerMatrix, order: int) -> int:
    """The largest column norm: exact in L1, and in L2 the exact root rounded up to an integer.

    Guarantee: no column has a larger norm, because nothing here is ever rounded down.
    """
    if order == 1:
        sizes = abs(matrix)
        if float(sizes.sum(axis=0, dtype=np.float64).max(initial=0.0)) >= 2.0**62:
            raise InternalError("the rounded strategy does not fit its integers")
        return int(sizes.sum(axis=0).max(initial=0))
    return isqrt_up(largest_squared_norm(matrix))


def largest_squared_norm(matrix: IntegerMatrix) -> int:
    """The square of the largest column norm in L2, exactly."""
    return max(_squared_column_norms(matrix), default=0)


def isqrt_up(value: int) -> int:
    """The smallest integer whose square is at least ``value``."""
    root = isqrt(value)
    return root if root * root == value else root + 1


def _squared_column_norms(matrix: IntegerMatrix) -> list[int]:
    # With |entry| < 2⁶³ and halves of 2³² the squares of the halves reach 2⁶⁴: three limbs of 21 bits stay
    # below 2⁴² each, so sums over up to 2²¹ rows are exact in int64.
    parts = _limbs(entries(matrix), 21)
    totals = [0] * matrix.shape[1]
    for i, first in enumerate(parts):
        for j, second in enumerate(parts):
            if isinstance(matrix, np.ndarray):
                sums = np.einsum("rn,rn->n", first, second)
            else:
                sums = np.zeros(matrix.shape[1], dtype=np.int64)
                np.add.at(sums, matrix.indices, first * second)
            for column, value in enumerate(sums.tolist()):
                totals[column] += value << (21 * (i + j))
    return totals


def _limbs(matrix: NDArray[np.int64], bits: int) -> list[NDArray[np.int64]]:
    """``matrix`` = Σ limb_i · 2^(bits·i); all but the last are in [0, 2^bits), the last carries the sign."""
    largest = max(int(matrix.max()), -int(matrix.min())) if matrix.size else 0
    parts = []
    rest = matrix
    while largest >= 2**bits:
        parts.append(rest & ((1 << bits) - 1))
        rest = rest >> bits
        largest = (largest >> bits) + 1
    parts.append(rest)
    return parts


def _limbs_of_vector(x: Integers, bits: int) -> list[NDArray[np.float64]]:
    rest = [int(v) for v in x]
    parts: list[list[int]] = []
    mask = (1 << bits) - 1
    while any(not -(mask + 1) <= v <= mask for v in rest):
        parts.append([v & mask for v in rest])
        rest = [v >> bits for v in rest]
    parts.append(rest)
    return [np.array(part, dtype=np.float64) for part in parts]


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer):
        raise ProgrammingError("x must hold integers: how many units fall into each cell")
    if isinstance(value, float) and not value.is_integer():
        raise ProgrammingError("x must hold whole numbers: how many units fall into each cell")
    return int(value)
