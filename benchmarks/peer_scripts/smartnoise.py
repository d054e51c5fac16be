"""SmartNoise SQL's part of benchmarks/peers.py; runs in a virtual environment of its own and knows nothing of tacit.

    python smartnoise.py WORK        reads WORK/task.json and WORK/people.csv, writes WORK/smartnoise.json

The budget is divided evenly among the queries, because SmartNoise SQL prices each query by itself. It is given every
advantage that its documentation offers: one row per person, and group keys that are declared public.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import snsql

_COLUMNS = {
    "age": {"name": "age", "type": "int", "lower": 0, "upper": 99},
    "state": {"name": "state", "type": "string"},
    "sex": {"name": "sex", "type": "string"},
}
_TABLE = {"row_privacy": True, "censor_dims": False, "rows": 20000, **_COLUMNS}
_METADATA = {"": {"main": {"people": _TABLE}}}


def main(work: Path) -> None:
    task = json.loads((work / "task.json").read_text())
    people = pd.read_csv(work / "people.csv")
    queries = task["queries"]
    each = task["epsilon"] / len(queries)
    runs, spent = [], []
    started = time.process_time()
    for _ in range(task["runs"]):
        privacy = snsql.Privacy(epsilon=each, delta=1e-9)
        reader = snsql.from_df(people, privacy=privacy, metadata=_METADATA)
        runs.append(
            [
                _answers(reader.execute(query["sql"].replace("FROM people", "FROM main.people")), query)
                for query in queries
            ]
        )
        spent.append(reader.odometer.spent[0])
    seconds = (time.process_time() - started) / task["runs"]
    found = {"version": version("smartnoise-sql"), "runs": runs, "seconds": seconds, "spent": max(spent)}
    (work / "smartnoise.json").write_text(json.dumps(found))


def _answers(rows: list[Any], query: dict[str, Any]) -> dict[str, float]:
    """The released counts by their group; a group that is missing from the result is a count of 0."""
    _, *data = rows
    width = len(query["by"])
    return {"|".join(map(str, row[:width])): float(row[width]) for row in data}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
