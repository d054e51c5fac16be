"""``tacit explain`` and ``tacit answer``: what a batch would be worth, and the batch itself."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from .exits import UsageProblem, as_options
from .formats import format_for, left_out, plan_bytes, written, written_apart
from .opened import connected, read_sql
from .outfile import Output
from .shared_options import (
    Analyst,
    Confidence,
    Db,
    Delta,
    Discover,
    Epsilon,
    FileFormat,
    Format,
    PlanSeconds,
    PolicyFile,
    Quiet,
    Sql,
    Strategy,
)
from .tables import answer_tables
from .targets import Error, ShownSize, Size, sizes_for
from .terminal import WIDTH, Notes, console

if TYPE_CHECKING:
    from tacit import Answers, Connection, Plan

_MORE = "more: --all explains, --format csv has every figure"


OutputFile = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write here; FOLDER/ gets a file for each query."),
]


def explain(
    sql: Sql,
    db: Db = None,
    policy: PolicyFile = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    error: Error = None,
    confidence: Confidence = 0.95,
    analyst: Analyst = None,
    discover: Discover = False,
    strategy: Strategy = None,
    plan_seconds: PlanSeconds = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything: each query, the alternatives, the gap.")] = False,
    size: ShownSize = None,
    format_: FileFormat = None,
    output: OutputFile = None,
    quiet: Quiet = False,
) -> None:
    """Say what a batch would cost and how exact it would be. Free.

    No private row is read and nothing is spent.

    \b
    Example:
      tacit explain report.sql --db clinic.duckdb --epsilon 0.5
      tacit explain report.sql --db clinic.duckdb --error 10
      tacit explain report.sql --db clinic.duckdb --error 5% --size 2000
    """
    say, how = Notes(quiet), format_for(format_, output)
    batch, sizes = read_sql(sql), sizes_for(error, size, shown=True)
    with Output(output, how) as out, connected(db, policy, analyst, say) as con:
        plan = con.explain(
            batch,
            epsilon=epsilon,
            delta=delta,
            error=error,
            sizes=sizes,
            confidence=confidence,
            discover=discover,
            strategy=strategy,
            plan_seconds=plan_seconds,
        )
        if how is Format.table:
            out.write(f"{plan_text(plan, everything=all_, size=size)}\n".encode())
        else:
            out.write(plan_bytes(plan, how, size))


def answer(
    sql: Sql,
    db: Db = None,
    policy: PolicyFile = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    error: Error = None,
    size: Size = None,
    confidence: Confidence = 0.95,
    analyst: Analyst = None,
    discover: Discover = False,
    strategy: Strategy = None,
    plan_seconds: PlanSeconds = None,
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="No estimated count below zero.")] = False,
    integer: Annotated[bool, typer.Option("--integer", help="Round every figure.")] = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="Buy new noise, whatever was released before.")] = False,
    format_: FileFormat = None,
    output: OutputFile = None,
    quiet: Quiet = False,
) -> None:
    """Answer a batch of queries together, and pay for it.

    What was answered before costs nothing. The output is written whole or not at all, and whether it can be
    written is found out before anything is paid for. Of several queries, csv and parquet hold one long table
    with a query column; -o FOLDER/ writes a file for each query instead.

    \b
    Example:
      tacit answer report.sql --db clinic.duckdb --epsilon 0.5
      tacit answer report.sql --db clinic.duckdb --error 10 -o report.csv
      echo "SELECT count(*) FROM visits" | tacit answer - --epsilon 0.1
    """
    say, how = Notes(quiet), format_for(format_, output)
    batch, sizes = read_sql(sql), sizes_for(error, size, shown=False)
    with Output(output, how) as out, connected(db, policy, analyst, say) as con:
        answers = con.answer(
            batch,
            epsilon=epsilon,
            delta=delta,
            error=error,
            sizes=sizes,
            confidence=confidence,
            discover=discover,
            strategy=strategy,
            plan_seconds=plan_seconds,
            nonnegative=nonnegative,
            integer=integer,
            refresh=refresh,
        )
        write_answers(answers, how, out, say)
        for found in answers.discovered:
            say(str(found))
        say(cost_line(con, answers))


def write_answers(answers: Answers, how: Format, out: Output, say: Notes) -> None:
    """Write what was answered; it is in the ledger, so a failure here loses nothing but the file."""
    try:
        if how is not Format.table:
            if how in (Format.csv, Format.parquet) and len(answers) > 1 and not out.is_folder:
                for name in left_out(answers):
                    say(f"note: {name} is no number and not in the long table; -o FOLDER/ has it", style="yellow")
            out.write(written_apart(answers, how) if out.is_folder else written(answers, how))
        elif out.is_stdout:
            screen = console()
            for part in answer_tables(answers, screen.width):
                screen.print(part)
        else:
            text = io.StringIO()
            screen = Console(file=text, width=console().width, highlight=False)
            for part in answer_tables(answers, screen.width):
                screen.print(part)
            out.write(text.getvalue().encode())
    except OSError as problem:
        if isinstance(problem, BrokenPipeError):
            raise
        raise UsageProblem(
            f"the answers could not be written: {(problem.strerror or 'no place').lower()}\n"
            "hint: they are kept; the same command again, with another -o, costs nothing"
        ) from None


def cost_line(con: Connection, answers: Answers) -> str:
    """What was paid, and what is left."""
    left = con.budget.left
    price = f"ε={answers.cost.epsilon:f}" + (f", δ={answers.cost.delta:g}" if answers.cost.delta else "")
    paid = f"cost {price}" if any(answers.cost) else "cost nothing: released before, or public"
    return f"{paid}; left ε={left.epsilon:f}, δ={float(left.delta):g}"


def plan_text(plan: Plan, *, everything: bool = False, size: Any = None) -> str:
    """A plan in words: first the sentence that an analyst needs."""
    from tacit.plan_text import HINT

    first, *rest = plan.text(all=everything, size=size).replace(HINT, _MORE).splitlines()
    lines = textwrap.wrap(first, WIDTH)
    for line in rest:
        # Words about the plan, and not the table, which quotes SQL.
        said = as_options(line) if line.startswith(("[", "- ", "  ")) else line
        lines += textwrap.wrap(said, WIDTH, subsequent_indent="    ") if len(said) > WIDTH else [said]
    return "\n".join(lines)
