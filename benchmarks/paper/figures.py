"""A figure of a paper is a table of points: where it is drawn, and which measure of which task it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tacit.engine.strategy import Privacy

from benchmarks.paper.sizes import Sizes
from benchmarks.paper.tasks import Lemmas, Outcome, Parameters, Planned, Task
from benchmarks.paper.workloads import PAPERS, Setting

Names: TypeAlias = Mapping[str, tuple[str, Parameters]]
"""Label of a curve → the strategy's name and its own keywords."""
ERROR, SECONDS = "expected squared error per query", "seconds of CPU"

TACIT, BOUND = "tacit", "lower bound"
LEMMA3, LEMMA4, COA_LEMMA4 = "Lemma 3 (upper bound)", "Lemma 4 (no bound)", "Lemma 4 of COA (upper bound)"
LEMMAS: Mapping[Privacy, Mapping[str, str]] = {
    "pure": {LEMMA3: "LRM lemma 3", LEMMA4: "LRM lemma 4"},
    "approximate": {COA_LEMMA4: "COA lemma 4"},
}
"""Curve → measure of ``Lemmas``."""
TIMED_GAP = 1e-3
"""How near its proven bound tacit has to come where its time is shown; errors are those of its default gap."""


@dataclass(frozen=True)
class Point:
    panel: str
    x: float
    series: str
    measure: str
    task: Task
    factor: float = 1.0
    """What the measure is multiplied by: an error at another ε or δ."""


@dataclass(frozen=True)
class Figure:
    """``sheet`` is the picture that the figure is drawn on, together with its neighbours in the paper."""

    name: str
    title: str
    sheet: str
    axis: str
    value: str
    points: tuple[Point, ...]
    log_x: bool = True


@dataclass(frozen=True)
class Row:
    """One number of one figure, as the CSV has it."""

    figure: str
    panel: str
    axis: str
    x: float
    series: str
    value: str
    y: float
    note: str = ""


def rows(figure: Figure, outcomes: Mapping[Task, Outcome]) -> list[Row]:
    """The points that were measured; what a strategy refused is a row without a number."""
    listed = []
    for point in figure.points:
        outcome = outcomes.get(point.task)
        if outcome is None:
            continue
        y = point.factor * outcome.measures.get(point.measure, float("nan"))
        note = outcome.reason or ("stopped" if outcome.measures.get("stopped") else "")
        listed.append(Row(figure.name, point.panel, figure.axis, point.x, point.series, figure.value, y, note))
    return listed


def sweep(
    panel: str,
    settings: Iterable[tuple[float, Setting]],
    privacy: Privacy,
    names: Names,
    sizes: Sizes,
    measure: Literal["error", "seconds"] = "error",
) -> Sequence[Point]:
    """Every named strategy and tacit's own, with the bounds when errors are shown."""
    points = []
    for x, setting in settings:
        for label, (strategy, parameters) in names.items():
            if setting.n > sizes.most_cells.get(label, setting.n):
                continue
            if strategy == "lrm":
                parameters = (*parameters, ("gamma", sizes.gamma(setting)))
            task = Planned(setting, privacy, strategy, sizes.named_limit, parameters=parameters)
            points.append(Point(panel, x, label, measure, task))
        if measure == "seconds":
            task = Planned(setting, privacy, None, sizes.own_limit, TIMED_GAP)
            points.append(Point(panel, x, TACIT, "proven", task))
            continue
        ours, lemmas = Planned(setting, privacy, None, sizes.own_limit), Lemmas(setting, privacy)
        points.append(Point(panel, x, TACIT, measure, ours))
        points.append(Point(panel, x, BOUND, "lower bound", ours))
        if setting.workload in PAPERS:
            points += [Point(panel, x, label, name, lemmas) for label, name in LEMMAS[privacy].items()]
    return points
