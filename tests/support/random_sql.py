"""Random queries of the accepted grammar, each with the text that DuckDB is asked for comparison.

The two texts differ in one respect only: inside SUM, AVG, VARIANCE and quantiles every column is written with its
clamp, and a sum over no rows is 0. Everything else, names, comments and parameters included, is the same text.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NUMBERS = ["0", "1", "-1", "17", "18", "18.5", "65", "255", "256", "0.1", "1.10", "1.105", "2e0", "1.85e1", "1e-1",
           "9007199254740993", "9223372036854775807", "-3.5", "100000000000", "'18'", "NULL"]  # fmt: skip
SMALL = ["0", "1", "-1", "2", "3", "7", "18", "0.5", "2.5", "1e1"]
TEXTS = ["''", "'a'", "'A'", "'é'", "'NY'", "'NJ'", "'CA'", "'it''s'", "'日本'", "'zz'", "NULL"]
PATTERNS = ["'%'", "''", "'a%'", "'%Y'", "'N_'", "'_'", "'%b'", "'%é%'", "'日%'", "'a\\%'"]
REGEXPS = ["'~|N'", "'^N'", "'[a-z]'", "'.'", "'^$'", "'a|b'", "'J$'"]
DATES = ["'2024-01-01'", "DATE '2024-02-29'", "DATE '1969-12-31'", "'9999-12-31'", "DATE '0001-01-01'",
         "TIMESTAMP '2024-01-01 12:00:00'", "CAST('2024-12-31' AS DATE)", "DATE '2024-01-01' + INTERVAL 1 DAY",
         "DATE '2024-01-31' - INTERVAL '1 month'", "NULL"]  # fmt: skip
TIMES = ["'2024-01-01'", "DATE '2024-01-01'", "TIMESTAMP '2024-01-01 12:00:00'", "'2024-02-29 23:59:59.999999'",
         "TIMESTAMP '1969-12-31 23:59:59'", "NULL"]  # fmt: skip
MOODS = ["'ok'", "'sad'", "'Happy'", "'none'", "NULL"]
TRUTHS = ["TRUE", "FALSE", "NULL", "'true'"]
OPERATORS = ["=", "<>", "!=", "<", "<=", ">", ">="]

CLAMPS: dict[str, tuple[float, float]] = {
    "i": (-10, 110), "b": (-1000, 1000), "u": (0, 100), "d": (-1.5, 20.25), "f": (0.0, 19.0), "n": (0, 18.5),
    "k": (0, 6), "w": (0, 50), "size": (1, 9),
}  # fmt: skip
EVERY: dict[str, tuple[int, int]] = {"i": (-10, 110), "u": (0, 100), "k": (0, 6), "size": (1, 9), '"Odd Name"': (0, 3)}
"""Columns of few enough whole numbers that each is on the grid of their quantiles, which are then DuckDB's own."""
POOLS = {
    "i": NUMBERS, "b": NUMBERS, "u": NUMBERS, "h": NUMBERS, "d": NUMBERS, "f": NUMBERS, "n": NUMBERS, "k": NUMBERS,
    '"Odd Name"': NUMBERS, "s": TEXTS, '"select"': TEXTS, "p": TRUTHS, "da": DATES, "ts": TIMES, "e": MOODS,
    "w": NUMBERS, "size": NUMBERS, "g": TEXTS, "zone": TEXTS, "pid": NUMBERS,
}  # fmt: skip
NUMERIC = {"i", "b", "u", "h", "d", "f", "n", "k", '"Odd Name"', "w", "size", "pid"}
TEXTUAL = {"s", '"select"', "g", "zone"}
MOMENTS = {"da", "ts"}
KEYS = {"s", "e", "da", "k", '"Odd Name"', '"select"', "p", "i", "g", "zone"}
OTHER = "CASE WHEN {0} IN ('NY', 'NJ', 'CA', 'never') THEN {0} WHEN {0} IS NOT NULL THEN 'other' END"
T_COLUMNS = ("i", "b", "u", "h", "d", "f", "n", "s", "p", "da", "ts", "e", "k", '"Odd Name"', '"select"')


@dataclass(frozen=True)
class Relation:
    """A FROM clause, the columns it offers as (text to write, bare name), and whether all values are declared ones."""

    text: str
    columns: tuple[tuple[str, str], ...]
    tidy: bool = False
    prefix: str = ""
    """A WITH clause."""

    def of(self, names: set[str]) -> list[tuple[str, str]]:
        """The columns among some names."""
        return [column for column in self.columns if column[1] in names]


@dataclass
class Asked:
    """One random query."""

    text: str = ""
    truth: str = ""
    """The same with clamps written out."""
    params: Any = None
    keys: list[int] = field(default_factory=list)
    """Where the SELECT list repeats the GROUP BY keys."""
    tolerances: list[float] = field(default_factory=list)
    """How far each output may be off: the fixed-point steps of the sums in it."""
    tidy: bool = False
    ordered: bool = False
    """Whether the rows come in a determined order."""


Pair = tuple[str, str, float]
"""(tacit's text, DuckDB's text, tolerance)."""


class Writer:
    """Writes one query."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.named = rng.random() < 0.5
        self.parameters = rng.random() < 0.15

    # relations

    def relation(self) -> Relation:
        """A table, a CTE, a derived table, a view or a join."""
        rng = self.rng
        kind = rng.choices(range(12), [40, 8, 8, 8, 8, 8, 8, 6, 6, 8, 5, 5])[0]
        name = rng.choice(["t", "t", "c", "c", "nothing"])
        stored = tuple((c, c) for c in T_COLUMNS)
        tidy = name == "c"
        if kind == 0:
            alias = rng.choice(["", " AS x", " y", ' AS "Quoted"'])
            label = {"": name, " AS x": "X", " y": "y", ' AS "Quoted"': '"Quoted"'}[alias]
            columns = tuple((rng.choice([c, c, f"{label}.{c}", c if c[0] == '"' else c.upper()]), c) for c in T_COLUMNS)
            return Relation(rng.choice([name, f"main.{name}"]) + alias, columns, tidy)
        plain = Relation(name, stored, tidy)
        if kind in (1, 2):
            where = f" WHERE {self.predicate(plain, 1)}" if rng.random() < 0.7 else ""
            shown = rng.sample(T_COLUMNS, 9)
            items = [f"{c} AS {c.strip(chr(34)).replace(' ', '_')}_x" if rng.random() < 0.2 else c for c in shown]
            names = [
                (item.rpartition(" ")[2] if " AS " in item else item, c) for item, c in zip(items, shown, strict=True)
            ]
            if rng.random() < 0.3:
                items, names = ["*"], list(stored)
            inner = f"SELECT {', '.join(items)} FROM {name}{where}"
            if kind == 1:
                return Relation("z", tuple(names), tidy, f"WITH z AS ({inner}) ")
            return Relation(f"({inner}) AS z", tuple(names), tidy)
        if kind == 3:
            extra = f"WITH a AS (SELECT * FROM {name} WHERE {self.atom(plain)}), z AS (SELECT * FROM a) "
            return Relation("z", stored, tidy, extra)
        if kind == 9:
            return self.renamed(name, tidy)
        if kind == 10:
            columns = (("c1", "i"), ('"c 2"', "k"), ("C3", "s"), ("c4", '"select"'), ("p", "p"))
            return Relation("listed", columns, tidy=True)
        if kind == 11:
            return Relation("side.seen", tuple((c, c) for c in ("i", "k", "s", "p")), tidy=True)
        if kind == 4:
            return Relation("adults", tuple((c, c) for c in ("i", "s", "k", "d", "p")))
        join = rng.choice(["JOIN", "LEFT JOIN", "INNER JOIN", "LEFT OUTER JOIN"])
        if kind in (5, 6):
            on = rng.choice(["t.k = places.k", "places.k = t.k", "t.k = places.k"]).replace("t.", f"{name}.")
            columns = tuple((f"{name}.{c}", c) for c in T_COLUMNS)
            return Relation(
                f"{name} {join} places ON {on}", (*columns, ("zone", "zone"), ("places.size", "size")), tidy
            )
        visits = tuple((f"visits.{c}", c) for c in ("pid", "k", "i", "da"))
        people = (("people.g", "g"), ("w", "w"))
        both = rng.choice(["JOIN people ON visits.pid = people.pid", "JOIN people USING (pid)"])
        if kind == 7:
            return Relation(f"visits {both}", (*visits, *people), True)
        more = f"visits {both} {join} places ON visits.k = places.k"
        return Relation(more, (*visits, *people, ("zone", "zone"), ("size", "size")), True)

    def renamed(self, name: str, tidy: bool) -> Relation:
        """Columns that exchange their names, seen through stars and through CTEs that are called like tables."""
        rng = self.rng
        shown = rng.sample(T_COLUMNS, 8)
        called = rng.sample(shown, 8)
        swap = f"SELECT {', '.join(f'{c} AS {n}' for c, n in zip(shown, called, strict=True))} FROM {name}"
        columns = tuple(zip(called, shown, strict=True))
        kind = rng.randrange(5)
        if kind == 0:
            return Relation("z", columns, tidy, f"WITH a AS ({swap}), z AS (SELECT * FROM a) ")
        if kind == 1:
            return Relation(name, columns, tidy, f"WITH {name} AS ({swap}) ")
        if kind == 2:
            return Relation("z", columns, tidy, f"WITH z AS ({swap}), {name} AS (SELECT size AS i FROM places) ")
        if kind == 3:
            inner = f"WITH {name} AS ({swap}) SELECT * FROM {name}"
            return Relation(f"({inner}) AS z", columns, tidy, f"WITH y AS (SELECT k FROM {name}) ")
        listed = f"SELECT {', '.join(shown)} FROM {name}"
        return Relation(f"({listed}) AS z({', '.join(called)})", columns, tidy)

    # expressions

    def number(self, r: Relation, depth: int = 1) -> str:
        """An expression that is a number."""
        rng = self.rng
        columns = r.of(NUMERIC)
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(columns)[0] if columns and rng.random() < 0.8 else rng.choice(SMALL)
        a, b, c = self.number(r, depth - 1), self.number(r, depth - 1), rng.choice(SMALL[1:])
        options: list[Callable[[], str]] = [
            lambda: f"{a} {rng.choice('+-*')} {b}", lambda: f"({a} - {b})", lambda: f"{a} / {c}",
            lambda: f"{a} // {rng.choice(['2', '3', '10'])}", lambda: f"{a} % 7", lambda: f"-{a}" if a[0] != "-" else a,
            lambda: f"abs({a})", lambda: f"round({a}, 1)", lambda: f"floor({a})", lambda: f"ceil({a})",
            lambda: f"sign({a})", lambda: f"sqrt(abs({a}))", lambda: f"coalesce({a}, {c})",
            lambda: f"nullif({a}, {c})", lambda: f"greatest({a}, {b})", lambda: f"least({a}, {c})",
            lambda: f"CASE WHEN {self.atom(r)} THEN {a} ELSE {b} END", lambda: f"CASE WHEN {self.atom(r)} THEN {a} END",
            lambda: f"CAST({a} AS DOUBLE)", lambda: f"TRY_CAST({a} AS INTEGER)", lambda: f"length({self.text(r, 0)})",
            lambda: f"strpos({self.text(r, 0)}, 'a')", lambda: f"TRY_CAST({self.text(r, 0)} AS INTEGER)",
            lambda: f"ln(abs({a}) + 1)", lambda: f"power({a}, 2)", lambda: f"if({self.atom(r)}, {a}, {b})",
            lambda: f"{a}::BIGINT",
        ]  # fmt: skip
        if r.of(MOMENTS):
            day = rng.choice(r.of(MOMENTS))[0]
            options += [
                lambda: f"extract(month FROM {day})", lambda: f"year({day})", lambda: f"day({day})",
                lambda: f"dayofweek({day})", lambda: f"date_part('year', {day})", lambda: f"quarter({day})",
                lambda: f"date_diff('day', DATE '2024-01-01', {day})",
            ]  # fmt: skip
        return f"({rng.choice(options)()})"

    def text(self, r: Relation, depth: int = 1) -> str:
        """An expression that is a text."""
        rng = self.rng
        columns = r.of(TEXTUAL)
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(columns)[0] if columns and rng.random() < 0.9 else rng.choice(TEXTS[:-1])
        a = self.text(r, depth - 1)
        options: list[Callable[[], str]] = [
            lambda: f"upper({a})", lambda: f"lower({a})", lambda: f"{a} || 'x'", lambda: f"substring({a}, 1, 2)",
            lambda: f"left({a}, 1)", lambda: f"right({a}, 1)", lambda: f"trim({a})", lambda: f"replace({a}, 'a', 'b')",
            lambda: f"reverse({a})", lambda: f"concat({a}, '-')", lambda: f"coalesce({a}, 'none')",
            lambda: f"CAST({self.number(r, 0)} AS VARCHAR)", lambda: f"ltrim({a})",
            lambda: f"CASE WHEN {self.atom(r)} THEN {a} ELSE 'no' END", lambda: f"nullif({a}, 'a')",
        ]  # fmt: skip
        if r.of({"da"}):
            day = r.of({"da"})[0][0]
            options += [lambda: f"strftime({day}, '%Y-%m')", lambda: f"monthname({day})", lambda: f"dayname({day})"]
        return rng.choice(options)()

    def moment(self, r: Relation) -> str:
        """An expression that is a date or a timestamp."""
        day = self.rng.choice(r.of(MOMENTS))[0]
        options = [f"date_trunc('month', {day})", f"{day} + INTERVAL 1 DAY", f"CAST({day} AS DATE)"]
        options += [f"last_day({day})", f"date_trunc('year', {day})", f"{day} - INTERVAL '2 months'"]
        return self.rng.choice(options)

    # conditions

    def constant(self, pool: list[str]) -> str:
        """A constant, sometimes as a parameter."""
        value = self.rng.choice(pool)
        if not self.parameters or self.rng.random() < 0.5 or not value.lstrip("-").isdigit():
            return value
        return f"⟪{value}⟫"

    def atom(self, r: Relation) -> str:
        """A condition without AND and OR."""
        rng = self.rng
        if rng.random() < 0.35:
            return self.odd(r)
        name, bare = rng.choice(r.columns)
        pool = POOLS[bare]
        shape = rng.randrange(11)
        if shape <= 3:
            return f"{name} {rng.choice(OPERATORS)} {self.constant(pool)}"
        if shape == 4:
            return f"{self.constant(pool)} {rng.choice(OPERATORS)} {name}"
        if shape == 5:
            between = f"{rng.choice(['', 'NOT '])}BETWEEN "
            return f"{name} {between}{self.constant(pool)} AND {self.constant(pool)}"
        if shape in (6, 7):
            items = ", ".join(self.constant(pool) for _ in range(rng.randint(1, 4)))
            return f"{name} {rng.choice(['', 'NOT '])}IN ({items})"
        if shape == 8:
            return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
        if shape == 9:
            return f"{name} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {self.constant(pool)}"
        truth = [c for c, n in r.columns if n == "p"]
        p = truth[0] if truth else "TRUE"
        return rng.choice([p, f"NOT {p}", f"{p} IS TRUE", f"{p} IS NOT FALSE", "TRUE", "NULL", "1 = 1",
                           f"({name} IS NULL) IS TRUE", f"coalesce({p}, FALSE)"])  # fmt: skip

    def odd(self, r: Relation) -> str:
        """A condition that is no comparison of one column with constants."""
        rng = self.rng
        a, op = self.number(r), rng.choice(OPERATORS)
        options: list[Callable[[], str]] = [
            lambda: f"{a} {op} {self.number(r)}", lambda: f"{a} {op} {rng.choice(SMALL)}",
            lambda: f"{a} BETWEEN {rng.choice(SMALL)} AND {rng.choice(SMALL)}", lambda: f"{a} IS NOT NULL",
            lambda: f"{a} IS DISTINCT FROM {self.number(r, 0)}", lambda: f"{a} IN (1, 2, {self.number(r, 0)})",
        ]  # fmt: skip
        if r.of(TEXTUAL):
            s = self.text(r)
            options += [
                lambda: f"{s} {rng.choice(['', 'NOT '])}LIKE {rng.choice(PATTERNS)}",
                lambda: f"{s} {rng.choice(['', 'NOT '])}ILIKE {rng.choice(PATTERNS)}",
                lambda: f"{s} {op} {self.text(r)}", lambda: f"{s} {op} {rng.choice(TEXTS)}",
                lambda: f"regexp_matches({s}, {rng.choice(REGEXPS)})", lambda: f"{s} SIMILAR TO {rng.choice(REGEXPS)}",
                lambda: f"starts_with({s}, 'N')", lambda: f"contains({s}, 'a')", lambda: f"{s} IN ('NY', 'no', 'A')",
                lambda: f"{s} LIKE '%!%%' ESCAPE '!'", lambda: f"{s} IS NULL",
            ]  # fmt: skip
        if r.of(MOMENTS):
            options += [
                lambda: f"{self.moment(r)} {op} {self.moment(r)}",
                lambda: f"{self.moment(r)} {op} DATE '2024-01-01'",
                lambda: f"{self.moment(r)} BETWEEN DATE '2024-01-01' AND DATE '2024-01-01' + INTERVAL '2 months'",
            ]
        if r.of({"d"}):
            options.append(lambda: f"{rng.choice(['isnan', 'isinf'])}({r.of({'d'})[0][0]})")
        return rng.choice(options)()

    def predicate(self, r: Relation, depth: int = 2) -> str:
        """A condition."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.4:
            return self.atom(r)
        if rng.random() < 0.2:
            return f"NOT ({self.predicate(r, depth - 1)})"
        word = rng.choice([" AND ", " OR ", " and /* a ' comment; */ ", " OR -- another ; one\n "])
        return f"({word.join(self.predicate(r, depth - 1) for _ in range(2))})"

    # aggregates

    def value(self, r: Relation) -> tuple[str, str, float] | None:
        """A summed expression, the same with clamps, and how wide its range is."""
        rng = self.rng
        columns = [c for c in r.columns if c[1] in CLAMPS]
        if not columns:
            return None

        def one() -> tuple[str, str, float]:
            name, bare = rng.choice(columns)
            low, high = CLAMPS[bare]
            cast = f"CAST({name} AS DOUBLE)"
            clamped = f"CASE WHEN {name} IS NOT NULL THEN greatest({low}, least({high}, {cast})) END"
            return name, clamped, max(abs(low), abs(high), high - low)

        (a, a2, wa), (b, b2, wb) = one(), one()
        c = rng.choice(["2", "0.5", "-3"])
        kind = rng.randrange(13)
        if kind <= 4:
            return a, a2, wa
        condition = self.atom(r)
        return [
            (f"CASE WHEN {condition} THEN {a} ELSE {c} END", f"CASE WHEN {condition} THEN {a2} ELSE {c} END", wa + 3),
            (f"CASE WHEN {condition} THEN 1 ELSE 0 END",) * 2 + (0.0,),
            (f"{c} * {a} + 1", f"{c} * ({a2}) + 1", 3 * wa + 1),
            (f"{a} * {b}", f"({a2}) * ({b2})", 2 * wa * wb),
            (f"-{a}", f"-({a2})", wa),
            (f"abs({a})", f"abs({a2})", wa),
            (f"coalesce({a}, {c})", f"coalesce({a2}, {c})", wa + 3),
            (f"({a} - {b}) / 4", f"(({a2}) - ({b2})) / 4", wa + wb),
        ][kind - 5]

    def filter(self, r: Relation) -> str:
        return f" FILTER (WHERE {self.predicate(r, 1)})" if self.rng.random() < 0.2 else ""

    def linear(self, r: Relation) -> Pair:
        """COUNT or SUM."""
        rng = self.rng
        kind = rng.randrange(6)
        if kind <= 1:
            count = f"{rng.choice(['COUNT(*)', 'count(*)', 'count()'])}{self.filter(r)}"
            return count, count, 0.0
        if kind == 2:
            what = self.number(r) if rng.random() < 0.3 else rng.choice(r.columns)[0]
            count = f"count({what}){self.filter(r)}"
            return count, count, 0.0
        if kind == 3:
            count = f"count_if({self.predicate(r, 1)})"
            return count, f"coalesce({count}, 0)", 0.0
        value = self.value(r)
        if value is None:
            return "count(*)", "count(*)", 0.0
        text, truth, width = value
        tail = self.filter(r)
        return f"SUM({text}){tail}", f"coalesce(sum({truth}){tail}, 0)", width * 1e-5

    def quantile(self, r: Relation) -> Pair | None:
        """A quantile of a column that has each of its values on the grid, or something computed from it."""
        rng = self.rng
        columns = [c for c in r.columns if c[1] in EVERY]
        if not columns:
            return None
        name, bare = rng.choice(columns)
        low, high = EVERY[bare]
        clamped = f"CASE WHEN {name} IS NOT NULL THEN greatest({low}, least({high}, CAST({name} AS INTEGER))) END"
        share = rng.choice(["0.5", "0.25", "0.9", "0.1", "0.333", "0", "1", "0.7"])
        down = rng.choice(["", " DESC", " ASC"])
        call = rng.choice(
            ["median({})", "min({})", "MAX({})", f"quantile_cont({{}}, {share})", f"quantile({{}}, -{share})",
             f"quantile_disc({{}}, {share})", f"percentile_cont({share}) WITHIN GROUP (ORDER BY {{}}{down})",
             f"percentile_disc({share}) WITHIN GROUP (ORDER BY {{}}{down})"]
        )  # fmt: skip
        tail = self.filter(r)
        wrap = rng.choice(["{}", "{}", "{}", "round({}, 1)", "{} + 1", "{} - min(⟨⟩)", "coalesce({}, -1)"])
        off = 0.11 if "round" in wrap else 1e-9
        one, two = (wrap.format(call.format(x) + tail).replace("⟨⟩", x) for x in (name, clamped))
        return one, two, off

    def output(self, r: Relation) -> Pair:
        """One item of the SELECT list."""
        rng = self.rng
        kind = rng.randrange(16)
        a, a2, ta = self.linear(r)
        quantile = self.quantile(r) if rng.random() < 0.1 else None
        if quantile is not None:
            return quantile
        if kind <= 6:
            return a, a2, ta
        if kind <= 9:
            value = self.value(r)
            if value is None:
                return a, a2, ta
            text, truth, width = value
            tail = self.filter(r)
            if kind == 7:
                name, scale = rng.choice([("variance", 1), ("var_pop", 1), ("stddev", 0), ("stddev_pop", 0)])
                off = 1e-4 * width * width if scale else 0.02 * width
                return f"{name}({text}){tail}", f"{name}({truth}){tail}", off + 1e-6
            wrap = rng.choice(["{}", "{}", "round({}, 2)", "coalesce({}, -1)", "{} + 1"])
            off = 1e-6 * width + (0.011 if "round" in wrap else 0.0) + 1e-9
            return wrap.format(f"AVG({text}){tail}"), wrap.format(f"avg({truth}){tail}"), off
        b, b2, tb = self.linear(r)
        if kind == 10:
            return f"{a} - 2 * {b} + 1", f"{a2} - 2 * {b2} + 1", ta + 2 * tb
        if kind == 11:
            return f"{a} / 19 + ({b}) / 8", f"{a2} / 19 + ({b2}) / 8", ta + tb
        if kind == 12:
            return f"100.0 * {a} / nullif(count(*), 0)", f"100.0 * {a2} / nullif(count(*), 0)", 100 * ta + 1e-6
        if kind == 13:
            case = "CASE WHEN count(*) > 20.5 THEN 'many' ELSE 'few' END"
            return case, case, 0.0
        if kind == 14:
            return f"abs({a})", f"abs({a2})", ta
        table = rng.choice(["t", "c", "nothing"])
        condition = self.atom(Relation(table, tuple((c, c) for c in T_COLUMNS)))
        inner = f"(SELECT count(*) FROM main.{table} WHERE {condition})"
        return f"{a} + {inner}", f"{a2} + {inner}", ta

    # queries

    def key(self, r: Relation) -> tuple[str, str] | None:
        """A GROUP BY key, and how DuckDB must write it."""
        rng = self.rng
        columns = r.of(KEYS)
        if not columns:
            return None
        name, bare = rng.choice(columns)
        if bare == "s":
            return name, OTHER.format(name)
        if rng.random() < 0.6:
            return name, name
        by = {
            "k": [f"{name} // 2", f"{name} % 3", f"{name} > 2", f"CASE WHEN {name} < 2 THEN 'low' ELSE 'high' END"],
            "i": [f"{name} // 10", f"CASE WHEN {name} < 18 THEN 'minor' WHEN {name} >= 65 THEN 'senior' END"],
            "da": [f"date_trunc('month', {name})", f"extract(day FROM {name})", f"dayname({name})"],
            "e": [f"upper(CAST({name} AS VARCHAR))", f"{name} = 'ok'", f"coalesce(CAST({name} AS VARCHAR), 'none')"],
            "p": [f"NOT {name}", f"coalesce({name}, FALSE)", f"CASE WHEN {name} IS NULL THEN 'nan'::DOUBLE ELSE 2 END"],
            "g": [f"lower({name})", f"ifnull({name}, 'nobody')"],
            "zone": [f"{name} || '!'", f"concat({name}, '!')"],
            '"select"': [f"length({name})", f"coalesce({name}, 'none')", f"CASE {name} WHEN 'x' THEN 1 ELSE '1' END"],
            '"Odd Name"': [f"{name} * 2 - 1", f"coalesce(nullif({name}, 2), -1)"],
        }  # fmt: skip
        expression = rng.choice(by[bare])
        return expression, expression

    def query(self) -> Asked:
        """A whole query."""
        rng = self.rng
        r = self.relation()
        keys: dict[str, str] = {}
        for _ in range(rng.choice([0, 0, 0, 1, 1, 1, 2])):
            key = self.key(r)
            if key is not None:
                keys[key[0]] = key[1]
        outputs = [self.output(r) for _ in range(rng.randint(1, 2))]
        where = f" WHERE {self.predicate(r)}" if rng.random() < 0.8 else ""
        if not keys and rng.random() < 0.06:
            return self.union(r, outputs[0], where)
        items: list[Pair] = [(text, truth, -1.0) for text, truth in keys.items()] + outputs
        rng.shuffle(items)
        aliased = [rng.random() < 0.4 for _ in items]
        names = [f"col_{i}" for i in range(len(items))]
        if keys and not any(aliased) and rng.random() < 0.2:
            aliased[next(i for i, item in enumerate(items) if item[2] < 0)] = True
        for i, item in enumerate(items):
            if item[2] >= 0 and aliased[i] and rng.random() < 0.3:  # called like a column that it is not
                names[i] = rng.choice(["i", "k", "s"])
        labels = [f" AS {name}" if chosen else "" for chosen, name in zip(aliased, names, strict=True)]
        select = [[item[side] + label for item, label in zip(items, labels, strict=True)] for side in (0, 1)]
        asked = Asked(tidy=r.tidy, keys=[i for i, item in enumerate(items) if item[2] < 0])
        asked.tolerances = [max(item[2], 0.0) for item in items]
        group, sets = self.group(items, aliased, names)
        if sets:  # a key that is left out and a key that is NULL look alike but for GROUPING
            for i in list(asked.keys):
                for side in (0, 1):
                    select[side].append(f"GROUPING({items[i][side]})")
                asked.keys.append(len(select[0]) - 1)
                asked.tolerances.append(0.0)
        tails = self.tail(asked, items, aliased, names, r) if rng.random() < 0.25 else ("", "")
        for side in (0, 1):
            text = f"{r.prefix}SELECT {', '.join(select[side])} FROM {r.text}{where}{group[side]}{tails[side]}"
            asked.text, asked.truth = (text, asked.truth) if side == 0 else (asked.text, text)
        return self.given(asked)

    def given(self, asked: Asked) -> Asked:
        """Write the parameters as ``$v1`` or ``?``, as tacit and DuckDB both take them."""
        values = [int(value) for value in re.findall("⟪(.*?)⟫", asked.text)]
        for name in ("text", "truth"):
            number = itertools.count(1)
            text = re.sub("⟪.*?⟫", lambda _, n=number: f"$v{next(n)}" if self.named else "?", getattr(asked, name))
            setattr(asked, name, text)
        if values:
            asked.params = {f"v{i}": v for i, v in enumerate(values, start=1)} if self.named else values
        return asked

    def group(self, items: list[Pair], aliased: list[bool], names: list[str]) -> tuple[tuple[str, str], bool]:
        rng = self.rng
        places = [i for i, item in enumerate(items) if item[2] < 0]
        if not places:
            return ("", ""), False
        style = rng.randrange(6)
        if style == 0:
            return (" GROUP BY ALL",) * 2, False
        if style == 1:
            return (f" GROUP BY {', '.join(str(i + 1) for i in places)}",) * 2, False
        if style == 2 and all(aliased[i] for i in places):
            return (f" GROUP BY {', '.join(names[i] for i in places)}",) * 2, False
        shape = "{}" if style <= 4 else rng.choice(["ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"])
        # sqlglot reads a comparison inside CUBE only in parentheses
        lists = [
            ", ".join(f"({items[i][side]})" if {">", "="} & set(items[i][side]) else items[i][side] for i in places)
            for side in (0, 1)
        ]
        return (f" GROUP BY {shape.format(lists[0])}", f" GROUP BY {shape.format(lists[1])}"), shape != "{}"

    def tail(
        self, asked: Asked, items: list[Pair], aliased: list[bool], names: list[str], r: Relation
    ) -> tuple[str, str]:
        """HAVING, ORDER BY and LIMIT, in a form that empty groups and equal rows cannot change."""
        rng = self.rng
        more = rng.choice(["", " AND count(*) < 40.5", " OR count(*) > 1000.5", " AND NOT count(*) BETWEEN 3 AND 7"])
        having = f" HAVING count(*) > 0{more}"
        named = [name for name, chosen, item in zip(names, aliased, items, strict=True) if chosen and _counts(item)]
        alias = named[-1] if named and names.count(named[-1]) == 1 else None
        keys = [item[0].rpartition(".")[2].strip('"').lower() for item in items if item[2] < 0]
        if alias and alias not in keys and rng.random() < 0.5:
            having = f" HAVING {alias} > 0.5"
        if not asked.keys:
            return (rng.choice([having, " LIMIT 5", " ORDER BY count(*)", " LIMIT 0"]),) * 2
        places = list(asked.keys)
        rng.shuffle(places)
        orders = [f"{i + 1}{rng.choice(['', ' ASC', ' DESC'])}{rng.choice(['', '', ' NULLS FIRST'])}" for i in places]
        if rng.random() < 0.5:
            orders.insert(0, rng.choice(["count(*)", "-count(*)", "count(*) DESC", "1000 - 2 * count(*)"]))
        if alias and rng.random() < 0.5:
            orders.insert(0, alias)
        limit = rng.choice(["", " LIMIT 3", " LIMIT 2 OFFSET 1", " LIMIT 0"]) if r.tidy else ""
        asked.ordered = True
        return (f"{having} ORDER BY {', '.join(orders)}{limit}",) * 2

    def union(self, r: Relation, first: Pair, where: str) -> Asked:
        first, second = (pair if "'many'" not in pair[0] else self.linear(r) for pair in (first, self.output(r)))
        parts = [
            f"{r.prefix}SELECT 'a' AS part, {first[side]} AS v FROM {r.text}{where} "
            f"UNION ALL SELECT 'b', {second[side]} FROM {r.text}"
            for side in (0, 1)
        ]
        return self.given(Asked(*parts, None, [0], [0.0, max(first[2], second[2])], r.tidy))


def _counts(item: Pair) -> bool:
    return item[0].lower() == "count(*)"


def query(rng: random.Random) -> Asked:
    """A random query."""
    return Writer(rng).query()
