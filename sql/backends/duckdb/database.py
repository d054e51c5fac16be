"""DuckDB as the source of rows: a database file, an open connection, a parquet or a csv file."""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.errors import NotSupportedError, OperationalError

from ...catalog import Table
from ...check_constraints import check_ranges
from ...derived import PublicQuery, identity, public_queries
from ...names import folded, spelled
from ...product_scan import ProductScan
from ...scan import Scan
from ...scan_sets import ScanSets, joint_scans
from ...source import ColumnTypes, Keep, SourceColumn, SourceTable
from .extremes import rehearsal
from .files import READERS, File, open_file
from .instance import Instance, instance_of
from .public_tables import Columns, PublicTables, fetched, is_portable, portable, restored
from .scan_sql import Stored, read_column, render, render_rows, render_values
from .scratch import SAFE_CONFIG, fold, lock
from .settings import needed, prepare
from .text import quote, view_body

_OPENING = threading.Lock()
"""A file is one DuckDB for all connections of a process, and its configuration is locked once."""


_VECTORS = 128
"""So many vectors of 2,048 rows are counted at a time."""
_VALUES = 1 << 16
"""So many values are held at a time while those that pass are chosen."""


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


def _from_connection(connection: duckdb.DuckDBPyConnection) -> DuckDBSource:
    try:
        cursor = connection.cursor()
        row = cursor.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()").fetchone()
    except duckdb.Error:
        raise OperationalError("the DuckDB connection is closed") from None
    if row and row[0]:
        return DuckDBSource(cursor, Path(row[0]).absolute(), owned=True)
    return DuckDBSource(cursor, None, owned=True, instance=instance_of(cursor, ran=1))


class DuckDBSource:
    """Rows in DuckDB. Every call opens a cursor, so that threads can share the source."""

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
        self._public = PublicTables(self._fetch_public)
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
            try:
                described = self._run(f"DESCRIBE SELECT * FROM {self._file.rows}")  # noqa: S608
            except OperationalError:
                described = []
            same = described == self._file.described
        else:
            shape = _shape(self._columns())
            paths = [table.path or ("main", table.name) for table in scan.tables]
            same = all(shape.get(path) == self._shape.get(path) for path in paths)
        if not same:
            raise OperationalError(
                f"the columns of {scan.name} are no longer those that this connection was opened with; nothing was "
                "charged\nhint: connect again"
            )

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
            stamps = [self.path.stat()]
        except OSError:
            raise OperationalError(f"{str(self.path)!r} is gone") from None
        with suppress(OSError):  # what an open connection wrote lies in the log until the next checkpoint
            stamps.append(self.path.with_name(self.path.name + ".wal").stat())
        return " ".join(f"{stat.st_mtime_ns}-{stat.st_size}" for stat in stamps)

    def unique(self, table: Table, columns: tuple[str, ...]) -> bool:
        """Whether no two rows of a public table agree in these columns; NULL keys match nothing."""
        keys = ", ".join(quote(column) for column in columns) or "1"
        present = " AND ".join(f"{quote(column)} IS NOT NULL" for column in columns) or "TRUE"
        tail = f"WHERE {present} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
        if isinstance(table.rows, PublicQuery):
            doubled = replace(table.rows, text=f"SELECT 1 FROM ({table.rows.text}) {tail}")  # noqa: S608
            return not self._public.rows(doubled)
        return not self._run(f"SELECT 1 FROM {self._stored(table, columns)} {tail}")  # noqa: S608

    def read_public(self, query: PublicQuery) -> list[tuple[Any, ...]]:
        """The rows of a query over public tables."""
        return self._public.rows(query)

    def compute(self, query: PublicQuery, frames: Mapping[str, tuple[pd.DataFrame, Columns]]) -> pd.DataFrame:
        """The frame of a query over public tables and released frames."""
        return self._public.compute(query, frames)

    def _fetch_public(self, table: Table, columns: Sequence[str]) -> pd.DataFrame:
        typed = [(c.name, c.type) for c in table.columns if c.name in columns]
        try:
            with self._cursor() as cursor:
                return fetched(cursor.execute(f"SELECT {portable(typed)} FROM {self._stored(table, columns)}"))  # noqa: S608
        except duckdb.Error:
            raise OperationalError(f"the public table {table.name} cannot be read") from None

    def rehearse(self, scan: Scan | ProductScan) -> None:
        """Run the scan on rows made of extreme values, with the settings of this database.

        A setting or a limit of this DuckDB that makes the scan fail for any rows shows here, before anything is
        charged. Reads no stored row. Of a product, every axis is counted: each computes what any set of axes does.
        """
        if isinstance(scan, ProductScan):
            return self.rehearse_all([scan.marginal((axis,)) for axis in range(len(scan.axes))])
        self._check_readable(scan)
        with _refusing():
            self._count(scan, render(scan, bytes(32), rehearsal))

    def rehearse_all(self, scans: Sequence[Scan]) -> None:
        """Run what ``count_all`` would run, on rows made of extreme values."""
        for joint, _ in joint_scans(scans):
            self._check_readable(joint.rows)
            with _refusing():
                self._count_sets(joint, bytes(32), rehearsal)

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

    def count(self, scan: Scan, salt: bytes) -> NDArray[np.int64]:
        """Run the generated aggregate scan and add its groups up into cells.

        Sums are clamped to the ends of int64 (a contraction) before they are handed over.
        """
        with _silenced():
            return self._count(scan, render(scan, salt, self._stored))

    def count_all(self, scans: Sequence[Scan], salt: bytes) -> list[NDArray[np.int64]]:
        """``count`` for several scans; those of the same rows are counted in one pass."""
        vectors: dict[int, NDArray[np.int64]] = {}
        for joint, numbers in joint_scans(scans):
            if len(numbers) == 1:  # DuckDB adds it up by itself
                vectors[numbers[0]] = self.count(scans[numbers[0]], salt)
                continue
            with _silenced():
                vectors |= zip(numbers, self._count_sets(joint, salt, self._stored), strict=True)
        return [vectors[number] for number in range(len(scans))]

    def rehearse_values(self, scan: Scan) -> None:
        """Run what ``values`` would run, on rows made of extreme values."""
        self._check_readable(scan)
        with _refusing():
            self._values(scan, render_values(scan, bytes(32), rehearsal), lambda counts: counts > 0)

    def values(self, scan: Scan, salt: bytes, keep: Keep) -> list[Any]:
        """The values of the scan's one column whose counts of units ``keep`` lets pass."""
        with _silenced():
            return self._values(scan, render_values(scan, salt, self._stored), keep)

    def _values(self, scan: Scan, sql: str, keep: Keep) -> list[Any]:
        kept: list[Any] = []
        with self._cursor(scan) as cursor:
            result = cursor.execute(sql)
            while rows := result.fetchmany(_VALUES):
                passing = keep(np.array([count for _, count in rows], dtype=np.int64))
                kept += [value for (value, _), passes in zip(rows, passing, strict=True) if passes]
        return kept

    def _count_sets(self, joint: ScanSets, salt: bytes, stored: Stored) -> list[NDArray[np.int64]]:
        counter, width = joint.counter(), len(joint.rows.regions)
        with self._cursor(joint.rows) as cursor:
            result = cursor.execute(render_rows(joint.rows, salt, stored))
            while rows := len(batch := result.fetch_df_chunk(_VECTORS)):
                columns = [batch.iloc[:, i].to_numpy(dtype=np.int64) for i in range(batch.shape[1])]
                counter.add(columns[:width], columns[width:], rows)
        return counter.vectors()

    def _count(self, scan: Scan, sql: str) -> NDArray[np.int64]:
        with self._cursor(scan) as cursor:
            columns = cursor.execute(sql).fetchnumpy()
        return scan.in_cells([np.asarray(column) for column in columns.values()])

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
            for name, table in _public_queries(scan):
                assert isinstance(table.rows, PublicQuery)
                cursor.register(name, self._public.portable_rows(table.rows, _portable_columns(table)))
                ran += 1
            if self._instance is not None:
                self._instance.ran(ran)
            yield cursor

    def _stored(self, table: Table, wanted: Collection[str]) -> str:
        """Some columns of a stored table. Texts are compared byte by byte, whatever collation a column declares.

        Only the wanted columns are named, because without its optimizer DuckDB reads every column that is named. The
        rows of a public query were brought over before: see ``_cursor``.
        """
        if isinstance(table.rows, PublicQuery):
            return f"({restored(quote(_public_name(table)), _portable_columns(table))})"
        if self._file is not None:
            rows, computed = self._file.rows, self._file.columns
        else:
            rows = ".".join(quote(part) for part in (self._database, *(table.path or ("main", table.name))))
            computed = {}
        shown = [read_column(c, computed.get(c.name, quote(c.name))) for c in table.columns if c.name in wanted]
        return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {rows})"  # noqa: S608


def _public_queries(scan: Scan | None) -> list[tuple[str, Table]]:
    """The public queries that a scan joins, and the names that their rows are brought over under."""
    if scan is None:
        return []
    tables = dict.fromkeys(public_queries(scan.table, (*scan.private, *scan.joins)))
    return [(_public_name(table), table) for table in tables]


def _public_name(table: Table) -> str:
    digest = hashlib.sha256(repr(identity(table)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"tacit public {digest[:32]}"


def _portable_columns(table: Table) -> list[tuple[str, str]]:
    return [(c.name, c.type) for c in table.columns if is_portable(c.type)]


@contextmanager
def _silenced() -> Iterator[None]:
    """DuckDB's message can quote a cell, so it is not passed on."""
    try:
        yield
    except duckdb.Error:
        raise OperationalError("the scan of the table failed; nothing was released") from None


@contextmanager
def _refusing() -> Iterator[None]:
    """A statement that fails on rows of tacit's own making is refused before anything is charged."""
    try:
        yield
    except duckdb.Error:
        raise NotSupportedError(
            "DuckDB cannot run the scan that this batch needs; nothing was charged\n"
            "hint: split the batch, or write simpler expressions"
        ) from None


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
