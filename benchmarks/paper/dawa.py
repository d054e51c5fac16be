"""COA's Figure 14, COA against DAWA, and what the paper leaves out: every data set, MWEM, and ε from 0.001 to 1.

What depends on the data has no predicted error: it is released, and the answers are compared with the exact ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tacit.engine import optimize, release

from benchmarks.paper.coa import COAS
from benchmarks.paper.data import ADULT, NET, SEARCH, SOCIAL, UNIFORM, unit_counts
from benchmarks.paper.figures import TACIT, Figure, Point
from benchmarks.paper.sizes import Sizes
from benchmarks.paper.tasks import DELTA, EPSILON, RUNS, Measures, Planned
from benchmarks.paper.workloads import Setting

DAWA, MWEM, ESTIMATED = "DAWA", "MWEM", "tacit, pure ε"
DELTAS = (1e-2, 1e-3, 1e-4, 1e-5)
EPSILONS = (0.001, 0.01, 0.1, 1.0)
VALUE = "squared error per query"


@dataclass(frozen=True)
class Sampled:
    """A strategy that looks at the data, released ``RUNS`` times; measures ``error``, per query."""

    setting: Setting
    strategy: str
    data: str
    folder: str | None = None
    epsilon: float = EPSILON

    def run(self) -> Measures:
        W = self.setting.matrix()
        counts = unit_counts(self.data, self.setting.n, self.folder)
        s = optimize(W, privacy="pure", strategy=self.strategy)
        exact = W @ counts
        squares = [float(np.sum((release(s, counts, epsilon=self.epsilon) - exact) ** 2)) for _ in range(RUNS)]
        return {"error": float(np.mean(squares)) / self.setting.m}


def figures(sizes: Sizes, folder: str | None) -> list[Figure]:
    return [*_fourteen(sizes, folder), _by_epsilon(sizes, folder)]


def _predicted(panel: str, x: float, setting: Setting, sizes: Sizes) -> list[Point]:
    """COA at each δ, and tacit under pure ε: the strategy is the same at every δ, the noise is not."""
    points = [Point(panel, x, ESTIMATED, "error", Planned(setting, "pure", None, sizes.own_limit))]
    for label, (strategy, parameters) in COAS.items():
        if setting.n > sizes.most_cells.get(label, setting.n):
            continue
        task = Planned(setting, "approximate", strategy, sizes.named_limit, parameters=parameters)
        points += [Point(panel, x, f"{label}, δ = {delta:g}", "error", task, _gauss(delta)) for delta in DELTAS]
    return points


def _gauss(delta: float) -> float:
    """The paper's σ² at this δ over that at its default."""
    return math.log(2.0 / delta) / math.log(2.0 / DELTA)


def _fourteen(sizes: Sizes, folder: str | None) -> list[Figure]:
    def points(settings: Sequence[tuple[float, Setting]]) -> tuple[Point, ...]:
        listed = []
        for data in (SOCIAL, UNIFORM):
            for x, setting in settings:
                listed.append(Point(data, x, DAWA, "error", Sampled(setting, "dawa", data, folder)))
                listed += _predicted(data, x, setting, sizes)
        return tuple(listed)

    m, n = sizes.coa_m, sizes.square
    by_n = points([(n, Setting("WRange", m, n)) for n in sizes.dawa_ns])
    by_m = points([(m, Setting("WRange", m, n)) for m in sizes.dawa_ms])
    return [
        Figure("COA 14 by n", f"COA and DAWA on WRange, m = {m}", "coa-14", "n", VALUE, by_n),
        Figure("COA 14 by m", f"COA and DAWA on WRange, n = {n}", "coa-14", "m", VALUE, by_m),
    ]


def _by_epsilon(sizes: Sizes, folder: str | None) -> Figure:
    """Ours: which of DAWA, MWEM and tacit's default is the best, on four data sets."""
    setting = Setting("WRange", sizes.coa_m, sizes.square)
    ours = Planned(setting, "pure", None, sizes.own_limit)
    points = []
    for data in (SEARCH, NET, SOCIAL, ADULT):
        for epsilon in EPSILONS:
            points += [
                Point(data, epsilon, label, "error", Sampled(setting, strategy, data, folder, epsilon))
                for label, strategy in ((DAWA, "dawa"), (MWEM, "mwem"))
            ]
            points.append(Point(data, epsilon, TACIT, "error", ours, (EPSILON / epsilon) ** 2))
    title = f"DAWA, MWEM and tacit on WRange, m = {setting.m}, n = {setting.n}"
    return Figure("Data 1", title, "data-1", "ε", VALUE, tuple(points))
