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

-- name: two keys
SELECT mood, urgent, count(*) FROM visits GROUP BY ALL

-- name: groups of a range
SELECT beds, count(*), avg(beds) FROM wards GROUP BY beds

-- name: two tables
SELECT count(*) FROM visits WHERE age < 18;
SELECT count(*) FROM wards WHERE beds = 2
