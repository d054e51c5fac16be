"""MWEM (Hardt, Ligett & McSherry 2012): synthetic counts that learn from the queries they answer worst.

The paper takes the number of rows as public. Here it is private, and measured first.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.linalg import row_peaks
from tacit.engine.mechanism.choice import Selection, calibrate_selection, select_largest
from tacit.engine.mechanism.exact import Integers, product
from tacit.engine.mechanism.lattice import BITS, Lattice
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.plan import JointPlan
from tacit.engine.mechanism.table_plan import TablePlan
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.search.data_dependent import DataDependent, Mwem
from tacit.engine.strategy import Matrix, Vector

_PASSES = 40
"""How often all measurements are gone through after each of them: more of it is post-processing, and better."""


def draws(settings: Mwem) -> int:
    """The total, then a choice and a measurement in each round: all have the same share of ε."""
    return 2 * settings.rounds + 1


def query_lattice(workload: Matrix, weights: Vector) -> NDArray[np.int64]:
    """The weighted queries in steps of 2⁻²⁸ of their largest entry; those that vanish there are never chosen."""
    weighted = workload * np.sqrt(weights)[:, None]
    rounded = np.rint(np.ldexp(weighted / np.abs(weighted).max(), BITS)).astype(np.int64)
    return np.ascontiguousarray(rounded[rounded.any(axis=1)])


def selection_noise(workload: TableWorkload, queries: NDArray[np.int64], epsilon: Fraction) -> Selection:
    """For scores |q·x − a| with a data-free a: a unit has k rows, and the parts of a row sum to one_row.

    So a unit moves q·x by at most k·one_row times the largest entry of q, and the score by no more.
    """
    return calibrate_selection(workload.rows_per_unit * workload.one_row * int(np.abs(queries).max()), epsilon)


def run_mwem(
    strategy: DataDependent, workload: TableWorkload, x: Integers, epsilon: Any, share: Fraction
) -> tuple[Measurement, ...]:
    """All rounds on one table, whose share of ε this is: the measurement of the total, then one for each round.

    Guarantee: 2T + 1 mechanisms, each of share·ε/(2T + 1): T choices (``select_largest``) and T + 1 measurements
    (``measure``). Each is private whatever the earlier ones gave, and what is handed from one to the next, the
    synthetic counts, is a function of earlier results alone. So all of them together are share·ε-private (adaptive
    composition; Dwork, McSherry, Nissim & Smith 2006).
    """
    assert isinstance(strategy.settings, Mwem)
    each = share / draws(strategy.settings)
    queries = query_lattice(strategy.workload, strategy.weights)
    selection = selection_noise(workload, queries, Fraction(epsilon) * each)
    exact = product(queries, x)

    def measured(row: NDArray[np.int64]) -> Measurement:
        lattice = Lattice("pure", row[None, :], -BITS, int(np.abs(row).max()), np.zeros((0, 1)), 0.0)
        part = TablePlan(workload, strategy, lattice, np.ones(len(workload.rows)), each)
        return measure(JointPlan("pure", (part,), len(workload.rows)), [x], epsilon)[0]

    results = [measured(np.full(queries.shape[1], 1 << BITS, dtype=np.int64))]
    synthetic = _Synthetic(results[0])
    for _ in range(strategy.settings.rounds):
        guesses = _whole(queries @ synthetic.cells, workload.one_row)
        scores = [abs(truth - guess) for truth, guess in zip(exact, guesses, strict=True)]
        results.append(measured(queries[select_largest(scores, selection)]))
        synthetic.learn(results[-1])
    return tuple(results)


def synthetic_cells(measurements: Sequence[Measurement]) -> Vector:
    """The synthetic counts after the last round."""
    synthetic = _Synthetic(measurements[0])
    for measurement in measurements[1:]:
        synthetic.learn(measurement)
    return synthetic.cells


class _Synthetic:
    """Counts of the cells that are never below zero, and the measurements that they learn from."""

    def __init__(self, total: Measurement) -> None:
        self.total = max(float(total.values[0]), 1.0)
        self.cells: Vector = np.full(total.L_int.shape[1], self.total / total.L_int.shape[1])
        self._queries: list[tuple[Vector, float]] = []

    def learn(self, measurement: Measurement) -> None:
        """Multiplicative weights: x_j ← x_j·exp(q_j·(m − q·x)/2n), with all measurements, several times."""
        L, z = measurement.L, measurement.values
        peak = float(row_peaks(L)[0])
        # No query of entries up to 1 is further from zero than the total; this bounds the exponent too.
        value = float(np.clip(z[0] / peak, -self.total, self.total))
        self._queries.append((L[0] / peak, value))
        for _ in range(_PASSES):
            for query, target in self._queries:
                cells = self.cells * np.exp(query * (target - query @ self.cells) / (2 * self.total))
                self.cells = cells * (self.total / cells.sum())


def _whole(values: Vector, one_row: int) -> list[int]:
    """Released figures in the units of the exact ones; a float is a fraction, so this rounds once."""
    return [round(Fraction(value) * one_row) for value in values.tolist()]
