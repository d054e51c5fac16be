"""Parquet and csv files in place of a stored table: what stands in FROM, and what is said of the columns."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from tacit.errors import OperationalError, PolicyError

from ...names import MAIN, folded, meanings, nearest, spelled
from ...source import ColumnTypes
from .listing import Listing, listed, means_files
from .scratch import SAFE_CONFIG, lock
from .text import literal, quote

NO_EXTENSIONS = {name: value for name, value in SAFE_CONFIG.items() if name.startswith("auto")}
_LONGEST_HEADER = 1 << 20
_TEXT = {"csv": (",", "none"), "csv.gz": (",", "gzip"), "tsv": ("\t", "none"), "tsv.gz": ("\t", "gzip")}
"""The kinds of files that hold text: what is between two fields, and how they are packed."""
_REPAIRED = ", utf8_validation = 'replace'"
"""Of parquet files: a text with bytes that are no UTF-8 is read with other signs in their place. DuckDB fails on it
otherwise, outside every TRY."""


@dataclass(frozen=True)
class File:
    """Files that stand for a stored table."""

    listing: Listing
    rows: str
    """What stands in FROM."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """SQL of the columns that are not read as they are; of csv files, of all."""
    described: tuple[tuple[str, str], ...] = ()
    """Name and type of each column that is offered."""
    fragile: frozenset[str] = frozenset()
    """Columns that DuckDB converts when it reads them, and fails on a value that it cannot: refused when used."""
    stored: tuple[Any, ...] = ()
    """What the files say of their columns: the schema of parquet files, the first line of csv files."""

    @property
    def name(self) -> str:
        return self.listing.name

    @property
    def stamps(self) -> list[str]:
        """The present state of all files; OSError where one is gone."""
        if self.listing.one:
            return [stamp(self.listing.paths[0])]
        return [f"{path} {stamp(path)}" for path in self.listing.paths]

    @property
    def identities(self) -> frozenset[tuple[int, int]]:
        """The files themselves, whatever names lead to them; OSError where one is gone."""
        return frozenset((stat.st_dev, stat.st_ino) for stat in map(Path.stat, self.listing.paths))

    @property
    def allowed(self) -> list[str]:
        """The constants by which a DuckDB without access to files is allowed to read these."""
        return [spelling for path in self.listing.paths for spelling in (literal(str(path)), _escaped(path))]


def stamp(path: Path) -> str:
    """The present state of a file; OSError where it is gone."""
    stat = path.stat()
    return f"{stat.st_mtime_ns}-{stat.st_size}"


def open_files(path: Path, types: ColumnTypes) -> tuple[duckdb.DuckDBPyConnection, File]:
    """An in-memory database with one view over the files that a path means, and no other file within reach."""
    listing = listed(path)
    connection = duckdb.connect(":memory:", config=NO_EXTENSIONS)
    try:
        file = read_files(connection, listing, types)
        shown = ", ".join(f"{sql} AS {quote(column)}" for column, sql in file.columns.items()) or "*"
        connection.execute(f"CREATE VIEW {quote(file.name)} AS SELECT {shown} FROM {file.rows}")  # noqa: S608
        shut(connection, [file])
    except BaseException as error:
        connection.close()
        if isinstance(error, duckdb.Error):
            raise _unreadable(listing) from None
        raise
    return connection, file


def shut(connection: duckdb.DuckDBPyConnection, files: Iterable[File]) -> None:
    """Leave no file within reach of a database but these, and what is attached to it, for good."""
    allowed = [spelling for file in files for spelling in file.allowed]
    connection.execute(f"SET allowed_paths = [{', '.join(allowed)}]")
    connection.execute("SET enable_external_access = false")
    lock(connection)


def read_files(
    connection: duckdb.DuckDBPyConnection, listing: Listing, types: ColumnTypes, table: tuple[str, ...] | None = None
) -> File:
    """What files say of their columns; no row is looked at. They must all say the same.

    ``types`` are those of csv files, under the name of ``table``: the files' own where it is None.
    """
    where = ", ".join(map(_escaped, listing.paths))
    where = where if listing.one else f"[{where}]"
    try:
        if listing.kind == "parquet":
            return _parquet(connection, listing, where)
        return _text(connection, listing, where, types, table or (MAIN, listing.name))
    except duckdb.Error:
        raise _unreadable(listing) from None


def untyped_columns(path: Path) -> tuple[str, tuple[str, ...]] | None:
    """The name of the table and of its columns, of files that have no types of their own; None where there are types.

    Only first lines are read.
    """
    if not means_files(path) or (listing := listed(path)).kind == "parquet":
        return None
    headers = {tuple(_header(file, listing.kind)) for file in listing.paths}
    if len(headers) > 1:
        raise _different(listing)
    return listing.name, (*headers.pop(), *listing.keys)


def is_same(connection: duckdb.DuckDBPyConnection, file: File) -> bool:
    """Whether a path still means the same files, and they still say the same of their columns."""
    try:
        listing = listed(file.listing.given)
        return listing.paths == file.listing.paths and _stored(connection, listing) == file.stored
    except (OperationalError, duckdb.Error):
        return False


def _unreadable(listing: Listing) -> OperationalError:
    what = repr(str(listing.given)) if listing.one else f"the files of {str(listing.place)!r}"
    return OperationalError(
        f"{what} cannot be read as {'a ' * listing.one}{listing.kind} file{'s' * (not listing.one)}"
    )


def _different(listing: Listing) -> OperationalError:
    return OperationalError(
        f"the files of {str(listing.place)!r} have different columns\nhint: write them alike, or name those that are"
    )


def _stored(connection: duckdb.DuckDBPyConnection, listing: Listing) -> tuple[Any, ...]:
    """The one thing that all files say of their columns."""
    if listing.kind == "parquet":
        said = _schemas(connection, listing.paths)
    else:
        said = list({tuple(_header(path, listing.kind)) for path in listing.paths})
    if len(said) > 1:
        raise _different(listing)
    return said[0]


def _hive(listing: Listing) -> str:
    return ", hive_partitioning = true, hive_types_autocast = false" if listing.keys else ""


def _describe(connection: duckdb.DuckDBPyConnection, rows: str) -> list[tuple[str, str]]:
    described = connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()  # noqa: S608
    return [(name, type_) for name, type_, *_ in described]


def _parquet(connection: duckdb.DuckDBPyConnection, listing: Listing, where: str) -> File:
    stored = _stored(connection, listing)
    reading = f"{where}, union_by_name = false{_REPAIRED}"
    rows = f"read_parquet({reading}, hive_partitioning = false)"
    _check_keys(listing, [name for name, _ in _describe(connection, rows)])
    if listing.keys:
        rows = f"read_parquet({reading}{_hive(listing)})"
    fragile = frozenset(name for name, *said in stored if _is_fragile(str(said)))
    return File(listing, rows, {}, tuple(_describe(connection, rows)), fragile, stored)


def _is_fragile(said: str) -> bool:
    """Whether DuckDB multiplies the values of a column when it reads them, or checks that they are times of a day."""
    return "MILLIS" in said.replace("MILLIS=<null>", "") or "TimeType(" in said or "TIME_MICROS" in said


def _schemas(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> list[tuple[Any, ...]]:
    """The different lists of columns that parquet files have. DuckDB would convert one file's values into another's
    types, and fail on one that it cannot: so all that is said of a type is compared."""
    places = ", ".join(map(_escaped, paths))
    told = f"SELECT *, row_number() OVER () AS n FROM parquet_schema([{places}])"  # noqa: S608
    of_type = "type, type_length, converted_type, logical_type, scale, precision, duckdb_type, num_children"
    columns = f"list((name, {of_type}) ORDER BY n)[2:]"  # after the root
    listed_ = f"SELECT {columns} AS columns FROM ({told}) GROUP BY file_name"  # noqa: S608
    rows = connection.execute(f"SELECT DISTINCT columns FROM ({listed_})").fetchall()  # noqa: S608
    return [tuple(columns) for (columns,) in rows]


def _check_keys(listing: Listing, columns: Sequence[str]) -> None:
    """A key in the path that is a column too would be one of the two, and nobody could tell which."""
    names = [folded(name) for name in (*columns, *listing.keys)]
    twice = next((key for key in listing.keys if names.count(folded(key)) > 1), None)
    if twice is not None:
        raise OperationalError(
            f"{twice} is a column of the files of {str(listing.place)!r}, and a key in their paths too\n"
            "hint: rename one of the two"
        )


def _escaped(path: Path) -> str:
    """A path as a constant; else DuckDB takes a name for a pattern of names."""
    return literal(re.sub(r"([*?\[])", r"[\1]", str(path)))


def _text(
    connection: duckdb.DuckDBPyConnection, listing: Listing, where: str, types: ColumnTypes, table: tuple[str, ...]
) -> File:
    """Every field is read as text and cast with TRY_CAST, so that no content of a file can make the scan fail.

    Columns are found by the names in the header; the types are the policy's, because guessing them means looking. A key
    in the path is a text where the policy gives it no type.
    """
    place = tuple(map(folded, table))
    declared = next((columns for name, columns in types.items() if place in meanings(name)), None)
    if not declared:
        raise PolicyError(
            f"a {listing.kind} file has no types of its own; declare them in the policy, under "
            f'[tables.{spelled(table)}.columns]: age = {{ type = "INTEGER" }}'
        )
    header = _stored(connection, listing)
    _check_keys(listing, header)
    missing = [name for name in declared if name not in (*header, *listing.keys)]
    if missing:
        raise PolicyError(
            f"{listing.paths[0].name} has no column {missing[0]!r} in its first line: {nearest(missing[0], header)}"
        )
    columns = "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header) + "}"
    delimiter, packed = _TEXT[listing.kind]
    rows = (
        f"read_csv({where}, header = true, auto_detect = false, columns = {columns}, "
        f"delim = {literal(delimiter)}, quote = '\"', escape = '\"', compression = '{packed}', "
        "null_padding = true, ignore_errors = true, strict_mode = false, parallel = false, "
        f"union_by_name = false{_hive(listing) or ', hive_partitioning = false'})"
    )
    shown = dict(declared) | {key: "VARCHAR" for key in listing.keys if key not in declared}
    casts = {name: f"TRY_CAST({quote(name)} AS {type_})" for name, type_ in shown.items()}
    typed = ", ".join(f"{sql} AS {quote(name)}" for name, sql in casts.items())
    described = _describe(connection, f"(SELECT {typed} FROM {rows})")  # noqa: S608
    return File(listing, rows, casts, tuple(described), stored=header)


def _header(path: Path, kind: str) -> list[str]:
    """The names in the first line. Nothing after it is looked at, so that no row decides whether a file opens."""
    delimiter, packed = _TEXT[kind]
    try:
        with gzip.open(path, "rb") if packed == "gzip" else path.open("rb") as file:
            line = file.readline(_LONGEST_HEADER)
    except (OSError, EOFError, zlib.error):
        raise OperationalError(f"{str(path)!r} cannot be read as a {kind} file") from None
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
