"""Everything that is wrong with a policy, at once.

The reader of policies stops at the first thing that is wrong. Here it is read again and again: what it refuses is noted
and mended, or taken out, until it reads through. Only the copy in memory is mended.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tacit
from tacit.errors import Error, PolicyError

from .toml_places import keys_of, line_of

if TYPE_CHECKING:
    from tacit import Policy
    from tacit.sql import Catalog

_MOST = 200
_WRITE = re.compile(r"write (\w+ = .+?)(?:,| under| as well|$)")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or looks wrong."""

    level: str
    """``error`` or ``warning``."""
    message: str
    hint: str = ""
    line: int = 0
    """Of the policy's file; 0 where it is about none."""
    path: str = ""
    """The key that it is about."""


@dataclass(frozen=True)
class Review:
    """What was found, and the policy as far as it could be read."""

    findings: tuple[Finding, ...]
    policy: Policy | None = None
    catalog: Catalog | None = None


def review(text: str, name: str, database: str, folder: Path) -> Review:
    """Read a policy against the schema of its database; no row is read."""
    from tacit.policy import parse_toml, read_policy
    from tacit.policy_catalog import build_catalog
    from tacit.sql import open_source

    try:
        raw = parse_toml(text, name)
    except PolicyError as error:
        found = _finding(error, text, {})
        place = re.match(r".*?, line (\d+): ", found.message)
        if place is not None:
            found = replace(found, line=int(place[1]), message=found.message[place.end() :])
        return Review((found,))
    repairs = _Repairs(text, raw)
    policy = repairs.until_read(lambda now: read_policy(now, name, folder))
    if policy is None:
        return Review(tuple(repairs.findings))
    try:
        source = open_source(database, policy.types)
    except Error as error:
        return Review((*repairs.findings, _finding(error, text, raw)), policy)

    def met(now: dict[str, Any]) -> tuple[Policy, Catalog]:
        rules = read_policy(now, name, folder)
        return rules, build_catalog(rules, source)

    with closing(source):
        result = repairs.until_read(met)
    if result is None:
        return Review(tuple(repairs.findings), policy)
    findings = tuple(repairs.findings)
    return Review(findings or tuple(_ledger_findings(raw, database, folder, text)), *result)


class _Repairs:
    """The policy, and what was refused of it so far."""

    def __init__(self, text: str, raw: dict[str, Any]) -> None:
        self.findings: list[Finding] = []
        self._text = text
        self._raw = raw
        self._now = copy.deepcopy(raw)
        self._wrong: set[str] = set()
        """Paths that were refused; what was taken out there is not missing."""

    def until_read(self, read: Callable[[dict[str, Any]], Any]) -> Any:
        """What ``read`` makes of the policy when all that it refuses is mended; None if that does not end."""
        for _ in range(_MOST):
            try:
                return read(self._now)
            except Error as error:
                found = _finding(error, self._text, self._raw)
                if found.path not in self._wrong or " is missing" not in found.message:
                    self.findings.append(found)
                self._wrong.add(found.path)
                if not isinstance(error, PolicyError) or not self._mend(error):
                    return None
        return None

    def _mend(self, error: PolicyError) -> bool:
        """Follow the hint where a key is missing, and take out what is wrong elsewhere."""
        keys = keys_of(self._now, error.path) if error.path else None
        if not keys:
            return False
        if keys[:1] == ("tables",) and keys[2:3] == ("columns",):
            keys = keys[:4]  # a column is one line: half of it would be a mistake of our own making
        *outer, last = keys
        around = self._now
        for key in outer:
            around = around[key]
        is_missing = not error.path.lower().endswith(last.lower()) and isinstance(around[last], dict)
        written = _WRITE.search(str(error).partition("hint: ")[2])
        if is_missing and written is not None:
            try:
                added = tomllib.loads(written[1])
            except tomllib.TOMLDecodeError:
                added = {}
            if added and not added.keys() & around[last].keys():
                around[last].update(added)
                return True
        del around[last]
        if last == "privacy_unit":
            around.pop("max_rows_per_unit", None)
        return True


def _ledger_findings(raw: dict[str, Any], database: str, folder: Path, text: str) -> list[Finding]:
    """Whether the ledger that is there, if one is, accepts the policy."""
    whole = copy.deepcopy(raw)
    if "ledger" in whole.get("budget", {}):
        whole["budget"]["ledger"] = str((folder / whole["budget"]["ledger"]).resolve())
    try:
        tacit.connect(database, policy=whole).close()
    except Error as error:
        return [_finding(error, text, raw)]
    return []


def _finding(error: Error, text: str, raw: dict[str, Any]) -> Finding:
    message, _, hint = str(error).partition("\nhint: ")
    path = getattr(error, "path", "")
    keys = keys_of(raw, path) if path else None
    tail = path.split(".")[-1]
    line = line_of(text, (*keys, tail) if keys and keys[-1] != tail else keys) if keys else 0
    return Finding("error", message, hint, line, path)
