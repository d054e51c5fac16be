"""What only the curator does to a ledger. Each operation is an entry in it."""

from __future__ import annotations

import os
import sqlite3
from os import PathLike
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError, PrivacyParameterError

from .amounts import Amount, to_amount
from .ledger import Ledger
from .ledger_file import append, entries


def raise_cap(ledger: Ledger, epsilon: Any, delta: Any = 0) -> Amount:
    """A larger cap from now on. A cap is never lowered: what was spent cannot be unspent."""
    cap = to_amount(epsilon, delta)
    with ledger.transaction(write=True) as connection:
        now = entries(connection, ledger.path, "WHERE kind = 'cap'")[-1].amount
        if cap.epsilon < now.epsilon or cap.delta < now.delta:
            raise PrivacyParameterError(
                f"the cap is epsilon {now.epsilon:f} and delta {now.delta}; it cannot be lowered"
            )
        append(connection, ledger.path, "cap", cap)
    return cap


def declare_version(ledger: Ledger, table: str, version: str) -> None:
    """The state of a table from now on; releases of older states no longer mix with it."""
    with ledger.transaction(write=True) as connection:
        append(connection, ledger.path, "version", fingerprint=table, detail=version)


def declared_version(ledger: Ledger, table: str) -> str | None:
    """The version that was declared last, if any was."""
    with ledger.transaction(write=False) as connection:
        found = entries(connection, ledger.path, "WHERE kind = 'version' AND fingerprint = ?", table)
    return found[-1].detail if found else None


def declared_versions(ledger: Ledger) -> dict[str, str]:
    """The version of every table of which one was declared, by the name it was declared under; the latest last."""
    with ledger.transaction(write=False) as connection:
        found = entries(connection, ledger.path, "WHERE kind = 'version'")
    latest = {entry.fingerprint: entry for entry in found}
    return {name: entry.detail for name, entry in sorted(latest.items(), key=lambda pair: pair[1].id)}


def backup(ledger: Ledger, path: str | PathLike[str]) -> None:
    """A copy of the ledger, sound even while others spend; never overwrites.

    A backup is for reading and for disasters. Spending from it beside the original would spend the budget
    twice.
    """
    target = Path(path)
    with ledger.transaction(write=True) as connection:
        append(connection, ledger.path, "backup", detail=target.name)
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise LedgerError(f"there is a file at {target} already") from None
    except OSError as error:
        raise LedgerError(f"no backup can be written to {target}: {error.strerror}") from None
    with ledger.transaction(write=False) as connection:
        copy = sqlite3.connect(target)
        try:
            connection.backup(copy)
        finally:
            copy.close()
