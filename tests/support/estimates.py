"""Estimates as tests ask for them: releases of whole batches, where ``estimate_from`` takes the evidence by table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Estimate, JointPlan, Measurement, TableWorkload, half_widths
from tacit.engine.inference.estimate import Inference, estimate_from
from tacit.engine.linalg import row_norms

Vector = NDArray[np.float64]


def estimate(
    matrix_rows: NDArray[np.float64],
    measurements: Sequence[Measurement],
    *,
    inference: Inference = "least squares",
    nonnegative: bool = False,
) -> Estimate:
    """The rows of one table from measurements of its cells."""
    rows = np.arange(matrix_rows.shape[0], dtype=np.int64)
    return estimate_batch(
        [TableWorkload(matrix_rows, rows)] if len(rows) else [],
        [(m,) for m in measurements] if len(rows) else [],
        rows=len(rows),
        inference=inference,
        nonnegative=nonnegative,
    )


def estimate_batch(
    workloads: Sequence[TableWorkload],
    releases: Sequence[Sequence[Measurement]],
    *,
    rows: int | None = None,
    inference: Inference = "least squares",
    nonnegative: bool = False,
) -> Estimate:
    """Answers to every row of the batch from one or several releases of the same tables."""
    evidence = [[release[position] for release in releases] for position in range(len(workloads))]
    return estimate_from(workloads, evidence, rows=rows, inference=inference, nonnegative=nonnegative)


def planned_half_widths(plan: JointPlan, epsilon: Any, delta: Any = 0, confidence: float = 0.95) -> Vector:
    """h with P(|answer − truth| ≤ h) = confidence, for each row of the batch alone, before anything is measured."""
    widths = np.zeros(plan.rows)
    for part, noise in zip(plan.parts, plan.calibrate(epsilon, delta), strict=True):
        B = noise.real_scale * part.lattice.B
        if plan.privacy == "pure":
            widths[part.workload.rows] = half_widths(B, None, confidence, np.full(B.shape[1], 1 / noise.scale))
        else:
            widths[part.workload.rows] = half_widths(np.zeros((len(B), 1)), row_norms(B), confidence)
    return widths
