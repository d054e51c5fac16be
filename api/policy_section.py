"""What every section of a policy needs: its keys, its simple values, and errors that name the path of a key."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, NoReturn

from tacit.engine import to_delta, to_epsilon
from tacit.sql.names import folded

from .errors import PolicyError, PrivacyParameterError

PLACEHOLDER = "…"
"""What stands in a draft where the owner is to write something. It is no value of anything."""
_TO_WRITE = {
    "values": 'list the values that GROUP BY may show, such as values = ["a", "b"]',
    "min": "write the least value, such as min = 0 or min = 2024-01-01",
    "max": "write the largest value, such as max = 120 or max = 2024-12-31",
    "privacy_unit": 'name the column that tells whose a row is, such as privacy_unit = "patient_id"',
}


def policy_error(origin: str, path: str, what: str, instead: str) -> PolicyError:
    """One sentence that names the key, and what to write instead."""
    error = PolicyError(f"{origin}: {path} {what}\nhint: {instead}")
    error.path = path
    return error


@dataclass
class Place:
    """A place in a policy, for errors."""

    origin: str
    """What error messages call the policy: the file's name."""
    path: str

    def refuse(self, key: str, what: str, instead: str) -> NoReturn:
        """Say what is wrong with a key of this place; with an empty key, with the place itself."""
        raise policy_error(self.origin, ".".join(part for part in (self.path, key) if part), what, instead) from None


class Section(Place):
    """One section of the policy, whose keys are all among ``keys``; ``None`` lets the curator choose names.

    ``keys`` may be the dataclass that the section is read into: then its fields are the keys.
    """

    def __init__(self, raw: Any, origin: str, path: str, keys: Collection[str] | type | None) -> None:
        super().__init__(origin, path)
        allowed = [f.name for f in fields(keys)] if isinstance(keys, type) else keys
        if not isinstance(raw, Mapping):
            name = path or "the policy"
            raise policy_error(origin, name, f"must be a section, not {kind(raw)}", f"write [{name}]")
        self.entries: Mapping[str, Any] = raw
        for key in raw:
            if not isinstance(key, str):
                self.refuse(str(key), "is not a name", "keys of a policy are strings")
            if allowed is not None and key not in allowed:
                self.refuse(key, "is not a key that tacit knows", suggestion(key, allowed))
            if _is_unfilled(raw[key]):
                instead = _TO_WRITE.get(key, "write a value in its place, or take the line out")
                self.refuse(key, f'still holds "{PLACEHOLDER}", the mark of what is to be written', instead)

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def get(self, key: str, default: Any = None) -> Any:
        return self.entries.get(key, default)

    def inner(self, key: str, keys: Collection[str] | type | None) -> Section:
        """The section under a key; an empty one where it is left out."""
        path = f"{self.path}.{key}" if self.path else key
        return Section(self.entries.get(key, {}), self.origin, path, keys)

    def flag(self, key: str) -> bool:
        """True or false; false where it is left out."""
        value = self.entries.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, f"must be true or false, not {kind(value)}", f"write {key} = true")
        return bool(value)

    def epsilon(self, key: str) -> Decimal | None:
        if key not in self.entries:
            return None
        value = self.entries[key]
        try:
            return to_epsilon(value)
        except PrivacyParameterError as error:
            if "at most" in str(error):
                self.refuse(key, str(error).partition(" ")[2], f"write {key} = 1.0")
            self.refuse(key, f"must be a positive finite number, not {show(value)}", f"write {key} = 1.0")

    def delta(self, key: str) -> Decimal | None:
        if key not in self.entries:
            return None
        value = self.entries[key]
        try:
            return to_delta(value)
        except PrivacyParameterError:
            self.refuse(key, f"must be a number from 0 to below 1, not {show(value)}", "write delta = 1e-9")


def _is_unfilled(value: object) -> bool:
    return value == PLACEHOLDER or (isinstance(value, (list, tuple)) and PLACEHOLDER in value)


def suggestion(name: str, names: Collection[str]) -> str:
    """The nearest valid name, or all of them."""
    by_folded = {folded(k): k for k in names}
    close = difflib.get_close_matches(folded(name), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]}?"
    return f"one of {', '.join(sorted(names))}" if names else "there is none"


def is_integer(value: object) -> bool:
    """Whether a value of the policy is a whole number; true and false are none."""
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


def kind(value: object) -> str:
    """What a value of the policy is, for a sentence."""
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
