"""The one tree of exceptions, hung under PEP 249's.

    Exception
    ├── Warning                          PEP 249; tacit itself raises none
    └── Error
        ├── InterfaceError               a closed connection or cursor, an argument of the wrong kind
        └── DatabaseError
            ├── DataError
            ├── IntegrityError
            ├── InternalError            a defect of tacit, never the caller's fault
            ├── OperationalError         the database or a file cannot be used
            │   ├── AccessError          a server does not take the token, or not for this
            │   ├── BudgetError          the request costs more than is left (``asked``, ``left``)
            │   └── LedgerError          the ledger cannot be opened, or is not one
            ├── ProgrammingError
            │   ├── PrivacyParameterError   an ε, δ, error or confidence that is no such thing, or is missing
            │   ├── PolicyError          the policy cannot be read or says something impossible
            │   └── SqlError             points at a span of the text (``sql``, ``start``, ``end``, ``hint``);
            │       │                ``errors`` has those of all queries of the batch, ``query`` says which
            │       ├── SqlSyntaxError   the text does not parse
            │       ├── UnknownNameError no such table or column
            │       ├── ParameterError   parameters that do not fit the placeholders
            │       ├── TypeMismatchError   a constant that cannot be compared with that column
            │       ├── DomainError      a clamp or a list of groups is missing
            │       ├── LimitError       the text is longer, deeper or wider than the curator allows
            │       └── UnsupportedSqlError   also a NotSupportedError: tacit cannot answer this soundly
            └── NotSupportedError

Messages are built from the caller's own text and from the policy, never from a private row. Errors from
libraries underneath are replaced (``raise … from None``), because DuckDB's messages can quote cell values.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from decimal import Decimal


class Warning(Exception):
    """Required by PEP 249."""


class Error(Exception):
    """Root of everything that tacit raises."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the error itself, which says what to write instead, and no frames."""
        return [f"{type(self).__name__}: {self}"]


class InterfaceError(Error):
    """The interface was used in a way it does not offer."""


class DatabaseError(Error):
    """Anything that concerns the database, the ledger or a query."""


class DataError(DatabaseError):
    """Required by PEP 249."""


class IntegrityError(DatabaseError):
    """Required by PEP 249."""


class InternalError(DatabaseError):
    """A defect of tacit itself."""

    def _render_traceback_(self) -> list[str]:
        """All frames: whoever mends it needs them."""
        return traceback.format_exception(self)


class OperationalError(DatabaseError):
    """The database or one of the files around it cannot be used."""


class ProgrammingError(DatabaseError):
    """The request is wrong; a changed request can succeed."""


class NotSupportedError(DatabaseError):
    """The request is understood and not offered."""


class AccessError(OperationalError):
    """A server does not take the token, or not for this."""


class BudgetError(OperationalError):
    """The request costs more than is left; nothing was charged."""

    def __init__(self, message: str, *, asked: tuple[Decimal, Decimal], left: tuple[Decimal, Decimal]) -> None:
        super().__init__(message)
        self.asked = asked
        """(ε, δ) that the request would have cost."""
        self.left = left
        """(ε, δ) that the binding cap has left."""


class LedgerError(OperationalError):
    """The ledger cannot be opened, or what is there is not a ledger."""


class PrivacyParameterError(ProgrammingError):
    """ε, δ, error or confidence is missing or is not such a number."""


class PolicyError(ProgrammingError):
    """The policy cannot be read, or says something impossible."""

    path: str = ""
    """The key that it is about, such as ``tables.visits.columns.age.min``; empty where it is about no key."""


class SqlError(ProgrammingError):
    """Something in the SQL text; prints the line with the span underlined and a hint.

    >>> print(SqlError("no such column: agee", sql="SELECT count(agee) FROM t", start=13, end=17, hint="write age"))
    no such column: agee
      SELECT count(agee) FROM t
                   ^^^^
    hint: write age
    """

    def __init__(self, message: str, *, sql: str = "", start: int = 0, end: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.sql = sql
        self.start = start
        self.end = end
        self.hint = hint
        self.query: int | None = None
        """Which query of the batch it is about, counted from 0 as ``answers`` are."""
        self._all: tuple[SqlError, ...] = ()
        self._complete = True

    @property
    def errors(self) -> tuple[SqlError, ...]:
        """The errors of all queries of the batch, of which this is the first."""
        return self._all or (self,)

    def __str__(self) -> str:
        if not self._all:
            return self._shown()
        number = f"{len(self._all)} queries" if self._complete else f"more than {len(self._all) - 1} queries"
        lines = [f"{number} of the batch cannot be answered"]
        return "\n".join([*lines, *(f"query {error.query}: {error._shown()}" for error in self._all)])

    def _shown(self) -> str:
        lines = [self.message]
        if self.end > self.start:
            lines += self._underlined()
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def _underlined(self) -> list[str]:
        first = self.sql.rfind("\n", 0, self.start) + 1
        last = self.sql.find("\n", self.start)
        line = self.sql[first:] if last < 0 else self.sql[first:last]
        column = self.start - first
        width = max(1, min(self.end, first + len(line)) - self.start)
        if len(line) > 160:  # keep the span in view when a whole script stands on one line
            cut = max(0, column - 60)
            line, column = line[cut : cut + 160], column - cut
            width = min(width, 160 - column)
        line = line.replace("\t", " ")
        return [f"  {line}", "  " + " " * column + "^" * width]


def all_of(errors: Sequence[SqlError], *, complete: bool) -> SqlError:
    """One error for those of several queries: of the class of the first and at its place, and it prints them all.

    ``complete`` says whether all queries were looked at.
    """
    first = errors[0]
    if len(errors) == 1:
        return first
    joint = type(first)(first.message, sql=first.sql, start=first.start, end=first.end, hint=first.hint)
    joint.query, joint._all, joint._complete = first.query, tuple(errors), complete
    return joint


class SqlSyntaxError(SqlError):
    """The text does not parse."""


class UnknownNameError(SqlError):
    """No such table or column."""


class ParameterError(SqlError):
    """The parameters do not fit the placeholders."""


class TypeMismatchError(SqlError):
    """A constant that cannot be compared with that column."""


class DomainError(SqlError):
    """A clamp or a list of groups is missing from the policy."""

    wanted: object = None
    """What is missing (``tacit.sql.wanted.Wanted``), where ``discover=True`` can buy it."""


class LimitError(SqlError):
    """The text is longer, deeper or wider than the curator allows."""


class UnsupportedSqlError(SqlError, NotSupportedError):
    """tacit cannot answer this soundly, and says why."""
