"""What measuring a batch, or some rows of it, would cost: a plan and an ε. A function of the batch and the request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from tacit.engine import Amount, ChargeRequest, JointPlan, PlanOptions, choose_plan, choose_plan_for_error, plan_release
from tacit.engine.mechanism.plan import predicted_measurements
from tacit.engine.mechanism.stored_plan import PlanStore, SearchTerms
from tacit.engine.mechanism.table_plan import ProductPlan
from tacit.sql.refine import grid_of
from tacit.sql.scan import Scan

from .budget import LedgerAccess
from .compiled_batch import CompiledBatch, computed_queries
from .error_targets import of_queries
from .errors import NotSupportedError, PrivacyParameterError
from .plan_store import Plans
from .progress_line import ProgressLine
from .releases import Release
from .request import Ask

_STORED_PLANS = 32


@dataclass(frozen=True)
class Purchase:
    """Rows of a batch that would be measured, by which plan, and at which ε and δ."""

    batch: CompiledBatch
    plan: JointPlan
    epsilon: Decimal
    delta: Decimal
    fingerprint: str
    """Equal for requests whose releases can stand in for each other."""

    @property
    def cost(self) -> Amount:
        return Amount(*self.plan.cost(self.epsilon, self.delta))

    def at(self, epsilon: Decimal) -> Purchase:
        """The same rows by the same plan for another ε."""
        return replace(self, epsilon=epsilon)

    @property
    def asks_products(self) -> bool:
        """Whether the plan chose which columns to count."""
        return any(isinstance(part, ProductPlan) for part in self.plan.parts)

    @property
    def scans(self) -> tuple[Scan, ...]:
        """What is counted, one scan for each block of questions of the plan."""
        scans: list[Scan] = []
        for scan, product, part in zip(self.batch.scans, self.batch.products, self.plan.parts, strict=True):
            if isinstance(part, ProductPlan):
                assert product is not None
                scans += [product.marginal(lattice.axes) for lattice in part.lattices]
            else:
                assert isinstance(scan, Scan)
                scans.append(scan.asking(part.lattice.L_int))
        return tuple(scans)

    def predicted(self) -> Release:
        """The release that the purchase will be, with zeros for its values: enough to predict errors."""
        grids = tuple(grid_of(scan) for scan in self.scans)
        return Release(self.cost, predicted_measurements(self.plan, self.epsilon, self.delta), grids)

    def request(self, access: LedgerAccess) -> ChargeRequest:
        """What the ledger is asked to admit."""
        mechanism = self.plan.describe(self.epsilon, self.delta, self.batch.units)
        rho = self.plan.rho(self.epsilon, self.delta)
        return access.request(self.fingerprint, self.cost, mechanism, rho, scans=self.batch.scans, sql=self.batch.sql)


class Pricer:
    """Prices batches, and remembers the last few plans: ``answer`` after ``explain`` does not search again.

    What was searched for is kept by the workload (``plan_store``), so that another ε, ``error=`` or ``refresh=True``
    does not search again either; what depends on ε is computed from it.

    Threads take turns on a connection, so nobody else uses its pricer meanwhile.
    """

    def __init__(self, store: PlanStore | None = None) -> None:
        self.store = Plans() if store is None else store
        self._plans: dict[str, tuple[JointPlan, Decimal]] = {}

    def price(self, ask: Ask, batch: CompiledBatch, rule: str) -> Purchase:
        """The plan for the rows of a batch, and with ``error=`` the smallest ε; the cost follows from the two.

        What is refused is refused before a plan is looked up: plans are remembered by the rows that they measure, and
        whether a request is sound depends on its queries too.
        """
        _check_budget(ask, batch)
        weights = None if batch.weights is None else batch.weights.tolist()  # by row: queries can share rows
        promised = None if batch.noise_widths is None else batch.noise_widths[batch.promised_rows].tolist()
        key = _hash(
            *(batch.fingerprint, str(ask.epsilon), str(ask.delta), promised),
            *(ask.confidence if ask.error else None, weights, ask.strategy, rule, batch.measure, ask.plan_seconds),
        )
        if key not in self._plans:
            if len(self._plans) >= _STORED_PLANS:
                self._plans.pop(next(iter(self._plans)))
            with ProgressLine() as line:
                terms = SearchTerms(ask.plan_seconds, self.store, line.note, line.tick)
                self._plans[key] = _plan(ask, batch, rule, terms)
        plan, epsilon = self._plans[key]
        # A charge never released is taken up by the same plan only: the ledger also compares L with what is on record,
        # because another ε may have another L.
        measure = () if batch.measure == "total" else (batch.measure,)  # none, as in ledgers older than measures
        fingerprint = _hash(batch.fingerprint, plan.privacy, ask.strategy, weights, *measure)
        return Purchase(batch, plan, epsilon, ask.delta, fingerprint)


def _plan(ask: Ask, batch: CompiledBatch, rule: str, terms: SearchTerms) -> tuple[JointPlan, Decimal]:
    options = PlanOptions(batch.weights, ask.strategy, batch.row_count, batch.measure, terms)
    gaussian = _gaussian(batch, options) if rule == "zcdp" and ask.delta > 0 else None
    if batch.noise_widths is None or ask.epsilon is not None:
        assert ask.epsilon is not None
        return gaussian or choose_plan(batch.tables, ask.epsilon, ask.delta, options), ask.epsilon
    rows = batch.promised_rows
    if not rows.size:
        raise PrivacyParameterError(
            "error= promises nothing of any figure that needs noise, so it sets no budget\n"
            "hint: name a query over private rows in error=, or name epsilon= in its place"
        )
    target, widths = rows.tolist(), batch.noise_widths[rows]
    if gaussian is not None:
        return gaussian, gaussian.epsilon_for(widths, ask.confidence, ask.delta, target)
    return choose_plan_for_error(batch.tables, widths, ask.confidence, ask.delta, options, target=target)


def _gaussian(batch: CompiledBatch, options: PlanOptions) -> JointPlan | None:
    """The plan for a ledger that accounts by zCDP: at equal ρ, Gaussian noise is never the worse one.

    Laplace noise at ε costs ρ = ε²/2 there, for a variance of Δ₁²/ρ; Gaussian noise has Δ₂²/2ρ, and Δ₂ ≤ Δ₁. ``None``
    for a forced strategy that is made for Laplace noise only.
    """
    try:
        return plan_release(batch.tables, privacy="approximate", options=options)
    except NotSupportedError:
        return None


def _check_budget(ask: Ask, batch: CompiledBatch) -> None:
    if ask.error is not None:
        _check_error_can_be_promised(batch, of_queries(ask.error, len(batch.workload.queries)))
    elif ask.epsilon is None:
        raise PrivacyParameterError(
            "no budget was named for this batch\n"
            "hint: write epsilon=0.5, or error=10 for the smallest budget that reaches it; for calls that "
            "cannot say, set con.spend = 0.1 or spend = 0.1 under [budget] in the policy"
        )


def _check_error_can_be_promised(batch: CompiledBatch, targets: Sequence[float | None]) -> None:
    """``error=`` is for figures whose error does not depend on the released values."""
    if numbers := computed_queries(batch.workload, {i for i, target in enumerate(targets) if target is not None}):
        raise PrivacyParameterError(
            f"error= cannot be promised for query {numbers}: the error of AVG and of other computed figures depends "
            "on the released values\n"
            "hint: ask for SUM and COUNT in its place, promise it nothing with error={0: 50} for the others, or name "
            "epsilon= instead of error="
        )


def _hash(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
