"""Tokens: who may ask, for how much, of which tables, until when. Only their hashes are kept.

A token is ``tacit_ID_SECRET``: eight bytes of name and 256 random bits. Nobody can search 256 bits, so one round of
SHA-256 hides them as well as a slow hash would.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from tacit.engine import Amount
from tacit.engine.accounting.amounts import to_delta, to_epsilon
from tacit.errors import AccessError, InterfaceError
from tacit.policy import Cap

from .store_file import StoreFile, now

ROLES = ("analyst", "curator")
_FORM = re.compile(r"tacit_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_NOBODY = hashlib.sha256(b"").digest()
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


@dataclass(frozen=True)
class Token:
    """What is known of a token; not the token itself."""

    id: str
    analyst: str
    """The name that the ledger charges."""
    role: str
    cap: Cap
    """What the analyst may have been told in all when a request under this token is paid."""
    tables: frozenset[str] | None
    expires: str | None
    created: str
    revoked: str | None

    @property
    def is_valid(self) -> bool:
        """Whether it is accepted now."""
        return self.revoked is None and (self.expires is None or now() < self.expires)


def refused() -> AccessError:
    """One sentence for every token that is not accepted, whatever the reason."""
    return AccessError(
        "the token is missing, unknown, revoked or expired\nhint: ask the curator for one (tacit token create)"
    )


class Tokens:
    """The tokens of one server."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file

    def create(
        self,
        analyst: str,
        *,
        role: str = "analyst",
        epsilon: Decimal | None = None,
        delta: Decimal | None = None,
        tables: Iterable[str] | None = None,
        days: float | None = None,
    ) -> tuple[str, Token]:
        """A new token, and its text, which is shown this once."""
        if not _NAME.fullmatch(analyst) or role not in ROLES:
            raise InterfaceError("a token is for a name, in the role of analyst or curator")
        name, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        with self._file.transaction(write=True) as db:
            db.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (name, _digest(secret), analyst, role, *_limits(epsilon, delta, tables), _in_days(days), now()),
            )
            token = _token(db, name)
        assert token is not None
        return f"tacit_{name}_{secret}", token

    def all(self) -> list[Token]:
        """Every token ever made, the oldest first."""
        with self._file.transaction() as db:
            return [_read(row) for row in db.execute("SELECT * FROM tokens ORDER BY created, id")]

    def limit(
        self,
        id: str,
        *,
        epsilon: Decimal | None = None,
        delta: Decimal | None = None,
        tables: Iterable[str] | None = None,
        days: float | None = None,
    ) -> Token:
        """Set limits from now on; what is not given stays. A request that is being planned is held to them too."""
        with self._file.transaction(write=True) as db:
            if _token(db, id) is None:
                raise _unknown(id)
            stated = zip(("epsilon", "delta", "tables"), _limits(epsilon, delta, tables), strict=True)
            for column, value in (*stated, ("expires", _in_days(days))):
                if value is not None:
                    db.execute(f"UPDATE tokens SET {column} = ? WHERE id = ?", (value, id))  # noqa: S608
            token = _token(db, id)
        assert token is not None
        return token

    def revoke(self, id: str) -> Token:
        """Not accepted from now on: nothing more is charged or returned under it."""
        with self._file.transaction(write=True) as db:
            db.execute("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (now(), id))
            token = _token(db, id)
        if token is None:
            raise _unknown(id)
        return token

    def holder(self, text: str | None) -> Token:
        """The token of this text; AccessError for any that is not accepted.

        Guarantee: the time that a comparison takes does not depend on how much of a secret is right.
        """
        form = _FORM.fullmatch(text or "")
        name, secret = (form[1], form[2]) if form else ("", "")
        with self._file.transaction() as db:
            row = db.execute("SELECT * FROM tokens WHERE id = ?", (name,)).fetchone()
        right = hmac.compare_digest(_digest(secret), _NOBODY if row is None else bytes(row["digest"]))
        token = None if row is None else _read(row)
        if token is None or not right or not token.is_valid:
            raise refused()
        return token

    def still_valid(self, token: Token) -> bool:
        """Whether a token that was accepted is accepted still."""
        with self._file.transaction() as db:
            current = _token(db, token.id)
        return current is not None and current.is_valid


def valid_token(db: sqlite3.Connection, id: str) -> Token:
    """The token as of now, inside a transaction; AccessError if it is not accepted any more."""
    token = _token(db, id)
    if token is None or not token.is_valid:
        raise AccessError("the token was revoked or has expired; nothing was charged\nhint: ask the curator for one")
    return token


def _token(db: sqlite3.Connection, id: str) -> Token | None:
    row = db.execute("SELECT * FROM tokens WHERE id = ?", (id,)).fetchone()
    return None if row is None else _read(row)


def _read(row: sqlite3.Row) -> Token:
    return Token(
        row["id"],
        row["analyst"],
        row["role"],
        Cap(*(None if row[key] is None else Decimal(row[key]) for key in ("epsilon", "delta"))),
        None if row["tables"] is None else frozenset(json.loads(row["tables"])),
        row["expires"],
        row["created"],
        row["revoked"],
    )


def _limits(
    epsilon: Decimal | None, delta: Decimal | None, tables: Iterable[str] | None
) -> tuple[str | None, str | None, str | None]:
    return (
        None if epsilon is None else str(to_epsilon(epsilon)),
        None if delta is None else str(to_delta(delta)),
        None if tables is None else json.dumps(sorted(set(tables))),
    )


def _in_days(days: float | None) -> str | None:
    if days is None:
        return None
    if not 0 <= days <= 36_500:
        raise InterfaceError("a token ends in 0 to 36,500 days\nhint: --days 30")
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _unknown(id: str) -> InterfaceError:
    return InterfaceError(f"there is no token {id!r}\nhint: tacit token list shows their names")


def own_cap(token: Token, whole: Amount) -> Amount:
    """What a token allows at most of a whole budget."""
    return Amount(
        whole.epsilon if token.cap.epsilon is None else min(whole.epsilon, token.cap.epsilon),
        whole.delta if token.cap.delta is None else min(whole.delta, token.cap.delta),
    )
