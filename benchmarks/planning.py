"""What planning costs: CPU seconds as a multiple of importing pandas in the same run, and peak memory.

    python benchmarks/planning.py                # everything, four minutes on an idle core
    python benchmarks/planning.py cube ranges    # some: cube, ranges, wide, again, groups, growth

Each line is a process of its own, so that its peak memory is its own. ``cube`` is GROUP BY CUBE over three columns of
twelve values, ``ranges`` 1,024 ranges over 4,096 cells, ``wide`` 256 ranges over 65,536 cells, each planned for both
kinds of noise: the search and the rounding to the lattice, but not the compilation. ``again`` are the 95 ranges of the
README from SQL: planned, then for another ε, and by a second process that reads the plan which the first one kept.
``groups`` are 40,000 groups of one column, alone and beside a total and ten ranges, from SQL to frames: seconds of the
clock for ``explain`` and for ``answer``, and the standard error of a group in units of that of one count by itself.
``growth`` is how time and error grow with the cells n at a fixed number of queries m, and with m at a fixed n: ranges,
both kinds of noise, with the exponents of n and m that fit best, and a chart.
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

CELLS, QUERIES = tuple(2**k for k in range(8, 17)), tuple(2**k for k in range(5, 12))
MIDDLE_CELLS, MIDDLE_QUERIES = 1024, 128
"""What is fixed while the other one grows."""
WIDTH = 48
"""Of a chart, in characters."""
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


KINDS = {"Laplace": "pure", "Gauss": "approximate"}
IMPORT = "import time; before = time.process_time(); import pandas; print(time.process_time() - before)"


def import_pandas() -> float:
    """CPU seconds, numpy included."""
    return float(subprocess.run([sys.executable, "-c", IMPORT], stdout=subprocess.PIPE, check=True, text=True).stdout)


def plan(W: Matrix, privacy: Any) -> dict[str, Any]:
    from tacit.engine import Strategy, plan_release, table_workload

    workload = table_workload(W)
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


GROUPED = {
    "40,000 groups": ["SELECT zip, count(*) FROM t GROUP BY zip"],
    "and a total, and ten ranges": [
        "SELECT zip, count(*) FROM t GROUP BY zip",
        "SELECT count(*) FROM t",
        *(f"SELECT count(*) FROM t WHERE zip BETWEEN {1000 * k} AND {2500 * k + 9000}" for k in range(10)),
    ],
}


def answer_groups(database: str, name: str, delta: float) -> dict[str, Any]:
    import tacit

    policy = {
        "budget": {"epsilon": 10.0, "delta": 0.1},
        "tables": {"t": {"columns": {"zip": {"min": 0, "max": 39_999}}}},
    }
    with tacit.connect(database, policy=policy) as con:
        begin = time.perf_counter()
        con.explain(GROUPED[name], epsilon=1.0, delta=delta)
        explained = time.perf_counter()
        answers = con.answer(GROUPED[name], epsilon=1.0, delta=delta)
        answered = time.perf_counter()
        one = con.explain("SELECT count(*) FROM t", epsilon=1.0, delta=delta, refresh=True).df()["stderr"].iloc[0]
    stderr = float(answers.df()["stderr"].iloc[0] / one)
    return {"explain": explained - begin, "answer": answered - explained, "stderr": stderr}


def show_groups() -> None:
    line = "{:<34} {:>8} {:>10} {:>10} {:>8} {:>8}"
    print("\n" + line.format("from SQL", "δ", "explain s", "answer s", "stderr", "MB"))
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "groups.duckdb")
        child("groups data", database)
        for name in GROUPED:
            for delta in ("0", "1e-6"):
                found = child("groups", database, name, delta)
                figures = (f"{found['explain']:.1f}", f"{found['answer']:.1f}", f"{found['stderr']:.3f}")
                print(line.format(name, delta, *figures, found["memory"]), flush=True)


def grow(privacy: Any, along: str) -> list[dict[str, Any]]:
    """One line for each size: the first plan of a process loads what all share, and is made twice."""
    sizes = [(MIDDLE_QUERIES, n) for n in CELLS] if along == "cells" else [(m, MIDDLE_CELLS) for m in QUERIES]
    plan(ranges(*sizes[0]), privacy)
    return [{"m": m, "n": n, **plan(ranges(m, n), privacy)} for m, n in sizes]


def exponent(sizes: list[int], values: list[float]) -> float:
    """The p with value ∝ size^p that fits best."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def chart(sizes: list[int], series: dict[str, list[float]]) -> None:
    """Bars on a logarithmic scale, from the least value to the largest."""
    low, high = (f(v for values in series.values() for v in values) for f in (min, max))
    for name, values in series.items():
        for size, value in zip(sizes, values, strict=True):
            bar = 1 + round((WIDTH - 1) * float(np.log(value / low) / np.log(high / low)))
            print(f"  {name:<8} {size:>7,}  {'█' * bar} {value:.4g}")


def growth() -> None:
    line = "{:>8} {:>8} {:>8} {:>9} {:>12} {:>14} {:>10}"
    for along, size, fixed in (("cells", "n", f"m = {MIDDLE_QUERIES}"), ("queries", "m", f"n = {MIDDLE_CELLS:,}")):
        print(
            f"\nranges: growth with {size}, {fixed}\n"
            + line.format("kind", "m", "n", "CPU s", "strategy", "error", "gap")
        )
        found = {kind: child("grow", privacy, along) for kind, privacy in KINDS.items()}
        for kind, rows in found.items():
            for row in rows:
                figures = (f"{row['seconds']:.3f}", row["strategy"], f"{row['error']:.6g}", f"{row['gap']:.3%}")
                print(line.format(kind, row["m"], row["n"], *figures), flush=True)
        sizes = [row[size] for row in found["Laplace"]]
        for what in ("seconds", "error"):
            series = {kind: [row[what] for row in rows] for kind, rows in found.items()}
            powers = ", ".join(f"{size}^{exponent(sizes, values):.2f} ({kind})" for kind, values in series.items())
            print(f"\n{what}: like {powers}")
            chart(sizes, series)


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
        for kind, privacy in KINDS.items() if not parts or name in parts else ():
            show(text, kind, child("plan", name, privacy), pandas)
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
    if not parts or "groups" in parts:
        show_groups()
    if not parts or "growth" in parts:
        growth()


def run_child(args: list[str]) -> None:
    match args:
        case ["plan", name, privacy]:
            result: Any = plan(WORKLOADS[name][1](), privacy)
        case ["grow", privacy, along]:
            result = grow(privacy, along)
        case ["data", database]:
            import duckdb

            with duckdb.connect(database) as raw:
                raw.execute("CREATE TABLE t AS SELECT (i % 120)::INTEGER AS age FROM range(10000) AS r(i)")
            result = {}
        case ["groups data", database]:
            import duckdb

            with duckdb.connect(database) as raw:
                raw.execute("CREATE TABLE t AS SELECT (hash(i) % 40000)::INTEGER AS zip FROM range(100000) AS r(i)")
            result = {}
        case ["groups", database, name, delta]:
            result = answer_groups(database, name, float(delta))
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
