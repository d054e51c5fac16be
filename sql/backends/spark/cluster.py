"""A Spark session as the source of rows."""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from tacit.errors import NotSupportedError, OperationalError

from ...catalog import Table
from ...derived import PublicQuery
from ...product_scan import ProductScan
from ...scan import Scan
from ...scan_sets import joint_scans
from ...source import Keep, SourceTable
from ..duckdb.copied_rows import CopiedRows, Rendering, Store, Wanted, wanted_by
from ..duckdb.public_tables import restored
from ..duckdb.scan_sql import read_column, render_rows, render_values
from ..duckdb.scanner import Scanner
from ..duckdb.settings import meaning, needed, prepare
from ..duckdb.text import literal, quote
from .native import native_sums, pushed
from .relations import DEFAULT, Relation, read_again, read_plan, read_relations, source_tables
from .spark_jobs import UNREAD, Jobs, added_up, counted_frame, selected, sums_of, united
from .spark_types import BUILTIN
from .spark_worker import Work, counting, reporting
from .split_scans import OWNER, NotSplit, Split, arriving, region_statements, split, stored_rows

_SHUFFLED = 1 << 12
"""From so many points on, Spark adds up what the workers found of each before it travels."""
_MOST_PASSES = 4
"""So many scans of a table are counted one by one in Spark."""
_SHIPPED = 1 << 26
"""Bytes of public tables that are sent along with a task."""
_REBASE = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")


def open_spark(session: Any) -> SparkSource:
    """Open what ``tacit.connect`` was given."""
    return SparkSource(session)


class SparkSource(Scanner):
    """Rows that Spark reads: tables of its catalog, and folders that are registered as temporary views."""

    path: Path | None = None
    """The ledger has to be named: see docs/privacy.md."""
    memory: str | None = None
    main = DEFAULT
    pushes_down = True
    """Whether Spark counts what it can."""
    splits = True
    """Whether workers count what they can."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._relations: dict[tuple[str, ...], Relation] = {}
        self._ready = False
        super().__init__()
        self._jobs = Jobs(session, self._running)
        self._store = Store()

    def __repr__(self) -> str:
        return f"SparkSource({type(self._session).__name__})"

    def schema(self) -> tuple[SourceTable, ...]:
        """Names and types of all tables and views."""
        self._relations = self._read_relations()
        return source_tables(self._relations)

    def _read_relations(self) -> dict[tuple[str, ...], Relation]:
        with self._jobs.job("Spark cannot be asked for its tables: the session has ended, or may not list them"):
            return read_relations(self._session)

    def version(self, key: bytes) -> str:
        """A name of the present state of all tables that says nothing but whether the state is the same.

        Of files it is made of their names, sizes and modification times; of rows that are part of a plan, of the
        plan's own numbers, which no other plan of the application has.
        """
        with self._jobs.job("Spark cannot be asked for the files of its tables"):
            stamps = [self._stamp(relation) for relation in self._relations.values() if not relation.view]
            files = sorted({file for _, listed in stamps for file in listed})
            texts = sorted(text for text, _ in stamps)
            sizes: list[Any] = []
            if files:
                frame = self._session.read.format("binaryFile").load([_written(file) for file in files])
                found = frame.selectExpr("path", "length", f"{BUILTIN}unix_micros(modificationTime) AS modified")
                sizes = sorted(map(tuple, found.collect()))
        return hmac.new(key, f"version {texts} {sizes}".encode(), "sha256").hexdigest()[:32]

    def _stamp(self, relation: Relation) -> tuple[str, list[str]]:
        """(what tells a relation from others over the same files, its files)."""
        plan = read_plan(self._session, relation.place)
        if plan is None:  # a query over it is refused
            return relation.place, []
        if plan.files and plan.plain:
            return relation.place, list(self._session.table(relation.place).inputFiles())
        own = self._session.conf.get("spark.app.id")
        files = list(self._session.table(relation.place).inputFiles()) if plan.files else []
        return f"{relation.place} {own} {plan.nodes}", files

    def count(self, scan: Scan, salt: bytes) -> NDArray[np.int64]:
        """The integer vector x of one table."""
        return self.count_all([scan], salt)[0]

    def count_all(self, scans: Sequence[Scan], salt: bytes) -> list[NDArray[np.int64]]:
        """``count`` for several scans. All that Spark and its workers can count is one job; else, columns travel."""
        native = self._native(scans)
        groups, rest = self._split(scans, native)
        vectors: dict[int, NDArray[np.int64]] = {}
        if native or groups:
            vectors |= self._count_there(scans, native, groups, salt)
        copied = [scans[number] for number in rest]
        if copied:
            with self._copied([partial(render_rows, joint.rows, salt) for joint, _ in joint_scans(copied)]) as rows:
                vectors |= zip(rest, rows.count_all(copied, salt), strict=True)
        return [vectors[number] for number in range(len(scans))]

    def _native(self, scans: Sequence[Scan]) -> dict[int, list[str]]:
        """What Spark computes for the scans that it counts by itself, by their numbers.

        Each is a pass over the table; of more than a few, the workers take one pass for all.
        """
        if not self.pushes_down:
            return {}
        found = ((number, pushed(scan, self._relations.get(scan.table.key))) for number, scan in enumerate(scans))
        columns = {number: listed for number, listed in found if listed is not None}
        passes = Counter(scans[number].table.key for number in columns)
        return {number: listed for number, listed in columns.items() if passes[scans[number].table.key] <= _MOST_PASSES}

    def _split(self, scans: Sequence[Scan], native: Collection[int] = ()) -> tuple[list[Split], list[int]]:
        """(what workers count of all that Spark does not, the numbers of the scans that they cannot)."""
        groups: list[Split] = []
        rest: list[int] = []
        left = [number for number in range(len(scans)) if number not in native]
        for joint, places in joint_scans([scans[number] for number in left]):
            numbers = [left[place] for place in places]
            try:
                if not self.splits:
                    raise NotSplit
                part = split(joint, numbers)
                if part.by_unit:
                    united(self._session, part, self._relations)
                groups.append(part)
            except NotSplit:
                rest += numbers
        return groups, rest

    def _count_there(
        self, scans: Sequence[Scan], native: Mapping[int, list[str]], groups: Sequence[Split], salt: bytes
    ) -> dict[int, NDArray[np.int64]]:
        with self._jobs.job(UNREAD):
            points = sum(scans[n].cell_of.size for group in groups for n in group.numbers)
            found = self._jobs.table(
                added_up(
                    [self._summed(group, salt) for group in groups],
                    [native_sums(self._session, self._relations[scans[n].table.key], n, c) for n, c in native.items()],
                    shuffled=points > _SHUFFLED,
                )
            )
        number, places, corners, amounts = sums_of(found)
        vectors: dict[int, NDArray[np.int64]] = {}
        for n in (*native, *(n for group in groups for n in group.numbers)):
            own = number == n
            vectors[n] = scans[n].of_amounts(places[own], corners[own], amounts[own])
        return vectors

    def _summed(self, group: Split, salt: bytes) -> Any:
        """The frame of the sums that workers find for some scans."""
        tables: dict[str, bytes] = {}
        names: dict[tuple[str, ...], str] = {}
        for name, frame in self._public_frames(group.joint.rows).items():
            tables[name] = _file_of(frame)
        for i, (key, (table, columns)) in enumerate(group.reads.public.items()):
            typed = [(c.name, c.type) for c in table.columns if c.name in columns]
            tables[f"public {i}"] = _file_of(self._fetch_public(table, [name for name, _ in typed]))
            names[key] = f"({restored(quote(f'public {i}'), typed)})"
        if sum(map(len, tables.values())) > _SHIPPED:
            raise NotSupportedError(
                f"the public tables of this batch have more than {_SHIPPED >> 20} MB, too much to be sent to each of "
                "Spark's workers\nhint: register a view with the columns and rows that are needed as the public table"
            )
        places = {table.key: number for number, (table, _) in enumerate(group.tables)}
        frame, before, chunk, unit = self._loaded(group)

        def stored(table: Table, wanted: Collection[str]) -> str:
            if isinstance(table.rows, PublicQuery):
                return self._rows(table, wanted)
            if table.key in names:
                return names[table.key]
            number = places[table.key]
            if group.by_unit:
                return stored_rows(table, wanted, f"temp.main.{quote(f'rows {number}')}", unit)
            ((_, columns),) = group.tables
            received = dict(arriving(table, self._relations[table.key], columns, 0))
            shown = [read_column(c, received[c.name]) for c in table.columns if c.name in wanted]
            return f"(SELECT {', '.join(shown) or '1 AS one'} FROM arriving)"  # noqa: S608

        made, regions, sums = region_statements(group.joint, group.numbers, salt, stored)
        work = Work(
            duckdb.__version__,
            tuple(_settings()),
            tuple(tables.items()),
            (*before, *made),
            tuple(chunk),
            tuple(regions),
            tuple(sums),
            by_chunk=not group.by_unit,
        )
        return counted_frame(frame, counting(work))

    def _loaded(self, group: Split) -> tuple[Any, list[str], list[str], str]:
        """(the rows, what makes tables for them, what fills those, what units are compared as)."""
        if not group.by_unit:
            ((table, columns),) = group.tables
            return selected(self._session, self._relations[table.key], columns), [], [], ""
        frame, unit = united(self._session, group, self._relations)
        before, chunk = [], []
        for number, (table, columns) in enumerate(group.tables):
            relation, name = self._relations[table.key], quote(f"rows {number}")
            typed = [f"{quote(c)} {relation.column(c).passage.type}" for c in columns]
            before.append(f"CREATE TEMP TABLE {name} ({', '.join([*typed, f'{quote(OWNER)} {unit}'])})")
            received = [sql for _, sql in arriving(table, relation, columns, number)]
            chunk.append(
                f"INSERT INTO temp.main.{name} SELECT {', '.join([*received, 'owner'])} FROM arriving "  # noqa: S608
                f"WHERE tag = {number}"
            )
        return frame, before, chunk, unit

    def rehearse(self, scan: Scan | ProductScan) -> None:
        """Run the scan on rows made of extreme values, and let Spark resolve what it will be asked; reads no row."""
        super().rehearse(scan)
        if isinstance(scan, Scan):
            self._plan([scan])

    def rehearse_all(self, scans: Sequence[Scan]) -> None:
        """The same for what ``count_all`` runs."""
        super().rehearse_all(scans)
        self._plan(scans)

    def _plan(self, scans: Sequence[Scan]) -> None:
        """What fails here would fail for any rows."""
        self._check_workers()
        with self._jobs.job("Spark does not accept what this batch needs of it; nothing was charged"):
            native = self._native(scans)
            for number, columns in native.items():
                native_sums(self._session, self._relations[scans[number].table.key], number, columns).schema  # noqa: B018
            for group in self._split(scans, native)[0]:
                self._summed(group, bytes(32)).schema  # noqa: B018

    def _check_workers(self) -> None:
        """The workers have the DuckDB that this process has; asked once, of one of them."""
        if self._ready:
            return
        missing = (
            f"the workers of Spark cannot run tacit's scans: they need Python with duckdb {duckdb.__version__} and "
            "pyarrow; nothing was charged\nhint: install them in the workers' Python, which PYSPARK_PYTHON names: "
            f"pip install duckdb=={duckdb.__version__} pyarrow"
        )
        with self._jobs.job(missing):
            found = self._jobs.table(self._session.range(1).mapInArrow(reporting(), "version string"))
        if found.column(0).to_pylist() != [duckdb.__version__]:
            raise OperationalError(missing)
        self._ready = True

    def values(self, scan: Scan, salt: bytes, keep: Keep) -> list[Any]:
        """The values of the scan's one column whose counts of units ``keep`` lets pass."""
        with self._copied([partial(render_values, scan, salt)]) as rows:
            return rows.values(scan, salt, keep)

    def unique(self, table: Table, columns: tuple[str, ...]) -> bool:
        """Whether no two rows of a public table agree in these columns; NULL keys match nothing."""
        if isinstance(table.rows, PublicQuery):
            return super().unique(table, columns)
        with self._copied([lambda stored: stored(table, list(columns))]) as rows:
            return rows.unique(table, columns)

    def _fetch_public(self, table: Table, columns: Sequence[str]) -> pd.DataFrame:
        with self._copied([lambda stored: stored(table, list(columns))]) as rows:
            return rows._fetch_public(table, columns)

    @contextmanager
    def _copied(self, renderings: Sequence[Rendering]) -> Iterator[CopiedRows]:
        """A copy of what some statements read, in a DuckDB of this process."""
        wanted = wanted_by(renderings)
        with self._store.cursor() as cursor:
            rows = _CopiedRelations(cursor, self._public)
            with self._jobs.job(UNREAD):
                rows.fetch(self._session, self._jobs, self._relations, wanted)
            with self._running.cursor(cursor):
                yield rows

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
        """The columns are those that the batch was compiled for, and reading them can fail on no row."""
        for name in _REBASE:
            if self._setting(name).upper() == "EXCEPTION":
                raise NotSupportedError(
                    f"with {name} = EXCEPTION, whether a file can be read depends on its rows; nothing was charged"
                    f'\nhint: session.conf.set("{name}", "CORRECTED")'
                )
        for table in scan.tables:
            before = self._relations.get(table.key)
            after = None if before is None else read_again(self._session, before)
            if after is None or before != after or after.view:
                raise OperationalError(
                    f"the columns of {table.name} are no longer those that this connection was opened with; nothing "
                    "was charged\nhint: connect again"
                )
            if read_plan(self._session, after.place) is None:
                raise NotSupportedError(
                    f"whether {table.name} can be read may depend on its rows; nothing was charged\n"
                    "hint: ask tables of parquet or orc files, or write this one as such: df.write.saveAsTable(…)"
                )
            self._check_single(table, after)

    def _setting(self, name: str) -> str:
        with suppress(Exception):  # a version of Spark that has none of that name
            return str(self._session.conf.get(name))
        return ""

    def _check_single(self, table: Table, relation: Relation) -> None:
        """No other name stands for the rows of a table, of which the policy says something else.

        Asked anew each time: files come and go, and those of two names are compared as of one moment.
        """
        if table.public:
            return
        rows = self._origins(relation)
        for other in self._relations.values():
            if other.key == relation.key or other.view or not rows & self._origins(other):
                continue
            temporary = next((name for name in (other, relation) if name.temporary), None)
            hint = (
                "make one of them a view of the other: CREATE VIEW … AS SELECT * FROM …"
                if temporary is None
                else f"session.catalog.dropTempView({temporary.path[1]!r})"
            )
            raise NotSupportedError(
                f"{relation.path[1]} and {other.path[1]} read the same files, or the same frame, and would be two "
                f"tables of the same rows; nothing was charged\nhint: {hint}, and connect again"
            )

    def _origins(self, relation: Relation) -> frozenset[str]:
        """Where the rows of a relation come from: its files, or the frame that they are part of."""
        with self._jobs.job("Spark cannot be asked for the files of its tables; nothing was charged"):
            plan = read_plan(self._session, relation.place)
            files = self._session.table(relation.place).inputFiles()
        return frozenset([*files, plan.frame] if plan is not None and plan.frame else files)

    def close(self) -> None:
        """Forget what was copied; the session is the caller's."""
        self._public.close()
        self._store.close()


class _CopiedRelations(CopiedRows):
    """Rows that Spark sent, in a DuckDB of this process."""

    def fetch(self, session: Any, jobs: Jobs, relations: Mapping[tuple[str, ...], Relation], wanted: Wanted) -> None:
        """Copy the wanted columns, one part at a time."""
        prepare(self._copy, needed(None))
        for number, (key, (table, columns)) in enumerate(wanted.items()):
            relation, name = relations[key], f"rows {number}"
            listed = [c.name for c in table.columns if c.name in columns]
            received = [f"{sql} AS {quote(c)}" for c, sql in arriving(table, relation, listed, 0)]
            typed = [f"{quote(c)} {relation.column(c).passage.type}" for c in listed]
            self._copy.execute(f"CREATE TEMP TABLE {quote(name)} ({', '.join(typed) or 'one INTEGER'})")
            for batch in jobs.stream(selected(session, relation, listed)):
                self._copy.register("arriving", pa.Table.from_batches([batch]))
                shown = ", ".join(received) or "t0one"
                self._copy.execute(f"INSERT INTO temp.main.{quote(name)} SELECT {shown} FROM arriving")  # noqa: S608
                self._copy.unregister("arriving")
            self._names[key] = f"temp.main.{quote(name)}"


def _written(file: str) -> str:
    """A file that Spark has listed, as it is written to be read: without the escapes of a URL, and as no pattern.

    >>> _written("file:/a%20b/c%5B1%5D")
    'file:/a b/c\\\\[1\\\\]'
    """
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", unquote(file))


def _settings() -> Iterator[str]:
    """What gives SQL the meaning that batches are compiled for."""
    yield from (f"SET {name} = {literal(value)}" for name, value in meaning().items())
    yield "SET search_path = 'system.main'"
    yield "SET lock_configuration = true"


def _file_of(frame: pd.DataFrame) -> bytes:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
