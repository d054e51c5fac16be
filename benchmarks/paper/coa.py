"""Figures 1 to 13 of COA, "Convex Optimization for Linear Query Processing under Approximate Differential Privacy".

Figure 14 compares with DAWA, a data-dependent system that tacit does not have.
"""

from __future__ import annotations

from benchmarks.paper.figures import Figure, Point, sweep
from benchmarks.paper.sizes import Sizes
from benchmarks.paper.tasks import Step
from benchmarks.paper.workloads import Setting

GM, NOR, WM, HM, ESM, AM = "GM (noise on data)", "noise on results", "WM", "HM", "ESM", "AM"
LRM, COA = "LRM", "COA"
SEARCHED = {ESM: "esm", LRM: "lrm", COA: "coa"}
"""The strategies whose running time Figures 11 to 13 show."""
NAMES = {GM: "identity", NOR: "results", WM: "wavelet", HM: "hierarchical", AM: "adaptive", **SEARCHED}
ALL = ("WDiscrete", "WMarginal", "WRange", "WRelated")
ERROR, SECONDS = "expected squared error per query", "seconds"


def figures(sizes: Sizes) -> list[Figure]:
    return [*_convergence(sizes), *_domain(sizes), *_queries(sizes), _base(sizes), *_times(sizes)]


def _convergence(sizes: Sizes) -> list[Figure]:
    errors, gradients = [], []
    for workload in ALL:
        setting = Setting(workload, *sizes.convergence)
        for k in sizes.steps:
            task = Step(setting, k)
            errors += [Point(workload, k, name, name, task) for name in ("objective", "test error", "lower bound")]
            gradients += [
                Point(workload, k, "‖G‖, as the paper plots", "gradient", task),
                Point(workload, k, "‖G‖ off the diagonal", "free gradient", task),
            ]
    title = "convergence of COA's Algorithm 1, m = {}, n = {}".format(*sizes.convergence)
    axis = "iteration"
    return [
        Figure("COA 1", title, "coa-1", axis, ERROR, tuple(errors), log_x=False),
        Figure("COA 1 optimality", title, "coa-1", axis, "optimality", tuple(gradients), log_x=False),
    ]


def _limits(sizes: Sizes) -> tuple[float | None, float | None]:
    return sizes.own_limit, sizes.named_limit


def _domain(sizes: Sizes) -> list[Figure]:
    """Figures 2 to 5. The errors do not depend on the data: one panel stands for the paper's four."""
    figures = []
    for i, workload in enumerate(ALL):
        settings = [(n, Setting(workload, sizes.coa_m, n)) for n in sizes.coa_ns]
        points = sweep(workload, settings, "approximate", NAMES, _limits(sizes))
        title = f"effect of the domain size n, m = {sizes.coa_m}"
        figures.append(Figure(f"COA {2 + i}", title, "coa-2-5", "n", ERROR, tuple(points)))
    return figures


def _queries(sizes: Sizes) -> list[Figure]:
    figures = []
    for i, workload in enumerate(ALL):
        settings = [(m, Setting(workload, m, sizes.coa_n)) for m in sizes.coa_ms]
        points = sweep(workload, settings, "approximate", NAMES, _limits(sizes))
        title = f"effect of the number of queries m, n = {sizes.coa_n}"
        figures.append(Figure(f"COA {6 + i}", title, "coa-6-9", "m", ERROR, tuple(points)))
    return figures


def _base(sizes: Sizes) -> Figure:
    settings = [(share, Setting("WRelated", sizes.square, sizes.square, share)) for share in sizes.shares]
    points = sweep("WRelated", settings, "approximate", NAMES, _limits(sizes))
    title = f"effect of s, m = n = {sizes.square}"
    return Figure("COA 10", title, "coa-10", "s / min(m, n)", ERROR, tuple(points), log_x=False)


def _times(sizes: Sizes) -> list[Figure]:
    def figure(number: int, axis: str, held: str, settings: dict[str, list[tuple[float, Setting]]]) -> Figure:
        points: list[Point] = []
        for workload, varied in settings.items():
            points += sweep(workload, varied, "approximate", SEARCHED, _limits(sizes), "seconds")
        return Figure(f"COA {number}", f"running time, {held}", f"coa-{number}", axis, SECONDS, tuple(points))

    def by_n(m: int) -> dict[str, list[tuple[float, Setting]]]:
        return {workload: [(n, Setting(workload, m, n)) for n in sizes.coa_ns] for workload in ALL}

    by_m: dict[str, list[tuple[float, Setting]]] = {
        workload: [(m, Setting(workload, m, sizes.time_n)) for m in sizes.coa_ms] for workload in ALL
    }
    return [
        figure(11, "m", f"n = {sizes.time_n}", by_m),
        figure(12, "n", f"m = {sizes.coa_m}", by_n(sizes.coa_m)),
        figure(13, "n", f"m = {sizes.time_m}", by_n(sizes.time_m)),
    ]
