"""A parquet or csv file in place of a stored table: a view in a database in memory that reaches no other file."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
from tacit.errors import OperationalError, PolicyError

from ...names import folded, meanings, nearest
from ...source import ColumnTypes
from .scratch import SAFE_CONFIG, lock
from .text import literal, quote

_LONGEST_HEADER = 1 << 20
READERS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv"}
"""The kind of file, by the end of its name."""


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
    parts: tuple[Path, ...] = ()
    """The files of a folder; empty where it is one file."""
    stored: tuple[Any, ...] = ()
    """What all files of a folder say of their columns."""


def open_file(path: Path, kind: str, types: ColumnTypes) -> tuple[duckdb.DuckDBPyConnection, File]:
    """An in-memory database with one view over the file, and no other file within reach."""
    where = _escaped(path)
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
    return connection, replace(file, described=described)


def open_folder(folder: Path, pattern: str) -> tuple[duckdb.DuckDBPyConnection, File]:
    """The same for all parquet files of a folder that a pattern means; ``key=value`` in their paths is a column.

    They must agree in their columns, which is looked up in what they say of themselves and not in their rows.
    """
    paths = tuple(sorted(path.resolve() for path in folder.glob(pattern) if path.is_file()))
    if not paths:
        raise OperationalError(f"there is no file {pattern} in {str(folder)!r}")
    places = [_escaped(path) for path in paths]
    by_key = {tuple(part.partition("=")[0] for part in path.relative_to(folder).parts[:-1] if "=" in part)
              for path in paths if path.is_relative_to(folder)}  # fmt: skip
    options = ", hive_partitioning = true, hive_types_autocast = false" if by_key != {()} else ""
    rows = f"read_parquet([{', '.join(places)}], union_by_name = false{options})"
    connection = duckdb.connect(
        ":memory:", config={k: v for k, v in SAFE_CONFIG.items() if "autol" in k or "autoi" in k}
    )
    try:
        stored = folder_columns(connection, paths)
        if len(stored) > 1 or len(by_key) > 1:
            raise OperationalError(
                f"the files of {str(folder)!r} have different columns\nhint: write them alike, or name those that are"
            )
        connection.execute(f"CREATE VIEW {quote(folder.name)} AS SELECT * FROM {rows}")  # noqa: S608
        described = connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()  # noqa: S608
        fragile = frozenset(name for name, _, converted, *_ in stored[0] if "MILLIS" in (converted or ""))
        connection.execute(f"SET allowed_paths = [{', '.join([*map(literal, map(str, paths)), *places])}]")
        connection.execute("SET enable_external_access = false")
        lock(connection)
    except duckdb.Error:
        connection.close()
        raise OperationalError(f"the files of {str(folder)!r} cannot be read as parquet files") from None
    except OperationalError:
        connection.close()
        raise
    return connection, File(folder.name, rows, {}, described, fragile, paths, stored)


def folder_columns(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> tuple[Any, ...]:
    """The different lists of columns that parquet files have; reads no row."""
    places = ", ".join(map(_escaped, paths))
    told = f"SELECT *, row_number() OVER () AS n FROM parquet_schema([{places}])"  # noqa: S608
    columns = "list((name, type, converted_type, num_children) ORDER BY n)[2:]"  # after the root
    listed = f"SELECT {columns} AS columns FROM ({told}) GROUP BY file_name"  # noqa: S608
    rows = connection.execute(f"SELECT DISTINCT columns FROM ({listed})").fetchall()  # noqa: S608
    return tuple(tuple(columns) for (columns,) in rows)


def _escaped(path: Path) -> str:
    """A path as a constant; else DuckDB takes a name for a pattern of names."""
    return literal(re.sub(r"([*?\[])", r"[\1]", str(path)))


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
