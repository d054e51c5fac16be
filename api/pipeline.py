"""The way of a batch, as the design draws it.

Everything before ``charge`` is a function of the batch, the policy and the ledger alone. Everything after it is
sealed: whatever goes wrong there is one constant sentence, because an error that depends on a row would be a
release that nobody paid for.
"""

from __future__ import annotations

from functools import partial

from tacit.engine.accounting.amounts import NOTHING
from tacit.sql.present import rehearse

from .answers import Answers, frame, key_frames
from .decide import decide
from .evidence import cell_frame, contributing
from .plan import Plan, free, predict
from .steps import (
    Ask,
    Desk,
    charge,
    combine,
    compile_ask,
    price,
    quote,
    read_public,
    release,
    total,
)


def answer(desk: Desk, ask: Ask) -> Answers:
    """Answer a batch as one joint release: charge first, then read, then draw, then store, then return.

    Guarantee: what this call releases satisfies (ε, δ)-differential privacy for neighbours that differ in one
    privacy unit, at the cost charged before the first row was read (``engine.mechanism.measure``). Combining
    with earlier releases and framing are post-processing. A crash between any two steps can waste the charge;
    it can show nothing that was not charged.
    """
    key = desk.purse.key
    compiled = compile_ask(desk, ask)
    public = read_public(desk.source, compiled)
    keys = key_frames(compiled.workload.queries)  # what can fail must fail before the charge
    for query, own in zip(compiled.workload.queries, keys, strict=True):
        rehearse(query, own)
    if not compiled.blocks:  # no private row is touched, so nothing is charged
        known = combine((), compiled, public)
        return frame(compiled.workload, keys, known, ask.confidence, histogram=partial(cell_frame, (), compiled))
    ledger = desk.purse.open()
    if ledger.salt != key:  # another process began the ledger meanwhile: the tables' versions have other names in it
        return answer(desk, ask)
    decision = decide(desk, ask, compiled, ledger)
    cost, releases, strategy = NOTHING, decision.used, price(desk, ask, compiled).plan.name
    if decision.purchase is not None:
        rest, priced = decision.purchase.compiled, decision.purchase.priced
        paid = charge(ledger, priced, desk.purse)
        releases = (*releases, release(desk.source, rest, priced, paid, ledger))
        cost, strategy = paid.cost, priced.plan.name
    estimate = combine(releases, compiled, public, nonnegative=ask.nonnegative)
    told = contributing(releases, estimate)
    if ask.integer:
        estimate = estimate.rounded()
    return frame(
        compiled.workload,
        keys,
        estimate,
        ask.confidence,
        paid=total(r.cost for r in told),
        cost=cost,
        strategy=strategy,
        histogram=partial(cell_frame, releases, compiled, nonnegative=ask.nonnegative),
    )


def explain(desk: Desk, ask: Ask) -> Plan:
    """Say what ``answer`` would do and how exact it would be. Reads no private row and spends nothing."""
    compiled = compile_ask(desk, ask)
    if not compiled.blocks:
        return free(compiled, ask.confidence)
    ledger = desk.purse.peek()
    decision = decide(desk, ask, compiled, ledger, dry=True)
    purchase = decision.purchase
    cost = NOTHING if purchase is None else quote(ledger, purchase.priced, desk.purse)
    return predict(ask, compiled, price(desk, ask, compiled), decision, cost)
