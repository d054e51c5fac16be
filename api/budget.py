"""What may be spent and what has been: exact decimals, for the whole and for each analyst."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial, reduce
from typing import Any

from tacit.engine import Amount
from tacit.engine.accounting.amounts import NOTHING, smaller
from tacit.engine.accounting.composition import Total, rule_named
from tacit.engine.accounting.description import MechanismRecord
from tacit.engine.accounting.ledger import Charge, ChargeRequest, Ledger
from tacit.engine.accounting.records import Right
from tacit.sql.product_scan import ProductScan
from tacit.sql.scan import Scan

from .binding import PolicyTerms
from .display import html_table, plain
from .errors import LedgerError, PolicyError
from .pickled import REALISED
from .policy import Cap, check_analyst_deltas
from .questions import question

_NO_POLICY = PolicyTerms(trust_schema=True)


@dataclass(frozen=True, repr=False)
class Account:
    """A cap, what was spent of it, and what is left."""

    cap: Amount
    spent: Amount
    left: Amount

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def __str__(self) -> str:
        return f"spent {show(self.spent)} of {show(self.cap)}; left {show(self.left)}"

    def to_dict(self) -> dict[str, Any]:
        """The amounts as exact decimals in text."""
        amounts = {"cap": self.cap, "spent": self.spent, "left": self.left}
        return {name: {"epsilon": plain(a.epsilon), "delta": plain(a.delta)} for name, a in amounts.items()}

    def _repr_html_(self) -> str:
        return accounts_html({"budget": self})


@dataclass(frozen=True, repr=False)
class Budget(Account):
    """The whole budget as this connection sees it, and each analyst's part in it.

    A snapshot: read ``con.budget`` again after the next answer. Without any budget the cap is zero.
    """

    analysts: Mapping[str, Account] = field(default_factory=dict)
    rule: str = "sum"
    """How charges add up: ``sum`` or ``zcdp``, fixed when the ledger was created."""
    compose: Callable[[], float] = field(default=lambda: 0.0, repr=False, compare=False)

    @cached_property
    def realised(self) -> float:
        """The ε at the cap's δ that everything charged so far really comes to, by privacy-loss distributions.

        For information: it is computed from the recorded mechanisms, never from data, and it admits nothing,
        because stopping at it is not proven safe for batches that are chosen adaptively. Computed when first
        looked at.
        """
        return self.compose()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "compose": REALISED}

    def to_dict(self) -> dict[str, Any]:
        """The amounts as exact decimals in text, those of each analyst among them."""
        analysts = {name: account.to_dict() for name, account in self.analysts.items()}
        return {**super().to_dict(), "rule": self.rule, "analysts": analysts}

    def _repr_html_(self) -> str:
        return accounts_html({"budget": self, **self.analysts})

    def __str__(self) -> str:
        lines = [super().__str__(), *(f"  {name}: {account}" for name, account in self.analysts.items())]
        return "\n".join(lines)


@dataclass(frozen=True)
class Store:
    """Where a ledger lies: ``find`` gives it when there is one, ``create`` makes it with a cap."""

    find: Callable[[], Ledger | None]
    create: Callable[[Amount, str, str, bytes], Ledger]
    """With a cap, a rule, the text of the policy's terms, and a salt."""


@dataclass(frozen=True)
class Rights:
    """What the holder of a connection may do, where that can end or change while the connection is open."""

    check: Callable[[], Cap]
    """Called inside the transaction of every charge and of every read of what others paid for. Raises where the right
    has ended; gives the cap that holds now."""
    cap: Cap = field(default_factory=Cap)
    tables: frozenset[str] | None = None
    """The private tables that may be named; ``None`` for all. Public tables are public."""
    charged: Callable[[int], None] = lambda charge: None
    """Called with the number of a charge before any row is read for it."""
    pending: int | None = None
    """A charge that was made for the same request before, in a run that ended too early."""


class LedgerAccess:
    """The ledger through the eyes of one connection.

    The cap that binds everyone is the one in the ledger, written at its creation. A connection may have a
    smaller one, which then binds on it alone; a larger one is refused. The ledger is created at the first
    charge, so that ``explain`` works where nothing can be written.
    """

    def __init__(
        self,
        store: Store,
        stated: Cap,
        asked: Cap,
        analyst: str | None = None,
        analysts: Mapping[str, Cap] | None = None,
        accounting: str | None = None,
        terms: PolicyTerms = _NO_POLICY,
        *,
        log_sql: bool = False,
    ) -> None:
        """``stated`` is the cap of the whole, for a new ledger; ``asked`` is this connection's, not larger.

        ``accounting`` is the rule of a new ledger, and ``terms`` what its guarantee will depend on; an existing one
        with another rule or other terms is refused. ``log_sql`` writes the text of what is charged into the log.
        """
        self._store = store
        self._stated = stated
        self._asked = asked
        self._analysts = analysts or {}
        self._accounting = accounting
        self._terms = terms
        self._log_sql = log_sql
        self._salt = secrets.token_bytes(32)
        self._ledger: Ledger | None = None
        self.analyst = analyst
        self.rights: Rights | None = None
        # A cap that does not fit the ledger is refused when connecting, not at the first answer.
        if self.peek() is None:
            self._check_deltas(self.rule, self.cap)

    def peek(self) -> Ledger | None:
        """The ledger, if it exists already."""
        if self._ledger is None:
            ledger = self._store.find()
            if ledger is not None:
                self._ledger = self._checked(ledger)
        return self._ledger

    def open(self) -> Ledger:
        """The ledger, created if need be. Raises ``PolicyError`` when no budget was ever stated."""
        ledger = self.peek()
        if ledger is None:
            stated = self._stated
            if stated.epsilon is None:
                raise PolicyError(
                    "no budget was stated, so nothing can be answered\n"
                    "hint: write epsilon = 1.0 under [budget] in the policy, or connect(…, epsilon=1.0)"
                )
            if not self._terms.may_begin:
                raise LedgerError(
                    "there is no ledger yet, and an analyst's connection without policy= cannot begin one: what an "
                    "answer gives away would depend on no decision of the curator's\n"
                    "hint: connect with the curator's policy, or let the curator connect and answer first"
                )
            cap = Amount(stated.epsilon, stated.delta or Decimal(0))
            ledger = self._ledger = self._checked(
                self._store.create(cap, self._accounting or "sum", self._terms.text, self._salt)
            )
        return ledger

    @property
    def salt(self) -> bytes:
        """The ledger's secret salt, or the one that a new ledger will have; versions are shown as hashes with it."""
        ledger = self.peek()
        return self._salt if ledger is None else ledger.salt

    @property
    def cap(self) -> Amount | None:
        """The cap on this connection: the smaller of the ledger's and its own; ``None`` without either."""
        ledger, asked = self.peek(), self._asked
        if ledger is not None:
            return _bounded(ledger.cap, asked)
        if asked.epsilon is None:
            return None
        return Amount(asked.epsilon, asked.delta or Decimal(0))

    @property
    def analyst_cap(self) -> Amount | None:
        """The analyst's own cap; ``None`` when the policy sets none for this connection's analyst."""
        return None if self.analyst is None else self._cap_of(self.analyst, self.cap)

    @property
    def rule(self) -> str:
        """The composition rule: the ledger's, or the one that a new ledger will have."""
        ledger = self.peek()
        return (self._accounting or "sum") if ledger is None else ledger.rule

    def request(
        self,
        fingerprint: str,
        cost: Amount,
        mechanism: MechanismRecord,
        rho: Decimal,
        *,
        scans: Sequence[Scan | ProductScan],
        sql: Sequence[str],
    ) -> ChargeRequest:
        """What the ledger is asked to admit of this connection, under the caps that bind it.

        ``scans`` and ``sql`` are what the log tells of it.
        """
        asked = question(scans, sql, self.salt, log_sql=self._log_sql)
        return ChargeRequest(
            fingerprint=fingerprint,
            epsilon=cost.epsilon,
            delta=cost.delta,
            analyst=self.analyst,
            analyst_cap=self.analyst_cap,
            cap=self.cap,
            mechanism=replace(mechanism, question=asked),
            rho=rho,
            right=self.right,
            pending=None if self.rights is None else self.rights.pending,
        )

    @property
    def right(self) -> Right | None:
        """What the ledger asks inside its transactions; ``None`` where nothing can end."""
        rights, whole = self.rights, self.cap
        if rights is None:
            return None
        return lambda: None if whole is None else _amount(rights.check(), whole)

    def charged(self, charge: Charge) -> None:
        """Say that a charge is on disk, before anything is read for it."""
        if self.rights is not None:
            self.rights.charged(charge.id)

    def first_cost(self, request: ChargeRequest) -> Amount:
        """What a request would be charged if it were the first of a new ledger."""
        event, cap = request.event, self.cap
        return event.amount if cap is None else rule_named(self.rule).spent(Total().plus([event]), cap)

    def budget(self) -> Budget:
        """What was spent and is left, now."""
        ledger = self.peek()
        if ledger is None:
            cap = self.cap or NOTHING
            names = [*self._analysts, *([] if self.analyst is None else [self.analyst])]
            caps = {name: self._cap_of(name, cap) or cap for name in names}
            accounts = {name: Account(limit, NOTHING, smaller(cap, limit)) for name, limit in caps.items()}
            return Budget(cap, NOTHING, cap, accounts, self.rule)
        now = ledger.balances()
        cap = _bounded(now.cap, self._asked)
        left = now.left(cap)
        accounts = {}
        for name in dict.fromkeys(n for n in (*self._analysts, *now.analysts, self.analyst) if n is not None):
            limit = self._cap_of(name, cap) or cap
            accounts[name] = Account(limit, now.spent(name), smaller(left, now.left(limit, name)))
        return Budget(cap, now.spent(), left, accounts, self.rule, partial(ledger.realised, float(cap.delta)))

    @property
    def account(self) -> Account | None:
        """The account that this connection spends from: the analyst's own, or the whole; None without any cap."""
        if self.cap is None:
            return None
        budget = self.budget()
        return budget if self.analyst is None else budget.analysts.get(self.analyst, budget)

    def _cap_of(self, analyst: str, whole: Amount | None) -> Amount | None:
        if whole is None:
            return None
        caps = [self._analysts.get(analyst, Cap())]
        if self.rights is not None and analyst == self.analyst:
            caps.append(self.rights.cap)
        limits = [limit for cap in caps if (limit := _amount(cap, whole)) is not None]
        return reduce(smaller, limits) if limits else None

    def _checked(self, ledger: Ledger) -> Ledger:
        if self._accounting not in (None, ledger.rule):
            raise LedgerError(
                f'the ledger accounts by "{ledger.rule}", fixed when it was created, and the policy says '
                f'"{self._accounting}"\nhint: write accounting = "{ledger.rule}" in the policy, or leave it out'
            )
        for name, wanted, allowed in (
            ("epsilon", self._stated.epsilon, ledger.cap.epsilon),
            ("delta", self._stated.delta, ledger.cap.delta),
        ):
            if wanted is not None and wanted > allowed:
                raise LedgerError(
                    f"the ledger allows {name} = {allowed} in all, fixed when it was created; {wanted} was asked for\n"
                    f"hint: ask for {name} = {allowed} or less, in the policy's [budget] or in connect(…); or let the "
                    "curator raise it with tacit.ledger.raise_cap"
                )
        self._check_deltas(ledger.rule, _bounded(ledger.cap, self._asked))
        recorded = ledger.policy
        different = [] if recorded is None else self._terms.differences(recorded)
        if different:
            says_nothing = not self._terms.tables and self._terms.analysts is None
            hint = "name that policy, connect(…, policy=…), or " if says_nothing else ""
            raise LedgerError(
                "the ledger is bound to the policy that it was begun with, and this connection brings another one or "
                f"none\nhint: {hint}{', '.join(different)}; or let the curator change it with "
                "tacit.ledger.change_policy"
            )
        return ledger.under(self._terms)

    def _check_deltas(self, rule: str, cap: Amount | None) -> None:
        check_analyst_deltas(self._analysts, rule)
        if rule == "zcdp" and cap is not None and cap.delta == 0:
            raise PolicyError(
                'the cap on this connection has a delta of 0, and accounting = "zcdp" states what was spent at a delta '
                "above 0\nhint: write delta = 1e-9 under [budget] in the policy, or connect(…, delta=1e-9)"
            )


def accounts_html(accounts: Mapping[str, Account]) -> str:
    """Accounts as a table of a notebook."""
    columns: dict[str, list[str]] = {"": list(accounts)}
    for letter, place in (("ε", 0), ("δ", 1)):
        for name in ("cap", "spent", "left"):
            columns[f"{letter} {name}"] = [f"{getattr(a, name)[place]:g}" for a in accounts.values()]
    return html_table(columns, left=("",))


def show(amount: Amount) -> str:
    """An amount for a sentence."""
    return f"ε={amount.epsilon:f}, δ={float(amount.delta):g}"


def _amount(cap: Cap, whole: Amount) -> Amount | None:
    """A cap with the whole's ε or δ where it states none; ``None`` where it states neither."""
    if cap == Cap():
        return None
    return Amount(
        whole.epsilon if cap.epsilon is None else cap.epsilon, whole.delta if cap.delta is None else cap.delta
    )


def _bounded(cap: Amount, asked: Cap) -> Amount:
    return Amount(
        cap.epsilon if asked.epsilon is None else min(cap.epsilon, asked.epsilon),
        cap.delta if asked.delta is None else min(cap.delta, asked.delta),
    )
