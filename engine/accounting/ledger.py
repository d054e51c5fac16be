"""The ledger: what was charged, to whom, what was released for it, and what is left.

Charge first, then read, then draw, then store, then return: a crash at any point can waste budget, never
leak.
"""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

from tacit.engine.accounting.amounts import NOTHING, Amount, exact_difference, to_amount
from tacit.engine.accounting.composition import Event, Rule, Total, left, price, realised, rule_named
from tacit.engine.accounting.description import NOTHING_RECORDED
from tacit.engine.accounting.file import LedgerFile, create
from tacit.engine.accounting.log import (
    Entry,
    analyst_names,
    append,
    damaged,
    entries,
    entry_at,
    own_total,
    payload_digest,
    read_meta,
    standing_now,
    upgrade,
)
from tacit.engine.accounting.records import Balances, Charge, ChargeRequest, StoredRelease
from tacit.engine.accounting.terms import Terms, check_units
from tacit.engine.accounting.verify import check, open_check
from tacit.errors import BudgetError, InternalError, LedgerError

__all__ = ["Balances", "Charge", "ChargeRequest", "Entry", "Ledger", "StoredRelease", "Terms", "verify"]


class Ledger:
    """A budget that many processes spend together. Every method is one transaction."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        with file.transaction(write=False) as connection:
            meta, last = open_check(connection, file.path)
        self.salt = meta.salt
        """32 secret bytes that live as long as the ledger: they choose which rows of a unit count."""
        self._identity = meta.identity
        self._rule: Rule = rule_named(meta.rule)
        self._seen = last.id, last.digest
        self._terms: Terms | None = None
        self._accepted = 0
        self._versions: tuple[int, dict[str, str]] = (0, {})

    @classmethod
    def create(
        cls,
        path: str | PathLike[str] | None,
        epsilon: Any,
        delta: Any = 0,
        *,
        rule: str = "sum",
        policy: str | None = None,
        salt: bytes | None = None,
    ) -> Ledger:
        """A new ledger with this cap, readable by its owner only; never overwrites. ``None``: in memory.

        ``policy`` is the text of the ``Terms`` that it is begun under. ``salt`` is 32 random bytes of the caller's.
        """
        cap = to_amount(epsilon, delta)
        rule_named(rule).check(cap)
        return cls(create(None if path is None else Path(path), cap, rule, policy, salt))

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Ledger:
        """The ledger at ``path``; LedgerError if that is not a sound one."""
        return cls(LedgerFile(Path(path)))

    @classmethod
    def open_or_create(
        cls,
        path: str | PathLike[str],
        epsilon: Any,
        delta: Any = 0,
        *,
        rule: str = "sum",
        policy: str | None = None,
        salt: bytes | None = None,
    ) -> Ledger:
        """The ledger at ``path`` with the cap, rule and policy that it says itself, or a new one with these."""
        if not Path(path).exists():
            try:
                return cls.create(path, epsilon, delta, rule=rule, policy=policy, salt=salt)
            except LedgerError:
                if not Path(path).exists():
                    raise
        return cls.open(path)

    def under(self, terms: Terms | None) -> Self:
        """The same ledger for a connection that states these terms; ``None`` is the curator's own view.

        Guarantee: every transaction of it, the charge's own among them, first compares the terms with those on record,
        and LedgerError is raised where they do not agree. No interleaving of processes lets a charge pass under a
        policy that is not the ledger's. A ledger that has none yet is bound to the terms by the first charge.
        """
        mine = copy.copy(self)
        mine._terms, mine._accepted = terms, 0
        return mine

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

    @property
    def policy(self) -> str | None:
        """The policy on record, as the text of its ``Terms``; ``None`` if the ledger is bound to none yet."""
        with self.transaction(write=False) as connection:
            number = standing_now(connection, self.path).policy
            return entry_at(connection, self.path, number, "policy").detail if number else None

    def balances(self) -> Balances:
        """Caps and sums, of the whole and of everyone, at one moment."""
        with self.transaction(write=False) as connection:
            whole = standing_now(connection, self.path).charged
            analysts = {name: own_total(connection, self.path, name) for name in analyst_names(connection)}
            return Balances(self._cap(connection), self._rule, whole, analysts)

    def spent(self, analyst: str | None = None) -> Amount:
        """What was charged in all, or charged to and read by one analyst."""
        with self.transaction(write=False) as connection:
            return self._rule.spent(self._total(connection, analyst), self._cap(connection))

    def left(self, analyst: str | None = None, cap: Amount | None = None) -> Amount:
        """What may still be spent, of the whole or of a smaller ``cap``; of an analyst's ``cap`` if named."""
        with self.transaction(write=False) as connection:
            whole = self._cap(connection)
            if analyst is None and cap is not None:
                whole = _smaller(whole, cap)
            rest = left(self._rule, self._total(connection, None), whole)
            if analyst is None or cap is None:
                return rest
            return _smaller(rest, left(self._rule, self._total(connection, analyst), cap))

    def realised(self, delta: float) -> float:
        """The ε at δ that all charges come to when composed tightly: for information, never to admit.

        The one figure that needs the whole log.
        """
        with self.transaction(write=False) as connection:
            events = [Event(e.amount, e.rho) for e in entries(connection, self.path, "WHERE kind = 'charge'")]
        return realised(events, delta)

    def analysts(self) -> tuple[str, ...]:
        """Everyone who was ever charged or has read."""
        with self.transaction(write=False) as connection:
            return tuple(analyst_names(connection))

    def versions(self) -> dict[str, str]:
        """The version of every table of which one was declared, by the name it was declared for; the latest last."""
        with self.transaction(write=False) as connection:
            last = standing_now(connection, self.path).version
            seen, found = self._versions
            if last != seen:
                new = entries(connection, self.path, "WHERE kind = 'version' AND id > ?", seen)
                if not new or new[-1].id != last:
                    raise damaged(self.path)
                latest = {entry.fingerprint: entry.detail for entry in sorted(new, key=lambda entry: entry.id)}
                older = {name: version for name, version in found.items() if name not in latest}
                self._versions = last, older | latest
        return dict(self._versions[1])

    def charge(self, request: ChargeRequest) -> Charge:
        """Pay for one release, or raise BudgetError and write nothing.

        A charge of the same analyst for the same fingerprint that covers the request and was never
        released is handed back at no cost: a crash between charge and release is not paid twice. The
        transaction holds the write lock from reading the sum to writing the entry, so concurrent requests
        cannot both see the old sum.

        Guarantee: under the rule of ``composition``, everything ever released for charges of this ledger is
        together private at its cap, for neighbours of the one kind that its policy names.
        """
        event = Event(to_amount(request.epsilon, request.delta), request.rho)
        with self.transaction(write=True) as connection:
            self._bind(connection)
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
                detail=NOTHING_RECORDED if request.mechanism is None else request.mechanism.text,
            )
        return Charge(entry.id, cost, *event.amount)

    def quote(self, request: ChargeRequest) -> Amount:
        """What ``charge`` would add to what was spent, were it to be admitted. Writes nothing."""
        event = Event(to_amount(request.epsilon, request.delta), request.rho)
        with self.transaction(write=False) as connection:
            if self._unused(connection, request, event) is not None:
                return NOTHING
            whole = self._cap(connection)
            if request.cap is not None:
                whole = _smaller(whole, request.cap)
            return price(self._rule, self._total(connection, None), [event], whole)

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
            stored = self._payload(connection, charge_id)
            if stored is not None:
                return stored
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
                payload = self._payload(connection, charge.id)
                if payload is not None:
                    found.append(StoredRelease(charge.id, *charge.amount, charge.analyst, payload))
        return tuple(found)

    def _payload(self, connection: sqlite3.Connection, charge_id: int) -> bytes | None:
        """The release of a charge, if it has one. Payload and entry must both be there, and agree."""
        rows = connection.execute("SELECT payload FROM releases WHERE charge = ?", (charge_id,)).fetchall()
        said = entries(connection, self.path, "WHERE refers = ? AND kind = 'release'", charge_id)
        if not rows and not said:
            return None
        if len(rows) != 1 or len(said) != 1 or not isinstance(rows[0][0], bytes):
            raise damaged(self.path)
        if said[0].refers != charge_id or payload_digest(rows[0][0]) != said[0].detail:
            raise damaged(self.path)
        return rows[0][0]

    def read_by(self, analyst: str, among: Collection[int] | None = None) -> frozenset[int]:
        """The charges of others whose releases an analyst has read; of all charges, or ``among`` some of them."""
        where = "WHERE kind = 'read' AND analyst = ?"
        with self.transaction(write=False) as connection:
            if among is None:
                found = entries(connection, self.path, where, analyst)
            else:
                each = [entries(connection, self.path, f"{where} AND refers = ?", analyst, i) for i in among]
                found = [entry for listed in each for entry in listed]
        return frozenset(e.refers for e in found if e.refers is not None and e.analyst == analyst)

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
            read = "WHERE kind = 'read' AND analyst = ? AND refers = ?"
            others = [e for e in charges if e.analyst != analyst]
            new = [e for e in others if not entries(connection, self.path, read, analyst, e.id)]
            events = [Event(e.amount, e.rho) for e in new]
            cap = self._cap(connection) if analyst_cap is None else analyst_cap
            known = self._total(connection, analyst)
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
        self, analyst: str, cap: Amount | None, charge_ids: Sequence[int], request: ChargeRequest | None = None
    ) -> bool:
        """Whether an analyst's cap admits reading these releases and then paying for ``request``."""
        with self.transaction(write=False) as connection:
            charges = [e for i in charge_ids for e in entries(connection, self.path, "WHERE id = ?", i)]
            events = [Event(e.amount, e.rho) for e in charges]
            if request is not None:
                events.append(Event(to_amount(request.epsilon, request.delta), request.rho))
            own = self._cap(connection) if cap is None else cap
            known = self._total(connection, analyst)
            cost, rest = price(self._rule, known, events, own), left(self._rule, known, own)
        return cost.epsilon <= rest.epsilon and cost.delta <= rest.delta

    def entries(self) -> tuple[Entry, ...]:
        """The whole log, oldest first."""
        with self.transaction(write=False) as connection:
            return tuple(entries(connection, self.path))

    def close(self) -> None:
        """Ends a ledger in memory; a file needs no closing."""
        self._file.close()

    def _admit(self, connection: sqlite3.Connection, request: ChargeRequest, event: Event) -> Amount:
        whole = self._cap(connection)
        if request.cap is not None:
            whole = _smaller(whole, request.cap)
        spent = self._total(connection, None)
        cost = price(self._rule, spent, [event], whole)
        _refuse_unless_it_fits(cost, left(self._rule, spent, whole), "the budget")
        if request.analyst is not None and request.analyst_cap is not None:
            own = self._total(connection, request.analyst)
            _refuse_unless_it_fits(
                price(self._rule, own, [event], request.analyst_cap),
                left(self._rule, own, request.analyst_cap),
                f"the budget of {request.analyst!r}",
            )
        return cost

    def _unused(self, connection: sqlite3.Connection, request: ChargeRequest, event: Event) -> Entry | None:
        candidates = entries(
            connection,
            self.path,
            "INDEXED BY entries_by_fingerprint WHERE fingerprint = ? AND kind = 'charge' AND analyst IS ?"
            " AND NOT EXISTS (SELECT 1 FROM releases WHERE charge = entries.id)",
            request.fingerprint,
            request.analyst,
        )
        # What an index says is compared with the entry, which has a digest and the index has none.
        fitting = (e for e in candidates if e.fingerprint == request.fingerprint and _covers(e, event))
        return next((e for e in fitting if self._payload(connection, e.id) is None), None)

    def _bind(self, connection: sqlite3.Connection) -> None:
        """Write the connection's terms into a ledger that has none: one that was begun before they were kept."""
        if self._terms is None or standing_now(connection, self.path).policy:
            return
        if not self._terms.may_begin:
            raise LedgerError(
                "the ledger has no policy on record yet, and an analyst's connection without policy= cannot set it\n"
                "hint: connect with the curator's policy, or let the curator set it with tacit.ledger.change_policy"
            )
        check_units(entries(connection, self.path, "WHERE kind = 'charge'"), self._terms)
        append(connection, self.path, "policy", detail=self._terms.text)

    def _cap(self, connection: sqlite3.Connection) -> Amount:
        return entry_at(connection, self.path, standing_now(connection, self.path).cap, "cap").amount

    def _total(self, connection: sqlite3.Connection, analyst: str | None) -> Total:
        if analyst is None:
            return standing_now(connection, self.path).charged
        return own_total(connection, self.path, analyst)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """For this package: the ledger's tables, known to be still those that were opened."""
        with self._file.transaction(write=write) as connection:
            self._recognise(connection)
            if write:
                upgrade(connection, self.path)
            self._check_terms(connection)
            yield connection
            last = connection.execute("SELECT id, digest FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        self._seen = last  # only once it is on disk

    def _recognise(self, connection: sqlite3.Connection) -> None:
        """The file must still be the ledger that was opened, and must still hold what was seen in it."""
        number, digest = self._seen
        kept = connection.execute("SELECT digest FROM entries WHERE id = ?", (number,)).fetchone()
        if kept != (digest,) or read_meta(connection, self.path).identity != self._identity:
            raise LedgerError(f"the ledger {self.path} was replaced by another or older one while in use")

    def _check_terms(self, connection: sqlite3.Connection) -> None:
        if self._terms is None:
            return
        number = standing_now(connection, self.path).policy
        if number and number != self._accepted:
            if not self._terms.accepts(entry_at(connection, self.path, number, "policy").detail):
                raise LedgerError(
                    "the ledger is bound to another policy than this connection's\n"
                    "hint: connect again with the policy on record, or let the curator change it with "
                    "tacit.ledger.change_policy"
                )
            self._accepted = number


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
