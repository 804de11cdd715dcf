-- name: integer arithmetic
SELECT k + v AS a, k - v AS b, k * v AS c, v / 7 AS d, v % 7 AS e, -k AS f FROM l;

-- name: decimal arithmetic
SELECT salary + 1 AS a, salary * 1.1 AS b, salary / 3 AS c, salary - salary AS d, salary % 7 AS e FROM emp;

-- name: float arithmetic
SELECT bonus / 3 AS a, bonus * bonus AS b, bonus - 0.1 AS c, bonus % 3 AS d FROM emp;

-- name: arithmetic of mixed types
SELECT i8 + u8 AS a, i32 * f32 AS b, d9 + i64 % 7 AS c, u16 / 3 AS d, f64 + d9 AS e FROM numbers;

-- name: float division by zero
SELECT f / 0.0 AS a, f * 0 AS b FROM floats WHERE f <> 0;

-- name: rounding
SELECT round(bonus) AS a, round(bonus, 1) AS b, floor(bonus) AS c, ceil(bonus) AS d, trunc(bonus) AS e FROM emp;

-- name: mathematical functions
SELECT abs(v - 70) AS a, power(v, 2) AS b, sqrt(v) AS c, ln(v + 1) AS d, exp(v / 100.0) AS e, signum(v - 70.0) AS f, log10(v + 1) AS g FROM l;

-- name: trigonometry
SELECT sin(x) AS a, cos(x) AS b, atan2(x, 2) AS c, degrees(x) AS d, pi() AS e FROM points;

-- name: gcd, lcm and factorial
SELECT gcd(v, 12) AS a, lcm(v, 4) AS b, factorial(k) AS c FROM l;

-- name: bit operations
SELECT v & 12 AS a, v | 3 AS b, v << 2 AS d, v >> 1 AS e FROM l;

-- name: nan functions
SELECT id, isnan(f) AS a, iszero(f) AS b, nanvl(f, 9.0) AS c FROM floats WHERE f <> 0 OR f IS NULL;

-- name: CASE with a value
SELECT v, CASE s WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END AS c FROM l;

-- name: CASE with conditions and no ELSE
SELECT v, CASE WHEN k IS NULL THEN 'none' WHEN k > 5 THEN 'big' END AS c FROM l;

-- name: CASE of mixed types
SELECT CASE WHEN v > 50 THEN k ELSE 1.5 END AS c FROM l;

-- name: CASE guards a division
SELECT v, CASE WHEN v = 0 THEN NULL ELSE 100 / v END AS c FROM l;

-- name: COALESCE, NULLIF, NVL
SELECT coalesce(k, v, 0) AS a, nullif(k, 2) AS b, nvl(s, '?') AS c, nvl2(k, 1, 2) AS d, coalesce(s, CAST(k AS VARCHAR)) AS e FROM l;

-- name: greatest and least
SELECT greatest(k, v) AS a, least(k, v, 3) AS b FROM l;

-- name: casts between numbers
SELECT CAST(v AS DOUBLE) AS a, CAST(k AS SMALLINT) AS b, CAST(v AS DECIMAL(10, 3)) AS c, CAST(v > 50 AS INT) AS d FROM l;

-- name: casts to and from text
SELECT CAST(v AS VARCHAR) AS a, CAST('12' AS INT) + v AS b, CAST(salary AS VARCHAR) AS c FROM l JOIN emp ON l.v = emp.id;

-- name: try_cast of text
SELECT id, try_cast(s AS INT) AS a, try_cast(s AS DOUBLE) AS b, try_cast(s AS DATE) AS c FROM texts;

-- name: try_cast that overflows
SELECT id, try_cast(i64 AS TINYINT) AS a, try_cast(d38 AS DECIMAL(10, 2)) AS b FROM numbers;

-- name: arrow_cast and arrow_typeof
SELECT arrow_cast(v, 'UInt16') AS a, arrow_typeof(k) AS b, arrow_typeof(s) AS c FROM l;

-- name: type of aggregates
SELECT arrow_typeof(sum(salary)) AS a, arrow_typeof(avg(salary)) AS b, arrow_typeof(count(*)) AS c, arrow_typeof(sum(grade)) AS d FROM emp;

-- name: text functions
SELECT id, upper(s) AS a, lower(s) AS b, length(s) AS c, octet_length(s) AS d, reverse(s) AS e, trim(s) AS f, initcap(s) AS g FROM texts;

-- name: parts of text
SELECT id, substr(s, 2, 3) AS a, left(s, 2) AS b, right(s, 2) AS c, split_part(s, ',', 2) AS d, strpos(s, 'p') AS e, position('a' IN s) AS f FROM texts;

-- name: text that is put together
SELECT id, s || '!' AS a, concat(s, '-', id) AS b, concat_ws('/', s, 'x', NULL) AS c, repeat(left(s, 2), 2) AS d, lpad(left(s, 3), 5, '*') AS e FROM texts;

-- name: text that is replaced
SELECT id, replace(s, 'a', 'A') AS a, translate(s, 'abc', 'xyz') AS b, btrim(s, 'ae') AS c, overlay(s PLACING 'ZZ' FROM 2 FOR 1) AS d FROM texts WHERE length(s) > 2;

-- name: text tested
SELECT id, starts_with(s, 'a') AS a, contains(s, 'pp') AS b, ends_with(s, 'e') AS c, ascii(s) AS d FROM texts;

-- name: hashes of text
SELECT id, md5(s) AS a, encode(b, 'hex') AS b, sha256(s) AS c, to_hex(id) AS d FROM texts;

-- name: LIKE
SELECT id, s LIKE 'a%' AS a, s LIKE '%p%' AS b, s LIKE '_b' AS c, s NOT LIKE 'a%' AS d FROM texts;

-- name: LIKE with ESCAPE
SELECT id FROM texts WHERE s LIKE 'a\%b' OR s LIKE 'a\_b' ESCAPE '\';

-- name: ILIKE
SELECT id, s ILIKE 'APP%' AS a, s ILIKE '%ÜN%' AS b, s NOT ILIKE 'a%' AS c FROM texts;

-- name: SIMILAR TO
SELECT id FROM texts WHERE s SIMILAR TO '(apple|banana)';

-- name: regular expressions
SELECT id, s ~ '^a' AS a, s ~* '^A' AS b, s !~ 'p' AS c, regexp_like(s, '[0-9]+') AS d, regexp_replace(s, 'p+', 'P') AS e, regexp_count(s, 'p') AS f FROM texts;

-- name: regular expression groups
SELECT id, regexp_match(s, '(a)(.)') AS m FROM texts;

-- name: bytes
SELECT id, b, CAST(b AS VARCHAR) AS t FROM texts WHERE b IS NOT NULL;

-- name: parts of dates
SELECT id, extract(year FROM d) AS y, extract(month FROM d) AS m, extract(dow FROM d) AS w, extract(doy FROM d) AS n, date_part('quarter', d) AS q, extract(week FROM d) AS k FROM moments;

-- name: parts of timestamps
SELECT id, extract(hour FROM t_us) AS h, extract(second FROM t_us) AS s, extract(microsecond FROM t_us) AS u, extract(epoch FROM t_us) AS e FROM moments;

-- name: parts of zoned timestamps
SELECT id, extract(hour FROM z_ny) AS h, extract(day FROM z_ny) AS d, extract(hour FROM z_utc) AS u FROM moments;

-- name: date_trunc
SELECT id, date_trunc('month', t_us) AS m, date_trunc('hour', t_ns) AS h, date_trunc('week', d) AS w, date_trunc('day', z_ny) AS z FROM moments;

-- name: date_bin
SELECT id, date_bin(INTERVAL '15 minutes', t_us) AS a, date_bin(INTERVAL '1 day', t_us, TIMESTAMP '2024-01-01T06:00:00') AS b FROM moments;

-- name: group by date_trunc
SELECT date_trunc('week', sold_at) AS w, count(*) AS n, sum(qty) AS q FROM sales GROUP BY 1;

-- name: group by date_bin
SELECT date_bin(INTERVAL '6 hours', sold_at) AS b, count(*) AS n FROM sales GROUP BY b;

-- name: AT TIME ZONE
SELECT id, t_us AT TIME ZONE 'America/New_York' AS a, z_utc AT TIME ZONE 'Europe/Berlin' AS b FROM moments WHERE id <> 0;

-- name: group by a local day
SELECT date_trunc('day', z_utc AT TIME ZONE 'America/New_York') AS d, count(*) AS n FROM moments GROUP BY 1;

-- name: date arithmetic
SELECT id, d + INTERVAL '1 month' AS a, d - INTERVAL '1 day' AS b, d - DATE '2024-01-01' AS c, d + 7 AS e FROM moments;

-- name: timestamp arithmetic
SELECT id, t_us + INTERVAL '36 hours' AS a, t_us - TIMESTAMP '2024-01-01T00:00:00' AS b, t_s - INTERVAL '1 year 2 months' AS c FROM moments;

-- name: arithmetic of zoned timestamps over a change of clocks
SELECT id, z_ny + INTERVAL '1 day' AS a, z_ny + INTERVAL '24 hours' AS b FROM moments;

-- name: intervals
SELECT INTERVAL '1 year 3 days 4 hours 5 minutes' AS a, INTERVAL '90 minutes' AS b FROM lone;

-- name: interval compared
SELECT id FROM moments WHERE t_us - TIMESTAMP '2024-01-01T00:00:00' > INTERVAL '30 days';

-- name: making dates and timestamps
SELECT make_date(2024, 2, CAST(k AS INT)) AS a, to_timestamp(k * 86400) AS b, to_date('2024-05-06') AS c, from_unixtime(k) AS d FROM l WHERE k < 20;

-- name: formatting moments
SELECT id, to_char(t_us, '%Y-%m-%d %H:%M') AS a, CAST(d AS VARCHAR) AS b, CAST(t_ms AS VARCHAR) AS c FROM moments;

-- name: parsing moments
SELECT to_timestamp('2024-03-10T12:00:00') AS a, CAST('2024-02-29' AS DATE) AS b, to_timestamp('10/03/2024', '%d/%m/%Y') AS c FROM lone;

-- name: casts of moments
SELECT id, CAST(t_us AS DATE) AS a, CAST(d AS TIMESTAMP) AS b, CAST(t_us AS TIMESTAMP WITH TIME ZONE) AS c, CAST(t_ns AS TIME) AS e FROM moments;

-- name: times of day
SELECT id, date_part('hour', tod) AS a, tod FROM moments;

-- name: struct and named_struct
SELECT named_struct('a', k, 'b', s) AS st, struct(k, v) AS u FROM l;

-- name: struct fields
SELECT id, st['a'] AS a, st.b AS b FROM nested;

-- name: filter on a struct field
SELECT id FROM nested WHERE st['a'] = 1 AND st['b'] IS NOT NULL;

-- name: struct is NULL or holds NULLs
SELECT id, st IS NULL AS a, st['a'] IS NULL AS b FROM nested;

-- name: list elements
SELECT id, xs[1] AS a, xs[-1] AS b, xs[9] AS c, array_length(xs) AS n, cardinality(xs) AS m FROM nested;

-- name: list slices
SELECT id, xs[2:3] AS a, array_slice(xs, 1, 2) AS b FROM nested;

-- name: list functions
SELECT id, array_append(xs, 9) AS a, array_concat(xs, [7, 8]) AS b, array_has(xs, 3) AS c, array_position(xs, 3) AS d, array_remove(xs, 4) AS e FROM nested;

-- name: more list functions
SELECT id, array_sort(xs) AS a, array_reverse(xs) AS b, array_to_string(words, '-', '?') AS c, array_max(xs) AS d, array_min(xs) AS e FROM nested;

-- name: set functions of lists
SELECT id, array_intersect(xs, [1, 2, 5]) AS a, array_except(xs, [1]) AS b FROM nested WHERE xs IS NOT NULL;

-- name: list made of columns
SELECT [k, v] AS a, make_array(s, 'z') AS b, range(0, v / 50) AS c FROM l;

-- name: lists compared
SELECT id, xs = [1, 2, 3] AS a, xs < [3] AS b FROM nested;

-- name: nested lists and structs
SELECT id, sts[1]['a'] AS a, array_length(sts) AS n, flatten([xs, xs]) AS f FROM nested;

-- name: map access
SELECT id, m['p'] AS a, map_keys(m) AS b, map_values(m) AS c, cardinality(m) AS n FROM nested;

-- name: map made of lists
SELECT MAP(['a', 'b'], [k, v]) AS m FROM l;

-- name: unnest of a literal
SELECT unnest([1, 2, NULL]) AS x;

-- name: unnest of a column
SELECT id, unnest(xs) AS x FROM nested;

-- name: unnest of two columns
SELECT id, unnest(xs) AS x, unnest(words) AS w FROM nested;

-- name: unnest of a struct
SELECT id, unnest(st) FROM nested;

-- name: unnest in FROM
SELECT x FROM unnest([3, 1, 2]) AS t(x);

-- name: unnest aggregated
SELECT x, count(*) AS n FROM (SELECT unnest(xs) AS x FROM nested) t GROUP BY x;

-- name: unnest joined
SELECT t.id, l.v FROM (SELECT id, unnest(xs) AS x FROM nested) t JOIN l ON t.x = l.k;

-- name: unnest of structs in lists
SELECT id, unnest(sts) AS x FROM nested;

-- name: lists of an aggregate unnested
SELECT dept_id, unnest(array_agg(id ORDER BY id)) AS x FROM emp GROUP BY dept_id;

-- name: boolean functions
SELECT k IS NULL AS a, NOT (k IS NULL) AS b, k = 1 OR NULL AS c, k = 1 AND NULL AS d FROM l;

-- name: NULL in every operation
SELECT NULL + k AS a, NULL || s AS b, NULL = k AS c, CASE WHEN NULL THEN 1 ELSE 2 END AS d FROM l;

-- name: a long expression
SELECT ((k + 1) * (v - 2) + (k * v)) - ((v + 3) * 2 - (k - 4)) AS x FROM l;

-- name: scalars of constants only
SELECT 1 + 1 AS a, 'a' || 'b' AS b, DATE '2024-02-29' + INTERVAL '1 year' AS c, round(2.5) AS d, 7 / 2 AS e, 7 % -2 AS f FROM l WHERE v < 30;

-- name: JSON-like text stays text
SELECT '{"a": 1}' AS j, length('{"a": 1}') AS n FROM lone;
