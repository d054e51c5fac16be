"""What a question costs beside many releases about the same table: a new one, and one that was released before.

    python benchmarks/history.py [releases …]

Milliseconds of the processor, in a process that has answered before. The releases are ranges of three columns with
constants of their own, so that no two of them cut the table alike.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import duckdb
import tacit


def busy(run: Callable[[int], object], times: int = 7) -> float:
    """The median of a few runs, the first one left out, in milliseconds."""
    run(0)
    found = []
    for i in range(1, times + 1):
        start = time.process_time()
        run(i)
        found.append(time.process_time() - start)
    return 1000 * sorted(found)[times // 2]


def question(i: int) -> str:
    """A count that cuts one, two or three columns."""
    parts = [f"age < {20 + i * 7 % 60}", f"income > {1000 + i * 137 % 90_000}", f"visits >= {1 + i * 3 % 40}"]
    return f"SELECT count(*) FROM t WHERE {' AND '.join(parts[i % 3 :][: 1 + i % 2] or parts[:1])}"


def connection() -> tacit.Connection:
    """A table of 10,000 rows, and a budget that does not end."""
    raw = duckdb.connect()
    raw.execute(
        "CREATE TABLE t AS SELECT i % 90 AS age, i * 31 % 100000 AS income, i % 50 AS visits FROM range(10000) r(i)"
    )
    return tacit.connect(raw, policy={"budget": {"epsilon": 1e9}, "tables": {"t": {}}})


def main(sizes: tuple[int, ...] = (10, 100, 1000)) -> None:
    """Print the table."""
    con, made = connection(), 0
    for size in sizes:
        while made < size:
            con.answer(question(made), epsilon=0.01 + 1e-6 * made, refresh=True)
            made += 1
        new = busy(
            lambda i: con.answer(f"SELECT count(*) FROM t WHERE age < {i + 3} AND income < {777 + i}", epsilon=2.0)
        )
        known = busy(lambda _, old=size // 2: con.answer(question(old), epsilon=0.001))  # type: ignore[misc]
        print(f"beside {size:6,} related releases: new {new:8.1f} ms, known {known:8.1f} ms")


if __name__ == "__main__":
    main(tuple(int(argument) for argument in sys.argv[1:]) or (10, 100, 1000))
