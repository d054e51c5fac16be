"""The ledger's file: SQLite with a write-ahead log, full synchronisation and a hash chain over its entries.

A connection is opened for every operation and closed after it, so threads and forked processes share
nothing but the file. What is not a sound ledger is refused and never repaired: a reset ledger would be a
new budget.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError

from .amounts import NOTHING, Amount, to_amount

_APPLICATION = 0x7AC17001
_SCHEMA = 2
_BUSY_SECONDS = 30.0
_KINDS = ("cap", "charge", "release", "read", "version", "backup")

_TABLES = """
CREATE TABLE meta (
    identity TEXT NOT NULL,
    rule     TEXT NOT NULL,
    salt     BLOB NOT NULL
) STRICT;
CREATE TABLE entries (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    analyst     TEXT,
    epsilon     TEXT NOT NULL,
    delta       TEXT NOT NULL,
    rho         TEXT,
    fingerprint TEXT NOT NULL,
    detail      TEXT NOT NULL,
    refers      INTEGER,
    at          TEXT NOT NULL,
    digest      TEXT NOT NULL
) STRICT;
CREATE INDEX entries_by_fingerprint ON entries (fingerprint);
CREATE INDEX entries_by_reference ON entries (refers) WHERE refers IS NOT NULL;
CREATE TABLE releases (
    charge  INTEGER PRIMARY KEY REFERENCES entries (id),
    payload BLOB NOT NULL
) STRICT;
CREATE TABLE subjects (
    subject TEXT NOT NULL,
    charge  INTEGER NOT NULL REFERENCES releases (charge),
    PRIMARY KEY (subject, charge)
) STRICT;
"""


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. Entries are only ever added."""

    id: int
    kind: str
    """``cap``; ``charge``; ``release`` of a charge; ``read`` by an analyst of another's release; the
    curator's
    ``version`` of a table and ``backup``."""
    analyst: str | None
    amount: Amount
    rho: Decimal | None
    fingerprint: str
    detail: str
    """The mechanism of a charge, as JSON; the digest of a release's payload; the version of a table."""
    refers: int | None
    at: str
    digest: str

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


class LedgerFile:
    """A sound ledger file, or (path None) the same thing in memory, which lives as long as this object."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._memory = _connect(":memory:") if path is None else None

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """A consistent view; with ``write`` it excludes other writers and is on disk when it ends."""
        # Only the connection in memory is shared; a lock around a file could be inherited, held, by a fork.
        with self._lock if self._memory is not None else nullcontext(), self._sorry():
            connection = self._open()
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            finally:
                if self._memory is None:
                    connection.close()

    def close(self) -> None:
        """Ends a ledger in memory; a file needs no closing."""
        if self._memory is not None:
            self._memory.close()

    def _open(self) -> sqlite3.Connection:
        if self._memory is not None:
            if os.getpid() != self._process:
                raise LedgerError("a ledger in memory belongs to one process: a fork would double its budget")
            return self._memory
        assert self.path is not None
        if not self.path.is_file():
            raise LedgerError(f"there is no ledger at {self.path}")
        return _connect(f"{self.path.absolute().as_uri()}?mode=rw")

    @contextmanager
    def _sorry(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(_sentence(error, self.path)) from None
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error.strerror}") from None


def create(path: Path | None, cap: Amount, rule: str) -> LedgerFile:
    """A new ledger; LedgerError if there is a file already.

    It is built under another name and linked to its own, which fails if the name is taken: of two
    processes that create at once, one wins and neither ever sees half a ledger.
    """
    if path is None:
        file = LedgerFile(None)
        with file._sorry():
            assert file._memory is not None
            _fill(file._memory, cap, rule)
        return file
    file = LedgerFile(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    with file._sorry():
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = _connect(f"{draft.absolute().as_uri()}?mode=rw")
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                _fill(connection, cap, rule)
            finally:
                connection.close()
            os.link(draft, path)
            _sync_folder(path.parent)
        except FileExistsError:
            raise LedgerError(f"there is a file at {path} already") from None
        finally:
            for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
                leftover.unlink(missing_ok=True)
    return file


def check(connection: sqlite3.Connection, path: Path | None) -> tuple[Meta, list[Entry]]:
    """The whole ledger, or LedgerError: schema, pages, chain of digests, releases that have their charges.

    The chain shows accidents and clumsy edits. It holds no secret key, so who can write the file can also
    write a new chain; only a process boundary protects against that.
    """
    if _number(connection, "PRAGMA application_id") != _APPLICATION:
        raise LedgerError(f"{path} is not a ledger of tacit; it is left as it is")
    if _number(connection, "PRAGMA user_version") != _SCHEMA:
        raise LedgerError(f"the ledger {path} was written by another version of tacit; it is left as it is")
    if connection.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise LedgerError(_damaged(path))
    meta = read_meta(connection, path)
    previous = meta.root
    log = entries(connection, path)
    charges: set[int] = set()
    released: dict[int, str] = {}
    for number, entry in enumerate(log, start=1):
        sound = entry.id == number and entry.kind in _KINDS and entry.digest == entry.follows(previous)
        if entry.kind == "charge":
            charges.add(entry.id)
        elif entry.kind in ("release", "read"):
            sound = sound and entry.refers in charges and (entry.kind == "read" or entry.refers not in released)
            if entry.kind == "release" and entry.refers is not None:
                released[entry.refers] = entry.detail
        if not sound:
            raise LedgerError(_damaged(path))
        previous = entry.digest
    stored = dict(connection.execute("SELECT charge, payload FROM releases"))
    if not log or {k: payload_digest(v) for k, v in stored.items()} != released:
        raise LedgerError(_damaged(path))
    if not {charge for (charge,) in connection.execute("SELECT charge FROM subjects")} <= released.keys():
        raise LedgerError(_damaged(path))
    return meta, log


def read_meta(connection: sqlite3.Connection, path: Path | None) -> Meta:
    """The ledger's identity, rule and salt."""
    rows = connection.execute("SELECT identity, rule, salt FROM meta").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][2], bytes) or len(rows[0][2]) != 32:
        raise LedgerError(_damaged(path))
    return Meta(*rows[0])


def entries(connection: sqlite3.Connection, path: Path | None, where: str = "", *values: Any) -> list[Entry]:
    """Entries in the order in which they were made; the clock plays no part. ``where`` is never user text."""
    columns = "id, kind, analyst, epsilon, delta, rho, fingerprint, detail, refers, at, digest"
    statement = f"SELECT {columns} FROM entries {where} ORDER BY id"  # noqa: S608
    rows = connection.execute(statement, values).fetchall()
    try:
        return [
            Entry(
                id=row[0],
                kind=row[1],
                analyst=row[2],
                amount=Amount(Decimal(row[3]), Decimal(row[4])),
                rho=None if row[5] is None else Decimal(row[5]),
                fingerprint=row[6],
                detail=row[7],
                refers=row[8],
                at=row[9],
                digest=row[10],
            )
            for row in rows
        ]
    except InvalidOperation:
        raise LedgerError(_damaged(path)) from None


def append(
    connection: sqlite3.Connection,
    path: Path | None,
    kind: str,
    amount: Amount = NOTHING,
    *,
    rho: Decimal | None = None,
    analyst: str | None = None,
    fingerprint: str = "",
    detail: str = "",
    refers: int | None = None,
) -> Entry:
    """One more entry, chained to the last one."""
    last = connection.execute("SELECT id, digest FROM entries ORDER BY id DESC LIMIT 1").fetchone()
    number, previous = (last[0] + 1, last[1]) if last else (1, read_meta(connection, path).root)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    draft = Entry(number, kind, analyst, amount, rho, fingerprint, detail, refers, now, "")
    entry = replace(draft, digest=draft.follows(previous))
    connection.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            entry.id,
            entry.kind,
            entry.analyst,
            str(amount.epsilon),
            str(amount.delta),
            None if rho is None else str(rho),
            entry.fingerprint,
            entry.detail,
            entry.refers,
            entry.at,
            entry.digest,
        ),
    )
    return entry


def payload_digest(payload: bytes) -> str:
    """What a release's entry says about its payload."""
    return hashlib.sha256(payload).hexdigest()


def _fill(connection: sqlite3.Connection, cap: Amount, rule: str) -> None:
    connection.execute(f"PRAGMA application_id={_APPLICATION}")
    connection.execute(f"PRAGMA user_version={_SCHEMA}")
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    meta = Meta(secrets.token_hex(16), rule, secrets.token_bytes(32))
    connection.execute("INSERT INTO meta VALUES (?, ?, ?)", (meta.identity, meta.rule, meta.salt))
    append(connection, None, "cap", to_amount(*cap))
    connection.execute("COMMIT")


def _connect(target: str) -> sqlite3.Connection:
    connection = sqlite3.connect(target, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.execute("PRAGMA synchronous=FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(pragma).fetchone()[0])


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _damaged(path: Path | None) -> str:
    return f"the ledger {path} is damaged; restore it from a backup (it is left as it is, never reset)"


def _sentence(error: sqlite3.Error, path: Path | None) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"the ledger {path} is locked by another process; try again"
    if code == sqlite3.SQLITE_FULL:
        return f"the disk that holds the ledger {path} is full; nothing was released"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return f"the ledger {path} cannot be opened for writing; is its folder read-only?"
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a ledger of tacit; it is left as it is"
    if code == sqlite3.SQLITE_IOERR:
        return f"the disk that holds the ledger {path} cannot be written or read; nothing was released"
    return _damaged(path)
