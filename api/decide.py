"""What a batch still has to buy, given what is known; and which stored releases its answer may use.

A function of the batch, the policy and the ledger alone: no private row is read and nothing is charged here, except
that reading what another analyst paid for is entered against the reader's own cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Amount, Estimate
from tacit.engine.amounts import NOTHING
from tacit.engine.ledger import Ledger

from .budget import Purse
from .compiled import Ask, Compiled
from .errors import BudgetError
from .evidence import Release, combine, contributing, stored_about
from .steps import Desk, Priced, linear_rows, price, request, total

_SHORT = Context(prec=3, rounding=ROUND_CEILING)
_ROUNDING = 1 + 1e-9
_AS_GOOD = 1.1
"""A release that cost as much is as good although its strategy, found for the queries in another order, is not the
very same: within this factor of the squared error it is not bought again."""
_WORTH_IT = 0.99
_SMALLEST = Decimal("1e-9")
_ALONE = 8
"""So many of the cheapest releases of others are each tried by themselves."""


@dataclass(frozen=True)
class Purchase:
    """What has to be measured: the batch, or the rows of it that are not known well enough."""

    compiled: Compiled
    priced: Priced


@dataclass(frozen=True)
class Decision:
    """How a batch will be answered."""

    used: tuple[Release, ...]
    """Stored releases that the answer is combined from."""
    purchase: Purchase | None
    """None when those are good enough."""


def decide(desk: Desk, ask: Ask, compiled: Compiled, ledger: Ledger | None, *, dry: bool = False) -> Decision:
    """Use what was released, buy what is missing; a ``dry`` look writes nothing.

    Reading what another analyst paid for counts against the reader's own cap. So it is done only where it costs the
    reader no more than buying would.
    """
    full = Purchase(compiled, price(desk, ask, compiled))
    if ledger is None:
        return Decision((), full)
    stored = stored_about(ledger, compiled, desk.kept)
    if ask.strategy is not None:  # whoever forces a strategy wants it measured so
        same = {r.charge_id for r in ledger.releases(full.priced.fingerprint)}
        stored = tuple(r for r in stored if r.charge in same)
    purse = desk.purse
    if purse.analyst is None:
        return _option(desk, ask, full, stored)
    read = ledger.read_by(purse.analyst)
    mine = tuple(r for r in stored if r.analyst == purse.analyst or r.charge in read)
    known = set(mine)
    own = _option(desk, ask, full, mine)
    if own.purchase is None or len(mine) == len(stored) or ask.refresh:
        return own
    theirs = tuple(sorted((r for r in stored if r not in known), key=lambda r: r.cost))
    for choice in (*((r,) for r in theirs[:_ALONE]), theirs):
        shared = _shared(desk, ask, full, mine, (*mine, *choice))
        if shared.purchase is not None and choice is not theirs:
            continue  # one release by itself is worth reading only if it is enough
        if _worth_reading(shared, mine, own.purchase, ledger, purse, dry=dry):
            return shared
    return own


def _worth_reading(
    shared: Decision, mine: Sequence[Release], own: Purchase, ledger: Ledger, purse: Purse, *, dry: bool
) -> bool:
    """Whether the reader pays no more than for buying, and can; if so, and not ``dry``, the reading is entered."""
    known = set(mine)
    others = [r for r in shared.used if r not in known]
    rest = NOTHING if shared.purchase is None else shared.purchase.priced.cost
    if not others or not _fits(total([*(r.cost for r in others), rest]), own.priced.cost):
        return False
    charges = [r.charge for r in others]
    wanted = None if shared.purchase is None else request(shared.purchase.priced, purse)
    assert purse.analyst is not None
    if not ledger.affords(purse.analyst, purse.analyst_cap, charges, wanted):
        return False
    return dry or _admitted(ledger, purse, charges)


def _option(desk: Desk, ask: Ask, full: Purchase, releases: tuple[Release, ...]) -> Decision:
    """The cheapest way to an answer as good as what was asked for, given these releases."""
    if not releases or ask.refresh:
        return Decision(releases, full)
    known = combine(releases, full.compiled, partial=True)
    if ask.error is not None:
        return Decision(releases, _missing_for_error(desk, ask, full, releases, known))
    return Decision(releases, _missing(desk, ask, full, releases, known))


def _shared(desk: Desk, ask: Ask, full: Purchase, mine: tuple[Release, ...], stored: tuple[Release, ...]) -> Decision:
    """With the releases of others too, but only those that tell something about this batch."""
    known = combine(stored, full.compiled, partial=True)
    useful = {*mine, *contributing(stored, known)}
    return _option(desk, ask, full, tuple(r for r in stored if r in useful))


def _missing(desk: Desk, ask: Ask, full: Purchase, releases: Sequence[Release], known: Estimate) -> Purchase | None:
    """The rows whose error is larger than what ε would buy, at the smallest ε that makes the whole batch as good.

    The error of a batch is the sum of squared errors that strategies minimise. Combining only ever makes it smaller
    than the bound that is used here: each row from what is known, or from what is bought.
    """
    compiled, priced = full.compiled, full.priced
    measured = _measured(compiled)
    scale = _scale(compiled)
    have = scale * known.stderr**2
    wanted = scale * priced.plan.stderr(priced.epsilon, priced.delta) ** 2
    target = float(wanted[measured].sum())
    if np.isfinite(have[measured]).all():
        error = float(have[measured].sum())
        paid = total(r.cost for r in contributing(releases, known))
        as_much = paid.epsilon >= priced.cost.epsilon and paid.delta >= priced.cost.delta
        if error <= target * _ROUNDING or (as_much and error <= target * _AS_GOOD):
            return None
    lacking = measured & (have > wanted * _ROUNDING)
    if lacking.all() or not lacking.any() or (lacking == measured).all():
        return full
    rest = compiled.only(lacking)
    part = price(desk, ask, rest)

    def reaches(epsilon: Decimal) -> bool:
        bought = scale * part.plan.stderr(epsilon, part.delta) ** 2
        bound = np.where(lacking, np.minimum(have, np.where(bought > 0, bought, np.inf)), have)
        return float(bound[measured].sum()) <= target * _ROUNDING

    if not reaches(part.epsilon):  # a search that went wrong on the rest: the plan of the whole is good enough
        return full
    return Purchase(rest, replace(part, epsilon=_least(part.epsilon, reaches)))


def _missing_for_error(
    desk: Desk, ask: Ask, full: Purchase, releases: Sequence[Release], known: Estimate
) -> Purchase | None:
    """The rows that are not within ±error, at the smallest ε that brings them there."""
    assert ask.error is not None
    compiled = full.compiled
    asked = np.zeros(compiled.rows, dtype=np.bool_)
    asked[linear_rows(compiled)] = True
    width = np.where(np.isfinite(known.stderr), known.half_width(ask.confidence), np.inf)
    lacking = _measured(compiled) & (width > ask.error * _ROUNDING) & (asked | ~np.isfinite(known.stderr))
    if not lacking.any():
        return None
    if (lacking == _measured(compiled)).all():
        return full
    rest = compiled.only(lacking)
    return Purchase(rest, price(desk, ask, rest))


def _least(epsilon: Decimal, reaches: object) -> Decimal:
    """The smallest ε that reaches, three digits long and rounded up; the given one if that is hardly more."""
    assert callable(reaches)
    if epsilon <= _SMALLEST:
        return epsilon
    low, high = -7.0, 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(_SHORT.create_decimal(float(epsilon) * np.exp(middle))) else (middle, high)
    found = _SHORT.create_decimal(float(epsilon) * np.exp(high))
    plain = Decimal(f"{found.normalize():f}")
    return plain if plain < epsilon * Decimal(_WORTH_IT) and reaches(plain) else epsilon


def _measured(compiled: Compiled) -> NDArray[np.bool_]:
    rows = np.zeros(compiled.rows, dtype=np.bool_)
    for block in compiled.blocks:
        rows[block.rows] = True
    return rows


def _scale(compiled: Compiled) -> NDArray[np.float64]:
    """What a squared error counts: one over the row's largest entry squared, times its weight."""
    scale = np.zeros(compiled.rows)
    for block in compiled.blocks:
        scale[block.rows] = 1 / np.abs(block.matrix).max(axis=1) ** 2
    return scale if compiled.weights is None else scale * compiled.weights


def _fits(amount: Amount, limit: Amount) -> bool:
    return amount.epsilon <= limit.epsilon and amount.delta <= limit.delta


def _admitted(ledger: Ledger, purse: Purse, charges: Sequence[int]) -> bool:
    try:
        ledger.admit_read(charges, purse.analyst, purse.analyst_cap)
    except BudgetError:
        return False
    return True
