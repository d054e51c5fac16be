"""tacit answers a batch of SQL queries under differential privacy."""

from __future__ import annotations

from typing import Final

from . import ledger, testing
from .answers import Answer, Answers
from .budget import Account, Budget
from .connect import connect
from .connection import Connection
from .cursor import Cursor
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
from .plan import Plan
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
