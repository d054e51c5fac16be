"""What a batch still has to buy, given what is known; and which stored releases its answer may use.

A function of the batch, the policy and the ledger alone: no private row is read and nothing is charged here, except
that reading what another analyst paid for is entered against the reader's own cap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Amount, Estimate
from tacit.engine.accounting.amounts import NOTHING
from tacit.engine.accounting.ledger import Ledger
from tacit.engine.mechanism.plan import unmeasured
from tacit.sql.refine import grid_of

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
_STEPS = 12
_ALONE = 8
"""So many of the cheapest releases of others are each tried by themselves."""


@dataclass(frozen=True)
class Purchase:
    """What has to be measured: the batch, or the rows of it that are not known well enough."""

    compiled: Compiled
    priced: Priced

    def at(self, epsilon: Decimal) -> Purchase:
        """The same rows by the same plan for another ε."""
        return replace(self, priced=replace(self.priced, epsilon=epsilon))

    @property
    def outlook(self) -> Release:
        """The release that the purchase will be, without its values: what is needed to predict errors."""
        priced = self.priced
        grids = tuple(grid_of(scan) for scan in self.compiled.scans)
        return Release(priced.cost, unmeasured(priced.plan, priced.epsilon, priced.delta), grids)


@dataclass(frozen=True)
class Decision:
    """How a batch will be answered."""

    used: tuple[Release, ...]
    """Stored releases that the answer is combined from."""
    purchase: Purchase | None
    """None when those are good enough."""
    read: tuple[Release, ...] = ()
    """Those of ``used`` that others paid for and that the reader has not read before: they count against its cap."""

    def predicted(self, compiled: Compiled) -> Estimate:
        """What the answer's errors will be: the very code that combines releases, over values that are all zero."""
        bought = () if self.purchase is None else (self.purchase.outlook,)
        return combine((*self.used, *bought), compiled)


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
        # One release by itself is worth reading only if it is enough.
        shared = _shared(desk, ask, full, mine, (*mine, *choice), enough=choice is not theirs)
        if shared is not None and _worth_reading(shared, mine, own.purchase, ledger, purse, dry=dry):
            return replace(shared, read=tuple(r for r in shared.used if r not in mine))
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
    if _is_enough(ask, full, releases, known):
        return Decision(releases, None)
    missing = _missing if ask.error is None else _missing_for_error
    return Decision(releases, missing(desk, ask, full, releases, known))


def _shared(
    desk: Desk, ask: Ask, full: Purchase, mine: tuple[Release, ...], stored: tuple[Release, ...], *, enough: bool
) -> Decision | None:
    """With the releases of others too, but only those that tell something about this batch.

    With ``enough``, ``None`` where something would still have to be bought.
    """
    known = combine(stored, full.compiled, partial=True)
    useful = {*mine, *contributing(stored, known)}
    if enough and not _is_enough(ask, full, stored, known):
        return None
    return _option(desk, ask, full, tuple(r for r in stored if r in useful))


def _is_enough(ask: Ask, full: Purchase, releases: Sequence[Release], known: Estimate) -> bool:
    """Whether what is known is as exact as what was asked for."""
    compiled, priced = full.compiled, full.priced
    measured = _measured(compiled)
    if not np.isfinite(known.stderr[measured]).all():
        return False
    if ask.error is not None:
        return not _too_wide(ask, compiled, known).any()
    scale = _scale(compiled)
    error = float((scale * known.stderr**2)[measured].sum())
    target = float((scale * priced.plan.stderr(priced.epsilon, priced.delta) ** 2)[measured].sum())
    paid = total(r.cost for r in contributing(releases, known))
    as_much = paid.epsilon >= priced.cost.epsilon and paid.delta >= priced.cost.delta
    return error <= target * _ROUNDING or (as_much and error <= target * _AS_GOOD)


def _missing(desk: Desk, ask: Ask, full: Purchase, releases: Sequence[Release], known: Estimate) -> Purchase:
    """The rows whose error is larger than what ε would buy, at the smallest ε that makes the whole batch as good.

    The error of a batch is the sum of squared errors that strategies minimise. Combining only ever makes it smaller
    than the bound that is used here: each row from what is known, or from what is bought.
    """
    del releases
    compiled, priced = full.compiled, full.priced
    measured = _measured(compiled)
    scale = _scale(compiled)
    have = scale * known.stderr**2
    wanted = scale * priced.plan.stderr(priced.epsilon, priced.delta) ** 2
    target = float(wanted[measured].sum())
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


def _missing_for_error(desk: Desk, ask: Ask, full: Purchase, releases: Sequence[Release], known: Estimate) -> Purchase:
    """The rows that are not within ±error, at the smallest ε that together with what is known brings them there."""
    compiled = full.compiled
    lacking = _too_wide(ask, compiled, known)
    rest = full
    if (lacking != _measured(compiled)).any():
        left = compiled.only(lacking)
        rest = Purchase(left, price(desk, ask, left))

    def excess(epsilon: Decimal) -> float:
        together = combine((*releases, rest.at(epsilon).outlook), compiled, partial=True)
        return float(_widths(ask, together)[linear_rows(compiled)].max(initial=0.0)) / float(ask.noise_width or 1)

    return rest.at(_least_within(rest.priced.epsilon, excess))


def _too_wide(ask: Ask, compiled: Compiled, known: Estimate) -> NDArray[np.bool_]:
    """The rows to measure that are not within ±error."""
    assert ask.noise_width is not None
    asked = np.zeros(compiled.rows, dtype=np.bool_)
    asked[linear_rows(compiled)] = True
    unknown = ~np.isfinite(known.stderr)
    return _measured(compiled) & (_widths(ask, known) > ask.noise_width * _ROUNDING) & (asked | unknown)


def _widths(ask: Ask, known: Estimate) -> NDArray[np.float64]:
    return np.where(np.isfinite(known.stderr), known.half_width(ask.confidence), np.inf)


def _least_within(epsilon: Decimal, excess: Callable[[Decimal], float]) -> Decimal:
    """The smallest ε whose ``excess`` is at most one, three digits long and rounded up; at most the given one.

    No width falls faster than 1/ε, so ε · excess is enough whenever ε is. Those steps only come near; the line
    through the last two of them, on logarithmic scales, gives the next guess.
    """
    enough, short = epsilon, Decimal(0)
    reached, guess = excess(enough), Decimal(0)
    for _ in range(_STEPS):
        safe = _rounded(float(enough) * reached)
        trial = guess if short < guess < safe else safe
        if not max(short, _SMALLEST) < trial < enough:
            break
        found = excess(trial)
        slope = math.log(found / reached) / math.log(float(trial / enough)) if found > reached else -1.0
        guess = _rounded(float(trial) * found ** (-1 / min(slope, -0.05)) * 1.002)
        if found > _ROUNDING:
            short = trial
        elif float(enough / trial) < 1.002:
            enough = trial
            break
        else:
            enough, reached = trial, found
    return enough if enough < epsilon * Decimal(_WORTH_IT) else epsilon


def _rounded(epsilon: float) -> Decimal:
    """Three digits, rounded up."""
    return Decimal(f"{_SHORT.create_decimal(epsilon).normalize():f}")


def _least(epsilon: Decimal, reaches: Callable[[Decimal], bool]) -> Decimal:
    """The smallest ε that reaches, three digits long and rounded up; the given one if that is hardly more."""
    if epsilon <= _SMALLEST:
        return epsilon
    low, high = -7.0, 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(_SHORT.create_decimal(float(epsilon) * np.exp(middle))) else (middle, high)
    plain = _rounded(float(epsilon) * np.exp(high))
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
