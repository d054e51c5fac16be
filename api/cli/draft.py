"""A first policy, written from the schema alone: names, types and keys. Rows are read of public tables only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .advice import looks_like_id, names_a_person, says_person, toml_key, toml_text
from .terminal import WIDTH

if TYPE_CHECKING:
    from tacit.sql import SourceColumn, SourceTable

_NUMBERS = ("INT", "DECIMAL", "DOUBLE", "FLOAT", "REAL", "NUMERIC")


@dataclass(frozen=True)
class Choices:
    """What the owner has decided."""

    epsilon: Decimal = Decimal(1)
    delta: Decimal = Decimal(0)
    spend: Decimal | None = None
    ledger: str | None = None
    trust_schema: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    """The privacy unit by table: a column, or a path to one."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """max_rows_per_unit by table."""
    guessed: frozenset[str] = frozenset()
    """Tables whose unit nobody named."""
    public: frozenset[str] = frozenset()
    ranges: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """(least, greatest) value by table and column, as TOML."""
    values: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Listed values by table and column, as TOML."""
    origins: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The public column that the list comes from."""
    types: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Declared types, for csv."""


def guessed_units(tables: Sequence[SourceTable], column: str | None = None) -> dict[str, str]:
    """The privacy unit that each table seems to have, by the names of its columns.

    One column for all: the one that was named, or the person's id that the most tables hold. A table without it
    may reach it by the key of a table that has it.
    """
    stored = [table for table in tables if not table.view]
    holds = {t.name: {c.name.lower(): c.name for c in t.columns} for t in stored}
    if column is None:
        column = _person(stored)
        if column is None:
            return {}
    units = {name: names[column.lower()] for name, names in holds.items() if column.lower() in names}
    for table in stored:
        if table.name in units:
            continue
        for other in stored:
            if other.name in units and len(other.primary_key) == 1 and "->" not in units[other.name]:
                key = holds[table.name].get(other.primary_key[0].lower())
                if key is not None:
                    units[table.name] = f"{key} -> {other.name}.{units[other.name]}"
                    break
    return units


def _person(tables: Sequence[SourceTable]) -> str | None:
    """The id that most likely names a person: by its own name first, then by how many tables hold it.

    The key of a table that also holds the key of another belongs to that other: a call has a caller, and hiding the
    call would not hide who calls.
    """
    keys = {table.primary_key[0].lower(): table for table in tables if len(table.primary_key) == 1}
    ids: dict[str, tuple[bool, bool, int]] = {}
    for table in tables:
        for column in table.columns:
            name = column.name.lower()
            if names_a_person(column.name):
                own = keys.get(name)
                above = own is None or not any(c.name.lower() in keys.keys() - {name} for c in own.columns)
                ids[name] = says_person(column.name), above, ids.get(name, (False, False, 0))[2] + 2 + (own is not None)
    return max(ids, key=lambda name: (ids[name], -list(ids).index(name))) if ids else None


def guessed_rows(table: SourceTable, unit: str) -> int:
    """One where the schema says that a unit has one row; else a common choice, which the owner must judge."""
    return 1 if table.primary_key == (unit,) else 4


def policy_text(tables: Sequence[SourceTable], choices: Choices, database: str) -> str:
    """The policy as TOML, with a comment on everything that is to be decided."""
    lines = [
        f"# Policy of {database}",
        "# Drafted by `tacit init` from the schema alone. Check every line: what is",
        "# declared here is public. Where a line that you take the # from says",
        '# "…", write your own value: no "…" is accepted.',
        "",
    ]
    if choices.trust_schema:
        lines += ["trust_schema = true            # ENUM values and CHECK ranges are public", ""]
    elif any(c.enum is not None or c.minimum is not None for t in tables for c in t.columns):
        lines += ["# trust_schema = true          # ENUM values and CHECK ranges are public", ""]
    lines += [
        "[budget]                       # all that may ever be spent on these tables",
        f"epsilon = {choices.epsilon:f}" + _pad(f"epsilon = {choices.epsilon:f}", "1 protects well, 10 hardly"),
    ]
    delta = f"delta = {choices.delta}".replace("E", "e")
    lines.append(delta + _pad(delta, "1e-9 here lets --discover find groups"))
    spend = f"spend = {choices.spend:f}" if choices.spend is not None else "# spend = 0.1"
    lines.append(spend + _pad(spend, "what a batch costs when nobody says"))
    if choices.ledger is not None:
        ledger = f"ledger = {toml_text(choices.ledger)}"
        lines.append(ledger + _pad(ledger, "where what was spent is written down"))
    lines += ["", "# [analysts.ana]               # caps; with this section nobody else may ask", "# epsilon = 0.5"]
    for table in tables:
        lines += ["", *_table(table, choices)]
    return "\n".join(lines) + "\n"


def _pad(text: str, comment: str) -> str:
    return " " * max(2, 31 - len(text)) + f"# {comment}"


def _table(table: SourceTable, choices: Choices) -> list[str]:
    lines = [f"[tables.{toml_key(table.name)}]"]
    if table.view:
        return [f"# {line}" for line in (*lines, "a view: its rows are those of the tables behind it")]
    if table.name in choices.public:
        return [*lines, "public = true                  # anybody may see it; nothing protects it"]
    unit = choices.units.get(table.name)
    if unit is None:
        lines += [
            "# Each row counts as one person. If one can have several rows, write",
            '# privacy_unit = "…"          # the column that tells whose they are',
            "# max_rows_per_unit = 4",
        ]
    else:
        said = f"privacy_unit = {toml_text(unit)}"
        guess = "guessed! whose presence is hidden?" if table.name in choices.guessed else (
            "whose presence is hidden"
        )  # fmt: skip
        bound = f"max_rows_per_unit = {choices.rows[table.name]}"
        meaning = "rows of each that count; more, more noise"
        fits = len(said + _pad(said, guess)) <= WIDTH
        lines += [said + _pad(said, guess)] if fits else [f"# {guess}", said]
        lines += [bound + _pad(bound, meaning)]
    lines.append(f"[tables.{toml_key(table.name)}.columns]")
    if any((table.name, column.name) in choices.types for column in table.columns):
        lines += [
            "# A csv file has no types. Change VARCHAR to INTEGER, DOUBLE, BOOLEAN, DATE",
            '# or TIMESTAMP; for groups add , values = ["…"], other = true inside the',
            '# braces, and for sums and averages of numbers , min = "…", max = "…".',
        ]
    lines += [line for column in table.columns for line in _column(table, column, unit, choices)]
    return lines


def _column(table: SourceTable, column: SourceColumn, unit: str | None, choices: Choices) -> list[str]:
    """A line that declares what the owner said; a comment that shows how to, where nothing was said."""
    place, key = (table.name, column.name), toml_key(column.name)
    typed = [f"type = {toml_text(choices.types[place])}"] if place in choices.types else []
    kind = choices.types.get(place, column.type).upper()
    if place in choices.values:
        listed = ", ".join(choices.values[place])
        origin = choices.origins.get(place)
        said = "{ " + ", ".join([*typed, f"values = [{listed}]"]) + " }"
        line = f"{key} = {said}"
        if origin is None:
            return [line]
        comment = f"# as in the public {origin}"
        return [f"{line}  {comment}"] if len(line) + 2 + len(comment) <= WIDTH else [comment, line]
    if place in choices.ranges:
        low, high = choices.ranges[place]
        return [f"{key} = {{ {', '.join([*typed, f'min = {low}, max = {high}'])} }}"]
    if typed:
        return [f"{key} = {{ {typed[0]} }}"]
    if unit is not None and column.name.lower() == unit.partition("->")[0].strip().lower():
        return []
    shown = kind if len(kind) <= 30 and column.enum is None else kind[:29].partition("(")[0]
    if column.enum is not None and choices.trust_schema:
        return [f"# {key}: the schema lists its values"]
    if column.minimum is not None and column.maximum is not None and choices.trust_schema:
        return [f"# {key}: the schema gives its range"]
    if looks_like_id(column.name):
        return [f"# {key}: {shown}"]
    if kind == "BOOLEAN":
        return [f"# {key}: {shown}, needs nothing"]
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return _remarked(f'# {key} = {{ min = "…", max = "…" }}', f"{shown}: such as 2024-01-31")
    if any(kind.startswith(("U" + n, n)) or kind.endswith("INT") for n in _NUMBERS):
        return _remarked(f'# {key} = {{ min = "…", max = "…" }}', f"{shown}: SUM, AVG, groups")
    if kind.startswith(("VARCHAR", "TEXT", "CHAR", "ENUM")):
        return _remarked(f'# {key} = {{ values = ["…"], other = true }}', f"{shown}: for groups")
    return [f"# {key}: {shown}"]


def _remarked(line: str, remark: str) -> list[str]:
    """A line with its remark behind it, or above it where both do not fit."""
    whole = f"{line}   # {remark}"
    return [whole] if len(whole) <= WIDTH else [f"# {remark}", line]


def toml_value(text: str) -> str:
    """What the owner typed, as TOML: a number, a date or true/false as it is, anything else in quotes.

    >>> [toml_value(text) for text in ("18", "0.5", "2024-01-31", "true", "NY", '"7"')]
    ['18', '0.5', '2024-01-31', 'true', '"NY"', '"7"']
    """
    import tomllib

    try:
        value: Any = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return toml_text(text)
    return text if not isinstance(value, list | dict) else toml_text(text)


def toml_of(value: Any) -> str:
    """A value of a public table as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    return toml_text(value) if isinstance(value, str) else str(value)
