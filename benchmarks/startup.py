"""What it costs to begin: CPU seconds of fresh processes, side by side, as multiples of ``import pandas``.

    python benchmarks/startup.py [rounds]

Every round starts each process once, so that all of them meet the same state of the machine; the median counts. Exits
with 1 if importing tacit costs more than 1.3 times what importing pandas does.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys

AT_MOST = 1.3
# An installed package is compiled. One that is worked on is compiled by its first import, if Python may write.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_TABLE = "import duckdb, tacit; db = duckdb.connect(); db.execute('CREATE TABLE t AS SELECT 1 AS x'); "
_CONNECT = _TABLE + "con = tacit.connect(db, epsilon=1.0); "
STEPS = {
    "import pandas": "import pandas",
    "import tacit; tacit.connect": "import tacit; tacit.connect",
    "import tacit.engine": "import tacit.engine",
    "  a table in memory": _TABLE,
    "  … and connect to it": _CONNECT,
    "  … and one private answer": _CONNECT + "con.answer('SELECT count(*) FROM t WHERE x < 2', epsilon=0.5)",
}


def seconds(code: str) -> float:
    """The CPU seconds of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=_ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main(rounds: int) -> int:
    for code in STEPS.values():
        seconds(code)  # compiled files and the disk's cache are there from now on
    measured: dict[str, list[float]] = {name: [] for name in STEPS}
    for _ in range(rounds):
        for name, code in STEPS.items():
            measured[name].append(seconds(code))
    medians = {name: statistics.median(values) for name, values in measured.items()}
    base = medians["import pandas"]
    for name, value in medians.items():
        print(f"{name:<28} {value:6.2f} s  {value / base:5.2f} × import pandas")
    return int(medians["import tacit; tacit.connect"] > AT_MOST * base)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
