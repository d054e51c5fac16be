-- name: clickbench/01  expect: answer
SELECT count(*) AS hits FROM hits;

-- name: clickbench/02  expect: answer
SELECT count(*) AS adverts FROM hits WHERE AdvEngineID <> 0;

-- name: clickbench/03  expect: answer
SELECT sum(AdvEngineID) AS engines, count(*) AS hits, avg(ResolutionWidth) AS width FROM hits;

-- name: clickbench/04  expect: answer
SELECT avg(UserID) AS mean_user FROM hits;

-- name: clickbench/05  expect: answer
SELECT count(DISTINCT UserID) AS users FROM hits;

-- name: clickbench/06  expect: answer
SELECT count(DISTINCT SearchPhrase) AS phrases FROM hits;

-- name: clickbench/07  expect: answer  approx: 3
SELECT min(EventDate) AS first_day, max(EventDate) AS last_day FROM hits;

-- name: clickbench/08  expect: answer
SELECT AdvEngineID, count(*) AS n FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY n DESC;

-- name: clickbench/09  expect: answer
SELECT RegionID, count(DISTINCT UserID) AS users FROM hits GROUP BY RegionID ORDER BY users DESC LIMIT 10;

-- name: clickbench/10  expect: answer
SELECT RegionID, sum(AdvEngineID) AS engines, count(*) AS c, avg(ResolutionWidth) AS width,
  count(DISTINCT UserID) AS users
FROM hits GROUP BY RegionID ORDER BY c DESC LIMIT 10;

-- name: clickbench/11  expect: answer
SELECT MobilePhoneModel, count(DISTINCT UserID) AS users FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhoneModel ORDER BY users DESC LIMIT 10;

-- name: clickbench/12  expect: answer
SELECT MobilePhone, MobilePhoneModel, count(DISTINCT UserID) AS users FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhone, MobilePhoneModel ORDER BY users DESC LIMIT 10;

-- name: clickbench/13  expect: answer
SELECT SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10;

-- name: clickbench/14  expect: answer
SELECT SearchPhrase, count(DISTINCT UserID) AS users FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY users DESC LIMIT 10;

-- name: clickbench/15  expect: answer
SELECT SearchEngineID, SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC LIMIT 10;

-- name: clickbench/16  expect: refuse:one-unit-groups
SELECT UserID, count(*) AS n FROM hits GROUP BY UserID ORDER BY n DESC LIMIT 10;

-- name: clickbench/17  expect: refuse:one-unit-groups
SELECT UserID, SearchPhrase, count(*) AS n FROM hits GROUP BY UserID, SearchPhrase ORDER BY n DESC LIMIT 10;

-- name: clickbench/18  expect: refuse:one-unit-groups
SELECT UserID, SearchPhrase, count(*) AS n FROM hits GROUP BY UserID, SearchPhrase LIMIT 10;

-- name: clickbench/19  expect: refuse:one-unit-groups
SELECT UserID, extract(minute FROM EventTime) AS m, SearchPhrase, count(*) AS n FROM hits
GROUP BY UserID, m, SearchPhrase ORDER BY n DESC LIMIT 10;

-- name: clickbench/20  expect: refuse:rows
SELECT UserID FROM hits WHERE UserID = 17;

-- name: clickbench/21  expect: answer
SELECT count(*) AS n FROM hits WHERE URL LIKE '%google%';

-- name: clickbench/22  expect: refuse:text-of-one-row
SELECT SearchPhrase, min(URL) AS url, count(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10;

-- name: clickbench/23  expect: refuse:text-of-one-row
SELECT SearchPhrase, min(URL) AS url, min(Title) AS title, count(*) AS c, count(DISTINCT UserID) AS users FROM hits
WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10;

-- name: clickbench/24  expect: refuse:rows
SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10;

-- name: clickbench/25  expect: refuse:rows
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT 10;

-- name: clickbench/26  expect: refuse:rows
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10;

-- name: clickbench/27  expect: refuse:rows
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10;

-- name: clickbench/28  expect: answer
SELECT CounterID, avg(length(URL)) AS l, count(*) AS c FROM hits WHERE URL <> ''
GROUP BY CounterID HAVING count(*) > 100 ORDER BY l DESC LIMIT 25;

-- name: clickbench/29  expect: answer
SELECT regexp_replace(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS site, avg(length(Referer)) AS l, count(*) AS c
FROM hits WHERE Referer <> '' GROUP BY site HAVING count(*) > 100 ORDER BY l DESC LIMIT 25;

-- name: clickbench/30  expect: answer
SELECT sum(ResolutionWidth) AS w0, sum(ResolutionWidth + 1) AS w1, sum(ResolutionWidth + 2) AS w2,
  sum(ResolutionWidth + 3) AS w3, sum(ResolutionWidth + 4) AS w4, sum(ResolutionWidth + 5) AS w5,
  sum(ResolutionWidth + 6) AS w6, sum(ResolutionWidth + 7) AS w7, sum(ResolutionWidth + 8) AS w8
FROM hits;

-- name: clickbench/31  expect: answer
SELECT SearchEngineID, ClientIP, count(*) AS c, sum(IsRefresh) AS refreshed, avg(ResolutionWidth) AS width
FROM hits WHERE SearchPhrase <> '' GROUP BY SearchEngineID, ClientIP ORDER BY c DESC LIMIT 10;

-- name: clickbench/32  expect: answer
SELECT WatchID, ClientIP, count(*) AS c, sum(IsRefresh) AS refreshed, avg(ResolutionWidth) AS width
FROM hits WHERE SearchPhrase <> '' GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10;

-- name: clickbench/33  expect: answer
SELECT ClientIP, count(*) AS c, sum(IsRefresh) AS refreshed, avg(ResolutionWidth) AS width FROM hits
GROUP BY ClientIP ORDER BY c DESC LIMIT 10;

-- name: clickbench/34  expect: answer
SELECT URL, count(*) AS c FROM hits GROUP BY URL ORDER BY c DESC LIMIT 10;

-- name: clickbench/35  expect: answer
SELECT 1 AS one, URL, count(*) AS c FROM hits GROUP BY 1, URL ORDER BY c DESC LIMIT 10;

-- name: clickbench/36  expect: answer
SELECT ClientIP, ClientIP - 1 AS before, ClientIP - 2 AS earlier, count(*) AS c FROM hits
GROUP BY ClientIP, ClientIP - 1, ClientIP - 2 ORDER BY c DESC LIMIT 10;

-- name: clickbench/37  expect: answer
SELECT URL, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate BETWEEN '2013-07-01' AND '2013-07-31' AND DontCountHits = 0 AND IsRefresh = 0
  AND URL <> '' GROUP BY URL ORDER BY views DESC LIMIT 10;

-- name: clickbench/38  expect: answer
SELECT Title, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND DontCountHits = 0
  AND IsRefresh = 0 AND Title <> '' GROUP BY Title ORDER BY views DESC LIMIT 10;

-- name: clickbench/39  expect: answer
SELECT URL, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate BETWEEN '2013-07-01' AND '2013-07-31' AND IsRefresh = 0 AND IsLink <> 0
  AND IsDownload = 0 GROUP BY URL ORDER BY views DESC LIMIT 10 OFFSET 2;

-- name: clickbench/40  expect: answer
SELECT TraficSourceID, SearchEngineID, AdvEngineID,
  CASE WHEN SearchEngineID = 0 AND AdvEngineID = 0 THEN Referer ELSE '' END AS source, URL AS target, count(*) AS views
FROM hits WHERE CounterID = 62 AND EventDate BETWEEN '2013-07-01' AND '2013-07-31' AND IsRefresh = 0
GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, source, target ORDER BY views DESC LIMIT 10 OFFSET 10;

-- name: clickbench/41  expect: answer
SELECT URLHash, EventDate, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate BETWEEN '2013-07-01' AND '2013-07-31' AND IsRefresh = 0
  AND TraficSourceID IN (-1, 6) AND RefererHash = 3594120000172545465
GROUP BY URLHash, EventDate ORDER BY views DESC LIMIT 10;

-- name: clickbench/42  expect: answer
SELECT WindowClientWidth, WindowClientHeight, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate BETWEEN '2013-07-01' AND '2013-07-31' AND IsRefresh = 0 AND DontCountHits = 0
  AND URLHash = 2868770270353813622
GROUP BY WindowClientWidth, WindowClientHeight ORDER BY views DESC LIMIT 10;

-- name: clickbench/43  expect: answer
SELECT date_trunc('minute', EventTime) AS m, count(*) AS views FROM hits
WHERE CounterID = 62 AND EventDate BETWEEN '2013-07-14' AND '2013-07-15' AND IsRefresh = 0 AND DontCountHits = 0
GROUP BY date_trunc('minute', EventTime) ORDER BY m LIMIT 10;
