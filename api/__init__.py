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
    AccessError,
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
    import os
    from collections.abc import Mapping

    from . import ledger, plot, testing
    from .answers import Answer, Answers
    from .budget import Account, Budget
    from .connection import Connection
    from .cursor import Cursor
    from .discovery import Discovery
    from .explain import Plan
    from .policy import Policy, load_policy
    from .request import Number

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
    "AccessError",
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
    "__version__",
    "apilevel",
    "connect",
    "ledger",
    "load_policy",
    "paramstyle",
    "plot",
    "testing",
    "threadsafety",
]

__version__ = "0.2.0.dev0"


def connect(
    database: Any,
    *,
    policy: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    analyst: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    spend: Number | None = None,
    token: str | None = None,
) -> Connection:
    """Open a database for private answers.

    ``database`` is the path of a DuckDB, parquet or csv file, an open DuckDB connection, the URL of a PostgreSQL
    database (``postgresql://user@host/name``), or a Spark session; it is only read.
    ``policy`` is a TOML file or a dict of the same shape; without one the schema is the policy. ``epsilon`` and
    ``delta`` cap what may ever be spent, unless the policy or an existing ledger says less. The ledger lies
    next to the database (``ledger=``, or ``ledger`` under the policy's ``[budget]``, puts it elsewhere; PostgreSQL
    and Spark need one of the two) and is shared by everyone who opens it. ``spend`` is
    the ε of a call that names none.

    With ``https://…`` as ``database``, a server holds the data, the policy and the books: ``token`` says who asks, and
    only ``spend`` may stand beside it. Plain ``http://`` is taken on the same machine only.
    """
    from .connecting import connect as opened  # here, because it loads all of tacit, pandas, DuckDB and scipy

    caps = {"epsilon": epsilon, "delta": delta, "spend": spend}
    return opened(database, policy=policy, analyst=analyst, ledger=ledger, token=token, **caps)


_MODULES = ("ledger", "plot", "testing")
_HOMES = {
    "answers": ("Answer", "Answers"),
    "budget": ("Account", "Budget"),
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
    """The public names; the modules that were loaded on the way are nobody's business."""
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
