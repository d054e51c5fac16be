"""How charges add up: the one rule that a ledger is created with, for as long as it exists.

Batches are chosen adaptively, each after the answers of those before, and so are their amounts. A rule must
therefore be a privacy filter: admit the next charge only while the total stays within the cap, and the whole
interaction is private at the cap. Both rules here are proven filters:

- ``sum``: Σε and Σδ (Rogers, Roth, Ullman & Vadhan 2016, the filter of basic composition).
- ``zcdp``: Σρ, against the largest ρ that (ε, δ) of the cap admits. A discrete Gaussian of σ on sensitivity Δ is
  Δ²/2σ²-zCDP (Canonne, Kamath & Steinke 2020), an ε-private mechanism is ε²/2-zCDP and ρ-zCDP is
  (ρ + 2√(ρ·ln 1/δ), δ)-private for every δ (Bun & Steinke 2016, Propositions 1.4 and 1.3), and adding up ρ
  is a filter (Feldman & Zrnic 2021; Whitehouse, Ramdas, Rogers & Wu 2023). A release that promises nothing with
  probability δ′ (keys that passed a threshold) is δ′-approximately ρ-zCDP: Σδ′ is taken off the cap's δ before ε is
  stated, and the sums are a filter together (Whitehouse et al., Theorem 1).

Stopping when the privacy-loss distribution of what was released reaches the cap is *not* a filter in general;
``realised`` computes that figure to inform, never to admit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import NamedTuple, Protocol

from tacit.engine.accounting.amounts import NOTHING, Amount, exact_difference, exact_sum
from tacit.errors import BudgetError, InternalError, LedgerError, PrivacyParameterError

# Forty digits rounded up: far more than a float has, and short enough to be stored as text.
_UP = Context(prec=40, rounding=ROUND_CEILING)


KEYS = "keys:"
"""What the fingerprint of a charge begins with that found keys by a threshold: its δ is one of failure."""


class Event(NamedTuple):
    """One charge, as the rules see it."""

    amount: Amount
    rho: Decimal | None = None
    failure: Decimal = Decimal(0)
    """The part of δ with which its ρ promises nothing; the δ of Gaussian noise is no such part."""

    @classmethod
    def of(cls, amount: Amount, rho: Decimal | None, fingerprint: str) -> Event:
        """The charge of a release with this fingerprint."""
        return cls(amount, rho, amount.delta if fingerprint.startswith(KEYS) else Decimal(0))

    def covers(self, other: Event) -> bool:
        """Whether a payment of this amount pays for the other, too."""
        return (
            other.amount.epsilon <= self.amount.epsilon
            and other.amount.delta <= self.amount.delta
            and (self.rho is None or (other.rho is not None and other.rho <= self.rho))
        )


class Total(NamedTuple):
    """What the rules need of any number of charges: exact sums."""

    epsilon: Decimal = Decimal(0)
    delta: Decimal = Decimal(0)
    rho: Decimal = Decimal(0)
    events: int = 0
    without_rho: int = 0
    """The number of charges that state no ρ; zCDP admits none of them."""
    failure: Decimal = Decimal(0)

    def plus(self, events: Iterable[Event]) -> Total:
        """These charges added, without rounding."""
        new = list(events)
        return Total(
            exact_sum([self.epsilon, *(e.amount.epsilon for e in new)]),
            exact_sum([self.delta, *(e.amount.delta for e in new)]),
            exact_sum([self.rho, *(e.rho for e in new if e.rho is not None)]),
            self.events + len(new),
            self.without_rho + sum(e.rho is None for e in new),
            exact_sum([self.failure, *(e.failure for e in new)]),
        )


class Rule(Protocol):
    """A privacy filter."""

    @property
    def name(self) -> str: ...

    def check(self, cap: Amount) -> None:
        """Raise PrivacyParameterError if the rule cannot work with this cap."""
        ...

    def spent(self, total: Total, cap: Amount) -> Amount:
        """What these charges cost together."""
        ...


class Sum:
    """Sums of ε and of δ."""

    name = "sum"

    def check(self, cap: Amount) -> None:
        """Every cap is accepted."""

    def spent(self, total: Total, cap: Amount) -> Amount:
        """Σε and Σδ, exactly."""
        return Amount(total.epsilon, total.delta)


class ZeroConcentrated:
    """Sums of ρ, stated as (ε, δ) at the δ of the cap."""

    name = "zcdp"

    def check(self, cap: Amount) -> None:
        """The conversion needs a δ."""
        if cap.delta <= 0:
            raise PrivacyParameterError("accounting by zCDP needs a budget with delta greater than 0")

    def spent(self, total: Total, cap: Amount) -> Amount:
        """ε(Σρ) at the cap's δ without that of failures, rounded up; the first charge spends the whole δ.

        Failures that leave nothing of the cap's δ cost more than it, so that no cap admits them.
        """
        self.check(cap)
        if not total.events:
            return NOTHING
        if total.without_rho:
            raise InternalError("a charge under zCDP must state its rho")
        rest = exact_difference(cap.delta, total.failure)
        log = _above(_UP.ln(_UP.divide(Decimal(1), rest if rest > 0 else cap.delta)))
        root = _above(_UP.sqrt(_UP.multiply(total.rho, log)))
        epsilon = _UP.add(total.rho, _UP.multiply(Decimal(2), root))
        return Amount(epsilon, cap.delta if rest > 0 else exact_sum([cap.delta, total.failure]))


_RULES: dict[str, Rule] = {rule.name: rule for rule in (Sum(), ZeroConcentrated())}


def rule_named(name: str) -> Rule:
    """The rule that a ledger's file names."""
    rule = _RULES.get(name)
    if rule is None:
        raise LedgerError(f"unknown composition rule; this version of tacit knows {', '.join(_RULES)}")
    return rule


@dataclass(frozen=True)
class Balance:
    """A cap, and the charges that count against it."""

    rule: Rule
    cap: Amount
    total: Total

    @property
    def spent(self) -> Amount:
        """What the charges cost together."""
        return self.rule.spent(self.total, self.cap)

    @property
    def left(self) -> Amount:
        """The cap less what was spent, never below zero."""
        spent = self.spent
        return Amount(
            max(exact_difference(self.cap.epsilon, spent.epsilon), Decimal(0)),
            max(exact_difference(self.cap.delta, spent.delta), Decimal(0)),
        )

    def price(self, new: Iterable[Event]) -> Amount:
        """What ``new`` would add to what was spent."""
        before, after = self.spent, self.rule.spent(self.total.plus(new), self.cap)
        return Amount(exact_difference(after.epsilon, before.epsilon), exact_difference(after.delta, before.delta))

    def admits(self, new: Iterable[Event]) -> bool:
        """Whether ``new`` fits into what is left."""
        return _fits(self.price(new), self.left)

    def admit(self, new: Iterable[Event], owner: str) -> Amount:
        """The price of ``new``; BudgetError, which says whose cap it is, if that does not fit into what is left."""
        asked, rest = self.price(new), self.left
        if _fits(asked, rest):
            return asked
        name = "epsilon" if asked.epsilon > rest.epsilon else "delta"
        wanted, remaining = getattr(asked, name), getattr(rest, name)
        missing = exact_difference(wanted, remaining)
        raise BudgetError(
            f"this costs {name} {wanted:f}, and {owner} has {remaining:f} left: {missing:f} is missing;"
            " nothing was charged",
            asked=asked,
            left=rest,
        )


def _fits(asked: Amount, rest: Amount) -> bool:
    return asked.epsilon <= rest.epsilon and asked.delta <= rest.delta


def rho_of_pure(epsilon: Decimal) -> Decimal:
    """ε²/2, rounded up (Bun & Steinke 2016, Proposition 1.4)."""
    return _UP.divide(_UP.multiply(epsilon, epsilon), 2)


def rho_of_gaussian_squared(squared: int, sigma: float) -> Decimal:
    """Δ²/2σ² for an integer Δ², rounded up."""
    rho = Fraction(squared) / (2 * Fraction(sigma) ** 2)
    return _UP.divide(Decimal(rho.numerator), Decimal(rho.denominator))


def rho_of_gaussian(parts: Sequence[tuple[int, float]]) -> Decimal:
    """Σ Δ²/2σ² over the parts (Δ, σ) of one joint release, rounded up."""
    total = sum((Fraction(delta) ** 2 / (2 * Fraction(sigma) ** 2) for delta, sigma in parts), Fraction(0))
    return _UP.divide(Decimal(total.numerator), Decimal(total.denominator))


def _above(value: Decimal) -> Decimal:
    """Past the half unit that ``ln`` and ``sqrt`` may have rounded down, whatever the context says."""
    return _UP.multiply(value, 1 + Decimal("1e-27"))


def realised(events: Sequence[Event], delta: float) -> float:
    """The ε at δ of everything released, by composing privacy-loss distributions. Informs; never admits."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    if not events:
        return 0.0
    total = None
    for event, count in Counter(events).items():
        if event.amount.delta > 0 and event.rho is not None and not event.failure:
            one = pld.from_gaussian_mechanism(1 / math.sqrt(2 * float(event.rho)))
        else:
            one = pld.from_privacy_parameters(
                common.DifferentialPrivacyParameters(float(event.amount.epsilon), float(event.amount.delta))
            )
        many = one.self_compose(count)
        total = many if total is None else total.compose(many)
    assert total is not None
    return float(total.get_epsilon_for_delta(delta))
