"""The ledger's file: SQLite with a write-ahead log and full synchronisation. ``log`` reads and writes its tables.

A connection is opened for every operation and closed after it, so threads and forked processes share
nothing but the file. A file that is not a sound ledger is refused and never repaired: a reset ledger would be
a new budget.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from tacit.engine.accounting.amounts import Amount
from tacit.engine.accounting.log import Log
from tacit.engine.accounting.schema import damaged
from tacit.errors import LedgerError

_BUSY_SECONDS = 30.0


class LedgerFile:
    """A sound ledger file, or (path None) the same thing in memory, which lives as long as this object."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._memory = _connect(":memory:") if path is None else None
        if self._memory is not None:  # nobody closes a ledger in memory, and Python 3.13 warns of what is left open
            weakref.finalize(self, self._memory.close)
        self._process = os.getpid()
        # Only the connection in memory is shared by threads; a file has a connection for each transaction.
        self._lock: AbstractContextManager[object] = threading.RLock() if path is None else nullcontext()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """A consistent view; with ``write`` it excludes other writers and is on disk when it ends."""
        self._check_process()
        with self._lock, self.stated_errors():
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
            with self._lock:
                self._memory.close()

    def _check_process(self) -> None:
        """Before the lock is taken: a fork may have inherited it while another thread held it."""
        if self._memory is not None and os.getpid() != self._process:
            raise LedgerError("a ledger in memory belongs to one process: a fork would double its budget")

    def _open(self) -> sqlite3.Connection:
        if self._memory is not None:
            return self._memory
        assert self.path is not None
        if not self.path.is_file():
            raise LedgerError(f"there is no ledger at {self.path}")
        return _connect(f"{self.path.absolute().as_uri()}?mode=rw")

    @contextmanager
    def stated_errors(self) -> Iterator[None]:
        """Every error of SQLite and of the disk as a LedgerError: one sentence, with the file's name."""
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(_sentence(error, self.path)) from None
        except UnicodeDecodeError:  # a damaged name in the schema, which SQLite quotes in its error
            raise damaged(self.path) from None
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error.strerror}") from None


def create(
    path: Path | None, cap: Amount, rule: str, policy: str | None = None, salt: bytes | None = None
) -> LedgerFile:
    """A new ledger; LedgerError if there is a file already.

    It is built under another name and then linked to ``path``, which fails if the name is taken: of two
    processes that create at once, one wins and neither ever sees half a ledger.
    """
    if path is None:
        file = LedgerFile(None)
        with file.stated_errors():
            Log(file._open(), None).begin(cap, rule, policy, salt)
        return file
    file = LedgerFile(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    with file.stated_errors():
        try:
            _create_empty(draft)
            connection = _connect(f"{draft.absolute().as_uri()}?mode=rw")
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                Log(connection, path).begin(cap, rule, policy, salt)
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


def shares_with_group(folder: Path) -> bool:
    """Whether the files in a folder are its group's: it has the set-group-ID bit, and the group may write into it.

    ``chgrp analysts FOLDER && chmod g+rwxs FOLDER`` is how a curator says so, before the ledger is begun.
    """
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISGID and mode & stat.S_IWGRP)


def _create_empty(path: Path) -> None:
    """A new file, for its owner only or for the folder's group too, whatever the umask.

    SQLite gives its two companions, the write-ahead log and the shared memory, the rights of the file itself.
    """
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        if shares_with_group(path.parent):
            os.fchmod(handle, 0o660)
    finally:
        os.close(handle)


def _connect(target: str) -> sqlite3.Connection:
    connection = sqlite3.connect(target, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.execute("PRAGMA synchronous=FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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
    return str(damaged(path))
