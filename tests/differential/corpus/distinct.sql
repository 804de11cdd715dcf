-- name: DISTINCT of one column
SELECT DISTINCT k FROM l;

-- name: DISTINCT of two columns
SELECT DISTINCT k, s FROM l;

-- name: DISTINCT of every column
SELECT DISTINCT * FROM l;

-- name: DISTINCT of an expression
SELECT DISTINCT k % 3 AS m FROM l;

-- name: DISTINCT over a join
SELECT DISTINCT l.s, r.s AS t FROM l JOIN r ON l.k = r.k;

-- name: DISTINCT over aggregates
SELECT DISTINCT count(*) AS n FROM l GROUP BY k;

-- name: DISTINCT of a constant
SELECT DISTINCT 1 AS one FROM l;

-- name: DISTINCT over an empty table
SELECT DISTINCT k FROM nothing;

-- name: DISTINCT with order and limit
-- order: total
SELECT DISTINCT k FROM l ORDER BY k DESC NULLS LAST LIMIT 4;

-- name: DISTINCT of text
SELECT DISTINCT s FROM texts;

-- name: DISTINCT of floats with both zeros
SELECT DISTINCT f FROM floats;

-- name: DISTINCT of lists and structs
SELECT DISTINCT xs, st FROM nested;

-- name: DISTINCT of a skewed key
SELECT DISTINCT k FROM skew;

-- name: DISTINCT ON
-- order: total
SELECT DISTINCT ON (k) k, v FROM l ORDER BY k, v DESC;

-- name: DISTINCT ON two keys
-- order: total
SELECT DISTINCT ON (dept_id, active) dept_id, active, id FROM emp ORDER BY dept_id, active, id DESC;

-- name: DISTINCT ON in a subquery
SELECT sum(v) AS s FROM (SELECT DISTINCT ON (k) k, v FROM l ORDER BY k, v) x;

-- name: DISTINCT of a DISTINCT
SELECT DISTINCT m FROM (SELECT DISTINCT k, k % 2 AS m FROM l) x;
