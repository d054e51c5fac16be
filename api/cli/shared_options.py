"""The options that several commands share, each written once."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How answers are written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    markdown = "markdown"


def number(text: str) -> Decimal:
    """An option's number, exactly as it was typed."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter(f"{text!r} is not a number") from None


def real(text: str | float) -> float:
    """An option's number, where it need not be exact."""
    return text if isinstance(text, float) else float(number(text))


Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="DB",
        envvar="TACIT_DB",
        help="DuckDB file, parquet or csv file, folder of parquet files, or postgresql:// URL.",
    ),
]
PolicyFile = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        envvar="TACIT_POLICY",
        help="The policy; else NAME.toml beside the database, if it is there.",
    ),
]
Analyst = Annotated[str | None, typer.Option(metavar="NAME", help="Ask as this analyst, under their own cap.")]
Epsilon = Annotated[
    Decimal | None,
    typer.Option(parser=number, metavar="ε", help="What the batch may cost; else the policy's spend."),
]
Delta = Annotated[
    Decimal | None,
    typer.Option(parser=number, metavar="δ", help="Above 0, Gaussian noise may be used; 0 unless said."),
]
Confidence = Annotated[float, typer.Option(parser=real, metavar="P", help="How sure the intervals are.")]
Discover = Annotated[bool, typer.Option("--discover", help="Buy the groups and ranges that nobody declared.")]
Strategy = Annotated[str | None, typer.Option(metavar="NAME", help="Force one by name; see `tacit strategies`.")]
PlanSeconds = Annotated[
    float | None, typer.Option(parser=real, metavar="SECONDS", help="Search no longer than this for a plan.")
]
OutputFormat = Annotated[
    Format, typer.Option("--format", "-f", metavar="FORMAT", help="table, csv, json, parquet or markdown.")
]
FileFormat = Annotated[
    Format | None,
    typer.Option(
        "--format", "-f", metavar="FORMAT",
        help="table, csv, json, parquet or markdown; else what the name after -o ends in, or table.",
    ),
]  # fmt: skip
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No remarks on stderr, only errors.")]
Sql = Annotated[str, typer.Argument(metavar="FILE.sql|-", help="A file with the queries, or - for stdin.")]
