"""``tacit init`` and ``tacit check`` against a real server: what they write holds there, and no row is in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import tacit
from tacit.cli.program import app
from typer.testing import CliRunner, Result

SCHEMA = """
CREATE TYPE mood AS ENUM ('grim', 'glad');
CREATE TABLE people (person_id int PRIMARY KEY, born date, city text, mood mood, paid numeric(9, 2), "Full Name" text);
INSERT INTO people SELECT i, date '1960-01-01' + i, 'Ankh-Morpork', 'grim', i, 'secret' FROM generate_series(1, 300) i;
CREATE TABLE calls (call_id int PRIMARY KEY, person_id int NOT NULL, minutes int, at timestamptz);
INSERT INTO calls SELECT i, i % 300, i % 60, now() FROM generate_series(1, 900) i;
CREATE TABLE cities (city text PRIMARY KEY, country text);
INSERT INTO cities VALUES ('Quirm', 'Q'), ('Lancre', 'L');
CREATE SCHEMA lab;
CREATE TABLE lab.results (call_id int, value float8);
CREATE VIEW long_calls AS SELECT * FROM calls WHERE minutes > 30;
"""


@pytest.fixture
def url(new_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    made = new_database()
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute(SCHEMA)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_PROGRESS", "0")
    for name in ("TACIT_DB", "TACIT_POLICY", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return made


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin, prog_name="tacit")


def test_a_first_policy_for_a_server(url: str) -> None:
    done = run("init", url, "-o", "town.toml", "--public", "cities", "--range", "calls.minutes=0:120", "--epsilon", "3")
    assert done.exit_code == 0, done.output
    text = Path("town.toml").read_text()
    assert "Ankh-Morpork" not in text and "secret" not in text and "grim" not in text, "no private row, no ENUM label"
    assert max(map(len, text.splitlines())) <= 80
    policy = tacit.load_policy("town.toml")
    assert policy.tables["people"].privacy_unit == policy.tables["calls"].privacy_unit == "person_id"
    assert (policy.tables["people"].max_rows_per_unit, policy.tables["calls"].max_rows_per_unit) == (1, 4)
    assert policy.tables["lab.results"].privacy_unit == "call_id -> calls.person_id"
    assert policy.tables["people"].columns["city"].values == ("Lancre", "Quirm"), "the public table's list"
    assert policy.ledger is not None
    assert url not in done.output and url not in text, "a URL can hold a password"
    assert run("check", "town.toml", url).exit_code == 0
    sql = "SELECT city, count(*) AS n FROM people GROUP BY city; SELECT sum(minutes) AS minutes FROM calls"
    answered = run("answer", "-", "--db", url, "--policy", "town.toml", "--epsilon", "1", "-f", "json", stdin=sql)
    assert answered.exit_code == 0, answered.stderr
    assert [row["city"] for row in json.loads(answered.stdout)["answers"][0]["rows"]] == ["Lancre", "Quirm", "NULL"]


def test_a_draft_is_refused_until_its_marks_are_replaced(url: str) -> None:
    drafted = run("init", url, "-o", "-", "-q").stdout.splitlines()
    opened = [line.removeprefix("# ") if "…" in line and " = " in line else line for line in drafted]
    Path("open.toml").write_text("\n".join(opened))
    found = json.loads(run("check", "open.toml", url, "-f", "json").stdout)
    said = {f["path"] for f in found if 'still holds "…"' in f["message"]}
    assert {
        "tables.people.columns.born.min",
        "tables.people.columns.city.values",
        "tables.calls.columns.at.min",
    } <= said


def test_everything_that_is_wrong_with_a_policy_is_said_at_once(url: str) -> None:
    Path("wrong.toml").write_text(
        '[budget]\nepsilon = 1\nledger = "town.ledger"\n'
        '[tables.people]\nprivacy_unit = "person"\nmax_rows_per_unit = 1\n'
        "[tables.people.columns]\ncity = { min = 0, max = 3 }\nborn = { min = 1, max = 2 }\n[tables.peeple]\n"
    )
    done = run("check", "wrong.toml", url, "-f", "json")
    assert done.exit_code == 1
    paths = [f["path"] for f in json.loads(done.stdout) if f["level"] == "error"]
    assert sorted(paths) == [
        "tables.peeple",
        "tables.people.columns.born.min",
        "tables.people.columns.city",
        "tables.people.privacy_unit",
    ]


def test_a_server_that_is_not_there_is_an_error_and_no_traceback() -> None:
    done = run("init", "postgresql://nobody:pw@127.0.0.1:1/none", "-o", "-")
    assert done.exit_code == 1 and "Traceback" not in done.output and "pw" not in done.output
