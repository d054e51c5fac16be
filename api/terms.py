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

from tacit.engine.terms import NO_UNIT
from tacit.sql.names import folded

from .errors import LedgerError
from .policy import Cap, Policy, policy_error

_DAMAGED = "the policy on record in the ledger cannot be read"


@dataclass(frozen=True)
class PolicyTerms:
    """The terms of one connection; defaults are left out, so that no policy at all has a form too."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By folded name, what is said of each table beyond the default: that every row is a unit of a private table."""
    analysts: Mapping[str, Mapping[str, str]] | None = None
    trust_schema: bool = False
    may_begin: bool = True
    """False for an analyst who brings no policy: what the curator did not write must not bind the curator."""

    @property
    def text(self) -> str:
        """The canonical form."""
        said: dict[str, Any] = {"tables": self.tables} if self.tables else {}
        if self.analysts is not None:
            said["analysts"] = self.analysts
        if self.trust_schema:
            said["trust_schema"] = True
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    def unit_of(self, table: str) -> str | None:
        """What is protected of a table; ``None`` if it is public."""
        said = self.tables.get(table, {})
        return None if said.get("public") else said.get("privacy_unit", NO_UNIT)

    def accepts(self, recorded: str) -> bool:
        """Whether this connection may use a ledger with the recorded terms.

        They must be the same, except that a connection may trust the schema less: it then shows less.
        """
        return not self.differences(recorded)

    def differences(self, recorded: str) -> list[str]:
        """What the ledger says and this policy does not, each as the words to write; and the other way round."""
        theirs = read_terms(recorded)
        found = []
        for table in sorted({*self.tables, *theirs.tables}):
            mine, other = self.tables.get(table, {}), theirs.tables.get(table, {})
            for key in sorted({*mine, *other}):
                if mine.get(key) != other.get(key):
                    found.append(_change(f"under [tables.{table}]", key, other.get(key)))
        if (self.analysts is None) != (theirs.analysts is None):
            found.append("leave [analysts] out" if theirs.analysts is None else "write the section [analysts]")
        for name in sorted({*(self.analysts or {}), *(theirs.analysts or {})}):
            own, their = (self.analysts or {}).get(name), (theirs.analysts or {}).get(name)
            if own != their:
                found += _analyst_change(name, own, their)
        if self.trust_schema and not theirs.trust_schema:
            found.append("write trust_schema = false")
        return found


def terms_of(policy: Policy, *, may_begin: bool = True) -> PolicyTerms:
    """The terms that a policy states."""
    tables: dict[str, dict[str, Any]] = {}
    for name, table in policy.tables.items():
        said: dict[str, Any] = {}
        if table.privacy_unit is not None:
            said = {"privacy_unit": folded(table.privacy_unit), "max_rows_per_unit": table.max_rows_per_unit}
        if table.public:
            said["public"] = True
        if folded(name) in tables:
            raise policy_error(policy.origin, f"tables.{name}", "is declared twice", "keep one of the two")
        tables[folded(name)] = said
    analysts = None if policy.analysts is None else {name: _cap(cap) for name, cap in policy.analysts.items()}
    return PolicyTerms({n: said for n, said in tables.items() if said}, analysts, policy.trust_schema, may_begin)


def read_terms(text: str) -> PolicyTerms:
    """What ``PolicyTerms.text`` wrote."""
    try:
        said = json.loads(text)
        return PolicyTerms(said.get("tables", {}), said.get("analysts"), said.get("trust_schema", False))
    except (ValueError, AttributeError):
        raise LedgerError(_DAMAGED) from None


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
