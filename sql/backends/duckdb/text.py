"""The text of DuckDB's SQL: its tokens, and how names, constants and expressions are written."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

DUCKDB = sqlglot.Dialect.get_or_raise("duckdb")


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; sqlglot's TokenError where a quote or a comment is not closed."""
    return DUCKDB.tokenize(text)


def parse(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """The statements that tokens of a text make; sqlglot's ParseError where they make none."""
    return list(DUCKDB.parser().parse(tokens, text))


def write(node: exp.Expr, *, comments: bool = False, functions_as_typed: bool = False) -> str:
    """An expression as SQL; ``functions_as_typed`` leaves the case of function names as the analyst wrote it."""
    if functions_as_typed:
        node = node.transform(_within_group)
    return node.sql("duckdb", comments=comments, normalize_functions=False if functions_as_typed else None)


def _within_group(node: exp.Expr) -> exp.Expr:
    """WITHIN GROUP as it was written: sqlglot writes it in another form, to which DuckDB gives another name."""
    if not isinstance(node, exp.WithinGroup):
        return node
    function, order = node.this, node.expression.sql("duckdb")
    argument = function.this.sql("duckdb") if isinstance(function.this, exp.Expr) else ""
    return exp.Var(this=f"{function.sql_name()}({argument}) WITHIN GROUP ({order})")


def quote(name: str) -> str:
    """An identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string constant, quoted."""
    return "'" + text.replace("'", "''") + "'"


def double(value: float) -> str:
    """A DOUBLE constant, infinities and NaN included."""
    return f"CAST('{value!r}' AS DOUBLE)"


def guarded(sql: str) -> str:
    """NULL where a value makes the expression fail. Total only for what ``total.Prover`` accepts."""
    return f"TRY({sql})"


def short(reference: str, size: int) -> str:
    """A stored text or ENUM, and NULL in place of one with more bytes than ``size``."""
    return f"(CASE WHEN strlen(CAST({reference} AS VARCHAR)) <= {size} THEN {reference} END)"


def view_body(text: str) -> str:
    """The SELECT of a CREATE VIEW, under the names of its column list if it has one.

    What cannot be read is returned whole, and refused when a query uses it: a CREATE is no SELECT.
    """
    try:
        tokens = tokenize(text)
    except TokenError:
        return text
    place = next((i for i, token in enumerate(tokens) if token.token_type == TokenType.ALIAS), None)
    head = tokens[:place]
    if place is None or TokenType.VIEW not in (token.token_type for token in head):
        return text
    body = text[tokens[place].end + 1 :].rstrip().removesuffix(";")
    if head[-1].token_type != TokenType.R_PAREN:
        return body
    opening = next(i for i, token in enumerate(head) if token.token_type == TokenType.L_PAREN)
    names = ", ".join(quote(token.text) for token in head[opening + 1 : -1] if token.token_type != TokenType.COMMA)
    return f"SELECT * FROM ({body}) AS renamed({names})"  # noqa: S608
