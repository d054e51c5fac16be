"""Rows as CSV and as Markdown tables, one file of each per figure."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path

from benchmarks.paper.data import DATA_SETS, origin
from benchmarks.paper.figures import Figure, Row


def write_csv(folder: Path, figure: Figure, rows: Sequence[Row]) -> Path:
    path = folder / f"{_file(figure)}.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(field.name for field in fields(Row))
        writer.writerows(astuple(row) for row in rows)
    return path


def write_markdown(folder: Path, figure: Figure, rows: Sequence[Row]) -> Path:
    path = folder / f"{_file(figure)}.md"
    path.write_text(markdown(figure, rows), encoding="utf-8")
    return path


def markdown(figure: Figure, rows: Sequence[Row]) -> str:
    """One table per panel: a line per value of the axis, a column per curve."""
    lines = [f"# {figure.name}: {figure.title}", "", f"{figure.value[0].upper()}{figure.value[1:]}.", ""]
    for panel in dict.fromkeys(row.panel for row in rows):
        part = [row for row in rows if row.panel == panel]
        columns = list(dict.fromkeys(row.series for row in part))
        cells = {(row.x, row.series): row for row in part}
        lines += [f"## {panel}", "", f"| {figure.axis} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        for x in dict.fromkeys(row.x for row in part):
            lines.append(f"| {x:g} | {' | '.join(_cell(cells.get((x, column))) for column in columns)} |")
        lines.append("")
    if any(row.note == "stopped" for row in rows):
        lines += ["\\* ended by the time limit", ""]
    lines += [f"– {reason}" for reason in dict.fromkeys(row.note for row in rows if row.note not in ("", "stopped"))]
    return "\n".join(lines).rstrip() + "\n"


def what_was_run(by_figure: Mapping[Figure, Sequence[Row]], size: str, folder: str | None, other_code: int) -> str:
    """Points of each figure: measured, ended by the time limit, refused or failed, and not run yet."""
    lines = [f"The {size} form. Data: " + ", ".join(f"{name} ({origin(name, folder)})" for name in DATA_SETS) + "."]
    if other_code:
        lines.append(f"{other_code} measurements are by an earlier state of the search.")
    lines += ["", "| figure | points | measured | of these stopped | gaps | not run |", "|---|---|---|---|---|---|"]
    for figure, rows in by_figure.items():
        gaps = sum(math.isnan(row.y) for row in rows)
        stopped = sum(row.note == "stopped" for row in rows)
        total = len(figure.points)
        lines.append(f"| {figure.name} | {total} | {len(rows) - gaps} | {stopped} | {gaps} | {total - len(rows)} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None or math.isnan(row.y):
        return "–"
    return f"{row.y:.4g}" + ("*" if row.note == "stopped" else "")


def _file(figure: Figure) -> str:
    return figure.name.lower().replace(" ", "-")
