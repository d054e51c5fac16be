"""What Spark counts by itself is what its workers count, for every value of every type."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.spark_session import forget
from tacit.errors import TypeMismatchError
from tacit.sql import Catalog, Column, Range, Scan, Table, compile_batch
from tacit.sql.backends.spark import cluster
from tacit.sql.backends.spark.cluster import SparkSource, open_spark
from tacit.sql.backends.spark.native import pushed

SALT = bytes(range(32))
NAN, INF = float("nan"), float("inf")
SMALL = [-1, 0, 1, 2, 18, 100, None]
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "b": (pa.bool_(), [True, False, None]),
    "i1": (pa.int8(), [*SMALL, 127, -128]),
    "i2": (pa.int16(), [*SMALL, 32767, -32768]),
    "i4": (pa.int32(), [*SMALL, 2**31 - 1, -(2**31)]),
    "i8": (pa.int64(), [*SMALL, 2**63 - 1, -(2**63), 2**53 + 1]),
    "f4": (pa.float32(), [*SMALL, NAN, INF, -INF, -0.0, 1e-45, 3.4e38, 0.1, 16777217.0]),
    "f8": (pa.float64(), [*SMALL, NAN, INF, -INF, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 0.1, 0.5, 2.5, 1e-300,
                          -1.7976931348623157e308, 99.99999999999999, 2.2250738585072014e-308]),
    "n": (pa.decimal128(12, 2), [*map(Decimal, ("0", "1.10", "1.11", "-9999999999.99", "9999999999.99")), None]),
    "long": (pa.decimal128(30, 8), [*map(Decimal, ("1234567890123456789012.12345678", "0.00000001", "18")), None]),
    "s": (pa.binary(), [t.encode() for t in ("", "a", "A", "é", "z😀", "NY", "ny", "a\0b", "it's", "\\", "ab ", "日本",
                                            "\uffff", "x" * 9000)] + [b"\xff", b"a\xc3", b"\xed\xa0\x80", None]),
    "d": (pa.date32(), [0, -1, 19723, -719162, 2932896, 2**31 - 1, -(2**31) + 1, -(2**31), None]),
    "ts": (pa.timestamp("us"), [0, -1, 1704110400000000, 1704110400000001, -62135596800000000, 253402300799999999,
                                2**63 - 1, -(2**63) + 1, -(2**63), None]),
    "tz": (pa.timestamp("us", tz="UTC"), [0, -1, 1704110400000000, 2**63 - 1, None]),
}  # fmt: skip
NUMBERS = ["-1", "0", "1", "18", "18.5", "0.1", "1.10", "1.105", "1e-300", "9007199254740993", "1e308", "'nan'",
           "'inf'", "'-inf'", "5e-324", "16777217"]  # fmt: skip
CONSTANTS = {
    **{name: NUMBERS for name in ("i1", "i2", "i4", "i8", "f4", "f8", "n", "long")},
    "s": ["''", "'a'", "'A'", "'é'", "'ab'", "'NY'", "'it''s'", "'z😀'", "'日本'", "'\ufffd'", "'\\'"],
    "d": ["DATE '2024-01-01'", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1970-01-01'"],
    "ts": ["TIMESTAMP '2024-01-01 12:00:00'", "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"],
    "b": ["true", "false"],
}
CLAMPS: dict[str, list[tuple[Any, Any]]] = {
    "i1": [(-1, 18)], "i4": [(0, 100), (-(2**31), 2**31)], "i8": [(0, 2**60), (-(2**53), 2**53 + 2)],
    "f4": [(0, 0.1), (-1, 3e38)], "f8": [(0, 1), (-1e-100, 1e-100), (-1e20, 1e19), (0.1, 0.3), (0, 2**31)],
    "n": [(0, Decimal("1.11")), (-1, 3)], "long": [(0, 3)],
}  # fmt: skip


@pytest.fixture(scope="module")
def source(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSource]:
    rng, folder = random.Random(7), tmp_path_factory.mktemp("hostile")
    columns = {}
    for name, (type_, values) in VALUES.items():
        picked = [rng.choice(values) for _ in range(500)]
        whole = pa.types.is_date(type_) or pa.types.is_timestamp(type_)
        base = (pa.int32() if pa.types.is_date(type_) else pa.int64()) if whole else type_
        columns[name] = pa.array(picked, base).view(type_) if whole else pa.array(picked, base)
    write(pa.table(columns), folder / "t.parquet")
    write(pa.table({"x": [r + 0.5 for r in range(100)]}), folder / "halves.parquet")
    days = [*range(-740_000, 900_000, 997), *VALUES["d"][1], -(2**31) + 2, 2**31 - 2]
    moments = [*(day * 86_400_000_000 + day % 86_400 * 1_000_003 for day in range(-740_000, 900_000, 997)),
               *VALUES["ts"][1], 2**63 - 2, -(2**63) + 2]  # fmt: skip
    many = max(len(days), len(moments))
    write(
        pa.table({
            "d": pa.array(days + [None] * (many - len(days)), pa.int32()).view(pa.date32()),
            "ts": pa.array(moments + [None] * (many - len(moments)), pa.int64()).view(pa.timestamp("us")),
        }),
        folder / "days.parquet",
    )  # fmt: skip
    forget(spark)
    # bytes that are no UTF-8 are a text where files say nothing else
    spark.conf.set("spark.sql.parquet.binaryAsString", "true")
    spark.read.parquet(str(folder / "t.parquet")).createOrReplaceTempView("t")
    for name in ("halves", "days"):
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
    spark.conf.unset("spark.sql.parquet.binaryAsString")
    opened = open_spark(spark)
    opened.schema()
    yield opened
    opened.close()


def write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=150, store_schema=False)


def catalog_of(source: SparkSource, clamps: dict[str, Range]) -> Catalog:
    return Catalog(
        tuple(
            Table(t.name, tuple(Column(c.name, c.type, c.nullable, clamps.get(c.name)) for c in t.columns), path=t.path)
            for t in source.schema()
        )
    )


def both_ways(source: SparkSource, scans: Sequence[Scan], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails where the two ways differ."""
    monkeypatch.setattr(cluster, "_MOST_PASSES", 1000)
    ours = source.count_all(scans, SALT)
    monkeypatch.setattr(SparkSource, "pushes_down", False)
    theirs = source.count_all(scans, SALT)
    for scan, a, b in zip(scans, ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=str(pushed(scan, source._relations[scan.table.key])))


def scan_of(sql: str, catalog: Catalog) -> Scan:
    (part,) = compile_batch(sql, catalog).tables
    assert isinstance(part.scan, Scan)
    return part.scan


def is_native(source: SparkSource, scan: Scan) -> bool:
    return pushed(scan, source._relations[scan.table.key]) is not None


def test_the_types(source: SparkSource) -> None:
    (table,) = (table for table in source.schema() if table.name == "t")
    assert [column.type for column in table.columns] == [
        "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12,2)", "DECIMAL(30,8)",
        "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE",
    ]  # fmt: skip


def test_comparisons(source: SparkSource, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, catalog, scans = random.Random(3), catalog_of(source, {}), []
    while len(scans) < 25:
        conditions = []
        for name in rng.sample(list(CONSTANTS), rng.randint(1, 3)):
            picked = [rng.choice(CONSTANTS[name]) for _ in range(rng.choice([1, 2, 5]))]
            operator = rng.choice(["<", "<=", ">", ">=", "=", "<>", "IN", "NULL"])
            if operator == "IN":
                conditions.append(f'"{name}" IN ({", ".join(picked)})')
            elif operator == "NULL":
                conditions.append(f'"{rng.choice(list(VALUES))}" IS NULL')
            else:
                conditions += [f'"{name}" {operator} {constant}' for constant in picked]
        try:
            scans.append(scan_of("; ".join(f"SELECT count(*) FROM t WHERE {c}" for c in conditions), catalog))
        except TypeMismatchError:  # 'nan' is no INTEGER
            continue
    assert sum(is_native(source, scan) for scan in scans) >= 20
    both_ways(source, scans, monkeypatch)


def test_sums_halves_and_many_cuts(source: SparkSource, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = []
    for name, clamps in CLAMPS.items():
        for low, high in clamps:
            catalog = catalog_of(source, {name: Range(low, high), "i4": Range(0, 50)})
            scans.append(scan_of(f'SELECT sum("{name}") FROM t', catalog))
            assert is_native(source, scans[-1]) == (name != "long")
        scans.append(scan_of(f"SELECT sum(\"{name}\"), sum(i4), count(*) FROM t WHERE s < 'b'", catalog))
    # a share that lies halfway between two parts
    scans.append(scan_of("SELECT sum(x) FROM halves", catalog_of(source, {"x": Range(0.0, float(2**30))})))
    assert is_native(source, scans[-1])
    catalog = catalog_of(source, {})
    for name in ("i1", "i8", "f4", "f8"):
        text = "; ".join(f'SELECT count(*) FROM t WHERE "{name}" < {k}.5' for k in range(-5, 40))
        scans.append(scan_of(f'{text}; SELECT count(*) FROM t WHERE "{name}" IN (3, 5, 7, 9, 18)', catalog))
        assert is_native(source, scans[-1])
    scans.append(scan_of("; ".join(f"SELECT count(*) FROM t WHERE d < DATE '1970-01-01' + {k}" for k in range(-30, 30)),
                         catalog))  # fmt: skip
    assert is_native(source, scans[-1])
    for name in ("i1", "i2", "i4", "i8"):
        text = "; ".join(f'SELECT count(*) FROM t WHERE "{name}" = {k}' for k in range(-2, 20))
        scans.append(scan_of(text, catalog))
        statement = pushed(scans[-1], source._relations[scans[-1].table.key])
        assert statement is not None and (" * 1L + " in statement[0]) == (name != "i8")  # each value has its number
    scans.append(scan_of("SELECT count(*) FROM t", catalog))
    both_ways(source, scans, monkeypatch)


def test_parts_of_days_and_moments(source: SparkSource, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, scans = catalog_of(source, {}), []
    for part in ("year", "quarter", "month", "day", "dayofyear", "dayofweek", "isodow"):
        scans += [scan_of(parts_of(part, column), catalog) for column in ("d", "ts")]
    scans += [scan_of(parts_of(part, "ts"), catalog) for part in ("hour", "minute", "second")]
    assert all(is_native(source, scan) for scan in scans)
    both_ways(source, scans, monkeypatch)


def parts_of(part: str, column: str) -> str:
    """Every value of a part that can occur, or some years."""
    values = (-5877640, -4713, -44, -2, -1, 0, 1, 2, 1600, 1970, 2000, 2024, 9999, 294246, 5881579)
    asked = values if part == "year" else range(367)
    ranges = [f"SELECT count(*) FROM days WHERE {part}({column}) <= {value}" for value in asked]
    return "; ".join([*ranges, f"SELECT count(*) FROM days WHERE extract({part} FROM {column}) IS NULL"])


@pytest.mark.parametrize("condition", ["length(s) < 3", "i4 < i8", "s LIKE 'a%'", "tz IS NULL AND month(d) + 1 = 1"])
def test_what_is_computed_takes_the_general_way(source: SparkSource, condition: str) -> None:
    scan = scan_of(f"SELECT count(*) FROM t WHERE {condition}", catalog_of(source, {}))
    assert not is_native(source, scan)
