-- HIV+ patients by state: the running example of the LRM paper (its Figure 1), where the first is the sum of the others
SELECT count(*) AS hiv_all FROM patients WHERE hiv AND state IN ('NY', 'NJ', 'CA', 'WA');
SELECT count(*) AS hiv_east FROM patients WHERE hiv AND state IN ('NY', 'NJ');
SELECT count(*) AS hiv_west FROM patients WHERE hiv AND state IN ('CA', 'WA');
SELECT state, count(*) AS hiv FROM patients WHERE hiv GROUP BY state;

-- who the patients are
SELECT count(*) AS patients FROM patients;
SELECT count(state) AS with_state, count(age) AS with_age, count(income) AS with_income FROM patients;
SELECT state, count(*) AS n FROM patients GROUP BY state;
SELECT sex, count(*) AS n FROM patients GROUP BY sex;
SELECT state, sex, count(*) AS n FROM patients GROUP BY state, sex;

-- how old they are: a cumulative curve and overlapping bands, which a noisy histogram answers badly
SELECT count(*) AS younger_than_5 FROM patients WHERE age < 5;
SELECT count(*) AS younger_than_10 FROM patients WHERE age < 10;
SELECT count(*) AS younger_than_15 FROM patients WHERE age < 15;
SELECT count(*) AS younger_than_20 FROM patients WHERE age < 20;
SELECT count(*) AS younger_than_25 FROM patients WHERE age < 25;
SELECT count(*) AS younger_than_30 FROM patients WHERE age < 30;
SELECT count(*) AS younger_than_35 FROM patients WHERE age < 35;
SELECT count(*) AS younger_than_40 FROM patients WHERE age < 40;
SELECT count(*) AS younger_than_45 FROM patients WHERE age < 45;
SELECT count(*) AS younger_than_50 FROM patients WHERE age < 50;
SELECT count(*) AS younger_than_55 FROM patients WHERE age < 55;
SELECT count(*) AS younger_than_60 FROM patients WHERE age < 60;
SELECT count(*) AS younger_than_65 FROM patients WHERE age < 65;
SELECT count(*) AS younger_than_70 FROM patients WHERE age < 70;
SELECT count(*) AS younger_than_75 FROM patients WHERE age < 75;
SELECT count(*) AS younger_than_80 FROM patients WHERE age < 80;
SELECT count(*) AS children FROM patients WHERE age BETWEEN 0 AND 17;
SELECT count(*) AS working_age FROM patients WHERE age BETWEEN 18 AND 64;
SELECT count(*) AS pensioners FROM patients WHERE age >= 65;
SELECT count(*) AS oldest FROM patients WHERE age > 90;
SELECT count(*) AS women_of_childbearing_age FROM patients WHERE sex = 'F' AND age BETWEEN 15 AND 49;
SELECT count(*) AS young_men_east FROM patients WHERE sex = 'M' AND age BETWEEN 18 AND 30 AND state IN ('NY', 'NJ');
SELECT count(*) AS hiv_under_30 FROM patients WHERE hiv AND age < 30;
SELECT count(*) AS hiv_30_to_49 FROM patients WHERE hiv AND age BETWEEN 30 AND 49;
SELECT count(*) AS hiv_50_and_over FROM patients WHERE hiv AND age >= 50;
SELECT count(*) AS hiv_not_known FROM patients WHERE hiv IS NULL;

-- what they earn
SELECT sum(income) AS income, avg(income) AS mean_income FROM patients WHERE age >= 18;
SELECT sex, avg(income) AS mean_income FROM patients GROUP BY sex;

-- what brings them here
SELECT count(*) AS visits FROM visits;
SELECT department, count(*) AS n, avg(cost) AS mean_cost FROM visits GROUP BY department;
SELECT urgent, count(*) AS n FROM visits GROUP BY urgent;
SELECT count(*) AS winter FROM visits WHERE day BETWEEN '2024-12-01' AND '2025-02-28';
SELECT count(*) AS summer FROM visits WHERE day BETWEEN '2025-06-01' AND '2025-08-31';
SELECT count(*) AS year_2024 FROM visits WHERE day < '2025-01-01';
SELECT count(*) AS year_2025 FROM visits WHERE day >= '2025-01-01';
SELECT count(*) AS expensive FROM visits WHERE cost > 10000;
SELECT count(*) AS urgent_surgery FROM visits WHERE urgent AND department = 'surgery'
