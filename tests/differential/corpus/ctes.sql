-- name: CTE
WITH a AS (SELECT k, v FROM l WHERE v > 30) SELECT * FROM a WHERE k IS NOT NULL;

-- name: CTE used twice
WITH a AS (SELECT k, count(*) AS n FROM l GROUP BY k) SELECT x.k, y.n FROM a x JOIN a y ON x.k = y.k;

-- name: CTE used twice in a union
WITH a AS (SELECT k FROM l) SELECT k FROM a UNION ALL SELECT k + 100 FROM a;

-- name: CTEs that read each other
WITH a AS (SELECT k, v FROM l), b AS (SELECT k, sum(v) AS s FROM a GROUP BY k), c AS (SELECT max(s) AS m FROM b)
SELECT b.k, b.s, c.m FROM b CROSS JOIN c;

-- name: CTE with column names
WITH a(key, total) AS (SELECT k, sum(v) FROM l GROUP BY k) SELECT key, total FROM a WHERE total > 50;

-- name: CTE that hides a table
WITH r AS (SELECT 1 AS w) SELECT l.v, r.w FROM l, r;

-- name: CTE that nothing reads
WITH a AS (SELECT * FROM r) SELECT k FROM l;

-- name: CTE in a subquery
SELECT v FROM l WHERE k IN (WITH a AS (SELECT k FROM r WHERE w > 200) SELECT k FROM a);

-- name: CTE in a CTE
WITH a AS (WITH b AS (SELECT k, v FROM l) SELECT k, max(v) AS m FROM b GROUP BY k) SELECT * FROM a;

-- name: CTE with an aggregate and its detail
WITH t AS (SELECT dept_id, avg(salary) AS a FROM emp GROUP BY dept_id)
SELECT e.id, e.salary - t.a AS d FROM emp e JOIN t ON e.dept_id = t.dept_id;

-- name: CTE in EXISTS and in FROM
WITH t AS (SELECT k FROM r WHERE w < 500) SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.k = t.k + 1);

-- name: recursive CTE that counts
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i FROM n;

-- name: recursive CTE over a table
WITH RECURSIVE up(id, depth) AS (
  SELECT id, 0 FROM emp WHERE manager_id IS NULL
  UNION ALL SELECT e.id, up.depth + 1 FROM emp e JOIN up ON e.manager_id = up.id)
SELECT depth, count(*) AS n FROM up GROUP BY depth;

-- name: recursive CTE joined to a table
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT n.i, l.v FROM n LEFT JOIN l ON l.k = n.i;

-- name: recursive CTE in an aggregate
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i * 2 FROM n WHERE i < 500) SELECT sum(i) AS s, count(*) AS c FROM n;
