"""For matrix users: one private release of W x without a ledger. The caller accounts for it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.amounts import to_amount
from tacit.engine.linalg import rebuild
from tacit.engine.mechanism.choose import assemble
from tacit.engine.mechanism.exact import integer_vector
from tacit.engine.mechanism.measure import measure
from tacit.engine.mechanism.stages import StagedPlan, estimated_cells, measure_in_stages
from tacit.engine.mechanism.table_plan import TablePlan
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.search.data_dependent import DataDependent
from tacit.engine.strategy import Strategy
from tacit.errors import ProgrammingError


def release(s: Strategy, x: Any, epsilon: Any = 1.0, delta: Any = 0.0) -> NDArray[np.float64]:
    """W x under (ε, δ)-differential privacy: exact lattice noise on L x, and B applied to the result.

    ``x`` holds whole numbers: how many units fall into each cell. A pure strategy spends ε and no δ; an
    approximate one needs δ > 0. Nothing is recorded: releases add up, and adding them up is the caller's
    duty.

    Guarantee: as ``mechanism.measure``, for neighbours that differ by one unit in one cell; of a strategy that looks
    at the data, as ``mechanism.stages``.
    """
    if isinstance(s, DataDependent):
        return _release_in_stages(s, x, to_amount(epsilon, delta).epsilon)
    W = s.B @ s.L
    amount = to_amount(epsilon, delta)
    rows = np.flatnonzero(np.abs(W).max(axis=1, initial=0.0))
    if rows.size and not 0 < s.error < np.inf:
        raise ProgrammingError("the entries of the workload are too large or too small for a release; scale its rows")
    counts = integer_vector(x, W.shape[1])
    if not rows.size:
        return np.zeros(W.shape[0])
    workload = TableWorkload(W[rows], rows.astype(np.int64))
    best = replace(s, B=rebuild(W[rows], s.L))  # a caller's own B need not be the best one
    plan = assemble([workload], [best], [np.ones(len(rows))], privacy=s.privacy, rows=W.shape[0])
    (measurement,) = measure(plan, [counts], *amount)
    answers = np.zeros(W.shape[0])
    (part,) = plan.parts
    assert isinstance(part, TablePlan)
    answers[rows] = part.lattice.B @ measurement.values
    return answers


def _release_in_stages(s: DataDependent, x: Any, epsilon: Decimal) -> NDArray[np.float64]:
    W = s.workload
    rows = np.flatnonzero(W.any(axis=1))
    counts = integer_vector(x, W.shape[1])
    if not rows.size:
        return np.zeros(W.shape[0])
    some = DataDependent(s.name, s.settings, W[rows], s.weights[rows])
    plan = StagedPlan(s.name, (TableWorkload(W[rows], rows.astype(np.int64)),), (some,))
    (measurements,) = measure_in_stages(plan, [counts], epsilon)
    return np.asarray(W @ estimated_cells(s.name, measurements))
