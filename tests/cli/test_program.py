"""The command itself: what it loads, how it ends, what its help says."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from tacit.cli import demo, program
from tacit.cli.exits import code_of, styled
from tacit.errors import BudgetError, InternalError, PolicyError

from .conftest import POLICY, Run

DOCUMENT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


def paths(command: Any = None, name: str = "") -> Iterator[str]:
    """Every command, with its groups: ``ledger show``."""
    command = command or typer.main.get_command(program.app)
    for inner in command.list_commands(typer.Context(command)) if hasattr(command, "commands") else ():
        yield from paths(command.get_command(typer.Context(command), inner), f"{name} {inner}".strip())
    if name:
        yield name


ALL = sorted(paths())
OWN = [path for path in ALL if path.split()[0] not in program._SERVER]


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, **options)


def test_all_commands_are_there() -> None:
    names = "demo init check explain answer budget ledger strategies shell serve token"
    assert {path.split()[0] for path in ALL} == set(names.split())
    assert {"ledger show", "ledger verify", "ledger raise", "ledger backup"} <= set(ALL)


@pytest.mark.parametrize("path", OWN)
def test_help_fits_and_shows_an_example(run: Run, path: str) -> None:
    done = run(*path.split(), "--help")
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert f"Example:\n    tacit {path}" in done.stdout or f"Example: tacit {path}" in done.stdout


def test_every_command_is_documented() -> None:
    """Its help in full; the server's commands, which are documented with the server, by name."""
    assert not [path for path in OWN if f"$ tacit {path} --help\n" not in DOCUMENT]
    assert not [path for path in ALL if f"tacit {path}" not in DOCUMENT]


def test_help_loads_neither_frames_nor_a_database() -> None:
    code = (
        "import sys; from tacit.cli.program import app; from typer.testing import CliRunner; "
        "assert 'shell' in CliRunner().invoke(app, ['--help']).stdout; "
        "print(*{'pandas', 'numpy', 'scipy', 'duckdb', 'sqlglot', 'prompt_toolkit'} & set(sys.modules))"
    )
    done = python("-c", code)
    assert (done.stdout.split(), done.stderr) == ([], "")


def test_help_takes_no_longer_than_importing_pandas() -> None:
    def seconds(*arguments: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    pairs = [(seconds("-m", "tacit", "--help"), seconds("-c", "import pandas")) for _ in range(3)]
    assert min(ours for ours, _ in pairs) <= min(theirs for _, theirs in pairs)


def test_the_version() -> None:
    done = python("-m", "tacit", "--version")
    assert done.stdout.startswith("tacit 0.") and done.returncode == 0


def test_without_its_extra_it_says_what_to_install() -> None:
    done = python("-c", "import sys; sys.modules['typer'] = None; from tacit.__main__ import main; main()")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the command line needs typer\nhint: pip install 'tacit[cli]'\n"


def test_the_servers_commands_are_loaded_when_they_are_called(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    server = typer.Typer()

    @server.command()
    def serve(port: int = 1) -> None:
        typer.echo(f"port {port}")

    @server.command()
    def token() -> None:
        typer.echo("a token")

    monkeypatch.setitem(sys.modules, "tacit.server.commands", SimpleNamespace(app=server))
    assert run("serve", "--port", "7").stdout == "port 7\n" and run("token").stdout == "a token\n"
    monkeypatch.setitem(sys.modules, "tacit.server.commands", None)
    done = run("serve", "--port", "7")
    assert done.exit_code == 2 and "pip install 'tacit[server]'" in done.stderr


def test_wrong_usage_is_two(run: Run) -> None:
    done = run("answr")
    assert done.exit_code == 2 and "Did you mean 'answer'" in done.stderr


def test_exit_codes() -> None:
    nothing: Any = (0, 0)
    assert code_of(BudgetError("", asked=nothing, left=nothing)) == 3
    assert code_of(PolicyError("")) == 1 and code_of(InternalError("")) == 4


def test_a_defect_is_told_from_a_mistake(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.cli.batch_commands.read_sql", lambda _: {}["a secret"])
    done = run("answer", "one.sql", "--db", "shop.duckdb")
    assert done.exit_code == 4 and "KeyError" in done.stderr and "secret" not in done.output


def test_ctrl_c_ends_without_a_traceback(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", "answer", "-", "--db", "shop.duckdb"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it for what runs behind it
    )  # fmt: skip
    assert process.stdin is not None
    while not _reads_stdin(process.pid):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in err and out == ""


def _reads_stdin(pid: int) -> bool:
    """Whether the process waits for what nobody types: its imports are done then."""
    try:
        return Path(f"/proc/{pid}/syscall").read_text().startswith("0 0x0 ")
    except OSError:
        return False


def test_a_reader_that_stops_reading_is_no_error() -> None:
    command = f"{shlex.quote(sys.executable)} -m tacit strategies | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (141, "")


def test_colours_only_where_somebody_watches(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in run("check", "nothing.toml", "shop.duckdb").output
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in run("check", "nothing.toml", "shop.duckdb").stderr
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31" not in run("check", "nothing.toml", "shop.duckdb").stderr


def test_long_errors_are_wrapped() -> None:
    text = styled("word " * 40 + "\nhint: " + "word " * 40, "error", 80).plain
    assert max(map(len, text.splitlines())) <= 80


def test_the_books(run: Run) -> None:
    shop = ("--db", "shop.duckdb")
    assert "nothing was spent yet" in " ".join(run("ledger", "show", "shop.duckdb").stderr.split())
    assert run("answer", "one.sql", *shop, "--epsilon", "0.5").exit_code == 0
    assert run("budget", *shop, "-f", "csv").stdout.splitlines()[1] == "everyone,0.5,2.0,1.5,0,1e-06,1e-06"
    shown = run("ledger", "show", "shop.duckdb").stdout
    assert "charge" in shown and "release" in shown
    assert "sound, 4 entries" in run("ledger", "verify", *shop).stderr
    assert run("ledger", "raise", "shop.duckdb", "--epsilon", "5").exit_code == 2, "nobody can be asked"
    assert run("ledger", "raise", "shop.duckdb", "--epsilon", "5", "--yes").exit_code == 0
    assert run("ledger", "raise", "shop.duckdb", "--epsilon", "3", "--yes").exit_code == 2, "never lowered"
    assert run("ledger", "backup", "copy.ledger", "shop.duckdb").exit_code == 0
    assert run("ledger", "backup", "copy.ledger", "shop.duckdb").exit_code == 1, "never overwritten"
    assert run("ledger", "verify", "copy.ledger").exit_code == 0
    Path("copy.ledger").write_bytes(Path("copy.ledger").read_bytes()[:5000])
    assert run("ledger", "verify", "copy.ledger").exit_code == 1
    text = Path("shop.toml").read_text()
    Path("shop.toml").write_text(text.replace("max_rows_per_unit = 2", "max_rows_per_unit = 3"))
    refused = run("budget", *shop)
    assert refused.exit_code == 1 and "tacit ledger policy" in " ".join(refused.stderr.split())
    assert run("ledger", "policy", "shop.toml", "shop.duckdb", "--yes").exit_code == 0
    assert run("budget", *shop).exit_code == 0


def test_strategies_are_listed(run: Run) -> None:
    from tacit.engine import strategies

    assert tuple(run("strategies", "--names").stdout.split()) == strategies()
    assert max(map(len, run("strategies").stdout.splitlines())) <= 80


def test_the_demo_needs_nothing_but_the_package(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    build = demo.build_clinic

    def small(folder: Path) -> Path:
        database = build(folder)
        queries = (folder / "clinic.sql").read_text()
        assert queries.count("SELECT") == 46
        (folder / "clinic.sql").write_text("SELECT state, count(*) AS n FROM patients GROUP BY state")
        return database

    monkeypatch.setattr(demo, "build_clinic", small)
    done = run("demo", "--keep", "kept")
    assert done.exit_code == 0, done.stderr
    assert "state=NY" in done.stdout and max(map(len, done.stdout.splitlines())) <= 80
    assert sorted(os.listdir("kept"))[:2] == ["clinic.duckdb", "clinic.duckdb.ledger"]
    assert run("demo", "--keep", "kept").exit_code == 2


def test_the_delta_alone_can_be_raised(run: Run) -> None:
    Path("shop.toml").write_text(POLICY.replace("delta = 1e-6", "delta = 0"))
    assert run("answer", "one.sql", "--db", "shop.duckdb", "--epsilon", "0.5").exit_code == 0
    Path("shop.toml").write_text(POLICY)
    done = run("budget", "--db", "shop.duckdb")
    assert done.exit_code == 1 and "tacit ledger raise" in " ".join(done.stderr.split())
    assert run("ledger", "raise", "shop.duckdb", "--yes").exit_code == 2
    assert run("ledger", "raise", "shop.duckdb", "--delta", "1e-6", "--yes").exit_code == 0
    assert run("budget", "--db", "shop.duckdb").exit_code == 0
