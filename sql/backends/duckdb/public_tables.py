"""A DuckDB of its own for queries over public tables and released frames. It holds copies of those and nothing else.

So whatever an analyst's text asks, there is no private row that it could read; and it runs with DuckDB's optimizer,
which the scans of private rows do without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
from tacit.errors import OperationalError

from ...catalog import Table
from ...derived import PublicQuery
from .scratch import SAFE_CONFIG, with_ctes
from .text import quote
from .types import is_joinable, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Columns = Sequence[tuple[str, str]]
"""(name, type) of each column."""
Fetch = Callable[[Table, Sequence[str]], pd.DataFrame]
"""Some columns of a stored public table as ``portable`` has them."""


def portable(columns: Columns) -> str:
    """A SELECT list that brings columns over to another DuckDB without a change: whole numbers, texts of the rest."""
    return ", ".join(
        quote(name) if is_joinable(type_, "BIGINT") else f"CAST({quote(name)} AS VARCHAR) AS {quote(name)}"
        for name, type_ in columns
    )


def fetched(cursor: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """What a statement with a portable list returns; whole numbers with NULL among them stay whole numbers."""
    columns: dict[str, Any] = {}
    arrays: Mapping[str, Any] = cursor.fetchnumpy()
    for i, (name, values) in enumerate(arrays.items()):
        plain = np.asarray(values.data if np.ma.isMaskedArray(values) else values)
        if np.ma.is_masked(values):
            plain = plain.astype(object)
            plain[np.ma.getmaskarray(values)] = None
        columns[f"{i} {name}"] = pd.Series(plain, dtype=object if plain.dtype == object else None)
    return pd.DataFrame(columns)


def restored(frame: str, columns: Columns) -> str:
    """The SELECT that makes of a portable frame what it was; the frame's columns go by their places."""
    casts = [f"CAST({quote(f'{i} {name}')} AS {type_}) AS {quote(name)}" for i, (name, type_) in enumerate(columns)]
    return f"SELECT {', '.join(casts)} FROM {frame}"  # noqa: S608


def is_portable(type_: str) -> bool:
    """Whether a value of a type can be written as text and read again. Nested types are left out."""
    return kind_of(type_) not in ("other", "null")


class PublicTables:
    """Runs queries over public tables; each is brought over when it is first needed, and again when it has changed."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._names: dict[tuple[str, ...], tuple[str, str]] = {}
        """Name and version of every table that is here."""

    def rows(self, query: PublicQuery) -> list[tuple[Any, ...]]:
        """The rows of a query as Python's values."""
        with self._running(query) as (cursor, text):
            return cursor.execute(text).fetchall()

    def portable_rows(self, query: PublicQuery, columns: Columns) -> pd.DataFrame:
        """Some columns of a query's rows, to be brought into another DuckDB."""
        with self._running(query) as (cursor, text):
            return fetched(cursor.execute(f"SELECT {portable(columns) or '1 AS one'} FROM ({text})"))  # noqa: S608

    def compute(self, query: PublicQuery, frames: Mapping[str, tuple[pd.DataFrame, Columns]]) -> pd.DataFrame:
        """The frame of a query over public tables and over frames that go by names of their own."""
        with self._running(query, frames) as (cursor, text):
            result: pd.DataFrame = cursor.execute(text).df()
            return result

    @contextmanager
    def _running(
        self, query: PublicQuery, frames: Mapping[str, tuple[pd.DataFrame, Columns]] | None = None
    ) -> Iterator[tuple[duckdb.DuckDBPyConnection, str]]:
        with self._lock:
            cursor = self._database().cursor()
        try:
            heads = [(name, f"SELECT * FROM {quote(self._loaded(table))}") for name, table in query.tables]  # noqa: S608
            for name, (frame, columns) in (frames or {}).items():
                cursor.register(f"{name}_frame", frame)
                heads.append((name, restored(f"{name}_frame", columns)))
            yield cursor, with_ctes(query.text, [*heads, *query.ctes])
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise OperationalError(f"a query over public tables and released values failed: {reason}") from None
        finally:
            cursor.close()

    def _loaded(self, table: Table) -> str:
        """The name of the copy of a table."""
        with self._lock:
            name, version = self._names.get(table.key, ("", ""))
            if name and version == table.version:
                return name
            columns = [(c.name, c.type) for c in table.columns if is_portable(c.type)]
            frame = self._fetch(table, [column for column, _ in columns])
            cursor = self._database().cursor()
            try:
                cursor.register("brought", frame)
                name = name or f"table {len(self._names)}"
                cursor.execute(f"CREATE OR REPLACE TABLE {quote(name)} AS {restored('brought', columns)}")
            finally:
                cursor.close()
            self._names[table.key] = name, table.version
            return name

    def _database(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            self._connection = duckdb.connect(":memory:", config=SAFE_CONFIG)
            self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
            self._connection.execute("SET lock_configuration = true")
        return self._connection

    def close(self) -> None:
        """Forget all copies."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
                self._names.clear()
