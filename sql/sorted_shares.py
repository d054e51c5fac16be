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

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_MOST_COLUMNS = 8
_MOST_GROUPS = 1 << 21
"""So many groups with their sums take some hundred megabytes; beyond, every corner is summed for itself."""


def pairs(count: int) -> list[tuple[int, int]]:
    """The pairs of columns, each with a bit of its own in the number of an order."""
    return list(itertools.combinations(range(count), 2))


def is_grouped(count: int, points: int) -> bool:
    """Whether rows at so many points are grouped by the order of their shares of so many clamps."""
    return 0 < count <= _MOST_COLUMNS and points <= most_groups(count)


def most_groups(count: int) -> int:
    """The most points at which rows are grouped by the order of so many shares too."""
    return _MOST_GROUPS // math.factorial(count)


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
