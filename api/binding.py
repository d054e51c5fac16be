"""What of a policy the guarantee depends on, in the one form in which the ledger keeps it.

Units, bounds on their rows, public tables and the analysts' caps; and whether the schema's own ENUM and CHECK values
may be shown. The cap of the whole and the accounting rule stand in the ledger by themselves. Declared domains, NOT NULL
and complete lists among them, are left out: they decide what can be asked and where a row is counted, and not what an
answer gives away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tacit.engine.accounting.terms import NO_UNIT
from tacit.sql import Catalog
from tacit.sql.names import folded, meanings, path_of

from .errors import LedgerError
from .policy import Cap, Policy
from .policy_section import policy_error

_DAMAGED = "the policy on record in the ledger cannot be read"


@dataclass(frozen=True)
class PolicyTerms:
    """The terms of one connection; defaults are left out, so that no policy at all has a form too."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is declared of each table beyond the default, which is that every row is a unit of a private table.

    By the policy's own spelling, folded. One table has many spellings, so terms are compared by ``_paths`` only."""
    analysts: Mapping[str, Mapping[str, str]] | None = None
    trust_schema: bool = False
    may_begin: bool = True
    """False for an analyst who brings no policy: what the curator did not write must not bind the curator."""
    database: frozenset[tuple[str, ...]] = frozenset()
    """The tables of the database as (schema, table), folded; empty where no database is at hand."""

    @property
    def text(self) -> str:
        """The canonical form."""
        terms: dict[str, Any] = {"tables": self.tables} if self.tables else {}
        if self.analysts is not None:
            terms["analysts"] = self.analysts
        if self.trust_schema:
            terms["trust_schema"] = True
        return json.dumps(terms, sort_keys=True, separators=(",", ":"))

    def units_of(self, table: str) -> frozenset[str | None]:
        """What may be protected of a table that a charge names; ``None`` if it is public.

        Guarantee: whatever table a section stands for, its unit is among those of that table. Without a database at
        hand a section counts for every table that its spelling can mean.
        """
        path = path_of(table)
        sections = [terms for name, terms in self.tables.items() if path in _paths(name, self.database)]
        return frozenset(None if s.get("public") else s.get("privacy_unit", NO_UNIT) for s in sections or [{}])

    def accepts(self, recorded: str) -> bool:
        """Whether this connection may use a ledger with the recorded terms.

        They must be the same, except that a connection may trust the schema less: it then shows less.
        """
        return not self.differences(recorded)

    def differences(self, recorded: str) -> list[str]:
        """How this policy has to change to become the recorded one, each change as the words to write."""
        ledger = read_terms(recorded)
        changes = self._table_changes(ledger)
        if (self.analysts is None) != (ledger.analysts is None):
            changes.append("leave [analysts] out" if ledger.analysts is None else "write the section [analysts]")
        for name in sorted({*(self.analysts or {}), *(ledger.analysts or {})}):
            here, there = (self.analysts or {}).get(name), (ledger.analysts or {}).get(name)
            if here != there:
                changes += _analyst_changes(name, here, there)
        if self.trust_schema and not ledger.trust_schema:
            changes.append("write trust_schema = false")
        return changes

    def _table_changes(self, ledger: PolicyTerms) -> list[str]:
        """Compared table by table: how a policy spells a table makes no difference.

        Guarantee: a spelling on record that can mean several tables of the database counts for each of them, so terms
        that differ for any of them are refused.
        """
        here = {path: (name, terms) for name, terms in self.tables.items() for path in _paths(name, self.database)}
        there = [(path, name, terms) for name, terms in ledger.tables.items() for path in _paths(name, self.database)]
        recorded = {path for path, _, _ in there}
        there += [(path, name, {}) for path, (name, _) in here.items() if path not in recorded]
        changes = []
        for path, name, wanted in sorted(there, key=lambda entry: entry[:2]):
            _, terms = here.get(path, ("", {}))
            different = [key for key in sorted({*terms, *wanted}) if terms.get(key) != wanted.get(key)]
            changes += [_change(f"under [tables.{name}]", key, wanted.get(key)) for key in different]
        return list(dict.fromkeys(changes))


def terms_of(policy: Policy, *, catalog: Catalog | None = None, may_begin: bool = True) -> PolicyTerms:
    """The terms that a policy states, for the database of the catalog if there is one at hand."""
    database = frozenset(table.key for table in catalog.tables) if catalog is not None else frozenset()
    tables: dict[str, dict[str, Any]] = {}
    declared: set[tuple[str, ...]] = set()
    for name, table in policy.tables.items():
        meant = _paths(name, database)
        if declared & meant:
            raise policy_error(policy.origin, f"tables.{name}", "is declared twice", "keep one of the two")
        declared |= meant
        if table.terms:
            tables[folded(name)] = table.terms
    analysts = None if policy.analysts is None else {name: _cap(cap) for name, cap in policy.analysts.items()}
    return PolicyTerms(tables, analysts, policy.trust_schema, may_begin, database)


def read_terms(text: str) -> PolicyTerms:
    """What ``PolicyTerms.text`` wrote."""
    try:
        terms = json.loads(text)
        return PolicyTerms(terms.get("tables", {}), terms.get("analysts"), terms.get("trust_schema", False))
    except (ValueError, AttributeError):
        raise LedgerError(_DAMAGED) from None


def _paths(name: str, database: frozenset[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    """The tables that a spelling in a policy means: those of the database, or all that it could mean in any."""
    possible: frozenset[tuple[str, ...]] = meanings(name)
    return possible & database or possible


def _cap(cap: Cap) -> dict[str, str]:
    stated = {"epsilon": cap.epsilon, "delta": cap.delta}
    return {key: _plain(value) for key, value in stated.items() if value is not None}


def _plain(value: Decimal) -> str:
    """One text for one number: 1.0 and 1 are the same cap. ``normalize`` would round to 28 digits."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    return str(Decimal((sign, digits, exponent if any(digits) else 0)))


def _change(where: str, key: str, wanted: Any) -> str:
    return f"leave {key} out {where}" if wanted is None else f"write {key} = {json.dumps(wanted)} {where}"


def _analyst_changes(name: str, here: Mapping[str, str] | None, wanted: Mapping[str, str] | None) -> list[str]:
    if wanted is None:
        return [f"leave [analysts.{name}] out"]
    if here is None:
        return [f"write [analysts.{name}]", *(f"{key} = {wanted[key]} in it" for key in sorted(wanted))]
    where = f"under [analysts.{name}]"
    return [
        f"leave {key} out {where}" if key not in wanted else f"write {key} = {wanted[key]} {where}"
        for key in sorted({*here, *wanted})
        if here.get(key) != wanted.get(key)
    ]
