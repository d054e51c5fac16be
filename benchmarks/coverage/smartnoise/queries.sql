-- name: smartnoise/01  expect: answer
SELECT sex, avg(age) AS age FROM pums GROUP BY sex;

-- name: smartnoise/02  expect: answer
SELECT married, count(*) AS people, sum(income) AS income FROM pums GROUP BY married;

-- name: smartnoise/03  expect: answer
SELECT educ, race, count(DISTINCT pid) AS people FROM pums GROUP BY educ, race ORDER BY people DESC;

-- name: smartnoise/04  expect: answer
SELECT age, sum(income) AS income FROM pums WHERE age BETWEEN 80 AND 100 GROUP BY age HAVING count(*) > 2 ORDER BY age;

-- name: smartnoise/05  expect: answer
SELECT count(*) AS people, avg(income) AS mean, variance(income) AS spread, stddev(income) AS deviation FROM pums;

-- name: smartnoise/06  expect: answer
SELECT TOP_AGE, n FROM (SELECT age AS TOP_AGE, count(*) AS n FROM pums GROUP BY age) AS ages WHERE n > 5 ORDER BY n DESC LIMIT 5;

-- name: smartnoise/07  expect: answer
SELECT sum(CASE WHEN married THEN income ELSE 0 END) / sum(income) AS married_share FROM pums;

-- name: smartnoise/08  expect: answer
SELECT year, region, sum(income) AS income, count(DISTINCT pid) AS people FROM pums_dup GROUP BY year, region;

-- name: smartnoise/09  expect: answer
SELECT p.educ, avg(d.income) AS income FROM pums p INNER JOIN pums_dup d ON p.pid = d.pid WHERE d.year = 2020 GROUP BY p.educ;

-- name: smartnoise/10  expect: answer
SELECT educ * 2 AS twice, count(*) AS n FROM pums GROUP BY educ * 2;

-- name: smartnoise/11  expect: answer  approx: 12000
SELECT race, quantile_cont(income, 0.5) AS middle, max(income) AS highest FROM pums GROUP BY race;

-- name: smartnoise/12  expect: answer
SELECT sqrt(count(*)) AS root, log(sum(income)) AS logarithm, abs(avg(age) - 50) AS distance FROM pums;

-- name: smartnoise/13  expect: refuse:rows
SELECT pid, income FROM pums WHERE age > 90;

-- name: smartnoise/14  expect: refuse:rows
SELECT * FROM pums ORDER BY income DESC LIMIT 1;

-- name: smartnoise/15  expect: answer
SELECT floor(income / 50000) AS band, count(*) AS n FROM pums GROUP BY band ORDER BY band;

-- name: smartnoise/16  expect: answer
SELECT count(*) AS above FROM pums WHERE income > (SELECT avg(income) FROM pums);

-- name: smartnoise/17  expect: answer  approx: 4
SELECT sex, min(age) AS youngest, max(age) AS oldest FROM pums GROUP BY sex;

-- name: smartnoise/18  expect: answer
SELECT round(income, -4) AS about, count(*) AS n FROM pums GROUP BY round(income, -4) ORDER BY about;
