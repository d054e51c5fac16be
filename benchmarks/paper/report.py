"""Rows as CSV and as Markdown tables, one file of each per figure."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

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
            lines.append(f"| {x:g} | {' | '.join(_cell(cells[x, column]) for column in columns)} |")
        lines.append("")
    if any(row.note == "stopped" for row in rows):
        lines += ["\\* ended by the time limit", ""]
    lines += [f"– {reason}" for reason in dict.fromkeys(row.note for row in rows if row.note not in ("", "stopped"))]
    return "\n".join(lines).rstrip() + "\n"


def _cell(row: Row) -> str:
    if math.isnan(row.y):
        return "–"
    return f"{row.y:.4g}" + ("*" if row.note == "stopped" else "")


def _file(figure: Figure) -> str:
    return figure.name.lower().replace(" ", "-")
