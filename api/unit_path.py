"""``privacy_unit = "order_id -> orders.customer_id"``: the unit of a table that holds none, reached by keys.

A row belongs to the unit that the row it names belongs to. Several steps may follow each other, as in
``"line_id -> lines.order_id -> orders.customer_id"``. The column by which a table's rows are named is its own ``key``
in the policy, a column of the same name, or the primary key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tacit.sql import Catalog, Table
from tacit.sql.catalog import UNIT_NAME, KeyStep
from tacit.sql.dialect import is_joinable
from tacit.sql.names import folded

from .policy_section import Place, suggestion
from .policy_table import ARROW, TablePolicy, unit_column, unit_text


def with_unit_paths(catalog: Catalog, declared: Mapping[str, TablePolicy], origin: str) -> Catalog:
    """The catalog with every path read; ``declared`` is what the policy says, by the table's name in the database."""
    tables = [_with_path(table, catalog, declared, Place(origin, f"tables.{table.name}")) for table in catalog.tables]
    return replace(catalog, tables=tuple(tables))


def _with_path(table: Table, catalog: Catalog, declared: Mapping[str, TablePolicy], place: Place) -> Table:
    if table.privacy_unit is not None:
        _check_names(table, place)
    if table.privacy_unit is None or ARROW not in table.privacy_unit:
        return table
    first, *rest = (part.strip() for part in table.privacy_unit.split(ARROW))
    key = unit_column(first, table, place)
    steps: list[KeyStep] = []
    before = table, key
    for text in rest:
        name, _, column = text.rpartition(".")
        target = catalog.table(name)
        if target is None or not column:
            place.refuse(
                "privacy_unit",
                f"leads to {text!r}, which is no column of a table",
                f'write "{first} {ARROW} table.column"; '
                + suggestion(name, [other.name for other in catalog.tables if not other.view]),
            )
        if target.public or target.view:
            place.refuse("privacy_unit", f"leads to {target.name}, which holds no units", "name a private table")
        gives = unit_column(column, target, place)
        own = _own_key(target, before[1], declared.get(target.name), place)
        _check_types(before, (target, own), place)
        steps.append(KeyStep(target, own, gives))
        before = target, gives
    for number, step in enumerate(steps):
        _check_same_unit(step, rest[number + 1 :], place)
        _check_names(step.table, place)
    return replace(table, privacy_unit=unit_text(table.privacy_unit), unit_path=tuple(steps), unit_key=key)


def _check_names(table: Table, place: Place) -> None:
    """The scan calls the unit of a row by a name of its own, which must not be a column's."""
    if any(folded(c.name).startswith(UNIT_NAME) for c in table.columns):
        place.refuse("privacy_unit", f"needs the name {UNIT_NAME!r}, which is a column here", "rename that column")


def _check_same_unit(step: KeyStep, rest: Sequence[str], place: Place) -> None:
    """The rows of a table on the way belong to the unit that the way leads to.

    Guarantee. Removing a unit then removes rows on the way that lead to this unit and to no other. Had a table on the
    way other units, removing one of those would change which rows behind it count for this one.
    """
    wanted = unit_text(f" {ARROW} ".join([step.gives, *rest]))
    declared = None if step.table.privacy_unit is None else unit_text(step.table.privacy_unit)
    if declared != wanted:
        place.refuse(
            "privacy_unit",
            f"leads through {step.table.name}, whose own privacy unit is "
            + ("a row" if declared is None else repr(declared)),
            f'write privacy_unit = "{wanted}" and max_rows_per_unit under [tables.{step.table.name}]',
        )


def _own_key(table: Table, named: str, declared: TablePolicy | None, place: Place) -> str:
    """The column of a table that holds what another table names its rows by."""
    if declared is not None and declared.key is not None:
        return unit_column(declared.key, table, place)
    same = table.column(named)
    if same is not None:
        return same.name
    if len(table.primary_key) == 1:
        return table.primary_key[0]
    place.refuse(
        "privacy_unit",
        f"does not say by which column the rows of {table.name} are named",
        f'write key = "…" under [tables.{table.name}]',
    )


def _check_types(a: tuple[Table, str], b: tuple[Table, str], place: Place) -> None:
    types: Sequence[str] = [column.type for table, name in (a, b) if (column := table.column(name)) is not None]
    if not is_joinable(*types):
        place.refuse(
            "privacy_unit",
            f"equates {a[0].name}.{a[1]} with {b[0].name}.{b[1]}, a {types[0]} with a {types[1]}",
            "give both the same type in the schema",
        )
