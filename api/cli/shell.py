"""``tacit shell``: SQL and dot commands, with the price shown before it is paid."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import typer
from rich.text import Text
from tacit.errors import Error

from .exits import code_of, show_error
from .line_reader import PipeReader, Reader, TerminalReader, ask_terminal
from .opened import connected
from .shared_options import Analyst, Delta, Format, OutputFormat, PolicyFile, Quiet, number
from .shell_session import COMMANDS, Session
from .terminal import Notes, console, is_watched


def shell(
    db: Annotated[
        str,
        typer.Argument(
            metavar="DB", envvar="TACIT_DB", help="DuckDB, parquet or csv file, folder, or postgresql:// URL."
        ),
    ],
    policy: PolicyFile = None,
    analyst: Analyst = None,
    epsilon: Annotated[
        Decimal | None, typer.Option(parser=number, metavar="ε", help="Spend this on each entry, without asking.")
    ] = None,
    delta: Delta = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Spend without asking: the policy's spend, or 0.1 where it states none.")
    ] = False,
    how: OutputFormat = Format.table,
    quiet: Quiet = False,
) -> None:
    """Type SQL, see what an answer would be worth, and decide.

    An entry ends with a semicolon; several statements in one entry are one batch. The predicted error and the cost
    are shown, and nothing is spent before you agree, unless --epsilon, --yes or .epsilon has said so. From a pipe,
    entries are read line by line, and the first error ends it.

    \b
    Example:
      tacit shell clinic.duckdb
      echo "SELECT count(*) FROM visits;" | tacit shell clinic.duckdb --yes
    """
    say = Notes(quiet)
    watched = is_watched()
    with connected(db, policy, analyst, say) as con:
        session = Session(
            con,
            how=how,
            say=say,
            epsilon=epsilon,
            delta=delta or Decimal(0),
            agreed=yes or epsilon is not None,
            ask=ask_terminal if watched else None,
        )
        reader: Reader = TerminalReader(con.catalog, COMMANDS) if watched else PipeReader()
        if watched and not quiet:
            tables = len(con.catalog.tables)
            console(error=True).print(
                Text(f"{tables} table{'s' * (tables != 1)}, left ε={con.budget.left.epsilon:f}. "
                     "SQL ends with ;  .help lists commands, .quit ends.", style="dim")
            )  # fmt: skip
        for entry in reader.entries():
            try:
                if not session.run(entry):
                    return
            except KeyboardInterrupt:
                if not watched:
                    raise
                console(error=True).print("stopped; what was paid for and not shown costs nothing when asked again")
            except Error as error:
                show_error(str(error))
                if not watched:
                    raise typer.Exit(code_of(error)) from None
        session.end()
