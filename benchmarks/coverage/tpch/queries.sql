-- name: tpch/01  expect: answer
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS list_price,
  sum(l_extendedprice * (1 - l_discount)) AS revenue, avg(l_quantity) AS mean_quantity, avg(l_discount) AS mean_discount,
  count(*) AS items
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2;

-- name: tpch/02  expect: answer
SELECT s_name, n_name, p_partkey, p_mfgr, ps_supplycost
FROM part, supplier, partsupp, nation, region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = 'EUROPE' AND p_type LIKE '%BRASS'
  AND ps_supplycost = (SELECT min(c.ps_supplycost) FROM partsupp c WHERE c.ps_partkey = p_partkey)
ORDER BY s_name, p_partkey LIMIT 100;

-- name: tpch/03  expect: answer
SELECT o_orderdate, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY o_orderdate ORDER BY revenue DESC, o_orderdate LIMIT 10;

-- name: tpch/03-orders  expect: refuse:one-unit-groups
SELECT o_custkey, o_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM orders, lineitem WHERE l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15'
GROUP BY o_custkey, o_orderkey ORDER BY revenue DESC LIMIT 10;

-- name: tpch/04  expect: answer
SELECT o_orderpriority, count(*) AS late_orders FROM orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
  AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority ORDER BY o_orderpriority;

-- name: tpch/05  expect: answer
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND year(o_orderdate) = 1994
GROUP BY n_name ORDER BY revenue DESC;

-- name: tpch/06  expect: answer
SELECT sum(l_extendedprice * l_discount) AS lost FROM lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07
  AND l_quantity < 24;

-- name: tpch/07  expect: answer
SELECT supplier_nation, customer_nation, ship_year, sum(volume) AS revenue
FROM (SELECT n1.n_name AS supplier_nation, n2.n_name AS customer_nation, extract(year FROM l_shipdate) AS ship_year,
        l_extendedprice * (1 - l_discount) AS volume
      FROM supplier, lineitem, orders, customer, nation n1, nation n2
      WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
        AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
        AND (n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY' OR n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')
        AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipped
GROUP BY supplier_nation, customer_nation, ship_year ORDER BY 1, 2, 3;

-- name: tpch/08  expect: answer
SELECT order_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS share
FROM (SELECT extract(year FROM o_orderdate) AS order_year, l_extendedprice * (1 - l_discount) AS volume,
        n2.n_name AS nation
      FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
      WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
        AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
        AND s_nationkey = n2.n_nationkey AND p_type = 'ECONOMY ANODIZED STEEL'
        AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS sales
GROUP BY order_year ORDER BY order_year;

-- name: tpch/09  expect: answer
SELECT nation, order_year, sum(profit) AS profit
FROM (SELECT n_name AS nation, extract(year FROM o_orderdate) AS order_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS profit
      FROM part, supplier, lineitem, partsupp, orders, nation
      WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
        AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS lines
GROUP BY nation, order_year ORDER BY nation, order_year DESC;

-- name: tpch/10  expect: refuse:one-unit-groups
SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS returned, n_name
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, n_name ORDER BY returned DESC LIMIT 20;

-- name: tpch/10-nations  expect: answer
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS returned, count(DISTINCT c_custkey) AS customers
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY n_name ORDER BY returned DESC;

-- name: tpch/11  expect: answer
SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS stock
FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'FRANCE'
GROUP BY ps_partkey
HAVING sum(ps_supplycost * ps_availqty) > (SELECT 0.001 * sum(ps_supplycost * ps_availqty) FROM partsupp)
ORDER BY stock DESC;

-- name: tpch/12  expect: answer
SELECT l_shipmode, count(*) FILTER (WHERE o_orderpriority IN ('1-URGENT', '2-HIGH')) AS high_priority,
  count(*) FILTER (WHERE o_orderpriority NOT IN ('1-URGENT', '2-HIGH')) AS low_priority
FROM orders, lineitem
WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate AND year(l_receiptdate) = 1994
GROUP BY l_shipmode ORDER BY l_shipmode;

-- name: tpch/13  expect: answer
SELECT order_count, count(*) AS customers
FROM (SELECT c_custkey, count(o_orderkey) AS order_count
      FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
      GROUP BY c_custkey) AS per_customer
GROUP BY order_count ORDER BY customers DESC, order_count DESC;

-- name: tpch/14  expect: answer
SELECT 100.0 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
  / sum(l_extendedprice * (1 - l_discount)) AS promo_share
FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-12-01';

-- name: tpch/15  expect: answer
WITH revenue AS (SELECT l_suppkey AS supplier_no, sum(l_extendedprice * (1 - l_discount)) AS total FROM lineitem
  WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey)
SELECT s_suppkey, s_name, total FROM supplier, revenue
WHERE s_suppkey = supplier_no AND total = (SELECT max(total) FROM revenue) ORDER BY s_suppkey;

-- name: tpch/16  expect: answer
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS suppliers
FROM partsupp, part
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size ORDER BY suppliers DESC, 1, 2, 3;

-- name: tpch/17  expect: refuse:off-unit-subquery
SELECT sum(l_extendedprice) / 7.0 AS yearly FROM lineitem, part
WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
  AND l_quantity < (SELECT 0.2 * avg(i.l_quantity) FROM lineitem i WHERE i.l_partkey = p_partkey);

-- name: tpch/18  expect: refuse:one-unit-groups
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM customer, orders, lineitem
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 200)
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY ALL ORDER BY o_totalprice DESC LIMIT 100;

-- name: tpch/18-count  expect: answer
SELECT count(*) AS large_orders
FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 100);

-- name: tpch/19  expect: answer
SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
WHERE p_partkey = l_partkey AND l_shipinstruct = 'DELIVER IN PERSON'
  AND (p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX') AND l_quantity BETWEEN 1 AND 11
       OR p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX') AND l_quantity BETWEEN 10 AND 20);

-- name: tpch/20  expect: refuse:off-unit-subquery
SELECT s_name, s_address FROM supplier, nation
WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
    WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%')
      AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem
                         WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey))
  AND s_nationkey = n_nationkey AND n_name = 'CANADA' ORDER BY s_name;

-- name: tpch/21  expect: answer
SELECT s_name, count(*) AS late FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
  AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
GROUP BY s_name ORDER BY late DESC, s_name LIMIT 100;

-- name: tpch/22  expect: answer
SELECT country_code, count(*) AS customers, sum(c_acctbal) AS balance
FROM (SELECT substring(c_phone, 1, 2) AS country_code, c_acctbal FROM customer
      WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29')
        AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0)
        AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)) AS idle
GROUP BY country_code ORDER BY country_code;
