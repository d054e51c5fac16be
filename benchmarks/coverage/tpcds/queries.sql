-- name: tpcds/01  expect: refuse:one-unit-groups
WITH returned AS (SELECT sr_customer_sk AS customer, sr_store_sk AS store, sum(sr_return_amt) AS total
  FROM store_returns, date_dim WHERE sr_returned_date_sk = d_date_sk AND d_year = 2000 GROUP BY sr_customer_sk, sr_store_sk)
SELECT c_customer_id FROM returned r1, store, customer
WHERE r1.total > (SELECT 1.2 * avg(total) FROM returned r2 WHERE r1.store = r2.store)
  AND s_store_sk = r1.store AND s_state = 'TN' AND r1.customer = c_customer_sk ORDER BY c_customer_id LIMIT 100;

-- name: tpcds/01-count  expect: answer
WITH returned AS (SELECT sr_customer_sk AS customer, sum(sr_return_amt) AS total
  FROM store_returns, date_dim WHERE sr_returned_date_sk = d_date_sk AND d_year = 2000 GROUP BY sr_customer_sk)
SELECT count(*) AS heavy_returners FROM returned WHERE total > 5000;

-- name: tpcds/02  expect: answer
WITH weekly AS (SELECT d_week_seq, sum(CASE WHEN d_day_name = 'Sunday' THEN price END) AS sunday,
    sum(CASE WHEN d_day_name = 'Monday' THEN price END) AS monday
  FROM (SELECT ws_sold_date_sk AS sold, ws_ext_sales_price AS price FROM web_sales
        UNION ALL SELECT cs_sold_date_sk, cs_ext_sales_price FROM catalog_sales) AS both_channels, date_dim
  WHERE d_date_sk = sold GROUP BY d_week_seq)
SELECT d_week_seq, sunday, monday FROM weekly WHERE d_week_seq BETWEEN 5270 AND 5280 ORDER BY d_week_seq;

-- name: tpcds/03  expect: answer
SELECT d_year, i_brand_id, i_brand, sum(ss_ext_sales_price) AS sales
FROM date_dim, store_sales, item
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manufact_id = 8 AND d_moy = 11
GROUP BY d_year, i_brand, i_brand_id ORDER BY d_year, sales DESC, i_brand_id LIMIT 100;

-- name: tpcds/04  expect: answer
WITH store_year AS (SELECT ss_customer_sk AS customer, sum(ss_ext_sales_price) AS total FROM store_sales
    JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE d_year = 2001 GROUP BY ss_customer_sk),
  web_year AS (SELECT ws_bill_customer_sk AS customer, sum(ws_ext_sales_price) AS total FROM web_sales
    JOIN date_dim ON ws_sold_date_sk = d_date_sk WHERE d_year = 2001 GROUP BY ws_bill_customer_sk)
SELECT count(*) AS prefer_web FROM store_year s JOIN web_year w ON s.customer = w.customer WHERE w.total > s.total;

-- name: tpcds/05  expect: answer
SELECT channel, sum(sales) AS sales, sum(returned) AS returned, sum(sales) - sum(returned) AS net
FROM (SELECT 'store' AS channel, ss_ext_sales_price AS sales, 0 AS returned FROM store_sales
      UNION ALL SELECT 'store', 0, sr_return_amt FROM store_returns
      UNION ALL SELECT 'web', ws_ext_sales_price, 0 FROM web_sales
      UNION ALL SELECT 'web', 0, wr_return_amt FROM web_returns) AS movements
GROUP BY ROLLUP (channel) ORDER BY channel;

-- name: tpcds/06  expect: answer
SELECT ca_state, count(*) AS sold FROM customer_address, customer, store_sales, date_dim, item
WHERE ca_address_sk = c_current_addr_sk AND c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
  AND ss_item_sk = i_item_sk AND d_year = 2001 AND d_moy = 1
  AND i_current_price > 1.2 * (SELECT avg(j.i_current_price) FROM item j WHERE j.i_category = item.i_category)
GROUP BY ca_state HAVING count(*) >= 2 ORDER BY sold, ca_state;

-- name: tpcds/07  expect: answer
SELECT i_item_id, avg(ss_quantity) AS quantity, avg(ss_list_price) AS list_price, avg(ss_sales_price) AS price
FROM store_sales, customer_demographics, date_dim, item, promotion
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_cdemo_sk = cd_demo_sk AND ss_promo_sk = p_promo_sk
  AND cd_gender = 'M' AND cd_marital_status = 'S' AND (p_channel_email = 'N' OR p_channel_event = 'N') AND d_year = 2000
GROUP BY i_item_id ORDER BY i_item_id LIMIT 100;

-- name: tpcds/08  expect: answer
SELECT s_store_name, sum(ss_net_profit) AS profit FROM store_sales, date_dim, store,
  (SELECT ca_zip FROM customer_address WHERE substr(ca_zip, 1, 2) IN ('35', '31') GROUP BY ca_zip) AS zips
WHERE ss_store_sk = s_store_sk AND ss_sold_date_sk = d_date_sk AND d_qoy = 2 AND d_year = 1999 AND s_zip = zips.ca_zip
GROUP BY s_store_name ORDER BY s_store_name;

-- name: tpcds/09  expect: answer
SELECT CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) > 500
         THEN (SELECT avg(ss_ext_discount_amt) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20)
         ELSE (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 1 AND 20) END AS bucket1,
  CASE WHEN (SELECT count(*) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40) > 500
         THEN (SELECT avg(ss_ext_discount_amt) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40)
         ELSE (SELECT avg(ss_net_paid) FROM store_sales WHERE ss_quantity BETWEEN 21 AND 40) END AS bucket2
FROM reason WHERE r_reason_sk = 1;

-- name: tpcds/10  expect: answer
SELECT cd_gender, cd_marital_status, cd_education_status, count(*) AS customers
FROM customer c, customer_address ca, customer_demographics
WHERE c.c_current_addr_sk = ca.ca_address_sk AND cd_demo_sk = c.c_current_cdemo_sk
  AND ca_county IN ('Rush County', 'Walker County')
  AND EXISTS (SELECT 1 FROM store_sales, date_dim WHERE c.c_customer_sk = ss_customer_sk
              AND ss_sold_date_sk = d_date_sk AND d_year = 2002)
GROUP BY cd_gender, cd_marital_status, cd_education_status ORDER BY 1, 2, 3;

-- name: tpcds/11  expect: refuse:one-unit-groups
WITH year_total AS (SELECT c_customer_id AS id, d_year AS y, sum(ss_ext_list_price - ss_ext_discount_amt) AS total
  FROM customer, store_sales, date_dim WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
  GROUP BY c_customer_id, d_year)
SELECT a.id FROM year_total a JOIN year_total b ON a.id = b.id
WHERE a.y = 2001 AND b.y = 2002 AND b.total > a.total ORDER BY a.id LIMIT 100;

-- name: tpcds/12  expect: answer
SELECT i_item_id, i_class, sum(ws_ext_sales_price) AS revenue,
  sum(ws_ext_sales_price) * 100 / sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class) AS share
FROM web_sales, item, date_dim
WHERE ws_item_sk = i_item_sk AND i_category IN ('Sports', 'Books') AND ws_sold_date_sk = d_date_sk
  AND d_date BETWEEN DATE '1999-02-22' AND DATE '1999-12-31'
GROUP BY i_item_id, i_class ORDER BY i_class, i_item_id;

-- name: tpcds/13  expect: answer
SELECT avg(ss_quantity) AS quantity, avg(ss_ext_sales_price) AS price, avg(ss_wholesale_cost) AS cost,
  sum(ss_wholesale_cost) AS total_cost
FROM store_sales, store, customer_demographics, household_demographics, customer_address, date_dim
WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2001 AND ss_hdemo_sk = hd_demo_sk
  AND cd_demo_sk = ss_cdemo_sk AND ss_addr_sk = ca_address_sk
  AND (cd_marital_status = 'M' AND ss_sales_price BETWEEN 100 AND 150 AND hd_dep_count = 3
       OR cd_marital_status = 'S' AND ss_sales_price BETWEEN 50 AND 100 AND hd_dep_count = 1
       OR ca_state IN ('TX', 'OH') AND ss_net_profit BETWEEN 100 AND 200);

-- name: tpcds/14  expect: answer
SELECT channel, i_brand_id, sum(sales) AS sales, sum(n) AS n
FROM (SELECT 'store' AS channel, i_brand_id, sum(ss_quantity * ss_list_price) AS sales, count(*) AS n
        FROM store_sales, item, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2001
        GROUP BY i_brand_id
      UNION ALL SELECT 'catalog', i_brand_id, sum(cs_quantity * cs_list_price), count(*)
        FROM catalog_sales, item, date_dim WHERE cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2001
        GROUP BY i_brand_id) AS channels
GROUP BY ROLLUP (channel, i_brand_id) ORDER BY channel, i_brand_id;

-- name: tpcds/15  expect: answer
SELECT ca_zip, sum(cs_sales_price) AS sales FROM catalog_sales, customer, customer_address, date_dim
WHERE cs_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk AND cs_sold_date_sk = d_date_sk
  AND (substr(ca_zip, 1, 5) IN ('85669', '86197') OR ca_state IN ('CA', 'GA') OR cs_sales_price > 250)
  AND d_qoy = 2 AND d_year = 2001
GROUP BY ca_zip ORDER BY ca_zip;

-- name: tpcds/16  expect: answer
SELECT count(DISTINCT cs_order_number) AS orders, sum(cs_ext_ship_cost) AS shipping, sum(cs_net_profit) AS profit
FROM catalog_sales JOIN date_dim ON cs_ship_date_sk = d_date_sk JOIN call_center ON cs_call_center_sk = cc_call_center_sk
WHERE d_date BETWEEN DATE '2002-02-01' AND DATE '2002-04-02' AND cc_county = 'Williamson County';

-- name: tpcds/17  expect: answer
SELECT s_state, count(ss_quantity) AS n, avg(ss_quantity) AS mean, stddev_samp(ss_quantity) AS deviation,
  stddev_samp(ss_quantity) / avg(ss_quantity) AS variation
FROM store_sales, date_dim, store
WHERE d_quarter_name = '2001Q1' AND d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk
GROUP BY s_state ORDER BY s_state;

-- name: tpcds/18  expect: answer
SELECT i_item_id, ca_state, ca_county, avg(cs_quantity) AS quantity, avg(cs_list_price) AS price,
  avg(c_birth_year) AS birth_year
FROM catalog_sales, customer_demographics, customer, customer_address, date_dim, item
WHERE cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk AND cs_bill_cdemo_sk = cd_demo_sk
  AND cs_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk AND cd_gender = 'F' AND d_year = 2001
GROUP BY ROLLUP (i_item_id, ca_state, ca_county) ORDER BY 2, 3, 1 LIMIT 100;

-- name: tpcds/19  expect: answer
SELECT i_brand_id, i_manufact_id, sum(ss_ext_sales_price) AS sales
FROM date_dim, store_sales, item, customer, customer_address, store
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 3 AND d_moy = 11
  AND ss_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk
  AND substr(ca_zip, 1, 5) <> substr(s_zip, 1, 5) AND ss_store_sk = s_store_sk
GROUP BY i_brand_id, i_manufact_id ORDER BY sales DESC, 1, 2 LIMIT 100;

-- name: tpcds/20  expect: answer
SELECT i_category, i_class, sum(cs_ext_sales_price) AS revenue,
  100 * sum(cs_ext_sales_price) / sum(sum(cs_ext_sales_price)) OVER (PARTITION BY i_category) AS share
FROM catalog_sales JOIN item ON cs_item_sk = i_item_sk JOIN date_dim ON cs_sold_date_sk = d_date_sk
WHERE i_category IN ('Sports', 'Books', 'Home') AND d_year = 1999
GROUP BY i_category, i_class ORDER BY 1, 2;

-- name: tpcds/21  expect: answer
SELECT w_warehouse_name, i_item_id,
  sum(CASE WHEN d_date < DATE '2000-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS stock_before,
  sum(CASE WHEN d_date >= DATE '2000-03-11' THEN inv_quantity_on_hand ELSE 0 END) AS stock_after
FROM inventory, warehouse, item, date_dim
WHERE i_item_sk = inv_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk AND d_year = 2000
GROUP BY w_warehouse_name, i_item_id ORDER BY 1, 2 LIMIT 100;

-- name: tpcds/22  expect: answer
SELECT i_category, i_brand, i_class, avg(inv_quantity_on_hand) AS stock FROM inventory, date_dim, item
WHERE inv_date_sk = d_date_sk AND inv_item_sk = i_item_sk AND d_month_seq BETWEEN 1200 AND 1211
GROUP BY ROLLUP (i_category, i_brand, i_class) ORDER BY stock, 1, 2, 3 LIMIT 100;

-- name: tpcds/23  expect: answer
WITH frequent AS (SELECT ss_item_sk AS item_sk, count(*) AS n FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk
  WHERE d_year IN (2000, 2001) GROUP BY ss_item_sk HAVING count(*) > 4)
SELECT sum(cs_quantity * cs_list_price) AS sales FROM catalog_sales JOIN date_dim ON cs_sold_date_sk = d_date_sk
WHERE d_year = 2000 AND d_moy = 2 AND cs_item_sk IN (SELECT item_sk FROM frequent);

-- name: tpcds/24  expect: refuse:rows
SELECT c_last_name, c_first_name, s_store_name, ss_net_paid FROM store_sales, store_returns, store, customer
WHERE ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk AND ss_customer_sk = c_customer_sk
  AND ss_store_sk = s_store_sk AND s_market_id = 8;

-- name: tpcds/25  expect: answer
SELECT i_item_id, s_store_id, sum(ss_net_profit) AS sold, sum(sr_net_loss) AS returned
FROM store_sales, store_returns, store, item
WHERE ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk AND ss_ticket_number = sr_ticket_number
  AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk
GROUP BY i_item_id, s_store_id ORDER BY 1, 2 LIMIT 100;

-- name: tpcds/26  expect: answer
SELECT i_item_id, avg(cs_quantity) AS quantity, avg(cs_list_price) AS list_price, avg(cs_coupon_amt) AS coupon
FROM catalog_sales, customer_demographics, date_dim, item, promotion
WHERE cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk AND cs_bill_cdemo_sk = cd_demo_sk
  AND cs_promo_sk = p_promo_sk AND cd_education_status = 'College' AND p_channel_email = 'N' AND d_year = 2000
GROUP BY i_item_id ORDER BY i_item_id;

-- name: tpcds/27  expect: answer
SELECT i_item_id, s_state, grouping(s_state) AS all_states, avg(ss_quantity) AS quantity, avg(ss_sales_price) AS price
FROM store_sales, customer_demographics, date_dim, store, item
WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND ss_cdemo_sk = cd_demo_sk
  AND cd_gender = 'F' AND d_year = 2002 AND s_state IN ('TN', 'OH')
GROUP BY ROLLUP (i_item_id, s_state) ORDER BY i_item_id, s_state LIMIT 100;

-- name: tpcds/28  expect: answer
SELECT * FROM
  (SELECT avg(ss_list_price) AS b1_mean, count(ss_list_price) AS b1_n, count(DISTINCT ss_list_price) AS b1_different
   FROM store_sales WHERE ss_quantity BETWEEN 0 AND 5 AND ss_list_price BETWEEN 8 AND 18) b1,
  (SELECT avg(ss_list_price) AS b2_mean, count(ss_list_price) AS b2_n, count(DISTINCT ss_list_price) AS b2_different
   FROM store_sales WHERE ss_quantity BETWEEN 6 AND 10 AND ss_list_price BETWEEN 90 AND 100) b2;

-- name: tpcds/29  expect: answer
SELECT s_store_name, sum(ss_quantity) AS sold, sum(sr_return_quantity) AS returned
FROM store_sales JOIN store_returns ON ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk
  JOIN store ON s_store_sk = ss_store_sk
GROUP BY s_store_name ORDER BY s_store_name;

-- name: tpcds/30  expect: refuse:rows
SELECT c_customer_id, c_first_name, c_last_name, wr_return_amt FROM web_returns
JOIN customer ON wr_returning_customer_sk = c_customer_sk WHERE wr_return_amt > 10000 ORDER BY wr_return_amt DESC;

-- name: tpcds/31  expect: answer
WITH ss AS (SELECT ca_county, d_qoy, sum(ss_ext_sales_price) AS sales FROM store_sales, date_dim, customer_address
    WHERE ss_sold_date_sk = d_date_sk AND ss_addr_sk = ca_address_sk AND d_year = 2000 GROUP BY ca_county, d_qoy)
SELECT a.ca_county, b.sales / a.sales AS growth FROM ss a JOIN ss b ON a.ca_county = b.ca_county
WHERE a.d_qoy = 1 AND b.d_qoy = 2 ORDER BY a.ca_county;

-- name: tpcds/32  expect: refuse:off-unit-subquery
SELECT sum(cs_ext_discount_amt) AS excess FROM catalog_sales, item, date_dim
WHERE i_manufact_id = 7 AND i_item_sk = cs_item_sk AND d_date_sk = cs_sold_date_sk
  AND cs_ext_discount_amt > (SELECT 1.3 * avg(c2.cs_ext_discount_amt) FROM catalog_sales c2 WHERE c2.cs_item_sk = i_item_sk);

-- name: tpcds/33  expect: answer
WITH ss AS (SELECT i_manufact_id, sum(ss_ext_sales_price) AS sales FROM store_sales, date_dim, item
    WHERE i_category = 'Electronics' AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 1999
    GROUP BY i_manufact_id),
  ws AS (SELECT i_manufact_id, sum(ws_ext_sales_price) AS sales FROM web_sales, date_dim, item
    WHERE i_category = 'Electronics' AND ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk AND d_year = 1999
    GROUP BY i_manufact_id)
SELECT i_manufact_id, sum(sales) AS total FROM (SELECT * FROM ss UNION ALL SELECT * FROM ws) AS channels
GROUP BY i_manufact_id ORDER BY total;

-- name: tpcds/34  expect: answer
SELECT items, count(*) AS customers
FROM (SELECT ss_customer_sk, count(*) AS items FROM store_sales, household_demographics
      WHERE ss_hdemo_sk = hd_demo_sk AND hd_vehicle_count > 0 AND hd_buy_potential IN ('>10000', 'Unknown')
      GROUP BY ss_customer_sk) AS baskets
WHERE items BETWEEN 2 AND 8 GROUP BY items ORDER BY items;

-- name: tpcds/35  expect: answer
SELECT ca_state, cd_gender, cd_dep_count, count(*) AS customers, avg(cd_dep_count) AS dependents
FROM customer c, customer_address ca, customer_demographics
WHERE c.c_current_addr_sk = ca.ca_address_sk AND cd_demo_sk = c.c_current_cdemo_sk
  AND (EXISTS (SELECT 1 FROM web_sales WHERE ws_bill_customer_sk = c.c_customer_sk)
       OR EXISTS (SELECT 1 FROM catalog_sales WHERE cs_bill_customer_sk = c.c_customer_sk))
GROUP BY ca_state, cd_gender, cd_dep_count ORDER BY 1, 2, 3 LIMIT 100;

-- name: tpcds/36  expect: answer
SELECT sum(ss_net_profit) / sum(ss_ext_sales_price) AS margin, i_category, i_class,
  rank() OVER (PARTITION BY i_category ORDER BY sum(ss_net_profit) / sum(ss_ext_sales_price)) AS place
FROM store_sales, date_dim, item, store
WHERE d_year = 2001 AND d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk
GROUP BY i_category, i_class ORDER BY i_category, place;

-- name: tpcds/37  expect: answer
SELECT i_item_id, i_current_price FROM item, inventory, date_dim, catalog_sales
WHERE i_current_price BETWEEN 20 AND 50 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk
  AND inv_quantity_on_hand BETWEEN 100 AND 500 AND cs_item_sk = i_item_sk
GROUP BY i_item_id, i_current_price ORDER BY i_item_id;

-- name: tpcds/38  expect: answer
SELECT count(*) AS loyal FROM (
  SELECT DISTINCT ss_customer_sk FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE d_year = 2000
  INTERSECT SELECT DISTINCT ws_bill_customer_sk FROM web_sales JOIN date_dim ON ws_sold_date_sk = d_date_sk
    WHERE d_year = 2000) AS both_channels;

-- name: tpcds/39  expect: answer
SELECT w_warehouse_sk, i_item_sk, d_moy, stddev_samp(inv_quantity_on_hand) AS deviation, avg(inv_quantity_on_hand) AS mean
FROM inventory, item, warehouse, date_dim
WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk AND d_year = 2001
GROUP BY w_warehouse_sk, i_item_sk, d_moy HAVING count(*) > 1 ORDER BY 1, 2, 3;

-- name: tpcds/40  expect: answer
SELECT w_state, i_item_id,
  sum(CASE WHEN d_date < DATE '2000-03-11' THEN cs_sales_price - coalesce(cr_return_amount, 0) ELSE 0 END) AS before,
  sum(CASE WHEN d_date >= DATE '2000-03-11' THEN cs_sales_price - coalesce(cr_return_amount, 0) ELSE 0 END) AS after
FROM catalog_sales LEFT JOIN catalog_returns
    ON cs_bill_customer_sk = cr_returning_customer_sk AND cs_order_number = cr_order_number AND cs_item_sk = cr_item_sk,
  warehouse, item, date_dim
WHERE i_item_sk = cs_item_sk AND cs_warehouse_sk = w_warehouse_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2000
GROUP BY w_state, i_item_id ORDER BY w_state, i_item_id LIMIT 100;

-- name: tpcds/41  expect: answer
SELECT DISTINCT i_item_desc FROM item i1
WHERE i_manufact_id BETWEEN 1 AND 6
  AND (SELECT count(*) FROM item i2 WHERE i2.i_manufact = i1.i_manufact AND i2.i_color IN ('red', 'navy')) > 0
ORDER BY i_item_desc;

-- name: tpcds/42  expect: answer
SELECT d_year, i_category_id, i_category, sum(ss_ext_sales_price) AS sales FROM date_dim, store_sales, item
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 1 AND d_moy = 11 AND d_year = 2000
GROUP BY d_year, i_category_id, i_category ORDER BY sales DESC, 1, 2, 3;

-- name: tpcds/43  expect: answer
SELECT s_store_name, s_store_id, sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sunday,
  sum(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price END) AS monday,
  sum(CASE WHEN d_day_name = 'Saturday' THEN ss_sales_price END) AS saturday
FROM date_dim, store_sales, store
WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk AND s_gmt_offset = -5 AND d_year = 2000
GROUP BY s_store_name, s_store_id ORDER BY 1, 2;

-- name: tpcds/44  expect: answer
SELECT i_item_sk, mean_profit, rank() OVER (ORDER BY mean_profit DESC) AS place
FROM (SELECT ss_item_sk AS i_item_sk, avg(ss_net_profit) AS mean_profit FROM store_sales WHERE ss_store_sk = 4
      GROUP BY ss_item_sk) AS items
ORDER BY place LIMIT 10;

-- name: tpcds/45  expect: answer
SELECT ca_zip, ca_city, sum(ws_sales_price) AS sales FROM web_sales, customer, customer_address, date_dim, item
WHERE ws_bill_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk AND ws_item_sk = i_item_sk
  AND (substr(ca_zip, 1, 5) = '85669' OR i_item_id IN (SELECT i_item_id FROM item WHERE i_item_sk IN (2, 3, 5, 7)))
  AND ws_sold_date_sk = d_date_sk AND d_qoy = 2 AND d_year = 2001
GROUP BY ca_zip, ca_city ORDER BY ca_zip, ca_city;

-- name: tpcds/46  expect: refuse:rows
SELECT c_last_name, c_first_name, ca_city, ss_ticket_number, ss_coupon_amt
FROM store_sales, customer, customer_address
WHERE ss_customer_sk = c_customer_sk AND c_current_addr_sk = ca_address_sk ORDER BY c_last_name LIMIT 100;

-- name: tpcds/47  expect: answer
WITH monthly AS (SELECT i_category, s_store_name, d_year, d_moy, sum(ss_sales_price) AS sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, s_store_name, d_year) AS yearly_mean
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_year = 1999
  GROUP BY i_category, s_store_name, d_year, d_moy)
SELECT i_category, s_store_name, d_moy, sales, yearly_mean FROM monthly
WHERE yearly_mean > 0 AND abs(sales - yearly_mean) / yearly_mean > 0.1 ORDER BY sales - yearly_mean, 1, 2 LIMIT 100;

-- name: tpcds/48  expect: answer
SELECT sum(ss_quantity) AS quantity FROM store_sales, store, customer_demographics, customer_address, date_dim
WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2000 AND cd_demo_sk = ss_cdemo_sk
  AND ss_addr_sk = ca_address_sk AND (cd_marital_status = 'M' AND ss_sales_price BETWEEN 100 AND 150
    OR cd_marital_status = 'D' AND ss_sales_price BETWEEN 50 AND 100) AND ca_state IN ('TX', 'OH', 'GA');

-- name: tpcds/49  expect: answer
SELECT item, return_ratio, rank() OVER (ORDER BY return_ratio) AS place
FROM (SELECT ws.ws_item_sk AS item, sum(coalesce(wr.wr_return_quantity, 0)) / sum(coalesce(ws.ws_quantity, 0)) AS return_ratio
      FROM web_sales ws LEFT JOIN web_returns wr
        ON ws.ws_bill_customer_sk = wr.wr_returning_customer_sk AND ws.ws_item_sk = wr.wr_item_sk
      GROUP BY ws.ws_item_sk) AS ratios
ORDER BY place LIMIT 10;

-- name: tpcds/50  expect: answer
SELECT s_store_name,
  sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk <= 30 THEN 1 ELSE 0 END) AS within_30,
  sum(CASE WHEN sr_returned_date_sk - ss_sold_date_sk > 30 AND sr_returned_date_sk - ss_sold_date_sk <= 60
      THEN 1 ELSE 0 END) AS within_60
FROM store_sales, store_returns, store, date_dim
WHERE ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk AND ss_store_sk = s_store_sk
  AND sr_returned_date_sk = d_date_sk AND d_year = 2001
GROUP BY s_store_name ORDER BY s_store_name;

-- name: tpcds/51  expect: answer
SELECT d_date, sales, sum(sales) OVER (ORDER BY d_date ROWS UNBOUNDED PRECEDING) AS running
FROM (SELECT d_date, sum(ws_sales_price) AS sales FROM web_sales, date_dim
      WHERE ws_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1200 AND 1201 GROUP BY d_date) AS daily
ORDER BY d_date;

-- name: tpcds/52  expect: answer
SELECT d_year, i_brand_id AS brand, sum(ss_ext_sales_price) AS price
FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk JOIN item ON ss_item_sk = i_item_sk
WHERE i_manager_id = 1 AND d_moy = 11 AND d_year = 2000 GROUP BY d_year, brand ORDER BY d_year, price DESC, brand;

-- name: tpcds/53  expect: answer
SELECT * FROM (SELECT i_manufact_id, d_qoy, sum(ss_sales_price) AS sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_manufact_id) AS quarterly_mean
  FROM item, store_sales, date_dim, store
  WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk AND d_year = 2000
  GROUP BY i_manufact_id, d_qoy) AS quarters
WHERE abs(sales - quarterly_mean) > 0.1 * quarterly_mean ORDER BY quarterly_mean, sales, i_manufact_id LIMIT 100;

-- name: tpcds/54  expect: answer
WITH my_customers AS (SELECT DISTINCT ws_bill_customer_sk AS customer FROM web_sales, item, date_dim
  WHERE ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk AND i_category = 'Music' AND d_moy = 12 AND d_year = 1998 + 1)
SELECT count(*) AS purchases, sum(ss_ext_sales_price) AS revenue
FROM store_sales JOIN my_customers ON ss_customer_sk = customer JOIN date_dim ON ss_sold_date_sk = d_date_sk
WHERE d_year = 2000;

-- name: tpcds/55  expect: answer
SELECT i_brand, sum(ss_ext_sales_price) AS sales FROM date_dim, store_sales, item
WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 2 AND d_year = 1999
GROUP BY i_brand ORDER BY sales DESC, i_brand;

-- name: tpcds/56  expect: answer
SELECT i_item_id, sum(total) AS total FROM (
  SELECT i_item_id, sum(ss_ext_sales_price) AS total FROM store_sales, item
    WHERE ss_item_sk = i_item_sk AND i_color IN ('slate', 'navy') GROUP BY i_item_id
  UNION ALL SELECT i_item_id, sum(cs_ext_sales_price) FROM catalog_sales, item
    WHERE cs_item_sk = i_item_sk AND i_color IN ('slate', 'navy') GROUP BY i_item_id) AS channels
GROUP BY i_item_id ORDER BY total, i_item_id;

-- name: tpcds/57  expect: answer
SELECT i_category, cc_name, d_year, d_moy, sum(cs_sales_price) AS sales,
  lag(sum(cs_sales_price)) OVER (PARTITION BY i_category, cc_name ORDER BY d_year, d_moy) AS before
FROM item, catalog_sales, date_dim, call_center
WHERE cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk AND cc_call_center_sk = cs_call_center_sk AND d_year = 1999
GROUP BY i_category, cc_name, d_year, d_moy ORDER BY 1, 2, 3, 4;

-- name: tpcds/58  expect: answer
WITH ss AS (SELECT i_item_id, sum(ss_ext_sales_price) AS revenue FROM store_sales, item WHERE ss_item_sk = i_item_sk GROUP BY i_item_id),
  cs AS (SELECT i_item_id, sum(cs_ext_sales_price) AS revenue FROM catalog_sales, item WHERE cs_item_sk = i_item_sk GROUP BY i_item_id),
  ws AS (SELECT i_item_id, sum(ws_ext_sales_price) AS revenue FROM web_sales, item WHERE ws_item_sk = i_item_sk GROUP BY i_item_id)
SELECT ss.i_item_id, ss.revenue AS store_revenue, cs.revenue AS catalog_revenue, ws.revenue AS web_revenue,
  (ss.revenue + cs.revenue + ws.revenue) / 3 AS average
FROM ss, cs, ws WHERE ss.i_item_id = cs.i_item_id AND ss.i_item_id = ws.i_item_id ORDER BY ss.i_item_id;

-- name: tpcds/59  expect: answer
WITH weekly AS (SELECT d_week_seq, ss_store_sk, sum(ss_sales_price) AS sales FROM store_sales, date_dim
  WHERE d_date_sk = ss_sold_date_sk GROUP BY d_week_seq, ss_store_sk)
SELECT s_store_name, y.d_week_seq, y.sales / x.sales AS growth
FROM weekly y JOIN weekly x ON y.ss_store_sk = x.ss_store_sk AND y.d_week_seq = x.d_week_seq - 52
  JOIN store ON y.ss_store_sk = s_store_sk
WHERE y.d_week_seq BETWEEN 5215 AND 5220 ORDER BY s_store_name, y.d_week_seq;

-- name: tpcds/61  expect: answer
SELECT promotions, total, promotions / total * 100 AS share FROM
  (SELECT sum(ss_ext_sales_price) AS promotions FROM store_sales, promotion, item
   WHERE ss_promo_sk = p_promo_sk AND ss_item_sk = i_item_sk AND i_category = 'Books' AND p_channel_tv = 'Y') AS promo,
  (SELECT sum(ss_ext_sales_price) AS total FROM store_sales, item
   WHERE ss_item_sk = i_item_sk AND i_category = 'Books') AS every;

-- name: tpcds/62  expect: answer
SELECT substr(w_warehouse_name, 1, 20) AS warehouse, sm_type, web_name,
  sum(CASE WHEN ws_ship_date_sk - ws_sold_date_sk <= 30 THEN 1 ELSE 0 END) AS within_30,
  sum(CASE WHEN ws_ship_date_sk - ws_sold_date_sk > 30 THEN 1 ELSE 0 END) AS later
FROM web_sales, warehouse, ship_mode, web_site
WHERE ws_warehouse_sk = w_warehouse_sk AND ws_ship_mode_sk = sm_ship_mode_sk AND ws_web_site_sk = web_site_sk
GROUP BY 1, sm_type, web_name ORDER BY 1, 2, 3 LIMIT 100;

-- name: tpcds/65  expect: answer
SELECT s_store_name, i_item_id, sc.revenue FROM store, item,
  (SELECT ss_store_sk, avg(revenue) AS mean FROM (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue
     FROM store_sales GROUP BY ss_store_sk, ss_item_sk) AS sa GROUP BY ss_store_sk) AS sb,
  (SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue FROM store_sales GROUP BY ss_store_sk, ss_item_sk) AS sc
WHERE sb.ss_store_sk = sc.ss_store_sk AND sc.revenue <= 0.1 * sb.mean AND s_store_sk = sc.ss_store_sk
  AND i_item_sk = sc.ss_item_sk ORDER BY 1, 2, 3 LIMIT 100;

-- name: tpcds/67  expect: answer
SELECT * FROM (SELECT i_category, i_brand, d_qoy, sum(ss_sales_price * ss_quantity) AS sales,
    rank() OVER (PARTITION BY i_category ORDER BY sum(ss_sales_price * ss_quantity) DESC) AS place
  FROM store_sales, date_dim, item WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year = 2000
  GROUP BY ROLLUP (i_category, i_brand, d_qoy)) AS ranked
WHERE place <= 5 ORDER BY 1, 2, 3, 4 LIMIT 100;

-- name: tpcds/69  expect: answer
SELECT cd_gender, cd_marital_status, count(*) AS customers FROM customer c, customer_demographics
WHERE cd_demo_sk = c.c_current_cdemo_sk
  AND EXISTS (SELECT 1 FROM store_sales WHERE c.c_customer_sk = ss_customer_sk)
  AND NOT EXISTS (SELECT 1 FROM web_sales WHERE c.c_customer_sk = ws_bill_customer_sk)
GROUP BY cd_gender, cd_marital_status ORDER BY 1, 2;

-- name: tpcds/70  expect: answer
SELECT sum(ss_net_profit) AS profit, s_state, s_county, grouping(s_state) + grouping(s_county) AS level
FROM store_sales, date_dim, store WHERE d_month_seq BETWEEN 1200 AND 1211 AND d_date_sk = ss_sold_date_sk
  AND s_store_sk = ss_store_sk GROUP BY ROLLUP (s_state, s_county) ORDER BY level DESC, 2, 3;

-- name: tpcds/71  expect: answer
SELECT i_brand_id, t_hour, t_minute, sum(price) AS price FROM item,
  (SELECT ws_ext_sales_price AS price, ws_item_sk AS sold_item, ws_sold_time_sk AS sold_time FROM web_sales
   UNION ALL SELECT ss_ext_sales_price, ss_item_sk, ss_sold_time_sk FROM store_sales) AS sales, time_dim
WHERE sold_item = i_item_sk AND i_manager_id = 1 AND sold_time = t_time_sk AND t_meal_time IN ('breakfast', 'dinner')
GROUP BY i_brand_id, t_hour, t_minute ORDER BY price DESC, i_brand_id LIMIT 100;

-- name: tpcds/72  expect: answer
SELECT i_item_id, w_warehouse_name, count(*) AS n
FROM catalog_sales JOIN item ON i_item_sk = cs_item_sk JOIN warehouse ON w_warehouse_sk = cs_warehouse_sk
  JOIN date_dim d1 ON cs_sold_date_sk = d1.d_date_sk JOIN date_dim d3 ON cs_ship_date_sk = d3.d_date_sk
  LEFT JOIN promotion ON cs_promo_sk = p_promo_sk
WHERE d3.d_date > d1.d_date + 5 AND d1.d_year = 1999
GROUP BY i_item_id, w_warehouse_name ORDER BY n DESC, 1, 2 LIMIT 100;

-- name: tpcds/73  expect: answer
SELECT count(*) AS customers FROM (SELECT ss_customer_sk FROM store_sales, household_demographics, store
  WHERE ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND s_county = 'Williamson County' AND hd_vehicle_count > 0
  GROUP BY ss_customer_sk HAVING count(*) BETWEEN 1 AND 5) AS baskets;

-- name: tpcds/76  expect: answer
SELECT channel, missing, d_year, d_qoy, count(*) AS n, sum(price) AS price FROM (
  SELECT 'store' AS channel, 'ss_store_sk' AS missing, d_year, d_qoy, ss_ext_sales_price AS price
    FROM store_sales, date_dim WHERE ss_store_sk IS NULL AND ss_sold_date_sk = d_date_sk
  UNION ALL SELECT 'web', 'ws_web_page_sk', d_year, d_qoy, ws_ext_sales_price
    FROM web_sales, date_dim WHERE ws_web_page_sk IS NULL AND ws_sold_date_sk = d_date_sk) AS gaps
GROUP BY channel, missing, d_year, d_qoy ORDER BY 1, 2, 3, 4 LIMIT 100;

-- name: tpcds/77  expect: answer
WITH ss AS (SELECT s_store_sk, sum(ss_ext_sales_price) AS sales FROM store_sales, store
    WHERE ss_store_sk = s_store_sk GROUP BY s_store_sk),
  sr AS (SELECT s_store_sk, sum(sr_return_amt) AS returned FROM store_returns, store
    WHERE sr_store_sk = s_store_sk GROUP BY s_store_sk)
SELECT ss.s_store_sk, sales, coalesce(returned, 0) AS returned, sales - coalesce(returned, 0) AS net
FROM ss LEFT JOIN sr ON ss.s_store_sk = sr.s_store_sk ORDER BY 1;

-- name: tpcds/79  expect: refuse:one-unit-groups
SELECT c_last_name, c_first_name, ss_customer_sk, sum(ss_coupon_amt) AS coupons, sum(ss_net_profit) AS profit
FROM store_sales, customer WHERE ss_customer_sk = c_customer_sk
GROUP BY c_last_name, c_first_name, ss_customer_sk ORDER BY 1, 2, 3 LIMIT 100;

-- name: tpcds/82  expect: answer
SELECT i_item_id, i_item_desc, i_current_price FROM item, inventory, date_dim
WHERE i_current_price BETWEEN 30 AND 60 AND inv_item_sk = i_item_sk AND d_date_sk = inv_date_sk AND d_year = 2000
  AND inv_quantity_on_hand BETWEEN 100 AND 500
GROUP BY i_item_id, i_item_desc, i_current_price ORDER BY i_item_id, i_current_price LIMIT 100;

-- name: tpcds/85  expect: answer
SELECT r_reason_desc, avg(wr_return_quantity) AS quantity, avg(wr_return_amt) AS amount
FROM web_returns FULL JOIN reason ON wr_reason_sk = r_reason_sk GROUP BY r_reason_desc ORDER BY r_reason_desc;

-- name: tpcds/86  expect: answer
SELECT sum(ws_net_paid) AS paid, i_category, i_class,
  rank() OVER (PARTITION BY grouping(i_category) + grouping(i_class) ORDER BY sum(ws_net_paid) DESC) AS place
FROM web_sales, date_dim, item WHERE d_month_seq BETWEEN 1200 AND 1211 AND d_date_sk = ws_sold_date_sk
  AND i_item_sk = ws_item_sk GROUP BY ROLLUP (i_category, i_class) ORDER BY place, 2, 3;

-- name: tpcds/87  expect: answer
SELECT count(*) AS store_only FROM (SELECT DISTINCT ss_customer_sk FROM store_sales
  EXCEPT SELECT DISTINCT cs_bill_customer_sk FROM catalog_sales) AS remaining;

-- name: tpcds/88  expect: answer
SELECT * FROM (SELECT count(*) AS h8_30 FROM store_sales, household_demographics, time_dim
    WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND t_hour = 8 AND t_minute >= 30 AND hd_dep_count = 3) s1,
  (SELECT count(*) AS h9 FROM store_sales, household_demographics, time_dim
    WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND t_hour = 9 AND t_minute < 30 AND hd_dep_count = 3) s2;

-- name: tpcds/90  expect: answer
SELECT CAST(morning AS DOUBLE) / evening AS ratio FROM
  (SELECT count(*) AS morning FROM web_sales, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk
   AND ws_web_page_sk = wp_web_page_sk AND t_hour BETWEEN 8 AND 9 AND wp_char_count BETWEEN 4000 AND 6000) AS a,
  (SELECT count(*) AS evening FROM web_sales, time_dim, web_page WHERE ws_sold_time_sk = t_time_sk
   AND ws_web_page_sk = wp_web_page_sk AND t_hour BETWEEN 19 AND 20 AND wp_char_count BETWEEN 4000 AND 6000) AS p;

-- name: tpcds/91  expect: answer
SELECT cc_name, cc_manager, sum(cr_net_loss) AS loss FROM call_center, catalog_returns, date_dim, customer,
  customer_demographics
WHERE cr_call_center_sk = cc_call_center_sk AND cr_returned_date_sk = d_date_sk
  AND cr_returning_customer_sk = c_customer_sk AND cd_demo_sk = c_current_cdemo_sk
  AND (cd_marital_status = 'M' OR cd_education_status = 'Advanced Degree') AND d_year = 2000
GROUP BY cc_name, cc_manager ORDER BY loss DESC;

-- name: tpcds/93  expect: answer
SELECT sum(CASE WHEN sr_return_quantity IS NOT NULL THEN (ss_quantity - sr_return_quantity) * ss_sales_price
  ELSE ss_quantity * ss_sales_price END) AS kept
FROM store_sales LEFT JOIN store_returns ON ss_customer_sk = sr_customer_sk AND ss_item_sk = sr_item_sk;

-- name: tpcds/96  expect: answer
SELECT count(*) AS n FROM store_sales, household_demographics, time_dim, store
WHERE ss_sold_time_sk = t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour = 20
  AND t_minute >= 30 AND hd_dep_count = 7 AND s_store_name = 'ese';

-- name: tpcds/97  expect: answer
WITH ss AS (SELECT DISTINCT ss_customer_sk AS customer FROM store_sales),
  cs AS (SELECT DISTINCT cs_bill_customer_sk AS customer FROM catalog_sales)
SELECT count(*) FILTER (WHERE ss.customer IS NOT NULL AND cs.customer IS NULL) AS store_only,
  count(*) FILTER (WHERE ss.customer IS NULL AND cs.customer IS NOT NULL) AS catalog_only,
  count(*) FILTER (WHERE ss.customer IS NOT NULL AND cs.customer IS NOT NULL) AS both_channels
FROM ss FULL JOIN cs ON ss.customer = cs.customer;

-- name: tpcds/98  expect: answer
SELECT i_category, i_class, sum(ss_ext_sales_price) AS revenue,
  sum(ss_ext_sales_price) / sum(sum(ss_ext_sales_price)) OVER () AS share
FROM store_sales, item WHERE ss_item_sk = i_item_sk AND i_category IN ('Sports', 'Books', 'Home')
GROUP BY i_category, i_class ORDER BY i_category, i_class;

-- name: tpcds/99  expect: answer
SELECT sm_type, cc_name, count(*) FILTER (WHERE cs_ship_date_sk - cs_sold_date_sk <= 30) AS within_30,
  count(*) FILTER (WHERE cs_ship_date_sk - cs_sold_date_sk BETWEEN 31 AND 60) AS within_60
FROM catalog_sales RIGHT JOIN ship_mode ON cs_ship_mode_sk = sm_ship_mode_sk
  RIGHT JOIN call_center ON cs_call_center_sk = cc_call_center_sk
GROUP BY sm_type, cc_name ORDER BY 1, 2;

-- name: tpcds/60  expect: answer
WITH ss AS (SELECT i_item_id, sum(ss_ext_sales_price) AS total FROM store_sales, date_dim, customer_address, item
    WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_category = 'Music') AND ss_item_sk = i_item_sk
      AND ss_sold_date_sk = d_date_sk AND d_moy = 9 AND ss_addr_sk = ca_address_sk AND ca_gmt_offset = -5
    GROUP BY i_item_id),
  ws AS (SELECT i_item_id, sum(ws_ext_sales_price) AS total FROM web_sales, date_dim, item
    WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_category = 'Music') AND ws_item_sk = i_item_sk
      AND ws_sold_date_sk = d_date_sk AND d_moy = 9 GROUP BY i_item_id)
SELECT i_item_id, sum(total) AS total FROM (SELECT * FROM ss UNION ALL SELECT * FROM ws) AS channels
GROUP BY i_item_id ORDER BY i_item_id;

-- name: tpcds/63  expect: answer
SELECT i_manager_id, d_moy, sum(ss_sales_price) AS sales,
  avg(sum(ss_sales_price)) OVER (PARTITION BY i_manager_id) AS monthly_mean
FROM item, store_sales, date_dim WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2001
GROUP BY i_manager_id, d_moy ORDER BY 1, 2;

-- name: tpcds/64  expect: answer
WITH refunds AS (SELECT cs_item_sk, sum(cs_ext_sales_price) AS sale, sum(cr_return_amount) AS refund
  FROM catalog_sales JOIN catalog_returns ON cs_bill_customer_sk = cr_returning_customer_sk AND cs_item_sk = cr_item_sk
  GROUP BY cs_item_sk)
SELECT i_category, count(*) AS items, sum(refund) AS refund FROM refunds JOIN item ON cs_item_sk = i_item_sk
GROUP BY i_category ORDER BY i_category;

-- name: tpcds/66  expect: answer
SELECT w_warehouse_name, w_city, d_year, sum(CASE WHEN d_moy = 1 THEN ws_ext_sales_price * ws_quantity ELSE 0 END) AS jan,
  sum(CASE WHEN d_moy = 2 THEN ws_ext_sales_price * ws_quantity ELSE 0 END) AS feb
FROM web_sales, warehouse, date_dim, time_dim, ship_mode
WHERE ws_warehouse_sk = w_warehouse_sk AND ws_sold_date_sk = d_date_sk AND ws_sold_time_sk = t_time_sk
  AND ws_ship_mode_sk = sm_ship_mode_sk AND d_year = 2001 AND t_hour BETWEEN 8 AND 16
GROUP BY w_warehouse_name, w_city, d_year ORDER BY 1, 2;

-- name: tpcds/68  expect: answer
SELECT ca_city, count(*) AS baskets, avg(spent) AS spent
FROM (SELECT ss_customer_sk, ca_city, sum(ss_ext_sales_price) AS spent FROM store_sales, customer_address
      WHERE ss_addr_sk = ca_address_sk GROUP BY ss_customer_sk, ca_city) AS per_customer
GROUP BY ca_city ORDER BY ca_city;

-- name: tpcds/74  expect: answer
WITH by_year AS (SELECT ss_customer_sk AS customer, sum(CASE WHEN d_year = 2001 THEN ss_net_paid ELSE 0 END) AS y2001,
    sum(CASE WHEN d_year = 2002 THEN ss_net_paid ELSE 0 END) AS y2002
  FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk GROUP BY ss_customer_sk)
SELECT count(*) AS growing FROM by_year WHERE y2002 > y2001 AND y2001 > 0;

-- name: tpcds/75  expect: answer
WITH yearly AS (SELECT d_year, i_brand_id, sum(cs_quantity) AS quantity FROM catalog_sales
  JOIN item ON i_item_sk = cs_item_sk JOIN date_dim ON d_date_sk = cs_sold_date_sk
  WHERE i_category = 'Books' GROUP BY d_year, i_brand_id)
SELECT a.i_brand_id, a.quantity AS before, b.quantity AS after, b.quantity - a.quantity AS change
FROM yearly a, yearly b WHERE a.i_brand_id = b.i_brand_id AND a.d_year = 2001 AND b.d_year = 2002 ORDER BY change, 1;

-- name: tpcds/78  expect: answer
WITH ws AS (SELECT ws_item_sk AS item_sk, sum(ws_quantity) AS web FROM web_sales GROUP BY ws_item_sk),
  ss AS (SELECT ss_item_sk AS item_sk, sum(ss_quantity) AS store FROM store_sales GROUP BY ss_item_sk)
SELECT ss.item_sk, round(store / coalesce(web, 1), 2) AS ratio FROM ss LEFT JOIN ws ON ss.item_sk = ws.item_sk ORDER BY ss.item_sk;

-- name: tpcds/80  expect: answer
WITH ssr AS (SELECT s_store_id, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS profit
  FROM store_sales, store, promotion WHERE ss_store_sk = s_store_sk AND ss_promo_sk = p_promo_sk AND p_channel_tv = 'N'
  GROUP BY s_store_id)
SELECT s_store_id, sum(sales) AS sales, sum(profit) AS profit FROM ssr GROUP BY ROLLUP (s_store_id) ORDER BY s_store_id;

-- name: tpcds/81  expect: refuse:one-unit-groups
WITH returned AS (SELECT cr_returning_customer_sk AS customer, sum(cr_return_amount) AS total FROM catalog_returns
  GROUP BY cr_returning_customer_sk)
SELECT c_customer_id, c_last_name, total FROM returned JOIN customer ON customer = c_customer_sk ORDER BY total DESC LIMIT 100;

-- name: tpcds/83  expect: answer
WITH sr AS (SELECT i_item_id, sum(sr_return_quantity) AS n FROM store_returns, item WHERE sr_item_sk = i_item_sk GROUP BY i_item_id),
  wr AS (SELECT i_item_id, sum(wr_return_quantity) AS n FROM web_returns, item WHERE wr_item_sk = i_item_sk GROUP BY i_item_id)
SELECT sr.i_item_id, sr.n AS store, 100.0 * sr.n / (sr.n + wr.n) AS store_share FROM sr, wr
WHERE sr.i_item_id = wr.i_item_id ORDER BY 1;

-- name: tpcds/84  expect: answer
SELECT count(*) AS customers FROM customer, customer_address, household_demographics, income_band
WHERE ca_city = 'Fairview' AND c_current_addr_sk = ca_address_sk AND ib_lower_bound >= 20000 AND ib_upper_bound <= 70000
  AND ib_income_band_sk = hd_income_band_sk AND hd_demo_sk = c_current_hdemo_sk;

-- name: tpcds/89  expect: answer
SELECT * FROM (SELECT i_category, s_store_name, d_moy, sum(ss_sales_price) AS sales,
    avg(sum(ss_sales_price)) OVER (PARTITION BY i_category, s_store_name) AS mean
  FROM item, store_sales, date_dim, store WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
    AND ss_store_sk = s_store_sk AND d_year = 1999 GROUP BY i_category, s_store_name, d_moy) AS months
WHERE mean <> 0 AND abs(sales - mean) / mean > 0.1 ORDER BY sales - mean, s_store_name LIMIT 100;

-- name: tpcds/92  expect: refuse:off-unit-subquery
SELECT sum(ws_ext_discount_amt) AS excess FROM web_sales, item WHERE i_manufact_id = 3 AND i_item_sk = ws_item_sk
  AND ws_ext_discount_amt > (SELECT 1.3 * avg(w2.ws_ext_discount_amt) FROM web_sales w2 WHERE w2.ws_item_sk = i_item_sk);

-- name: tpcds/94  expect: answer
SELECT count(DISTINCT ws_order_number) AS orders, sum(ws_ext_ship_cost) AS shipping FROM web_sales w1, date_dim, web_site
WHERE ws_ship_date_sk = d_date_sk AND d_year = 1999 AND w1.ws_web_site_sk = web_site_sk
  AND NOT EXISTS (SELECT 1 FROM web_returns WHERE wr_returning_customer_sk = w1.ws_bill_customer_sk
                  AND wr_order_number = w1.ws_order_number);

-- name: tpcds/95  expect: answer
SELECT count(DISTINCT ws_order_number) AS orders, sum(ws_net_profit) AS profit FROM web_sales, date_dim
WHERE ws_ship_date_sk = d_date_sk AND d_year = 1999
  AND ws_bill_customer_sk IN (SELECT wr_returning_customer_sk FROM web_returns);
