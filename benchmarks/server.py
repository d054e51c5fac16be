"""The server under load: clients that ask, hang up and come back, while workers and the server are killed.

    python benchmarks/server.py [--clients 64] [--seconds 120] [--kills 2]

On this machine only. Prints p50 and p99 beside the embedded connection's, and fails unless every grant was paid once,
the grants add up to the cap exactly, every paid answer can be fetched again, and the server does not grow.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import tacit.cli.clinic
from support.serving import Serving
from tacit.cli.clinic import build
from tacit.engine import Ledger
from tacit.server.kept_requests import KeptRequests

PRICE = Decimal("0.01")
GRANTS = 150
ANALYSTS = 8
POLICY = (Path(tacit.cli.clinic.__file__).parent / "clinic.toml").read_text()
KNOWN = "SELECT state, count(*) AS n FROM patients GROUP BY state"
EXPLAINED = [
    f"SELECT count(*) FROM patients WHERE age < {age}; SELECT count(*) FROM visits" for age in range(20, 60, 5)
]


class Load:
    """All clients, what they have seen, and how long it took."""

    def __init__(self, server: Serving, clients: int, seconds: float) -> None:
        self.server = server
        self.tokens = [server.token(f"analyst{i}") for i in range(ANALYSTS)]
        self.until = time.monotonic() + seconds
        self.times: dict[str, list[float]] = defaultdict(list)
        self.ends: Counter[str] = Counter()
        self.paid: dict[tuple[str, str], Any] = {}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._client, args=(i,)) for i in range(clients)]

    def run(self, kills: int) -> list[tuple[float, int]]:
        """Run all clients and all kills; gives the server's memory over time."""
        started, sizes = time.monotonic(), []
        for thread in self.threads:
            thread.start()
        length = self.until - started
        moments = [started + length * (i + 1) / (kills + 1) for i in range(kills)]
        rng = random.Random(1)
        while time.monotonic() < self.until:
            time.sleep(2)
            sizes.append((time.monotonic() - started, resident(self.server.process.pid)))
            if moments and time.monotonic() > moments[0]:
                moments.pop(0)
                self.server.kill()
                self.server.start()
                self.ends["server killed"] += 1
            elif rng.random() < 0.3 and (workers := self.server.workers()):
                try:
                    os.kill(rng.choice(workers), signal.SIGKILL)
                    self.ends["worker killed"] += 1
                except ProcessLookupError:
                    pass
        for thread in self.threads:
            thread.join()
        return sizes

    def _client(self, number: int) -> None:
        rng = random.Random(number)
        token = self.tokens[number % ANALYSTS]
        count = 0
        while time.monotonic() < self.until:
            count += 1
            id = f"client-{number:03d}-{count:06d}"
            kind = rng.choices(("explain", "known", "new"), (4, 4, 2))[0]
            if kind == "explain":
                path, body = "/api/explain", {"sql": rng.choice(EXPLAINED), "epsilon": 0.01}
            elif kind == "known":
                path, body = "/api/answer", {"id": id, "sql": KNOWN, "epsilon": 0.001}
            else:
                age = rng.randrange(1, 90)
                sql = f"SELECT count(*) FROM patients WHERE age < {age}"
                path, body = "/api/answer", {"id": id, "sql": sql, "epsilon": float(PRICE), "refresh": True}
            self._ask(kind, path, body, token, rng)

    def _ask(self, kind: str, path: str, body: dict[str, Any], token: str, rng: random.Random) -> None:
        if rng.random() < 0.1:
            self._hang_up(path, body, token)
        started = time.monotonic()
        while True:
            try:
                status, data = self.server.json("POST", path, token, {**body, "wait": 60})
            except (OSError, http.client.HTTPException, ValueError):  # the server is being killed: ask again, same id
                self._count("asked again")
                time.sleep(0.2)
                if time.monotonic() > self.until + 120:
                    raise
                continue
            if status in (202, 429, 503):
                self._count(f"status {status}")
                time.sleep(0.2)
                continue
            break
        with self.lock:
            self.ends[f"{kind}: {status if status != 409 else data['error']['class']}"] += 1
            if status == 200:
                self.times[kind].append(time.monotonic() - started)
            if kind == "new" and status == 200:
                self.paid[token, body["id"]] = data["answers"]

    def _count(self, what: str) -> None:
        with self.lock:
            self.ends[what] += 1

    def _hang_up(self, path: str, body: dict[str, Any], token: str) -> None:
        """Send a request and leave: the same request is made again, under the same id."""
        host, _, port = self.server.address.removeprefix("http://").partition(":")
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        try:
            with socket.create_connection((host, int(port)), timeout=5) as line:
                line.sendall(head.encode() + data)
            self._count("hung up")
        except OSError:
            pass


def resident(pid: int) -> int:
    """MiB of a process."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def check(server: Serving, load: Load) -> None:
    """Spend what is left, then compare the ledger, the requests and what clients were told."""
    requests = KeptRequests(server.place.store())
    while requests.unfinished():
        time.sleep(0.2)
    for i in range(GRANTS + 1):
        body = {
            "id": f"the-rest-{i:04d}",
            "sql": "SELECT count(*) FROM visits",
            "epsilon": float(PRICE),
            "refresh": True,
        }
        status, data = server.json("POST", "/api/answer", load.tokens[0], body)
        if status != 200:
            assert (status, data["error"]["class"]) == (409, "BudgetError"), data
            break
        load.paid[load.tokens[0], str(body["id"])] = data["answers"]
    ledger = Ledger.open(server.place.ledger)
    entries = ledger.entries()
    charges = [entry for entry in entries if entry.kind == "charge" and entry.amount.epsilon == PRICE]
    known = [entry for entry in entries if entry.kind == "charge" and entry.amount.epsilon != PRICE]
    spent = sum(entry.amount.epsilon for entry in (*charges, *known))
    kept = [one for token in load.tokens for one in requests.of(server.tokens.holder(token), 10**6)]
    charged = [one for one in kept if one.charge is not None]
    print(
        f"grants {len(charges)} of {PRICE}, {len(known)} of the known question; spent {spent} of {ledger.cap.epsilon}"
    )
    assert spent == ledger.cap.epsilon, "the grants must add up to the cap"
    assert len({one.charge for one in charged}) == len(charged) == len(charges) + len(known), "one charge, one request"
    assert sum(entry.kind == "release" for entry in entries) == len(charges) + len(known)
    assert tacit.ledger.verify(server.place.ledger) == len(entries)
    for file in list(server.place.store().results.iterdir())[::2]:
        file.unlink()  # half of the results are made again from the ledger
    again = different = 0
    for (token, id), answers in load.paid.items():
        status, data = server.json("GET", f"/api/requests/{id}?wait=60", token)
        assert status == 200, data
        again += 1
        different += data["answers"] != answers
    print(f"fetched again: {again}; made again from the ledger with later releases combined: {different}")
    after = [entry for entry in ledger.entries() if entry.kind == "charge"]
    assert len(after) == len(charges) + len(known), "fetching again must cost nothing"


def embedded(place: Any, seconds: float) -> dict[str, list[float]]:
    """The same questions on an embedded connection, one after the other."""
    times: dict[str, list[float]] = defaultdict(list)
    deadline = time.monotonic() + seconds
    with tacit.connect(place.database, policy=place.policy, analyst="analyst0") as con:
        while time.monotonic() < deadline:
            for kind, ask in (
                ("explain", lambda: con.explain(random.choice(EXPLAINED), epsilon=0.01)),
                ("known", lambda: con.answer(KNOWN, epsilon=0.001)),
            ):
                started = time.monotonic()
                ask()
                times[kind].append(time.monotonic() - started)
    return times


def report(name: str, times: dict[str, list[float]]) -> None:
    for kind, seconds in sorted(times.items()):
        cuts = statistics.quantiles(seconds, n=100) if len(seconds) > 1 else [seconds[0]] * 99
        print(
            f"{name:9} {kind:8} {len(seconds):6} requests  p50 {cuts[49] * 1000:8.0f} ms  p99 {cuts[98] * 1000:8.0f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--kills", type=int, default=2, help="how often the server is killed")
    parser.add_argument("--patients", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database, policy = Path(folder) / "clinic.duckdb", Path(folder) / "clinic.toml"
        build(database, options.patients)
        cap = PRICE * GRANTS + Decimal("0.001")  # and the known question, once
        policy.write_text(POLICY.replace("epsilon = 3.0", f"epsilon = {cap}") + "\n[server]\nqueue_per_analyst = 64\n")
        server = Serving(policy, database)
        try:
            server.wait_until_ready()
            token = server.token("analyst0")
            first = {"id": "known-question", "sql": KNOWN, "epsilon": 0.001}
            assert server.json("POST", "/api/answer", token, first)[0] == 200
            load = Load(server, options.clients, options.seconds)
            load.tokens[0] = token
            sizes = load.run(options.kills)
            check(server, load)
            print("ends:", dict(sorted(load.ends.items())))
            report("server", load.times)
            report("embedded", embedded(server.place, min(options.seconds / 6, 20)))
            last = [size for moment, size in sizes if moment > options.seconds * 0.5]
            print(
                f"server's memory: {sizes[0][1]} MiB at first, {max(s for _, s in sizes)} at most, {last[-1]} at last"
            )
            assert max(last) < 1.5 * max(size for _, size in sizes[: len(sizes) // 2]) + 50, "the server grows"
            defects = [line for line in server.lines if '"event": "defect"' in line]
            assert not defects, defects[:3]
        finally:
            server.stop()


if __name__ == "__main__":
    main()
