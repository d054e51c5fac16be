"""The curator's policy: a TOML file, or a dict of the same shape, read into one frozen value.

Whatever is wrong with it is a ``PolicyError`` that names the path of the key and says what to write instead. The keys
of the whole are read here, those of a table in ``policy_table.py``, those of a column in ``policy_column.py``; what it
says about tables meets the database's schema in ``policy_catalog.py``.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from tacit.sql import Limits

from .errors import PolicyError
from .policy_section import PLACEHOLDER, Section, is_integer, kind, policy_error, show
from .policy_server import ServerPolicy, read_server
from .policy_table import TablePolicy, read_table

_RULES = ("sum", "zcdp")

SECTIONS = {
    "trust_schema": "Whether the values of ENUM types and the ranges of CHECK constraints are public: true or false.",
    "accounting": 'How costs of batches add up in a new ledger: "sum" (the default), or "zcdp" for many Gaussian ones.',
    "budget": "All that may ever be spent on these tables.",
    "analysts": "Who may ask, each with a cap; without this section, anybody.",
    "tables": "What is declared of each table. A table that is not named is private, and each row is one unit.",
    "limits": "How long and how wide a batch may be.",
    "log": "What the ledger's log keeps.",
    "server": "How `tacit serve` runs.",
}
BUDGET = {
    "epsilon": "The sum of ε of all batches, ever. A positive number; required.",
    "delta": "The sum of δ of all batches, ever. 0 (the default) allows pure ε only.",
    "spend": "What a batch costs when the call names no ε.",
    "ledger": "The file that keeps the books, seen from the policy's folder; beside the database by default.",
}
ANALYST = {
    "epsilon": "What this analyst may learn in all, of the whole budget; no cap of her own by default.",
    "delta": "The same for δ; that of the whole budget by default.",
}
LOG = {"sql": "Whether the log keeps the text of what was asked, beside its digest: true or false."}


@dataclass(frozen=True)
class Cap:
    """A bound on what may be spent; ``None`` where nothing was said."""

    epsilon: Decimal | None = None
    delta: Decimal | None = None


@dataclass(frozen=True)
class Policy:
    """Everything that the curator has decided."""

    trust_schema: bool = False
    accounting: str | None = None
    """The composition rule of a new ledger, ``sum`` or ``zcdp``; ``None`` where nothing was said."""
    budget: Cap = Cap()
    spend: Decimal | None = None
    analysts: Mapping[str, Cap] | None = None
    """``None`` when there is no such section, and then anyone may ask."""
    tables: Mapping[str, TablePolicy] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    ledger: Path | None = None
    """Where the ledger is; ``None`` where nothing was said, and then it lies beside the database."""
    server: ServerPolicy = field(default_factory=ServerPolicy)
    log_sql: bool = False
    """Whether the ledger's log keeps the text of what was asked, beside its digest."""
    origin: str = "policy"
    """What error messages call it: the file's name."""

    @property
    def types(self) -> dict[str, dict[str, str]]:
        """The declared types by table and column, for files that have none of their own."""
        typed = {
            name: {column: c.type for column, c in table.columns.items() if c.type is not None}
            for name, table in self.tables.items()
        }
        return {name: columns for name, columns in typed.items() if columns}


def load_policy(policy: str | os.PathLike[str] | Mapping[str, Any] | None) -> Policy:
    """Read and check a policy; ``None`` is the policy of a database that has none: its schema is trusted."""
    if policy is None:
        return Policy(trust_schema=True)
    if isinstance(policy, Mapping):
        return read_policy(policy, "policy", None)
    if isinstance(policy, (str, os.PathLike)):
        path = Path(policy)
        return read_policy(_read_toml(path), path.name, path.parent)
    raise PolicyError(f"policy: expected the path of a TOML file or a dict of the same shape, not {kind(policy)}")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PolicyError(f"the policy {path.name!r} is not UTF-8 text; save it as a TOML file") from None
    except (OSError, ValueError):
        raise PolicyError(
            f"the policy file {str(path)!r} cannot be read; give the path of a TOML file, or a dict"
        ) from None
    return parse_toml(text, path.name)


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The text of a policy's file as a dict; an error shows the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(_toml_message(name, text, str(error))) from None


def _toml_message(name: str, text: str, reason: str) -> str:
    lines = text.splitlines() or [""]
    place = re.search(r"\(at line (\d+), column (\d+)\)", reason)
    line, column = (int(place[1]), int(place[2])) if place else (len(lines), len(lines[-1]) + 1)
    shown = lines[line - 1] if line <= len(lines) else ""
    what = reason.split(" (at ")[0]
    if PLACEHOLDER in shown[column - 1 : column + 1]:
        return (
            f"{name}, line {line}: {PLACEHOLDER} is the mark of what is to be written\n"
            f"  {shown}\n  {' ' * (column - 1)}^\n"
            "hint: write a value in its place, such as 0 or 2024-01-31"
        )
    hint = 'a line reads key = value; text stands in "quotes"'
    if what == "Cannot overwrite a value":
        hint = "this name stands above already: keep one line, with everything that is said of it inside its braces"
    return (
        f"{name}, line {line}: not valid TOML: {what[:1].lower()}{what[1:]}\n"
        f"  {shown}\n  {' ' * (column - 1)}^\nhint: {hint}"
    )


def read_policy(raw: Mapping[str, Any], origin: str, folder: Path | None) -> Policy:
    """Check the whole, section by section; ``folder`` is where the file lies."""
    top = Section(raw, origin, "", SECTIONS)
    budget = top.inner("budget", BUDGET)
    if "budget" in top and "epsilon" not in budget:
        budget.refuse("epsilon", "is missing", "write epsilon = 1.0 under [budget]")
    rule = top.get("accounting")
    if rule is not None and rule not in _RULES:
        top.refuse("accounting", f"is {show(rule)}, which is no rule", 'write accounting = "sum" or "zcdp"')
    if rule == "zcdp" and "budget" in top and not budget.get("delta"):
        budget.refuse("delta", "is missing: zcdp states what was spent at this delta", "write delta = 1e-9")
    analysts: dict[str, Cap] | None = None
    if "analysts" in top:
        section = top.inner("analysts", None)
        analysts = {name: _cap(section.inner(name, ANALYST)) for name in section.entries}
        check_analyst_deltas(analysts, rule, origin)
    tables = top.inner("tables", None)
    return Policy(
        trust_schema=top.flag("trust_schema"),
        accounting=rule,
        budget=_cap(budget),
        spend=budget.epsilon("spend"),
        ledger=_ledger(budget, folder),
        analysts=analysts,
        tables={name: read_table(tables, name) for name in tables.entries},
        limits=_limits(top.inner("limits", Limits)),
        server=read_server(top.inner("server", ServerPolicy), folder),
        log_sql=top.inner("log", LOG).flag("sql"),
        origin=origin,
    )


def _ledger(budget: Section, folder: Path | None) -> Path | None:
    """The path of the ledger, which a file names as seen from itself."""
    path = budget.get("ledger")
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)) or not str(path) or "\0" in str(path):
        budget.refuse("ledger", f"must be the path of a file, not {show(path)}", 'write ledger = "visits.ledger"')
    return (folder or Path()) / path


def _cap(section: Section) -> Cap:
    return Cap(section.epsilon("epsilon"), section.delta("delta"))


def _limits(section: Section) -> Limits:
    for key, value in section.entries.items():
        if not is_integer(value) or value < 1:
            section.refuse(key, f"must be a positive integer, not {show(value)}", f"write {key} = 1000")
    return Limits(**section.entries)


def check_analyst_deltas(analysts: Mapping[str, Cap], rule: str | None, origin: str = "policy") -> None:
    """Under zcdp no cap can have a delta of 0: what was spent is stated at the cap's delta."""
    for name, cap in analysts.items():
        if rule == "zcdp" and cap.delta == 0:
            raise policy_error(
                origin,
                f"analysts.{name}.delta",
                "is 0, and zcdp states what was spent at a delta above 0",
                "write delta = 1e-9, or leave it out: then that of the whole budget holds",
            )
