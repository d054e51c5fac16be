"""Views of a DuckDB catalog that stand for files: ``SELECT * FROM read_parquet('lake/*.parquet')`` and its like.

Such a view is read as a stored table whose rows are those files, listed and checked as if ``tacit.connect`` had been
given their path; other views of the catalog may be built on it. A view that does more with files than this is no table:
what it computes could fail on a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import duckdb
from sqlglot import exp
from sqlglot.errors import SqlglotError
from tacit.errors import OperationalError, PolicyError

from ...names import folded
from ...source import ColumnTypes
from .files import NO_EXTENSIONS, File, read_files, shut
from .listing import Listing, listed, means_files
from .text import literal, parse, quote, tokenize

Paths = Mapping[tuple[str, ...], Path]
"""What the views of a catalog read, by schema and name."""
Shapes = Mapping[tuple[str, ...], Mapping[str, str]]
"""Names and types of the columns of tables and views, by schema and name."""

_READERS = ("read_parquet", "parquet_scan", "read_csv", "read_csv_auto")
_OPTIONS = {"hive_partitioning": "TRUE", "union_by_name": "FALSE", "header": "TRUE"}
"""What a view may say of how files are read, because tacit reads them so."""


def file_of(view: str) -> Path | None:
    """The path that a view reads, where it is SELECT * of files and nothing else.

    >>> file_of("SELECT * FROM read_parquet('/lake/*.parquet')"), file_of("SELECT a FROM 'b.csv'")
    (PosixPath('/lake/*.parquet'), None)
    """
    try:
        (tree,) = parse(tokenize(view), view)
    except (SqlglotError, ValueError):
        return None
    if not isinstance(tree, exp.Select) or {key for key, value in tree.args.items() if value} != {
        "expressions",
        "from_",
    }:
        return None
    if [type(shown) for shown in tree.expressions] != [exp.Star] or any(v for v in tree.expressions[0].args.values()):
        return None
    table = tree.args["from_"].this
    if not isinstance(table, exp.Table) or {key for key, value in table.args.items() if value} != {"this"}:
        return None
    if isinstance(table.this, exp.Identifier):
        path = Path(table.this.name)
        return path if means_files(path) and not path.is_dir() else None
    return _read_by(table.this)


def _read_by(call: exp.Expr) -> Path | None:
    name = call.name if isinstance(call, exp.Anonymous) else call.key if isinstance(call, exp.Func) else ""
    if name.lower() not in (*_READERS, "readparquet", "readcsv"):
        return None
    first, *options = [call.this, *call.expressions] if isinstance(call, exp.ReadCSV) else call.expressions
    if isinstance(first, exp.Array) and len(first.expressions) == 1:
        first = first.expressions[0]
    for option in options:
        said = option.unnest()
        if not isinstance(said, exp.EQ) or _OPTIONS.get(said.this.name.lower()) != said.expression.sql().upper():
            return None
    path = Path(first.name) if isinstance(first, exp.Literal) and first.is_string else None
    return path if path is not None and means_files(path) and not path.is_dir() else None


def read_views(views: Paths, shapes: Shapes, types: ColumnTypes) -> dict[tuple[str, ...], File]:
    """The views whose files are there, and have the columns that the catalog says; no row is looked at.

    The others are left as views, which no query can use.
    """
    found: dict[tuple[str, ...], File] = {}
    with duckdb.connect(":memory:", config=NO_EXTENSIONS) as connection:
        for place, path in views.items():
            shape = shapes.get(place, {})
            try:
                file = read_files(connection, _keyed(listed(path), shape), types, place)
            except (OperationalError, PolicyError):
                continue
            if file.columns:  # csv files, in the policy's types
                found[place] = file
                continue
            keys = {folded(key) for key in file.listing.keys}
            casts = {
                n: f"TRY_CAST({quote(n)} AS {t})" for n, t in shape.items() if folded(n) in keys and t != "VARCHAR"
            }
            described = tuple((name, shape.get(name, "") if name in casts else t) for name, t in file.described)
            if dict(described) == dict(shape):
                found[place] = replace(file, columns=casts, described=described)
    return found


def _keyed(listing: Listing, shape: Mapping[str, str]) -> Listing:
    """With the keys of the paths that the view shows: DuckDB looks for them in the whole path."""
    names = {folded(name) for name in shape}
    parts = [part.partition("=")[0] for part in listing.paths[0].parts[:-1] if "=" in part]
    return replace(listing, keys=tuple(key for key in parts if folded(key) in names))


def attach(path: Path, name: str, files: Iterable[File]) -> duckdb.DuckDBPyConnection:
    """A database in memory with a file attached that is only read; no file is within reach but it and these."""
    connection = duckdb.connect(":memory:", config=NO_EXTENSIONS)
    try:
        connection.execute(f"ATTACH {literal(str(path))} AS {quote(name)} (READ_ONLY)")
        shut(connection, files)
    except BaseException:
        connection.close()
        raise
    return connection


def look_at(files: Iterable[File]) -> duckdb.DuckDBPyConnection:
    """A database without tables that is asked what these files say of their columns."""
    connection = duckdb.connect(":memory:", config=NO_EXTENSIONS)
    shut(connection, files)
    return connection
