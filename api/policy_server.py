"""The policy's ``[server]`` section: how ``tacit serve`` runs. Nothing of the guarantee depends on it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from .policy_section import Section, is_integer, show

_POSTGRES = ("postgresql://", "postgres://")
_HOST = re.compile(r"[A-Za-z0-9.\-]+|\[[0-9A-Fa-f:]+\]")
LOG_SQL = ("shape", "none", "full")


@dataclass(frozen=True)
class ServerPolicy:
    """What the curator says of the server."""

    database: str | None = None
    """The database that is served; a path is seen from the policy's own folder."""
    hosts: tuple[str, ...] = ()
    """The names under which clients reach the server, beside its own address and those of the same machine."""
    quantum_ms: int = 100
    """Response times are rounded up to a multiple of this; 0 rounds nothing."""
    workers: int = 0
    """Processes that plan and answer; 0 for two for each processor, at least four."""
    scans: int = 2
    """How many of them may read private tables at once."""
    per_analyst: int = 2
    """How many requests of one analyst run at once; the others wait, and those of other analysts go before them."""
    queue: int = 256
    """How many requests wait at most."""
    queue_per_analyst: int = 32
    """How many requests of one analyst wait at most."""
    plan_seconds: int = 60
    """How long to search for a plan; a worker that has not paid after twice as long, and half a minute, is ended."""
    memory_mb: int = 4096
    """What a worker may take for planning."""
    body_kb: int = 2048
    """The longest request."""
    body_seconds: int = 10
    """How long a request may take to arrive, and a part of a response to be taken."""
    connections: int = 512
    """How many connections are open at once."""
    keep_hours: int = 72
    """How long results and refused requests are kept; a paid answer is made again from the ledger after that."""
    keep_mb: int = 256
    """How much is kept for one token; beyond it the oldest results go, and refused requests are forgotten."""
    log_sql: str = "shape"
    """What the log says of SQL: its ``shape`` without constants, ``none``, or the ``full`` text."""
    open_metrics: bool = False
    """Whether /metrics may be read without a token."""


_AT_LEAST = {"quantum_ms": 0, "workers": 0}
_AT_MOST = {"quantum_ms": 60_000, "workers": 256}


def read_server(section: Section, folder: Path | None) -> ServerPolicy:
    """Check the section; ``folder`` is where the policy's file lies."""
    values: dict[str, Any] = dict(section.entries)
    for field in fields(ServerPolicy):
        if field.name in values and isinstance(field.default, int) and not isinstance(field.default, bool):
            _check_integer(section, field.name, values[field.name])
    if "open_metrics" in values:
        values["open_metrics"] = section.flag("open_metrics")
    if values.get("log_sql", "shape") not in LOG_SQL:
        section.refuse("log_sql", f"is {show(values['log_sql'])}, which is no word for it", 'write log_sql = "shape"')
    hosts = values.get("hosts", [])
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(h, str) and _HOST.fullmatch(h) for h in hosts):
        section.refuse("hosts", "must be a list of names", 'write hosts = ["tacit.example.org"]')
    values["hosts"] = tuple(host.lower() for host in hosts)
    if "database" in values:
        values["database"] = _database(section, values["database"], folder)
    return ServerPolicy(**values)


def _check_integer(section: Section, key: str, value: Any) -> None:
    least, most = _AT_LEAST.get(key, 1), _AT_MOST.get(key, 10**9)
    if not is_integer(value) or not least <= value <= most:
        section.refuse(key, f"must be a whole number from {least} to {most}, not {show(value)}", f"write {key} = 100")


def _database(section: Section, value: Any, folder: Path | None) -> str:
    if not isinstance(value, (str, os.PathLike)) or not str(value) or "\0" in str(value):
        section.refuse("database", f"must be the path of a file, not {show(value)}", 'write database = "clinic.duckdb"')
    text = str(value)
    return text if text.startswith(_POSTGRES) else str((folder or Path()) / text)
