"""All pairs of 15 columns counted four ways, in the same run: CPU seconds, and how many times those of ``count_all``.

    python benchmarks/scan_sets.py [rows]

The ways: histograms over one stream of regions (``count_all``), GROUPING SETS over the same regions, a GROUP BY of all
columns that would then be added up (the adding is not counted), and a scan for each pair.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import combinations

import duckdb
from tacit.sql import Catalog, Column, Range, Table, compile_batch, open_source
from tacit.sql.backends.duckdb.scan_sql import render_rows
from tacit.sql.scan_sets import joint_scans

COLUMNS = [f"c{i}" for i in range(15)]


def cpu(run: Callable[[], object]) -> float:
    """CPU seconds of one run, all threads together."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main(rows: int = 1_000_000) -> None:
    """Print the table."""
    connection = duckdb.connect()
    values = ", ".join(f"(hash(i + {k}) % 10)::INTEGER AS {name}" for k, name in enumerate(COLUMNS))
    connection.execute(f"CREATE TABLE t AS SELECT {values} FROM range({rows}) n(i)")
    source = open_source(connection)
    catalog = Catalog((Table("t", tuple(Column(name, "INTEGER", False, Range(0, 9)) for name in COLUMNS)),))
    pairs = list(combinations(COLUMNS, 2))
    workload = compile_batch([f"SELECT {a}, {b}, count(*) FROM t GROUP BY ALL" for a, b in pairs], catalog)
    product = workload.tables[0].product
    assert product is not None
    scans = [product.scan.marginal(axes) for axes in product.column_sets]
    ((joint, _),) = joint_scans(scans)
    regions = render_rows(joint.rows, b"", lambda table, _: table.name)
    keys = [f"k{i}" for i in range(len(joint.rows.regions))]
    sets = ", ".join(f"({', '.join(keys[i] for i in wanted.columns)})" for wanted in joint.sets)

    def grouped(by: str) -> None:
        cursor = connection.cursor()
        cursor.execute("SET enable_optimizer = false")  # as every scan has it
        cursor.execute(f"SELECT {', '.join(keys)}, count(*) FROM ({regions}) GROUP BY {by}").fetchnumpy()

    ours = cpu(lambda: source.count_all(scans, b""))
    print(f"{rows:,} rows, {len(scans)} pairs")
    print(f"count_all          {ours:6.2f} s")
    for name, run in (
        ("GROUPING SETS", lambda: grouped(f"GROUPING SETS ({sets})")),
        ("GROUP BY all", lambda: grouped(", ".join(keys))),
        ("a scan per pair", lambda: [source.count(scan, b"") for scan in scans]),
    ):
        seconds = cpu(run)
        print(f"{name:18} {seconds:6.2f} s   × {seconds / ours:.1f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
