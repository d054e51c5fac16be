"""The requests that cost something, kept durably: a lost connection, worker or server never pays twice.

A request is ``queued`` until it is ``paying``: from then on it is neither cancelled nor ended, because it may have been
charged. It ends as ``done``, ``failed`` or ``cancelled``. Which of two wins, a cancellation or a payment, is decided by
one transaction of this file.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tacit.errors import OperationalError
from tacit.policy_server import ServerPolicy

from .jobs import ConflictError
from .store_file import StoreFile, now
from .tokens import Token, valid_token

KINDS = ("json", "long", "frames")
"""The files of a result: for people, as one long Arrow stream, as a stream for each query."""
_MOST_ENDED = 2000
"""Requests of one token that are over and cost nothing: the oldest are forgotten beyond that."""


@dataclass(frozen=True)
class KeptRequest:
    """A request as the file has it."""

    number: int
    token: str
    id: str
    analyst: str
    kind: str
    digest: str
    body: dict[str, Any]
    state: str
    charge: int | None
    """The ledger's number of the charge that was made for it last."""
    head: dict[str, Any] | None
    """What is said of its result; there from when it was done first, and then for good."""
    error: dict[str, Any] | None
    created: str
    finished: str | None
    bytes: int
    """How much is kept of it: its text, and its result."""


class KeptRequests:
    """The requests of one server."""

    def __init__(self, file: StoreFile, keep_mb: int = ServerPolicy.keep_mb) -> None:
        self._file, self._most_bytes = file, keep_mb << 20

    def add(self, token: Token, id: str, kind: str, digest: str, body: dict[str, Any]) -> tuple[KeptRequest, bool]:
        """The request of this id, and whether it is new. ConflictError if the id was used for something else."""
        with self._file.transaction(write=True) as db:
            row = db.execute("SELECT * FROM requests WHERE token = ? AND id = ?", (token.id, id)).fetchone()
            if row is None:
                text = json.dumps(body, default=str)
                db.execute(
                    "INSERT INTO requests (token, id, analyst, kind, digest, body, state, created, bytes)"
                    " VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?)",
                    (token.id, id, token.analyst, kind, digest, text, now(), len(text)),
                )
                row = db.execute("SELECT * FROM requests WHERE token = ? AND id = ?", (token.id, id)).fetchone()
                return _read(row), True
        if row["digest"] != digest or row["kind"] != kind:
            raise ConflictError
        return _read(row), False

    def find(self, token: Token, id: str) -> KeptRequest | None:
        """A request of this token."""
        with self._file.transaction() as db:
            row = db.execute("SELECT * FROM requests WHERE token = ? AND id = ?", (token.id, id)).fetchone()
        return None if row is None else _read(row)

    def get(self, number: int) -> KeptRequest | None:
        """A request by its number."""
        with self._file.transaction() as db:
            row = db.execute("SELECT * FROM requests WHERE number = ?", (number,)).fetchone()
        return None if row is None else _read(row)

    def unfinished(self) -> list[KeptRequest]:
        """What was begun and not ended, the oldest first: for a server that starts again."""
        with self._file.transaction() as db:
            rows = db.execute("SELECT * FROM requests WHERE state IN ('queued', 'paying') ORDER BY number").fetchall()
        return [_read(row) for row in rows]

    def of(self, token: Token, limit: int) -> list[KeptRequest]:
        """The last requests of a token, the newest first."""
        with self._file.transaction() as db:
            statement = "SELECT * FROM requests WHERE token = ? ORDER BY number DESC LIMIT ?"
            return [_read(row) for row in db.execute(statement, (token.id, limit))]

    def pay(self, number: int) -> Token:
        """Say that a request is about to be charged, and give the token that holds at this moment.

        Guarantee: called inside the ledger's own transaction. It raises if the token was revoked, has expired or has
        other tables now, or if the request was cancelled; after it, the request can no longer be cancelled.
        """
        with self._file.transaction(write=True) as db:
            row = db.execute("SELECT token, state FROM requests WHERE number = ?", (number,)).fetchone()
            if row is None or row["state"] not in ("queued", "paying"):
                raise OperationalError("the request was cancelled; nothing was charged")
            token = valid_token(db, row["token"])
            db.execute("UPDATE requests SET state = 'paying' WHERE number = ?", (number,))
        return token

    def charged(self, number: int, charge: int) -> None:
        """Remember which charge was made for a request, before anything is read for it."""
        with self._file.transaction(write=True) as db:
            db.execute("UPDATE requests SET charge = ? WHERE number = ?", (charge, number))

    def finish(
        self,
        number: int,
        state: str,
        *,
        head: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
        size: int = 0,
    ) -> None:
        """The end of a request, with a result of this size. One that was done once keeps its head, whatever follows."""
        texts = [None if value is None else json.dumps(value) for value in (head, error)]
        with self._file.transaction(write=True) as db:
            db.execute(
                "UPDATE requests SET state = ?, head = coalesce(?, head), error = ?, finished = ?,"
                " bytes = length(body) + ? WHERE number = ?",
                (state, *texts, now(), size + len(texts[1] or ""), number),
            )
            lost = self._trim(db, number)
        self._remove(lost)

    def _trim(self, db: sqlite3.Connection, number: int) -> list[int]:
        """Forget the oldest of what is over, where the token of a request has too much kept; gives whose files to end.

        A request that was charged is remembered for good, and its result can be made again: only its files go.
        """
        rows = db.execute(
            "SELECT number, charge, count(*) FILTER (WHERE charge IS NULL) OVER newest AS ended, sum(bytes) OVER newest"
            " AS size FROM requests WHERE token = (SELECT token FROM requests WHERE number = ?)"
            " AND state IN ('done', 'failed', 'cancelled') AND (charge IS NULL OR bytes > 0)"
            " WINDOW newest AS (ORDER BY number DESC)",
            (number,),
        ).fetchall()
        over = [row for row in rows if row["number"] != number]
        over = [row for row in over if row["size"] > self._most_bytes or row["ended"] > _MOST_ENDED]
        for row in over:
            if row["charge"] is None:
                db.execute("DELETE FROM requests WHERE number = ?", (row["number"],))
            else:
                db.execute("UPDATE requests SET bytes = 0 WHERE number = ?", (row["number"],))
        return [row["number"] for row in over]

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for kind in KINDS:
                with contextlib.suppress(OSError):
                    self.result(number, kind).unlink(missing_ok=True)

    def forget(self, number: int) -> None:
        """As if a request had never been made: the queue had no place for it."""
        with self._file.transaction(write=True) as db:
            db.execute("DELETE FROM requests WHERE number = ? AND state = 'queued' AND charge IS NULL", (number,))

    def cancel(self, number: int) -> bool:
        """Whether a request was cancelled; one that is being paid is not."""
        with self._file.transaction(write=True) as db:
            statement = "UPDATE requests SET state = 'cancelled', finished = ? WHERE number = ? AND state = 'queued'"
            is_cancelled = db.execute(statement, (now(), number)).rowcount == 1
            lost = self._trim(db, number) if is_cancelled else []
        self._remove(lost)
        return is_cancelled

    def again(self, number: int) -> None:
        """Run a request once more: its result is no longer kept, or it failed for a reason that may have gone."""
        with self._file.transaction(write=True) as db:
            db.execute(
                "UPDATE requests SET state = 'queued', error = NULL, finished = NULL WHERE number = ?", (number,)
            )

    def result(self, number: int, kind: str) -> Path:
        """Where a result is, or would be."""
        return self._file.results / f"{number}.{kind}"

    def prune(self, hours: float) -> None:
        """Forget results, and requests that cost nothing, after so many hours.

        A request that was charged is remembered for good: its id must never pay again.
        """
        limit = datetime.now(UTC) - timedelta(hours=hours)
        with self._file.transaction(write=True) as db:
            db.execute(
                "DELETE FROM requests WHERE charge IS NULL AND state IN ('done', 'failed', 'cancelled')"
                " AND finished < ?",
                (limit.isoformat(timespec="seconds"),),
            )
        with contextlib.suppress(FileNotFoundError):
            for file in self._file.results.iterdir():
                with contextlib.suppress(OSError):
                    if file.stat().st_mtime < limit.timestamp():
                        file.unlink()


def _read(row: sqlite3.Row) -> KeptRequest:
    texts = {key: None if row[key] is None else json.loads(row[key]) for key in ("body", "head", "error")}
    return KeptRequest(**{**dict(row), **texts})
