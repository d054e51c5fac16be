"""How dear a task is, roughly, so that a long run can measure the cheap ones first and say how much is left.

Seconds of one core of 2026, fitted to a quick run; a factor of three either way is all that is promised.
"""

from __future__ import annotations

from benchmarks.paper.dawa import Sampled
from benchmarks.paper.talk_tasks import Plain, Ranges, Weighted
from benchmarks.paper.tasks import Lemmas, Planned, Relaxed, Step, Task
from benchmarks.paper.workloads import Setting

_CUBIC = {"esm": 1e-7, "coa": 1.1e-8, "adaptive": 2.3e-9, "wavelet": 1.5e-9, "hierarchical": 2e-9, "identity": 1.3e-9}
"""Seconds for each of n³ operations."""
_COA_TO_CONVERGENCE = 5e-7
_REFUSED = 4096
"""Cells beyond which ``esm`` and ``coa`` refuse at once."""


def seconds(task: Task) -> float:
    """Without the task's own limit."""
    match task:
        case Planned(setting=setting, strategy="esm" | "coa") if setting.n > _REFUSED:
            return 0.0
        case Planned(setting=setting, parameters=parameters) if ("settings", "paper") in parameters:
            return _COA_TO_CONVERGENCE * setting.n**3
        case Planned(setting=setting, strategy=strategy, privacy=privacy):
            return _planned(setting, strategy, privacy == "pure")
        case Relaxed(setting=setting, ratio=ratio):
            return _lrm(setting, ratio, 3e-6)
        case Step(setting=setting, iterations=iterations):
            return (0.2 + 0.1 * iterations) * _CUBIC["coa"] * setting.n**3
        case Ranges(n=n, strategy=strategy):
            return _planned(Setting("AllRange", n, n), strategy, True) + 1e-8 * n**3
        case Weighted(n=n):
            return 1e-5 * n**3
        case Lemmas(setting=setting):
            return 2e-9 * min(setting.m, setting.n) ** 2 * max(setting.m, setting.n)
        case Sampled(setting=setting):
            return 1.0 + 2e-8 * setting.n**3
        case Plain():
            return 0.0
        case _:
            return 60.0


def _planned(setting: Setting, strategy: str | None, pure: bool) -> float:
    k, n = min(setting.m, setting.n), setting.n
    if strategy == "lrm":
        return _lrm(setting, 1.2, 3e-6 if pure else 3e-7)
    if strategy is None:
        return 1.5 + 4e-8 * k * n * n if pure else 0.1 + 3e-9 * k * k * n
    return _CUBIC.get(strategy, 1.5e-9) * n**3


def _lrm(setting: Setting, ratio: float, unit: float) -> float:
    """Steps of r²·(m + n) operations (LRM, Section 5), about as many for every workload."""
    rank = setting.base if setting.workload == "WRelated" else min(setting.m, setting.n)
    return 0.5 + unit * (ratio * rank) ** 2 * (setting.m + setting.n)
