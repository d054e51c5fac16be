"""Frames of Spark's, the jobs that run over them, and what is told of one that fails."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tacit.errors import NotSupportedError, OperationalError

from ...catalog import KeyStep, Table
from ..duckdb.running import Running
from .relations import Relation, is_remote
from .spark_types import BUILTIN, identifier
from .spark_worker import CHUNKS, SUMS, Task, packing
from .split_scans import OWNER, NotSplit, Split, unit_type

Relations = dict[tuple[str, ...], Relation]
_TAGS = itertools.count()
_CAST = {"BIGINT": "bigint", "VARCHAR": "string", "DATE": "date", "BOOLEAN": "boolean"}
UNREAD = "the tables in Spark could not be read to the end; nothing was released"


class Jobs:
    """The jobs of one source, which another thread can end."""

    def __init__(self, session: Any, running: Running) -> None:
        self._running = running
        # the tags of a session of this process do not reach the thread that collects Arrow; those of its context do
        self._tags = (
            (session.addTag, session.removeTag, session.interruptTag)
            if is_remote(session)
            else _context_tags(session.sparkContext)
        )

    @contextmanager
    def job(self, what: str) -> Iterator[None]:
        """Run what is inside under a tag of its own; a failure of Spark's is told without its text."""
        tag = f"tacit-{os.getpid()}-{next(_TAGS)}"
        add, remove, cancel = self._tags
        try:
            add(tag)
            with self._running.statement(lambda: cancel(tag)):
                yield
        except (OperationalError, NotSupportedError, NotSplit):
            raise
        except Exception:  # pyspark's, py4j's, gRPC's: any of them can quote a value
            raise OperationalError(what) from None
        finally:
            with suppress(Exception):
                remove(tag)

    def table(self, frame: Any) -> pa.Table:
        """All rows of a frame that has few."""
        return frame.toArrow()

    def stream(self, frame: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a frame, part by part; one part is held at a time."""
        for row in frame.mapInArrow(packing(), CHUNKS).toLocalIterator():
            with pa.ipc.open_stream(pa.py_buffer(bytes(row[0]))) as reader:
                yield from reader


def _context_tags(context: Any) -> tuple[Any, Any, Any]:
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def selected(session: Any, relation: Relation, columns: Sequence[str], number: int = 0) -> Any:
    """Some columns of a relation as they travel."""
    sent = [f"{_sent(relation, name)} AS t{number}c{i}" for i, name in enumerate(columns)]
    return session.table(relation.place).selectExpr(*(sent or [f"1 AS t{number}one"]))


def _sent(relation: Relation, name: str) -> str:
    return relation.column(name).passage.sent.format(identifier(name))


def counted_frame(frame: Any, task: Task) -> Any:
    """The sums of cells that the workers find in a frame."""
    return frame.mapInArrow(task, SUMS)


def added_up(parts: Sequence[Any], whole: Sequence[Any], *, shuffled: bool) -> Any:
    """All sums: those of parts, and those that are whole.

    ``shuffled``: what the parts have of one cell is added up by Spark, so that each cell travels once.
    """
    every = _united(parts)
    if every is not None and shuffled:
        from pyspark.sql.functions import expr

        # a sum beyond BIGINT is NULL: no amount is negative, so it lies above the largest
        total = expr(f"{BUILTIN}coalesce({BUILTIN}try_sum(amount), {2**63 - 1}L)").alias("amount")
        every = every.groupBy("scan", "place", "corner").agg(total)
    return _united([*([] if every is None else [every]), *whole])


def _united(frames: Sequence[Any]) -> Any:
    every = None
    for frame in frames:
        every = frame if every is None else every.unionAll(frame)
    return every


def sums_of(found: pa.Table) -> tuple[NDArray[np.int64], ...]:
    """(scan, place, corner, amount) of every sum."""
    return tuple(np.asarray(column.to_numpy(), dtype=np.int64) for column in found.columns)


def united(session: Any, split: Split, relations: Relations) -> tuple[Any, str]:
    """(the rows of all private tables of a split, those of a unit in one part; what units are compared as).

    Each row says which table it is of, and whose it is. Rows without a unit are in no part.
    """
    owners = [_owner(table, split.paths.get(table.key, ()), relations) for table, _ in split.tables]
    type_ = unit_type(type_ for *_, type_ in owners)
    every = None
    for number, (table, columns) in enumerate(split.tables):
        relation = relations[table.key]
        frame = session.table(relation.place)
        key, steps, _ = owners[number]
        own = [f"{_sent(relation, name)} AS t{number}c{i}" for i, name in enumerate(columns)]
        frame = frame.selectExpr(*own, f"{_key(relation, key)} AS owner")
        for place, (step, holds, gives) in enumerate(steps):
            held, given = _key(step, holds), _key(step, gives)
            way = session.table(step.place).selectExpr(f"{held} AS key{place}", f"{given} AS next").distinct()
            joined = frame.join(way, frame["owner"] == way[f"key{place}"])
            frame = joined.drop("owner", f"key{place}").withColumnRenamed("next", "owner")
        tagged = frame.selectExpr(*(f"t{number}c{i}" for i in range(len(columns))), "owner", f"{number} AS tag")
        every = tagged if every is None else every.unionByName(tagged, allowMissingColumns=True)
    assert every is not None
    return every.where("owner IS NOT NULL").repartition("owner"), type_


def _key(relation: Relation, name: str) -> str:
    """A key or a unit as it is compared."""
    type_ = unit_type([relation.column(name).passage.type])
    return f"CAST({_sent(relation, name)} AS {_CAST[type_]})"


def _owner(
    table: Table, path: Sequence[KeyStep], relations: Relations
) -> tuple[str, list[tuple[Relation, str, str]], str]:
    """(the column that a table's way to its unit begins with, the steps of the way, the type of the unit)."""
    relation = relations[table.key]
    if table.privacy_unit != OWNER:
        assert table.privacy_unit is not None
        return table.privacy_unit, [], relation.column(table.privacy_unit).passage.type
    steps: list[tuple[Relation, str, str]] = []
    last = relation.column(table.unit_key).passage.type
    for step in path:
        there = relations[step.table.key]
        if unit_type([last]) != unit_type([there.column(step.key).passage.type]):
            raise NotSplit
        steps.append((there, step.key, step.gives))
        last = there.column(step.gives).passage.type
    return table.unit_key, steps, last
