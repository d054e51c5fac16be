"""``tacit serve``: uvicorn around the application, with limits that its defaults do not have."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import h11
import uvicorn
from tacit.errors import InterfaceError, OperationalError
from uvicorn.protocols.http.h11_impl import H11Protocol

from .app import build
from .protection import LOOPBACK
from .service import Place, Service

_LONGEST_HEADERS = 16 << 10
_GRACE_SECONDS = 30
_KEEP_ALIVE_SECONDS = 30


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request does not arrive in time, also when it is answered already."""

    seconds = 10.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """A response can be complete before its request is: nobody reads, and times, the rest of that body."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """The clock runs while no whole request is at hand, and parts of one do not set it back."""
        if not self._is_waiting:
            self._forget()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self._close)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if self._is_waiting:
            self.transport.close()

    @property
    def _is_waiting(self) -> bool:
        """Whether the client is to send something that the application does not wait for."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)


class JsonLines(logging.Formatter):
    """A log line as JSON: what happened, and its fields; never a text of a library's, which could quote anything."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        event = record.msg if record.name == "tacit.server" else record.name
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        return json.dumps({"at": moment, "level": record.levelname.lower(), "event": event, **fields})


def serve(
    place: Place,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    certificate: str | None = None,
    key: str | None = None,
    behind_proxy: bool = False,
    on_start: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until a signal ends it. ``on_start`` is called with the address when requests are accepted."""
    if not _is_loopback(host) and certificate is None and not behind_proxy:
        raise InterfaceError(
            "tokens do not travel in the clear: beyond this machine the server speaks HTTPS\n"
            "hint: give --cert and --key, or --behind-proxy where a proxy on the same host or network ends HTTPS"
        )
    _check_certificate(certificate, key)
    prepare_logs()
    service = Service(place)
    scheme = "http" if certificate is None else "https"
    names = {*LOOPBACK, host.lower(), *place.rules.server.hosts}
    app = build(service, frozenset(names), is_https=certificate is not None or behind_proxy)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=type("Protocol", (PatientProtocol,), {"seconds": place.rules.server.body_seconds}),
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=place.rules.server.connections,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        listener = socket.create_server((host, port), family=_family(host), backlog=256)
    except OSError as error:
        raise OperationalError(f"the server cannot listen at {host}:{port}: {error.strerror}") from None
    server = _Announced(config, lambda: on_start(f"{scheme}://{_shown(host)}:{listener.getsockname()[1]}"))
    with listener:
        server.run(sockets=[listener])


class _Announced(uvicorn.Server):
    """A server that says when it accepts requests."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.is_ssl:  # uvicorn has no word for it, and asyncio waits a minute
            loop = asyncio.get_running_loop()
            seconds = float(self.config.http.seconds)  # type: ignore[union-attr]
            create = partial(loop.create_server, ssl_handshake_timeout=seconds)
            loop.create_server = create  # type: ignore[method-assign]
        await super().startup(sockets)
        if self.started:
            self._on_start()


def _check_certificate(certificate: str | None, key: str | None) -> None:
    if certificate is None and key is None:
        return
    if certificate is None:
        raise InterfaceError("--key was given without --cert\nhint: --cert names the certificate, as PEM")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or error.strerror if isinstance(error, OSError) else "it is no text"
        raise InterfaceError(
            f"the certificate or its key cannot be used: {reason}\n"
            "hint: --cert is a PEM file with the whole chain, --key the PEM file of its key, and both are readable"
        ) from None


def prepare_logs() -> None:
    """One line of JSON on standard error for each event; libraries speak only of what is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("tacit.server", logging.INFO), ("uvicorn", logging.ERROR), ("asyncio", logging.CRITICAL)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
