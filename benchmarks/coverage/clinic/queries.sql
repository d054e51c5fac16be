-- name: clinic/01  expect: answer
SELECT count(*) AS frequent FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING count(*) >= 3) AS f;

-- name: clinic/02  expect: answer
SELECT w.name, count(*) AS visits, avg(v.cost) AS cost FROM visits v JOIN wards w ON v.ward_id = w.ward_id GROUP BY w.name ORDER BY w.name;

-- name: clinic/03  expect: answer
SELECT diagnosis, count(*) AS n FROM visits GROUP BY diagnosis ORDER BY n DESC LIMIT 5;

-- name: clinic/04  expect: answer
SELECT p.sex, count(*) AS urgent FROM patients p JOIN visits v ON p.patient_id = v.patient_id WHERE v.urgent GROUP BY p.sex;

-- name: clinic/05  expect: answer
SELECT date_trunc('month', admitted) AS month, count(*) AS admissions, count(DISTINCT patient_id) AS patients FROM visits GROUP BY month ORDER BY month;

-- name: clinic/06  expect: answer  approx: 700
SELECT median(cost) AS middle, quantile_cont(cost, 0.9) AS high FROM visits;

-- name: clinic/07  expect: answer
SELECT p.state, avg(v.nights) AS nights FROM patients p, visits v WHERE p.patient_id = v.patient_id AND p.birth_year < 1960 GROUP BY p.state;

-- name: clinic/08  expect: answer
SELECT count(*) AS smokers_on_statins FROM patients p WHERE p.smoker AND p.patient_id IN
  (SELECT r.patient_id FROM prescriptions r JOIN drugs d ON r.drug_id = d.drug_id WHERE d.class = 'statin');

-- name: clinic/09  expect: answer
SELECT d.class, count(DISTINCT r.patient_id) AS patients FROM drugs d JOIN prescriptions r ON r.drug_id = d.drug_id GROUP BY d.class;

-- name: clinic/10  expect: answer
SELECT insurer, count(*) AS patients, avg(bmi) AS bmi FROM patients GROUP BY insurer;

-- name: clinic/11  expect: answer
SELECT CASE WHEN bmi < 18.5 THEN 'under' WHEN bmi < 25 THEN 'normal' WHEN bmi < 30 THEN 'over' ELSE 'obese' END AS class,
  count(*) AS patients FROM patients WHERE bmi IS NOT NULL GROUP BY class;

-- name: clinic/12  expect: answer
SELECT state, sex, count(*) AS patients FROM patients GROUP BY CUBE (state, sex);

-- name: clinic/13  expect: answer
SELECT visits, count(*) AS patients FROM (SELECT patient_id, count(*) AS visits FROM visits GROUP BY patient_id) AS v GROUP BY visits ORDER BY visits;

-- name: clinic/14  expect: answer
SELECT avg(total) AS mean_cost FROM (SELECT patient_id, sum(cost) AS total FROM visits GROUP BY patient_id) AS t;

-- name: clinic/15  expect: answer
SELECT p.sex, avg(t.total) AS mean_cost FROM patients p
JOIN (SELECT patient_id, sum(cost) AS total FROM visits GROUP BY patient_id) AS t ON p.patient_id = t.patient_id GROUP BY p.sex;

-- name: clinic/16  expect: answer
SELECT test, avg(result) AS mean, stddev(result) AS deviation FROM labs GROUP BY test;

-- name: clinic/17  expect: answer
SELECT v.diagnosis, avg(l.result) AS glucose FROM labs l JOIN visits v ON l.visit_id = v.visit_id WHERE l.test = 'glucose' GROUP BY v.diagnosis;

-- name: clinic/18  expect: refuse:rows
SELECT patient_id, diagnosis, admitted FROM visits WHERE diagnosis = 'E11' ORDER BY admitted DESC;

-- name: clinic/19  expect: refuse:one-unit-groups
SELECT patient_id, sum(cost) AS total FROM visits GROUP BY patient_id ORDER BY total DESC LIMIT 20;

-- name: clinic/20  expect: refuse:ddl
CREATE TABLE expensive AS SELECT * FROM visits WHERE cost > 10000;

-- name: clinic/21  expect: answer
SELECT count(*) AS never_seen FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id);

-- name: clinic/22  expect: answer
SELECT name, visits, 100.0 * visits / sum(visits) OVER () AS share
FROM (SELECT w.name, count(*) AS visits FROM visits v JOIN wards w USING (ward_id) GROUP BY w.name) AS by_ward ORDER BY name;

-- name: clinic/23  expect: answer
SELECT w.building, sum(w.beds) AS beds, count(*) AS wards FROM wards w GROUP BY w.building;

-- name: clinic/24  expect: answer
SELECT w.name, w.beds, coalesce(v.n, 0) AS visits FROM wards w LEFT JOIN (SELECT ward_id, count(*) AS n FROM visits GROUP BY ward_id) AS v
  ON w.ward_id = v.ward_id ORDER BY w.name;

-- name: clinic/25  expect: refuse:text-of-one-row
SELECT min(diagnosis) AS first_code, any_value(diagnosis) AS some_code FROM visits WHERE urgent;

-- name: clinic/26  expect: refuse:random
SELECT count(*) AS n FROM visits WHERE random() < 0.1;

-- name: clinic/27  expect: answer
SELECT DISTINCT diagnosis FROM visits;

-- name: clinic/28  expect: answer
WITH recent AS (SELECT patient_id, ward_id, cost FROM visits WHERE admitted >= TIMESTAMP '2025-01-01')
SELECT w.building, sum(r.cost) AS cost FROM recent r JOIN wards w ON r.ward_id = w.ward_id GROUP BY w.building;

-- name: clinic/29  expect: answer
WITH elderly AS (SELECT patient_id FROM patients WHERE birth_year < 1955)
SELECT count(*) AS visits, avg(v.nights) AS nights FROM visits v JOIN elderly e ON v.patient_id = e.patient_id;

-- name: clinic/30  expect: answer
WITH statins AS (SELECT drug_id, drug FROM drugs WHERE class = 'statin')
SELECT s.drug, count(*) AS prescribed FROM prescriptions r JOIN statins s ON r.drug_id = s.drug_id GROUP BY s.drug;

-- name: clinic/31  expect: answer  approx: 3
SELECT w.name, max(v.nights) AS longest, min(v.nights) AS shortest FROM visits v JOIN wards w ON v.ward_id = w.ward_id GROUP BY w.name;

-- name: clinic/32  expect: answer
SELECT count(*) AS above_average FROM visits WHERE cost > (SELECT avg(cost) FROM visits);

-- name: clinic/33  expect: answer
SELECT (SELECT count(*) FROM visits WHERE urgent) * 1.0 / (SELECT count(*) FROM visits) AS urgent_share;

-- name: clinic/34  expect: answer
SELECT round(bmi, 1) AS bmi, count(*) AS patients FROM patients WHERE bmi BETWEEN 24 AND 26 GROUP BY round(bmi, 1) ORDER BY 1;

-- name: clinic/35  expect: answer
SELECT round(result / 50) * 50 AS level, test, count(*) AS n FROM labs GROUP BY level, test ORDER BY test, level;

-- name: clinic/36  expect: answer
SELECT source, count(*) AS n FROM (SELECT 'visit' AS source, patient_id FROM visits UNION ALL SELECT 'prescription', patient_id FROM prescriptions) AS contacts GROUP BY source;

-- name: clinic/37  expect: answer
SELECT count(*) AS patients FROM (SELECT patient_id FROM visits WHERE urgent UNION SELECT patient_id FROM prescriptions WHERE dose_mg = 100) AS touched;

-- name: clinic/38  expect: answer
SELECT dose_mg FROM prescriptions GROUP BY dose_mg ORDER BY dose_mg;

-- name: clinic/39  expect: answer
SELECT w.name, p.sex, count(*) AS visits FROM wards w, visits v, patients p
WHERE v.ward_id = w.ward_id AND v.patient_id = p.patient_id AND v.urgent GROUP BY w.name, p.sex ORDER BY 1, 2;

-- name: clinic/40  expect: answer
SELECT avg(gap) AS mean_visits_of_smokers FROM (SELECT p.patient_id, count(v.visit_id) AS gap FROM patients p LEFT JOIN visits v
  ON p.patient_id = v.patient_id WHERE p.smoker GROUP BY p.patient_id) AS g;

-- name: clinic/41  expect: answer
SELECT w.name, v.diagnosis FROM visits v JOIN wards w ON v.ward_id = w.ward_id GROUP BY w.name, v.diagnosis ORDER BY 1, 2;

-- name: clinic/42  expect: answer
SELECT DISTINCT insurer, sex FROM patients;

-- name: clinic/43  expect: answer
SELECT w.name, u.urgent * 1.0 / t.total AS urgent_share
FROM (SELECT ward_id, count(*) AS urgent FROM visits WHERE urgent GROUP BY ward_id) AS u
  JOIN (SELECT ward_id, count(*) AS total FROM visits GROUP BY ward_id) AS t ON u.ward_id = t.ward_id
  JOIN wards w ON w.ward_id = t.ward_id ORDER BY w.name;

-- name: clinic/44  expect: answer
WITH monthly AS (SELECT date_trunc('month', admitted) AS month, count(*) AS n FROM visits GROUP BY month)
SELECT avg(n) AS mean_per_month, max(n) AS busiest FROM monthly;

-- name: clinic/45  expect: answer
SELECT band, count(*) AS patients, avg(visits) AS visits
FROM (SELECT p.patient_id, CASE WHEN p.birth_year < 1960 THEN 'old' ELSE 'young' END AS band, count(*) AS visits
      FROM patients p JOIN visits v ON p.patient_id = v.patient_id WHERE p.birth_year IS NOT NULL GROUP BY p.patient_id, band) AS b
GROUP BY band;
