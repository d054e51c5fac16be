"""Named placeholders made positional, so that one text can be asked for many sets of parameters in one batch."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType
from tacit.sql.parse import DUCKDB

from .errors import ParameterError


def positional(sql: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Write ``?`` for every ``:name`` and ``$name`` that has a value, and list the values in that order.

    >>> positional("SELECT count(*) FROM t WHERE a < :x AND b = $y", {"x": 1, "y": 2})
    ('SELECT count(*) FROM t WHERE a < ? AND b = ?', [1, 2])
    """
    try:
        tokens = DUCKDB.tokenize(sql)
    except TokenError:
        return sql, []  # the compiler says where the text breaks
    pieces, ordered, used, done = [], [], set(), 0
    for sign, name in pairwise(tokens):
        marks = sign.token_type in (TokenType.COLON, TokenType.PARAMETER) and name.start == sign.end + 1
        if marks and name.text in values:
            pieces += [sql[done : sign.start], "?"]
            ordered.append(values[name.text])
            used.add(name.text)
            done = name.end + 1
    unused = [name for name in values if name not in used]
    if unused:
        raise ParameterError(
            f"no placeholder is called {unused[0]!r}", sql=sql, hint=f"write :{unused[0]} where its value belongs"
        )
    return "".join([*pieces, sql[done:]]), ordered
