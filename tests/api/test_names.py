"""Names mean what they mean to DuckDB: only ASCII letters know no case, and a dot in a name is part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
import tacit.ledger
import tacit.testing
from tacit import Connection, Policy
from tacit.policy_catalog import build_catalog
from tacit.sql.names import folded
from tacit.sql.source import SourceColumn, SourceTable

Open = Callable[..., Connection]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """A connection to a database made by some statements, under some policy for its tables."""
    found: list[Connection] = []

    def make(statements: list[str], **tables: Any) -> Connection:
        path = tmp_path / f"n{len(found)}.duckdb"
        with duckdb.connect(str(path)) as con:
            for statement in statements:
                con.execute(statement)
        policy = {"budget": {"epsilon": 10.0}, "tables": tables}
        found.append(tacit.connect(path, policy=policy))
        return found[-1]

    yield make
    for con in found:
        con.close()


def counts(con: Connection, *queries: str) -> list[float]:
    return [float(frame.iloc[0, 0]) for frame in tacit.testing.exact_answers(con, list(queries))]


def test_folding_is_duckdbs_own() -> None:
    pairs = [("a", "A"), ("É", "é"), ("ß", "ẞ"), ("İ", "i"), ("K", "k"), ("ſ", "s"), ("Ω", "ω"), ("e\u0301", "é")]
    for one, other in pairs:
        with duckdb.connect() as con:
            con.execute(f'CREATE TABLE "{one}" (x INTEGER)')
            try:
                con.execute(f'CREATE TABLE "{other}" (x INTEGER)')
                con.execute(f'CREATE TABLE columns ("{one}" INTEGER, "{other}" INTEGER)')
                same = False
            except duckdb.CatalogException:
                same = True
        assert (folded(one) == folded(other)) is same, (one, other)


def test_a_policy_binds_the_table_of_its_very_name(opened: Open) -> None:
    both = ['CREATE TABLE "é" (id INTEGER)', 'CREATE TABLE "É" (id INTEGER)']
    con = opened(both, **{"É": {"privacy_unit": "id", "max_rows_per_unit": 3}})
    assert {t.name: t.privacy_unit for t in con.catalog.tables} == {"é": None, "É": "id"}
    with pytest.raises(tacit.PolicyError, match="is no table"):
        opened(['CREATE TABLE "é" (id INTEGER)'], **{"É": {"public": True}})


def test_a_policy_binds_the_column_of_its_very_name(opened: Open) -> None:
    table = ['CREATE TABLE t ("é" INTEGER, "É" INTEGER)']
    con = opened(table, t={"privacy_unit": "é", "max_rows_per_unit": 1, "columns": {"É": {"min": 0, "max": 1}}})
    (found,) = con.catalog.tables
    assert found.privacy_unit == "é"
    assert [c.name for c in found.columns if c.domain is not None] == ["É"]
    with pytest.raises(tacit.PolicyError, match="no column"):
        opened(['CREATE TABLE t ("é" INTEGER)'], t={"privacy_unit": "É", "max_rows_per_unit": 1})


def test_columns_that_differ_beyond_ascii_are_two(opened: Open) -> None:
    table = ['CREATE TABLE t ("é" INTEGER, "É" INTEGER)', "INSERT INTO t VALUES (1, 2), (1, 3), (0, 2)"]
    con = opened(table)
    queries = ['SELECT count(*) FROM t WHERE "é" = 1', 'SELECT count(*) FROM t WHERE "É" = 2']
    assert counts(con, *queries) == [2, 2]
    con.answer(queries, epsilon=1.0)
    assert any(con.explain('SELECT count(*) FROM t WHERE "É" = 1', epsilon=1.0).cost), "a question about another column"
    assert not any(con.explain(queries[0], epsilon=0.5).cost)


def test_aliases_that_differ_beyond_ascii_are_two(opened: Open) -> None:
    con = opened(["CREATE TABLE t (a BOOLEAN, b BOOLEAN)", "INSERT INTO t VALUES (true, false), (true, false)"])
    query = 'SELECT a AS "é", b AS "É", count(*) AS n FROM t GROUP BY "é", "É" ORDER BY "É" DESC NULLS LAST, "é" DESC'
    (frame,) = tacit.testing.exact_answers(con, query)
    assert frame.columns.tolist() == ["é", "É", "n"]
    assert frame.sort_values("n").iloc[-1, :2].tolist() == [True, False]


@pytest.fixture
def dotted(opened: Open) -> Connection:
    return opened(
        [
            "CREATE SCHEMA s",
            "CREATE TABLE s.t (x INTEGER)",
            'CREATE TABLE "s.t" (x INTEGER)',
            "INSERT INTO s.t SELECT 1 FROM range(5)",
            'INSERT INTO main."s.t" SELECT 1 FROM range(7)',
        ],
        **{'s."t"': {"version": "in s"}, '"s.t"': {"version": "in main"}},
    )


def test_a_dot_in_a_name_is_not_a_schema(dotted: Connection) -> None:
    queries = ["SELECT count(*) FROM s.t", 'SELECT count(*) FROM "s.t"', 'SELECT count(*) FROM Main."S.T"']
    assert counts(dotted, *queries) == [5, 7, 7]
    assert {t.name: t.version for t in dotted.catalog.tables} == {"s.t": "in s", '"s.t"': "in main"}
    dotted.answer(queries[0], epsilon=1.0)
    assert any(dotted.explain(queries[1], epsilon=0.5).cost), "the release is of the other table"


def test_a_name_that_two_tables_answer_to_is_refused(opened: Open, dotted: Connection) -> None:
    both = ["CREATE SCHEMA s", "CREATE TABLE s.t (x INTEGER)", 'CREATE TABLE "s.t" (x INTEGER)']
    with pytest.raises(tacit.PolicyError, match=r'can be read as (s.t and as "s.t"|"s.t" and as s.t)'):
        opened(both, **{"s.t": {"public": True}})
    with pytest.raises(tacit.PolicyError, match="can both be meant"):
        tacit.ledger.declare_version(dotted, "s.t", "2")
    tacit.ledger.declare_version(dotted, '"S.t"', "2")
    assert {t.name: t.version for t in dotted.catalog.tables} == {"s.t": "in s", '"s.t"': "2"}


@pytest.mark.parametrize("name", ["s.t", "S.T", 's."t"', '"s"."T"'])
def test_a_table_of_a_schema_in_a_policy(opened: Open, name: str) -> None:
    con = opened(["CREATE SCHEMA s", "CREATE TABLE s.t (x INTEGER)"], **{name: {"public": True}})
    assert [t.public for t in con.catalog.tables] == [True]


@pytest.mark.parametrize("name", ["a.b", '"a.b"', '"A.b"'])
def test_a_file_with_a_dot_in_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.b.csv").write_text("x\n1\n2\n")
    policy = {"budget": {"epsilon": 1.0}, "tables": {name: {"columns": {"x": {"type": "INTEGER"}}}}}
    with tacit.connect(tmp_path / "a.b.csv", policy=policy) as con:
        assert counts(con, 'SELECT count(*) FROM "a.b" WHERE x > 1') == [1]


UNITS = [
    'CREATE TABLE a ("p0.id" INTEGER, id INTEGER, "j0." BOOLEAN, "j0.x" INTEGER)',
    'CREATE TABLE b ("p0.id" INTEGER, id INTEGER, x INTEGER)',
    'CREATE TABLE h (k INTEGER, x INTEGER, "j0.x" INTEGER)',
    "INSERT INTO a SELECT i, -i, NULL, 100 + i FROM range(1, 21) AS r(i)",
    "INSERT INTO b SELECT i, 7, i FROM range(1, 21) AS r(i)",
    "INSERT INTO h SELECT i, 200 + i, 300 + i FROM range(1, 11) AS r(i)",
]


@pytest.fixture
def hostile(opened: Open) -> Connection:
    unit = {"privacy_unit": "p0.id", "max_rows_per_unit": 1}
    return opened(UNITS, a=unit, b=unit, h={"public": True})


def test_no_column_is_spelt_like_a_label(hostile: Connection) -> None:
    """A join on a unit called ``p0.id`` was a cross join: the name was read as a column of the joined table."""
    joined = 'FROM a JOIN b ON a."p0.id" = b."p0.id"'
    queries = [
        f"SELECT count(*) {joined}",
        f"SELECT count(*) {joined} WHERE b.id = 7 AND a.id < 0",
        f'SELECT count(*) {joined} JOIN h ON a."p0.id" = h.k WHERE h.x > 205 AND a."j0.x" < 109 AND h."j0.x" <> 308',
        'SELECT count(*) FROM a JOIN h ON a."p0.id" = h.k WHERE a."j0.x" > 105 AND h.x < 208',
        'SELECT count(*) FROM a JOIN h ON a."p0.id" = h.k WHERE a."j0." IS NULL',
        'SELECT count(*) FROM a LEFT JOIN h ON a."p0.id" = h.k WHERE h.k IS NULL',
    ]
    with duckdb.connect() as database:
        for statement in UNITS:
            database.execute(statement)
        expected = [(database.execute(query).fetchone() or (None,))[0] for query in queries]
    assert counts(hostile, *queries) == expected
    assert expected[0] == 20


def test_releases_over_hostile_names_are_not_confused(hostile: Connection) -> None:
    first = 'SELECT count(*) FROM a JOIN h ON a."p0.id" = h.k WHERE h.x > 205'
    hostile.answer(first, epsilon=1.0)
    assert not any(hostile.explain(first, epsilon=0.5).cost)
    others = [
        'SELECT count(*) FROM a JOIN h ON a."p0.id" = h.k WHERE a."j0.x" > 205',
        'SELECT count(*) FROM a JOIN h ON a."p0.id" = h.k WHERE h."j0.x" > 205',
        "SELECT count(*) FROM a JOIN h ON a.id = h.k WHERE h.x > 205",
    ]
    for other in others:
        assert any(hostile.explain(other, epsilon=0.5).cost), other


def test_a_column_named_like_an_expression_is_another_column(opened: Open) -> None:
    con = opened(
        [
            'CREATE TABLE t (a INTEGER, b INTEGER, """a"" + ""b""" INTEGER)',
            "INSERT INTO t SELECT i, i, 0 FROM range(10) AS r(i)",
        ],
        t={"columns": {"a": {"min": 0, "max": 9}, "b": {"min": 0, "max": 9}, '"a" + "b"': {"min": 0, "max": 18}}},
    )
    stored, computed = '"""a"" + ""b"""', "a + b"
    for first, second in ((stored, computed), (computed, stored)):
        queries = [f"SELECT count(*) FROM t WHERE {first} > 4", f"SELECT count(*) FROM t WHERE {second} > 4"]
        assert sorted(counts(con, *queries)) == [0, 7]
        sums = [f"SELECT sum({first}) FROM t", f"SELECT sum({second}) FROM t"]
        np.testing.assert_allclose(sorted(counts(con, *sums)), [0, 90], atol=1e-6)


class _Twins:
    """A source that, unlike DuckDB, has two columns of one name."""

    main = "main"
    database = ""

    def __init__(self, tables: tuple[SourceTable, ...]) -> None:
        self._tables = tables

    def schema(self) -> tuple[SourceTable, ...]:
        return self._tables

    def read_public(self, query: object) -> list[object]:
        raise AssertionError("no table is public")


@pytest.mark.parametrize(
    "tables",
    [
        (
            SourceTable(
                "t", (SourceColumn("a", "INTEGER", True), SourceColumn("A", "INTEGER", True)), path=("main", "t")
            ),
        ),
        (SourceTable("t", (), path=("main", "t")), SourceTable("T", (), path=("Main", "T"))),
    ],
)
def test_two_of_one_name_are_refused(tables: tuple[SourceTable, ...]) -> None:
    with pytest.raises(tacit.PolicyError, match="of one name"):
        build_catalog(Policy(), _Twins(tables))  # type: ignore[arg-type]
