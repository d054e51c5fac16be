"""The entries of a ledger: each one chained to the one before, and each with the standing of the ledger after it.

A standing holds the sums of what was charged, of the whole and of the entry's analyst, and which entries state the cap,
the policy and the last version. The digest of the entry covers it. So a sum is read from one entry, however long the
log is, and it is as well protected as the log itself. ``verify`` adds all of it up again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tacit.engine.accounting.amounts import Amount
from tacit.engine.accounting.composition import Event, Total

_NO_CHARGE = Total()


@dataclass(frozen=True)
class Standing:
    """The state of a ledger after an entry. A number is that of the last entry of its kind; 0 if there is none."""

    cap: int = 0
    policy: int = 0
    version: int = 0
    charged: Total = _NO_CHARGE
    analyst: Total | None = None
    """What was charged to, and read by, the analyst of the entry that carries this."""

    def after(self, number: int, kind: str, event: Event, analyst: Total | None) -> Standing:
        """With one more entry; ``analyst`` is the total of its analyst before it."""
        return Standing(
            cap=number if kind == "cap" else self.cap,
            policy=number if kind == "policy" else self.policy,
            version=number if kind == "version" else self.version,
            charged=self.charged.plus([event]) if kind == "charge" else self.charged,
            analyst=analyst.plus([event]) if analyst is not None and kind in ("charge", "read") else analyst,
        )

    @property
    def text(self) -> str:
        """As an entry stores it."""
        return json.dumps([self.cap, self.policy, self.version, _listed(self.charged), _listed(self.analyst)])

    @classmethod
    def read(cls, text: str) -> Standing:
        """The standing with this text."""
        cap, policy, version, charged, analyst = json.loads(text)
        return cls(cap, policy, version, _total(charged), None if analyst is None else _total(analyst))


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. Entries are only ever added."""

    id: int
    kind: str
    """``cap``; ``policy``; ``charge``; ``release`` of a charge; ``read`` by an analyst of another's release; the
    curator's ``version`` of a table and ``backup``; ``balance``, the standing of a ledger that had none before."""
    analyst: str | None
    amount: Amount
    rho: Decimal | None
    fingerprint: str
    detail: str
    """The mechanism of a charge, as JSON; the digest of a release's payload; the version of a table; the policy."""
    refers: int | None
    at: str
    digest: str
    standing: str = ""
    """The ``Standing`` after this entry, as text; empty in entries that tacit 0.1.0 wrote."""

    @property
    def event(self) -> Event:
        """What the entry counts for."""
        return Event.of(self.amount, self.rho, self.fingerprint)

    def follows(self, previous: str) -> str:
        """The digest that this entry must have after ``previous``."""
        content = [
            self.id,
            self.kind,
            self.analyst,
            str(self.amount.epsilon),
            str(self.amount.delta),
            None if self.rho is None else str(self.rho),
            self.fingerprint,
            self.detail,
            self.refers,
            self.at,
        ]
        if self.standing:
            content.append(self.standing)
        return hashlib.sha256((previous + json.dumps(content)).encode()).hexdigest()


@dataclass(frozen=True)
class Meta:
    """What is fixed at creation."""

    identity: str
    rule: str
    salt: bytes

    @property
    def root(self) -> str:
        """Where the chain of digests starts."""
        return hashlib.sha256(f"{self.identity} {self.rule} {self.salt.hex()}".encode()).hexdigest()


def payload_digest(payload: bytes) -> str:
    """What a release's entry says about its payload."""
    return hashlib.sha256(payload).hexdigest()


def running(entries: Iterable[Entry]) -> Iterator[tuple[Entry, Standing]]:
    """Every entry with the standing after it, added up from the first."""
    standing, analysts = Standing(), dict[str, Total]()
    for entry in entries:
        before = None if entry.analyst is None else analysts.get(entry.analyst, Total())
        standing = standing.after(entry.id, entry.kind, entry.event, before)
        if entry.analyst is not None and standing.analyst is not None:
            analysts[entry.analyst] = standing.analyst
        yield entry, standing


def _listed(total: Total | None) -> list[str | int] | None:
    if total is None:
        return None
    listed: list[str | int] = [str(total.epsilon), str(total.delta), str(total.rho), total.events, total.without_rho]
    # Without failures as earlier versions wrote it. With them, those refuse the ledger: they would not count them.
    return [*listed, str(total.failure)] if total.failure else listed


def _total(listed: list[Any]) -> Total:
    epsilon, delta, rho, events, without_rho, failure = listed if len(listed) == 6 else [*listed, 0]
    return Total(Decimal(epsilon), Decimal(delta), Decimal(rho), int(events), int(without_rho), Decimal(failure))
