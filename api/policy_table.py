"""The keys of a table in the policy: how each is read, what is refused, and what it makes of the table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from tacit.engine.accounting.terms import NO_UNIT
from tacit.sql import Table
from tacit.sql.dialect import is_key
from tacit.sql.names import folded

from .errors import PolicyError
from .policy_column import ColumnPolicy, declared_column, read_column
from .policy_section import Place, Section, is_integer, kind, show, suggestion

if TYPE_CHECKING:
    from tacit.sql import Column, SourceColumn, SourceTable

_MOST_ROWS = 10**9
ARROW = "->"
"""Between a key and the table that it leads to, in a privacy unit that a table does not hold itself."""


@dataclass(frozen=True)
class TablePolicy:
    """What the policy says about one table. Its fields are the keys of a table."""

    privacy_unit: str | None = None
    """The column that says whose row it is; without one, each row is a unit. Reached by keys, where the table does not
    hold it: ``"order_id -> orders.customer_id"``."""
    max_rows_per_unit: int = 1
    """How many rows of one unit are counted at most; of more, so many are chosen. Required with a privacy unit."""
    public: bool = False
    """Whether anybody may see the table: it is read freely, and nothing protects it."""
    key: str | None = None
    """The column by which other tables name its rows, where neither a name nor the schema says it."""
    version: str | None = None
    """The state of the table, by name; answers of two states are never mixed. By default the file's own stamp."""
    minimum_frequency: int = 1
    """The least threshold for values that are found (``discover``). It only shows less, so the ledger does not care."""
    columns: Mapping[str, ColumnPolicy] = field(default_factory=dict)
    """What is declared of the columns, by name."""

    @property
    def terms(self) -> dict[str, Any]:
        """What of it the guarantee depends on, which the ledger is bound to; defaults are left out."""
        terms: dict[str, Any] = {}
        if self.privacy_unit is not None:
            terms = {"privacy_unit": unit_text(self.privacy_unit), "max_rows_per_unit": self.max_rows_per_unit}
        if self.public:
            terms["public"] = True
        if self.key is not None:
            terms["key"] = folded(self.key)
        return terms


def unit_text(unit: str) -> str:
    """A privacy unit as the ledger has it: spaces around arrows make no difference.

    >>> unit_text("OID->orders.cid")
    'oid -> orders.cid'
    """
    return f" {ARROW} ".join(folded(part.strip()) for part in unit.split(ARROW))


def read_table(tables: Section, name: str) -> TablePolicy:
    """Check what can be checked without the database."""
    section = tables.inner(name, TablePolicy)
    unit, bound, public = section.get("privacy_unit"), section.get("max_rows_per_unit"), section.flag("public")
    if unit is not None and not isinstance(unit, str):
        section.refuse("privacy_unit", f"must be a column's name, not {kind(unit)}", "write it in quotes")
    if unit is not None and folded(unit) == NO_UNIT:
        section.refuse("privacy_unit", "is what the ledger calls no unit at all", "rename the column")
    if unit is not None and bound is None:
        section.refuse(
            "max_rows_per_unit",
            "is missing: with a privacy_unit, the noise must cover all rows that one unit may have",
            "write max_rows_per_unit = 4",
        )
    if bound is not None and unit is None:
        section.refuse(
            "privacy_unit",
            "is missing: max_rows_per_unit says nothing without it",
            'write privacy_unit = "patient_id", or leave max_rows_per_unit out',
        )
    if bound is not None and (not is_integer(bound) or not 1 <= bound <= _MOST_ROWS):
        section.refuse(
            "max_rows_per_unit",
            f"must be an integer from 1 to {_MOST_ROWS:,}, not {show(bound)}",
            "write max_rows_per_unit = 4",
        )
    if public and unit is not None:
        section.refuse("public", "contradicts privacy_unit", "keep one of the two")
    key = section.get("key")
    if key is not None and not isinstance(key, str):
        section.refuse("key", f"must be a column's name, not {kind(key)}", "write it in quotes")
    version = section.get("version")
    if version is not None and (not isinstance(version, (str, int, dt.date)) or version == ""):
        section.refuse("version", f"must be a string, not {kind(version)}", 'write version = "2025-01"')
    least = section.get("minimum_frequency", 1)
    if not is_integer(least) or not 1 <= least <= _MOST_ROWS:
        section.refuse(
            "minimum_frequency",
            f"must be an integer from 1 to {_MOST_ROWS:,}, not {show(least)}",
            "write minimum_frequency = 20",
        )
    columns = section.inner("columns", None)
    return TablePolicy(
        privacy_unit=unit,
        max_rows_per_unit=bound if bound is not None else 1,
        public=public,
        key=key,
        version=None if version is None else str(version),
        minimum_frequency=least,
        columns={
            column: read_column(raw, Place(columns.origin, f"{columns.path}.{column}"))
            for column, raw in columns.entries.items()
        },
    )


def declared_table(declared: TablePolicy, table: SourceTable, origin: str) -> Table:
    """The table as the compiler sees it."""
    place = Place(origin, f"tables.{table.name}")
    if table.view:
        _check_view(declared, table, place)
    names = [c.name for c in table.columns]
    check_different([folded(name) for name in names], f"two columns in {table.name} that are")
    columns = _by_database_name(declared.columns, names, Place(origin, f"{place.path}.columns"), table)
    return Table(
        name=table.name,
        columns=tuple(
            declared_column(columns.get(c.name, ColumnPolicy()), c, Place(origin, f"{place.path}.columns.{c.name}"))
            for c in table.columns
        ),
        privacy_unit=None if declared.privacy_unit is None else _unit(declared.privacy_unit, table, place),
        max_rows_per_unit=declared.max_rows_per_unit,
        public=declared.public,
        version=declared.version or "",
        minimum_frequency=declared.minimum_frequency,
        view=table.view,
        path=table.path,
        primary_key=table.primary_key,
        left_out=table.left_out,
    )


def check_different(keys: list[Any], what: str) -> None:
    """DuckDB keeps names apart by this rule; a source that does not would bind a policy to the wrong one."""
    if len(set(keys)) < len(keys):
        raise PolicyError(f"the database has {what} of one name\nhint: rename one of them")


def _unit(unit: str, table: SourceTable, place: Place) -> str:
    """The privacy unit's column under the database's own spelling; a path is read when all tables are known."""
    if ARROW in unit:
        return unit
    return unit_column(unit, table, place)


def unit_column(name: str, table: SourceTable | Table, place: Place) -> str:
    """A column that a privacy unit names, under the database's own spelling."""
    columns: list[SourceColumn | Column] = list(table.columns)
    column = next((c for c in columns if folded(c.name) == folded(name)), None)
    if column is None:
        place.refuse(
            "privacy_unit",
            f"names {name!r}, which is no column of {table.name}",
            suggestion(name, [c.name for c in columns]),
        )
    if not is_key(column.type):
        place.refuse(
            "privacy_unit",
            f"names {column.name}, a column of type {column.type[:40]}, whose values cannot be told apart reliably",
            "use a column of whole numbers, text, dates or UUIDs",
        )
    return column.name


def _check_view(declared: TablePolicy, table: SourceTable, place: Place) -> None:
    """A view is read through to the tables behind it, so what is declared of its rows would silently hold for none."""
    for key in fields(declared):
        if key.name != "columns" and getattr(declared, key.name) != key.default:
            place.refuse(
                key.name,
                f"is said of a view, whose rows are those of the tables behind {table.name}",
                f"say {key.name} of those tables; only columns can be declared for a view",
            )


def _by_database_name(
    columns: Mapping[str, ColumnPolicy], names: list[str], place: Place, table: SourceTable
) -> dict[str, ColumnPolicy]:
    """The policy's columns under the database's own spelling; SQL names do not mind case."""
    spelling = {folded(name): name for name in names}
    matched: dict[str, ColumnPolicy] = {}
    for name, column in columns.items():
        if folded(name) not in spelling:
            reason = dict(table.left_out).get(name)
            if reason is not None:
                place.refuse(name, f"is a column of {table.name} that cannot be used: {reason}", "leave it out")
            place.refuse(name, f"is no column of {table.name}", suggestion(name, names))
        key = spelling[folded(name)]
        if key in matched:
            place.refuse(name, "is declared twice", "keep one of the two")
        matched[key] = column
    return matched
