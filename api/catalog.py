"""The policy meets the schema: one catalog of tables, columns and declared domains for the compiler.

Only names and types are read from the database here, never a row.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from tacit.sql import Catalog, Column, Range, Table, Values
from tacit.sql.dialect import frame as typed_frame
from tacit.sql.dialect import is_key
from tacit.sql.names import folded, meanings

from .errors import PolicyError
from .policy import ColumnPolicy, Policy, TablePolicy, policy_error, show, suggestion

if TYPE_CHECKING:
    from tacit.sql import Source, SourceColumn, SourceTable

T = TypeVar("T")

_INTEGERS = frozenset(f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")) | {
    "INTEGER",
    "UINTEGER",
}
_EXAMPLES = {
    "integer": "a whole number, such as 18",
    "number": "a number, such as 0.5",
    "text": 'text in quotes, such as "NY"',
    "boolean": "true or false",
    "date": "a date without quotes, such as 2024-01-31",
    "timestamp": "a time without quotes, such as 2024-01-31T12:00:00",
}


def build_catalog(policy: Policy, source: Source) -> Catalog:
    """Every table of the database, with what the policy says of it.

    A table that the policy does not name is private, and each of its rows is one unit.
    """
    schema = source.schema()
    if not policy.trust_schema:
        schema = tuple(replace(t, columns=tuple(c.untrusted() for c in t.columns)) for t in schema)
    declared: dict[str, TablePolicy] = {}
    for name, entry in policy.tables.items():
        table = _meant(policy, name, schema)
        if table in declared:
            raise policy_error(policy.origin, f"tables.{name}", "is declared twice", "keep one of the two")
        declared[table] = entry
    catalog = Catalog(tables=tuple(_table(policy, declared.get(t.name, TablePolicy()), t) for t in schema))
    _check_different([table.key for table in catalog.tables], "two tables")
    return catalog


def tables_meant(name: str, tables: Iterable[Table | SourceTable]) -> list[str]:
    """The names of the tables that somebody may mean by a name: one, unless ``s.t`` is in main and in s."""
    meant = meanings(name)
    return [t.name for t in tables if tuple(map(folded, t.path or ("main", t.name))) in meant]


def _meant(policy: Policy, name: str, schema: Sequence[SourceTable]) -> str:
    found = tables_meant(name, schema)
    if not found:
        known = [table.name for table in schema]
        raise policy_error(policy.origin, f"tables.{name}", "is no table of the database", suggestion(name, known))
    if len(found) > 1:
        raise policy_error(
            policy.origin,
            f"tables.{name}",
            f"can be read as {' and as '.join(t.name for t in schema if t.name in found)}",
            'quote the parts of the name as in SQL, inside the quotes of TOML: \'"schema"."table"\' or \'"table"\'',
        )
    return found[0]


def _check_different(keys: Sequence[object], what: str) -> None:
    """DuckDB keeps names apart by this rule; a source that does not would bind a policy to the wrong one."""
    if len(set(keys)) < len(keys):
        raise PolicyError(f"the database has {what} of one name\nhint: rename one of them")


def with_versions(catalog: Catalog, source: Source, declared: Mapping[str, str], key: bytes) -> Catalog:
    """The catalog as of now: a version declared in the ledger comes first, then the policy's, then the file's own.

    Asked for at every batch, because a parquet or csv file can be replaced while the connection is open. ``key`` hides
    what the source's own versions are made of.
    """
    said = {table: version for name, version in declared.items() for table in tables_meant(name, catalog.tables)}
    return Catalog(
        tables=tuple(
            replace(t, version=said.get(t.name) or t.version or source.version(t.name, key)) for t in catalog.tables
        )
    )


def _table(policy: Policy, declared: TablePolicy, table: SourceTable) -> Table:
    path = f"tables.{table.name}"
    if table.view:
        _check_view(policy, declared, table, path)
    names = [c.name for c in table.columns]
    _check_different([folded(name) for name in names], f"two columns in {table.name} that are")
    columns = _matched(declared.columns, names, policy, f"{path}.columns", f"column of {table.name}")
    unit = declared.privacy_unit
    if unit is not None:
        found = [name for name in names if folded(name) == folded(unit)]
        if not found:
            raise policy_error(
                policy.origin,
                f"{path}.privacy_unit",
                f"names {unit!r}, which is no column of {table.name}",
                suggestion(unit, names),
            )
        unit = found[0]
        type_ = next(c.type for c in table.columns if c.name == unit)
        if not is_key(type_):
            raise policy_error(
                policy.origin,
                f"{path}.privacy_unit",
                f"names {unit}, a column of type {type_[:40]}, whose values cannot be told apart reliably",
                "use a column of whole numbers, text, dates or UUIDs",
            )
    return Table(
        name=table.name,
        columns=tuple(_column(policy, columns.get(c.name), c, f"{path}.columns.{c.name}") for c in table.columns),
        privacy_unit=unit,
        max_rows_per_unit=declared.max_rows_per_unit,
        public=declared.public,
        version=declared.version or "",
        view=table.view,
        path=table.path,
    )


def _check_view(policy: Policy, declared: TablePolicy, table: SourceTable, path: str) -> None:
    """A view is read through to the tables behind it, so what is said of its rows would silently hold for none."""
    said = {"privacy_unit": declared.privacy_unit, "public": declared.public, "version": declared.version}
    for key, value in said.items():
        if value:
            raise policy_error(
                policy.origin,
                f"{path}.{key}",
                f"is said of a view, whose rows are those of the tables behind {table.name}",
                f"say {key} of those tables; only columns can be declared for a view",
            )


def _column(policy: Policy, declared: ColumnPolicy | None, column: SourceColumn, path: str) -> Column:
    domain: Values | Range | None
    if declared is not None and declared.values is not None:
        domain = _values(policy, declared, column, path)
    elif declared is not None and declared.min is not None:
        domain = _range(policy, declared, column, path)
    else:
        domain = _schema_domain(column)
    return Column(name=column.name, type=column.type, nullable=column.nullable, domain=domain, recast=column.recast)


def _schema_domain(column: SourceColumn) -> Values | Range | None:
    """What the schema itself declares; where it is not trusted, that is no more than BOOLEAN, a fact about SQL."""
    if _family(column.type) == "boolean":
        return Values((False, True), None)
    if column.enum is not None:
        return Values(tuple(column.enum), None)
    low: Any = column.minimum
    high: Any = column.maximum
    return None if low is None or high is None or low > high else Range(low, high)


def _values(policy: Policy, declared: ColumnPolicy, column: SourceColumn, path: str) -> Values:
    assert declared.values is not None
    family = _domain_family(policy, column, path)
    if declared.other is not None and family != "text":
        raise policy_error(
            policy.origin, f"{path}.other", f"is for text; {column.name} is {column.type}", "leave other out"
        )
    values = tuple(_value(policy, v, column, family, f"{path}.values") for v in declared.values)
    if column.type.upper() == "FLOAT":  # as the column itself would hold them: 0.1 of a FLOAT is not 0.1 of a DOUBLE
        values = tuple(float(np.float32(value)) for value in values)
    for value in values:
        if column.enum is not None and value not in column.enum:
            raise policy_error(
                policy.origin,
                f"{path}.values",
                f"lists {value!r}, which is not in the ENUM {column.name}",
                suggestion(str(value), column.enum),
            )
    if family in ("integer", "number", "text"):
        _check_held(policy, values, column, family, f"{path}.values")
    return Values(values, declared.other)


def _range(policy: Policy, declared: ColumnPolicy, column: SourceColumn, path: str) -> Range:
    family = _domain_family(policy, column, path)
    if family in ("text", "boolean"):
        raise policy_error(
            policy.origin, path, f"gives a range for {column.type}", "write values = [ … ] in place of min and max"
        )
    low = _value(policy, declared.min, column, family, f"{path}.min")
    high = _value(policy, declared.max, column, family, f"{path}.max")
    if low > high:
        raise policy_error(policy.origin, f"{path}.min", f"is {low}, above max = {high}", "swap the two")
    if family == "integer":  # whole numbers in a range can be listed as groups, and then they must be of the type
        for key, end in (("min", low), ("max", high)):
            _check_held(policy, (end,), column, family, f"{path}.{key}")
    return Range(low, high)


def _check_held(policy: Policy, values: tuple[Any, ...], column: SourceColumn, family: str, path: str) -> None:
    """A group that the column's type cannot hold would fail when its frame is built, so it is refused here."""
    if _held(values, column.type):
        return
    wrong = next((value for value in values if not _held((value,), column.type)), values[0])
    raise _no_value(policy, wrong, column, family, path)


def _held(values: tuple[Any, ...], type_: str) -> bool:
    try:
        kept = typed_frame(("value",), (type_,), tuple((value,) for value in values))["value"]
    except Exception:  # whatever DuckDB has against it
        return False
    if not type_.upper().startswith("DECIMAL"):
        return True
    return bool(np.array_equal(kept, np.array([float(value) for value in values])))


def _domain_family(policy: Policy, column: SourceColumn, path: str) -> str:
    family = _family(column.type)
    if family is None:
        raise policy_error(
            policy.origin, path, f"declares a column of type {column.type}, which can have no domain", "remove it"
        )
    return family


def _family(type_: str) -> str | None:
    """What kind of constant a column of this DuckDB type is compared with."""
    name = type_.upper().partition("(")[0].strip()
    if type_.endswith("]"):
        return None
    if name in _INTEGERS:
        return "integer"
    if name in ("FLOAT", "DOUBLE", "DECIMAL"):
        return "number"
    if name in ("VARCHAR", "ENUM"):
        return "text"
    if name.startswith("TIMESTAMP"):
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(name)


def _value(policy: Policy, value: Any, column: SourceColumn, family: str, path: str) -> Any:
    """The value as the column's own kind, or a refusal that shows one."""
    kept = _converted(value, column.type, family)
    if kept is None:
        raise _no_value(policy, value, column, family, path)
    return kept


def _no_value(policy: Policy, value: Any, column: SourceColumn, family: str, path: str) -> PolicyError:
    return policy_error(
        policy.origin,
        path,
        f"has {show(value)}, which is no value of {column.name} ({column.type[:40]})",
        f"write {_EXAMPLES[family]}",
    )


def _converted(value: Any, type_: str, family: str) -> Any:
    number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if number and not _finite(value):
        return None
    match family:
        case "integer":
            return int(value) if number and value == int(value) else None
        case "number" if number:
            return Decimal(str(value)) if type_.upper().startswith("DECIMAL") else float(value)
        case "text":
            return value if isinstance(value, str) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None
        case "timestamp" if isinstance(value, dt.datetime):
            aware = value.tzinfo is not None
            return value if aware == ("TIME ZONE" in type_.upper()) else None
        case "timestamp" if isinstance(value, dt.date) and "TIME ZONE" not in type_.upper():
            return dt.datetime(value.year, value.month, value.day)
    return None


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (OverflowError, ValueError):  # beyond every float
        return False


def _matched(declared: Mapping[str, T], names: Iterable[str], policy: Policy, path: str, what: str) -> dict[str, T]:
    """The policy's entries under the database's own spelling; SQL names do not mind case."""
    names = list(names)
    spelling = {folded(name): name for name in names}
    matched: dict[str, T] = {}
    for name, entry in declared.items():
        if folded(name) not in spelling:
            raise policy_error(policy.origin, f"{path}.{name}", f"is no {what}", suggestion(name, names))
        key = spelling[folded(name)]
        if key in matched:
            raise policy_error(policy.origin, f"{path}.{name}", "is declared twice", "keep one of the two")
        matched[key] = entry
    return matched
