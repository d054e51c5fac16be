"""DuckDB as the source of rows: a database file, an open connection, a parquet or a csv file."""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from tacit.errors import NotSupportedError, OperationalError

from ...catalog import Table
from ...check_constraints import check_ranges
from ...names import MAIN, folded, spelled
from ...scan import Scan
from ...source import ColumnTypes, SourceColumn, SourceTable
from .files import READERS, File, folder_columns, open_file, open_folder
from .instance import Instance, instance_of
from .public_tables import fetched, portable
from .scan_sql import read_column
from .scanner import Scanner
from .scratch import SAFE_CONFIG, fold, lock
from .settings import needed, prepare
from .text import quote, view_body

_OPENING = threading.Lock()
"""A file is one DuckDB for all connections of a process, and its configuration is locked once."""


def open_source(database: Any, types: ColumnTypes | None = None) -> DuckDBSource:
    """Open what ``tacit.connect`` was given. Raises OperationalError when it is not a database."""
    if isinstance(database, duckdb.DuckDBPyConnection):
        return _from_connection(database)
    if not isinstance(database, str | os.PathLike):
        raise OperationalError(
            f"a {type(database).__name__} is not a database; give a DuckDB file, an open DuckDB connection, or the "
            "path of a parquet or csv file"
        )
    path = Path(database)
    pattern = "**/*.parquet" if path.is_dir() else path.name if _is_pattern(path) else None
    if pattern is not None:
        folder = (path if path.is_dir() else path.parent).resolve()
        connection, file = open_folder(folder, pattern)
        return DuckDBSource(connection, folder, owned=True, file=file)
    if not path.is_file():
        raise OperationalError(f"there is no database file at {str(path)!r}")
    kind = READERS.get(path.suffix.lower())
    if kind is not None:
        path = path.resolve()
        connection, file = open_file(path, kind, types or {})
        return DuckDBSource(connection, path, owned=True, file=file)
    try:
        with _OPENING:
            connection = duckdb.connect(str(path), read_only=True, config=SAFE_CONFIG)
            lock(connection)
    except duckdb.ConnectionException:
        raise OperationalError(
            f"{str(path)!r} is already open in this process with other settings; close it, or pass that open "
            "DuckDB connection to tacit.connect"
        ) from None
    except duckdb.IOException:
        raise OperationalError(
            f"{str(path)!r} cannot be opened as a DuckDB database: it is not one, or another process is writing to it"
        ) from None
    except duckdb.Error:
        raise OperationalError(f"{str(path)!r} cannot be opened as a DuckDB database") from None
    return DuckDBSource(connection, path.absolute(), owned=True)


def _is_pattern(path: Path) -> bool:
    """Whether a path stands for several parquet files; one of that very name comes first."""
    return not path.exists() and any(sign in path.name for sign in "*?[") and path.suffix in (".parquet", ".pq")


def _from_connection(connection: duckdb.DuckDBPyConnection) -> DuckDBSource:
    try:
        cursor = connection.cursor()
        row = cursor.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()").fetchone()
    except duckdb.Error:
        raise OperationalError("the DuckDB connection is closed") from None
    if row and row[0]:
        return DuckDBSource(cursor, Path(row[0]).absolute(), owned=True)
    return DuckDBSource(cursor, None, owned=True, instance=instance_of(cursor, ran=1))


class DuckDBSource(Scanner):
    """Rows in DuckDB. Every call opens a cursor, so that threads can share the source."""

    main = MAIN

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path | None,
        *,
        owned: bool,
        file: File | None = None,
        instance: Instance | None = None,
    ) -> None:
        self.path = path
        self._instance = instance
        self._file = file
        self._connection = connection
        self._owned = owned
        self._lock = threading.Lock()
        self._shape: dict[tuple[str, ...], tuple[Any, ...]] = {}
        super().__init__()
        self._database = str(connection.execute("SELECT current_database()").fetchall()[0][0])
        if instance is not None:
            instance.ran(1)

    def __repr__(self) -> str:
        return f"DuckDBSource({str(self.path) if self.path else 'in memory'})"

    def schema(self) -> tuple[SourceTable, ...]:
        """Names, types and constraints of all tables and views."""
        columns = self._columns()
        checks = self._run(
            "SELECT schema_name, table_name, expression FROM duckdb_constraints() "
            "WHERE constraint_type = 'CHECK' AND database_name = ?",
            self._database,
        )
        expressions: dict[tuple[str, str], list[str]] = {}
        for schema, table, expression in checks:
            expressions.setdefault((schema, table), []).append(expression)
        bounds = {table: check_ranges(texts) for table, texts in expressions.items()}
        self._shape = _shape(columns)
        tables: dict[tuple[str, str], list[SourceColumn]] = {}
        for schema, table, name, type_, nullable in columns:
            low, high = bounds.get((schema, table), {}).get(folded(name), (None, None))
            tables.setdefault((schema, table), []).append(
                SourceColumn(name, type_, bool(nullable), _enum_labels(type_), low, high)
            )
        views = {
            (schema, view): view_body(text)
            for schema, view, text in self._run(
                "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal AND database_name = ?",
                self._database,
            )
        }
        primary_keys = {
            (schema, table): tuple(names)
            for schema, table, names in self._run(
                "SELECT schema_name, table_name, constraint_column_names FROM duckdb_constraints() "
                "WHERE constraint_type = 'PRIMARY KEY' AND database_name = ?",
                self._database,
            )
        }
        if self._file is not None:
            views.pop(("main", self._file.name), None)
        return tuple(
            SourceTable(
                spelled((schema, table)),
                tuple(table_columns),
                views.get((schema, table), ""),
                (schema, table),
                primary_keys.get((schema, table), ()),
            )
            for (schema, table), table_columns in tables.items()
        )

    def _columns(self) -> list[tuple[Any, ...]]:
        """(schema, table, column, type, whether it can be NULL) of every stored column."""
        return self._run(
            "SELECT schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
            # a generated column is computed when it is read, and what it computes can fail on a row
            "WHERE NOT internal AND NOT coalesce(is_generated, false) AND database_name = ? "
            "ORDER BY schema_name, table_name, column_index",
            self._database,
        )

    def _check_unchanged(self, scan: Scan) -> None:
        """The batch was compiled for the columns that were there when the connection was opened."""
        if self._file is not None:
            same = self._is_same_file(self._file)
        else:
            shape = _shape(self._columns())
            paths = [table.path or ("main", table.name) for table in scan.tables]
            same = all(shape.get(path) == self._shape.get(path) for path in paths)
        if not same:
            raise OperationalError(
                f"the columns of {scan.name} are no longer those that this connection was opened with; nothing was "
                "charged\nhint: connect again"
            )

    def _is_same_file(self, file: File) -> bool:
        try:
            if self._run(f"DESCRIBE SELECT * FROM {file.rows}") != file.described:  # noqa: S608
                return False
            if not file.parts:
                return True
            with self._cursor() as cursor:
                return folder_columns(cursor, file.parts) == file.stored
        except (OperationalError, duckdb.Error):
            return False

    @property
    def memory(self) -> str | None:
        """The identity of a database in memory, the same from every connection to it; None for a file."""
        return None if self._instance is None else self._instance.token

    def version(self, key: bytes) -> str:
        """A name of the database's present state that says nothing but whether the state is the same.

        The file's size and modification stamp, or ``Instance.state`` for a database in memory. Both follow
        the number of rows, so they are shown only as a hash with a secret key.
        """
        return hmac.new(key, f"version {self._stamp()}".encode(), "sha256").hexdigest()[:32]

    def _stamp(self) -> str:
        if self.path is None:
            return "memory" if self._instance is None else self._instance.state(self._run, self._database)
        try:
            parts = self._file.parts if self._file is not None else ()
            stamps = [path.stat() for path in parts or (self.path,)]
        except OSError:
            raise OperationalError(f"{str(self.path)!r} is gone") from None
        with suppress(OSError):  # what an open connection wrote lies in the log until the next checkpoint
            stamps.append(self.path.with_name(self.path.name + ".wal").stat())
        return " ".join(f"{stat.st_mtime_ns}-{stat.st_size}" for stat in stamps)

    def _fetch_public(self, table: Table, columns: Sequence[str]) -> pd.DataFrame:
        typed = [(c.name, c.type) for c in table.columns if c.name in columns]
        try:
            with self._cursor() as cursor:
                return fetched(cursor.execute(f"SELECT {portable(typed)} FROM {self._stored(table, columns)}"))  # noqa: S608
        except duckdb.Error:
            raise OperationalError(f"the public table {table.name} cannot be read") from None

    def _check_readable(self, scan: Scan) -> None:
        """The columns are those that the batch was compiled for, and reading them can fail on no row."""
        self._check_unchanged(scan)
        plain = scan.table.privacy_unit is None and scan.table.rows is None
        read = scan.reads if plain else {column.name for table in scan.tables for column in table.columns}
        fragile = sorted(self._file.fragile & read) if self._file is not None else []
        if fragile:
            raise NotSupportedError(
                f"{fragile[0]} is stored in milliseconds, and whether DuckDB can read them depends on the rows\n"
                "hint: write the file with microseconds, or load it into a DuckDB database"
            )

    def close(self) -> None:
        """Close the connection that tacit opened."""
        self._public.close()
        if self._owned:
            self._connection.close()

    def _run(self, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
        try:
            with self._cursor() as cursor:
                return cursor.execute(sql, list(parameters)).fetchall()
        except duckdb.Error:
            raise OperationalError("the database cannot be read") from None

    @contextmanager
    def _cursor(self, scan: Scan | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """For one statement. Every statement of tacit's goes through here, or it would be counted as another user's."""
        with self._lock:
            cursor = self._connection.cursor()
        with cursor, nullcontext() if self._instance is None else self._instance.statement():
            ran = prepare(cursor, needed(scan))
            ran += self._bring_public(cursor, scan)
            if self._instance is not None:
                self._instance.ran(ran)
            yield cursor

    def _stored(self, table: Table, wanted: Collection[str]) -> str:
        """Some columns of a stored table. Texts are compared byte by byte, whatever collation a column declares.

        Only the wanted columns are named, because without its optimizer DuckDB reads every column that is named.
        """
        if self._file is not None:
            rows, computed = self._file.rows, self._file.columns
        else:
            rows = ".".join(quote(part) for part in (self._database, *(table.path or ("main", table.name))))
            computed = {}
        shown = [read_column(c, computed.get(c.name, quote(c.name))) for c in table.columns if c.name in wanted]
        return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {rows})"  # noqa: S608


def _shape(columns: Sequence[tuple[Any, ...]]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Names and types of the columns of each table."""
    shape: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for schema, table, name, type_, _ in columns:
        shape[schema, table] = (*shape.get((schema, table), ()), (name, type_))
    return shape


def _enum_labels(type_: str) -> tuple[str, ...] | None:
    if not type_.startswith("ENUM("):
        return None
    labels = fold(f"enum_range(NULL::{type_})")
    return tuple(labels[0]) if labels else None
