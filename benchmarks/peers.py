"""One batch at the same total ε: tacit beside SmartNoise SQL, OpenDP and a noisy histogram.

    python benchmarks/peers.py [--runs 10] [--peer-runs 2] [--work build/peers]

Two batches over 20,000 generated people, one row each: a report (people by state and sex, and how old they are), and 60
sliding windows of 11 years. SmartNoise SQL and OpenDP run in virtual environments of their own, which this makes under
WORK where they are missing, because they cannot share one with tacit. tacit and the histograms answer every batch 10
times, the peers twice (OpenDP takes a second or two for each query; all its counts have the same noise); 0 leaves them
out. The errors are measured against the exact counts; CPU seconds are those of one run. tacit's include the search for
a plan: every run has a database of its own in memory, which keeps no plan for the next. Prints a table for each batch
and draws WORK/peers.png.

What each way does with the total of ε = 1:

    tacit               plans the whole batch
    batch's histogram   noise on every cell that the batch tells apart (tacit, strategy="identity")
    full histogram      GROUP BY every column that the batch mentions, noise on each count, summed up afterwards
    OpenDP              its Context, split_evenly_over all queries
    SmartNoise SQL      ε / number of queries for each query
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import tacit

EPSILON = 1.0
STATES, SEXES, AGES = ["NY", "NJ", "CA"], ["F", "M"], range(100)
PEERS = {"opendp": "opendp[polars]==0.16.0", "smartnoise": "smartnoise-sql==1.0.10"}
SCRIPTS = Path(__file__).with_name("peer_scripts")
POLICY: dict[str, Any] = {
    "budget": {"epsilon": EPSILON},
    "tables": {
        "people": {
            "columns": {
                "state": {"values": STATES, "complete": True, "not_null": True},
                "sex": {"values": SEXES, "complete": True, "not_null": True},
                "age": {"min": 0, "max": 99, "not_null": True},
            }
        }
    },
}
PEOPLE = """
CREATE TABLE people AS SELECT
    ['NY', 'NY', 'NY', 'CA', 'CA', 'NJ'][1 + (hash('state' || i) % 6)::INTEGER] AS state,
    ['F', 'M'][1 + (hash('sex' || i) % 2)::INTEGER] AS sex,
    floor(100 * (hash('age' || i) / 18446744073709551616.0) ** 1.3)::INTEGER AS age
FROM range(20000) AS numbers(i)
"""

Answer = dict[str, float]
"""The counts of one query, by group; the group of a query without GROUP BY is empty."""


@dataclass(frozen=True)
class Question:
    """One query in the words that every way understands."""

    by: tuple[str, ...] = ()
    between: tuple[int, int] | None = None

    @property
    def sql(self) -> str:
        keys = ", ".join(self.by)
        where = f" WHERE age BETWEEN {self.between[0]} AND {self.between[1]}" if self.between else ""
        return (
            f"SELECT {keys + ', ' if keys else ''}COUNT(*) AS n FROM people{where}{' GROUP BY ' + keys if keys else ''}"
        )


@dataclass(frozen=True)
class Measured:
    """What one way made of one batch."""

    name: str
    runs: list[list[Answer]]
    seconds: float
    spent: float


REPORT = [
    Question(("state",)),
    Question(("sex",)),
    Question(("state", "sex")),
    *(Question(between=(0, age - 1)) for age in range(5, 85, 5)),
    *(Question(between=band) for band in ((0, 17), (18, 64), (65, 99), (15, 49), (85, 99))),
]
WINDOWS = [Question(between=(age, age + 10)) for age in range(60)]
BATCHES = {
    f"a report: {len(REPORT)} queries, by state and sex and by age": REPORT,
    "60 sliding windows of 11 years": WINDOWS,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--peer-runs", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build/peers"))
    arguments = parser.parse_args()
    work: Path = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    compare(work, arguments.runs, arguments.peer_runs)


def compare(work: Path, runs: int, peer_runs: int) -> None:
    peers = {peer: environment(work, peer) for peer in PEERS} if peer_runs else {}
    with duckdb.connect() as db:
        db.execute(PEOPLE)
        db.execute(f"COPY people TO '{work / 'people.csv'}' (HEADER)")
    errors: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
    for title, questions in BATCHES.items():
        exact = exact_answers(questions)
        ways = own_ways(questions, runs)
        ways += [peer_way(peer, python, work, questions, peer_runs) for peer, python in peers.items()]
        errors[title] = {way.name: root_mean_squares(way.runs, exact) for way in ways}
        report(title, ways, errors[title])
    picture(errors, work / "peers.png")


def environment(work: Path, peer: str) -> Path:
    """The Python of a peer's own virtual environment, made where it is missing."""
    python = work / peer / "bin" / "python"
    ready = work / peer / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", str(work / peer)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PEERS[peer]], check=True)
        ready.write_text(PEERS[peer])
    return python


def exact_answers(questions: list[Question]) -> list[Answer]:
    with duckdb.connect() as db:
        db.execute(PEOPLE)
        return [keyed(q, db.execute(q.sql).fetchall()) for q in questions]


def keyed(question: Question, rows: list[tuple[Any, ...]]) -> Answer:
    width = len(question.by)
    return {"|".join(map(str, row[:width])): float(row[width]) for row in rows}


def own_ways(questions: list[Question], runs: int) -> list[Measured]:
    """tacit, and two histograms. Each run has a database and a ledger of its own: nothing is combined."""
    batch = [q.sql for q in questions]
    mentioned = ", ".join(column for column in ("state", "sex", "age") if any(column in sql for sql in batch))

    def planned(con: tacit.Connection, **how: Any) -> list[Answer]:
        answers = con.answer(batch, epsilon=EPSILON, **how)
        return [keyed(q, answer.rows()) for q, answer in zip(questions, answers, strict=True)]

    def full(con: tacit.Connection) -> list[Answer]:
        (cells,) = con.answer(f"SELECT {mentioned}, count(*) AS n FROM people GROUP BY ALL", epsilon=EPSILON)
        frame = cells.df
        added = []
        for q in questions:
            rows = frame[frame["age"].between(*q.between)] if q.between else frame
            sums = rows.groupby(list(q.by))["n"].sum().reset_index().to_numpy() if q.by else [[rows["n"].sum()]]
            added.append(keyed(q, [tuple(row) for row in sums]))
        return added

    return [
        measure("tacit", runs, planned),
        measure("batch's histogram", runs, lambda con: planned(con, strategy="identity")),
        measure("full histogram", runs, full),
    ]


def measure(name: str, runs: int, way: Callable[[tacit.Connection], list[Answer]]) -> Measured:
    released: list[list[Answer]] = []
    spent, started = 0.0, time.process_time()
    for _ in range(runs):
        with duckdb.connect() as db:
            db.execute(PEOPLE)
            with tacit.connect(db, policy=POLICY) as con:
                released.append(way(con))
                spent = float(con.budget.spent.epsilon)
    return Measured(name, released, (time.process_time() - started) / runs, spent)


def peer_way(peer: str, python: Path, work: Path, questions: list[Question], runs: int) -> Measured:
    queries = [{"sql": q.sql, "by": q.by, "between": q.between} for q in questions]
    (work / "task.json").write_text(json.dumps({"epsilon": EPSILON, "runs": runs, "queries": queries}))
    script = {"smartnoise": "smartnoise.py", "opendp": "opendp_polars.py"}[peer]
    subprocess.run([str(python), str(SCRIPTS / script), str(work)], check=True, stderr=subprocess.DEVNULL)
    found = json.loads((work / f"{peer}.json").read_text())
    title = {"smartnoise": "SmartNoise SQL", "opendp": "OpenDP"}[peer]
    return Measured(f"{title} {found['version']}", found["runs"], found["seconds"], found["spent"])


def root_mean_squares(runs: list[list[Answer]], exact: list[Answer]) -> np.ndarray[Any, Any]:
    """The error of each figure: the root of its mean square over the runs. A group that is missing is a count of 0."""
    wrong = [
        [run[i].get(group, 0.0) - count for i, answer in enumerate(exact) for group, count in answer.items()]
        for run in runs
    ]
    return np.asarray(np.sqrt((np.array(wrong) ** 2).mean(axis=0)))


def report(title: str, ways: list[Measured], errors: dict[str, np.ndarray[Any, Any]]) -> None:
    figures = len(errors[ways[0].name])
    print(f"\n{title}: {figures} counts, total ε = {EPSILON:g}")
    heads = "".join(f" {head:>12}" for head in ("typical error", "worst count", "times tacit"))
    print(f"{'':24}{heads} {'ε spent':>8} {'CPU s':>8} {'runs':>5}")
    best = typical(errors[ways[0].name])
    for way in ways:
        e = errors[way.name]
        print(
            f"{way.name:24} {typical(e):13.2f} {e.max():12.2f} {typical(e) / best:12.2f} {way.spent:8.3f} "
            f"{way.seconds:8.2f} {len(way.runs):5}"
        )


def typical(errors: np.ndarray[Any, Any]) -> float:
    return float(np.sqrt((errors**2).mean()))


def picture(errors: dict[str, dict[str, np.ndarray[Any, Any]]], path: Path) -> None:
    """Each count's error as a point, the typical one as a line, for each way and batch."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, all_axes = plt.subplots(1, len(errors), figsize=(10.5, 3.6), sharey=True, layout="constrained")
    for ax, (title, ways) in zip(all_axes, errors.items(), strict=True):
        for place, values in enumerate(ways.values()):
            colour = "#0072B2" if place == 0 else "#777777"
            spread = place + np.linspace(-0.25, 0.25, len(values))
            ax.plot(values, spread, "o", color=colour, alpha=0.35, markersize=4, markeredgewidth=0)
            ax.plot([typical(values)] * 2, [place - 0.35, place + 0.35], color=colour, linewidth=3)
            ax.annotate(f"{typical(values):.1f}", (typical(values), place - 0.38), ha="center", va="bottom", fontsize=9)
        ax.set_yticks(range(len(ways)), list(ways))
        ax.set_ylim(len(ways) - 0.5, -0.75)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda x, _: f"{x:g}"))
        ax.set_title(title, fontsize=10)
        ax.set_xlabel(f"error of each count (RMSE) at a total of ε = {EPSILON:g}")
        ax.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)
    print(f"\n{path}")


if __name__ == "__main__":
    main()
