"""How long hostile statements and TPC-H's queries take to explain or to be refused; one second is the most wanted.

python benchmarks/hostile.py            every statement of tests/sql/hostile.py and tests/sql/tpch.py
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tacit import errors

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "sql"))
import hostile
import test_hostile
import tpch
from support.awkward import AWKWARD

LIMIT = 1.0
"""Seconds of processor time, that of the search for a strategy included."""


def main() -> int:
    corpora = {
        "hostile": (AWKWARD, test_hostile.POLICY, hostile.statements()),
        "TPC-H": (tpch.SCHEMA, tpch.POLICY, list(tpch.QUERIES)),
    }
    slow = 0
    for name, (schema, policy, statements) in corpora.items():
        taken: list[tuple[float, str]] = []
        with TemporaryDirectory() as folder:
            connection = test_hostile.Victim(Path(folder) / "v.duckdb", schema, policy).connection
            connection.explain("SELECT 1", epsilon=0.5)  # what is loaded once is not the statement's own cost
            for sql in statements:
                started = time.process_time()
                with suppress(errors.Error):
                    connection.explain(sql, epsilon=0.5)
                taken.append((time.process_time() - started, sql))
            connection.close()
        taken.sort(reverse=True)
        above = sum(seconds > LIMIT for seconds, _ in taken)
        slow += above
        median = taken[len(taken) // 2][0]
        print(f"{name}: {len(taken)} statements, median {median * 1e3:.1f} ms, {above} above {LIMIT:g} s; the slowest:")
        for seconds, sql in taken[:5]:
            print(f"  {seconds * 1e3:8.0f} ms  {' '.join(sql.split())[:90]!a}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
