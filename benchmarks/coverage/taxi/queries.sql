-- name: taxi/01  expect: answer
SELECT cab_type, count(*) AS trips FROM trips GROUP BY cab_type;

-- name: taxi/02  expect: answer
SELECT passenger_count, avg(total_amount) AS mean_total FROM trips GROUP BY passenger_count;

-- name: taxi/03  expect: answer
SELECT passenger_count, extract(year FROM pickup_datetime) AS y, count(*) AS trips FROM trips GROUP BY passenger_count, y;

-- name: taxi/04  expect: answer
SELECT passenger_count, extract(month FROM pickup_datetime) AS m, round(trip_distance) AS miles, count(*) AS n
FROM trips GROUP BY passenger_count, m, miles ORDER BY m, n DESC;

-- name: taxi/05  expect: answer
SELECT date_trunc('day', pickup_datetime) AS day, count(*) AS trips, sum(fare_amount) AS fares FROM trips GROUP BY day ORDER BY day;

-- name: taxi/06  expect: answer
SELECT extract(hour FROM pickup_datetime) AS h, count(*) AS trips, avg(tip_amount) AS tip FROM trips GROUP BY h ORDER BY h;

-- name: taxi/07  expect: answer
SELECT z.Borough, count(*) AS pickups FROM trips t JOIN zones z ON t.PULocationID = z.LocationID GROUP BY z.Borough ORDER BY pickups DESC;

-- name: taxi/08  expect: answer
SELECT p.Borough AS from_borough, d.Borough AS to_borough, count(*) AS n, avg(t.fare_amount) AS fare
FROM trips t, zones p, zones d WHERE t.PULocationID = p.LocationID AND t.DOLocationID = d.LocationID
GROUP BY p.Borough, d.Borough ORDER BY n DESC;

-- name: taxi/09  expect: answer
SELECT z.Zone, count(*) AS n FROM zones z JOIN trips t ON t.DOLocationID = z.LocationID
WHERE z.Zone LIKE '%Airport%' GROUP BY z.Zone ORDER BY n DESC LIMIT 3;

-- name: taxi/10  expect: answer
SELECT pt.description, avg(tip_amount / fare_amount) AS tip_rate FROM trips t JOIN payment_types pt USING (payment_type)
WHERE fare_amount > 1 GROUP BY pt.description;

-- name: taxi/11  expect: answer
SELECT sum(tip_amount) / sum(fare_amount) AS tip_rate FROM trips WHERE payment_type = 1;

-- name: taxi/12  expect: answer  approx: 1.5
SELECT median(trip_distance) AS middle, quantile_cont(trip_distance, 0.95) AS far FROM trips;

-- name: taxi/13  expect: answer  approx: 6
SELECT cab_type, quantile_cont(total_amount, 0.5) AS middle FROM trips GROUP BY cab_type;

-- name: taxi/14  expect: answer
SELECT count(DISTINCT driver_id) AS drivers FROM trips WHERE pickup_datetime >= TIMESTAMP '2024-02-01';

-- name: taxi/15  expect: answer
SELECT avg(date_diff('minute', pickup_datetime, dropoff_datetime)) AS minutes FROM trips;

-- name: taxi/16  expect: answer
SELECT CASE WHEN trip_distance < 2 THEN 'short' WHEN trip_distance < 10 THEN 'medium' ELSE 'long' END AS length, count(*) AS n
FROM trips GROUP BY length;

-- name: taxi/17  expect: answer
SELECT floor(fare_amount / 10) * 10 AS fare_from, count(*) AS n FROM trips GROUP BY fare_from ORDER BY fare_from;

-- name: taxi/18  expect: answer
SELECT dayname(pickup_datetime) AS weekday, count(*) AS n FROM trips GROUP BY weekday ORDER BY n DESC;

-- name: taxi/19  expect: answer
SELECT avg(trips) AS mean_trips FROM (SELECT driver_id, count(*) AS trips FROM trips GROUP BY driver_id) AS d;

-- name: taxi/20  expect: refuse:one-unit-groups
SELECT driver_id, sum(total_amount) AS earned FROM trips GROUP BY driver_id ORDER BY earned DESC LIMIT 10;

-- name: taxi/21  expect: refuse:rows
SELECT pickup_datetime, total_amount FROM trips WHERE total_amount > 240;

-- name: taxi/22  expect: answer
SELECT day, trips, avg(trips) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS weekly
FROM (SELECT CAST(pickup_datetime AS DATE) AS day, count(*) AS trips FROM trips GROUP BY day) AS daily ORDER BY day;

-- name: taxi/23  expect: answer
SELECT VendorID, sum(tolls_amount) AS tolls, count(*) AS trips FROM trips GROUP BY VendorID;

-- name: taxi/24  expect: answer
SELECT z.Borough, extract(hour FROM t.pickup_datetime) AS h, count(*) AS n FROM zones z, trips t
WHERE z.LocationID = t.PULocationID AND extract(dow FROM t.pickup_datetime) IN (0, 6) GROUP BY ROLLUP (z.Borough, h);

-- name: taxi/25  expect: answer
SELECT time_bucket(INTERVAL '15 minutes', pickup_datetime) AS quarter, count(*) AS n FROM trips
WHERE pickup_datetime >= TIMESTAMP '2024-01-05' AND pickup_datetime < TIMESTAMP '2024-01-06' GROUP BY quarter ORDER BY quarter;

-- name: taxi/26  expect: answer
SELECT count(*) AS cross_borough FROM trips t JOIN zones p ON t.PULocationID = p.LocationID JOIN zones d ON t.DOLocationID = d.LocationID
WHERE p.Borough <> d.Borough;

-- name: taxi/27  expect: answer
SELECT trip_distance, count(*) AS n FROM trips WHERE trip_distance < 0.5 GROUP BY trip_distance ORDER BY trip_distance;

-- name: taxi/28  expect: answer
SELECT tolls_amount, count(*) AS n FROM trips GROUP BY tolls_amount ORDER BY n DESC;

-- name: taxi/29  expect: answer  approx: 3
SELECT cab_type, max(trip_distance) AS longest FROM trips GROUP BY cab_type;

-- name: taxi/30  expect: answer
WITH airports AS (SELECT LocationID, Zone FROM zones WHERE Zone LIKE '%Airport%')
SELECT a.Zone, count(*) AS trips, avg(t.fare_amount) AS fare FROM trips t JOIN airports a ON t.PULocationID = a.LocationID GROUP BY a.Zone;

-- name: taxi/31  expect: answer
SELECT Borough, count(*) AS zones FROM zones GROUP BY Borough ORDER BY zones DESC, Borough;
