# ruff: noqa: E501 (a statement stands on one line)
"""Random statements of the shapes that read several tables: joins, subqueries, rows of units, results of results.

Every text means the same to tacit and to DuckDB: no value of the clinic is outside of what its policy declares.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

CLINIC = """
CREATE TABLE patients (pid INTEGER PRIMARY KEY, city VARCHAR, sex VARCHAR, born INTEGER);
INSERT INTO patients SELECT r, [NULL, 'Rome', 'Oslo', 'Bern', 'Nice'][1 + r % 5], ['f', 'm', NULL][1 + r % 3],
    CASE WHEN r % 6 = 0 THEN NULL ELSE 1940 + (r * 7) % 60 END FROM range(23) AS rows(r);
CREATE TABLE visits (vid INTEGER PRIMARY KEY, pid INTEGER NOT NULL, dept VARCHAR, ward INTEGER, cost INTEGER);
INSERT INTO visits SELECT r, (r * 5) % 19, [NULL, 'eye', 'ear', 'skin'][1 + (r * 3) % 4], [1, 2, 3, NULL][1 + r % 4],
    CASE WHEN r % 7 = 3 THEN NULL ELSE (r * 13) % 40 END FROM range(47) AS rows(r);
CREATE TABLE tests (vid INTEGER NOT NULL, kind VARCHAR, result INTEGER);
INSERT INTO tests SELECT (r * 2) % 41, ['x', 'y', NULL, 'x'][1 + r % 4], CASE WHEN r % 5 = 0 THEN NULL ELSE r % 9 END
    FROM range(31) AS rows(r);
INSERT INTO tests SELECT * FROM tests WHERE vid < 6;
CREATE TABLE calls (pid INTEGER NOT NULL, dept VARCHAR, minutes INTEGER);
INSERT INTO calls SELECT (r * 3) % 21, ['eye', 'ear', NULL, 'skin', 'bone'][1 + r % 5], r % 12
    FROM range(29) AS rows(r);
CREATE TABLE cities (city VARCHAR PRIMARY KEY, region VARCHAR, size INTEGER);
INSERT INTO cities VALUES ('Rome', 'south', 9), ('Oslo', 'north', 3), ('Bern', NULL, 2), ('Lima', 'far', NULL);
CREATE TABLE depts (dept VARCHAR PRIMARY KEY, floor INTEGER, head VARCHAR);
INSERT INTO depts VALUES ('eye', 1, 'A'), ('ear', 2, 'B'), ('bone', 2, NULL), ('lab', NULL, 'A');
CREATE TABLE beds (dept VARCHAR, ward INTEGER, beds INTEGER, PRIMARY KEY (dept, ward));
INSERT INTO beds VALUES ('eye', 1, 10), ('eye', 2, 20), ('ear', 1, 5), ('ear', 3, 20), ('skin', 2, 7);
CREATE TABLE lists (name VARCHAR, n INTEGER);
INSERT INTO lists VALUES ('eye', 1), ('ear', 2), (NULL, 3), ('eye', NULL);
"""

POLICY = {
    "budget": {"epsilon": 1},
    "tables": {
        "patients": {
            "privacy_unit": "pid", "max_rows_per_unit": 1,
            "columns": {
                "pid": {"min": 0, "max": 30}, "born": {"min": 1940, "max": 2000}, "sex": {"values": ["f", "m"]},
                "city": {"values": ["Rome", "Oslo", "Bern", "Nice", "Pisa"]},
            },
        },
        "visits": {
            "privacy_unit": "pid", "max_rows_per_unit": 9,
            "columns": {
                "pid": {"min": 0, "max": 30}, "vid": {"min": 0, "max": 50}, "dept": {"values": ["eye", "ear", "skin"]},
                "ward": {"min": 1, "max": 4}, "cost": {"min": 0, "max": 40},
            },
        },
        "tests": {
            "privacy_unit": "vid -> visits.pid", "max_rows_per_unit": 30,
            "columns": {"kind": {"values": ["x", "y"]}, "result": {"min": 0, "max": 9}, "vid": {"min": 0, "max": 50}},
        },
        "calls": {
            "privacy_unit": "pid", "max_rows_per_unit": 9,
            "columns": {
                "dept": {"values": ["eye", "ear", "skin", "bone"]}, "minutes": {"min": 0, "max": 12},
                "pid": {"min": 0, "max": 30},
            },
        },
        "cities": {"public": True}, "depts": {"public": True}, "beds": {"public": True}, "lists": {"public": True},
    },
}  # fmt: skip


class Shapes:
    """Writes one statement."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def text(self) -> str:
        """A statement of a random shape."""
        return self.one(*SHAPES)(self)

    def one(self, *options: T) -> T:
        """One of several."""
        return self.rng.choice(options)

    def maybe(self, text: str, chance: float = 0.5) -> str:
        """A text, or none."""
        return text if self.rng.random() < chance else ""

    # parts

    def of_visits(self, v: str = "v") -> str:
        """A condition on visits."""
        n = self.rng.randrange(40)
        return self.one(
            f"{v}.cost > {n}", f"{v}.cost <= {n}", f"{v}.dept = 'eye'", f"{v}.dept IS NULL", f"{v}.dept <> 'ear'",
            f"{v}.ward IN (1, {n % 5})", f"{v}.cost IS NOT NULL", f"NOT ({v}.cost < {n} AND {v}.ward = 2)",
            f"{v}.cost BETWEEN 5 AND {n}", f"{v}.ward IS NULL OR {v}.cost > {n}",
        )  # fmt: skip

    def of_patients(self, p: str = "p") -> str:
        """A condition on patients."""
        n = 1940 + self.rng.randrange(60)
        return self.one(f"{p}.born > {n}", f"{p}.sex = 'f'", f"{p}.city IN ('Rome', 'Nice')", f"{p}.born IS NULL",
                        f"{p}.sex IS NULL OR {p}.born < {n}", f"{p}.city <> 'Oslo'")  # fmt: skip

    def of_depts(self, d: str = "d") -> str:
        """A condition on depts."""
        return self.one(f"{d}.floor = 2", f"{d}.head = 'A'", f"{d}.floor IS NULL", f"{d}.head IS NOT NULL",
                        f"{d}.floor < 5")  # fmt: skip

    def figures(self, v: str = "v") -> str:
        """A list of figures over visits."""
        options = [
            "count(*)", "count(*) AS n", f"sum({v}.cost)", f"sum({v}.cost) AS s", f"avg({v}.cost) AS a",
            f"count({v}.ward)", f"count(*) FILTER (WHERE {self.of_visits(v)}) AS f", f"count(DISTINCT {v}.pid) AS u",
            f"count(DISTINCT {v}.dept)", f"count_if({self.of_visits(v)}) AS c", f"count(DISTINCT {v}.cost) AS dc",
            f"sum(CASE WHEN {self.of_visits(v)} THEN 1 ELSE 0 END) AS cs", f"sum(DISTINCT {v}.cost) AS ds",
            f"count(DISTINCT {v}.ward) FILTER (WHERE {self.of_visits(v)}) AS df",
        ]  # fmt: skip
        return ", ".join(self.rng.sample(options, self.rng.randint(1, 3)))

    def where(self, *conditions: str) -> str:
        """Some conditions, or none."""
        kept = [self.one(c, f"({c})", f"NOT ({c})") for c in conditions if c and self.rng.random() < 0.6]
        return f" WHERE {self.one(' AND ', ' AND ', ' OR ').join(f'({c})' for c in kept)}" if kept else ""

    def grouped(self, keys: list[str], figures: str, source: str) -> str:
        """A SELECT with or without GROUP BY."""
        chosen = self.rng.sample(keys, self.rng.randint(0, min(2, len(keys))))
        if not chosen:
            return f"SELECT {figures} FROM {source}"
        aliased = [self.one(key, f"{key} AS k{i}") for i, key in enumerate(chosen)]
        by = self.one(
            ", ".join(chosen), ", ".join(str(i + 1) for i in range(len(chosen))), "ALL",
            ", ".join(a.rpartition(" AS ")[2] for a in aliased),
        )  # fmt: skip
        return f"SELECT {', '.join(aliased)}, {figures} FROM {source} GROUP BY {by}"

    # joins

    def visits_depts(self) -> str:
        """Visits with a public table, in any order and spelling."""
        on = "v.dept = d.dept"
        w = self.where(self.of_visits(), self.of_depts())
        source = self.one(
            f"visits v, depts d WHERE {on} AND ({self.of_visits()})",
            f"depts d, visits v WHERE d.dept = v.dept AND ({self.of_depts()})",
            f"depts d JOIN visits v ON {on}{w}", f"visits v LEFT JOIN depts d ON {on}{w}",
            f"depts d RIGHT JOIN visits v ON {on}{w}", f"visits v JOIN depts d USING (dept){w}",
            f"depts d NATURAL JOIN visits v{w}", f"visits v JOIN depts d ON {on} AND {self.of_depts()}{w}",
            f"visits v JOIN depts d ON {on} AND {self.of_visits()}{w}",
            f"visits v LEFT JOIN depts d ON {on} AND {self.of_depts()}{w}",
            f"visits v LEFT JOIN (SELECT * FROM depts WHERE {self.of_depts('depts')}) d ON {on}{w}",
            f"visits v, depts d WHERE ({on} AND {self.of_visits()}) OR ({on} AND {self.of_depts()})",
            f"(SELECT * FROM visits x WHERE {self.of_visits('x')}) v JOIN depts AS d ON {on}{w}",
            f"visits v LEFT JOIN depts d USING (dept){w}", f"depts d RIGHT JOIN visits v USING (dept){w}",
            f"visits v CROSS JOIN depts d WHERE {on}", f"visits v RIGHT JOIN depts d ON {on}{w}",
        )  # fmt: skip
        return self.clause(
            ["d.dept", "d.floor", "d.head", "v.dept", "v.ward", "d.floor + 1", "coalesce(d.floor, 7)"],
            self.figures(),
            source,
        )

    def clause(self, keys: list[str], figures: str, source: str) -> str:
        """A grouped SELECT; HAVING, ORDER BY and LIMIT are left to others."""
        return self.grouped(keys, figures, source)

    def kept(self) -> str:
        """A public table that keeps its rows without a match."""
        source = self.one("depts d LEFT JOIN visits v ON v.dept = d.dept", "depts d LEFT JOIN visits v USING (dept)",
                          "visits v RIGHT JOIN depts d ON d.dept = v.dept",
                          f"depts d LEFT JOIN visits v ON v.dept = d.dept AND {self.of_visits()}",
                          f"depts d LEFT JOIN (SELECT * FROM visits x WHERE {self.of_visits('x')}) v USING (dept)",
                          f"depts d LEFT JOIN visits v ON v.dept = d.dept AND {self.of_depts()}")  # fmt: skip
        figure = self.one(
            "count(*)", "count(v.vid) AS n", "count(d.floor)", "sum(v.cost) AS s", "sum(d.floor) AS f", "avg(v.cost)",
            "count(v.cost + d.floor)", "sum(coalesce(v.cost, 0)) AS z", "sum(coalesce(v.cost, 1)) AS z1", "count(d.dept)",
            "count(coalesce(v.cost, 0))", "sum(CASE WHEN v.cost > 9 THEN 1 ELSE 0 END)", "count(DISTINCT v.pid) AS u",
            "sum(CASE WHEN v.cost > 9 THEN 0 ELSE 1 END)", "count(DISTINCT d.floor)", "count_if(v.cost IS NULL)",
            "count_if(v.cost > 3)", f"count(*) FILTER (WHERE {self.of_visits()})", "count(1)", "max(v.ward)",
            "min(d.floor)", "count(DISTINCT coalesce(v.ward, 0))", "count(DISTINCT v.ward)", "avg(d.floor)",
            "count(CASE WHEN v.cost > 5 THEN d.floor END)", "median(v.ward)", "median(d.floor)", "sum(1)",
            "stddev(d.floor)", "count(v.dept)", "count(dept)", "sum(v.cost * d.floor) AS vf", "count(v.cost IS NULL)",
        )  # fmt: skip
        tail = self.one("", f" WHERE {self.of_depts()}", f" WHERE {self.of_visits()}", " WHERE v.vid IS NULL")
        return self.grouped(["d.dept", "d.floor", "d.head", "v.ward"], figure, source + tail)

    def kept_inside(self) -> str:
        """The same inside derived tables."""
        join = self.one("depts d LEFT JOIN visits v ON v.dept = d.dept", "visits v RIGHT JOIN depts d USING (dept)")
        return self.one(
            f"SELECT count(*) FROM (SELECT d.dept, v.cost FROM {join}) x",
            f"SELECT count(cost) FROM (SELECT d.floor, v.cost FROM {join}) x",
            f"SELECT count(floor), sum(cost) FROM (SELECT d.floor, v.cost FROM {join}) x",
            f"SELECT count(*) FROM (SELECT v.pid, count(*) AS n FROM {join} GROUP BY v.pid) x",
            f"SELECT count(pid) FROM (SELECT v.pid, count(*) AS n FROM {join} GROUP BY v.pid) x WHERE n > 1",
            f"SELECT count(*) FROM (SELECT DISTINCT d.floor FROM {join}) x",
            f"SELECT count(*) FROM (SELECT DISTINCT v.pid FROM {join}) x",
            f"SELECT x.dept, x.n FROM (SELECT d.dept, count(v.vid) AS n FROM {join} GROUP BY d.dept) x WHERE x.n >= 0",
            "SELECT p.sex, count(*) FROM patients p WHERE p.pid IN "
            f"(SELECT v.pid FROM {join} WHERE d.floor = 2) GROUP BY p.sex",
        )  # fmt: skip

    def two_private(self) -> str:
        """Two private tables, with and without a public one."""
        w = self.where(self.of_visits(), self.of_patients())
        source = self.one(
            f"visits v JOIN patients p ON p.pid = v.pid{w}", "patients p, visits v WHERE p.pid = v.pid",
            f"patients p JOIN visits v USING (pid){w}", f"visits v LEFT JOIN patients p ON v.pid = p.pid{w}",
            f"patients p NATURAL JOIN visits v{w}", "cities c, patients p, visits v WHERE p.pid = v.pid AND c.city = p.city",
            f"visits v JOIN patients p ON p.pid = v.pid AND {self.of_patients()}{w}",
            f"patients p LEFT JOIN visits v ON v.pid = p.pid{w}",
            f"patients p LEFT JOIN visits v ON v.pid = p.pid AND {self.of_visits()}{w}",
            f"patients p RIGHT JOIN visits v ON v.pid = p.pid{w}",
            f"visits v JOIN patients p ON p.pid = v.pid LEFT JOIN cities c ON c.city = p.city{w}",
            f"visits v JOIN calls x ON x.pid = v.pid JOIN patients p ON p.pid = v.pid{w}",
            f"visits v LEFT JOIN (SELECT * FROM patients q WHERE {self.of_patients('q')}) p ON v.pid = p.pid{w}",
            f"(SELECT * FROM patients q WHERE {self.of_patients('q')}) p RIGHT JOIN visits v ON v.pid = p.pid{w}",
            f"visits v LEFT JOIN patients p ON v.pid = p.pid AND {self.of_patients()}{w}",
            f"visits v JOIN calls x ON x.pid = v.pid AND x.dept = v.dept JOIN patients p ON p.pid = x.pid{w}",
            f"(SELECT pid, city, sex, born FROM patients q WHERE {self.of_patients('q')}) p JOIN visits v ON p.pid = v.pid",
        )  # fmt: skip
        keys = ["p.city", "p.sex", "v.dept", "v.ward"]
        if "cities" in source:
            keys += ["c.city", "c.region"]
        return self.grouped(keys, self.figures(), source)

    def several_public(self) -> str:
        """Groups of several public columns, and keys of several columns."""
        w = self.where(self.of_visits(), "b.beds > 6")
        source = self.one(
            f"visits v JOIN beds b ON b.dept = v.dept AND b.ward = v.ward{w}", f"visits v JOIN beds b USING (dept, ward){w}",
            "beds b, visits v WHERE b.ward = v.ward AND b.dept = v.dept", f"visits v LEFT JOIN beds b USING (dept, ward){w}",
            f"beds b NATURAL JOIN visits v{w}", f"visits v LEFT JOIN beds b ON b.dept = v.dept AND b.ward = v.ward{w}",
            f"visits v JOIN beds b ON b.dept = v.dept AND b.ward = v.ward JOIN depts d ON d.dept = b.dept{w}",
            f"visits v LEFT JOIN depts d ON d.dept = v.dept LEFT JOIN beds b ON b.dept = d.dept AND b.ward = v.ward{w}",
            f"visits v JOIN beds b ON b.dept = v.dept{w}", "visits v JOIN lists b ON b.name = v.dept",
            f"visits v JOIN (SELECT DISTINCT name AS dept, 7 AS beds FROM lists) b ON b.dept = v.dept{w}",
            f"visits v JOIN (SELECT dept, max(beds) AS beds, min(ward) AS ward FROM beds GROUP BY dept) b USING (dept){w}",
        )  # fmt: skip
        keys = ["v.ward", "v.dept", "b.beds"] + (["d.floor", "d.head"] if "depts d" in source else [])
        keys += ["b.dept", "b.ward"] if "beds b" in source and "lists" not in source else []
        return self.grouped(keys, self.figures(), source)

    def ctes(self) -> str:
        """CTEs with and without column lists, used once or twice."""
        return self.one(
            f"WITH x AS (SELECT pid, dept, ward, cost, vid FROM visits q WHERE {self.of_visits('q')}) "
            + self.grouped(["v.dept", "d.floor"], self.figures(), "x v JOIN depts d ON v.dept = d.dept"),
            f"WITH x(a, b, c) AS (SELECT pid, dept, cost FROM visits q WHERE {self.of_visits('q')}) "
            "SELECT b, count(*), sum(c) FROM x GROUP BY b",
            f"WITH x AS (SELECT * FROM visits q WHERE {self.of_visits('q')}), y AS (SELECT dept, sum(cost) AS s, "
            "count(*) AS n FROM x GROUP BY dept) SELECT y1.dept, y1.n, y2.s FROM y y1 JOIN y y2 ON y1.dept = y2.dept",
            f"WITH y AS (SELECT dept, count(*) AS n FROM visits v{self.where(self.of_visits())} GROUP BY dept) "
            "SELECT dept, n, n - (SELECT avg(n) FROM y) AS off FROM y",
            f"WITH y AS (SELECT dept, count(*) AS n FROM visits v{self.where(self.of_visits())} GROUP BY dept) "
            f"SELECT {self.one('sum(n)', 'max(n) AS m', 'count(*)', 'avg(n)', 'min(n), count(dept)')} FROM y",
            f"WITH y(d, n) AS (SELECT dept, count(*) FROM visits v{self.where(self.of_visits())} GROUP BY 1) "
            "SELECT depts.floor, sum(n) AS n FROM y JOIN depts ON depts.dept = y.d GROUP BY depts.floor",
            f"WITH x AS (SELECT * FROM visits), x2 AS (SELECT pid, cost FROM x v WHERE {self.of_visits()}) "
            "SELECT count(*), sum(cost), count(DISTINCT pid) FROM x2",
            f"WITH u AS (SELECT pid, count(*) AS n FROM visits v{self.where(self.of_visits())} GROUP BY pid) "
            "SELECT count(*) FROM u a JOIN u b ON a.pid = b.pid WHERE a.n > 1",
        )  # fmt: skip

    # rows of units

    def unit_rows(self) -> str:
        """Derived tables grouped by unit."""
        items = self.rng.sample([
            "count(*) AS n", "sum(cost) AS s", "min(cost) AS lo", "max(ward) AS hi", "avg(cost) AS a",
            "count(cost) AS c", f"count(*) FILTER (WHERE {self.of_visits()}) AS f", "count(DISTINCT dept) AS dd",
            f"bool_or({self.of_visits()}) AS bo", "max(dept) AS md", f"sum(cost) FILTER (WHERE {self.of_visits()}) AS sf",
            f"count_if({self.of_visits()}) AS ci", f"bool_and({self.of_visits()}) AS ba", "any_value(pid) AS av",
            "max(cost) - min(cost) AS spread", "coalesce(sum(cost), 0) AS z",
        ], self.rng.randint(1, 3))  # fmt: skip
        names = [item.rpartition(" ")[2] for item in items]
        having = self.maybe(
            f" HAVING {self.one('count(*) > 1', 'sum(cost) > 30', 'max(cost) < 35', 'count(*) = 0')}", 0.4
        )
        extra = self.one("", "", "dept", "ward")
        head, by = ("pid", "pid") if not extra else (f"pid, {extra}", self.one(f"pid, {extra}", f"{extra}, pid"))
        order = self.maybe(" ORDER BY pid", 0.15) + self.maybe(" LIMIT 5", 0.05)
        inner = f"SELECT {head}, {', '.join(items)} FROM visits v{self.where(self.of_visits())} GROUP BY {by}{having}{order}"
        name = self.one(*names)
        test = self.one(f"{name} IS NULL", f"{name} IS NOT NULL", "TRUE", "u.pid > 3")
        if name in ("n", "c", "f", "ci", "dd", "s", "lo", "hi"):
            test = self.one(test, f"{name} > 1", f"{name} = 2", f"{name} BETWEEN 1 AND 3")
        figure = self.one("count(*)", "count(*) AS k", f"count({name})", "count(DISTINCT u.pid)")
        if name in ("n", "c", "f", "ci", "dd", "s", "lo", "hi", "z", "sf"):
            figure = self.one(figure, f"sum({name})", f"avg({name}) AS av2", f"count(*), sum({name}) AS t")
        if self.rng.random() < 0.3:
            return self.grouped(
                ["p.sex", "p.city"],
                figure,
                f"({inner}) u {self.one('JOIN', 'LEFT JOIN')} patients p ON p.pid = u.pid WHERE {test}",
            )
        if self.rng.random() < 0.2:
            return self.grouped(
                ["p.sex", "p.city"],
                figure,
                f"patients p {self.one('JOIN', 'LEFT JOIN')} ({inner}) u ON p.pid = u.pid WHERE {test}",
            )
        keys = [k for k in ("n", "c", "f", "ci", "bo", "ba", "dd", extra) if k in (*names, extra) and k]
        return self.grouped(keys, figure, f"({inner}) u WHERE {test}")

    def two_unit_rows(self) -> str:
        """Two such tables joined."""
        join = self.one("JOIN", "LEFT JOIN", "JOIN")
        return (
            f"SELECT {self.one('count(*)', 'count(b.m)', 'sum(a.n)', 'sum(b.m) AS s', 'avg(b.m)')} FROM (SELECT pid, "
            f"count(*) AS n FROM visits v{self.where(self.of_visits())} GROUP BY pid) a {join} (SELECT pid, "
            f"{self.one('count(*)', 'sum(minutes)', 'max(minutes)')} AS m FROM calls{self.maybe(' WHERE minutes > 4')} "
            f"GROUP BY pid) b ON a.pid = b.pid{self.maybe(' WHERE a.n > 2')}"
        )

    def distinct_rows(self) -> str:
        """Distinct values as rows, and counted."""
        w = self.where(self.of_visits())
        return self.one(
            f"SELECT count(*) FROM (SELECT DISTINCT dept, ward FROM visits v{w}) x",
            f"SELECT dept, count(*) FROM (SELECT DISTINCT dept, pid FROM visits v{w}) x GROUP BY dept",
            f"SELECT count(DISTINCT pid), count(DISTINCT dept), count(*) FROM visits v{w}",
            f"SELECT ward, count(DISTINCT v.dept) AS n, sum(DISTINCT cost) FROM visits v{w} GROUP BY ward",
            f"SELECT count(DISTINCT p.city) FROM visits v JOIN patients p ON p.pid = v.pid{w}",
            f"SELECT d.floor, count(DISTINCT v.pid) FROM visits v JOIN depts d ON d.dept = v.dept{w} GROUP BY d.floor",
            f"SELECT d.floor, count(DISTINCT v.ward) FROM visits v LEFT JOIN depts d ON d.dept = v.dept{w} GROUP BY 1",
            f"SELECT avg(DISTINCT cost) AS a FROM visits v{w}", f"SELECT count(DISTINCT cost % 7) FROM visits v{w}",
            f"SELECT count(DISTINCT CASE WHEN ward > 1 THEN pid END) FROM visits v{w}",
            f"SELECT dept AS ward, count(DISTINCT ward) FROM visits v{w} GROUP BY dept",
            f"SELECT dept, count(DISTINCT pid) AS n FROM visits v{w} GROUP BY dept HAVING count(DISTINCT pid) > 2",
            f"SELECT dept, ward, count(DISTINCT pid) AS n FROM visits v{w} GROUP BY ROLLUP (dept, ward)",
            f"SELECT p.sex, count(DISTINCT v.pid), count(*) FROM patients p JOIN visits v USING (pid){w} GROUP BY p.sex",
            f"SELECT count(DISTINCT v.dept) FROM visits v JOIN calls c ON c.pid = v.pid{w}",
            f"SELECT count(DISTINCT x.d) FROM (SELECT coalesce(dept, 'none') AS d FROM visits v{w}) x",
        )  # fmt: skip

    # subqueries

    def member(self) -> str:
        """IN and EXISTS."""
        no = self.one("", "NOT ")
        inner = self.one(
            f"v.dept {no}IN (SELECT dept FROM depts)", f"v.dept {no}IN (SELECT name FROM lists)",
            f"v.dept {no}IN (SELECT name FROM lists WHERE n > 1)", f"v.dept {no}IN (SELECT dept FROM depts WHERE floor > 90)",
            f"v.pid {no}IN (SELECT pid FROM patients p WHERE {self.of_patients()})",
            f"v.pid {no}IN (SELECT c.pid FROM calls c WHERE c.minutes > 3)",
            f"{no}EXISTS (SELECT 1 FROM patients p WHERE p.pid = v.pid AND {self.of_patients()})",
            f"{no}EXISTS (SELECT * FROM depts d WHERE d.dept = v.dept AND {self.of_depts()})",
            f"{no}EXISTS (SELECT * FROM lists l WHERE l.name = v.dept)",
            f"{no}EXISTS (SELECT 1 FROM lists l WHERE l.name = v.dept AND l.n = v.ward)",
            f"{no}EXISTS (SELECT 1 FROM calls c WHERE c.pid = v.pid AND c.dept = v.dept)",
            f"v.pid {no}IN (SELECT x.pid FROM visits x WHERE {self.of_visits('x')})",
            f"v.dept {no}IN (SELECT c.dept FROM calls c WHERE c.pid = v.pid)",
            f"v.ward {no}IN (SELECT x.ward FROM visits x WHERE x.pid = v.pid AND x.vid <> 3)",
            f"v.ward {no}IN (SELECT x.ward FROM visits x WHERE x.pid = v.pid AND x.ward IS NOT NULL)",
            f"v.ward {no}IN (SELECT floor FROM depts)", "v.ward > (SELECT min(floor) FROM depts)",
            "v.cost > (SELECT avg(beds) FROM beds)", "v.ward = (SELECT max(n) FROM lists WHERE name = 'none')",
            f"(v.dept {no}IN (SELECT name FROM lists)) IS NULL", f"(v.dept {no}IN (SELECT c.dept FROM calls c)) IS NULL",
            f"v.vid {no}IN (SELECT t.vid FROM tests t)", f"{no}EXISTS (SELECT 1 FROM tests t WHERE t.vid = v.vid)",
            f"{no}EXISTS (SELECT 1 FROM tests t WHERE t.vid = v.vid AND t.result > 4)", f"{no}EXISTS (SELECT 1 FROM lists)",
            f"{no}EXISTS (SELECT 1 FROM depts WHERE floor > 90)", f"v.dept {no}IN (SELECT dept FROM calls)",
            f"v.dept {no}IN (SELECT p.city FROM patients p WHERE p.pid = v.pid)",
            f"v.pid {no}IN (SELECT p.born - 1940 FROM patients p WHERE p.pid = v.pid)",
            f"{no}EXISTS (SELECT count(*) FROM calls c WHERE c.pid = v.pid)",
            f"{no}EXISTS (SELECT max(n) FROM lists l WHERE l.name = v.dept)",
            f"v.pid + 1 {no}IN (SELECT n FROM lists)", "v.cost > (SELECT sum(n) FROM lists WHERE n > 90)",
            f"v.pid {no}IN (SELECT pid FROM visits GROUP BY pid HAVING count(*) > 2)",
            f"CASE WHEN v.dept {no}IN (SELECT name FROM lists) THEN v.cost > 5 ELSE v.cost < 9 END",
        )  # fmt: skip
        condition = self.one(inner, inner, f"{inner} AND {self.of_visits()}", f"({inner}) OR ({self.of_visits()})",
                             f"NOT ({inner})", f"NOT ({inner} AND {self.of_visits()})")  # fmt: skip
        if self.rng.random() < 0.2:
            return self.grouped(["v.dept", "v.ward"], f"count(*) FILTER (WHERE {inner}) AS f, count(*)", "visits v")
        if self.rng.random() < 0.1:
            return f"SELECT sum(CASE WHEN {inner} THEN 1 ELSE 0 END) FROM visits v"
        return self.grouped(["v.dept", "v.ward"], self.figures(), f"visits v WHERE {condition}")

    # results of results

    def released(self) -> str:
        """A derived table of groups."""
        w = self.where(self.of_visits())
        return self.one(
            f"SELECT dept, count(*) AS n, sum(cost) AS s FROM visits v{w} GROUP BY dept",
            f"SELECT dept, count(*) AS n, count(cost) AS s FROM visits v{w} GROUP BY dept HAVING count(*) > 3",
            f"SELECT dept, count(DISTINCT pid) AS n, count(*) AS s FROM visits v{w} GROUP BY ALL",
            f"SELECT d.dept, count(*) AS n, sum(v.cost) AS s FROM visits v JOIN depts d ON d.dept = v.dept{w} GROUP BY 1",
            f"SELECT v.dept, count(*) AS n, sum(cost) AS s FROM visits v{w} GROUP BY v.dept ORDER BY n DESC, v.dept LIMIT 2",
            f"SELECT dept, count(*) AS n, 0 AS s FROM calls WHERE minutes > {self.rng.randrange(14)} GROUP BY dept",
            "SELECT dept, count(*) AS n, sum(cost) AS s FROM visits v WHERE cost > 90 GROUP BY dept",
        )  # fmt: skip

    def over_groups(self) -> str:
        """A SELECT over released groups."""
        item = self.one(
            "n / 2 AS x", "n // 2 AS x", "n % 3 AS x", "s / n AS x", "s // nullif(n, 0) AS x", "n + 1", "round(n / 3, 1) AS x",
            "n * 100.0 / sum(n) OVER () AS x", "rank() OVER (ORDER BY n DESC) AS x", "n > 4 AS x", "CAST(n AS INTEGER) AS x",
            "CASE WHEN n > 5 THEN 'many' ELSE 'few' END AS x", "n - lag(n) OVER (ORDER BY dept) AS x", "-n AS x", "n",
            "upper(dept) AS x", "n / 0 AS x",
            "(n // 2) % 2 AS x", "n & 1 AS x", "n << 1 AS x", "n ^ 2 AS x", "sqrt(n) AS x",
        )  # fmt: skip
        g = self.released()
        return self.one(
            f"SELECT dept, {item}, n FROM ({g}) g", f"SELECT dept, {item}, n FROM ({g}) g{self.maybe(' WHERE n > 3')}",
            f"SELECT count(*) AS k, sum(n) AS t, max(s) AS m, avg(n) AS a FROM ({g}) g",
            f"SELECT d.floor, sum(g.n) AS t FROM ({g}) g JOIN depts d ON d.dept = g.dept GROUP BY d.floor",
            f"SELECT d.dept, g.n FROM depts d LEFT JOIN ({g}) g ON d.dept = g.dept",
            f"SELECT d.dept, coalesce(g.n, 0) AS n FROM depts d LEFT JOIN ({g}) g USING (dept) WHERE d.floor < 3",
            f"SELECT n, count(*) AS k FROM ({g}) g GROUP BY n", f"SELECT DISTINCT n > 6 AS big FROM ({g}) g",
            f"SELECT a.dept, a.n, b.n AS m FROM ({g}) a LEFT JOIN ({self.released()}) b ON a.dept = b.dept",
            f"SELECT * FROM ({g}) g WHERE n > (SELECT avg(n) FROM ({g}) h)", f"SELECT max(n) - min(n) FROM ({g}) g",
            f"SELECT count(*) FROM ({g}) g WHERE s IS NULL", f"SELECT sum(n) FILTER (WHERE dept = 'eye') AS e FROM ({g}) g",
            f"SELECT string_agg(dept, ',' ORDER BY dept) AS x FROM ({g}) g", f"SELECT count(DISTINCT n) FROM ({g}) g",
            f"SELECT count(dept) FROM ({g}) g", f"SELECT sum(n) // 2, sum(n) / 2, sum(n) % 4 AS r FROM ({g}) g",
        )  # fmt: skip

    def windows(self) -> str:
        """Windows over groups."""
        w = self.where(self.of_visits())
        window = self.one(
            "sum(count(*)) OVER () AS t", "rank() OVER (ORDER BY count(*) DESC) AS r", "count(*) * 1.0 / sum(count(*)) OVER () AS q",
            "sum(count(*)) OVER (ORDER BY dept NULLS LAST) AS c", "row_number() OVER (ORDER BY dept) AS i",
            "max(sum(cost)) OVER () AS m", "count(*) - avg(count(*)) OVER () AS d", "ntile(2) OVER (ORDER BY dept) AS h",
            "count(*) // 2 AS hf, count(*) OVER () AS k", "first_value(count(*)) OVER (ORDER BY dept) AS f",
        )  # fmt: skip
        tail = self.one("", "", " HAVING count(*) > 2", " QUALIFY rank() OVER (ORDER BY count(*) DESC) = 1", " ORDER BY dept",
                        " QUALIFY row_number() OVER (ORDER BY dept) <= 2")  # fmt: skip
        if self.rng.random() < 0.3:  # the total and the group of NULL are not told apart by an order of dept
            window = self.one("sum(count(*)) OVER (PARTITION BY grouping(dept)) AS t", "max(count(*)) OVER () AS m")
            return f"SELECT dept, count(*) AS n, {window} FROM visits v{w} GROUP BY {self.one('ROLLUP', 'CUBE')} (dept)"
        return f"SELECT dept, count(*) AS n, {window} FROM visits v{w} GROUP BY dept{tail}"

    def sets(self) -> str:
        """Set operations of released results."""
        word = self.one("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
        a, b = (f"SELECT dept, count(*) AS n FROM {t} GROUP BY dept" for t in ("visits", self.one("visits", "calls")))
        return self.one(
            f"{a} {word} {b}", f"SELECT dept FROM ({a}) x {word} SELECT dept FROM ({b}) y",
            f"SELECT dept FROM ({a}) x {word} SELECT dept FROM depts", f"SELECT count(*) FROM visits {word} SELECT count(*) FROM calls",
            f"SELECT 'v' AS t, count(*) AS n FROM visits v{self.where(self.of_visits())} UNION ALL SELECT 'c', count(*) FROM calls",
            "SELECT dept, count(*) AS n FROM visits GROUP BY dept UNION ALL SELECT 'all', count(*) FROM visits",
            f"{a} {word} {b} ORDER BY 1, 2 LIMIT 3", f"SELECT sum(n) FROM ({a} UNION ALL {b}) u",
            f"SELECT dept, sum(n) AS n FROM ({a} UNION ALL {b}) u GROUP BY dept",
        )  # fmt: skip

    def stacked_rows(self) -> str:
        """UNION ALL of private rows."""
        rows = (
            f"SELECT pid, dept, cost AS n FROM visits v{self.where(self.of_visits())} UNION ALL "
            f"SELECT pid, dept, minutes FROM calls{self.maybe(' WHERE minutes > 5')}"
        )
        figure = self.one("count(*)", "count(*) AS k, sum(n) AS s", "avg(n) AS a", "count(n)", "count(*) FILTER (WHERE n > 4) AS f",
                          "count_if(n > 9) AS c", "count(DISTINCT pid)", "sum(n) + count(*) AS z", "sum(n + 1)")  # fmt: skip
        tail = self.maybe(f" WHERE n > {self.rng.randrange(40)}", 0.4)
        return self.one(
            f"SELECT {figure} FROM ({rows}) u{tail}", f"SELECT dept, {figure} FROM ({rows}) u{tail} GROUP BY dept",
            f"SELECT u.dept AS d, {figure} FROM ({rows}) u{tail} GROUP BY d HAVING count(*) > 2",
            f"WITH u AS ({rows}) SELECT dept, {figure} FROM u{tail} GROUP BY 1",
            f"SELECT dept, count(*) AS k FROM ({rows}) u{tail} GROUP BY dept ORDER BY k DESC, dept LIMIT 2",
            f"SELECT d.floor, {figure} FROM ({rows}) u JOIN depts d ON d.dept = u.dept{tail} GROUP BY d.floor",
            f"SELECT floor, {figure} FROM depts d, ({rows}) u WHERE d.dept = u.dept GROUP BY floor",
            f"SELECT dept, {figure} FROM ({rows}) u{tail} GROUP BY ROLLUP (dept)",
            f"SELECT count(*) FROM (SELECT pid FROM visits v{self.where(self.of_visits())} "
            f"{self.one('UNION', 'INTERSECT', 'EXCEPT')} SELECT pid FROM calls{self.maybe(' WHERE minutes > 5')}) u",
        )  # fmt: skip

    def public(self) -> str:
        """Statements over public tables alone."""
        return self.one(
            "SELECT * FROM depts WHERE floor = 2", "SELECT head, count(*), avg(floor) FROM depts GROUP BY head",
            "SELECT d.dept, b.beds FROM depts d LEFT JOIN beds b USING (dept)", "SELECT count(*) FROM lists",
            "SELECT dept FROM depts EXCEPT SELECT name FROM lists", "SELECT name, n // 2, n / 2 FROM lists",
            "SELECT sum(beds) FROM beds WHERE dept IN (SELECT dept FROM depts WHERE floor = 1)", "SELECT 1 + 1, 'a' AS b",
            "WITH x(a) AS (SELECT floor FROM depts) SELECT count(a), max(a) FROM x", "SELECT count(*) FROM depts WHERE floor > 90",
            "SELECT dept, rank() OVER (ORDER BY beds) FROM beds WHERE ward = 1", "SELECT max(floor) FROM depts WHERE floor > 90",
        )  # fmt: skip

    def key_path(self) -> str:
        """Units through keys."""
        w = self.where("t.result > 3", "t.kind = 'x'")
        figure = self.one("count(*)", "sum(t.result) AS s", "count(t.kind)", "avg(t.result)", "count(DISTINCT t.kind)",
                          "count(DISTINCT t.vid)")  # fmt: skip
        source = self.one(
            f"tests t{w}", f"tests t JOIN visits v ON v.vid = t.vid{w}", "visits v, tests t WHERE t.vid = v.vid",
            f"tests t LEFT JOIN visits v ON t.vid = v.vid{w}", f"tests t JOIN visits v USING (vid){w}",
            f"tests t JOIN visits v ON v.vid = t.vid JOIN patients p ON p.pid = v.pid{w}",
            f"visits v LEFT JOIN tests t ON t.vid = v.vid{w}", f"tests t WHERE t.vid IN (SELECT vid FROM visits v WHERE {self.of_visits()})",
            f"tests t WHERE EXISTS (SELECT 1 FROM visits v WHERE v.vid = t.vid AND {self.of_visits()})",
            f"(SELECT vid, count(*) AS n, max(kind) AS kind, sum(result) AS result FROM tests GROUP BY vid) t{w}",
            f"(SELECT vid, count(*) AS n, max(kind) AS kind, sum(result) AS result FROM tests GROUP BY vid) t JOIN visits v ON v.vid = t.vid{w}",
            f"(SELECT v.pid, count(*) AS n, max(t.kind) AS kind, sum(t.result) AS result, max(t.vid) AS vid FROM tests t JOIN visits v "
            f"ON v.vid = t.vid GROUP BY v.pid) t{w}",
        )  # fmt: skip
        keys = ["v.dept"] if " v " in source and "SELECT" not in source else []
        return self.grouped(keys, figure, source)

    def names(self) -> str:
        """Aliases against columns, unnamed columns, DISTINCT and empty results."""
        w = self.where(self.of_visits())
        return self.one(
            f"SELECT ward AS dept, count(*) FROM visits v{w} GROUP BY ward", f"SELECT dept AS ward, count(*) FROM visits v{w} GROUP BY dept",
            f"SELECT ward + 1 AS ward, count(*) FROM visits v{w} GROUP BY ward", f"SELECT ward % 2 AS m, count(*) FROM visits v{w} GROUP BY m",
            f"SELECT ward % 2 AS ward, count(*) FROM visits v{w} GROUP BY 1", f"SELECT v.dept, count(*), COUNT(cost), Sum(cost) FROM visits v{w} GROUP BY v.dept",
            f"SELECT x.dept, x.count FROM (SELECT dept, count(*) AS count FROM visits v{w} GROUP BY dept) x",
            f"SELECT * FROM (SELECT dept, count(*), sum(cost) FROM visits v{w} GROUP BY dept) x",
            f"SELECT \"count_star()\" + 1 FROM (SELECT count(*) FROM visits v{w}) x",
            f"SELECT DISTINCT dept, count(*) AS n FROM visits v{w} GROUP BY dept",
            f"SELECT DISTINCT count(*) AS n FROM visits v{w} GROUP BY dept, ward",
            f"SELECT count(*) FROM (SELECT * FROM visits v{w} ORDER BY cost LIMIT 5) x",
            f"SELECT count(*) FROM (SELECT * FROM visits v{w} ORDER BY cost) x",
            f"SELECT sum(n) FROM (SELECT dept, count(*) AS n FROM visits v{w} GROUP BY dept ORDER BY n DESC, dept LIMIT 1) x",
            f"SELECT count(*) FROM (SELECT DISTINCT pid FROM visits v{w}) x", "SELECT count(*) FROM (SELECT DISTINCT * FROM tests) x",
            "SELECT n FROM (SELECT count(*) AS n FROM visits WHERE cost > 90) x WHERE n > 0",
            "SELECT max(n), count(*) FROM (SELECT ward, count(*) AS n FROM visits WHERE cost > 90 GROUP BY ward) x",
            f"SELECT a.n, b.n AS m, a.n / nullif(b.n, 0) AS q FROM (SELECT count(*) AS n FROM visits v{w}) a, (SELECT count(*) AS n FROM calls) b",
            f"SELECT (SELECT count(*) FROM visits v{w}) // 3 AS a, (SELECT count(*) FROM calls) / 2 AS b",
            f"SELECT count(*) // 3 AS a, count(*) % 5 AS b, count(*) / 4 FROM visits v{w}",
            f"SELECT sum(cost) // 7 AS a, sum(cost) % 5 AS b, avg(cost) // 2 AS c FROM visits v{w}",
            f"SELECT dept, ward, count(*) AS n FROM visits v{w} GROUP BY GROUPING SETS ((dept), (ward), ())",
        )  # fmt: skip


SHAPES: tuple[Callable[[Shapes], str], ...] = (
    Shapes.visits_depts, Shapes.visits_depts, Shapes.kept, Shapes.kept_inside, Shapes.two_private, Shapes.several_public,
    Shapes.ctes, Shapes.unit_rows, Shapes.unit_rows, Shapes.two_unit_rows, Shapes.distinct_rows, Shapes.member, Shapes.member,
    Shapes.over_groups, Shapes.over_groups, Shapes.windows, Shapes.sets, Shapes.stacked_rows, Shapes.public,
    Shapes.key_path, Shapes.names,
)  # fmt: skip


def statement(rng: random.Random) -> str:
    """A random statement."""
    return Shapes(rng).text()
