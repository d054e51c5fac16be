"""What a caller of the search asks for, apart from the workload and its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.engine.measures import Objective
from tacit.engine.search.watch import Progress
from tacit.engine.strategy import Privacy

TARGET_GAP = 1e-5
"""Where the default search stops: 0.001 % above the best bound it has proven."""
LARGE, LARGE_GAP = 512, 8e-4
"""Queries and cells from which on it stops sooner: every round decomposes a matrix of that side, and the last digits
take most of the rounds."""


@dataclass(frozen=True)
class Options:
    """The keywords of ``optimize``, which documents them."""

    privacy: Privacy = "pure"
    strategy: str | None = None
    objective: Objective = "total"
    deadline: float | None = None
    target_gap: float = TARGET_GAP
    reduce: bool | None = None
    progress: Callable[[Progress], None] | None = None
    cancel: Callable[[], bool] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Those of the named strategy."""
    effort: float = 1.0
    """Share of the portfolio's work to spend; set by a search that runs it several times."""
