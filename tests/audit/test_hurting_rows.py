"""Random accepted batches over rows chosen to hurt: no scan fails, and nothing is charged that is not released."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest
import tacit
from sqlglot import exp
from support.expressions import EVERY, column, nested
from tacit import Connection
from tacit.sql.backends.duckdb.extremes import extremes
from tacit.sql.backends.duckdb.types import kind_of

from .cases import LONG

BATCHES = 10_000 if LONG else 240
NUMBERS = tuple(type_ for type_ in EVERY if kind_of(type_) == "number")
SEEDS = 8


def fill(database: duckdb.DuckDBPyConnection) -> None:
    """A column for each type; every extreme value stands beside extremes of the other types, in several companies."""
    for j, type_ in enumerate(EVERY):
        listed = ", ".join(f"CAST({value} AS {type_})" for value in extremes(type_))
        name = column(type_)
        database.execute(
            f"CREATE TABLE x{j} AS SELECT unnest([{listed}]) AS {name}, generate_subscripts([{listed}], 1) AS n"
        )
    joined = " ".join(
        f"LEFT JOIN x{j} ON x{j}.n = 1 + (r * {2 * j + 1} + {j}) % {len(extremes(type_))}"
        for j, type_ in enumerate(EVERY)
    )
    database.execute(
        f"CREATE TABLE v AS SELECT {', '.join(map(column, EVERY))}, r % 5 AS person FROM range(60) q(r) {joined}"
    )
    for j in range(len(EVERY)):
        database.execute(f"DROP TABLE x{j}")


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect(config={"threads": 2})
    fill(database)
    return database


@pytest.fixture
def con(database: duckdb.DuckDBPyConnection) -> Iterator[Connection]:
    """Half of the columns are declared to hold no NULL, and two to hold listed values alone: the rows break it all."""
    ranges: dict[str, dict[str, object]] = {column(type_): {"not_null": True} for type_ in EVERY[::2]}
    for type_ in NUMBERS:
        if type_ not in ("DECIMAL(38,38)", "UHUGEINT"):
            ranges[column(type_)] = {**ranges.get(column(type_), {}), "min": 0, "max": 3}
    ranges[column("VARCHAR")] = {"values": ["a", "b"], "complete": True, "not_null": True}
    ranges[column("ENUM('b', 'a')")] = {"values": ["a"], "complete": True}
    policy = {
        "budget": {"epsilon": 1000},
        "tables": {"v": {"columns": ranges, "privacy_unit": "person", "max_rows_per_unit": 7, "version": "1"}},
    }
    with tacit.connect(database, policy=policy) as opened:
        yield opened


def query(rng: random.Random) -> str:
    """One random query; some are refused, because a part that has a value need not fit into the whole."""

    def tree() -> str:
        types = (rng.choice(EVERY), rng.choice(EVERY))
        return nested(rng, rng.choice((1, 1, 2)), types).sql("duckdb")

    def condition() -> str:
        return rng.choice(
            [
                lambda: f"({tree()}) IS NULL",
                lambda: f"({tree()}) = ({tree()})",
                lambda: f"({tree()}) > 1",
                lambda: f"({tree()}) IN ('a', 'x', '2024-01-01')",
                lambda: f"CASE WHEN {tree()} THEN ({tree()}) IS NULL ELSE ({tree()}) IS NOT NULL END",
                lambda: f"{column(rng.choice(EVERY))} IS NOT NULL AND {tree()}",
            ]
        )()

    figure = rng.choice(
        [
            lambda: "count(*)",
            lambda: f"count({tree()})",
            lambda: f"sum({column(rng.choice(NUMBERS))})",
            lambda: f"sum({column(rng.choice(NUMBERS))} * {column(rng.choice(NUMBERS))} + 1)",
            lambda: f"avg(CASE WHEN {tree()} THEN {column(rng.choice(NUMBERS))} END)",
            lambda: f"count(*) FILTER (WHERE {condition()})",
        ]
    )()
    key = rng.choice(["", "", "", f"CASE WHEN {condition()} THEN 'yes' ELSE 'no' END", column("VARCHAR")])
    shown, group = (f"{key} AS g, ", " GROUP BY 1") if key else ("", "")
    tail = rng.choice(["", "", " HAVING count(*) > 1", " ORDER BY 1 LIMIT 1"]) if key else ""
    return f"SELECT {shown}{figure} AS n FROM v WHERE {condition()}{group}{tail}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_scan_fails_and_no_charge_is_without_release(con: Connection, seed: int) -> None:
    rng = random.Random(seed)
    answered = 0
    while answered < BATCHES / SEEDS:
        batch = [query(rng) for _ in range(rng.choice((1, 1, 2)))]
        before = con.budget.spent.epsilon
        try:
            con.answer(batch, epsilon=1e-6, strategy="identity")
            answered += 1
        except (tacit.InternalError, tacit.OperationalError) as error:
            pytest.fail(f"{batch}: {error}")
        except tacit.Error:
            assert con.budget.spent.epsilon == before, batch


def test_the_rows_do_hurt(database: duckdb.DuckDBPyConnection) -> None:
    """Without its guard nearly every such expression fails on some row: the broken engine of this test."""
    rng = random.Random(5)
    failed = 0
    for _ in range(300):
        node = nested(rng, 1, ("BIGINT", "DOUBLE", "DECIMAL(38,10)"))
        if node.find(exp.Column) is None:
            continue
        try:
            database.execute(f"SELECT count({node.sql('duckdb')}) FROM v").fetchall()
        except duckdb.BinderException:
            continue
        except duckdb.Error:
            failed += 1
    assert failed > 5
