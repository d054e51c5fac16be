"""The best joint plan for a batch over one or several private tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.engine.accounting.amounts import to_amount, to_delta
from tacit.engine.linalg import row_peaks
from tacit.engine.measures import Measure, for_rows_per_unit, row_scales, share_root
from tacit.engine.mechanism.lattice import Lattice, round_strategy
from tacit.engine.mechanism.plan import JointPlan, TablePlan, Vector, unreachable
from tacit.engine.mechanism.stored_plan import (
    Allowance,
    FoundPlan,
    SearchTerms,
    find_strategy,
    is_enough,
    plan_key,
)
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.mechanism.whole import on_integers
from tacit.engine.search.named import data_dependent_strategies
from tacit.engine.strategy import Privacy, Strategy
from tacit.errors import InternalError, NotSupportedError, ProgrammingError
from tacit.process import one_blas_thread


@dataclass(frozen=True, eq=False)
class PlanOptions:
    """What a caller may say about a plan beyond the tables' workloads."""

    weights: NDArray[np.float64] | None = field(default=None, repr=False)
    """How much the error of each row of the batch counts in the measure; by default all count the same."""
    strategy: str | None = None
    """The name of one strategy, for every table; by default the best that ``optimize`` finds."""
    rows: int | None = None
    """How many rows the batch has; by default up to the last one that a workload names."""
    measure: Measure = "total"
    """What is minimised: the sum of squared errors, the largest of them, or the sum of standard errors."""
    terms: SearchTerms = field(default=SearchTerms(), repr=False)
    """How long to search, and where plans are kept."""


DEFAULT = PlanOptions()


def choose_plan(
    workloads: Sequence[TableWorkload], epsilon: Any, delta: Any = 0, options: PlanOptions = DEFAULT
) -> JointPlan:
    """The plan with the smallest error at (ε, δ): with δ > 0 both Laplace and Gaussian noise are priced.

    Strategies of small integers are priced too (``whole``): they gain with ε, so another ε may have another plan.
    """
    amount = to_amount(epsilon, delta)
    plans = _plans_of_every_kind(workloads, amount.delta, options)
    if options.strategy is None:
        plans = [on_integers(plan, float(amount.epsilon)) for plan in plans]
    return min(plans, key=lambda plan: plan.total_error(*amount))


def choose_plan_for_error(
    workloads: Sequence[TableWorkload],
    error: Any,
    confidence: float = 0.95,
    delta: Any = 0,
    options: PlanOptions = DEFAULT,
    *,
    target: Sequence[int] | None = None,
) -> tuple[JointPlan, Decimal]:
    """The plan that gets the rows of ``target`` (default: all) within ±error with the smallest ε, and that ε."""
    plans = _plans_of_every_kind(workloads, to_delta(delta), options)

    def priced(plans: Sequence[JointPlan]) -> list[tuple[Decimal, JointPlan]]:
        listed = [(plan.least_epsilon(error, confidence, delta, target), plan) for plan in plans]
        return [(epsilon, plan) for epsilon, plan in listed if epsilon is not None]

    reached = priced(plans)
    if options.strategy is None:
        others = [(on_integers(plan, float(epsilon)), plan) for epsilon, plan in reached]
        reached += priced([other for other, plan in others if other is not plan])
    if not reached:
        raise unreachable(error)
    epsilon, plan = min(reached, key=lambda pair: pair[0])
    return plan, epsilon


def plan_release(workloads: Sequence[TableWorkload], *, privacy: Privacy, options: PlanOptions = DEFAULT) -> JointPlan:
    """The best joint plan of one kind.

    What is minimised is the sum of squared errors after dividing each row by its largest absolute entry,
    times the row's weight; so a row enters ``optimize`` multiplied by √weight / largest entry. For other measures see
    ``measures``.
    """
    if options.strategy in data_dependent_strategies():
        raise NotSupportedError(
            f'strategy "{options.strategy}" has no questions before it sees the data, so no such plan can be made\n'
            "hint: plan_in_stages and measure_in_stages run it"
        )
    rows = _row_count(workloads, options.rows)
    weights = _checked_weights(options.weights, rows)
    terms = options.terms
    key = "" if terms.store is None else _key(workloads, privacy, options, weights, rows)
    found = None if terms.store is None else terms.store.recall(key)
    if found is not None and is_enough(found.seconds, terms.seconds):
        return replace(found.plan, parts=_over(workloads, found.plan))
    factors = [
        row_scales(weights[workload.rows], options.measure) / row_peaks(workload.matrix) for workload in workloads
    ]
    allowance = Allowance(terms.seconds, len(workloads))
    searched = [
        find_strategy(
            _scaled(workload.matrix, factor),
            privacy,
            options.strategy,
            options.measure,
            replace(terms, seconds=allowance.next()),
        )
        for workload, factor in zip(workloads, factors, strict=True)
    ]
    strategies = [strategy for strategy, _ in searched]
    plan = assemble(workloads, strategies, factors, privacy=privacy, rows=rows, measure=options.measure)
    if terms.store is not None:
        complete = all(cut is None for _, cut in searched)
        terms.store.remember(key, FoundPlan(plan, None if complete else terms.seconds))
    return plan


def _key(workloads: Sequence[TableWorkload], privacy: Privacy, options: PlanOptions, weights: Vector, rows: int) -> str:
    tables = [(w.matrix, w.rows, w.rows_per_unit, w.one_row) for w in workloads]
    parts = [part for table in tables for part in table]
    return plan_key("plan", *parts, privacy, options.strategy, options.measure, weights, rows)


def _over(workloads: Sequence[TableWorkload], plan: JointPlan) -> tuple[TablePlan, ...]:
    """The parts of a plan for equal workloads: those that the caller holds, so that the others can be let go."""
    return tuple(replace(part, workload=w) for part, w in zip(plan.parts, workloads, strict=True))


def assemble(
    workloads: Sequence[TableWorkload],
    strategies: Sequence[Strategy],
    scales: Sequence[Vector],
    *,
    privacy: Privacy,
    rows: int,
    measure: Measure = "total",
) -> JointPlan:
    """Round every table's strategy to its lattice and share the budget among the tables."""
    values = [for_rows_per_unit(s.error, w.rows_per_unit, measure) for w, s in zip(workloads, strategies, strict=True)]
    shares = _shares(values, privacy, measure)
    with one_blas_thread():
        parts = tuple(
            TablePlan(workload, s, _rounded(workload, s, scale), scale, share)
            for workload, s, scale, share in zip(workloads, strategies, scales, shares, strict=True)
        )
    return JointPlan(privacy, parts, rows, measure)


def _rounded(workload: TableWorkload, s: Strategy, scale: Vector) -> Lattice:
    B = s.B if (scale == 1.0).all() else s.B / scale[:, None]  # of the rows as they are
    return round_strategy(s.L, workload.matrix, s.privacy, row_weights=scale, whole=workload.one_row == 1, B=B)


def _plans_of_every_kind(workloads: Sequence[TableWorkload], delta: Decimal, options: PlanOptions) -> list[JointPlan]:
    """The best plan of each kind of noise that δ allows.

    A strategy that is forced by name may be made for one kind only, or for small workloads only: each strategy
    decides that when it runs. The batch is refused if no kind is left.
    """
    kinds: tuple[Privacy, ...] = ("pure",) if delta == 0 else ("pure", "approximate")
    plans: list[JointPlan] = []
    refusal: NotSupportedError | None = None
    seconds = options.terms.seconds
    if seconds is not None:
        options = replace(options, terms=replace(options.terms, seconds=seconds / len(kinds)))
    for privacy in kinds:
        try:
            plans.append(plan_release(workloads, privacy=privacy, options=options))
        except NotSupportedError as error:
            refusal = error
    if refusal is not None and not plans:
        raise refusal
    return plans


def _shares(values: Sequence[float], privacy: Privacy, measure: Measure) -> list[Fraction]:
    """The shares that attain ``measures.joint``, as exact fractions summing to 1."""
    if not values:
        return []
    root = share_root(privacy, measure)
    roots = [value**root for value in values]
    parts = [max(1, round(2**30 * root / sum(roots))) for root in roots]
    return [Fraction(p, sum(parts)) for p in parts]


def _row_count(workloads: Sequence[TableWorkload], rows: int | None) -> int:
    needed = max((int(workload.rows.max(initial=-1)) + 1 for workload in workloads), default=0)
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
