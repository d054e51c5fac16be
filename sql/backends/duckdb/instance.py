"""One DuckDB database in memory: its identity, the same from every connection, and whether others have used it.

``db``, ``db.cursor()`` and a second ``duckdb.connect(":memory:name")`` are different Python objects that lead to one
database. All of them see what is attached to it: so an empty database with a random name is attached once, and that
name is the identity. The user's tables are not touched.

DuckDB does not report writes. Two things can be asked without reading a row:

- ``txid_current()`` grows by one with every transaction, reads included. tacit counts its own statements; when the
  number has grown by more, somebody else used the database, and the tables may have changed. INSERT, DELETE and UPDATE
  are seen in this way, from any connection and thread. A read by somebody else is seen too: the stored releases are
  then not used any more, which a declared version prevents.
- ``estimated_size`` of each table also shows rows inserted by a transaction that began before tacit last looked. DELETE
  and UPDATE of such a transaction are not seen: its number is older, and the size does not shrink.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
from tacit.errors import OperationalError

_PREFIX = "tacit "
_STATE = (
    "SELECT txid_current(), (SELECT list([table_oid, estimated_size] ORDER BY table_oid) FROM duckdb_tables() "
    "WHERE database_name = ?)"
)


class Instance:
    """A database in memory, and how much of its use was tacit's. The statements of tacit run one after the other."""

    def __init__(self, token: str) -> None:
        self.token = token
        self._lock = threading.RLock()
        self._seen = 0
        self._ran = 0
        self._changes = 0

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Around each statement of tacit, so that it is not counted as somebody else's."""
        with self._lock:
            try:
                yield
            finally:
                self.ran(1)

    def ran(self, statements: int) -> None:
        """Count statements that tacit has run."""
        with self._lock:
            self._ran += statements

    def state(self, run: Callable[[str, str], list[tuple[Any, ...]]], database: str) -> str:
        """A text that is equal only while nobody but tacit has used the database. It holds numbers of rows.

        ``run`` executes one statement inside ``statement``.
        """
        with self._lock:
            [(number, sizes)] = run(_STATE, database)
            if number - self._seen != self._ran:
                self._changes += 1
            self._seen, self._ran = number, 0
            return f"{self.token} {self._changes} {sizes}"


def is_token(database: str) -> bool:
    """Whether a database is attached for its name only."""
    return database.startswith(_PREFIX)


_INSTANCES: dict[str, Instance] = {}
_ATTACHING = threading.Lock()


def instance_of(connection: duckdb.DuckDBPyConnection, ran: int) -> Instance:
    """The database in memory that a connection leads to; marked when it is seen for the first time.

    ``ran`` is the number of statements that tacit has run on it to find out that it is one.
    """
    with _ATTACHING:
        try:
            attached = connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
            tokens = [name for (name,) in attached if name in _INSTANCES]
            if tokens:
                instance = _INSTANCES[tokens[0]]
                instance.ran(ran + 1)
                return instance
            token = f"{_PREFIX}{secrets.token_hex(16)}"
            connection.execute(f"ATTACH ':memory:' AS \"{token}\"")
        except duckdb.Error:
            raise OperationalError(
                "this database in memory cannot be told from others, so its budget could not be kept\n"
                "hint: let nothing forbid ATTACH ':memory:' on it, or keep the tables in a file"
            ) from None
        return _INSTANCES.setdefault(token, Instance(token))
