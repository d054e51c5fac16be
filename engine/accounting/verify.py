"""Whether a ledger is sound: its schema, pages and indexes, the chain of digests, the sums, the releases."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import Any

from tacit.engine.accounting.log import (
    APPLICATION,
    FIRST_SCHEMA,
    FIRST_TABLES,
    SCHEMA,
    TABLES_SINCE,
    Entry,
    Meta,
    damaged,
    entries,
    number_of,
    payload_digest,
    read_meta,
    run_script,
    running,
    standing_of,
)
from tacit.errors import LedgerError

_KINDS = frozenset({"cap", "charge", "release", "read", "version", "backup", "policy", "balance"})
_TAIL = 64
_WHOLE = 256
"""Opening checks a ledger of so many entries whole. Of a longer one it checks the last few, and the others when they
are read; ``verify`` checks all of it."""


def open_check(connection: sqlite3.Connection, path: Path | None) -> tuple[Meta, Entry]:
    """What a ledger's user relies on, and its last entry; LedgerError if it is not sound.

    A ledger of a few hundred entries is checked whole. Of a longer one: the schema, what was fixed at creation, and the
    last entries with the sums that they carry. Older entries and releases are checked when they are read.
    """
    schema = _check_schema(connection, path)
    number = connection.execute("SELECT max(id) FROM entries").fetchone()[0]
    if schema == FIRST_SCHEMA or not isinstance(number, int) or number <= _WHOLE:
        meta, log = check(connection, path)
    else:
        meta = read_meta(connection, path)
        log = entries(connection, path, "WHERE id > ?", number - _TAIL)
        if [entry.id for entry in log] != list(range(number - _TAIL + 1, number + 1)):
            raise damaged(path)
        standing_of(log[-1], connection, path)
    return meta, log[-1]


def check(connection: sqlite3.Connection, path: Path | None) -> tuple[Meta, list[Entry]]:
    """The whole ledger, or LedgerError: schema, pages, indexes, chain of digests, sums, releases and their charges.

    The chain shows accidents and clumsy edits. It holds no secret key, so who can write the file can also
    write a new chain; only a process boundary protects against that.
    """
    schema = _check_schema(connection, path)
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise damaged(path)
    meta = read_meta(connection, path)
    log = entries(connection, path)
    charges: set[int] = set()
    released: dict[int, str] = {}
    for number, entry in enumerate(log, start=1):
        sound = entry.id == number and entry.kind in _KINDS
        if entry.kind == "charge":
            charges.add(entry.id)
        elif entry.kind in ("release", "read"):
            sound = sound and entry.refers in charges and (entry.kind == "read" or entry.refers not in released)
            if entry.kind == "release" and entry.refers is not None:
                released[entry.refers] = entry.detail
        if not sound:
            raise damaged(path)
    if not log or log[0].kind != "cap":
        raise damaged(path)
    stored = dict(connection.execute("SELECT charge, payload FROM releases"))
    if {k: payload_digest(v) if isinstance(v, bytes) else "" for k, v in stored.items()} != released:
        raise damaged(path)
    if not {charge for (charge,) in connection.execute("SELECT charge FROM subjects")} <= released.keys():
        raise damaged(path)
    if schema == SCHEMA:
        _check_standings(connection, path, log)
    return meta, log


def _check_schema(connection: sqlite3.Connection, path: Path | None) -> int:
    if number_of(connection, "PRAGMA application_id") != APPLICATION:
        raise LedgerError(f"{path} is not a ledger of tacit; it is left as it is")
    schema = number_of(connection, "PRAGMA user_version")
    if schema not in (FIRST_SCHEMA, SCHEMA):
        raise LedgerError(f"the ledger {path} was written by another version of tacit; it is left as it is")
    if _schema_text(connection) != _expected_schema(schema):
        raise damaged(path)
    return schema


def _check_standings(connection: sqlite3.Connection, path: Path | None, log: list[Entry]) -> None:
    """Add everything up again, and compare with what each entry says."""
    last: dict[str, int] = {}
    for entry, standing in running(log):
        if entry.analyst is not None:
            last[entry.analyst] = entry.id
        if entry.standing and entry.standing != standing.text():
            raise damaged(path)
    if not log[-1].standing or dict(connection.execute("SELECT analyst, last FROM analysts")) != last:
        raise damaged(path)


def _schema_text(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()


@lru_cache
def _expected_schema(schema: int) -> list[Any]:
    connection = sqlite3.connect(":memory:")
    try:
        run_script(connection, FIRST_TABLES if schema == FIRST_SCHEMA else FIRST_TABLES + TABLES_SINCE)
        return _schema_text(connection)
    finally:
        connection.close()
