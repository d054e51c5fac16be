"""What a log says of SQL: its shape, with ``?`` for every constant, because a constant can be somebody's name."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

_LONGEST = 20_000
_SHOWN = 400
_CONSTANTS = frozenset(
    kind for kind in TokenType if kind.name.endswith("STRING") or kind.name in ("NUMBER", "PARAMETER", "IDENTIFIER")
)
"""Names in quotes too: quotes of the wrong kind make a name of a constant."""


def sql_fields(sql: Any, mode: str) -> dict[str, Any]:
    """The fields of a log line about a batch: ``mode`` is ``shape``, ``none`` or ``full``."""
    if sql is None or mode == "none":
        return {}
    text = sql if isinstance(sql, str) else "; ".join(sql)
    return {"sql": text if mode == "full" else shape(text)}


def shape(sql: str) -> str:
    """SQL without its constants, cut short; a text that has no tokens is shown as its hash alone.

    >>> shape("SELECT count(*) FROM visits WHERE name = 'Smith' AND age > 44.5")
    'SELECT count ( * ) FROM visits WHERE name = ? AND age > ?'
    """
    if len(sql) <= _LONGEST:
        try:
            tokens = sqlglot.tokenize(sql, dialect="duckdb")
            words = ["?" if token.token_type in _CONSTANTS else token.text for token in tokens]
            return " ".join(words)[:_SHOWN].encode("ascii", "backslashreplace").decode()
        except (SqlglotError, RecursionError, ValueError):
            pass
    return "sha256:" + hashlib.sha256(sql.encode(errors="surrogatepass")).hexdigest()[:16]
