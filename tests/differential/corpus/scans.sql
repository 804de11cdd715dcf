-- name: every column
SELECT * FROM l;

-- name: every number type
SELECT * FROM numbers;

-- name: every moment type
SELECT * FROM moments;

-- name: every text
SELECT * FROM texts;

-- name: every nested type
SELECT * FROM nested;

-- name: every float
SELECT * FROM floats;

-- name: wide rows
SELECT * FROM wide;

-- name: some columns of wide rows
SELECT c79, c00, id FROM wide WHERE c40 > 5;

-- name: an empty table
SELECT * FROM nothing;

-- name: a table of empty files
SELECT * FROM no_rows WHERE k > 1;

-- name: a table of one row behind an empty file
SELECT * FROM lone;

-- name: a column twice
SELECT k, k AS again FROM l;

-- name: columns in another order
SELECT v, s, k FROM l;

-- name: all but one column
SELECT * EXCEPT (v) FROM l;

-- name: all columns, one replaced
SELECT * REPLACE (v * 2 AS v) FROM l;

-- name: constants without a table
SELECT 1 AS a, 'x' AS b, NULL AS c, 1.5 AS d, true AS e;

-- name: constants over a table
SELECT 1 AS one, 'x' AS x FROM l;

-- name: filter on equality
SELECT * FROM l WHERE k = 2;

-- name: filter on NULL
SELECT * FROM l WHERE k IS NULL;

-- name: filter on not NULL
SELECT * FROM l WHERE k IS NOT NULL AND s IS NOT NULL;

-- name: filter with a range
SELECT * FROM l WHERE v BETWEEN 30 AND 80;

-- name: filter outside of a range
SELECT * FROM l WHERE k NOT BETWEEN 2 AND 7;

-- name: filter that keeps one file
SELECT id FROM sales WHERE id > 370;

-- name: filter that prunes all files
SELECT id FROM sales WHERE id > 100000;

-- name: filter that is always false
SELECT * FROM l WHERE 1 = 2;

-- name: filter that is NULL
SELECT * FROM l WHERE NULL;

-- name: filter that compares with NULL
SELECT * FROM l WHERE k = NULL;

-- name: filter that is always true
SELECT * FROM l WHERE 1 = 1;

-- name: contradiction
SELECT * FROM l WHERE k > 5 AND k < 3;

-- name: filter on a boolean column
SELECT id FROM emp WHERE active;

-- name: filter on a negated boolean column
SELECT id FROM emp WHERE NOT active;

-- name: filter on IS NOT TRUE
SELECT id FROM emp WHERE active IS NOT TRUE;

-- name: filter on IS FALSE and IS UNKNOWN
SELECT id, active IS FALSE AS f, active IS UNKNOWN AS u FROM emp WHERE active IS FALSE OR active IS UNKNOWN;

-- name: three-valued logic
SELECT k > 2 AND s = 'b' AS a, k > 2 OR s = 'b' AS o, NOT k > 2 AS n FROM l;

-- name: IN list
SELECT * FROM l WHERE k IN (1, 7, 99);

-- name: IN list with NULL
SELECT * FROM l WHERE k IN (1, NULL);

-- name: NOT IN list
SELECT * FROM l WHERE k NOT IN (1, 7);

-- name: NOT IN list with NULL
SELECT * FROM l WHERE k NOT IN (1, NULL);

-- name: IN list of text
SELECT * FROM l WHERE s IN ('a', 'b', 'zz');

-- name: IN list as a value
SELECT k, k IN (1, 2, NULL) AS a, k NOT IN (1, 2) AS b FROM l;

-- name: IN list of sixty values
SELECT id FROM sales WHERE id IN (1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,43,45,47,49,51,53,55,57,59,61,63,65,67,69,71,73,75,77,79,81,83,85,87,89,91,93,95,97,99,101,103,105,107,109,111,113,115,117,1190);

-- name: IN list of expressions
SELECT v FROM l WHERE k IN (v / 10, v / 5, 7);

-- name: IS DISTINCT FROM
SELECT v FROM l WHERE k IS DISTINCT FROM 2;

-- name: IS NOT DISTINCT FROM NULL
SELECT v FROM l WHERE k IS NOT DISTINCT FROM NULL;

-- name: columns compared with IS DISTINCT FROM
SELECT v, k IS DISTINCT FROM v / 10 AS d FROM l;

-- name: comparison of text
SELECT id FROM texts WHERE s > 'b' AND s <= 'z';

-- name: comparison of floats with NaN
SELECT id, f > 1 AS a, f < 1 AS b, f = f AS c FROM floats;

-- name: filter on both zeros
SELECT id FROM floats WHERE f = 0;

-- name: filter on a decimal
SELECT id FROM emp WHERE salary >= 5000.50;

-- name: filter on a date
SELECT id FROM emp WHERE hired < DATE '2021-06-01';

-- name: filter on a timestamp
SELECT id FROM sales WHERE sold_at >= TIMESTAMP '2024-02-01T00:00:00' AND sold_at < '2024-02-15';

-- name: filter on a zoned timestamp
SELECT id FROM moments WHERE z_ny >= TIMESTAMP '2024-03-10T07:00:00Z';

-- name: filter on an expression of two columns
SELECT id FROM sales WHERE qty * 2 > weight / 10;

-- name: deep boolean expression
SELECT id FROM sales WHERE ((qty > 3 OR price < 100) AND (region = 'north' OR item IS NULL)) OR (NOT (weight > 50) AND emp_id = 7);

-- name: view
SELECT * FROM v_active;

-- name: view with an aggregate
SELECT * FROM v_dept_pay WHERE n > 3;

-- name: view over a view
SELECT dept, pay FROM v_named;

-- name: views joined
SELECT a.id, p.pay FROM v_active a JOIN v_dept_pay p ON a.dept_id = p.dept_id;

-- name: view aggregated
SELECT count(*) AS n, max(pay) AS m FROM v_dept_pay;

-- name: view twice
SELECT a.dept_id, b.n FROM v_dept_pay a FULL JOIN v_dept_pay b ON a.n = b.dept_id;

-- name: table with a qualified name
SELECT caraway.public.l.k FROM caraway.public.l;

-- name: VALUES
VALUES (1, 'a'), (2, NULL), (NULL, 'c');

-- name: VALUES with names
SELECT b, a + 1 AS a FROM (VALUES (1, 'a'), (2, 'b')) AS t(a, b);

-- name: VALUES of mixed numbers
SELECT x FROM (VALUES (1), (2.5), (NULL)) AS t(x);

-- name: generate_series
SELECT value FROM generate_series(1, 5);

-- name: generate_series with a step
SELECT value FROM generate_series(10, 0, -3);

-- name: range function as a table
SELECT value * 2 AS d FROM range(0, 6);

-- name: generate_series joined to a table
SELECT g.value, l.v FROM generate_series(1, 8) g LEFT JOIN l ON l.k = g.value;

-- name: generate_series aggregated
SELECT count(*) AS n, sum(value) AS s FROM generate_series(1, 1000);

-- name: information schema of a table
-- order: total
SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'emp' ORDER BY ordinal_position;

-- name: columns that are capital, spaced or dotted
SELECT "Upper", "upper", "with space", "with.dot" FROM odd_names;

-- name: odd columns in every place
SELECT "with space", sum("Upper") AS "Sum of Upper", max("with.dot") AS "a.b" FROM odd_names WHERE "ünï" = 1 GROUP BY "with space";

-- name: odd names as join keys
SELECT a."Upper", b."with.dot" FROM odd_names a JOIN odd_names b ON a."with.dot" = b."with.dot" AND a."with space" = b."with space";

-- name: odd names in order
-- order: total
SELECT "a""quote", "select" FROM odd_names ORDER BY "a""quote" DESC;

-- name: odd names in windows
SELECT "Upper", row_number() OVER (PARTITION BY "with space" ORDER BY "a""quote") AS "row number" FROM odd_names;

-- name: unicode aliases
SELECT k AS "schlüssel", v AS "値" FROM l;

-- name: an empty text as alias
SELECT count(*) AS "" FROM l;

-- name: upper case without quotes
SELECT K, S FROM L;

-- name: comments in a statement
SELECT k /* the key */ FROM l -- all rows
WHERE v > 10;

-- name: comparison of a number and a date
SELECT v FROM l WHERE k < DATE '1970-01-06';
