"""What only the curator does to a ledger. The ledger records each operation."""

from __future__ import annotations

import os
import sqlite3
from os import PathLike
from pathlib import Path
from typing import Any

from tacit.engine.accounting.amounts import Amount, to_amount
from tacit.engine.accounting.ledger import Ledger
from tacit.engine.accounting.terms import Terms, check_units
from tacit.errors import LedgerError, PrivacyParameterError


def raise_cap(ledger: Ledger, epsilon: Any, delta: Any = 0) -> Amount:
    """A larger cap from now on. A cap is never lowered: what was spent cannot be unspent."""
    cap = to_amount(epsilon, delta)
    with ledger.transaction(write=True) as log:
        now = log.cap()
        if cap.epsilon < now.epsilon or cap.delta < now.delta:
            raise PrivacyParameterError(
                f"the cap is epsilon {now.epsilon:f} and delta {now.delta}; it cannot be lowered"
            )
        log.append("cap", cap)
    return cap


def declare_version(ledger: Ledger, table: str, version: str) -> None:
    """The state of a table from now on; releases of older states no longer mix with it."""
    with ledger.transaction(write=True) as log:
        log.append("version", fingerprint=table, detail=version)


def change_policy(ledger: Ledger, terms: Terms) -> None:
    """Other terms from now on, on record. LedgerError if the unit of a table that has charges would change.

    Guarantee: earlier releases keep what they promised when they were made, and the sum of all charges keeps its
    meaning, because every charge protects the same units as before. A bound on the rows of a unit may change: each
    release bounds them as the policy of its time said, and was priced for that bound. A table that becomes public is
    not protected from now on; what was shown of a table while it was public stays known. An analyst's cap holds from
    now on, and counts what they know already.
    """
    with ledger.under(None).transaction(write=True) as log:
        recorded = log.policy()
        if recorded is not None and recorded.detail == terms.text:
            return
        check_units(log.entries("WHERE kind = 'charge'"), terms)
        log.append("policy", detail=terms.text)


def backup(ledger: Ledger, path: str | PathLike[str]) -> None:
    """A copy of the ledger, sound even while others spend; never overwrites.

    A backup is for reading and for disasters. Spending from it beside the original would spend the budget
    twice.
    """
    target = Path(path)
    with ledger.transaction(write=True) as log:
        log.append("backup", detail=target.name)
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise LedgerError(f"there is a file at {target} already") from None
    except OSError as error:
        raise LedgerError(f"no backup can be written to {target}: {error.strerror}") from None
    with ledger.transaction(write=False) as log:
        copy = sqlite3.connect(target)
        try:
            log.connection.backup(copy)
        finally:
            copy.close()
