"""The list of functions, entry by entry: whatever is proven total runs over every extreme value without an exception.

Each accepted combination of function, argument types and constant arguments, with each optional argument and without
it, is put to DuckDB in the form that the scan has: in ``TRY``, and without the optimizer. The long form of the tests
(``make audit``) takes every type for every argument. The ordinary form does so where that makes few combinations: all
functions of one argument, most functions of numbers, texts or dates. A comparison of any two types gets ``SOME`` of
them, with at least one of every kind; BETWEEN, of any three, one type of each kind.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import duckdb
import pytest
from sqlglot import exp
from support.expressions import ENTRIES, EVERY, FEW, SOME, accepted, bound, built, choices, column, columns, nested
from tacit.errors import SqlError, TypeMismatchError
from tacit.sql.backends.duckdb.extremes import extremes
from tacit.sql.backends.duckdb.functions import CASTS, INTERVAL_UNITS
from tacit.sql.backends.duckdb.types import kind_of
from tacit.sql.signature import DatePart, Signature

LONG = os.environ.get("TACIT_AUDIT") == "long"


def types_for(signature: Signature) -> list[dict[str, str]]:
    """The choices of types that a function is run over: in the ordinary form at most 600, but every kind of value."""
    lists = ([*choices(signature, types)] for types in (EVERY, SOME, FEW))
    return next(chosen for chosen in lists if LONG or len(chosen) <= 600)


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """One table for each type, filled with its extremes."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET enable_optimizer = false")
    for type_ in EVERY:
        values = ", ".join(f"(CAST({value} AS {type_}))" for value in extremes(type_))
        connection.execute(f"CREATE TABLE {column(type_)} AS SELECT * FROM (VALUES {values}) t({column(type_)})")
    yield connection
    connection.close()


def run(connection: duckdb.DuckDBPyConnection, nodes: list[exp.Expr]) -> None:
    """Run expressions over the same columns on every combination of their extremes, guarded as in the scan."""
    names = sorted({part.name for node in nodes for part in node.find_all(exp.Column)})
    rows = " CROSS JOIN ".join(names)
    guarded = [f"TRY({node.sql('duckdb')})" for node in nodes]
    twice = ", ".join(f"count({g}), max(hash({g}))" for g in guarded)
    try:
        connection.execute(f"SELECT {twice} FROM {rows}").fetchall()
    except duckdb.Error as error:
        if len(nodes) > 1:
            for node in nodes:
                run(connection, [node])
        pytest.fail(f"{nodes[0].sql('duckdb')} over {names}: {type(error).__name__}: {error}")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e[0] if isinstance(e[0], str) else e[0].__name__)
def test_no_accepted_function_fails_on_any_extreme(
    tables: duckdb.DuckDBPyConnection, entry: tuple[type[exp.Expr] | str, Signature]
) -> None:
    node, signature = entry
    seen = 0
    for chosen in types_for(signature):
        batch = [n for n in built(node, signature, chosen) if accepted(n) is not None]
        if batch:
            run(tables, batch)
            seen += len(batch)
    assert seen, "nothing was run"


def test_no_cast_fails_on_any_extreme(tables: duckdb.DuckDBPyConnection) -> None:
    targets = [name for name in CASTS if name not in ("CHAR", "NVARCHAR")]
    for type_ in EVERY:
        source = exp.column(column(type_))
        casts = [
            kind(this=source.copy(), to=exp.DataType(this=exp.DataType.Type(t)))
            for t in targets
            for kind in (exp.Cast, exp.TryCast)
        ]
        batch = [node for node in casts if accepted(node) is not None]
        assert bool(batch) == (kind_of(type_) not in ("other", "opaque")), type_
        if batch:
            run(tables, batch)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e[0] if isinstance(e[0], str) else e[0].__name__)
def test_the_kind_that_is_inferred_is_the_kind_that_duckdb_finds(entry: tuple[type[exp.Expr] | str, Signature]) -> None:
    node, signature = entry
    for chosen in types_for(signature):
        one = next(built(node, signature, chosen))  # the constants do not change the kind
        proven, type_ = accepted(one), bound(one)
        if proven is not None and type_ is not None:
            assert kind_of(type_) == proven.kind, one.sql("duckdb")


def test_no_accepted_nest_of_functions_fails(tables: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(10)
    for _ in range(5_000 if LONG else 600):
        run(tables, [nested(rng, rng.choice((2, 2, 3)), (rng.choice(EVERY), rng.choice(EVERY)))])


TAKE_PARTS = [entry for entry in ENTRIES if any(isinstance(takes, DatePart) for takes in entry[1].takes.values())]


@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
def test_every_listed_part_has_a_value_in_every_function_that_takes_it(type_: str) -> None:
    """A name that DuckDB does not know raises on every row: ``TRY`` would make an answer of nothing but NULL of it."""
    moment = f"(SELECT CAST('2024-02-29' AS {type_}) AS {column(type_)}, 1 AS i)"
    nodes = [
        node
        for name, signature in TAKE_PARTS
        for node in built(name, signature, dict.fromkeys(columns(signature), type_))
    ]
    intervals = [f"{column(type_)} + INTERVAL (i) {part}" for part in INTERVAL_UNITS]
    nodes += [exp.maybe_parse(text, dialect="duckdb") for text in intervals]
    assert len(nodes) > 100
    with duckdb.connect(config={"threads": 1}) as connection:
        for node in nodes:
            sql = node.sql("duckdb")
            assert connection.execute(f"SELECT {sql} FROM {moment}").fetchall() != [(None,)], sql


UNREADABLE = [
    "1 IN (i, 'abc')", "1 BETWEEN i AND 'abc'", "CASE 1 WHEN i THEN 1 WHEN 'abc' THEN 2 END = 1",
    "coalesce(i, 'abc') = 1", "nullif(i, 'abc') = 1", "greatest(i, 'abc') = 1", "i + 1 = 'ab' || 'c'",
    "CASE WHEN i > 1 THEN i ELSE 'abc' END = 1", "INTERVAL (i) day > 'abc'", "coalesce(d, 'abc') > d",
]  # fmt: skip


@pytest.mark.parametrize("expression", UNREADABLE)
def test_a_constant_text_that_is_no_value_of_what_it_meets_is_underlined(expression: str) -> None:
    from tacit.sql import Catalog, Column, Table, compile_batch

    catalog = Catalog((Table("t", (Column("i", "INTEGER"), Column("d", "DATE"))),))
    with pytest.raises(TypeMismatchError, match="is no ") as caught:
        compile_batch(f"SELECT count(*) FROM t WHERE {expression}", catalog)
    assert "c'" in caught.value.sql[caught.value.start : caught.value.end]
    good = "'2024-01-01'" if "d," in expression else "'1 day'" if "INTERVAL" in expression else "'1'"
    readable = expression.replace("'abc'", good).replace("'ab' || 'c'", good)
    compile_batch(f"SELECT count(*) FROM t WHERE {readable}", catalog)


REFUSED = [
    "date_diff('centurys', d, ts)", "date_trunc('isoyears', d)", "extract(centurys FROM d)", "d + INTERVAL (i) isoyear",
    "name LIKE 'A%' ESCAPE '%'", "name NOT LIKE 'A%' ESCAPE '%'", "name ILIKE 'ab' ESCAPE 'b'",
    "name LIKE 'a' ESCAPE 'ab'", "name LIKE 'a' ESCAPE 'é'", "name LIKE 'a!!!' ESCAPE '!'",
    "name LIKE other ESCAPE '!'", "name LIKE 'a' ESCAPE other", "date_part(name, d)",
    "extract(timezone FROM d)", "extract(timezone_hour FROM ts)", "date_part('timezone', d)", "date_diff('era', d, ts)",
    "date_diff('timezone', d, ts)", "date_diff('day', ti, ti)", "date_trunc('era', d)", "date_trunc('timezone', d)",
    "dayofweek(sp)", "week(sp)", "isoyear(sp)", "era(sp)", "hour(sp)", "date_part('week', sp)", "date_trunc('day', sp)",
    "CAST(j AS BIT)", "CAST(j AS BIGNUM)", "CAST(j AS VARCHAR)", "CAST(name AS BLOB)", "CAST(name AS JSON)",
    "CAST(name AS UUID)", "CAST(name AS INTEGER[])", "CAST(name AS STRUCT(a INTEGER))", "CAST(name AS TIMESTAMPTZ)",
    "replace(replace(replace(replace(name, 'a', 'aaaaaa'), 'a', 'aaaaaa'), 'a', 'aaaaaa'), 'a', 'aaaaaa')",
    "replace(name, 'a', other)", "replace(name, other, 'aaaaaaaaaaa')", "repeat(name, 10)", "lpad(name, 10, 'x')",
    "name || name || name || name || name || name || name || name || name", "strftime(d, name)",
    "name SIMILAR TO other", "name LIKE 'a_' ESCAPE '_'",
    "regexp_matches(name, other)", "upper(upper(upper(upper(name))))", "i + name", "b || '' = name", "list[1]",
    "strptime(name, '%Y')", "name::DATE + ti", "tz + INTERVAL 1 DAY", "extract(hour FROM tz)", "coalesce(tz, d)",
    "CASE WHEN isnan(CAST('a' AS HUGEINT)) THEN TRUE END", "i + CAST('x' AS INTEGER)", "d + INTERVAL 'nonsense'",
    "CAST(ts AS VARCHAR) = 'x'", "ts || 'a'", "concat('a', ts)", "coalesce(ts, name)",
    "CASE WHEN i = 1 THEN ts ELSE name END", "CAST(ti AS VARCHAR)", "CAST(sp AS VARCHAR)",
    "CAST(ts AS TIMESTAMP_S)", "greatest(ts, name)",
    "error('x')", "hash(name)", "random()", "i[1]", "d + INTERVAL (i) timezone",
]  # fmt: skip


@pytest.mark.parametrize("expression", REFUSED)
def test_what_could_fail_on_a_row_is_refused(expression: str) -> None:
    from tacit.sql import Catalog, Column, Table, compile_batch

    types = {
        "name": "VARCHAR", "other": "VARCHAR", "i": "INTEGER", "d": "DATE", "ts": "TIMESTAMP", "ti": "TIME",
        "sp": "INTERVAL", "j": "JSON", "b": "BLOB", "list": "INTEGER[]", "tz": "TIMESTAMP WITH TIME ZONE",
    }  # fmt: skip
    catalog = Catalog((Table("t", tuple(Column(name, type_) for name, type_ in types.items())),))
    with pytest.raises(SqlError):
        compile_batch(f"SELECT count(*) FROM t WHERE ({expression}) IS NULL", catalog)
    with pytest.raises(SqlError):
        compile_batch(
            f"SELECT count(*) FROM t WHERE CASE WHEN i = 7 THEN ({expression}) IS NULL ELSE FALSE END", catalog
        )
