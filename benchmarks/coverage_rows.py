"""The corpora of ``coverage.py``: their files, and the synthetic rows that the policies themselves describe.

A folder of ``benchmarks/coverage/`` holds

- ``schema.sql``, the tables as DuckDB's DDL, with the keys that join them,
- ``policy.toml``, what an owner of these tables would declare,
- ``rows.toml``, how many rows each table gets (or a SELECT that makes them), and what undeclared columns hold,
- ``queries.sql``, each query under a line ``-- name: corpus/id  expect: answer`` (or ``expect: refuse:reason``);
  ``approx: 5`` lets the figures of a query differ by 5, for aggregates that are found on a grid.

Rows are drawn inside what the policy declares and below its bounds, so that no clamp and no bound changes an answer.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent / "coverage"

_HEADER = re.compile(r"^-- name: (?P<id>\S+)  expect: (?P<expect>answer|refuse:[a-z-]+)(?:  approx: (?P<approx>\S+))?$")
_ARROW = re.compile(r"\s*(\w+)\s*->\s*(\w+)\.(\w+)\s*")
_NULLS = 0.04
_FEW = 8
"""Different values of a text column that nothing describes."""


@dataclass(frozen=True)
class Query:
    """One question of a corpus, and what its author expects of it."""

    id: str
    corpus: str
    sql: str
    refuse: str | None
    """Why it must be refused; ``None`` where a user would expect an answer."""
    approx: float | None
    """By how much an answer may differ from DuckDB's."""


@dataclass(frozen=True)
class Corpus:
    """The files of one folder."""

    name: str
    schema: str
    policy: Mapping[str, Any]
    rows: Mapping[str, Any]
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class _Column:
    table: str
    name: str
    type: str
    nullable: bool


def names() -> list[str]:
    """Every corpus there is."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@cache
def read(name: str) -> Corpus:
    """The files of one corpus."""
    folder = FOLDER / name
    return Corpus(
        name,
        (folder / "schema.sql").read_text(),
        tomllib.loads((folder / "policy.toml").read_text()),
        tomllib.loads((folder / "rows.toml").read_text()),
        tuple(_queries(name, (folder / "queries.sql").read_text())),
    )


def _queries(corpus: str, text: str) -> list[Query]:
    queries = []
    for part in re.split(r"^(?=-- name:)", text, flags=re.MULTILINE):
        header, _, sql = part.partition("\n")
        match = _HEADER.match(header)
        if match is None:
            if part.strip():
                raise ValueError(f"{corpus}: not a query's header: {header!r}")
            continue
        approx, expect = match["approx"], match["expect"]
        refuse = None if expect == "answer" else expect.partition(":")[2]
        sql = sql.strip().removesuffix(";")
        queries.append(Query(match["id"], corpus, sql, refuse, None if approx is None else float(approx)))
    return queries


def database(corpus: Corpus, seed: int = 0) -> duckdb.DuckDBPyConnection:
    """The tables of a corpus in memory, filled; the same rows for the same seed."""
    con = duckdb.connect()
    con.execute(corpus.schema)
    rng = np.random.default_rng(seed)
    filler = _Filler(con, corpus, rng)
    for table, size in corpus.rows["tables"].items():
        if isinstance(size, str):
            con.execute(f"INSERT INTO {table} SELECT * FROM ({size}) ORDER BY ALL")
        else:
            filler.fill(table, size)
    for statement in corpus.rows.get("after", []):
        con.execute(statement)
    return con


class _Filler:
    """Draws the rows of one corpus's tables."""

    def __init__(self, con: duckdb.DuckDBPyConnection, corpus: Corpus, rng: np.random.Generator) -> None:
        self._con, self._corpus, self._rng = con, corpus, rng
        self._primary: set[tuple[str, str]] = set()
        self._foreign: dict[tuple[str, str], tuple[str, str]] = {}
        for table, kind, columns, other, others in con.execute(
            "SELECT table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names "
            "FROM duckdb_constraints()"
        ).fetchall():
            if kind == "PRIMARY KEY" and len(columns) == 1:
                self._primary.add((table, columns[0]))
            if kind == "FOREIGN KEY":
                self._foreign[table, columns[0]] = (other, others[0])

    def fill(self, table: str, size: int) -> None:
        described = self._con.execute(
            "SELECT column_name, data_type, is_nullable FROM duckdb_columns() WHERE table_name = ? "
            "ORDER BY column_index",
            [table],
        ).fetchall()
        columns = [_Column(table, *row) for row in described]
        frame = pd.DataFrame({c.name: pd.Series(self._values(c, size), dtype=object) for c in columns})
        listed = ", ".join(f'"{c.name}"::{c.type} AS "{c.name}"' for c in columns)
        self._con.register("drawn", frame)
        self._con.execute(f'INSERT INTO "{table}" BY NAME SELECT {listed} FROM drawn')
        self._con.unregister("drawn")

    def _values(self, column: _Column, size: int) -> list[Any]:
        if (column.table, column.name) in self._primary:
            return list(range(1, size + 1))
        declared = self._declared(column)
        values = self._keys(column, size)
        if values is None:
            values = self._drawn(column, declared, size)
        if not column.nullable or declared.get("not_null", False):
            return values
        gone = self._rng.random(size) < _NULLS
        return [None if null else value for value, null in zip(values, gone, strict=True)]

    def _declared(self, column: _Column) -> dict[str, Any]:
        """What the column holds: by the policy, or by the corpus's own note."""
        said = self._corpus.policy["tables"].get(column.table, {}).get("columns", {}).get(column.name, {})
        noted = self._corpus.rows.get("columns", {}).get(f"{column.table}.{column.name}", {})
        return {**said, **({"values": noted} if isinstance(noted, list) else noted)}

    def _bound(self, column: _Column) -> int | None:
        """How many rows may share one value: of a unit column the policy's bound, of a key path what is left of it."""
        tables = self._corpus.policy["tables"]
        table = tables.get(column.table, {})
        unit = table.get("privacy_unit", "")
        path = _ARROW.fullmatch(unit)
        if path is None:
            return int(table["max_rows_per_unit"]) if unit == column.name else None
        if path[1] != column.name:
            return None
        return max(1, int(table["max_rows_per_unit"]) // int(tables[path[2]]["max_rows_per_unit"]))

    def _keys(self, column: _Column, size: int) -> list[Any] | None:
        """Values of a foreign key or of a unit, no more of each than the policy counts; ``None`` for other columns."""
        bound = self._bound(column)
        referenced = self._foreign.get((column.table, column.name))
        if referenced is not None:
            table, key = referenced
            pool = [row[0] for row in self._con.execute(f'SELECT "{key}" FROM "{table}" ORDER BY 1').fetchall()]
            if bound is None:
                return [pool[i] for i in self._rng.integers(len(pool), size=size)]
        elif bound is not None:
            pool = list(range(1, 2 * size // bound + 2))
        else:
            return None
        if size > bound * len(pool):
            raise ValueError(f"{column.table} cannot have {size} rows with {bound} for each {column.name}")
        return [pool[i] for i in self._rng.permutation(np.repeat(np.arange(len(pool)), bound))[:size]]

    def _drawn(self, column: _Column, declared: dict[str, Any], size: int) -> list[Any]:
        rng, type_ = self._rng, column.type
        if "values" in declared:
            values = declared["values"]
            return [values[i] for i in rng.integers(len(values), size=size)]
        low: Any = declared.get("min")
        high: Any = declared.get("max")
        if type_ == "BOOLEAN":
            return [bool(value) for value in rng.integers(2, size=size)]
        if type_ == "VARCHAR":
            return [f"{column.name} {i}" for i in rng.integers(1, _FEW + 1, size=size)]
        if type_ == "DATE":
            first, last = low or date(2024, 1, 1), high or date(2025, 12, 31)
            return [first + timedelta(days=int(d)) for d in rng.integers((last - first).days + 1, size=size)]
        if type_.startswith("TIMESTAMP"):
            start, end = low or datetime(2024, 1, 1), high or datetime(2025, 12, 31)
            seconds = int((end - start).total_seconds())
            return [start + timedelta(seconds=int(s)) for s in rng.integers(seconds + 1, size=size)]
        low, high = (0, 50) if low is None else (low, high)
        if "INT" in type_:
            return [int(v) for v in rng.integers(low, high, size=size, endpoint=True)]
        return [round(float(v), 2) for v in rng.uniform(low, high, size=size)]
