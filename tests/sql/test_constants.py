"""Constants at the ends of their types, and groups that arise from them: right answers or errors of tacit's own."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pytest
import tacit
from support.exact import exact_rows
from tacit.errors import Error, InternalError, ParameterError, SqlError
from tacit.sql import Catalog, Column, Range, Source, Table, Values, compile_batch, open_source

DECIMALS = {"n": (38, 10), "m": (38, 0), "z": (38, 38), "q": (30, 5), "r": (18, 3)}
WHOLE = {"h": (-(2**127), 2**127), "uh": (0, 2**128), "b": (-(2**63), 2**63), "ub": (0, 2**64)}
NAMES = {"h": "HUGEINT", "uh": "UHUGEINT", "b": "BIGINT", "ub": "UBIGINT"}
OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]


def spelled(number: int, scale: int) -> str:
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if number < 0 else text


def some_value(rng: random.Random, column: str) -> str:
    """A number near the ends of a type, or where 28 digits or 53 bits are too few."""
    if column in WHOLE:
        low, high = WHOLE[column]
        near = rng.choice([low, high - 1, 2**53, 2**63, 2**64, rng.randrange(low, high), rng.randrange(2**66)])
        return str(min(max(near + rng.randrange(-2, 3), low), high - 1))
    precision, scale = DECIMALS[column]
    digits = rng.randint(1, precision)
    number = rng.choice([10**digits - 1, 10 ** (digits - 1), rng.randrange(10**precision), 2**53 + 1])
    return spelled(rng.choice([1, -1]) * (number % 10**precision), scale)


@pytest.fixture(scope="module")
def wide() -> Iterator[tuple[duckdb.DuckDBPyConnection, Source, Catalog, dict[str, list[str]]]]:
    rng = random.Random(38)
    database = duckdb.connect(config={"threads": 1})
    columns = {**{c: f"DECIMAL({p},{s})" for c, (p, s) in DECIMALS.items()}, **NAMES}
    database.execute(f"CREATE TABLE t ({', '.join(f'{c} {type_}' for c, type_ in columns.items())})")
    values = {c: [some_value(rng, c) for _ in range(60)] for c in columns}
    for row in zip(*values.values(), strict=True):
        database.execute(f"INSERT INTO t VALUES ({', '.join(map(repr, row))})")
    source = open_source(database)
    catalog = Catalog((Table("t", tuple(Column(c, type_) for c, type_ in columns.items()), version="1"),))
    yield database, source, catalog, values
    source.close()
    database.close()


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_38_digits_are_compared_as_duckdb_does(
    wide: tuple[duckdb.DuckDBPyConnection, Source, Catalog, dict[str, list[str]]], seed: int
) -> None:
    database, source, catalog, values = wide
    rng = random.Random(seed)
    compared = 0
    for _ in range(250):
        column = rng.choice(list(values))
        value = rng.choice(values[column]) if rng.random() < 0.7 else some_value(rng, column)
        double = math.nextafter(float(value), rng.choice([math.inf, -math.inf, float(value)]))
        written = rng.choice([value, value, f"{double:.17e}", f"CAST('{value}' AS DOUBLE)", f"'{value}'"])
        condition = rng.choice(
            [
                f"{column} {rng.choice(OPERATORS)} {written}",
                f"{column} BETWEEN {written} AND {value}",
                f"{column} IN ({written}, {value}, 0)",
            ]
        )
        sql = f"SELECT count(*) FROM t WHERE {condition}"
        try:
            expected = database.execute(sql).fetchall()
        except duckdb.Error:
            continue  # DuckDB casts the column to a type that one of its values does not fit
        try:
            workload = compile_batch(sql, catalog)
        except SqlError:
            continue
        compared += 1
        assert exact_rows(workload, source) == expected, sql
    assert compared > 150


@pytest.mark.parametrize(
    "value", [Decimal("9" * 28 + ".9999999999"), -Decimal("9" * 28), Decimal("1E+27"), Decimal("0." + "1" * 10)]
)
def test_a_decimal_parameter_keeps_all_its_digits(
    wide: tuple[duckdb.DuckDBPyConnection, Source, Catalog, dict[str, list[str]]], value: Decimal
) -> None:
    database, source, catalog, _ = wide
    for sql in ("SELECT count(*) FROM t WHERE n >= ?", "SELECT count(*) FROM t WHERE n + 0 >= ? OR abs(n) = ?"):
        params = [value] * sql.count("?")
        expected = database.execute(sql.replace("?", f"{value:f}")).fetchall()
        assert exact_rows(compile_batch(sql, catalog, params), source) == expected


GROUPED = """
CREATE TABLE t (c VARCHAR, o VARCHAR, k INTEGER, n INTEGER NOT NULL, d DOUBLE, p BOOLEAN, da DATE);
INSERT INTO t SELECT
    [NULL, 'a', 'b'][1 + r % 3], [NULL, 'a', 'zz'][1 + r % 3], [NULL, 0, 1, 2][1 + r % 4], r % 2,
    [NULL, 0.5, 2.5][1 + r % 3], [NULL, TRUE, FALSE][1 + r % 3], [NULL, DATE '2024-01-01'][1 + r % 2]
FROM range(60) AS rows(r);
"""
DOMAINS = {
    "c": Values(("a", "b")), "o": Values(("a",), other="other"), "k": Range(0, 2), "n": Values((0, 1)),
    "d": Values((0.5, 2.5)), "da": Range(dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
}  # fmt: skip
KEYS = [
    "coalesce(c, 'none')", "ifnull(c, 'none')", "concat(c, 'x')", "concat(c, k)", "coalesce(k, n + 10)",
    "CASE WHEN c IS NULL THEN 'none' ELSE upper(c) END", "CASE c WHEN 'a' THEN 'A' ELSE 'z' END",
    "CASE WHEN o IS NULL THEN 'none' WHEN o = 'a' THEN 'a' ELSE 'rest' END", "coalesce(k, 5) // 2", "nullif(n, 1)",
    "CASE WHEN p THEN 'nan'::DOUBLE ELSE 1 END", "coalesce(d, 'nan')", "d * 'nan'::DOUBLE",
    "CASE WHEN p THEN 'nan'::DOUBLE WHEN n = 1 THEN -CAST('nan' AS DOUBLE) END", "if(p, 'y', 'n')", "p IS NULL",
    "CASE WHEN p THEN '1' WHEN n = 1 THEN 1 ELSE 2 END", "CASE WHEN p THEN 0.1 WHEN n = 1 THEN 1e-1 ELSE 2 END",
    "CASE WHEN p THEN 0.1::FLOAT ELSE 0.5 END", "CASE WHEN p THEN 1 ELSE 2.50 END",
    "CASE WHEN p THEN DATE '2024-01-01' ELSE TIMESTAMP '2024-01-01' END", "coalesce(da, DATE '9999-12-31')",
]  # fmt: skip
CONSTANT_KEYS = ["1234567890123456789", "1 + 1", "'x'", "1.5", "TRUE", "round(1/0)", "DATE '2024-01-01'", "upper('a')"]
UNLISTED = ["coalesce(o, 'none')", "upper(o)", "coalesce(da, DATE 'infinity')", "CASE WHEN p THEN DATE '-infinity' END"]


@pytest.fixture(scope="module")
def grouped() -> Iterator[tuple[duckdb.DuckDBPyConnection, Source, Catalog]]:
    database = duckdb.connect(config={"threads": 1})
    database.execute(GROUPED)
    source = open_source(database)
    (table,) = source.schema()
    columns = tuple(Column(c.name, c.type, c.nullable, DOMAINS.get(c.name)) for c in table.columns)
    yield database, source, Catalog((Table("t", columns, version="1"),))
    source.close()
    database.close()


@pytest.mark.parametrize("key", [*KEYS, *CONSTANT_KEYS])
def test_no_row_is_lost_from_the_groups_of_an_expression(
    grouped: tuple[duckdb.DuckDBPyConnection, Source, Catalog], key: str
) -> None:
    database, source, catalog = grouped
    for sql in (
        f"SELECT {key} AS g, count(*) FROM t GROUP BY g HAVING count(*) > 0 ORDER BY g",
        f"SELECT g, count(*) FROM (SELECT {key} AS g FROM t) GROUP BY g HAVING count(*) > 0 ORDER BY g",
    ):
        expected = database.execute(sql).fetchall()
        assert str(exact_rows(compile_batch(sql, catalog), source)) == str([(g, float(n)) for g, n in expected])


@pytest.mark.parametrize("key", CONSTANT_KEYS)
def test_a_constant_is_one_group(grouped: tuple[duckdb.DuckDBPyConnection, Source, Catalog], key: str) -> None:
    workload = compile_batch(f"SELECT {key} AS g, count(*) FROM t GROUP BY g", grouped[2])
    assert len(workload.queries[0].groups) == 1


def test_ranges_of_whole_numbers_are_exact_beyond_the_whole_numbers_of_a_double() -> None:
    low = 2**53 + 1
    columns = tuple(Column(name, "BIGINT", False, Range(low, low + 1000)) for name in ("a", "b"))
    workload = compile_batch("SELECT a - b AS g, count(*) FROM t GROUP BY g", Catalog((Table("t", columns),)))
    assert {group[0] for group in workload.queries[0].groups} == {*range(-1000, 1001), None}


@pytest.mark.parametrize("value", [10**400, 10**5000, 2**128, -(2**127) - 1], ids=int.bit_length)
@pytest.mark.parametrize(
    "sql", ["SELECT count(*) * ? FROM t", "SELECT sum(k + ?) FROM t", "SELECT count(*) FROM t WHERE k + ? > 1"]
)
def test_a_parameter_of_more_than_128_bits_is_refused(
    grouped: tuple[duckdb.DuckDBPyConnection, Source, Catalog], sql: str, value: int
) -> None:
    with pytest.raises(ParameterError, match="128 bits"):
        compile_batch(sql, grouped[2], [value])


@pytest.mark.parametrize("key", UNLISTED)
def test_groups_that_cannot_be_listed_are_refused(
    grouped: tuple[duckdb.DuckDBPyConnection, Source, Catalog], key: str
) -> None:
    with pytest.raises(SqlError):
        compile_batch(f"SELECT {key} AS g, count(*) FROM t GROUP BY g", grouped[2])


EXTREMES = [
    "9" * 28, "9" * 38, "9" * 60, "1" + "0" * 390, "9" * 5000, "round(1/0)",
    "9" * 28 + "." + "9" * 10, "0." + "9" * 37, "1e308", "1e309", "1e-400", "-1e999",
    "170141183460469231731687303715884105728", "'nan'::DOUBLE", "'-inf'::DOUBLE", "1/0", "1e308*10", "1::UHUGEINT",
    "DATE 'infinity'", "DATE '5881580-07-10'", "DATE '0044-03-15 (BC)'", "TIMESTAMP '10000-01-01'",
    "TIMESTAMP '294247-01-10 04:00:54.775806'", "INTERVAL '178956970 years'",
    "INTERVAL '9223372036854775807 microseconds'",
    "DATE '2024-01-01' + INTERVAL '178956970 years'", "DATE '2024-01-01' + INTERVAL '8000 years'", "TIME '24:00:00'",
    "'a\x00b'", "'\\xFF'::BLOB", "NULL", "TRUE", "'abc'", "[1, 2]", "1::TINYINT", "300::TINYINT",
]  # fmt: skip
SHAPES = [
    "SELECT count(*) FROM t WHERE k < {0}", "SELECT count(*) FROM t WHERE da IN ({0}, {0})",
    "SELECT count(*) FROM t WHERE d IS DISTINCT FROM -({0})", "SELECT count(*) FROM t WHERE {0}",
    "SELECT CASE WHEN p THEN {0} ELSE {0} END AS g, count(*) FROM t GROUP BY g ORDER BY g",
    "SELECT coalesce(k, {0}) AS g, count(*) FROM t GROUP BY g",
    "SELECT coalesce(da, {0}) AS g, count(*) FROM t GROUP BY g",
    "SELECT sum(k + {0}), avg(k / {0}) FROM t", "SELECT sum(CASE WHEN p THEN {0} END), variance({0}) FROM t",
    "SELECT count(*) * {0} AS z, count(*) / {0} FROM t HAVING z > {0} ORDER BY z + {0}",
    "SELECT sum(round({0})), sum(CAST(d * {0} AS BIGINT)) FROM t", "SELECT count(*) FROM t GROUP BY {0} ORDER BY {0}",
    "SELECT {0} AS g, count(*) FROM t GROUP BY g", "SELECT count(*) FROM (SELECT round({0}) AS z FROM t) WHERE z < 3",
    "SELECT k, count(*) FROM t GROUP BY k HAVING {0}", "SELECT sum(z) FROM (SELECT coalesce(k, {0}) AS z FROM t)",
]  # fmt: skip


def test_extreme_constants_are_answered_or_refused_before_the_charge() -> None:
    database = duckdb.connect(config={"threads": 1})
    database.execute(GROUPED)
    columns = {
        "k": {"min": 0, "max": 2},
        "d": {"values": [0.5, 2.5]},
        "da": {"min": dt.date(2024, 1, 1), "max": dt.date(2024, 1, 2)},
    }
    policy = {"budget": {"epsilon": 10_000.0}, "tables": {"t": {"version": "1", "columns": columns}}}
    connection = tacit.connect(database, policy=policy)
    answered = 0
    for shape in SHAPES:
        for constant in EXTREMES:
            before = connection.budget.spent.epsilon
            try:
                connection.answer(shape.format(constant), epsilon=0.5, strategy="identity")
                answered += 1
            except Error as error:
                assert not isinstance(error, InternalError), (shape, constant, error)
                assert connection.budget.spent.epsilon == before, (shape, constant, error)
    assert answered > 100
    connection.close()
