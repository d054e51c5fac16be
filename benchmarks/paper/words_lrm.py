"""What LRM's Section 6 says of its figures, judged."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.paper.curves import Claim, Curves, Judged, count, extent, least, over, spread
from benchmarks.paper.figures import BOUND, LEMMA3, LEMMA4, TACIT
from benchmarks.paper.lrm import AMM, HM, LM, LRM, NOISE, NOR, WM

OTHERS = (LM, WM, HM)
DEFAULT_EPSILON = "LRM, ε = 0.1"
COMPARED = ("LRM 4", "LRM 5", "LRM 6", "LRM 6 low rank", "LRM 7", "LRM 8", "LRM 9")
TIME_AXES = {"WDiscrete": (100, 220), "WRange": (140, 300), "WRelated": (40, 80)}
"""First and last label of the time axes of Figure 2, in seconds: the only axes of the paper that are legible here."""


def gamma_error(c: Curves) -> Judged:
    spreads = {w: spread(c.curve((f, w), DEFAULT_EPSILON)) for f, w in c.panels(["LRM 2"])}
    noise = {w: spread(c.curve((f, w), NOISE)) for f, w in c.panels(["LRM 2"])}
    text = ", ".join(f"{w} {s:.3g} (noise alone {noise[w]:.3g})" for w, s in spreads.items())
    return count(sum(s <= 2 for s in spreads.values()), len(spreads)), f"largest over smallest error at ε = 0.1: {text}"


def gamma_time(c: Curves) -> Judged:
    """Much faster is at least half of what the paper's own axis has room for."""
    gains = {where[1]: 1 / c.curve(where, LRM).growth for where in c.panels(["LRM 2 time"])}
    text = ", ".join(f"{w} {g:.3g}× (its axis: {_axis(w):.2g}×)" for w, g in gains.items())
    true = sum(g - 1 >= (_axis(w) - 1) / 2 for w, g in gains.items())
    return count(true, len(gains)), f"smallest γ over largest γ, in time: {text}"


def gamma_magnitude(c: Curves) -> Judged:
    """The labels of the time axis enclose the curve, so their ratio is the most that the paper can have gained."""
    ratios = {where[1]: spread(c.curve(where, LRM)) / _axis(where[1]) for where in c.panels(["LRM 2 time"])}
    text = ", ".join(f"{w} {r:.3g}" for w, r in ratios.items())
    return count(sum(r <= 1.5 for r in ratios.values()), len(ratios)), f"our spread of times over the axis's: {text}"


def _axis(workload: str) -> float:
    low, high = TIME_AXES[workload]
    return high / low


def rank_low(c: Curves) -> Judged:
    worse = {}
    for where in c.panels(["LRM 3"]):
        errors = c.curve(where, DEFAULT_EPSILON)
        worse[where[1]] = errors[errors.first] / errors[1.2]
    text = ", ".join(f"{w} {g:.3g}×" for w, g in worse.items())
    return count(sum(g >= 10 for g in worse.values()), len(worse)), f"r = 0.8 over r = 1.2·rank at ε = 0.1: {text}"


def rank_stable(c: Curves) -> Judged:
    spreads = {}
    for where in c.panels(["LRM 3"]):
        curve = c.curve(where, DEFAULT_EPSILON)
        values = [y for x, y in curve.items() if x >= 1.2]
        spreads[where[1]] = max(values, default=curve[1.2]) / least(values)
    text = ", ".join(f"{w} {s:.3g}" for w, s in spreads.items())
    return count(sum(s <= 1.5 for s in spreads.values()), len(spreads)), f"largest over smallest from 1.2 on: {text}"


def rank_time(c: Curves) -> Judged:
    """A power of r up to the cube is what the paper's own complexity analysis allows for, and is not exponential."""
    powers, text = [], []
    for where in c.panels(["LRM 3 time"]):
        times = c.curve(where, LRM)
        growth = times[times.last] / times[1.2]
        powers.append(math.log(growth) / math.log(times.last / 1.2))
        text.append(f"{where[1]} {growth:.3g}×, a power of {powers[-1]:.2g}")
    return count(sum(p > 3 for p in powers), len(powers)), f"largest r over 1.2·rank, in time: {'; '.join(text)}"


def amm_worst(c: Curves) -> Judged:
    factors = []
    for where in c.panels(["LRM 4", "LRM 5", "LRM 6"]):
        worst = c.curve(where, AMM)
        factors += [
            y / max(c.curve(where, s)[x] for s in (*OTHERS, LRM) if x in c.curve(where, s)) for x, y in worst.items()
        ]
    true = sum(f >= 1 for f in factors)
    text = f"AMM is the worst in {true} of {len(factors)} settings; over the worst of the rest: {extent(factors)}"
    return count(true, len(factors)), text


def amm_never(c: Curves) -> Judged:
    ratios = [r for where in c.panels(["LRM 4", "LRM 5", "LRM 6"]) for r in c.ratios(where, AMM, LM).values()]
    text = f"AMM over LM {extent(ratios)}; below 1 in {sum(r < 1 for r in ratios)} of {len(ratios)} settings"
    return count(sum(r >= 1 for r in ratios), len(ratios)), text


def discrete(c: Curves) -> Judged:
    where = ("LRM 4", "WDiscrete")
    lrm, lm = c.curve(where, LRM), c.curve(where, LM)
    first, last = lrm.first, lrm.last
    rest = c.best(where, OTHERS)
    small = lm[first] <= min(lrm[first], rest[first]) * 1.001
    flat = lrm[last] / lrm[max((x for x in lrm if x <= last / 4), default=math.nan)]
    text = (
        f"LM over LRM {lm[first] / lrm[first]:.3g} at n = {first:g}, {lm[last] / lrm[last]:.3g} at n = {last:g}; "
        f"over the last fourfold n LRM grows {flat:.3g}×, LM 4×"
    )
    return count(small + (flat < 1.1) + (lm[last] > lrm[last]), 3), text


def ranges(c: Curves) -> Judged:
    where = ("LRM 5", "WRange")
    wm, hm = c.ratios(where, LM, WM), c.ratios(where, LM, HM)
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    crossing = [min((x for x in curve if curve[x] > 1), default=math.nan) for curve in (wm, hm)]
    text = (
        f"WM is below LM from n = {crossing[0]:g}, HM from n = {crossing[1]:g} (LM over WM {wm[wm.last]:.3g}, over HM "
        f"{hm[hm.last]:.3g} at n = {wm.last:g}); best of LM, WM, HM over LRM: {extent(lead.values())}"
    )
    return count((crossing[0] <= 512) + (crossing[1] <= 512) + (least(lead.values()) > 1), 3), text


def related(c: Curves) -> Judged:
    parts, checks = [], []
    for where in (("LRM 6", "WRelated"), ("LRM 6 low rank", "WRelated, s = 0.1·min")):
        lead = over(c.best(where, OTHERS), c.curve(where, LRM))
        most = over(c.best(where, OTHERS), c.curve(where, BOUND))
        trees = over(c.best(where, (WM, HM)), c.curve(where, LRM))
        ahead = sum(g > 1 for g in lead.values())
        checks += [ahead == len(lead), lead[lead.last] >= 100]
        parts.append(
            f"{where[1]}: LRM leads in {ahead} of {len(lead)} settings, by {lead[lead.last]:.3g}× at n = "
            f"{lead.last:g} ({trees[lead.last]:.3g}× over WM and HM), where no factorisation can lead by more than "
            f"{most[lead.last]:.3g}×; its worst {least(lead.values()):.3g}×"
        )
    return count(sum(checks), len(checks)), "; ".join(parts)


def ranges_by_m(c: Curves) -> Judged:
    where = ("LRM 7", "WRange")
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    at_end = {s: c.curve(where, s)[lead.last] for s in (*OTHERS, LRM)}
    order = sorted(at_end, key=lambda s: at_end[s])
    text = (
        f"LRM leads by {lead[lead.first]:.3g}× at m = {lead.first:g} and {lead[lead.last]:.3g}× at m = {lead.last:g}; "
        f"the order there: {', '.join(f'{s} {at_end[s]:.4g}' for s in order)}"
    )
    return count((lead[lead.first] > 1) + (lead[lead.last] < lead[lead.first]) + (order[0] == WM), 3), text


def related_by_m(c: Curves) -> Judged:
    where = ("LRM 8", "WRelated")
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    most = over(c.best(where, OTHERS), c.curve(where, BOUND))
    true = sum(g >= 3 for g in lead.values())
    text = (
        f"LRM's lead {', '.join(f'{g:.3g}× at m = {x:g}' for x, g in lead.items())}; "
        f"no factorisation can lead by more than {extent(most.values())}"
    )
    return count(true, len(lead)), text


def base_lead(c: Curves) -> Judged:
    where = ("LRM 9", "WRelated")
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    most = over(c.best(where, OTHERS), c.curve(where, BOUND))
    trees = c.ratios(where, WM, LRM)
    text = (
        f"lead {lead[lead.first]:.3g}× at s = {lead.first:g}·min ({trees[lead.first]:.3g}× over WM); "
        f"no factorisation can lead by more than {most[lead.first]:.3g}×"
    )
    return count(int(lead[lead.first] >= 100) + int(lead[lead.first] > 1), 2), text


def base_growth(c: Curves) -> Judged:
    where = ("LRM 9", "WRelated")
    lead, lrm = c.ratios(where, LM, LRM), c.curve(where, LRM)
    growth = lead.growth * lrm.growth  # LM's, over the s at which LRM was measured too
    text = f"from s = {lead.first:g} to {lead.last:g}·min: LM grows {growth:.3g}×, LRM {lrm.growth:.3g}×"
    return count((growth < 2) + (lrm.growth > 3 * growth), 2), text


def ours(c: Curves) -> Judged:
    gains = []
    for where in c.panels(COMPARED):
        named = c.best(where, (LM, NOR, WM, HM, LRM, AMM))
        gains += list(over(named, c.curve(where, TACIT)).values())
    text = f"best named strategy over tacit, over all {len(gains)} settings: {extent(gains)}"
    return "agrees" if least(gains) >= 1 - 1e-6 else "differs", text


def lemma3(c: Curves) -> Judged:
    ratios = _over_ours(c, LEMMA3)
    true = sum(r >= 1 - 1e-9 for r in ratios)
    return "agrees" if true == len(ratios) else "differs", _share(true, ratios)


def lemma4(c: Curves) -> Judged:
    """One setting is enough: what is above an error that was reached bounds nothing from below."""
    ratios = _over_ours(c, LEMMA4)
    true = sum(r > 1 + 1e-9 for r in ratios)
    crossed = sum(r > 1 + 1e-9 for where in c.panels(COMPARED) for r in c.ratios(where, LEMMA4, LEMMA3).values())
    return "agrees" if true else "differs", f"{_share(true, ratios)}; above Lemma 3, the upper bound, in {crossed}"


def _over_ours(c: Curves, series: str) -> list[float]:
    return [r for where in c.panels(COMPARED) for r in c.ratios(where, series, TACIT).values()]


def _share(true: int, ratios: Sequence[float]) -> str:
    return f"above in {true} of {len(ratios)} settings; over tacit's error: {extent(ratios)}"


CLAIMS: tuple[Claim, ...] = (
    (("LRM 2",), "LRM's error is not sensitive to γ from 10⁻⁴ to 10", gamma_error),
    (("LRM 2 time",), "LRM executes much faster with larger γ", gamma_time),
    (("LRM 2 time",), "(its axes) from γ = 10⁻⁴ to 10 the time changes by at most 2.2×, 2.1× and 2×", gamma_magnitude),
    (("LRM 3",), "r < rank(W) is far worse, up to two orders of magnitude", rank_low),
    (("LRM 3",), "the error is stable beyond r = 1.2·rank(W)", rank_stable),
    (("LRM 3 time",), "the amount of computation increases exponentially with r", rank_time),
    (("LRM 4", "LRM 5", "LRM 6"), "AMM is much worse than the others in all experiments", amm_worst),
    (("LRM 4", "LRM 5", "LRM 6"), "(Section 2.2) AMM is never below noise on data", amm_never),
    (("LRM 4",), "LM is best at small n; LRM's error stops growing with n, the others' is linear", discrete),
    (("LRM 5",), "WM and HM are below LM from n = 512 on; LRM is significantly better than all", ranges),
    (("LRM 6", "LRM 6 low rank"), "LRM is best at every n, by over two orders of magnitude at n = 32·m", related),
    (("LRM 7",), "LRM leads when m ≪ n, all converge as m grows, WM is best at m = n = 1024", ranges_by_m),
    (("LRM 8",), "LRM is dramatically better at every m", related_by_m),
    (("LRM 9",), "LRM leads by over two orders of magnitude at low rank", base_lead),
    (("LRM 9",), "the others remain stable while LRM's error grows rapidly with s", base_growth),
    (("LRM 4", "LRM 9"), "(ours) tacit is never above a named strategy", ours),
    (("LRM 4", "LRM 9"), "(ours) Lemma 3 is above tacit's error, as proven", lemma3),
    (
        ("LRM 4", "LRM 9"),
        "(ours) Lemma 4, with 1 for its constant, certifies nothing: it is above an error reached",
        lemma4,
    ),
)
