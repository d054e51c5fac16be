"""What is allowed in a policy and is probably a mistake all the same. Judged by names and types, never by a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .findings import Finding
from .toml_places import keys_of, line_of

if TYPE_CHECKING:
    from tacit import Policy
    from tacit.sql import Catalog, Column, Table

_ID = re.compile(
    r"(^|_)(id|ids|uuid|guid|ssn|nhs|mrn|pid|uid|key|email|mail|phone|passport)$|[a-z](Id|ID)$|^id_|_(no|nr|num)$"
)
_NO_PERSON = re.compile(r"^(row|rowid|visit|order|event|session|log|line|item|record|entry|trip)_?(id|no|nr|key)?$")
_PERSON = re.compile(
    r"person|patient|customer|client|user|member|employee|worker|student|pupil|teacher|citizen|subject|participant|"
    r"respondent|household|resident|tenant|guest|passenger|driver|player|voter|donor|reader|borrower|subscriber|owner"
)
LARGE_EPSILON = Decimal(10)
"""e^10 is 22,000: so many times likelier may an output become by one person."""
LARGE_DELTA = Decimal("1e-4")
LARGE_WIDTH = 1e7
MANY_ROWS = 100
LONG_YEARS = 200


def looks_like_id(name: str) -> bool:
    """Whether a column's name says that it names somebody or something.

    >>> [name for name in ("patient_id", "userId", "email", "age", "paid", "id", "account_no") if looks_like_id(name)]
    ['patient_id', 'userId', 'email', 'id', 'account_no']
    """
    name = _plain(name)
    return _ID.search(name) is not None or _ID.search(name.lower()) is not None


def _plain(name: str) -> str:
    """With underscores for what else stands between words: "Member No." is member_no."""
    return re.sub(r"[^\w]+", "_", name).strip("_")


def names_a_person(name: str) -> bool:
    """An id that is more likely a person's than that of a row."""
    return looks_like_id(name) and name.lower() != "id" and _NO_PERSON.search(_plain(name).lower()) is None


def says_person(name: str) -> bool:
    """An id whose name says so outright.

    >>> [name for name in ("patient_id", "UserId", "Member No.", "call_id", "uid") if says_person(name)]
    ['patient_id', 'UserId', 'Member No.']
    """
    return names_a_person(name) and _PERSON.search(name.lower()) is not None


def advice(policy: Policy, catalog: Catalog, text: str, raw: dict[str, Any]) -> Iterator[Finding]:
    """Warnings, in the order of the policy."""
    for path, message, hint in (*_of_budget(policy), *_of_tables(policy, catalog)):
        keys = keys_of(raw, path) if path else None
        yield Finding("warning", message, hint, line_of(text, keys) if keys else 0, path)


Warned = tuple[str, str, str]


def _of_budget(policy: Policy) -> Iterator[Warned]:
    cap = policy.budget
    if cap.epsilon is None:
        yield "", "no budget is stated, so nothing can be answered", "write [budget] with epsilon = 1.0 under it"
        return
    if cap.epsilon > LARGE_EPSILON:
        yield (
            "budget.epsilon",
            f"budget.epsilon = {cap.epsilon:f} is large: a person may make an output e^{cap.epsilon:f} times likelier",
            "1 protects well, 10 hardly; state the least that the reports need",
        )
    if cap.delta is not None and cap.delta >= LARGE_DELTA:
        yield (
            "budget.delta",
            f"budget.delta = {cap.delta} is large: the guarantee may fail outright with that probability",
            "keep it far below one over the number of people, such as 1e-9",
        )
    if policy.spend is not None and policy.spend * 2 > cap.epsilon:
        yield (
            "budget.spend",
            f"budget.spend = {policy.spend:f} is more than half of budget.epsilon = {cap.epsilon:f}",
            "one call that names no ε would spend it; write spend = 0.1",
        )
    for name, own in (policy.analysts or {}).items():
        if own.epsilon is not None and own.epsilon > cap.epsilon:
            yield (
                f"analysts.{name}.epsilon",
                f"analysts.{name}.epsilon = {own.epsilon:f} is more than the whole budget of {cap.epsilon:f}",
                "the smaller of the two binds",
            )


def _of_tables(policy: Policy, catalog: Catalog) -> Iterator[Warned]:
    from tacit.policy_catalog import tables_meant

    declared = {table: name for name in policy.tables for table in tables_meant(name, catalog.tables)}
    units = {t.privacy_unit.lower() for t in catalog.tables if t.privacy_unit is not None}
    for table in catalog.tables:
        if table.view:
            continue
        path = f"tables.{declared[table.name]}" if table.name in declared else ""
        yield from _of_unit(table, path, units)
        for column in table.columns:
            yield from _of_column(table, column, f"{path}.columns.{column.name}" if path else "")
        if policy.trust_schema:
            named = [c.name for c in table.columns if c.type.startswith("ENUM")]
            if named and not table.public:
                yield (
                    "trust_schema",
                    f"trust_schema shows the labels of {table.name}.{named[0]}, and an ENUM is often built from data",
                    "leave trust_schema out, and list the values that are public",
                )


def _of_unit(table: Table, path: str, units: set[str]) -> Iterator[Warned]:
    ids = [c.name for c in table.columns if names_a_person(c.name)]
    ids += [c.name for c in table.columns if c.name.lower() == "id" and table.primary_key != (c.name,)]
    unit = next((name for name in ids if name.lower() in units), ids[0] if ids else None)
    if table.public:
        if unit is not None and unit.lower() in units:
            yield path, f"{table.name} is public and holds {unit}, which is a privacy unit elsewhere", (
                "a public table is shown to everybody: leave public out, unless that is meant"
            )  # fmt: skip
    elif table.privacy_unit is None:
        what = "is not in the policy: each of its rows" if not path else "has no privacy_unit: each row"
        if unit is not None:
            yield (
                path,
                f"{table.name} {what} counts as one person, and it has a column {unit}",
                f'write privacy_unit = "{unit}" and max_rows_per_unit = 4 under [tables.{toml_key(table.name)}], '
                "if a person can have several rows",
            )
        elif not path:
            yield (
                "",
                f"{table.name} {what} counts as one person",
                f"write [tables.{toml_key(table.name)}], with its privacy_unit, or with public = true",
            )
    elif table.max_rows_per_unit > MANY_ROWS:
        yield (
            f"{path}.max_rows_per_unit",
            f"max_rows_per_unit = {table.max_rows_per_unit:,} of {table.name}: the noise is that many times larger",
            "choose what most people have, not what the busiest has",
        )


def _of_column(table: Table, column: Column, path: str) -> Iterator[Warned]:
    low, high = getattr(column.domain, "min", None), getattr(column.domain, "max", None)
    name = f"{table.name}.{column.name}"
    if table.public or not path:
        return
    if low is not None and high is not None:
        if low == high:
            yield path, f"{name} has a range of one value, {low}: every SUM and AVG of it is known", "widen the range"
        elif isinstance(low, date):
            if (high - low).days > 366 * LONG_YEARS:
                yield path, f"{name} has a range of more than {LONG_YEARS} years", "the narrower, the less noise"
        elif float(high) - float(low) > LARGE_WIDTH and not looks_like_id(column.name):
            yield (
                path,
                f"{name} has a range as wide as {float(high) - float(low):,.4g}: a SUM has noise of that size",
                "choose ends that few values pass; those are clamped",
            )
        if looks_like_id(column.name):
            yield path, f"{name} looks like an id, and a range makes it a column to add up", "leave it out"
    values = [v for v in getattr(column.domain, "values", ()) if isinstance(v, str)]
    folded_values: dict[str, str] = {}
    for value in values:
        same = folded_values.setdefault(value.strip().lower(), value)
        if same != value:
            yield (
                path,
                f"{name} lists {same!r} and {value!r}, which differ in case or blanks only",
                "list what rows hold",
            )
            break


def toml_key(name: str) -> str:
    """A name as TOML writes a key.

    >>> toml_key("visits"), toml_key("s.t")
    ('visits', '"s.t"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(value: str) -> str:
    """A text in quotes, as TOML writes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in escaped) + '"'
