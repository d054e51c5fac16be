"""Help with misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(name: str) -> str:
    """A name as DuckDB compares names: only ASCII letters know no case.

    >>> folded("Age"), folded("É") == folded("é")
    ('age', False)
    """
    return name.translate(_LOWER)


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint for a name that does not exist: the closest known one, or a few of them.

    >>> nearest("agee", ["age", "state"])
    'did you mean age?'
    >>> nearest("zzz", ["age", "state"])
    'there are age, state'
    """
    lowered = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    if close:
        return f"did you mean {lowered[close[0]]}?"
    if not known:
        return "there are none"
    return "there are " + ", ".join(list(known)[:12]) + (", …" if len(known) > 12 else "")
