"""The ledger's log says what was asked: tables, columns and a digest of the SQL; its text where the policy says so."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
import tacit.ledger
from tacit import Connection

Connect = Callable[..., Connection]
SQL = "SELECT count(*) FROM visits WHERE age < 40 AND state = 'NY'"


def charges(con: Connection) -> list[dict[Any, Any]]:
    log = tacit.ledger.log(con)
    return log[log["kind"] == "charge"].to_dict("records")


def test_what_was_asked(con: Connection) -> None:
    con.answer([SQL, "SELECT avg(cost) FROM visits"], epsilon=0.5)
    con.answer("SELECT count(*) FROM labs", epsilon=0.5)
    first, second = charges(con)
    assert (first["tables"], first["queries"]) == ("visits", 2)
    assert first["columns"] == "visits.age, visits.cost, visits.state"
    assert (second["tables"], second["columns"], second["queries"]) == ("labs", "", 1)
    assert first["sql"] is None
    others = tacit.ledger.log(con)
    assert others[others["kind"] != "charge"][["tables", "columns", "digest", "sql"]].isna().all(axis=None)


def test_the_digest_tells_texts_apart_and_not_what_they_are(con: Connection) -> None:
    con.answer(SQL, epsilon=0.5)
    con.answer(SQL, epsilon=0.5, refresh=True)
    con.answer("SELECT count(*) FROM visits WHERE age < 41", epsilon=0.5)
    one, again, other = (charge["digest"] for charge in charges(con))
    assert one == again == tacit.ledger.digest(con, SQL)
    assert other != one
    assert tacit.ledger.digest(con, [SQL[:9], SQL[9:]]) != one, "where a text ends counts"
    entries = str(con._session.access.open().entries())
    assert "'NY'" not in entries and "SELECT" not in entries


def test_the_text_where_the_policy_says_so(connect: Connect, policy: dict[str, Any]) -> None:
    con = connect(policy=policy | {"log": {"sql": True}})
    con.answer(SQL, epsilon=0.5)
    con.answer([SQL, "SELECT sum(cost) FROM visits WHERE day < ?"], ["2024-02-01"], epsilon=0.5)
    assert [charge["sql"] for charge in charges(con)] == [SQL, f"{SQL}; SELECT sum(cost) FROM visits WHERE day < ?"]
    tacit.ledger.verify(con)
    with pytest.raises(tacit.PolicyError, match=r"log\.sql"):
        connect(policy=policy | {"log": {"sql": "yes"}})


def test_joins_discoveries_and_computed_tables(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as db:
        db.execute("CREATE TABLE orders AS SELECT i AS id, i % 7 AS customer, i % 3 AS shop FROM range(50) r(i)")
        db.execute("CREATE TABLE shops AS SELECT i AS id, ['a', 'b', 'b'][i + 1] AS town FROM range(3) r(i)")
    tables = {"orders": {"privacy_unit": "customer", "max_rows_per_unit": 9}, "shops": {"public": True}}
    policy = {"budget": {"epsilon": 9.0, "delta": 1e-6}, "tables": tables}
    with tacit.connect(tmp_path / "shop.duckdb", policy=policy) as con:
        con.answer("SELECT count(*) FROM orders o JOIN shops s ON o.shop = s.id WHERE s.town = 'b'", epsilon=1)
        con.answer(
            "SELECT count(*) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) WHERE n > 2", epsilon=1
        )
        con.discover("orders.id", epsilon=1, what="range")
        joined, per_unit, found = charges(con)
    assert joined["tables"] == "orders, shops"
    assert joined["columns"] == "orders.shop, shops.id, shops.town"
    assert per_unit["tables"] == "orders"
    assert (found["tables"], found["columns"]) == ("orders", "orders.id")


def test_an_older_ledger_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "old.ledger"
    path.write_bytes(gzip.decompress((Path(__file__).parents[1] / "fixtures" / "ledger-0.1.0.gz").read_bytes()))
    log = tacit.ledger.log(path)
    assert (log["kind"] == "charge").any()
    assert log[["tables", "digest", "sql"]].isna().all(axis=None)
