"""A PostgreSQL database as the source of rows."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.errors import NotSupportedError, OperationalError

from ...catalog import Table
from ...derived import PublicQuery
from ...product_scan import ProductScan
from ...scan import Scan
from ...scan_sets import joint_scans
from ...source import Keep, SourceTable
from ..duckdb.copied_rows import CopiedRows, Rendering, Store, wanted_by
from ..duckdb.running import keep_count
from ..duckdb.scan_sql import render_rows, render_values
from ..duckdb.scanner import Scanner
from ..duckdb.settings import needed, prepare
from .pushdown import counted, pushed
from .rows import PostgresRows, transfer
from .sessions import RowReader, Sessions, all_rows, silenced
from .stored_tables import PUBLIC, StoredTable, read_tables, source_tables
from .travel import MOST_TEXTS

_UNREAD = "the tables in PostgreSQL could not be read to the end; nothing was released"
_UNPLANNED = (
    "PostgreSQL does not accept what this batch needs of it: the role may not read a column, or a limit of the server "
    "is too low; nothing was charged\nhint: GRANT SELECT on the tables, or split the batch"
)
_IDENTITY = "SELECT oid::int8 FROM pg_database WHERE datname = current_database()"
_CLUSTER = "SELECT system_identifier FROM pg_control_system()"
_MAY_ASK = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
_MOST_PASSES = 4
"""So many scans of a table are counted one by one in PostgreSQL."""
_STATE = (
    "SELECT pg_current_snapshot()::text, CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()::text END, "
    "pg_postmaster_start_time()::text"
)


def open_postgres(url: str) -> PostgresSource:
    """Open what ``tacit.connect`` was given. Raises OperationalError when no such database lets us in."""
    return PostgresSource(Sessions(url))


class PostgresSource(Scanner):
    """Rows in PostgreSQL. A call that reads rows has a transaction of its own, so that threads can share the source."""

    path: Path | None = None
    """The ledger has to be named: see docs/privacy.md."""
    memory: str | None = None
    main = PUBLIC
    pushes_down = True
    """Whether PostgreSQL counts what it can."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._tables: dict[tuple[str, ...], StoredTable] = {}
        super().__init__()
        try:
            self._identity = self._read_identity()
            self._store = Store()
        except BaseException:
            sessions.close()
            raise

    def __repr__(self) -> str:
        return f"PostgresSource({self._sessions.place})"

    def _read_identity(self) -> str:
        [[(database,)], [(may_ask,)]] = all_rows(self._sessions, [_IDENTITY, _MAY_ASK])
        cluster = all_rows(self._sessions, [_CLUSTER])[0][0][0] if may_ask else ""
        return f"{cluster} {database}"

    def schema(self) -> tuple[SourceTable, ...]:
        """Names, types and constraints of all tables and views."""
        self._tables = read_tables(self._sessions)
        return source_tables(self._tables)

    def version(self, key: bytes) -> str:
        """A name of the database's present state that says nothing but whether the state is the same.

        It is made of the transactions that a reader would see as finished, so any write in the cluster, in another
        database too, makes a new one. A standby names the first and the last of those that are under way and no other,
        so how far it has replayed the log is part of it too. So is when the server was started: one that was restored
        from a backup, or took the place of another, gives the numbers of lost transactions to new ones.
        """
        [[state]] = all_rows(self._sessions, [_STATE])
        return hmac.new(key, f"version {self._identity} {state}".encode(), "sha256").hexdigest()[:32]

    def count(self, scan: Scan, salt: bytes) -> NDArray[np.int64]:
        """The integer vector x of one table."""
        return self.count_all([scan], salt)[0]

    def count_all(self, scans: Sequence[Scan], salt: bytes) -> list[NDArray[np.int64]]:
        """``count`` for several scans, all of one state of the database.

        A few scans that PostgreSQL can count cost a pass over the table each; of more, the rows are brought over once.
        """
        statements = self._pushed(scans)
        rest = [number for number in range(len(scans)) if number not in statements]
        copied = [scans[number] for number in rest]
        vectors: dict[int, NDArray[np.int64]] = {}
        with self._read(self._renderings(copied, salt)) as (rows, reader):
            for number, statement in statements.items():
                vectors[number] = counted(scans[number], reader.table(statement))
            vectors |= zip(rest, rows.count_all(copied, salt), strict=True)
        return [vectors[number] for number in range(len(scans))]

    def _renderings(self, scans: Sequence[Scan], salt: bytes) -> list[Rendering]:
        return [partial(render_rows, joint.rows, salt) for joint, _ in joint_scans(scans)]

    def _pushed(self, scans: Sequence[Scan]) -> dict[int, str]:
        """The statements of the scans that PostgreSQL counts, by their numbers."""
        if not self.pushes_down:
            return {}
        found = ((number, pushed(scan, self._tables.get(scan.table.key))) for number, scan in enumerate(scans))
        statements = {number: statement for number, statement in found if statement is not None}
        passes = Counter(scans[number].table.key for number in statements)
        return {number: s for number, s in statements.items() if passes[scans[number].table.key] <= _MOST_PASSES}

    def rehearse(self, scan: Scan | ProductScan) -> None:
        """Run the scan on rows made of extreme values, and let PostgreSQL plan what it will be asked; reads no row."""
        super().rehearse(scan)
        if isinstance(scan, Scan):
            self._plan([scan])

    def rehearse_all(self, scans: Sequence[Scan]) -> None:
        """The same for what ``count_all`` runs."""
        super().rehearse_all(scans)
        self._plan(scans)

    def rehearse_values(self, scan: Scan) -> None:
        """The same for what ``values`` runs."""
        super().rehearse_values(scan)
        self._explain(self._transfers([partial(render_values, scan, bytes(32))]))

    def _plan(self, scans: Sequence[Scan]) -> None:
        statements = self._pushed(scans)
        rest = [scan for number, scan in enumerate(scans) if number not in statements]
        self._explain([*statements.values(), *self._transfers(self._renderings(rest, bytes(32)))])

    def _transfers(self, renderings: Sequence[Rendering]) -> list[str]:
        return [
            transfer(table, self._tables[key], columns)[0] for key, (table, columns) in wanted_by(renderings).items()
        ]

    def _explain(self, statements: Sequence[str]) -> None:
        """What fails here would fail for any rows: permissions, row-level security, limits of the server."""
        with silenced(_UNPLANNED), self._sessions.catalog() as cursor:
            for statement in statements:
                cursor.execute(f"EXPLAIN {statement}")
        with silenced(_UNPLANNED), self._sessions.rows():  # after the charge, a connection is there to read with
            pass

    def values(self, scan: Scan, salt: bytes, keep: Keep) -> list[Any]:
        """The values of the scan's one column whose counts of units ``keep`` lets pass."""
        with self._copied([partial(render_values, scan, salt)]) as rows:
            return rows.values(scan, salt, keep)

    def unique(self, table: Table, columns: tuple[str, ...]) -> bool:
        """Whether no two rows of a public table agree in these columns; NULL keys match nothing."""
        if isinstance(table.rows, PublicQuery):
            return super().unique(table, columns)
        with self._copied_table(table, columns) as rows:
            return rows.unique(table, columns)

    def _fetch_public(self, table: Table, columns: Sequence[str]) -> pd.DataFrame:
        with self._copied_table(table, columns) as rows:
            return rows._fetch_public(table, columns)

    def _copied_table(self, table: Table, columns: Iterable[str]) -> AbstractContextManager[CopiedRows]:
        return self._copied([lambda stored: stored(table, list(columns))])

    @contextmanager
    def _copied(self, renderings: Sequence[Rendering]) -> Iterator[CopiedRows]:
        with self._read(renderings) as (rows, _):
            yield rows

    @contextmanager
    def _read(self, renderings: Sequence[Rendering]) -> Iterator[tuple[CopiedRows, RowReader]]:
        """A copy of what some statements read, and the transaction that it was read in."""
        wanted = wanted_by(renderings)
        with self._store.cursor() as cursor, silenced(_UNREAD), self._sessions.rows() as reader:
            rows = PostgresRows(cursor, self._public)
            keep_count(cursor)
            with self._running.statement(reader.cancel), self._running.cursor(cursor):
                try:
                    rows.bring(reader, self._tables, wanted)
                except duckdb.Error:  # what the stream of rows raises comes through DuckDB
                    raise OperationalError(_UNREAD) from None
                yield rows, reader

    @contextmanager
    def _cursor(self, scan: Scan | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """For rehearsals: no stored row is within reach."""
        with self._store.cursor() as cursor:
            prepare(cursor, needed(scan), scan)
            self._bring_public(cursor, scan)
            yield cursor

    def _stored(self, table: Table, wanted: Collection[str]) -> str:
        raise OperationalError(f"{table.name} was not brought over")

    def _check_readable(self, scan: Scan) -> None:
        """The role may read the columns, all of their rows, and they are those that the batch was compiled for."""
        now = read_tables(self._sessions)
        for table in scan.tables:
            before, after = self._tables.get(table.key), now.get(table.key)
            if before is None or after is None or before.shape != after.shape or after.view is not None:
                raise OperationalError(
                    f"the columns of {table.name} are no longer those that this connection was opened with, or the "
                    "role may no longer read them; nothing was charged\nhint: connect again"
                )
            if sum(c.travel.base == "text" for c in after.columns) > MOST_TEXTS:
                raise NotSupportedError(
                    f"{table.name} has more than {MOST_TEXTS} columns of texts, and whether a row of them can be sent "
                    "depends on the row; nothing was charged\nhint: grant the role SELECT on fewer columns"
                )
            if after.hidden:
                raise OperationalError(
                    f"row-level security hides rows of {table.name} from this role, so no figure would be right; "
                    "nothing was charged\nhint: connect with a role that has BYPASSRLS, or drop the policy"
                )

    def close(self) -> None:
        """Close the connections, and forget what was copied."""
        self._public.close()
        self._sessions.close()
        self._store.close()
