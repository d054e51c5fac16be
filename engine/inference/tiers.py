"""Least squares over measurements whose noise differs by many orders of magnitude.

Floating point cannot weigh a measurement against another with a million times its noise in one matrix: the noisier one
would pass for rounding. So measurements are taken in tiers, the exact ones first, and a tier is asked only for what
lies outside the row space of those before. What that loses to the true optimum is less than one part in ``_TIER``². A
sparse stack falls apart into small parts, mostly of one cell each, which are weighed as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import computed_rank, rebuild, svd
from tacit.engine.strategy import Questions

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_ROUNDING = 1e-7
"""What is left of a row outside a row space is rounding below this part of its largest entry."""
_TIER = 1e5
"""Measurements whose noise differs by more than this are solved one after the other, not in one matrix."""


def weighed(rows: Matrix, stack: Questions, noise: Vector) -> Matrix:
    """The B of least variance with B·stack = rows, where there is one."""
    first = first_tier(noise)
    if first.all() or not isinstance(stack, np.ndarray):
        return rebuild(rows, stack)
    upper, lower = stack[first], stack[~first]
    basis = row_space(upper)
    B = np.zeros((rows.shape[0], stack.shape[0]))
    B[:, ~first] = weighed(outside(rows, basis), outside(lower, basis), noise[~first])
    B[:, first] = rebuild(rows - B[:, ~first] @ lower, upper)
    return B


def fitted(stack: Questions, z: Vector, noise: Vector) -> Vector:
    """The cells that go with ``weighed``: rows @ cells is B @ z, whatever the rows."""
    if not isinstance(stack, np.ndarray):
        return np.asarray(rebuild(z[None, :], stack.T.tocsr())[0])
    first = first_tier(noise)
    x: Vector = rebuild(z[None, first], stack[first].T)[0]  # stack⁺ z, the least-squares cells of least norm
    if first.all():
        return x
    lower = stack[~first]
    return x + fitted(outside(lower, row_space(stack[first])), z[~first] - lower @ x, noise[~first])


def first_tier(noise: Vector) -> NDArray[np.bool_]:
    """The questions that are solved first: those of the least noise."""
    return np.asarray(noise <= _TIER * noise.min(initial=np.inf))


def row_space(matrix: Matrix) -> Matrix:
    """An orthonormal basis, one vector per column."""
    _, s, Vt = svd(matrix)
    return np.asarray(Vt[: computed_rank(s)].T)


def outside(rows: Matrix, basis: Matrix) -> Matrix:
    """The part of each row that is orthogonal to the basis; exactly zero where that is only rounding."""
    rest = rows - (rows @ basis) @ basis.T
    size = np.abs(rows).max(axis=1, initial=0.0)
    rest[np.abs(rest).max(axis=1, initial=0.0) <= _ROUNDING * size] = 0.0
    return np.asarray(rest)
