"""What the matrix-mechanism talk says beside its plots, judged."""

from __future__ import annotations

import math

from benchmarks.paper.curves import Claim, Curves, Judged, count, extent, most
from benchmarks.paper.figures import BOUND, TACIT
from benchmarks.paper.talk import COUNTS, EIGEN, HAAR, PLAIN, SINGLE, STRATEGIES, TREE, WIDER
from benchmarks.paper.talk_tasks import LEAST_SQUARES, NONNEGATIVE

PURE = ("Talk 1", "pure ε")
APPROXIMATE = ("Talk 3", "(ε, δ)")
SUBSETS = ("Talk 4", "(ε, δ)")
CUBES = ("Talk 5", "cube, (ε, δ)")


def orders(c: Curves) -> Judged:
    """log³ n from n to 4n, with one factor of 1.1 for lower terms."""
    text, checks = [], []
    for series in (COUNTS, TREE, HAAR, PLAIN):
        curve = c.curve(PURE, series)
        last = curve.last
        before = max((x for x in curve if x <= last / 4), default=curve.first)
        growth = curve[last] / curve[before]
        allowed = {COUNTS: last / before, PLAIN: (last / before) ** 4}.get(
            series, (math.log(2 * last) / math.log(2 * before)) ** 3
        )
        checks.append(growth <= 1.1 * allowed)
        text.append(f"{series} {growth:.3g}× (its order: {allowed:.3g}×)")
    return count(sum(checks), len(checks)), f"from n = {before:g} to {last:g}: " + ", ".join(text)


def trees_win(c: Curves) -> Judged:
    tree, haar = c.ratios(PURE, COUNTS, TREE), c.ratios(PURE, COUNTS, HAAR)
    last = tree.last
    text = f"noisy counts over hierarchical {tree[last]:.3g}, over wavelet {haar[last]:.3g} at n = {last:g}"
    return count((tree[last] > 1) + (haar[last] > 1), 2), text


def wide(c: Curves) -> Judged:
    (where,) = c.panels(["Talk 2"])
    counts = c.curve(where, COUNTS)
    curves = {series: c.ratios(where, COUNTS, series) for series in (TREE, HAAR, TACIT)}
    crossing = {s: min((x for x, r in curve.items() if r > 1), default=math.nan) for s, curve in curves.items()}
    text = ", ".join(f"{s} {crossing[s]:g} (at the widest {curve[curve.last]:.3g}×)" for s, curve in curves.items())
    linear = math.isclose(counts.growth, counts.last / counts.first, rel_tol=1e-6)
    ahead = sum(curve[curve.last] > 1 for curve in curves.values())
    return count(linear + ahead, 1 + len(curves)), f"widths from which it is ahead of noisy counts: {text}"


def close(c: Curves) -> Judged:
    """A factor of 2 is close."""
    pure = {s: c.ratios(PURE, s, TACIT) for s in (TREE, HAAR)}
    gauss = {s: c.ratios(APPROXIMATE, s, BOUND) for s in (TREE, HAAR)}
    text = ", ".join(f"{s} {extent(curve.values())}" for s, curve in pure.items())
    proven = ", ".join(f"{s} {extent(curve.values())}" for s, curve in gauss.items())
    ratios = [r for curve in (*pure.values(), *gauss.values()) for x, r in curve.items() if x == curve.last]
    return count(sum(1 < r <= 2 for r in ratios), len(ratios)), (
        f"over tacit's, pure ε: {text}; over the proven bound, (ε, δ): {proven}"
    )


def eigen(c: Curves) -> Judged:
    panels = (APPROXIMATE, SUBSETS, CUBES)
    ratios = [r for where in panels for r in c.ratios(where, EIGEN, BOUND).values()]
    ours = [r for where in panels for r in c.ratios(where, TACIT, BOUND).values()]
    text = f"over the proven bound in {len(ratios)} settings: {extent(ratios)}; tacit at most {most(ours):.6g}"
    return count(sum(r <= 1.3 for r in ratios), len(ratios)), text


def custom(c: Curves) -> Judged:
    text, checks = [], []
    for series in (TREE, HAAR):
        curve = c.ratios(SUBSETS, series, TACIT)
        checks += [curve.growth < 1, curve[curve.first] > 2]
        text.append(
            f"{series} {curve[curve.first]:.3g} at {curve.first:g} queries, {curve[curve.last]:.3g} at {curve.last:g}"
        )
    return count(sum(checks), len(checks)), "over tacit's: " + ", ".join(text)


def cubes(c: Curves) -> Judged:
    """Noisy counts are the cells of a cube, and the best there is under pure ε; trees and wavelets know one order."""
    text, trees = [], []
    for where in c.panels(["Talk 5"]):
        ratios = {s: c.ratios(where, s, TACIT) for s in (COUNTS, TREE, HAAR)}
        trees += [r for s in (TREE, HAAR) for r in ratios[s].values()]
        text.append(f"{where[1]}: " + ", ".join(f"{s} {extent(curve.values())}" for s, curve in ratios.items()))
    return count(sum(r > 1 for r in trees), len(trees)), "over tacit's: " + "; ".join(text)


def weights(c: Curves) -> Judged:
    text, checks = [], []
    for where in c.panels(["Talk 6"]):
        single, wider = c.curve(where, SINGLE), c.curve(where, WIDER)
        checks.append(single.growth < 1)
        text.append(f"{where[1]}: single cells {single.growth:.3g}×, wider ranges {wider.growth:.3g}×")
    return count(sum(checks), len(checks)), f"error at weight {single.last:g} over that at 1: " + "; ".join(text)


def nonnegative(c: Curves) -> Judged:
    text, checks = [], []
    for where in c.panels(["Talk 7"]):
        gain = c.ratios(where, LEAST_SQUARES, NONNEGATIVE)
        checks += [gain[place] > 1 for place in gain]
        shown = ", ".join(f"{name} {gain[place]:.3g}×" for place, name in enumerate(STRATEGIES, start=1))
        text.append(f"{where[1]}: {shown}")
    return count(sum(checks), len(checks)), "least squares over non-negative: " + "; ".join(text)


CLAIMS: tuple[Claim, ...] = (
    (("Talk 1",), "noisy counts err by O(n), trees and wavelets by O(log³ n), Laplace on all by O(n⁴)", orders),
    (("Talk 1",), "hierarchical and wavelet queries beat noisy counts on all ranges (n = 1024)", trees_win),
    (("Talk 2",), "noisy counts estimate large ranges badly", wide),
    (("Talk 1", "Talk 3"), "neither trees nor wavelets are optimal, but they are close", close),
    (("Talk 3", "Talk 4", "Talk 5"), "eigen-queries with the best weights are approximately optimal", eigen),
    (("Talk 4",), "one strategy does not fit all workloads: adapting it is essential", custom),
    (("Talk 5",), "the same for data cubes", cubes),
    (("Talk 6",), "rows can be scaled to control the error of each", weights),
    (("Talk 7",), "non-negativity significantly improves accuracy on sparse data", nonnegative),
)
