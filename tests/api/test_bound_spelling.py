"""A ledger is bound to tables, not to how a policy spells them: one table has one unit under all of its names."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
import tacit.ledger
import tacit.testing
from tacit.binding import terms_of
from tacit.policy import load_policy

SPELLINGS = ("visits", "VISITS", "main.visits", '"visits"', 'main."visits"', '"main".visits', '"main"."Visits"')
UNIT = {"privacy_unit": "pid", "max_rows_per_unit": 3}
SQL = "SELECT count(*) FROM visits"


def policy(tables: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"budget": {"epsilon": 10.0}, "tables": tables or {}, **more}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE visits AS SELECT (i % 10)::INTEGER AS pid FROM range(100) t(i)")
    return path


def ask(database: Path, rules: dict[str, Any], sql: str = SQL) -> None:
    with tacit.connect(database, policy=rules) as con:
        con.answer(sql, epsilon=0.5)


def execute(database: Path, sql: str) -> None:
    with duckdb.connect(str(database)) as db:
        db.execute(sql)


@pytest.mark.parametrize("name", SPELLINGS)
def test_no_spelling_changes_the_unit_of_a_table_with_charges(name: str, database: Path) -> None:
    ask(database, policy())
    with pytest.raises(tacit.LedgerError, match="charges that protect a row of visits, and this policy protects pid"):
        tacit.ledger.change_policy(f"{database}.ledger", policy({name: UNIT}))
    with tacit.connect(database, policy=policy()) as con, pytest.raises(tacit.LedgerError, match="protect a row"):
        tacit.ledger.change_policy(con, policy({name: UNIT}))


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_bound_can_change_under_every_spelling(name: str, database: Path) -> None:
    ask(database, policy({name: UNIT}))
    for other in SPELLINGS:
        tacit.ledger.change_policy(f"{database}.ledger", policy({other: UNIT | {"max_rows_per_unit": 5}}))
    with pytest.raises(tacit.LedgerError, match="protect pid of visits, and this policy protects a row"):
        tacit.ledger.change_policy(f"{database}.ledger", policy())


@pytest.mark.parametrize("begun", SPELLINGS)
@pytest.mark.parametrize("name", SPELLINGS)
def test_two_spellings_of_a_table_are_the_same_terms(begun: str, name: str, database: Path) -> None:
    with tacit.connect(database, policy=policy({begun: UNIT})) as con:
        tacit.testing.unit_counts(con, SQL)  # begins the ledger, without the time of a release
    tacit.connect(database, policy=policy({name: UNIT})).close()
    with pytest.raises(tacit.LedgerError, match="write max_rows_per_unit = 3 under"):
        tacit.connect(database, policy=policy({name: UNIT | {"max_rows_per_unit": 5}}))


@pytest.mark.parametrize("name", SPELLINGS[1:])
def test_two_spellings_in_one_policy_are_one_table_declared_twice(name: str) -> None:
    for tables in ({"visits": UNIT, name: {"public": True}}, {name: UNIT, "visits": {}}):
        with pytest.raises(tacit.PolicyError, match="twice"):
            terms_of(load_policy(policy(tables)))


def test_a_name_with_a_dot_counts_for_every_table_that_it_can_mean(database: Path) -> None:
    """Without a database at hand, ``s.t`` may be the table t of s, or a table of main with a dot in its name."""
    execute(database, 'CREATE TABLE "s.t" AS SELECT 1 AS pid')
    ask(database, policy(), 'SELECT count(*) FROM "s.t"')
    for name in ("s.t", '"s.t"', 'main."s.t"'):
        with pytest.raises(tacit.LedgerError, match="protect a row"):
            tacit.ledger.change_policy(f"{database}.ledger", policy({name: UNIT}))
    tacit.ledger.change_policy(f"{database}.ledger", policy({'s."t"': UNIT}))


def test_a_recorded_name_that_became_ambiguous_is_not_read_as_the_other_table(database: Path) -> None:
    execute(database, 'CREATE TABLE "s.t" AS SELECT 1 AS pid')
    ask(database, policy({"s.t": UNIT}), 'SELECT count(*) FROM "s.t"')
    tacit.connect(database, policy=policy({'"s.t"': UNIT})).close()
    execute(database, "CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS pid")
    with pytest.raises(tacit.LedgerError, match="privacy_unit"):
        tacit.connect(database, policy=policy({'s."t"': UNIT}))
    tacit.ledger.change_policy(f"{database}.ledger", policy({'"s.t"': UNIT}))
    tacit.connect(database, policy=policy({'"s.t"': UNIT})).close()


def test_two_tables_that_differ_by_quotes_keep_their_own_terms(database: Path) -> None:
    execute(database, 'CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS pid; CREATE TABLE "s.t" AS SELECT 1 AS pid')
    rules = policy({'s."t"': UNIT, '"s.t"': UNIT | {"max_rows_per_unit": 7}})
    ask(database, rules, "SELECT count(*) FROM s.t")
    ask(database, rules, 'SELECT count(*) FROM "s.t"')
    tacit.connect(database, policy=policy({'"s"."t"': UNIT, 'main."s.t"': UNIT | {"max_rows_per_unit": 7}})).close()
    with pytest.raises(tacit.LedgerError, match="max_rows_per_unit"):
        tacit.connect(database, policy=policy({'"s.t"': UNIT, 's."t"': UNIT | {"max_rows_per_unit": 7}}))


@pytest.mark.parametrize("name", ["v", "main.v", '"v"'])
def test_a_ledger_of_the_first_version_is_bound_under_every_spelling(name: str, tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    execute(path, "CREATE TABLE v AS SELECT (i % 10)::INTEGER AS pid, i::INTEGER AS a FROM range(100) t(i)")
    stored = Path(__file__).parents[1] / "fixtures" / "ledger-0.1.0.gz"
    Path(f"{path}.ledger").write_bytes(gzip.decompress(stored.read_bytes()))
    rules = {"budget": {"epsilon": 5.0, "delta": 1e-6}, "tables": {name: UNIT | {"version": "1"}}}
    with pytest.raises(tacit.LedgerError, match="charges that protect pid of v"):
        ask(path, {**rules, "tables": {name: {"privacy_unit": "a", "max_rows_per_unit": 3}}}, "SELECT count(*) FROM v")
    ask(path, rules, "SELECT count(*) FROM v")


def test_a_column_named_like_no_unit_is_no_unit() -> None:
    with pytest.raises(tacit.PolicyError, match="rename the column"):
        load_policy(policy({"visits": {"privacy_unit": "A row", "max_rows_per_unit": 1}}))
