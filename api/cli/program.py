"""The command ``tacit``: its commands, and the door through which each of them ends.

Exit codes: 0 fine; 1 refused, or a check has found something; 2 wrong usage; 3 it costs more than is left;
4 a defect of tacit; 130 stopped by Ctrl-C; 141 nobody reads the output any more.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from tacit import __version__
from typer.core import TyperGroup

from . import batch_commands, books, check, demo, init, shell, strategy_list
from .exits import UsageProblem, reported

_SERVER = {
    "serve": "Answer over HTTP: one process holds the data and the ledger.",
    "token": "Make, list and revoke the tokens that analysts connect with.",
}
"""Commands of the server, which has dependencies of its own: loaded when one of them is called."""


_ORDER = ["demo", "init", "check", "explain", "answer", "budget", "ledger", "strategies", "shell", "serve", "token"]


class Program(TyperGroup):
    """All commands. Whatever ends one becomes words and an exit code here."""

    def invoke(self, ctx: Any) -> Any:
        with reported():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_ORDER)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _SERVER:
            return _command(_missing_server(cmd_name), cmd_name, _SERVER[cmd_name])
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        found = _server_command(args[0]) if args[0] in _SERVER else None
        return (args[0], found, args[1:]) if found is not None else super().resolve_command(ctx, args)


def _server_command(name: str) -> Any:
    """The command as the server has it; None where the server, or what it needs, is not installed."""
    try:
        commands = import_module("tacit.server.commands")
    except ImportError:
        return None
    return typer.main.get_group(commands.app).commands.get(name)


def _missing_server(name: str) -> Any:
    def missing() -> None:
        raise UsageProblem(f"tacit {name} needs the server\nhint: pip install 'tacit[server]'")

    return missing


def _command(function: Any, name: str, text: str) -> Any:
    one = typer.Typer(add_completion=False)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    one.command(name, help=text, context_settings=settings)(function)
    return typer.main.get_command(one)


app = typer.Typer(
    cls=Program,
    name="tacit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="First steps: tacit demo. With your own data: tacit init DB. "
    "--db and --policy can be set once, as TACIT_DB and TACIT_POLICY.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


@app.callback()
def tacit(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Answer batches of SQL queries under differential privacy.

    What an answer will be worth is known before it is paid for.
    """


app.command()(demo.demo)
app.command()(init.init)
app.command()(check.check)
app.command()(batch_commands.explain)
app.command()(batch_commands.answer)
app.command()(shell.shell)
app.command()(books.budget)
app.add_typer(books.ledger, name="ledger")
app.command()(strategy_list.strategies)


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no ε still gets the rest
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app(prog_name="tacit")
