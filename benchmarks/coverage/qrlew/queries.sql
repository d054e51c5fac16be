-- name: qrlew/01  expect: answer
SELECT count(*) AS n, sum(price) AS total FROM items;

-- name: qrlew/02  expect: answer
SELECT item, sum(price) AS total FROM items GROUP BY item;

-- name: qrlew/03  expect: answer
SELECT u.city, avg(u.age) AS age FROM users u GROUP BY u.city;

-- name: qrlew/04  expect: answer
SELECT u.city, count(*) AS orders FROM users u JOIN orders o ON u.id = o.user_id GROUP BY u.city ORDER BY orders DESC;

-- name: qrlew/05  expect: answer
SELECT u.city, sum(i.price) AS spent FROM items i JOIN orders o ON i.order_id = o.id JOIN users u ON o.user_id = u.id GROUP BY u.city;

-- name: qrlew/06  expect: answer
WITH order_total AS (SELECT order_id, sum(price) AS total FROM items GROUP BY order_id) SELECT count(*) AS large FROM order_total WHERE total > 60;

-- name: qrlew/07  expect: answer
WITH my_avg AS (SELECT avg(price) AS mean FROM items) SELECT count(*) AS dear FROM items, my_avg WHERE price > mean;

-- name: qrlew/08  expect: answer
SELECT sex, count(*) AS n, avg(hours_per_week) AS hours FROM census WHERE age > 30 GROUP BY sex;

-- name: qrlew/09  expect: answer
SELECT workclass, education, count(*) AS n FROM census GROUP BY workclass, education;

-- name: qrlew/10  expect: answer
SELECT education, sum(capital_gain) AS gain FROM census GROUP BY education;

-- name: qrlew/11  expect: answer
SELECT marital_status, count(*) FILTER (WHERE income = '>50K') * 1.0 / count(*) AS rich FROM census GROUP BY marital_status;

-- name: qrlew/12  expect: answer
SELECT age, count(*) AS n FROM (SELECT age FROM census WHERE sex = 'Female' UNION ALL SELECT age FROM users) AS people WHERE age BETWEEN 20 AND 40 GROUP BY age;

-- name: qrlew/13  expect: answer
SELECT date_trunc('year', date) AS y, count(DISTINCT user_id) AS buyers FROM orders GROUP BY y ORDER BY y;

-- name: qrlew/14  expect: answer
SELECT o.description, count(*) AS n FROM orders o LEFT JOIN items i ON o.id = i.order_id GROUP BY o.description;

-- name: qrlew/15  expect: refuse:rows
SELECT name, age FROM users WHERE city = 'Rome';

-- name: qrlew/16  expect: refuse:off-unit-join
SELECT count(*) AS same_item FROM items a JOIN items b ON a.item = b.item;
