"""DuckDB as the source of rows: a database file, an open connection, parquet or csv files."""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
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
from .file_views import attach, file_of, look_at, read_views
from .files import File, is_same, open_files, stamp
from .instance import Instance, instance_of, is_token
from .listing import means_files
from .public_tables import fetched, portable
from .running import keep_count
from .scan_sql import read_column
from .scanner import Scanner
from .scratch import SAFE_CONFIG, fold, lock
from .settings import needed, prepare
from .text import quote, view_body

Files = Mapping[tuple[str, ...], File]
"""Files that stand for tables, by schema and name."""
_TAKEN = ("main", "memory", "temp", "system")
"""Names that a database cannot be attached under."""
_DATABASES = (
    "SELECT database_name, path, type, database_name = current_database(), "
    "(SELECT count(*) FROM duckdb_tables() AS t WHERE t.database_name = d.database_name AND NOT t.internal) + "
    "(SELECT count(*) FROM duckdb_views() AS v WHERE v.database_name = d.database_name AND NOT v.internal) "
    "FROM duckdb_databases() AS d WHERE NOT internal"
)
"""Name, file and kind of the databases of a connection, which one it uses, and how many tables each has."""
_OPENING = threading.Lock()
"""A file is one DuckDB for all connections of a process, and its configuration is locked once."""


def open_source(database: Any, types: ColumnTypes | None = None) -> DuckDBSource:
    """Open what ``tacit.connect`` was given. Raises OperationalError when it is not a database."""
    if isinstance(database, duckdb.DuckDBPyConnection):
        return _from_connection(database, types or {})
    if not isinstance(database, str | os.PathLike):
        raise OperationalError(
            f"{type(database).__name__} is no database; give a DuckDB file, an open DuckDB connection, or the "
            "path of a parquet or csv file"
        )
    path = Path(database)
    if means_files(path):
        connection, file = open_files(path, types or {})
        return DuckDBSource(connection, file.listing.place, owned=True, files={(MAIN, file.name): file})
    if not path.is_file():
        raise OperationalError(f"there is no database file at {str(path)!r}")
    try:
        with _OPENING:
            connection = duckdb.connect(str(path), read_only=True, config=SAFE_CONFIG)
            lock(connection)
        source = DuckDBSource(connection, path.absolute(), owned=True)
        files = source.file_views(types or {})
        if not files:
            return source
        source.close()
        name = path.stem if folded(path.stem) not in _TAKEN else f"{path.stem} file"
        connection = attach(path.absolute(), name, files.values())
        return DuckDBSource(connection, path.absolute(), owned=True, files=files, database=name)
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


def _from_connection(connection: duckdb.DuckDBPyConnection, types: ColumnTypes) -> DuckDBSource:
    """The database that a connection uses: the current one, or the one file attached to one in memory without tables.

    Only one, because the ledger of a file lies beside it: whether the file is opened or attached, its tables have the
    same names and the same budget.
    """
    try:
        cursor = connection.cursor()
        databases = {name: rest for name, *rest in cursor.execute(_DATABASES).fetchall()}
        attached = sorted((name, path, kind) for name, (path, kind, _, _) in databases.items() if path)
        name = next(name for name, (_, _, current, _) in databases.items() if current)
        several = sum(not is_token(name) for name in databases) > 1
        if several:  # a cursor does not know what its connection has said by USE
            name = str(connection.sql("SELECT current_database()").fetchall()[0][0])
    except duckdb.ResourceInUseException:
        raise OperationalError(
            "the DuckDB connection is in the middle of a result\nhint: fetch all of it before tacit.connect"
        ) from None
    except duckdb.Error:
        raise OperationalError("the DuckDB connection is closed") from None
    path, kind, _, tables = databases[name]
    if not path and attached and not tables:
        if len(attached) > 1:
            names = ", ".join(name for name, _, _ in attached)
            raise OperationalError(
                f"the connection has several databases attached ({names}), and a budget holds for one of them\n"
                f"hint: USE {quote(attached[0][0])} before tacit.connect"
            )
        ((name, path, kind),) = attached
    if kind != "duckdb":
        raise OperationalError(
            f"{name} is attached by an extension ({kind}), and whether its rows can be read depends on them\n"
            'hint: open it directly if tacit can, as in tacit.connect("postgresql://…"), or copy its tables into DuckDB'
        )
    instance = None if path else instance_of(cursor, ran=1 + several)
    source = DuckDBSource(cursor, Path(path).absolute() if path else None, owned=True, instance=instance, database=name)
    source.use_files(source.file_views(types))
    return source


class DuckDBSource(Scanner):
    """Rows in DuckDB. Every call opens a cursor, so that threads can share the source."""

    main = MAIN

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path | None,
        *,
        owned: bool,
        files: Files | None = None,
        instance: Instance | None = None,
        database: str | None = None,
    ) -> None:
        self.path = path
        self._instance = instance
        self._files: Files = files or {}
        self._looker: duckdb.DuckDBPyConnection | None = connection if files else None
        self._is_files = bool(files) and database is None
        """Whether ``path`` is that of the files."""
        self._connection = connection
        self._owned = owned
        self._lock = threading.Lock()
        self._shape: dict[tuple[str, ...], tuple[Any, ...]] = {}
        super().__init__()
        current = connection.execute("SELECT current_database()").fetchall()
        self._database = str(current[0][0]) if database is None else database
        if instance is not None:
            instance.ran(1)

    def __repr__(self) -> str:
        return f"DuckDBSource({str(self.path) if self.path else 'in memory'})"

    @property
    def also_at(self) -> frozenset[Path]:
        """The files by themselves, and the folders that they are in."""
        paths = {path for file in self._files.values() for path in file.listing.paths}
        folders = {parent for path in paths for parent in path.parents}
        return frozenset(paths | folders) - {self.path} if self.path is not None else frozenset(paths | folders)

    @cached_property
    def database(self) -> str:
        """What SQL may call the database; empty where a schema of it is called the same."""
        rows = self._run("SELECT schema_name FROM duckdb_schemas() WHERE database_name = ?", self._database)
        return "" if folded(self._database) in {folded(schema) for (schema,) in rows} else self._database

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
        described = [(*place, *column, True) for place, file in self._files.items() for column in file.described]
        stored = [column for column in columns if column[:2] not in self._files]
        for schema, table, name, type_, nullable in [*stored, *described]:
            low, high = bounds.get((schema, table), {}).get(folded(name), (None, None))
            tables.setdefault((schema, table), []).append(
                SourceColumn(name, type_, bool(nullable), _enum_labels(type_), low, high)
            )
        views = {place: text for place, text in self._views().items() if place not in self._files}
        primary_keys = {
            (schema, table): tuple(names)
            for schema, table, names in self._run(
                "SELECT schema_name, table_name, constraint_column_names FROM duckdb_constraints() "
                "WHERE constraint_type = 'PRIMARY KEY' AND database_name = ?",
                self._database,
            )
        }
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

    def _views(self) -> dict[tuple[str, ...], str]:
        """The SELECT behind every view, by schema and name."""
        rows = self._run(
            "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal AND database_name = ?",
            self._database,
        )
        return {(schema, view): view_body(text) for schema, view, text in rows}

    def file_views(self, types: ColumnTypes) -> Files:
        """The views that stand for files."""
        paths = {place: path for place, text in self._views().items() if (path := file_of(text)) is not None}
        if not paths:
            return {}
        shapes = {place: dict(columns) for place, columns in _shape(self._columns()).items()}
        return read_views(paths, shapes, types)

    def use_files(self, files: Files) -> None:
        """Read views of an open connection as files. What files say of their columns is looked up elsewhere."""
        self._files = files
        self._looker = look_at(files.values()) if files else None

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
        paths = {_place(table) for table in scan.tables}
        same = all(self._is_same_file(self._files[path]) for path in paths & set(self._files))
        if not paths <= set(self._files):
            shape, stored = _shape(self._columns()), paths - set(self._files)
            same &= all(shape.get(path) == self._shape.get(path) for path in stored)
            same &= not stored & set(self._views())  # a view in a table's place computes, and can fail on a row
        if not same:
            raise OperationalError(
                f"the columns of {scan.name} are no longer those that this connection was opened with; nothing was "
                "charged\nhint: connect again"
            )

    def _is_same_file(self, file: File) -> bool:
        assert self._looker is not None
        with self._lock, self._looker.cursor() as cursor:
            if not is_same(cursor, file):
                return False
        if self._looker is not self._connection:  # an open connection may not read files, or not any more
            with suppress(OperationalError):
                return bool(self._run(f"DESCRIBE SELECT * FROM {file.rows}"))  # noqa: S608
            return False
        return True

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
        stamps = []
        try:
            if self._instance is not None:
                stamps.append(self._instance.state(self._run, self._database))
            elif self.path is not None and not self._is_files:
                stamps.append(stamp(self.path))
                with suppress(OSError):  # what an open connection wrote lies in the log until the next checkpoint
                    stamps.append(stamp(self.path.with_name(self.path.name + ".wal")))
            stamps += [stamp for file in self._files.values() for stamp in file.stamps]
        except OSError:
            raise OperationalError(f"{str(self.path or 'a file')!r} is gone") from None
        return " ".join(stamps)

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
        self._check_single(scan)
        plain = scan.table.privacy_unit is None and scan.table.rows is None
        read = scan.reads if plain else {column.name for table in scan.tables for column in table.columns}
        places = {_place(table) for table in scan.tables}
        fragile = sorted(name for place, f in self._files.items() if place in places for name in f.fragile & read)
        if fragile:
            raise NotSupportedError(
                f"{fragile[0]} is stored in milliseconds or as times of a day, and whether DuckDB can read it depends "
                "on the rows\nhint: write the file with timestamps in microseconds, or load it into a DuckDB database"
            )

    def _check_single(self, scan: Scan) -> None:
        """No other view stands for files of a table, of whose rows the policy says something else."""
        for place in {_place(table) for table in scan.tables if not table.public} & set(self._files):
            try:
                own = self._files[place].identities
                others = [other for other, file in self._files.items() if other != place and own & file.identities]
            except OSError:
                raise OperationalError(f"a file of {spelled(place)} is gone; nothing was charged") from None
            if others:
                raise NotSupportedError(
                    f"{spelled(place)} and {spelled(others[0])} read the same files, and would be two tables of the "
                    f"same rows; nothing was charged\nhint: make {spelled(others[0])} a view of {spelled(place)}, and "
                    "connect again"
                )

    def close(self) -> None:
        """Close the connection that tacit opened."""
        self._public.close()
        self.interrupt()  # a scan that an interrupted call has left behind
        if self._looker is not None and self._looker is not self._connection:
            self._looker.close()
        if self._owned:
            with suppress(duckdb.Error):
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
            own = scan is None or not {_place(table) for table in scan.tables} & set(self._files)
            ran = prepare(cursor, needed(scan, statistics=own), scan, statistics=own)
            ran += self._bring_public(cursor, scan)
            ran += keep_count(cursor) if scan is not None else 0
            if self._instance is not None:
                self._instance.ran(ran)
            with self._running.cursor(cursor):
                yield cursor

    def _stored(self, table: Table, wanted: Collection[str]) -> str:
        """Some columns of a stored table. Texts are compared byte by byte, whatever collation a column declares.

        Only the wanted columns are named, because without its optimizer DuckDB reads every column that is named.
        """
        file = self._files.get(_place(table))
        if file is not None:
            rows, computed = file.rows, file.columns
        else:
            rows = ".".join(quote(part) for part in (self._database, *_place(table)))
            computed = {}
        shown = [read_column(c, computed.get(c.name, quote(c.name))) for c in table.columns if c.name in wanted]
        return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {rows})"  # noqa: S608


def _place(table: Table) -> tuple[str, ...]:
    """Schema and name of a stored table."""
    return table.path or (MAIN, table.name)


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
