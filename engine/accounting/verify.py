"""Whether a ledger is sound: its schema, pages and indexes, the chain of digests, the sums, the releases."""

from __future__ import annotations

from tacit.engine.accounting.entry import Entry, Meta, payload_digest, running
from tacit.engine.accounting.log import Log
from tacit.engine.accounting.schema import FIRST_SCHEMA, SCHEMA, check_schema

_KINDS = frozenset({"cap", "charge", "release", "read", "version", "backup", "policy", "balance"})
_LAST_ENTRIES = 64
_CHECKED_WHOLE = 256
"""Opening checks a ledger of so many entries whole. Of a longer one it checks the last few, and the others when they
are read; ``verify`` checks all of it."""


def check_on_opening(log: Log) -> tuple[Meta, Entry]:
    """What a ledger's user relies on, and its last entry; LedgerError if it is not sound.

    A ledger of a few hundred entries is checked whole. Of a longer one: the schema, what was fixed at creation, and the
    last entries with the sums that they carry. Older entries and releases are checked when they are read.
    """
    schema = check_schema(log.connection, log.path)
    number = log.connection.execute("SELECT max(id) FROM entries").fetchone()[0]
    if schema == FIRST_SCHEMA or not isinstance(number, int) or number <= _CHECKED_WHOLE:
        meta, entries = check(log)
    else:
        meta = log.meta()
        entries = log.entries("WHERE id > ?", number - _LAST_ENTRIES)
        if [entry.id for entry in entries] != list(range(number - _LAST_ENTRIES + 1, number + 1)):
            raise log.damaged
        log.standing_after(entries[-1])
    return meta, entries[-1]


def check(log: Log) -> tuple[Meta, list[Entry]]:
    """The whole ledger, or LedgerError: schema, pages, indexes, chain of digests, sums, releases and their charges.

    The chain shows accidents and clumsy edits. It holds no secret key, so who can write the file can also
    write a new chain; only a process boundary protects against that.
    """
    schema = check_schema(log.connection, log.path)
    if log.connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise log.damaged
    meta = log.meta()
    entries = log.entries()
    charges: set[int] = set()
    released: dict[int, str] = {}
    for number, entry in enumerate(entries, start=1):
        sound = entry.id == number and entry.kind in _KINDS
        if entry.kind == "charge":
            charges.add(entry.id)
        elif entry.kind in ("release", "read"):
            sound = sound and entry.refers in charges and (entry.kind == "read" or entry.refers not in released)
            if entry.kind == "release" and entry.refers is not None:
                released[entry.refers] = entry.detail
        if not sound:
            raise log.damaged
    if not entries or entries[0].kind != "cap":
        raise log.damaged
    stored = dict(log.connection.execute("SELECT charge, payload FROM releases"))
    if {k: payload_digest(v) if isinstance(v, bytes) else "" for k, v in stored.items()} != released:
        raise log.damaged
    if not {charge for (charge,) in log.connection.execute("SELECT charge FROM subjects")} <= released.keys():
        raise log.damaged
    if schema == SCHEMA:
        _check_standings(log, entries)
    return meta, entries


def _check_standings(log: Log, entries: list[Entry]) -> None:
    """Add everything up again, and compare with what each entry says."""
    last: dict[str, int] = {}
    for entry, standing in running(entries):
        if entry.analyst is not None:
            last[entry.analyst] = entry.id
        if entry.standing and entry.standing != standing.text:
            raise log.damaged
    if not entries[-1].standing or dict(log.connection.execute("SELECT analyst, last FROM analysts")) != last:
        raise log.damaged
