"""The pool: threads that each look after one worker process, with limits of time and memory, and few scans at once."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from tacit import wire
from tacit.errors import Error, InternalError, OperationalError
from tacit.policy_server import ServerPolicy
from tacit.wire_errors import error_body

from .jobs import ENDED, Job, JobQueue
from .kept_requests import KeptRequests
from .worker import FAILED

log = logging.getLogger("tacit.server")
_MOST_ATTEMPTS = 3
_JOBS_OF_A_PROCESS = 1000
"""A process is replaced after so many, so that whatever a library keeps is given back."""
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.1
_READS = frozenset({"answer", "discover", "cells"})


class Ended(Exception):
    """The worker process is gone."""


@dataclass
class PoolCounts:
    """What the pool has done so far, for /metrics: nothing of it follows from a row."""

    plan_seconds: float = 0.0
    planned: int = 0
    restarts: int = 0
    jobs: dict[tuple[str, str], int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ended(self, job: Job) -> None:
        """Count a job by its kind and its end."""
        with self.lock:
            key = (job.kind, job.state)
            self.jobs[key] = self.jobs.get(key, 0) + 1

    def planned_in(self, seconds: float) -> None:
        """Count a plan."""
        with self.lock:
            self.plan_seconds += seconds
            self.planned += 1

    def restarted(self) -> None:
        """Count a process that was begun anew."""
        with self.lock:
            self.restarts += 1


class Process:
    """One worker process and the socket to it."""

    def __init__(self, first: dict[str, Any], lock: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as undone:
            undone.callback(ours.close)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tacit.server.worker", str(theirs.fileno())],
                pass_fds=(theirs.fileno(), lock),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt at the terminal is the server's to handle
            )
            undone.pop_all()
        self.pipe = Pipe(ours.detach())
        self.jobs = 0
        self.pipe.send_bytes(wire.dump({**first, "parent": os.getpid()}))
        self.is_ready = False

    def wait_until_ready(self) -> None:
        """Starting takes seconds, which no request should pay for."""
        if not self.is_ready:
            if self.receive(_START_SECONDS) is None:
                raise Ended
            self.is_ready = True

    def send(self, message: dict[str, Any]) -> None:
        """A message to the worker; ``Ended`` if it is gone."""
        try:
            self.pipe.send_bytes(wire.dump(message))
        except OSError:
            raise Ended from None

    def receive(self, seconds: float) -> bytes | None:
        """A message of the worker's; None if there is none in time, ``Ended`` if it is gone."""
        try:
            return self.pipe.recv_bytes() if self.pipe.poll(seconds) else None
        except (EOFError, OSError):
            raise Ended from None

    def kill(self) -> None:
        """End it now."""
        self._process.kill()

    def close(self) -> None:
        """End it now, and clear it away."""
        self.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self.pipe.close()

    @property
    def pid(self) -> int:
        """Its number, for tests that end it."""
        return self._process.pid


class Pool:
    """Worker threads and their processes."""

    def __init__(
        self, settings: ServerPolicy, database: str, policy: Path, store: Path, requests: KeptRequests, lock: int
    ) -> None:
        self.settings = settings
        self.queue = JobQueue(
            most=settings.queue, most_each=settings.queue_per_analyst, running_each=settings.per_analyst
        )
        self.counts = PoolCounts()
        self._requests = requests
        self._lock = lock
        self._first = {
            "database": database,
            "policy": str(policy),
            "store": str(store),
            "memory": settings.memory_mb << 20,
            "keep_mb": settings.keep_mb,
        }
        self._scans = threading.Semaphore(settings.scans)
        self._stopping = False
        self.processes: dict[int, Process] = {}
        number = settings.workers or max(4, 2 * (os.cpu_count() or 1))
        self._threads = [threading.Thread(target=self._work, args=(i,), daemon=True) for i in range(number)]

    def start(self) -> None:
        """Start all threads and processes; returns at once."""
        for thread in self._threads:
            thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether one worker can answer."""
        return any(process.is_ready for process in list(self.processes.values()))

    def stop(self) -> None:
        """Stop: those who plan at once, those who have begun to pay when their release is stored."""
        self._stopping = True
        self.queue.close()
        for thread in self._threads:
            thread.join()

    def cancel(self, job: Job) -> bool:
        """Whether a job was cancelled; one that is being paid is not."""
        if job.state in ENDED:
            return job.state == "cancelled"
        if job.number and not self._requests.cancel(job.number):
            return False
        job.cancelled = True
        if self.queue.remove(job):
            job.end("cancelled")
        elif (kill := job.kill) is not None:
            kill()
        return True

    def _work(self, place: int) -> None:
        try:
            with contextlib.suppress(Ended):  # started now, so that the first request does not wait for it
                self._process(place)
            while (job := self.queue.take()) is not None:
                self._serve(place, job)
        finally:
            if (process := self.processes.pop(place, None)) is not None:
                process.close()

    def _process(self, place: int) -> Process:
        """The process of this thread, started anew where it is gone."""
        for attempt in range(_MOST_ATTEMPTS):
            try:
                process = self.processes.get(place)
                if process is None:
                    process = self.processes[place] = Process(self._first, self._lock)
                process.wait_until_ready()
                return process
            except OSError as error:  # no memory, no handles, no right to run it: perhaps for a while
                log.error("no worker", extra={"fields": {"errno": error.errno}})
                time.sleep(attempt)
            except Ended:
                self._drop(place)
                time.sleep(attempt)
        raise Ended

    def _replace(self, place: int) -> None:
        """Start a process anew while its last job still counts as running.

        Who cancels and asks again, over and over, then waits for it; nobody else gets a place without a process.
        """
        if not self._stopping:
            with contextlib.suppress(Ended):
                self._process(place)

    def _drop(self, place: int) -> None:
        process = self.processes.pop(place, None)
        if process is not None:
            process.close()
            self.counts.restarted()

    def _serve(self, place: int, job: Job) -> None:
        started = time.monotonic()
        again = False
        try:
            if job.cancelled:
                job.end("cancelled")
                return
            job.attempts += 1
            try:
                process = self._process(place)
                again = not self._run(process, job, started)
                process.jobs += 1
                if process.jobs >= _JOBS_OF_A_PROCESS:
                    self._drop(place)
            except Ended:
                self._drop(place)
                again = not self._ended(job)
                self._replace(place)
        except Exception as error:  # a defect of the server's: the thread must live
            log.error("defect", extra={"fields": {"where": "pool", "class": type(error).__name__}})
            self._fail(job, error_body(InternalError(FAILED)))
        finally:
            self.queue.leave(job)
            if again and not self._stopping:
                self.queue.put(job, first=True)
            elif job.state in ENDED:
                self.counts.ended(job)

    def _run(self, process: Process, job: Job, started: float) -> bool:
        """Whether the job came to an end; Ended if its process did."""
        settings = self.settings
        deadline = started + 2 * settings.plan_seconds + 30
        job.kill = process.kill
        job.state = "running"
        if job.cancelled:  # between the last look and this one
            raise Ended
        process.send(
            {
                "kind": job.kind,
                "number": job.number,
                "analyst": job.token.analyst,
                "body": job.body,
                "cap": [wire.written(job.token.cap.epsilon), wire.written(job.token.cap.delta)],
                "tables": None if job.token.tables is None else sorted(job.token.tables),
                "free": job.free or not job.number,
                "plan_seconds": settings.plan_seconds,
            }
        )
        with contextlib.ExitStack() as held:
            while True:
                data = process.receive(_LOOK_SECONDS)
                if data is None:
                    if self._stopping and self._may_stop(job):
                        raise Ended
                    if job.state == "running" and time.monotonic() > deadline:
                        self._time_out(process, job)
                    continue
                message = wire.parse(data)
                if "paying" in message:
                    job.state = "paying"
                elif "scan" in message:
                    held.enter_context(self._scans)
                    process.send({})
                elif "defect" in message:
                    log.error("defect", extra={"fields": {"where": job.kind, "text": message["defect"]}})
                else:
                    return self._take_result(process, job, message, started)

    def _may_stop(self, job: Job) -> bool:
        """Whether a job may be ended because the server stops; if it is kept, the next server takes it up."""
        return job.state == "running" and (not job.number or not self._is_paying(job))

    def _is_paying(self, job: Job) -> bool:
        kept = self._requests.get(job.number)
        return kept is not None and kept.state == "paying"

    def _time_out(self, process: Process, job: Job) -> None:
        if job.number and not self._requests.cancel(job.number):
            job.state = "paying"
            return
        job.cancelled = True
        job.error = error_body(
            OperationalError(
                "planning this batch took longer than the server allows; nothing was charged\n"
                "hint: ask for fewer queries at a time, or bound the search with plan_seconds="
            )
        )
        process.kill()

    def _take_result(self, process: Process, job: Job, message: dict[str, Any], started: float) -> bool:
        seconds = float(message["seconds"])
        if "failed" in message:
            job.error = message["failed"]
        elif not job.number:
            data = process.receive(_START_SECONDS)
            if data is None:
                raise Ended
            job.result = data
        if job.kind == "explain":
            self.counts.planned_in(seconds)
        if job.kind in _READS:  # when it ended is visible in steps only, to its reader and to those who wait
            wait_for_quantum(started, self.settings.quantum_ms, time.sleep)
        job.end("done" if job.error is None else "failed")
        return True

    def _ended(self, job: Job) -> bool:
        """Whether a job is over whose process is gone; if not, it is run again."""
        if job.error is not None:
            self._fail(job, job.error)
            return True
        if job.cancelled:
            job.end("cancelled")
            return True
        if self._stopping:
            return True
        kept = self._requests.get(job.number) if job.number else None
        if kept is not None and kept.state in ENDED:
            job.error = kept.error
            job.end(kept.state)
            return True
        if job.attempts >= _MOST_ATTEMPTS:
            self._fail(
                job,
                error_body(
                    OperationalError(
                        "the process that worked on this batch ended before it was done, perhaps for want of memory\n"
                        "hint: ask again under the same request id, which pays nothing twice, or for fewer queries"
                    )
                ),
            )
            return True
        job.state = "queued"
        return False

    def _fail(self, job: Job, error: dict[str, Any]) -> None:
        job.error = error
        if job.number:
            with contextlib.suppress(Error):
                self._requests.finish(job.number, "failed", error=error)
        job.end("failed")


def wait_for_quantum(started: float, quantum_ms: int, sleep: Callable[[float], object]) -> None:
    """Sleep until a whole number of quanta has passed since ``started``, at least one."""
    rest = quantum_rest(time.monotonic() - started, quantum_ms)
    if rest > 0:
        sleep(rest)


def quantum_rest(elapsed: float, quantum_ms: int) -> float:
    """How long to wait so that a whole number of quanta, at least one, has passed.

    >>> round(quantum_rest(0.13, 100), 6), quantum_rest(5, 0)
    (0.07, 0.0)
    """
    if not quantum_ms:
        return 0.0
    quantum = quantum_ms / 1000
    return max(1, math.ceil(elapsed / quantum)) * quantum - elapsed
