"""Rows computed for each unit, lookups, key paths, distinct values: nobody moves more than is charged for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pytest
import tacit
from numpy.typing import NDArray
from tacit import Connection
from tacit.compiled_batch import units_of
from tacit.sql import ProductScan, compile_batch
from tacit.sql.refine import grid_of, subject_of
from tacit.sql.scan import Scan
from tacit.sql.wanted import wanted

from .cases import LONG, SALT

Rows = list[tuple[Any, ...]]
Database = dict[str, Rows]

SCHEMA = {
    "patients": "pid INTEGER, region VARCHAR, born INTEGER, day INTEGER",
    "visits": "pid INTEGER, day INTEGER, x DOUBLE, city VARCHAR",
    "labs": "pid INTEGER, day INTEGER, y INTEGER",
    "orders": "oid INTEGER, pid INTEGER, total DOUBLE",
    "lines": "lid INTEGER, oid INTEGER, qty INTEGER",
    "parts": "lid INTEGER, w INTEGER",
    "cities": "city VARCHAR, state VARCHAR, size INTEGER, day VARCHAR",
}
BOUNDS = {"patients": 1, "visits": 3, "labs": 2, "orders": 2, "lines": 3, "parts": 2}
UNITS = {"lines": "oid -> orders.pid", "parts": "lid -> lines.oid -> orders.pid"}
DOMAINS: dict[str, Any] = {
    **{name: {"min": 0, "max": 9} for name in ("x", "y", "total", "qty", "w")},
    "day": {"min": 0, "max": 3},
    "oid": {"min": 0, "max": 6},
    "city": {"values": ["a", "b", "c"]},
    "region": {"values": ["n", "s"]},
}
PEOPLE = 4

BY_UNIT = "SELECT pid, count(*) AS n, sum(x) AS s, avg(x) AS a, max(day) AS d, min(city) AS c FROM visits GROUP BY pid"
BY_KEY = "SELECT pid, day, count(*) AS n, sum(x) AS s FROM visits GROUP BY pid, day"
SHAPES = {
    "a row for each unit": f"SELECT count(*) FROM ({BY_UNIT}) WHERE n > 1 AND s > 0.6",
    "sums of units": f"SELECT sum(n), avg(n) FROM ({BY_UNIT}) WHERE d < 3",
    "groups of units": f"SELECT d, count(*) FROM ({BY_UNIT}) GROUP BY d",
    "a row for each unit and key": f"SELECT day, count(*), sum(n) FROM ({BY_KEY}) GROUP BY day",
    "units of units and keys": (
        f"SELECT count(*) FROM (SELECT pid, max(n) m, count(*) k FROM ({BY_KEY}) GROUP BY pid) WHERE m > 1"
    ),
    "keys of units": (
        "SELECT count(*) FROM (SELECT n, pid FROM (SELECT pid, count(*) n FROM visits GROUP BY pid) GROUP BY n, "
        "pid)"
    ),
    "a join inside": (
        "SELECT count(*) FROM (SELECT v.pid, count(*) n FROM visits v JOIN labs l ON v.pid = l.pid GROUP BY "
        "v.pid) WHERE n > 1"
    ),
    "a join inside, by key": (
        "SELECT count(*) FROM (SELECT v.pid, l.day, count(*) n FROM visits v JOIN labs l USING (pid) GROUP BY "
        "v.pid, l.day) WHERE n > 0"
    ),
    "a public table inside": (
        "SELECT count(*) FROM (SELECT v.pid, max(c.size) m FROM visits v JOIN cities c ON v.city = c.city GROUP "
        "BY v.pid) WHERE m > 1"
    ),
    "used twice": f"WITH g AS ({BY_UNIT}) SELECT count(*) FROM g a JOIN g b ON a.pid = b.pid WHERE a.n > 1",
    "used twice, by key": f"WITH g AS ({BY_KEY}) SELECT count(*) FROM g a JOIN g b ON a.pid = b.pid WHERE a.n >= b.n",
    "by key, with rows": f"SELECT count(*) FROM ({BY_KEY}) g JOIN labs l ON g.pid = l.pid AND g.day = l.day",
    "labels as names": (
        "SELECT count(*) FROM (SELECT j0.pid, j0.day FROM visits j0 GROUP BY j0.pid, j0.day) a JOIN cities b ON "
        "CAST(a.day AS VARCHAR) = b.city WHERE b.day = 'x' OR a.day > 1"
    ),
    "a view": "SELECT count(*) FROM busy WHERE top = 'a'",
    # the unit of a table that may have no match is NULL for some rows of a unit
    "the unit of an outer join": (
        "SELECT count(*) FROM (SELECT v.pid, p.pid AS q, count(*) n FROM visits v LEFT JOIN patients p ON v.pid = "
        "p.pid AND v.day = p.day GROUP BY v.pid, p.pid)"
    ),
    "distinct values of an outer join": (
        "SELECT count(DISTINCT p.pid) FROM visits v LEFT JOIN patients p ON v.pid = p.pid AND v.day = p.day"
    ),
    "a lookup": "SELECT count(*), sum(v.x) FROM patients p JOIN visits v ON v.pid = p.pid WHERE p.region = 'n'",
    "a lookup with a key": (
        "SELECT count(*) FROM visits v LEFT JOIN patients p ON v.pid = p.pid AND v.day = p.day WHERE p.region IS "
        "NULL"
    ),
    "a lookup from the right": "SELECT count(*) FROM patients RIGHT JOIN visits USING (pid) WHERE region = 'n'",
    "a computed lookup": (
        "SELECT count(*) FROM visits v JOIN (SELECT pid, max(day) d FROM labs GROUP BY pid) m ON v.pid = m.pid "
        "AND v.day = m.d"
    ),
    "a product and a lookup": (
        "SELECT count(*) FROM visits a JOIN visits b USING (pid) JOIN patients USING (pid) WHERE a.day < b.day"
    ),
    "an outer product": "SELECT count(*), count(l.y) FROM visits v LEFT JOIN labs l ON v.pid = l.pid WHERE v.day > 1",
    "units of an outer product": (
        "SELECT count(*) FROM (SELECT v.pid, count(l.y) n FROM visits v LEFT JOIN labs l ON v.pid = l.pid "
        "GROUP BY v.pid) WHERE n > 1"
    ),
    "distinct values of an outer product": (
        "SELECT count(DISTINCT l.y) FROM visits v LEFT JOIN labs l ON v.pid = l.pid"
    ),
    "an outer product that filters": (
        "SELECT count(*), count(l.y) FROM visits v LEFT JOIN labs l ON v.pid = l.pid AND l.y > 4"
    ),
    "an outer lookup that filters": (
        "SELECT count(*) FROM visits v LEFT JOIN patients p ON v.pid = p.pid AND p.region = 'n' WHERE p.pid IS NULL"
    ),
    "what an outer product computes": (
        "SELECT count(z), avg(z) FROM visits v LEFT JOIN (SELECT pid, coalesce(y, 0) AS z FROM labs WHERE y > 2) l "
        "ON v.pid = l.pid"
    ),
    "a chain of outer joins": (
        "SELECT c.state, count(l.y) FROM cities c LEFT JOIN visits v ON v.city = c.city LEFT JOIN labs l ON "
        "l.pid = v.pid GROUP BY c.state"
    ),
    "units in both": "SELECT count(*) FROM (SELECT pid FROM visits INTERSECT SELECT pid FROM labs WHERE y > 3)",
    "units in one alone": "SELECT count(*) FROM (SELECT pid FROM visits EXCEPT SELECT pid FROM labs)",
    "units in any": "SELECT count(*) FROM (SELECT pid FROM visits UNION SELECT pid FROM labs)",
    "rows below rows, joined": (
        "SELECT state, count(*), sum(n) FROM (SELECT city, x AS n FROM visits UNION ALL SELECT city, day FROM visits) "
        "JOIN cities USING (city) GROUP BY state"
    ),
    "windows beside ROLLUP": "SELECT city, count(*), max(count(*)) OVER () FROM visits GROUP BY ROLLUP (city)",
    "results beside groups": "SELECT city, avg(x) - (SELECT avg(x) FROM visits) AS d FROM visits GROUP BY city",
    "groups that are looked up": (
        "SELECT count(*) FROM visits WHERE pid IN (SELECT pid FROM labs GROUP BY pid HAVING sum(y) > 4)"
    ),
    "a key path that exists": (
        "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.oid = o.oid AND l.qty > 2)"
    ),
    "groups along a key path": (
        "SELECT count(*), sum(s) FROM orders o JOIN (SELECT oid, sum(qty) AS s FROM lines GROUP BY oid) g USING (oid)"
    ),
    "groups along a key path, looked up": (
        "SELECT count(*) FROM orders WHERE oid IN (SELECT oid FROM lines GROUP BY oid HAVING sum(qty) > 3)"
    ),
    "an outer key path": (
        "SELECT count(*) FROM orders o LEFT JOIN (SELECT oid, count(*) AS n FROM lines GROUP BY oid) g USING (oid) "
        "WHERE n IS NULL"
    ),
    "a key path": "SELECT count(*), sum(qty) FROM lines WHERE qty > 2",
    "two steps": "SELECT count(*), sum(w) FROM parts",
    "the table on the way": (
        "SELECT count(*) FROM parts t JOIN lines l ON t.lid = l.lid LEFT JOIN orders o ON l.oid = o.oid WHERE "
        "o.total > 3 OR l.qty > 4"
    ),
    "a lookup behind a key": (
        "SELECT count(*) FROM lines l JOIN orders o ON l.oid = o.oid JOIN patients p ON o.pid = p.pid WHERE "
        "p.region = 'n'"
    ),
    "groups of a key": "SELECT count(*) FROM (SELECT oid, sum(qty) s FROM lines GROUP BY oid) WHERE s > 3",
    "units behind a key": (
        "SELECT count(*) FROM (SELECT o.pid, sum(qty) s FROM lines l JOIN orders o ON l.oid = o.oid GROUP BY "
        "o.pid) WHERE s > 3"
    ),
    "distinct values": "SELECT count(DISTINCT city), sum(DISTINCT day) FROM visits",
    "distinct values of one row": "SELECT count(DISTINCT region) FROM patients",
    "distinct units": "SELECT city, count(DISTINCT pid) FROM visits GROUP BY city",
    "distinct values of a join": (
        "SELECT count(*) FROM (SELECT DISTINCT v.city, l.y FROM visits v JOIN labs l USING (pid))"
    ),
    "distinct keys of a path": "SELECT count(DISTINCT l.oid) FROM parts t JOIN lines l ON t.lid = l.lid",
    "distinct values of units": f"SELECT count(*) FROM (SELECT DISTINCT n FROM ({BY_UNIT}))",
    "distinct of distinct": "SELECT count(*) FROM (SELECT DISTINCT c FROM (SELECT DISTINCT city c, day FROM visits))",
    "exists": "SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM labs l WHERE l.pid = v.pid AND l.y > 4)",
    "not exists": "SELECT count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM labs l WHERE l.pid = v.pid AND y > 4)",
    "in a public table": "SELECT count(*) FROM visits WHERE city IN (SELECT city FROM cities WHERE size > 1)",
}  # fmt: skip


def connect(database: duckdb.DuckDBPyConnection, bounds: Mapping[str, int] = BOUNDS) -> Connection:
    tables: dict[str, Any] = {"cities": {"public": True, "version": "1"}}
    for name, most in bounds.items():
        names = [column.split()[0] for column in SCHEMA[name].split(", ")]
        columns = {column: DOMAINS[column] for column in names if column in DOMAINS}
        unit = {"privacy_unit": UNITS.get(name, "pid"), "max_rows_per_unit": most, "version": "1"}
        tables[name] = {**unit, "columns": columns}
    return tacit.connect(database, policy={"budget": {"epsilon": 10, "delta": 1e-6}, "tables": tables})


def random_rows(seed: int) -> Database:
    """Few units and keys, so that they meet: keys that are not unique, orphans, NULL, and numbers whose sums round."""
    rng = np.random.default_rng(seed)
    amounts = [None, float("nan"), float("inf"), 0.1, 0.2, 0.3, 1e16, -1e16, 1.7e308, 7.5]

    def whole(end: int) -> int | None:
        return None if rng.random() < 0.12 else int(rng.integers(end))

    def text(letters: str) -> str | None:
        return None if rng.random() < 0.12 else letters[int(rng.integers(len(letters)))]

    return {
        "patients": [(whole(PEOPLE), text("ns"), whole(6), whole(4)) for _ in range(8)],
        "visits": [
            (whole(PEOPLE), whole(4), amounts[int(rng.integers(len(amounts)))], text("abcd")) for _ in range(18)
        ],
        "labs": [(whole(PEOPLE), whole(4), whole(10)) for _ in range(12)],
        "orders": [(whole(7), whole(PEOPLE), whole(10)) for _ in range(10)],
        "lines": [(whole(8), whole(7), whole(10)) for _ in range(16)],
        "parts": [(whole(8), whole(10)) for _ in range(14)],
        "cities": [("a", "NY", 1, "x"), ("b", "NJ", 2, "y"), ("c", "NY", None, "2"), ("1", "CA", 1, "x")],
    }


def database_of(rows: Database, order: np.random.Generator | None = None) -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    for name, columns in SCHEMA.items():
        database.execute(f"CREATE TABLE {name} ({columns})")
        listed = rows[name]
        if order is not None:
            listed = [listed[place] for place in order.permutation(len(listed))]
        if listed:
            database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(listed[0]))})", listed)
    database.execute("CREATE VIEW busy AS SELECT pid, sum(day) AS days, max(city) AS top FROM visits GROUP BY pid")
    return database


def without(rows: Database, person: int, *, orphans: bool) -> Database:
    """All rows of one unit removed; those behind a key too, unless they stay as orphans that lead nowhere.

    A row that leads to several units stays: it belongs to the others as well.
    """
    left = {name: [row for row in listed if row[0] != person] for name, listed in rows.items() if name in _DIRECT}
    left["orders"] = [row for row in rows["orders"] if row[1] != person]
    left["cities"] = rows["cities"]
    owners = {line: {o[1] for o in rows["orders"] if o[0] == line[1] is not None} for line in rows["lines"]}
    alone = {person}
    left["lines"] = [line for line in rows["lines"] if orphans or owners[line] != alone]
    left["parts"] = [
        part
        for part in rows["parts"]
        if orphans or set().union(*(owners[line] for line in rows["lines"] if line[0] == part[0] is not None)) != alone
    ]
    return left


_DIRECT = ("patients", "visits", "labs")


def counts(
    rows: Database, texts: Sequence[str], order: int | None = None, *, rehearsed: bool = False
) -> list[list[tuple[Scan, NDArray[Any]]]]:
    """Of each text, what its scans of private rows count. What was ``rehearsed``, on no stored row, passes again."""
    database = database_of(rows, None if order is None else np.random.default_rng(order))
    counted = []
    with connect(database) as con:
        source, catalog = con._session.source, con.catalog
        for text in texts:
            scans: list[Scan] = []
            for scan in compile_batch(text, catalog).scans:
                if not rehearsed:
                    source.rehearse(scan)
                assert not isinstance(scan, ProductScan) and not scan.table.public
                scans.append(scan)
            counted.append([(scan, source.count(scan, SALT)) for scan in scans])
    return counted


SEEDS = range(40 if LONG else 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_removing_any_unit_moves_no_more_than_is_charged_for(seed: int) -> None:
    rows = random_rows(seed)
    here = counts(rows, list(SHAPES.values()))
    for person in range(PEOPLE):
        for orphans in (False, True):
            there = counts(without(rows, person, orphans=orphans), list(SHAPES.values()), rehearsed=True)
            for name, now, then in zip(SHAPES, here, there, strict=True):
                for (scan, x), (other, less) in zip(now, then, strict=True):
                    assert scan.fingerprint == other.fingerprint, name
                    assert np.abs(x - less).sum() <= scan.rows_per_unit * scan.one_row, name


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_depends_on_the_order_of_the_rows(seed: int) -> None:
    rows = random_rows(seed)
    texts = list(SHAPES.values())
    for name, now, then in zip(
        SHAPES, counts(rows, texts, rehearsed=True), counts(rows, texts, order=seed, rehearsed=True), strict=True
    ):
        for (_, x), (_, shuffled) in zip(now, then, strict=True):
            np.testing.assert_array_equal(x, shuffled, name)


def test_a_unit_of_many_rows_adds_as_many_as_are_charged_for() -> None:
    """One unit with more of everything than counts: the bounds are reached and not passed."""
    rows: Database = {
        "patients": [(1, "n", 1, day) for day in range(4)],
        "visits": [(1, day, 0.5, city) for day in range(4) for city in "abc"],
        "labs": [(1, day, day + 5) for day in range(4)],
        "orders": [(order, 1, 5.0) for order in range(6)],
        "lines": [(line, line % 6, line % 9) for line in range(12)],
        "parts": [(line, 1) for line in range(12)],
        "cities": [("a", "NY", 2, "x"), ("b", "NY", 3, "y")],
    }
    expected = {
        "a row for each unit": 1, "a row for each unit and key": 3, "a join inside": 1, "a lookup": 3, "a key path": 3,
        "two steps": 2, "the table on the way": 2, "units behind a key": 1, "distinct units": 3, "exists": 3,
        "the unit of an outer join": 3, "a product and a lookup": 9,
    }  # fmt: skip
    for name, ((scan, x), *_) in zip(SHAPES, counts(rows, list(SHAPES.values())), strict=True):
        assert x.sum() <= scan.rows_per_unit * scan.one_row, name
        if name in expected:
            assert scan.rows_per_unit == expected[name], name


def test_the_unit_of_a_table_without_a_match_is_no_group_of_one_row() -> None:
    """Grouped by it, a unit has two rows: one with the unit, and one with NULL. It cannot be a row for each unit."""
    joined = "visits v LEFT JOIN patients p ON v.pid = p.pid AND v.day = p.day"
    with connect(database_of(random_rows(0))) as con:
        with pytest.raises(tacit.SqlError):
            con.explain(f"SELECT count(*) FROM labs l JOIN (SELECT p.pid, count(*) n FROM {joined} GROUP BY p.pid) g "
                        "ON l.pid = g.pid", epsilon=1)  # fmt: skip
        with pytest.raises(tacit.SqlError):
            con.explain(f"SELECT count(*) FROM labs l WHERE EXISTS (SELECT 1 FROM {joined} WHERE p.pid = l.pid)",
                        epsilon=1)  # fmt: skip


NO_CONDITIONS = [
    "SELECT count(*) FROM (SELECT pid, count(*) n FROM visits WHERE city = 'zzz' AND city GROUP BY pid)",
    "SELECT count(*) FROM (SELECT pid, count(*) n FROM visits WHERE CASE WHEN city = 'zzz' THEN city END GROUP BY pid)",
    (
        "SELECT count(*) FROM (SELECT pid, count(*) FILTER (WHERE CASE WHEN city = 'zzz' THEN city END) FROM "
        "visits GROUP BY pid)"
    ),
    "SELECT count(DISTINCT day) FROM visits WHERE city = 'zzz' AND city",
    (
        "SELECT count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.pid = v.pid AND w.city = "
        "'zzz' AND w.city)"
    ),
]


@pytest.mark.parametrize("text", NO_CONDITIONS)
def test_what_is_no_condition_is_refused_and_fails_on_no_row(text: str) -> None:
    """DuckDB casts it to BOOLEAN row by row: whether that fails would tell whether a row has the value."""
    with connect(database_of(random_rows(0))) as con:
        with pytest.raises(tacit.SqlError):
            con.answer(text, epsilon=1)
        assert con.budget.spent.epsilon == 0


def test_a_public_key_behind_a_derived_table_must_be_unique() -> None:
    """Of several rows of a key one would be taken, and which one the threads decide."""
    rows = random_rows(0)
    rows["cities"] += [("a", "NJ", 9, "x")]
    with connect(database_of(rows)) as con:
        with pytest.raises(tacit.NotSupportedError, match="several rows"):
            con.answer(SHAPES["a public table inside"], epsilon=1)
        assert con.budget.spent.epsilon == 0


@pytest.mark.parametrize("orders", [{}, {"privacy_unit": "clerk", "max_rows_per_unit": 2}])
def test_a_path_leads_through_tables_of_the_same_unit(orders: dict[str, Any]) -> None:
    """Otherwise removing another unit's order would move the lines of this one: two times as far as is charged for."""
    database = duckdb.connect()
    database.execute("CREATE TABLE orders (oid INTEGER, pid INTEGER, clerk INTEGER); CREATE TABLE lines (oid INTEGER)")
    lines = {"privacy_unit": "oid -> orders.pid", "max_rows_per_unit": 2}
    tables = {"lines": lines, "orders": orders}
    with pytest.raises(tacit.PolicyError, match="leads through orders"):
        tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": tables})
    tables["orders"] = {"privacy_unit": "pid", "max_rows_per_unit": 2}
    tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": tables}).close()


def test_no_column_is_named_like_the_unit() -> None:
    database = duckdb.connect()
    database.execute('CREATE TABLE t (pid INTEGER, "Tacit Unit" INTEGER)')
    tables = {"t": {"privacy_unit": "pid", "max_rows_per_unit": 2}}
    with pytest.raises(tacit.PolicyError, match="tacit unit"):
        tacit.connect(database, policy={"budget": {"epsilon": 1}, "tables": tables})


def test_other_rows_have_another_subject() -> None:
    """Releases of different derived tables, bounds or conditions are never taken for one another."""
    inner = "SELECT pid, day, count(*) AS n FROM {} GROUP BY pid, day"
    texts = [
        inner.format("visits"),
        inner.format("visits WHERE city = 'a'"),
        inner.format("labs"),
        "SELECT v.pid, v.day, count(*) AS n FROM visits v JOIN labs l ON v.pid = l.pid GROUP BY v.pid, v.day",
        "SELECT pid, day, sum(day) AS n FROM visits GROUP BY pid, day",
        "SELECT DISTINCT day, 1 AS n FROM visits",
        "SELECT oid, count(*) AS n FROM lines GROUP BY oid",
    ]
    subjects: list[str] = []
    for bounds in (BOUNDS, {**BOUNDS, "labs": 5}, {**BOUNDS, "visits": 7}, {**BOUNDS, "lines": 4}):
        with connect(database_of(random_rows(0)), bounds) as con:
            for text in texts:
                (scan,) = compile_batch(f"SELECT count(*) FROM ({text})", con.catalog).scans
                subjects.append(subject_of(scan))
    here, labs, visits, lines = (subjects[i : i + len(texts)] for i in range(0, len(subjects), len(texts)))
    assert len(set(here)) == len(texts)
    changed = [[now != then for now, then in zip(here, other, strict=True)] for other in (labs, visits, lines)]
    assert changed[0] == [False, False, True, True, False, False, False]
    assert changed[1] == [True, True, False, True, True, True, False]
    assert changed[2] == [False] * 6 + [True]


def test_a_bound_inside_a_lookup_is_part_of_what_is_looked_up() -> None:
    pairs = "SELECT l.pid, l.day, count(*) n FROM labs l JOIN orders o ON l.pid = o.pid GROUP BY l.pid, l.day"
    lookup = f"SELECT count(*) FROM visits v JOIN (SELECT pid, max(n) m FROM ({pairs}) GROUP BY pid) g ON v.pid = g.pid"
    places = []
    for bounds in ({**BOUNDS, "labs": 4}, {**BOUNDS, "labs": 4, "orders": 3}):
        with connect(database_of(random_rows(0)), bounds) as con:
            (scan,) = compile_batch(f"{lookup} WHERE m > 2", con.catalog).scans
            assert isinstance(scan, Scan)
            places.append((scan.fingerprint, grid_of(scan).places))
    assert places[0][0] != places[1][0]
    assert not places[0][1] & places[1][1]


def test_a_sum_of_fractions_is_that_of_its_values() -> None:
    """0.1 + 1e16 - 1e16 is 0 or 0.1, as the order has it."""
    values = [0.1, 0.2, 0.3, 1e16, -1e16]
    asked = "SELECT count(*) FILTER (WHERE s < 0.05), count(*) FILTER (WHERE a > 0.1), count(*) FILTER (WHERE s > 0.5)"
    counted = set()
    for order in itertools.permutations(values):
        rows = {name: [] for name in SCHEMA} | {"visits": [(1, 1, x, "a") for x in order]}
        (((_, x),),) = counts(rows, [f"{asked} FROM ({BY_UNIT})"])
        counted.add(tuple(x.tolist()))
        if not LONG and order[0] == 0.2:
            break
    assert len(counted) == 1


@pytest.mark.parametrize("start", range(0, 50, 10))
def test_a_row_of_two_units_is_a_row_of_each(start: int) -> None:
    """Were it a row of one of them, removing that one would hand it to the other: rows would go, and others come."""
    rows: Database = {name: [] for name in SCHEMA}
    rows["orders"] = [(1, 1, 0.0), (1, 2, 0.0), (2, 1, 0.0)]
    rows["lines"] = [(start + line, 1 if line < 5 else 2, line) for line in range(10)]
    asked = ["SELECT qty, count(*) FROM lines GROUP BY qty"]
    (((scan, x),),) = counts(rows, asked)
    for person in (1, 2):
        (((_, less),),) = counts(without(rows, person, orphans=True), asked)
        assert np.abs(x - less).sum() <= scan.rows_per_unit == 3


def test_a_charge_names_the_units_of_the_tables_on_the_way() -> None:
    """They are what the ledger keeps a curator from changing under charges."""
    with connect(database_of(random_rows(0))) as con:
        parts = con.catalog.table("parts")
        assert parts is not None
        (scan,) = compile_batch(SHAPES["two steps"], con.catalog).scans
        looked_for = wanted("keys", parts, parts.columns[0])
        assert looked_for is not None
        for units in (units_of([scan]), units_of([looked_for.scan()])):
            assert units == {"parts": UNITS["parts"], "lines": UNITS["lines"], "orders": "pid"}


HOSTILE = [
    "SELECT (SELECT max(day) FROM visits UNION SELECT 1)",
    "SELECT * FROM query_table('visits')",
    "SELECT * FROM query('FROM visits')",
    "SELECT * FROM cities, LATERAL query('FROM visits')",
    "SELECT * FROM cities, LATERAL (SELECT pid FROM visits) v",
    "WITH cities AS (SELECT pid FROM visits) SELECT * FROM cities",
    "SELECT c.city FROM cities c WHERE EXISTS (SELECT 1 FROM visits v WHERE v.city = c.city)",
    "SELECT city FROM cities WHERE city IN (SELECT city FROM visits)",
    "SELECT city FROM cities UNION SELECT city FROM visits",
    "SELECT [x FOR x IN (SELECT list(pid) FROM visits)] FROM cities",
    "SELECT tacit_t0.city FROM tacit_t0",
    "SELECT * FROM tacit_c0",
    'SELECT * FROM "table 0"',
    "SELECT * FROM frame",
    "SELECT * FROM cities c, (VALUES ((SELECT max(day) FROM visits))) v(m)",
    "SELECT (FROM visits LIMIT 1) FROM cities",
    "SELECT visits FROM cities",
    "PIVOT visits ON city USING count(*)",
    "SUMMARIZE visits",
    "SELECT * FROM cities QUALIFY (SELECT count(*) OVER () FROM visits) > 0",
    "SELECT * FROM cities ORDER BY (SELECT min(day) FROM visits WHERE pid = 1 OFFSET 0)",
    "SELECT city FROM cities LIMIT (SELECT count(*) FROM visits)",
    "SELECT size FROM cities POSITIONAL JOIN visits",
    "SELECT * FROM cities ASOF JOIN visits ON cities.city >= visits.city",
    "SELECT unnest((SELECT list(pid) FROM visits))",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_reaches_a_private_row_unpaid(text: str) -> None:
    """It is refused, or it is answered at a price: nothing that names a private table is free."""
    with connect(database_of(random_rows(0))) as con:
        try:
            con.answer(text, epsilon=1)
        except tacit.Error as error:
            assert con.budget.spent.epsilon == 0 and "1e16" not in str(error)
        else:
            assert con.budget.spent.epsilon > 0
