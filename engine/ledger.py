"""The ledger: what was charged, to whom, what was released for it, and what is left.

Charge first, then read, then draw, then store, then return: a crash at any point can waste budget, never
leak.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

from tacit.errors import BudgetError, InternalError, LedgerError

from .amounts import NOTHING, Amount, exact_difference, to_amount
from .composition import Event, Rule, left, price, realised, rule_named
from .ledger_file import Entry, LedgerFile, append, check, create, entries, payload_digest, read_meta


@dataclass(frozen=True)
class Request:
    """A batch that wants to be paid."""

    fingerprint: str
    """Everything that tells this release from others: cells, rows, table versions, kind."""
    epsilon: Any
    delta: Any = 0
    analyst: str | None = None
    analyst_cap: Amount | None = None
    cap: Amount | None = None
    """A smaller cap than the ledger's own, if this connection was told one."""
    mechanism: str = "{}"
    """The mechanism as JSON, without data."""
    rho: Decimal | None = None
    """What it costs in zCDP (``JointPlan.rho``); a ledger with that rule needs it."""


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
    mechanism: str
    payload: bytes = field(repr=False)


class Ledger:
    """A budget that many processes spend together. Every method is one transaction."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        with file.transaction(write=False) as connection:
            meta, log = check(connection, file.path)
        self.salt = meta.salt
        """32 secret bytes that live as long as the ledger: they choose which rows of a unit count."""
        self._identity = meta.identity
        self._rule: Rule = rule_named(meta.rule)
        self._seen = log[-1].id, log[-1].digest

    @classmethod
    def create(cls, path: str | PathLike[str] | None, epsilon: Any, delta: Any = 0, *, rule: str = "sum") -> Ledger:
        """A new ledger with this cap, readable by its owner only; never overwrites. ``None``: in memory."""
        cap = to_amount(epsilon, delta)
        rule_named(rule).check(cap)
        return cls(create(None if path is None else Path(path), cap, rule))

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Ledger:
        """The ledger at ``path``; LedgerError if that is not a sound one."""
        return cls(LedgerFile(Path(path)))

    @classmethod
    def open_or_create(
        cls, path: str | PathLike[str] | None, epsilon: Any, delta: Any = 0, *, rule: str = "sum"
    ) -> Ledger:
        """The ledger at ``path`` with the cap and rule that it says itself, or a new one with these."""
        if path is None:
            return cls.create(None, epsilon, delta, rule=rule)
        if not Path(path).exists():
            try:
                return cls.create(path, epsilon, delta, rule=rule)
            except LedgerError:
                if not Path(path).exists():
                    raise
        return cls.open(path)

    @property
    def path(self) -> Path | None:
        return self._file.path

    @property
    def rule(self) -> str:
        """The name of the composition rule, fixed at creation."""
        return self._rule.name

    @property
    def cap(self) -> Amount:
        """The most that may ever be spent."""
        with self.transaction(write=False) as connection:
            return self._cap(connection)

    def spent(self, analyst: str | None = None) -> Amount:
        """What was charged in all, or charged to and read by one analyst."""
        with self.transaction(write=False) as connection:
            return self._rule.spent(self._events(connection, analyst), self._cap(connection))

    def left(self, analyst: str | None = None, cap: Amount | None = None) -> Amount:
        """What may still be spent, of the whole or of a smaller ``cap``; of an analyst's ``cap`` if named."""
        with self.transaction(write=False) as connection:
            whole = self._cap(connection)
            if analyst is None and cap is not None:
                whole = _smaller(whole, cap)
            rest = left(self._rule, self._events(connection, None), whole)
            if analyst is None or cap is None:
                return rest
            return _smaller(rest, left(self._rule, self._events(connection, analyst), cap))

    def realised(self, delta: float) -> float:
        """The ε at δ that all charges come to when composed tightly: for information, never to admit."""
        with self.transaction(write=False) as connection:
            events = self._events(connection, None)
        return realised(events, delta)

    def analysts(self) -> tuple[str, ...]:
        """Everyone who was ever charged or has read."""
        with self.transaction(write=False) as connection:
            names = connection.execute("SELECT DISTINCT analyst FROM entries WHERE analyst IS NOT NULL")
            return tuple(sorted(name for (name,) in names))

    def charge(self, request: Request) -> Charge:
        """Pay for one release, or raise BudgetError and write nothing.

        A charge of the same analyst for the same fingerprint that covers the request and was never
        released is handed back at no cost: a crash between charge and release is not paid twice. The
        transaction holds the write lock from reading the sum to writing the entry, so concurrent requests
        cannot both see the old sum.

        Guarantee: under the rule of ``composition``, everything ever released for charges of this ledger is
        together private at its cap.
        """
        event = Event(to_amount(request.epsilon, request.delta), request.rho)
        with self.transaction(write=True) as connection:
            unused = self._unused(connection, request, event)
            if unused is not None:
                return Charge(unused.id, NOTHING, *unused.amount)
            cost = self._admit(connection, request, event)
            entry = append(
                connection,
                self.path,
                "charge",
                event.amount,
                rho=event.rho,
                analyst=request.analyst,
                fingerprint=request.fingerprint,
                detail=request.mechanism,
            )
        return Charge(entry.id, cost, *event.amount)

    def quote(self, request: Request) -> Amount:
        """What ``charge`` would add to what was spent, were it to be admitted. Writes nothing."""
        event = Event(to_amount(request.epsilon, request.delta), request.rho)
        with self.transaction(write=False) as connection:
            if self._unused(connection, request, event) is not None:
                return NOTHING
            whole = self._cap(connection)
            if request.cap is not None:
                whole = _smaller(whole, request.cap)
            return price(self._rule, self._events(connection, None), [event], whole)

    def store(self, charge_id: int, payload: bytes, subjects: Sequence[str] = ()) -> bytes:
        """Keep the release of a charge, and return what is kept: the first one stored wins.

        ``subjects`` are the names under which ``releases_about`` finds it again.

        Guarantee. An unused charge may be handed to two processes (one crashed, or only slow), and both
        may draw noise for it. Two draws seen together would be worth more than the one that was paid for.
        So a draw becomes visible only as the return value of this function; the first to arrive stores its
        draw in a transaction that excludes the others, and whoever comes later is given that one and drops
        its own. One charge never yields two visible releases. If this raises, the draw must not be shown,
        and the charge stays unused.
        """
        with self.transaction(write=True) as connection:
            found = connection.execute("SELECT payload FROM releases WHERE charge = ?", (charge_id,)).fetchone()
            if found is not None:
                return bytes(found[0])
            charges = entries(connection, self.path, "WHERE id = ? AND kind = 'charge'", charge_id)
            if not charges:
                raise InternalError("a release needs a charge of this ledger")
            append(
                connection,
                self.path,
                "release",
                analyst=charges[0].analyst,
                fingerprint=charges[0].fingerprint,
                detail=payload_digest(payload),
                refers=charge_id,
            )
            connection.execute("INSERT INTO releases VALUES (?, ?)", (charge_id, payload))
            named = [(subject, charge_id) for subject in dict.fromkeys(subjects)]
            connection.executemany("INSERT INTO subjects VALUES (?, ?)", named)
        return payload

    def releases(self, fingerprint: str) -> tuple[StoredRelease, ...]:
        """Everything that was released for this fingerprint, oldest first."""
        return self._released("WHERE fingerprint = ? AND kind = 'charge'", fingerprint)

    def releases_about(self, subject: str, known: Collection[int] = ()) -> tuple[StoredRelease, ...]:
        """Everything that was released about a subject, oldest first, but for the charges that are ``known``."""
        return self._released(
            "WHERE kind = 'charge' AND id IN (SELECT charge FROM subjects WHERE subject = ?"
            " AND charge NOT IN (SELECT value FROM json_each(?)))",
            subject,
            json.dumps(list(known)),
        )

    def _released(self, where: str, *values: str) -> tuple[StoredRelease, ...]:
        with self.transaction(write=False) as connection:
            found = []
            for charge in entries(connection, self.path, where, *values):
                row = connection.execute(
                    "SELECT r.payload, e.detail FROM releases r JOIN entries e ON e.refers = r.charge"
                    " AND e.kind = 'release' WHERE r.charge = ?",
                    (charge.id,),
                ).fetchone()
                if row is not None:
                    payload = bytes(row[0])
                    if payload_digest(payload) != row[1]:
                        raise LedgerError(f"a release in the ledger {self.path} is damaged")
                    found.append(StoredRelease(charge.id, *charge.amount, charge.analyst, charge.detail, payload))
        return tuple(found)

    def read_by(self, analyst: str) -> frozenset[int]:
        """The charges of others whose releases an analyst has read."""
        with self.transaction(write=False) as connection:
            found = entries(connection, self.path, "WHERE kind = 'read' AND analyst = ?", analyst)
        return frozenset(e.refers for e in found if e.refers is not None)

    def admit_read(
        self, charge_ids: int | Sequence[int], analyst: str | None, analyst_cap: Amount | None = None
    ) -> Amount:
        """Let an analyst read releases that others paid for; returns what that counts against their own cap.

        The whole budget is not touched: the release exists. But what one analyst knows is bounded by their
        own cap only if reading counts like paying. Each release counts once.
        """
        if analyst is None:
            return NOTHING
        ids = [charge_ids] if isinstance(charge_ids, int) else list(dict.fromkeys(charge_ids))
        with self.transaction(write=True) as connection:
            charges = [e for i in ids for e in entries(connection, self.path, "WHERE id = ? AND kind = 'charge'", i)]
            if len(charges) != len(ids):
                raise InternalError("only releases of this ledger can be read")
            read = {e.refers for e in entries(connection, self.path, "WHERE kind = 'read' AND analyst = ?", analyst)}
            new = [e for e in charges if e.analyst != analyst and e.id not in read]
            events = [Event(e.amount, e.rho) for e in new]
            cap = self._cap(connection) if analyst_cap is None else analyst_cap
            known = self._events(connection, analyst)
            asked = price(self._rule, known, events, cap)
            if analyst_cap is not None:
                _refuse_unless_it_fits(asked, left(self._rule, known, cap), f"the budget of {analyst!r}")
            for e in new:
                append(
                    connection,
                    self.path,
                    "read",
                    e.amount,
                    rho=e.rho,
                    analyst=analyst,
                    fingerprint=e.fingerprint,
                    refers=e.id,
                )
        return asked

    def affords(
        self, analyst: str, cap: Amount | None, charge_ids: Sequence[int], request: Request | None = None
    ) -> bool:
        """Whether an analyst's cap admits reading these releases and then paying for ``request``."""
        with self.transaction(write=False) as connection:
            charges = [e for i in charge_ids for e in entries(connection, self.path, "WHERE id = ?", i)]
            events = [Event(e.amount, e.rho) for e in charges]
            if request is not None:
                events.append(Event(to_amount(request.epsilon, request.delta), request.rho))
            own = self._cap(connection) if cap is None else cap
            known = self._events(connection, analyst)
            cost, rest = price(self._rule, known, events, own), left(self._rule, known, own)
        return cost.epsilon <= rest.epsilon and cost.delta <= rest.delta

    def entries(self) -> tuple[Entry, ...]:
        """The whole log, oldest first."""
        with self.transaction(write=False) as connection:
            return tuple(entries(connection, self.path))

    def close(self) -> None:
        """Ends a ledger in memory; a file needs no closing."""
        self._file.close()

    def _admit(self, connection: sqlite3.Connection, request: Request, event: Event) -> Amount:
        whole = self._cap(connection)
        if request.cap is not None:
            whole = _smaller(whole, request.cap)
        spent = self._events(connection, None)
        cost = price(self._rule, spent, [event], whole)
        _refuse_unless_it_fits(cost, left(self._rule, spent, whole), "the budget")
        if request.analyst is not None and request.analyst_cap is not None:
            own = self._events(connection, request.analyst)
            _refuse_unless_it_fits(
                price(self._rule, own, [event], request.analyst_cap),
                left(self._rule, own, request.analyst_cap),
                f"the budget of {request.analyst!r}",
            )
        return cost

    def _unused(self, connection: sqlite3.Connection, request: Request, event: Event) -> Entry | None:
        candidates = entries(
            connection,
            self.path,
            "WHERE fingerprint = ? AND kind = 'charge' AND analyst IS ? AND id NOT IN (SELECT charge FROM releases)",
            request.fingerprint,
            request.analyst,
        )
        return next((entry for entry in candidates if _covers(entry, event)), None)

    def _cap(self, connection: sqlite3.Connection) -> Amount:
        return entries(connection, self.path, "WHERE kind = 'cap'")[-1].amount

    def _events(self, connection: sqlite3.Connection, analyst: str | None) -> list[Event]:
        if analyst is None:
            found = connection.execute("SELECT epsilon, delta, rho FROM entries WHERE kind = 'charge'")
        else:
            found = connection.execute(
                "SELECT epsilon, delta, rho FROM entries WHERE kind IN ('charge', 'read') AND analyst = ?", (analyst,)
            )
        return [Event(Amount(Decimal(e), Decimal(d)), None if rho is None else Decimal(rho)) for e, d, rho in found]

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """For this package: the ledger's tables, known to be still those that were opened."""
        with self._file.transaction(write=write) as connection:
            self._recognise(connection)
            yield connection
            last = connection.execute("SELECT id, digest FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        self._seen = last  # only once it is on disk

    def _recognise(self, connection: sqlite3.Connection) -> None:
        """The file must still be the ledger that was opened, and must still hold what was seen in it."""
        number, digest = self._seen
        kept = connection.execute("SELECT digest FROM entries WHERE id = ?", (number,)).fetchone()
        if kept != (digest,) or read_meta(connection, self.path).identity != self._identity:
            raise LedgerError(f"the ledger {self.path} was replaced by another or older one while in use")


def verify(path: str | PathLike[str]) -> int:
    """The number of entries of a sound ledger; LedgerError if schema, pages, chain or releases are not."""
    file = LedgerFile(Path(path))
    with file.transaction(write=False) as connection:
        _, log = check(connection, file.path)
    return len(log)


def _smaller(a: Amount, b: Amount) -> Amount:
    return Amount(min(a.epsilon, b.epsilon), min(a.delta, b.delta))


def _covers(entry: Entry, event: Event) -> bool:
    return (
        event.amount.epsilon <= entry.amount.epsilon
        and event.amount.delta <= entry.amount.delta
        and (entry.rho is None or (event.rho is not None and event.rho <= entry.rho))
    )


def _refuse_unless_it_fits(asked: Amount, rest: Amount, whose: str) -> None:
    if asked.epsilon <= rest.epsilon and asked.delta <= rest.delta:
        return
    name = "epsilon" if asked.epsilon > rest.epsilon else "delta"
    wanted, remaining = getattr(asked, name), getattr(rest, name)
    missing = exact_difference(wanted, remaining)
    raise BudgetError(
        f"this costs {name} {wanted:f}, and {whose} has {remaining:f} left: {missing:f} is missing;"
        " nothing was charged",
        asked=asked,
        left=rest,
    )
