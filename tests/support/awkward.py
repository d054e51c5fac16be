"""A table with every awkward value, and what is declared of its columns."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from tacit.sql import Catalog, Column, Range, Source, Table, Values

AWKWARD = """
CREATE TYPE mood AS ENUM ('ok', 'sad', 'Happy');
CREATE TABLE t (
    i INTEGER, b BIGINT, u UTINYINT, h HUGEINT, d DOUBLE, f FLOAT, n DECIMAL(10, 2),
    s VARCHAR, p BOOLEAN, da DATE, ts TIMESTAMP, e mood, k INTEGER NOT NULL, "Odd Name" INTEGER, "select" VARCHAR
);
INSERT INTO t
SELECT
    CASE WHEN r % 7 = 0 THEN NULL ELSE (r * 37) % 120 - 10 END,
    [NULL, 0, 9223372036854775807, -9223372036854775808, 9007199254740993, 9007199254740992, 5][1 + r % 7],
    [NULL, 0, 255, 18, 65, 17][1 + r % 6],
    [NULL, 170141183460469231731687303715884105727, -5, 0, 18][1 + r % 5],
    [NULL, '0.0', '-0.0', 'nan', 'inf', '-inf', '0.1', '0.3', '1e300', '-1e-300', '18.5', '2.5'][1 + r % 12]::DOUBLE,
    [NULL, '0.1', '0.2', 'nan', '16777216', '18.5', '-3.5'][1 + r % 7]::FLOAT,
    [NULL, 0, 1.10, 1.11, -99999999.99, 99999999.99, 18.5][1 + r % 7]::DECIMAL(10, 2),
    [NULL, '', 'a', 'A', 'é', 'ab', 'b', 'NY', 'NJ', 'CA', 'it''s', '日本', 'a' || chr(1), 'z😀'][1 + r % 14],
    [NULL, TRUE, FALSE][1 + r % 3],
    [NULL, '2024-01-01', '2024-02-29', '1969-12-31', '0001-01-01', '9999-12-31', 'infinity',
     '2024-12-31'][1 + r % 8]::DATE,
    [NULL, '2024-01-01 00:00:00', '2024-01-01 12:00:00', '2024-02-29 23:59:59.999999', '1969-12-31 23:59:59',
     'infinity', '-infinity'][1 + r % 7]::TIMESTAMP,
    [NULL, 'ok', 'sad', 'Happy'][1 + r % 4]::mood,
    r % 5,
    r % 4,
    ['x', 'y', NULL][1 + r % 3]
FROM range(400) AS rows(r);
INSERT INTO t SELECT * FROM t WHERE k = 2;
CREATE TABLE nothing AS SELECT * FROM t LIMIT 0;
CREATE TABLE c AS
SELECT * REPLACE (
    CASE WHEN s IN ('NY', 'NJ', 'CA') OR s IS NULL THEN s ELSE 'never' END AS s,
    CASE WHEN da = '2024-01-01' THEN da + 2 WHEN da IS NOT NULL THEN DATE '2024-01-05' END AS da
) FROM t WHERE i IS NULL OR i % 3 > 0;
CREATE VIEW adults AS SELECT i, s, k, d, coalesce(p, i > 90) AS p FROM t WHERE i >= 18;
CREATE VIEW listed(c1, "C 2", c3, c4) AS SELECT i, k, s, "select", p FROM c WHERE d IS NULL OR d < 5;
CREATE SCHEMA side;
CREATE TABLE side.t AS SELECT k, i, s, p FROM c WHERE k < 3;
CREATE VIEW side.seen AS SELECT i, k, s, p FROM t;
CREATE TABLE places (k INTEGER, zone VARCHAR, size INTEGER);
INSERT INTO places VALUES (0, 'north', 3), (1, 'south', 4), (3, NULL, 9), (4, 'north', NULL), (NULL, 'lost', 1);
CREATE TABLE people (pid INTEGER NOT NULL, g VARCHAR, w DOUBLE);
INSERT INTO people SELECT r, ['f', 'M', NULL, 'x'][1 + r % 4], [r * 1.5, NULL, 'nan'::DOUBLE, 3.25][1 + r % 4]
FROM range(40) AS rows(r);
CREATE TABLE visits (pid INTEGER NOT NULL, k INTEGER, i INTEGER, da DATE);
INSERT INTO visits SELECT (r * 7) % 50, [NULL, 0, 1, 2, 3, 4, 6][1 + r % 7], r % 111,
    DATE '2024-01-01' + CAST(r % 5 AS INTEGER)
FROM range(130) AS rows(r);
"""

DOMAINS: dict[str, Values | Range] = {
    "i": Range(-10, 110),
    "b": Range(-1000, 1000),
    "u": Range(0, 100),
    "d": Range(-1.5, 20.25),
    "f": Range(0.0, 19.0),
    "n": Range(Decimal("0.00"), Decimal("18.50")),
    "s": Values(("NY", "NJ", "CA", "never"), other="other"),
    "da": Range(date(2024, 1, 1), date(2024, 1, 5)),
    "e": Values(("ok", "sad", "Happy"), complete=True),
    "k": Range(0, 6),
    "Odd Name": Values((0, 1, 2, 3), complete=True),
    "select": Values(("x", "y")),
    "zone": Values(("north", "south", "lost"), complete=True),
    "size": Range(1, 9),
    "g": Values(("f", "M", "x"), complete=True),
    "w": Range(0.0, 50.0),
}
NEVER_NULL = {"Odd Name"}
"""No row holds NULL there, and the schema does not say so."""
UNITS = {"people": 1, "visits": 4}


def catalog_of(source: Source) -> Catalog:
    """The catalog that goes with it."""
    return Catalog(
        tuple(
            Table(
                table.name,
                tuple(
                    Column(c.name, c.type, c.nullable and c.name not in NEVER_NULL, DOMAINS.get(c.name))
                    for c in table.columns
                ),
                privacy_unit="pid" if table.name in UNITS else None,
                max_rows_per_unit=UNITS.get(table.name, 1),
                public=table.name == "places",
                version="1",
                view=table.view,
                path=table.path,
            )
            for table in source.schema()
        )
    )
