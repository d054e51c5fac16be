"""An empty DuckDB in memory, asked for constants, names and dtypes, so that they are DuckDB's in every detail.

It holds no table of the user's and reads nothing from outside; all it ever sees are constants of the batch and
of the policy.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from datetime import date
from functools import cache, lru_cache
from typing import Any

import duckdb
import pandas as pd

from .running import CONFIGS
from .text import guarded, literal, quote

SAFE_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""What every DuckDB that tacit opens is opened with: no files, no network."""

RelationShape = tuple[str, tuple[tuple[str, str], ...]]
"""A relation's name, and the name and type of each of its columns."""

REFUSALS = (duckdb.Error, OverflowError, ValueError)
"""What a statement without a value raises: DuckDB, or Python where it has no such interval, date or text."""

_local = threading.local()
"""The connection of each thread, which ends with the thread: nothing that a process would have to share or guard."""


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Set UTC and no optimizer, and lock the configuration: neither the machine nor a query can change it.

    What stays open, for a cursor of tacit's own (``settings.prepare``, ``running``): whether the optimizer runs, of
    which nothing is left here but the part that knows the ends of a column; how large a table of groups may be that is
    read by position; and whether DuckDB keeps count of how far a statement is.
    """
    if connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]:
        return  # a file that this process has open already is one DuckDB for all its connections
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET GLOBAL enable_optimizer = false")
    passes = [name for (name,) in connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()]
    left_out = ",".join(name for name in passes if name != "statistics_propagation")
    connection.execute(f"SET GLOBAL disabled_optimizers = {literal(left_out)}")
    left_open = ("enable_optimizer", "perfect_ht_threshold", *CONFIGS)
    connection.execute(f"SET GLOBAL allowed_configs = [{', '.join(map(literal, left_open))}]")
    connection.execute("SET lock_configuration = true")


def database() -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection | None = getattr(_local, "connection", None)
    if connection is None:
        connection = duckdb.connect(":memory:", config={**SAFE_CONFIG, "threads": 1})
        lock(connection)
        _local.connection = connection
    return connection


_AT_ONCE = 4096
"""Rows of constants in one statement."""


@lru_cache(maxsize=65536)
def cast_text(text: str, type_: str) -> Any:
    """What DuckDB makes of ``CAST('text' AS type)``, or None when it refuses (or gives an infinite date)."""
    if type_ in ("DATE", "TIMESTAMP"):
        result = fold(f"TRY_CAST({literal(text)} AS {type_})")
        return result[0] if result is not None else None
    return database().execute(f"SELECT TRY_CAST($1 AS {type_})", [text]).fetchone()[0]  # type: ignore[index]


@lru_cache(maxsize=4096)
def fold(expression: str) -> tuple[Any, str] | None:
    """Value and type of an expression without columns; None when DuckDB refuses to evaluate it."""
    try:
        row = database().execute(f"SELECT v, typeof(v) FROM (SELECT {expression} AS v)").fetchone()  # noqa: S608
        assert row is not None
        if row[1] in ("DATE", "TIMESTAMP") and row[0] is not None and not _finite(expression):
            return None  # Python has no date for it and would give its last one
    except REFUSALS:
        return None
    return row[0], row[1]


def _finite(expression: str) -> bool:
    row = database().execute(f"SELECT isfinite({expression})").fetchone()
    return bool(row and row[0])


def fold_list(expressions: list[str]) -> list[Any] | None:
    """The values of many expressions without columns."""
    result = fold("[" + ", ".join(expressions) + "]")
    return None if result is None else list(result[0])


@lru_cache(maxsize=4096)
def type_of(expression: str, columns: tuple[tuple[str, str], ...]) -> str | None:
    """The type of an expression over columns of the given names and types; None when DuckDB has none for it."""
    nulls = ", ".join(f"NULL::{type_} AS {quote(name)}" for name, type_ in columns) or "1"
    try:
        row = database().execute(f"SELECT typeof({expression}) FROM (SELECT {nulls})").fetchone()  # noqa: S608
    except REFUSALS:
        return None
    return str(row[0]) if row else None


def argument_counts(name: str) -> tuple[frozenset[int], int | None]:
    """How many arguments a function takes: (exactly one of these, or at least this many).

    No numbers at all where DuckDB has no function of that name.
    """
    if name in _GRAMMAR:
        return _GRAMMAR[name]
    return _argument_counts().get(name, (frozenset(), None))


_GRAMMAR: dict[str, tuple[frozenset[int], int | None]] = {
    "coalesce": (frozenset(), 1),
    "ifnull": (frozenset({2}), None),
}
"""Functions that DuckDB's parser knows and its list of functions does not."""


@cache
def _argument_counts() -> dict[str, tuple[frozenset[int], int | None]]:
    rows = database().execute(
        "SELECT function_name, list(DISTINCT len(parameters)) FILTER (varargs IS NULL), "
        "min(len(parameters)) FILTER (varargs IS NOT NULL) FROM duckdb_functions() GROUP BY ALL"
    )
    return {name: (frozenset(counts or ()), least) for name, counts, least in rows.fetchall()}


@lru_cache(maxsize=4096)
def has_dtype(type_: str) -> bool:
    """Whether DuckDB can hand a column of this type over as part of a frame."""
    try:
        database().execute(f"SELECT CAST(NULL AS {type_})").df()
    except duckdb.Error:
        return type_ == '"NULL"'
    return True


def map_values(expression: str, columns: tuple[tuple[str, str, tuple[Any, ...]], ...]) -> tuple[Any, ...] | None:
    """What an expression makes of all combinations of listed values: distinct, without NULL, in order of appearance."""
    frames = [frame((name,), (type_,), tuple((v,) for v in values)) for name, type_, values in columns]
    connection = database().cursor()
    try:
        for i, values in enumerate(frames):
            connection.register(f"listed_{i}", values.assign(**{f"ordinal_{i}": range(len(values))}))
        orders = ", ".join(f"ordinal_{i}" for i in range(len(frames)))
        source = ", ".join(
            f"(SELECT CAST({quote(name)} AS {type_}) AS {quote(name)}, ordinal_{i} FROM listed_{i})"  # noqa: S608
            for i, (name, type_, _) in enumerate(columns)
        )
        rows = connection.execute(f"SELECT {expression} FROM {source} ORDER BY {orders}").fetchall()  # noqa: S608
        if any(isinstance(value, date) for (value,) in rows):  # an infinite one would look like Python's last or first
            finite = f"SELECT count(*) FROM {source} WHERE NOT isfinite({expression})"  # noqa: S608
            if connection.execute(finite).fetchall() != [(0,)]:
                return None
    except REFUSALS:
        return None
    finally:
        connection.close()
    return distinct(value for (value,) in rows)


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """The different values as DuckDB tells them apart, without NULL, in order of appearance: all NaN are one."""
    different: dict[Any, Any] = {}
    for value in values:
        if value is not None:
            different.setdefault("nan" if isinstance(value, float) and math.isnan(value) else (value,), value)
    return tuple(different.values())


def evaluate(expression: str, table: pd.DataFrame, query: str = "") -> pd.Series:
    """An expression over the rows of a frame of released values, or a query of the table ``released``.

    The frame gets a column ``ordinal``. An error that a released value causes becomes NULL.
    """
    connection = database().cursor()
    try:
        connection.register("released", table.assign(ordinal=range(len(table))))
        sql = query or f"SELECT {guarded(expression)} FROM released ORDER BY ordinal"  # noqa: S608
        result: pd.Series = connection.execute(sql).df().iloc[:, 0]
        return result
    finally:
        connection.close()


@lru_cache(maxsize=4096)
def display_name(
    expression: str, relations: tuple[RelationShape, ...], tables: tuple[RelationShape, ...] = ()
) -> str | None:
    """The name DuckDB gives to an unnamed output column; None when it cannot say.

    ``relations`` are those of FROM, ``tables`` those that subqueries of the expression read: (name, columns).
    """
    source = ", ".join(f"({_nulls(columns)}) AS {quote(name)}" for name, columns in relations)
    ctes = ", ".join(f"{quote(name)} AS ({_nulls(columns)})" for name, columns in tables)
    query = f"{f'WITH {ctes} ' if ctes else ''}SELECT {expression}{f' FROM {source}' if source else ''} LIMIT 0"  # noqa: S608
    try:
        return str(database().execute(query).description[0][0])
    except REFUSALS:
        return None


def with_ctes(text: str, ctes: Iterable[tuple[str, str]]) -> str:
    """A query with the queries that it names before it."""
    heads = ", ".join(f"{name} AS ({query})" for name, query in ctes)
    return f"WITH {heads} {text}" if heads else text


@lru_cache(maxsize=4096)
def describe(
    text: str, ctes: tuple[tuple[str, str], ...], tables: tuple[RelationShape, ...]
) -> tuple[tuple[str, str], ...] | str:
    """The name and type of each column of a query over tables of the given shapes; what DuckDB has against it."""
    shapes = [(name, _nulls(columns)) for name, columns in tables]
    try:
        query = with_ctes(text, [*shapes, *ctes])
        rows = database().execute(f"DESCRIBE SELECT * FROM ({query})").fetchall()  # noqa: S608
    except REFUSALS as error:
        return str(error).splitlines()[0].partition(": ")[2][:200] or "the query is not valid"
    return tuple((row[0], row[1]) for row in rows)


def _nulls(columns: tuple[tuple[str, str], ...]) -> str:
    return "SELECT " + (", ".join(f"NULL::{type_} AS {quote(name)}" for name, type_ in columns) or "1")


def frame(names: tuple[str, ...], types: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> pd.DataFrame:
    """A frame of constants with the dtypes that DuckDB's frame would have.

    Some at a time: a statement with 100,000 parameters takes a gigabyte.
    """
    casts = ", ".join(f"CAST(c{i} AS {t}) AS {quote(n)}" for i, (n, t) in enumerate(zip(names, types, strict=True)))
    heads = ", ".join(f"c{i}" for i in range(len(names)))
    places = "(?" + ", ?" * len(names) + ")"
    scratch = database()
    for start in range(0, max(len(rows), 1), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        values = ", ".join([places] * len(part))
        verb = "INSERT INTO constants" if start else "CREATE OR REPLACE TEMP TABLE constants AS"
        flat = [value for ordinal, row in enumerate(part, start) for value in (ordinal, *row)]
        scratch.execute(f"{verb} SELECT ordinal, {casts} FROM (VALUES {values}) AS v(ordinal, {heads})", flat)  # noqa: S608
    shown = ", ".join(map(quote, names))
    result: pd.DataFrame = scratch.execute(f"SELECT {shown} FROM constants ORDER BY ordinal").df()  # noqa: S608
    scratch.execute("DROP TABLE constants")
    return result
