"""DAWA's first stage: a private partition of ordered cells into intervals whose counts are nearly even.

Li, Hay, Miklau & Wang 2014, Sections 3 and 4: the cost of an interval b is its deviation Σ|x_i − mean_b| plus what the
noise on its count will cost; intervals have a power of two of cells and begin anywhere; every cost is perturbed, and
the partition of least noisy cost is found by dynamic programming. Only the partition leaves this file.

Costs are exact integers in units of 1/(one_row·g), g the longest interval: for a length l that divides g,
g·Σ|x_i − X_b/l| = (g/l)·Σ|l·x_i − X_b|, with X_b the sum over b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from tacit.engine.mechanism.calibrate import laplace_scale
from tacit.engine.mechanism.choice import coarseness
from tacit.engine.mechanism.exact import Integers, coarsen
from tacit.engine.mechanism.noise import add_laplace

_AT_ONCE = 1 << 20
"""Entries of windows that are looked at together: bounds the memory, changes nothing."""


@dataclass(frozen=True)
class PartitionNoise:
    """How interval costs become the integers that noise is added to, and the noise of every length. Data-free."""

    lengths: tuple[int, ...]
    shift: int
    sensitivities: tuple[int, ...]
    """Per length, in steps of 2^shift: what the guarantee below calls S_l."""
    scales: tuple[float, ...]
    penalty: int
    """What one more interval costs, in the same steps."""
    epsilon: Fraction


def calibrate_partition(
    cells: int, rows_per_unit: int, one_row: int, epsilon: Fraction, penalty: Fraction
) -> PartitionNoise:
    """The noise on the costs of all intervals, for neighbours at L1 distance D = rows_per_unit·one_row.

    ``penalty`` is in rows. Guarantee: see ``private_partition``.
    """
    lengths = tuple(1 << i for i in range(cells.bit_length()))
    longest = lengths[-1]
    factors = [4 * longest - 2 * longest // length - 2 for length in lengths]
    distance = rows_per_unit * one_row
    shift = coarseness(max(factors) * distance, epsilon)
    if shift and factors[0]:
        distance += -((-3 * min(cells, distance) << shift) // factors[0])
    sensitivities = tuple(max(1, -(-factor * distance >> shift)) for factor in factors)
    scales = tuple(laplace_scale(sensitivity, epsilon) for sensitivity in sensitivities)
    steps = math.ceil(penalty * one_row * longest / (1 << shift))
    return PartitionNoise(lengths, shift, sensitivities, scales, steps, epsilon)


def private_partition(x: Integers, noise: PartitionNoise) -> tuple[int, ...]:
    """The lengths of the intervals, from the first cell to the last.

    Guarantee: ``noise.epsilon``-private for neighbours x, x' with ‖x − x'‖₁ ≤ D = rows_per_unit·one_row: a unit has
    at most so many rows, and the parts of a row sum to one_row.

    *One interval.* Let b have length l and d_b = Σ_b|x_i − x'_i|. Moving one count by 1 moves its own distance from
    the mean by at most 1 − 1/l and the l − 1 others by 1/l each, so the cost in units of 1/g moves by at most A_l·d_b
    with A_l = 2g(1 − 1/l) ≤ A_g. Rounding to steps of 2^s makes that ⌈A_l·d_b/2^s⌉, and 0 where no count of b moves.

    *All of them.* Fix the noise Z, let P be the partition of least noisy cost on x, and let Z' be Z lowered by an
    integer h_b for every b in P. Let Q be any other partition. The intervals of P that Q does not have and those of Q
    that P does not have cover the same cells U, so with the changes of cost above, t_b the number of moved cells in b
    and every moved interval holding at least one,
      cost(Q, x', Z') − cost(P, x', Z') ≥ cost(Q, x, Z) − cost(P, x, Z)
        + Σ over P∖Q of [h_b − A_l·d_b/2^s − t_b] − (A_g·d_U/2^s + t_U).
    d_U and t_U are the sums of d_b and t_b over P∖Q, so h_b = ⌈(A_l + A_g)·d_b/2^s⌉ + 2t_b makes the second line ≥ 0:
    on (x', Z') P is still the least, and it still wins its ties, because the order that decides them is fixed. Z' is
    a translation of Z that depends on P, x and x' only, and noise of scale S_l/ε gives P(Z') ≥ e^(−ε·Σ h_b/S_l)·P(Z).

    *The scale.* With a_l = A_l + A_g = 4g − 2g/l − 2 ≥ a_1, h_b ≤ a_l·d_b/2^s + 3t_b. At most T = min(n, D) counts
    move, as each moves by 1 at least. S_l = ⌈a_l·(D + 3T·2^s/a_1)/2^s⌉ has h_b/S_l ≤ (d_b + 3t_b·2^s/a_1) /
    (D + 3T·2^s/a_1), and these sum to 1 at most over P. Without rounding (s = 0) costs are integers already, the terms
    in t_b and T fall away, and S_l = a_l·D.
    """
    costs = []
    for length, sensitivity, scale in zip(noise.lengths, noise.sensitivities, noise.scales, strict=True):
        exact = coarsen(interval_costs(x, length, noise.lengths[-1]), noise.shift)
        costs.append(add_laplace(exact, scale, sensitivity=sensitivity, epsilon=noise.epsilon).tolist())
    return least_cost(costs, noise.lengths, noise.penalty)


def interval_costs(x: Integers, length: int, longest: int) -> list[int]:
    """longest·Σ|x_i − mean| of every interval of this length, exactly. Secret."""
    size = 2 * longest * sum(abs(int(v)) for v in x)
    counts: NDArray[np.int64] | NDArray[np.object_] = x if size < 2**62 else x.astype(np.object_)
    windows = sliding_window_view(counts, length)
    at_once = max(1, _AT_ONCE // length)
    costs: list[int] = []
    for start in range(0, len(windows), at_once):
        part = windows[start : start + at_once]
        deviations = np.abs(length * part - part.sum(axis=1)[:, None]).sum(axis=1)
        costs += (longest // length * deviations).tolist()
    return costs


def least_cost(costs: Sequence[Sequence[int]], lengths: Sequence[int], penalty: int) -> tuple[int, ...]:
    """The partition with the least sum of cost + penalty; of equal ones, that whose last interval is shortest.

    ``costs`` has one list for each length, by the interval's first cell.
    """
    cells = len(costs[0])
    best = [0]
    last = [0]
    for end in range(1, cells + 1):
        total, length = min(
            (best[end - length] + cost[end - length] + penalty, length)
            for length, cost in zip(lengths, costs, strict=True)
            if length <= end
        )
        best.append(total)
        last.append(length)
    chosen = []
    end = cells
    while end:
        chosen.append(last[end])
        end -= last[end]
    return tuple(reversed(chosen))
