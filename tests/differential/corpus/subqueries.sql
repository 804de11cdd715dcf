-- name: IN over a subquery
SELECT * FROM l WHERE k IN (SELECT k FROM r);

-- name: IN over a subquery without NULLs
SELECT * FROM l WHERE k IN (SELECT k FROM third);

-- name: NOT IN over a subquery with NULLs
SELECT * FROM l WHERE k NOT IN (SELECT k FROM r);

-- name: NOT IN over a correlated subquery
SELECT l.v FROM l WHERE l.k NOT IN (SELECT third.k FROM third WHERE third.s = l.s);

-- name: NOT IN over a subquery without NULLs
SELECT * FROM l WHERE k NOT IN (SELECT k FROM third);

-- name: NOT IN over a subquery that drops NULLs
SELECT * FROM l WHERE k NOT IN (SELECT k FROM r WHERE k IS NOT NULL);

-- name: NOT IN over an empty subquery keeps NULLs
SELECT * FROM l WHERE k NOT IN (SELECT k FROM nothing);

-- name: NOT IN over a subquery that the filter empties
SELECT * FROM l WHERE k NOT IN (SELECT k FROM r WHERE w > 99999);

-- name: NOT IN over NULL only
SELECT * FROM l WHERE k NOT IN (SELECT k FROM r WHERE k IS NULL);

-- name: NOT IN with NULLs on the right only
SELECT * FROM third WHERE k NOT IN (SELECT k FROM r);

-- name: NOT IN with NULLs on neither side
SELECT * FROM third WHERE k NOT IN (SELECT k FROM l WHERE k IS NOT NULL);

-- name: NOT IN over text
SELECT v FROM l WHERE s NOT IN (SELECT s FROM third);

-- name: NOT IN counted
SELECT count(*) AS n FROM l WHERE k NOT IN (SELECT k FROM third) AND v > 20;

-- name: NOT IN within an OR
SELECT v FROM l WHERE k NOT IN (SELECT k FROM third) OR v = 10;

-- name: IN within an OR
SELECT v FROM l WHERE k IN (SELECT k FROM r) OR s = 'x';

-- name: two IN subqueries
SELECT v FROM l WHERE k IN (SELECT k FROM r) AND s IN (SELECT s FROM third);

-- name: IN and NOT IN
SELECT v FROM l WHERE k IN (SELECT k FROM r) AND s NOT IN (SELECT s FROM third);

-- name: IN over a correlated subquery
SELECT l.v FROM l WHERE l.k IN (SELECT r.k FROM r WHERE r.s = l.s);

-- name: IN over an aggregate
SELECT v FROM l WHERE k IN (SELECT max(k) FROM r GROUP BY s);

-- name: NOT IN over an aggregate
SELECT v FROM l WHERE k NOT IN (SELECT count(*) FROM r GROUP BY s);

-- name: IN over an expression
SELECT v FROM l WHERE k + 1 IN (SELECT k FROM r);

-- name: EXISTS
SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k);

-- name: NOT EXISTS
SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k);

-- name: EXISTS with a residual condition
SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w > l.v * 10);

-- name: NOT EXISTS with a residual condition
SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w > l.v * 10);

-- name: EXISTS on a comparison only
SELECT * FROM l WHERE EXISTS (SELECT 1 FROM third WHERE third.k > l.k + 10);

-- name: NOT EXISTS on a comparison only
SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM third WHERE third.k > l.k + 10);

-- name: EXISTS that is not correlated
SELECT count(*) AS n FROM l WHERE EXISTS (SELECT 1 FROM r WHERE w > 1000);

-- name: EXISTS that is not correlated over nothing
SELECT count(*) AS n FROM l WHERE EXISTS (SELECT 1 FROM nothing);

-- name: NOT EXISTS that is not correlated over nothing
SELECT count(*) AS n FROM l WHERE NOT EXISTS (SELECT 1 FROM nothing);

-- name: EXISTS within an OR
SELECT v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k) OR v > 130;

-- name: EXISTS over three levels
SELECT d.id FROM dept d WHERE EXISTS (
  SELECT 1 FROM emp e WHERE e.dept_id = d.id AND EXISTS (SELECT 1 FROM sales s WHERE s.emp_id = e.id));

-- name: EXISTS and NOT EXISTS
SELECT e.id FROM emp e WHERE EXISTS (SELECT 1 FROM sales s WHERE s.emp_id = e.id AND s.qty > 5)
AND NOT EXISTS (SELECT 1 FROM sales s WHERE s.emp_id = e.id AND s.qty < 0);

-- name: scalar subquery in SELECT
SELECT v, (SELECT max(w) FROM r) AS m FROM l;

-- name: scalar subquery in WHERE
SELECT * FROM l WHERE v > (SELECT avg(v) FROM l);

-- name: scalar subquery over nothing is NULL
SELECT v, (SELECT max(v) FROM nothing) AS m, (SELECT v FROM nothing) AS n FROM l;

-- name: scalar subquery that counts nothing
SELECT v, (SELECT count(*) FROM nothing) AS n FROM l;

-- name: scalar subquery of one row table
SELECT v FROM l WHERE k = (SELECT k FROM lone);

-- name: scalar subquery in HAVING
SELECT dept_id, sum(salary) AS pay FROM emp GROUP BY dept_id HAVING sum(salary) > (SELECT avg(salary) * 5 FROM emp);

-- name: scalar subqueries compared
SELECT (SELECT count(*) FROM l) > (SELECT count(*) FROM r) AS more;

-- name: scalar subquery in CASE
SELECT v, CASE WHEN v > (SELECT avg(v) FROM l) THEN 'high' ELSE 'low' END AS c FROM l;

-- name: scalar subquery in ORDER BY
-- order: total
SELECT v FROM l ORDER BY abs(v - (SELECT avg(v) FROM l)), v;

-- name: correlated scalar subquery in SELECT
SELECT l.v, (SELECT max(r.w) FROM r WHERE r.k = l.k) AS m FROM l;

-- name: correlated count is zero where there is no row
SELECT l.v, (SELECT count(*) FROM r WHERE r.k = l.k) AS n FROM l;

-- name: correlated sum is NULL where there is no row
SELECT d.id, (SELECT sum(e.salary) FROM emp e WHERE e.dept_id = d.id) AS pay FROM dept d;

-- name: correlated scalar subquery in WHERE
SELECT e.id FROM emp e WHERE e.salary > (SELECT avg(f.salary) FROM emp f WHERE f.dept_id = e.dept_id);

-- name: correlated scalar subquery under an expression
SELECT l.v, 1 + coalesce((SELECT sum(r.w) FROM r WHERE r.k = l.k), 0) AS m FROM l;

-- name: correlated count in WHERE
SELECT l.v FROM l WHERE (SELECT count(*) FROM r WHERE r.k = l.k) = 2;

-- name: correlated count of zero in WHERE
SELECT l.v FROM l WHERE (SELECT count(*) FROM r WHERE r.k = l.k) = 0;

-- name: two correlated subqueries
SELECT e.id, (SELECT count(*) FROM sales s WHERE s.emp_id = e.id) AS n,
  (SELECT max(d.name) FROM dept d WHERE d.id = e.dept_id AND d.id < 5) AS dept FROM emp e;

-- name: correlated subquery over a join
SELECT d.id, (SELECT sum(s.qty) FROM sales s JOIN emp e ON s.emp_id = e.id WHERE e.dept_id = d.id) AS q FROM dept d;

-- name: derived table
SELECT x.k, x.n FROM (SELECT k, count(*) AS n FROM l GROUP BY k) x WHERE x.n > 1;

-- name: derived tables in four levels
SELECT z FROM (SELECT y + 1 AS z FROM (SELECT x * 2 AS y FROM (SELECT v AS x FROM l WHERE v > 20) a) b WHERE y > 90) c;

-- name: derived table that sorts for nothing
SELECT sum(v) AS s FROM (SELECT v FROM l ORDER BY v) x;

-- name: derived table with a limit in total order
SELECT sum(v) AS s, count(*) AS n FROM (SELECT v FROM l ORDER BY v DESC LIMIT 7) x;

-- name: any comparison
SELECT v FROM l WHERE k = ANY (SELECT k FROM third);

-- name: IN over a union
SELECT v FROM l WHERE k IN (SELECT k FROM r UNION SELECT k FROM third);

-- name: IN over a limited subquery in order
SELECT v FROM l WHERE k IN (SELECT k FROM third ORDER BY k DESC LIMIT 3);

-- name: NOT of IN
SELECT v FROM l WHERE NOT (k IN (SELECT k FROM r));

-- name: lateral join
SELECT l.v, x.w FROM l CROSS JOIN LATERAL (SELECT sum(r.w) AS w FROM r WHERE r.k = l.k) x;
