"""Figures 1 to 13 of COA, "Convex Optimization for Linear Query Processing under Approximate Differential Privacy"."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.paper.figures import BOUND, ERROR, SECONDS, Figure, Names, Point, sweep
from benchmarks.paper.sizes import Sizes
from benchmarks.paper.tasks import Parameters, Step
from benchmarks.paper.workloads import PAPERS, Setting

GM, NOR, WM, HM, ESM, AM = "GM (noise on data)", "noise on results", "WM", "HM", "ESM", "AM"
LRM = "LRM"
PROGRAM, PAPER = "COA (program)", "COA (paper)"
COAS: Names = {PROGRAM: ("coa", (("settings", "program"),)), PAPER: ("coa", (("settings", "paper"),))}
"""The settings that COA is drawn with, a curve each: the authors' program, ten steps, with which their figures seem to
be made, and Algorithms 1 to 3 as printed, to convergence."""
SEARCHED: Names = {ESM: ("esm", ()), LRM: ("lrm", ()), **COAS}
"""The strategies whose running time Figures 11 to 13 show."""
NAMES: Names = {
    GM: ("identity", ()),
    NOR: ("results", ()),
    WM: ("wavelet", ()),
    HM: ("hierarchical", ()),
    AM: ("adaptive", ()),
    **SEARCHED,
}


STEPPED: Mapping[str, tuple[Parameters, bool]] = {
    " (program)": ((("settings", "program"),), True),
    " (paper)": ((("settings", "paper"), ("homotopy", False)), False),
}
"""Suffix of the curves of Figure 1 → COA's keywords, and whether θ is a share of the mean of diag(WᵀW)."""
GRADIENT, FREE_GRADIENT = "‖G‖, as the paper plots", "‖G‖ off the diagonal"


def figures(sizes: Sizes) -> list[Figure]:
    return [*_convergence(sizes), *_domain(sizes), *_queries(sizes), _base(sizes), *_times(sizes)]


def _convergence(sizes: Sizes) -> list[Figure]:
    errors, gradients = [], []
    for workload in PAPERS:
        setting = Setting(workload, *sizes.convergence)
        for k in sizes.steps:
            for label, (parameters, relative) in STEPPED.items():
                task = Step(setting, k, parameters, relative)
                errors += [Point(workload, k, f"{name}{label}", name, task) for name in ("objective", "test error")]
                gradients += [
                    Point(workload, k, f"{GRADIENT}{label}", "gradient", task),
                    Point(workload, k, f"{FREE_GRADIENT}{label}", "free gradient", task),
                ]
            errors.append(Point(workload, k, BOUND, "lower bound", task))
    title = "convergence of COA's Algorithm 1, m = {}, n = {}".format(*sizes.convergence)
    axis = "iteration"
    return [
        Figure("COA 1", title, "coa-1", axis, ERROR, tuple(errors), log_x=False),
        Figure("COA 1 optimality", title, "coa-1", axis, "optimality", tuple(gradients), log_x=False),
    ]


def _domain(sizes: Sizes) -> list[Figure]:
    """Figures 2 to 5. The errors do not depend on the data: one panel stands for the paper's four."""
    figures = []
    for i, workload in enumerate(PAPERS):
        settings = [(n, Setting(workload, sizes.coa_m, n)) for n in sizes.coa_ns]
        points = sweep(workload, settings, "approximate", NAMES, sizes)
        title = f"effect of the domain size n, m = {sizes.coa_m}"
        figures.append(Figure(f"COA {2 + i}", title, "coa-2-5", "n", ERROR, tuple(points)))
    return figures


def _queries(sizes: Sizes) -> list[Figure]:
    figures = []
    for i, workload in enumerate(PAPERS):
        settings = [(m, Setting(workload, m, sizes.coa_n)) for m in sizes.coa_ms]
        points = sweep(workload, settings, "approximate", NAMES, sizes)
        title = f"effect of the number of queries m, n = {sizes.coa_n}"
        figures.append(Figure(f"COA {6 + i}", title, "coa-6-9", "m", ERROR, tuple(points)))
    return figures


def _base(sizes: Sizes) -> Figure:
    settings = [(share, Setting("WRelated", sizes.square, sizes.square, share)) for share in sizes.shares]
    points = sweep("WRelated", settings, "approximate", NAMES, sizes)
    title = f"effect of s, m = n = {sizes.square}"
    return Figure("COA 10", title, "coa-10", "s / min(m, n)", ERROR, tuple(points), log_x=False)


def _times(sizes: Sizes) -> list[Figure]:
    def figure(number: int, axis: str, held: str, settings: dict[str, list[tuple[float, Setting]]]) -> Figure:
        points: list[Point] = []
        for workload, varied in settings.items():
            points += sweep(workload, varied, "approximate", SEARCHED, sizes, "seconds")
        return Figure(f"COA {number}", f"running time, {held}", f"coa-{number}", axis, SECONDS, tuple(points))

    def by_n(m: int) -> dict[str, list[tuple[float, Setting]]]:
        return {workload: [(n, Setting(workload, m, n)) for n in sizes.time_ns] for workload in PAPERS}

    by_m: dict[str, list[tuple[float, Setting]]] = {
        workload: [(m, Setting(workload, m, sizes.time_n)) for m in sizes.coa_ms] for workload in PAPERS
    }
    return [
        figure(11, "m", f"n = {sizes.time_n}", by_m),
        figure(12, "n", f"m = {sizes.coa_m}", by_n(sizes.coa_m)),
        figure(13, "n", f"m = {sizes.time_m}", by_n(sizes.time_m)),
    ]
