"""Statements that can return no row are answered from the catalog; whatever might return one is read as ever."""

from __future__ import annotations

import pytest
from tacit.errors import SqlError
from tacit.sql import Catalog, Column, Table, compile_batch
from tacit.sql.workload import OuterQuery

CATALOG = Catalog(
    (
        Table("visits", (Column("age", "INTEGER"), Column("Ward", "VARCHAR"), Column("paid", "DECIMAL(9,2)"))),
        Table("codes", (Column("code", "INTEGER"),), public=True),
    )
)
EVERY = (("age", "INTEGER"), ("Ward", "VARCHAR"), ("paid", "DECIMAL(9,2)"))


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT * FROM visits WHERE 1=0", EVERY),
        ('SELECT * FROM "visits" WHERE (1 = 0)', EVERY),
        ("SELECT * FROM visits WHERE FALSE", EVERY),
        ("SELECT v.* FROM visits AS v LIMIT 0", EVERY),
        ("SELECT paid, ward AS w FROM visits LIMIT 0", (("paid", "DECIMAL(9,2)"), ("w", "VARCHAR"))),
    ],
)
def test_columns_without_rows(sql: str, columns: tuple[tuple[str, str], ...]) -> None:
    workload = compile_batch(sql, CATALOG)
    (query,) = workload.queries
    assert isinstance(query, OuterQuery) and not workload.tables and not query.parts
    assert tuple((column.column, column.type) for column in query.columns) == columns
    assert "visits" not in repr(query.query), "no scan, and no statement that is run, names the private table"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visits",
        "SELECT * FROM visits LIMIT 1",
        "SELECT * FROM visits WHERE 1 = 1",
        "SELECT * FROM visits WHERE '1' = '0'",
        "SELECT * FROM visits WHERE age = 0",
        "SELECT * FROM visits WHERE 1 = 0 OR age = 3",
        "SELECT age + 1 FROM visits LIMIT 0",
        "SELECT nope FROM visits LIMIT 0",
        "SELECT other.* FROM visits LIMIT 0",
        "SELECT * EXCLUDE (age) FROM visits LIMIT 0",
        "SELECT * FROM visits, codes LIMIT 0",
        "SELECT * FROM visits TABLESAMPLE 10% LIMIT 0",
        "SELECT * FROM nobody LIMIT 0",
        "SELECT age FROM visits WHERE nope < 3 LIMIT 0",
    ],
)
def test_what_may_have_rows_is_refused_as_ever(sql: str) -> None:
    with pytest.raises(SqlError):
        compile_batch(sql, CATALOG)


def test_a_count_of_no_rows_is_one_row() -> None:
    (query,) = compile_batch("SELECT count(*) FROM visits WHERE 1 = 0", CATALOG).queries
    assert not isinstance(query, OuterQuery) and len(query.groups) == 1
