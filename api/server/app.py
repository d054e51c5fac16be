"""HTTP: who asks, for what, and in which form the answer goes back. Everything else is ``service``'s."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import tacit
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tacit import wire
from tacit.engine.accounting.entry import Entry
from tacit.errors import (
    AccessError,
    BudgetError,
    Error,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
)
from tacit.wire_errors import read_error
from tacit.wire_results import ARROW, FRAMES, JSON

from . import metrics
from .downloads import CSV, PARQUET, download
from .jobs import ENDED, BusyError, ConflictError, Job
from .openapi import description
from .protection import HttpError, Protection, bad_request, defect, response_to
from .service import FREE, Service
from .shapes import MOST_WAIT, canonical, checked, is_request_id
from .sql_shape import sql_fields
from .telling import Telling
from .tokens import Token, refused

_DEFAULT_WAIT = 30.0
_MOST_ENTRIES = 1000
_PAGE_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_MEDIA = {"json": JSON, "frames": FRAMES, "long": ARROW, "csv": CSV, "parquet": PARQUET}
Endpoint = Callable[[Request], Awaitable[Response]]
_STATUS: tuple[tuple[type[Error], int], ...] = (
    (BusyError, 429),
    (ConflictError, 409),
    (AccessError, 403),
    (BudgetError, 409),
    (InternalError, 500),
    (OperationalError, 503),
    (InterfaceError, 400),
    (Error, 422),
)


def status_of(error: Error) -> int:
    """The status that goes with an error of tacit's tree."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


class Api:
    """The endpoints over one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._telling = Telling(service.place)
        self.protection: Protection | None = None
        folder = files("tacit.server") / "page"
        self._page = {
            Path(item.name).name: item.read_bytes()
            for item in (folder.iterdir() if folder.is_dir() else ())
            if item.is_file() and Path(item.name).suffix in _PAGE_TYPES
        }

    def routes(self) -> list[Route]:
        """Every address of the server."""
        table: list[tuple[str, str, Endpoint]] = [
            ("GET", "/health", self._health),
            ("GET", "/ready", self._ready),
            ("GET", "/metrics", self._metrics),
            ("GET", "/api/openapi.json", self._openapi),
            ("GET", "/api/me", self._me),
            ("GET", "/api/catalog", self._catalog),
            ("GET", "/api/budget", self._budget),
            ("GET", "/api/history", self._history),
            ("POST", "/api/explain", partial(self._ask, "explain")),
            ("POST", "/api/answer", partial(self._ask, "answer")),
            ("POST", "/api/discover", partial(self._ask, "discover")),
            ("GET", "/api/requests/{id}", self._result),
            ("DELETE", "/api/requests/{id}", self._cancel),
            ("GET", "/api/requests/{id}/frames", self._frames),
            ("GET", "/api/requests/{id}/cells", self._cells),
            ("GET", "/api/ledger", self._ledger),
            ("GET", "/api/analysts", self._analysts),
            ("POST", "/api/verify", self._verify),
            *(("GET", "/" if name == "index.html" else f"/{name}", partial(self._file, name)) for name in self._page),
        ]
        return [Route(path, self._stated(endpoint), methods=[method]) for method, path, endpoint in table]

    def _stated(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose errors of tacit's tree are refusals, and tell only the curator where files are."""

        async def run(request: Request) -> Response:
            try:
                return await endpoint(request)
            except HttpError as error:
                refusal = error
            except Error as error:
                status = status_of(error)
                refusal = HttpError(status, error, retry_after=5 if status in (429, 503) else None)
            if getattr(request.state, "role", "") != "curator":
                refusal.body = self._telling.without_places(refusal.body)
            raise refusal

        return run

    async def _health(self, request: Request) -> Response:
        return Response(b'{"status":"up"}', media_type=JSON)

    async def _ready(self, request: Request) -> Response:
        if await run_in_threadpool(self.service.is_ready):
            return Response(b'{"status":"ready"}', media_type=JSON)
        raise HttpError(503, OperationalError("the server is not ready"), retry_after=2)

    async def _metrics(self, request: Request) -> Response:
        if not self.service.settings.open_metrics:
            await self._curator(request)
        statuses = self.protection.statuses if self.protection is not None else {}
        text = await run_in_threadpool(metrics.exposition, self.service, dict(statuses))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _openapi(self, request: Request) -> Response:
        return _json(description())

    async def _file(self, name: str, request: Request) -> Response:
        return Response(self._page[name], media_type=_PAGE_TYPES[Path(name).suffix])

    async def _me(self, request: Request) -> Response:
        token = await self._token(request)
        spend = self.service.spend()
        return _json(
            {
                "analyst": token.analyst,
                "role": token.role,
                "token": token.id,
                "limits": _limits(token),
                "spend": None if spend is None else str(spend),
                "version": tacit_version(),
            }
        )

    async def _catalog(self, request: Request) -> Response:
        token = await self._token(request)
        return _json(await run_in_threadpool(self.service.catalog, token))

    async def _budget(self, request: Request) -> Response:
        token = await self._token(request)
        _check_query(request, "realised")
        budget = await run_in_threadpool(self.service.budget, token)
        body = {
            **wire.account(budget),
            "rule": budget.rule,
            "analysts": {name: wire.account(own) for name, own in budget.analysts.items()},
        }
        if request.query_params.get("realised") == "true":
            job = await run_in_threadpool(self.service.realised, token)
            await self._wait(request, job, _DEFAULT_WAIT)
            if job.state != "done":
                raise HttpError(503, OperationalError("what was realised is being computed"), retry_after=5)
            body["realised"] = wire.parse(job.result)
        return _json(body)

    async def _history(self, request: Request) -> Response:
        token = await self._token(request)
        after, limit = _page(request)
        entries = await run_in_threadpool(
            partial(self.service.entries, token.analyst, after=after, limit=limit, newest=not after)
        )
        kept = await run_in_threadpool(self.service.requests.of, token, limit)
        return _json(
            {
                "entries": [_entry(entry) for entry in entries],
                "requests": [
                    {
                        "id": one.id,
                        "kind": one.kind,
                        "state": one.state,
                        "created": one.created,
                        "cost": (one.head or {}).get("cost"),
                        "sql": one.body.get("sql", one.body.get("column")),
                    }
                    for one in kept
                ],
            }
        )

    async def _ask(self, kind: str, request: Request) -> Response:
        token = await self._token(request)
        body = checked(kind, await _body(request))
        wait = float(body.pop("wait", _DEFAULT_WAIT))
        id = body.pop("id", None) or secrets.token_hex(16)
        asked = await run_in_threadpool(canonical, kind, body, self.service.spend())
        _note(
            request, kind=kind, id=id, **sql_fields(body.get("sql"), self.service.settings.log_sql, self.service.names)
        )
        job = await run_in_threadpool(self.service.submit, token, kind, id, asked)
        return await self._answered(request, token, job, wait)

    async def _result(self, request: Request) -> Response:
        token, job, wait = await self._found(request)
        return await self._answered(request, token, job, wait)

    async def _frames(self, request: Request) -> Response:
        token, job, wait = await self._found(request)
        return await self._answered(request, token, job, wait, "frames")

    async def _cells(self, request: Request) -> Response:
        token, job, wait = await self._found(request)
        cells = await run_in_threadpool(self.service.cells, token, job.id)
        return await self._answered(request, token, cells, wait)

    async def _cancel(self, request: Request) -> Response:
        token = await self._token(request)
        job = await run_in_threadpool(self.service.cancel, token, _id(request))
        if job is None:
            raise _unknown()
        if job.state not in ("queued", "running", "cancelled"):
            raise HttpError(409, ProgrammingError("this request is paid or over: it cannot be cancelled any more"))
        await self._wait(request, job, 10.0)
        return _json(self._state(job))

    async def _ledger(self, request: Request) -> Response:
        await self._curator(request)
        after, limit = _page(request)
        entries = await run_in_threadpool(
            partial(self.service.entries, None, after=after, limit=limit, newest=not after)
        )
        return _json({"entries": [_entry(entry) for entry in entries]})

    async def _analysts(self, request: Request) -> Response:
        token = await self._curator(request)
        budget = await run_in_threadpool(self.service.budget, token)
        tokens = await run_in_threadpool(self.service.tokens.all)
        return _json(
            {
                "analysts": {name: wire.account(own) for name, own in budget.analysts.items()},
                "tokens": [
                    {
                        "token": one.id,
                        "analyst": one.analyst,
                        "role": one.role,
                        "limits": _limits(one),
                        "created": one.created,
                        "revoked": one.revoked,
                        "valid": one.is_valid,
                    }
                    for one in tokens
                ],
            }
        )

    async def _verify(self, request: Request) -> Response:
        await self._curator(request)
        if await _body(request) != {}:
            raise bad_request("the body of verify is {}")
        return _json({"entries": await run_in_threadpool(self.service.verify)})

    async def _token(self, request: Request) -> Token:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        try:
            token = await run_in_threadpool(
                self.service.tokens.holder, text.strip() if scheme.lower() == "bearer" else None
            )
        except AccessError as error:
            raise HttpError(401, error) from None
        _note(request, token=token.id, analyst=token.analyst)
        request.state.role = token.role
        return token

    async def _curator(self, request: Request) -> Token:
        token = await self._token(request)
        if token.role != "curator":
            raise HttpError(403, AccessError("this is for the curator\nhint: tacit token create NAME --role curator"))
        return token

    async def _found(self, request: Request) -> tuple[Token, Job, float]:
        token = await self._token(request)
        _check_query(request, "wait")
        text = request.query_params.get("wait", "0")
        if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,3})?", text) or float(text) > MOST_WAIT:
            raise bad_request(f"wait is a number of seconds from 0 to {MOST_WAIT}")
        job = await run_in_threadpool(self.service.find, token, _id(request))
        if job is None:
            raise _unknown()
        return token, job, float(text)

    async def _answered(
        self, request: Request, token: Token, job: Job, seconds: float, part: str | None = None
    ) -> Response:
        """The result of a job, if it is there in time; else where the job stands."""
        left = not await self._wait(request, job, seconds)
        if left and job.kind in FREE:  # nobody waits for a plan any more
            await run_in_threadpool(self.service.pool.cancel, job)
        if not await run_in_threadpool(self.service.tokens.still_valid, token):
            raise HttpError(401, refused())
        if job.state not in ENDED:
            return _json(self._state(job), 202)
        if job.state == "cancelled":
            raise HttpError(409, ProgrammingError("the request was cancelled; nothing was charged"))
        if job.error is not None:
            status = status_of(read_error(job.error))
            raise HttpError(status, job.error, retry_after=5 if status == 503 else None)
        if not job.number:
            return Response(job.result, media_type=ARROW if job.kind == "cells" else JSON)
        part = part or ("json" if job.kind != "answer" else _part(request))
        if job.kind != "answer" and part != "json":
            raise _unknown()
        path = self.service.result(job, "long" if part in ("csv", "parquet") else part)
        try:
            if part in ("csv", "parquet"):
                data = await run_in_threadpool(download, path, part)
                return Response(data, media_type=_MEDIA[part], headers={"x-request-id": job.id})
            size = (await run_in_threadpool(path.stat)).st_size
        except OSError:
            raise HttpError(503, OperationalError("the result is being made again"), retry_after=1) from None
        headers = {"content-length": str(size), "x-request-id": job.id}
        return StreamingResponse(_chunks(path), media_type=_MEDIA[part], headers=headers)

    async def _wait(self, request: Request, job: Job, seconds: float) -> bool:
        """Wait until a job is over, but not too long; whether the client is still there."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        def from_thread() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(end)

        if seconds <= 0 or job.state in ENDED:
            return True
        job.when_ended(from_thread)
        gone = asyncio.ensure_future(_disconnect(request))
        try:
            await asyncio.wait({ended, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return not gone.done()
        finally:
            gone.cancel()

    def _state(self, job: Job) -> dict[str, Any]:
        waiting, running = self.service.pool.queue.counts()
        return {
            "id": job.id,
            "kind": job.kind,
            "state": job.state,
            "position": self.service.pool.queue.position(job),
            "waiting": waiting,
            "running": running,
        }


def build(service: Service, hosts: frozenset[str], *, is_https: bool) -> Protection:
    """The application."""
    api = Api(service)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.start()
        yield
        await run_in_threadpool(service.stop)

    async def missing(request: Request, error: Exception) -> Response:
        return response_to(HttpError(404, InterfaceError("there is nothing at this address")))

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HttpError)
        return response_to(error)

    async def fail(request: Request, error: Exception) -> Response:
        return response_to(defect())

    async def leave(request: Request, error: Exception) -> Response:
        return Response(status_code=400)  # nobody is there to read it

    handlers = {404: missing, 405: missing, HttpError: refuse, ClientDisconnect: leave, Exception: fail}
    app = Starlette(routes=api.routes(), lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False
    api.protection = Protection(app, service.settings, hosts, is_https=is_https)
    return api.protection


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request) -> Any:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise bad_request("the body must be JSON\nhint: send the header Content-Type: application/json")
    data = await request.body()
    try:
        return await run_in_threadpool(wire.parse, data)
    except ValueError:
        raise bad_request("the body is not JSON, or has a key twice\nhint: see /api/openapi.json") from None


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    """A result piece by piece, so that a large one does not lie in memory; opened once, so that it stays whole."""
    with await run_in_threadpool(path.open, "rb") as file:
        while data := await run_in_threadpool(file.read, 1 << 18):
            yield data


def _part(request: Request) -> str:
    """The form of an answer that the client asks for: JSON, unless it names another."""
    accept = request.headers.get("accept", "")
    return next((part for part, media in _MEDIA.items() if part != "json" and media in accept), "json")


def _json(body: Any, status: int = 200) -> Response:
    return Response(wire.dump(body), status, media_type=JSON)


def _note(request: Request, **fields: Any) -> None:
    """Say more in the log line of this request."""
    request.state.log.update(fields)


def _id(request: Request) -> str:
    id: str = request.path_params["id"]
    if not is_request_id(id):
        raise _unknown()
    return id


def _unknown() -> HttpError:
    return HttpError(
        404, ProgrammingError("there is no request of this id\nhint: POST it again; ids belong to a token")
    )


def _check_query(request: Request, *names: str) -> None:
    if any(name not in names for name in request.query_params):
        raise bad_request(f"the address takes only {' and '.join(names)}")


def _page(request: Request) -> tuple[int, int]:
    _check_query(request, "after", "limit")
    after, limit = (request.query_params.get(name, text) for name, text in (("after", "0"), ("limit", "100")))
    if not all(re.fullmatch(r"[0-9]{1,12}", text) for text in (after, limit)) or not 1 <= int(limit) <= _MOST_ENTRIES:
        raise bad_request(f"after is the number of an entry, and limit a number from 1 to {_MOST_ENTRIES}")
    return int(after), int(limit)


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": entry.at,
        "kind": entry.kind,
        "analyst": entry.analyst,
        "epsilon": str(entry.amount.epsilon),
        "delta": str(entry.amount.delta),
        "refers": entry.refers,
    }


def _limits(token: Token) -> dict[str, Any]:
    return {
        "epsilon": None if token.cap.epsilon is None else str(token.cap.epsilon),
        "delta": None if token.cap.delta is None else str(token.cap.delta),
        "tables": None if token.tables is None else sorted(token.tables),
        "expires": token.expires,
    }


def tacit_version() -> str:
    """The version of the installed package."""
    from importlib.metadata import version

    return version(tacit.__name__)
