"""What names mean: views, stars, CTEs and aliases mean to tacit what they mean to DuckDB, or are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from support.exact import exact_rows
from tacit.errors import SqlError
from tacit.sql import Catalog, Column, Range, Source, Table, Values, compile_batch, open_source
from tacit.sql.workload import KeyColumn

SCHEMA = """
CREATE TABLE t (k INTEGER NOT NULL, "G" INTEGER NOT NULL, x INTEGER NOT NULL);
INSERT INTO t SELECT r % 4, r % 3, r FROM range(15) AS rows(r);
CREATE TABLE y (a INTEGER, b INTEGER);
INSERT INTO y VALUES (1, 20), (3, 40);
CREATE SCHEMA s;
CREATE TABLE s.y (a INTEGER, b INTEGER);
INSERT INTO s.y VALUES (100, 200), (5, 6), (7, 8);
CREATE VIEW swapped(b, a) AS SELECT a, b FROM y;
CREATE VIEW first_only(z) AS SELECT a, b FROM y;
CREATE VIEW again AS SELECT * FROM swapped;
CREATE VIEW "we ird"("B b") AS WITH q AS (SELECT a FROM y) SELECT a FROM q;
CREATE VIEW hidden(b) AS SELECT a FROM y WHERE b > 30;
CREATE VIEW s.own AS SELECT a, b FROM y;
CREATE VIEW s.outer_one AS SELECT k FROM t;
CREATE VIEW s.above(q) AS SELECT a FROM own;
CREATE VIEW s.qualified AS SELECT a FROM main.y;
CREATE VIEW united AS SELECT a FROM y UNION ALL SELECT b FROM y;
CREATE VIEW counted AS SELECT count(*) AS c FROM y;
CREATE VIEW star AS SELECT * FROM y;
ALTER TABLE y ADD COLUMN late INTEGER DEFAULT 9;
CREATE TABLE visits (pid INTEGER NOT NULL, k INTEGER);
INSERT INTO visits VALUES (1, 0), (1, 1), (2, 1);
CREATE TABLE people (pid INTEGER NOT NULL, w INTEGER);
INSERT INTO people VALUES (1, 5), (2, 6);
CREATE TABLE places (k INTEGER, zone VARCHAR);
INSERT INTO places VALUES (0, 'n'), (1, 's');
"""
DOMAINS: dict[str, Range | Values] = {
    "k": Range(0, 3), "G": Range(0, 2), "x": Range(0, 15), "a": Range(0, 100), "b": Range(0, 200), "w": Range(0, 9),
    "late": Range(0, 9), "zone": Values(("n", "s")),
}  # fmt: skip


@pytest.fixture(scope="module")
def here() -> Iterator[tuple[duckdb.DuckDBPyConnection, Source, Catalog]]:
    database = duckdb.connect(config={"threads": 1})
    database.execute(SCHEMA)
    source = open_source(database)
    tables = tuple(
        Table(
            table.name,
            tuple(Column(c.name, c.type, c.nullable, DOMAINS.get(c.name)) for c in table.columns),
            privacy_unit="pid" if table.name in ("visits", "people") else None,
            max_rows_per_unit=2,
            public=table.name == "places",
            version="1",
            view=table.view,
            path=table.path,
        )
        for table in source.schema()
    )
    yield database, source, Catalog(tables)
    source.close()
    database.close()


def same(ours: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    def shown(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
        return [[round(float(v), 3) if isinstance(v, int | float) else v for v in row] for row in rows]

    return shown([tuple(v.item() if hasattr(v, "item") else v for v in row) for row in ours]) == shown(expected)


VIEWS = [
    "SELECT sum(a), sum(b) FROM swapped",
    "SELECT sum(a) FROM swapped WHERE b = 1",
    "SELECT sum(B), sum(Z) FROM first_only",
    "SELECT sum(a), sum(b) FROM again",
    'SELECT sum("b B") FROM "we ird" AS r("B b", "b B")',
    'SELECT sum("b b") FROM "we ird"',
    "SELECT count(b), sum(b) FROM hidden",
    "SELECT sum(a), sum(b) FROM s.own",
    "SELECT count(*) FROM s.outer_one WHERE k = 1",
    "SELECT sum(q) FROM s.above",
    "SELECT sum(a) FROM s.qualified",
    "SELECT sum(late) FROM star",
    "SELECT sum(a) FROM united",
    "SELECT sum(c) FROM counted",
    "WITH y AS (SELECT b AS a FROM y) SELECT sum(a) FROM star",
    "WITH star AS (SELECT b AS a FROM star) SELECT sum(a) FROM star",
]
TABLES = [
    "WITH q AS (SELECT a AS b, b AS a FROM y), z AS (SELECT * FROM q) SELECT sum(a) FROM z",
    "WITH q AS (SELECT a AS b, b AS a FROM y), z AS (SELECT q.* FROM q) SELECT sum(a) FROM z",
    "SELECT sum(a) FROM (SELECT * FROM (SELECT a AS b, b AS a FROM y))",
    "SELECT count(*) FROM (SELECT zz.* FROM y)",
    "WITH q AS (SELECT * FROM y), y AS (SELECT b AS a FROM s.y) SELECT sum(a) FROM q",
    "WITH q AS (SELECT * FROM y), y AS (SELECT b AS a FROM s.y) SELECT sum(a) FROM y",
    "WITH y AS (SELECT a + 10 AS a FROM y) SELECT sum(a) FROM y",
    "WITH y AS (SELECT a AS b, b AS a FROM y), z AS (SELECT * FROM y) SELECT sum(a) FROM z",
    "WITH y AS (SELECT a FROM y), Y AS (SELECT b AS a FROM y) SELECT sum(a) FROM y",
    "WITH y AS (SELECT b AS a FROM y), z AS (WITH y AS (SELECT a AS b FROM y) SELECT * FROM y) SELECT sum(b) FROM z",
    "WITH z AS (SELECT * FROM y2), y2 AS (SELECT a FROM y) SELECT count(*) FROM z",
    "WITH y AS (SELECT b AS a FROM y) SELECT sum(a) FROM main.y",
    "WITH y AS (SELECT b AS a FROM y), z AS (WITH c AS (SELECT * FROM y), y AS (SELECT a FROM s.y) SELECT * FROM c) "
    "SELECT sum(a) FROM z",
    "WITH y AS (SELECT b AS a FROM y) SELECT count(*), (WITH y AS (SELECT a AS q FROM y) SELECT sum(q) FROM y) FROM y",
    "WITH y AS (SELECT b AS a FROM y) SELECT sum(a) FROM y UNION ALL SELECT sum(a) FROM y",
    "(WITH y AS (SELECT b AS a FROM y) SELECT sum(a) FROM y) UNION ALL SELECT sum(a) FROM y",
    "WITH q(b) AS (SELECT a, b AS z FROM y) SELECT sum(b), sum(z) FROM q",
    "WITH q(b) AS (SELECT a, b FROM y) SELECT sum(b) FROM q",
    "SELECT sum(b) FROM y AS r(b, a)",
    "SELECT sum(p.b) FROM (SELECT a, b FROM y) AS p(b, a)",
    "SELECT sum(a) FROM y AS r(b, a, c, d)",
    "SELECT sum(s.y.a) FROM y",
]
ALIASES = [
    "SELECT -k AS k, count(*) FROM t GROUP BY k ORDER BY k LIMIT 3",
    "SELECT -k AS k, count(*) FROM t GROUP BY k ORDER BY (k)",
    "SELECT -k AS K, count(*) FROM t GROUP BY k ORDER BY k + 0",
    "SELECT -k AS k, count(*) FROM t GROUP BY k ORDER BY t.k",
    "SELECT -k AS k, count(*) FROM t GROUP BY k ORDER BY abs(k), k",
    "SELECT k, sum(-x) AS x FROM t GROUP BY k ORDER BY x",
    "SELECT k, sum(-x) AS x FROM t GROUP BY k ORDER BY sum(x)",
    "SELECT k, sum(-x) AS x FROM t GROUP BY k ORDER BY x + 1",
    "SELECT k, sum(-x) AS q FROM t GROUP BY k ORDER BY q * 2",
    "SELECT k AS a, -k AS a, count(*) FROM t GROUP BY k ORDER BY a",
    "SELECT -k AS h, count(*) AS n, -n AS h FROM t GROUP BY k ORDER BY h, n, k",
    'SELECT k AS "G", "G" AS k, count(*) FROM t GROUP BY k, "G" ORDER BY k, "G"',
    "SELECT k AS t, count(*) FROM t GROUP BY k ORDER BY t DESC",
    "SELECT k AS t, count(*) FROM t GROUP BY k ORDER BY t + 0",
    "SELECT k, count(*) AS n, sum(x) AS n FROM t GROUP BY k HAVING n > 22.5 ORDER BY k",
    "SELECT -k AS k, count(*) FROM t GROUP BY k HAVING k < 2 ORDER BY 1",
    "SELECT k AS z, sum(x) AS k FROM t GROUP BY z HAVING k > 20 ORDER BY z",
    "SELECT k, sum(x) AS x FROM t GROUP BY k HAVING x > 21.5 ORDER BY k",
    "SELECT -k AS g, count(*) FROM t GROUP BY k HAVING g < 0 ORDER BY g",
    "SELECT k AS t, count(*) AS n FROM t GROUP BY k HAVING t > 1 ORDER BY k",
    "SELECT k, count(*) AS x FROM t GROUP BY k HAVING sum(x) > 22.5 ORDER BY k",
    "SELECT k AS a, g AS a, count(*) FROM t GROUP BY a",
    "SELECT k // 2 AS g, count(*) FROM t GROUP BY g",
    "SELECT k // 2 AS t, count(*) FROM t GROUP BY t",
    "SELECT count(*) AS x, x + 1 AS y FROM t",
    "SELECT count(*) AS a, sum(x) AS a, a + 1 AS c FROM t",
    "SELECT count(*) AS a, a + 1 AS c, sum(x) AS a FROM t",
    "SELECT n + 1 AS m, count(*) AS n FROM t",
    "SELECT k + 100 AS k, k + 1 AS z, count(*) FROM t GROUP BY k ORDER BY z",
    "SELECT count(*) AS n, n AS m, m + n AS p FROM t",
    "SELECT sum(k) AS q, q + 1 AS k, k + 1 AS r FROM t GROUP BY k ORDER BY r",
    "SELECT g, count(*) FROM t GROUP BY G ORDER BY g",
    "SELECT GG, sum(gG) AS z FROM (SELECT g AS Gg FROM t) GROUP BY gg ORDER BY 1",
    "SELECT count(*) AS n, n + 0x1F AS m FROM t",
    "SELECT k NOT IN (1, 2) < (k = 1) AS z, count(*) FROM t GROUP BY 1 HAVING count(*) > 0 ORDER BY 1",
]


@pytest.mark.parametrize("sql", [*VIEWS, *TABLES, *ALIASES])
def test_a_name_means_what_it_means_to_duckdb(
    here: tuple[duckdb.DuckDBPyConnection, Source, Catalog], sql: str
) -> None:
    database, source, catalog = here
    try:
        expected = database.execute(sql).fetchall()
        names = [column[0] for column in database.description]
    except duckdb.Error:
        expected = None
    try:
        workload = compile_batch(sql, catalog)
    except SqlError:
        return  # test_what_is_answered counts these
    assert expected is not None, "DuckDB refuses this"
    assert same(exact_rows(workload, source), expected)
    columns = workload.queries[0].columns
    assert [column.column if isinstance(column, KeyColumn) else column.name for column in columns] == names


def test_what_is_answered(here: tuple[duckdb.DuckDBPyConnection, Source, Catalog]) -> None:
    """Refusing everything would agree with DuckDB too."""
    answered = []
    for sql in [*VIEWS, *TABLES, *ALIASES]:
        try:
            compile_batch(sql, here[2])
            answered.append(sql)
        except SqlError:
            pass
    assert len([sql for sql in VIEWS if sql in answered]) == len(VIEWS) - 2
    assert len([sql for sql in TABLES if sql in answered]) == len(TABLES) - 6
    assert len([sql for sql in ALIASES if sql in answered]) == len(ALIASES) - 10


JOINED = "SELECT sum(w) FROM visits v JOIN people l ON v.pid = l.pid"
PUBLIC = "SELECT zone, count(*) FROM visits v JOIN places ON v.k = places.k GROUP BY zone ORDER BY zone"


@pytest.mark.parametrize("batch", [[JOINED, PUBLIC], [PUBLIC, JOINED]])
def test_the_order_of_statements_with_joins_does_not_matter(
    here: tuple[duckdb.DuckDBPyConnection, Source, Catalog], batch: list[str]
) -> None:
    database, source, catalog = here
    workload = compile_batch(batch, catalog)
    for number, sql in enumerate(batch):
        expected = database.execute(sql).fetchall()
        ours = [row for row in exact_rows(workload, source, number) if row[-1]]
        assert same(ours, expected)
