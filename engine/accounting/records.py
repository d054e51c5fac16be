"""Requests to a ledger, and what it returns: charges, stored releases, balances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tacit.engine.accounting.amounts import Amount, to_amount
from tacit.engine.accounting.composition import Balance, Event, Rule, Total
from tacit.engine.accounting.description import MechanismRecord

Right = Callable[[], Amount | None]
"""Asked inside the transaction that charges or enters a read: raises where the right to it has ended meanwhile, and
gives one more cap on the analyst, if there is one. It must not write to the ledger."""


@dataclass(frozen=True)
class ChargeRequest:
    """The price of one release, and who pays it."""

    fingerprint: str
    """Everything that distinguishes this release from others: cells, rows, table versions, kind."""
    epsilon: Any
    delta: Any = 0
    analyst: str | None = None
    analyst_cap: Amount | None = None
    cap: Amount | None = None
    """A smaller cap than the ledger's, if this connection states one."""
    mechanism: MechanismRecord | None = None
    rho: Decimal | None = None
    """What it costs in zCDP (``JointPlan.rho``); a ledger with that rule needs it."""
    right: Right | None = None
    pending: int | None = None
    """A charge that was made for the same request and never released: no other one is made in its place."""

    @property
    def event(self) -> Event:
        """The charge, as the rules see it; PrivacyParameterError if its amount is none."""
        return Event.of(to_amount(self.epsilon, self.delta), self.rho, self.fingerprint)


@dataclass(frozen=True)
class Charge:
    """A paid right to one release."""

    id: int
    cost: Amount
    """What this request added to the ledger: nothing, if an unused charge was handed back."""
    epsilon: Decimal
    delta: Decimal


@dataclass(frozen=True)
class StoredRelease:
    """A release that can be read again at no cost."""

    charge_id: int
    epsilon: Decimal
    delta: Decimal
    analyst: str | None
    payload: bytes = field(repr=False)


@dataclass(frozen=True)
class Balances:
    """The whole ledger at one moment."""

    cap: Amount
    rule: Rule
    whole: Total
    analysts: Mapping[str, Total]
    """Of everyone who was ever charged or has read."""

    def spent(self, analyst: str | None = None) -> Amount:
        """What was charged in all, or charged to and read by one analyst."""
        return Balance(self.rule, self.cap, self._total(analyst)).spent

    def left(self, cap: Amount, analyst: str | None = None) -> Amount:
        """What a cap leaves of it."""
        return Balance(self.rule, cap, self._total(analyst)).left

    def _total(self, analyst: str | None) -> Total:
        return self.whole if analyst is None else self.analysts.get(analyst, Total())
