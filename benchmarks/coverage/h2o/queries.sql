-- name: h2o/g1  expect: answer
SELECT id1, sum(v1) AS v1 FROM x GROUP BY id1;

-- name: h2o/g2  expect: answer
SELECT id1, id2, sum(v1) AS v1 FROM x GROUP BY id1, id2;

-- name: h2o/g3  expect: answer
SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM x GROUP BY id3;

-- name: h2o/g4  expect: answer
SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM x GROUP BY id4;

-- name: h2o/g5  expect: answer
SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM x GROUP BY id6;

-- name: h2o/g6  expect: answer  approx: 8
SELECT id4, id5, median(v3) AS middle, stddev(v3) AS deviation FROM x GROUP BY id4, id5;

-- name: h2o/g7  expect: answer  approx: 1
SELECT id3, max(v1) - min(v2) AS spread FROM x GROUP BY id3;

-- name: h2o/g8  expect: refuse:rows
SELECT id6, v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS place FROM x
  WHERE v3 IS NOT NULL) AS ranked WHERE place <= 2;

-- name: h2o/g9  expect: answer
SELECT id2, id4, pow(corr(v1, v2), 2) AS r2 FROM x GROUP BY id2, id4;

-- name: h2o/g10  expect: answer
SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS n FROM x GROUP BY id1, id2, id3, id4, id5, id6;

-- name: h2o/j1  expect: answer
SELECT count(*) AS n, sum(x.v1) AS v1, sum(small.v4) AS v4 FROM x JOIN small USING (id1);

-- name: h2o/j2  expect: answer
SELECT count(*) AS n, sum(x.v1) AS v1, sum(medium.v5) AS v5 FROM x JOIN medium ON x.id4 = medium.id4;

-- name: h2o/j3  expect: answer
SELECT count(*) AS n, sum(x.v3) AS v3, count(medium.v5) AS matched FROM x LEFT JOIN medium ON x.id4 = medium.id4;

-- name: h2o/j4  expect: answer
SELECT x.id1, sum(big.v6 * x.v1) AS weighted FROM x JOIN big ON x.id6 = big.id6 GROUP BY x.id1;

-- name: h2o/j5  expect: answer
SELECT big.id6, count(x.v1) AS n FROM x RIGHT JOIN big ON x.id6 = big.id6 WHERE big.id6 <= 20 GROUP BY big.id6 ORDER BY 1;

-- name: h2o/j6  expect: refuse:rows
SELECT x.*, small.v4, medium.v5 FROM x JOIN small USING (id1) JOIN medium USING (id4);
