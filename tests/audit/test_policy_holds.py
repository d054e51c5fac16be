"""What the curator declares is what protects, or it is refused: nothing of it is dropped in silence."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
import tacit


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    """One person with a thousand rows, behind a view."""
    database = duckdb.connect()
    database.execute("CREATE TABLE v AS SELECT 1 AS person, i::INTEGER AS age FROM range(1000) AS r(i)")
    database.execute("CREATE VIEW w AS SELECT person, age FROM v WHERE age >= 0")
    return database


@pytest.mark.parametrize(
    "said", [{"privacy_unit": "person", "max_rows_per_unit": 1}, {"public": True}, {"version": "2"}]
)
def test_a_view_has_no_units_of_its_own(said: dict[str, Any], database: duckdb.DuckDBPyConnection) -> None:
    """It was read through to its table, whose rows then were the units: a thousand of a person at the price of one."""
    with pytest.raises(tacit.PolicyError, match=r"tables\.w\..*view") as caught:
        tacit.connect(database, policy={"budget": {"epsilon": 10}, "tables": {"w": said}})
    assert "hint: say" in str(caught.value)


def test_the_units_of_a_table_hold_through_its_view(database: duckdb.DuckDBPyConnection) -> None:
    tables = {"v": {"privacy_unit": "person", "max_rows_per_unit": 2}, "w": {"columns": {"age": {"min": 0, "max": 9}}}}
    with tacit.connect(database, policy={"budget": {"epsilon": 10}, "tables": tables}) as con:
        assert tacit.testing.exact_answers(con, "SELECT count(*) FROM w")[0].iloc[0, 0] == 2


@pytest.mark.parametrize(
    "value", ["i::VARIANT", "INTERVAL (i) DAY", "[i]", "{'i': i}", "MAP {i: i}", "to_json(i)", "encode(i::VARCHAR)"]
)
def test_a_unit_is_a_plain_value(value: str) -> None:
    """Equal values of these types are hashed, grouped or joined as different ones, or the other way round."""
    database = duckdb.connect()
    database.execute(f"CREATE TABLE v AS SELECT {value} AS person, i FROM range(10) r(i)")
    tables = {"v": {"privacy_unit": "person", "max_rows_per_unit": 1}}
    with pytest.raises(tacit.PolicyError, match=r"tables\.v\.privacy_unit .*type"):
        tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": tables})
    database.execute(f"CREATE TABLE p AS SELECT {value} AS person FROM range(3) r(i)")
    con = tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": {"p": {"public": True}}})
    with pytest.raises(tacit.ProgrammingError, match="key of a join"):
        con.explain("SELECT count(*) FROM v JOIN p ON v.person = p.person", epsilon=0.1)
