"""Calls as they are typed, against the functions that DuckDB has.

sqlglot reads more than DuckDB does: ``nvl`` and ``iif``, ``if`` of two arguments, BETWEEN SYMMETRIC. From some calls it
silently drops an argument, as from ``strftime(d, '%Y', 'x')``. tacit answers only what DuckDB answers too, so names and
numbers of arguments are taken from the text and looked up in DuckDB's own list of functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType
from tacit.errors import SqlError, UnsupportedSqlError

from . import dialect
from .statement import Statement

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_TYPED = "tacit typed name"
"""Where a node of sqlglot's tree keeps the name that was typed; copies of the node keep it too."""


def typed_name(node: exp.Expr) -> str | None:
    """The name of a function as it was typed, in lower case; None where sqlglot keeps no position of it."""
    name = node.meta.get(_TYPED)
    return None if name is None else str(name)


def check_calls(statement: Statement, tokens: list[Token]) -> None:
    """Refuse each listed function that DuckDB has not under this name or with this number of arguments."""
    calls = dict(_calls(tokens))
    for node in statement.tree.find_all(exp.Func, exp.Between):
        if isinstance(node, exp.Between):
            if node.args.get("symmetric"):
                raise statement.error(
                    UnsupportedSqlError, node, "DuckDB has no BETWEEN SYMMETRIC", "write the smaller value first"
                )
        elif node.meta.get("start") in calls:
            name, count = calls[node.meta["start"]]
            node.meta[_TYPED] = name
            if type(node) in dialect.BY_NODE or isinstance(node, exp.If):
                _check_count(statement, node, name, count)
        elif isinstance(node, exp.If) and node.arg_key != "ifs" and node.args.get("false") is None:
            raise _wrong_count(statement, node, "if", 2, "3")  # sqlglot keeps no position of ``if``


def _check_count(statement: Statement, node: exp.Expr, name: str, count: int) -> None:
    counts, least = dialect.argument_counts(name)
    if not counts and least is None:
        raise statement.error(
            UnsupportedSqlError, node, f"DuckDB has no function {name[:40]}", f"write {dialect.write(node)[:60]}"
        )
    if count not in counts and (least is None or count < least):
        listed = " or ".join(str(n) for n in sorted(counts)) if least is None else f"{least} or more"
        raise _wrong_count(statement, node, name, count, listed)


def _wrong_count(statement: Statement, node: exp.Expr, name: str, count: int, listed: str) -> SqlError:
    return statement.error(
        UnsupportedSqlError, node, f"{name} does not take {count} argument{'' if count == 1 else 's'}",
        f"DuckDB's {name} takes {listed}",
    )  # fmt: skip


def _calls(tokens: list[Token]) -> Iterator[tuple[int, tuple[str, int]]]:
    """(where the name begins, (name, number of arguments)) of everything that is written like a call."""
    open_: list[tuple[int, int]] = []
    """The token before each parenthesis that is open, and the commas in it so far."""
    for place, token in enumerate(tokens):
        if token.token_type in _OPENING:
            open_.append((place - 1, 0))
        elif not open_:
            continue
        elif token.token_type in _CLOSING:
            before, commas = open_.pop()
            if before >= 0:
                count = 0 if place == before + 2 else commas + 1
                yield tokens[before].start, (tokens[before].text.lower(), count)
        elif token.token_type == TokenType.COMMA:
            before, commas = open_[-1]
            open_[-1] = before, commas + 1
