"""``tacit.connect``: the database, its policy and its ledger become one connection."""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from tacit.engine import Amount
from tacit.engine.accounting.amounts import to_delta, to_epsilon
from tacit.engine.accounting.ledger import Ledger
from tacit.sql import Source, open_source

from .binding import terms_of
from .budget import LedgerAccess, Store
from .connection import Connection
from .errors import InterfaceError, LedgerError, OperationalError, PolicyError
from .plan_store import Plans, folder_for
from .policy import Cap, Policy, load_policy
from .policy_catalog import build_catalog, with_plain_names
from .policy_section import suggestion
from .pricing import Pricer
from .process import memory_ledgers
from .remote import is_url, open_remote
from .request import Number
from .session import Session


def connect(
    database: Any,
    *,
    policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    analyst: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    spend: Number | None = None,
    token: str | None = None,
) -> Connection:
    """What ``tacit.connect`` calls, whose text has the arguments."""
    if is_url(database):
        others = {"policy": policy, "analyst": analyst, "ledger": ledger, "epsilon": epsilon, "delta": delta}
        return open_remote(database, token, spend, [name for name, value in others.items() if value is not None])
    if token is not None:
        raise InterfaceError(
            "token= is for a server, and this is no address of one\n"
            'hint: tacit.connect("https://…", token=…), or leave token= out'
        )
    if ledger is not None and analyst is not None:
        raise InterfaceError(
            "ledger= cannot be chosen together with analyst=: an analyst does not choose the books\n"
            "hint: leave ledger= out, or connect as the curator"
        )
    if ledger is not None and not isinstance(ledger, (str, os.PathLike)):
        raise InterfaceError("ledger= must be the path of a file\nhint: leave it out, and it lies next to the database")
    rules = load_policy(policy)
    books = _books(rules, ledger, analyst, is_file=not isinstance(policy, Mapping))
    _check_analyst(rules, analyst)
    asked = Cap(None if epsilon is None else to_epsilon(epsilon), None if delta is None else to_delta(delta))
    stated, bound = _caps(rules, asked)
    each = None if spend is None else to_epsilon(spend)
    try:
        source = open_source(database, rules.types)
    except OSError:  # a name that the system itself does not take
        raise OperationalError("there is no database file of that name\nhint: give the path of a file") from None
    try:
        rules = with_plain_names(rules, source)
        catalog = build_catalog(rules, source)
        terms = terms_of(rules, catalog=catalog, may_begin=analyst is None or policy is not None)
        store = _store(source, books)
        access = LedgerAccess(
            store, stated, bound, analyst, rules.analysts, rules.accounting, terms, log_sql=rules.log_sql
        )
    except BaseException:
        source.close()
        raise
    plans = Plans(folder_for(_place(source, books)))
    session = Session(source, catalog, rules.limits, access, Pricer(plans))
    return Connection(session, each if each is not None else rules.spend)


def _check_analyst(policy: Policy, analyst: str | None) -> None:
    if analyst is None:
        return
    if not isinstance(analyst, str) or not analyst:
        raise InterfaceError('analyst= must be a name\nhint: analyst="ana"')
    if policy.analysts is not None and analyst not in policy.analysts:
        raise PolicyError(
            f"{policy.origin}: there is no analyst {analyst!r} under [analysts]\n"
            f"hint: {suggestion(analyst, policy.analysts)}"
        )


def _caps(policy: Policy, asked: Cap) -> tuple[Cap, Cap]:
    """The cap of the whole, and the cap on this connection, which is not larger."""
    stated = policy.budget
    if stated.epsilon is None:
        if asked.epsilon is None and asked.delta is not None:
            raise PolicyError("delta= was given without epsilon=\nhint: connect(…, epsilon=1.0, delta=1e-9)")
        return asked, asked
    whole = Cap(stated.epsilon, stated.delta or Decimal(0))
    for name in ("epsilon", "delta"):
        wanted, allowed = getattr(asked, name), getattr(whole, name)
        if wanted is not None and wanted > allowed:
            raise PolicyError(
                f"{policy.origin}: budget.{name} is {allowed}, and connect asked for {wanted}\n"
                f"hint: ask for {allowed} or less, or change the policy"
            )
    return whole, Cap(asked.epsilon or whole.epsilon, whole.delta if asked.delta is None else asked.delta)


def _books(policy: Policy, ledger: str | os.PathLike[str] | None, analyst: str | None, *, is_file: bool) -> Path | None:
    """The ledger that somebody named; None where nobody did."""
    if policy.ledger is None:
        return None if ledger is None else Path(ledger)
    if analyst is not None and not is_file:
        raise PolicyError(
            f"{policy.origin}: budget.ledger cannot be chosen in a dict together with analyst=: an analyst does not "
            "choose the books\nhint: write it into the curator's policy file, and give the path of that"
        )
    if ledger is not None and Path(ledger).resolve() != policy.ledger.resolve():
        raise PolicyError(
            f"{policy.origin}: budget.ledger names one ledger, and ledger= another; two would be two budgets\n"
            "hint: leave ledger= out"
        )
    return policy.ledger.resolve()


def ledger_path(database: Any, policy: str | os.PathLike[str] | Mapping[str, Any] | None) -> Path:
    """Where the ledger of a database is, or would be made; ``PolicyError`` where there is no place for one."""
    rules = load_policy(policy)
    source = open_source(database, rules.types)
    try:
        place = _place(source, None if rules.ledger is None else rules.ledger.resolve())
    finally:
        source.close()
    if place is None:
        raise LedgerError("a database in memory has its ledger there too, and no file")
    return place


def _place(source: Source, books: Path | None) -> Path | None:
    """The file of the ledger; None for one in memory."""
    if books is not None:
        return books
    for other in sorted(source.also_at):
        if (ledger := Path(f"{other}.ledger")).exists():
            raise PolicyError(
                f"rows of this source have a ledger already, that of {str(other)!r}; another one would be a second "
                f'budget over them\nhint: write ledger = "{ledger}" under [budget] in the policy, or give ledger= as '
                "the curator"
            )
    if source.path is not None:  # resolved, because a link to the database must not be a second budget over its rows
        return Path(f"{source.path.resolve()}.ledger")
    if source.memory is None:
        raise PolicyError(
            "a database that others share has no place beside it for the ledger, which must be the same for everyone\n"
            'hint: write ledger = "/path/of/name.ledger" under [budget] in the policy, or give ledger= as the curator'
        )
    return None


def _store(source: Source, books: Path | None) -> Store:
    place = _place(source, books)
    if place is None:
        return _memory_store(source.memory or "")

    def find() -> Ledger | None:
        return Ledger.open(place) if place.exists() else None

    def create(cap: Amount, rule: str, policy: str, salt: bytes) -> Ledger:
        return Ledger.open_or_create(place, *cap, rule=rule, policy=policy, salt=salt)

    return Store(find, create)


def _memory_store(identity: str) -> Store:
    def create(cap: Amount, rule: str, policy: str, salt: bytes) -> Ledger:
        make = partial(Ledger.create, None, *cap, rule=rule, policy=policy, salt=salt)
        return memory_ledgers.get_or_create(identity, make)

    return Store(lambda: memory_ledgers.get(identity), create)
