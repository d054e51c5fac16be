"""The queue: who waits, who is next, where one stands. Analysts take turns: many requests of one delay nobody else."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from tacit.errors import OperationalError, ProgrammingError

from .tokens import Token

ENDED = frozenset({"done", "failed", "cancelled"})


class BusyError(OperationalError):
    """The queue is full."""


class ConflictError(ProgrammingError):
    """A request id that was used for something else."""

    def __init__(self) -> None:
        super().__init__("this request id was used for something else\nhint: choose a new id for every new request")


@dataclass(eq=False)
class Job:
    """One request on its way through the pool. ``number`` is that of a kept request; 0 for one that costs nothing."""

    kind: str
    token: Token
    body: dict[str, Any]
    number: int = 0
    id: str = ""
    digest: str = ""
    free: bool = False
    """Whether it must cost nothing, because it was paid for already."""
    state: str = "queued"
    result: bytes = b""
    error: dict[str, Any] | None = None
    attempts: int = 0
    cancelled: bool = False
    asked: float = field(default_factory=monotonic)
    ended: float = 0.0
    kill: Callable[[], None] | None = None
    """Ends the process that works on it."""
    _waiting: list[Callable[[], None]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self, state: str) -> None:
        """Tell everybody who waits that it is over."""
        with self._lock:
            self.state, self.ended, self.kill, self.body = state, monotonic(), None, {}
            waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call when it is over; at once, if it is."""
        with self._lock:
            if self.state not in ENDED:
                self._waiting.append(call)
                return
        call()


class JobQueue:
    """Jobs by analyst, in turns. Worker threads take from it; it knows how many of each analyst run."""

    def __init__(self, *, most: int, most_each: int, running_each: int) -> None:
        self._most, self._most_each, self._running_each = most, most_each, running_each
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        self._running: dict[str, int] = {}
        self._ready = threading.Condition()
        self._closed = False

    def put(self, job: Job, *, first: bool = False) -> None:
        """Queue a job; ``first`` is for one that was begun before, and is never refused."""
        analyst = job.token.analyst
        with self._ready:
            own = self._waiting.get(analyst, ())
            if not first and len(own) >= self._most_each:
                raise BusyError("you have too many requests waiting\nhint: wait for some of them, or cancel one")
            if not first and sum(map(len, self._waiting.values())) >= self._most:
                raise BusyError("the server is busy\nhint: try again in a while; nothing was charged")
            queue = self._waiting.setdefault(analyst, deque())
            if first:
                queue.appendleft(job)
            else:
                queue.append(job)
            self._ready.notify_all()

    def take(self) -> Job | None:
        """The next job, when there is one; None when the queue is closed. ``leave`` must follow."""
        with self._ready:
            while not self._closed:
                for analyst, queue in self._waiting.items():
                    if queue and self._running.get(analyst, 0) < self._running_each:
                        job = queue.popleft()
                        self._running[analyst] = self._running.get(analyst, 0) + 1
                        if queue:
                            self._waiting.move_to_end(analyst)
                        else:
                            del self._waiting[analyst]
                        return job
                self._ready.wait()
        return None

    def leave(self, job: Job) -> None:
        """A job that was taken is over, or is put back."""
        analyst = job.token.analyst
        with self._ready:
            self._running[analyst] -= 1
            if not self._running[analyst]:
                del self._running[analyst]
            self._ready.notify_all()

    def remove(self, job: Job) -> bool:
        """Whether a job was waiting, and is no longer."""
        with self._ready:
            queue = self._waiting.get(job.token.analyst)
            if queue is None or job not in queue:
                return False
            queue.remove(job)
            if not queue:
                del self._waiting[job.token.analyst]
            return True

    def position(self, job: Job) -> int | None:
        """How many are served up to this one, itself included; None once it runs."""
        with self._ready:
            own = self._waiting.get(job.token.analyst)
            if own is None or job not in own:
                return None
            index, before, place = own.index(job), True, 0
            for analyst, queue in self._waiting.items():
                if analyst == job.token.analyst:
                    before = False
                    place += index + 1
                else:
                    place += min(len(queue), index + int(before))
            return place

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many run."""
        with self._ready:
            return sum(map(len, self._waiting.values())), sum(self._running.values())

    def close(self) -> None:
        """Let worker threads go."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
