"""The clock, the stop conditions and the record of a search: what makes every strategy anytime."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tacit.engine.strategy import TracePoint


@dataclass(frozen=True)
class Progress:
    """Where a search stands; what the ``progress`` callback is given."""

    seconds: float
    error: float
    lower_bound: float


@dataclass(frozen=True)
class Offset:
    """What the other parts of a problem contribute while one part is worked on."""

    error: float
    lower_bound: float
    copies: int
    """How often the part occurs."""


class Watch:
    """Says when a search stops and records its trace.

    A search stops for one of three reasons: the gap between the best error and the best bound reached
    ``target_gap``, the wall clock passed ``deadline`` seconds, or ``cancel()`` became true. Without the last
    two, the result depends on the workload alone. ``clock`` counts seconds from any origin.
    """

    def __init__(
        self,
        *,
        deadline: float | None = None,
        target_gap: float = 0.0,
        progress: Callable[[Progress], None] | None = None,
        cancel: Callable[[], bool] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._clock = time.perf_counter if clock is None else clock
        self._start = self._clock()
        self._deadline = float("inf") if deadline is None else deadline
        self.target_gap = target_gap
        self._progress = progress
        self._cancel = cancel
        self._trace: list[TracePoint] = []
        self.error = float("inf")
        self.lower_bound = 0.0

    @property
    def seconds(self) -> float:
        return self._clock() - self._start

    @property
    def trace(self) -> tuple[TracePoint, ...]:
        return tuple(self._trace)

    def report(self, error: float, lower_bound: float = 0.0) -> None:
        """Note an error that was reached and a bound that was proven; only improvements enter the trace."""
        if error >= self.error and lower_bound <= self.lower_bound:
            return
        self.error = min(self.error, error)
        self.lower_bound = max(self.lower_bound, lower_bound)
        point = (self.seconds, self.error, self.lower_bound)
        self._trace.append(point)
        if self._progress is not None:
            self._progress(Progress(*point))

    def interrupted(self) -> bool:
        """The caller wants the best so far, now."""
        return self.seconds >= self._deadline or (self._cancel is not None and self._cancel())

    def stop(self) -> bool:
        """The certificate is as tight as was asked for, or the caller does not want to wait for that."""
        return self.error <= self.lower_bound * (1.0 + self.target_gap) or self.interrupted()

    def part(self, share: float, offset: Offset) -> Watch:
        """A watch over one independent part of the problem, with ``share`` of the time that is left.

        Its reports reach this watch as the part's figures times ``offset.copies`` plus the other parts'.
        """

        def forward(progress: Progress) -> None:
            error = offset.error + offset.copies * progress.error
            self.report(error, offset.lower_bound + offset.copies * progress.lower_bound)

        left = self._deadline - self.seconds
        return Watch(
            deadline=None if left == float("inf") else max(0.0, left * share),
            target_gap=self.target_gap,
            progress=forward,
            cancel=self._cancel,
            clock=self._clock,
        )
