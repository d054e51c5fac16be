"""A block of questions on a lattice: a product of small integer matrices, never written out.

Every factor is rounded by itself. A factor that is a multiple of small integers is those; one that sees no total, or
not every direction, is rounded over an integer basis of the rows that it must hold (``lattice``), so that what it is
orthogonal to stays so exactly; any other determines every point, and its entries may be rounded. Norms of a product
are products of norms, so the sensitivity is an exact integer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.components import AxisQuestions, Evidence
from tacit.engine.mechanism.exact import isqrt_up, largest_column_norm, largest_squared_norm
from tacit.engine.mechanism.lattice import integer_multiple, round_factor
from tacit.engine.product_workload import Axes, Block
from tacit.engine.strategy import Matrix, Privacy, Vector
from tacit.errors import InternalError

_BITS = 54
"""Of the norm of a whole block; its factors share them."""
_MOST_BITS, _LEAST_BITS = 25, 16
_NORM_BITS = 26
"""Of an L2 norm at least: it is rounded up to an integer."""


@dataclass(frozen=True, eq=False)
class ProductLattice:
    """L = ⊗ ``factors`` · 2^(sum of ``exponents``); what is asked are the integers ⊗ ``factors`` · 2^``shift``."""

    privacy: Privacy
    axes: Axes
    factors: tuple[NDArray[np.int64], ...] = field(repr=False)
    exponents: tuple[int, ...]
    """Of each factor."""
    splits: tuple[Vector | None, ...] = field(repr=False)
    norm: int
    """Guarantee: no column of the integers that are asked has a larger norm; L1 (pure) exact, L2 (approximate)
    rounded up.

    A column of a product is the product of one column of each factor, and so are its norm and the square of that: the
    largest is the product of the largest ones."""
    shift: int = 0
    """So that rounding costs next to nothing: of an L2 norm up to an integer, of divided rows to a step."""

    @property
    def exponent(self) -> int:
        return sum(self.exponents) - self.shift

    @property
    def questions(self) -> int:
        return math.prod(len(factor) for factor in self.factors)

    @property
    def cells(self) -> int:
        return math.prod(factor.shape[1] for factor in self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """One axis for each factor: its questions."""
        return tuple(len(factor) for factor in self.factors)

    def digest(self) -> str:
        digest = hashlib.sha256(f"product {self.shift} {self.exponents} {[f.shape for f in self.factors]}".encode())
        for factor in self.factors:
            digest.update(np.ascontiguousarray(factor, dtype="<i8").tobytes())
        return digest.hexdigest()

    def exact(self, x: Any) -> list[int]:
        """What is asked of x, in exact integers. Secret: only noise may see it."""
        values = product_of_factors(self.factors, x)
        return [value << self.shift for value in values] if self.shift else values


def product_of_factors(factors: Sequence[NDArray[np.int64]], x: Any) -> list[int]:
    """(⊗ factors) @ x in exact integers, one factor after the other.

    int64 where no intermediate sum can leave it: |x|·Π(the largest row sums so far) bounds every partial sum. Python's
    own integers otherwise.
    """
    tensor = np.asarray(x).reshape([factor.shape[1] for factor in factors])
    reach = max(int(tensor.max(initial=0)), -int(tensor.min(initial=0)))
    for axis, factor in enumerate(factors):
        if factor.shape[0] == factor.shape[1] and np.array_equal(factor, np.eye(len(factor), dtype=np.int64)):
            continue
        reach *= max(int(np.abs(factor).sum(axis=1).max(initial=0)), 1)
        if reach >= 2**62 and tensor.dtype != np.object_:
            tensor = tensor.astype(np.object_)
        matrix = factor.astype(np.object_) if tensor.dtype == np.object_ else factor
        moved = np.moveaxis(tensor, axis, 0)
        flat = matrix @ np.ascontiguousarray(moved).reshape(factor.shape[1], -1)
        tensor = np.moveaxis(flat.reshape(len(factor), *moved.shape[1:]), 0, axis)
    return [int(value) for value in tensor.reshape(-1).tolist()]


def round_blocks(
    blocks: Sequence[Block],
    privacy: Privacy,
    needed: Mapping[int, Sequence[Matrix]],
    divided: frozenset[int] = frozenset(),
) -> tuple[ProductLattice, ...]:
    """Every block on its lattice. ``needed`` are the rows over each axis that questions must be able to tell.

    Over ``divided`` axes the counts are fractions of rows: the integers of such a block are made fine. Whole rows under
    Laplace noise stay on the integers themselves, where noise has less variance (``noise.variance``).

    A factor that several blocks share is rounded once, so that they still split its axis alike.
    """
    widest = max((len(block.axes) for block in blocks), default=1)
    each = max(_LEAST_BITS, min(_MOST_BITS, _BITS // max(widest, 1)))
    rounded: dict[tuple[int, int, int], tuple[NDArray[np.int64], int, int]] = {}
    result = []
    for block in blocks:
        parts = []
        for axis, L, split in zip(block.axes, block.factors, block.splits, strict=True):
            key = (axis, id(L), id(split))
            if key not in rounded:
                integers, exponent = _rounded(L, split, needed[axis], privacy, each)
                size = largest_column_norm(integers, 1) if privacy == "pure" else largest_squared_norm(integers)
                rounded[key] = integers, exponent, size
            parts.append(rounded[key])
        size = math.prod(size for _, _, size in parts)
        coarse = privacy == "pure" and not divided.intersection(block.axes)
        bits = size.bit_length() if privacy == "pure" else size.bit_length() // 2
        shift = 0 if coarse else max(0, _NORM_BITS - bits)
        result.append(
            ProductLattice(
                privacy,
                block.axes,
                tuple(integers for integers, _, _ in parts),
                tuple(exponent for _, exponent, _ in parts),
                block.splits,
                size << shift if privacy == "pure" else isqrt_up(size << 2 * shift),
                shift,
            )
        )
    return tuple(result)


def evidence_from(
    lattices: Sequence[ProductLattice],
    stddevs: Sequence[float],
    answers: Sequence[Vector | None] | None = None,
) -> list[Evidence]:
    """Blocks that were asked, or would be, with the noise on their answers; equal factors are one."""
    known: dict[tuple[int, int], AxisQuestions] = {}
    result = []
    for k, (lattice, stddev) in enumerate(zip(lattices, stddevs, strict=True)):
        questions = []
        for integers, exponent, split in zip(lattice.factors, lattice.exponents, lattice.splits, strict=True):
            key = (id(integers), id(split))
            if key not in known:
                known[key] = AxisQuestions(np.ldexp(integers.astype(np.float64), exponent), split)
            questions.append(known[key])
        given = None if answers is None else answers[k]
        result.append(
            Evidence(lattice.axes, tuple(questions), stddev, None if given is None else given.reshape(lattice.shape))
        )
    return result


def _rounded(
    L: Matrix, split: Vector | None, needed: Sequence[Matrix], privacy: Privacy, bits: int
) -> tuple[NDArray[np.int64], int]:
    integers = integer_multiple(L)
    if integers is not None:
        return integers, 0
    rows = np.vstack(needed)
    if split is not None:
        rows = rows - (rows @ split)[:, None]
    questions = AxisQuestions(L, split)
    own = np.array([row for row in rows if row.any() and questions.holds(row[None, :])])  # others ask for more
    if own.size:
        found = round_factor(L, own, privacy, bits, spans=split is None)
        if found is None and split is None:
            # A search leaves L a little beside the space of the rows; its projection tells them just as well.
            found = round_factor(L @ np.linalg.pinv(own) @ own, own, privacy, bits, spans=False)
        if found is not None and found[0].any():
            return found
    # Arbitrary real rows have no integer basis: the points themselves, or their rests, are integers all the same.
    points = np.eye(L.shape[1]) if split is None or not split.any() else np.eye(len(split)) - split[:, None]
    whole = integer_multiple(points, 2**20)
    if whole is None:
        raise InternalError("a factor of the strategy cannot be rounded")
    return whole, 0
