-- name: bigquery/01  expect: answer
SELECT item, avg(quantity) AS mean_quantity FROM requests GROUP BY item;

-- name: bigquery/02  expect: answer
SELECT item, count(*) AS n, sum(quantity) AS quantity FROM requests GROUP BY item HAVING count(*) > 20 ORDER BY n DESC;

-- name: bigquery/03  expect: answer  approx: 20
SELECT approx_count_distinct(id) AS professors FROM requests;

-- name: bigquery/04  expect: answer  approx: 5
SELECT item, quantile_cont(quantity, 0.25) AS low, quantile_cont(quantity, 0.75) AS high FROM requests GROUP BY item;

-- name: bigquery/05  expect: answer
SELECT item, var_pop(quantity) AS spread, stddev_pop(quantity) AS deviation FROM requests GROUP BY item;

-- name: bigquery/06  expect: answer
SELECT p.department, r.item, sum(r.quantity) AS quantity FROM professors p JOIN requests r ON p.id = r.id GROUP BY p.department, r.item;

-- name: bigquery/07  expect: answer
SELECT x.category, count(*) AS n, sum(r.quantity * x.price) AS worth FROM requests r JOIN products x ON r.item = x.item GROUP BY x.category;

-- name: bigquery/08  expect: answer
SELECT x.item, count(r.id) AS n FROM products x LEFT JOIN requests r ON r.item = x.item GROUP BY x.item;

-- name: bigquery/09  expect: answer
SELECT school, avg(test_score) AS mean FROM students GROUP BY school ORDER BY mean DESC;

-- name: bigquery/10  expect: answer
SELECT grade, count(*) AS n FROM students WHERE test_score IS NOT NULL GROUP BY grade;

-- name: bigquery/11  expect: answer
SELECT extract(month FROM requested) AS month, count(DISTINCT id) AS professors FROM requests GROUP BY month ORDER BY month;

-- name: bigquery/12  expect: answer
SELECT stars, avg(words) AS words FROM reviews GROUP BY stars;

-- name: bigquery/13  expect: answer
SELECT score, count(*) AS n FROM reviews GROUP BY score ORDER BY score;

-- name: bigquery/14  expect: answer  approx: 5
SELECT min(test_score) AS lowest, max(test_score) AS highest FROM students;

-- name: bigquery/15  expect: answer
SELECT item, quantity, rank() OVER (ORDER BY quantity DESC) AS place FROM (SELECT item, sum(quantity) AS quantity FROM requests GROUP BY item) AS t;

-- name: bigquery/16  expect: answer
SELECT count(*) AS both_lists FROM (SELECT id FROM requests INTERSECT SELECT id FROM reviews) AS b;

-- name: bigquery/17  expect: refuse:rows
SELECT id, item, quantity FROM requests ORDER BY quantity DESC LIMIT 3;

-- name: bigquery/18  expect: refuse:rows
SELECT string_agg(grade, ',') AS grades, list(test_score) AS scores FROM students;

-- name: bigquery/19  expect: answer
SELECT item FROM requests GROUP BY item;

-- name: bigquery/20  expect: answer
SELECT sum(least(total, 50)) AS clamped FROM (SELECT id, sum(quantity) AS total FROM requests GROUP BY id) AS t;
