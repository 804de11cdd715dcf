-- name: inner join on one key
SELECT l.k, l.s, r.w FROM l JOIN r ON l.k = r.k;

-- name: left join
SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k;

-- name: right join
SELECT l.v, r.k, r.w FROM l RIGHT JOIN r ON l.k = r.k;

-- name: full join
SELECT l.k AS lk, l.v, r.k AS rk, r.w FROM l FULL JOIN r ON l.k = r.k;

-- name: cross join
SELECT l.v, third.k FROM l CROSS JOIN third;

-- name: comma join with a condition
SELECT l.v, r.w FROM l, r WHERE l.k = r.k AND l.s = r.s;

-- name: comma join without a condition
SELECT count(*), sum(l.v + r.w) FROM l, r;

-- name: left semi join
SELECT l.* FROM l LEFT SEMI JOIN r ON l.k = r.k;

-- name: left anti join
SELECT l.* FROM l LEFT ANTI JOIN r ON l.k = r.k;

-- name: right semi join
SELECT r.* FROM l RIGHT SEMI JOIN r ON l.k = r.k;

-- name: right anti join
SELECT r.* FROM l RIGHT ANTI JOIN r ON l.k = r.k;

-- name: semi join with a residual condition
SELECT l.* FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.v * 10 < r.w;

-- name: anti join with a residual condition
SELECT l.* FROM l LEFT ANTI JOIN r ON l.k = r.k AND l.v * 10 < r.w;

-- name: inner join with a residual condition
SELECT l.k, l.v, r.w FROM l JOIN r ON l.k = r.k AND l.v * 10 < r.w;

-- name: left join with a residual condition over both sides
SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k AND l.v * 10 < r.w;

-- name: right join with a residual condition over both sides
SELECT l.v, r.k, r.w FROM l RIGHT JOIN r ON l.k = r.k AND l.v * 10 < r.w;

-- name: full join with a residual condition over both sides
SELECT l.k AS lk, l.v, r.k AS rk, r.w FROM l FULL JOIN r ON l.k = r.k AND l.v * 10 < r.w;

-- name: left join with a condition on the left side only
SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k AND l.v > 50;

-- name: left join with a condition on the right side only
SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k AND r.w > 300;

-- name: full join with a condition on one side
SELECT l.k AS lk, l.v, r.k AS rk, r.w FROM l FULL JOIN r ON l.k = r.k AND l.v > 50;

-- name: left join filtered above on the right side is null
SELECT l.k, l.v FROM l LEFT JOIN r ON l.k = r.k WHERE r.k IS NULL;

-- name: left join filtered above on the right side
SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k WHERE r.w > 300;

-- name: left join filtered above with coalesce
SELECT l.k, coalesce(r.w, -1) AS w FROM l LEFT JOIN r ON l.k = r.k WHERE coalesce(r.w, -1) < 300;

-- name: join USING one column
SELECT * FROM l JOIN third USING (k);

-- name: join USING two columns
SELECT k, s, v, w FROM l JOIN r USING (k, s);

-- name: a column of USING in WHERE
SELECT k, v, w FROM l JOIN r USING (k) WHERE k > 1;

-- name: a column of USING in WHERE of a left join
SELECT k, v, w FROM l LEFT JOIN r USING (k) WHERE k = 3 OR k IS NULL;

-- name: a column of USING in WHERE of a full join
SELECT k, v, w FROM l FULL JOIN r USING (k) WHERE k <> 2;

-- name: a column of USING in the condition of another join
SELECT l.v, r.w, o.z FROM l JOIN r USING (k) LEFT JOIN (SELECT k AS z FROM third) o ON k + 1 = o.z
WHERE k < 3;

-- name: left join USING
SELECT k, v, w FROM l LEFT JOIN r USING (k);

-- name: right join USING
SELECT k, v, w FROM l RIGHT JOIN r USING (k);

-- name: full join USING merges the key
SELECT k, v, w FROM l FULL JOIN r USING (k);

-- name: natural join
SELECT * FROM l NATURAL JOIN third;

-- name: natural left join
SELECT * FROM l NATURAL LEFT JOIN third;

-- name: join on two keys with NULLs in both
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k AND l.s = r.s;

-- name: full join on two keys with NULLs in both
SELECT l.k, l.s, l.v, r.w FROM l FULL JOIN r ON l.k = r.k AND l.s = r.s;

-- name: null-equal join
SELECT l.k, l.v, r.w FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k;

-- name: null-equal left join
SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k IS NOT DISTINCT FROM r.k;

-- name: null-equal full join on text
SELECT l.s AS ls, l.v, r.s AS rs, r.w FROM l FULL JOIN r ON l.s IS NOT DISTINCT FROM r.s;

-- name: one equal key and one null-equal key
SELECT l.k, l.s, r.w FROM l JOIN r ON l.k = r.k AND l.s IS NOT DISTINCT FROM r.s;

-- name: join on IS DISTINCT FROM
SELECT count(*) AS n FROM l JOIN third ON l.k IS DISTINCT FROM third.k;

-- name: non-equi join
SELECT l.v, third.k FROM l JOIN third ON l.k < third.k;

-- name: non-equi left join
SELECT l.k, l.v, third.k AS t FROM l LEFT JOIN third ON l.k > third.k + 3;

-- name: non-equi right join
SELECT l.v, third.k AS t FROM l RIGHT JOIN third ON l.k > third.k + 3;

-- name: non-equi full join
SELECT l.k, l.v, third.k AS t FROM l FULL JOIN third ON l.k > third.k + 3;

-- name: join on a range
SELECT e.id, s.id AS sale FROM emp e JOIN sales s ON s.id BETWEEN e.id * 5 AND e.id * 5 + 2;

-- name: join on a disjunction
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k OR l.s = r.s;

-- name: left join on a disjunction
SELECT l.v, r.w FROM l LEFT JOIN r ON l.k = r.k OR l.s = r.s;

-- name: join on a true constant
SELECT count(*) AS n FROM l JOIN r ON true;

-- name: join on a false constant
SELECT l.v, r.w FROM l JOIN r ON false;

-- name: left join on a false constant
SELECT l.v, r.w FROM l LEFT JOIN r ON false;

-- name: full join on a false constant
SELECT l.v, r.w FROM l FULL JOIN r ON false;

-- name: left join on a NULL constant
SELECT l.v, r.w FROM l LEFT JOIN r ON NULL;

-- name: left join on an equality of constants
SELECT l.v, r.w FROM l LEFT JOIN r ON 1 = 1 AND l.k = r.k;

-- name: self join
SELECT a.v, b.v AS w FROM l a JOIN l b ON a.k = b.k AND a.v < b.v;

-- name: self left join over a tree
SELECT e.id, e.name, m.name AS manager FROM emp e LEFT JOIN emp m ON e.manager_id = m.id;

-- name: three levels of a self join
SELECT e.id, m.id AS m, g.id AS g
FROM emp e JOIN emp m ON e.manager_id = m.id LEFT JOIN emp g ON m.manager_id = g.id;

-- name: three tables in a row
SELECT s.id, e.name, d.name AS dept FROM sales s JOIN emp e ON s.emp_id = e.id JOIN dept d ON e.dept_id = d.id;

-- name: five tables in a row
SELECT count(*) AS n, sum(s.qty) AS q
FROM sales s JOIN emp e ON s.emp_id = e.id JOIN dept d ON e.dept_id = d.id
JOIN emp m ON e.manager_id = m.id JOIN dept md ON m.dept_id = md.id;

-- name: left joins in a chain
SELECT s.id, e.name, d.name AS dept
FROM sales s LEFT JOIN emp e ON s.emp_id = e.id LEFT JOIN dept d ON e.dept_id = d.id WHERE s.id < 80;

-- name: mixed kinds in a chain
SELECT l.v, r.w, third.s FROM l LEFT JOIN r ON l.k = r.k FULL JOIN third ON r.k = third.k;

-- name: right then left
SELECT l.v, r.w, third.s FROM l RIGHT JOIN r ON l.k = r.k LEFT JOIN third ON l.k = third.k;

-- name: full then inner
SELECT l.v, r.w, third.s FROM l FULL JOIN r ON l.k = r.k JOIN third ON coalesce(l.k, r.k) = third.k;

-- name: bushy join
SELECT a.v, b.s FROM (SELECT l.k, l.v FROM l JOIN r ON l.k = r.k) a
JOIN (SELECT r.k, third.s FROM r JOIN third ON r.k = third.k) b ON a.k = b.k;

-- name: full joins in a chain
SELECT coalesce(l.k, r.k, third.k) AS k, l.v, r.w, third.s
FROM l FULL JOIN r ON l.k = r.k FULL JOIN third ON coalesce(l.k, r.k) = third.k;

-- name: join on expressions
SELECT l.v, r.w FROM l JOIN r ON l.k + 1 = r.k * 2 - 1;

-- name: join on a function of text
SELECT a.id, b.id AS other FROM texts a JOIN texts b ON lower(a.s) = lower(b.s) AND a.id < b.id;

-- name: join on text
SELECT l.k, r.w FROM l JOIN r ON l.s = r.s;

-- name: join on bytes
SELECT a.id, b.id AS other FROM texts a JOIN texts b ON a.b = b.b;

-- name: join on decimals of other scales
SELECT a.id, b.id AS other FROM numbers a JOIN dept b ON a.d9 = b.budget;

-- name: join on a decimal and an integer
SELECT a.id, b.id AS other FROM numbers a JOIN numbers b ON a.d9 = b.i8;

-- name: join on dates
SELECT e.id, s.id AS sale FROM emp e JOIN sales s ON e.hired + INTERVAL '1461 days' = s.sold_on;

-- name: join on timestamps of other units
SELECT a.id, b.id AS other FROM moments a JOIN moments b ON a.t_s = b.t_ns;

-- name: join on a date and a timestamp
SELECT a.id, b.id AS other FROM moments a JOIN moments b ON a.d = b.t_us;

-- name: join on zoned timestamps of other zones
SELECT a.id, b.id AS other FROM moments a JOIN moments b ON a.z_utc = b.z_ny;

-- name: join on times of day
SELECT a.id, b.id AS other FROM moments a JOIN moments b ON a.tod = b.tod AND a.id < b.id;

-- name: join on floats with NaN and both zeros
SELECT a.id, b.id AS other FROM floats a JOIN floats b ON a.f = b.f;

-- name: full join on floats with NaN and both zeros
SELECT a.id, b.id AS other FROM floats a FULL JOIN floats b ON a.f = b.f AND a.k = b.k;

-- name: join on floats of two widths
SELECT a.id, b.id AS other FROM floats a JOIN floats b ON a.f = b.g;

-- name: join on booleans
SELECT a.id, b.id AS other FROM numbers a JOIN numbers b ON a.b = b.b AND a.id + 3 = b.id;

-- name: join on integers of two widths
SELECT a.id, b.id AS other FROM numbers a JOIN numbers b ON a.i8 = b.i64;

-- name: join on signed and unsigned integers
SELECT a.id, b.id AS other FROM numbers a JOIN numbers b ON a.i32 = b.u8;

-- name: join on a signed and the widest unsigned integer
SELECT a.id, b.id AS other FROM numbers a JOIN numbers b ON a.i64 = b.u64;

-- name: join on an integer and a float
SELECT a.id, b.id AS other FROM numbers a JOIN numbers b ON a.i32 = b.f64;

-- name: join on an integer cast to text
SELECT l.v, t.id FROM l JOIN texts t ON CAST(l.k AS VARCHAR) = t.s;

-- name: join on a struct field
SELECT a.id, b.id AS other FROM nested a JOIN nested b ON a.st['a'] = b.st['a'];

-- name: join on a whole list
SELECT a.id, b.id AS other FROM nested a JOIN nested b ON a.xs = b.xs;

-- name: join on three keys
SELECT a.id, b.id AS other FROM sales a JOIN sales b
ON a.emp_id = b.emp_id AND a.item = b.item AND a.qty = b.qty AND a.id < b.id;

-- name: inner join with an empty table
SELECT l.v FROM l JOIN nothing ON l.k = nothing.k;

-- name: left join with an empty table
SELECT l.v, nothing.v AS n FROM l LEFT JOIN nothing ON l.k = nothing.k;

-- name: left join of an empty table
SELECT nothing.v, l.v AS n FROM nothing LEFT JOIN l ON l.k = nothing.k;

-- name: right join with an empty left side
SELECT nothing.v, l.v AS n FROM nothing RIGHT JOIN l ON l.k = nothing.k;

-- name: full join with an empty table
SELECT l.v, no_rows.v AS n FROM l FULL JOIN no_rows ON l.k = no_rows.k;

-- name: full join of two empty tables
SELECT nothing.v, no_rows.v AS n FROM nothing FULL JOIN no_rows ON nothing.k = no_rows.k;

-- name: anti join with an empty table
SELECT l.* FROM l LEFT ANTI JOIN nothing ON l.k = nothing.k;

-- name: semi join with an empty table
SELECT l.* FROM l LEFT SEMI JOIN nothing ON l.k = nothing.k;

-- name: cross join with an empty table
SELECT l.v, nothing.v AS n FROM l CROSS JOIN nothing;

-- name: join with a side that the filter empties
SELECT l.v, r.w FROM l LEFT JOIN (SELECT * FROM r WHERE w > 99999) r ON l.k = r.k;

-- name: join with one row
SELECT l.v, lone.s FROM l JOIN lone ON l.k = lone.k;

-- name: left join with one row
SELECT l.v, lone.s FROM l LEFT JOIN lone ON l.k = lone.k;

-- name: cross join with one row
SELECT l.v, lone.s FROM l CROSS JOIN lone;

-- name: join on a skewed key
SELECT a.k, count(*) AS n, sum(b.v) AS s FROM skew a JOIN (SELECT k, v FROM skew WHERE v < 5) b ON a.k = b.k GROUP BY a.k;

-- name: left join on a skewed key
SELECT a.k, count(*) AS n, count(b.w) AS m FROM skew a LEFT JOIN r b ON a.k = b.k GROUP BY a.k;

-- name: right join on a skewed key
SELECT b.k, count(*) AS n, sum(a.v) AS s FROM skew a RIGHT JOIN r b ON a.k = b.k GROUP BY b.k;

-- name: full join on a skewed key
SELECT coalesce(a.k, b.k) AS k, count(*) AS n FROM skew a FULL JOIN r b ON a.k = b.k GROUP BY 1;

-- name: semi join on a skewed key
SELECT count(*) AS n, sum(v) AS s FROM skew LEFT SEMI JOIN r ON skew.k = r.k;

-- name: anti join on a skewed key
SELECT k, v FROM skew LEFT ANTI JOIN r ON skew.k = r.k;

-- name: join of two aggregates
SELECT a.dept_id, a.n, b.t FROM (SELECT dept_id, count(*) AS n FROM emp GROUP BY dept_id) a
JOIN (SELECT dept_id, sum(bonus) AS t FROM emp GROUP BY dept_id) b ON a.dept_id = b.dept_id;

-- name: aggregate over a full join
SELECT d.name, count(e.id) AS n, sum(e.salary) AS pay FROM emp e FULL JOIN dept d ON e.dept_id = d.id GROUP BY d.name;

-- name: join of a distinct side
SELECT l.v, d.s FROM l JOIN (SELECT DISTINCT k, s FROM r) d ON l.k = d.k;

-- name: join of a limited side in order
SELECT l.v, t.w FROM l JOIN (SELECT * FROM r ORDER BY w DESC LIMIT 5) t ON l.k = t.k;

-- name: join of a union
SELECT l.v, u.k FROM l JOIN (SELECT k FROM r UNION ALL SELECT k FROM third) u ON l.k = u.k;

-- name: join of a window
SELECT l.v, x.n FROM l JOIN (SELECT k, row_number() OVER (PARTITION BY k ORDER BY w) AS n FROM r) x ON l.k = x.k;

-- name: join of values
SELECT l.v, x.t FROM l JOIN (VALUES (1, 'one'), (2, 'two'), (NULL, 'none')) AS x(k, t) ON l.k = x.k;

-- name: left join of values to a table
SELECT x.t, l.v FROM (VALUES (1, 'one'), (99, 'many')) AS x(k, t) LEFT JOIN l ON l.k = x.k;

-- name: join in parentheses
SELECT l.v, r.w, third.s FROM l LEFT JOIN (r JOIN third ON r.k = third.k) ON l.k = r.k;

-- name: every column of a join, some names twice
SELECT * FROM l JOIN r ON l.k = r.k;

-- name: join that needs no column of one side
SELECT l.v FROM l LEFT JOIN r ON l.k = r.k;

-- name: join that needs no column at all
SELECT count(*) AS n FROM l JOIN r ON l.k = r.k;

-- name: join on a key that is a constant on one side
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k WHERE r.k = 7;

-- name: join under a filter that both sides can use
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k WHERE l.k IN (2, 7) AND r.w > 100;

-- name: join with equal keys named twice
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k AND l.k = r.k;

-- name: lateral-free derived table twice
SELECT a.n, b.n AS m FROM (SELECT k, count(*) AS n FROM l GROUP BY k) a LEFT JOIN (SELECT k, count(*) AS n FROM l GROUP BY k) b ON a.n = b.k;

-- name: left join then cross join
SELECT l.v, r.w, lone.s FROM l LEFT JOIN r ON l.k = r.k CROSS JOIN lone;

-- name: a name that a derived table has twice
SELECT k FROM (SELECT l.k, r.k FROM l JOIN r ON l.k = r.k) x;

-- name: join of one column with two
SELECT l.v, r.w FROM l JOIN r ON l.k = r.k AND l.k = r.w;

-- name: left join of two columns with one
SELECT l.v, r.w FROM l LEFT JOIN r ON l.k = r.k AND l.v = r.k;

-- name: left join on a condition of its left side alone, over unions
SELECT a.k, a.s, b.w FROM (SELECT k, s, v FROM l UNION ALL SELECT k, s, w FROM r) a
LEFT JOIN (SELECT k, s, w FROM r UNION ALL SELECT k, s, v FROM l) b ON a.k = b.k AND a.k = a.v;

-- name: right join on a condition of its right side alone, over unions
SELECT a.k, a.s, b.w FROM (SELECT k, s, v FROM l UNION ALL SELECT k, s, w FROM r) a
RIGHT JOIN (SELECT k, s, w FROM r UNION ALL SELECT k, s, v FROM l) b ON a.k = b.k AND b.k = b.w;

-- name: full join on conditions of one side each
SELECT a.k AS ak, a.v, b.k AS bk, b.w FROM l a FULL JOIN r b ON a.k = b.k AND a.k = a.v AND b.k = b.w;

-- name: left join on columns of one side that are equal or both null
SELECT a.k, a.v, b.w FROM l a LEFT JOIN r b
ON (a.k IS NOT DISTINCT FROM b.k) AND (a.s IS NOT DISTINCT FROM b.s) AND (a.k IS NOT DISTINCT FROM a.v);

-- name: anti join on a condition of one side alone
SELECT a.k, a.v FROM l a LEFT ANTI JOIN r b ON a.k = b.k AND a.k = a.v;

-- name: subquery with a join on a condition of one side alone
SELECT k, v FROM l WHERE k <= (SELECT max(x.k) FROM l x LEFT JOIN r y ON x.k = y.k AND x.k = x.v);

-- name: floats of two widths, left join
SELECT a.id, b.id AS other FROM floats a LEFT JOIN floats b ON a.f = b.g;

-- name: floats in a semi join
SELECT a.id FROM floats a WHERE a.f IN (SELECT g FROM floats);

-- name: floats that have no match
SELECT a.id FROM floats a WHERE NOT EXISTS (SELECT 1 FROM floats b WHERE b.g = a.f);

-- name: a function of floats as a key
SELECT a.id, b.id AS other FROM floats a FULL JOIN floats b ON abs(a.f) = b.f AND a.k = b.k;

-- name: signed and unsigned keys
SELECT a.id, b.id AS other FROM numbers a FULL JOIN numbers b ON a.i8 = b.u64;

-- name: a float and a decimal as keys
SELECT a.id, b.id AS other FROM numbers a LEFT JOIN numbers b ON a.f32 = b.d9;

-- name: a decimal and an integer as keys
SELECT a.id, b.id AS other FROM numbers a RIGHT JOIN numbers b ON a.d9 = b.i16;

-- name: decimals of other scales as keys
SELECT a.id, b.id AS other FROM numbers a RIGHT JOIN numbers b ON a.d9 = b.d38;

-- name: a date and a timestamp as keys
SELECT a.id, b.id AS other FROM moments a FULL JOIN moments b ON a.d = b.t_us;

-- name: timestamps of other units as keys
SELECT a.id, b.id AS other FROM moments a LEFT JOIN moments b ON a.t_s = b.t_ns;

-- name: timestamps of other zones as keys
SELECT a.id, b.id AS other FROM moments a LEFT JOIN moments b ON a.z_utc = b.z_ny;

-- name: a constant of the side that is filled with NULL, IS NULL
SELECT e.id, x.c FROM emp e LEFT JOIN (SELECT 7 AS c, id FROM dept) x ON e.dept_id = x.id WHERE x.c IS NULL;

-- name: a constant of the side that is filled with NULL, coalesced
SELECT e.id, x.c FROM emp e LEFT JOIN (SELECT 7 AS c, id FROM dept) x ON e.dept_id = x.id WHERE coalesce(x.c, 0) <> 7;

-- name: a constant of the side that is filled with NULL, grouped by
SELECT x.c, count(*) AS n FROM emp e FULL JOIN (SELECT 7 AS c, id FROM dept) x ON e.dept_id = x.id GROUP BY x.c;

-- name: a true constant of the side that is filled with NULL
SELECT x.c, e.id FROM emp e LEFT JOIN (SELECT true AS c, id FROM dept) x ON e.dept_id = x.id WHERE x.c IS NOT TRUE;

-- name: a constant key on one side only
SELECT count(*) FROM emp e LEFT JOIN dept d ON e.dept_id = d.id AND d.id = 2 WHERE e.dept_id = 2 OR d.id IS NULL;

-- name: three inputs with equal names, filter that is not strict
SELECT e.id, d.id AS did, f.id AS fid FROM emp e LEFT JOIN dept d ON e.dept_id = d.id LEFT JOIN dept f ON d.id = f.id + 1 WHERE coalesce(f.name, d.name, 'x') > 'A';

-- name: two counts with the same name, full join
SELECT a.n, b.n AS other FROM (SELECT dept_id, count(*) n FROM emp GROUP BY dept_id) a FULL JOIN (SELECT id, count(*) n FROM dept GROUP BY id) b ON a.dept_id = b.id WHERE coalesce(a.n, 0) <> coalesce(b.n, 0);

-- name: a union with equal names on the inner side
SELECT a.s, b.s AS other FROM l a LEFT JOIN (SELECT s, k FROM r UNION ALL SELECT s, k FROM third) b ON a.k = b.k WHERE upper(coalesce(b.s, 'zz')) > upper(a.s);

-- name: left join with no rows on the right, IS NULL
SELECT count(*) FROM l a LEFT JOIN nothing b ON a.k = b.k WHERE b.s IS NULL;

-- name: full join with no rows on one side, coalesced
SELECT count(*) FROM l a FULL JOIN nothing b ON a.k = b.k WHERE coalesce(b.s, a.s) > 'b';

-- name: three marks in one condition
SELECT l.k FROM l WHERE l.k IN (SELECT k FROM r) OR EXISTS (SELECT 1 FROM third t WHERE t.s = l.s) OR EXISTS (SELECT 1 FROM third t WHERE t.k = l.v);

-- name: three inputs joined by a text, functions of it in ON and WHERE
SELECT a.k, b.k AS other FROM l a JOIN r b ON a.s = b.s JOIN third c ON c.s = b.s AND upper(c.s) = upper(a.s) WHERE lower(c.s) <> 'b';

-- name: constants joined, and no match
SELECT count(*) FROM (SELECT 1 AS one FROM l) a LEFT JOIN (SELECT 1 AS one FROM third WHERE k > 100) b ON a.one = b.one WHERE b.one IS NULL;

-- name: a limit joined with a count
SELECT count(*) FROM (SELECT k FROM l LIMIT 5) a JOIN (SELECT count(*) n FROM r) b ON true;

-- name: function of the inner key of a right join
SELECT count(*), min(d.budget) AS least FROM sales s RIGHT JOIN dept d ON s.emp_id = d.id WHERE upper(s.item) > 'A';

-- name: function of the inner key of a self join
SELECT count(*), min(b.item) AS least FROM sales a RIGHT JOIN sales b ON a.region = b.region WHERE upper(a.region) > 'NORTH';
