"""The policy meets the schema: one catalog of tables, columns and declared domains for the compiler.

Only names and types are read from the database here, never a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.sql import Catalog, Table
from tacit.sql.names import MAIN, folded, meanings

from .policy import Policy
from .policy_section import policy_error, suggestion
from .policy_table import TablePolicy, check_different, declared_table
from .unit_path import with_unit_paths

if TYPE_CHECKING:
    from tacit.sql import Source, SourceTable


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
    catalog = Catalog(
        tuple(declared_table(declared.get(t.name, TablePolicy()), t, policy.origin) for t in schema),
        source.read_public,
        source.main,
        source.database,
    )
    check_different([table.key for table in catalog.tables], "two tables")
    return with_unit_paths(catalog, declared, policy.origin)


def with_plain_names(policy: Policy, source: Source) -> Policy:
    """The policy with every table under the one name that it has here: ``public.visits`` of PostgreSQL is visits, and
    so are ``clinic.visits`` and ``clinic.main.visits`` of a database that is called clinic.

    The ledger is bound to these names, so it makes no difference how a policy spells them.
    """
    heads = [f"{source.database}.{source.main}.", f"{source.database}."] if source.database else []
    heads += [f"{source.main}."] if source.main != MAIN else []
    tables: dict[str, TablePolicy] = {}
    for name, entry in policy.tables.items():
        head = next((head for head in heads if folded(name).startswith(folded(head)) and len(name) > len(head)), "")
        plain = name[len(head) :]
        if plain in tables:
            raise policy_error(policy.origin, f"tables.{name}", "is declared twice", "keep one of the two")
        tables[plain] = entry
    return replace(policy, tables=tables)


def tables_meant(name: str, tables: Iterable[Table | SourceTable]) -> list[str]:
    """The names of the tables that somebody may mean by a name: one, unless ``s.t`` is in main and in s."""
    meant = meanings(name)
    return [t.name for t in tables if tuple(map(folded, t.path or ("main", t.name))) in meant]


def _meant(policy: Policy, name: str, schema: Sequence[SourceTable]) -> str:
    meant = tables_meant(name, schema)
    if not meant:
        tables = [table.name for table in schema]
        raise policy_error(policy.origin, f"tables.{name}", "is no table of the database", suggestion(name, tables))
    if len(meant) > 1:
        raise policy_error(
            policy.origin,
            f"tables.{name}",
            f"can be read as {' and as '.join(t.name for t in schema if t.name in meant)}",
            'quote the parts of the name as in SQL, inside the quotes of TOML: \'"schema"."table"\' or \'"table"\'',
        )
    return meant[0]


def with_versions(catalog: Catalog, source: Source, declared: Mapping[str, str], key: bytes) -> Catalog:
    """The catalog as of now: a version declared in the ledger comes first, then the policy's, then the file's own.

    Asked for at every batch, because a parquet or csv file can be replaced while the connection is open. ``key`` hides
    what the source's own versions are made of.
    """
    versions = {table: version for name, version in declared.items() for table in tables_meant(name, catalog.tables)}
    stated = [versions.get(t.name) or t.version for t in catalog.tables]
    present = "" if all(stated) else source.version(key)  # one for all tables: asking costs a statement
    tables = [replace(t, version=name or present) for t, name in zip(catalog.tables, stated, strict=True)]
    now = {table.key: table for table in tables}
    paths = [table.unit_path and tuple(replace(s, table=now[s.table.key]) for s in table.unit_path) for table in tables]
    dated = tuple(replace(table, unit_path=path) for table, path in zip(tables, paths, strict=True))
    return replace(catalog, tables=dated)
