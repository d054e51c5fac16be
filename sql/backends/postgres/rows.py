"""Moving rows from PostgreSQL into a DuckDB, and the scans that run there.

Columns travel in PostgreSQL's binary form and arrive as Arrow batches of some megabytes, so that memory is bounded
however many rows there are; what DuckDB cannot hold it writes to a folder that only this user can read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pandas as pd
from tacit.errors import OperationalError

from ...catalog import Table
from ...scan import Scan
from ..duckdb.public_tables import PublicTables, fetched, portable
from ..duckdb.scan_sql import Stored, read_column
from ..duckdb.scanner import Scanner
from ..duckdb.scratch import SAFE_CONFIG, lock
from ..duckdb.settings import needed, prepare
from ..duckdb.text import quote
from .sessions import RowReader
from .stored_tables import StoredTable

Rendering = Callable[[Stored], str]
"""Writes a statement, once it is told where the rows are."""
Wanted = dict[tuple[str, ...], tuple[Table, set[str]]]
"""Tables by key, each with the names of the columns that are read of it."""


def wanted_by(renderings: Iterable[Rendering]) -> Wanted:
    """The stored columns that some statements read, found by writing the statements."""
    wanted: Wanted = {}

    def note(table: Table, columns: Collection[str]) -> str:
        if table.rows is None:
            wanted.setdefault(table.key, (table, set()))[1].update(columns)
        return "(SELECT 1)"

    for rendering in renderings:
        rendering(note)
    return wanted


class Store:
    """A DuckDB without tables. Rows are brought into temporary tables, which one cursor sees and which end with it."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="tacit-")
        self._remove = weakref.finalize(self, _remove, folder, os.getpid())
        settings = {"temp_directory": folder, "preserve_insertion_order": "false"}
        self._connection = duckdb.connect(":memory:", config={**SAFE_CONFIG, **settings})
        lock(self._connection)

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._connection.cursor() as cursor:
            yield cursor

    def close(self) -> None:
        self._connection.close()
        self._remove()


def _remove(folder: str, process: int) -> None:
    """Remove a folder, unless it is the parent process's."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class CopiedRows(Scanner):
    """The rows of some tables as they were in one transaction, and scans of them."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, public: PublicTables) -> None:
        self._copy = cursor
        self._public = public
        self._names: dict[tuple[str, ...], str] = {}

    def bring(self, reader: RowReader, tables: Mapping[tuple[str, ...], StoredTable], wanted: Wanted) -> None:
        """Copy the wanted columns."""
        prepare(self._copy, needed(None))
        for number, (key, (table, columns)) in enumerate(wanted.items()):
            name = f"temp.main.{quote(f'rows {number}')}"
            sent, received = transfer(table, tables[key], columns)
            with reader.stream(sent) as stream:
                self._copy.register("arriving", stream)
                self._copy.execute(f"CREATE TEMP TABLE {quote(f'rows {number}')} AS {received}")
                self._copy.unregister("arriving")
            self._names[key] = name

    @contextmanager
    def _cursor(self, scan: Scan | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        prepare(self._copy, needed(scan))
        self._bring_public(self._copy, scan)
        yield self._copy

    def _stored(self, table: Table, wanted: Collection[str]) -> str:
        shown = [read_column(c, quote(c.name)) for c in table.columns if c.name in wanted]
        return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {self._names[table.key]})"  # noqa: S608

    def _check_readable(self, scan: Scan) -> None:
        """They were read."""

    def _fetch_public(self, table: Table, columns: Sequence[str]) -> pd.DataFrame:
        typed = [(c.name, c.type) for c in table.columns if c.name in columns]
        try:
            with self._cursor() as cursor:
                return fetched(cursor.execute(f"SELECT {portable(typed)} FROM {self._stored(table, columns)}"))  # noqa: S608
        except duckdb.Error:
            raise OperationalError(f"the public table {table.name} cannot be read") from None


def transfer(table: Table, stored: StoredTable, columns: Collection[str]) -> tuple[str, str]:
    """(what PostgreSQL is asked for some columns of a table, what DuckDB makes of the stream ``arriving``)."""
    sent: list[str] = []
    received: list[str] = []
    for column in table.columns:
        if column.name not in columns:
            continue
        travel = stored.column(column.name).travel
        travel = travel.plain if column.recast else travel
        value = f"{quote(column.name)}::{travel.base}"
        arriving = [f"c{len(sent) + i}" for i in range(len(travel.sent))]
        sent += [f"{part.format(value)} AS {name}" for part, name in zip(travel.sent, arriving, strict=True)]
        received.append(f"{travel.received.format(*arriving)} AS {quote(column.name)}")
    return (
        f"SELECT {', '.join(sent) or '1 AS one'} FROM {quote(stored.schema)}.{quote(stored.name)}",  # noqa: S608
        f"SELECT {', '.join(received) or 'one'} FROM arriving",  # noqa: S608
    )
