"""HTTP to a server: one connection that is kept, time limits, and repetition where repeating can do no harm."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import random
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tacit import wire
from tacit.errors import InterfaceError, OperationalError
from tacit.wire_errors import read_error
from tacit.wire_results import JSON

_SLACK = 30.0
"""Seconds beyond what a request asks the server to wait."""
_PATIENCE = 120.0
"""Seconds after which a server that cannot be reached any more is given up."""
_FIRST_PATIENCE = 3.0
"""The same for one that never answered: the address may be wrong."""
_AGAIN = (429, 502, 503, 504)
_MOST_BYTES = 512 << 20
"""Of a response: more would fill this machine's memory."""


@dataclass(frozen=True)
class Reply:
    """What came back: its status, its type and its bytes."""

    status: int
    type: str
    body: bytes

    def json(self) -> Any:
        """The body as JSON; OperationalError if it is none."""
        try:
            return wire.parse(self.body)
        except ValueError:
            raise OperationalError(
                "the server's reply cannot be read\nhint: is this address a server of tacit?"
            ) from None


class Transport:
    """Requests to one server under one token. Not for several threads at once: ``Connection`` sees to that."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if not parts.hostname or port == -1 or parts.query or parts.fragment or parts.username is not None:
            raise InterfaceError('this is no address of a server\nhint: tacit.connect("https://host:8321", token=…)')
        if not re.fullmatch(r"[\x21-\x7e]{1,200}", token):
            raise InterfaceError("token= is no token\nhint: tacit token create prints one")
        self._is_secure = parts.scheme.lower() == "https"
        if not self._is_secure and not _is_loopback(parts.hostname):
            raise InterfaceError(
                "plain http:// is taken on the same machine only: the token would travel in the clear\n"
                f"hint: https://{parts.netloc}"
            )
        self._host, self._port, self._prefix = parts.hostname, port, parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._context = ssl.create_default_context() if self._is_secure else None
        self._connection: http.client.HTTPConnection | None = None
        self._patience = _FIRST_PATIENCE
        self.address = f"{parts.scheme.lower()}://{parts.netloc}{self._prefix}"

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def get(self, path: str, *, wait: float = 0.0, accept: str = JSON, batch: str | Sequence[str] = ()) -> Reply:
        """GET; repeated while the server cannot be reached. ``batch`` is what an error would be about."""
        return self._repeated(lambda: self._once("GET", path, None, wait, accept), batch)

    def post(self, path: str, body: Mapping[str, Any], *, wait: float = 0.0, accept: str = JSON) -> Reply:
        """POST; repeated with the same request id, which pays nothing twice."""
        data = wire.dump(body)
        return self._repeated(lambda: self._once("POST", path, data, wait, accept), body.get("sql", ()))

    def delete(self, path: str) -> None:
        """DELETE, once and without a result: for a request that nobody waits for any more."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._once("DELETE", path, None, 0.0, JSON)

    def _repeated(self, request: Callable[[], Reply], batch: str | Sequence[str] = ()) -> Reply:
        deadline, pause = time.monotonic() + self._patience, 0.1
        while True:
            try:
                reply = request()
                self._patience = _PATIENCE
                if reply.status not in _AGAIN or time.monotonic() > deadline:
                    break
            except (OSError, http.client.HTTPException) as error:
                self.close()
                _check_certificate(error)
                if time.monotonic() > deadline:
                    raise OperationalError(
                        f"the server at {self.address} cannot be reached\nhint: {self._hint()}"
                    ) from None
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, 5.0)
        if reply.status >= 400:
            raise read_error(reply.json(), batch)
        return reply

    def _hint(self) -> str:
        if self._patience == _PATIENCE:
            return "ask again; nothing is paid twice"
        return "check the address and that tacit serve runs there; a server with --cert wants https://"

    def _once(self, method: str, path: str, data: bytes | None, wait: float, accept: str) -> Reply:
        headers = {**self._headers, "Accept": accept}
        if data is not None:
            headers["Content-Type"] = JSON
        connection = self._opened(wait + _SLACK)
        try:
            connection.request(method, self._prefix + path, data, headers)
            response = connection.getresponse()
            body = _whole(response)
        except BaseException:  # half a response is on the line
            self.close()
            raise
        return Reply(response.status, response.headers.get_content_type(), body)

    def _opened(self, timeout: float) -> http.client.HTTPConnection:
        if self._connection is None:
            if self._context is not None:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=timeout, context=self._context
                )
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        self._connection.timeout = timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        return self._connection


def _check_certificate(error: Exception) -> None:
    """OperationalError where repeating would not help: the other side is not who it should be, or speaks no HTTPS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = f": {error.verify_message}" if error.verify_message else ""
        raise OperationalError(
            f"the server's certificate cannot be verified{reason}\n"
            "hint: SSL_CERT_FILE names a file of certificates to trust; the address must be a name in the server's"
        ) from None
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        raise OperationalError(
            f"there is no HTTPS at this address ({error.reason or 'it broke off'})\n"
            "hint: check the port; a server without --cert speaks http:// on its own machine"
        ) from None


def _whole(response: http.client.HTTPResponse) -> bytes:
    """The body of a response, whatever its headers say of it, but not more than a client can hold."""
    parts, size = [], 0
    while data := response.read(1 << 20):
        size += len(data)
        if size > _MOST_BYTES:
            raise OperationalError(
                f"the server's reply is longer than {_MOST_BYTES >> 20} MiB\n"
                "hint: ask for fewer queries or groups at a time; what was paid is fetched at no cost"
            )
        parts.append(data)
    return b"".join(parts)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
