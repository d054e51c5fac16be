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
from tacit.engine.measures import Measure, for_rows_per_unit, row_scales, share_root
from tacit.engine.mechanism.lattice import Lattice, round_strategy
from tacit.engine.mechanism.plan import JointPlan, Vector, unreachable
from tacit.engine.mechanism.product_lattice import round_blocks
from tacit.engine.mechanism.product_table import ProductTable
from tacit.engine.mechanism.stored_plan import (
    Allowance,
    FoundPlan,
    SearchTerms,
    find_strategy,
    is_enough,
    plan_key,
)
from tacit.engine.mechanism.stored_products import find_products, product_parts
from tacit.engine.mechanism.table_plan import PartPlan, ProductPlan, TablePlan
from tacit.engine.mechanism.table_workload import TableWorkload
from tacit.engine.mechanism.whole import on_integers
from tacit.engine.product_workload import ProductStrategy
from tacit.engine.search.named import data_dependent_strategies
from tacit.engine.search.structured.structured import points_of_products
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
AnyWorkload = TableWorkload | ProductTable
_CLEARLY = 0.9999
"""Where both fit, blocks of products are taken only if they have less error, beyond rounding."""
_CERTIFIED = 1e-3
"""Or if they are so near to the least possible that listing the cells can gain no more."""
_TABLES_ONLY = 512
"""Cells from which on tables over some columns, the one over all of them included, are asked by tables alone: in 15
random batches the search over cells found nothing better, and takes most of the time."""
_EVEN_WEIGHTS = 64
"""As far apart as the weights of those batches were."""
_FEW_CELLS: dict[Privacy, int] = {"pure": 96, "approximate": 512}
"""Cells up to which the search over listed cells alone is quick, and finds what blocks of products would."""


def choose_plan(
    workloads: Sequence[AnyWorkload], epsilon: Any, delta: Any = 0, options: PlanOptions = DEFAULT
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
    workloads: Sequence[AnyWorkload],
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


def plan_release(workloads: Sequence[AnyWorkload], *, privacy: Privacy, options: PlanOptions = DEFAULT) -> JointPlan:
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
    scales = [row_scales(weights[w.rows], options.measure) / w.row_peaks for w in workloads]
    allowance = Allowance(terms.seconds, len(workloads))
    chosen = [
        _best(workload, scale, weights, privacy, replace(options, terms=replace(terms, seconds=allowance.next())))
        for workload, scale in zip(workloads, scales, strict=True)
    ]
    plan = assemble(
        [one.workload for one in chosen],
        [one.strategy for one in chosen],
        scales,
        privacy=privacy,
        rows=rows,
        measure=options.measure,
    )
    if terms.store is not None:
        complete = all(one.cut is None for one in chosen)
        terms.store.remember(key, FoundPlan(plan, None if complete else terms.seconds))
    return plan


@dataclass(frozen=True, eq=False)
class _Chosen:
    """A table's strategy, the form of its workload that it is for, and the seconds that cut its search short."""

    workload: AnyWorkload
    strategy: Strategy | ProductStrategy
    cut: float | None


def _best(workload: AnyWorkload, scale: Vector, weights: Vector, privacy: Privacy, options: PlanOptions) -> _Chosen:
    """The best strategy for one table.

    A table whose cells are listed has both forms, if it is made of products. A strategy that is named, and measures
    other than the total, are for listed cells.
    """
    plain = options.strategy is None and options.measure == "total"
    if isinstance(workload, ProductTable):
        if not plain:
            raise NotSupportedError(
                "strategy= and objective= are for batches whose cells can be listed, and this one has too many\n"
                "hint: leave them out, or ask about fewer columns at a time"
            )
        strategy, cut = find_products(workload, weights[workload.rows], privacy, options.terms)
        return _Chosen(workload, strategy, cut)
    products = workload.product if plain and workload.product is not None and workload.product.has_structure else None
    structured = None
    if products is not None and workload.matrix.shape[1] > _FEW_CELLS[privacy]:
        structured, cut = find_products(products, weights[products.rows], privacy, options.terms, quick=True)
        of_rows = weights[products.rows]
        even = of_rows.max() <= _EVEN_WEIGHTS * of_rows.min()
        tables_only = even and workload.matrix.shape[1] > _TABLES_ONLY and products.asks_every_point
        if tables_only or structured.error <= structured.lower_bound * (1 + _CERTIFIED):
            return _Chosen(products, structured, cut)
    dense, cut = find_strategy(
        _scaled(workload.matrix, scale), privacy, options.strategy, options.measure, options.terms
    )
    if structured is not None and structured.error < dense.error * _CLEARLY:
        assert products is not None
        bound = min(max(structured.lower_bound, dense.lower_bound), structured.error)
        return _Chosen(products, replace(structured, lower_bound=bound), cut)
    return _Chosen(workload, dense, cut)


def _key(workloads: Sequence[AnyWorkload], privacy: Privacy, options: PlanOptions, weights: Vector, rows: int) -> str:
    parts: list[Any] = []
    for w in workloads:
        if isinstance(w, ProductTable):
            parts += product_parts(w)
        else:
            parts += [w.matrix, w.rows, w.rows_per_unit, w.one_row]
            parts += [] if w.product is None else product_parts(w.product)
    return plan_key("plan", *parts, privacy, options.strategy, options.measure, weights, rows)


def _over(workloads: Sequence[AnyWorkload], plan: JointPlan) -> tuple[PartPlan, ...]:
    """The parts of a plan for equal workloads: those that the caller holds, so that the others can be let go."""
    parts: list[PartPlan] = []
    for part, w in zip(plan.parts, workloads, strict=True):
        if isinstance(part, TablePlan):
            assert isinstance(w, TableWorkload)
            parts.append(replace(part, workload=w))
        else:
            products = w if isinstance(w, ProductTable) else w.product
            assert products is not None
            parts.append(replace(part, workload=products))
    return tuple(parts)


def assemble(
    workloads: Sequence[AnyWorkload],
    strategies: Sequence[Strategy | ProductStrategy],
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
            _part(workload, s, scale, share)
            for workload, s, scale, share in zip(workloads, strategies, scales, shares, strict=True)
        )
    return JointPlan(privacy, parts, rows, measure)


def _part(workload: AnyWorkload, s: Strategy | ProductStrategy, scale: Vector, share: Fraction) -> PartPlan:
    if isinstance(workload, TableWorkload):
        assert isinstance(s, Strategy)
        return TablePlan(workload, s, _rounded(workload, s, scale), scale, share)
    assert isinstance(s, ProductStrategy)
    needed: dict[int, dict[int, NDArray[np.float64]]] = {}
    for group in workload.products.groups:
        for axis, factor in group.by_axis.items():
            needed.setdefault(axis, {})[id(factor)] = factor
    products = workload.products
    rows_needed = {axis: list(rows.values()) for axis, rows in needed.items()}
    lattices = round_blocks(s.blocks, s.privacy, rows_needed, products.summed)
    part = ProductPlan(workload, s, lattices, scale, share, tuple(_fractions(s.shares)))
    if part.is_sound:
        return part
    # Rounding has turned some block away from the rows that it is for. Points are integers and need none.
    s = points_of_products(products, s)
    lattices = round_blocks(s.blocks, s.privacy, rows_needed, products.summed)
    part = ProductPlan(workload, s, lattices, scale, share, tuple(_fractions(s.shares)))
    if not part.is_sound:
        raise InternalError("the rounded strategy no longer answers the workload")
    return part


def _rounded(workload: TableWorkload, s: Strategy, scale: Vector) -> Lattice:
    B = s.B if (scale == 1.0).all() else s.B / scale[:, None]  # of the rows as they are
    return round_strategy(s.L, workload.matrix, s.privacy, row_weights=scale, whole=workload.one_row == 1, B=B)


def _plans_of_every_kind(workloads: Sequence[AnyWorkload], delta: Decimal, options: PlanOptions) -> list[JointPlan]:
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
    return _fractions([value**root for value in values])


def _fractions(shares: Sequence[float]) -> list[Fraction]:
    """In these proportions, exactly, and with a sum of 1."""
    parts = [max(1, round(2**30 * share / sum(shares))) for share in shares]
    return [Fraction(p, sum(parts)) for p in parts]


def _row_count(workloads: Sequence[AnyWorkload], rows: int | None) -> int:
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
