"""From SmartNoise SQL to tacit: the same metadata, the same query, side by side.

    python examples/from_smartnoise.py

The two cannot share a virtual environment (SmartNoise SQL needs older versions of pandas and OpenDP), so its half is
shown and not run:

    import snsql                                                    import tacit
    privacy = snsql.Privacy(epsilon=1.0, delta=1e-6)                policy = policy_from(metadata)
    reader = snsql.from_connection(                                 con = tacit.connect("pums.duckdb", policy=policy)
        connection, privacy=privacy, metadata="pums.yaml")
    reader.execute("SELECT … GROUP BY educ")                        con.answer("SELECT … GROUP BY educ", epsilon=1.0)

What is different: ε is the price of the whole batch and not of each column; the budget is kept in a ledger and cannot
be overspent; groups are declared (or bought with ``discover``) and empty ones come back too; every figure has an
interval.
"""

from __future__ import annotations

from typing import Any

import duckdb
import tacit

METADATA: dict[str, Any] = {  # what the YAML file of SmartNoise SQL holds: schema, table, columns
    "": {
        "PUMS": {
            "people": {
                "max_ids": 1,
                "row_privacy": False,
                "pid": {"type": "int", "private_id": True},
                "age": {"type": "int", "lower": 0, "upper": 100},
                "educ": {"type": "int", "lower": 1, "upper": 5},
                "income": {"type": "float", "lower": 0, "upper": 200000},
                "married": {"type": "boolean"},
            }
        }
    }
}


def policy_from(metadata: dict[str, Any], epsilon: float, delta: float = 0.0) -> dict[str, Any]:
    """The policy that says what the metadata says, with the budget that SmartNoise SQL leaves to its caller.

    ``lower`` and ``upper`` become ``min`` and ``max``, ``private_id`` the privacy unit, ``max_ids`` how many rows of
    one unit count. ``row_privacy`` makes every row a unit, which is tacit's default.
    """
    tables: dict[str, Any] = {}
    for schemas in metadata.values():
        for names in schemas.values():
            for name, table in names.items():
                columns = {key: value for key, value in table.items() if isinstance(value, dict)}
                bounds = {c: {"min": d["lower"], "max": d["upper"]} for c, d in columns.items() if "lower" in d}
                tables[name] = {"columns": bounds}
                units = [c for c, declared in columns.items() if declared.get("private_id")]
                if units and not table.get("row_privacy"):
                    tables[name] |= {"privacy_unit": units[0], "max_rows_per_unit": table.get("max_ids", 1)}
    return {"budget": {"epsilon": epsilon, "delta": delta}, "tables": tables}


def main() -> None:
    db = duckdb.connect()
    db.execute(
        "CREATE TABLE people AS SELECT i AS pid, (i * 37 % 80)::INTEGER AS age, (1 + i * 31 % 5)::INTEGER AS educ, "
        "(i * 7919 % 90000)::DOUBLE AS income, i % 3 = 0 AS married FROM range(10000) r(i)"
    )
    with tacit.connect(db, policy=policy_from(METADATA, epsilon=2.0)) as con:
        answers = con.answer(
            """
            SELECT educ, count(*) AS people FROM people GROUP BY educ ORDER BY educ;
            SELECT avg(income) AS average FROM people WHERE married AND age BETWEEN 30 AND 50
            """,
            epsilon=1.0,
        )
        print(answers[0].df.dropna().round().to_string(index=False))
        average = answers.df().iloc[-1]
        print(f"average income {average['value']:,.0f} ± {(average['high'] - average['low']) / 2:,.0f}")
        print("left:", con.budget.left.epsilon)


if __name__ == "__main__":
    main()

# It prints, up to the noise:
#  educ  people
#     1  1999.0
#     2  2004.0
#     3  1999.0
#     4  1999.0
#     5  2000.0
# average income 45,041 ± 1,452
# left: 1.0
