"""The tables of a ledger's file, in both versions that tacit reads."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError

APPLICATION = 0x7AC17001
FIRST_SCHEMA, SCHEMA = 2, 3
"""The schemas that this version reads: that of tacit 0.1.0, and the current one."""
_FIRST_TABLES = """
CREATE TABLE meta (
    identity TEXT NOT NULL,
    rule     TEXT NOT NULL,
    salt     BLOB NOT NULL
) STRICT;
CREATE TABLE entries (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    analyst     TEXT,
    epsilon     TEXT NOT NULL,
    delta       TEXT NOT NULL,
    rho         TEXT,
    fingerprint TEXT NOT NULL,
    detail      TEXT NOT NULL,
    refers      INTEGER,
    at          TEXT NOT NULL,
    digest      TEXT NOT NULL
) STRICT;
CREATE INDEX entries_by_fingerprint ON entries (fingerprint);
CREATE INDEX entries_by_reference ON entries (refers) WHERE refers IS NOT NULL;
CREATE TABLE releases (
    charge  INTEGER PRIMARY KEY REFERENCES entries (id),
    payload BLOB NOT NULL
) STRICT;
CREATE TABLE subjects (
    subject TEXT NOT NULL,
    charge  INTEGER NOT NULL REFERENCES releases (charge),
    PRIMARY KEY (subject, charge)
) STRICT;
"""
# A new ledger is made in the same two steps as an old one is brought up to date, so that both have one schema. The new
# column also keeps a process of tacit 0.1.0 that still has the file open from adding entries without a standing.
_TABLES_SINCE = """
ALTER TABLE entries ADD COLUMN standing TEXT NOT NULL DEFAULT '';
CREATE INDEX entries_by_analyst ON entries (analyst) WHERE analyst IS NOT NULL;
CREATE INDEX entries_of_readers ON entries (analyst, refers) WHERE kind = 'read';
CREATE INDEX entries_of_versions ON entries (id) WHERE kind = 'version';
CREATE TABLE analysts (
    analyst TEXT NOT NULL PRIMARY KEY,
    last    INTEGER NOT NULL REFERENCES entries (id)
) STRICT, WITHOUT ROWID;
"""


def create_tables(connection: sqlite3.Connection) -> None:
    """All tables, in an empty database and inside a transaction."""
    _run_script(connection, _FIRST_TABLES)
    upgrade_tables(connection)


def upgrade_tables(connection: sqlite3.Connection) -> None:
    """The tables of tacit 0.1.0 brought up to date, inside a transaction."""
    _run_script(connection, _TABLES_SINCE)
    connection.execute(f"PRAGMA user_version={SCHEMA}")


def schema_of(connection: sqlite3.Connection) -> int:
    """Which schema the file says that it has."""
    return _pragma(connection, "user_version")


def check_schema(connection: sqlite3.Connection, path: Path | None) -> int:
    """The schema of a file that has exactly the tables and indexes of a ledger; LedgerError for any other file."""
    if _pragma(connection, "application_id") != APPLICATION:
        raise LedgerError(f"{path} is not a ledger of tacit; it is left as it is")
    schema = schema_of(connection)
    if schema not in (FIRST_SCHEMA, SCHEMA):
        raise LedgerError(f"the ledger {path} was written by another version of tacit; it is left as it is")
    if _schema_text(connection) != _expected_schema(schema):
        raise damaged(path)
    return schema


def damaged(path: Path | None) -> LedgerError:
    """The refusal of what is no longer as it was written."""
    return LedgerError(f"the ledger {path} is damaged; restore it from a backup (it is left as it is, never reset)")


@lru_cache
def _expected_schema(schema: int) -> list[Any]:
    connection = sqlite3.connect(":memory:")
    try:
        _run_script(connection, _FIRST_TABLES if schema == FIRST_SCHEMA else _FIRST_TABLES + _TABLES_SINCE)
        return _schema_text(connection)
    finally:
        connection.close()


def _schema_text(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()


def _run_script(connection: sqlite3.Connection, script: str) -> None:
    """Statement by statement: ``executescript`` would end the transaction."""
    for statement in script.split(";"):
        connection.execute(statement)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
