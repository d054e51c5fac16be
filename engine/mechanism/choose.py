"""The best joint plan for a batch over one or several private tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.amounts import to_amount, to_delta
from tacit.engine.linalg import one_thread, row_peaks
from tacit.engine.mechanism.lattice import round_strategy
from tacit.engine.mechanism.plan import JointPlan, Strategy, TablePlan, TableWorkload, Vector
from tacit.engine.search.optimize import optimize
from tacit.engine.strategy import Privacy
from tacit.errors import InternalError, NotSupportedError, PrivacyParameterError, ProgrammingError


def plan_release(
    blocks: Sequence[TableWorkload],
    *,
    privacy: Privacy,
    weights: NDArray[np.float64] | None = None,
    strategy: str | None = None,
    rows: int | None = None,
) -> JointPlan:
    """The best joint plan of one kind.

    What is minimised is the sum of squared errors after dividing each row by its largest absolute entry,
    times the row's weight; so a row enters ``optimize`` multiplied by √weight / largest entry.
    """
    count = _row_count(blocks, rows)
    scales = [_row_scales(block, _checked_weights(weights, count)) for block in blocks]
    found = [
        optimize(_scaled(block.matrix, scale), privacy=privacy, strategy=strategy)
        for block, scale in zip(blocks, scales, strict=True)
    ]
    return assemble(blocks, found, scales, privacy=privacy, rows=count)


def assemble(
    blocks: Sequence[TableWorkload],
    strategies: Sequence[Strategy],
    scales: Sequence[Vector],
    *,
    privacy: Privacy,
    rows: int,
) -> JointPlan:
    """Round every block's strategy to its lattice and share the budget among the blocks."""
    shares = _shares([b.rows_per_unit**2 * s.error for b, s in zip(blocks, strategies, strict=True)], privacy)
    with one_thread():
        parts = tuple(
            TablePlan(block, s, round_strategy(s.L, block.matrix, privacy, row_weights=scale), scale, share)
            for block, s, scale, share in zip(blocks, strategies, scales, shares, strict=True)
        )
    return JointPlan(privacy, parts, rows)


def choose_plan(
    blocks: Sequence[TableWorkload],
    epsilon: Any,
    delta: Any = 0,
    *,
    weights: NDArray[np.float64] | None = None,
    strategy: str | None = None,
    rows: int | None = None,
) -> JointPlan:
    """The plan with the smallest total error at (ε, δ): with δ > 0 both Laplace and Gaussian noise are priced."""
    amount = to_amount(epsilon, delta)
    plans = _plans(blocks, amount.delta, weights=weights, strategy=strategy, rows=rows)
    return min(plans, key=lambda plan: plan.total_error(*amount))


def choose_plan_for_error(
    blocks: Sequence[TableWorkload],
    error: Any,
    confidence: float = 0.95,
    delta: Any = 0,
    *,
    weights: NDArray[np.float64] | None = None,
    strategy: str | None = None,
    rows: int | None = None,
    target: Sequence[int] | None = None,
) -> tuple[JointPlan, Decimal]:
    """The plan that gets the rows of ``target`` (default: all) within ±error with the smallest ε, and that ε."""
    found: list[tuple[Decimal, JointPlan]] = []
    for plan in _plans(blocks, to_delta(delta), weights=weights, strategy=strategy, rows=rows):
        with suppress(PrivacyParameterError) if found else nullcontext():
            found.append((plan.epsilon_for(error, confidence, delta, target), plan))
    epsilon, plan = min(found, key=lambda pair: pair[0])
    return plan, epsilon


def _plans(blocks: Sequence[TableWorkload], delta: Decimal, **how: Any) -> list[JointPlan]:
    """The best plan of every kind that δ allows. A strategy forced by name may be for one kind only."""
    kinds: tuple[Privacy, ...] = ("pure",) if delta == 0 else ("pure", "approximate")
    found: list[JointPlan] = []
    for privacy in kinds:
        with suppress(NotSupportedError) if found or privacy != kinds[-1] else nullcontext():
            found.append(plan_release(blocks, privacy=privacy, **how))
    return found


def _shares(errors: Sequence[float], privacy: Privacy) -> list[Fraction]:
    """The shares that attain ``plan.joint_error``: proportional to the cube (square) root, as exact
    fractions summing to 1."""
    if not errors:
        return []
    power = 3 if privacy == "pure" else 2
    roots = [e ** (1 / power) for e in errors]
    parts = [max(1, round(2**30 * root / sum(roots))) for root in roots]
    return [Fraction(p, sum(parts)) for p in parts]


def _row_count(blocks: Sequence[TableWorkload], rows: int | None) -> int:
    needed = max((int(block.rows.max(initial=-1)) + 1 for block in blocks), default=0)
    if rows is not None and rows < needed:
        raise InternalError("a block names a row that the batch does not have")
    return needed if rows is None else rows


def _checked_weights(weights: NDArray[np.float64] | None, rows: int) -> Vector:
    if weights is None:
        return np.ones(rows)
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (rows,) or not np.isfinite(checked).all() or not (checked > 0).all():
        raise ProgrammingError(f"weights must be {rows} positive finite numbers, one for each row of the batch")
    return checked


def _scaled(matrix: NDArray[np.float64], scale: Vector) -> NDArray[np.float64]:
    return matrix if (scale == 1.0).all() else matrix * scale[:, None]


def _row_scales(block: TableWorkload, weights: Vector) -> Vector:
    scales: Vector = np.sqrt(weights[block.rows]) / row_peaks(block.matrix)
    return scales
