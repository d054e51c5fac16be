"""Tasks in processes of their own: what takes too long, or too much memory, ends alone and leaves a gap."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess

from benchmarks.paper.tasks import FAILED, LATE, Outcome, Task, attempt

GRACE = 1.5
"""A search that is given a limit ends by itself soon after; this many limits later its process is ended."""


@dataclass
class _Worker:
    process: SpawnProcess
    door: Connection
    task: Task | None = None
    since: float = 0.0

    def give(self, task: Task) -> None:
        self.task, self.since = task, time.monotonic()
        self.door.send(task)

    def end(self) -> None:
        self.door.close()
        self.process.terminate()
        self.process.join()


def measured(tasks: Iterable[Task], jobs: int, limit: float | None) -> Iterator[tuple[Task, Outcome]]:
    """Every task with its outcome, as they end. Workers are fresh processes: forked ones would share BLAS's state."""
    waiting = deque(tasks)
    if jobs == 1 and limit is None:
        yield from ((task, attempt(task)) for task in waiting)
        return
    context = get_context("spawn")
    workers = [_start(context, jobs) for _ in range(min(jobs, len(waiting)))]
    try:
        while waiting or any(worker.task is not None for worker in workers):
            for worker in workers:
                if worker.task is None and waiting:
                    worker.give(waiting.popleft())
            busy = [worker for worker in workers if worker.task is not None]
            ready = wait([worker.door for worker in busy], timeout=1.0)
            for worker in busy:
                late = limit is not None and time.monotonic() - worker.since > GRACE * limit + 60.0
                if worker.door not in ready and not late:
                    continue
                task = worker.task
                assert task is not None
                outcome = _take(worker) if worker.door in ready else Outcome({}, f"{LATE} {limit:g} seconds")
                worker.task = None
                if worker.door not in ready or not worker.process.is_alive():
                    worker.end()
                    workers[workers.index(worker)] = _start(context, jobs)
                yield task, outcome
    finally:
        for worker in workers:
            worker.end()


def _take(worker: _Worker) -> Outcome:
    try:
        outcome = worker.door.recv()
    except (EOFError, ConnectionError):
        worker.process.join()
        return Outcome({}, f"{FAILED}: {worker.task}: its process ended ({worker.process.exitcode})")
    assert isinstance(outcome, Outcome)
    return outcome


def _start(context: SpawnContext, jobs: int) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, jobs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _serve(door: Connection, jobs: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when a run is stopped
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 9 // 10 // jobs
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))  # a task asks in vain instead of being killed
    while True:
        try:
            task = door.recv()
        except EOFError:
            return
        door.send(attempt(task))
