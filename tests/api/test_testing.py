"""The curator's exact figures: equal to DuckDB's own, and out of an analyst's reach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import tacit
import tacit.ledger
from support import seams
from tacit import Connection
from tacit.sql import compile_batch

Connect = Callable[..., Connection]

COUNTS = [
    "SELECT count(*) FROM visits",
    "SELECT count(age), count(*) AS n FROM visits WHERE state IN ('NY', 'CA') OR age IS NULL",
    "SELECT sex, count(*) FROM visits WHERE NOT (age < 40) GROUP BY sex ORDER BY sex NULLS LAST",
]


def test_counts_equal_duckdbs(con: Connection, clinic: Path) -> None:
    queries = [q.partition(" ORDER BY")[0] for q in COUNTS]
    ours = tacit.testing.exact_answers(con, queries)
    con.close()
    with duckdb.connect(str(clinic), read_only=True) as raw:
        for frame, sql in zip(ours, COUNTS, strict=True):
            theirs = raw.execute(sql).df()
            pd.testing.assert_frame_equal(frame, theirs, check_dtype=False)


def test_sums_equal_duckdbs_with_the_clamp(con: Connection, clinic: Path) -> None:
    clamped = "CASE WHEN cost IS NOT NULL THEN least(greatest(cost, 0), 1000) END"  # greatest skips NULLs
    ours = tacit.testing.exact_answers(
        con, "SELECT ward, sum(cost) AS s, avg(cost) AS a FROM visits WHERE age < 60 GROUP BY ward"
    )[0]
    empty = tacit.testing.exact_answers(con, "SELECT avg(cost) FROM visits WHERE age = 119")[0]
    con.close()
    with duckdb.connect(str(clinic), read_only=True) as raw:
        theirs = raw.execute(
            f"SELECT ward, sum({clamped}) AS s, avg({clamped}) AS a FROM visits WHERE age < 60 "
            "GROUP BY ward ORDER BY ward NULLS LAST"
        ).df()
    np.testing.assert_allclose(ours["s"], theirs["s"], atol=400 * 1000 / 2**31)
    np.testing.assert_allclose(ours["a"], theirs["a"], atol=1e-3)
    assert np.isnan(empty.iloc[0, 0]), "the average of no rows"


def test_unit_counts(con: Connection) -> None:
    for batch in (COUNTS[:2], ["SELECT sum(cost) FROM visits"]):
        x = tacit.testing.unit_counts(con, batch)
        w = compile_batch(batch, con.catalog)
        exact = tacit.testing.exact_answers(con, batch)
        assert (w.matrix @ x)[0] == pytest.approx(exact[0].iloc[0, 0])
        assert x.dtype == (np.int64 if batch is not None and "sum" not in batch[0] else np.float64)


def test_units_keep_the_rows_that_releases_keep(connect: Connect, policy: dict[str, Any]) -> None:
    policy["tables"]["visits"] |= {"privacy_unit": "patient_id", "max_rows_per_unit": 1}
    con = connect(policy=policy)
    exact = tacit.testing.exact_answers(con, "SELECT count(*) FROM visits; SELECT count(*) FROM visits WHERE sex")
    assert exact[0].iloc[0, 0] == 200, "two rows for each of 200 patients"
    again = tacit.testing.exact_answers(connect(policy=policy), "SELECT count(*) FROM visits WHERE sex")
    assert again[0].iloc[0, 0] == exact[1].iloc[0, 0], "one salt for all"
    stderr = con.explain("SELECT count(*) FROM visits", epsilon=1).stderr[0]
    assert stderr == pytest.approx(np.sqrt(0.5) / np.sinh(0.5), rel=1e-9), "geometric noise for one row a unit"
    policy["tables"]["visits"]["max_rows_per_unit"] = 2
    tacit.ledger.change_policy(con, policy)
    wide = connect(policy=policy).explain("SELECT count(*) FROM visits", epsilon=1)
    assert wide.stderr[0] == pytest.approx(np.sqrt(0.5) / np.sinh(0.25), rel=1e-9), "and for two"


def test_refused_for_an_analyst(connect: Connect) -> None:
    con = connect(analyst="ana")
    for exact in (tacit.testing.unit_counts, tacit.testing.exact_answers):
        with pytest.raises(tacit.InterfaceError, match="analyst"):
            exact(con, COUNTS)


def test_a_defect_below_is_an_error_of_the_tree(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    seams.replace(monkeypatch, "compile", lambda *_: [][0])
    with pytest.raises(tacit.InternalError, match="IndexError"):
        tacit.testing.unit_counts(con, COUNTS[:1])


def test_nothing_is_charged(con: Connection) -> None:
    tacit.testing.exact_answers(con, COUNTS[:1])
    assert con.budget.spent.epsilon == 0


@pytest.mark.parametrize("module", ["tacit.testing"])
def test_says_so_loudly(module: str) -> None:
    for text in (tacit.testing.__doc__, tacit.testing.unit_counts.__doc__, tacit.testing.exact_answers.__doc__):
        assert text is not None
        assert "EXACT" in text
        assert "ONLY" in text.upper()


def test_undeclared_keys_and_ranges_are_those_of_the_rows() -> None:
    database = duckdb.connect()
    database.execute("CREATE TABLE t AS SELECT ['a', 'b', NULL][1 + i % 3] AS k, i * 3 - 7 AS x FROM range(9) AS r(i)")
    con = tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": {"t": {}}})
    sql = "SELECT k, count(*) AS n, sum(x) AS s FROM t GROUP BY k"
    with pytest.raises(tacit.Error):
        tacit.testing.exact_answers(con, sql)
    (frame,) = tacit.testing.exact_answers(con, sql, discover=True)
    assert frame["k"].tolist()[:2] == ["a", "b"] and frame["n"].tolist() == [3, 3, 3]
    np.testing.assert_allclose(frame["s"], [6, 15, 24], atol=1e-3)
    assert con.budget.spent.epsilon == 0
