"""What stands before every request: sizes, times, origins, addresses, headers. Refusals are alike and say no more."""

from __future__ import annotations

import json
import socket
import time
from urllib.parse import urlsplit

import pytest
from support.serving import Serving
from tacit.server.pool import quantum_rest


def raw(server: Serving, data: bytes, *, more: bytes = b"", pause: float = 0.0) -> bytes:
    """What comes back for bytes of one's own, until the server closes or says no more."""
    parts = urlsplit(server.address)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as line:
        line.sendall(data)
        if pause:
            time.sleep(pause)
        received = b""
        try:
            if more:
                line.sendall(more)
            while chunk := line.recv(65536):
                received += chunk
        except OSError:
            pass
    return received


def head(server: Serving, path: bytes, *lines: bytes, method: bytes = b"GET") -> bytes:
    host = urlsplit(server.address).netloc.encode()
    stated = lines if any(line.lower().startswith(b"host:") for line in lines) else (b"Host: " + host, *lines)
    return b"\r\n".join([method + b" " + path + b" HTTP/1.1", *stated, b"Connection: close", b"", b""])


def status(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1]) if reply else 0


def test_headers_of_every_response(server: Serving) -> None:
    for method, path in (("GET", "/health"), ("GET", "/api/me"), ("GET", "/nowhere"), ("PUT", "/api/answer")):
        _, headers, _ = server.request(method, path)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
        assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    "path",
    [
        b"/../../etc/passwd",
        b"/%2e%2e/%2e%2e/etc/passwd",
        b"/api/../metrics",
        b"//api/me",
        b"/api/me/",
        b"/api/requests/..%2f..%2fledger",
        b"/api/requests/a%00bcdefgh",
        b"/page/../worker.py",
        b"/worker.py",
        b"/.git/config",
        b"/api/requests/" + b"a" * 300,
    ],
)
def test_no_path_leads_anywhere_else(server: Serving, path: bytes) -> None:
    reply = raw(server, head(server, path, b"Authorization: Bearer " + server.token().encode()))
    assert status(reply) == 404
    assert b"root:" not in reply


def test_a_token_in_an_address_is_refused(server: Serving) -> None:
    token = server.token()
    for path in (f"/api/me?token={token}", f"/api/me?access_token={token}", f"/api/requests/{token}"):
        code, body = server.json("GET", path, token)
        assert (code, "address" in body["error"]["message"]) == (400, True)
        assert token not in json.dumps(body)
    assert server.request("GET", "/api/requests/my-secret-report", token)[0] == 404  # a request may have this id


def test_other_pages_and_other_names(server: Serving) -> None:
    token = server.token()
    assert server.request("GET", "/api/me", token, Origin=server.address)[0] == 200
    assert server.request("GET", "/api/me", token, Origin="https://evil.example")[0] == 403
    assert server.request("GET", "/api/me", token, Origin="null")[0] == 403
    assert server.request("GET", "/api/me", token, Sec_Fetch_Site="cross-site")[0] == 403
    assert status(raw(server, head(server, b"/api/me", b"Host: evil.example"))) == 400
    assert status(raw(server, head(server, b"/health", b"Host: localhost", b"Host: evil.example"))) == 400


def test_bodies(server: Serving) -> None:
    token = server.token()
    ask = {"id": "bodies-request", "sql": "SELECT 1", "epsilon": 1}
    assert server.request("POST", "/api/answer", token, ask, Content_Type="text/plain")[0] == 400
    for bad in (
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"id":"x"}',
        b'{"sql":"a","sql":"b"}',
        b'{"sql":NaN}',
        b"\xff",
        b"[" * 60_000,
    ):
        assert server.request("POST", "/api/answer", token, bad)[0] == 400
    assert server.request("POST", "/api/answer", token, b" " * (65 << 10))[0] == 413
    chunks = b"".join(b"8000\r\n" + b" " * 0x8000 + b"\r\n" for _ in range(3)) + b"0\r\n\r\n"
    lines = (
        b"Content-Type: application/json",
        b"Transfer-Encoding: chunked",
        b"Authorization: Bearer " + token.encode(),
    )
    assert status(raw(server, head(server, b"/api/answer", *lines, method=b"POST") + chunks)) == 413
    for key, value in (("epsilon", "1"), ("epsilon", True), ("refresh", 1), ("sql", 3), ("nope", 1), ("wait", 1e9)):
        code, body = server.json("POST", "/api/answer", token, {**ask, key: value})
        assert (code, body["error"]["class"]) == (400, "InterfaceError")
        assert body["error"]["hint"]


def test_slow_clients_and_header_bombs(server: Serving) -> None:
    token = server.token().encode()
    lines = (b"Content-Type: application/json", b"Content-Length: 100", b"Authorization: Bearer " + token)
    started = time.monotonic()
    reply = raw(server, head(server, b"/api/answer", *lines, method=b"POST") + b"{", pause=3)
    assert (status(reply), b"did not arrive in time" in reply) == (400, True)
    assert raw(server, b"GET /health HTTP/1.1\r\nHost:", pause=4, more=b" localhost\r\n\r\n") == b""
    assert time.monotonic() - started < 30
    bomb = b"".join(b"X-%d: %s\r\n" % (i, b"a" * 1000) for i in range(200))
    assert status(raw(server, b"GET /health HTTP/1.1\r\n" + bomb)) in (0, 400)
    assert server.request("GET", "/health")[0] == 200


def test_a_body_that_nobody_reads_is_not_waited_for(server: Serving) -> None:
    host = urlsplit(server.address)
    lines = (b"POST /api/answer HTTP/1.1", b"Host: localhost", b"Content-Length: 1000", b"", b"")
    with socket.create_connection((host.hostname, host.port), timeout=20) as line:
        line.sendall(b"\r\n".join(lines))
        assert status(line.recv(65536)) == 401
        line.sendall(b"{")  # ends uvicorn's own clock
        started = time.monotonic()
        while line.recv(65536):  # the rest of the reply, then the end
            pass
        assert time.monotonic() - started < 10


def test_one_text_for_every_token_that_is_not_accepted(server: Serving) -> None:
    token, expired = server.token(), server.token(days=0)
    revoked = server.token()
    server.tokens.revoke(server.tokens.holder(revoked).id)
    wrong = token[:-3] + "AAA"
    replies = {server.request("GET", "/api/budget", one)[::2] for one in (None, "", wrong, expired, revoked, "x" * 90)}
    assert len(replies) == 1
    assert next(iter(replies))[0] == 401


def test_response_times_are_rounded_up(server: Serving) -> None:
    assert quantum_rest(0.0, 100) == pytest.approx(0.1)
    assert quantum_rest(0.1001, 100) == pytest.approx(0.0999)
    token = server.token()
    for _ in range(5):
        started = time.monotonic()
        server.request("GET", "/api/me", token)
        assert time.monotonic() - started >= 0.01


def test_logs_have_no_constants_and_no_tokens(server: Serving) -> None:
    token = server.token()
    body = {"id": "logged-request", "sql": "SELECT count(*) FROM visits WHERE state = 'Mr Miller'", "epsilon": 0.1}
    server.request("POST", "/api/answer", token, body)
    for sql in ("SELECT 'Mr Miller", 'SELECT count(*) FROM visits WHERE state = "Mr Miller"'):
        server.request("POST", "/api/answer", token, {**body, "sql": sql})
    for path in (f"/{token}", f"/%74{token[1:]}", f"/api/requests/{token}"):
        server.request("GET", path)
    server.request("GET", "/api/requests/logged-request", token)
    while not any("requests/logged-request" in line for line in list(server.lines)):
        pass
    text = "".join(server.lines)
    assert "WHERE state = ?" in text
    assert "Miller" not in text
    assert token.split("_", 2)[2] not in text
    assert all(json.loads(line)["event"] for line in server.lines)
