-- name: UNION ALL
SELECT k FROM l UNION ALL SELECT k FROM r;

-- name: UNION
SELECT k FROM l UNION SELECT k FROM r;

-- name: UNION of two columns
SELECT k, s FROM l UNION SELECT k, s FROM r;

-- name: UNION ALL of three tables
SELECT k, s FROM l UNION ALL SELECT k, s FROM r UNION ALL SELECT k, s FROM third;

-- name: UNION widens types
SELECT i8 AS x FROM numbers UNION ALL SELECT f64 FROM numbers UNION ALL SELECT d9 FROM numbers;

-- name: UNION with NULL
SELECT k FROM l UNION ALL SELECT NULL;

-- name: UNION by name
SELECT k, s FROM l UNION ALL BY NAME SELECT s, k FROM r;

-- name: INTERSECT
SELECT k FROM l INTERSECT SELECT k FROM r;

-- name: INTERSECT of two columns with NULLs
SELECT k, s FROM l INTERSECT SELECT k, s FROM r;

-- name: INTERSECT ALL
SELECT k FROM l INTERSECT ALL SELECT k FROM r;

-- name: EXCEPT
SELECT k FROM l EXCEPT SELECT k FROM r;

-- name: EXCEPT of two columns with NULLs
SELECT k, s FROM l EXCEPT SELECT k, s FROM r;

-- name: EXCEPT ALL
SELECT k FROM l EXCEPT ALL SELECT k FROM r;

-- name: EXCEPT of the other side
SELECT k FROM r EXCEPT SELECT k FROM l;

-- name: UNION of INTERSECT
SELECT k FROM third UNION (SELECT k FROM l INTERSECT SELECT k FROM r);

-- name: EXCEPT of UNION
(SELECT k FROM l UNION SELECT k FROM r) EXCEPT SELECT k FROM third;

-- name: INTERSECT of EXCEPT
SELECT k FROM l INTERSECT (SELECT k FROM r EXCEPT SELECT k FROM third);

-- name: UNION ALL under UNION
SELECT k FROM (SELECT k FROM l UNION ALL SELECT k FROM l) x UNION SELECT k FROM r;

-- name: UNION with an empty table
SELECT k FROM l UNION SELECT k FROM nothing;

-- name: INTERSECT with an empty table
SELECT k FROM l INTERSECT SELECT k FROM nothing;

-- name: EXCEPT an empty table
SELECT k FROM l EXCEPT SELECT k FROM nothing;

-- name: EXCEPT from an empty table
SELECT k FROM nothing EXCEPT SELECT k FROM l;

-- name: UNION of constants
SELECT 1 AS x UNION SELECT 2 UNION SELECT 1;

-- name: UNION ALL of a table and constants
SELECT k, s FROM l UNION ALL SELECT 100, 'c' UNION ALL SELECT NULL, NULL;

-- name: UNION in order with a limit
-- order: total
SELECT k FROM l UNION SELECT k FROM r ORDER BY k DESC NULLS LAST LIMIT 6;

-- name: UNION ALL of limited sides
SELECT * FROM (SELECT v FROM l ORDER BY v LIMIT 3) a UNION ALL SELECT * FROM (SELECT w FROM r ORDER BY w DESC LIMIT 3) b;

-- name: UNION ALL of aggregates
SELECT 'l' AS t, count(*) AS n, sum(k) AS s FROM l UNION ALL SELECT 'r', count(*), sum(k) FROM r;

-- name: UNION ALL of joins
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k UNION ALL SELECT l.v, r.w FROM l LEFT JOIN r ON l.s = r.s;

-- name: UNION of floats with both zeros
SELECT f FROM floats UNION SELECT f FROM floats WHERE f > 1;

-- name: INTERSECT of floats with NaN
SELECT f FROM floats INTERSECT SELECT f FROM floats WHERE k = 0;

-- name: filter above UNION ALL
SELECT * FROM (SELECT k, 'l' AS t FROM l UNION ALL SELECT k, 'r' FROM r) x WHERE k > 2 AND t = 'r';

-- name: UNION ALL of the same table many times
SELECT sum(v) AS s, count(*) AS n FROM (SELECT v FROM l UNION ALL SELECT v FROM l UNION ALL SELECT v FROM l UNION ALL SELECT v FROM l) x;

-- name: UNION of text and its own type
SELECT s FROM l UNION SELECT 'b' UNION SELECT name FROM emp;

-- name: UNION of dates and timestamps
SELECT d AS x FROM moments UNION SELECT t_us FROM moments;

-- name: join of an EXCEPT
SELECT b.id, a.k FROM (SELECT k FROM l EXCEPT SELECT v FROM l) a JOIN emp b ON a.k = b.dept_id;

-- name: right join of an EXCEPT of two columns
SELECT b.id, a.k FROM (SELECT k, s FROM l EXCEPT SELECT v, s FROM l) a RIGHT JOIN emp b ON a.k = b.dept_id;

-- name: right semi join of an EXCEPT
SELECT b.id FROM (SELECT k FROM l EXCEPT SELECT v FROM l) a RIGHT SEMI JOIN emp b ON a.k = b.dept_id;

-- name: right anti join of an EXCEPT
SELECT b.id FROM (SELECT k FROM l EXCEPT SELECT v FROM l) a RIGHT ANTI JOIN emp b ON a.k = b.dept_id;

-- name: join of an INTERSECT
SELECT b.id, a.k FROM (SELECT k, s FROM l INTERSECT SELECT k, s FROM r) a JOIN emp b ON a.k = b.dept_id;

-- name: anti join of an INTERSECT
SELECT b.id FROM emp b LEFT ANTI JOIN (SELECT k, s FROM l INTERSECT SELECT k, s FROM r) a ON a.k = b.dept_id;

-- name: left join of an EXCEPT ALL
SELECT b.id, a.k FROM emp b LEFT JOIN (SELECT k, s FROM l EXCEPT ALL SELECT k, s FROM r) a ON a.k = b.dept_id;

-- name: join of a join that only tests
SELECT b.id, a.k FROM (SELECT DISTINCT l.k FROM l LEFT ANTI JOIN third ON l.k = third.k) a JOIN emp b ON a.k = b.dept_id;
