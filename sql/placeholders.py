"""Named placeholders made positional, so that one text can be asked for many sets of parameters in one batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType
from tacit.errors import ParameterError

from . import dialect


def positional(sql: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Write ``?`` for every ``:name`` and ``$name`` that has a value, and list the values in that order.

    >>> positional("SELECT count(*) FROM t WHERE a < :x AND b = $y", {"x": 1, "y": 2})
    ('SELECT count(*) FROM t WHERE a < ? AND b = ?', [1, 2])
    """
    pieces, ordered, used, done = [], [], set(), 0
    for start, end, name in _placeholders(sql):
        if name in values:
            pieces += [sql[done:start], "?"]
            ordered.append(values[name])
            used.add(name)
            done = end
    unused = [name for name in values if name not in used]
    if unused:
        raise ParameterError(
            f"no placeholder is called {unused[0]!r}", sql=sql, hint=f"write :{unused[0]} where its value belongs"
        )
    return "".join([*pieces, sql[done:]]), ordered


def uses(sql: str, names: Collection[str]) -> bool:
    """Whether the text has a placeholder of one of these names.

    >>> uses("SELECT count(*) FROM t WHERE a < $1", ["1"]), uses("SELECT count(*) FROM t WHERE a < ?", ["1"])
    (True, False)
    """
    return any(name in names for _, _, name in _placeholders(sql))


def _placeholders(sql: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and name of every ``:name`` and ``$name``; none where the text cannot be tokenized."""
    try:
        tokens = dialect.tokenize(sql)
    except TokenError:
        return  # the compiler reports where the text breaks
    for sign, name in pairwise(tokens):
        if sign.token_type in (TokenType.COLON, TokenType.PARAMETER) and name.start == sign.end + 1:
            yield sign.start, name.end + 1, name.text
