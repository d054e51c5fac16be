"""The way of a batch: compile, price, reuse, admit, charge, measure, store, combine, frame.

Everything before ``charge`` is a function of the batch, the policy and the ledger alone. What sees private rows is
sealed: whatever goes wrong there is one constant sentence, because an error that depends on a row would be a release
that nobody paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from numpy.typing import NDArray
from tacit.engine import Amount, Charge, Ledger, Measurement, data_dependent_strategies, measure
from tacit.engine.accounting.amounts import NOTHING
from tacit.sql import Source
from tacit.sql.present import rehearse
from tacit.sql.scan import Scan
from tacit.sql.workload import OuterQuery

from . import dependent, discover
from .answers import Answers, frame, key_frames
from .combine import cell_frame, combine, contributing
from .compiled_batch import CompiledBatch, read_public
from .errors import BudgetError, InternalError
from .explain import Plan, free_plan, predicted_plan
from .outer_figures import rehearse_outer
from .pricing import Pricer, Purchase
from .releases import Release, StoredReleases, read, total, write
from .request import Ask
from .reuse import Decision, decisions
from .sealed import sealed
from .session import Session


def answer(session: Session, ask: Ask) -> Answers:
    """Answer a batch as one joint release: charge first, then read, then draw, then store, then return.

    Guarantee: what this call releases satisfies (ε, δ)-differential privacy for neighbours that differ in one
    privacy unit, at the cost charged before the first row was read (``engine.mechanism.measure``). Combining
    with earlier releases and framing are post-processing. A crash between any two steps can waste the charge;
    it can show nothing that was not charged.
    """
    if ask.discover:
        rest, found = discover.find_missing(session, ask)
        answers = answer(session, rest)
        return replace(answers, cost=total([answers.cost, *(f.cost for f in found)]), discovered=found)
    salt = session.access.salt
    batch = session.compile(ask)
    public = read_public(session.source, batch)
    keys = key_frames(batch.workload.released)  # what can fail must fail before the charge
    for query in batch.workload.released:
        rehearse(query, keys[id(query)])
    compute = session.source.compute
    for statement in batch.workload.queries:
        if isinstance(statement, OuterQuery):
            rehearse_outer(statement, keys, compute)
    if not batch.tables:  # no private row is touched, so nothing is charged
        estimate = combine((), batch, public)
        histogram = partial(cell_frame, (), batch)
        return frame(batch.workload, keys, estimate, ask.confidence, compute=compute, histogram=histogram)
    ledger = session.access.open()
    if ledger.salt != salt:  # another process began the ledger meanwhile: the tables' versions have other names in it
        return answer(session, ask)
    if ask.strategy in data_dependent_strategies():
        counts = partial(count, session.source, _listed(batch), ledger.salt)
        return dependent.answer(session, ask, batch, public, keys, ledger, counts)
    whole = session.price(ask, batch)
    decision = admit(session, ledger, _decisions(session, ask, whole, ledger))
    cost, releases, strategy = NOTHING, decision.used, whole.plan.name
    if (purchase := decision.purchase) is not None:
        paid = charge(session, ledger, purchase)
        bought = sealed(lambda: release(session.source, ledger, purchase, paid), session.source)
        releases, cost, strategy = (*releases, bought), paid.cost, purchase.plan.name
    estimate = combine(releases, batch, public, inference=ask.inference, nonnegative=ask.nonnegative)
    contributors = contributing(releases, estimate)
    if ask.integer:
        estimate = estimate.rounded()
    return frame(
        batch.workload,
        keys,
        estimate,
        ask.confidence,
        compute=compute,
        paid=total(r.cost for r in contributors),
        cost=cost,
        strategy=strategy,
        histogram=partial(cell_frame, releases, batch, inference=ask.inference, nonnegative=ask.nonnegative),
    )


def explain(session: Session, ask: Ask) -> Plan:
    """Say what ``answer`` would do and how exact it would be. Reads no private row and spends nothing."""
    return replace(_explain(session, ask), account=session.access.account)


def _explain(session: Session, ask: Ask) -> Plan:
    if ask.discover:
        return discover.explain_missing(session, ask, _explain)
    batch = session.compile(ask)
    if not batch.tables:
        return free_plan(batch, ask.confidence)
    ledger = session.access.peek()
    if ask.strategy in data_dependent_strategies():
        return dependent.explain(session, ask, batch, ledger)
    whole = session.price(ask, batch)
    possible = _decisions(session, ask, whole, ledger)
    decision = next(d for d in possible if ledger is None or _can_afford(session, ledger, d))
    cost = NOTHING if decision.purchase is None else quote(session, ledger, decision.purchase)
    return predicted_plan(ask, whole, decision, cost, Pricer(session.pricer.store), session.access.rule)


def stored_releases(session: Session, ask: Ask, whole: Purchase, ledger: Ledger | None) -> StoredReleases:
    """What was released about the batch's tables, as far as the request lets it be used."""
    if ledger is None:
        return StoredReleases()
    releases = session.releases.about(ledger, whole.batch.scans)
    if ask.strategy is not None:  # whoever forces a strategy wants it measured so
        same = {r.charge_id for r in ledger.releases(whole.fingerprint)}
        releases = tuple(r for r in releases if r.charge in same)
    analyst = session.access.analyst
    if analyst is None:
        return StoredReleases(releases)
    read_before = ledger.read_by(analyst)
    free = [r.analyst == analyst or r.charge in read_before for r in releases]
    return StoredReleases(
        readable=tuple(r for r, is_free in zip(releases, free, strict=True) if is_free),
        others=tuple(r for r, is_free in zip(releases, free, strict=True) if not is_free),
    )


def _decisions(session: Session, ask: Ask, whole: Purchase, ledger: Ledger | None) -> Iterator[Decision]:
    """The ways to answer; one whose estimate would be refused is refused here, before a read or a charge is entered."""
    stored = stored_releases(session, ask, whole, ledger)
    for decision in decisions(ask, whole, stored, partial(session.price, ask)):
        asks_products = decision.purchase is not None and decision.purchase.asks_products
        if asks_products and not decision.determines(whole.batch):
            decision = Decision((), whole)  # what is stored leaves no room for what is bought: the batch by itself
            if not decision.determines(whole.batch):
                raise InternalError("the plan of this batch does not answer it; nothing was charged")
        decision.check_inference(whole.batch, ask.inference)
        yield decision


def admit(session: Session, ledger: Ledger, possible: Iterator[Decision]) -> Decision:
    """The first decision that the reader's own cap allows, with what it reads entered against that cap.

    The last decision reads nothing that others paid for, so there always is one.
    """
    return next(d for d in possible if _can_afford(session, ledger, d) and _enter_reads(session, ledger, d))


def _can_afford(session: Session, ledger: Ledger, decision: Decision) -> bool:
    access = session.access
    if not decision.read or access.analyst is None:
        return True
    request = None if decision.purchase is None else decision.purchase.request(access)
    return ledger.affords(access.analyst, access.analyst_cap, [r.charge for r in decision.read], request)


def _enter_reads(session: Session, ledger: Ledger, decision: Decision) -> bool:
    if decision.read:
        try:
            access, charges = session.access, [r.charge for r in decision.read]
            ledger.admit_read(charges, access.analyst, access.analyst_cap, access.right)
        except BudgetError:  # spent by another process since ``_can_afford`` looked
            return False
    return True


def quote(session: Session, ledger: Ledger | None, purchase: Purchase) -> Amount:
    """What ``charge`` would add to what was spent."""
    request = purchase.request(session.access)
    return session.access.first_cost(request) if ledger is None else ledger.quote(request)


def charge(session: Session, ledger: Ledger, purchase: Purchase) -> Charge:
    """Pay. Raises ``BudgetError`` with nothing written when a cap would be exceeded.

    What comes back may be an older charge that covers this one and was never released; then it costs nothing.

    Guarantee: what a ledger has added up speaks of one kind of neighbours, because it is bound to one policy, which the
    transaction of the charge compares with this connection's (``Ledger.under``). Column
    sets that the plan chose are rehearsed first, and so are scans of totals.
    """
    if purchase.asks_products:
        session.source.rehearse_all(purchase.scans)
    for scan in purchase.scans:
        if scan.totals:  # another statement than the one that was rehearsed with the batch
            session.source.rehearse(scan)
    paid = ledger.charge(purchase.request(session.access))
    session.access.charged(paid)
    return paid


def release(source: Source, ledger: Ledger, purchase: Purchase, paid: Charge) -> Release:
    """Count, draw and store, and return what was stored: from the exact counts to the release in one call.

    Guarantee: called sealed, so nothing of the exact counts outlives it, whatever goes wrong in it. What is returned
    was read back from the ledger.
    """
    drawn = draw(purchase, paid, count(source, purchase.scans, ledger.salt))
    payload = ledger.store(paid.id, *write(purchase.scans, drawn))
    return read(payload, Amount(paid.epsilon, paid.delta), paid.id)


def count(source: Source, scans: Sequence[Scan], salt: bytes) -> list[NDArray[Any]]:
    """The exact unit counts of every scan: the one read of private rows, in one pass over each table."""
    return list(source.count_all(scans, salt))


def _listed(batch: CompiledBatch) -> list[Scan]:
    """The scans of a batch whose cells are listed."""
    return [scan for scan in batch.scans if isinstance(scan, Scan)]


def draw(purchase: Purchase, paid: Charge, counts: Sequence[NDArray[Any]]) -> tuple[Measurement, ...]:
    """Measure with noise, as exactly as what was paid allows.

    Guarantee: that of ``engine.mechanism.measure`` at (``paid.epsilon``, ``paid.delta``).
    """
    return measure(purchase.plan, counts, paid.epsilon, paid.delta)
