"""What LRM's Section 6 says of its figures, judged."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.paper.curves import Claim, Curves, Judged, count, extent, over, spread
from benchmarks.paper.figures import BOUND, LEMMA3, LEMMA4, TACIT
from benchmarks.paper.lrm import AMM, HM, LM, LRM, NOISE, NOR, WM

OTHERS = (LM, WM, HM)
DEFAULT_EPSILON = "LRM, ε = 0.1"
COMPARED = ("LRM 4", "LRM 5", "LRM 6", "LRM 6 low rank", "LRM 7", "LRM 8", "LRM 9")


def gamma_error(c: Curves) -> Judged:
    spreads = {w: spread(c.curve((f, w), DEFAULT_EPSILON)) for f, w in c.panels(["LRM 2"])}
    noise = {w: spread(c.curve((f, w), NOISE)) for f, w in c.panels(["LRM 2"])}
    text = ", ".join(f"{w} {s:.3g} (noise alone {noise[w]:.3g})" for w, s in spreads.items())
    return count(sum(s <= 2 for s in spreads.values()), len(spreads)), f"largest over smallest error at ε = 0.1: {text}"


def gamma_time(c: Curves) -> Judged:
    gains = {}
    for where in c.panels(["LRM 2 time"]):
        times = c.curve(where, LRM)
        gains[where[1]] = times[min(times)] / times[max(times)]
    text = ", ".join(f"{w} {g:.3g}×" for w, g in gains.items())
    return count(sum(g >= 2 for g in gains.values()), len(gains)), f"smallest γ over largest γ, in time: {text}"


def rank_low(c: Curves) -> Judged:
    worse = {}
    for where in c.panels(["LRM 3"]):
        errors = c.curve(where, DEFAULT_EPSILON)
        worse[where[1]] = errors[min(errors)] / errors[1.2]
    text = ", ".join(f"{w} {g:.3g}×" for w, g in worse.items())
    return count(sum(g >= 10 for g in worse.values()), len(worse)), f"r = 0.8 over r = 1.2·rank at ε = 0.1: {text}"


def rank_stable(c: Curves) -> Judged:
    spreads = {}
    for where in c.panels(["LRM 3"]):
        spreads[where[1]] = spread({x: y for x, y in c.curve(where, DEFAULT_EPSILON).items() if x >= 1.2})
    text = ", ".join(f"{w} {s:.3g}" for w, s in spreads.items())
    return count(sum(s <= 1.5 for s in spreads.values()), len(spreads)), f"largest over smallest from 1.2 on: {text}"


def rank_time(c: Curves) -> Judged:
    growth = {}
    for where in c.panels(["LRM 3 time"]):
        times = c.curve(where, LRM)
        growth[where[1]] = times[max(times)] / times[1.2]
    text = ", ".join(f"{w} {g:.3g}×" for w, g in growth.items())
    return count(sum(g >= 2 for g in growth.values()), len(growth)), f"largest r over 1.2·rank, in time: {text}"


def amm_worst(c: Curves) -> Judged:
    factors = []
    for where in c.panels(["LRM 4", "LRM 5", "LRM 6"]):
        worst = c.curve(where, AMM)
        others = {x: max(c.curve(where, s)[x] for s in (*OTHERS, LRM) if x in c.curve(where, s)) for x in worst}
        factors += list(over(worst, others).values())
    true = sum(f >= 1 for f in factors)
    text = f"AMM is the worst in {true} of {len(factors)} settings; over the worst of the rest: {extent(factors)}"
    return count(true, len(factors)), text


def discrete(c: Curves) -> Judged:
    where = ("LRM 4", "WDiscrete")
    lrm, lm = c.curve(where, LRM), c.curve(where, LM)
    first, last = min(lrm), max(lrm)
    rest = c.best(where, OTHERS)
    small = lm[first] <= min(lrm[first], rest[first]) * 1.001
    flat = lrm[last] / lrm[max(x for x in lrm if x <= last / 4)]
    text = (
        f"LM over LRM {lm[first] / lrm[first]:.3g} at n = {first:g}, {lm[last] / lrm[last]:.3g} at n = {last:g}; "
        f"over the last fourfold n LRM grows {flat:.3g}×, LM 4×"
    )
    return count(small + (flat < 2) + (lm[last] > lrm[last]), 3), text


def ranges(c: Curves) -> Judged:
    where = ("LRM 5", "WRange")
    wm, hm = c.ratios(where, LM, WM), c.ratios(where, LM, HM)
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    last = max(wm)
    crossing = [x for x in wm if wm[x] > 1 and hm[x] > 1]
    text = (
        f"LM over WM {wm[last]:.3g}, over HM {hm[last]:.3g} at n = {last:g}, both above 1 from n = "
        f"{min(crossing, default=float('nan')):g}; best of LM, WM, HM over LRM: {extent(lead.values())}"
    )
    return count((wm[last] > 1) + (hm[last] > 1) + (min(lead.values()) > 1), 3), text


def related(c: Curves) -> Judged:
    parts, checks = [], []
    for where in (("LRM 6", "WRelated"), ("LRM 6 low rank", "WRelated, s = 0.1·min")):
        lead = over(c.best(where, OTHERS), c.curve(where, LRM))
        most = over(c.best(where, OTHERS), c.curve(where, BOUND))
        last = max(lead)
        ahead = sum(g > 1 for g in lead.values())
        checks += [ahead == len(lead), lead[last] >= 100]
        parts.append(
            f"{where[1]}: LRM leads in {ahead} of {len(lead)} settings, by {lead[last]:.3g}× at n = {last:g}, where "
            f"no factorisation can lead by more than {most[last]:.3g}×"
        )
    return count(sum(checks), len(checks)), "; ".join(parts)


def ranges_by_m(c: Curves) -> Judged:
    where = ("LRM 7", "WRange")
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    first, last = min(lead), max(lead)
    at_end = {s: c.curve(where, s)[last] for s in (*OTHERS, LRM)}
    winner = min(at_end, key=lambda s: at_end[s])
    text = (
        f"LRM leads by {lead[first]:.3g}× at m = {first:g} and {lead[last]:.3g}× at m = {last:g}; the best of LM, WM, "
        f"HM, LRM there is {winner}"
    )
    return count((lead[first] > 1) + (lead[last] < lead[first]) + (winner == WM), 3), text


def related_by_m(c: Curves) -> Judged:
    where = ("LRM 8", "WRelated")
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    most = over(c.best(where, OTHERS), c.curve(where, BOUND))
    true = sum(g >= 3 for g in lead.values())
    text = f"LRM's lead: {extent(lead.values())}; no factorisation can lead by more than {extent(most.values())}"
    return count(true, len(lead)), text


def base_lead(c: Curves) -> Judged:
    where = ("LRM 9", "WRelated")
    lead = over(c.best(where, OTHERS), c.curve(where, LRM))
    most = over(c.best(where, OTHERS), c.curve(where, BOUND))
    first = min(lead)
    text = f"lead {lead[first]:.3g}× at s = {first:g}·min; no factorisation can lead by more than {most[first]:.3g}×"
    return count(int(lead[first] >= 100) + int(lead[first] > 1), 2), text


def base_growth(c: Curves) -> Judged:
    where = ("LRM 9", "WRelated")
    lm, lrm = c.curve(where, LM), c.curve(where, LRM)
    first, last = min(lm), max(lm)
    text = (
        f"from s = {first:g} to {last:g}·min: LM grows {lm[last] / lm[first]:.3g}×, LRM {lrm[last] / lrm[first]:.3g}×"
    )
    return count((lm[last] / lm[first] < 2) + (lrm[last] / lrm[first] > 3 * lm[last] / lm[first]), 2), text


def ours(c: Curves) -> Judged:
    gains, never = [], True
    for where in c.panels(COMPARED):
        named = c.best(where, (LM, NOR, WM, HM, LRM, AMM))
        ratios = over(named, c.curve(where, TACIT))
        gains += list(ratios.values())
        never &= min(ratios.values()) >= 1 - 1e-6
    text = f"best named strategy over tacit, over all {len(gains)} settings: {extent(gains)}"
    return "agrees" if never else "differs", text


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
    share = true / len(ratios)
    return f"above in {true} of {len(ratios)} settings ({share:.0%}); over tacit's error: {extent(ratios)}"


CLAIMS: tuple[Claim, ...] = (
    (("LRM 2",), "LRM's error is not sensitive to γ from 10⁻⁴ to 10", gamma_error),
    (("LRM 2 time",), "LRM is much faster with larger γ", gamma_time),
    (("LRM 3",), "r < rank(W) is far worse, up to two orders of magnitude", rank_low),
    (("LRM 3",), "the error is stable beyond r = 1.2·rank(W)", rank_stable),
    (("LRM 3 time",), "time grows rapidly with r", rank_time),
    (("LRM 4", "LRM 5", "LRM 6"), "AMM is much worse than the others everywhere", amm_worst),
    (("LRM 4",), "LM is best at small n; LRM's error stops growing with n, the others' is linear", discrete),
    (("LRM 5",), "WM and HM beat LM at large n; LRM beats them all", ranges),
    (("LRM 6", "LRM 6 low rank"), "LRM is best at every n, by over two orders of magnitude at n = 32·m", related),
    (("LRM 7",), "LRM leads when m ≪ n, all converge as m grows, WM is best at m = n", ranges_by_m),
    (("LRM 8",), "LRM is dramatically better at every m", related_by_m),
    (("LRM 9",), "LRM leads by over two orders of magnitude at low rank", base_lead),
    (("LRM 9",), "the others stay the same while LRM's error grows rapidly with s", base_growth),
    (("LRM 4", "LRM 9"), "(ours) tacit is never above a named strategy", ours),
    (("LRM 4", "LRM 9"), "(ours) Lemma 3 is above tacit's error, as proven", lemma3),
    (
        ("LRM 4", "LRM 9"),
        "(ours) Lemma 4, with 1 for its constant, certifies nothing: it is above an error reached",
        lemma4,
    ),
)
