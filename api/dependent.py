"""Batches that a strategy answers which looks at the data: DAWA and MWEM.

Such a release is charged and stored like every other one. But its questions were chosen by the data, so it answers its
own batch and nothing else: it is stored under no table's name, and no other batch ever finds it.

DAWA takes neighbouring cells together, in the order of the batch's grid: within a column by value with NULL last, over
several columns so that the last one changes fastest, and the two ends of a summed column faster still.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.engine import (
    Amount,
    Charge,
    ChargeRequest,
    Estimate,
    Ledger,
    StagedPlan,
    StoredRelease,
    measure_in_stages,
    plan_in_stages,
)
from tacit.engine.accounting.amounts import NOTHING
from tacit.engine.inference.unpredicted import estimate_unpredicted
from tacit.engine.mechanism.measurement import pack_staged, unpack_staged

from .answers import Answers, frame
from .budget import LedgerAccess, show
from .compiled_batch import CompiledBatch
from .errors import BudgetError, NotSupportedError, PrivacyParameterError
from .explain import Plan, alternatives
from .request import Ask
from .sealed import sealed
from .session import Session

Counts = Callable[[], Sequence[NDArray[Any]]]
"""Reads the exact counts of every private table: called sealed, and after the charge."""


@dataclass(frozen=True)
class StagedPurchase:
    """A batch, the strategy that would measure it in stages, and ε."""

    batch: CompiledBatch
    plan: StagedPlan
    epsilon: Decimal
    fingerprint: str

    @property
    def cost(self) -> Amount:
        """The whole ε, for all stages of all tables; δ is not used."""
        return self.plan.cost(self.epsilon)

    def request(self, access: LedgerAccess) -> ChargeRequest:
        """What the ledger is asked to admit."""
        mechanism = self.plan.describe(self.epsilon, 0, self.batch.units)
        rho = self.plan.rho(self.epsilon)
        return access.request(self.fingerprint, self.cost, mechanism, rho, scans=self.batch.scans, sql=self.batch.sql)


def price(ask: Ask, batch: CompiledBatch) -> StagedPurchase:
    """What the batch costs by such a strategy. All that can be refused is refused here, before the charge."""
    assert ask.strategy is not None
    if ask.error is not None:
        raise NotSupportedError(
            f"error= cannot be promised with strategy={ask.strategy!r}: its error depends on the data\n"
            "hint: name epsilon= in its place, or leave strategy= out"
        )
    if ask.epsilon is None:
        raise PrivacyParameterError(
            "no budget was named for this batch\n"
            "hint: write epsilon=0.5, or set con.spend = 0.1 or spend = 0.1 under [budget] in the policy"
        )
    if batch.measure != "total" or ask.inference != "least squares":
        raise NotSupportedError(
            f"strategy={ask.strategy!r} predicts no error, so objective= and inference= have nothing to work on\n"
            "hint: leave them out, or leave strategy= out"
        )
    weights = batch.weights
    if weights is not None and (weights == weights[0]).all():
        weights = None  # they count by their ratios, so equal ones are none
    plan = plan_in_stages(batch.listed, ask.strategy, weights)
    parts = ["chosen by the data", ask.strategy, batch.fingerprint, None if weights is None else weights.tolist()]
    fingerprint = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    purchase = StagedPurchase(batch, plan, ask.epsilon, fingerprint)
    plan.stages(purchase.epsilon)  # the noise of every stage fits its integers, or this raises
    return purchase


def answer(
    session: Session,
    ask: Ask,
    batch: CompiledBatch,
    public: NDArray[np.float64],
    keys: Any,
    ledger: Ledger,
    count: Counts,
) -> Answers:
    """Answer a batch by such a strategy: the stored release of this very batch, or a new one.

    Guarantee: that of ``pipeline.answer``; what is released was measured by ``measure_in_stages`` at the ε that was
    charged before the first row was read.
    """
    purchase = price(ask, batch)
    stored = usable(session, ask, purchase, ledger)
    if stored is not None and enter_read(session, ledger, stored):
        payload, paid, cost = stored.payload, Amount(stored.epsilon, stored.delta), NOTHING
    else:
        charge = ledger.charge(purchase.request(session.access))
        session.access.charged(charge)
        payload = sealed(lambda: release(ledger, purchase, charge, count), session.source)
        paid, cost = Amount(charge.epsilon, charge.delta), charge.cost
    estimate = estimate_unpredicted(
        purchase.plan.name,
        batch.listed,
        unpack_staged(payload, purchase.plan.name),
        rows=batch.row_count,
        nonnegative=ask.nonnegative,
        integer=ask.integer,
    )
    histogram = partial(cell_counts, batch, estimate)
    return frame(
        batch.workload,
        keys,
        replace(estimate, values=estimate.values + public),
        ask.confidence,
        compute=session.source.compute,
        paid=paid,
        cost=cost,
        strategy=purchase.plan.name,
        histogram=histogram,
    )


def release(ledger: Ledger, purchase: StagedPurchase, paid: Charge, count: Counts) -> bytes:
    """Count, run the stages and store; what is returned was read back from the ledger. Called sealed.

    Guarantee: that of ``measure_in_stages`` at ``paid.epsilon``. Stored without a subject, so that no other batch is
    answered from it: the fingerprint of this one is the only way to it.
    """
    measured = measure_in_stages(purchase.plan, count(), paid.epsilon)
    return ledger.store(paid.id, pack_staged(purchase.plan.name, measured))


def usable(session: Session, ask: Ask, purchase: StagedPurchase, ledger: Ledger | None) -> StoredRelease | None:
    """The release of this very batch to answer from, if one cost at least what is asked.

    Its error is not known, so it counts as good enough by its ε alone. What another analyst paid for is read only where
    that costs the reader no more than buying.
    """
    if ledger is None or ask.refresh:
        return None
    releases = [r for r in ledger.releases(purchase.fingerprint) if r.epsilon >= purchase.cost.epsilon]
    free = [r for r in releases if _is_free(session, ledger, r)]
    if free:
        return max(free, key=lambda r: (r.epsilon, r.charge_id))
    analyst, cap = str(session.access.analyst), session.access.analyst_cap
    others = (r for r in releases if r.epsilon == purchase.cost.epsilon)
    return next((r for r in others if ledger.affords(analyst, cap, [r.charge_id])), None)


def _is_free(session: Session, ledger: Ledger, stored: StoredRelease) -> bool:
    """Whether the reader may use it at no cost: paid for, or read before; for the curator, all."""
    analyst = session.access.analyst
    return analyst is None or stored.analyst == analyst or stored.charge_id in ledger.read_by(analyst)


def enter_read(session: Session, ledger: Ledger, stored: StoredRelease) -> bool:
    """Count what another analyst paid for against the reader's own cap; whether that allows it."""
    try:
        access = session.access
        ledger.admit_read(stored.charge_id, access.analyst, access.analyst_cap, access.right)
    except BudgetError:  # spent by another process since ``usable`` looked
        return False
    return True


def cell_counts(batch: CompiledBatch, estimate: Estimate) -> pd.DataFrame:
    """The counts of the batch's cells that the answers were computed from; their errors are not known."""
    listed = [cell for scan in batch.scans for cell in batch.workload.cells[scan.columns]]
    return pd.DataFrame(
        {
            "table": pd.Series([cell.table for cell in listed], dtype="str"),
            "label": pd.Series([cell.label for cell in listed], dtype="str"),
            "count": np.concatenate(estimate.cells),
            "stderr": np.full(len(listed), np.nan),
        }
    )


def explain(session: Session, ask: Ask, batch: CompiledBatch, ledger: Ledger | None) -> Plan:
    """What ``answer`` would cost, and in which stages it would look at the data. Reads no private row."""
    purchase = price(ask, batch)
    stored = usable(session, ask, purchase, ledger)
    request = purchase.request(session.access)
    if stored is not None:
        cost = NOTHING
    else:
        cost = session.access.first_cost(request) if ledger is None else ledger.quote(request)
    errors = np.zeros(batch.row_count)
    errors[batch.to_measure] = np.nan
    bought = NOTHING if stored is not None else purchase.cost
    return Plan(
        epsilon=purchase.epsilon,
        delta=ask.delta,
        cost=cost,
        bought=bought,
        why=_why(session, ledger, stored, cost, bought),
        confidence=ask.confidence,
        strategy=purchase.plan.name,
        privacy=purchase.plan.privacy,
        queries=batch.workload.queries,
        cells=batch.workload.cells,
        error=float("nan"),
        combined=float("nan"),
        lower_bound=0.0,
        least_error=None,
        alternatives={},
        stderr=errors,
        half_width=errors,
        alternative_stderr=alternatives(batch, purchase.epsilon, Decimal(0)),
        stages=_stages(purchase),
    )


def _stages(purchase: StagedPurchase) -> tuple[str, ...]:
    """Each stage of each table, with its ε."""
    lines = []
    tables = [scan.table.name for scan in purchase.batch.scans]
    for table, stages in zip(tables, purchase.plan.stages(purchase.epsilon), strict=True):
        of_table = f" of {table}" if len(tables) > 1 else ""
        lines += [f"{stage.name}{of_table}: ε={float(stage.epsilon):.4g}" for stage in stages]
    return tuple(lines)


def _why(session: Session, ledger: Ledger | None, stored: StoredRelease | None, cost: Amount, bought: Amount) -> str:
    if stored is not None and ledger is not None:
        paid = Amount(stored.epsilon, stored.delta)
        if _is_free(session, ledger, stored):
            return "already released: answering costs nothing"
        return f"already released: answering costs nothing, but reading it counts {show(paid)} against your own cap"
    if not any(cost):
        return "paid for before, and never released: answering costs nothing"
    text = f"costs {show(cost)}, for all stages together"
    return text if cost == bought else f"{text}; that is what {show(bought)} adds under this ledger's rule"
