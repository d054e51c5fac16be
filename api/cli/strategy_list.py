"""``tacit strategies``: the names that ``--strategy`` takes."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from .tables import new_table
from .terminal import console


def strategies(
    names: Annotated[bool, typer.Option("--names", help="Only the names, one on each line.")] = False,
) -> None:
    """List the strategies that --strategy can force.

    Without --strategy all that suit the batch are tried, and the best is taken.

    \b
    Example:
      tacit strategies
    """
    from tacit.engine import strategy_descriptions

    described = strategy_descriptions()
    if names:
        typer.echo("\n".join(described))
        return
    table = new_table(["name", "what it asks"], left=2)
    for name, text in described.items():
        table.add_row(Text(name, style="bold"), text)
    console().print(table)
