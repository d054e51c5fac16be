"""The pictures: one sheet holds the figures that stand next to each other in the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # a file is all that is wanted; no display need be there

import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator

from benchmarks.paper.figures import Figure, Row

_STYLES: Mapping[str, tuple[str, str, str]] = {
    "tacit": ("#d62728", "-", "o"),
    "lower bound": ("#000000", ":", ""),
    "Lemma 3 (upper bound)": ("#8c564b", ":", ""),
    "Lemma 4 (no bound)": ("#c51b8a", ":", ""),
    "Lemma 4 of COA (upper bound)": ("#8c564b", ":", ""),
    "LM (noise on data)": ("#1f77b4", "--", "s"),
    "GM (noise on data)": ("#1f77b4", "--", "s"),
    "noise on results": ("#8c8c8c", "--", "x"),
    "WM": ("#2ca02c", "-", "^"),
    "HM": ("#98df8a", "-", "v"),
    "AMM (ESM)": ("#9467bd", "-.", "P"),
    "ESM": ("#9467bd", "-.", "P"),
    "AM": ("#e377c2", "-.", "*"),
    "LRM": ("#ff7f0e", "-", "D"),
    "COA (program)": ("#17becf", "-", "X"),
    "COA (paper)": ("#0b5563", "-", "X"),
    "DAWA": ("#bcbd22", "-", "h"),
    "MWEM": ("#7f7f7f", "-", "p"),
    "tacit, pure ε": ("#d62728", "-", "o"),
    "noisy counts": ("#1f77b4", "--", "s"),
    "hierarchical": ("#98df8a", "-", "v"),
    "wavelet": ("#2ca02c", "-", "^"),
    "eigen-queries": ("#e377c2", "-.", "*"),
    "Laplace on all ranges": ("#8c8c8c", "--", "x"),
    "single cells (weighted)": ("#1f77b4", "--", "s"),
    "wider ranges": ("#ff7f0e", "-", "D"),
    "least squares": ("#1f77b4", "--", "s"),
    "non-negative": ("#d62728", "-", "o"),
    "LRM, ε = 1": ("#fdd0a2", "-", "D"),
    "LRM, ε = 0.1": ("#ff7f0e", "-", "D"),
    "LRM, ε = 0.01": ("#a63603", "-", "D"),
    "noise alone, ε = 0.1": ("#1f77b4", "--", "s"),
    "bias² alone": ("#8c8c8c", ":", "x"),
    "objective": ("#17becf", "-", "X"),
    "test error": ("#1f77b4", "--", "s"),
    "‖G‖, as the paper plots": ("#17becf", "-", "X"),
    "‖G‖ off the diagonal": ("#d62728", "-", "o"),
}
"""Colour, line and mark: the same for a strategy on every sheet. tacit's is drawn last, on top."""


def draw(folder: Path, sheet: str, figures: Sequence[tuple[Figure, Sequence[Row]]]) -> Path:
    """One row of panels per quantity that is measured; one legend below."""
    lines: dict[str, list[tuple[Figure, str, list[Row]]]] = {}
    for figure, rows in figures:
        for panel in dict.fromkeys(row.panel for row in rows):
            part = [row for row in rows if row.panel == panel]
            lines.setdefault(figure.value, []).append((figure, panel, part))
    columns = max(len(line) for line in lines.values())
    size = (max(3.4 * columns, 6.4), 3.1 * len(lines) + 1.0)
    sheet_figure, axes = plt.subplots(len(lines), columns, figsize=size, squeeze=False, layout="constrained")
    for line, across in zip(lines.values(), axes, strict=True):
        for (figure, panel, part), ax in zip(line, across, strict=False):
            _panel(ax, figure, panel, part)
        across[0].set_ylabel(line[0][0].value, fontsize=9)
        for ax in across[len(line) :]:
            ax.set_visible(False)
    handles: dict[str, Any] = {}
    for ax in axes.flat:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    paper = {"LRM": "LRM paper", "COA": "COA paper", "Talk": "the talk"}.get(figures[0][0].name.split()[0], "ours")
    sheet_figure.suptitle(f"{paper}: {figures[0][0].title}", fontsize=11)
    widest = 0.075 * max(map(len, handles)) + 0.6  # inches of a label of this size, with its mark
    columns = max(1, int(size[0] / widest))
    sheet_figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=8)
    path = folder / f"{sheet}.png"
    sheet_figure.savefig(path, dpi=120)
    plt.close(sheet_figure)
    return path


_SHADES = {"0.01": "#c6dbef", "0.001": "#6baed6", "0.0001": "#2171b5", "1e-05": "#08306b"}
"""COA's curves in its Figure 14, by δ."""


def _style(name: str) -> tuple[str, str, str]:
    """A curve of COA at one δ is drawn as COA, in the shade of its δ; one by the paper's settings is dashed."""
    label, _, delta = name.partition(", δ = ")
    colour, line, mark = _STYLES[label] if label in _STYLES else _STYLES[label.rpartition(" (")[0]]
    return _SHADES.get(delta, colour), "--" if label.endswith(" (paper)") else line, mark


def _panel(ax: Any, figure: Figure, panel: str, part: Sequence[Row]) -> None:
    names = list(dict.fromkeys(row.series for row in part))
    for name in sorted(names, key=lambda n: (n == "tacit", n == "lower bound")):
        points = [(row.x, row.y) for row in part if row.series == name and row.y > 0 and not math.isnan(row.y)]
        if points:
            colour, line, mark = _style(name)
            # An open mark on top: where tacit meets the best named strategy, both can be seen.
            shape = {"markersize": 7, "markerfacecolor": "none"} if name == "tacit" else {"markersize": 4}
            width = 1.0 if name.startswith("Lemma") else 1.5
            ax.plot(
                *zip(*points, strict=True),
                color=colour,
                linestyle=line,
                linewidth=width,
                marker=mark,
                label=name,
                **shape,
            )
    ax.set_yscale("log")
    values = sorted({row.x for row in part})
    if figure.log_x:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(values))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xticklabels([f"{x:g}" for x in values], fontsize=7)
    ax.tick_params(which="both", labelsize=7)
    ax.set_xlabel(figure.axis, fontsize=9)
    paper, number = figure.name.split()[:2]
    ax.set_title(f"{'Figure' if paper in ('LRM', 'COA') else 'Plot'} {number}: {panel}", fontsize=9)
    ax.grid(True, alpha=0.25)
