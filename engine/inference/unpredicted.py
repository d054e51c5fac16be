"""Answers from a release whose questions were chosen by the data: values, and no errors.

The noise of such a release is not independent of its questions, and what a bucket or a synthetic count misses of the
truth depends on the counts themselves. So no standard error is stated: NaN, never a number that would be believed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tacit.engine.inference.estimate import Estimate, Spread
from tacit.engine.inference.nonnegative import fit
from tacit.engine.mechanism.dawa import buckets_of
from tacit.engine.mechanism.measurement import Measurement
from tacit.engine.mechanism.stages import estimated_cells
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.errors import LedgerError
from tacit.process import one_blas_thread


def estimate_unpredicted(
    strategy: str,
    workloads: Sequence[TableWorkload],
    measurements: Sequence[tuple[Measurement, ...]],
    *,
    rows: int,
    nonnegative: bool = False,
    integer: bool = False,
) -> Estimate:
    """All rows of a batch from what the stages measured of each table: post-processing.

    MWEM's cells are never negative; with ``nonnegative`` DAWA's buckets are fitted so that none is.
    """
    shapes = [{m.L_int.shape[1] for m in table} for table in measurements]
    if shapes != [{workload.matrix.shape[1]} for workload in workloads]:
        raise LedgerError("a stored release is damaged and cannot be read")
    values, stderr = np.zeros(rows), np.zeros(rows)
    cells = tuple(_cells(strategy, table, nonnegative) for table in measurements)
    for workload, counts in zip(workloads, cells, strict=True):
        answers = workload.matrix @ counts
        values[workload.rows] += np.round(answers) if integer else answers
        stderr[workload.rows] = np.nan
    spreads = tuple(_unknown(workload) for workload in workloads)
    return Estimate(values, stderr, spreads, cells)


def _cells(strategy: str, measurements: tuple[Measurement, ...], nonnegative: bool) -> NDArray[np.float64]:
    if strategy != "dawa" or not nonnegative:
        return estimated_cells(strategy, measurements)
    (measurement,) = measurements
    L, sizes = buckets_of(measurement)
    with one_blas_thread():
        counts = fit(L / measurement.stddev, measurement.answers[:, None])[:, 0]
    return np.repeat(counts / sizes, sizes)


def _unknown(workload: TableWorkload) -> Spread:
    m = len(workload.rows)
    return Spread(workload.rows, np.zeros((m, 0)), np.zeros((m, 0)), np.full((m, 1), np.nan))
