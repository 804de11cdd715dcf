-- name: order by one key
-- order: total
SELECT v FROM l ORDER BY v;

-- name: order descending
-- order: total
SELECT v FROM l ORDER BY v DESC;

-- name: order with NULLs first and ties
-- order: keys 1
SELECT k, v FROM l ORDER BY k NULLS FIRST;

-- name: order with NULLs last and ties
-- order: keys 1
SELECT k, v FROM l ORDER BY k NULLS LAST;

-- name: order descending with NULLs first
-- order: total
SELECT k, v FROM l ORDER BY k DESC NULLS FIRST, v;

-- name: order descending with NULLs last
-- order: total
SELECT k, v FROM l ORDER BY k DESC NULLS LAST, v DESC;

-- name: order by default placing of NULLs
-- order: total
SELECT s, v FROM l ORDER BY s, v;

-- name: order by an expression
-- order: total
SELECT v FROM l ORDER BY v % 30, -v;

-- name: order by a column that is not selected
-- order: total
SELECT k FROM l ORDER BY v DESC;

-- name: order by position
-- order: total
SELECT s, v FROM l ORDER BY 1 DESC, 2;

-- name: order by an alias
-- order: total
SELECT v * -1 AS m FROM l ORDER BY m;

-- name: order by an aggregate
-- order: total
SELECT k, sum(v) AS t FROM l GROUP BY k ORDER BY sum(v) DESC, k;

-- name: order by text of all kinds
-- order: keys 1
SELECT s, id FROM texts ORDER BY s;

-- name: order by text with an ICU-free upper case
-- order: total
SELECT id FROM texts ORDER BY upper(s) DESC NULLS LAST, id;

-- name: order by floats with NaN and infinities
-- order: total
SELECT f, id FROM floats ORDER BY f, id;

-- name: order by floats descending
-- order: total
SELECT f, id FROM floats ORDER BY f DESC, id;

-- name: order by decimals
-- order: keys 1
SELECT d38, id FROM numbers ORDER BY d38 DESC;

-- name: order by a zoned timestamp
-- order: total
SELECT z_ny, id FROM moments ORDER BY z_ny DESC, id;

-- name: order by a boolean
-- order: total
SELECT b, id FROM numbers ORDER BY b, id;

-- name: order by bytes
-- order: keys 1
SELECT b, id FROM texts ORDER BY b;

-- name: order by a list
-- order: keys 1
SELECT xs, id FROM nested ORDER BY xs;

-- name: order by a CASE
-- order: total
SELECT v FROM l ORDER BY CASE WHEN s = 'a' THEN 0 WHEN s IS NULL THEN 1 ELSE 2 END, v;

-- name: limit in total order
-- order: total
SELECT v FROM l ORDER BY v LIMIT 5;

-- name: limit of one
-- order: total
SELECT v FROM l ORDER BY v DESC LIMIT 1;

-- name: limit larger than the table
-- order: total
SELECT v FROM l ORDER BY v LIMIT 500;

-- name: limit of zero
-- order: total
SELECT v FROM l ORDER BY v LIMIT 0;

-- name: limit of zero without order
SELECT k, s FROM l LIMIT 0;

-- name: limit and offset
-- order: total
SELECT v FROM l ORDER BY v LIMIT 4 OFFSET 3;

-- name: offset without limit
-- order: total
SELECT v FROM l ORDER BY v OFFSET 10;

-- name: offset beyond the end
-- order: total
SELECT v FROM l ORDER BY v OFFSET 100;

-- name: limit and offset beyond the end
-- order: total
SELECT v FROM l ORDER BY v LIMIT 5 OFFSET 14;

-- name: offset without order
-- whole: SELECT k, s FROM l
SELECT k, s FROM l OFFSET 12;

-- name: limit without order
-- whole: SELECT k, s, v FROM l
SELECT k, s, v FROM l LIMIT 5;

-- name: limit without order over a filter
-- whole: SELECT id FROM sales WHERE qty > 3
SELECT id FROM sales WHERE qty > 3 LIMIT 20;

-- name: limit without order over a join
-- whole: SELECT l.v, r.w FROM l JOIN r ON l.k = r.k
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k LIMIT 6;

-- name: limit without order over groups
-- whole: SELECT k, count(*) AS n FROM l GROUP BY k
SELECT k, count(*) AS n FROM l GROUP BY k LIMIT 3;

-- name: limit without order over a union
-- whole: SELECT k FROM l UNION ALL SELECT k FROM r
SELECT k FROM l UNION ALL SELECT k FROM r LIMIT 9;

-- name: limit with ties at the end
-- order: keys 1
-- whole: SELECT k, v FROM l
SELECT k, v FROM l ORDER BY k LIMIT 3;

-- name: limit and offset with ties
-- order: keys 1
-- whole: SELECT region, id FROM sales
SELECT region, id FROM sales ORDER BY region DESC NULLS LAST LIMIT 30 OFFSET 5;

-- name: limit in a subquery and above
-- order: total
SELECT v FROM (SELECT v FROM l ORDER BY v DESC LIMIT 10) x ORDER BY v LIMIT 3;

-- name: offset in a subquery
SELECT count(*) AS n, sum(v) AS s FROM (SELECT v FROM l ORDER BY v OFFSET 4) x;

-- name: limit over an empty table
-- order: total
SELECT v FROM nothing ORDER BY v LIMIT 5;

-- name: top rows of a join
-- order: total
SELECT s.id, e.name FROM sales s JOIN emp e ON s.emp_id = e.id ORDER BY s.id DESC LIMIT 12;

-- name: order by columns of both sides of a join
-- order: total
SELECT l.v, r.w FROM l LEFT JOIN r ON l.k = r.k ORDER BY r.w NULLS FIRST, l.v;

-- name: order above a union
-- order: total
SELECT k, t FROM (SELECT k, 'l' AS t FROM l UNION SELECT k, 'r' FROM r) x ORDER BY k, t;

-- name: order of many rows
-- order: total
SELECT id, qty, price FROM sales ORDER BY qty DESC NULLS LAST, price, id;

-- name: order with a limit of many rows
-- order: total
SELECT id, qty FROM sales ORDER BY qty, id LIMIT 100 OFFSET 50;

-- name: order by a constant
-- order: keys 2
SELECT v, 1 AS one FROM l ORDER BY one;

-- name: order by a subquery's order
-- order: total
SELECT v FROM (SELECT k, v FROM l) x ORDER BY x.k NULLS FIRST, v;
