"""Workers and servers that end in mid-answer: what was paid can be fetched, and is paid once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.serving import Serving
from tacit.engine import Ledger
from tacit.server.kept_requests import KeptRequests

BATCH = [f"SELECT count(*) FROM visits WHERE cost BETWEEN {i} AND {i * 11 % 700 + 150}" for i in range(16)]
BODY = {"id": "to-be-killed", "sql": BATCH, "epsilon": 0.5, "refresh": True, "wait": 60}
SECONDS = 30


def until(condition: Callable[[], Any]) -> Any:
    """Wait for something to be so."""
    deadline = time.monotonic() + SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def kinds(server: Serving) -> list[str]:
    if not server.place.ledger.exists():
        return []
    return [entry.kind for entry in Ledger.open(server.place.ledger).entries() if entry.analyst]


class Asking:
    """A client in a thread, whose connection may be lost."""

    def __init__(self, server: Serving, token: str) -> None:
        self.replies: list[Any] = []
        self._thread = threading.Thread(target=self._ask, args=(server, token))
        self._thread.start()

    def _ask(self, server: Serving, token: str) -> None:
        try:
            self.replies.append(server.json("POST", "/api/answer", token, BODY))
        except OSError:
            self.replies.append(None)

    def reply(self) -> Any:
        self._thread.join(SECONDS)
        return self.replies[0]


def paid_and_not_released(server: Serving, token: str) -> Asking:
    """A request that was charged, whose worker waits for its turn to read, because the server stands still."""
    server.wait_until_ready()
    asking = Asking(server, token)
    requests = KeptRequests(server.place.store())
    holder = server.tokens.holder(token)
    until(lambda: requests.find(holder, BODY["id"]))
    time.sleep(0.2)  # handed to a worker, which plans for seconds
    server.freeze()
    until(lambda: kinds(server) == ["charge"])
    until(lambda: (kept := requests.find(holder, BODY["id"])) and kept.charge)
    return asking


def worker_of(server: Serving) -> int:
    """The worker that is at work: the others sleep and have used less of the processor."""

    def used(pid: int) -> int:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    return max(server.workers(), key=used)


@pytest.fixture
def server(serve: Callable[..., Serving]) -> Serving:
    return serve()


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_paid_twice(server: Serving) -> None:
    token = server.token()
    asking = paid_and_not_released(server, token)
    os.kill(worker_of(server), signal.SIGKILL)
    server.thaw()
    status, answers = asking.reply()
    assert status == 200
    assert kinds(server) == ["charge", "release"]
    assert len(answers["answers"]) == len(BATCH)
    assert server.json("GET", "/api/budget", token)[1]["spent"]["epsilon"] == "0.5"


def test_a_server_that_is_killed_loses_nothing(server: Serving) -> None:
    token = server.token()
    asking = paid_and_not_released(server, token)
    server.kill()
    assert asking.reply() is None
    server.start()
    status, answers = server.json("GET", f"/api/requests/{BODY['id']}?wait=60", token)
    assert (status, len(answers["answers"])) == (200, len(BATCH))
    assert server.json("POST", "/api/answer", token, BODY)[1] == answers
    assert kinds(server) == ["charge", "release"]
    # Released and not told: killed again, with the result lost too.
    server.kill()
    for file in server.place.store().results.iterdir():
        file.unlink()
    requests, holder = KeptRequests(server.place.store()), server.tokens.holder(token)
    kept = requests.find(holder, BODY["id"])
    assert kept is not None
    with server.place.store().transaction(write=True) as db:
        db.execute("UPDATE requests SET state = 'paying' WHERE number = ?", (kept.number,))
    server.start()
    again = server.json("GET", f"/api/requests/{BODY['id']}?wait=60", token)[1]
    assert again["answers"] == answers["answers"]
    assert kinds(server) == ["charge", "release"]


def test_a_graceful_stop_finishes_what_is_being_paid_and_keeps_what_waits(server: Serving) -> None:
    token = server.token()
    asking = paid_and_not_released(server, token)
    waiting = {**BODY, "id": "still-waiting", "sql": [*BATCH, "SELECT count(*) FROM labs"], "wait": 0}
    server.thaw()
    assert server.json("POST", "/api/answer", token, waiting)[0] == 202
    server.stop()
    asking.reply()
    requests, holder = KeptRequests(server.place.store()), server.tokens.holder(token)
    kept = requests.find(holder, BODY["id"])
    assert kept is not None
    assert kept.state == "done"
    assert kinds(server)[:2] == ["charge", "release"]
    server.start()
    assert server.json("GET", f"/api/requests/{BODY['id']}", token)[0] == 200
    status, answers = server.json("GET", "/api/requests/still-waiting?wait=60", token)
    assert (status, len(answers["answers"])) == (200, len(BATCH) + 1)
    assert kinds(server).count("charge") == 2
