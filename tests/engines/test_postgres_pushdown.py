"""What PostgreSQL counts by itself is what the general way counts, on rows that are made to tell the two apart."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from decimal import Decimal

import numpy as np
import psycopg
import pytest
from tacit.errors import TypeMismatchError
from tacit.sql import Catalog, Column, Range, Table, compile_batch
from tacit.sql.backends.postgres.pushdown import pushed
from tacit.sql.backends.postgres.server import PostgresSource, open_postgres

SALT = b"salt"
COLUMNS = {
    "b": "bool", "i2": "int2", "i4": "int4", "i8": "int8", "f4": "float4", "f8": "float8", "n": "numeric(12, 2)",
    "long": "numeric(30, 8)", "free": "numeric", "s": "text", "v": "varchar(20)", "c": "char(4)", "e": "mood",
    "d": "date", "ts": "timestamp", "tz": "timestamptz", "u": "uuid", "t": "time", "dom": "age",
}  # fmt: skip
NUMBERS = ["-1", "0", "1", "2", "18", "100"]
VALUES = {
    "b": ["true", "false"],
    "i2": [*NUMBERS, "32767", "-32768"],
    "i4": [*NUMBERS, "2147483647", "-2147483648"],
    "i8": [*NUMBERS, "9223372036854775807", "-9223372036854775808", "9007199254740993"],
    "f4": [*NUMBERS, "NaN", "Infinity", "-Infinity", "-0.0", "1e-45", "3.4e38", "0.1", "16777217"],
    "f8": [*NUMBERS, "NaN", "Infinity", "-Infinity", "-0.0", "5e-324", "-5e-324", "1.7976931348623157e308", "0.1",
           "-1.7976931348623157e308", "0.5", "2.5", "1e-300", "99.99999999999999", "2.2250738585072014e-308"],
    "n": [*NUMBERS, "NaN", "9999999999.99", "-9999999999.99", "1.10", "1.11", "0.01"],
    "long": [*NUMBERS, "NaN", "1234567890123456789012.12345678", "0.00000001"],
    "free": [*NUMBERS, "NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "-1e-320", "0.1",
            "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "2.2250738585072013e-308"],
    "s": ["", "a", "A", "é", "z😀", "NY", "ny", "a\nb", '"', "\\", "\\N", "it's", "a ", " a", "\x01", "%s", "日本",
          "x" * 9000, "\t", "\r\n", "NaN", "ÿ", "\uffff", "\U0001f600"],
    "v": ["", "a", "b", "é", "ab "],
    "c": ["", "a", "ab", "abcd", "a b", " a"],
    "e": ["ok", "sad", "Happy"],
    "d": ["2024-01-01", "1969-12-31", "0001-01-01", "9999-12-31", "5874897-12-31", "4714-11-24 BC", "0044-03-15 BC",
          "infinity", "-infinity", "10000-01-01"],
    "ts": ["2024-01-01 12:00:00", "2024-01-01 12:00:00.000001", "1969-12-31 23:59:59.999999", "infinity", "-infinity",
           "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999", "294247-01-10 04:00:54.775805",
           "294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775807", "0001-01-01", "9999-12-31 23:59:59.999999",
           "10000-01-01"],
    "tz": ["2024-01-01 12:00:00+00", "infinity", "-infinity", "294276-12-31 23:59:59.999999+00",
           "0044-03-15 00:00Z BC"],
    "u": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "t": ["00:00:00", "23:59:59.999999", "24:00:00"],
    "dom": ["0", "18", "120"],
}  # fmt: skip
ASKED_NUMBERS = ["-1", "0", "1", "18", "18.5", "0.1", "1.10", "1.105", "1e-300", "9007199254740993", "1e308", "'nan'",
                 "'inf'", "'-inf'", "5e-324", "16777217"]  # fmt: skip
ASKED_TEXTS = ["''", "'a'", "'A'", "'é'", "'ok'", "'ab'", "'ab '", "'NY'", "'it''s'", "'z😀'", "'日本'", "'\\N'", "'ÿ'",
               "'x'"]  # fmt: skip
CONSTANTS = {
    **{name: ASKED_NUMBERS for name in ("i2", "i4", "i8", "f4", "f8", "n", "long", "free", "dom")},
    **{name: ASKED_TEXTS for name in ("s", "v", "c", "e")},
    "d": ["DATE '2024-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'", "TIMESTAMP '2024-01-01 12:00:00'"],
    "ts": ["TIMESTAMP '2024-01-01 12:00:00'", "DATE '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'",
           "TIMESTAMP '1969-12-31 23:59:59.999999'"],
    "b": ["true", "false"],
}  # fmt: skip
CLAMPS = {
    "i2": [(-1, 18)], "i4": [(0, 100), (-(2**31), 2**31)], "i8": [(0, 2**60), (-(2**53), 2**53 + 2)],
    "f4": [(0, 0.1), (-1, 3e38)], "f8": [(0, 1), (-1e-100, 1e-100), (-1e20, 1e19), (0.1, 0.3), (0, 2**31)],
    "n": [(0, Decimal("1.11")), (-1, 3)], "long": [(0, 3)], "free": [(0, 1), (-1, 1e20)],
}  # fmt: skip


@pytest.fixture(scope="module")
def source(new_database: Callable[[], str]) -> Iterator[PostgresSource]:
    url, rng = new_database(), random.Random(7)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('ok', 'sad', 'Happy')")
        connection.execute("CREATE DOMAIN age AS int4 CHECK (VALUE >= 0 AND VALUE <= 120)")
        connection.execute(f"CREATE TABLE t ({', '.join(f'{name} {type_}' for name, type_ in COLUMNS.items())})")  # type: ignore[arg-type]
        with connection.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
            for _ in range(500):
                copy.write_row([rng.choice([*VALUES[name], None]) for name in COLUMNS])
    opened = open_postgres(url)
    yield opened
    opened.close()


def catalog_of(source: PostgresSource, clamps: dict[str, Range]) -> Catalog:
    return Catalog(
        tuple(
            Table(t.name, tuple(Column(c.name, c.type, c.nullable, clamps.get(c.name)) for c in t.columns), path=t.path)
            for t in source.schema()
        )
    )


def both_ways(source: PostgresSource, sql: str, catalog: Catalog) -> bool:
    """Whether PostgreSQL counted the scan; fails where the two ways differ."""
    (part,) = compile_batch(sql, catalog).tables
    statement = pushed(part.scan, source._tables[part.scan.table.key])  # type: ignore[arg-type]
    ours = source.count(part.scan, SALT)  # type: ignore[arg-type]
    source.pushes_down = False
    try:
        theirs = source.count(part.scan, SALT)  # type: ignore[arg-type]
    finally:
        source.pushes_down = True
    np.testing.assert_array_equal(ours, theirs, err_msg=f"{sql}\n{statement}")
    return statement is not None


@pytest.mark.parametrize("seed", range(5))
def test_comparisons(source: PostgresSource, seed: int) -> None:
    rng, catalog = random.Random(seed), catalog_of(source, {})
    ways = 0
    for _ in range(30):
        conditions = []
        for name in rng.sample(list(CONSTANTS), rng.randint(1, 3)):
            picked = [rng.choice(CONSTANTS[name]) for _ in range(rng.choice([1, 2, 5]))]
            operator = rng.choice(["<", "<=", ">", ">=", "=", "<>", "IN", "NULL"])
            if operator == "IN":
                conditions.append(f'"{name}" IN ({", ".join(picked)})')
            elif operator == "NULL":
                conditions.append(f'"{rng.choice(list(COLUMNS))}" IS NULL')
            else:
                conditions += [f'"{name}" {operator} {constant}' for constant in picked]
        text = "; ".join(f"SELECT count(*) FROM t WHERE {condition}" for condition in conditions)
        try:
            ways += both_ways(source, text, catalog)
        except TypeMismatchError:  # 'nan' is no INTEGER
            continue
    assert ways > 10


@pytest.mark.parametrize("name", CLAMPS)
def test_sums(source: PostgresSource, name: str) -> None:
    for low, high in CLAMPS[name]:
        catalog = catalog_of(source, {name: Range(low, high), "i4": Range(0, 50)})
        pushed_down = both_ways(source, f'SELECT sum("{name}") FROM t', catalog)
        assert pushed_down == (name != "long"), (low, high)
        both_ways(source, f"SELECT sum(\"{name}\"), sum(i4), count(*) FROM t WHERE s < 'b'", catalog)
    catalog = catalog_of(source, {column: Range(*CLAMPS[column][0]) for column in ("f8", "i4", "n", name)})
    both_ways(source, f'SELECT sum(f8), sum(i4), sum(n), sum("{name}") FROM t WHERE f8 < 1', catalog)


def test_halves_round_alike(new_database: Callable[[], str]) -> None:
    """A share that lies halfway between two parts: PostgreSQL's own rounding would take the even one.

    Just below one half, adding one half would round up.
    """
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t AS SELECT (r + 0.5)::float8 AS x FROM generate_series(0, 99) AS r")
        connection.execute("INSERT INTO t VALUES (0.49999999999999994), (1.4999999999999998), (1073741823.4999999)")
    source = open_postgres(url)
    assert both_ways(source, "SELECT sum(x) FROM t", catalog_of(source, {"x": Range(0.0, float(2**30))}))
    source.close()


def test_many_cuts(source: PostgresSource) -> None:
    catalog = catalog_of(source, {})
    for name in ("i2", "i8", "f4", "f8", "n", "free"):
        text = "; ".join(f'SELECT count(*) FROM t WHERE "{name}" < {k}.5' for k in range(-5, 40))
        assert both_ways(source, text, catalog)
        assert both_ways(source, f'{text}; SELECT count(*) FROM t WHERE "{name}" IN (3, 5, 7, 9, 18)', catalog)
    days = "; ".join(f"SELECT count(*) FROM t WHERE d < DATE '2024-01-01' + {k}" for k in range(-30, 30))
    assert both_ways(source, days, catalog)


def test_parts_of_days_and_moments(new_database: Callable[[], str]) -> None:
    """Over 4,700 years before the year 1 and 300,000 after it, and over what is infinite here or in DuckDB."""
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (d date, ts timestamp)")
        step = "interval '4999 days 7 hours 13 minutes 11.25 seconds'"
        connection.execute("INSERT INTO t SELECT date '4713-01-01 BC' + r * 4999, "  # type: ignore[arg-type]
                           f"timestamp '4713-01-01 BC' + r * {step} FROM generate_series(0, 2000) AS r")  # fmt: skip
        connection.execute("INSERT INTO t SELECT date '1999-12-01' + r, timestamp '0001-03-01 BC' - r * interval "
                           "'1 day' FROM generate_series(0, 800) AS r")  # fmt: skip
        for days, moments in itertools.zip_longest(VALUES["d"], VALUES["ts"]):
            connection.execute("INSERT INTO t VALUES (%s, %s)", (days, moments))
    source = open_postgres(url)
    catalog = catalog_of(source, {})
    for part in ("year", "quarter", "month", "day", "dayofyear", "dayofweek", "isodow", "hour", "minute", "second"):
        years = (-4713, -4712, -44, -43, -2, -1, 0, 1, 2, 1600, 1970, 2000, 2024, 9999, 294246, 294247, 5874897)
        for column in ("d", "ts") if part not in ("hour", "minute", "second") else ("ts",):
            ranges = [f"{part}({column}) <= {value}" for value in (years if part == "year" else range(367))]
            asked = [*ranges, f"extract({part} FROM {column}) IS NULL"]
            assert both_ways(source, "; ".join(f"SELECT count(*) FROM t WHERE {c}" for c in asked), catalog), part
    source.close()


def test_no_columns(source: PostgresSource) -> None:
    assert both_ways(source, "SELECT count(*) FROM t", catalog_of(source, {}))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t WHERE length(s) < 3",
        "SELECT count(*) FROM t WHERE i4 < i8",
        "SELECT count(*) FROM t AS a WHERE s LIKE 'a%'",
    ],
)
def test_what_is_computed_takes_the_general_way(source: PostgresSource, sql: str) -> None:
    assert not both_ways(source, sql, catalog_of(source, {}))
