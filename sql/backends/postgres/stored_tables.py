"""Tables, columns, constraints and views of a PostgreSQL database, as ``pg_catalog`` has them; no row is read.

Left out, because reading them can fail or change for a reason that lies outside of the table: foreign tables and tables
with a foreign part, materialized views, temporary tables, virtual generated columns, enums with a cast of their own.
Left out, because they are read through another: partitions and tables that inherit. Left out, because the role may not
read them: columns and tables without SELECT. Names that differ in case only are left out too: a batch could not tell
them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...check_constraints import Bounds, check_ranges
from ...names import MAIN, folded, spelled
from ...source import SourceColumn, SourceTable
from .sessions import Sessions, all_rows
from .travel import Travel, base_travel, enum_travel
from .view_text import duckdb_view

PUBLIC = "public"
"""The schema whose tables go by their bare name."""

_OF_USERS = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
_TABLES = f"""
WITH RECURSIVE part(root, oid) AS (
    SELECT inhparent, inhrelid FROM pg_inherits
    UNION SELECT part.root, i.inhrelid FROM part JOIN pg_inherits AS i ON i.inhparent = part.oid
)
SELECT c.oid::int8, n.nspname::text, c.relname::text, c.relkind::text,
       EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = c.oid) AND c.relkind = 'r',
       CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END, row_security_active(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v') AND c.relpersistence <> 't' AND {_OF_USERS} AND n.nspname <> '{MAIN}'
  AND has_schema_privilege(n.oid, 'USAGE')
  AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid)
  AND NOT EXISTS (SELECT FROM part JOIN pg_class AS p ON p.oid = part.oid WHERE part.root = c.oid AND p.relkind = 'f')
ORDER BY n.nspname, c.relname
"""  # noqa: S608
_COLUMNS = f"""
SELECT a.attrelid::int8, a.attnum, a.attname::text, a.attnotnull, a.atttypid::int8, a.atttypmod,
       has_column_privilege(c.oid, a.attnum, 'SELECT'), a.attgenerated::text, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND {_OF_USERS} AND c.relkind IN ('r', 'p', 'v')
ORDER BY a.attrelid, a.attnum
"""  # noqa: S608
_DOMAINS = "SELECT oid::int8, typbasetype::int8, typtypmod FROM pg_type WHERE typtype = 'd'"
_LABELS = """
SELECT enumtypid::int8, enumlabel::text FROM pg_enum AS e
WHERE NOT EXISTS (SELECT FROM pg_cast AS c WHERE c.castsource = e.enumtypid AND c.casttarget = 'text'::regtype)
ORDER BY enumtypid, enumsortorder
"""
_CONSTRAINTS = """
SELECT conrelid::int8, contypid::int8, contype::text, conkey, pg_get_expr(conbin, conrelid)
FROM pg_constraint WHERE contype IN ('c', 'p') AND convalidated AND NOT (contype = 'c' AND connoinherit)
"""


@dataclass(frozen=True)
class StoredColumn:
    """A column that can be read."""

    name: str
    travel: Travel
    not_null: bool
    bounds: Bounds = (None, None)


@dataclass(frozen=True)
class StoredTable:
    """A table or view of the database. ``columns`` are those with a faithful type that the role may read."""

    schema: str
    name: str
    columns: tuple[StoredColumn, ...]
    view: str | None = None
    """PostgreSQL's text of a view."""
    primary_key: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    """Columns that are not among those, each with the reason."""
    hidden: bool = field(default=False, compare=False)
    """Whether row-level security would hide rows from the role."""

    @property
    def path(self) -> tuple[str, str]:
        """Where a batch finds it."""
        return (MAIN if self.schema == PUBLIC else self.schema, self.name)

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(map(folded, self.path))

    @property
    def shape(self) -> tuple[tuple[str, str, str], ...]:
        """Names and types of the columns."""
        return tuple((c.name, c.travel.type, c.travel.base) for c in self.columns)

    def column(self, name: str) -> StoredColumn:
        return next(column for column in self.columns if column.name == name)


def read_tables(sessions: Sessions) -> dict[tuple[str, ...], StoredTable]:
    """All tables and views, by ``StoredTable.key``."""
    statements = (_TABLES, _COLUMNS, _DOMAINS, _LABELS, _CONSTRAINTS)
    tables, columns, domains, labels, constraints = all_rows(sessions, statements)
    types = _Types(domains, labels, constraints)
    by_table: dict[int, list[tuple[Any, ...]]] = {}
    reasons: dict[int, dict[str, str]] = {}
    for oid, *column, may_read, generated, type_ in columns:
        reasons.setdefault(oid, {})[column[1]] = (
            "the role that tacit connects with may not read it" if not may_read
            else "it is computed when it is read, and what it computes can fail on a row" if generated not in ("", "s")
            else f"its type, {type_}, has no counterpart in DuckDB that holds every value"
        )  # fmt: skip
        if may_read and generated in ("", "s"):
            by_table.setdefault(oid, []).append(tuple(column))
    checks: dict[int, list[str]] = {}
    keys: dict[int, list[int]] = {}
    for table, _, kind, numbers, text in constraints:
        if kind == "p":
            keys[table] = numbers
        elif table:
            checks.setdefault(table, []).append(text)
    found = []
    for oid, schema, name, kind, inherited, view, hidden in tables:
        listed = by_table.get(oid, [])
        if not listed:
            continue
        stored = types.columns(listed, check_ranges(checks.get(oid, ())))
        names = {number: column for number, column, *_ in listed}
        key = () if inherited else tuple(names.get(number, "") for number in keys.get(oid, ()))
        text = view if kind == "v" else None
        used = {column.name for column in stored}
        times = Counter(folded(column) for _, column, *_ in listed)
        left_out = tuple(
            (column, why if times[folded(column)] < 2 else "another column has the same name but for its case")
            for column, why in reasons[oid].items()
            if column not in used
        )
        found.append(StoredTable(schema, name, stored, text, key if all(key) else (), left_out, hidden))
    return {table.key: table for table in _told_apart(found, lambda table: table.key)}


def source_tables(tables: Mapping[tuple[str, ...], StoredTable]) -> tuple[SourceTable, ...]:
    """The schema as tacit has it."""
    types = {key: {c.name: c.travel.type for c in table.columns} for key, table in tables.items()}
    return tuple(
        SourceTable(
            spelled(table.path),
            tuple(
                SourceColumn(c.name, c.travel.type, not c.not_null, c.travel.labels, *c.bounds) for c in table.columns
            ),
            duckdb_view(table.view, types) if table.view else "",
            table.path,
            table.primary_key,
            table.left_out,
        )
        for table in tables.values()
    )


class _Types:
    """What the numbers of types mean in this database."""

    def __init__(
        self, domains: Sequence[tuple[Any, ...]], labels: Sequence[tuple[Any, ...]], checks: Sequence[tuple[Any, ...]]
    ) -> None:
        self._domains = {oid: (base, modifier) for oid, base, modifier in domains}
        self._labels: dict[int, tuple[str, ...]] = {}
        for oid, label in labels:
            self._labels[oid] = (*self._labels.get(oid, ()), label)
        self._checks: dict[int, list[str]] = {}
        for _, domain, kind, _, text in checks:
            if kind == "c" and domain:
                self._checks.setdefault(domain, []).append(text)

    def columns(self, listed: Iterable[tuple[Any, ...]], ranges: Mapping[str, Bounds]) -> tuple[StoredColumn, ...]:
        """The columns whose types have a counterpart."""
        stored = []
        for _, name, not_null, oid, modifier in listed:
            bounds = [ranges.get(folded(name), (None, None))]
            while oid in self._domains:
                bounds.append(check_ranges(self._checks.get(oid, ())).get("value", (None, None)))
                oid, inner = self._domains[oid]
                modifier = inner if inner >= 0 else modifier
            travel = enum_travel(self._labels[oid]) if oid in self._labels else base_travel(oid, modifier)
            if travel is not None:
                stored.append(StoredColumn(name, travel, not_null, _tightest(bounds)))
        return tuple(_told_apart(stored, lambda column: folded(column.name)))


def _tightest(bounds: Sequence[Bounds]) -> Bounds:
    """What all of some ranges allow."""
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds if high is not None]
    try:
        return max(lows, default=None), min(highs, default=None)
    except TypeError:  # of a date and a timestamp neither is the larger
        return None, None


def _told_apart(things: Sequence[Any], key: Any) -> list[Any]:
    """Those whose name is like no other's but for its case."""
    times = Counter(map(key, things))
    return [thing for thing in things if times[key(thing)] == 1]
