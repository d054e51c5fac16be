"""How charges add up: the one rule that a ledger is created with and keeps.

Guarantee ("sum"). The batches of a ledger are chosen adaptively, each after the answers of those before. A
filter that admits the next (ε_i, δ_i) only while Σε ≤ ε and Σδ ≤ δ keeps the whole interaction (ε,
δ)-private for the cap, even though the amounts themselves are chosen adaptively (Rogers, Roth, Ullman &
Vadhan 2016, Theorem 3.6). Exact decimals make the comparison exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tacit.errors import LedgerError

from .amounts import Amount, exact_difference, exact_sum


class Rule(Protocol):
    """A privacy filter."""

    @property
    def name(self) -> str: ...

    def spent(self, charges: Iterable[Amount]) -> Amount:
        """What these charges cost together."""
        ...

    def left(self, charges: Iterable[Amount], cap: Amount) -> Amount:
        """The largest single charge that would still be admitted in each of ε and δ."""
        ...


class Sum:
    """Sums of ε and of δ."""

    name = "sum"

    def spent(self, charges: Iterable[Amount]) -> Amount:
        amounts = list(charges)
        return Amount(exact_sum(a.epsilon for a in amounts), exact_sum(a.delta for a in amounts))

    def left(self, charges: Iterable[Amount], cap: Amount) -> Amount:
        spent = self.spent(charges)
        return Amount(
            max(exact_difference(cap.epsilon, spent.epsilon), cap.epsilon * 0),
            max(exact_difference(cap.delta, spent.delta), cap.delta * 0),
        )


_RULES: dict[str, Rule] = {"sum": Sum()}


def rule_named(name: str) -> Rule:
    """The rule that a ledger's file names."""
    rule = _RULES.get(name)
    if rule is None:
        raise LedgerError(
            f"this version of tacit does not know the ledger's composition rule; it knows {', '.join(_RULES)}"
        )
    return rule


def admits(left: Amount, asked: Amount) -> bool:
    """Whether a charge fits into what is left."""
    return asked.epsilon <= left.epsilon and asked.delta <= left.delta
