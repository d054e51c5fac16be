"""Run the experiments: ``python -m benchmarks.paper [--size quick|full] [--only "LRM 4"] [--out build/paper]``."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.paper import coa, lrm
from benchmarks.paper.ceiling import ceilings
from benchmarks.paper.figures import Figure, Row, rows
from benchmarks.paper.report import write_csv, write_markdown
from benchmarks.paper.sizes import SIZES
from benchmarks.paper.store import Store
from benchmarks.paper.tasks import Outcome, Task, attempt
from benchmarks.paper.words import compare


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    start = time.perf_counter()
    sizes = SIZES[options.size]
    wanted = [f for f in (*lrm.figures(sizes, options.data), *coa.figures(sizes)) if _asked(f, options.only)]
    if not wanted:
        raise SystemExit(f"no figure is called {', '.join(options.only)}")
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    tasks = list(dict.fromkeys(point.task for figure in wanted for point in figure.points))
    store = Store(folder / "measured.jsonl", resume=options.resume)
    outcomes = _measure(tasks, store, options.jobs)
    by_figure = {figure: rows(figure, outcomes) for figure in wanted}
    for figure, part in by_figure.items():
        write_csv(folder, figure, part)
        write_markdown(folder, figure, part)
    if not options.no_plots:
        _draw(folder, by_figure)
    words = compare([row for part in by_figure.values() for row in part])
    if options.size != "tiny" and not options.only:
        words += "\n" + ceilings()
    (folder / "comparison.md").write_text(words, encoding="utf-8")
    print(words)
    for reason in dict.fromkeys(outcome.reason for outcome in outcomes.values() if outcome.reason):
        print(reason)
    print(f"{len(outcomes)} measurements, {time.perf_counter() - start:.0f} s; tables and pictures are in {folder}")


def _asked(figure: Figure, only: Sequence[str]) -> bool:
    return not only or any(figure.name == name or figure.name.startswith(f"{name} ") for name in only)


def _measure(tasks: Sequence[Task], store: Store, jobs: int) -> dict[Task, Outcome]:
    """Every task once. Workers are fresh processes of one BLAS thread each: forked ones would share its state."""
    missing = store.missing(tasks)
    if jobs == 1:
        store.keep(missing, map(attempt, missing))
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            store.keep(missing, pool.map(attempt, missing))
    return store.outcomes(tasks)


def _draw(folder: Path, by_figure: dict[Figure, list[Row]]) -> None:
    try:
        from benchmarks.paper.plots import draw
    except ModuleNotFoundError as error:
        raise SystemExit("pictures need matplotlib: pip install 'tacit[paper]', or add --no-plots") from error
    for sheet in dict.fromkeys(figure.sheet for figure in by_figure):
        draw(folder, sheet, [(figure, part) for figure, part in by_figure.items() if figure.sheet == sheet])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="quick")
    parser.add_argument("--only", action="append", default=[], help='a figure, such as "COA 1"; may be repeated')
    parser.add_argument("--data", help="counts for LRM 2 and 3 (.npy or text) in place of generated ones")
    parser.add_argument("--out", default="build/paper")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--resume", action="store_true", help="keep what an earlier run into the same folder measured")
    parser.add_argument("--no-plots", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
