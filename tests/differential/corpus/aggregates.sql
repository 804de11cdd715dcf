-- name: sum of every number type
SELECT sum(i8) AS i8, sum(i16) AS i16, sum(i32) AS i32, sum(u8) AS u8, sum(u16) AS u16, sum(u32) AS u32, sum(f32) AS f32, sum(f64) AS f64, sum(d9) AS d9 FROM numbers;

-- name: sum of every number type by group
SELECT b, sum(i8) AS i8, sum(i16) AS i16, sum(i32) AS i32, sum(u8) AS u8, sum(u16) AS u16, sum(u32) AS u32, sum(f32) AS f32, sum(f64) AS f64, sum(d9) AS d9 FROM numbers GROUP BY b;

-- name: sum of decimals keeps its type
SELECT dept_id, sum(salary) AS s FROM emp GROUP BY dept_id;

-- name: sum of sums of decimals keeps its type
SELECT sum(s) AS t FROM (SELECT dept_id, sum(salary) AS s FROM emp GROUP BY dept_id) x;

-- name: sum of large decimals
SELECT sum(d38) AS s, min(d38) AS a, max(d38) AS b FROM numbers;

-- name: avg of every number type
SELECT avg(i8) AS i8, avg(i16) AS i16, avg(i32) AS i32, avg(u8) AS u8, avg(u64) AS u64, avg(f32) AS f32, avg(f64) AS f64, avg(d9) AS d9 FROM numbers;

-- name: avg of decimals by group
SELECT dept_id, avg(salary) AS a, avg(bonus) AS b, avg(grade) AS g FROM emp GROUP BY dept_id;

-- name: min and max of numbers
SELECT min(i8), max(i8), min(i64), max(i64), min(u64), max(u64), min(f32), max(f64), min(d9), max(d38) FROM numbers;

-- name: min and max of text and bytes
SELECT min(s), max(s), min(b), max(b) FROM texts;

-- name: min and max of moments
SELECT min(d), max(d), min(t_s), max(t_ms), min(t_us), max(t_ns), min(z_utc), max(z_ny), min(tod), max(tod) FROM moments;

-- name: min and max of booleans
SELECT min(b), max(b) FROM numbers;

-- name: min and max of text by group
SELECT dept_id, min(name) AS a, max(name) AS z, min(hired) AS first, max(hired) AS last, max(active) AS any FROM emp GROUP BY dept_id;

-- name: min and max of infinities
SELECT k, min(f) AS lo, max(f) AS hi FROM floats WHERE f IS NULL OR (f <> 0 AND NOT isnan(f)) GROUP BY k;

-- name: min and max of NaN only
SELECT min(f) AS lo, max(f) AS hi FROM floats WHERE isnan(f);

-- name: sum with NaN and infinities
SELECT k, sum(f) AS s, avg(f) AS a FROM floats GROUP BY k;

-- name: sum of both zeros
SELECT sum(f) AS s, count(f) AS n FROM floats WHERE f = 0;

-- name: count forms
SELECT count(*) AS a, count(1) AS b, count(s) AS c, count(NULL) AS d, count(k + v) AS e FROM l;

-- name: count of several columns
SELECT count(k, s) AS n FROM l;

-- name: count without columns
SELECT count(*) FROM l;

-- name: count under a filter without columns
SELECT count(*) FROM l WHERE true;

-- name: count with a filter on a column
SELECT count(*) AS n FROM l WHERE k > 2;

-- name: count by a group that is not selected
SELECT count(*) AS n FROM l GROUP BY k;

-- name: count distinct
SELECT count(DISTINCT k) AS n FROM l;

-- name: several count distincts
SELECT count(DISTINCT k) AS a, count(DISTINCT s) AS b, count(DISTINCT v) AS c FROM l;

-- name: count distinct by group
SELECT dept_id, count(DISTINCT name) AS a, count(DISTINCT grade) AS b, count(*) AS n FROM emp GROUP BY dept_id;

-- name: distinct mixed with plain aggregates
SELECT dept_id, count(DISTINCT name) AS a, sum(bonus) AS b, min(salary) AS c FROM emp GROUP BY dept_id;

-- name: sum and avg distinct
SELECT sum(DISTINCT k) AS s, avg(DISTINCT v) AS a FROM l;

-- name: sum distinct by group
SELECT region, sum(DISTINCT qty) AS s, count(DISTINCT qty) AS n FROM sales GROUP BY region;

-- name: count distinct of moments and bytes
SELECT count(DISTINCT d) AS d, count(DISTINCT z_ny) AS z FROM moments;

-- name: count distinct of floats with NaN
SELECT count(DISTINCT f) AS n FROM floats;

-- name: FILTER clause
SELECT dept_id, count(*) FILTER (WHERE active) AS a, sum(salary) FILTER (WHERE grade > 2) AS b FROM emp GROUP BY dept_id;

-- name: FILTER that no row passes
SELECT count(*) FILTER (WHERE v > 999) AS n, sum(v) FILTER (WHERE v > 999) AS s FROM l;

-- name: FILTER with distinct
SELECT count(DISTINCT k) FILTER (WHERE v > 40) AS n, sum(v) AS s FROM l;

-- name: FILTER with avg and NULL conditions
SELECT dept_id, avg(bonus) FILTER (WHERE active) AS a, avg(bonus) FILTER (WHERE NOT active) AS b FROM emp GROUP BY dept_id;

-- name: bool aggregates
SELECT dept_id, bool_and(active) AS a, bool_or(active) AS o FROM emp GROUP BY dept_id;

-- name: bool aggregates over NULLs only
SELECT bool_and(active) AS a, bool_or(active) AS o FROM emp WHERE active IS NULL;

-- name: bit aggregates
SELECT b, bit_and(i32) AS a, bit_or(i32) AS o, bit_xor(i32) AS x, bit_or(u8) AS u FROM numbers GROUP BY b;

-- name: bit xor distinct
SELECT bit_xor(DISTINCT k) AS x FROM l;

-- name: standard deviation and variance
SELECT dept_id, stddev(bonus) AS a, stddev_pop(bonus) AS b, var_samp(bonus) AS c, var_pop(bonus) AS d FROM emp GROUP BY dept_id;

-- name: variance of one value
SELECT stddev(k) AS a, var_pop(k) AS b, stddev_pop(k) AS c FROM lone;

-- name: covariance and correlation
SELECT g, covar_samp(x, y) AS a, covar_pop(x, y) AS b, corr(x, y) AS c FROM points GROUP BY g;

-- name: regression
SELECT g, regr_slope(y, x) AS a, regr_intercept(y, x) AS b, regr_count(y, x) AS n, regr_r2(y, x) AS r, regr_avgx(y, x) AS ax, regr_avgy(y, x) AS ay FROM points GROUP BY g;

-- name: regression sums
SELECT regr_sxx(y, x) AS a, regr_syy(y, x) AS b, regr_sxy(y, x) AS c FROM points;

-- name: median
SELECT dept_id, median(bonus) AS a, median(grade) AS b, median(salary) AS c FROM emp GROUP BY dept_id;

-- name: median of all
SELECT median(k) AS a, median(v) AS b FROM l;

-- name: percentile_cont
SELECT region, percentile_cont(0.25) WITHIN GROUP (ORDER BY weight) AS p FROM sales GROUP BY region;

-- name: approx_distinct of few values
SELECT approx_distinct(k) AS a, approx_distinct(s) AS b FROM l;

-- name: approx_median of few values
SELECT dept_id, approx_median(bonus) AS m FROM emp WHERE id < 10 GROUP BY dept_id;

-- name: approx_percentile_cont of few values
SELECT approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS p FROM l WHERE v < 60;

-- name: array_agg with an order
SELECT k, array_agg(v ORDER BY v DESC) AS vs FROM l GROUP BY k;

-- name: array_agg with an order by another column
SELECT dept_id, array_agg(name ORDER BY id) AS names FROM emp GROUP BY dept_id;

-- name: array_agg without groups
SELECT array_agg(v ORDER BY v) AS vs FROM l;

-- name: array_agg over nothing
SELECT array_agg(v ORDER BY v) AS vs FROM nothing;

-- name: array_agg of distinct values in order
SELECT array_agg(DISTINCT s ORDER BY s) AS ss FROM l;

-- name: array_agg sorted by a function around it
SELECT dept_id, array_sort(array_agg(grade)) AS gs FROM emp GROUP BY dept_id;

-- name: array_agg of structs with an order
SELECT dept_id, array_agg(struct(id, name) ORDER BY id) AS es FROM emp GROUP BY dept_id;

-- name: string_agg with an order
SELECT dept_id, string_agg(name, ',' ORDER BY id) AS names FROM emp GROUP BY dept_id;

-- name: string_agg of all with an order
SELECT string_agg(s, '|' ORDER BY v) AS ss FROM l;

-- name: first and last value with an order
SELECT k, first_value(s ORDER BY v) AS a, last_value(s ORDER BY v) AS b FROM l GROUP BY k;

-- name: first value with an order by a nullable column
SELECT dept_id, first_value(id ORDER BY salary DESC NULLS LAST, id) AS a FROM emp GROUP BY dept_id;

-- name: first and last value of all
SELECT first_value(v ORDER BY v) AS a, last_value(v ORDER BY v) AS b, nth_value(v, 3 ORDER BY v) AS c FROM l;

-- name: group by a nullable key
SELECT k, count(*) AS n, sum(v) AS s FROM l GROUP BY k;

-- name: group by two nullable keys
SELECT k, s, count(*) AS n FROM l GROUP BY k, s;

-- name: group by an expression
SELECT k % 3 AS m, count(*) AS n FROM l GROUP BY k % 3;

-- name: group by a position
SELECT upper(s), count(*) AS n FROM l GROUP BY 1;

-- name: group by an alias
SELECT v / 50 AS bucket, count(*) AS n FROM l GROUP BY bucket;

-- name: group by all
SELECT dept_id, active, count(*) AS n FROM emp GROUP BY ALL;

-- name: group by a constant
SELECT 1 AS one, count(*) AS n FROM l GROUP BY 1;

-- name: group by NULL
SELECT count(*) AS n FROM l GROUP BY NULL;

-- name: group by a boolean expression
SELECT v > 70 AS high, count(*) AS n FROM l GROUP BY v > 70;

-- name: group by floats with NaN and both zeros
SELECT f, count(*) AS n FROM floats GROUP BY f;

-- name: group by decimals
SELECT d9, count(*) AS n FROM numbers GROUP BY d9;

-- name: group by dates and times
SELECT d, tod, count(*) AS n FROM moments GROUP BY d, tod;

-- name: group by a zoned timestamp
SELECT z_ny, count(*) AS n FROM moments GROUP BY z_ny;

-- name: group by bytes
SELECT b, count(*) AS n FROM texts GROUP BY b;

-- name: group by text of all kinds
SELECT s, count(*) AS n FROM texts GROUP BY s;

-- name: group by a list
SELECT xs, count(*) AS n FROM nested GROUP BY xs;

-- name: group by a struct
SELECT st, count(*) AS n FROM nested GROUP BY st;

-- name: group by a struct field
SELECT st['a'] AS a, count(*) AS n FROM nested GROUP BY st['a'];

-- name: group by many keys
SELECT dept_id, active, grade, count(*) AS n, sum(bonus) AS b FROM emp GROUP BY dept_id, active, grade;

-- name: group by a skewed key
SELECT k, count(*) AS n, sum(v) AS s, min(v) AS a, avg(v) AS m FROM skew GROUP BY k;

-- name: group by a key with one value a row
SELECT id, sum(qty) AS q FROM sales GROUP BY id;

-- name: group without aggregates
SELECT k, s FROM l GROUP BY k, s;

-- name: group with an aggregate inside an expression
SELECT dept_id, sum(bonus) / count(*) + 1 AS x, max(id) - min(id) AS span FROM emp GROUP BY dept_id;

-- name: aggregate of an expression
SELECT sum(qty * price) AS t, avg(price + 1) AS a, max(length(item)) AS m FROM sales;

-- name: the same aggregate twice
SELECT sum(v) AS a, sum(v) AS b, sum(v) + 1 AS c FROM l;

-- name: aggregates of one column without names
SELECT sum(v), avg(v), min(v), max(v), count(v) FROM l;

-- name: HAVING on an aggregate
SELECT k, count(*) AS n FROM l GROUP BY k HAVING count(*) > 1;

-- name: HAVING on a sum of decimals beside a distinct count
SELECT dept_id, sum(salary) AS n, count(DISTINCT name) AS c FROM emp GROUP BY dept_id HAVING sum(salary) > 100;

-- name: HAVING on a key
SELECT k, count(*) AS n FROM l GROUP BY k HAVING k > 2;

-- name: HAVING on an aggregate that is not selected
SELECT k FROM l GROUP BY k HAVING sum(v) > 100;

-- name: HAVING without groups keeps the row
SELECT count(*) AS n FROM l HAVING count(*) > 3;

-- name: HAVING without groups drops the row
SELECT count(*) AS n FROM l HAVING count(*) > 300;

-- name: no groups over an empty table
SELECT count(*) AS n, sum(v) AS s, min(s) AS m, avg(v) AS a, bool_and(v > 1) AS b FROM nothing;

-- name: no groups over empty files
SELECT count(*) AS n, sum(v) AS s, max(k) AS m FROM no_rows;

-- name: no groups over a filter that keeps nothing
SELECT count(*) AS n, sum(v) AS s, count(DISTINCT k) AS d, stddev(v) AS t FROM l WHERE v > 9999;

-- name: groups over an empty table
SELECT k, count(*) AS n, sum(v) AS s FROM nothing GROUP BY k;

-- name: groups over a filter that keeps nothing
SELECT k, count(*) AS n FROM l WHERE v < 0 GROUP BY k;

-- name: no groups over a constant false
SELECT count(*) AS n, max(v) AS m FROM l WHERE 1 = 0;

-- name: aggregates over NULLs only
SELECT sum(k) AS s, avg(k) AS a, min(s) AS m, count(k) AS n, count(*) AS c FROM l WHERE k IS NULL;

-- name: aggregates over NULL groups only
SELECT s, sum(k) AS t, avg(k) AS a FROM l WHERE k IS NULL GROUP BY s;

-- name: GROUPING SETS
SELECT dept_id, active, count(*) AS n, sum(salary) AS t FROM emp GROUP BY GROUPING SETS ((dept_id, active), (dept_id), (active), ());

-- name: GROUPING SETS without the empty set
SELECT dept_id, active, count(*) AS n FROM emp GROUP BY GROUPING SETS ((dept_id), (active));

-- name: ROLLUP
SELECT dept_id, active, count(*) AS n, avg(bonus) AS a FROM emp GROUP BY ROLLUP (dept_id, active);

-- name: CUBE
SELECT dept_id, active, grade, count(*) AS n FROM emp GROUP BY CUBE (dept_id, active, grade);

-- name: GROUPING tells NULL keys from totals
SELECT k, s, GROUPING(k) AS gk, GROUPING(s) AS gs, count(*) AS n FROM l GROUP BY CUBE (k, s);

-- name: GROUPING of several columns
SELECT k, s, GROUPING(k, s) AS g, sum(v) AS t FROM l GROUP BY ROLLUP (k, s);

-- name: ROLLUP over an empty table
SELECT k, s, count(*) AS n FROM nothing GROUP BY ROLLUP (k, s);

-- name: GROUPING SETS of only the empty set
SELECT count(*) AS n, sum(v) AS t FROM l GROUP BY GROUPING SETS (());

-- name: GROUPING SETS with distinct
SELECT dept_id, active, count(DISTINCT name) AS n FROM emp GROUP BY GROUPING SETS ((dept_id), (active), ());

-- name: GROUPING SETS that repeat a set
SELECT k, count(*) AS n FROM l GROUP BY GROUPING SETS ((k), (k), ());

-- name: ROLLUP with HAVING
SELECT dept_id, active, count(*) AS n FROM emp GROUP BY ROLLUP (dept_id, active) HAVING count(*) > 5;

-- name: ROLLUP beside a plain key
SELECT active, dept_id, grade, count(*) AS n FROM emp GROUP BY active, ROLLUP (dept_id, grade);

-- name: ROLLUP over a join
SELECT d.name, e.active, sum(e.salary) AS t FROM emp e LEFT JOIN dept d ON e.dept_id = d.id GROUP BY ROLLUP (d.name, e.active);

-- name: aggregate of an aggregate
SELECT max(n) AS m, avg(n) AS a FROM (SELECT k, count(*) AS n FROM l GROUP BY k) x;

-- name: aggregate of an aggregate of an aggregate
SELECT count(*) AS c FROM (SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM l GROUP BY k) x GROUP BY n) y;

-- name: aggregate over a join and a filter
SELECT d.name, count(*) AS n, sum(s.qty * s.price) AS t FROM sales s JOIN emp e ON s.emp_id = e.id JOIN dept d ON e.dept_id = d.id WHERE s.qty > 0 GROUP BY d.name;

-- name: aggregate over a union
SELECT k, count(*) AS n FROM (SELECT k FROM l UNION ALL SELECT k FROM r) u GROUP BY k;

-- name: aggregate by a CASE
SELECT CASE WHEN v < 50 THEN 'low' WHEN v < 100 THEN 'mid' END AS c, count(*) AS n FROM l GROUP BY CASE WHEN v < 50 THEN 'low' WHEN v < 100 THEN 'mid' END;

-- name: sum of a CASE
SELECT sum(CASE WHEN item = 'pen' THEN qty ELSE 0 END) AS a, sum(CASE WHEN item = 'ink' THEN qty END) AS b FROM sales;

-- name: aggregates in order with a limit
-- order: total
SELECT emp_id, count(*) AS n FROM sales GROUP BY emp_id ORDER BY n DESC, emp_id NULLS FIRST LIMIT 9;

-- name: min by group in order of the group
-- order: total
SELECT region, min(sold_at) AS a FROM sales GROUP BY region ORDER BY region;

-- name: sum of intervals of days
SELECT dept_id, max(hired) - min(hired) AS span FROM emp GROUP BY dept_id;
