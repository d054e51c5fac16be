"""A worker: a process that plans and answers, one request at a time, through the same connection as everybody's.

Started by ``pool.Process`` with one end of a socket, on which JSON travels. It ends when the server does: at once while
it plans, and after the release is stored where it has begun to pay. Whoever starts the server again waits for that,
because workers share the lock on the server's file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import tacit
from tacit import wire, wire_results
from tacit.budget import Rights
from tacit.connection import Connection, guarded
from tacit.errors import AccessError, Error, InternalError, NotSupportedError, ProgrammingError
from tacit.policy import Cap
from tacit.process import limit_memory
from tacit.wire_errors import error_body
from tacit.wire_numbers import number as number_body
from tacit.wire_plans import plan_body

from .kept_requests import KeptRequests
from .store_file import StoreFile

_MOST_CONNECTIONS = 8
_LOOK_SECONDS = 0.5
_LARGEST_PLAN = 32 << 20
FAILED = "tacit failed on this request: a defect of tacit, not of the request; the server's log has its number"


class Worker:
    """What a worker process holds: the socket, the server's file, and a connection for each analyst."""

    def __init__(self, pipe: Pipe, database: str, policy: str, store: str, memory: int, keep_mb: int) -> None:
        self._pipe = pipe
        self._database, self._policy, self._memory = database, policy, memory
        self._requests = KeptRequests(StoreFile(Path(store)), keep_mb)
        self._connections: OrderedDict[str, Connection] = OrderedDict()
        self.paying = threading.Lock()
        """Held from before a charge until the request is done: the watch does not end the process meanwhile."""

    def serve(self) -> None:
        """Answer requests until the server is gone."""
        while True:
            try:
                job = wire.parse(self._pipe.recv_bytes())
            except (EOFError, OSError):
                return
            limit_memory(self._memory)
            started = time.monotonic()
            result = b""
            try:
                with guarded():
                    head, result = self._run(job)
                reply: dict[str, Any] = {"done": head}
            except Error as error:
                reply = self._failed(job, error)
            finally:
                limit_memory(None)
                if self.paying.locked():
                    self.paying.release()
            reply["seconds"] = time.monotonic() - started
            self._send(reply)
            if "done" in reply and not job["number"]:
                self._pipe.send_bytes(result)

    def _failed(self, job: dict[str, Any], error: Error) -> dict[str, Any]:
        if isinstance(error, InternalError):
            self._send({"defect": str(error).partition("\n")[0]})
            error = InternalError(FAILED)
        body = error_body(error)
        if job["number"]:
            with contextlib.suppress(Error):
                self._requests.finish(job["number"], "failed", error=body)
        return {"failed": body}

    def _run(self, job: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        connection = self._connection(job["analyst"])
        body, number = job["body"], job["number"]
        with self._rights(connection, job):
            match job["kind"]:
                case "explain":
                    plan = connection.explain(**arguments(body, job["plan_seconds"]))
                    return {}, _bounded(wire.dump(plan_body(plan, body)))
                case "realised":
                    return {}, wire.dump(number_body(connection.budget.realised))
                case "cells":
                    answers = connection.answer(**{**arguments(body, job["plan_seconds"]), "refresh": False})
                    return {}, wire_results.cells_stream(answers.cells())
                case "discover":
                    options = {key: wire.read(body[key]) for key in ("epsilon", "delta", "what") if key in body}
                    found = connection.discover(body["column"], **options)
                    content = wire_results.discovery_body(found)
                    self._keep(number, {"cost": content["cost"]}, json=wire.dump(content))
                case _:
                    self._answer(connection, job)
        return {}, b""

    def _answer(self, connection: Connection, job: dict[str, Any]) -> None:
        """Answer, and keep the result: an answer that was paid is there before anybody is told of it."""
        options = arguments(job["body"], job["plan_seconds"])
        if self._is_released(connection, job):
            options["refresh"] = False
        answers = connection.answer(**options)
        head = {"cost": wire.amount(answers.cost), "strategy": answers.strategy, "queries": len(answers)}
        self._keep(
            job["number"],
            head,
            json=wire.dump(wire_results.answers_body(answers)),
            long=wire_results.answers_long(answers),
            frames=b"".join(wire_results.answers_frames(answers)),
        )

    def _is_released(self, connection: Connection, job: dict[str, Any]) -> bool:
        """Whether a request that runs again was paid and released before: then it must not buy new noise.

        If it was charged and not released, the ledger hands the same charge back.
        """
        kept = self._requests.get(job["number"])
        ledger = connection._session.access.peek()
        if kept is None or kept.charge is None or ledger is None:
            return False
        with ledger.transaction(write=False) as log:
            return log.payload(kept.charge) is not None

    def _keep(self, number: int, head: dict[str, Any], **parts: bytes) -> None:
        for kind, data in parts.items():
            target = self._requests.result(number, kind)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            draft = target.with_suffix(f".{kind}.part")
            with open(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                file.write(data)
            os.replace(draft, target)
        self._requests.finish(number, "done", head=head, size=sum(map(len, parts.values())))

    @contextlib.contextmanager
    def _rights(self, connection: Connection, job: dict[str, Any]) -> Iterator[None]:
        """What the token of a job allows, as long as the job runs."""
        tables = None if job["tables"] is None else frozenset(job["tables"])
        number, access = job["number"], connection._session.access
        cap = Cap(*(None if v is None else wire.read(v) for v in job["cap"]))

        def check() -> Cap:
            if job["free"]:
                raise ProgrammingError(
                    "this result is no longer kept, and the tables have changed since it was released\n"
                    "hint: ask again under a new request id; explain says what that costs"
                )
            if not self.paying.locked():
                self.paying.acquire()
            token = self._requests.pay(number)
            if token.tables != tables:
                raise AccessError("the token has other tables now; nothing was charged\nhint: ask again")
            self._send({"paying": True})
            return token.cap

        def charged(charge: int) -> None:
            self._requests.charged(number, charge)
            limit_memory(None)
            self._send({"scan": True})
            self._pipe.recv_bytes()  # a place among those who read

        kept = self._requests.get(number) if number else None
        access.rights = Rights(check, cap, tables, charged, None if kept is None else kept.charge)
        try:
            yield
        finally:
            access.rights = None

    def _connection(self, analyst: str) -> Connection:
        connection = self._connections.pop(analyst, None)
        if connection is None:
            connection = tacit.connect(self._database, policy=self._policy, analyst=analyst)
        self._connections[analyst] = connection
        while len(self._connections) > _MOST_CONNECTIONS:
            self._connections.popitem(last=False)[1].close()
        return connection

    def _send(self, message: dict[str, Any]) -> None:
        self._pipe.send_bytes(wire.dump(message))

    def watch(self, parent: int) -> None:
        """End this process when the server is gone, but not between a charge and its release."""
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        with self.paying:
            os._exit(0)


def _bounded(plan: bytes) -> bytes:
    """A plan that the server can hold for its reader."""
    if len(plan) > _LARGEST_PLAN:
        raise NotSupportedError(
            f"the plan of this batch is longer than the {_LARGEST_PLAN >> 20} MiB that a server sends\n"
            "hint: explain a part of the batch; answering it all is another matter"
        )
    return plan


def arguments(body: dict[str, Any], most_seconds: float) -> dict[str, Any]:
    """The arguments of ``explain`` or ``answer`` that a request states; a search has as long as the server gives."""
    params = body.get("params")
    if isinstance(params, dict):
        params = {name: wire.read(value) for name, value in params.items()}
    elif params is not None:
        params = wire.read(params)
    found: dict[str, Any] = {"batch": body["sql"], "params": params}
    found |= {name: wire.read(body[name]) for name in wire.OPTIONS if name in body and name != "error"}
    if "error" in body:
        found["error"] = wire.read_error_target(body["error"])
    seconds = found.get("plan_seconds")
    if seconds is None or not seconds < most_seconds:
        found["plan_seconds"] = most_seconds
    return found


def main() -> None:
    """``python -m tacit.server.worker FD``: the first message says what to serve."""
    pipe = Pipe(int(sys.argv[1]))
    try:
        first = wire.parse(pipe.recv_bytes())
    except (EOFError, OSError):
        return
    worker = Worker(pipe, first["database"], first["policy"], first["store"], first["memory"], first["keep_mb"])
    threading.Thread(target=worker.watch, args=(first["parent"],), daemon=True).start()
    pipe.send_bytes(b"{}")  # ready
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        worker.serve()


if __name__ == "__main__":
    main()
