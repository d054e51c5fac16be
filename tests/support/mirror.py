"""The tables of a DuckDB brought into PostgreSQL, and a DuckDB with the types that PostgreSQL then has."""

from __future__ import annotations

import duckdb
import psycopg
from psycopg import sql

_TYPES = {
    "TINYINT": "smallint", "UTINYINT": "smallint", "HUGEINT": "numeric", "DOUBLE": "float8", "FLOAT": "float4",
    "VARCHAR": "text",
}  # fmt: skip
AS_POSTGRES_HAS_IT = {"TINYINT": "SMALLINT", "UTINYINT": "SMALLINT", "HUGEINT": "DOUBLE"}
"""Types that PostgreSQL lacks, and what comes back in their place."""

_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns()
WHERE NOT internal AND (schema_name, table_name) IN (SELECT (schema_name, table_name) FROM duckdb_tables())
ORDER BY schema_name, table_name, column_index
"""


def narrow(database: duckdb.DuckDBPyConnection) -> None:
    """Give every column a type that PostgreSQL has."""
    for schema, table, column, type_, _ in database.execute(_COLUMNS).fetchall():
        if type_ in AS_POSTGRES_HAS_IT:
            database.execute(
                f'ALTER TABLE "{schema}"."{table}" ALTER "{column}" SET DATA TYPE {AS_POSTGRES_HAS_IT[type_]}'
            )


def mirror(database: duckdb.DuckDBPyConnection, url: str) -> None:
    """Make the same tables in PostgreSQL, with the same rows."""
    tables: dict[tuple[str, str], list[tuple[str, str, bool]]] = {}
    for schema, table, *column in database.execute(_COLUMNS).fetchall():
        tables.setdefault((schema, table), []).append(tuple(column))
    with psycopg.connect(url, autocommit=True) as connection:
        enums: dict[str, str] = {}
        for (schema, table), columns in tables.items():
            place = sql.Identifier("public" if schema == "main" else schema, table)
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(place._obj[0])))
            made = []
            for name, type_, nullable in columns:
                if type_.startswith("ENUM(") and type_ not in enums:
                    enums[type_] = f"enum_{len(enums)}"
                    connection.execute(f"CREATE TYPE public.{enums[type_]} AS {type_}")  # type: ignore[arg-type]
                written = f"public.{enums[type_]}" if type_ in enums else _TYPES.get(type_, type_)
                made.append(
                    sql.SQL("{} " + written + ("" if nullable else " NOT NULL")).format(sql.Identifier(name))  # type: ignore[arg-type]
                )
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(place, sql.SQL(", ").join(made)))
            _copy(database, connection, f'"{schema}"."{table}"', place, [name for name, *_ in columns])


def _copy(
    database: duckdb.DuckDBPyConnection,
    connection: psycopg.Connection[tuple[object, ...]],
    table: str,
    place: sql.Identifier,
    names: list[str],
) -> None:
    texts = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in names)
    rows = database.execute(f"SELECT {texts} FROM {table}").fetchall()
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(place)) as copy:
        for row in rows:
            copy.write_row(row)
