"""tacit answers a batch of SQL queries under differential privacy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .dbtypes import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from .errors import (
    BudgetError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    LedgerError,
    NotSupportedError,
    OperationalError,
    PolicyError,
    PrivacyParameterError,
    ProgrammingError,
    SqlError,
    Warning,
)

if TYPE_CHECKING:
    from . import ledger, testing
    from .answers import Answer, Answers
    from .budget import Account, Budget
    from .connecting import connect
    from .connection import Connection
    from .cursor import Cursor
    from .discovery import Discovery
    from .explain import Plan
    from .policy import Policy, load_policy

apilevel: Final = "2.0"
threadsafety: Final = 2
"""Threads may share the module and connections."""
paramstyle: Final = "qmark"
"""``?``; named parameters (``:name``, ``$name``) with a mapping are understood too."""

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Account",
    "Answer",
    "Answers",
    "Binary",
    "Budget",
    "BudgetError",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Discovery",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "LedgerError",
    "NotSupportedError",
    "OperationalError",
    "Plan",
    "Policy",
    "PolicyError",
    "PrivacyParameterError",
    "ProgrammingError",
    "SqlError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "ledger",
    "load_policy",
    "paramstyle",
    "testing",
    "threadsafety",
]

_MODULES = ("ledger", "testing")
_HOMES = {
    "answers": ("Answer", "Answers"),
    "budget": ("Account", "Budget"),
    "connecting": ("connect",),
    "connection": ("Connection",),
    "cursor": ("Cursor",),
    "discovery": ("Discovery",),
    "explain": ("Plan",),
    "policy": ("Policy", "load_policy"),
}
"""Where the names live that are loaded when they are first used: a matrix user, who imports ``tacit.engine``, needs
neither DuckDB nor sqlglot nor pandas."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
