"""What a batch still has to buy, given what was released before, and which releases its answer uses.

Pure functions of the batch, the request and the stored releases: no row is read, nothing is charged, nothing is
written. ``pipeline`` carries the decision out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
from numpy.typing import NDArray
from tacit.engine import Amount, Estimate
from tacit.engine.inference.estimate import Inference

from .combine import check_size, combine, contributing
from .compiled_batch import CompiledBatch
from .pricing import Purchase
from .releases import Release, StoredReleases, total
from .request import Ask

Price = Callable[[CompiledBatch], Purchase]
"""What measuring the rows of a batch costs, for the request at hand."""

_THREE_DIGITS = Context(prec=3, rounding=ROUND_CEILING)
_ROUNDING = 1 + 1e-9
_AS_GOOD = 1.1
"""A release that cost as much counts as good enough within this factor of the batch's error: its strategy was found for
the queries in another order, and may differ a little from the one that would be bought."""
_WORTH_IT = 0.99
"""A smaller ε is used only if it saves at least one percent."""
_SMALLEST_EPSILON = Decimal("1e-9")
_STEPS = 12
_SINGLES = 8
"""So many of the cheapest releases of others are each tried by themselves."""


@dataclass(frozen=True)
class Decision:
    """How a batch will be answered."""

    used: tuple[Release, ...]
    """Stored releases that the answer is combined from."""
    purchase: Purchase | None
    """What has to be measured: the batch, or some rows of it; ``None`` when the stored releases are good enough."""
    read: tuple[Release, ...] = ()
    """Those of ``used`` that others paid for and that the reader has not read before: they count against its cap."""

    def predicted(self, batch: CompiledBatch, inference: Inference = "least squares") -> Estimate:
        """What the answer's errors will be, from the code that combines releases, over values that are all zero."""
        return combine(self._releases, batch, inference=inference)

    def determines(self, batch: CompiledBatch) -> bool:
        """Whether the answer follows from what is used and bought: else nothing may be charged for it."""
        estimate = combine(self._releases, batch, partial=True)
        return bool(np.isfinite(estimate.stderr).all())

    def check_inference(self, batch: CompiledBatch, inference: Inference) -> None:
        """Refuse, before anything is charged, an inference that is not for so much."""
        if inference == "likelihood":
            check_size(self._releases, batch)

    @property
    def _releases(self) -> tuple[Release, ...]:
        """All that the answer will be combined from, with zeros for the values of what is not bought yet."""
        return (*self.used, *(() if self.purchase is None else (self.purchase.predicted(),)))


def decisions(ask: Ask, whole: Purchase, stored: StoredReleases, price: Price) -> Iterator[Decision]:
    """The ways to answer, the one to prefer first; the last one reads nothing that others paid for.

    Reading what another analyst paid for counts against the reader's own cap. So it is proposed only where it costs the
    reader no more than buying would. ``whole`` is the whole batch bought anew.
    """
    alone = _decide(ask, whole, stored.readable, (), price)
    assert alone is not None
    if alone.purchase is not None and stored.others and not ask.refresh:
        others = tuple(sorted(stored.others, key=lambda release: release.cost))
        choices: list[tuple[tuple[Release, ...], Price | None]] = [((one,), None) for one in others[:_SINGLES]]
        for choice, rest in [*choices, (others, price)]:  # one release by itself is worth reading only if it is enough
            shared = _decide(ask, whole, stored.readable, choice, rest)
            if shared is not None and shared.read and _fits(_reader_pays(shared), alone.purchase.cost):
                yield shared
    yield alone


def _decide(
    ask: Ask, whole: Purchase, readable: tuple[Release, ...], others: tuple[Release, ...], price: Price | None
) -> Decision | None:
    """The cheapest way to an answer as good as what was asked for, given these releases.

    Of ``others`` only those are read that an answer depends on. Without a ``price``, ``None`` where something would
    still have to be bought.
    """
    releases = (*readable, *others)
    if not releases or ask.refresh:
        decision = Decision(releases, whole)
        return decision if _is_within(ask, whole.batch, decision.predicted(whole.batch)) else Decision((), whole)
    estimate = combine(releases, whole.batch, partial=True)
    contributors = contributing(releases, estimate)
    useful = set(contributors)
    read = tuple(release for release in others if release in useful)
    used = (*readable, *read)
    if _is_enough(ask, whole, contributors, estimate):
        return Decision(used, None, read)
    for release in contributors[-_SINGLES:] if ask.error is not None and estimate.is_coarse else ():
        if not _too_wide(ask, whole.batch, combine((release,), whole.batch, partial=True)).any():
            return Decision((release,), None, (release,) if release in others else ())
    if price is None:
        return None
    if ask.error is None:
        return Decision(used, _lacking(whole, estimate, price), read)
    decision = Decision(used, _lacking_for_error(ask, whole, used, estimate, price), read)
    return decision if _is_within(ask, whole.batch, decision.predicted(whole.batch)) else Decision((), whole)


def _reader_pays(decision: Decision) -> Amount:
    """What a decision counts against the reader's own cap: what is read and what is bought."""
    return total([*(r.cost for r in decision.read), *([] if decision.purchase is None else [decision.purchase.cost])])


def _fits(amount: Amount, limit: Amount) -> bool:
    return amount.epsilon <= limit.epsilon and amount.delta <= limit.delta


def _is_enough(ask: Ask, whole: Purchase, contributors: Sequence[Release], estimate: Estimate) -> bool:
    """Whether the stored releases are as exact as what was asked for."""
    batch = whole.batch
    rows = batch.to_measure
    if not np.isfinite(estimate.stderr[rows]).all():
        return False
    if ask.error is not None:
        return not _too_wide(ask, batch, estimate).any()
    error = batch.measured(estimate.stderr)
    target = batch.measured(whole.plan.stderr(whole.epsilon, whole.delta))
    return error <= target * _ROUNDING or (
        _fits(whole.cost, total(r.cost for r in contributors)) and error <= target * _AS_GOOD
    )


def _lacking(whole: Purchase, estimate: Estimate, price: Price) -> Purchase:
    """The rows whose error is larger than what ε would buy, at the smallest ε that makes the whole batch as good.

    The error of a batch is what strategies minimise, such as the sum of squared errors. Combining only ever makes it
    smaller than the bound that is used here: each row from what is stored, or from what is bought.
    """
    batch, rows = whole.batch, whole.batch.to_measure
    stored, wanted = estimate.stderr, whole.plan.stderr(whole.epsilon, whole.delta)
    target = batch.measured(wanted)
    lacking = rows & (stored > wanted * _ROUNDING)
    if not lacking.any() or (lacking == rows).all():
        return whole
    rest = price(batch.only(lacking))

    def reaches(epsilon: Decimal) -> bool:
        bought = rest.plan.stderr(epsilon, rest.delta)
        bound = np.where(lacking, np.minimum(stored, np.where(bought > 0, bought, np.inf)), stored)
        return batch.measured(bound) <= target * _ROUNDING

    if not reaches(rest.epsilon):  # the search did worse on the rest than on the whole
        return whole
    return rest.at(least_that_reaches(rest.epsilon, reaches))


def _lacking_for_error(
    ask: Ask, whole: Purchase, used: Sequence[Release], estimate: Estimate, price: Price
) -> Purchase:
    """The rows that are not within ±error, at the smallest ε that together with what is stored brings them there."""
    batch = whole.batch
    promised, widths = batch.promised_rows, batch.noise_widths
    assert widths is not None
    lacking = _too_wide(ask, batch, estimate)
    part = batch.only(lacking)
    if not part.promised_rows.size:  # what is promised is there already: the rest is as exact as if all were new
        return whole
    rest = price(part) if (lacking != batch.to_measure).any() else whole

    def excess(epsilon: Decimal) -> float:
        together = combine((*used, rest.at(epsilon).predicted()), batch, partial=True)
        return float((_widths(ask, together)[promised] / widths[promised]).max(initial=0.0))

    return rest.at(_least_within(rest.epsilon, excess, jumps=rest.plan.is_coarse(rest.epsilon, rest.delta)))


def _is_within(ask: Ask, batch: CompiledBatch, estimate: Estimate) -> bool:
    """Whether an answer keeps what ``error=`` promises.

    Combining never makes a variance larger. But noise on integers is often exactly zero, and the mean of two such
    counts less often than one of them: its width may be larger, and then the better one of the two is the answer.
    """
    return ask.error is None or not estimate.is_coarse or not _too_wide(ask, batch, estimate).any()


def _too_wide(ask: Ask, batch: CompiledBatch, estimate: Estimate) -> NDArray[np.bool_]:
    """The rows to measure that are not within ±error."""
    assert batch.noise_widths is not None
    asked = np.zeros(batch.row_count, dtype=np.bool_)
    asked[batch.promised_rows] = True
    undetermined = ~np.isfinite(estimate.stderr)
    return batch.to_measure & ((_widths(ask, estimate) > batch.noise_widths * _ROUNDING) & asked | undetermined)


def _widths(ask: Ask, estimate: Estimate) -> NDArray[np.float64]:
    return np.where(np.isfinite(estimate.stderr), estimate.half_width(ask.confidence), np.inf)


def _least_within(epsilon: Decimal, excess: Callable[[Decimal], float], *, jumps: bool) -> Decimal:
    """The smallest ε whose ``excess`` is at most one, three digits long and rounded up; at most the given one.

    On a fine lattice no width falls faster than 1/ε, so ε · excess is enough there whenever ε is. Those steps only come
    near; the line through the last two of them, on logarithmic scales, gives the next guess. On a coarse lattice the
    width ``jumps``, and the middle comes next where neither is between what is enough and what is not.
    """
    enough, short = epsilon, Decimal(0)
    reached, guess = excess(enough), Decimal(0)
    for _ in range(_STEPS):
        safe = _rounded(float(enough) * reached)
        trial = guess if short < guess < safe else safe
        if jumps and not short < trial < enough:
            trial = _rounded(math.sqrt(max(float(short), float(enough) / 16) * float(enough)))
        if not max(short, _SMALLEST_EPSILON) < trial < enough:
            break
        width = excess(trial)
        slope = math.log(width / reached) / math.log(float(trial / enough)) if width > reached > 0 else -1.0
        guess = _rounded(float(trial) * width ** (-1 / min(slope, -0.05)) * 1.002)
        if width > _ROUNDING:
            short = trial
        elif float(enough / trial) < 1.002:
            enough = trial
            break
        else:
            enough, reached = trial, width
    return enough if enough < epsilon * Decimal(_WORTH_IT) else epsilon


def least_that_reaches(epsilon: Decimal, reaches: Callable[[Decimal], bool]) -> Decimal:
    """The smallest ε that reaches, three digits long and rounded up; the given one if that is hardly more."""
    if epsilon <= _SMALLEST_EPSILON:
        return epsilon
    low, high = -7.0, 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        trial = _THREE_DIGITS.create_decimal(float(epsilon) * np.exp(middle))
        low, high = (low, middle) if reaches(trial) else (middle, high)
    plain = _rounded(float(epsilon) * np.exp(high))
    return plain if plain < epsilon * Decimal(_WORTH_IT) and reaches(plain) else epsilon


def _rounded(epsilon: float) -> Decimal:
    """Three digits, rounded up."""
    return Decimal(f"{_THREE_DIGITS.create_decimal(epsilon).normalize():f}")
