"""A census table: every total of a cube over three columns, in one release, and all of them agree.

python examples/census.py
"""

from __future__ import annotations

import duckdb
import tacit

REGIONS = ["north", "south", "east", "west"]
POLICY = {
    "budget": {"epsilon": 2.0, "delta": 1e-6},
    "tables": {
        "people": {
            "columns": {
                "region": {"values": REGIONS, "complete": True, "not_null": True},
                "sex": {"values": ["f", "m"], "complete": True, "not_null": True},
                "age_group": {"values": [0, 1, 2, 3, 4, 5], "complete": True, "not_null": True},
            }
        }
    },
}
CUBE = "SELECT region, sex, age_group, count(*) AS people FROM people GROUP BY CUBE (region, sex, age_group)"


def main() -> None:
    db = duckdb.connect()
    db.execute(
        f"CREATE TABLE people AS SELECT {REGIONS}[1 + i % 7 % 4] AS region, ['f', 'm'][1 + i % 2] AS sex, "
        "(i * 31 % 97 // 17)::INTEGER AS age_group FROM range(50000) r(i)"
    )
    with tacit.connect(db, policy=POLICY) as con:
        plan = con.explain(CUBE, epsilon=1.0, delta=1e-6)
        print(
            f"{len(plan.df())} figures over {len(plan.cells)} cells, at most {1 + plan.gap:.2f} times the least error"
        )
        frame = con.answer(CUBE, epsilon=1.0, delta=1e-6)[0].df
    whole = frame[frame["region"].isna() & frame["sex"].isna() & frame["age_group"].isna()]["people"].item()
    by_region = frame[frame["region"].notna() & frame["sex"].isna() & frame["age_group"].isna()]
    print(by_region[["region", "people"]].round().to_string(index=False))
    print(f"everybody: {whole:,.0f}; the regions add up to it: {abs(by_region['people'].sum() - whole) < 1e-6}")


if __name__ == "__main__":
    main()

# It prints, up to the noise:
# 105 figures over 48 cells, at most 1.54 times the least error
# region  people
#  north 14283.0
#  south 14290.0
#   east 14285.0
#   west  7142.0
# everybody: 50,000; the regions add up to it: True
