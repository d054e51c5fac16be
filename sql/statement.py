"""One parsed statement, and the text that its errors point at."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType
from tacit.errors import SqlError

from . import dialect

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_ENDS = (
    *(TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT),
    *(TokenType.OFFSET, TokenType.QUALIFY, TokenType.WINDOW, TokenType.UNION, TokenType.INTO),
)
"""What comes after a SELECT list."""


@dataclass(frozen=True)
class Span:
    """A stretch of SQL text that an error can underline."""

    source: str
    """The whole text that the analyst wrote."""
    start: int
    end: int

    @classmethod
    def of(cls, source: str, first: Token, last: Token | None = None) -> Span:
        """From one token to another, both included."""
        return cls(source, first.start, (last or first).end + 1)

    def error(self, kind: type[SqlError], message: str, hint: str) -> SqlError:
        """An error that underlines the stretch."""
        return kind(message, sql=self.source, start=self.start, end=self.end, hint=hint)


@dataclass(frozen=True)
class Statement:
    """A parsed statement and the text that it came from, without the semicolon."""

    text: Span
    tree: exp.Expr

    @property
    def sql(self) -> str:
        """The text of the statement alone."""
        return self.text.source[self.text.start : self.text.end]

    def item_text(self, item: exp.Expr) -> str | None:
        """The text of an item of the statement's own SELECT list; None for any other node."""
        items = self.tree.expressions if isinstance(self.tree, exp.Select) else []
        place = next((i for i, other in enumerate(items) if other is item), None)
        return None if place is None or len(items) != len(self._item_texts) else self._item_texts[place]

    @cached_property
    def _item_texts(self) -> list[str]:
        sql, depth = self.sql, 0
        edges: list[int] = []
        for token in dialect.tokenize(sql + "\n"):
            if edges and depth == 0 and token.token_type in (*_ENDS, TokenType.COMMA):
                edges.append(token.start)
                if token.token_type in _ENDS:
                    break
                edges.append(token.end + 1)
            elif not edges and depth == 0 and token.token_type == TokenType.SELECT:
                edges.append(token.end + 1)
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if len(edges) % 2:
            edges.append(len(sql))
        return [sql[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]

    def error(self, kind: type[SqlError], node: exp.Expr | None, message: str, hint: str) -> SqlError:
        """An error that underlines a node, or the whole statement."""
        return self.span(node).error(kind, message, hint)

    def span(self, node: exp.Expr | None) -> Span:
        """The text that a node was parsed from; the whole statement where sqlglot keeps no position."""
        marks = [] if node is None else [part.meta for part in node.walk() if "start" in part.meta]
        if not marks:
            return self.text
        source, first, last = self.text.source, self.text.start, self.text.end
        start, end = min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1
        if isinstance(node, exp.Func):  # sqlglot marks the argument, not always the function around it
            name = re.search(r"\w+\s*\(\s*$", source[first:start])
            start = first + name.start() if name else start
            while closing := re.match(r"\s*\)", source[end:last]):
                inside = source[start:end]
                if inside.count("(") <= inside.count(")"):
                    break
                end += closing.end()
        return Span(source, start, end)


def case_parts(
    node: exp.Case | exp.If,
) -> tuple[exp.Expr | None, list[tuple[exp.Expr, exp.Expr]], exp.Expr | None]:
    """(subject, (WHEN, THEN) of every branch, ELSE) of a CASE or an ``if``."""
    if isinstance(node, exp.If):
        return None, [(node.this, node.args["true"])], node.args.get("false")
    return node.this, [(branch.this, branch.args["true"]) for branch in node.args["ifs"]], node.args.get("default")


def parts_of(node: exp.Expr, without: Collection[str] = ()) -> list[exp.Expr]:
    """The nodes below a node, in the order of its arguments; ``without`` those of some arguments."""
    values = (value for name, value in node.args.items() if name not in without)
    return [part for value in values for part in (value if isinstance(value, list) else [value])
            if isinstance(part, exp.Expr)]  # fmt: skip


def rebuilt(node: exp.Expr, parts: Iterable[exp.Expr], without: Collection[str] = ()) -> exp.Expr:
    """A node of the same kind and place over other ``parts``, which stand for its ``parts_of``.

    It is put together anew: copying the whole at every level would take quadratic time. The parts are changed before,
    and not by a function given here, so that a long chain needs one frame for each link and not three.
    """
    rest = iter(parts)
    args: dict[str, Any] = {}
    for name, value in node.args.items():
        if name in without:
            continue
        if isinstance(value, list):
            args[name] = [next(rest) if isinstance(part, exp.Expr) else part for part in value]
        else:
            args[name] = next(rest) if isinstance(value, exp.Expr) else value
    again = type(node)(**args)
    again.meta.update(node.meta)
    return again


def bare(node: exp.Expr) -> exp.Expr:
    """An expression without the parentheses around it; those of a subquery stay."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
