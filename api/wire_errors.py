"""Errors between a server and its clients: enough of each to raise the same one with the same text, and no more.

A batch can be a megabyte on one line, and twenty of its queries wrong. What travels of a long text is the part around
the span; the client puts the whole in its place, because the text is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.engine import Amount

from . import errors
from .errors import BudgetError, Error, SqlError
from .wire import amount, read_amount

_LONGEST = 2000
"""Characters of a message or of a hint."""
_SHOWN = 600
"""Characters of a text of SQL."""
_BEFORE = 200
"""Those of them before the span: more than the error itself prints."""


def error_body(error: Error) -> dict[str, Any]:
    """What is said of an error of tacit's tree: enough to raise the same one with the same text."""
    if isinstance(error, SqlError):
        body = _sql_error(error)
        if len(error.errors) > 1:
            body["errors"] = [_sql_error(one) for one in error.errors]
            body["complete"] = error._complete
        return {"error": body}
    message, _, hint = str(error).partition("\nhint: ")
    kind = next(k.__name__ for k in type(error).__mro__ if getattr(errors, k.__name__, None) is k)
    body = {"class": kind, "message": _cut(message), "sql": "", "start": 0, "end": 0, "hint": _cut(hint)}
    if isinstance(error, BudgetError):
        body["asked"], body["left"] = amount(Amount(*error.asked)), amount(Amount(*error.left))
    return {"error": body}


def _sql_error(error: SqlError) -> dict[str, Any]:
    text, offset = error.sql, 0
    if len(text) > _SHOWN:
        offset = max(0, min(error.start - _BEFORE, len(text) - _SHOWN))
        text = text[offset : offset + _SHOWN]
    body = {
        "class": type(error).__name__,
        "message": _cut(error.message),
        "sql": text,
        "start": min(error.start - offset, len(text)),
        "end": min(error.end - offset, len(text)),
        "hint": _cut(error.hint),
        "query": error.query,
    }
    if len(text) < len(error.sql):
        body |= {"offset": offset, "length": len(error.sql), "end_of_span": error.end}
    return body


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def read_error(body: Any, batch: str | Sequence[str] = ()) -> Error:
    """The error that a body tells of: of the same class and with the same text. ``batch`` is what it is about."""
    texts = [batch] if isinstance(batch, str) else batch
    try:
        content = body["error"]
        error = _read_one(content, texts)
        if isinstance(error, SqlError) and content.get("errors"):
            found = [one for one in (_read_one(each, texts) for each in content["errors"]) if isinstance(one, SqlError)]
            error._all, error._complete = tuple(found), bool(content.get("complete", True))
        return error
    except (KeyError, TypeError, AttributeError, ArithmeticError, ValueError):
        return errors.OperationalError("the server sent an error that cannot be read")


def _read_one(content: Mapping[str, Any], texts: Sequence[str]) -> Error:
    kind = getattr(errors, str(content["class"]), None)
    if not (isinstance(kind, type) and issubclass(kind, Error)):
        kind = errors.OperationalError
    message, hint = str(content["message"]), str(content.get("hint") or "")
    if issubclass(kind, SqlError):
        sql, start, end = _span(content, texts)
        error = kind(message, sql=sql, start=start, end=end, hint=hint)
        error.query = None if content.get("query") is None else int(content["query"])
        return error
    text = f"{message}\nhint: {hint}" if hint else message
    if issubclass(kind, BudgetError):
        return kind(text, asked=read_amount(content["asked"]), left=read_amount(content["left"]))
    return kind(text)


def _span(content: Mapping[str, Any], texts: Sequence[str]) -> tuple[str, int, int]:
    """The text of an error and the span in it: the client's own, where the server sent a part of that."""
    sql, start, end = str(content["sql"]), int(content["start"]), int(content["end"])
    if "offset" in content:
        offset, length = int(content["offset"]), int(content["length"])
        for text in texts:
            if len(text) == length and offset >= 0 and text.startswith(sql, offset):
                sql, start, end = text, start + offset, int(content["end_of_span"])
                break
    # Inside the text, whatever the server says: the underline of it could fill the memory.
    return sql, min(max(start, 0), len(sql)), min(max(end, 0), len(sql))
