"""Moving rows from PostgreSQL into a DuckDB.

Columns travel in PostgreSQL's binary form and arrive as Arrow batches of some megabytes, so that memory is bounded
however many rows there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...catalog import Table
from ..duckdb.copied_rows import CopiedRows, Wanted
from ..duckdb.settings import needed, prepare
from ..duckdb.text import quote
from .sessions import RowReader
from .stored_tables import StoredTable


class PostgresRows(CopiedRows):
    """The rows of some tables as they were in one transaction."""

    def bring(self, reader: RowReader, tables: Mapping[tuple[str, ...], StoredTable], wanted: Wanted) -> None:
        """Copy the wanted columns."""
        prepare(self._copy, needed(None))
        for number, (key, (table, columns)) in enumerate(wanted.items()):
            name = f"temp.main.{quote(f'rows {number}')}"
            sent, received = transfer(table, tables[key], columns)
            with reader.stream(sent) as stream:
                self._copy.register("arriving", stream)
                self._copy.execute(f"CREATE TEMP TABLE {quote(f'rows {number}')} AS {received}")
                self._copy.unregister("arriving")
            self._names[key] = name


def transfer(table: Table, stored: StoredTable, columns: Collection[str]) -> tuple[str, str]:
    """(what PostgreSQL is asked for some columns of a table, what DuckDB makes of the stream ``arriving``)."""
    sent: list[str] = []
    received: list[str] = []
    for column in table.columns:
        if column.name not in columns:
            continue
        travel = stored.column(column.name).travel
        travel = travel.plain if column.recast else travel
        value = f"{quote(column.name)}::{travel.base}"
        arriving = [f"c{len(sent) + i}" for i in range(len(travel.sent))]
        sent += [f"{part.format(value)} AS {name}" for part, name in zip(travel.sent, arriving, strict=True)]
        received.append(f"{travel.received.format(*arriving)} AS {quote(column.name)}")
    return (
        f"SELECT {', '.join(sent) or '1 AS one'} FROM {quote(stored.schema)}.{quote(stored.name)}",  # noqa: S608
        f"SELECT {', '.join(received) or 'one'} FROM arriving",  # noqa: S608
    )
