-- name: chorus/01  expect: answer
SELECT count(*) AS trips FROM trips WHERE city_id = 1 AND requested_at >= TIMESTAMP '2016-09-01' AND requested_at < TIMESTAMP '2016-10-01';

-- name: chorus/02  expect: answer
SELECT c.name, count(*) AS completed FROM trips t JOIN cities c ON t.city_id = c.id WHERE t.status = 'completed' GROUP BY c.name;

-- name: chorus/03  expect: answer
SELECT count(DISTINCT r.uuid) AS active_riders FROM riders r JOIN trips t ON r.uuid = t.rider_uuid JOIN cities c ON t.city_id = c.id WHERE c.name = 'Paris';

-- name: chorus/04  expect: answer
SELECT v.class, avg(t.fare) AS fare, avg(t.minutes) AS minutes FROM trips t, vehicles v WHERE t.vehicle_id = v.id GROUP BY v.class;

-- name: chorus/05  expect: answer
SELECT status, count(*) AS n, count(*) * 100.0 / (SELECT count(*) FROM trips) AS share FROM trips GROUP BY status;

-- name: chorus/06  expect: answer
SELECT n_trips, count(*) AS riders FROM (SELECT rider_uuid, count(*) AS n_trips FROM trips WHERE status = 'completed' GROUP BY rider_uuid) AS t GROUP BY n_trips ORDER BY n_trips;

-- name: chorus/07  expect: answer
WITH a AS (SELECT rider_uuid FROM trips WHERE city_id = 1 GROUP BY rider_uuid), b AS (SELECT rider_uuid FROM trips WHERE city_id = 2 GROUP BY rider_uuid)
SELECT count(*) AS in_both FROM a JOIN b ON a.rider_uuid = b.rider_uuid;

-- name: chorus/08  expect: answer
SELECT r.tier, sum(t.fare) AS fares FROM riders r JOIN trips t ON t.rider_uuid = r.uuid AND t.status = 'completed' AND t.fare > 5 GROUP BY r.tier;

-- name: chorus/09  expect: answer
SELECT rating, count(*) AS n FROM trips GROUP BY rating ORDER BY rating;

-- name: chorus/10  expect: answer
SELECT c.country, date_trunc('month', t.requested_at) AS month, sum(t.fare) AS fares FROM cities c JOIN trips t ON c.id = t.city_id GROUP BY c.country, month ORDER BY 1, 2;

-- name: chorus/11  expect: refuse:off-unit-join
SELECT count(*) AS together FROM trips a, trips b WHERE a.vehicle_id = b.vehicle_id AND a.rider_uuid <> b.rider_uuid;

-- name: chorus/12  expect: refuse:rows
SELECT * FROM trips WHERE rider_uuid = 42;

-- name: chorus/13  expect: answer
SELECT count(*) AS lapsed FROM riders r LEFT JOIN (SELECT DISTINCT rider_uuid FROM trips WHERE requested_at >= TIMESTAMP '2016-06-01') AS t
  ON r.uuid = t.rider_uuid WHERE t.rider_uuid IS NULL;

-- name: chorus/14  expect: answer
SELECT fare, count(*) AS n FROM trips WHERE fare < 2 GROUP BY fare ORDER BY fare;

-- name: chorus/15  expect: answer
SELECT count(*) AS n FROM cities WHERE country = 'US';
