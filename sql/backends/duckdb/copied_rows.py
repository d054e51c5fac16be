"""Rows of another engine in a DuckDB of this process, and the scans that run there.

What DuckDB cannot hold in memory it writes to a folder that only this user can read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pandas as pd
from tacit.errors import OperationalError

from ...catalog import Table
from ...scan import Scan
from .public_tables import PublicTables, fetched, portable
from .scan_sql import Stored, read_column
from .scanner import Scanner
from .scratch import SAFE_CONFIG, lock
from .settings import needed, prepare
from .text import quote

MEMORY = "2GB"
"""What one connection's copies may take of the memory; the rest goes to the folder."""
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
        settings = {"temp_directory": folder, "preserve_insertion_order": "false", "memory_limit": MEMORY}
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
    """The rows of some tables, and scans of them. Whoever fills it says in ``_names`` where each table is."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, public: PublicTables) -> None:
        self._copy = cursor
        self._public = public
        self._names: dict[tuple[str, ...], str] = {}

    @contextmanager
    def _cursor(self, scan: Scan | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        prepare(self._copy, needed(scan), scan)
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
