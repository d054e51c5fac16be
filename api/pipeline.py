"""The way of a batch, as the design draws it.

Everything before ``charge`` is a function of the batch, the policy and the ledger alone. Everything after it is
sealed: whatever goes wrong there is one constant sentence, because an error that depends on a row would be a
release that nobody paid for.
"""

from __future__ import annotations

from tacit.engine import Amount, pack, unpack
from tacit.engine.amounts import NOTHING

from .answers import Answers, frame, key_frames
from .plan import Plan, predict
from .steps import (
    Ask,
    Desk,
    Release,
    charge,
    combine,
    compile_ask,
    count,
    draw,
    good_enough,
    past_releases,
    price,
    read_public,
    total,
)


def answer(desk: Desk, ask: Ask) -> Answers:
    """Answer a batch as one joint release: charge first, then read, then draw, then store, then return.

    Guarantee: what this call releases satisfies (ε, δ)-differential privacy for neighbours that differ in one
    privacy unit, at the cost charged before the first row was read (``engine.mechanism.measure``). Combining
    with earlier releases and framing are post-processing. A crash between any two steps can waste the charge;
    it can show nothing that was not charged.
    """
    compiled = compile_ask(desk, ask)
    public = read_public(desk.source, compiled)
    keys = key_frames(compiled.workload.queries)  # what can fail must fail before the charge
    if not compiled.blocks:  # no private row is touched, so nothing is charged
        return frame(compiled.workload, keys, combine((), compiled, public), ask.confidence)
    priced = price(desk, ask, compiled)
    ledger = desk.purse.open()
    cost, releases = NOTHING, past_releases(ledger, priced, ask, compiled, desk.purse)
    if not good_enough(releases, priced, ask, compiled):
        paid = charge(ledger, priced, desk.purse)
        counts = count(desk.source, compiled, ledger.salt)
        drawn = draw(priced, paid, counts)
        kept = ledger.store(paid.id, pack(drawn))
        cost, releases = paid.cost, (*releases, Release(Amount(paid.epsilon, paid.delta), unpack(kept)))
    estimate = combine(releases, compiled, public, nonnegative=ask.nonnegative)
    return frame(
        compiled.workload,
        keys,
        estimate,
        ask.confidence,
        paid=total(r.cost for r in releases),
        cost=cost,
        strategy=priced.plan.name,
    )


def explain(desk: Desk, ask: Ask) -> Plan:
    """Say what ``answer`` would do and how exact it would be. Reads no private row and spends nothing."""
    compiled = compile_ask(desk, ask)
    if not compiled.blocks:
        return predict(compiled, None, NOTHING, ask.confidence)
    priced = price(desk, ask, compiled)
    ledger = desk.purse.peek()
    releases = () if ledger is None else past_releases(ledger, priced, ask, compiled, desk.purse, dry=True)
    free = good_enough(releases, priced, ask, compiled)
    return predict(compiled, priced, NOTHING if free else priced.cost, ask.confidence)
