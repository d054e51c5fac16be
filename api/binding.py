"""What of a policy the guarantee depends on, in the one form in which the ledger keeps it.

Units, bounds on their rows, public tables and the analysts' caps; and whether the schema's own ENUM and CHECK values
may be shown. The cap of the whole and the accounting rule stand in the ledger by themselves. Declared domains are left
out: they decide what can be asked, and not what an answer gives away.
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
from .policy import Cap, Policy, policy_error

_DAMAGED = "the policy on record in the ledger cannot be read"


@dataclass(frozen=True)
class PolicyTerms:
    """The terms of one connection; defaults are left out, so that no policy at all has a form too."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is said of each table beyond the default, which is that every row is a unit of a private table.

    By the policy's own spelling, folded. One table has many spellings, so terms are compared by ``_paths`` only."""
    analysts: Mapping[str, Mapping[str, str]] | None = None
    trust_schema: bool = False
    may_begin: bool = True
    """False for an analyst who brings no policy: what the curator did not write must not bind the curator."""
    known: frozenset[tuple[str, ...]] = frozenset()
    """The tables of the database as (schema, table), folded; empty where no database is at hand."""

    @property
    def text(self) -> str:
        """The canonical form."""
        said: dict[str, Any] = {"tables": self.tables} if self.tables else {}
        if self.analysts is not None:
            said["analysts"] = self.analysts
        if self.trust_schema:
            said["trust_schema"] = True
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    def units_of(self, table: str) -> frozenset[str | None]:
        """What may be protected of a table that a charge names; ``None`` if it is public.

        Guarantee: whatever table a section stands for, its unit is among those of that table. Without a database at
        hand a section counts for every table that its spelling can mean.
        """
        path = path_of(table)
        sections = [said for name, said in self.tables.items() if path in _paths(name, self.known)]
        return frozenset(None if s.get("public") else s.get("privacy_unit", NO_UNIT) for s in sections or [{}])

    def accepts(self, recorded: str) -> bool:
        """Whether this connection may use a ledger with the recorded terms.

        They must be the same, except that a connection may trust the schema less: it then shows less.
        """
        return not self.differences(recorded)

    def differences(self, recorded: str) -> list[str]:
        """What the ledger says and this policy does not, each as the words to write; and the other way round."""
        theirs = read_terms(recorded)
        found = self._table_differences(theirs)
        if (self.analysts is None) != (theirs.analysts is None):
            found.append("leave [analysts] out" if theirs.analysts is None else "write the section [analysts]")
        for name in sorted({*(self.analysts or {}), *(theirs.analysts or {})}):
            own, their = (self.analysts or {}).get(name), (theirs.analysts or {}).get(name)
            if own != their:
                found += _analyst_change(name, own, their)
        if self.trust_schema and not theirs.trust_schema:
            found.append("write trust_schema = false")
        return found

    def _table_differences(self, theirs: PolicyTerms) -> list[str]:
        """Compared table by table: how a policy spells a table makes no difference.

        Guarantee: a spelling on record that can mean several tables of the database counts for each of them, so terms
        that say otherwise of any of them are refused.
        """
        mine = {path: (name, said) for name, said in self.tables.items() for path in _paths(name, self.known)}
        asked = [(path, name, said) for name, said in theirs.tables.items() for path in _paths(name, self.known)]
        stated = {path for path, _, _ in asked}
        asked += [(path, name, {}) for path, (name, _) in mine.items() if path not in stated]
        changes = [
            _change(f"under [tables.{name}]", key, said.get(key))
            for path, name, said in sorted(asked, key=lambda entry: entry[:2])
            for own in [mine.get(path, ("", {}))[1]]
            for key in sorted({*own, *said})
            if own.get(key) != said.get(key)
        ]
        return list(dict.fromkeys(changes))


def terms_of(policy: Policy, *, catalog: Catalog | None = None, may_begin: bool = True) -> PolicyTerms:
    """The terms that a policy states, for the database of the catalog if there is one at hand."""
    known = frozenset(table.key for table in catalog.tables) if catalog is not None else frozenset()
    tables: dict[str, dict[str, Any]] = {}
    declared: set[tuple[str, ...]] = set()
    for name, table in policy.tables.items():
        said: dict[str, Any] = {}
        if table.privacy_unit is not None:
            said = {"privacy_unit": folded(table.privacy_unit), "max_rows_per_unit": table.max_rows_per_unit}
        if table.public:
            said["public"] = True
        meant = _paths(name, known)
        if declared & meant:
            raise policy_error(policy.origin, f"tables.{name}", "is declared twice", "keep one of the two")
        declared |= meant
        tables[folded(name)] = said
    analysts = None if policy.analysts is None else {name: _cap(cap) for name, cap in policy.analysts.items()}
    stated = {name: said for name, said in tables.items() if said}
    return PolicyTerms(stated, analysts, policy.trust_schema, may_begin, known)


def read_terms(text: str) -> PolicyTerms:
    """What ``PolicyTerms.text`` wrote."""
    try:
        said = json.loads(text)
        return PolicyTerms(said.get("tables", {}), said.get("analysts"), said.get("trust_schema", False))
    except (ValueError, AttributeError):
        raise LedgerError(_DAMAGED) from None


def _paths(name: str, known: frozenset[tuple[str, ...]]) -> frozenset[tuple[str, ...]]:
    """The tables that a spelling in a policy means: those of the database, or all that it could mean in any."""
    possible: frozenset[tuple[str, ...]] = meanings(name)
    return possible & known or possible


def _cap(cap: Cap) -> dict[str, str]:
    said = {"epsilon": cap.epsilon, "delta": cap.delta}
    return {key: _plain(value) for key, value in said.items() if value is not None}


def _plain(value: Decimal) -> str:
    """One text for one number: 1.0 and 1 are the same cap. ``normalize`` would round to 28 digits."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    return str(Decimal((sign, digits, exponent if any(digits) else 0)))


def _change(where: str, key: str, theirs: Any) -> str:
    return f"leave {key} out {where}" if theirs is None else f"write {key} = {json.dumps(theirs)} {where}"


def _analyst_change(name: str, own: Mapping[str, str] | None, theirs: Mapping[str, str] | None) -> list[str]:
    if theirs is None:
        return [f"leave [analysts.{name}] out"]
    if own is None:
        return [f"write [analysts.{name}]", *(f"{key} = {theirs[key]} in it" for key in sorted(theirs))]
    where = f"under [analysts.{name}]"
    return [
        f"leave {key} out {where}" if key not in theirs else f"write {key} = {theirs[key]} {where}"
        for key in sorted({*own, *theirs})
        if own.get(key) != theirs.get(key)
    ]
