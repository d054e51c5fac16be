"""The server under load: clients that ask, hang up and come back, while workers and the server are killed.

    python benchmarks/server.py [--clients 64] [--seconds 180] [--kills 2]

On this machine only. Prints p50 and p99 beside the embedded connection's, and fails unless every grant was paid once,
the grants add up to the cap exactly, every paid answer can be fetched again, and the server does not grow. It ends by
itself: whatever hangs, it is over when three times the stated seconds, and five minutes, have passed.
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
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import tacit.cli.clinic
from support.serving import Serving
from tacit.cli.clinic import build
from tacit.engine import Ledger
from tacit.server.kept_requests import KeptRequest, KeptRequests

PRICE = Decimal("0.01")
KNOWN_PRICE = Decimal("0.001")
ANALYSTS = 8
SOLO_SECONDS = 10
POLICY = (Path(tacit.cli.clinic.__file__).parent / "clinic.toml").read_text()
KNOWN = "SELECT state, count(*) AS n FROM patients GROUP BY state"
EXPLAINED = [
    f"SELECT count(*) FROM patients WHERE age < {age}; SELECT count(*) FROM visits" for age in range(20, 60, 5)
]
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Sample:
    """The memory of a server at a moment, in MiB, and of which of its lives."""

    moment: float
    life: int
    server: int
    workers: int


class Load:
    """All clients, what they have seen, and how long it took."""

    def __init__(self, server: Serving, clients: int, seconds: float) -> None:
        self.server = server
        self.tokens = [server.token(f"analyst{i}") for i in range(ANALYSTS)]
        self.until = time.monotonic() + seconds
        self.times: Times = defaultdict(list)
        self.ends: Counter[str] = Counter()
        self.paid: dict[tuple[str, str], Any] = {}
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._client, args=(i,), daemon=True) for i in range(clients)]

    def run(self, kills: int) -> list[Sample]:
        """Run all clients and all kills; gives the server's memory over time. Half of the time has no kill of it."""
        started, samples, life = time.monotonic(), [], 0
        for thread in self.threads:
            thread.start()
        length = self.until - started
        moments = [started + length * (i + 1) / (2 * kills) for i in range(kills)]
        rng = random.Random(1)
        while time.monotonic() < self.until:
            time.sleep(2)
            workers = self.server.workers()
            samples.append(
                Sample(
                    time.monotonic() - started,
                    life,
                    resident(self.server.process.pid),
                    sum(map(resident, workers)),
                )
            )
            if moments and time.monotonic() > moments[0]:
                moments.pop(0)
                self.server.kill()
                self.server.start()
                life += 1
                self.ends["server killed"] += 1
            elif rng.random() < 0.3 and workers:
                try:
                    os.kill(rng.choice(workers), signal.SIGKILL)
                    self.ends["worker killed"] += 1
                except ProcessLookupError:
                    pass
        for thread in self.threads:
            thread.join(max(self.until + 120 - time.monotonic(), 0.1))
        assert not any(thread.is_alive() for thread in self.threads), "a client waits for ever"
        return samples

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
                path, body = "/api/answer", {"id": id, "sql": KNOWN, "epsilon": float(KNOWN_PRICE)}
            else:
                age = rng.randrange(1, 90)
                sql = f"SELECT count(*) FROM patients WHERE age < {age}"
                path, body = "/api/answer", {"id": id, "sql": sql, "epsilon": float(PRICE), "refresh": True}
            self._ask(kind, path, body, token, rng)

    def _ask(self, kind: str, path: str, body: dict[str, Any], token: str, rng: random.Random) -> None:
        if rng.random() < 0.1:
            self._hang_up(path, body, token)
        started = time.monotonic()
        while time.monotonic() < self.until + 60:
            try:
                status, data = self.server.json("POST", path, token, {**body, "wait": 30})
            except (OSError, http.client.HTTPException, ValueError):  # the server is being killed: ask again, same id
                self._count("asked again")
                time.sleep(0.2)
                continue
            if status in (202, 429, 503):
                self._count(f"status {status}")
                time.sleep(0.2)
                continue
            break
        else:
            self._count(f"{kind}: given up at the end")
            return
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


def check(server: Serving, load: Load, grants: int) -> None:
    """Spend what is left, then compare the ledger, the requests and what clients were told."""
    requests = KeptRequests(server.place.store())
    wait_for(lambda: not requests.unfinished(), 120, "requests that never end")
    for i in range(grants + 1):
        id, sql = f"the-rest-{i:04d}", "SELECT count(*) FROM visits"
        body = {"id": id, "sql": sql, "epsilon": float(PRICE), "refresh": True}
        status, data = server.json("POST", "/api/answer", load.tokens[0], body)
        if status != 200:
            assert (status, data["error"]["class"]) == (409, "BudgetError"), data
            break
        load.paid[load.tokens[0], id] = data["answers"]
    ledger = Ledger.open(server.place.ledger)
    entries = ledger.entries()
    charges = [entry for entry in entries if entry.kind == "charge"]
    spent = sum(entry.amount.epsilon for entry in charges)
    kept = {token: requests.of(server.tokens.holder(token), 10**6) for token in load.tokens}
    charged = [(token, one) for token, all in kept.items() for one in all if one.charge is not None]
    print(f"grants {len(charges) - 1} of {PRICE} and one of {KNOWN_PRICE}; spent {spent} of {ledger.cap.epsilon}")
    print(f"of them {i} were spent after the load, to reach the cap")
    assert spent == ledger.cap.epsilon, "the grants must add up to the cap"
    assert len({one.charge for _, one in charged}) == len(charged) == len(charges), "one charge, one request"
    assert sum(entry.kind == "release" for entry in entries) == len(charges)
    assert tacit.ledger.verify(server.place.ledger) == len(entries)
    fetch_again(server, load, charged)
    assert len([e for e in ledger.entries() if e.kind == "charge"]) == len(charges), "fetching again must cost nothing"


def fetch_again(server: Serving, load: Load, charged: list[tuple[str, KeptRequest]]) -> None:
    """Every paid answer, half of them made again from the ledger because their files are gone."""
    for file in list(server.place.store().results.iterdir())[::2]:
        file.unlink()
    same = moved = 0
    for token, one in charged:
        status, data = server.json("GET", f"/api/requests/{one.id}?wait=60", token)
        assert status == 200, data
        told = load.paid.get((token, one.id))
        same, moved = same + (data["answers"] == told), moved + (told is not None and data["answers"] != told)
    print(
        f"paid answers fetched again: {len(charged)}; as they were told: {same}; with later releases combined: {moved}"
    )
    assert {(token, one.id) for token, one in charged} >= set(load.paid), "who was told an answer has paid for it"


def wait_for(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.2)


def check_memory(samples: list[Sample]) -> None:
    """The last life of the server, which is half of the run: its second half must not be larger than its first."""
    last = [sample for sample in samples if sample.life == samples[-1].life]
    last = last[len(last) // 5 :]  # starting is growing
    for part in ("server", "workers"):
        sizes = [getattr(sample, part) for sample in last]
        middle = len(sizes) // 2
        first, second = statistics.median(sizes[:middle]), statistics.median(sizes[middle:])
        print(f"memory of the {part}: {first:.0f} MiB in the first half of its last life, {second:.0f} in the second")
        assert second < 1.15 * first + 20, f"the {part} grow"


def solo(server: Serving, token: str, seconds: float) -> Times:
    """One client and nobody else."""
    times: Times = defaultdict(list)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for kind, path, body in (
            ("explain", "/api/explain", {"sql": random.choice(EXPLAINED), "epsilon": 0.01}),
            (
                "known",
                "/api/answer",
                {"id": f"solo-{deadline:.0f}-{len(times['known'])}", "sql": KNOWN, "epsilon": 0.001},
            ),
        ):
            started = time.monotonic()
            status, data = server.json("POST", path, token, body)
            assert status == 200, data
            times[kind].append(time.monotonic() - started)
    return times


def embedded(place: Any, seconds: float) -> Times:
    """The same questions on an embedded connection, one after the other."""
    times: Times = defaultdict(list)
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


def report(name: str, times: Times) -> None:
    for kind, seconds in sorted(times.items()):
        cuts = statistics.quantiles(seconds, n=100) if len(seconds) > 1 else [seconds[0]] * 99
        middle, slow = cuts[49] * 1000, cuts[98] * 1000
        print(f"{name:20} {kind:8} {len(seconds):6} requests  p50 {middle:8.0f} ms  p99 {slow:8.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--kills", type=int, default=2, help="how often the server is killed")
    parser.add_argument("--patients", type=int, default=20_000)
    parser.add_argument("--grants", type=int, default=300, help="how many new answers the cap pays for")
    options = parser.parse_args()
    signal.alarm(int(3 * options.seconds + 300))  # its default is to end the process
    with tempfile.TemporaryDirectory() as folder:
        database, policy = Path(folder) / "clinic.duckdb", Path(folder) / "clinic.toml"
        build(database, options.patients)
        cap = PRICE * options.grants + KNOWN_PRICE  # and the known question, once
        policy.write_text(POLICY.replace("epsilon = 3.0", f"epsilon = {cap}") + "\n[server]\nqueue_per_analyst = 64\n")
        server = Serving(policy, database)
        try:
            measure(server, options)
        finally:
            server.stop()


def measure(server: Serving, options: argparse.Namespace) -> None:
    """The whole run, over a server that is up."""
    server.wait_until_ready()
    token = server.token("analyst0")
    first = {"id": "known-question", "sql": KNOWN, "epsilon": float(KNOWN_PRICE)}
    assert server.json("POST", "/api/answer", token, first)[0] == 200
    alone = solo(server, token, SOLO_SECONDS)
    load = Load(server, options.clients, options.seconds)
    load.tokens[0] = token
    print(
        f"{options.clients} clients for {options.seconds:.0f} s, load average {os.getloadavg()[0]:.1f} before",
        flush=True,
    )
    samples = load.run(options.kills)
    check(server, load, options.grants)
    print("ends:", dict(sorted(load.ends.items())))
    report(f"server, {options.clients} clients", load.times)
    report("server, one client", alone)
    report("embedded", embedded(server.place, SOLO_SECONDS))
    check_memory(samples)
    defects = [line for line in server.lines if '"event": "defect"' in line]
    assert not defects, defects[:3]


if __name__ == "__main__":
    main()
