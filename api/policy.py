"""The curator's policy: a TOML file, or a dict of the same shape, read into one frozen value.

Whatever is wrong with it is a ``PolicyError`` that names the path of the key and says what to write instead.
What it says about tables is checked against the database's schema in ``catalog.py``.
"""

from __future__ import annotations

import datetime as dt
import difflib
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from tacit.engine.accounting.amounts import to_delta, to_epsilon
from tacit.engine.accounting.terms import NO_UNIT
from tacit.sql import Limits
from tacit.sql.names import folded

from .errors import PolicyError, PrivacyParameterError

Scalar = str | bool | int | float | Decimal | dt.date | dt.datetime

_MOST_ROWS = 10**9
_RULES = ("sum", "zcdp")
_TYPE = re.compile(r"[A-Za-z][A-Za-z_ ]*(\(\d+(, ?\d+)?\))?")
"""A type's name and nothing else: it is written into the view over a csv file."""


@dataclass(frozen=True)
class Cap:
    """A bound on what may be spent; ``None`` where nothing was said."""

    epsilon: Decimal | None = None
    delta: Decimal | None = None


@dataclass(frozen=True)
class ColumnPolicy:
    """The declared domain of one column: a list of values, or a range."""

    values: tuple[Scalar, ...] | None = None
    other: str | None = None
    """The label of the group of all values that are not listed; ``None`` without such a group."""
    min: Scalar | None = None
    max: Scalar | None = None
    type: str | None = None
    """A DuckDB type, for files that do not carry one (csv)."""


@dataclass(frozen=True)
class TablePolicy:
    """What the policy says about one table."""

    privacy_unit: str | None = None
    max_rows_per_unit: int = 1
    public: bool = False
    version: str | None = None
    columns: Mapping[str, ColumnPolicy] = field(default_factory=dict)


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
        return _policy(policy, "policy")
    if isinstance(policy, (str, os.PathLike)):
        path = Path(policy)
        return _policy(_read_toml(path), path.name)
    raise PolicyError(f"policy: expected the path of a TOML file or a dict of the same shape, not {_kind(policy)}")


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PolicyError(f"the policy {path.name!r} is not UTF-8 text; save it as a TOML file") from None
    except (OSError, ValueError):
        raise PolicyError(
            f"the policy file {str(path)!r} cannot be read; give the path of a TOML file, or a dict"
        ) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(_toml_message(path.name, text, str(error))) from None


def _toml_message(name: str, text: str, reason: str) -> str:
    lines = text.splitlines() or [""]
    place = re.search(r"\(at line (\d+), column (\d+)\)", reason)
    line, column = (int(place[1]), int(place[2])) if place else (len(lines), len(lines[-1]) + 1)
    shown = lines[line - 1] if line <= len(lines) else ""
    what = reason.split(" (at ")[0]
    return (
        f"{name}, line {line}: not valid TOML: {what[:1].lower()}{what[1:]}\n"
        f"  {shown}\n  {' ' * (column - 1)}^\n"
        'hint: a line reads key = value; text stands in "quotes"'
    )


def _policy(raw: Mapping[str, Any], origin: str) -> Policy:
    """Check the whole, section by section."""
    reader = _Reader(origin)
    top = reader.section(raw, "", ("trust_schema", "accounting", "budget", "analysts", "tables", "limits"))
    budget = reader.section(top.get("budget", {}), "budget", ("epsilon", "delta", "spend"))
    if "budget" in top and "epsilon" not in budget:
        reader.refuse("budget.epsilon", "is missing", "write epsilon = 1.0 under [budget]")
    rule = top.get("accounting")
    if rule is not None and rule not in _RULES:
        reader.refuse("accounting", f"is {show(rule)}, which is no rule", 'write accounting = "sum" or "zcdp"')
    if rule == "zcdp" and "budget" in top and not budget.get("delta"):
        reader.refuse("budget.delta", "is missing: zcdp states what was spent at this delta", "write delta = 1e-9")
    analysts: dict[str, Cap] | None = None
    if "analysts" in top:
        entries = reader.section(top["analysts"], "analysts", None)
        analysts = {name: reader.cap(entry, f"analysts.{name}") for name, entry in entries.items()}
        check_analyst_deltas(analysts, rule, origin)
    tables = reader.section(top.get("tables", {}), "tables", None)
    return Policy(
        trust_schema=reader.flag(top, "trust_schema", "trust_schema"),
        accounting=rule,
        budget=reader.cap({k: v for k, v in budget.items() if k != "spend"}, "budget"),
        spend=reader.epsilon(budget["spend"], "budget.spend") if "spend" in budget else None,
        analysts=analysts,
        tables={name: reader.table(entry, f"tables.{name}") for name, entry in tables.items()},
        limits=reader.limits(top.get("limits", {})),
        origin=origin,
    )


class _Reader:
    """Checks one section each, and knows the file's name for the messages."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def refuse(self, path: str, what: str, instead: str) -> NoReturn:
        raise policy_error(self.origin, path, what, instead)

    def section(self, raw: Any, path: str, known: Collection[str] | None) -> Mapping[str, Any]:
        """The section as a mapping whose keys are all known; ``known=None`` lets the curator choose names."""
        if not isinstance(raw, Mapping):
            name = path or "the policy"
            self.refuse(name, f"must be a section, not {_kind(raw)}", f"write [{name}]")
        for key in raw:
            where = f"{path}.{key}" if path else str(key)
            if not isinstance(key, str):
                self.refuse(where, "is not a name", "keys of a policy are strings")
            if known is not None and key not in known:
                self.refuse(where, "is not a key that tacit knows", suggestion(key, known))
        return raw

    def flag(self, section: Mapping[str, Any], key: str, path: str) -> bool:
        value = section.get(key, False)
        if not isinstance(value, bool):
            self.refuse(path, f"must be true or false, not {_kind(value)}", f"write {key} = true")
        return bool(value)

    def epsilon(self, value: Any, path: str) -> Decimal:
        try:
            return to_epsilon(value)
        except PrivacyParameterError:
            key = path.rpartition(".")[2]
            raise policy_error(
                self.origin, path, f"must be a positive finite number, not {show(value)}", f"write {key} = 1.0"
            ) from None

    def delta(self, value: Any, path: str) -> Decimal:
        try:
            return to_delta(value)
        except PrivacyParameterError:
            raise policy_error(
                self.origin, path, f"must be a number from 0 to below 1, not {show(value)}", "write delta = 1e-9"
            ) from None

    def cap(self, raw: Any, path: str) -> Cap:
        entry = self.section(raw, path, ("epsilon", "delta"))
        return Cap(
            epsilon=self.epsilon(entry["epsilon"], f"{path}.epsilon") if "epsilon" in entry else None,
            delta=self.delta(entry["delta"], f"{path}.delta") if "delta" in entry else None,
        )

    def limits(self, raw: Any) -> Limits:
        names = tuple(f.name for f in fields(Limits))
        entry = self.section(raw, "limits", names)
        for key, value in entry.items():
            if not _is_integer(value) or value < 1:
                self.refuse(f"limits.{key}", f"must be a positive integer, not {show(value)}", f"write {key} = 1000")
        return Limits(**entry)

    def table(self, raw: Any, path: str) -> TablePolicy:
        entry = self.section(raw, path, ("privacy_unit", "max_rows_per_unit", "public", "version", "columns"))
        unit = entry.get("privacy_unit")
        bound = entry.get("max_rows_per_unit")
        public = self.flag(entry, "public", f"{path}.public")
        if unit is not None and not isinstance(unit, str):
            self.refuse(f"{path}.privacy_unit", f"must be a column's name, not {_kind(unit)}", "write it in quotes")
        if unit is not None and folded(unit) == NO_UNIT:
            self.refuse(f"{path}.privacy_unit", "is what the ledger calls no unit at all", "rename the column")
        if unit is not None and bound is None:
            self.refuse(
                f"{path}.max_rows_per_unit",
                "is missing: with a privacy_unit, the noise must cover all rows that one unit may have",
                "write max_rows_per_unit = 4",
            )
        if bound is not None and unit is None:
            self.refuse(
                f"{path}.privacy_unit",
                "is missing: max_rows_per_unit says nothing without it",
                'write privacy_unit = "patient_id", or leave max_rows_per_unit out',
            )
        if bound is not None and (not _is_integer(bound) or not 1 <= bound <= _MOST_ROWS):
            self.refuse(
                f"{path}.max_rows_per_unit",
                f"must be an integer from 1 to {_MOST_ROWS:,}, not {show(bound)}",
                "write max_rows_per_unit = 4",
            )
        if public and unit is not None:
            self.refuse(f"{path}.public", "contradicts privacy_unit", "keep one of the two")
        version = entry.get("version")
        if version is not None and (not isinstance(version, (str, int, dt.date)) or version == ""):
            self.refuse(f"{path}.version", f"must be a string, not {_kind(version)}", 'write version = "2025-01"')
        columns = self.section(entry.get("columns", {}), f"{path}.columns", None)
        return TablePolicy(
            privacy_unit=unit,
            max_rows_per_unit=bound if bound is not None else 1,
            public=public,
            version=None if version is None else str(version),
            columns={name: self.column(value, f"{path}.columns.{name}") for name, value in columns.items()},
        )

    def column(self, raw: Any, path: str) -> ColumnPolicy:
        if not isinstance(raw, Mapping):
            self.refuse(
                path,
                f"must say what the column may hold, not {_kind(raw)}",
                'write { min = 0, max = 120 } or { values = ["a", "b"], other = true }',
            )
        entry = self.section(raw, path, ("values", "other", "min", "max", "type"))
        ranged = "min" in entry or "max" in entry
        if ranged and "values" in entry:
            self.refuse(path, "has both a list of values and a range", "keep values, or min and max")
        for key, twin in (("min", "max"), ("max", "min")):
            if key in entry and twin not in entry:
                self.refuse(f"{path}.{twin}", f"is missing next to {key}", f"write {twin} = … as well")
        type_ = entry.get("type", "INTEGER")
        if not isinstance(type_, str) or not _TYPE.fullmatch(type_):
            self.refuse(f"{path}.type", "must be the name of a DuckDB type", 'write type = "INTEGER"')
        return ColumnPolicy(
            values=self.values(entry["values"], f"{path}.values") if "values" in entry else None,
            other=self.other(entry, f"{path}.other"),
            min=entry.get("min"),
            max=entry.get("max"),
            type=entry.get("type"),
        )

    def values(self, raw: Any, path: str) -> tuple[Scalar, ...]:
        if not isinstance(raw, (list, tuple)) or not raw:
            self.refuse(path, "must be a list with at least one value", 'write values = ["a", "b"]')
        seen = set()
        for value in raw:
            if not isinstance(value, (str, bool, int, float, Decimal, dt.date)):
                self.refuse(path, f"lists {_kind(value)}, which is no value of a column", "list plain values")
            if value in seen:
                self.refuse(path, f"lists {show(value)} twice", "list every value once")
            seen.add(value)
        return tuple(raw)

    def other(self, entry: Mapping[str, Any], path: str) -> str | None:
        other = entry.get("other", False)
        if not isinstance(other, (bool, str)) or other == "":
            self.refuse(path, f"must be true or a label, not {show(other)}", "write other = true")
        if other is False:
            return None
        if "values" not in entry:
            self.refuse(path, "needs the list of values that it is other than", 'write values = ["a", "b"] as well')
        label = "other" if other is True else str(other)
        if label in entry["values"]:
            self.refuse(path, f"has the label {label!r}, which is one of the values", 'write other = "none of these"')
        return label


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


def policy_error(origin: str, path: str, what: str, instead: str) -> PolicyError:
    """One sentence that names the key, and what to write instead."""
    return PolicyError(f"{origin}: {path} {what}\nhint: {instead}")


def suggestion(name: str, known: Collection[str]) -> str:
    """The nearest valid name, or all of them."""
    by_folded = {folded(k): k for k in known}
    close = difflib.get_close_matches(folded(name), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]}?"
    return f"one of {', '.join(sorted(known))}" if known else "there is none"


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def show(value: object) -> str:
    """A value of the policy as TOML would write it, cut short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) > 10**60:  # Python refuses to print integers of 4,300 digits
        return "a number of more than 60 digits"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= 40 else text[:39] + "…"


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (int, float, Decimal)):
        return "a number"
    if isinstance(value, dt.date):
        return "a date"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "a section"
    return f"a value of type {type(value).__name__}"
