"""What stands before every request: limits of size and time, same origin only, no token in an address, fixed headers.

Response times are rounded up to a quantum here. Whatever goes wrong behind this is one fixed text, without details.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from tacit import wire
from tacit.errors import Error, InterfaceError, InternalError
from tacit.policy_server import ServerPolicy
from tacit.wire_errors import error_body

from .pool import quantum_rest
from .worker import FAILED

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

log = logging.getLogger("tacit.server")
_PATH = re.compile(rb"/[A-Za-z0-9._/-]{0,200}")
_LONGEST_QUERY = 400
_TOKEN = re.compile(rb"tacit_[0-9a-f]{16}", re.IGNORECASE)
_IN_QUERY = re.compile(rb"token|authorization|bearer|secret|" + _TOKEN.pattern, re.IGNORECASE)
_SITES = (b"same-origin", b"none")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
]
_HSTS = (b"strict-transport-security", b"max-age=31536000")


class HttpError(Exception):
    """A refusal: its status, and an error of tacit's tree as its reader gets it."""

    def __init__(self, status: int, error: Error | dict[str, Any], retry_after: int | None = None) -> None:
        self.body = error if isinstance(error, dict) else error_body(error)
        super().__init__(self.body["error"]["class"])
        self.status, self.retry_after = status, retry_after


def bad_request(message: str) -> HttpError:
    """400 with a sentence."""
    return HttpError(400, InterfaceError(message))


def defect() -> HttpError:
    """500: one fixed text, whatever happened."""
    return HttpError(500, InternalError(FAILED))


class Protection:
    """The outermost layer of the server."""

    def __init__(self, app: App, settings: ServerPolicy, hosts: frozenset[str], *, is_https: bool) -> None:
        self._app, self._settings, self._hosts, self._is_https = app, settings, hosts, is_https
        self.statuses: dict[int, int] = {}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        await self._serve(scope, receive, send)

    async def _serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        started = time.monotonic()
        status = 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                extra = [*_HEADERS, *([_HSTS] if self._is_https else [])]
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
                if scope["path"].startswith("/api/"):
                    rest = quantum_rest(time.monotonic() - started, self._settings.quantum_ms)
                    await asyncio.sleep(rest)
            try:
                await asyncio.wait_for(send(message), self._settings.body_seconds)
            except TimeoutError:
                raise _Gone from None

        scope["state"] = {**scope.get("state", {}), "log": {}}
        try:
            try:
                self._check(scope)
                await self._app(scope, self._timed(receive), sent)
            except HttpError as refusal:
                if not status:
                    await response_to(refusal)(scope, receive, sent)
            except (_Gone, ClientDisconnect, asyncio.CancelledError):
                raise
            except Exception as error:
                # The class alone: a text could quote anything.
                log.error("defect", extra={"fields": {"where": "http", "class": type(error).__name__}})
                if not status:
                    await response_to(defect())(scope, receive, sent)
        except (_Gone, ClientDisconnect):
            pass
        finally:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self._log(scope, status, started)

    def _log(self, scope: MutableMapping[str, Any], status: int, started: float) -> None:
        quantum = max(self._settings.quantum_ms, 1)
        steps = -int(-(time.monotonic() - started) * 1000 // quantum)
        fields = {
            "method": scope["method"][:10],
            "path": _shown(scope["raw_path"]),
            "status": status,
            "ms": max(steps, 1) * quantum,
            **scope["state"]["log"],
        }
        log.info("request", extra={"fields": fields})

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        named = {name: value for name, value in headers}
        for name in (b"host", b"authorization", b"content-type", b"content-length", b"origin"):
            if sum(key == name for key, _ in headers) > 1:
                raise bad_request(f"the header {name.decode()} stands twice in the request")
        query: bytes = scope.get("query_string", b"")
        if _PATH.fullmatch(scope.get("raw_path", b"")) is None or b"/." in scope["raw_path"]:
            raise HttpError(404, InterfaceError("there is nothing at this address"))
        if len(query) > _LONGEST_QUERY or _IN_QUERY.search(query) or _TOKEN.search(scope["raw_path"]):
            raise bad_request("a token does not belong into an address\nhint: send the header Authorization: Bearer …")
        host = named.get(b"host", b"").decode("latin-1").lower()
        if _name_of(host) not in self._hosts:
            raise bad_request(
                "the server does not go by this name\nhint: write hosts = […] under [server] in the policy"
            )
        origin = named.get(b"origin")
        scheme = "https" if self._is_https else "http"
        own = {f"{scheme}://{host}".encode("latin-1"), f"https://{host}".encode("latin-1")}
        if (origin is not None and origin not in own) or named.get(b"sec-fetch-site", b"none") not in _SITES:
            raise HttpError(403, InterfaceError("requests of other pages are refused"))
        length = named.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:12]) > self._settings.body_kb << 10:
            raise HttpError(413, InterfaceError(f"a request is at most {self._settings.body_kb} KiB long"))

    def _timed(self, receive: Receive) -> Receive:
        """The body must arrive within its time, and within its size whatever its header said."""
        deadline = time.monotonic() + self._settings.body_seconds
        size, complete = 0, False

        async def received() -> Message:
            nonlocal size, complete
            if complete:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(deadline - time.monotonic(), 0.001))
            except TimeoutError:
                raise bad_request("the request did not arrive in time") from None
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > self._settings.body_kb << 10:
                raise HttpError(413, InterfaceError(f"a request is at most {self._settings.body_kb} KiB long"))
            return message

        return received


class _Gone(Exception):
    """The client does not take its response."""


def _shown(path: bytes) -> str:
    """An address for the log; of one that may hold a token, nothing."""
    is_plain = _PATH.fullmatch(path) is not None and _TOKEN.search(path) is None
    return path[:80].decode("ascii") if is_plain else "(refused)"


def _name_of(host: str) -> str:
    """A host without its port."""
    form = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:[0-9]{1,5})?", host)
    return form[1] if form else ""


def response_to(refusal: HttpError) -> Response:
    """A refusal as a response."""
    headers = {}
    if refusal.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refusal.retry_after is not None:
        headers["retry-after"] = str(refusal.retry_after)
    if refusal.status in (400, 413):  # what is left of the body is not read
        headers["connection"] = "close"
    return Response(wire.dump(refusal.body), refusal.status, headers, "application/json")
