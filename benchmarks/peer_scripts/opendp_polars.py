"""OpenDP's part of benchmarks/peers.py: its polars interface, in a virtual environment of its own.

    python opendp_polars.py WORK     reads WORK/task.json and WORK/people.csv, writes WORK/opendp.json

The budget is divided evenly among the queries (``split_evenly_over``), which is what its Context offers. Group keys are
declared public.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import opendp.prelude
import polars as pl

dp: Any = opendp.prelude  # its names are not typed as exported
dp.enable_features("contrib")


def main(work: Path) -> None:
    task = json.loads((work / "task.json").read_text())
    people = pl.read_csv(work / "people.csv").lazy()
    queries = task["queries"]
    groups = sorted({tuple(query["by"]) for query in queries if query["by"]})
    runs = []
    started = time.process_time()
    for _ in range(task["runs"]):
        context = dp.Context.compositor(
            data=people,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=task["epsilon"]),
            split_evenly_over=len(queries),
            margins=[dp.polars.Margin(by=list(by), max_length=20_000, invariant="keys") for by in groups],
        )
        runs.append([_answers(context, query) for query in queries])
    seconds = (time.process_time() - started) / task["runs"]
    found = {"version": version("opendp"), "runs": runs, "seconds": seconds, "spent": task["epsilon"]}
    (work / "opendp.json").write_text(json.dumps(found))


def _answers(context: Any, query: dict[str, Any]) -> dict[str, float]:
    asked = context.query()
    if query["between"]:
        low, high = query["between"]
        asked = asked.filter((pl.col("age") >= low) & (pl.col("age") <= high))
    counted = asked.group_by(query["by"]).agg(dp.len(signed=True)) if query["by"] else asked.select(dp.len(signed=True))
    width = len(query["by"])
    rows = counted.release().collect().select([*query["by"], "len"]).rows()
    return {"|".join(map(str, row[:width])): float(row[width]) for row in rows}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
