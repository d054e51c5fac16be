"""``tacit check``: everything that is wrong with a policy, and what looks wrong, before anybody relies on it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from tacit.errors import PolicyError

from .advice import advice
from .exits import REFUSED, UsageProblem, styled
from .findings import Finding, review
from .opened import is_url
from .shared_options import Quiet
from .terminal import Notes, console


class ReportFormat(StrEnum):
    """How findings are written."""

    text = "text"
    json = "json"


def check(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The policy, a TOML file.")],
    db: Annotated[
        str,
        typer.Argument(
            metavar="DB", envvar="TACIT_DB", help="DuckDB, parquet or csv file, folder, or postgresql:// URL."
        ),
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    how: Annotated[
        ReportFormat, typer.Option("--format", "-f", metavar="FORMAT", help="text, or json for programs.")
    ] = ReportFormat.text,
    quiet: Quiet = False,
) -> None:
    """Check a policy against a database: all that is wrong, at once.

    Each finding says where it is and what to write. Likely mistakes are warnings. Only the schema is read, no row.
    Ends with 1 if there are errors, with --strict also if there are warnings.

    \b
    Example:
      tacit check clinic.toml clinic.duckdb
    """
    try:
        text = policy.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PolicyError(f"the policy {policy.name!r} is not UTF-8 text\nhint: save it as a TOML file") from None
    except OSError as error:
        raise UsageProblem(
            f"the policy {str(policy)!r} cannot be read: {(error.strerror or '').lower()}\n"
            f"hint: tacit init {'DB' if is_url(db) else db} writes one"
        ) from None
    found = findings(text, policy.name, db, policy.parent)
    if how is ReportFormat.json:
        import json

        typer.echo(json.dumps([asdict(finding) for finding in found], ensure_ascii=False, indent=2))
    else:
        print_findings(found, str(policy))
    errors = sum(finding.level == "error" for finding in found)
    Notes(quiet)(_summary(str(policy), errors, len(found) - errors), style="green" if not found else "")
    if errors or (strict and found):
        raise typer.Exit(REFUSED)


def findings(text: str, name: str, db: str, folder: Path) -> list[Finding]:
    """Errors, and where the policy could be read through, warnings; in the order of its lines."""
    reviewed = review(text, name, db, folder)
    found = list(reviewed.findings)
    if reviewed.policy is not None and reviewed.catalog is not None:
        wrong = {finding.path for finding in found}
        warnings = advice(reviewed.policy, reviewed.catalog, text, tomllib.loads(text))
        found += [warning for warning in warnings if f"{warning.path}.privacy_unit" not in wrong]
    return sorted(found, key=lambda finding: (finding.line == 0, finding.line))


def print_findings(found: Sequence[Finding], file: str) -> None:
    """One paragraph for each."""
    screen = console()
    for finding in found:
        place = f"{file}:{finding.line}: " if finding.line else ""
        message = finding.message.removeprefix(f"{Path(file).name}: ")
        words = f"{place}{message}" + (f"\nhint: {finding.hint}" if finding.hint else "")
        screen.print(styled(words, finding.level, screen.width), soft_wrap=True)


def _summary(file: str, errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return f"{file}: nothing is wrong"
    return f"{file}: {errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
