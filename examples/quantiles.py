"""Quantiles: nine deciles cost what one does, and each has an interval.

python examples/quantiles.py
"""

from __future__ import annotations

import duckdb
import tacit

POLICY = {"budget": {"epsilon": 2.0}, "tables": {"calls": {"columns": {"minutes": {"min": 0, "max": 60}}}}}


def main() -> None:
    db = duckdb.connect()
    db.execute(
        "CREATE TABLE calls AS SELECT (60 * (i * 7919 % 1000 / 1000.0) ** 2)::INTEGER AS minutes FROM range(20000) r(i)"
    )
    deciles = ", ".join(f"quantile_disc(minutes, {p / 10}) AS p{p}0" for p in range(1, 10))
    with tacit.connect(db, policy=POLICY) as con:
        answers = con.answer(f"SELECT {deciles} FROM calls; SELECT median(minutes) AS half FROM calls", epsilon=0.5)
        for row in answers.df().itertuples():
            print(f"{row.column:<5} {row.value:>4.0f} minutes, between {row.low:.0f} and {row.high:.0f}")
        print("paid:", answers.cost.epsilon)


if __name__ == "__main__":
    main()

# It prints, up to the noise:
# p10      1 minutes, between 1 and 1
# p20      2 minutes, between 2 and 2
# p30      5 minutes, between 5 and 5
# p40     10 minutes, between 10 and 10
# p50     15 minutes, between 15 and 15
# p60     22 minutes, between 22 and 22
# p70     29 minutes, between 29 and 29
# p80     38 minutes, between 38 and 39
# p90     49 minutes, between 48 and 49
# half    15 minutes, between 15 and 15
# paid: 0.5
