-- name: snowflake/01  expect: answer
SELECT age_band, count(*) AS members, avg(income) AS income FROM members GROUP BY age_band;

-- name: snowflake/02  expect: answer
SELECT r.region, count(*) AS members, count(*) * 1000.0 / any_value(r.population) AS per_thousand
FROM members m JOIN region_codes r ON m.region_id = r.region_id GROUP BY r.region;

-- name: snowflake/03  expect: answer
SELECT campaign, count(DISTINCT email) AS reach, count(*) AS impressions FROM exposures GROUP BY campaign;

-- name: snowflake/04  expect: answer
SELECT count(DISTINCT e.email) AS converted FROM exposures e JOIN sales s ON e.email = s.email AND s.ts > e.ts AND e.campaign = 'spring';

-- name: snowflake/05  expect: answer
SELECT sum(s.amount) AS revenue FROM sales s WHERE s.email IN (SELECT email FROM exposures WHERE campaign = 'brand');

-- name: snowflake/06  expect: answer
WITH exposed AS (SELECT DISTINCT email FROM exposures), bought AS (SELECT email, sum(amount) AS amount FROM sales GROUP BY email)
SELECT count(*) AS buyers, avg(b.amount) AS mean_amount FROM exposed e JOIN bought b ON e.email = b.email;

-- name: snowflake/07  expect: answer
SELECT frequency, count(*) AS people FROM (SELECT email, count(*) AS frequency FROM exposures GROUP BY email) AS f GROUP BY frequency ORDER BY frequency;

-- name: snowflake/08  expect: answer
SELECT campaign, sum(cost) AS cost FROM exposures GROUP BY campaign ORDER BY cost DESC;

-- name: snowflake/09  expect: answer  approx: 10000
SELECT age_band, median(income) AS middle FROM members GROUP BY age_band;

-- name: snowflake/10  expect: answer
SELECT date_trunc('quarter', joined) AS q, count(*) AS joined FROM members GROUP BY q ORDER BY q;

-- name: snowflake/11  expect: refuse:rows
SELECT email FROM members WHERE income > 250000;

-- name: snowflake/12  expect: answer
SELECT m.age_band, s.sku, sum(s.amount) AS amount FROM members m JOIN sales s ON m.email = s.email GROUP BY CUBE (m.age_band, s.sku);

-- name: snowflake/13  expect: answer
SELECT week, amount, amount - lag(amount) OVER (ORDER BY week) AS change
FROM (SELECT date_trunc('week', ts) AS week, sum(amount) AS amount FROM sales GROUP BY week) AS w ORDER BY week;

-- name: snowflake/14  expect: refuse:sample
SELECT avg(income) AS income FROM members USING SAMPLE 10 ROWS;

-- name: snowflake/15  expect: answer
SELECT 'exposed' AS label, count(*) AS n FROM exposures UNION ALL SELECT 'bought', count(*) FROM sales;

-- name: snowflake/16  expect: answer
SELECT r.region, coalesce(sum(s.amount), 0) AS amount FROM region_codes r
LEFT JOIN members m ON m.region_id = r.region_id LEFT JOIN sales s ON s.email = m.email GROUP BY r.region;

-- name: snowflake/17  expect: answer
SELECT cost, count(*) AS n FROM exposures WHERE cost < 0.1 GROUP BY cost ORDER BY cost;

-- name: snowflake/18  expect: answer
SELECT what, count(DISTINCT email) AS people FROM (SELECT email, 'saw' AS what FROM exposures UNION ALL SELECT email, 'bought' FROM sales) AS touched GROUP BY what;
