"""What rows add to the corners of a box of clamps, from sums over the rows that have the same order of shares.

With the shares f of d clamps sorted downwards, a row lies in the simplex whose corners raise the columns one by one in
that order, with weights UNIT - f(1), f(1) - f(2), …, f(d): none negative, UNIT in all. Among rows with one order these
weights are linear in the shares. So the number of such rows and the d sums of their shares say what they add to every
corner, and an engine need not compute 2^d corners for each row: a GROUP BY has one key more, and d sums.

The order is a number with a bit for each pair of columns i < j, set where f_i < f_j: equal shares stand in the order
of the columns, and the corner between them has weight 0 whichever comes first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_MOST_COLUMNS = 8
_MOST_GROUPS = 1 << 21
"""So many groups with their sums take some hundred megabytes; beyond, every corner is summed for itself."""
_MOST_TOTALS = 11
"""The order of so many columns is a number below 2^63."""
_MOST_ENTRIES = 1 << 26
"""A matrix of questions is looked at up to this size."""


def pairs(count: int) -> list[tuple[int, int]]:
    """The pairs of columns, each with a bit of its own in the number of an order."""
    return list(itertools.combinations(range(count), 2))


def is_grouped(count: int, points: int) -> bool:
    """Whether rows at so many points are grouped by the order of their shares of so many clamps."""
    return 0 < count <= _MOST_COLUMNS and points <= most_groups(count)


def most_groups(count: int) -> int:
    """The most points at which rows are grouped by the order of so many shares too."""
    return _MOST_GROUPS // math.factorial(count)


def asks_totals(questions: Any, corners: Integers) -> bool:
    """Whether questions are affine in the corners of every point: a value of the lowest corner and one for each column.

    ``questions`` is a matrix of integers, dense or sparse, ``corners`` the cell of every corner of each point, -1 for
    what nobody asks for. Then the rows at a point add their number times the first value and, for each column, the
    total of their shares times the other, whichever corners the shares are spread over.
    """
    if corners.shape[1] > 1 << _MOST_TOTALS or questions.shape[0] * questions.shape[1] > _MOST_ENTRIES:
        return False
    dense = questions if isinstance(questions, np.ndarray) else questions.toarray()
    asked = np.concatenate([dense, np.zeros((len(dense), 1), dtype=dense.dtype)], axis=1)  # -1 is the last
    for corner in range(corners.shape[1]):
        lowest = corner & -corner
        if corner == lowest:
            continue
        value = asked[:, corners[:, corner ^ lowest]] + asked[:, corners[:, lowest]] - asked[:, corners[:, 0]]
        if (value != asked[:, corners[:, corner]]).any():
            return False
    return True


def order_of_totals(sums: Sequence[tuple[Integers, Integers]]) -> Integers:
    """The number of the order of some totals, each in halves of 32 bits."""
    order = np.zeros(len(sums[0][0]), dtype=np.int64)
    for bit, (i, j) in enumerate(pairs(len(sums))):
        (upper, lower), (other_upper, other_lower) = sums[i], sums[j]
        less = (upper < other_upper) | (upper == other_upper) & (lower < other_lower)
        order |= less.astype(np.int64) << bit
    return order


def corner_weights(
    count: int, order: Integers, rows: Integers, sums: Sequence[tuple[Integers, Integers]], unit_bits: int
) -> tuple[Integers, Integers, Integers]:
    """(corner, upper, lower) of the d + 1 corners of each group: it adds ``upper`` · 2^32 + ``lower`` there.

    A group is the number of an order, how many rows have it, and the sum of each share in halves of 32 bits. The first
    column is the highest bit of a corner. A half of a difference can be negative; the whole is not.
    """
    rank = np.zeros((len(order), count), dtype=np.int64)
    for bit, (i, j) in enumerate(pairs(count)):
        less = order >> bit & 1
        rank[:, i] += less
        rank[:, j] += 1 - less
    columns = np.argsort(rank, axis=1, kind="stable")
    whole = (rows >> (32 - unit_bits), (rows & ((1 << (32 - unit_bits)) - 1)) << unit_bits)
    halves = [np.stack([half[k] for half in sums], axis=1) for k in (0, 1)]
    ordered = [
        np.concatenate(
            [total[:, None], np.take_along_axis(half, columns, axis=1), np.zeros_like(total[:, None])], axis=1
        )
        for total, half in zip(whole, halves, strict=True)
    ]
    upper, lower = (half[:, :-1] - half[:, 1:] for half in ordered)
    raised = np.cumsum(1 << (count - 1 - columns), axis=1)
    corner = np.concatenate([np.zeros((len(order), 1), dtype=np.int64), raised], axis=1)
    return corner, upper, lower
