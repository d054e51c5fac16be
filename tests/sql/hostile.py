"""Statements that nobody should be answered: each must explain or fail with an error of tacit's own, quickly."""

from __future__ import annotations

COUNT = "SELECT count(*) FROM t"

STATEMENTS = """
DELETE FROM t
DELETE FROM t WHERE i = 1 RETURNING *
TRUNCATE t
DROP TABLE t
DROP TABLE IF EXISTS t CASCADE
DROP SCHEMA main CASCADE
DROP VIEW adults
CREATE TABLE x AS SELECT * FROM t
CREATE OR REPLACE TABLE t (a INTEGER)
CREATE TEMP TABLE x (a INTEGER)
CREATE VIEW x AS SELECT * FROM t
CREATE MACRO f(a) AS a + 1
CREATE FUNCTION f(a) AS a + 1
CREATE SCHEMA s
CREATE SEQUENCE q
CREATE TYPE y AS ENUM ('a')
CREATE INDEX j ON t (i)
CREATE SECRET s (TYPE s3)
ALTER TABLE t ADD COLUMN z INTEGER
ALTER TABLE t RENAME TO u
COMMENT ON TABLE t IS 'x'
INSERT INTO t VALUES (1)
INSERT INTO t SELECT * FROM t
INSERT INTO t SELECT * FROM t RETURNING i
INSERT OR REPLACE INTO t VALUES (1)
UPDATE t SET i = 1
UPDATE t SET i = 1 WHERE k = 2 RETURNING i
MERGE INTO t USING c ON t.k = c.k WHEN MATCHED THEN DELETE
COPY t TO '/tmp/out.csv'
COPY t FROM '/tmp/in.csv'
COPY (SELECT * FROM t) TO '/tmp/out.parquet' (FORMAT parquet)
EXPORT DATABASE '/tmp/x'
IMPORT DATABASE '/tmp/x'
ATTACH '/tmp/x.duckdb' AS x
ATTACH ':memory:' AS y
DETACH x
USE main
INSTALL httpfs
LOAD httpfs
SET threads = 1
SET GLOBAL enable_external_access = true
RESET threads
PRAGMA database_list
PRAGMA table_info('t')
PRAGMA enable_profiling
CALL pragma_version()
CHECKPOINT
FORCE CHECKPOINT
VACUUM
VACUUM ANALYZE t
ANALYZE
BEGIN
BEGIN TRANSACTION
COMMIT
ROLLBACK
EXPLAIN SELECT count(*) FROM t
EXPLAIN ANALYZE SELECT count(*) FROM t
DESCRIBE t
DESCRIBE SELECT * FROM t
SHOW TABLES
SHOW ALL TABLES
SUMMARIZE t
PREPARE p AS SELECT count(*) FROM t
EXECUTE p
EXECUTE p(1)
DEALLOCATE p
GRANT SELECT ON t TO PUBLIC
REVOKE SELECT ON t FROM PUBLIC
LISTEN x
KILL 1
VALUES (1), (2)
TABLE t
FROM t
FROM t SELECT count(*)
SELECT
SELECT FROM t
SELECT * FROM t
SELECT t.* FROM t
SELECT * EXCLUDE (i) FROM t
SELECT COLUMNS('i') FROM t
SELECT i FROM t
SELECT i, s FROM t LIMIT 1
SELECT DISTINCT i FROM t
SELECT DISTINCT ON (i) count(*) FROM t GROUP BY i
SELECT max(i) FROM t
SELECT min(s) FROM t
SELECT median(i) FROM t
SELECT mode(i) FROM t
SELECT quantile_cont(i, 0.5) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM t
SELECT approx_count_distinct(i) FROM t
SELECT count(DISTINCT i) FROM t
SELECT sum(DISTINCT i) FROM t
SELECT avg(DISTINCT i) FROM t
SELECT count(DISTINCT i, s) FROM t
SELECT count(i, s) FROM t
SELECT string_agg(s, ',') FROM t
SELECT list(s) FROM t
SELECT array_agg(s ORDER BY i) FROM t
SELECT first(s) FROM t
SELECT any_value(s) FROM t
SELECT arg_max(s, i) FROM t
SELECT arg_min(s, i, 3) FROM t
SELECT histogram(i) FROM t
SELECT bit_and(i) FROM t
SELECT bool_or(p) FROM t
SELECT product(i) FROM t
SELECT corr(i, d) FROM t
SELECT covar_pop(i, d) FROM t
SELECT regr_slope(i, d) FROM t
SELECT entropy(i) FROM t
SELECT kurtosis(i) FROM t
SELECT skewness(i) FROM t
SELECT sum(h) FROM t
SELECT sum(s) FROM t
SELECT sum(*) FROM t
SELECT avg() FROM t
SELECT sum() FROM t
SELECT sum(i, d) FROM t
SELECT sum(sum(i)) FROM t
SELECT count(count(*)) FROM t
SELECT count(*) OVER () FROM t
SELECT sum(i) OVER (PARTITION BY k ORDER BY i) FROM t
SELECT row_number() OVER () FROM t
SELECT rank() OVER (ORDER BY i), count(*) FROM t GROUP BY i
SELECT lag(i) OVER (ORDER BY i) FROM t
SELECT count(*) FROM t QUALIFY row_number() OVER () = 1
SELECT count(*) FROM t WINDOW w AS (PARTITION BY k)
SELECT count(*) FROM t TABLESAMPLE 10 PERCENT
SELECT count(*) FROM t TABLESAMPLE reservoir(10 ROWS)
SELECT count(*) FROM t USING SAMPLE 5
SELECT count(*) FROM t USING SAMPLE 10% (bernoulli)
SELECT count(*) FROM read_csv('/etc/passwd')
SELECT count(*) FROM read_text('/etc/passwd')
SELECT count(*) FROM read_parquet('*.parquet')
SELECT count(*) FROM read_json_auto('http://localhost/x')
SELECT count(*) FROM '/etc/passwd'
SELECT count(*) FROM 'x.parquet'
SELECT count(*) FROM glob('*')
SELECT count(*) FROM range(10)
SELECT count(*) FROM generate_series(1, 1000000000)
SELECT count(*) FROM unnest([1, 2, 3])
SELECT count(*) FROM duckdb_tables()
SELECT count(*) FROM duckdb_secrets()
SELECT count(*) FROM pragma_table_info('t')
SELECT count(*) FROM information_schema.tables
SELECT count(*) FROM sqlite_master
SELECT count(*) FROM pg_catalog.pg_tables
SELECT count(*) FROM query('SELECT 1')
SELECT count(*) FROM query_table('t')
SELECT count(*) FROM nosuch
SELECT count(*) FROM other.main.t
SELECT count(*) FROM memory.main.t
SELECT count(*) FROM t.t
SELECT count(*) FROM t AS t(a, b)
SELECT count(*) FROM t, c
SELECT count(*) FROM t CROSS JOIN c
SELECT count(*) FROM t JOIN c ON t.k = c.k
SELECT count(*) FROM t JOIN c USING (k)
SELECT count(*) FROM t NATURAL JOIN c
SELECT count(*) FROM t RIGHT JOIN places ON t.k = places.k
SELECT count(*) FROM t FULL OUTER JOIN places ON t.k = places.k
SELECT count(*) FROM t ASOF JOIN places ON t.k >= places.k
SELECT count(*) FROM t POSITIONAL JOIN places
SELECT count(*) FROM t SEMI JOIN places ON t.k = places.k
SELECT count(*) FROM t ANTI JOIN places ON t.k = places.k
SELECT count(*) FROM t JOIN places ON t.k < places.k
SELECT count(*) FROM t JOIN places ON t.k = places.k OR t.i = 1
SELECT count(*) FROM t JOIN places ON TRUE
SELECT count(*) FROM t JOIN places ON t.s = places.k
SELECT count(*) FROM t JOIN places
SELECT count(*) FROM t JOIN places ON t.k = places.zone
SELECT count(*) FROM t JOIN (SELECT * FROM places) p ON t.k = p.k
SELECT count(*) FROM places JOIN t ON t.k = places.k
SELECT count(*) FROM t JOIN t ON t.k = t.k
SELECT count(*) FROM t a JOIN t b ON a.k = b.k
SELECT count(*) FROM t, LATERAL (SELECT 1)
SELECT count(*) FROM t JOIN LATERAL (SELECT t.i) x ON TRUE
SELECT count(*) FROM visits JOIN people ON visits.k = people.pid
SELECT count(*) FROM visits LEFT JOIN people ON visits.pid = people.pid
SELECT count(*) FROM visits JOIN t ON visits.k = t.k
SELECT count(*) FROM t WHERE i IN (SELECT i FROM t)
SELECT count(*) FROM t WHERE i NOT IN (SELECT i FROM c)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM c)
SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM c WHERE c.k = t.k)
SELECT count(*) FROM t WHERE i = (SELECT max(i) FROM t)
SELECT count(*) FROM t WHERE i > ALL (SELECT i FROM c)
SELECT count(*) FROM t WHERE i = ANY (SELECT i FROM c)
SELECT count(*) FROM t WHERE i = ANY ([1, 2])
SELECT count(*) FROM t WHERE (i, k) IN ((1, 2))
SELECT count(*) FROM t WHERE (i, k) = (1, 2)
SELECT (SELECT i FROM t LIMIT 1)
SELECT (SELECT count(*) FROM c WHERE c.k = t.k) FROM t
SELECT (SELECT count(*), 1 FROM c)
SELECT (SELECT s, count(*) FROM c GROUP BY s)
SELECT (SELECT avg(i) FROM c), count(*) FROM t
SELECT ARRAY(SELECT i FROM t)
SELECT sum((SELECT count(*) FROM c)) FROM t
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r
WITH r AS (SELECT count(*) AS n FROM t) SELECT sum(n) FROM r
WITH r AS (SELECT * FROM r) SELECT count(*) FROM r
WITH r(a) AS (SELECT i FROM t) SELECT count(*) FROM r
WITH r AS MATERIALIZED (SELECT i FROM t) SELECT count(*) FROM r
WITH r AS (DELETE FROM t RETURNING *) SELECT count(*) FROM r
WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT count(*) FROM a
SELECT count(*) FROM (SELECT i FROM t LIMIT 5)
SELECT count(*) FROM (SELECT DISTINCT i FROM t)
SELECT count(*) FROM (SELECT i FROM t UNION ALL SELECT i FROM c)
SELECT count(*) FROM (SELECT i, row_number() OVER () AS r FROM t)
SELECT count(*) FROM (SELECT unnest([1, 2, 3]) FROM t)
SELECT count(*) FROM (VALUES (1), (2)) v(a)
SELECT count(*) FROM (SELECT i FROM t ORDER BY random() LIMIT 1)
SELECT count(*) FROM t UNION SELECT count(*) FROM c
SELECT count(*) FROM t INTERSECT SELECT count(*) FROM c
SELECT count(*) FROM t EXCEPT SELECT count(*) FROM c
SELECT count(*) FROM t UNION ALL BY NAME SELECT count(*) FROM c
SELECT count(*) FROM t UNION ALL SELECT 'a', count(*) FROM c
SELECT count(*) FROM t UNION ALL SELECT 'a' FROM c
SELECT count(*) FROM t WHERE random() < 0.5
SELECT count(*) FROM t WHERE i > rand()
SELECT count(*) FROM t WHERE now() > ts
SELECT count(*) FROM t WHERE current_timestamp > ts
SELECT count(*) FROM t WHERE current_date = da
SELECT count(*) FROM t WHERE today() = da
SELECT count(*) FROM t WHERE uuid() = s
SELECT count(*) FROM t WHERE gen_random_uuid() = s
SELECT count(*) FROM t WHERE nextval('q') = i
SELECT count(*) FROM t WHERE setseed(0.5) IS NULL
SELECT count(*) FROM t WHERE current_user = s
SELECT count(*) FROM t WHERE version() = s
SELECT count(*) FROM t WHERE getenv('HOME') = s
SELECT count(*) FROM t WHERE current_setting('threads') = s
SELECT count(*) FROM t WHERE txid_current() = b
SELECT count(*) FROM t WHERE error('x') = s
SELECT count(*) FROM t WHERE pg_sleep(10) IS NULL
SELECT count(*) FROM t WHERE sleep(10) IS NULL
SELECT count(*) FROM t WHERE hash(s) = 5
SELECT count(*) FROM t WHERE md5(s) = 'x'
SELECT count(*) FROM t WHERE sha256(s) = 'x'
SELECT count(*) FROM t WHERE repeat(s, 1000000000) = 'x'
SELECT count(*) FROM t WHERE lpad(s, 1000000000, 'x') = 'x'
SELECT count(*) FROM t WHERE rpad(s, 2147483647, 'x') = 'x'
SELECT count(*) FROM t WHERE range(1000000000) IS NULL
SELECT count(*) FROM t WHERE list_value(i) = [1]
SELECT count(*) FROM t WHERE [i, k][1] = 1
SELECT count(*) FROM t WHERE {'a': i}.a = 1
SELECT count(*) FROM t WHERE MAP {'a': 1} IS NULL
SELECT count(*) FROM t WHERE list_transform([1, 2], x -> x + i) = [1]
SELECT count(*) FROM t WHERE list_filter([1, 2], lambda x: x > 1) = [1]
SELECT count(*) FROM t WHERE [x + 1 FOR x IN [1, 2]] = [1]
SELECT count(*) FROM t WHERE struct_pack(a := i) IS NULL
SELECT count(*) FROM t WHERE row(i, k) IS NULL
SELECT count(*) FROM t WHERE s.a = 1
SELECT count(*) FROM t WHERE s[1] = 'a'
SELECT count(*) FROM t WHERE s[1:2] = 'a'
SELECT count(*) FROM t WHERE s ~ '^a'
SELECT count(*) FROM t WHERE s !~ '^a'
SELECT count(*) FROM t WHERE s ~~ 'a%'
SELECT count(*) FROM t WHERE s LIKE s
SELECT count(*) FROM t WHERE regexp_matches(s, s)
SELECT count(*) FROM t WHERE regexp_matches(s, '(((')
SELECT count(*) FROM t WHERE regexp_matches(s, '(a+)+$')
SELECT count(*) FROM t WHERE s SIMILAR TO '['
SELECT count(*) FROM t WHERE regexp_replace(s, 'a', 'b') = 'b'
SELECT count(*) FROM t WHERE json_extract(s, '$.a') = 1
SELECT count(*) FROM t WHERE s -> 'a' = 1
SELECT count(*) FROM t WHERE s ->> 'a' = '1'
SELECT count(*) FROM t WHERE CAST(s AS JSON) IS NULL
SELECT count(*) FROM t WHERE CAST(s AS nosuchtype) IS NULL
SELECT count(*) FROM t WHERE CAST(s AS INTEGER[]) IS NULL
SELECT count(*) FROM t WHERE CAST(i AS STRUCT(a INTEGER)) IS NULL
SELECT count(*) FROM t WHERE s COLLATE NOCASE = 'a'
SELECT count(*) FROM t WHERE i = 'abc'
SELECT count(*) FROM t WHERE da = 'never'
SELECT count(*) FROM t WHERE ts = '2024-99-99'
SELECT count(*) FROM t WHERE i = 1 = 2
SELECT count(*) FROM t WHERE i < 1 < 2
SELECT count(*) FROM t WHERE i
SELECT count(*) FROM t WHERE 'a'
SELECT count(*) FROM t WHERE 5
SELECT count(*) FROM t WHERE i = i + s
SELECT count(*) FROM t WHERE p + 1 = 2
SELECT count(*) FROM t WHERE i / 0 = 1
SELECT count(*) FROM t WHERE i // 0 = 1
SELECT count(*) FROM t WHERE i % 0 = 1
SELECT count(*) FROM t WHERE 1 // 0 = 1
SELECT count(*) FROM t WHERE i << 100 = 1
SELECT count(*) FROM t WHERE i ** 1000 = 1
SELECT count(*) FROM t WHERE i! = 1
SELECT count(*) FROM t WHERE @i = 1
SELECT count(*) FROM t WHERE i = ?
SELECT count(*) FROM t WHERE i = $1
SELECT count(*) FROM t WHERE i = :age
SELECT count(*) FROM t WHERE i = ? AND k = $1
SELECT count(*) FROM t WHERE sum(i) > 5
SELECT count(*) FROM t WHERE count(*) > 5
SELECT count(*) FROM t WHERE i IN ()
SELECT count(*) FROM t WHERE i BETWEEN 1
SELECT count(*) FROM t WHERE rowid = 1
SELECT count(*) FROM t WHERE t = 1
SELECT count(*) FROM t WHERE t.nosuch = 1
SELECT count(*) FROM t WHERE nosuch.i = 1
SELECT count(*) FROM t GROUP BY d
SELECT count(*) FROM t GROUP BY ts
SELECT count(*) FROM t GROUP BY h
SELECT count(*) FROM t GROUP BY count(*)
SELECT count(*) FROM t GROUP BY 99
SELECT count(*) FROM t GROUP BY -1
SELECT count(*) FROM t GROUP BY nosuch
SELECT count(*) FROM t GROUP BY (SELECT 1)
SELECT count(*) FROM t GROUP BY random()
SELECT count(*) FROM t GROUP BY CUBE (i, k, s, e, p, "Odd Name", "select", da)
SELECT i, k, s, e, da, count(*) FROM t GROUP BY ALL
SELECT count(*) FROM t GROUP BY GROUPING SETS (GROUPING SETS ((i)))
SELECT GROUPING(i), count(*) FROM t
SELECT count(*) FROM t HAVING i > 1
SELECT count(*) FROM t HAVING max(i) > 1
SELECT count(*) FROM t HAVING
SELECT count(*) FROM t ORDER BY i
SELECT count(*) FROM t ORDER BY 7
SELECT count(*) FROM t ORDER BY ALL
SELECT count(*) FROM t ORDER BY random()
SELECT count(*) FROM t LIMIT -1
SELECT count(*) FROM t LIMIT 10%
SELECT count(*) FROM t LIMIT (SELECT 1)
SELECT count(*) FROM t LIMIT 99999999999999999999
SELECT count(*) FROM t LIMIT NULL
SELECT count(*) FROM t OFFSET 1.5
SELECT count(*) FROM t FETCH FIRST 1 ROWS ONLY
SELECT count(*) FROM t FOR UPDATE
SELECT count(*) INTO x FROM t
SELECT TOP 5 count(*) FROM t
SELECT ALL count(*) FROM t
SELECT count(*) FROM ONLY t
SELECT count(*) FROM t AT (VERSION => 1)
SELECT * FROM (PIVOT t ON k USING count(*))
PIVOT t ON k USING count(*)
UNPIVOT t ON i, k INTO NAME n VALUE v
SELECT count(*) FROM t PIVOT (count(*) FOR k IN (1, 2))
SELECT count(*) FROM t UNPIVOT (v FOR n IN (i, k))
SELECT count(*) FROM t; DROP TABLE t
SELECT count(*) FROM t; SELECT * FROM t
SELECT count(*) FROM t WHERE s = 'a'; DELETE FROM t; --'
SELECT count(*) FROM t WHERE s = 'x' OR '1' = '1'
SELECT count(*) FROM t WHERE s = '''; DROP TABLE t; --'
SELECT count(*) FROM t WHERE s = "a"
SELECT count(*) FROM t WHERE s = `a`
SELECT count(*) FROM t WHERE s = E'\\'; DROP TABLE t'
SELECT count(*) FROM t WHERE s = $$a'; DROP TABLE t$$
SELECT count(*) FROM t WHERE s = $x$ a $x$
SELECT count(*) FROM t WHERE s = X'41'
SELECT count(*) FROM t WHERE s = U&'a'
SELECT count(*) FROM t WHERE s = 'a' 'b'
SELECT count(*) FROM t WHERE s = 'open
SELECT count(*) FROM t WHERE "open
SELECT count(*) FROM t /* open
SELECT count(*) FROM t WHERE s = $$open
SELECT count(*) FROM t -- */ DROP TABLE t
SELECT count(*) FROM t /* /* nested */ */
SELECT count(*) FROM t WHERE (i = 1
SELECT count(*) FROM t WHERE i = 1)
SELECT count(*)) FROM t
SELECT count(*) FROM t WHERE i = 0x10
SELECT count(*) FROM t WHERE i = 1_000
SELECT count(*) FROM t WHERE i = 1e400
SELECT count(*) FROM t WHERE d = 'inf'::DOUBLE
SELECT count(*) FROM t WHERE d = 'nan'::DOUBLE
SELECT count(*) FROM t WHERE i = 1.
SELECT count(*) FROM t WHERE i = .5.5
SELECT count(*) FROM t WHERE i == 1
SELECT count(*) FROM t WHERE i <=> 1
SELECT count(*) FROM t WHERE i & 1 = 1
SELECT count(*) FROM t WHERE da + 1000000000 > da
SELECT count(*) FROM t WHERE da + INTERVAL '99999999999 years' > da
SELECT count(*) FROM t WHERE da > DATE '294277-01-01'
SELECT count(*) FROM t WHERE da > DATE '5000-01-01 (BC)'
SELECT count(*) FROM t WHERE ts AT TIME ZONE 'UTC' > ts
SELECT count(*) FROM t WHERE ts > TIMESTAMPTZ '2024-01-01 00:00:00+01'
SELECT count(*) FROM t WHERE INTERVAL 1 DAY > INTERVAL 1 HOUR
SELECT count(*) FROM t WHERE i IS UNKNOWN
SELECT count(*) FROM t WHERE i IS NOT DISTINCT FROM ALL
SELECT count(*) FROM t WHERE NOT NOT NOT p
SELECT count(*) FILTER (WHERE max(i) > 1) FROM t
SELECT count(*) FILTER (WHERE i IN (SELECT 1)) FROM t
SELECT count(* ORDER BY i) FROM t
SELECT sum(i ORDER BY k) FROM t
SELECT sum(i) WITHIN GROUP (ORDER BY i) FROM t
SELECT sum(i) IGNORE NULLS FROM t
SELECT sum(CASE WHEN s = 'a' THEN s END) FROM t
SELECT sum(CASE WHEN i > 1 THEN h END) FROM t
SELECT sum(i / d) FROM t
SELECT sum(i * b * d * f * n * u * k) FROM t
SELECT sum(i), sum(b), sum(d) FROM t
SELECT sum(TRY_CAST(s AS INTEGER)) FROM t
SELECT sum(exp(i)) FROM t
SELECT sum(power(i, 99)) FROM t
SELECT sum(1e308 * i) FROM t
SELECT sum(i) / 0 FROM t
SELECT sum(i) * 1e308 * 1e308 FROM t
SELECT sum(i) + 'a' FROM t
SELECT sum(i) || 'a' FROM t
SELECT count(*) AS "x""y", count(*) AS "'; DROP" FROM t
SELECT count(*) x, count(*) x, x + 1 FROM t
SELECT a AS b, b AS a FROM t
SELECT a + 1 AS a FROM t
SELECT count(*) + x AS y, y + 1 AS x FROM t
SELECT ＣＯＵＮＴ(*) FROM t
SELECT count(*) FROM t WHERE s = '\u202e'
SELECT count(*) FROM ｔ
SELECT count(*) FROM t WHERE і = 1
SELECT count(*) FROM t;;;;
;SELECT count(*) FROM t
 SELECT count(*) FROM t
SELECT 1
SELECT NULL
SELECT 'a' || 'b' AS c
SELECT now()
SELECT random()
SELECT getenv('HOME')
SELECT current_setting('threads')
SELECT 1 UNION ALL SELECT 2
SELECT 1 FROM t
SELECT 1, 2 FROM t GROUP BY 1
SELECT count(*) FROM places
SELECT * FROM places
SELECT zone FROM places
SELECT max(size) FROM places
hello
'
"
)
--
/*
\\
👻
SELECT 👻 FROM t
"""

GENERATED = [
    "\x00",
    "SELECT count(*)\x00 FROM t",
    "SELECT count(*) FROM t WHERE s = 'a\x00b'",
    "SELECT count(*) FROM t WHERE s = '\ud800'",
    "\ufeffSELECT count(*) FROM t",
    "SELECT\u00a0count(*)\u2003FROM t",
    "SELECT count(*) FROM t WHERE s = '" + "x" * 900_000 + "'",
    "SELECT count(*) FROM t WHERE i = " + "9" * 5_000,
    "SELECT count(*) FROM t WHERE i = " + "9" * 100_000,
    "SELECT count(*) FROM t WHERE d = 0." + "1" * 10_000,
    "SELECT count(*) FROM t WHERE " + "n" * 10_000 + " = 1",
    f"{COUNT} WHERE " + " AND ".join(["i = 1"] * 20_000),
    f"{COUNT} WHERE " + " OR ".join(f"i = {n}" for n in range(20_000)),
    f"{COUNT} WHERE " + " OR ".join(f"i = {n} AND k = {n}" for n in range(5_000)),
    f"{COUNT} WHERE i IN ({', '.join(map(str, range(50_000)))})",
    f"{COUNT} WHERE s IN ({', '.join(repr(str(n)) for n in range(20_000))})",
    f"{COUNT} WHERE i = " + " + ".join(["1"] * 5_000),
    f"{COUNT} WHERE i = " + " + ".join(["i"] * 5_000),
    f"{COUNT} WHERE s = " + " || ".join(["'a'"] * 5_000),
    f"{COUNT} WHERE " + "(" * 5_000 + "p" + ")" * 5_000,
    f"{COUNT} WHERE " + "(" * 101 + "p" + ")" * 101,
    f"{COUNT} WHERE " + "(" * 5_000,
    f"{COUNT} WHERE " + "NOT " * 5_000 + "p",
    f"{COUNT} WHERE i = " + "-" * 1 + " -" * 5_000 + "1",
    f"{COUNT} WHERE i = " + "abs(" * 5_000 + "i" + ")" * 5_000,
    f"{COUNT} WHERE i = " + "CASE WHEN p THEN " * 200 + "1" + " END" * 200,
    f"{COUNT} WHERE i = " + "CASE WHEN p THEN 1 ELSE " * 90 + "1" + " END" * 90,
    f"{COUNT} WHERE i = 1" + "::BIGINT" * 2_000,
    f"{COUNT} WHERE i" + " IS NULL" * 2_000,
    f"{COUNT} WHERE i = [" + "[" * 2_000,
    "SELECT " + ", ".join(["count(*)"] * 10_000) + " FROM t",
    "SELECT " + ", ".join(f"count_if(i = {n})" for n in range(50)) + " FROM t",
    "SELECT " + " + ".join(["count(*)"] * 3_000) + " FROM t",
    "SELECT " + " + ".join(f"count_if(i = {n})" for n in range(1_000)) + " FROM t",
    "SELECT " + "(" * 90 + "count(*)" + ")" * 90 + " FROM t",
    "SELECT " + "round(" * 60 + "count(*)" + ")" * 60 + " FROM t",
    "SELECT count(*) FROM " + "(SELECT * FROM " * 60 + "t" + ")" * 60,
    "WITH " + ", ".join(f"c{n} AS (SELECT * FROM {'t' if not n else f'c{n - 1}'})" for n in range(300))
    + " SELECT count(*) FROM c299",
    "WITH a0 AS (SELECT i FROM t), "
    + ", ".join(f"a{n} AS (SELECT i + i AS i FROM a{n - 1})" for n in range(1, 40))
    + " SELECT count(*) FROM a39 WHERE i = 1",
    " UNION ALL ".join([COUNT] * 2_000),
    ";".join([COUNT] * 10_001),
    ";" * 100_000,
    COUNT + " JOIN places ON t.k = places.k" * 200,
    "SELECT count(*) FROM t" + ", t" * 2_000,
    "SELECT count(*) FROM t GROUP BY " + ", ".join(["k"] * 2_000),
    "SELECT count(*) FROM t GROUP BY CUBE (" + ", ".join(f"k + {n}" for n in range(30)) + ")",
    "SELECT count(*) FROM t GROUP BY " + ", ".join(["ROLLUP (k, p)"] * 30),
    "SELECT count(*) FROM t ORDER BY " + ", ".join(["1"] * 2_000),
    f"{COUNT} WHERE " + " AND ".join(f"{c} < {n}" for n, c in enumerate("ibudfnk" * 3)),
    f"{COUNT} WHERE regexp_matches(s, '" + "(a*)*" * 500 + "')",
    f"{COUNT} WHERE s LIKE '" + "%a" * 5_000 + "'",
    "--" + "x" * 500_000,
    "/*" * 50_000,
    "SELECT " + "'a' " * 5_000,
    "x" * 1_000_001,
    "(" * 100_000,
    "SELECT 1 " * 5_000,
    "🦆" * 10_000,
]  # fmt: skip


def statements() -> list[str]:
    """The whole corpus."""
    return [line for line in STATEMENTS.split("\n") if line] + GENERATED
