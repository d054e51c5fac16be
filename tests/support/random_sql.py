"""Random queries of the accepted grammar, for comparison with DuckDB."""

from __future__ import annotations

import random

NUMBERS = ["0", "1", "-1", "17", "18", "18.5", "65", "255", "256", "0.1", "1.10", "1.105", "2e0", "1.85e1", "1e-1",
           "9007199254740993", "9223372036854775807", "-3.5", "100000000000", "'18'", "NULL"]  # fmt: skip
TEXTS = ["''", "'a'", "'A'", "'é'", "'NY'", "'NJ'", "'CA'", "'it''s'", "'日本'", "'zz'", "NULL"]
DATES = ["'2024-01-01'", "DATE '2024-02-29'", "DATE '1969-12-31'", "'9999-12-31'", "DATE '0001-01-01'",
         "TIMESTAMP '2024-01-01 12:00:00'", "CAST('2024-12-31' AS DATE)", "DATE '2024-01-01' + INTERVAL 1 DAY",
         "NULL"]  # fmt: skip
TIMES = ["'2024-01-01'", "DATE '2024-01-01'", "TIMESTAMP '2024-01-01 12:00:00'", "'2024-02-29 23:59:59.999999'",
         "TIMESTAMP '1969-12-31 23:59:59'", "NULL"]  # fmt: skip
MOODS = ["'ok'", "'sad'", "'Happy'", "'none'", "NULL"]
TRUTHS = ["TRUE", "FALSE", "NULL", "'true'"]

POOLS = {
    "i": NUMBERS, "b": NUMBERS, "u": [n for n in NUMBERS], "h": NUMBERS, "d": NUMBERS, "f": NUMBERS, "n": NUMBERS,
    "k": NUMBERS, '"Odd Name"': NUMBERS, "s": TEXTS, '"select"': TEXTS, "p": TRUTHS, "da": DATES, "ts": TIMES,
    "e": MOODS,
}  # fmt: skip
MEASURES = {
    "i": (-10, 110), "b": (-1000, 1000), "u": (0, 100), "d": (-1.5, 20.25), "f": (0.0, 19.0), "n": (0, 18.5),
    "k": (0, 6),
}  # fmt: skip
KEYS = ["s", "e", "da", "k", '"Odd Name"', '"select"', "p", "i"]


def atom(rng: random.Random) -> str:
    column = rng.choice(list(POOLS))
    pool = POOLS[column]
    shape = rng.randrange(11)
    name = rng.choice([column, column.upper() if not column.startswith('"') else column, f"t.{column}"])
    if shape <= 3:
        return f"{name} {rng.choice(['=', '<>', '!=', '<', '<=', '>', '>='])} {rng.choice(pool)}"
    if shape == 4:
        return f"{rng.choice(pool)} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {name}"
    if shape == 5:
        return f"{name} {rng.choice(['', 'NOT '])}BETWEEN {rng.choice(pool)} AND {rng.choice(pool)}"
    if shape in (6, 7):
        items = ", ".join(rng.choice(pool) for _ in range(rng.randint(1, 4)))
        return f"{name} {rng.choice(['', 'NOT '])}IN ({items})"
    if shape == 8:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if shape == 9:
        return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {rng.choice(pool)}"
    return rng.choice(["p", "NOT p", "p IS TRUE", "p IS NOT FALSE", "TRUE", "NULL", "1 = 1", "(i < 5) IS NULL"])


def predicate(rng: random.Random, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.35:
        return atom(rng)
    if rng.random() < 0.2:
        return f"NOT ({predicate(rng, depth - 1)})"
    joined = f" {rng.choice(['AND', 'OR'])} ".join(predicate(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return f"({joined})"


def aggregate(rng: random.Random) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        return "COUNT(*)"
    if kind == 1:
        return f"count({rng.choice(list(POOLS))})"
    return f"{rng.choice(['SUM', 'avg'])}({rng.choice(list(MEASURES))})"


def query(rng: random.Random) -> tuple[str, list[str], list[str], str]:
    """(text, keys, aggregates, where)"""
    keys = rng.sample(KEYS, rng.choice([0, 0, 0, 1, 1, 2]))
    aggregates = [aggregate(rng) for _ in range(rng.randint(1, 2))]
    where = predicate(rng) if rng.random() < 0.9 else "TRUE"
    text = f"SELECT {', '.join(keys + aggregates)} FROM t WHERE {where}"
    if keys:
        text += f" GROUP BY {', '.join(keys)}"
    return text, keys, aggregates, where
