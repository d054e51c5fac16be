"""A tiny run of every experiment: each figure of both papers is there, and its curves are possible ones."""

from __future__ import annotations

import csv
import math
import os
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.paper.words import CLAIMS

ROOT = Path(__file__).parents[1]
FIGURES = {f"LRM {k}" for k in range(2, 10)} | {f"COA {k}" for k in range(1, 15)} | {f"Talk {k}" for k in range(1, 8)}
SHEETS = 17
Curves = dict[tuple[str, str, float], dict[str, float]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("paper")
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "benchmarks.paper",
        "--size",
        "tiny",
        "--jobs",
        "1",
        "--out",
        str(out),
    ]
    # The first import of matplotlib in a process looks for fonts and says so; a folder of its own keeps that quiet.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLCONFIGDIR": str(out / "fonts")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "failed" not in done.stdout, done.stdout
    return out


@pytest.fixture(scope="module")
def curves(folder: Path) -> Curves:
    """(figure, panel, x) → series → y."""
    found: Curves = defaultdict(dict)
    for path in folder.glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                found[row["figure"], row["panel"], float(row["x"])][row["series"]] = float(row["y"])
    return found


def test_every_figure_is_measured(curves: Curves) -> None:
    assert {" ".join(figure.split()[:2]) for figure, _, _ in curves} >= FIGURES
    assert all(math.isfinite(y) and y >= 0 for point in curves.values() for y in point.values())


def test_every_figure_has_a_table_and_a_picture(folder: Path) -> None:
    for path in folder.glob("*.csv"):
        assert "| " in path.with_suffix(".md").read_text(encoding="utf-8")
    pictures = list(folder.glob("*.png"))
    assert {p.stem.split("-")[0] for p in pictures} == {"lrm", "coa", "talk", "data"}
    assert len(pictures) == SHEETS
    assert all(p.read_bytes().startswith(b"\x89PNG") and p.stat().st_size > 10_000 for p in pictures)


def test_no_strategy_is_below_the_proven_bound_and_ours_is_never_above(curves: Curves) -> None:
    shown = 0
    for key, point in curves.items():
        if "tacit" in point and "lower bound" in point:
            shown += 1
            # LRM's Lemma 4 may be on either side.
            least = min(y for name, y in point.items() if name not in ("lower bound", "Lemma 4 (no bound)"))
            assert least >= point["lower bound"] * (1 - 1e-9), key
            assert point["tacit"] <= least * (1 + 1e-3), key
    assert shown > 20


def test_the_lemmas_are_drawn_and_the_proven_ones_bound_from_above(curves: Curves) -> None:
    shown = {"LRM": 0, "COA": 0}
    for (figure, panel, x), point in curves.items():
        paper, number = figure.split()[:2]
        if (paper == "LRM" and number >= "4") or (paper == "COA" and 2 <= int(number) <= 10):
            shown[paper] += 1
            assert ("Lemma 4 (no bound)" in point) == (paper == "LRM")
            upper = point["Lemma 3 (upper bound)" if paper == "LRM" else "Lemma 4 of COA (upper bound)"]
            assert point["tacit"] <= upper * (1 + 1e-3), (figure, panel, x)
    assert all(shown.values())


def test_the_comparison_judges_every_claim_and_says_what_was_run(folder: Path) -> None:
    claims, run = (folder / "comparison.md").read_text(encoding="utf-8").split("\n\nThe tiny form.")
    lines = claims.splitlines()[2:]
    assert len(lines) == len(CLAIMS)
    assert all(line.split(" | ")[-1].rstrip(" |") in ("agrees", "partly", "differs") for line in lines)
    counts = [line.split("|")[2:7] for line in run.splitlines() if line.startswith(("| LRM", "| COA", "| Talk"))]
    assert len(counts) > 25
    assert all(points == measured and int(left) == 0 for points, measured, _, _, left in counts)


def test_coa_falls_towards_the_bound(curves: Curves) -> None:
    for workload in ("WDiscrete", "WMarginal", "WRange", "WRelated"):
        steps = sorted(x for figure, panel, x in curves if (figure, panel) == ("COA 1", workload))
        for settings in ("program", "paper"):
            objective = [curves["COA 1", workload, x][f"objective ({settings})"] for x in steps]
            assert all(after <= before * (1 + 1e-9) for before, after in pairwise(objective))
            assert objective[-1] >= curves["COA 1", workload, steps[-1]]["lower bound"]
