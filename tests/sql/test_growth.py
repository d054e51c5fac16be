"""Compiling a statement takes bounded work, or ends with a LimitError. Counted in calls, not in seconds."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from tacit.errors import LimitError, SqlError
from tacit.sql import Catalog, Column, Range, Table, compile_batch

COLUMNS = (Column("i", "INTEGER", True, Range(0, 100)), Column("k", "INTEGER", True, Range(0, 5)),
           Column("s", "VARCHAR"), Column("l", "INTEGER[]"))  # fmt: skip


def doubled_views(count: int) -> tuple[Table, ...]:
    tables = [Table("v0", COLUMNS, version="1")]
    for i in range(count):
        tables.append(Table(f"v{i + 1}", COLUMNS[:2], version="1", view=f"SELECT i + i AS i, k FROM v{i}"))
    return tuple(tables)


CATALOG = Catalog((Table("t", COLUMNS, version="1"), *doubled_views(40)))


def aliases(count: int) -> str:
    more = ", ".join(f"sqrt(a{i}) * a{i} AS a{i + 1}" for i in range(count))
    return f"SELECT count(*) AS a0, {more} FROM t"


def ctes(count: int) -> str:
    more = "".join(f", c{j + 1} AS (SELECT i + i AS i FROM c{j})" for j in range(count))
    return f"WITH c0 AS (SELECT i FROM t){more} SELECT count(i) FROM c{count}"


@pytest.mark.parametrize(
    "sql",
    [
        aliases(14), aliases(60), ctes(40), "SELECT count(i) FROM v40",
        f"SELECT count(*) FROM t WHERE l{'[1]' * 300} = 1", f"SELECT count(*){'[1]' * 300} FROM t",
        f"SELECT count(*) FROM t WHERE s{'.upper()' * 300} = 'A'",
    ],
    ids=lambda sql: sql[:40],
)  # fmt: skip
def test_what_would_double_at_every_step_is_refused(sql: str) -> None:
    assert calls(sql, LimitError) < 400_000


def test_aliases_are_computed_from_aliases() -> None:
    (query,) = compile_batch(aliases(8), CATALOG).queries
    assert [column.name for column in query.columns] == [f"a{i}" for i in range(9)]


SHAPES = {
    "a chain over a key": lambda n: f"SELECT k{' + 1' * n} AS z, count(*) FROM t GROUP BY k",
    "a chain over an aggregate": lambda n: f"SELECT sqrt(count(*)){' + k' * n} AS z FROM t GROUP BY k",
    "a chain of aggregates": lambda n: f"SELECT sqrt(count(*)){' + count(*)' * n} AS z FROM t GROUP BY k",
    "a summed chain": lambda n: f"SELECT sum(i{' + 1' * n}) AS z FROM t",
    "a grouped chain": lambda n: f"SELECT k{' + 1' * n} AS z, count(*) FROM t GROUP BY z",
    "nested CASE": lambda n: f"SELECT {'CASE WHEN count(k) > 1 THEN 2 ELSE ' * (n // 4)}1{' END' * (n // 4)} FROM t",
    "a filter": lambda n: f"SELECT count(*) FROM t WHERE i{' + 1' * n} = 1",
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_long_chain_is_not_read_again_at_every_link(shape: str) -> None:
    """A few cheap steps per link and link are left; copying, rendering or folding at every link is 50 times this."""
    write = SHAPES[shape]
    calls(write(12))  # what is loaded once
    assert calls(write(300)) < 6 * 300 * 300 + 100_000


def calls(sql: str, wanted: type[SqlError] | None = None) -> int:
    """How many functions are called while a statement is compiled; raises if it does not end as wanted."""
    count = 0

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        compile_batch(sql, CATALOG)
        raised = None
    except SqlError as error:
        raised = type(error)
    finally:
        sys.setprofile(before)
    assert raised is wanted, raised
    return count
