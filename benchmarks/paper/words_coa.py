"""What COA's Section 5 says of its figures, judged."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.paper.coa import AM, COA, ESM, GM, HM, LRM, NOR, WM
from benchmarks.paper.curves import Claim, Curves, Judged, count, extent, over, spread
from benchmarks.paper.figures import BOUND, TACIT, TIMED_GAP

BY_N = ("COA 2", "COA 3", "COA 4", "COA 5")
BY_M = ("COA 6", "COA 7", "COA 8", "COA 9")


def monotone(c: Curves) -> Judged:
    text, checks = [], []
    for where in c.panels(["COA 1"]):
        objective = list(c.curve(where, "objective").values())
        gradient = list(c.curve(("COA 1 optimality", where[1]), "‖G‖, as the paper plots").values())
        falls = [all(b <= a * (1 + 1e-9) for a, b in pairwise(v)) for v in (objective, gradient)]
        checks += falls
        if not falls[1]:
            text.append(f"‖G‖ rises somewhere on {where[1]}")
    objectives = sum(checks[::2])
    return count(sum(checks), len(checks)), "; ".join(
        [f"the objective falls at every step on {objectives} of {len(checks) // 2} workloads", *text]
    )


def stable(c: Curves) -> Judged:
    text, checks = [], []
    for where in c.panels(["COA 1"]):
        objective, bound = c.curve(where, "objective"), c.curve(where, "lower bound")
        last = max(objective)
        left = objective[10] / objective[last] - 1
        checks.append(left <= 0.02)
        text.append(f"{where[1]} {left:.1%} (still {objective[10] / bound[10]:.2f}× the bound)")
    return count(sum(checks), len(checks)), f"falls after step 10, to step {last:g}: " + ", ".join(text)


def alike(c: Curves, figures: tuple[str, ...]) -> Judged:
    text, checks = [], []
    for where in c.panels(figures):
        ratios = list(c.ratios(where, COA, LRM).values())
        checks += [1 / 1.25 <= r <= 1.25 for r in ratios]
        text.append(f"{where[1]} {extent(ratios)}")
    return count(sum(checks), len(checks)), "COA over LRM: " + ", ".join(text)


def leaders(c: Curves, figures: tuple[str, ...]) -> Judged:
    true = {LRM: 0, COA: 0}
    total = 0
    for where in c.panels(figures):
        rest = c.best(where, (GM, NOR, WM, HM, ESM, AM))
        total += len(rest)
        for name in true:
            curve = c.curve(where, name)
            true[name] += sum(curve[x] <= rest[x] * 1.001 for x in curve)
    text = f"ahead of all the others: LRM in {true[LRM]} of {total} settings, COA in {true[COA]}"
    return count(sum(true.values()), 2 * total), text


def over_gm(c: Curves) -> Judged:
    text, checks = [], []
    for where in c.panels(BY_N):
        gain, most = c.ratios(where, GM, LRM), c.ratios(where, GM, BOUND)
        last = max(gain)
        checks.append(gain[last] >= 100)
        text.append(f"{where[1]} {gain[last]:.3g}× (at most {most[last]:.3g}× is possible)")
    return count(sum(checks), len(checks)), f"GM over LRM at n = {last:g}: " + ", ".join(text)


def trees(c: Curves) -> Judged:
    where = ("COA 4", "WRange")
    pair, best = c.ratios(where, WM, HM), c.ratios(where, WM, LRM)
    text = f"WM over HM {extent(pair.values())}; WM over LRM {extent(best.values())}"
    return count((min(pair.values()) > 1 / 1.5 and max(pair.values()) < 1.5) + (max(best.values()) < 3), 2), text


def eigen(c: Curves) -> Judged:
    pair, worse = [], []
    for where in c.panels(BY_N):
        pair += list(c.ratios(where, ESM, AM).values())
        worse += list(over(c.best(where, (ESM, AM)), c.best(where, (COA, LRM))).values())
    text = f"ESM over AM {extent(pair)}; the better of them over the better of COA and LRM {extent(worse)}"
    return count((max(pair) < 2 and min(pair) > 0.5) + (min(worse) >= 0.999), 2), text


def over_naive(c: Curves) -> Judged:
    text, checks = [], []
    for where in c.panels(BY_M):
        data, results = c.ratios(where, WM, GM), c.ratios(where, WM, NOR)
        better = where[1] != "WMarginal"
        checks += [(r < 1) == better for r in data.values()]
        text.append(f"{where[1]} {extent(data.values())} of noise on data, {extent(results.values())} on results")
    return count(sum(checks), len(checks)), "WM: " + "; ".join(text)


def base(c: Curves) -> Judged:
    where = ("COA 10", "WRelated")
    rest = c.best(where, (GM, NOR, WM, HM, ESM, AM))
    naive = over(c.best(where, (GM, NOR, WM, HM)), c.curve(where, LRM))
    lead, most = over(rest, c.curve(where, LRM)), over(rest, c.curve(where, BOUND))
    text = (
        f"the best of all the others over LRM {extent(lead.values())} (at most {extent(most.values())} is possible); "
        f"without ESM and AM {extent(naive.values())}"
    )
    return count((min(lead.values()) >= 10) + (naive[min(naive)] > naive[max(naive)]), 2), text


def flat(c: Curves) -> Judged:
    text, checks = [], []
    for where in c.panels(["COA 11"]):
        coa, lrm = c.curve(where, COA), c.curve(where, LRM)
        first, last = min(coa), max(coa)
        checks += [spread(coa) < 3, lrm[last] > 2 * lrm[first]]
        text.append(f"{where[1]} COA {coa[last] / coa[first]:.3g}×, LRM {lrm[last] / lrm[first]:.3g}×")
    return count(sum(checks), len(checks)), f"time from m = {first:g} to {last:g}: " + ", ".join(text)


def faster(c: Curves) -> Judged:
    ratios = [r for where in c.panels(["COA 12", "COA 13"]) for r in c.ratios(where, LRM, COA).values()]
    text = f"COA is the faster in {sum(r > 1 for r in ratios)} of {len(ratios)} settings; LRM over COA {extent(ratios)}"
    return count(sum(r > 1 for r in ratios), len(ratios)), text


def ours(c: Curves) -> Judged:
    gains, gaps = [], []
    for where in c.panels((*BY_N, *BY_M, "COA 10")):
        named = c.best(where, (GM, NOR, WM, HM, ESM, AM, LRM, COA))
        gains += list(over(named, c.curve(where, TACIT)).values())
        gaps += [r - 1 for r in c.ratios(where, TACIT, BOUND).values()]
    text = (
        f"best named strategy over tacit, over all {len(gains)} settings: {min(gains):.5f} to {max(gains):.3g}; "
        f"largest gap to the proven bound {max(gaps):.3%}"
    )
    return "agrees" if min(gains) >= 1 - max(gaps) else "differs", text


def our_time(c: Curves) -> Judged:
    """A search that did not reach the gap has no time, and counts as not the faster."""
    panels = c.panels(["COA 11", "COA 12", "COA 13"])
    ratios = [r for where in panels for r in c.ratios(where, COA, TACIT).values()]
    true, total = sum(r > 1 for r in ratios), sum(len(c.curve(where, COA)) for where in panels)
    text = (
        f"the faster in {true} of {total} settings, {total - len(ratios)} not reached; COA over tacit {extent(ratios)}"
    )
    return count(true, total), text


CLAIMS: tuple[Claim, ...] = (
    (("COA 1", "COA 1 optimality"), "objective and ‖G‖ fall monotonically", monotone),
    (("COA 1",), "the objective is stable after the tenth step", stable),
    (BY_N, "COA is comparable to LRM", lambda c: alike(c, BY_N)),
    (BY_N, "COA and LRM are the best in all settings", lambda c: leaders(c, BY_N)),
    (BY_N, "they improve on GM by over two orders of magnitude at large n", over_gm),
    (("COA 4",), "WM and HM are alike on ranges, and comparable to COA and LRM", trees),
    (BY_N, "AM and ESM are alike, and worse than COA and LRM", eigen),
    (BY_M, "COA and LRM have similar errors", lambda c: alike(c, BY_M)),
    (BY_M, "COA and LRM outperform all the others", lambda c: leaders(c, BY_M)),
    (BY_M, "WM and HM improve on GM, but on WMarginal they are worse", over_naive),
    (("COA 10",), "COA and LRM lead by an order of magnitude at least, less as s grows", base),
    (("COA 11",), "COA's time does not depend on m, LRM's grows", flat),
    (("COA 12", "COA 13"), "COA is faster than LRM", faster),
    ((*BY_N, *BY_M, "COA 10"), "(ours) tacit is within its certificate of the best", ours),
    (("COA 11", "COA 12", "COA 13"), f"(ours) tacit proves a gap of {TIMED_GAP:.1%} before COA ends", our_time),
)
