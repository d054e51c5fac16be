"""Figures 2 to 9 of "Low-Rank Mechanism: Optimizing Batch Queries under Differential Privacy" (VLDB 2012)."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.paper.figures import ERROR, SECONDS, Figure, Names, Point, sweep
from benchmarks.paper.sizes import Sizes
from benchmarks.paper.tasks import Relaxed
from benchmarks.paper.workloads import Setting

LM, NOR, WM, HM, AMM, LRM = "LM (noise on data)", "noise on results", "WM", "HM", "AMM (ESM)", "LRM"
NAMES: Names = {
    LM: ("identity", ()),
    NOR: ("results", ()),
    WM: ("wavelet", ()),
    HM: ("hierarchical", ()),
    LRM: ("lrm", ()),
}
NOISE = "noise alone, ε = 0.1"
ALL = ("WDiscrete", "WRange", "WRelated")
LOW = 0.1
"""A second, low rank for WRelated: at the default s = 0.5·min(m, n) its workload is hardly of low rank."""


def figures(sizes: Sizes, folder: str | None) -> list[Figure]:
    return [*_gamma(sizes, folder), *_rank(sizes, folder), *_domain(sizes), *_queries(sizes), _base(sizes)]


def _tuned(variants: Sequence[tuple[float, Relaxed]], panel: str) -> tuple[list[Point], list[Point]]:
    errors = [
        Point(panel, x, f"LRM, ε = {epsilon}", f"error {epsilon}", task)
        for epsilon in ("1", "0.1", "0.01")
        for x, task in variants
    ]
    errors += [Point(panel, x, NOISE, "noise", task) for x, task in variants]
    errors += [Point(panel, x, "bias² alone", "bias", task) for x, task in variants]
    return errors, [Point(panel, x, LRM, "seconds", task) for x, task in variants]


def _gamma(sizes: Sizes, folder: str | None) -> list[Figure]:
    errors, times = [], []
    for workload in ALL:
        setting = Setting(workload, *sizes.tuning)
        tasks = [
            (g, Relaxed(setting, gamma=sizes.gamma(setting, g), folder=folder, limit=sizes.named_limit))
            for g in sizes.gammas
        ]
        more_errors, more_times = _tuned(tasks, workload)
        errors += more_errors
        times += more_times
    return [
        Figure("LRM 2", "effect of the relaxation γ", "lrm-2", "γ", ERROR, tuple(errors)),
        Figure("LRM 2 time", "effect of the relaxation γ", "lrm-2", "γ", SECONDS, tuple(times)),
    ]


def _rank(sizes: Sizes, folder: str | None) -> list[Figure]:
    errors, times = [], []
    for workload in ALL:
        setting = Setting(workload, *sizes.tuning)
        gamma = sizes.gamma(setting)
        tasks = [(r, Relaxed(setting, gamma, ratio=r, folder=folder, limit=sizes.named_limit)) for r in sizes.ratios]
        more_errors, more_times = _tuned(tasks, workload)
        errors += more_errors
        times += more_times
    axis = "r / rank(W)"
    return [
        Figure("LRM 3", "effect of r", "lrm-3", axis, ERROR, tuple(errors), log_x=False),
        Figure("LRM 3 time", "effect of r", "lrm-3", axis, SECONDS, tuple(times), log_x=False),
    ]


def _domain(sizes: Sizes) -> list[Figure]:
    """Figures 4 to 6. Without a residual the error does not depend on the data: one panel stands for all three."""

    def points(workload: str, share: float, panel: str) -> Sequence[Point]:
        settings = [(n, Setting(workload, sizes.lrm_m, n, share)) for n in sizes.lrm_ns]
        return sweep(panel, settings, "pure", {**NAMES, AMM: ("esm", ())}, sizes)

    title = f"effect of the domain size n, m = {sizes.lrm_m}"
    return [
        *(
            Figure(f"LRM {4 + i}", title, "lrm-4-6", "n", ERROR, tuple(points(workload, 0.5, workload)))
            for i, workload in enumerate(ALL)
        ),
        Figure("LRM 6 low rank", title, "lrm-4-6", "n", ERROR, tuple(points("WRelated", LOW, "WRelated, s = 0.1·min"))),
    ]


def _queries(sizes: Sizes) -> list[Figure]:
    def points(workload: str, share: float, panel: str) -> Sequence[Point]:
        settings = [(m, Setting(workload, m, sizes.lrm_n, share)) for m in sizes.lrm_ms]
        return sweep(panel, settings, "pure", NAMES, sizes)

    title = f"effect of the number of queries m, n = {sizes.lrm_n}"
    return [
        Figure("LRM 7", title, "lrm-7-8", "m", ERROR, tuple(points("WRange", 0.5, "WRange"))),
        Figure("LRM 8", title, "lrm-7-8", "m", ERROR, tuple(points("WRelated", 0.5, "WRelated"))),
    ]


def _base(sizes: Sizes) -> Figure:
    settings = [(share, Setting("WRelated", sizes.lrm_m, sizes.lrm_n, share)) for share in sizes.shares]
    points = sweep("WRelated", settings, "pure", NAMES, sizes)
    title = f"effect of s, m = {sizes.lrm_m}, n = {sizes.lrm_n}"
    return Figure("LRM 9", title, "lrm-9", "s / min(m, n)", ERROR, tuple(points), log_x=False)
