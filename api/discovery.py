"""What was found of a column: the result that ``con.discover`` returns, and how a ledger stores it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

from tacit.engine import Amount, Ledger
from tacit.engine.accounting.amounts import NOTHING
from tacit.sql import Catalog, Column, Range, Table, Values
from tacit.sql.wanted import Wanted, What, identity

from .budget import show
from .errors import LedgerError

SUBJECT = "discovered"
"""What the ledger files discoveries under. Subjects of other releases are digests, so no other release is there."""
_FORMAT = "tacit discovery 1"
_SHOWN = 10


@dataclass(frozen=True, repr=False)
class Discovery:
    """The values of a column, or its range, that were found privately; public from then on."""

    table: str
    column: str
    """Its name, or the SQL of an expression over the table's columns."""
    what: What
    values: tuple[Any, ...] | None
    """In their own order. NULL is none of them: it is a group of its own anyway."""
    range: tuple[Any, Any] | None
    epsilon: Decimal
    delta: Decimal
    threshold: int
    """A value is found if so many units hold it, give or take the noise; a bin counts with so many rows."""
    warning: str = ""
    cost: Amount = NOTHING
    """What finding it added to what was spent: nothing, if it was found before."""
    path: tuple[str, ...] = ()
    """Which table of the database it is (``Table.key``)."""
    identity: str = ""
    """Which column of it (``sql.wanted.identity``)."""
    type: str = ""

    @classmethod
    def of(cls, wanted: Wanted, domain: Values | Range, epsilon: Decimal, delta: Decimal, threshold: int) -> Discovery:
        """What was found of a wanted column."""
        return cls(
            wanted.table.name,
            wanted.column.name,
            wanted.what,
            domain.values if isinstance(domain, Values) else None,
            None if isinstance(domain, Values) else (domain.min, domain.max),
            epsilon,
            delta,
            threshold,
            warning=_NO_VALUE if isinstance(domain, Values) and not domain.values else "",
            path=wanted.table.key,
            identity=identity(wanted.column),
            type=wanted.column.type,
        )

    @property
    def domain(self) -> Values | Range:
        """What the compiler makes of it."""
        if self.values is not None:
            return Values(self.values)
        assert self.range is not None
        return Range(*self.range)

    def __repr__(self) -> str:
        name = self.column if self.identity != self.column else f"{self.table}.{self.column}"
        paid = show(Amount(self.epsilon, self.delta)) if self.epsilon else "free"
        if self.values is not None:
            shown = ", ".join(map(_shown, self.values[:_SHOWN])) + (", …" if len(self.values) > _SHOWN else "")
            found = f"{len(self.values):,} keys of {name}, threshold {self.threshold} ({paid}): {shown}"
        else:
            assert self.range is not None
            low, high = map(_shown, self.range)
            found = f"range of {name}, level {self.threshold} ({paid}): {low} to {high}"
        return f"<Discovery: {found}{f'; {self.warning}' if self.warning else ''}>"


_NO_VALUE = "no value has enough units to be found"


def write(discovery: Discovery) -> bytes:
    """A discovery as the ledger stores it."""
    content = {
        "format": _FORMAT,
        "table": discovery.table,
        "column": discovery.column,
        "what": discovery.what,
        "values": None if discovery.values is None else [_written(value) for value in discovery.values],
        "range": None if discovery.range is None else [_written(end) for end in discovery.range],
        "threshold": discovery.threshold,
        "warning": discovery.warning,
        "path": list(discovery.path),
        "identity": discovery.identity,
        "type": discovery.type,
    }
    return json.dumps(content, sort_keys=True).encode()


def read(payload: bytes, epsilon: Decimal, delta: Decimal) -> Discovery:
    """What ``write`` wrote."""
    try:
        content = json.loads(payload)
        if content["format"] != _FORMAT:
            raise ValueError
        values, ends = content["values"], content["range"]
        return Discovery(
            content["table"],
            content["column"],
            cast(What, content["what"]),
            None if values is None else tuple(map(_value, values)),
            None if ends is None else (_value(ends[0]), _value(ends[1])),
            epsilon,
            delta,
            int(content["threshold"]),
            content["warning"],
            path=tuple(content["path"]),
            identity=content["identity"],
            type=content["type"],
        )
    except (ValueError, TypeError, KeyError, ArithmeticError):
        raise LedgerError("a stored discovery is damaged and cannot be read") from None


def _written(value: Any) -> Any:
    """A value as JSON; what JSON has no form for is a pair of its kind and its text."""
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, Decimal):
        return ["decimal", str(value)]
    if isinstance(value, datetime):
        return ["timestamp", value.isoformat()]
    if isinstance(value, date):
        return ["date", value.isoformat()]
    return value


def _value(written: Any) -> Any:
    if not isinstance(written, list):
        return written
    kind, text = written
    return _READ[kind](text)


_READ: dict[str, Any] = {
    "float": float.fromhex,
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


class Discoveries:
    """What a connection knows to have been found: what the ledger has, and what it read from public tables."""

    def __init__(self) -> None:
        self._stored: dict[int, Discovery] = {}
        self._public: list[Discovery] = []

    def now(self, ledger: Ledger | None) -> list[Discovery]:
        """Everything that was found so far, oldest first; only what is new in the ledger is read."""
        if ledger is not None:
            for stored in ledger.releases_about(SUBJECT, self._stored):
                self._stored[stored.charge_id] = read(stored.payload, stored.epsilon, stored.delta)
        return [*(self._stored[charge] for charge in sorted(self._stored)), *self._public]

    def add_public(self, discovery: Discovery) -> None:
        """Remember what was read from a public table."""
        self._public.append(discovery)


def with_found(catalog: Catalog, found: Iterable[Discovery]) -> Catalog:
    """The catalog with what was found of columns of which nothing is declared.

    Lists of one column are taken together. Of ranges the last one counts, but for one that nothing was found of. A list
    comes before a range, since it also tells a range. All of it is public, so that it holds whatever
    version of the table it was found in: a value that is not listed is in no group.
    """
    by_table: dict[tuple[str, ...], list[Discovery]] = {}
    for discovery in found:
        by_table.setdefault(discovery.path, []).append(discovery)
    if not by_table:
        return catalog
    tables = tuple(_with_found(table, by_table.get(table.key, ())) for table in catalog.tables)
    return replace(catalog, tables=tables)


def _with_found(table: Table, found: Iterable[Discovery]) -> Table:
    domains: dict[tuple[str, str], Values | Range] = {}
    for discovery in found:
        key = discovery.identity, discovery.type
        before, domain = domains.get(key), discovery.domain
        if isinstance(domain, Values):
            if isinstance(before, Values):
                domain = Values(tuple(sorted({*before.values, *domain.values})))
            if domain.values or before is None:
                domains[key] = domain
        elif before is None or (isinstance(before, Range) and not discovery.warning):
            domains[key] = domain
    if not domains:
        return table
    free = {column.name for column in table.columns if not isinstance(column.domain, Range)}
    listed = {key: domain for key, domain in domains.items() if key[0] not in free and isinstance(domain, Values)}
    return replace(
        table,
        columns=tuple(_column(column, domains) for column in table.columns),
        found=tuple(sorted(listed.items(), key=lambda item: item[0])),
    )


def _column(column: Column, domains: dict[tuple[str, str], Values | Range]) -> Column:
    domain = domains.get((column.name, column.type))
    return column if domain is None or column.domain is not None else replace(column, domain=domain)
