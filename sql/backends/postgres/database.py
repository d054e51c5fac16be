"""A PostgreSQL database as the source of rows."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
from ...scan import Scan
from ...scan_sets import joint_scans
from ...source import Keep, SourceTable
from ..duckdb.scan_sql import Stored, render_rows, render_values
from ..duckdb.scanner import Scanner
from ..duckdb.settings import needed, prepare
from .catalog import PUBLIC, StoredTable, read_tables, source_tables
from .rows import CopiedRows, Store, Wanted, wanted_by
from .session import Sessions, all_rows, silenced
from .types import MOST_TEXTS

_UNREAD = "the tables in PostgreSQL could not be read to the end; nothing was released"
_IDENTITY = "SELECT oid::int8 FROM pg_database WHERE datname = current_database()"
_CLUSTER = "SELECT system_identifier FROM pg_control_system()"
_MAY_ASK = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
_SNAPSHOT = "SELECT pg_current_snapshot()::text"


def open_postgres(url: str) -> PostgresSource:
    """Open what ``tacit.connect`` was given. Raises OperationalError when no such database lets us in."""
    return PostgresSource(Sessions(url))


class PostgresSource(Scanner):
    """Rows in PostgreSQL. A call that reads rows has a transaction of its own, so that threads can share the source."""

    path: Path | None = None
    """The ledger has to be named: see docs/privacy.md."""
    memory: str | None = None
    main = PUBLIC

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
        database too, makes a new one. A standby has such a list as well.
        """
        [[(snapshot,)]] = all_rows(self._sessions, [_SNAPSHOT])
        return hmac.new(key, f"version {self._identity} {snapshot}".encode(), "sha256").hexdigest()[:32]

    def count(self, scan: Scan, salt: bytes) -> NDArray[np.int64]:
        """The integer vector x of one table."""
        return self.count_all([scan], salt)[0]

    def count_all(self, scans: Sequence[Scan], salt: bytes) -> list[NDArray[np.int64]]:
        """``count`` for several scans, all of one state of the database."""
        read = [partial(render_rows, joint.rows, salt) for joint, _ in joint_scans(scans)]
        with self._copied(read) as rows:
            return rows.count_all(scans, salt)

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
    def _copied(self, renderings: Sequence[Callable[[Stored], str]]) -> Iterator[CopiedRows]:
        """A copy of what some statements read, as of one transaction."""
        wanted: Wanted = wanted_by(renderings)
        with self._store.cursor() as cursor:
            rows = CopiedRows(cursor, self._public)
            with silenced(_UNREAD), self._sessions.rows() as reader:
                try:
                    rows.bring(reader, self._tables, wanted)
                except duckdb.Error:  # what the stream of rows raises comes through DuckDB
                    raise OperationalError(_UNREAD) from None
            yield rows

    @contextmanager
    def _cursor(self, scan: Scan | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """For rehearsals: no stored row is within reach."""
        with self._store.cursor() as cursor:
            prepare(cursor, needed(scan))
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
