"""Run the experiments: ``python -m benchmarks.paper [--size quick|full] [--only "LRM 4"] [--out build/paper]``."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.paper import coa, dawa, lrm, talk
from benchmarks.paper.cost import seconds
from benchmarks.paper.figures import Figure, Row, rows
from benchmarks.paper.full_size import at_full_size
from benchmarks.paper.report import what_was_run, write_csv, write_markdown
from benchmarks.paper.sizes import SIZES, Sizes
from benchmarks.paper.store import Store
from benchmarks.paper.tasks import Task
from benchmarks.paper.words import compare
from benchmarks.paper.workers import measured

EVERY = 600.0
"""Seconds after which a long run writes its tables again."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    start = time.perf_counter()
    wanted = _wanted(options)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    tasks = sorted(dict.fromkeys(point.task for figure in wanted for point in figure.points), key=seconds)
    store = Store(folder / "measured.jsonl", resume=options.resume, limit=_sizes(options).named_limit)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a stop is a stop, however it is asked for
    try:
        _measure(tasks, store, options, lambda: _write(folder, wanted, tasks, store, options))
    except KeyboardInterrupt:
        print("stopped; --resume takes it up again")
    by_figure = _write(folder, wanted, tasks, store, options)
    if not options.no_plots:
        _draw(folder, by_figure)
    print((folder / "comparison.md").read_text(encoding="utf-8"))
    outcomes = store.outcomes(tasks)
    for reason in dict.fromkeys(outcome.reason for outcome in outcomes.values() if outcome.reason):
        print(reason)
    spent = time.perf_counter() - start
    print(f"{len(outcomes)} of {len(tasks)} measurements, {spent:.0f} s; tables and pictures are in {folder}")


def _sizes(options: argparse.Namespace) -> Sizes:
    sizes = SIZES[options.size]
    return sizes if options.limit is None else replace(sizes, named_limit=options.limit)


def _wanted(options: argparse.Namespace) -> list[Figure]:
    sizes, data = _sizes(options), options.data
    if data is not None and not Path(data).is_dir():
        raise SystemExit(f"--data takes a folder, and {data} is none")
    all_figures = (
        *lrm.figures(sizes, data),
        *coa.figures(sizes),
        *dawa.figures(sizes, data),
        *talk.figures(sizes, data),
    )
    wanted = [figure for figure in all_figures if _asked(figure, options.only)]
    if not wanted:
        raise SystemExit(f"no figure is called {', '.join(options.only)}")
    return wanted


def _asked(figure: Figure, only: Sequence[str]) -> bool:
    return not only or any(figure.name == name or figure.name.startswith(f"{name} ") for name in only)


def _measure(
    tasks: Sequence[Task], store: Store, options: argparse.Namespace, write: Callable[[], dict[Figure, list[Row]]]
) -> None:
    """Every task that is not measured yet, cheapest first, so that a run that is stopped has the most to show."""
    missing, limit = store.missing(tasks), _sizes(options).named_limit
    ahead = sum(_seconds(task, limit) for task in missing)
    written = shown = time.monotonic()
    for done, (task, outcome) in enumerate(measured(missing, options.jobs, limit), start=1):
        store.keep(task, outcome)
        ahead -= _seconds(task, limit)
        if (now := time.monotonic()) - shown >= 30.0:
            shown = now
            minutes = ahead / options.jobs / 60
            print(
                f"{done} of {len(missing)} measured, the last one {task}; about {minutes:.0f} minutes left", flush=True
            )
        if now - written >= EVERY:
            written = now
            by_figure = write()
            print(", ".join(f"{f.name} {len(part)}/{len(f.points)}" for f, part in by_figure.items()), flush=True)


def _seconds(task: Task, limit: float | None) -> float:
    return seconds(task) if limit is None else min(seconds(task), limit)


def _write(
    folder: Path, wanted: Sequence[Figure], tasks: Sequence[Task], store: Store, options: argparse.Namespace
) -> dict[Figure, list[Row]]:
    """Tables of what is measured so far, and the comparison."""
    outcomes = store.outcomes(tasks)
    by_figure = {figure: rows(figure, outcomes) for figure in wanted}
    for figure, part in by_figure.items():
        write_csv(folder, figure, part)
        write_markdown(folder, figure, part)
    words = compare([row for part in by_figure.values() for row in part])
    if options.size == "quick" and not options.only:
        words += "\n" + at_full_size()
    words += "\n" + what_was_run(by_figure, options.size, options.data, store.other_code(tasks))
    (folder / "comparison.md").write_text(words, encoding="utf-8")
    return by_figure


def _draw(folder: Path, by_figure: dict[Figure, list[Row]]) -> None:
    try:
        from benchmarks.paper.plots import draw
    except ModuleNotFoundError as error:
        raise SystemExit("pictures need matplotlib: pip install 'tacit[paper]', or add --no-plots") from error
    for sheet in dict.fromkeys(figure.sheet for figure in by_figure):
        figures = [(figure, part) for figure, part in by_figure.items() if figure.sheet == sheet and part]
        if figures:
            draw(folder, sheet, figures)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="quick")
    parser.add_argument("--only", action="append", default=[], help='a figure, such as "COA 1"; may be repeated')
    parser.add_argument("--data", metavar="FOLDER", help="counts to read in place of generated ones (see data.py)")
    parser.add_argument("--out", default="build/paper")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--limit", type=float, help="seconds for one measurement; more of them when resuming try again")
    parser.add_argument("--resume", action="store_true", help="keep what an earlier run into the same folder measured")
    parser.add_argument("--no-plots", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
