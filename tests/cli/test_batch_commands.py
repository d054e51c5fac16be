"""``tacit answer`` and ``tacit explain``: formats, places, prices, and how each of them ends."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import duckdb
import pandas as pd
import pytest
import tacit
from tacit.cli import batch_commands, outfile
from typer.testing import Result

from .conftest import Run

SHOP = ("--db", "shop.duckdb")


def spent(folder: Path) -> float:
    with tacit.connect(folder / "shop.duckdb", policy=folder / "shop.toml") as con:
        return float(con.budget.spent.epsilon)


def fine(result: Result) -> Result:
    assert result.exit_code == 0, result.stderr
    return result


def test_an_answer_costs_what_was_said_and_the_same_again_nothing(run: Run, folder: Path) -> None:
    first = fine(run("answer", "two.sql", *SHOP, "--epsilon", "0.5"))
    assert "dear" in first.stdout and "rice" in first.stdout and "±" in first.stdout
    assert "cost ε=0.5; left ε=1.5" in first.stderr
    again = fine(run("answer", "two.sql", *SHOP, "--epsilon", "0.5", "--quiet"))
    assert (again.stdout, again.stderr) == (first.stdout, "")
    assert spent(folder) == 0.5


def test_one_query_is_written_as_its_own_frame(run: Run) -> None:
    text = fine(run("answer", "one.sql", *SHOP, "--epsilon", "1", "-f", "csv")).stdout
    frame = pd.read_csv(io.StringIO(text), keep_default_na=False)
    assert list(frame["item"]) == ["rice", "tea", "other", "NULL"]
    assert list(frame.columns)[:2] == ["item", "n"]
    assert (frame["n_low"] < frame["n"]).all() and (frame["n"] < frame["n_high"]).all()


def test_several_queries_are_one_long_frame_or_a_folder_of_frames(run: Run, folder: Path) -> None:
    ask = ("answer", "two.sql", *SHOP, "--epsilon", "1")
    long = pd.read_csv(io.StringIO(fine(run(*ask, "-f", "csv")).stdout))
    assert list(long["query"]) == [0, 1, 1, 1, 1]
    fine(run(*ask, "-f", "parquet", "-o", "long.parquet"))
    stored = duckdb.sql("SELECT * FROM 'long.parquet'").df()
    assert list(stored["value"]) == pytest.approx(list(long["value"]))
    fine(run(*ask, "-f", "csv", "-o", "frames/"))
    assert sorted(os.listdir("frames")) == ["query-0.csv", "query-1.csv"]
    assert Path("frames/query-1.csv").read_text().startswith("item,n,")
    refused = run(*ask, "-f", "csv", "-o", "frames")
    assert refused.exit_code == 2 and "is not empty" in refused.stderr


def test_json_and_markdown_have_every_query(run: Run) -> None:
    ask = ("answer", "two.sql", *SHOP, "--epsilon", "1", "-q")
    whole = json.loads(fine(run(*ask, "-f", "json")).stdout)
    assert [len(answer["rows"]) for answer in whole["answers"]] == [1, 4]
    text = fine(run(*ask, "-f", "markdown")).stdout
    assert text.count("\n|---") == 2 and "### query 1" in text


def test_what_a_long_frame_cannot_hold_is_said(run: Run) -> None:
    policy = Path("shop.toml")
    policy.write_text(policy.read_text().replace("price =", "day = { min = 2025-01-01, max = 2025-01-05 }\nprice ="))
    sql = "SELECT max(day) AS last, count(*) AS n FROM orders; SELECT item, count(*) AS n FROM orders GROUP BY item"
    done = fine(run("answer", "-", *SHOP, "--epsilon", "1", "-f", "csv", stdin=sql))
    assert "last of query 0 is no number" in done.stderr and "item of query" not in done.stderr


@pytest.mark.parametrize("place", ["nowhere/x.csv", "shop.duckdb/x.csv"])
def test_a_place_that_cannot_be_written_is_found_before_paying(run: Run, folder: Path, place: str) -> None:
    done = run("answer", "one.sql", *SHOP, "--epsilon", "1", "-f", "csv", "-o", place)
    assert done.exit_code == 2 and "nothing was spent" in " ".join(done.stderr.split())
    assert not Path("shop.duckdb.ledger").exists()


def test_a_file_is_written_whole_or_not_at_all(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = ("answer", "one.sql", *SHOP, "--epsilon", "1", "-f", "csv", "-o", "out.csv")
    Path("out.csv").write_text("before")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        done = run(*ask)
    assert done.exit_code == 2 and "costs nothing" in done.stderr
    assert Path("out.csv").read_text() == "before"
    assert not [name for name in os.listdir() if name.startswith(".out.csv")]
    fine(run(*ask))
    assert Path("out.csv").read_text().startswith("item,n") and spent(folder) == 1.0


def test_a_refused_batch_leaves_the_file_alone(run: Run) -> None:
    Path("out.csv").write_text("before")
    done = run("answer", "one.sql", *SHOP, "--epsilon", "9", "-f", "csv", "-o", "out.csv")
    assert done.exit_code == 3 and "is missing; nothing was charged" in " ".join(done.stderr.split())
    assert Path("out.csv").read_text() == "before"
    assert not [name for name in os.listdir() if name.startswith(".out.csv")]


def test_parquet_is_not_for_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outfile.sys.stdout, "isatty", lambda: True)
    with pytest.raises(tacit.Error, match="not for a terminal"):
        outfile.Output(None, batch_commands.Format.parquet)


def test_sql_errors_show_the_place_on_stderr(run: Run) -> None:
    done = run("answer", "-", *SHOP, "--epsilon", "0.1", stdin="SELECT count(*) FROM orders WHERE prize > 3")
    assert done.exit_code == 1 and done.stdout == ""
    assert done.stderr.splitlines()[1:] == [
        "error: no such column in orders: prize",
        "  SELECT count(*) FROM orders WHERE prize > 3",
        "                                    ^^^^^",
        "hint: did you mean price?",
    ]


def test_carets_stay_in_view_in_80_columns(run: Run) -> None:
    wide = "SELECT count(*) FROM orders WHERE " + " AND ".join(["price < 3"] * 20) + " AND prize > 3 AND price > 1"
    lines = run("answer", "-", *SHOP, "--epsilon", "0.1", stdin=wide).stderr.splitlines()
    assert max(map(len, lines)) <= 80
    line, carets = lines[2], lines[3]
    assert line[carets.index("^") : carets.rindex("^") + 1] == "prize"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("one.sql", "--epsilon", "0.1"), 2, "--db clinic.duckdb, or set TACIT_DB"),
        (("one.sql", *SHOP), 2, "write --epsilon 0.5, or --error 10"),
        (("one.sql", *SHOP, "--epsilon", "0.1", "--error", "5"), 2, "--epsilon and --error were both given"),
        (("one.sql", *SHOP, "--epsilon", "0"), 2, "greater than 0"),
        (("one.sql", *SHOP, "--epsilon", "much"), 2, "'much' is not a number"),
        (("none.sql", *SHOP), 2, "cannot be read"),
        (("SELECT 1", *SHOP), 2, "echo 'SELECT …' | tacit answer -"),
        (("one.sql", "--db", "none.duckdb", "--epsilon", "1"), 1, "no database file"),
        (("one.sql", *SHOP, "--strategy", "best", "--epsilon", "1"), 1, "or leave --strategy out"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_command_line(
    run: Run, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = run("answer", *arguments)
    assert done.exit_code == code
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.output and "con." not in done.stderr and "=True" not in done.stderr


def test_without_a_policy_a_hint_leads_to_one(run: Run) -> None:
    Path("shop.toml").unlink()
    done = run("answer", "-", *SHOP, "--epsilon", "1", stdin="SELECT count(*) FROM orders")
    assert done.exit_code == 1 and "tacit init DB writes such a policy" in " ".join(done.stderr.split())
    assert "every row counts as one person" in done.stderr


def test_explain_is_free_and_asks_for_no_ledger(run: Run) -> None:
    done = fine(run("explain", "two.sql", *SHOP, "--epsilon", "0.5"))
    assert "±" in done.stdout and max(map(len, done.stdout.splitlines())) <= 80
    plan = json.loads(fine(run("explain", "two.sql", *SHOP, "--error", "20", "-f", "json")).stdout)
    assert plan and not Path("shop.duckdb.ledger").exists()


def test_an_error_is_in_percent_or_of_each_query(run: Run) -> None:
    """The same ε as with the half-widths that the percentages come to."""

    def epsilon(*options: str) -> str:
        return str(json.loads(fine(run("explain", "two.sql", *SHOP, *options, "-f", "json")).stdout)["epsilon"])

    everywhere = epsilon("--error", "20")
    assert epsilon("--error", "5%", "--size", "400") == everywhere
    assert epsilon("--error", "20,20") == everywhere == epsilon("--error", "20,5%", "--size", "1,400")
    assert float(epsilon("--error", "20,200")) < float(everywhere) <= float(epsilon("--error", "2,-"))
    done = fine(run("explain", "two.sql", *SHOP, "--error", "5%", "--size", "400"))
    assert "%\n" in done.stdout and max(map(len, done.stdout.splitlines())) <= 80
    fine(run("answer", "two.sql", *SHOP, "--error", "50%,-", "--size", "400"))


def test_an_error_that_cannot_be_promised_says_what_can_be_typed(run: Run) -> None:
    sql = "SELECT avg(price) FROM orders; SELECT count(*) FROM orders"
    done = run("explain", "-", *SHOP, "--error", "9", stdin=sql)
    assert done.exit_code == 2 and "with - in its place, as in --error 50,-" in " ".join(done.stderr.split())
    fine(run("explain", "-", *SHOP, "--error", "-,9", stdin=sql))


def test_public_tables_need_no_price(run: Run) -> None:
    done = fine(run("answer", "-", *SHOP, "-f", "csv", stdin="SELECT item, shelf FROM items ORDER BY shelf"))
    assert done.stdout.splitlines()[1].startswith("rice,1")


def test_the_environment_names_database_and_policy(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("shop.toml").rename("rules.toml")
    monkeypatch.setenv("TACIT_DB", "shop.duckdb")
    monkeypatch.setenv("TACIT_POLICY", "rules.toml")
    fine(run("answer", "one.sql", "--epsilon", "1"))
    assert "everyone" in fine(run("budget")).stdout


@pytest.mark.parametrize(
    ("name", "begins"), [("a.csv", "item,n,"), ("a.json", "{"), ("a.md", "###"), ("a.txt", " query")]
)
def test_the_name_of_a_file_says_its_format(run: Run, folder: Path, name: str, begins: str) -> None:
    assert run("answer", "one.sql", "--db", "shop.duckdb", "--epsilon", "0.5", "-o", name).exit_code == 0
    assert (folder / name).read_text().startswith(begins)


def test_no_word_and_no_number_is_broken(run: Run) -> None:
    """Figures that do not fit beside each other stand in a table of their own."""
    names = [f"the_sum_of_all_prices_{i}" for i in range(5)]
    sums = ", ".join(f"sum(price) AS {name}" for name in names)
    done = run("answer", "-", "--db", "shop.duckdb", "--epsilon", "0.5",
               stdin=f"SELECT item, {sums} FROM orders GROUP BY item")  # fmt: skip
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80 and all(name in done.stdout for name in names)
    tables = [line for line in lines if "item" in line.split()]
    assert len(tables) > 1, "each has the key"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--error", "5%%"), "'5%' is not a number"),
        (("--error", "5%"), "hint: --error 5% --size 2000"),
        (("--error", "5%", "--size", "released"), "hint: --error 5% --size 2000"),
        (("--error", "5", "--size", "2000"), "--size goes with an --error in percent"),
        (("--error", "5%", "--size", "many"), "'many' is not a number"),
        (("--error", "5,6,7"), "--error has 3 entries for 1 query"),
        (("--error", "-"), "--error promises nothing of any query"),
        (("--error", "5,6"), "--error 50,10, --error 50,-, or --error 5% with --size 2000,300"),
        (("-f", "exel"), "'--format' / '-f': 'exel' is not one of"),
    ],
)
def test_wrong_options_are_said_in_plain_words(run: Run, options: tuple[str, ...], words: str) -> None:
    done = run("answer", "one.sql", "--db", "shop.duckdb", *options)
    assert done.exit_code == 2 and words in " ".join(done.stderr.split())
