"""Answers as Arrow tables and polars frames have the types and the values of DuckDB's own result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
import tacit
from tacit import Connection

_COLUMNS = """
    1::TINYINT AS i1, 2::SMALLINT AS i2, 3::INTEGER AS i4, 4::BIGINT AS i8, 5::UTINYINT AS u1, 6::USMALLINT AS u2,
    7::UINTEGER AS u4, 8::UBIGINT AS u8, 9::HUGEINT AS h, 1.5::FLOAT AS f, 2.5::DOUBLE AS d, 1.25::DECIMAL(10, 2) AS p,
    true AS b, 'x' AS s, DATE '2024-01-02' AS day, TIME '01:02:03' AS t, TIMESTAMP '2024-01-02 03:04:05.678901' AS us,
    TIMESTAMP_S '2024-01-02' AS sec, TIMESTAMP_MS '2024-01-02 00:00:00.123' AS ms,
    TIMESTAMP_NS '2024-01-02 00:00:00.123456' AS ns, 'yes'::ENUM ('yes', 'no') AS e,
    '12345678-1234-5678-1234-567812345678'::UUID AS u
"""


@pytest.fixture
def public() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    db.execute(f"CREATE TABLE p AS SELECT {_COLUMNS}")
    db.execute("INSERT INTO p (s) VALUES (NULL)")
    return db


def test_types_and_values_are_duckdbs(public: duckdb.DuckDBPyConnection) -> None:
    policy = {"trust_schema": True, "budget": {"epsilon": 1.0}, "tables": {"p": {"public": True}}}
    with tacit.connect(public, policy=policy) as con:
        answer = con.answer("SELECT * FROM p")[0]
    table, own = answer.arrow(), public.sql("SELECT * FROM p").to_arrow_table()
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == dict(
        zip(own.column_names, own.schema.types, strict=True)
    ) | {"u": pa.string()}
    expected = [{**row, "u": row["u"] and str(row["u"])} for row in own.to_pylist()]
    assert table.to_pylist() == expected
    assert answer.rows() == public.sql("SELECT * FROM p").fetchall(), "a cursor's rows have the same types"


def test_private_keys_and_null(con: Connection) -> None:
    cur = con.cursor().execute(
        "SELECT age, count(*) AS n FROM visits WHERE age IS NULL OR age < 2 GROUP BY age; "
        "SELECT state, sex, count(*) AS n FROM visits GROUP BY state, sex",
        epsilon=0.5,
    )
    first = cur.fetch_arrow_table()
    assert first.schema.types == [pa.int32(), pa.float64()]
    assert first.column("age").to_pylist()[-1] is None
    assert [tuple(row.values()) for row in first.to_pylist()] == cur.fetchall()
    assert cur.nextset()
    assert cur.arrow().equals(cur.fetch_arrow_table())
    frame = cur.pl()
    assert frame.schema == {"state": pl.String, "sex": pl.Boolean, "n": pl.Float64}
    assert [tuple(row) for row in frame.iter_rows()] == cur.fetchall()


def test_the_long_table(connect: Callable[..., Connection], policy: dict[str, Any]) -> None:
    policy["tables"]["visits"]["columns"]["age"] = {"min": 0, "max": 3}
    batch = "SELECT median(age) AS m FROM visits; SELECT sex, count(*) FROM visits GROUP BY 1"
    answers = connect(policy=policy).answer(batch, epsilon=1)
    table = answers.arrow()
    assert table.schema.types == [pa.int64(), *[pa.string()] * 3, *[pa.float64()] * 4, pa.string()]
    assert table.column_names == list(answers.df().columns)
    assert table.column("stderr").to_pylist()[0] is None, "a quantile has an interval and no stderr"
    assert table.column("value").to_pylist() == answers.df()["value"].to_list()
    assert answers.pl().to_dicts() == table.to_pylist()
    assert answers[1].pl().columns == ["sex", "count_star()"]


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("pyarrow", "arrow", lambda answers: answers.arrow()),
        ("pyarrow", "arrow", lambda answers: answers[0].arrow()),
        ("polars", "polars", lambda answers: answers[0].pl()),
    ],
)
def test_a_missing_package_is_named(
    con: Connection, monkeypatch: pytest.MonkeyPatch, module: str, extra: str, call: Callable[[Any], Any]
) -> None:
    answers = con.answer("SELECT count(*) FROM hospitals")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(tacit.InterfaceError, match=rf"needs {module}.*\n.*tacit\[{extra}\]"):
        call(answers)
