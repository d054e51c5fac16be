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

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tacit import wire
from tacit.errors import (
    AccessError,
    Error,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)
from tacit.wire_errors import read_error
from tacit.wire_results import ARROW, JSON

from . import metrics
from .downloads import download
from .http_parts import (
    MEDIA,
    check_query,
    chunks,
    disconnected,
    entry_body,
    form_asked,
    json_body,
    json_response,
    limits_body,
    note,
    paging,
    request_id,
    status_of,
    tacit_version,
    unknown_request,
)
from .jobs import ENDED, Job
from .openapi import description
from .protection import HttpError, Protection, bad_request, defect, response_to
from .service import FREE, Service
from .shapes import MOST_WAIT, canonical, checked
from .sql_shape import sql_fields
from .telling import Telling
from .tokens import Token, refused

_DEFAULT_WAIT = 30.0
_PAGE_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
Endpoint = Callable[[Request], Awaitable[Response]]


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
        return json_response(description())

    async def _file(self, name: str, request: Request) -> Response:
        return Response(self._page[name], media_type=_PAGE_TYPES[Path(name).suffix])

    async def _me(self, request: Request) -> Response:
        token = await self._token(request)
        spend = self.service.spend()
        return json_response(
            {
                "analyst": token.analyst,
                "role": token.role,
                "token": token.id,
                "limits": limits_body(token),
                "spend": None if spend is None else str(spend),
                "version": tacit_version(),
            }
        )

    async def _catalog(self, request: Request) -> Response:
        token = await self._token(request)
        return json_response(await run_in_threadpool(self.service.catalog, token))

    async def _budget(self, request: Request) -> Response:
        token = await self._token(request)
        check_query(request, "realised")
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
            body["realised"] = wire.read(wire.parse(job.result))
        return json_response(body)

    async def _history(self, request: Request) -> Response:
        token = await self._token(request)
        after, limit = paging(request)
        entries = await run_in_threadpool(
            partial(self.service.entries, token.analyst, after=after, limit=limit, newest=not after)
        )
        kept = await run_in_threadpool(self.service.requests.of, token, limit)
        return json_response(
            {
                "entries": [entry_body(entry) for entry in entries],
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
        body = checked(kind, await json_body(request))
        wait = float(body.pop("wait", _DEFAULT_WAIT))
        id = body.pop("id", None) or secrets.token_hex(16)
        asked = await run_in_threadpool(canonical, kind, body, self.service.spend())
        note(
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
        job = await run_in_threadpool(self.service.cancel, token, request_id(request))
        if job is None:
            raise unknown_request()
        if job.state not in ("queued", "running", "cancelled"):
            raise HttpError(409, ProgrammingError("this request is paid or over: it cannot be cancelled any more"))
        await self._wait(request, job, 10.0)
        return json_response(self._state(job))

    async def _ledger(self, request: Request) -> Response:
        await self._curator(request)
        after, limit = paging(request)
        entries = await run_in_threadpool(
            partial(self.service.entries, None, after=after, limit=limit, newest=not after)
        )
        return json_response({"entries": [entry_body(entry) for entry in entries]})

    async def _analysts(self, request: Request) -> Response:
        token = await self._curator(request)
        budget = await run_in_threadpool(self.service.budget, token)
        tokens = await run_in_threadpool(self.service.tokens.all)
        return json_response(
            {
                "analysts": {name: wire.account(own) for name, own in budget.analysts.items()},
                "tokens": [
                    {
                        "token": one.id,
                        "analyst": one.analyst,
                        "role": one.role,
                        "limits": limits_body(one),
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
        if await json_body(request) != {}:
            raise bad_request("the body of verify is {}")
        return json_response({"entries": await run_in_threadpool(self.service.verify)})

    async def _token(self, request: Request) -> Token:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        try:
            token = await run_in_threadpool(
                self.service.tokens.holder, text.strip() if scheme.lower() == "bearer" else None
            )
        except AccessError as error:
            raise HttpError(401, error) from None
        note(request, token=token.id, analyst=token.analyst)
        request.state.role = token.role
        return token

    async def _curator(self, request: Request) -> Token:
        token = await self._token(request)
        if token.role != "curator":
            raise HttpError(403, AccessError("this is for the curator\nhint: tacit token create NAME --role curator"))
        return token

    async def _found(self, request: Request) -> tuple[Token, Job, float]:
        token = await self._token(request)
        check_query(request, "wait")
        text = request.query_params.get("wait", "0")
        if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,3})?", text) or float(text) > MOST_WAIT:
            raise bad_request(f"wait is a number of seconds from 0 to {MOST_WAIT}")
        job = await run_in_threadpool(self.service.find, token, request_id(request))
        if job is None:
            raise unknown_request()
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
            return json_response(self._state(job), 202)
        if job.state == "cancelled":
            raise HttpError(409, ProgrammingError("the request was cancelled; nothing was charged"))
        if job.error is not None:
            status = status_of(read_error(job.error))
            raise HttpError(status, job.error, retry_after=5 if status == 503 else None)
        if not job.number:
            return Response(job.result, media_type=ARROW if job.kind == "cells" else JSON)
        part = part or ("json" if job.kind != "answer" else form_asked(request))
        if job.kind != "answer" and part != "json":
            raise unknown_request()
        path = self.service.result(job, "long" if part in ("csv", "parquet") else part)
        try:
            if part in ("csv", "parquet"):
                data = await run_in_threadpool(download, path, part)
                return Response(data, media_type=MEDIA[part], headers={"x-request-id": job.id})
            size = (await run_in_threadpool(path.stat)).st_size
        except OSError:
            raise HttpError(503, OperationalError("the result is being made again"), retry_after=1) from None
        headers = {"content-length": str(size), "x-request-id": job.id}
        return StreamingResponse(chunks(path), media_type=MEDIA[part], headers=headers)

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
        gone = asyncio.ensure_future(disconnected(request))
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
