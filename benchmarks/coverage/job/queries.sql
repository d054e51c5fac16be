-- name: job/01  expect: answer
SELECT min(mc.note) AS note, min(t.title) AS title, min(t.production_year) AS produced
FROM company_type ct, info_type it, movie_companies mc, movie_info_idx mi, title t
WHERE ct.kind = 'production companies' AND it.info = 'top 250 rank' AND ct.id = mc.company_type_id
  AND t.id = mc.movie_id AND t.id = mi.movie_id AND it.id = mi.info_type_id;

-- name: job/02  expect: answer
SELECT min(t.title) AS title FROM company_name cn, keyword k, movie_companies mc, movie_keyword mk, title t
WHERE cn.country_code = '[de]' AND k.keyword = 'character-name-in-title' AND cn.id = mc.company_id
  AND mc.movie_id = t.id AND t.id = mk.movie_id AND mk.keyword_id = k.id;

-- name: job/03  expect: answer
SELECT count(*) AS sequels FROM keyword k JOIN movie_keyword mk ON mk.keyword_id = k.id JOIN title t ON t.id = mk.movie_id
WHERE k.keyword LIKE '%sequel%' AND t.production_year > 2005;

-- name: job/04  expect: answer
SELECT min(mi.info) AS rating, count(*) AS films FROM info_type it, movie_info_idx mi, title t
WHERE it.info = 'rating' AND mi.info > '5.0' AND t.production_year > 2005 AND t.id = mi.movie_id AND it.id = mi.info_type_id;

-- name: job/06  expect: refuse:text-of-one-row
SELECT min(n.name) AS actor, min(t.title) AS title FROM cast_info ci, keyword k, movie_keyword mk, name n, title t
WHERE k.keyword = 'superhero' AND n.name LIKE '%Downey%Robert%' AND t.production_year > 2010 AND k.id = mk.keyword_id
  AND t.id = mk.movie_id AND t.id = ci.movie_id AND n.id = ci.person_id;

-- name: job/06-count  expect: answer
SELECT count(DISTINCT ci.person_id) AS people FROM cast_info ci, title t
WHERE t.id = ci.movie_id AND t.production_year > 2010
  AND t.id IN (SELECT mk.movie_id FROM movie_keyword mk, keyword k WHERE mk.keyword_id = k.id AND k.keyword = 'superhero');

-- name: job/07  expect: refuse:text-of-one-row
SELECT min(n.name) AS of_person, min(a.name) AS also_known FROM aka_name a, name n, person_info pi
WHERE a.person_id = n.id AND pi.person_id = n.id AND n.gender = 'm';

-- name: job/07-count  expect: answer
SELECT count(*) AS biographies FROM name n JOIN person_info pi ON n.id = pi.person_id JOIN info_type it ON it.id = pi.info_type_id
WHERE it.info = 'mini biography' AND n.name_pcode_cf BETWEEN 'A' AND 'F' AND n.gender = 'f';

-- name: job/08  expect: answer
SELECT rt.role, count(*) AS credits FROM cast_info ci, role_type rt WHERE rt.id = ci.role_id GROUP BY rt.role ORDER BY credits DESC;

-- name: job/09  expect: answer
SELECT count(*) AS voiced FROM cast_info ci, name n, role_type rt
WHERE n.id = ci.person_id AND rt.id = ci.role_id AND ci.note LIKE '%voice%' AND n.gender = 'f' AND rt.role = 'actress';

-- name: job/10  expect: answer
SELECT t.production_year, count(DISTINCT ci.person_id) AS people FROM cast_info ci JOIN title t ON ci.movie_id = t.id
WHERE ci.note LIKE '%(uncredited)%' GROUP BY t.production_year ORDER BY t.production_year;

-- name: job/11  expect: answer
SELECT cn.name, count(*) AS films FROM company_name cn, movie_companies mc, company_type ct
WHERE cn.id = mc.company_id AND ct.id = mc.company_type_id AND cn.country_code <> '[pl]' AND mc.note IS NULL
GROUP BY cn.name ORDER BY films DESC, cn.name;

-- name: job/12  expect: answer
SELECT kt.kind, avg(t.production_year) AS mean_year, count(*) AS n FROM title t, kind_type kt
WHERE t.kind_id = kt.id GROUP BY kt.kind;

-- name: job/13  expect: answer
SELECT kt.kind, n.gender, count(*) AS credits FROM cast_info ci, name n, title t, kind_type kt
WHERE ci.person_id = n.id AND ci.movie_id = t.id AND t.kind_id = kt.id GROUP BY kt.kind, n.gender ORDER BY 1, 2;

-- name: job/14  expect: answer  approx: 4
SELECT median(ci.nr_order) AS middle, quantile_cont(ci.nr_order, 0.9) AS high FROM cast_info ci JOIN title t ON t.id = ci.movie_id
WHERE t.production_year BETWEEN 2000 AND 2010;

-- name: job/16  expect: refuse:off-unit-join
SELECT count(*) AS colleagues FROM cast_info a JOIN cast_info b ON a.movie_id = b.movie_id WHERE a.person_id < b.person_id;

-- name: job/17  expect: answer
SELECT k.keyword, count(DISTINCT ci.person_id) AS people
FROM cast_info ci JOIN movie_keyword mk ON mk.movie_id = ci.movie_id JOIN keyword k ON k.id = mk.keyword_id
GROUP BY k.keyword ORDER BY people DESC;

-- name: job/18  expect: answer
SELECT count(*) AS prolific FROM (SELECT person_id FROM cast_info GROUP BY person_id HAVING count(DISTINCT movie_id) >= 5) AS p;

-- name: job/19  expect: answer
SELECT n.gender, count(*) AS with_aliases FROM name n
WHERE EXISTS (SELECT 1 FROM aka_name a WHERE a.person_id = n.id) GROUP BY n.gender;

-- name: job/20  expect: answer
WITH ranked AS (SELECT t.id AS movie FROM title t, movie_info_idx mi, info_type it
  WHERE t.id = mi.movie_id AND mi.info_type_id = it.id AND it.info = 'rating' AND mi.info > '7.0' GROUP BY t.id)
SELECT count(*) AS credits FROM cast_info ci JOIN ranked ON ci.movie_id = ranked.movie;

-- name: job/21  expect: answer
SELECT credits, count(*) AS people FROM (SELECT person_id, count(*) AS credits FROM cast_info GROUP BY person_id) AS c
GROUP BY credits ORDER BY credits;

-- name: job/22  expect: refuse:rows
SELECT n.name, t.title FROM name n, cast_info ci, title t
WHERE n.id = ci.person_id AND ci.movie_id = t.id AND t.production_year = 2012;

-- name: job/23  expect: answer
SELECT t.production_year // 10 * 10 AS decade, count(*) FILTER (WHERE rt.role = 'actress') * 1.0 / count(*) AS share
FROM cast_info ci JOIN role_type rt ON rt.id = ci.role_id JOIN title t ON t.id = ci.movie_id GROUP BY decade ORDER BY decade;

-- name: job/24  expect: answer
SELECT it.info, count(*) AS entries FROM info_type it LEFT JOIN person_info pi ON pi.info_type_id = it.id GROUP BY it.info;

-- name: job/25  expect: answer  approx: 3
SELECT rt.role, min(ci.nr_order) AS lowest, max(ci.nr_order) AS highest FROM role_type rt, cast_info ci
WHERE ci.role_id = rt.id GROUP BY rt.role ORDER BY rt.role;

-- name: job/26  expect: answer
SELECT ci.note, count(*) AS n FROM cast_info ci WHERE ci.note IS NOT NULL GROUP BY ci.note ORDER BY n DESC;
