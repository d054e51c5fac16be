"""Names of tables and columns: how DuckDB compares them, how a table's name is spelt, and help with misspelt ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

MAIN = "main"
"""The schema whose tables go by their bare name."""
_PART = re.compile(r'"(?:[^"]|"")+"|[^."]+')
_QUOTED = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))?")
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(name: str) -> str:
    """A name as DuckDB compares names: case does not matter for ASCII letters, and matters for all others.

    >>> folded("Age"), folded("É") == folded("é")
    ('age', False)
    """
    return name.translate(_LOWER)


def spelled(path: Sequence[str]) -> str:
    """A table's name, different for different tables: with its schema unless that is main, quoted where SQL must.

    >>> spelled(("main", "visits")), spelled(("s", "t")), spelled(("main", "s.t"))
    ('visits', 's.t', '"s.t"')
    """
    if folded(path[0]) == MAIN:
        return _quoted(path[1]) if "." in path[1] else path[1]
    return ".".join(_quoted(part) if set(part) & {".", '"'} else part for part in path)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def meanings(name: str) -> frozenset[tuple[str, str]]:
    """The (schema, table), folded, that a name in a policy can stand for: quotes leave one reading, as in SQL.

    >>> sorted(meanings("S.t")), sorted(meanings('s."t"'))
    ([('main', 's.t'), ('s', 't')], [('main', 's."t"'), ('s', 't')])
    """
    text = folded(name)
    if _QUOTED.fullmatch(text) and '"' in text:
        splits = [_split(text)]
    else:
        splits = [(text[:i], text[i + 1 :]) for i, letter in enumerate(text) if letter == "."]
    return frozenset([(MAIN, text), *splits])


def path_of(name: str) -> tuple[str, str]:
    """The (schema, table), folded, of a name that ``spelled`` wrote.

    >>> path_of("Visits"), path_of("s.t"), path_of('"s.t"')
    (('main', 'visits'), ('s', 't'), ('main', 's.t'))
    """
    text = folded(name)
    return _split(text) if "." in text and _QUOTED.fullmatch(text) else (MAIN, text)


def _split(text: str) -> tuple[str, str]:
    parts = [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in _PART.findall(text)]
    return (parts[0], parts[1]) if len(parts) > 1 else (MAIN, parts[0])


def nearest(name: str, existing: Sequence[str]) -> str:
    """A hint for a name that does not exist: the closest that does, or a few of them.

    >>> nearest("agee", ["age", "state"])
    'did you mean age?'
    >>> nearest("zzz", ["age", "state"])
    'there are age, state'
    """
    lowered = {folded(k): k for k in existing}
    close = difflib.get_close_matches(folded(name), lowered, n=1)
    if close:
        return f"did you mean {lowered[close[0]]}?"
    if not existing:
        return "there are none"
    return "there are " + ", ".join(list(existing)[:12]) + (", …" if len(existing) > 12 else "")


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Number repeated names as DuckDB's ``.df()`` does: ``x``, ``x_1``; case does not tell names apart.

    >>> numbered(["x", "x", "X", "x_1"])
    ('x', 'x_1', 'X_2', 'x_1_1')
    """
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        low = folded(name)
        if low in seen:
            while f"{low}_{seen[low]}" in seen:
                seen[low] += 1
            name = f"{name}_{seen[low]}"
        seen[folded(name)] = 1
        unique.append(name)
    return tuple(unique)
