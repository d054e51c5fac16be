"""Where in a TOML file a key stands: ``tomllib`` reads the values and forgets the lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

_HEADER = re.compile(r"\s*\[([^\[\]].*?)\]\s*(#.*)?")
_KEY = re.compile(r"""\s*((?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*'))*)\s*=""")

Keys = tuple[str, ...]


def keys_of(raw: Mapping[str, Any], path: str) -> Keys | None:
    """The keys of a policy that a dotted path goes through, as far as they are there; None where the first is not.

    Names can hold dots themselves, so it takes the policy to tell where one ends.

    >>> keys_of({"tables": {"s.t": {"columns": {"age": {}}}}}, "tables.s.t.columns.age.min")
    ('tables', 's.t', 'columns', 'age')
    """
    for key, value in raw.items():
        if path.lower() == key.lower():
            return (key,)
        if path.lower().startswith(f"{key.lower()}."):
            inner = keys_of(value, path[len(key) + 1 :]) if isinstance(value, Mapping) else None
            if inner is not None:
                return (key, *inner)
    fits = [key for key in raw if path.lower().startswith(f"{key.lower()}.")]
    return (max(fits, key=len),) if fits else None


def line_of(text: str, keys: Keys) -> int:
    """The line (from 1) on which a key stands, or the nearest section around it; 0 where there is none.

    >>> line_of('[tables.visits]\\nkey = "a"\\n[tables.visits.columns]\\nage = {}', ("tables", "visits", "key"))
    2
    >>> line_of('[tables.visits.columns]\\nage = { min = 0 }', ("tables", "visits", "columns", "age", "min"))
    2
    >>> line_of('a = 1\\n[tables.visits.columns]', ("tables", "visits"))
    2
    """
    best, found = 0, 0
    section: Keys = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.fullmatch(line)
        key = None if header else _KEY.match(line)
        if header:
            section = here = _parts(header[1])
        elif key:
            here = (*section, *_parts(key[1]))
        else:
            continue
        depth = min(len(here), len(keys))
        if here[:depth] == keys[:depth] and depth > best and (len(here) <= len(keys) or header):
            best, found = depth, number
    return found


def _parts(dotted: str) -> Keys:
    try:
        value: Any = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ("\0",)
    parts = []
    while isinstance(value, dict):
        (name, value), *_ = value.items()
        parts.append(name)
    return tuple(parts)
