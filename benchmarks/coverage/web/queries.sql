-- name: web/01  expect: answer
SELECT CAST(ts AS DATE) AS day, count(*) AS views, count(DISTINCT user_id) AS visitors FROM events WHERE kind = 'view' GROUP BY day ORDER BY day;

-- name: web/02  expect: answer
SELECT p.section, count(*) AS views FROM events e JOIN pages p ON e.page_id = p.page_id WHERE e.kind = 'view' GROUP BY p.section;

-- name: web/03  expect: answer
SELECT p.path, count(*) AS views FROM pages p, events e WHERE p.page_id = e.page_id GROUP BY p.path ORDER BY views DESC LIMIT 10;

-- name: web/04  expect: answer
SELECT count(DISTINCT user_id) FILTER (WHERE kind = 'view') AS viewed, count(DISTINCT user_id) FILTER (WHERE kind = 'click') AS clicked,
  count(DISTINCT user_id) FILTER (WHERE kind = 'buy') AS bought FROM events;

-- name: web/05  expect: answer
SELECT count(*) FILTER (WHERE kind = 'click') / count(*) FILTER (WHERE kind = 'view') AS click_rate FROM events;

-- name: web/06  expect: answer  approx: 350
SELECT device, quantile_cont(load_ms, 0.95) AS slow FROM events GROUP BY device;

-- name: web/07  expect: answer
SELECT query, count(*) AS n FROM events WHERE kind = 'search' GROUP BY query ORDER BY n DESC LIMIT 20;

-- name: web/08  expect: answer
SELECT u.plan, sum(x.amount) AS revenue, count(DISTINCT u.user_id) AS buyers FROM users u JOIN purchases x ON u.user_id = x.user_id GROUP BY u.plan;

-- name: web/09  expect: answer
SELECT c.channel, count(*) AS signups FROM users u JOIN campaigns c ON u.campaign_id = c.campaign_id GROUP BY c.channel;

-- name: web/10  expect: answer
WITH revenue AS (SELECT u.campaign_id, sum(x.amount) AS amount FROM users u JOIN purchases x ON u.user_id = x.user_id GROUP BY u.campaign_id)
SELECT c.channel, c.spend, r.amount, r.amount / c.spend AS return_on_spend FROM campaigns c JOIN revenue r ON r.campaign_id = c.campaign_id ORDER BY c.campaign_id;

-- name: web/11  expect: answer
SELECT date_trunc('week', signed_up) AS cohort, count(*) AS users FROM users GROUP BY cohort ORDER BY cohort;

-- name: web/12  expect: answer
SELECT date_trunc('month', u.signed_up) AS cohort, date_trunc('month', e.ts) AS month, count(DISTINCT e.user_id) AS active
FROM users u JOIN events e ON e.user_id = u.user_id GROUP BY cohort, month ORDER BY cohort, month;

-- name: web/13  expect: answer
SELECT avg(n) AS events_per_user FROM (SELECT user_id, count(*) AS n FROM events GROUP BY user_id) AS e;

-- name: web/14  expect: answer
SELECT count(*) AS sessions FROM (SELECT DISTINCT user_id, session_id FROM events) AS s;

-- name: web/15  expect: refuse:rows
SELECT user_id, ts, lag(ts) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM events;

-- name: web/16  expect: answer
SELECT extract(hour FROM ts) AS h, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place FROM events GROUP BY h ORDER BY place;

-- name: web/17  expect: answer
SELECT country, count(*) AS users FROM users WHERE user_id IN (SELECT user_id FROM purchases WHERE amount > 100) GROUP BY country;

-- name: web/18  expect: answer
SELECT day, n, sum(n) OVER (ORDER BY day) AS so_far FROM (SELECT CAST(ts AS DATE) AS day, count(*) AS n FROM purchases GROUP BY day) AS d ORDER BY day;

-- name: web/19  expect: answer
SELECT author, count(*) AS pages FROM pages GROUP BY author ORDER BY pages DESC;

-- name: web/20  expect: refuse:off-unit-join
SELECT count(*) AS pairs FROM events a JOIN events b ON a.session_id = b.session_id AND a.kind = 'view' AND b.kind = 'buy';

-- name: web/21  expect: answer
SELECT kind, device, count(*) AS n FROM events GROUP BY GROUPING SETS ((kind), (device), ()) ORDER BY 1, 2;

-- name: web/22  expect: refuse:file
SELECT count(*) AS n FROM read_csv('/dev/null', columns = {'a': 'INTEGER'});

-- name: web/23  expect: answer
WITH mobile AS (SELECT user_id, page_id, load_ms FROM events WHERE device = 'mobile')
SELECT p.section, avg(m.load_ms) AS load FROM mobile m JOIN pages p ON m.page_id = p.page_id GROUP BY p.section;

-- name: web/24  expect: answer
WITH shop AS (SELECT page_id FROM pages WHERE section = 'shop')
SELECT kind, count(*) AS n FROM events JOIN shop ON events.page_id = shop.page_id GROUP BY kind;

-- name: web/25  expect: answer  approx: 14
SELECT plan, min(signed_up) AS first, max(signed_up) AS last FROM users GROUP BY plan;

-- name: web/26  expect: answer
SELECT channel, sum(spend) AS spend FROM campaigns GROUP BY channel HAVING sum(spend) > 500 ORDER BY spend DESC;

-- name: web/27  expect: answer
SELECT path FROM pages WHERE section = 'docs' ORDER BY path;

-- name: web/28  expect: answer
SELECT coupon, count(*) AS n, sum(amount) AS amount FROM purchases GROUP BY coupon;

-- name: web/29  expect: answer
SELECT country, plan, count(*) AS users FROM users GROUP BY ROLLUP (country, plan) ORDER BY 1, 2;

-- name: web/30  expect: answer
SELECT round(amount / 25) * 25 AS about, count(*) AS n FROM purchases GROUP BY about ORDER BY about;

-- name: web/31  expect: answer
SELECT p.section, count(e.user_id) AS events FROM events e RIGHT JOIN pages p ON e.page_id = p.page_id GROUP BY p.section;

-- name: web/32  expect: answer
SELECT kind, n, n * 1.0 / max(n) OVER () AS of_largest FROM (SELECT kind, count(*) AS n FROM events GROUP BY kind) AS k;

-- name: web/33  expect: answer
SELECT count(*) AS views FROM events e, pages p, users u
WHERE e.page_id = p.page_id AND e.user_id = u.user_id AND p.section = 'news' AND u.plan = 'pro' AND e.kind = 'view';

-- name: web/34  expect: answer
SELECT author FROM pages WHERE author IS NOT NULL GROUP BY author ORDER BY author;
