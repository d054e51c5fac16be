"""Draws the pictures of docs/how-it-works.md from real plans: no number in them was typed.

    python docs/make_pictures.py [FOLDER]        into docs/pictures, or elsewhere

The data behind them is empty tables: plans read no row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import duckdb
import matplotlib
import numpy as np
import tacit
from matplotlib.figure import Figure
from tacit.engine import optimize
from tacit.sql import compile_batch

STATES = ["NY", "NJ", "CA", "others"]
CONDITIONS = ["age < 18", "age BETWEEN 10 AND 65", "state IN ('NY', 'NJ')", "state = 'CA' AND age >= 18"]
EDGES = range(10, 90, 10)


def connection(epsilon: float = 2.0) -> tacit.Connection:
    db = duckdb.connect()
    db.execute("CREATE TABLE people (age INTEGER NOT NULL, state VARCHAR NOT NULL)")
    return tacit.connect(db, epsilon=epsilon)


def cells() -> Figure:
    """The cells that four queries cut, over all ages and states."""
    plan = connection().explain([f"SELECT count(*) FROM people WHERE {c}" for c in CONDITIONS], epsilon=0.5)
    db = duckdb.connect()
    db.execute("CREATE TABLE points AS SELECT age, s, list_value('NY', 'NJ', 'CA', 'OR')[s + 1] AS state "
               "FROM range(100) a(age), range(4) b(s)")  # fmt: skip
    asked = ", ".join(f"({condition})::INTEGER AS q{i}" for i, condition in enumerate(CONDITIONS))
    rows = np.array(db.execute(f"SELECT s, age, {asked} FROM points ORDER BY s, age").fetchall())
    counted = rows[:, 2:].reshape(4, 100, len(CONDITIONS))
    kinds = sorted({tuple(point) for point in counted.reshape(-1, len(CONDITIONS)) if point.any()})
    assert len(kinds) == len(plan.cells), "the picture shows the cells of the plan"
    number = np.full((4, 100), np.nan)
    for i, kind in enumerate(kinds):
        number[(counted == kind).all(axis=2)] = i
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    ax = figure.subplots()
    colours = matplotlib.colormaps["tab20"].resampled(20)
    ax.imshow(number, aspect="auto", cmap=colours, vmin=-0.5, vmax=19.5, extent=(0, 100, 3.5, -0.5), alpha=0.55)
    for age in (10, 18, 66):
        ax.axvline(age, color="black", linewidth=1)
    for state in (1.5, 2.5):
        ax.axhline(state, color="black", linewidth=1)
    for left, right in ((0, 10), (10, 18), (18, 66), (66, 100)):
        for state, words in ((0.5, (0, 1)), (2, (2, 2)), (3, (3, 3))):
            queries = [f"q{i}" for i in np.flatnonzero(counted[words[0], left])]
            ax.text((left + right) / 2, state, "\n".join(queries) or "–", ha="center", va="center", fontsize=9)
    ax.set_yticks(range(4), STATES)
    ax.set_xticks([0, 10, 18, 66, 100])
    ax.set_xlabel("age")
    ax.set_title(
        f"{len(CONDITIONS)} queries cut {len(plan.cells)} cells; each lists the queries that count it", fontsize=10
    )
    legend = "\n".join(f"q{i}: {condition}" for i, condition in enumerate(CONDITIONS))
    figure.text(1.01, 0.5, legend, fontsize=9, va="center", family="monospace")
    return figure


def factors() -> Figure:
    """W = B · L for eight cumulative counts, as heat maps."""
    con = connection()
    batch = [f"SELECT count(*) FROM people WHERE age < {age}" for age in EDGES]
    W = np.asarray(compile_batch(batch, con.catalog).matrix, dtype=np.float64)
    found = optimize(W, privacy="pure")
    order = np.argsort([np.argmax(np.abs(row)) - 100 * (np.count_nonzero(row) > 2) for row in found.L])
    L, B = found.L[order], found.B[:, order]  # a question about many ages first, then by age
    queries = [f"age < {age}" for age in EDGES]
    ages = ["< 10", *(f"{age}–{age + 9}" for age in list(EDGES)[:-1])]
    asked = [f"question {i}" for i in range(len(L))]
    figure = Figure(figsize=(11.5, 4.3), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1.15, 1])
    tacit.plot.matrix(W, rows=queries, columns=ages, title="W: what the queries count", names=("query", "age"), ax=left)
    tacit.plot.matrix(B, rows=queries, columns=asked, title="= B: how the answers are put together",
                      names=("query", "question"), ax=middle)  # fmt: skip
    tacit.plot.matrix(L, rows=asked, columns=ages, title="· L: what is asked with noise",
                      names=("question", "age"), ax=right)  # fmt: skip
    return figure


def errors() -> Figure:
    """Each query's error by tacit and by simpler ways, over a batch of wide and narrow queries."""
    batch = [f"SELECT count(*) FROM people WHERE age < {age}" for age in range(5, 100, 5)]
    batch += [f"SELECT count(*) FROM people WHERE age BETWEEN {age} AND {age + 4}" for age in (0, 20, 40)]
    figure = Figure(figsize=(8.2, 6.4), layout="constrained")
    connection().explain(batch, epsilon=0.5).plot(ax=figure.subplots())
    return figure


def curve() -> Figure:
    """What every ε would buy of the same batch."""
    batch = [f"SELECT count(*) FROM people WHERE age < {age}" for age in range(5, 100, 5)]
    figure = Figure(figsize=(6.6, 4.0), layout="constrained")
    connection(1.0).explain(batch, epsilon=0.5).plot_curve(ax=figure.subplots())
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {"cells": cells, "factors": factors, "errors": errors, "curve": curve}


def main(folder: Path, names: Iterable[str] = tuple(PICTURES)) -> None:
    settings: dict[str, Any] = {"dpi": 110, "bbox_inches": "tight", "metadata": {"Software": None}}
    for name in names:
        PICTURES[name]().savefig(folder / f"{name}.png", **settings)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("pictures"))
