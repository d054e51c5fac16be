"""How much compiling costs, as a multiple of what sqlglot needs to parse the same text, and how much memory.

python benchmarks/compile.py            1,000 queries of three predicates: the ratio; 10,000: the peak memory
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import sys
import time
from collections.abc import Callable

import sqlglot
from tacit.sql import Catalog, Column, Limits, Range, Table, compile_batch

CATALOG = Catalog(
    (
        Table(
            "visits",
            (
                Column("age", "INTEGER", True, Range(0, 120)),
                Column("state", "VARCHAR"),
                Column("income", "DOUBLE", True, Range(0.0, 250000.0)),
            ),
        ),
    )
)
STATES = ["NY", "NJ", "CA", "WA", "TX", "FL", "OR", "MA"]


def batch(count: int, rng: random.Random) -> list[str]:
    """Counting queries of three predicates each."""
    queries = []
    for _ in range(count):
        low = rng.randrange(0, 90, 5)
        states = ", ".join(f"'{state}'" for state in rng.sample(STATES, rng.randint(1, 3)))
        queries.append(
            f"SELECT count(*) FROM visits WHERE age BETWEEN {low} AND {low + rng.randrange(5, 30, 5)} "
            f"AND state IN ({states}) AND income < {rng.randrange(10, 110, 10)}000"
        )
    return queries


def fastest(work: Callable[[], object], rounds: int) -> float:
    """The least processor time of several rounds."""
    times = []
    for _ in range(rounds):
        gc.collect()
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--queries", type=int, default=1_000)
    options.add_argument("--many", type=int, default=10_000, help="queries of the memory run; 0 leaves it out")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    queries = batch(given.queries, random.Random(0))
    text = ";\n".join(queries)
    workload = compile_batch(text, CATALOG)
    parsing = fastest(lambda: sqlglot.parse(text, dialect="duckdb"), given.rounds)
    compiling = fastest(lambda: compile_batch(text, CATALOG), given.rounds)
    m, n = workload.matrix.shape
    print(f"{given.queries:,} queries → {m:,} × {n:,} matrix")
    print(f"sqlglot parses the text in {parsing * 1e3:.0f} ms, tacit compiles it in {compiling * 1e3:.0f} ms")
    print(f"ratio {compiling / parsing:.2f} (target: at most 4)")
    if given.many:
        many = compile_batch(batch(given.many, random.Random(1)), CATALOG, limits=Limits(characters=2_000_000))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        m, n = many.matrix.shape
        print(f"{given.many:,} queries → {m:,} × {n:,} matrix, peak {peak:,.0f} MB (target: under 1,024)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
