"""Policies: what is read, and that everything wrong is a PolicyError that names the key and the cure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tacit
from tacit import Connection, PolicyError, load_policy
from tacit.policy import Cap
from tacit.sql import Range, Values

Connect = Callable[..., Connection]

TOML = """
trust_schema = true
[budget]
epsilon = 3.0
delta = 1e-9
spend = 0.1
[analysts.ana]
epsilon = 1.0
[analysts.bob]
[tables.visits]
privacy_unit = "patient_id"
max_rows_per_unit = 4
version = "2025-01"
[tables.visits.columns]
state = { values = ["NY", "NJ"], other = "elsewhere" }
age = { min = 0, max = 120 }
day = { min = 2024-01-01, max = 2025-12-31 }
[tables.hospitals]
public = true
[limits]
statements = 5
"""


def test_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(TOML)
    policy = load_policy(path)
    assert policy.trust_schema
    assert policy.budget == Cap(Decimal("3.0"), Decimal("1e-9"))
    assert policy.spend == Decimal("0.1")
    assert policy.analysts == {"ana": Cap(Decimal("1.0")), "bob": Cap()}
    visits = policy.tables["visits"]
    assert (visits.privacy_unit, visits.max_rows_per_unit, visits.version) == ("patient_id", 4, "2025-01")
    assert visits.columns["state"].other == "elsewhere"
    assert visits.columns["day"].max == dt.date(2025, 12, 31)
    assert policy.tables["hospitals"].public
    assert policy.limits.statements == 5


def test_catalog_from_toml(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(TOML)
    table = connect(policy=str(path)).catalog.table("VISITS")
    assert table is not None
    domains = {c.name: c.domain for c in table.columns}
    assert domains["state"] == Values(("NY", "NJ"), "elsewhere")
    assert domains["age"] == Range(0, 120)
    assert domains["day"] == Range(dt.date(2024, 1, 1), dt.date(2025, 12, 31))
    assert domains["ward"] == Values(("surgery", "maternity", "other ward"), None, complete=True)
    assert domains["sex"] == Values((False, True), None)
    assert domains["bill"] is None
    assert (table.version, table.privacy_unit, table.max_rows_per_unit) == ("2025-01", "patient_id", 4)


@pytest.mark.parametrize("trusted", [True, False])
def test_schema_is_trusted_only_on_request(connect: Connect, trusted: bool) -> None:
    table = connect(policy={"trust_schema": trusted}).catalog.table("visits")
    assert table is not None
    domains = {c.name: c.domain for c in table.columns}
    assert domains["sex"] == Values((False, True), None)
    assert (domains["ward"] is not None) == trusted
    assert (domains["age"] == Range(0, 120)) == trusted


def test_without_policy_the_schema_is_the_policy(connect: Connect) -> None:
    table = connect(policy=None).catalog.table("visits")
    assert table is not None
    assert table.column("ward").domain is not None  # type: ignore[union-attr]


COLUMNS = ("tables", "visits", "columns")
BAD = [
    (("budgets", {}), "budgets", "did you mean budget?"),
    (("budget", "epsilom", 1.0), "budget.epsilom", "did you mean epsilon?"),
    (("budget", "epsilon", 0), "budget.epsilon", "epsilon = 1.0"),
    (("budget", "epsilon", -1.0), "budget.epsilon", "epsilon = 1.0"),
    (("budget", "epsilon", float("nan")), "budget.epsilon", "epsilon = 1.0"),
    (("budget", "epsilon", float("inf")), "budget.epsilon", "epsilon = 1.0"),
    (("budget", "epsilon", "1.0"), "budget.epsilon", "epsilon = 1.0"),
    (("budget", "epsilon", True), "budget.epsilon", "epsilon = 1.0"),
    (("budget", "delta", 1.0), "budget.delta", "delta = 1e-9"),
    (("budget", "spend", 0.0), "budget.spend", "spend = 1.0"),
    (("budget", 3.0), "budget", "[budget]"),
    (("budget", "ledger", 3), "budget.ledger", 'ledger = "visits.ledger"'),
    (("budget", "ledger", ""), "budget.ledger", 'ledger = "visits.ledger"'),
    (("budget", {"delta": 1e-9}), "budget.epsilon", "epsilon = 1.0"),
    (("accounting", "rdp"), "accounting", 'accounting = "sum"'),
    (("trust_schema", "yes"), "trust_schema", "trust_schema = true"),
    (("analysts", "ana", 1.0), "analysts.ana", "[analysts.ana]"),
    (("analysts", "ana", {"epsilon": 0}), "analysts.ana.epsilon", "epsilon = 1.0"),
    (("limits", {"statments": 3}), "limits.statments", "did you mean statements?"),
    (("limits", {"statements": 0}), "limits.statements", "statements = 1000"),
    (("tables", "visitz", {}), "tables.visitz", "did you mean visits?"),
    ((*COLUMNS, "state", {"values": ["…"], "other": True}), "state.values", 'values = ["a", "b"]'),
    ((*COLUMNS, "state", {"values": ["NY", "…"]}), "state.values", 'values = ["a", "b"]'),
    ((*COLUMNS, "age", {"min": "…", "max": 9}), "age.min", "min = 0"),
    ((*COLUMNS, "day", {"min": "2024-01-01", "max": "…"}), "day.max", "max = 2024-12-31"),
    (("tables", "visits", {"privacy_unit": "…", "max_rows_per_unit": 2}), "privacy_unit", "patient_id"),
    (("budget", "ledger", "…"), "budget.ledger", "take the line out"),
    (("tables", "visits", "privacy_unit", "patient_id"), "max_rows_per_unit", "max_rows_per_unit = 4"),
    (("tables", "visits", "max_rows_per_unit", 3), "privacy_unit", "privacy_unit ="),
    (
        ("tables", "visits", {"privacy_unit": "patient", "max_rows_per_unit": 2}),
        "tables.visits.privacy_unit",
        "did you mean patient_id?",
    ),
    (
        ("tables", "visits", {"privacy_unit": "patient_id", "max_rows_per_unit": 0}),
        "tables.visits.max_rows_per_unit",
        "max_rows_per_unit = 4",
    ),
    (
        ("tables", "visits", {"privacy_unit": "patient_id", "max_rows_per_unit": 10**60}),
        "tables.visits.max_rows_per_unit",
        "max_rows_per_unit = 4",
    ),
    (("tables", "visits", {"privacy_unit": 3, "max_rows_per_unit": 1}), "privacy_unit", "quotes"),
    (
        ("tables", "visits", {"privacy_unit": "patient_id", "max_rows_per_unit": 2, "public": True}),
        "tables.visits.public",
        "keep one",
    ),
    (("tables", "visits", "pubic", True), "tables.visits.pubic", "did you mean public?"),
    (("tables", "VISITS", {}), "tables.VISITS", "keep one"),
    ((*COLUMNS, "agee", {"min": 0, "max": 1}), "columns.agee", "did you mean age?"),
    ((*COLUMNS, "age", {"min": 9, "max": 1}), "columns.age.min", "swap"),
    ((*COLUMNS, "age", {"min": 9}), "columns.age.max", "max ="),
    ((*COLUMNS, "age", {"min": 0.5, "max": 9}), "columns.age.min", "whole number"),
    ((*COLUMNS, "age", {"min": 0, "max": "9"}), "columns.age.max", "whole number"),
    ((*COLUMNS, "age", {"min": 0, "max": 9, "values": [1]}), "columns.age", "keep values"),
    ((*COLUMNS, "age", {"values": [1, 2], "other": True}), "columns.age.other", "leave other out"),
    ((*COLUMNS, "age", {"values": []}), "columns.age.values", "values = ["),
    ((*COLUMNS, "age", {"values": [1, 1]}), "columns.age.values", "once"),
    ((*COLUMNS, "age", {"values": [[1]]}), "columns.age.values", "plain values"),
    ((*COLUMNS, "age", {"values": [1, 2**31]}), "columns.age.values has 2147483648", "whole number"),
    ((*COLUMNS, "age", {"min": 0, "max": 2**31}), "columns.age.max has 2147483648", "whole number"),
    ((*COLUMNS, "age", {"min": 0, "max": 10**5000}), "columns.age.max", "whole number"),
    ((*COLUMNS, "bill", {"values": [0.25, 1.234]}), "columns.bill.values has 1.234", "a number"),
    ((*COLUMNS, "bill", {"values": [1e12]}), "columns.bill.values", "a number"),
    ((*COLUMNS, "state", {"values": ["NY", "\ud800"]}), "columns.state.values", "text in quotes"),
    ((*COLUMNS, "age", 120), "columns.age", "{ min = 0, max = 120 }"),
    ((*COLUMNS, "cost", {"min": 0.0, "max": float("inf")}), "columns.cost.max", "a number"),
    ((*COLUMNS, "state", {"min": "A", "max": "Z"}), "columns.state", "values = ["),
    ((*COLUMNS, "state", {"values": ["NY", 3]}), "columns.state.values", "text in quotes"),
    ((*COLUMNS, "state", {"other": True}), "columns.state.other", "values = ["),
    ((*COLUMNS, "state", {"values": ["NY"], "other": "NY"}), "columns.state.other", "none of these"),
    ((*COLUMNS, "state", {"values": ["NY"], "other": 3}), "columns.state.other", "other = true"),
    ((*COLUMNS, "state", {"complete": True}), "columns.state.complete", "values = ["),
    ((*COLUMNS, "age", {"min": 0, "max": 9, "complete": True}), "columns.age.complete", "values = ["),
    ((*COLUMNS, "state", {"values": ["NY"], "other": True, "complete": True}), "columns.state.complete", "keep one"),
    ((*COLUMNS, "state", {"values": ["NY"], "complete": "yes"}), "columns.state.complete", "complete = true"),
    ((*COLUMNS, "state", {"not_null": 1}), "columns.state.not_null", "not_null = true"),
    ((*COLUMNS, "state", {"notnull": True}), "columns.state.notnull", "did you mean not_null?"),
    ((*COLUMNS, "ward", {"values": ["surgry"]}), "columns.ward.values", "did you mean surgery?"),
    ((*COLUMNS, "day", {"min": "2024-13-01", "max": dt.date(2025, 1, 1)}), "day.min", "such as 2024-01-31"),
    ((*COLUMNS, "sex", {"values": [0, 1]}), "columns.sex.values", "true or false"),
]


@pytest.mark.parametrize(("change", "path", "cure"), BAD, ids=[f"{p}-{i}" for i, (_, p, _) in enumerate(BAD)])
def test_bad_policy_names_the_key_and_the_cure(
    change: tuple[Any, ...], path: str, cure: str, policy: dict[str, Any], connect: Connect
) -> None:
    *sections, key, value = change
    section = policy
    for name in sections:
        section = section.setdefault(name, {})
    section[key] = value
    with pytest.raises(PolicyError) as caught:
        connect(policy=policy)
    first, hint = str(caught.value).split("\nhint: ")
    assert path in first
    assert cure in hint
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_not_null_and_complete_columns_have_no_other_groups(connect: Connect) -> None:
    columns = {
        "state": {"values": ["NY", "NJ", "CA", "TX"], "complete": True, "not_null": True},
        "ward": {"values": ["maternity", "surgery", "other ward"]},
        "bill": {"not_null": True},
    }
    con = connect(policy={"trust_schema": True, "tables": {"visits": {"columns": columns}}})
    table = con.catalog.table("visits")
    assert table is not None
    declared = {c.name: (c.nullable, isinstance(c.domain, Values) and c.domain.complete) for c in table.columns}
    assert declared["state"] == (False, True) and declared["bill"] == (False, False)
    assert declared["ward"] == (True, True), "every label of the ENUM is listed"
    assert declared["patient_id"] == (False, False), "the schema says NOT NULL"
    (frame,) = tacit.testing.exact_answers(con, "SELECT state, count(*) AS n FROM visits GROUP BY state")
    assert frame["state"].tolist() == ["NY", "NJ", "CA", "TX"]
    assert frame["n"].sum() == 400, "a row that breaks the declaration is counted as a listed value"
    assert len(tacit.testing.unit_counts(con, "SELECT state, ward, count(*) FROM visits GROUP BY CUBE (1, 2)")) == 16


@pytest.mark.parametrize("rows", ["NOT NULL", ""])
def test_a_view_a_file_and_an_untrusted_enum_promise_nothing_by_themselves(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "t.parquet"
    with duckdb.connect() as db:
        db.execute(f"CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TABLE t (e mood {rows}, i INTEGER {rows})")
        db.execute("INSERT INTO t VALUES ('a', 1); CREATE VIEW w AS SELECT * FROM t")
        db.table("t").write_parquet(str(path))
        con = tacit.connect(db, policy={"trust_schema": False, "budget": {"epsilon": 1}})
        stored, view = (con.catalog.table(name) for name in ("t", "w"))
        assert stored is not None and view is not None
        assert [c.nullable for c in stored.columns] == [rows == ""] * 2, "DuckDB enforces NOT NULL in its tables"
        assert [c.nullable for c in view.columns] == [True, True]
        assert stored.columns[0].domain is None
    file = tacit.connect(path, policy={"budget": {"epsilon": 1}}).catalog.table("t")
    assert file is not None and all(c.nullable for c in file.columns)


def test_values_of_a_float_column_are_floats() -> None:
    with duckdb.connect() as db:
        db.execute("CREATE TABLE t AS SELECT 0.1::FLOAT AS a FROM range(50)")
        policy = {"tables": {"t": {"columns": {"a": {"values": [0.1, 0.2]}}}}}
        con = tacit.connect(db, policy=policy)
        (frame,) = tacit.testing.exact_answers(con, "SELECT a, count(*) AS n FROM t GROUP BY a")
    assert frame["n"].tolist() == [50, 0, 0]


def test_a_bare_mark_of_a_draft_is_named(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text("[tables.visits.columns]\nage = { min = …, max = … }\n")
    with pytest.raises(PolicyError, match=r"clinic\.toml, line 2: … is the mark of what is to be written") as caught:
        load_policy(path)
    assert "hint: write a value in its place" in str(caught.value) and "\n                ^\n" in str(caught.value)


def test_malformed_toml_shows_the_line(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text("[budget]\nepsilon 3\n")
    with pytest.raises(PolicyError, match=r"clinic\.toml, line 2: not valid TOML") as caught:
        connect(policy=path)
    assert "epsilon 3" in str(caught.value)


@pytest.mark.parametrize("policy", ["no-such-file.toml", ".", 3, ["a"], "a\0b"])
def test_unreadable_policy(policy: Any, connect: Connect) -> None:
    with pytest.raises(PolicyError, match="policy"):
        connect(policy=policy)


def test_not_text(tmp_path: Path, connect: Connect) -> None:
    path = tmp_path / "clinic.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyError, match="not UTF-8"):
        connect(policy=path)


def test_a_bad_policy_leaves_no_ledger(clinic: Path, connect: Connect) -> None:
    with pytest.raises(PolicyError):
        connect(policy={"budget": {"epsilon": -1}})
    assert sorted(p.name for p in clinic.parent.iterdir()) == ["clinic.duckdb"]


def test_a_ledger_is_named_as_seen_from_the_policy(tmp_path: Path, connect: Connect) -> None:
    (tmp_path / "books").mkdir()
    path = tmp_path / "clinic.toml"
    path.write_text('[budget]\nepsilon = 1.0\nledger = "books/clinic.ledger"\n')
    assert load_policy(path).ledger == tmp_path / "books" / "clinic.ledger"
    connect(policy=path, analyst="ana").answer("SELECT count(*) FROM visits", epsilon=0.25)
    assert (tmp_path / "books" / "clinic.ledger").exists()
    assert connect(policy=path).budget.spent.epsilon == Decimal("0.25")
    assert connect(policy=path, ledger=tmp_path / "books" / "clinic.ledger").budget.spent.epsilon == Decimal("0.25")


def test_two_ledgers_are_refused(tmp_path: Path, connect: Connect) -> None:
    policy = {"budget": {"epsilon": 1.0, "ledger": str(tmp_path / "one")}}
    with pytest.raises(PolicyError, match=r"budget\.ledger[\s\S]*leave ledger= out"):
        connect(policy=policy, ledger=tmp_path / "two")
    assert connect(policy=policy).budget.spent.epsilon == 0


def test_an_analyst_chooses_no_ledger_by_a_dictionary(tmp_path: Path, connect: Connect) -> None:
    with pytest.raises(PolicyError, match=r"budget\.ledger[\s\S]*does not choose the books"):
        connect(policy={"budget": {"epsilon": 1.0, "ledger": str(tmp_path / "mine")}}, analyst="ana")
