"""The client: ``tacit.connect("https://…", token=…)`` is a connection like any other, and a server has the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.connection import Connection


def is_url(database: Any) -> bool:
    """Whether somebody means a server of tacit."""
    return isinstance(database, str) and database.lower().startswith(("https://", "http://"))


def open_remote(url: str, token: str | None, spend: Any, others: list[str]) -> Connection:
    """A connection to a server. ``others`` are arguments that only an embedded connection takes."""
    from .remote_connection import open_connection

    return open_connection(url, token, spend, others)
