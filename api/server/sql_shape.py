"""What a log says of SQL: its shape, with ``?`` for every constant, because a constant can be somebody's name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

_LONGEST = 20_000
_SHOWN = 400
_CONSTANTS = frozenset(
    kind for kind in TokenType if kind.name.endswith("STRING") or kind.name in ("NUMBER", "PARAMETER", "IDENTIFIER")
)
"""Names in quotes too: quotes of the wrong kind make a name of a constant."""
_KEYWORDS = frozenset(word.upper() for word in DuckDB.Tokenizer.KEYWORDS)


_FUNCTIONS = frozenset(name.lower() for name in exp.FUNCTION_BY_NAME) | {"count"}


def sql_fields(sql: Any, mode: str, names: Callable[[], frozenset[str]]) -> dict[str, Any]:
    """The fields of a log line about a batch: ``mode`` is ``shape``, ``none`` or ``full``.

    ``names`` gives those of the tables and columns, in small letters.
    """
    if sql is None or mode == "none":
        return {}
    text = sql if isinstance(sql, str) else "; ".join(sql)
    return {"sql": text if mode == "full" else shape(text, names())}


def shape(sql: str, names: Container[str]) -> str:
    """SQL without its constants, cut short; a text that has no tokens is shown as its hash alone.

    Of words, those are shown that SQL or the catalog knows: any other can be a constant without its quotes.

    >>> names = {"visits", "age", "name"}
    >>> shape("SELECT count(*) FROM visits WHERE age > 44.5 AND name = 'Smith' OR name = smith", names)
    'SELECT count ( * ) FROM visits WHERE age > ? AND name = ? OR name = ?'
    """
    if len(sql) <= _LONGEST:
        try:
            tokens = sqlglot.tokenize(sql, dialect="duckdb")
            return (
                " ".join(_word(token, names) for token in tokens)[:_SHOWN].encode("ascii", "backslashreplace").decode()
            )
        except (SqlglotError, RecursionError, ValueError):
            pass
    return "sha256:" + hashlib.sha256(sql.encode(errors="surrogatepass")).hexdigest()[:16]


def _word(token: Any, names: Container[str]) -> str:
    if token.token_type in _CONSTANTS:
        return "?"
    text = str(token.text)
    is_word = token.token_type == TokenType.VAR or not (text.upper() in _KEYWORDS or not text[:1].isalnum())
    known = text.lower() in names or text.lower() in _FUNCTIONS
    return "?" if is_word and not known else text
