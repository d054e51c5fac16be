"""A real server in a process of its own, for tests and benchmarks: started, stopped, killed, started again."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tacit.server.service import Place
from tacit.server.tokens import Tokens

START_SECONDS = 60


class Serving:
    """``tacit serve`` over a database, on a free port of this machine."""

    def __init__(self, policy: Path, database: Path, *options: str) -> None:
        self.place = Place.of(policy, str(database))
        self._options = options
        self.tokens = Tokens(self.place.store())
        self.lines: list[str] = []
        """What the server wrote to standard error: its log."""
        self.address = ""
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it accepts requests."""
        command = [sys.executable, "-m", "tacit.server.commands", "serve", str(self.place.policy)]
        self.process = subprocess.Popen(
            [*command, "--db", self.place.database, "--port", "0", *self._options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        threading.Thread(target=self._listen, args=(self.process.stderr,), daemon=True).start()
        line = self.process.stdout.readline()
        assert " at http" in line, (line, self.lines)
        self.address = line.split(" at ")[1].strip()

    def _listen(self, stream: Any) -> None:
        with stream:
            self.lines.extend(stream)

    def stop(self) -> None:
        """End it as a service manager would."""
        self.thaw()
        self.process.terminate()
        self._wait()

    def wait_until_ready(self) -> None:
        """Return when a worker can answer."""
        deadline = time.monotonic() + START_SECONDS
        while self.request("GET", "/ready")[0] != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a power cut would, workers apart."""
        self.process.kill()
        self._wait()

    def _wait(self) -> None:
        self.process.wait(START_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def freeze(self) -> None:
        """Let the server stand still; its workers go on."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def workers(self) -> list[int]:
        """The worker processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        tasks = [task / "children" for task in Path(f"/proc/{self.process.pid}/task").iterdir()]
        found = {int(pid) for file in (children, *tasks) for pid in file.read_text().split()}
        return sorted(found)

    def token(self, analyst: str = "ana", **limits: Any) -> str:
        """A new token."""
        stated: Any = {k: Decimal(str(v)) if k in ("epsilon", "delta") else v for k, v in limits.items()}
        return self.tokens.create(analyst, **stated)[0]

    def request(
        self, method: str, path: str, token: str | None = None, body: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request, as any HTTP client would send it: status, headers, body."""
        parts = urlsplit(self.address)
        assert parts.hostname is not None
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=START_SECONDS)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, token: str | None = None, body: Any = None, **headers: str) -> Any:
        """The same, with the body as JSON."""
        status, _, data = self.request(method, path, token, body, **headers)
        return status, json.loads(data)
