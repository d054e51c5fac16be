"""DAWA (Li, Hay, Miklau & Wang 2014): a private partition into even buckets, then the buckets' counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import rebuild
from tacit.engine.mechanism.exact import Integers, largest_column_norm
from tacit.engine.mechanism.lattice import BITS, Lattice
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.partition import PartitionNoise, calibrate_partition, private_partition
from tacit.engine.mechanism.plan import JointPlan
from tacit.engine.mechanism.table_plan import TablePlan
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.search.data_dependent import DataDependent, Dawa
from tacit.engine.search.optimize import optimize
from tacit.engine.strategy import Matrix, Vector

_SEARCHED_BUCKETS = 1024
"""Up to so many buckets sums beside them are looked for; beyond, each bucket is asked alone."""
_LEAST_ENTRY = 2.0**-20
"""Of a bucket's own question, well above the lattice's step: L keeps its rank when it is rounded."""


def partition_noise(workload: TableWorkload, settings: Dawa, epsilon: Fraction) -> PartitionNoise:
    """The first stage at a table's whole ε, of which its share is ``ratio``.

    A bucket costs the mean size of the noise that the rest leaves for its count, and the margin.
    """
    ratio, k = Fraction(settings.ratio), workload.rows_per_unit
    penalty = k / (epsilon * (1 - ratio)) + Fraction(settings.margin) * 4 * k / (epsilon * ratio)
    return calibrate_partition(workload.matrix.shape[1], k, workload.one_row, epsilon * ratio, penalty)


def run_dawa(
    strategy: DataDependent, workload: TableWorkload, x: Integers, epsilon: Any, share: Fraction
) -> tuple[Measurement, ...]:
    """Both stages on one table, whose share of ε this is.

    Guarantee: the partition is ratio·share·ε-private (``private_partition``). Given the partition, the questions are a
    function of it and of the workload, and their answers are (1 − ratio)·share·ε-private (``measure``, for every L).
    Composed adaptively that is share·ε (Dwork, McSherry, Nissim & Smith 2006).
    """
    assert isinstance(strategy.settings, Dawa)
    buckets = private_partition(x, partition_noise(workload, strategy.settings, Fraction(epsilon) * share))
    lattice = bucket_questions(strategy.workload, strategy.weights, buckets)
    rest = share * (1 - Fraction(strategy.settings.ratio))
    part = TablePlan(workload, strategy, lattice, np.ones(len(workload.rows)), rest)
    return measure(JointPlan("pure", (part,), len(workload.rows)), [x], epsilon)


def bucket_questions(workload: Matrix, weights: Vector, buckets: tuple[int, ...]) -> Lattice:
    """Questions about the buckets, as questions about cells: L = L_b·(which bucket a cell is in).

    L_b is looked for on W·P⁺, the workload over buckets whose cells are alike. It asks for each bucket by itself too,
    so it has full column rank, rounded or not. Then W·L⁺·z is DAWA's answer: each bucket's count from all questions
    by least squares, spread evenly over its cells.
    """
    sizes = np.array(buckets)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    weighted = workload * np.sqrt(weights)[:, None]
    L = _strategy(np.add.reduceat(weighted, starts, axis=1) / sizes)
    L_int = np.rint(np.ldexp(L, BITS)).astype(np.int64)
    cells = np.repeat(L_int, sizes, axis=1)
    return Lattice("pure", cells, -BITS, largest_column_norm(L_int, 1), np.zeros((0, len(L_int))), 0.0)


def _strategy(workload: Matrix) -> Matrix:
    """An L of sensitivity 1 that asks for every bucket; whatever the buckets are, there is one."""
    buckets = workload.shape[1]
    if buckets <= _SEARCHED_BUCKETS and np.count_nonzero(np.abs(workload).max(axis=0)) > 1:
        try:
            L = optimize(workload, strategy="p-identity", target_gap=1e9).L
            if np.diag(L[:buckets]).min() > _LEAST_ENTRY:
                return L
        except Exception:  # the partition was paid for: no buckets may end in an error
            pass
    return np.eye(buckets)


def buckets_of(measurement: Measurement) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """L_b, and how many cells each of its buckets has; neighbouring buckets have different columns."""
    L_int = measurement.L_int
    starts = np.flatnonzero(np.concatenate([[True], np.any(L_int[:, 1:] != L_int[:, :-1], axis=0)]))
    return measurement.L[:, starts], np.diff(np.append(starts, L_int.shape[1]))


def expanded_cells(measurements: tuple[Measurement, ...]) -> Vector:
    """The counts of the cells: L⁺·z, every bucket spread evenly over its cells."""
    (measurement,) = measurements
    L, sizes = buckets_of(measurement)
    counts = rebuild(measurement.values[None, :], L.T)[0]
    return np.repeat(counts / sizes, sizes)
