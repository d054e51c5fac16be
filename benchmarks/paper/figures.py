"""A figure of a paper is a table of points: where it is drawn, and which measure of which task it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tacit.engine.strategy import Privacy

from benchmarks.paper.tasks import Outcome, Planned, Task
from benchmarks.paper.workloads import Setting

TACIT, BOUND = "tacit", "lower bound"


@dataclass(frozen=True)
class Point:
    panel: str
    x: float
    series: str
    measure: str
    task: Task


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
    found = []
    for point in figure.points:
        outcome = outcomes[point.task]
        y = outcome.measures.get(point.measure, float("nan"))
        note = outcome.reason or ("stopped" if outcome.measures.get("stopped") else "")
        found.append(Row(figure.name, point.panel, figure.axis, point.x, point.series, figure.value, y, note))
    return found


def sweep(
    panel: str,
    settings: Iterable[tuple[float, Setting]],
    privacy: Privacy,
    names: Mapping[str, str],
    limits: tuple[float | None, float | None],
    measure: str = "error",
) -> Sequence[Point]:
    """Every named strategy (label → name) and tacit's own, with the best proven bound when errors are shown.

    ``limits`` are the seconds that tacit's own search and a named strategy may take.
    """
    own, named = limits
    points = []
    for x, setting in settings:
        for label, strategy in names.items():
            points.append(Point(panel, x, label, measure, Planned(setting, privacy, strategy, named)))
        ours = Planned(setting, privacy, None, own)
        points.append(Point(panel, x, TACIT, measure, ours))
        if measure == "error":
            points.append(Point(panel, x, BOUND, "lower bound", ours))
    return points
