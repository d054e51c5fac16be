"""``tacit shell``: what it spends and when, from a pipe and in a terminal."""

from __future__ import annotations

import os
import pty
import select
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tacit
from prompt_toolkit.document import Document
from tacit.cli.line_reader import completer, history_file
from tacit.cli.shell_session import COMMANDS

from .conftest import Run

SHELL = ("shell", "shop.duckdb", "-q")


def spent() -> float:
    with tacit.connect("shop.duckdb", policy="shop.toml") as con:
        return float(con.budget.spent.epsilon)


def test_nothing_is_spent_from_a_pipe_that_nobody_allowed(run: Run) -> None:
    done = run(*SHELL, stdin="SELECT count(*) AS n\nFROM orders;\nSELECT 1;\n")
    assert done.exit_code == 2 and "whether to pay" in done.stderr and done.stdout == ""
    assert "the count will be within ±" in done.stderr, "the price is shown all the same"
    assert not Path("shop.duckdb.ledger").exists()


@pytest.mark.parametrize("allowed", [("--epsilon", "0.25"), ()])
def test_statements_run_over_lines_and_end_with_a_semicolon(run: Run, allowed: tuple[str, ...]) -> None:
    text = "" if allowed else ".epsilon 0.25\n"
    text += "SELECT count(*) AS n -- one; two\nFROM orders\nWHERE item <> ';';\n.format csv\n"
    text += "SELECT count(*) AS m FROM orders;"
    done = run(*SHELL, *allowed, stdin=text)
    assert done.exit_code == 0, done.stderr
    assert " n " in done.stdout and done.stdout.splitlines()[-2].startswith("m,")
    assert spent() == 0.5


def test_yes_spends_what_the_policy_says(run: Run) -> None:
    Path("shop.toml").write_text(Path("shop.toml").read_text().replace("[budget]", "[budget]\nspend = 0.125"))
    assert run(*SHELL, "--yes", stdin="SELECT count(*) FROM orders;").exit_code == 0
    assert spent() == 0.125


def test_what_is_collected_is_one_batch(run: Run) -> None:
    text = ".epsilon 0.5\n.batch\nSELECT count(*) AS a FROM orders WHERE price < 9;\n"
    text += "SELECT count(*) AS b FROM orders WHERE price < 20;\n.go\n"
    done = run(*SHELL, stdin=text)
    assert done.exit_code == 0 and " a " in done.stdout and " b " in done.stdout and spent() == 0.5


def test_dot_commands(run: Run) -> None:
    Path("q.sql").write_text("SELECT count(*) AS n FROM orders")
    text = ".tables\n.schema orders\n.budget\n.explain SELECT count(*) FROM orders;\n"
    text += ".epsilon 0.1\n.read q.sql\n.quit\n.foo"
    done = run(*SHELL, stdin=text)
    assert done.exit_code == 0, done.stderr
    for words in ("customer_id, at most 2 rows of each", "nothing: public", "rice, tea, other", "everyone", "cell"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert all(name in run(*SHELL, stdin=".help").stdout for name in COMMANDS[:10])


def test_the_first_error_of_a_pipe_ends_it_with_its_code(run: Run) -> None:
    done = run(*SHELL, "--epsilon", "0.1", stdin="SELECT count(*) FROM order;\nSELECT count(*) FROM orders;")
    assert done.exit_code == 1 and "^^^^^" in done.stderr and not Path("shop.duckdb.ledger").exists()
    assert run(*SHELL, "--epsilon", "9", stdin="SELECT count(*) FROM orders;").exit_code == 3
    assert "hint: .help" in run(*SHELL, stdin=".foo").stderr


def test_the_history_is_its_owners(folder: Path) -> None:
    path = history_file()
    assert path is not None and path.is_relative_to(folder / "state")
    path.chmod(0o644)
    assert history_file() == path and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_names_are_completed(folder: Path) -> None:
    with tacit.connect("shop.duckdb", policy="shop.toml") as con:
        words = completer(con.catalog, COMMANDS)
    for typed, expected in {
        "SELECT 1 FROM ord": "orders",
        "SELECT cust": "customer_id",
        "sel": "SELECT",
        ".ep": ".epsilon",
    }.items():
        found = [c.text for c in words.get_completions(Document(typed), None)]  # type: ignore[arg-type]
        assert expected in found, typed


def test_in_a_terminal_it_asks_before_it_spends(folder: Path) -> None:
    """One real terminal: the price is shown, no is the default, yes pays, Ctrl-D ends."""
    screen = Terminal("shell", "shop.duckdb")
    screen.until("tacit>")
    screen.type("SELECT count(*) AS n FROM orders;\r")
    assert "the count will be within ±" in screen.until("another ε]")
    screen.type("\r")
    screen.until("nothing was spent")
    screen.until("tacit>")
    screen.type("SELECT count(*) AS n FROM orders;\r")
    screen.until("another ε]")
    screen.type("0.5\r")
    screen.until("Spend ε=0.5?")
    screen.type("y\r")
    screen.until("left ε=1.5")
    screen.until("tacit>")
    screen.type("\x04")
    assert screen.ended() == 0 and spent() == 0.5
    assert "SELECT count(*) AS n FROM orders;" in Path("state/tacit/history").read_text()


class Terminal:
    """A command in a terminal of 80 columns."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "40", "NO_COLOR": "1",
                       "PROMPT_TOOLKIT_NO_CPR": "1"}  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tacit", *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self._text = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, words: str, seconds: float = 60.0) -> str:
        """What was shown up to these words; what comes after them is kept for the next call."""
        end = time.monotonic() + seconds
        while words not in self._text:
            ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{words!r} did not come: {self._text!r}"
            self._text += os.read(self._master, 65536).decode(errors="replace")
        shown, _, self._text = self._text.partition(words)
        return shown

    def ended(self) -> int:
        code = self._process.wait(30)
        os.close(self._master)
        return code
