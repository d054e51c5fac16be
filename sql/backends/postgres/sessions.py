"""Connections to PostgreSQL: transactions that only read, and in which SQL means what tacit was written for."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Generic, TypeVar

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
from psycopg.conninfo import conninfo_to_dict
from tacit.errors import OperationalError

_BEGIN = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_ISOLATION = _BEGIN.replace("BEGIN", "SET")
_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",  # so that no function, operator or type of the database stands for another
    "row_security": "off",  # a policy that would hide rows makes the statement fail, and the rehearsal with it
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "client_encoding": "UTF8",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "jit": "off",
}
_SET = "SELECT " + ", ".join(f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
LEAST_VERSION = 140000
FAILURES = (psycopg.Error, adbc.Error, pa.ArrowException, OSError)
"""What a statement raises. The text of such an error can quote a value, so it is not passed on."""
T = TypeVar("T")


class Sessions:
    """The connections of one source: one kind for the catalog, one for rows. Threads do not share any."""

    def __init__(self, url: str) -> None:
        self.place = _place(url)
        self._catalog: _Idle[psycopg.Connection[tuple[Any, ...]]] = _Idle(lambda: _connect(url, self.place))
        self._rows: _Idle[adbc.Connection] = _Idle(lambda: _connect_for_rows(url, self.place))

    @contextmanager
    def catalog(self) -> Iterator[psycopg.Cursor[tuple[Any, ...]]]:
        """A transaction that reads ``pg_catalog`` and no row."""

        def begin(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
            connection.execute(_BEGIN)
            connection.execute(_SET)

        with self._catalog.taken(begin) as connection, connection.cursor() as cursor:
            yield cursor
            connection.execute("ROLLBACK")

    @contextmanager
    def rows(self) -> Iterator[RowReader]:
        """One state of the database, for as many statements as a release needs."""

        def begin(connection: adbc.Connection) -> None:
            with connection.cursor() as cursor:
                cursor.execute(_ISOLATION)
                cursor.execute(_SET)
                cursor.fetchall()

        with self._rows.taken(begin) as connection:
            yield RowReader(connection)
            connection.rollback()

    def close(self) -> None:
        """Close all of them."""
        self._catalog.close()
        self._rows.close()


class RowReader:
    """Statements of one transaction, whose results are streams."""

    def __init__(self, connection: adbc.Connection) -> None:
        self._connection = connection

    @contextmanager
    def stream(self, sql: str) -> Iterator[pa.RecordBatchReader]:
        """The rows of a statement, batch by batch."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            with cursor.fetch_record_batch() as reader:
                yield reader

    def cancel(self) -> None:
        """Ask the server to end the statement that runs now; another thread may call it."""
        self._connection.adbc_cancel()

    def table(self, sql: str) -> pa.Table:
        """The rows of a statement that returns few."""
        with self.stream(sql) as reader:
            return reader.read_all()


class _Idle(Generic[T]):
    """Connections that nobody uses at the moment. One that failed is not used again."""

    def __init__(self, connect: Callable[[], T]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._idle: list[T] = []
        self._closed = False

    @contextmanager
    def taken(self, begin: Callable[[T], None]) -> Iterator[T]:
        """A connection in which a transaction has begun."""
        connection = self._begun(begin)
        try:
            yield connection
        except BaseException:
            _end(connection)
            raise
        with self._lock:
            if self._process == os.getpid() and not self._closed:
                self._idle.append(connection)
                return
        _end(connection)

    def _begun(self, begin: Callable[[T], None]) -> T:
        while (idle := self._pop()) is not None:  # the server may have ended it meanwhile
            try:
                begin(idle)
            except FAILURES:
                _end(idle)
                continue
            return idle
        connection = self._connect()
        try:
            begin(connection)
        except BaseException as error:
            _end(connection)
            if isinstance(error, FAILURES):
                raise OperationalError("PostgreSQL does not begin a transaction with tacit's settings") from None
            raise
        return connection

    def _pop(self) -> T | None:
        with self._lock:
            if self._closed:
                raise OperationalError("the connection is closed")
            if self._process != os.getpid():  # those of the parent process are not ours to use or to close
                self._process, self._idle = os.getpid(), []
            return self._idle.pop() if self._idle else None

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle if self._process == os.getpid() else ():
            _end(connection)


def _end(connection: Any) -> None:
    with suppress(*FAILURES):
        connection.close()


def _place(url: str) -> str:
    """Host and database, for messages: never the password, which the text of a wrong URL could hold anywhere."""
    try:
        parts = conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError, ValueError):
        raise OperationalError(
            "the URL of the PostgreSQL database cannot be read\n"
            "hint: write postgresql://user@host:5432/database, with %40 for an @ inside a password"
        ) from None
    where = str(parts.get("host") or parts.get("hostaddr") or "localhost")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{where}{port}/{parts.get('dbname') or parts.get('user') or ''}"


def _connect(url: str, place: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
    except (psycopg.Error, OSError, UnicodeError) as error:
        raise OperationalError(f"cannot connect to PostgreSQL at {place}: {_reason(error)}") from None
    try:
        _check_server(connection)
    except BaseException:
        _end(connection)
        raise
    return connection


_REASONS = (
    ("password authentication failed", "the user name or the password is wrong"),
    ("no password supplied", "the server asks for a password, and none was given"),
    ("no pg_hba.conf entry", "the server does not let this user in from here (pg_hba.conf)"),
    ("database", "there is no such database, or this role may not use it"),
    ("role", "there is no such role"),
    ("refused", "no server answers there"),
    ("no such file", "no server answers there"),
    ("translate host name", "there is no such host"),
    ("resolve", "there is no such host"),
    ("timeout", "no answer in time"),
    ("ssl", "the two sides do not agree on SSL"),
)


def _reason(error: Exception) -> str:
    """Why, in words of our own: the server's could hold anything that stands in the URL."""
    text = str(error).lower()
    return next((reason for part, reason in _REASONS if part in text), "the server did not accept the connection")


def _check_server(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    if connection.info.server_version < LEAST_VERSION:
        raise OperationalError("PostgreSQL 14 or later is needed\nhint: upgrade the server")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise OperationalError(
            f"the database is encoded in {encoding}, and whether a text of it can be read depends on the rows\n"
            "hint: copy it into a database that was created with ENCODING 'UTF8'"
        )


def _connect_for_rows(url: str, place: str) -> adbc.Connection:
    try:
        return adbc.connect(url)
    except FAILURES:
        raise OperationalError(f"the connection to PostgreSQL at {place} cannot be opened again") from None


@contextmanager
def silenced(what: str) -> Iterator[None]:
    """An error of PostgreSQL or of its drivers as one of tacit's, without its text."""
    try:
        yield
    except FAILURES:
        raise OperationalError(what) from None


def all_rows(sessions: Sessions, statements: Sequence[str], parameters: Sequence[Sequence[Any]] = ()) -> list[Any]:
    """The rows of each statement about the catalog, all of one state of it."""
    given = [*parameters, *([()] * (len(statements) - len(parameters)))]
    with silenced("PostgreSQL cannot be asked for its tables: the connection is lost, or the role may not"):
        cursor_of: AbstractContextManager[psycopg.Cursor[tuple[Any, ...]]] = sessions.catalog()
        with cursor_of as cursor:
            return [cursor.execute(s, list(p) or None).fetchall() for s, p in zip(statements, given, strict=True)]
