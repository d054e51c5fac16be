"""DuckDB as the source of rows: a database file, an open connection, a parquet or a csv file.

The SQL that reads rows is generated from the compiled scan alone; no text of the analyst's gets here. It is made
of total functions only, so that it cannot fail for a reason that lies in a row: comparisons with constants,
CASE, casts of numbers to DOUBLE, rounding of a value that was compared with both ends of its clamp first.
"""

from __future__ import annotations

import csv
import hmac
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType
from tacit.errors import NotSupportedError, OperationalError, PolicyError

from ..catalog import Column, Table
from ..checks import check_ranges
from ..extremes import extremes
from ..names import folded, meanings, nearest, spelled
from ..parse import DUCKDB
from ..scan import UNIT, Measure, Scan
from ..scratch import SAFE_CONFIG, fold, literal, lock, meaning, quote
from ..source import ColumnTypes, SourceColumn, SourceTable
from .instance import Instance, instance_of
from .regions_sql import region_sql

_LONGEST_HEADER = 1 << 20
_OPENING = threading.Lock()
"""A file is one DuckDB for all connections of a process, and its configuration is locked once."""
_READERS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}


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
    kind = _READERS.get(path.suffix.lower())
    if kind is not None:
        return _from_file(path, kind, types or {})
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
        own = connection.cursor()
        row = own.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()").fetchone()
    except duckdb.Error:
        raise OperationalError("the DuckDB connection is closed") from None
    if row and row[0]:
        return DuckDBSource(own, Path(row[0]).absolute(), owned=True)
    return DuckDBSource(own, None, owned=True, instance=instance_of(own, ran=1))


def _from_file(path: Path, kind: str, types: ColumnTypes) -> DuckDBSource:
    """An in-memory database with one view over the file, and no other file within reach."""
    path = path.resolve()
    where = literal(re.sub(r"([*?\[])", r"[\1]", str(path)))  # else DuckDB takes a name for a pattern of names
    connection = duckdb.connect(
        ":memory:", config={k: v for k, v in SAFE_CONFIG.items() if "autol" in k or "autoi" in k}
    )
    name = path.stem
    try:
        file = File(name, f"read_parquet({where})") if kind == "parquet" else _csv_file(path, where, types)
        shown = ", ".join(f"{sql} AS {quote(column)}" for column, sql in file.columns.items()) or "*"
        connection.execute(f"CREATE VIEW {quote(name)} AS SELECT {shown} FROM {file.rows}")  # noqa: S608
        described = connection.execute(f"DESCRIBE SELECT * FROM {file.rows}").fetchall()  # noqa: S608
        if kind == "parquet":
            stored = connection.execute(f"SELECT name, converted_type FROM parquet_schema({where})").fetchall()  # noqa: S608
            file = replace(file, fragile=frozenset(column for column, how in stored if "MILLIS" in (how or "")))
        connection.execute(f"SET allowed_paths = [{literal(str(path))}, {where}]")
        connection.execute("SET enable_external_access = false")
        lock(connection)
    except duckdb.Error:
        connection.close()
        raise OperationalError(f"{str(path)!r} cannot be read as a {kind} file") from None
    return DuckDBSource(connection, path, owned=True, file=replace(file, described=described))


@dataclass(frozen=True)
class File:
    """A parquet or csv file that stands for a stored table."""

    name: str
    rows: str
    """What stands in FROM."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """SQL of the columns that are not read as they are."""
    described: list[tuple[Any, ...]] = field(default_factory=list)
    """What DuckDB says of the columns in the file."""
    fragile: frozenset[str] = frozenset()
    """Columns that DuckDB converts when it reads them, and fails on a value that it cannot: refused when used."""


def _csv_file(path: Path, where: str, types: ColumnTypes) -> File:
    """Every field is read as text and cast with TRY_CAST, so that no content of the file can make the scan fail.

    Columns are found by the names in the header; the types are the policy's, because guessing them means looking.
    """
    declared = next(
        (columns for table, columns in types.items() if ("main", folded(path.stem)) in meanings(table)), None
    )
    if not declared:
        raise PolicyError(
            f"a csv file has no types of its own; declare them in the policy, under [tables.{path.stem}.columns]: "
            'age = { type = "INTEGER" }'
        )
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    header = _header(path, delimiter)
    missing = [name for name in declared if name not in header]
    if missing:
        raise PolicyError(f"{path.name} has no column {missing[0]!r} in its first line: {nearest(missing[0], header)}")
    columns = "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header) + "}"
    rows = (
        f"read_csv({where}, header = true, auto_detect = false, columns = {columns}, "
        f"delim = {literal(delimiter)}, quote = '\"', escape = '\"', "
        "null_padding = true, ignore_errors = true, strict_mode = false, parallel = false)"
    )
    return File(path.stem, rows, {name: f"TRY_CAST({quote(name)} AS {type_})" for name, type_ in declared.items()})


def _header(path: Path, delimiter: str) -> list[str]:
    """The names in the first line. Nothing after it is looked at, so that no row decides whether a file opens."""
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER)
    except OSError:
        raise OperationalError(f"{str(path)!r} cannot be read as a csv file") from None
    first, end, _ = line.partition(b"\r" if b"\r" in line else b"\n")
    try:
        if not end and len(line) == _LONGEST_HEADER:
            raise csv.Error
        names = next(csv.reader([first.decode("utf-8-sig")], delimiter=delimiter, strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        raise OperationalError(
            f"the first line of {str(path)!r} must name the columns, in UTF-8, within {_LONGEST_HEADER:,} bytes"
        ) from None
    if len(set(names)) < len(names) or not all(names):
        raise OperationalError(f"the first line of {str(path)!r} must name every column once")
    return names


class DuckDBSource:
    """Rows in DuckDB. Every call uses a cursor of its own, so that threads can share the source."""

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
        bounds = {table: check_ranges(found) for table, found in expressions.items()}
        self._shape = _shape(columns)
        tables: dict[tuple[str, str], list[SourceColumn]] = {}
        for schema, table, name, type_, nullable in columns:
            low, high = bounds.get((schema, table), {}).get(folded(name), (None, None))
            tables.setdefault((schema, table), []).append(
                SourceColumn(name, type_, bool(nullable), _enum_labels(type_), low, high)
            )
        views = {
            (schema, view): _view_body(text)
            for schema, view, text in self._run(
                "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal AND database_name = ?",
                self._database,
            )
        }
        if self._file is not None:
            views.pop(("main", self._file.name), None)
        return tuple(
            SourceTable(
                spelled((schema, table)),
                tuple(found),
                views.get((schema, table), ""),
                (schema, table),
            )
            for (schema, table), found in tables.items()
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
                found = self._run(f"DESCRIBE SELECT * FROM {self._file.rows}")  # noqa: S608
            except OperationalError:
                found = []
            same = found == self._file.described
        else:
            shape, tables = _shape(self._columns()), (scan.table, *(j.table for _, j in (*scan.private, *scan.joins)))
            paths = [table.path or ("main", table.name) for table in tables]
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

    def version(self, table: str, key: bytes) -> str:
        """A name of the table's present state that says nothing but whether the state is the same.

        The file's size and modification stamp, or what ``Instance.state`` tells of a database in memory. Both follow
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
        keys = ", ".join(quote(column) for column in columns)
        present = " AND ".join(f"{quote(column)} IS NOT NULL" for column in columns)
        rows = self._stored(table, columns)
        sql = f"SELECT 1 FROM {rows} WHERE {present} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
        return not self._run(sql)

    def rehearse(self, scan: Scan) -> None:
        """Run the scan on rows of our own, made of extreme values, with the settings of this very database.

        Whatever makes a scan fail whatever the rows are, a setting or a limit of this DuckDB, shows here, before
        anything is charged. Reads no stored row.
        """
        self._check_unchanged(scan)
        read = scan.reads if scan.table.privacy_unit is None else {column.name for column in scan.table.columns}
        fragile = sorted(self._file.fragile & read) if self._file is not None else []
        if fragile:
            raise NotSupportedError(
                f"{fragile[0]} is stored in milliseconds, and whether DuckDB can read them depends on the rows\n"
                "hint: write the file with microseconds, or load it into a DuckDB database"
            )
        try:
            self._count(scan, render(scan, bytes(32), _rehearsal))
        except duckdb.Error:
            raise NotSupportedError(
                "DuckDB cannot run the scan that this batch needs; nothing was charged\n"
                "hint: split the batch, or write simpler expressions"
            ) from None

    def count(self, scan: Scan, salt: bytes) -> NDArray[np.int64]:
        """Run the generated aggregate scan and add its groups up into cells.

        Sums are clamped to the ends of int64 (a contraction) before they are handed over.
        """
        try:
            return self._count(scan, render(scan, salt, self._stored))
        except duckdb.Error:
            # DuckDB's own text can quote a cell, so it goes no further than this.
            raise OperationalError("the scan of the table failed; nothing was released") from None

    def _count(self, scan: Scan, sql: str) -> NDArray[np.int64]:
        with self._cursor(scan) as cursor:
            found = cursor.execute(sql).fetchnumpy()
        return _into_cells(scan, [np.asarray(column) for column in found.values()])

    def close(self) -> None:
        """Close the connection that tacit opened."""
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
        """For one statement: every statement of tacit's own goes through here, or it passes for somebody else's."""
        with self._lock:
            cursor = self._connection.cursor()
        with cursor, nullcontext() if self._instance is None else self._instance.own():
            ran = _prepare(cursor, _needed(scan))
            if self._instance is not None:
                self._instance.ran(ran)
            yield cursor

    def _stored(self, table: Table, wanted: Collection[str]) -> str:
        """Some columns of a stored table. Texts are compared byte by byte, whatever collation a column declares.

        Only what is wanted is named, because without its optimizer DuckDB reads every column that is.
        """
        if self._file is not None:
            rows, computed = self._file.rows, self._file.columns
        else:
            rows = ".".join(quote(part) for part in (self._database, *(table.path or ("main", table.name))))
            computed = {}
        shown = [_read(c, computed.get(c.name, quote(c.name))) for c in table.columns if c.name in wanted]
        return f"(SELECT {', '.join(shown) or '1 AS one'} FROM {rows})"  # noqa: S608


def _shape(columns: Sequence[tuple[Any, ...]]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Names and types of the columns of each table."""
    found: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for schema, table, name, type_, _ in columns:
        found[schema, table] = (*found.get((schema, table), ()), (name, type_))
    return found


def _needed(scan: Scan | None) -> frozenset[str]:
    """The settings that a statement depends on. Most mean nothing to a scan that computes nothing from a row."""
    needed = frozenset(meaning()) - {"TimeZone", "Calendar", "enable_optimizer"}
    inputs = [stored for column in scan.computed for stored in column.inputs] if scan is not None else []
    if inputs:
        needed |= {"enable_optimizer"}
    if any("TIME ZONE" in column.type for column in inputs):
        needed |= {"TimeZone", "Calendar"}
    return needed


def _prepare(cursor: duckdb.DuckDBPyConnection, needed: Collection[str]) -> int:
    """Let SQL mean on this cursor what it meant when the batch was compiled; the number of statements that it took.

    Functions are looked up in DuckDB's own schema alone: a macro of the database could shadow any of them, signs
    included. Settings of an open connection that change what SQL means are set back for this cursor only. Where its
    configuration is locked, those in ``needed`` must have their value.
    """
    cursor.execute("SET search_path = 'system.main'")
    names = ", ".join(f"current_setting({literal(name)})" for name in meaning())
    (found,) = cursor.execute(f"SELECT {names}").fetchall()
    ran = 2
    for (name, wanted), value in zip(meaning().items(), found, strict=True):
        if str(value if value is not None else "").lower() == wanted.lower():
            continue
        try:
            ran += 1
            cursor.execute(f"SET SESSION {name} = {literal(wanted)}")
        except duckdb.Error:
            if name not in needed:
                continue
            raise OperationalError(
                f"this DuckDB has {name} set to a value that changes what SQL means, and locked\n"
                f"hint: RESET {name} before the configuration is locked"
            ) from None
    return ran


def _view_body(text: str) -> str:
    """The SELECT of a CREATE VIEW, under the names of its column list if it has one.

    What cannot be read is kept whole, and refused when somebody uses it: a CREATE is no SELECT.
    """
    try:
        tokens = DUCKDB.tokenize(text)
    except TokenError:
        return text
    place = next((i for i, token in enumerate(tokens) if token.token_type == TokenType.ALIAS), None)
    head = tokens[:place]
    if place is None or TokenType.VIEW not in (token.token_type for token in head):
        return text
    body = text[tokens[place].end + 1 :].rstrip().removesuffix(";")
    if head[-1].token_type != TokenType.R_PAREN:
        return body
    opening = next(i for i, token in enumerate(head) if token.token_type == TokenType.L_PAREN)
    names = ", ".join(quote(token.text) for token in head[opening + 1 : -1] if token.token_type != TokenType.COMMA)
    return f"SELECT * FROM ({body}) AS renamed({names})"  # noqa: S608


def _into_cells(scan: Scan, found: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Add the groups up into cells. In two halves of 32 bits, so that no sum wraps around."""
    keys, sums = found[: len(scan.regions)], found[len(scan.regions) :]
    corners = scan.cell_of.reshape(*(r.count for r in scan.regions), -1)
    cells = corners[tuple(key.astype(np.int64) for key in keys)].reshape(-1, len(sums))
    amounts = np.stack(sums, axis=-1).astype(np.int64).reshape(-1, len(sums))
    counted = cells >= 0
    upper, lower = np.zeros(scan.cells, dtype=np.int64), np.zeros(scan.cells, dtype=np.int64)
    np.add.at(upper, cells[counted], amounts[counted] >> 32)
    np.add.at(lower, cells[counted], amounts[counted] & 0xFFFFFFFF)
    largest = np.iinfo(np.int64).max
    totals = (min((int(u) << 32) + int(v), largest) for u, v in zip(upper, lower, strict=True))
    return np.fromiter(totals, dtype=np.int64, count=scan.cells)


Stored = Callable[[Table, Collection[str]], str]
"""Where the named columns of a table are: what stands in FROM."""


def render(scan: Scan, salt: bytes, stored: Stored) -> str:
    """The aggregate scan as DuckDB SQL: a group per point of the grid of regions, a sum per corner of the clamps.

    ``stored`` says where the rows of a table are.
    """
    keys = [f"{region_sql(regions)} AS k{i}" for i, regions in enumerate(scan.regions)]
    shares = [f"{_share_sql(measure)} AS f{i}" for i, measure in enumerate(scan.measures)]
    inner = f"SELECT {', '.join([*keys, *shares]) or '1 AS one'} FROM {_rows(scan, salt, stored)}"  # noqa: S608
    groups = [f"k{i}" for i in range(len(keys))]
    sums = [_corner_sql(corner, len(shares)) for corner in range(1 << len(shares))] if shares else ["count(*)"]
    capped = [f"CAST(least({s}, 9223372036854775807) AS BIGINT) AS s{i}" for i, s in enumerate(sums)]
    tail = f" GROUP BY {', '.join(groups)}" if groups else ""
    return f"SELECT {', '.join([*groups, *capped])} FROM ({inner}){tail}"  # noqa: S608


def _rows(scan: Scan, salt: bytes, stored: Stored) -> str:
    """The rows to count: the base, and what is joined to it under labelled names."""
    reads = scan.reads
    rows = _bounded(scan.table, salt, stored, reads)
    if not scan.private and not scan.joins:
        return rows
    # Only the columns of the catalog, under names that are all different (see Catalog.labels).
    base = ", ".join(quote(c.name) for c in scan.table.columns if c.name in reads)
    rows = f"(SELECT {base or '1 AS one'} FROM {rows})"  # noqa: S608
    for label, join in scan.private:
        wanted = [c.name for c in join.table.columns if c.of(label).name in reads]
        other = f"(SELECT {_labelled(join.table, label, wanted)} FROM {_bounded(join.table, salt, stored, wanted)})"  # noqa: S608
        on = " AND ".join(f"{quote(own)} = {quote(f'{label}.{theirs}')}" for own, theirs in join.on)
        rows = f"(SELECT * FROM {rows} JOIN {other} ON {on})"  # noqa: S608
    for label, join in scan.joins:
        wanted = [c.name for c in join.table.columns if c.of(label).name in reads]
        keys = ", ".join(quote(theirs) for _, theirs in join.on)
        # A public key that is not unique is refused before the charge; here it could not multiply rows anyhow.
        once = (
            f"(SELECT {_labelled(join.table, label, wanted)}, TRUE AS {quote(f'{label}.')} "  # noqa: S608
            f"FROM {stored(join.table, wanted)} QUALIFY row_number() OVER (PARTITION BY {keys}) = 1)"
        )
        on = " AND ".join(f"{own} = {quote(f'{label}.{theirs}')}" for own, theirs in join.on)
        rows = f"(SELECT * FROM {rows} LEFT JOIN {once} ON {on})"  # noqa: S608
    return rows


def _labelled(table: Table, label: str, wanted: Collection[str]) -> str:
    return ", ".join(f"{quote(c.name)} AS {quote(c.of(label).name)}" for c in table.columns if c.name in wanted)


def _read(column: Column, sql: str) -> str:
    """A stored column as the catalog has it: texts in binary order, and a private type, such as an ENUM, cast away."""
    value = f"CAST({sql} AS {column.type})" if column.recast else sql
    collated = f"{value} COLLATE C" if column.type == "VARCHAR" else value
    return f"{collated} AS {quote(column.name)}"


def _rehearsal(table: Table, wanted: Collection[str]) -> str:
    """Rows of extreme values in place of a stored table; every value in another company."""
    values = [(c, extremes(c.type)) for c in table.columns if c.name in wanted]
    rows = " UNION ALL ".join(
        "SELECT 1 AS one"
        + "".join(f", CAST({v[(i + j) % len(v)]} AS {c.type}) AS {quote(c.name)}" for j, (c, v) in enumerate(values))
        for i in range(max((len(v) for _, v in values), default=1))
    )
    names = ", ".join(quote(c.name) for c, _ in values)
    return f"(SELECT {names or 'one'} FROM ({rows}))"  # noqa: S608


def _bounded(table: Table, salt: bytes, stored: Stored, wanted: Collection[str]) -> str:
    """The table, with at most k rows of every privacy unit.

    Guarantee. Which rows of a unit are kept depends on that unit's own rows and on a secret salt alone, so adding
    or removing a unit leaves what is kept of every other unit as it was, and moves at most k rows. Rows without a
    unit are left out. No predicate of the batch plays a part, so every batch sees the same rows.
    """
    if table.privacy_unit is None:
        return stored(table, wanted)
    unit = quote(table.privacy_unit)
    names = [column.name for column in table.columns]
    content = ", ".join([literal(salt.hex()), *map(quote, names)])
    shown = ", ".join(quote(name) for name in names if name in wanted)
    return (
        f"(SELECT {shown or '1 AS one'} FROM {stored(table, names)} "  # noqa: S608
        f"WHERE {unit} IS NOT NULL "
        f"QUALIFY row_number() OVER (PARTITION BY {unit} ORDER BY hash({content})) <= {table.max_rows_per_unit})"
    )


def _share_sql(measure: Measure) -> str:
    """Where a value lies between the ends of its clamp, in parts of UNIT; 0 for NULL, UNIT for NaN."""
    value = f"CAST({measure.column.reference} AS DOUBLE)"
    low, high = _double(measure.low), _double(measure.high)
    scale = _double(UNIT / (measure.high - measure.low))
    inside = f"least({UNIT}, CAST(round(({value} - {low}) * {scale}) AS BIGINT))"
    return f"CASE WHEN {value} >= {high} THEN {UNIT} WHEN {value} > {low} THEN {inside} ELSE 0 END"


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


def _corner_sql(corner: int, measures: int) -> str:
    """What a row adds to one corner of the box of clamps, summed over the rows.

    With the shares f sorted downwards, the point lies in the simplex whose corners raise the measures one by one in
    that order, with weights 1 - f(1), f(1) - f(2), …, f(d). A corner that raises the set S has therefore the weight
    min over S of f minus max over the rest of f where that is positive, and 0 otherwise; the weights sum to UNIT.
    The first measure is the slowest axis of the grid, so bit order runs from the last.
    """
    raised = [f"f{i}" for i in range(measures) if corner >> (measures - 1 - i) & 1]
    rest = [f"f{i}" for i in range(measures) if f"f{i}" not in raised]
    least = f"least({', '.join(raised)})" if len(raised) > 1 else (raised or [str(UNIT)])[0]
    most = f"greatest({', '.join(rest)})" if len(rest) > 1 else (rest or ["0"])[0]
    return f"coalesce(sum(greatest(0, {least} - {most})), 0)"


def _enum_labels(type_: str) -> tuple[str, ...] | None:
    if not type_.startswith("ENUM("):
        return None
    labels = fold(f"enum_range(NULL::{type_})")
    return tuple(labels[0]) if labels else None
