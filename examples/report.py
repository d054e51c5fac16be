"""A report of sums and averages, each with its error, and a budget that follows from the accuracy that is needed.

python examples/report.py
"""

from __future__ import annotations

import duckdb
import tacit

WARDS = ["surgery", "maternity", "cardiology"]
POLICY = {
    "budget": {"epsilon": 5.0},
    "tables": {
        "stays": {
            "privacy_unit": "patient",
            "max_rows_per_unit": 2,
            "columns": {
                "ward": {"values": WARDS, "complete": True, "not_null": True},
                "cost": {"min": 0, "max": 5000},
            },
        }
    },
}
REPORT = "SELECT ward, count(*) AS stays, sum(cost) AS cost, avg(cost) AS average FROM stays GROUP BY ward"


def main() -> None:
    db = duckdb.connect()
    db.execute(
        f"CREATE TABLE stays AS SELECT i // 2 AS patient, {WARDS}[1 + i % 3] AS ward, "
        "(i * 7919 % 4000)::DOUBLE + 250 AS cost FROM range(30000) r(i)"
    )
    with tacit.connect(db, policy=POLICY) as con:
        wanted = con.explain("SELECT ward, count(*) FROM stays GROUP BY ward", error=40, confidence=0.95)
        print(f"every count within ±40, 19 times out of 20, costs ε = {wanted.epsilon}")
        answers = con.answer(REPORT, epsilon=1.0)
        table = answers.df()
        for row in table[table["column"] != "stays"].itertuples():
            print(f"{row.group:<16} {row.column:<8} {row.value:>14,.0f} ± {(row.high - row.low) / 2:,.0f}")


if __name__ == "__main__":
    main()

# It prints, up to the noise:
# every count within ±40, 19 times out of 20, costs ε = 0.148
# ward=surgery     cost         22,496,325 ± 29,957
# ward=maternity   cost         22,516,711 ± 29,957
# ward=cardiology  cost         22,507,752 ± 29,957
# ward=surgery     average           2,250 ± 2
# ward=maternity   average           2,251 ± 2
# ward=cardiology  average           2,251 ± 2
