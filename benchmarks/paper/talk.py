"""The plots of the talk "The Matrix Mechanism: Optimizing Linear Counting Queries Under Differential Privacy" (2011).

The talk gives its figures no numbers; they are counted here in its order. Each is drawn for ε = 0.1, as the talk has
it, and δ = 10⁻⁴ where the talk says (ε, δ) and names no value.
"""

from __future__ import annotations

from tacit.engine.strategy import Privacy

from benchmarks.paper.figures import BOUND, ERROR, TACIT, Figure, Names, Point, sweep
from benchmarks.paper.sizes import Sizes
from benchmarks.paper.talk_tasks import LEAST_SQUARES, NONNEGATIVE, RANGED, Plain, Ranges, Weighted, widths
from benchmarks.paper.workloads import Setting, all_ranges, cube

COUNTS, TREE, HAAR, EIGEN, PLAIN = "noisy counts", "hierarchical", "wavelet", "eigen-queries", "Laplace on all ranges"
PURE: Names = {COUNTS: ("identity", ()), TREE: ("hierarchical", ()), HAAR: ("wavelet", ())}
APPROXIMATE: Names = {**PURE, EIGEN: ("adaptive", ())}
WEIGHTS = (1.0, 10.0, 100.0)
SINGLE, WIDER = "single cells (weighted)", "wider ranges"
STRATEGIES = {COUNTS: "identity", TREE: "hierarchical", HAAR: "wavelet", TACIT: None}


def figures(sizes: Sizes, folder: str | None) -> list[Figure]:
    return [
        *_ranges(sizes, folder),
        _single(sizes, folder),
        _subsets(sizes),
        _cubes(sizes),
        _weighted(sizes),
        _inference(sizes, folder),
    ]


def _ranges(sizes: Sizes, folder: str | None) -> list[Figure]:
    """The largest n is searched once, by the task that shows its single widths too."""
    smaller, n = sizes.ranges[:-1], sizes.ranges[-1]
    pure = [*sweep("pure ε", [(k, all_ranges(k)) for k in smaller], "pure", PURE, sizes)]
    for label, strategy in STRATEGIES.items():
        pure.append(Point("pure ε", n, label, "error", Ranges(n, strategy, folder, sizes.own_limit)))
    pure.append(Point("pure ε", n, BOUND, "lower bound", Ranges(n, None, folder, sizes.own_limit)))
    pure += [Point("pure ε", k, PLAIN, "error", Plain(k)) for k in sizes.ranges]
    settings = [(k, all_ranges(k)) for k in sizes.ranges]
    approximate = sweep("(ε, δ)", settings, "approximate", APPROXIMATE, sizes)
    title = "all ranges over n cells"
    return [
        Figure("Talk 1", title, "talk-1-3", "n", ERROR, tuple(pure)),
        Figure("Talk 3", title, "talk-1-3", "n", ERROR, tuple(approximate)),
    ]


def _single(sizes: Sizes, folder: str | None) -> Figure:
    n = sizes.ranges[-1]
    points = [
        Point("pure ε", w, label, f"width {w}", Ranges(n, strategy, folder, sizes.own_limit))
        for label, strategy in STRATEGIES.items()
        for w in widths(n)
    ]
    return Figure("Talk 2", f"ranges of one width, n = {n}", "talk-1-3", "width", ERROR, tuple(points))


def _subsets(sizes: Sizes) -> Figure:
    settings = [(m, Setting("WRange", m, sizes.subset_n)) for m in sizes.subsets]
    points = sweep("(ε, δ)", settings, "approximate", APPROXIMATE, sizes)
    title = f"random subsets of the ranges, n = {sizes.subset_n}"
    return Figure("Talk 4", title, "talk-4-6", "queries", ERROR, tuple(points))


def _cubes(sizes: Sizes) -> Figure:
    settings = [(n, cube(n)) for n in sizes.cubes]
    points = (
        *sweep("cube, pure ε", settings, "pure", PURE, sizes),
        *sweep("cube, (ε, δ)", settings, "approximate", APPROXIMATE, sizes),
    )
    return Figure("Talk 5", "data cubes", "talk-4-6", "n", ERROR, points)


def _weighted(sizes: Sizes) -> Figure:
    privacies: tuple[Privacy, ...] = ("pure", "approximate")
    points = [
        Point(f"weights, {privacy}", weight, label, measure, Weighted(sizes.weighted_n, privacy, weight))
        for privacy in privacies
        for weight in WEIGHTS
        for label, measure in ((SINGLE, "weighted"), (WIDER, "others"))
    ]
    title = f"all ranges over {sizes.weighted_n} cells, the single cells weighted"
    return Figure("Talk 6", title, "talk-4-6", "weight", ERROR, tuple(points))


def _inference(sizes: Sizes, folder: str | None) -> Figure:
    """A panel per data set, a place on the axis per strategy."""
    n = sizes.ranges[-1]
    points = [
        Point(data, place, label, measure, Ranges(n, strategy, folder, sizes.own_limit))
        for data in RANGED
        for place, strategy in enumerate(STRATEGIES.values(), start=1)
        for label, measure in ((LEAST_SQUARES, "error"), (NONNEGATIVE, f"{NONNEGATIVE} {data}"))
    ]
    names = ", ".join(f"{place} {label}" for place, label in enumerate(STRATEGIES, start=1))
    title = f"all ranges with non-negative least squares, n = {n}"
    return Figure("Talk 7", title, "talk-7", names, "squared error per query", tuple(points), log_x=False)
