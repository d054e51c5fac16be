-- name: bank/01  expect: answer
SELECT kind, count(*) AS accounts, sum(balance) AS balance FROM accounts GROUP BY kind;

-- name: bank/02  expect: answer
SELECT b.region, c.segment, count(*) AS clients FROM clients c JOIN branches b ON c.branch_id = b.branch_id GROUP BY b.region, c.segment;

-- name: bank/03  expect: answer
SELECT c.segment, avg(a.balance) AS balance FROM clients c, accounts a WHERE c.client_id = a.client_id GROUP BY c.segment ORDER BY balance DESC;

-- name: bank/04  expect: answer
SELECT date_trunc('month', ts) AS month, sum(amount) AS volume, count(*) FILTER (WHERE flagged) AS flagged FROM transfers GROUP BY month ORDER BY month;

-- name: bank/05  expect: answer
SELECT merchant, count(*) AS n, avg(amount) AS mean FROM transfers GROUP BY merchant HAVING count(*) > 50 ORDER BY n DESC;

-- name: bank/06  expect: answer
SELECT sum(t.amount * r.to_eur) AS euros FROM transfers t JOIN rates r ON t.currency = r.currency;

-- name: bank/07  expect: answer
SELECT currency, 100.0 * count(*) / sum(count(*)) OVER () AS share FROM transfers GROUP BY currency ORDER BY share DESC;

-- name: bank/08  expect: answer
SELECT round(rate) AS rate, avg(CASE WHEN defaulted THEN 1.0 ELSE 0.0 END) AS default_rate FROM loans GROUP BY round(rate) ORDER BY 1;

-- name: bank/09  expect: answer
SELECT sum(principal) FILTER (WHERE defaulted) / sum(principal) AS loss_share FROM loans;

-- name: bank/10  expect: answer
SELECT count(*) AS rich FROM (SELECT client_id FROM accounts GROUP BY client_id HAVING sum(balance) > 50000) AS r;

-- name: bank/11  expect: answer
SELECT accounts, count(*) AS clients FROM (SELECT client_id, count(*) AS accounts FROM accounts GROUP BY client_id) AS a GROUP BY accounts;

-- name: bank/12  expect: answer  approx: 20
SELECT segment, median(score) AS middle FROM clients GROUP BY segment;

-- name: bank/13  expect: answer
SELECT (2025 - born) // 10 * 10 AS decade, avg(score) AS score, count(*) AS clients FROM clients WHERE born IS NOT NULL GROUP BY decade ORDER BY decade;

-- name: bank/14  expect: answer
SELECT score, count(*) AS clients FROM clients WHERE score BETWEEN 300 AND 310 GROUP BY score;

-- name: bank/15  expect: answer
SELECT count(*) AS borrowers_without_savings FROM clients c WHERE EXISTS (SELECT 1 FROM loans l WHERE l.client_id = c.client_id)
  AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.client_id = c.client_id AND a.kind = 'savings');

-- name: bank/16  expect: answer
SELECT b.city, count(l.principal) AS loans FROM branches b LEFT JOIN clients c ON c.branch_id = b.branch_id
  LEFT JOIN loans l ON l.client_id = c.client_id GROUP BY b.city;

-- name: bank/17  expect: answer
WITH large AS (SELECT account_id, amount, ts FROM transfers WHERE amount > 1000)
SELECT a.kind, count(*) AS n FROM large JOIN accounts a ON large.account_id = a.account_id GROUP BY a.kind;

-- name: bank/18  expect: refuse:rows
SELECT account_id, balance FROM accounts ORDER BY balance DESC LIMIT 10;

-- name: bank/19  expect: refuse:one-unit-groups
SELECT client_id, count(*) AS n FROM accounts GROUP BY client_id;

-- name: bank/20  expect: refuse:ddl
DELETE FROM transfers WHERE flagged;

-- name: bank/21  expect: answer
SELECT months, sum(principal) AS lent FROM loans GROUP BY months ORDER BY lent DESC LIMIT 3;

-- name: bank/22  expect: refuse:off-unit-join
SELECT count(*) AS same_merchant FROM transfers a JOIN transfers b ON a.merchant = b.merchant AND a.account_id <> b.account_id;

-- name: bank/23  expect: answer
SELECT rate, count(*) AS loans FROM loans WHERE rate < 1 GROUP BY rate ORDER BY rate;

-- name: bank/24  expect: answer
SELECT floor(balance / 10000) * 10000 AS from_balance, count(*) AS accounts FROM accounts GROUP BY from_balance ORDER BY 1;

-- name: bank/25  expect: answer
SELECT width_bucket, clients FROM (SELECT floor((score - 300) / 50) AS width_bucket, count(*) AS clients FROM clients GROUP BY 1) AS h ORDER BY 1;

-- name: bank/26  expect: answer
WITH young AS (SELECT client_id FROM clients WHERE born > 1995)
SELECT a.kind, avg(a.balance) AS balance FROM accounts a JOIN young y ON a.client_id = y.client_id GROUP BY a.kind;

-- name: bank/27  expect: answer  approx: 12000
SELECT max(principal) AS largest FROM loans WHERE NOT defaulted;

-- name: bank/28  expect: answer
SELECT kind, avg(balance) - (SELECT avg(balance) FROM accounts) AS above_mean FROM accounts GROUP BY kind;

-- name: bank/29  expect: answer
SELECT event, count(*) AS n FROM (SELECT client_id, 'account' AS event FROM accounts UNION ALL SELECT client_id, 'loan' FROM loans) AS events GROUP BY event;

-- name: bank/30  expect: answer
SELECT currency, to_eur FROM rates ORDER BY currency;

-- name: bank/31  expect: answer
SELECT region, count(DISTINCT city) AS cities FROM branches GROUP BY region;

-- name: bank/32  expect: answer
SELECT merchant FROM transfers GROUP BY merchant;

-- name: bank/33  expect: answer
SELECT b.city, avg(c.score) AS score FROM branches b, clients c WHERE b.branch_id = c.branch_id AND c.segment <> 'student' GROUP BY b.city;

-- name: bank/34  expect: answer
SELECT c.segment, avg(CASE WHEN t.total > 10000 THEN 1 ELSE 0 END) AS wealthy FROM clients c
JOIN (SELECT client_id, sum(balance) AS total FROM accounts GROUP BY client_id) AS t ON t.client_id = c.client_id GROUP BY c.segment;
