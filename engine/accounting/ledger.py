"""The ledger: what was charged, to whom, what was released for it, and what is left.

Charge first, then read, then draw, then store, then return: a crash at any point can waste budget, never
leak.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, Self

from tacit.engine.accounting.amounts import NOTHING, Amount, smaller, to_amount
from tacit.engine.accounting.composition import Balance, Rule, realised, rule_named
from tacit.engine.accounting.description import NOTHING_RECORDED, asks_the_same
from tacit.engine.accounting.entry import Entry
from tacit.engine.accounting.file import LedgerFile, create
from tacit.engine.accounting.log import Log
from tacit.engine.accounting.records import Balances, Charge, ChargeRequest, Right, StoredRelease
from tacit.engine.accounting.terms import Terms, check_units
from tacit.engine.accounting.verify import check, check_on_opening
from tacit.errors import InternalError, LedgerError, ProgrammingError

__all__ = ["Balances", "Charge", "ChargeRequest", "Entry", "Ledger", "StoredRelease", "Terms", "verify"]


class Ledger:
    """A budget that many processes spend together. Every method is one transaction."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        with file.transaction(write=False) as connection:
            meta, last = check_on_opening(Log(connection, file.path))
        self.salt = meta.salt
        """32 secret bytes that live as long as the ledger: they choose which rows of a unit count."""
        self._identity = meta.identity
        self._rule: Rule = rule_named(meta.rule)
        # Threads share what follows without a lock: each value is replaced as a whole, and an older one is right too.
        self._seen = last.id, last.digest
        self._terms: Terms | None = None
        self._accepted_policy = 0
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
        """A new ledger with this cap, for its owner only or for the group of a folder that says so; never overwrites.
        ``None``: in memory.

        ``policy`` is the text of the ``Terms`` that it begins with. ``salt`` is 32 random bytes, new ones by default.
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
        """The ledger at ``path`` with the cap, rule and policy on record in it, or a new one with these."""
        if not Path(path).exists():
            try:
                return cls.create(path, epsilon, delta, rule=rule, policy=policy, salt=salt)
            except LedgerError:
                if not Path(path).exists():
                    raise
        return cls.open(path)

    def under(self, terms: Terms | None) -> Self:
        """The same ledger for a connection that states these terms; ``None`` is the curator's view.

        Guarantee: every transaction of it, that of a charge among them, first compares the terms with those on record,
        and LedgerError is raised where they do not agree. No interleaving of processes lets a charge pass under a
        policy that is not the ledger's. A ledger that has none yet is bound to the terms by the first charge.
        """
        bound = object.__new__(type(self))
        vars(bound).update(vars(self))
        bound._terms, bound._accepted_policy = terms, 0
        return bound

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
        with self.transaction(write=False) as log:
            return log.cap()

    @property
    def policy(self) -> str | None:
        """The policy on record, as the text of its ``Terms``; ``None`` if the ledger is bound to none yet."""
        with self.transaction(write=False) as log:
            recorded = log.policy()
        return None if recorded is None else recorded.detail

    def balances(self) -> Balances:
        """Caps and sums, of the whole and of everyone, at one moment."""
        with self.transaction(write=False) as log:
            analysts = {name: log.total(name) for name in log.analysts()}
            return Balances(log.cap(), self._rule, log.total(None), analysts)

    def spent(self, analyst: str | None = None) -> Amount:
        """What was charged in all, or charged to and read by one analyst."""
        with self.transaction(write=False) as log:
            return self._balance(log, analyst).spent

    def left(self, analyst: str | None = None, cap: Amount | None = None) -> Amount:
        """What may still be spent, of the whole or of a smaller ``cap``; of an analyst's ``cap`` if named."""
        with self.transaction(write=False) as log:
            if analyst is None:
                return self._balance_of_whole(log, cap).left
            whole = self._balance(log).left
            return whole if cap is None else smaller(whole, self._balance(log, analyst, cap).left)

    def realised(self, delta: float) -> float:
        """The ε at δ that all charges come to when composed tightly: for information, never to admit.

        The one figure that needs the whole log.
        """
        with self.transaction(write=False) as log:
            events = [entry.event for entry in log.entries("WHERE kind = 'charge'")]
        return realised(events, delta)

    def analysts(self) -> tuple[str, ...]:
        """Everyone who was ever charged or has read."""
        with self.transaction(write=False) as log:
            return tuple(log.analysts())

    def versions(self) -> dict[str, str]:
        """The version of every table of which one was declared, by the name it was declared for; the latest last."""
        seen, versions = self._versions  # before the transaction: entries that another thread saw are then in it
        with self.transaction(write=False) as log:
            last = log.standing().version
            if last != seen:
                new = log.entries("WHERE kind = 'version' AND id > ?", seen)
                if not new or new[-1].id != last:
                    raise log.damaged
                # In their order even if the index over versions, which has no digest, is damaged.
                latest = {entry.fingerprint: entry.detail for entry in sorted(new, key=lambda entry: entry.id)}
                versions = {name: version for name, version in versions.items() if name not in latest} | latest
                self._versions = last, versions
        return dict(versions)

    def entries(self) -> tuple[Entry, ...]:
        """The whole log, oldest first."""
        with self.transaction(write=False) as log:
            return tuple(log.entries())

    def charge(self, request: ChargeRequest) -> Charge:
        """Pay for one release, or raise BudgetError and write nothing.

        A charge of the same analyst for the same fingerprint that covers the request and was never
        released is handed back at no cost: a crash between charge and release is not paid twice. The
        transaction holds the write lock from reading the sum to writing the entry, so concurrent requests
        cannot both see the old sum. A request that has such a charge ``pending`` gets that one or none.

        Guarantee: under the rule of ``composition``, everything ever released for charges of this ledger is
        together private at its cap, for neighbours of the one kind that its policy names.
        """
        event = request.event
        with self.transaction(write=True) as log:
            self._bind(log)
            limit = None if request.right is None else request.right()
            unused = self._unused(log, request)
            if unused is not None:
                return Charge(unused.id, NOTHING, *unused.amount)
            if request.pending is not None and log.payload(request.pending) is None:
                raise ProgrammingError(
                    "this request was charged before and never released, and since then the tables or what is released "
                    "of them have changed: answering it now would be charged again, and was not\n"
                    "hint: ask under a new request id; explain says what that costs"
                )
            cost = self._admit(log, request, limit)
            entry = log.append(
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
        event = request.event
        with self.transaction(write=False) as log:
            if self._unused(log, request) is not None:
                return NOTHING
            return self._balance_of_whole(log, request.cap).price([event])

    def store(self, charge_id: int, payload: bytes, subjects: Sequence[str] = ()) -> bytes:
        """Store the release of a charge, and return what is stored: the first one wins.

        ``subjects`` are the names under which ``releases_about`` finds it again.

        Guarantee. An unused charge may be handed to two processes (one crashed, or only slow), and both
        may draw noise for it. Two draws seen together would be worth more than the one that was paid for.
        So a draw becomes visible only as the return value of this function; the first to arrive stores its
        draw in a transaction that excludes the others, and whoever comes later is given that one and drops
        the other. One charge never yields two visible releases. If this raises, the draw must not be shown,
        and the charge stays unused.
        """
        with self.transaction(write=True) as log:
            stored = log.payload(charge_id)
            if stored is not None:
                return stored
            charges = log.entries("WHERE id = ? AND kind = 'charge'", charge_id)
            if not charges:
                raise InternalError("a release needs a charge of this ledger")
            log.append_release(charges[0], payload, subjects)
        return payload

    def releases(self, fingerprint: str) -> tuple[StoredRelease, ...]:
        """Everything that was released for this fingerprint, oldest first."""
        return self._released("WHERE fingerprint = ? AND kind = 'charge'", fingerprint)

    def releases_about(self, subject: str, without: Collection[int] = ()) -> tuple[StoredRelease, ...]:
        """Everything that was released about a subject, oldest first, except for the charges of ``without``."""
        return self._released(
            "WHERE kind = 'charge' AND id IN (SELECT charge FROM subjects WHERE subject = ?"
            " AND charge NOT IN (SELECT value FROM json_each(?)))",
            subject,
            json.dumps(list(without)),
        )

    def _released(self, where: str, *values: str) -> tuple[StoredRelease, ...]:
        with self.transaction(write=False) as log:
            pairs = [(charge, log.payload(charge.id)) for charge in log.entries(where, *values)]
        return tuple(
            StoredRelease(charge.id, *charge.amount, charge.analyst, payload)
            for charge, payload in pairs
            if payload is not None
        )

    def read_by(self, analyst: str) -> frozenset[int]:
        """The charges of others whose releases an analyst has read."""
        with self.transaction(write=False) as log:
            # Every read refers to a charge. This lets SQLite use the index over reads alone.
            reads = log.entries("WHERE kind = 'read' AND analyst = ? AND refers > 0", analyst)
        return frozenset(e.refers for e in reads if e.refers is not None and e.analyst == analyst)

    def admit_read(
        self,
        charge_ids: int | Sequence[int],
        analyst: str | None,
        analyst_cap: Amount | None = None,
        right: Right | None = None,
    ) -> Amount:
        """Let an analyst read releases that others paid for; returns what that counts against the analyst's cap.

        The whole budget is not touched: the release exists. But what one analyst knows is bounded by the
        analyst's cap only if reading counts like paying. Each release counts once.
        """
        if analyst is None:
            return NOTHING
        ids = [charge_ids] if isinstance(charge_ids, int) else list(dict.fromkeys(charge_ids))
        with self.transaction(write=True) as log:
            charges = [e for i in ids for e in log.entries("WHERE id = ? AND kind = 'charge'", i)]
            if len(charges) != len(ids):
                raise InternalError("only releases of this ledger can be read")
            read = "WHERE kind = 'read' AND analyst = ? AND refers = ?"
            new = [e for e in charges if e.analyst != analyst and not log.entries(read, analyst, e.id)]
            events = [entry.event for entry in new]
            limit = None if right is None else right()
            asked = self._balance(log, analyst).price(events)
            for cap in (limit, analyst_cap):
                if cap is not None:
                    asked = self._balance(log, analyst, cap).admit(events, f"the budget of {analyst!r}")
            for e in new:
                log.append("read", e.amount, rho=e.rho, analyst=analyst, fingerprint=e.fingerprint, refers=e.id)
        return asked

    def affords(
        self, analyst: str, cap: Amount | None, charge_ids: Sequence[int], request: ChargeRequest | None = None
    ) -> bool:
        """Whether an analyst's cap admits reading these releases and then paying for ``request``, and the whole too."""
        with self.transaction(write=False) as log:
            events = [e.event for i in charge_ids for e in log.entries("WHERE id = ?", i)]
            if request is not None and self._unused(log, request) is None:
                if not self._balance_of_whole(log, request.cap).admits([request.event]):
                    return False
                events.append(request.event)
            return self._balance(log, analyst, cap).admits(events)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ledger cannot be pickled or copied: its salt is secret")

    def close(self) -> None:
        """Ends a ledger in memory; a file needs no closing."""
        self._file.close()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Log]:
        """For this package: the log, after a check that the file is still the ledger that was opened."""
        with self._file.transaction(write=write) as connection:
            log = Log(connection, self.path)
            self._recognise(log)
            if write:
                log.upgrade()
            self._check_terms(log)
            yield log
            last = connection.execute("SELECT id, digest FROM entries ORDER BY id DESC LIMIT 1").fetchone()
        self._seen = max(self._seen, last)  # only once it is on disk

    def _recognise(self, log: Log) -> None:
        """The file must still be the ledger that was opened, and must still hold what was seen in it."""
        number, digest = self._seen  # before the first SELECT: what another thread has seen is then in this view
        stored = log.connection.execute("SELECT digest FROM entries WHERE id = ?", (number,)).fetchone()
        if stored != (digest,) or log.meta().identity != self._identity:
            raise LedgerError(f"the ledger {self.path} was replaced by another or older one while in use")

    def _check_terms(self, log: Log) -> None:
        if self._terms is None:
            return
        number = log.standing().policy
        if number and number != self._accepted_policy:
            if not self._terms.accepts(log.entry(number, "policy").detail):
                raise LedgerError(
                    "the ledger is bound to another policy than this connection's\n"
                    "hint: connect again with the policy on record, or let the curator change it with "
                    "tacit.ledger.change_policy"
                )
            self._accepted_policy = number

    def _bind(self, log: Log) -> None:
        """Write the connection's terms into a ledger that has none: tacit 0.1.0 did not record them."""
        if self._terms is None or log.standing().policy:
            return
        if not self._terms.may_begin:
            raise LedgerError(
                "the ledger has no policy on record yet, and an analyst's connection without policy= cannot set it\n"
                "hint: connect with the curator's policy, or let the curator set it with tacit.ledger.change_policy"
            )
        check_units(log.entries("WHERE kind = 'charge'"), self._terms)
        log.append("policy", detail=self._terms.text)

    def _unused(self, log: Log, request: ChargeRequest) -> Entry | None:
        """A charge of the same analyst and fingerprint that covers the request and was never released."""
        candidates = log.entries(
            "INDEXED BY entries_by_fingerprint WHERE fingerprint = ? AND kind = 'charge' AND analyst IS ?"
            " AND NOT EXISTS (SELECT 1 FROM releases WHERE charge = entries.id)",
            request.fingerprint,
            request.analyst,
        )
        # What an index says is compared with the entry, which has a digest and the index has none. Another version of
        # tacit may find another strategy for the same request: what is on record must be what will be measured.
        covering = (
            e
            for e in candidates
            if e.fingerprint == request.fingerprint
            and e.event.covers(request.event)
            and asks_the_same(e.detail, request.mechanism)
        )
        return next((e for e in covering if log.payload(e.id) is None), None)

    def _admit(self, log: Log, request: ChargeRequest, limit: Amount | None) -> Amount:
        """What the request costs; BudgetError if the cap of the whole or one of its analyst does not allow it."""
        cost = self._balance_of_whole(log, request.cap).admit([request.event], "the budget")
        for cap in (request.analyst_cap, limit):
            if request.analyst is not None and cap is not None:
                balance = self._balance(log, request.analyst, cap)
                balance.admit([request.event], f"the budget of {request.analyst!r}")
        return cost

    def _balance(self, log: Log, analyst: str | None = None, cap: Amount | None = None) -> Balance:
        return Balance(self._rule, log.cap() if cap is None else cap, log.total(analyst))

    def _balance_of_whole(self, log: Log, smaller_cap: Amount | None) -> Balance:
        """Against the ledger's cap, or against the smaller one that a connection states."""
        cap = log.cap()
        return Balance(self._rule, cap if smaller_cap is None else smaller(cap, smaller_cap), log.total(None))


def verify(path: str | PathLike[str]) -> int:
    """The number of entries of a sound ledger; LedgerError if schema, pages, chain or releases are not."""
    file = LedgerFile(Path(path))
    with file.transaction(write=False) as connection:
        _, entries = check(Log(connection, file.path))
    return len(entries)
