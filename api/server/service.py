"""The server's state, without HTTP: who asks, what they asked, where it stands, and the curator's look at the books."""

from __future__ import annotations

import copy
import fcntl
import hashlib
import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import tacit
from tacit import wire
from tacit.budget import Budget, LedgerAccess, Rights
from tacit.connecting import ledger_path
from tacit.connection import guarded
from tacit.engine.accounting.entry import Entry
from tacit.errors import LedgerError, OperationalError, PolicyError, ProgrammingError
from tacit.policy import Policy, load_policy
from tacit.session import Session

from .jobs import ENDED, BusyError, ConflictError, Job
from .kept_requests import KINDS, KeptRequest, KeptRequests
from .pool import Pool
from .store_file import StoreFile, store_path
from .tokens import Token, Tokens

_MOST_PLANS = 512
_KEPT_PLAN_BYTES = 64 << 20
_PRUNE_SECONDS = 600.0
FREE = ("explain", "cells", "realised")
"""Kinds of requests that cost nothing, and are forgotten with the server."""


@dataclass(frozen=True)
class Place:
    """What is served: a database under a policy, and the files beside its ledger."""

    database: str
    policy: Path
    rules: Policy
    ledger: Path

    @classmethod
    def of(cls, policy: str | os.PathLike[str], database: str | None = None) -> Place:
        """The database that the caller names, or the policy's own."""
        rules = load_policy(Path(policy))
        named = database or rules.server.database
        if named is None:
            raise PolicyError(
                f"{rules.origin}: no database was named\n"
                'hint: write database = "clinic.duckdb" under [server] in the policy, or give --db'
            )
        return cls(named, Path(policy).resolve(), rules, ledger_path(named, Path(policy)))

    def store(self) -> StoreFile:
        """The file of tokens and requests, made if need be."""
        return StoreFile(store_path(self.ledger))


class Service:
    """One server over one database."""

    def __init__(self, place: Place, *, patience: float = 60.0) -> None:
        self.place = place
        self.settings = place.rules.server
        self._lock = _alone(store_path(place.ledger), patience)
        file = place.store()
        self.tokens, self.requests = Tokens(file), KeptRequests(file, self.settings.keep_mb)
        self._curator = tacit.connect(place.database, policy=place.policy)
        self.pool = Pool(self.settings, place.database, place.policy, file.path, self.requests, self._lock)
        self._active: dict[int, Job] = {}
        self._plans: OrderedDict[tuple[str, str], Job] = OrderedDict()
        self._guard = threading.Lock()
        self._pruned = 0.0

    def start(self) -> None:
        """Take up what an earlier server left, before anybody new is served, and start the workers."""
        tokens = {token.id: token for token in self.tokens.all()}
        for kept in reversed(self.requests.unfinished()):
            if kept.token in tokens:
                self.pool.queue.put(self._activate(_job(kept, tokens[kept.token])), first=True)
        self.pool.start()

    def stop(self) -> None:
        """End: what has begun to pay is finished, what waits is kept for the next server."""
        self.pool.stop()
        self._curator.close()
        os.close(self._lock)

    def submit(self, token: Token, kind: str, id: str, body: dict[str, Any]) -> Job:
        """The job of a request; the same one again for the same id."""
        self._prune()
        digest = hashlib.sha256(wire.dump({"kind": kind, "body": body}, in_order=True)).hexdigest()
        if kind in FREE:
            if self.requests.find(token, id) is not None:
                raise ConflictError
            return self._submit_free(token, kind, id, digest, body)
        with self._guard:
            if (token.id, id) in self._plans:
                raise ConflictError
        kept, is_new = self.requests.add(token, id, kind, digest, body)
        with self._guard:
            if not is_new:
                return self._known(token, kept, retry=True)
            job = self._activate(_job(kept, token))
        try:
            self.pool.queue.put(job)
        except BusyError:
            with self._guard:
                self._active.pop(kept.number, None)
            self.requests.forget(kept.number)
            raise
        return job

    def find(self, token: Token, id: str) -> Job | None:
        """The job of a request that was made before."""
        with self._guard:
            plan = self._plans.get((token.id, id))
        if plan is not None:
            return plan
        kept = self.requests.find(token, id)
        if kept is None:
            return None
        with self._guard:
            return self._known(token, kept, retry=False)

    def cells(self, token: Token, id: str) -> Job:
        """The job that gives the cells of an answer that was paid before."""
        kept = self.requests.find(token, id)
        if kept is None or kept.kind != "answer" or kept.state != "done":
            raise ProgrammingError("there is no finished answer of this id")
        return self.submit(token, "cells", f"{id}.cells", kept.body)

    def cancel(self, token: Token, id: str) -> Job | None:
        """Cancel a request, if it has not begun to pay."""
        job = self.find(token, id)
        if job is not None:
            self.pool.cancel(job)
        return job

    def result(self, job: Job, kind: str) -> Path:
        """The file of a finished result."""
        return self.requests.result(job.number, kind)

    def catalog(self, token: Token) -> dict[str, Any]:
        """The tables that a token may name."""
        with self._curator._open(), guarded():
            return wire.catalog(self._session(token).catalog)

    def names(self) -> frozenset[str]:
        """Of all tables and columns, in small letters: what a log line may show of a text."""
        tables = self._curator._session.schema.tables
        parts = [part for t in tables for part in (t.name, *t.path, *(column.name for column in t.columns))]
        return frozenset(part.lower() for part in parts)

    def budget(self, token: Token) -> Budget:
        """The budget as a token sees it: the whole, and its own analyst's part; the curator sees all parts."""
        with self._curator._open(), guarded():
            budget = self._session(token).access.budget()
        if token.role == "curator":
            return budget
        return replace(budget, analysts={n: a for n, a in budget.analysts.items() if n == token.analyst})

    def realised(self, token: Token) -> Job:
        """The job that says what was really spent, by privacy-loss distributions; one for each state of the ledger."""
        last = self.entries(None, after=0, limit=1, newest=True)
        return self.submit(token, "realised", f"realised.{last[0].id if last else 0}", {})

    def entries(self, analyst: str | None, *, after: int, limit: int, newest: bool = False) -> list[Entry]:
        """Entries of the ledger after a number, those of an analyst or all; no data, and no answers."""
        with self._curator._open():
            ledger = self._curator._session.access.peek()
        if ledger is None:
            return []
        order = "DESC" if newest else "ASC"
        with ledger.transaction(write=False) as log:
            if analyst is None:
                inner = f"SELECT id FROM entries WHERE id > ? ORDER BY id {order} LIMIT ?"  # noqa: S608
                return log.entries(f"WHERE id IN ({inner})", after, limit)
            inner = f"SELECT id FROM entries WHERE analyst = ? AND id > ? ORDER BY id {order} LIMIT ?"  # noqa: S608
            return log.entries(f"WHERE id IN ({inner})", analyst, after, limit)

    def verify(self) -> int:
        """The number of entries of a sound ledger."""
        if not self.place.ledger.exists():
            return 0
        return tacit.ledger.verify(self.place.ledger)

    def is_ready(self) -> bool:
        """Whether requests are answered: a worker runs, and the ledger can be read."""
        try:
            self.verify_opens()
        except LedgerError:
            return False
        return self.pool.is_ready

    def verify_opens(self) -> None:
        """LedgerError if the ledger cannot be read."""
        self.entries(None, after=0, limit=1, newest=True)

    def spend(self) -> Decimal | None:
        """What a request costs that does not say."""
        return self.place.rules.spend

    def _session(self, token: Token) -> Session:
        """The curator's session as a token may use it."""
        session = self._curator._session
        access: LedgerAccess = copy.copy(session.access)
        access.analyst = token.analyst
        access.rights = Rights(lambda: token.cap, token.cap, token.tables)
        return replace(session, access=access)

    def _submit_free(self, token: Token, kind: str, id: str, digest: str, body: dict[str, Any]) -> Job:
        key = (token.id, id)
        with self._guard:
            job = self._plans.get(key)
            if job is not None and job.digest == digest and job.state not in ("failed", "cancelled"):
                return job
            if job is not None and job.digest != digest:
                raise ConflictError
            job = Job(kind, token, body, id=id, digest=digest)
            self.pool.queue.put(job)
            self._plans[key] = job
            self._plans.move_to_end(key)
            self._forget_plans()
        return job

    def _forget_plans(self) -> None:
        size = sum(len(job.result) for job in self._plans.values())  # the body of one that is over is gone
        for key, job in list(self._plans.items()):
            if len(self._plans) <= _MOST_PLANS and size <= _KEPT_PLAN_BYTES:
                break
            if job.state in ENDED:
                size -= len(job.result)
                del self._plans[key]

    def _activate(self, job: Job) -> Job:
        self._active[job.number] = job
        job.when_ended(lambda: self._inactive(job))
        return job

    def _inactive(self, job: Job) -> None:
        self._active.pop(job.number, None)

    def _known(self, token: Token, kept: KeptRequest, *, retry: bool) -> Job:
        """The job of a kept request: the one that runs, one that is over, or a new run that pays nothing twice.

        With ``retry``, one that failed for a reason that may have gone is run again. A result that is no longer kept is
        made again from the ledger, in a run that cannot be charged; so is one of which such a run has failed.
        """
        job = self._active.get(kept.number)
        if job is not None and job.state not in ENDED:
            return job
        kept = self.requests.get(kept.number) or kept
        job = _job(kept, token)
        kinds = KINDS if kept.kind == "answer" else ("json",)
        lost = kept.state == "done" and not all(self.requests.result(kept.number, kind).exists() for kind in kinds)
        transient = (kept.error or {}).get("error", {}).get("class") in _TRANSIENT or kept.head is not None
        again = retry and kept.state == "failed" and transient
        if kept.state in ENDED and not lost and not again:
            job.state, job.error = kept.state, kept.error
            return job
        if kept.state in ENDED:
            self.requests.again(kept.number)
        try:
            self.pool.queue.put(self._activate(job))
        except BusyError:  # it stays what it was: nobody would run it
            self._inactive(job)
            if kept.state in ENDED:
                self.requests.finish(kept.number, kept.state, error=kept.error)
            raise
        return job

    def _prune(self) -> None:
        """Now and then: forget what is old."""
        with self._guard:
            if time.monotonic() < self._pruned:
                return
            self._pruned = time.monotonic() + _PRUNE_SECONDS
        self.requests.prune(self.settings.keep_hours)


_TRANSIENT = ("OperationalError", "LedgerError", "InternalError")
"""Errors after which the same request may succeed; what was paid is not paid again."""


def _job(kept: KeptRequest, token: Token) -> Job:
    """A run of a kept request.

    Guarantee: a request that was done once is never charged again, in whatever way it came to run again.
    """
    free = kept.head is not None
    return Job(kept.kind, token, kept.body, number=kept.number, id=kept.id, digest=kept.digest, free=free)


def _alone(store: Path, patience: float) -> int:
    """The lock that one server and its workers share; waits for workers of an earlier one that are still paying."""
    path = store.with_name(f"{store.name}.lock")
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise LedgerError(
            f"the server's file {path} cannot be written: {error.strerror}\n"
            "hint: give the server's user the right to write beside the ledger"
        ) from None
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except OSError:
            if time.monotonic() >= deadline:
                os.close(handle)
                raise OperationalError(
                    "another server serves this database\nhint: stop it first; one server is enough for all analysts"
                ) from None
            time.sleep(0.1)
