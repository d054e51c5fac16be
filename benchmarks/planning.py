"""What planning costs: CPU seconds as a multiple of importing pandas in the same run, and peak memory.

    python benchmarks/planning.py                # everything, two minutes on an idle core
    python benchmarks/planning.py cube ranges    # some: cube, ranges, wide, again

Each line is a process of its own, so that its peak memory is its own. ``cube`` is GROUP BY CUBE over three columns of
twelve values, ``ranges`` 1,024 ranges over 4,096 cells, ``wide`` 256 ranges over 65,536 cells, each planned for both
kinds of noise: the search and the rounding to the lattice, but not the compilation. ``again`` are the 95 ranges of the
README from SQL: planned, then for another ε, and by a second process that reads the plan which the first one kept.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

LINE = "{:<34} {:>8} {:>10} {:>14} {:>12} {:>10} {:>8}"


def cube(values: int, columns: int) -> Matrix:
    each = np.vstack([np.eye(values), np.ones((1, values))])
    return reduce(lambda left, right: np.asarray(np.kron(left, right)), [each] * columns)


def ranges(m: int, n: int) -> Matrix:
    ends = np.sort(np.random.default_rng(0).integers(0, n, (m, 2)), axis=1)
    cells = np.arange(n)
    return ((cells >= ends[:, :1]) & (cells <= ends[:, 1:])).astype(float)


WORKLOADS: dict[str, tuple[str, Callable[[], Matrix]]] = {
    "cube": ("CUBE of 3 × 12", lambda: cube(12, 3)),
    "ranges": ("1,024 ranges over 4,096 cells", lambda: ranges(1024, 4096)),
    "wide": ("256 ranges over 65,536 cells", lambda: ranges(256, 65_536)),
}


IMPORT = "import time; before = time.process_time(); import pandas; print(time.process_time() - before)"


def import_pandas() -> float:
    """CPU seconds, numpy included."""
    return float(subprocess.run([sys.executable, "-c", IMPORT], stdout=subprocess.PIPE, check=True, text=True).stdout)


def plan(name: str, privacy: Any) -> dict[str, Any]:
    from tacit.engine import Strategy, plan_release, table_workload

    workload = table_workload(WORKLOADS[name][1]())
    before = time.process_time()
    made = plan_release([workload], privacy=privacy)
    seconds = time.process_time() - before
    strategy = made.parts[0].strategy
    assert isinstance(strategy, Strategy)  # there is a matrix, and no products
    return {"seconds": seconds, "strategy": strategy.name, "error": strategy.error, "gap": strategy.gap}


def plan_from_sql(database: str) -> list[dict[str, Any]]:
    import tacit

    batch = [f"SELECT count(*) FROM t WHERE age < {age}" for age in range(2, 97)]
    rows = []
    with tacit.connect(database, epsilon=10.0) as con:
        session = con._session
        for epsilon in (0.5, 0.7):
            asked = tacit.request.ask(batch, epsilon=epsilon)
            compiled = session.compile(asked)
            before = time.process_time()
            bought = session.price(asked, compiled)
            seconds = time.process_time() - before
            strategy = bought.plan.parts[0].strategy
            assert isinstance(strategy, tacit.engine.Strategy)  # one column has no products
            rows.append({"seconds": seconds, "strategy": strategy.name, "error": strategy.error, "gap": strategy.gap})
    return rows


def child(*args: str) -> Any:
    """The result of one part in a process of its own, with its peak memory in MB."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("TACIT_CACHE", None)
    run = subprocess.run(
        [sys.executable, __file__, "--child", *args], env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(run.stdout)


def show(text: str, kind: str, result: dict[str, Any], pandas: float) -> None:
    print(
        LINE.format(
            text,
            kind,
            f"{result['seconds']:.3f}",
            f"{result['seconds'] / pandas:.2f}",
            result["strategy"],
            f"{result['gap']:.3%}",
            result["memory"],
        ),
        f"{result['error']:.6g}",
        flush=True,
    )


def main(parts: list[str]) -> None:
    pandas = min(import_pandas() for _ in range(3))
    print(f"importing pandas: {pandas:.3f} s of CPU\n")
    print(LINE.format("workload", "kind", "CPU s", "× pandas", "strategy", "gap", "MB"), "error")
    for name, (text, _) in WORKLOADS.items():
        for privacy in ("pure", "approximate") if not parts or name in parts else ():
            show(text, "Laplace" if privacy == "pure" else "Gauss", child("plan", name, privacy), pandas)
    if not parts or "again" in parts:
        with tempfile.TemporaryDirectory() as folder:
            database = str(Path(folder) / "data.duckdb")
            child("data", database)
            first, second = child("sql", database), child("sql", database)
        for text, result in (
            ("95 ranges from SQL", first[0]),
            ("the same at another ε", first[1]),
            ("the same in another process", second[0]),
        ):
            show(text, "Laplace", result, pandas)


def run_child(args: list[str]) -> None:
    match args:
        case ["plan", name, privacy]:
            result: Any = plan(name, privacy)
        case ["data", database]:
            import duckdb

            with duckdb.connect(database) as raw:
                raw.execute("CREATE TABLE t AS SELECT (i % 120)::INTEGER AS age FROM range(10000) AS r(i)")
            result = {}
        case ["sql", database]:
            result = plan_from_sql(database)
        case _:
            raise SystemExit(__doc__)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for row in result if isinstance(result, list) else [result]:
        row["memory"] = memory
    print(json.dumps(result))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        run_child(sys.argv[2:])
    else:
        main(sys.argv[1:])
