-- name: r2t/01  expect: answer
SELECT count(*) AS edges FROM edges;

-- name: r2t/02  expect: answer
SELECT avg(degree) AS mean_degree FROM (SELECT src, count(*) AS degree FROM edges GROUP BY src) AS d;

-- name: r2t/03  expect: answer
SELECT degree, count(*) AS nodes FROM (SELECT src, count(*) AS degree FROM edges GROUP BY src) AS d GROUP BY degree ORDER BY degree;

-- name: r2t/04  expect: refuse:off-unit-join
SELECT count(*) AS paths FROM edges a JOIN edges b ON a.dst = b.src WHERE a.src < b.dst;

-- name: r2t/05  expect: refuse:off-unit-join
SELECT count(*) AS triangles FROM edges a, edges b, edges c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src;

-- name: r2t/06  expect: answer
SELECT n.kind, count(*) AS edges, sum(e.weight) AS weight FROM nodes n, edges e WHERE n.id = e.src GROUP BY n.kind;

-- name: r2t/07  expect: answer
SELECT community, count(*) AS nodes FROM nodes GROUP BY community;

-- name: r2t/08  expect: answer
SELECT sum(degree * (degree - 1) / 2) AS two_stars FROM (SELECT src, count(*) AS degree FROM edges GROUP BY src) AS d;

-- name: r2t/09  expect: answer
SELECT count(*) AS isolated FROM nodes WHERE id NOT IN (SELECT src FROM edges);

-- name: r2t/10  expect: refuse:one-unit-groups
SELECT src, count(*) AS degree FROM edges GROUP BY src ORDER BY degree DESC LIMIT 5;

-- name: r2t/11  expect: refuse:off-unit-join
SELECT count(*) AS within FROM edges e JOIN nodes a ON e.src = a.id JOIN nodes b ON e.dst = b.id WHERE a.community = b.community;

-- name: r2t/12  expect: answer
SELECT count(*) AS wedges FROM edges a JOIN edges b ON a.src = b.src WHERE a.dst < b.dst;
