-- name: the design's example of cuts
SELECT count(*) FROM visits WHERE age < 18;
SELECT count(*) FROM visits WHERE age BETWEEN 10 AND 65

-- name: the design's example of values
SELECT count(*) FROM visits WHERE state IN ('NY', 'NJ');
SELECT count(*) FROM visits WHERE state = 'CA'

-- name: the paper's first example
SELECT count(*) FROM visits WHERE state IN ('NY', 'NJ', 'CA', 'WA');
SELECT count(*) FROM visits WHERE state IN ('NY', 'NJ');
SELECT count(*) FROM visits WHERE state IN ('CA', 'WA')

-- name: everything
SELECT count(*) FROM visits

-- name: nothing
SELECT count(*) FROM visits WHERE FALSE

-- name: unknown is not true
SELECT count(*) FROM visits WHERE NULL

-- name: a column's presence
SELECT count(age), count(*) FROM visits

-- name: not between keeps NULL out
SELECT count(*) FROM visits WHERE NOT (age BETWEEN 10 AND 65)

-- name: is not distinct from NULL
SELECT count(*) FROM visits WHERE age IS NOT DISTINCT FROM NULL

-- name: or over two columns
SELECT count(*) FROM visits WHERE age < 18 OR urgent

-- name: a contradiction
SELECT count(*) FROM visits WHERE age < 18 AND age > 20

-- name: NULL in a list
SELECT count(*) FROM visits WHERE age NOT IN (5, NULL)

-- name: fractions against whole numbers
SELECT count(*) FROM visits WHERE age <= 17.5;
SELECT count(*) FROM visits WHERE age = 17.5

-- name: strings are compared by code points
SELECT count(*) FROM visits WHERE state >= 'CA' AND state < 'NY'

-- name: dates
SELECT count(*) FROM visits WHERE day BETWEEN '2024-01-01' AND DATE '2024-03-31'

-- name: a sum
SELECT sum(income) FROM visits

-- name: an average with a condition
SELECT avg(age) AS mean FROM visits WHERE state = 'NY'

-- name: sum and count share their cells
SELECT count(income), sum(income) FROM visits WHERE age >= 65

-- name: two sums make four corners
SELECT sum(income), sum(age) FROM visits

-- name: groups with other and NULL
SELECT state, count(*) AS n FROM visits GROUP BY state

-- name: a NOT NULL key has no NULL group
SELECT mood, count(*) FROM visits GROUP BY 1

-- name: a value that a complete list does not have cuts nothing
SELECT count(*) FROM visits WHERE mood = 'none'; SELECT count(*) FROM visits WHERE mood > 'p' OR mood IS NULL

-- name: a NOT NULL column is counted like the rows
SELECT count(patient), count(*) FILTER (WHERE patient IS NULL), count(*) FROM visits

-- name: two keys
SELECT mood, urgent, count(*) FROM visits GROUP BY ALL

-- name: groups of a range
SELECT beds, count(*), avg(beds) FROM wards GROUP BY beds

-- name: two tables
SELECT count(*) FROM visits WHERE age < 18;
SELECT count(*) FROM wards WHERE beds = 2

-- name: count with a filter
SELECT count(*) FILTER (WHERE age < 18) AS minors, count(*) AS everybody FROM visits

-- name: count_if is a filter
SELECT count_if(age >= 65) FROM visits

-- name: a sum of a CASE between constants is counts
SELECT sum(CASE WHEN age < 18 THEN 1 WHEN age >= 65 THEN 2 ELSE 0 END) FROM visits

-- name: a sum of a CASE over a column
SELECT sum(CASE WHEN urgent THEN income ELSE 0 END) FROM visits

-- name: a count of a CASE leaves its NULL branches out
SELECT count(CASE WHEN age < 18 THEN 'minor' END) FROM visits

-- name: linear arithmetic over aggregates is one row
SELECT sum(income) - 2 * count(*) + 1 AS balance FROM visits

-- name: the paper's weighted states
SELECT count(*) FILTER (WHERE state = 'NY') / 19 + count(*) FILTER (WHERE state = 'NJ') / 8
     + count(*) FILTER (WHERE state = 'CA') / 37 AS weighted
FROM visits

-- name: a ratio is computed after the release
SELECT 100.0 * count_if(urgent) / count(*) AS percent FROM visits

-- name: a rounded average
SELECT round(avg(income), 2) AS mean FROM visits

-- name: coalesce after the release
SELECT coalesce(avg(age), 0) FROM visits WHERE state = 'NY'

-- name: variance through the sum of squares
SELECT var_samp(age) AS spread FROM visits

-- name: standard deviation with a filter
SELECT stddev_pop(age) FILTER (WHERE urgent) AS spread FROM visits

-- name: a product is one measure
SELECT sum(age * income) FROM visits

-- name: an affine sum needs no measure of its own
SELECT sum(2 * income + 1), sum(income) FROM visits

-- name: two averages and a count
SELECT avg(age), avg(income), count(*) FROM visits

-- name: LIKE is a column of its own
SELECT count(*) FROM visits WHERE state LIKE 'N%'

-- name: NOT ILIKE keeps NULL out
SELECT count(*) FROM visits WHERE state NOT ILIKE 'n%'

-- name: a regular expression
SELECT count(*) FROM visits WHERE regexp_matches(state, '^[A-M]')

-- name: SIMILAR TO
SELECT count(*) FROM visits WHERE state SIMILAR TO 'N(Y|J)'

-- name: dates with interval arithmetic
SELECT count(*) FROM visits WHERE day BETWEEN DATE '2024-01-31' AND DATE '2024-01-31' + INTERVAL '1 month'

-- name: a part of a date is cut like a column
SELECT count(*) FROM visits WHERE extract(month FROM day) = 5;
SELECT count(*) FROM visits WHERE extract(month FROM day) <= 6

-- name: a function of a text
SELECT count(*) FROM visits WHERE length(state) > 2 OR upper(state) = 'NY'

-- name: columns compared with each other
SELECT count(*) FROM visits WHERE income < age * 1000

-- name: distinct from another column
SELECT count(*) FROM visits WHERE age IS DISTINCT FROM patient

-- name: a cast that can fail is NULL
SELECT count(*) FROM visits WHERE TRY_CAST(state AS INTEGER) > 5

-- name: a bare boolean and its negation
SELECT count(*) FROM visits WHERE urgent;
SELECT count(*) FROM visits WHERE NOT urgent

-- name: a condition that is a CASE
SELECT count(*) FROM visits WHERE CASE WHEN age < 18 THEN urgent ELSE state = 'NY' END

-- name: IS TRUE and IS NOT FALSE
SELECT count(*) FROM visits WHERE (age < 18) IS TRUE;
SELECT count(*) FROM visits WHERE (age < 18) IS NOT FALSE

-- name: the same number in two notations is one constant
SELECT count(*) FROM visits WHERE income < 1000;
SELECT count(*) FROM visits WHERE 1e3 > income

-- name: groups of an expression
SELECT age // 40 AS band, count(*) FROM visits GROUP BY band

-- name: groups of a CASE
SELECT CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END AS who, count(*) FROM visits GROUP BY who

-- name: groups of a condition
SELECT age >= 65 AS senior, count(*) FROM visits GROUP BY senior

-- name: rollup
SELECT mood, urgent, count(*) FROM visits GROUP BY ROLLUP (mood, urgent)

-- name: cube with GROUPING
SELECT mood, urgent, GROUPING(mood, urgent) AS level, count(*) FROM visits GROUP BY CUBE (mood, urgent)

-- name: grouping sets
SELECT mood, urgent, count(*) FROM visits GROUP BY GROUPING SETS ((mood), (urgent), ())

-- name: having and order work on what is released
SELECT mood, count(*) AS n FROM visits GROUP BY mood HAVING n > 100 ORDER BY n DESC LIMIT 1

-- name: order by an aggregate that is not shown
SELECT mood FROM visits GROUP BY mood ORDER BY count(*)

-- name: distinct results
SELECT DISTINCT count(*) AS n FROM visits GROUP BY mood

-- name: qualified, quoted and upper-case names
SELECT COUNT(*) FROM main.visits AS "V" WHERE V.AGE < 18 AND "V"."state" = 'NY'

-- name: comments
SELECT count(*) /* of all */ FROM visits -- of the clinic
WHERE age < /* not yet */ 18

-- name: a CTE that filters and projects
WITH young AS (SELECT state AS place, age * 2 AS twice FROM visits WHERE age < 18)
SELECT count(*) FROM young WHERE place = 'NY' AND twice > 10

-- name: a derived table
SELECT sum(age) FROM (SELECT age FROM visits WHERE urgent) AS hurried

-- name: a view
SELECT count(*) FROM minors WHERE state = 'NY'

-- name: union all
SELECT 'young' AS who, count(*) AS n FROM visits WHERE age < 18
UNION ALL
SELECT 'old', count(*) FROM visits WHERE age >= 65

-- name: a scalar subquery
SELECT count(*) - (SELECT count(*) FROM wards) AS surplus FROM visits

-- name: only scalar subqueries
SELECT (SELECT count(*) FROM visits) AS v, (SELECT count(*) FROM wards) AS w

-- name: a public table joined on its key
SELECT count(*) FROM visits JOIN hospitals ON visits.patient = hospitals.id WHERE hospitals.city = 'Utica'

-- name: a left join keeps every row
SELECT count(*), count(hospitals.city) FROM visits LEFT JOIN hospitals ON visits.patient = hospitals.id

-- name: groups of a public column
SELECT city, count(*) FROM visits JOIN hospitals ON visits.patient = hospitals.id GROUP BY city

-- name: private tables joined on their unit
SELECT count(*) FROM stays JOIN patients ON stays.pid = patients.pid WHERE patients.sex = 'f' AND nights > 2

-- name: a public table alone
SELECT count(*) FROM hospitals WHERE city = 'Utica'

-- name: quantiles share their counts
SELECT median(beds), quantile_disc(beds, 0.25), min(beds), max(beds) FROM wards

-- name: quantiles in an expression and after the release
SELECT max(beds) - min(beds) AS spread FROM wards HAVING median(beds) > 1

-- name: the mode of declared values, with a condition
SELECT mode(state) FILTER (WHERE urgent) FROM visits

-- name: an ordered quantile from the greatest value
SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY nights // 10 DESC) FROM stays

-- name: a comma join with a public table first
SELECT count(*) FROM hospitals h, visits v WHERE h.id = v.age AND h.city = 'Troy' AND v.urgent

-- name: one row for each unit
SELECT count(*) FROM (SELECT pid, count(*) AS n FROM stays WHERE nights > 2 GROUP BY pid) WHERE n >= 2

-- name: distinct units and distinct values
SELECT count(DISTINCT pid), count(DISTINCT nights) FROM stays

-- name: whether another table has a row of the unit
SELECT count(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM stays s WHERE s.pid = p.pid AND s.nights > 9)

-- name: a select over released groups is one select
SELECT mood, n FROM (SELECT mood, count(*) AS n FROM visits GROUP BY mood) WHERE n > 3 ORDER BY n DESC

-- name: an average of released groups
SELECT avg(n) AS mean FROM (SELECT mood, count(*) AS n FROM visits GROUP BY mood)

-- name: a window over groups
SELECT mood, rank() OVER (ORDER BY count(*) DESC) AS place FROM visits GROUP BY mood

-- name: rows of two selects one below the other
SELECT m, sum(x) AS total FROM (SELECT mood AS m, age AS x FROM visits WHERE urgent UNION ALL SELECT mood, age FROM visits) AS u
GROUP BY m

-- name: the range of a sum written into the query, in the order of all items
SELECT mood, sum(greatest(0, least(age, 50))) AS total FROM visits GROUP BY mood ORDER BY ALL
