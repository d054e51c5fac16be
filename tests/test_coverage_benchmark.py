"""The corpora of the coverage benchmark: well-formed files, valid SQL, rows inside what the policies declare."""

from __future__ import annotations

import re
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import pytest

from benchmarks import coverage as benchmark
from benchmarks import coverage_rows as rows

CORPORA = rows.names()


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    queries = [query for name in CORPORA for query in rows.read(name).queries]
    assert len(queries) >= 330
    assert [id for id, count in Counter(query.id for query in queries).items() if count > 1] == []
    assert all(re.fullmatch(rf"{query.corpus}/[\w.-]+", query.id) for query in queries)


@pytest.mark.parametrize("name", CORPORA)
def test_every_query_is_valid_and_its_result_agrees_with_itself(name: str) -> None:
    corpus = rows.read(name)
    with rows.database(corpus) as con:
        for query in corpus.queries:
            con.execute("BEGIN")
            frame = con.execute(query.sql).df()
            con.execute("ROLLBACK")
            if query.refuse is None:
                assert len(frame) > 0, query.id
                assert benchmark.differences(query, frame, frame) == [], query.id


@pytest.mark.parametrize("name", CORPORA)
def test_rows_are_the_same_each_time_and_inside_what_is_declared(name: str) -> None:
    corpus = rows.read(name)
    with rows.database(corpus) as con, rows.database(corpus) as again:
        for table, said in corpus.policy["tables"].items():
            assert con.execute(f"FROM {table}").fetchall() == again.execute(f"FROM {table}").fetchall()
            for column, declared in said.get("columns", {}).items():
                inside = "list_contains($values, c)" if "values" in declared else "c BETWEEN $min AND $max"
                outside = (
                    f"SELECT count(*) FROM (SELECT {column} AS c FROM {table}) WHERE c IS NOT NULL AND NOT {inside}"
                )
                assert con.execute(outside, declared).fetchall() == [(0,)], (table, column)
            if "privacy_unit" in said:
                assert most_rows(con, table, said["privacy_unit"]) <= said["max_rows_per_unit"], table


def most_rows(con: duckdb.DuckDBPyConnection, table: str, unit: str) -> int:
    """How many rows the unit with the most rows has."""
    source = table
    if "->" in unit:
        key, other, column = re.split(r"\s*->\s*|\.", unit)
        primary = con.execute(
            "SELECT constraint_column_names[1] FROM duckdb_constraints() "
            "WHERE table_name = ? AND constraint_type = 'PRIMARY KEY'",
            [other],
        ).fetchall()[0][0]
        source, unit = f"{table} a JOIN {other} b ON a.{key} = b.{primary}", f"b.{column}"
    most = con.execute(f"SELECT max(n) FROM (SELECT count(*) AS n FROM {source} GROUP BY {unit})").fetchall()
    return int(most[0][0])


def test_what_differs_is_seen() -> None:
    query = rows.Query("t/1", "t", "SELECT k, count(*) AS n, avg(v) AS mean FROM t GROUP BY k", None, None)
    truth = pd.DataFrame({"k": ["a", "b", None], "n": [2, 3, 1], "mean": [1.5, None, 2.0]})
    same = pd.DataFrame({"k": ["b", "a", "c", None], "n": [3.0, 2.0, 0.0, 1.0], "mean": [np.nan, 1.5, np.nan, 2.0]})
    assert benchmark.differences(query, same, truth) == []
    assert benchmark.differences(query, same.rename(columns={"n": "m"}), truth)[0].startswith("columns")
    for change in ({"n": [3.0, 2.1, 0.0, 1.0]}, {"n": [3.0, 2.0, 4.0, 1.0]}, {"k": ["b", "x", "c", None]}):
        assert benchmark.differences(query, same.assign(**change), truth), change


def test_reasons_are_told_without_names() -> None:
    line = "GROUP BY hits.URL needs a declared list: 'x' is not 1,000"
    assert benchmark.normalised(line, frozenset({"hits", "url"})) == "GROUP BY … needs a declared list"


def test_it_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["coverage.py", "--corpus", "smartnoise", "--list-todo", "-v"])
    assert benchmark.main() == 0
    shown = capsys.readouterr().out
    assert "smartnoise/01" in shown
    assert "to do, by reason" in shown
