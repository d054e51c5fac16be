"""The generated scan against a plain GROUP BY of the same columns, in the same run.

    python benchmarks/scan.py [rows]

Prints, for 10, 100 and 1,000 cut points on one column, how many times as long the scan takes as (a) reading the columns
and (b) a plain GROUP BY over three columns takes on the same table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import duckdb
from tacit.sql import Catalog, Column, Table, compile_batch, open_source


def fastest(run: Callable[[], object], runs: int = 3) -> float:
    """Seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main(rows: int = 5_000_000) -> None:
    """Print the table."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT (hash(i) % 10000)::INTEGER AS a, (hash(i + 1) % 1000000) / 1000.0::DOUBLE AS d, "
        f"'name' || (hash(i + 2) % 50) AS s FROM range({rows}) n(i)"
    )
    source = open_source(connection)
    (schema,) = source.schema()
    catalog = Catalog((Table("t", tuple(Column(c.name, c.type, c.nullable) for c in schema.columns)),))
    read = fastest(lambda: connection.execute("SELECT sum(a), sum(d), max(s) FROM t").fetchall())
    plain = fastest(lambda: connection.execute("SELECT a // 100, d // 10, s, count(*) FROM t GROUP BY ALL").fetchall())
    print(f"{rows:,} rows; reading {read:.3f} s, plain GROUP BY {plain:.3f} s")
    print("cuts   column     scan s   × reading   × plain GROUP BY")
    for cuts in (10, 100, 1000):
        for name, query in (
            ("integer", [f"SELECT count(*) FROM t WHERE a < {10000 * k // cuts}" for k in range(1, cuts)]),
            ("double", [f"SELECT count(*) FROM t WHERE d < {1000 * k / cuts}" for k in range(1, cuts)]),
            ("text", [f"SELECT count(*) FROM t WHERE s = 'name{k}'" for k in range(1, min(cuts, 50))]),
        ):
            (scan,) = compile_batch(query, catalog).scans
            seconds = fastest(lambda scan=scan: source.count(scan, b""))  # type: ignore[misc]
            print(f"{cuts:5}  {name:8} {seconds:8.3f} {seconds / read:11.1f} {seconds / plain:18.2f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
