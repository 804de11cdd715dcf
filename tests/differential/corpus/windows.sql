-- name: row_number by partition
SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM l;

-- name: row_number over all
SELECT v, row_number() OVER (ORDER BY v) AS n FROM l;

-- name: rank and dense_rank with ties
SELECT v, k, rank() OVER (ORDER BY k) AS a, dense_rank() OVER (ORDER BY k) AS b FROM l;

-- name: ranks by partition with ties
SELECT id, rank() OVER (PARTITION BY dept_id ORDER BY grade) AS a, dense_rank() OVER (PARTITION BY dept_id ORDER BY grade) AS b FROM emp;

-- name: ranks descending with NULLs last
SELECT v, rank() OVER (ORDER BY k DESC NULLS LAST) AS a FROM l;

-- name: ranks with NULLs first
SELECT v, rank() OVER (ORDER BY k ASC NULLS FIRST) AS a FROM l;

-- name: percent_rank and cume_dist
SELECT v, percent_rank() OVER (ORDER BY k) AS p, cume_dist() OVER (ORDER BY k) AS c FROM l;

-- name: percent_rank and cume_dist by partition
SELECT id, percent_rank() OVER (PARTITION BY dept_id ORDER BY id) AS p, cume_dist() OVER (PARTITION BY dept_id ORDER BY id) AS c FROM emp;

-- name: ntile
SELECT v, ntile(4) OVER (ORDER BY v) AS q FROM l;

-- name: ntile by partition with more tiles than rows
SELECT id, ntile(7) OVER (PARTITION BY dept_id ORDER BY id) AS q FROM emp;

-- name: lag and lead
SELECT v, lag(k) OVER (ORDER BY v) AS a, lead(k) OVER (ORDER BY v) AS b FROM l;

-- name: lag and lead with an offset and a default
SELECT v, lag(v, 2, -1) OVER (ORDER BY v) AS a, lead(v, 3, 999) OVER (ORDER BY v) AS b FROM l;

-- name: lag and lead by partition
SELECT id, lag(name) OVER (PARTITION BY dept_id ORDER BY id) AS a, lead(salary, 1, 0) OVER (PARTITION BY dept_id ORDER BY id) AS b FROM emp;

-- name: lag that ignores NULLs
SELECT v, lag(k) IGNORE NULLS OVER (ORDER BY v) AS a FROM l;

-- name: lead that ignores NULLs
SELECT v, lead(s) IGNORE NULLS OVER (ORDER BY v) AS a FROM l;

-- name: first, last and nth value
SELECT v, first_value(s) OVER (PARTITION BY k ORDER BY v) AS a, last_value(s) OVER (PARTITION BY k ORDER BY v) AS b, nth_value(v, 2) OVER (PARTITION BY k ORDER BY v) AS c FROM l;

-- name: last value over the whole partition
SELECT v, last_value(v) OVER (PARTITION BY k ORDER BY v ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS b FROM l;

-- name: first value that ignores NULLs
SELECT v, first_value(k) IGNORE NULLS OVER (ORDER BY v ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a FROM l;

-- name: last value that ignores NULLs
SELECT v, last_value(k) IGNORE NULLS OVER (ORDER BY v) AS a FROM l;

-- name: sum over a partition
SELECT v, sum(v) OVER (PARTITION BY k) AS s FROM l;

-- name: sum over everything
SELECT v, sum(v) OVER () AS s, count(*) OVER () AS n FROM l;

-- name: running sum
SELECT v, sum(v) OVER (ORDER BY v) AS s FROM l;

-- name: running sum with ties
SELECT v, k, sum(v) OVER (ORDER BY k) AS s, count(*) OVER (ORDER BY k) AS n FROM l;

-- name: running sum by partition
SELECT id, sum(salary) OVER (PARTITION BY dept_id ORDER BY id) AS s, avg(bonus) OVER (PARTITION BY dept_id ORDER BY id) AS a FROM emp;

-- name: decimal aggregates over partitions keep their types
SELECT id, sum(salary) OVER (PARTITION BY dept_id) AS s, avg(salary) OVER (PARTITION BY dept_id) AS a, max(salary) OVER (PARTITION BY dept_id) AS m FROM emp;

-- name: min, max and count over a partition
SELECT id, min(name) OVER (PARTITION BY dept_id) AS a, max(hired) OVER (PARTITION BY dept_id) AS b, count(bonus) OVER (PARTITION BY dept_id) AS n FROM emp;

-- name: ROWS between preceding and current
SELECT v, sum(v) OVER (ORDER BY v ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM l;

-- name: ROWS between preceding and following
SELECT v, sum(v) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS s, avg(v) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a FROM l;

-- name: ROWS between current and unbounded following
SELECT v, sum(v) OVER (ORDER BY v ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS s FROM l;

-- name: ROWS frame before the row
SELECT v, sum(v) OVER (ORDER BY v ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS s FROM l;

-- name: ROWS frame after the row
SELECT v, max(v) OVER (ORDER BY v ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING) AS s FROM l;

-- name: ROWS short form
SELECT v, count(*) OVER (ORDER BY v ROWS 2 PRECEDING) AS n FROM l;

-- name: ROWS of zero preceding and zero following
SELECT v, sum(v) OVER (ORDER BY v ROWS BETWEEN 0 PRECEDING AND 0 FOLLOWING) AS s FROM l;

-- name: ROWS by partition
SELECT id, sum(qty) OVER (PARTITION BY emp_id ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM sales;

-- name: RANGE of the current row with ties
SELECT v, k, sum(v) OVER (ORDER BY k RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS s FROM l;

-- name: RANGE n preceding
SELECT v, k, sum(v) OVER (ORDER BY k RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM l;

-- name: RANGE n preceding and n following
SELECT v, sum(v) OVER (ORDER BY v RANGE BETWEEN 15 PRECEDING AND 25 FOLLOWING) AS s FROM l;

-- name: RANGE n preceding by partition
SELECT id, sum(qty) OVER (PARTITION BY region ORDER BY id RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS s FROM sales;

-- name: RANGE n following
SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 10 FOLLOWING AND 40 FOLLOWING) AS n FROM l;

-- name: RANGE descending
SELECT v, sum(v) OVER (ORDER BY v DESC RANGE BETWEEN 20 PRECEDING AND CURRENT ROW) AS s FROM l;

-- name: RANGE with NULLs first
SELECT v, k, count(*) OVER (ORDER BY k NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM l;

-- name: RANGE of a fractional distance
SELECT x, count(*) OVER (ORDER BY x RANGE BETWEEN 1.5 PRECEDING AND 0.5 FOLLOWING) AS n FROM points WHERE x IS NOT NULL;

-- name: RANGE of an interval over dates
SELECT id, sold_on, sum(qty) OVER (ORDER BY sold_on RANGE BETWEEN INTERVAL '3 days' PRECEDING AND CURRENT ROW) AS s FROM sales;

-- name: RANGE of an interval over timestamps by partition
SELECT id, count(*) OVER (PARTITION BY region ORDER BY sold_at RANGE BETWEEN INTERVAL '1 day' PRECEDING AND INTERVAL '6 hours' FOLLOWING) AS n FROM sales WHERE sold_at IS NOT NULL;

-- name: RANGE of an interval in months
SELECT id, count(*) OVER (ORDER BY hired RANGE BETWEEN INTERVAL '1 month' PRECEDING AND CURRENT ROW) AS n FROM emp WHERE hired IS NOT NULL;

-- name: RANGE unbounded both ways
SELECT v, sum(v) OVER (ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM l;

-- name: RANGE between current and unbounded following with ties
SELECT v, k, count(*) OVER (ORDER BY k RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS n FROM l;

-- name: GROUPS preceding
SELECT v, k, count(*) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM l;

-- name: GROUPS preceding and following
SELECT v, k, sum(v) OVER (ORDER BY k GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM l;

-- name: GROUPS by partition
SELECT id, sum(bonus) OVER (PARTITION BY dept_id ORDER BY grade GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS s FROM emp;

-- name: several windows in one statement
SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) AS a, sum(v) OVER (PARTITION BY s) AS b, rank() OVER (ORDER BY k) AS c FROM l;

-- name: named windows
SELECT v, sum(v) OVER w AS a, count(*) OVER w AS b FROM l WINDOW w AS (PARTITION BY k ORDER BY v);

-- name: window over two partition keys
SELECT id, count(*) OVER (PARTITION BY dept_id, active) AS n, row_number() OVER (PARTITION BY dept_id, active ORDER BY id) AS r FROM emp;

-- name: window over an expression
SELECT v, sum(v) OVER (PARTITION BY k % 2 ORDER BY -v) AS s FROM l;

-- name: window in an expression
SELECT v, v - lag(v, 1, 0) OVER (ORDER BY v) AS d, 100.0 * v / sum(v) OVER () AS p FROM l;

-- name: window over groups
SELECT k, count(*) AS n, sum(count(*)) OVER (ORDER BY k) AS t, rank() OVER (ORDER BY count(*) DESC) AS r FROM l GROUP BY k;

-- name: window over a join
SELECT e.id, row_number() OVER (PARTITION BY d.name ORDER BY e.id) AS n FROM emp e LEFT JOIN dept d ON e.dept_id = d.id;

-- name: filter above a window
SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM l) x WHERE n = 1;

-- name: filter above a window on its partition key
SELECT * FROM (SELECT k, v, sum(v) OVER (PARTITION BY k) AS s FROM l) x WHERE k = 7;

-- name: QUALIFY
SELECT k, v FROM l QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) = 1;

-- name: aggregate above a window
SELECT n, count(*) AS c FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM l) x GROUP BY n;

-- name: window above a window
SELECT v, max(n) OVER (PARTITION BY k) AS m FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM l) x;

-- name: window over an empty table
SELECT v, row_number() OVER (ORDER BY v) AS n, sum(v) OVER (PARTITION BY k) AS s FROM nothing;

-- name: window over a skewed key
SELECT k, v, n FROM (SELECT k, v, count(*) OVER (PARTITION BY k) AS n FROM skew) x;

-- name: window in order with a limit
-- order: total
SELECT v, row_number() OVER (ORDER BY v DESC) AS n FROM l ORDER BY n LIMIT 5;

-- name: window over text order
SELECT id, rank() OVER (ORDER BY s) AS r FROM texts;

-- name: window over floats with NaN
SELECT id, rank() OVER (ORDER BY f) AS r FROM floats;

-- name: FILTER in a window aggregate
SELECT v, count(*) FILTER (WHERE s = 'b') OVER (PARTITION BY k) AS n FROM l;

-- name: variance over a window
SELECT id, var_pop(bonus) OVER (PARTITION BY dept_id) AS a, stddev(bonus) OVER (PARTITION BY dept_id) AS b FROM emp;

-- name: array_agg over a window
SELECT v, array_agg(v) OVER (PARTITION BY k ORDER BY v) AS vs FROM l;

-- name: count distinct over a window
SELECT v, count(DISTINCT s) OVER (PARTITION BY k) AS n FROM l;

-- name: bool and bit aggregates over a window
SELECT id, bool_or(active) OVER (PARTITION BY dept_id) AS a, bit_or(grade) OVER (PARTITION BY dept_id) AS b FROM emp;

-- name: window partitioned by a date
SELECT id, row_number() OVER (PARTITION BY sold_on ORDER BY id) AS n FROM sales;

-- name: window partitioned by NULL only
SELECT v, row_number() OVER (PARTITION BY NULL ORDER BY v) AS n FROM l;

-- name: window ordered by a constant
SELECT v, count(*) OVER (ORDER BY 1) AS n FROM l;

-- name: sum of a row number and an integer
SELECT row_number() OVER (ORDER BY v) + 1 AS n FROM l;

-- name: sum of a row number and an integer over an empty table
SELECT row_number() OVER (ORDER BY v) + 1 AS n FROM nothing;

-- name: the same window twice, one above the other
SELECT t.v, t.n, sum(v) OVER (PARTITION BY t.k) AS m FROM (SELECT k, v, sum(v) OVER (PARTITION BY k) AS n FROM l) t;

-- name: the same rank twice, one above the other
SELECT t.n, dense_rank() OVER (ORDER BY t.k) AS m FROM (SELECT k, dense_rank() OVER (ORDER BY k) AS n FROM r) t;
