"""``tacit demo``: a generated clinic, a batch over it, and what each simpler way would have cost in accuracy."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tacit
import typer
from rich.table import Table
from rich.text import Text

from .exits import UsageProblem
from .shared_options import Quiet, number
from .tables import new_table
from .terminal import Notes, console

if TYPE_CHECKING:
    from tacit import Answers, Plan

_ALTERNATIVES = {
    "split": "budget\nsplit",
    "results": "noise on\nresults",
    "histogram": "noisy\nhistogram",
}

_LABEL = 30
"""Of a figure, so that a line has 80 columns."""


def demo(
    epsilon: Annotated[
        Decimal, typer.Option(parser=number, metavar="ε", help="What the batch may cost, of 3 in all.")
    ] = Decimal("1.0"),
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep database, policy and queries, to go on with.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Answer 46 queries over a generated clinic, and compare.

    \b
    Example:
      tacit demo
      tacit demo --keep clinic && tacit shell clinic/clinic.duckdb
    """
    say = Notes(quiet)
    if keep is None:
        with tempfile.TemporaryDirectory() as folder:
            _answer(Path(folder), epsilon, say)
        return
    if keep.exists() and any(keep.iterdir()):
        raise UsageProblem(f"the folder {str(keep)!r} is not empty\nhint: name a new one")
    keep.mkdir(parents=True, exist_ok=True)
    _answer(keep, epsilon, say)
    say(f"\nKept in {keep}. Next: tacit shell {keep / 'clinic.duckdb'}")


def build_clinic(folder: Path) -> Path:
    """Write database, policy and queries into a folder; returns the path of the database."""
    from .clinic import build

    for name in ("clinic.toml", "clinic.sql"):
        (folder / name).write_text((files(__package__) / name).read_text(encoding="utf-8"), encoding="utf-8")
    build(folder / "clinic.duckdb")
    return folder / "clinic.duckdb"


def _answer(folder: Path, epsilon: Decimal, say: Notes) -> None:
    say("building a clinic of 40,000 patients and planning 46 queries: up to half a minute")
    database = build_clinic(folder)
    batch = (folder / "clinic.sql").read_text(encoding="utf-8")
    with tacit.connect(database, policy=folder / "clinic.toml") as con:
        plan = con.explain(batch, epsilon=epsilon)
        answers = con.answer(batch, epsilon=epsilon)
        left = con.budget.left.epsilon
    screen = console()
    screen.print(_comparison(plan, answers))
    screen.print(Text("On the right: the ± of simpler ways at the same ε. Over the whole batch:"))
    for name, words in _ALTERNATIVES.items():
        times = (plan.alternatives[name] / plan.error) ** 0.5
        screen.print(Text(f"  {words.replace(chr(10), ' '):16} {times:7.2f} times the error of tacit's plan"))
    screen.print(
        Text(f"Spent ε = {answers.cost.epsilon}; left for ever: ε = {left}. The same batch again costs nothing.")
    )


def _comparison(plan: Plan, answers: Answers) -> Table:
    from tacit.display import cut_inside

    predicted = plan.df()
    table = new_table(["query", "answer", "± 95%", *_ALTERNATIVES.values()], left=1)
    for column in table.columns[1:]:
        column.no_wrap = True
    for column in table.columns[3:]:
        column.style = "dim"
    ratio = (predicted["half_width"] / predicted["stderr"]).fillna(1.0)
    rows: Any = answers.df().itertuples()
    for i, row in enumerate(rows):
        label = cut_inside(f"{row.column} {row.group}" if row.group else str(row.column), _LABEL)
        widths = [_number(float(predicted[name][i] * ratio[i])) for name in _ALTERNATIVES]
        table.add_row(label, _number(float(row.value)), _number(float((row.high - row.low) / 2)), *widths)
    return table


def _number(value: float) -> str:
    if value != value:
        return "–"
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.0f}M" if abs(value) >= 1e8 else f"{value / 1e6:,.1f}M"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"
