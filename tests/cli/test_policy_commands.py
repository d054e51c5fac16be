"""``tacit init`` and ``tacit check``: a policy from the schema alone, and everything that is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
import tacit

from .conftest import Run, build

INIT = ("init", "shop.duckdb", "-o")


def test_init_writes_a_policy_that_holds(run: Run) -> None:
    done = run(*INIT, "new.toml", "--epsilon", "3", "--public", "items", "--range", "orders.price=0:100")
    assert done.exit_code == 0, done.stderr
    policy = tacit.load_policy("new.toml")
    orders = policy.tables["orders"]
    assert (orders.privacy_unit, orders.max_rows_per_unit) == ("customer_id", 4)
    assert orders.columns["item"].values == ("rice", "tea"), "the public table's list"
    assert policy.tables["items"].public and policy.budget.epsilon == 3
    assert "guessed: orders protects customer_id" in done.stderr
    assert max(map(len, Path("new.toml").read_text().splitlines())) <= 80
    assert not Path("shop.duckdb.ledger").exists()


def test_init_reads_no_private_row(run: Run) -> None:
    """Two databases that differ in every row have one policy; no value of a private row is in it."""
    build(Path("other.duckdb"), secret="a secret drink", customers=7)
    options = ("-o", "-", "--public", "items", "-q")
    here, there = run("init", "shop.duckdb", *options).stdout, run("init", "other.duckdb", *options).stdout
    assert here.replace("shop.duckdb", "") == there.replace("other.duckdb", "") != ""
    assert '"rice"' not in run("init", "shop.duckdb", "-o", "-", "-q").stdout, "nobody has said that items are public"


def test_enum_labels_and_check_ranges_are_written_by_nobody(run: Run) -> None:
    with duckdb.connect("typed.duckdb") as db:
        db.execute("CREATE TABLE t (mood ENUM ('grim', 'glad'), age INTEGER CHECK (age BETWEEN 0 AND 117))")
    text = run("init", "typed.duckdb", "-o", "-").stdout
    assert "grim" not in text and "117" not in text and "# trust_schema = true" in text
    assert "\ntrust_schema = true" in run("init", "typed.duckdb", "-o", "-", "--trust-schema").stdout


def test_init_never_overwrites_silently(run: Run) -> None:
    before = Path("shop.toml").read_text()
    done = run("init", "shop.duckdb")
    assert done.exit_code == 2 and "--force" in done.stderr and Path("shop.toml").read_text() == before
    assert run("init", "shop.duckdb", "--force").exit_code == 0 and Path("shop.toml").read_text() != before


def test_a_unit_is_reached_by_a_key(run: Run) -> None:
    with duckdb.connect("keys.duckdb") as db:
        db.execute("CREATE TABLE orders (order_id INTEGER PRIMARY KEY, customer_id INTEGER)")
        db.execute("CREATE TABLE lines (order_id INTEGER, item VARCHAR)")
    assert run("init", "keys.duckdb").exit_code == 0
    assert tacit.load_policy("keys.toml").tables["lines"].privacy_unit == "order_id -> orders.customer_id"


def test_the_guessed_unit_is_the_person_and_not_what_the_person_did(run: Run) -> None:
    """By its name, and by its keys where no name says so: what has an owner is not the owner."""
    with duckdb.connect("keys.duckdb") as db:
        db.execute("CREATE TABLE calls (call_id INTEGER PRIMARY KEY, msisdn_id INTEGER)")
        db.execute("CREATE TABLE results (call_id INTEGER, value DOUBLE)")
        db.execute("CREATE TABLE phones (msisdn_id INTEGER PRIMARY KEY, city VARCHAR)")
    assert run("init", "keys.duckdb").exit_code == 0
    units = {name: table.privacy_unit for name, table in tacit.load_policy("keys.toml").tables.items()}
    assert units == {"calls": "msisdn_id", "phones": "msisdn_id", "results": "call_id -> calls.msisdn_id"}
    with duckdb.connect("names.duckdb") as db:
        db.execute("CREATE TABLE rides (ride_id INTEGER, bike_id INTEGER, rider_user_id INTEGER)")
        db.execute("CREATE TABLE repairs (ride_id INTEGER, bike_id INTEGER)")
    assert run("init", "names.duckdb").exit_code == 0
    assert tacit.load_policy("names.toml").tables["rides"].privacy_unit == "rider_user_id"


def test_a_table_of_nobody_says_so(run: Run) -> None:
    with duckdb.connect("rows.duckdb") as db:
        db.execute("CREATE TABLE weather (day DATE, rain DOUBLE)")
        db.execute('CREATE TABLE gym ("Member No." INTEGER, fee DOUBLE)')
    done = run("init", "rows.duckdb")
    assert "weather protects each row" in done.stderr and "guessed: gym protects Member No." in done.stderr


def test_a_column_that_is_declared_twice_is_said_to_be(run: Run) -> None:
    Path("twice.toml").write_text(
        "[tables.orders.columns]\nprice = { min = 0, max = 9 }\nprice = { not_null = true }\n"
    )
    done = run("check", "twice.toml", "shop.duckdb")
    assert done.exit_code == 1 and "hint: this name stands above already" in done.stdout


def test_files_without_types(run: Run) -> None:
    Path("visits.csv").write_text("person_id,age\n1,33\n2,44\n")
    assert run("init", "visits.csv", "--type", "age=INTEGER", "--range", "visits.age=0:120").exit_code == 0
    done = run("answer", "-", "--db", "visits.csv", "--epsilon", "0.5", stdin="SELECT sum(age) FROM visits")
    assert done.exit_code == 0, done.stderr
    duckdb.sql("COPY (SELECT 1 AS person_id, 2 AS age) TO 'p.parquet'")
    assert 'privacy_unit = "person_id"' in run("init", "p.parquet", "-o", "-").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--public", "itms"), "there is no such table"),
        (("--unit", "nobody"), "no table has that column"),
        (("--range", "orders.price=3"), "two ends are needed"),
        (("--values", "orders.colour=red"), "orders has no column 'colour'"),
        (("--rows", "many"), "not a whole number"),
        (("--type", "price=INTEGER"), "--type is for csv files"),
    ],
)
def test_a_wrong_option_writes_nothing(run: Run, options: tuple[str, ...], words: str) -> None:
    done = run(*INIT, "new.toml", *options)
    assert done.exit_code == 2 and words in " ".join(done.stderr.split())
    assert not Path("new.toml").exists()


def test_a_policy_that_would_not_hold_is_not_written(run: Run) -> None:
    done = run(*INIT, "new.toml", "--range", "orders.item=0:5")
    assert done.exit_code == 1 and "gives a range for VARCHAR" in done.stdout and not Path("new.toml").exists()


def test_a_good_policy_passes(run: Run) -> None:
    done = run("check", "shop.toml", "shop.duckdb", "--strict")
    assert (done.exit_code, done.stdout) == (0, "") and "nothing is wrong" in done.stderr


WRONG = """\
trust_shema = true
[budget]
epsilon = 2
delta = 2
spend = -1
[tables.orders]
privacy_unit = "customer"
max_rows_per_unit = 2
[tables.orders.columns]
item = { values = ["tea", "tea"], other = true }
price = { min = 0 }
prise = { min = 0, max = 9 }
[tables.items]
public = true
privacy_unit = "item"
max_rows_per_unit = 1
[tables."order lines".columns]
a = 3
"""


def test_everything_that_is_wrong_is_said_at_once_with_its_line(run: Run) -> None:
    Path("wrong.toml").write_text(WRONG)
    done = run("check", "wrong.toml", "shop.duckdb", "-f", "json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert [(f["line"], f["path"]) for f in found if f["level"] == "error"] == [
        (1, "trust_shema"),
        (4, "budget.delta"),
        (5, "budget.spend"),
        (7, "tables.orders.privacy_unit"),
        (10, "tables.orders.columns.item.values"),
        (11, "tables.orders.columns.price.max"),
        (12, "tables.orders.columns.prise"),
        (14, "tables.items.public"),
        (17, "tables.order lines"),
        (18, "tables.order lines.columns.a"),
    ]
    assert all(f["hint"] for f in found)


def test_what_is_not_toml_shows_its_line(run: Run) -> None:
    Path("wrong.toml").write_text("[budget]\nepsilon = = 3\n")
    done = run("check", "wrong.toml", "shop.duckdb")
    assert done.exit_code == 1 and "epsilon = = 3\n            ^" in done.stdout


LIKELY = """\
[budget]
epsilon = 50
delta = 0.01
spend = 40
[analysts.ana]
epsilon = 60
[tables.orders.columns]
price = { min = 0, max = 1000000000 }
item = { values = ["tea", "Tea"] }
day = { min = 0001-01-01, max = 2025-12-31 }
order_id = { min = 0, max = 9 }
"""


def test_likely_mistakes_are_warnings(run: Run) -> None:
    Path("likely.toml").write_text(LIKELY)
    done = run("check", "likely.toml", "shop.duckdb", "-f", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and {f["level"] for f in found} == {"warning"}
    expected = {
        "budget.epsilon": "large",
        "budget.delta": "large",
        "budget.spend": "more than half",
        "analysts.ana.epsilon": "more than the whole budget",
        "tables.orders": "it has a column customer_id",
        "tables.orders.columns.price": "as wide as",
        "tables.orders.columns.item": "differ in case",
        "tables.orders.columns.day": "200 years",
        "tables.orders.columns.order_id": "looks like an id",
        "": "items is not in the policy",
    }
    assert {f["path"] for f in found} == set(expected)
    for finding in found:
        assert expected[finding["path"]] in finding["message"]
    assert run("check", "likely.toml", "shop.duckdb", "--strict").exit_code == 1


def test_a_public_table_with_units_in_it_is_a_warning(run: Run) -> None:
    with duckdb.connect("shop.duckdb") as db:
        db.execute("CREATE TABLE addresses (customer_id INTEGER, street VARCHAR)")
    with open("shop.toml", "a") as policy:
        policy.write("[tables.addresses]\npublic = true\n")
    done = run("check", "shop.toml", "shop.duckdb")
    assert "addresses is public and holds customer_id" in done.stdout


def test_a_ledger_that_is_bound_to_another_policy_is_an_error(run: Run) -> None:
    assert run("answer", "one.sql", "--db", "shop.duckdb", "--epsilon", "0.1").exit_code == 0
    text = Path("shop.toml").read_text()
    Path("shop.toml").write_text(text.replace("max_rows_per_unit = 2", "max_rows_per_unit = 3"))
    done = run("check", "shop.toml", "shop.duckdb")
    assert done.exit_code == 1 and "write max_rows_per_unit = 2" in " ".join(done.stdout.split())


def test_what_is_wrong_is_not_missing_as_well(run: Run) -> None:
    Path("wrong.toml").write_text(
        '[budget]\nepsilon = -1\n[tables.orders]\nprivacy_unit = "customer_id"\nmax_rows_per_unit = 0\n'
    )
    found = json.loads(run("check", "wrong.toml", "shop.duckdb", "-f", "json").stdout)
    errors = [(f["line"], f["path"]) for f in found if f["level"] == "error"]
    assert errors == [(2, "budget.epsilon"), (5, "tables.orders.max_rows_per_unit")]


def test_a_line_is_named_once(run: Run) -> None:
    Path("wrong.toml").write_text("[budget]\nepsilon = %\n")
    assert run("check", "wrong.toml", "shop.duckdb").stdout.startswith("error: wrong.toml:2: not valid TOML: ")


def test_a_policy_that_is_not_there_is_wrong_usage(run: Run) -> None:
    for command in (("check", "none.toml", "shop.duckdb"), ("budget", "--db", "shop.duckdb", "--policy", "none.toml")):
        done = run(*command)
        assert done.exit_code == 2 and "none.toml" in done.stderr and "tacit init" in done.stderr


def test_the_types_of_a_csv_file_are_to_be_decided(run: Run) -> None:
    Path("visits.csv").write_text("person_id,age\n1,33\n")
    done = run("init", "visits.csv", "--type", "person_id=INTEGER")
    assert "text until their type says otherwise" in done.stderr
    text = Path("visits.toml").read_text()
    assert 'age = { type = "VARCHAR" }\n' in text and 'person_id = { type = "INTEGER" }\n' in text
    assert "Change VARCHAR to INTEGER, DOUBLE, BOOLEAN, DATE" in text


def test_a_slip_is_asked_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.cli.init.is_watched", lambda: True)
    said = ["itms", "items", "custommer_id", "customer_id", "many", "3", "a lot", "0", "2"]
    done = run("init", "shop.duckdb", "-o", "new.toml", stdin="\n".join(said) + "\n")
    assert done.exit_code == 0, done.stderr
    orders = tacit.load_policy("new.toml").tables["orders"]
    assert (orders.privacy_unit, orders.max_rows_per_unit) == ("customer_id", 3)
    assert tacit.load_policy("new.toml").budget.epsilon == 2
    assert done.stderr.count("error: ") == 5 and "did you mean items?" in done.stderr


def test_a_draft_whose_marks_are_not_replaced_is_refused_line_by_line(run: Run) -> None:
    """Taking the # away is not enough: neither a range nor a list has a value that would pass for the owner's."""
    with duckdb.connect("typed.duckdb") as db:
        db.execute("CREATE TABLE t (born DATE, seen TIMESTAMP, weight DOUBLE, age INTEGER, city VARCHAR)")
    drafted = run("init", "typed.duckdb", "-o", "-", "-q").stdout.splitlines()
    opened = [line.removeprefix("# ") if " = " in line and "…" in line else line for line in drafted]
    Path("typed.toml").write_text("\n".join(opened))
    done = run("check", "typed.toml", "typed.duckdb", "-f", "json")
    assert done.exit_code == 1
    found = {f["path"].removeprefix("tables.t."): f for f in json.loads(done.stdout) if f["level"] == "error"}
    columns = {"born.min", "seen.min", "weight.min", "age.min", "city.values"}
    assert {f"columns.{column}" for column in columns} <= found.keys()
    assert all('still holds "…"' in f["message"] and f["hint"] and f["line"] for f in found.values())
    assert "privacy_unit" in found


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_folders_of_files(run: Run, kind: str) -> None:
    """A folder is one table; what init writes for it passes check, and an answer comes out."""
    for year in (2024, 2025):
        place = Path("loans") / f"year={year}"
        place.mkdir(parents=True)
        duckdb.sql(
            f"COPY (SELECT i AS person_id, i % 9 AS days, 'secret' AS book FROM range(400) r(i)) TO '{place}/a.{kind}'"
        )
    options = ("--type", "days=INTEGER", "--type", "person_id=INTEGER") if kind == "csv" else ()
    done = run("init", "loans", *options, "--range", "loans.days=0:30")
    assert done.exit_code == 0, done.stderr
    text = Path("loans.toml").read_text()
    assert 'privacy_unit = "person_id"' in text and "secret" not in text
    assert run("check", "loans.toml", "loans").exit_code == 0
    sql = "SELECT sum(days) AS days FROM loans WHERE book = 'secret'"
    done = run("answer", "-", "--db", "loans", "--epsilon", "1", "-f", "json", stdin=sql)
    assert done.exit_code == 0, done.stderr
