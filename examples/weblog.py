"""A web log: how many requests were answered within 50, 100, … 3,200 ms, and windows of the day.

    python examples/weblog.py

A cumulative distribution and thirty-two overlapping windows: each question asked alone would pay for itself, and
together they share what they ask.
"""

from __future__ import annotations

import duckdb
import tacit

WITHIN = [50 * i for i in range(1, 65)]
HOURS = [(start, start + length) for length in (6, 12) for start in range(25 - length)]


def main() -> None:
    db = duckdb.connect()
    db.execute(
        "CREATE TABLE requests AS SELECT (20 + 400 * (i * 7919 % 1000 / 1000.0) ** 4 * 8)::INTEGER AS ms, "
        "(i * 13 % 24)::INTEGER AS hour FROM range(80000) r(i)"
    )
    batch = [f"SELECT count(*) AS within_{ms} FROM requests WHERE ms <= {ms}" for ms in WITHIN]
    windows = [f"SELECT count(*) FROM requests WHERE hour >= {a} AND hour < {b}" for a, b in HOURS]
    with tacit.connect(db, epsilon=2.0) as con:
        for name, queries in (("cumulative distribution", batch), ("windows of the day", windows)):
            plan = con.explain(queries, epsilon=0.5)
            times = (plan.alternatives["split"] / plan.error) ** 0.5
            print(f"{name}: {len(queries)} queries, {times:.0f} times less noise than a split budget")
        counts = con.answer(batch, epsilon=0.5).df()["value"]
        con.answer(windows, epsilon=0.5)
        for ms in (100, 400, 1600):
            print(f"within {ms:>4} ms: {counts[WITHIN.index(ms)] / counts.iloc[-1]:.1%}")
        print("left:", con.budget.left.epsilon)


if __name__ == "__main__":
    main()

# It prints, up to the noise:
# cumulative distribution: 64 queries, 17 times less noise than a split budget
# windows of the day: 32 queries, 11 times less noise than a split budget
# within  100 ms: 39.9%
# within  400 ms: 58.9%
# within 1600 ms: 84.0%
# left: 1.0
