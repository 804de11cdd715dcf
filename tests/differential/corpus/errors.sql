-- name: integer division by zero
-- error: InvalidQueryError
SELECT v / (k - k) AS x FROM l WHERE k = 7;

-- name: integer modulo by zero
-- error: InvalidQueryError
SELECT v % 0 AS x FROM l;

-- name: decimal division by zero
-- error: InvalidQueryError
SELECT salary / 0 AS x FROM emp;

-- name: division by zero in an aggregate
-- error: InvalidQueryError
SELECT dept_id, sum(id / (id - 7)) AS x FROM emp GROUP BY dept_id;

-- name: division by zero in a join condition
-- error: InvalidQueryError
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k AND l.v / (r.w - 500) > 1;

-- name: division by zero above an aggregate
-- error: InvalidQueryError
SELECT k, sum(v) / (count(*) - 1) AS x FROM l GROUP BY k;

-- name: division by zero in a window
-- error: InvalidQueryError
SELECT sum(v / (v - 50)) OVER (PARTITION BY k) AS x FROM l;

-- name: division by zero in order
-- error: InvalidQueryError
SELECT v FROM l ORDER BY 10 / (v - 50);

-- name: division by zero in HAVING
-- error: InvalidQueryError
SELECT k FROM l GROUP BY k HAVING 10 / (count(*) - 1) > 0;

-- name: cast failure of text
-- error: InvalidQueryError
SELECT CAST(s AS INT) AS x FROM texts;

-- name: cast failure in a filter
-- error: InvalidQueryError
SELECT id FROM texts WHERE CAST(s AS DOUBLE) > 1;

-- name: cast failure in an aggregate
-- error: InvalidQueryError
SELECT sum(CAST(s AS BIGINT)) AS x FROM texts GROUP BY id % 3;

-- name: cast failure of a constant
-- error: InvalidQueryError
SELECT CAST('abc' AS INT) AS x FROM l;

-- name: cast that overflows
-- error: InvalidQueryError
SELECT CAST(i64 AS TINYINT) AS x FROM numbers;

-- name: cast of a decimal that overflows
-- error: InvalidQueryError
SELECT CAST(d38 AS DECIMAL(5, 2)) AS x FROM numbers;

-- name: cast of a date that fails
-- error: InvalidQueryError
SELECT CAST(s AS DATE) AS x FROM texts;

-- name: abs that overflows
-- error: InvalidQueryError
SELECT abs(i64) AS x FROM numbers;

-- name: factorial that overflows
-- error: InvalidQueryError
SELECT factorial(v) AS x FROM l;

-- name: scalar subquery of several rows
-- error: InvalidQueryError
SELECT v, (SELECT w FROM r) AS x FROM l;

-- name: scalar subquery of several rows in a filter
-- error: InvalidQueryError
SELECT v FROM l WHERE k = (SELECT k FROM third);

-- name: regular expression that does not parse
-- error: InvalidQueryError
SELECT id FROM texts WHERE regexp_like(s, '(');

-- name: unknown table
-- error: TableNotFoundError
SELECT * FROM nowhere;

-- name: unknown column
-- error: InvalidQueryError
SELECT nope FROM l;

-- name: unknown column in a join
-- error: InvalidQueryError
SELECT l.v FROM l JOIN r ON l.k = r.nope;

-- name: unknown function
-- error: InvalidQueryError
SELECT no_such_function(k) FROM l;

-- name: unknown window function
-- error: InvalidQueryError
SELECT no_such_function(k) OVER (ORDER BY v) FROM l;

-- name: syntax error
-- error: TableNotFoundError
SELECT FROM WHERE;

-- name: several statements
-- error: InvalidQueryError
SELECT 1; SELECT 2;

-- name: ambiguous column
-- error: InvalidQueryError
SELECT k FROM l JOIN r ON l.k = r.k;

-- name: column that is not grouped
-- error: InvalidQueryError
SELECT k, v FROM l GROUP BY k;

-- name: aggregate in a filter
-- error: InvalidQueryError
SELECT k FROM l WHERE sum(v) > 1;

-- name: wrong number of arguments
-- error: InvalidQueryError
SELECT sqrt(1, 2, 3) FROM l;

-- name: union of unequal width
-- error: InvalidQueryError
SELECT k, s FROM l UNION ALL SELECT k FROM r;

-- name: negative limit
-- error: InvalidQueryError
SELECT k FROM l LIMIT -1;

-- name: two subquery columns for IN
-- error: InvalidQueryError
SELECT v FROM l WHERE k IN (SELECT k, s FROM third);

-- name: unknown time zone
-- error: InvalidQueryError
SELECT t_us AT TIME ZONE 'Mars/Olympus' AS x FROM moments;

-- name: writing into a table that is read only
-- error: QueryForbiddenError
INSERT INTO l VALUES (1, 'a', 2);

-- name: deleting
-- error: QueryForbiddenError
DELETE FROM l;

-- name: creating a table
-- error: InvalidQueryError
CREATE TABLE t AS SELECT * FROM l;

-- name: setting an option
-- error: InvalidQueryError
SET datafusion.execution.batch_size = 1;

-- name: correlated scalar subquery without an aggregate
-- error: InvalidQueryError
SELECT e.id, (SELECT d.name FROM dept d WHERE d.id = e.dept_id) AS x FROM emp e;

-- name: fetch first
-- error: InvalidQueryError
SELECT v FROM l ORDER BY v FETCH FIRST 3 ROWS ONLY;

-- name: a column twice under one name
-- error: InvalidQueryError
SELECT k, k FROM l;

-- name: bytes of a binary column
-- error: InvalidQueryError
SELECT octet_length(b) AS n FROM texts;
