"""A plan in words: first the sentence that an analyst needs, then the rest, with the words of the field explained."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .budget import show
from .display import exact, footnotes, number, odds, percent, plural, query_name, text_table, width, wrapped

if TYPE_CHECKING:
    from .explain import Plan

_ALTERNATIVES = {
    "split": "budget split per query (each query gets its part of ε and noise of its own)",
    "results": "noise on every result (all answers get noise that hides a unit's part in all of them)",
    "histogram": "noisy histogram (every cell is counted with noise, answers are added up)",
}
_MEASURES = {
    "total": "typical error",
    "largest": "largest error",
    "absolute": "average error",
    "relative": "typical relative error",
}
_ROUNDING = 1 + 1e-6
_UNSEARCHED = 60
"""Queries up to which the text says what each would cost alone: that plans each by itself."""
HINT = "more: plan.text(all=True) explains, plan.df() has every figure"


def sentence(plan: Plan) -> str:
    """How exact the answers will be, how sure that is, and for how much of the budget."""
    if not plan.strategy:
        return "this batch reads no private row: its answers are exact, and free"
    if plan.stages:
        return f"strategy {plan.strategy} looks at the data: its error is measured, not predicted; {price(plan)}"
    told = _told(plan)
    if not told:
        return f"how exact the answers will be depends on the released values; {price(plan)}"
    return f"{told}, {odds(plan.confidence)}, {price(plan)}"


def _told(plan: Plan) -> str:
    """``each count will be within ±6.2 and each sum within ±810``."""
    frame = plan.figures()
    known = frame[frame["half_width"].notna()]
    noisy = known[known["half_width"] > 0]
    if not len(noisy):
        return "each figure is exact" if len(known) else ""
    parts: list[str] = []
    for kind, widths in noisy.groupby("kind", sort=False)["half_width"]:
        low, high = width(float(widths.min())), width(float(widths.max()))
        noun = f"each {kind}" if len(noisy) > 1 else f"the {kind}"
        parts.append(f"{noun} {'' if parts else 'will be '}within {_between(low, high)}")
    return " and ".join(parts)


def _between(low: str, high: str) -> str:
    return f"±{low}" if low == high else f"±{low} to ±{high}"


def price(plan: Plan) -> str:
    """``for ε = 0.5 of your 2.0``."""
    if not any(plan.cost):
        return "at no cost"
    account, parts = plan.account, []
    for letter, asked, place in (("ε", plan.cost.epsilon, 0), ("δ", plan.cost.delta, 1)):
        if place and not asked:
            continue
        text = f"{letter} = {_amount(asked)}"
        if account is not None and account.cap[0] > 0:
            cap, left = account.cap[place], account.left[place]
            if asked > left:
                text += f", more than the {_amount(left)} left of your {_amount(cap)}"
            elif left < cap:
                text += f" of the {_amount(left)} left of your {_amount(cap)}"
            else:
                text += f" of your {_amount(cap)}"
        parts.append(text)
    return "for " + " and ".join(parts)


def _amount(value: Decimal) -> str:
    return exact(value) if value == 0 or abs(value) >= Decimal("1e-4") else f"{float(value):g}"


def text(plan: Plan, *, all: bool = False, size: Any = None) -> str:
    """The sentence, what is special about the cost, and each query's error; with ``all``, everything."""
    lines = [sentence(plan), *wrapped(plan.discover, first="  ", rest="    ")]
    if not plan.strategy:
        return "\n".join(lines)
    lines += wrapped(plan.stages, first="  ", rest="    ")
    if all or plan.stages or plan.why != plan.plain_why:
        lines += wrapped([plan.why])
    shown = columns(plan, size=size, all=all)
    shown["note"], notes = footnotes(shown["note"])
    lines += ["", text_table(shown, left=("query",)), *wrapped(notes)]
    if not all:
        return "\n".join([*lines, "", HINT])
    words: list[str] = [*_meaning(plan), *_way(plan)]
    if any(plan.bought) and not plan.stages and plan.combined <= plan.error * _ROUNDING:
        words += [*_others(plan), *_distance(plan)]
    elif plan.stages:
        words.append("split, results and histogram in plan.df(): standard errors of ways that do not look at the data")
    return "\n".join([*lines, "", *wrapped(words, first="- ")])


def columns(plan: Plan, *, size: Any = None, all: bool = False) -> dict[str, list[str]]:
    """The table as text, by column."""
    alone = all and len(plan.queries) <= _UNSEARCHED and any(plan.bought) and not plan.stages
    frame = plan.by_query(size=size, alone=alone)
    shown = {
        "query": [query_name(q, t) for q, t in zip(frame["query"], frame["text"], strict=True)],
        "figures": [f"{n:,}" for n in frame["figures"]],
        "within": [
            "" if math.isnan(high) else "exact" if high == 0 else _between(width(low), width(high))
            for low, high in zip(frame["smallest"], frame["largest"], strict=True)
        ],
    }
    if "relative" in frame:
        shown["relative"] = [percent(r) for r in frame["relative"]]
    if alone:
        shown["alone ε"] = ["" if value is None else exact(value) for value in frame["alone"]]
    return {**shown, "note": frame["note"].tolist()}


def _meaning(plan: Plan) -> Iterable[str]:
    """The words of the first sentence and of the table."""
    yield (
        f"within ±: the half-width of the interval that holds the exact answer {odds(plan.confidence)} "
        "(its confidence), for each figure by itself. The noise alone decides it, so it is known before any row is "
        "read."
    )
    units = [f"one row of {t}" if not u else f"all rows of one {u} in {t}" for t, u in plan.units.items()]
    whose = " and ".join(units) or "one row"
    factor = math.exp(min(float(plan.epsilon), 700.0))
    yield (
        f"ε = {exact(plan.epsilon)}: the price in privacy. Whether a unit (here {whose}) is in the data or not changes "
        f"the odds of any outcome by a factor of at most e^ε = {number(factor)}. Smaller is more private and noisier."
    )
    if plan.delta:
        yield f"δ = {_amount(plan.delta)}: the probability with which that bound may fail."
    if any(plan.cost):
        yield (
            f"charged: the ledger enters {show(plan.cost)} before the first row is read, and never gives it back. "
            "Asking the same again is free."
        )
    if plan.other_groups:
        yield "other: the rows whose key is none of the declared values, unless it is NULL."
    if len(plan.queries) <= _UNSEARCHED and any(plan.bought) and not plan.stages:
        yield "alone ε: what a query by itself would cost, as exact as here (found without a long search)."
        total = plan.cost_of_each_alone()
        if total is not None and len(plan.queries) > 1:
            yield (
                f"asked one by one, as exactly, the queries would cost ε = {exact(total)} in all; "
                f"together they cost {exact(plan.bought.epsilon)}."
            )


def _way(plan: Plan) -> Iterable[str]:
    """What is asked of the data."""
    yield (
        f"{plural(len(plan.queries), 'query', 'queries')} over {plural(len(plan.cells), 'cell', 'cells')}: "
        "a cell is a set of rows that no query of the batch tells apart."
    )
    if plan.stages or not any(plan.bought):
        return
    bought = "" if plan.combined <= plan.error * _ROUNDING else " for what is bought"
    yield (
        f"strategy {plan.strategy}{bought}: the questions that are asked with noise; every answer is rebuilt from "
        f"theirs, so answers never contradict each other. The noise is {plan.noise}."
    )


def _others(plan: Plan) -> Iterable[str]:
    """The alternatives, as multiples of the plan's own error."""
    for name, error in plan.alternatives.items():
        ratio = error / plan.error if plan.error > 0 else 1.0
        if plan.objective != "absolute":
            ratio = math.sqrt(ratio)
        yield (
            f"{_ALTERNATIVES.get(name, name)}: {ratio:.2f} times the {_MEASURES[plan.objective]} of this plan, "
            "for the same ε."
        )


def _distance(plan: Plan) -> Iterable[str]:
    """How far from the best, as what is proven and not as what is wrong with the plan."""
    root = 1.0 if plan.objective == "absolute" else 0.5
    measure = _MEASURES[plan.objective]
    yield (
        f"the gap: no strategy with {plan.noise} noise can have less than {percent((1 + plan.gap) ** -root)} "
        f"of this plan's {measure}."
    )
    if plan.least_error is None or plan.least_error < sys.float_info.min:
        return  # at an ε of hundreds the least is no float any more
    share = (plan.least_error / plan.error) ** root if plan.error > 0 else 1.0
    yield (
        f"no ε-private mechanism of any kind can have less than {percent(share)} of it. That is a limit which theory "
        "proves, not something that anybody knows how to reach."
    )
