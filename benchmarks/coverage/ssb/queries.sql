-- name: ssb/1.1  expect: answer
SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25;

-- name: ssb/1.2  expect: answer
SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder JOIN dates ON lo_orderdate = d_datekey
WHERE d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35;

-- name: ssb/1.3  expect: answer
SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7;

-- name: ssb/2.1  expect: answer
SELECT sum(lo_revenue) AS revenue, d_year, p_brand1 FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
  AND p_category = 'MFGR#12' AND s_region = 'AMERICA'
GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1;

-- name: ssb/2.2  expect: answer
SELECT d_year, p_brand1, sum(lo_revenue) AS revenue FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
  AND p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2228' AND s_region = 'ASIA'
GROUP BY d_year, p_brand1 ORDER BY 1, 2;

-- name: ssb/2.3  expect: answer
SELECT d_year, p_brand1, sum(lo_revenue) AS revenue
FROM lineorder JOIN dates ON lo_orderdate = d_datekey JOIN part ON lo_partkey = p_partkey
  JOIN supplier ON lo_suppkey = s_suppkey
WHERE p_brand1 = 'MFGR#2222' AND s_region = 'EUROPE' GROUP BY d_year, p_brand1;

-- name: ssb/3.1  expect: answer
SELECT c_nation, s_nation, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
  AND c_region = 'ASIA' AND s_region = 'ASIA' AND d_year BETWEEN 1992 AND 1997
GROUP BY c_nation, s_nation, d_year ORDER BY d_year, revenue DESC;

-- name: ssb/3.2  expect: answer
SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND c_nation = 'UNITED STATES'
  AND s_nation = 'UNITED STATES' GROUP BY c_city, s_city, d_year ORDER BY d_year, revenue DESC;

-- name: ssb/3.3  expect: answer
SELECT c_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
  AND c_city IN ('UNITED KI1', 'UNITED KI5') AND s_nation = 'UNITED KINGDOM' AND d_year >= 1992 AND d_year <= 1997
GROUP BY c_city, d_year ORDER BY d_year, revenue DESC;

-- name: ssb/3.4  expect: answer
SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND d_yearmonth = 'Dec1997'
GROUP BY c_city, s_city, d_year ORDER BY revenue DESC;

-- name: ssb/4.1  expect: answer
SELECT d_year, c_nation, sum(lo_revenue - lo_supplycost) AS profit FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey
  AND c_region = 'AMERICA' AND s_region = 'AMERICA' AND p_mfgr IN ('MFGR#1', 'MFGR#2')
GROUP BY d_year, c_nation ORDER BY d_year, c_nation;

-- name: ssb/4.2  expect: answer
SELECT d_year, s_nation, p_category, sum(lo_revenue - lo_supplycost) AS profit
FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey
  AND c_region = 'AMERICA' AND d_year IN (1997, 1998)
GROUP BY d_year, s_nation, p_category ORDER BY 1, 2, 3;

-- name: ssb/4.3  expect: answer
SELECT d_year, s_city, p_brand1, sum(lo_revenue - lo_supplycost) AS profit
FROM lineorder, dates, supplier, part
WHERE lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey
  AND s_nation = 'UNITED STATES' AND p_category = 'MFGR#14' AND d_year >= 1997
GROUP BY d_year, s_city, p_brand1 ORDER BY 1, 2, 3;
