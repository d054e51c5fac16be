"""SQL text → sqlglot statements with their spans. Applies the limits of size and depth; meaning comes later."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType
from tacit.errors import LimitError, ParameterError, SqlError, SqlSyntaxError, UnsupportedSqlError
from tacit.process import deep_recursion

from . import dialect
from .calls import check_calls
from .statement import Span, Statement

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_STEPS = {TokenType.L_BRACKET, TokenType.DOT}
_SIGNS = {TokenType.NOT, TokenType.DASH, TokenType.TILDE}
_PLAIN = {TokenType.VAR, TokenType.NUMBER, TokenType.STRING, TokenType.COMMA, TokenType.IDENTIFIER}
_OPERATORS = {
    TokenType.AND, TokenType.OR, TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD,
    TokenType.DPIPE, TokenType.DCOLON, TokenType.IS, TokenType.NOT, TokenType.UNION, TokenType.JOIN, TokenType.EQ,
    TokenType.CASE, TokenType.WHEN, TokenType.DOT, TokenType.LIKE, TokenType.DIV,
}  # fmt: skip
_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.Like, exp.ILike, exp.SimilarTo, exp.Glob,
)  # fmt: skip
_QUOTE = re.compile(r"""'|"|--|/\*|\$\w*\$""")
"""What a text, a name or a comment begins with."""
_CLOSED = re.compile(r"""'(?:[^']|'')*'(?!')|"(?:[^"]|"")*"(?!")|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$""", re.DOTALL)
_FRAMES = 4000
"""The pure-Python parser needs a dozen frames for each parenthesis; 100 of them do not fit Python's default limit."""
_BEGINNINGS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN, TokenType.VAR}
"""What a statement may begin with. VAR is a misspelt word, and the parser's error about it is the better one."""


@dataclass(frozen=True)
class Limits:
    """How much text a batch may hold and how many cells it may tell apart; the curator sets them."""

    characters: int = 1_000_000
    """Characters of the whole batch."""
    nesting: int = 100
    """Parentheses, CASE and subqueries inside each other."""
    statements: int = 10_000
    """Queries of one batch."""
    words: int = 20_000
    """Words, numbers and signs in one statement."""
    operators: int = 2_000
    """AND, OR, +, JOIN, WHEN and the like in one statement: a chain of n makes a tree of depth n."""
    cells: int = 1 << 20
    """Points of the grid of all columns of a table, where the batch is one matrix."""
    dense_cells: int = 2048
    """Cells of a table, up to which a batch that has a product form too is one matrix."""
    points: int = 1 << 24
    """Points of the grid of the columns that one query mentions; where there are more, it is computed row by row."""
    rows: int = 1_000_000
    """Answers of one batch: one for each figure of each group."""
    entries: int = 50_000_000
    """Entries of all matrices of a table."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """The text of one statement, not parsed yet."""

    source: str
    tokens: list[Token]
    error: SqlError | None = None
    """Why there is nothing to parse."""

    def parsed(self, limits: Limits) -> Statement:
        """The statement; raises only errors that point at the text."""
        if self.error is not None:
            raise self.error
        return _parse_one(self.tokens, self.source, limits)

    def located(self, error: SqlError) -> SqlError:
        """An error about the whole batch, at the statement that it was noticed at."""
        return Span.of(self.source, self.tokens[0], self.tokens[-1]).error(type(error), error.message, error.hint)


def parse_batch(batch: str | Sequence[str], limits: Limits) -> Iterator[Statement]:
    """The statements of a batch, parsed one by one so that only one tree is in memory at a time.

    Raises only errors that point at the text.
    """
    return (chunk.parsed(limits) for chunk in split_batch(batch, limits))


def split_batch(batch: str | Sequence[str], limits: Limits) -> list[Chunk]:
    """The texts of the statements of a batch; raises only what concerns the batch as a whole."""
    texts = [batch] if isinstance(batch, str) else batch
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise SqlSyntaxError("a batch is one SQL string or a list of them", hint='write ["SELECT …", "SELECT …"]')
    if sum(map(len, texts)) > limits.characters:
        raise LimitError(
            f"the batch is longer than {limits.characters:,} characters", hint="split it into several batches"
        )
    chunks = [chunk for text in texts for chunk in _chunks(text)]
    if len(chunks) > limits.statements:
        raise LimitError(
            f"the batch has more than {limits.statements:,} statements", hint="split it into several batches"
        )
    if not chunks:
        raise SqlSyntaxError("the batch is empty", hint="write at least one SELECT")
    placeholders = 0
    for i, chunk in enumerate(chunks):
        chunks[i], placeholders = _number_placeholders(chunk, placeholders)
    return chunks


def _chunks(text: str) -> Iterator[Chunk]:
    try:
        tokens = dialect.tokenize(text + "\n")  # without the line end, sqlglot misreads '' at the end after a $1
    except TokenError:
        unclosed = Span(text, _unclosed(text), len(text))
        yield Chunk(text, [], unclosed.error(SqlSyntaxError, "a quote or a comment is not closed", "close it"))
        return
    for semicolon, group in itertools.groupby(tokens, lambda token: token.token_type == TokenType.SEMICOLON):
        if not semicolon:
            yield Chunk(text, list(group))


def _unclosed(text: str) -> int:
    """Where the quote or comment begins that has no end.

    Closed ones are passed over, whatever quotes stand inside them. Escapes of ``E'…'`` and comments inside comments are
    not followed: where they hide the place, it is the last quote or comment sign of the text.
    """
    place = 0
    while opening := _QUOTE.search(text, place):
        closed = _CLOSED.match(text, opening.start())
        if closed is None:
            return opening.start()
        place = closed.end()
    return max(0, *(text.rfind(sign) for sign in ("'", '"', "/*", "$$")))


def _number_placeholders(chunk: Chunk, seen: int) -> tuple[Chunk, int]:
    """Turn every ``?`` into ``$1``, ``$2``, …: the parser does not number them."""
    if not any(token.token_type == TokenType.PLACEHOLDER for token in chunk.tokens):
        return chunk, seen
    numbered: list[Token] = []
    error = None
    for token in chunk.tokens:
        if token.token_type == TokenType.PARAMETER:
            error = Span.of(chunk.source, token).error(
                ParameterError, "'?' and '$' parameters are mixed in one statement", "use one of the two styles"
            )
        if token.token_type != TokenType.PLACEHOLDER:
            numbered.append(token)
            continue
        seen += 1
        place = (token.line, token.col, token.start, token.end)
        numbered.append(Token(TokenType.PARAMETER, "$", *place))
        numbered.append(Token(TokenType.NUMBER, str(seen), *place))
    return Chunk(chunk.source, numbered, error), seen


def _parse_one(tokens: list[Token], source: str, limits: Limits) -> Statement:
    text = Span.of(source, tokens[0], tokens[-1])
    too_deep = text.error(
        LimitError, f"the statement nests deeper than {limits.nesting} levels", "write it with fewer parentheses"
    )
    depth, operators = _measured(tokens) if len(tokens) <= limits.words else (0, 0)
    if len(tokens) > limits.words or operators > limits.operators:
        raise text.error(
            LimitError, f"the statement has more than {limits.words:,} words or {limits.operators:,} operators",
            "split it into several statements, or write IN for a long OR",
        )  # fmt: skip
    if depth > limits.nesting:
        raise too_deep
    _check_numbers(tokens, source)
    tilde = next((token for token in tokens if token.token_type == TokenType.TILDE), None)
    if tilde is not None:  # it matches the whole text, and sqlglot's tree does not tell it from regexp_matches
        raise Span.of(source, tilde).error(
            UnsupportedSqlError, "the operator ~ is not supported", "write regexp_matches(column, 'pattern')"
        )
    if tokens[0].token_type not in _BEGINNINGS:
        raise Span.of(source, tokens[0]).error(
            UnsupportedSqlError, f"tacit answers SELECT and nothing else, not {tokens[0].text.upper()[:40]}",
            "write a SELECT",
        )  # fmt: skip
    try:
        with deep_recursion(_FRAMES):
            trees = dialect.parse(tokens, source)
    except ParseError as error:
        raise _syntax_error(error, text) from None
    except RecursionError:
        raise too_deep from None
    if len(trees) != 1 or trees[0] is None:
        raise text.error(SqlSyntaxError, "this is not a statement", "write a SELECT")
    statement = Statement(text, trees[0])
    _check_precedence(statement)
    check_calls(statement, tokens)
    return statement


def _check_numbers(tokens: list[Token], source: str) -> None:
    """Refuse what sqlglot and DuckDB read differently: 0x1F as ``0 AS x1F``, and .5 as 0.5, with one digit more."""
    for token, after in itertools.pairwise(tokens):
        # a numbered "?" is a NUMBER too, and a word may follow it at once
        if token.token_type != TokenType.NUMBER or not source[token.start].isdigit():
            continue
        if after.start == token.end + 1 and (source[after.start].isalnum() or source[after.start] in "_."):
            raise Span.of(source, token, after).error(
                SqlSyntaxError, "a number runs into a word", "write a decimal number, and a space after it"
            )
    for before, token in itertools.pairwise(tokens):
        if before.token_type == TokenType.DOT and token.token_type == TokenType.NUMBER and len(token.text) > 37:
            raise Span.of(source, before, token).error(
                SqlSyntaxError, "this number is too long to begin with a point",
                "write CAST('0.…' AS DECIMAL(38,38))",
            )  # fmt: skip


def _check_precedence(statement: Statement) -> None:
    """Refuse comparisons of comparisons without parentheses: sqlglot and DuckDB bind some of them differently.

    ``a NOT IN (1, 2) < b`` is ``NOT (a IN (1, 2) < b)`` to sqlglot and ``(a NOT IN (1, 2)) < b`` to DuckDB.
    """
    for node in statement.tree.find_all(*_COMPARISONS):
        for name in ("this", "expression", "low", "high"):
            operand = node.args.get(name)
            if isinstance(operand, (*_COMPARISONS, exp.Not)):
                raise statement.error(
                    UnsupportedSqlError, node, "a comparison is compared with something",
                    "put the inner comparison in parentheses",
                )  # fmt: skip


def _measured(tokens: list[Token]) -> tuple[int, int]:
    """(how deep the statement nests, how many operators make its tree deeper); SQL joins two strings in a row.

    ``x[1][1]`` and ``f().g()`` nest too, one level for each step, and sqlglot copies or types the whole at each.
    """
    depth = deepest = chain = operators = steps = 0
    before = None
    for token in tokens:
        kind = token.token_type
        if kind in _PLAIN and kind != before:
            before, chain = kind, 0
            continue
        chain = chain + 1 if kind in _SIGNS else 0
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        steps += kind in _STEPS and before in _CLOSING
        operators += kind in _OPERATORS or (kind == before == TokenType.STRING)
        deepest = max(deepest, depth + chain)
        before = kind
    return max(deepest, steps), operators


def _syntax_error(error: ParseError, text: Span) -> SqlError:
    detail: dict[str, Any] = error.errors[0] if error.errors else {}
    highlight = str(detail.get("highlight") or "")
    # sqlglot gives the text around the mistake, not its offset; the context before it is cut to 100 characters.
    before = str(detail.get("start_context") or "")
    at = text.source.find(before + highlight, max(0, text.start - len(before))) if before or highlight else -1
    if at >= 0:
        start = at + len(before)
        text = Span(text.source, start, start + max(len(highlight), 1))
    near = f" near '{highlight}'" if highlight else ""
    return text.error(SqlSyntaxError, f"this does not parse as SQL{near}", _syntax_hint(detail))


def _syntax_hint(detail: dict[str, Any]) -> str:
    description = str(detail.get("description") or "")
    if description.startswith("Expecting"):
        return f"expected {description.removeprefix('Expecting ')} here"
    if "missing" in description:
        return "something is missing after this"
    return "check the spelling of the words around it"
