"""Prometheus metrics: what was spent, who waits, how long planning took. No count of anything in the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .tokens import Token

if TYPE_CHECKING:
    from .service import Service

from tacit.policy import Cap

_CURATOR = Token("", "", "curator", Cap(), None, None, "", None)


def exposition(service: Service, statuses: Mapping[int, int]) -> str:
    """The text that Prometheus reads."""
    budget = service.budget(_CURATOR)
    waiting, running = service.pool.queue.counts()
    counts = service.pool.counts
    lines: list[str] = []

    def metric(name: str, kind: str, text: str, samples: Mapping[str, float]) -> None:
        lines.extend((f"# HELP tacit_{name} {text}", f"# TYPE tacit_{name} {kind}"))
        lines.extend(f"tacit_{name}{labels} {value:.12g}" for labels, value in samples.items())

    for part in ("spent", "cap", "left"):
        amount = getattr(budget, part)
        metric(f"{part}_epsilon", "gauge", f"Epsilon {part}, of the whole.", {"": float(amount.epsilon)})
        metric(f"{part}_delta", "gauge", f"Delta {part}, of the whole.", {"": float(amount.delta)})
    metric("queue_waiting", "gauge", "Requests that wait.", {"": waiting})
    metric("queue_running", "gauge", "Requests that run.", {"": running})
    with counts.lock:
        metric("plan_seconds_total", "counter", "Seconds spent explaining.", {"": counts.plan_seconds})
        metric("plans_total", "counter", "Batches explained.", {"": counts.planned})
        metric("worker_restarts_total", "counter", "Worker processes begun anew.", {"": counts.restarts})
        jobs = {f'{{kind="{kind}",end="{end}"}}': number for (kind, end), number in sorted(counts.jobs.items())}
    metric("jobs_total", "counter", "Jobs by kind and end.", jobs)
    metric(
        "responses_total",
        "counter",
        "HTTP responses by status.",
        {f'{{status="{status}"}}': number for status, number in sorted(statuses.items())},
    )
    return "\n".join(lines) + "\n"
