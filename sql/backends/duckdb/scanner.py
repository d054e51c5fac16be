"""Running compiled scans in DuckDB, wherever the stored rows come from."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tacit.errors import NotSupportedError, OperationalError

from ...catalog import Table
from ...derived import PublicQuery, identity, public_queries
from ...product_scan import ProductScan
from ...scan import Scan
from ...scan_sets import ScanSets, joint_scans
from ...source import Keep
from .extremes import rehearsal
from .keys_sql import by_order, lookups
from .public_tables import Columns, PublicTables, is_portable, restored
from .running import Running
from .scan_sql import Stored, render, render_rows, render_values
from .text import quote

_VECTORS = 128
"""So many vectors of 2,048 rows are counted at a time."""
_VALUES = 1 << 16
"""So many values are held at a time while those that pass are chosen."""


class Scanner(ABC):
    """What every source has that counts in DuckDB. It is told where the stored rows are.

    Every statement that reads private rows is one that ``render``, ``render_rows`` or ``render_values`` wrote.
    """

    @property
    def also_at(self) -> frozenset[Path]:
        """Other paths by which some of the same rows can be opened: none."""
        return frozenset()

    @property
    def database(self) -> str:
        """What SQL may call the database: nothing."""
        return ""

    def __init__(self) -> None:
        self._public = PublicTables(self._fetch_public)
        self._running = Running()

    def interrupt(self) -> None:
        """End the statements that run now, from another thread."""
        self._running.interrupt()

    def progress(self) -> float | None:
        """How much of the statement that runs now is done, from 0 to 1; None where nobody can say."""
        return self._running.progress()

    @abstractmethod
    def _cursor(self, scan: Scan | None = None) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A cursor for one statement: it can read what ``_stored`` names of the scan's tables."""

    @abstractmethod
    def _stored(self, table: Table, wanted: Collection[str]) -> str:
        """Some columns of a stored table, in parentheses, as the catalog has their types."""

    @abstractmethod
    def _check_readable(self, scan: Scan) -> None:
        """The columns are those that the batch was compiled for, and reading them can fail on no row; or raise."""

    @abstractmethod
    def _fetch_public(self, table: Table, columns: Sequence[str]) -> pd.DataFrame:
        """Some columns of a stored public table, as ``portable`` has them."""

    def _rows(self, table: Table, wanted: Collection[str]) -> str:
        """Some columns of a table; the rows of a public query were brought over before the statement."""
        if isinstance(table.rows, PublicQuery):
            return f"({restored(quote(_public_name(table)), _portable_columns(table))})"
        return self._stored(table, wanted)

    def _bring_public(self, cursor: duckdb.DuckDBPyConnection, scan: Scan | None) -> int:
        """Bring over what a scan joins beside stored tables; returns how many statements that took.

        Its tables of regions, and the rows of queries over public tables.
        """
        frames = self._public_frames(scan) if scan is not None else {}
        for name, frame in frames.items():
            cursor.register(name, frame)
        made = lookups(scan) if scan is not None else {}
        for table_of_regions in made.values():
            cursor.execute(table_of_regions.create)
        return len(frames) + len(made)

    def _public_frames(self, scan: Scan) -> dict[str, pd.DataFrame]:
        """The rows of the queries over public tables that a scan joins, by the name that ``_rows`` calls them."""
        frames: dict[str, pd.DataFrame] = {}
        for table in public_queries(scan.table, (*scan.private, *scan.joins)):
            assert isinstance(table.rows, PublicQuery)
            if (name := _public_name(table)) not in frames:
                frames[name] = self._public.portable_rows(table.rows, _portable_columns(table))
        return frames

    def unique(self, table: Table, columns: tuple[str, ...]) -> bool:
        """Whether no two rows of a public table agree in these columns; NULL keys match nothing."""
        keys = ", ".join(quote(column) for column in columns) or "1"
        present = " AND ".join(f"{quote(column)} IS NOT NULL" for column in columns) or "TRUE"
        tail = f"WHERE {present} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
        if isinstance(table.rows, PublicQuery):
            doubled = replace(table.rows, text=f"SELECT 1 FROM ({table.rows.text}) {tail}")  # noqa: S608
            return not self._public.rows(doubled)
        try:
            with self._cursor() as cursor:
                return not cursor.execute(f"SELECT 1 FROM {self._stored(table, columns)} {tail}").fetchall()  # noqa: S608
        except duckdb.Error:
            raise OperationalError("the database cannot be read") from None

    def read_public(self, query: PublicQuery) -> list[tuple[Any, ...]]:
        """The rows of a query over public tables."""
        return self._public.rows(query)

    def compute(self, query: PublicQuery, frames: Mapping[str, tuple[pd.DataFrame, Columns]]) -> pd.DataFrame:
        """The frame of a query over public tables and released frames."""
        return self._public.compute(query, frames)

    def rehearse(self, scan: Scan | ProductScan) -> None:
        """Run the scan on rows made of extreme values, with the settings of this database.

        A setting or a limit of this DuckDB that makes the scan fail for any rows shows here, before anything is
        charged. Reads no stored row. Of a product, every axis is counted: each computes what any set of axes does.
        """
        if isinstance(scan, ProductScan):
            return self.rehearse_all([scan.marginal((axis,)) for axis in range(len(scan.axes))])
        self._check_readable(scan)
        with _refusing():
            self._count(scan, render(scan, bytes(32), rehearsal))

    def rehearse_all(self, scans: Sequence[Scan]) -> None:
        """Run what ``count_all`` would run, on rows made of extreme values."""
        for joint, _ in joint_scans(scans):
            self._check_readable(joint.rows)
            with _refusing():
                self._count_sets(joint, bytes(32), rehearsal)

    def count(self, scan: Scan, salt: bytes) -> NDArray[np.int64]:
        """Run the generated aggregate scan and add its groups up into cells.

        Sums are clamped to the ends of int64 (a contraction) before they are handed over.
        """
        with _silenced():
            return self._count(scan, render(scan, salt, self._rows))

    def count_all(self, scans: Sequence[Scan], salt: bytes) -> list[NDArray[np.int64]]:
        """``count`` for several scans; those of the same rows are counted in one pass."""
        vectors: dict[int, NDArray[np.int64]] = {}
        for joint, numbers in joint_scans(scans):
            if len(numbers) == 1:  # DuckDB adds it up by itself
                vectors[numbers[0]] = self.count(scans[numbers[0]], salt)
                continue
            with _silenced():
                vectors |= zip(numbers, self._count_sets(joint, salt, self._rows), strict=True)
        return [vectors[number] for number in range(len(scans))]

    def rehearse_values(self, scan: Scan) -> None:
        """Run what ``values`` would run, on rows made of extreme values."""
        self._check_readable(scan)
        with _refusing():
            self._values(scan, render_values(scan, bytes(32), rehearsal), lambda counts: counts > 0)

    def values(self, scan: Scan, salt: bytes, keep: Keep) -> list[Any]:
        """The values of the scan's one column whose counts of units ``keep`` lets pass."""
        with _silenced():
            return self._values(scan, render_values(scan, salt, self._rows), keep)

    def _values(self, scan: Scan, sql: str, keep: Keep) -> list[Any]:
        kept: list[Any] = []
        with self._cursor(scan) as cursor:
            result = cursor.execute(sql)
            while rows := result.fetchmany(_VALUES):
                passing = keep(np.array([count for _, count in rows], dtype=np.int64))
                kept += [value for (value, _), passes in zip(rows, passing, strict=True) if passes]
        return kept

    def _count_sets(self, joint: ScanSets, salt: bytes, stored: Stored) -> list[NDArray[np.int64]]:
        counter, width = joint.counter(), len(joint.rows.regions)
        with self._cursor(joint.rows) as cursor:
            result = cursor.execute(render_rows(joint.rows, salt, stored))
            while rows := len(batch := result.fetch_df_chunk(_VECTORS)):
                columns = [batch.iloc[:, i].to_numpy(dtype=np.int64) for i in range(batch.shape[1])]
                counter.add(columns[:width], columns[width:], rows)
        return counter.vectors()

    def _count(self, scan: Scan, sql: str) -> NDArray[np.int64]:
        with self._cursor(scan) as cursor:
            columns = cursor.execute(sql).fetchnumpy()
        groups = [np.asarray(column) for column in columns.values()]
        return scan.in_cells_by_order(groups) if by_order(scan) else scan.in_cells(groups)


def _public_name(table: Table) -> str:
    digest = hashlib.sha256(repr(identity(table)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"tacit public {digest[:32]}"


def _portable_columns(table: Table) -> list[tuple[str, str]]:
    return [(c.name, c.type) for c in table.columns if is_portable(c.type)]


@contextmanager
def _silenced() -> Iterator[None]:
    """DuckDB's message can quote a cell, so it is not passed on."""
    try:
        yield
    except duckdb.Error:
        raise OperationalError("the scan of the table failed; nothing was released") from None


@contextmanager
def _refusing() -> Iterator[None]:
    """A statement that fails on rows of tacit's own making is refused before anything is charged."""
    try:
        yield
    except duckdb.Error:
        raise NotSupportedError(
            "DuckDB cannot run the scan that this batch needs; nothing was charged\n"
            "hint: split the batch, or write simpler expressions"
        ) from None
