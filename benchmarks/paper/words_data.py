"""What COA's Section 5 says of its Figure 14, and where DAWA and MWEM are ahead of tacit, judged."""

from __future__ import annotations

from benchmarks.paper.coa import PAPER
from benchmarks.paper.curves import Claim, Curves, Judged, count, extent, over
from benchmarks.paper.data import SOCIAL, UNIFORM
from benchmarks.paper.dawa import DAWA, DELTAS, ESTIMATED, MWEM
from benchmarks.paper.figures import TACIT

BY_N, BY_M = "COA 14 by n", "COA 14 by m"
BOTH = (BY_N, BY_M)
BEST = PAPER
"""COA at its best: to convergence."""


def _over_coa(c: Curves, figures: tuple[str, ...], data: str, delta: float) -> dict[float, list[float]]:
    """DAWA's error over COA's, by x."""
    ratios: dict[float, list[float]] = {}
    for figure in figures:
        for x, r in c.ratios((figure, data), DAWA, f"{BEST}, δ = {delta:g}").items():
            ratios.setdefault(x, []).append(r)
    return ratios


def _flat(by_x: dict[float, list[float]]) -> list[float]:
    return [r for ratios in by_x.values() for r in ratios]


def uniform(c: Curves) -> Judged:
    ratios = _flat(_over_coa(c, BOTH, UNIFORM, 1e-4))
    return count(sum(r > 1 for r in ratios), len(ratios)), f"DAWA over COA at δ = 0.0001: {extent(ratios)}"


def larger_delta(c: Curves) -> Judged:
    text, checks = [], []
    for data in (SOCIAL, UNIFORM):
        for delta in DELTAS[:3]:
            ratios = _flat(_over_coa(c, BOTH, data, delta))
            checks += [r > 1 for r in ratios]
            text.append(f"{data}, δ = {delta:g}: in {sum(r > 1 for r in ratios)} of {len(ratios)}")
    return count(sum(checks), len(checks)), "COA is the better: " + "; ".join(text)


def large_n(c: Curves) -> Judged:
    text, checks = [], []
    for data in (SOCIAL, UNIFORM):
        ratios = c.ratios((BY_N, data), DAWA, f"{BEST}, δ = 0.0001")
        checks.append(ratios[ratios.last] > 2)
        shown = ", ".join(f"{r:.3g} at n = {x:g}" for x, r in ratios.items())
        text.append(f"{data} {shown}")
    return count(sum(checks), len(checks)), "DAWA over COA at δ = 0.0001: " + "; ".join(text)


def small_delta(c: Curves) -> Judged:
    """DAWA may win at the smallest δ on its data, and nowhere else."""
    text, elsewhere = [], []
    for data in (SOCIAL, UNIFORM):
        for delta in DELTAS:
            ratios = _flat(_over_coa(c, BOTH, data, delta))
            if (data, delta) != (SOCIAL, DELTAS[-1]):
                elsewhere += ratios
            text.append(f"{data}, δ = {delta:g}: {sum(r < 1 for r in ratios)} of {len(ratios)}")
    return count(sum(r > 1 for r in elsewhere), len(elsewhere)), f"DAWA is the better: {'; '.join(text)}"


def against_ours(c: Curves) -> Judged:
    ratios = [r for w in c.panels(BOTH) for r in over(c.curve(w, DAWA), c.curve(w, ESTIMATED)).values()]
    return count(sum(r > 1 for r in ratios), len(ratios)), f"DAWA over tacit at the same ε: {extent(ratios)}"


def by_epsilon(c: Curves) -> Judged:
    """Data-dependent systems are made for little budget: that they win there and lose with more is what is expected."""
    text, checks = [], []
    for where in c.panels(["Data 1"]):
        dawa, mwem = c.ratios(where, DAWA, TACIT), c.ratios(where, MWEM, TACIT)
        checks += [min(dawa[dawa.first], mwem[mwem.first]) < 1, dawa[dawa.last] > 1, mwem[mwem.last] > 1]
        shown = ", ".join(f"ε = {x:g} {dawa[x]:.3g} and {mwem[x]:.3g}" for x in dawa)
        text.append(f"{where[1]}: {shown}")
    return count(sum(checks), len(checks)), "DAWA and MWEM over tacit: " + "; ".join(text)


CLAIMS: tuple[Claim, ...] = (
    (BOTH, "on Random Uniform, DAWA is rather poor", uniform),
    (BOTH, "COA is generally better than DAWA when δ ≥ 0.0001", larger_delta),
    ((BY_N,), "COA significantly outperforms DAWA when n is large", large_n),
    (BOTH, "DAWA outperforms COA only when δ is very small and the data fits", small_delta),
    (BOTH, "(ours) under pure ε too, tacit's default is ahead of DAWA", against_ours),
    (("Data 1",), "(ours) DAWA or MWEM wins at the smallest ε, tacit at the largest", by_epsilon),
)
