"""The server's own file beside the ledger: tokens, hashed, and the requests that it has taken on.

Nothing in it is needed to keep the budget: the ledger does that. Lost, it costs every analyst a new token and the place
of what was asked last.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tacit.errors import LedgerError

_APPLICATION, _SCHEMA = 0x7AC17002, 2
_BUSY_SECONDS = 30.0
_TABLES = """
CREATE TABLE tokens (
    id      TEXT PRIMARY KEY,
    digest  BLOB NOT NULL,
    analyst TEXT NOT NULL,
    role    TEXT NOT NULL,
    epsilon TEXT,
    delta   TEXT,
    tables  TEXT,
    expires TEXT,
    created TEXT NOT NULL,
    revoked TEXT
) STRICT;
CREATE TABLE requests (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    token    TEXT NOT NULL,
    id       TEXT NOT NULL,
    analyst  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    digest   TEXT NOT NULL,
    body     TEXT NOT NULL,
    state    TEXT NOT NULL,
    charge   INTEGER,
    head     TEXT,
    error    TEXT,
    created  TEXT NOT NULL,
    finished TEXT,
    bytes    INTEGER NOT NULL,
    UNIQUE (token, id)
) STRICT;
CREATE INDEX requests_by_state ON requests (state);
CREATE INDEX requests_by_size ON requests (token, number, state, charge, bytes)
"""


class StoreFile:
    """A file of tokens and requests, readable by its owner only. Every method of its users is one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            self._create()
        with self.transaction() as db:
            found = (_pragma(db, "application_id"), _pragma(db, "user_version"))
        if found != (_APPLICATION, _SCHEMA):
            known = found[0] == _APPLICATION
            what = "was written by another version of tacit's server" if known else "is not a file of tacit's server"
            raise LedgerError(f"{path} {what}; it is left as it is")

    @property
    def results(self) -> Path:
        """The folder of results that are kept for their readers."""
        return self.path.with_name(f"{self.path.name}.results")

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A consistent view; with ``write`` it excludes other writers and is on disk when it ends."""
        db: sqlite3.Connection | None = None
        try:
            db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw", timeout=_BUSY_SECONDS, isolation_level=None, uri=True
            )
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA synchronous=FULL")
            db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        except sqlite3.Error:
            raise LedgerError(f"the server's file {self.path} cannot be read or written; is the disk full?") from None
        finally:
            if db is not None:
                db.close()

    def _create(self) -> None:
        """Made under another name and then linked, so that nobody sees half of it; of two who come at once one wins."""
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.new")
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            db = sqlite3.connect(draft, isolation_level=None)
            try:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute(f"PRAGMA application_id={_APPLICATION}")
                db.execute(f"PRAGMA user_version={_SCHEMA}")
                for statement in _TABLES.split(";"):
                    db.execute(statement)
            finally:
                db.close()
            try:
                os.link(draft, self.path)
            except FileExistsError:
                return
        except (OSError, sqlite3.Error):
            raise LedgerError(
                f"the server's file {self.path} cannot be written\n"
                "hint: give the server's user the right to write there"
            ) from None
        finally:
            for leftover in (draft, Path(f"{draft}-wal"), Path(f"{draft}-shm")):
                leftover.unlink(missing_ok=True)


def store_path(ledger: Path) -> Path:
    """The file beside a ledger."""
    return ledger.with_name(f"{ledger.name.removesuffix('.ledger')}.server")


def now() -> str:
    """The moment, as the file writes it; texts of moments sort as they follow each other."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
