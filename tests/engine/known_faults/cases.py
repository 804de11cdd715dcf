"""Statements that the plain engine answers wrongly, with the answers for users."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from tests.engine.known_faults.case import answered, refused
from tests.engine.known_faults.cases_of_nulls import OF_NULLS
from tests.engine.known_faults.cases_of_orders import OF_ORDERS
from tests.engine.known_faults.cases_of_types import OF_TYPES

_NAN, _INF = float("nan"), float("inf")
_MONTH = pa.MonthDayNano([1, 0, 0])
_WAITS = (
    "(SELECT id, CASE WHEN id = 1 THEN INTERVAL '1 month' ELSE INTERVAL '40 days' END AS w, "
    "INTERVAL '31 days' AS v FROM big) q"
)
_TWO_HUNDRED_YEARS = dt.timedelta(days=73_049)


_HAVING = "(SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) > 1)"
_LATE = "would compare too late"


CASES = (
    *OF_NULLS,
    *OF_TYPES,
    refused("chance-between", "SELECT random() BETWEEN 0.4 AND 0.6", "compute the value twice"),
    refused(
        "chance-between",
        "SELECT v FROM t WHERE NOT (1 + random() * v NOT BETWEEN 2 AND 3)",
        "compute the value twice",
    ),
    answered("cancelled-xor", "SELECT k ^ k FROM t", (0,), (0,), (0,), (None,), (0,)),
    answered(
        "cancelled-xor", "SELECT v FROM t WHERE (t.k ^ (v ^ k)) = v", (10,), (20,), (30,), (50,)
    ),
    answered("similar-to", "SELECT s FROM texts WHERE y SIMILAR TO '_'", ("a",)),
    answered("similar-to", "SELECT y FROM texts WHERE s NOT SIMILAR TO 'A|b?'", (None,), ("c",)),
    answered("similar-to", "SELECT s SIMILAR TO '%a' FROM texts", (True,), (True,)),
    answered("any-text", "SELECT s FROM texts WHERE NOT (y ~ '.*')"),
    answered("any-text", "SELECT y ~* '.*' FROM texts", (None,), (True,)),
    answered("count-of-nothing", f"SELECT v FROM t WHERE 3 NOT IN {_HAVING}", (10,), (40,), (50,)),
    refused(
        "late-comparisons",
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k GROUP BY ROLLUP (w))",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v FROM t WHERE v > ALL (SELECT count(*) FROM u WHERE u.k = t.k "
        "GROUP BY GROUPING SETS ((k, w), ()))",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v, (SELECT count(*) FROM u WHERE u.k = t.k GROUP BY GROUPING SETS (())) FROM t",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v FROM t WHERE v / 10 IN (SELECT count(*) OVER () FROM u WHERE u.k = t.k)",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k QUALIFY row_number() OVER "
        "(ORDER BY w) = 3)",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v, n FROM t, LATERAL (SELECT sum(w) OVER () AS n FROM u WHERE u.k = t.k) q",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v, n FROM t, LATERAL (SELECT sum(w) OVER (PARTITION BY w) AS n FROM u "
        "WHERE u.k = t.k) q",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v, n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.k = t.k GROUP BY CUBE "
        "(w)) q",
        _LATE,
    ),
    refused(
        "late-comparisons",
        "SELECT v, n FROM t, LATERAL (SELECT max(w) AS n FROM u WHERE u.k = t.k HAVING max(w) > "
        "1) q",
        _LATE,
    ),
    *OF_ORDERS,
    answered("constant-columns", "SELECT s FROM texts WHERE s = 'a' AND 'a' = s", ("a",), ("a",)),
    answered(
        "constant-columns",
        "SELECT k FROM (SELECT k FROM t WHERE k = 2) q WHERE CAST(2 AS SMALLINT) = k",
        (2,), (2,),
    ),
    answered(
        "constant-columns",
        "SELECT 1 FROM (SELECT 'a' x, s FROM texts WHERE s = 'a') q WHERE x = s",
        (1,), (1,),
    ),
    answered(
        "constant-columns",
        "SELECT l.s, l.y FROM labelled l WHERE l.x = l.s AND l.s = 'a' AND l.y = 'c' LIMIT 9",
        ("a", "c"),
    ),
    answered(
        "constant-columns",
        "WITH c AS (SELECT 2 AS d, k, v FROM t WHERE k = 2) SELECT v FROM c WHERE k = d AND "
        "d + 0 = k",
        (20,), (30,),
    ),
    answered("negated-bits", "SELECT -(k | 4) FROM t", (-5,), (-6,), (-6,), (None,), (-7,)),
    answered("negated-bits", "SELECT v FROM t WHERE - - -(k & v) = 0", (10,), (20,)),
    answered(
        "rounded-decimals",
        "SELECT a.id FROM big a JOIN big b ON round(a.c, 1) = b.c",
        (1,), (2,),
    ),
    answered(
        "rounded-decimals", "SELECT id FROM big WHERE round(c, 1) NOT IN (SELECT c FROM big)"
    ),
    answered(
        "rounded-decimals",
        "SELECT CASE WHEN id = 1 THEN round(c, 1) ELSE c END FROM big",
        (Decimal("1.50"),), (Decimal("2.50"),),
    ),
    answered(
        "ordered-aggregates", "SELECT k, avg(v ORDER BY v) FROM t GROUP BY k",
        (1, 10.0), (2, 25.0), (3, 50.0), (None, 40.0),
    ),
    answered(
        "ordered-aggregates",
        "SELECT k, count(v ORDER BY w), min(v ORDER BY w DESC), bit_or(abs(v) ORDER BY w) FROM t "
        "JOIN u USING (k) GROUP BY k HAVING count(v ORDER BY w) > 1",
        (2, 6, 20, 30),
    ),
    answered("never-null", "SELECT DISTINCT (k = 1) IS TRUE FROM t", (True,), (False,)),
    answered(
        "never-null", "SELECT (k = 1) IS NOT FALSE FROM t UNION SELECT (k = 1) IS UNKNOWN FROM t",
        (True,), (False,),
    ),
    answered(
        "never-null",
        "SELECT count(*) FILTER (WHERE (k = 1) IS TRUE), "
        "sum(v) FILTER (WHERE (k = 1) IS TRUE) FROM t",
        (1, 10),
    ),
    answered(
        "never-null",
        "SELECT sum(CASE WHEN (CASE WHEN k > 1 AND v < 30 THEN k ELSE 0 END) BETWEEN 1 AND 2 "
        "THEN 1 ELSE 0 END) FROM t",
        (1,),
    ),
    refused("integer-overflow", "SELECT x + 1 FROM big", "9223372036854775808 does not fit"),
    refused("integer-overflow", "SELECT 1 + x FROM big", "9223372036854775808 does not fit"),
    refused("integer-overflow", "SELECT x + id FROM big", "9223372036854775808 does not fit"),
    refused("integer-overflow", "SELECT m - 1 FROM big", "-9223372036854775809 does not fit"),
    refused("integer-overflow", "SELECT m - id FROM big", "-9223372036854775809 does not fit"),
    refused("integer-overflow", "SELECT x * 2 FROM big", "18446744073709551614 does not fit"),
    refused("integer-overflow", "SELECT x * x FROM big", "does not fit the type BIGINT"),
    refused(
        "integer-overflow",
        "SELECT -n FROM (SELECT id, min(m) AS n FROM big GROUP BY id) q",
        "9223372036854775808 does not fit",
    ),
    refused("integer-overflow", "SELECT s + s FROM big", "4294967294 does not fit the type INT"),
    refused("integer-overflow", "SELECT y + y FROM big", "does not fit the type BIGINT UNSIGNED"),
    refused("integer-overflow", "SELECT id FROM big WHERE x + 1 < 0", "does not fit"),
    refused("integer-overflow", "SELECT 9223372036854775807 + 1", "does not fit"),
    refused("integer-overflow", "SELECT x + 1 AS n, count(*) FROM big GROUP BY x + 1", "not fit"),
    refused(
        "integer-overflow",
        "SELECT a.id FROM big a JOIN big b ON a.x + 1 = b.m",
        "9223372036854775808 does not fit",
    ),
    refused("sum-overflow", "SELECT sum(x) FROM big", "sum of BIGINT is too large"),
    refused("sum-overflow", "SELECT sum(y) FROM big", "sum of BIGINT UNSIGNED is too large"),
    refused("sum-overflow", "SELECT sum(d) FROM big", "sum of DECIMAL is too large"),
    refused("sum-overflow", "SELECT sum(DISTINCT x) FROM big", "9223372036854775808 does not fit"),
    refused("sum-overflow", "SELECT sum(x) OVER (ORDER BY id) FROM big", "sum of BIGINT"),
    refused("sum-overflow", "SELECT id % 1, sum(x) FROM big GROUP BY id % 1", "sum of BIGINT"),
    refused("sum-overflow", "SELECT sum(d * 1) FROM big", "sum of DECIMAL is too large"),
    refused("sum-overflow", "SELECT sum(coalesce(d, 0)) FROM big", "sum of DECIMAL is too large"),
    refused("sum-overflow", "SELECT sum(d - 1) OVER (ORDER BY id) FROM big", "sum of DECIMAL"),
    refused("sum-overflow", "SELECT sum(b - a) FROM lengths", "sum of INTERVAL is too large"),
    refused(
        "sum-overflow",
        "SELECT sum(b - a) OVER (ORDER BY id) FROM lengths",
        "sum of INTERVAL is too large",
    ),
    answered("sum-overflow", "SELECT avg(b - a) FROM lengths", (_TWO_HUNDRED_YEARS,)),
    answered(
        "sum-overflow",
        "SELECT avg(b - a), sum(b - a) FILTER (WHERE id = 1) FROM lengths",
        (_TWO_HUNDRED_YEARS, _TWO_HUNDRED_YEARS),
    ),
    answered(
        "sum-overflow",
        "SELECT id / 3, mean(b - a) FROM lengths GROUP BY id / 3",
        (0, _TWO_HUNDRED_YEARS),
    ),
    answered(
        "sum-overflow",
        "SELECT avg(b - a) OVER (ORDER BY id) FROM lengths",
        (_TWO_HUNDRED_YEARS,), (_TWO_HUNDRED_YEARS,),
    ),
    answered(
        "sums-of-sums",
        "SELECT id, sum(c), count(DISTINCT s) FROM big GROUP BY id HAVING sum(c) > 2",
        (2, Decimal("2.50"), 1),
    ),
    answered(
        "sums-of-sums",
        "SELECT id FROM (SELECT id, sum(c) AS n, count(DISTINCT s) FROM big GROUP BY id) q "
        "WHERE n > 4 - n",
        (2,),
    ),
    answered(
        "sums-of-sums",
        "SELECT CASE WHEN sum(c) < 5 THEN 1 END, count(DISTINCT id) FROM big",
        (1, 2),
    ),
    answered("except-all", "SELECT k FROM u EXCEPT ALL SELECT k FROM t", (2,), (4,)),
    answered(
        "except-all", "SELECT k FROM u INTERSECT ALL SELECT k FROM t", (1,), (2,), (2,), (None,)
    ),
    answered(
        "except-all",
        "WITH a AS (SELECT k FROM u) SELECT * FROM (SELECT k FROM a EXCEPT ALL SELECT k FROM t) x",
        (2,), (4,),
    ),
    answered(
        "using-ambiguous", "SELECT k, v, w FROM t JOIN u USING (k) WHERE k = 1", (1, 10, 1)
    ),
    answered("using-ambiguous", "SELECT v FROM t LEFT JOIN u USING (k) WHERE k > 2", (50,)),
    answered("using-ambiguous", "SELECT v FROM t NATURAL JOIN u WHERE k IN (1, 5)", (10,)),
    answered(
        "using-ambiguous",
        "SELECT w FROM t RIGHT JOIN u USING (k) WHERE k = 4 OR k IS NULL",
        (5,), (6,),
    ),
    answered(
        "using-ambiguous",
        "SELECT k, v, w FROM t FULL JOIN u USING (k) WHERE k > 2",
        (3, 50, None), (4, None, 6),
    ),
    answered(
        "using-ambiguous",
        "SELECT v FROM t JOIN u USING (k) JOIN named USING (k) WHERE k = 1 AND c = 5",
        (10,),
    ),
    answered(
        "using-ambiguous",
        "SELECT t.v, o.v AS other FROM t JOIN u USING (k) JOIN one_file o ON k * 10 = o.v",
        (10, 10), (20, 20), (20, 20), (20, 20), (30, 20), (30, 20), (30, 20),
    ),
    answered(
        "using-ambiguous",
        "WITH q AS (SELECT w FROM t JOIN u USING (k) WHERE k = 1) SELECT * FROM q",
        (1,),
    ),
    answered(
        "using-loses-right",
        "SELECT k, v, w FROM t FULL JOIN u USING (k) WHERE v IS NULL",
        (4, None, 6), (None, None, 5),
    ),
    answered(
        "using-loses-right",
        "SELECT * FROM t FULL JOIN u USING (k) WHERE v IS NULL",
        (4, None, 6), (None, None, 5),
    ),
    answered(
        "using-loses-right",
        "SELECT k, count(*) FROM t FULL JOIN u USING (k) GROUP BY k",
        (1, 1), (2, 6), (3, 1), (4, 1), (None, 2),
    ),
    answered(
        "using-loses-right",
        "SELECT k, w FROM t RIGHT JOIN u USING (k) WHERE v IS NULL",
        (4, 6), (None, 5),
    ),
    answered(
        "using-loses-right",
        "SELECT k, w FROM t NATURAL FULL JOIN u WHERE v IS NULL",
        (4, 6), (None, 5),
    ),
    refused(
        "using-loses-right",
        "SELECT * FROM t FULL JOIN u USING (k) LEFT JOIN one ON one.k = u.w",
        "coalesce(a.k, b.k)",
    ),
    answered(
        "grouped-extremes",
        "SELECT g, min(f), max(f) FROM floats GROUP BY g",
        (1, 1.0, _NAN), (2, 1.0, _NAN), (3, 0.0, 0.0),
    ),
    answered(
        "grouped-extremes",
        "SELECT id, min(i) FROM floats WHERE id = 1 GROUP BY id",
        (1, _INF),
    ),
    answered(
        "grouped-extremes",
        "SELECT g, max(CAST(f AS FLOAT)) FILTER (WHERE id <> 2) FROM floats WHERE g = 1 GROUP BY 1",
        (1, _NAN),
    ),
    answered(
        "zeros-in-windows",
        "SELECT id, count(*) OVER (PARTITION BY f) FROM floats WHERE g = 3",
        (6, 2), (7, 2),
    ),
    answered(
        "zeros-in-windows",
        "SELECT id, rank() OVER (ORDER BY f) FROM floats WHERE g = 3",
        (6, 1), (7, 1),
    ),
    answered(
        "zeros-in-keys", "SELECT id FROM floats WHERE g = 3 ORDER BY f DESC, id LIMIT 1", (6,)
    ),
    answered(
        "zeros-in-keys",
        "SELECT first_value(id ORDER BY f DESC, id) AS id FROM floats WHERE g = 3",
        (6,),
    ),
    answered(
        "zeros-in-keys",
        "SELECT count(*) AS n, count(DISTINCT f) AS c FROM floats WHERE g = 3",
        (2, 1),
    ),
    answered(
        "zeros-in-keys",
        "SELECT CASE f WHEN 0 THEN 1 WHEN 1 THEN 2 END AS c, nullif(f, 0) AS n FROM floats "
        "WHERE id > 5",
        (1, None), (1, None),
    ),
    answered(
        "zeros-in-keys",
        "SELECT id, f FROM floats WHERE g = 3 UNION ALL SELECT id, f FROM floats WHERE g = 3 "
        "ORDER BY f DESC, id LIMIT 1",
        (6, -0.0),
    ),
    answered("signed-nan", "SELECT id FROM floats WHERE i - i > 1", (1,), (5,)),
    answered("signed-nan", "SELECT id FROM floats ORDER BY i - i, id OFFSET 6", (1,), (5,)),
    answered("signed-nan", "SELECT id FROM floats WHERE -f = 'NaN' AND g < 2", (0,)),
    answered("signed-nan", "SELECT min(i - i) AS least FROM floats", (0.0,)),
    answered(
        "signed-nan",
        "SELECT id FROM floats WHERE i - i BETWEEN 1 AND 'NaN' AND (i - i) IN (0.5, 'NaN') "
        "AND (i - i) IS NOT DISTINCT FROM CAST('NaN' AS DOUBLE) AND greatest(i - i, 1) > 1",
        (1,), (5,),
    ),
    answered(
        "signed-nan",
        "SELECT g, sum(i) - sum(i) AS r FROM floats GROUP BY g HAVING sum(i) - sum(i) < 1",
        (3, 0.0),
    ),
    answered(
        "moving-infinity",
        "SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM floats",
        (0, 1.0), (1, _INF), (2, _INF), (3, 5.0), (4, 7.0), (5, _NAN), (6, _NAN), (7, 11.0),
    ),
    answered(
        "moving-infinity",
        "SELECT id, avg(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM floats",
        (0, 1.0), (1, _INF), (2, _INF), (3, 2.5), (4, 3.5), (5, _NAN), (6, _NAN), (7, 5.5),
    ),
    answered("nan-in-statistics", "SELECT id FROM floats WHERE f = 'NaN'", (0,), (4,)),
    answered(
        "nan-in-statistics", "SELECT id FROM floats WHERE f NOT IN (1.0, 2.0, 0.0)", (0,), (4,)
    ),
    answered(
        "zeros-in-lists",
        "SELECT id FROM floats WHERE f IN (7.5, 8.5, 9.5, 0.0)",
        (6,), (7,),
    ),
    answered("nan-in-statistics", "SELECT id FROM floats ORDER BY f DESC LIMIT 2", (0,), (4,)),
    answered(
        "nan-in-statistics",
        "SELECT z FROM (SELECT f AS z FROM floats) q WHERE z > 2",
        (_NAN,), (_NAN,),
    ),
    answered(
        "nan-in-statistics",
        "SELECT f, count(*) FROM floats GROUP BY f HAVING f > 2",
        (_NAN, 2),
    ),
    answered(
        "zone-forgotten",
        "SELECT id FROM moments WHERE ny = TIMESTAMPTZ '2024-06-01 12:00:00+02'",
        (1,),
    ),
    answered(
        "zone-forgotten",
        "SELECT id FROM moments WHERE ny = '2024-06-01 16:00:00+02'::TIMESTAMP WITH TIME ZONE",
        (2,),
    ),
    answered(
        "zone-forgotten",
        "SELECT id FROM moments WHERE ny = TIMESTAMP '2024-06-01T10:00:00Z'",
        (1,),
    ),
    answered(
        "intervals-by-parts",
        "SELECT id FROM moments WHERE at - TIMESTAMP '2024-05-01T00:00:00' > INTERVAL '30 days'",
        (1,), (2,),
    ),
    answered(
        "intervals-by-parts",
        "SELECT id FROM moments WHERE at - TIMESTAMP '2024-05-01T00:00:00.5' BETWEEN "
        "INTERVAL '1 day' AND INTERVAL '31 days 10 hours'",
        (1,),
    ),
    answered("intervals-by-parts", "SELECT INTERVAL '1 month' > INTERVAL '40 days'", (False,)),
    answered("intervals-by-parts", f"SELECT id FROM {_WAITS} ORDER BY w LIMIT 1", (1,)),
    answered("intervals-by-parts", f"SELECT id, w FROM {_WAITS} ORDER BY 2 LIMIT 1", (1, _MONTH)),
    answered(
        "intervals-by-parts", f"SELECT first_value(id ORDER BY w DESC) FROM {_WAITS}", (2,)
    ),
    answered("intervals-by-parts", f"SELECT id FROM {_WAITS} WHERE w > v", (2,)),
    refused("intervals-by-parts", f"SELECT max(w) FROM {_WAITS}", "max(date_part('epoch', x))"),
    refused(
        "intervals-by-parts",
        f"SELECT least(w, v) FROM {_WAITS}",
        "least of INTERVAL is not supported",
    ),
    answered(
        "intervals-by-parts",
        "SELECT v FROM t WHERE v = 10 AND INTERVAL '24 hours' IN (INTERVAL '1 day')",
        (10,),
    ),
    answered(
        "moving-infinity",
        "SELECT id, sum(i) OVER w FROM floats WINDOW w AS "
        "(ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        (0, 1.0), (1, _INF), (2, _INF), (3, 5.0), (4, 7.0), (5, _NAN), (6, _NAN), (7, 11.0),
    ),
    answered(
        "zeros-in-windows",
        "SELECT id, rank() OVER (w ORDER BY f) FROM floats WHERE g = 3 "
        "WINDOW w AS (PARTITION BY g)",
        (6, 1), (7, 1),
    ),
    refused(
        "chance-in-cte",
        "WITH c AS (SELECT random() AS r) SELECT a.r = b.r FROM c a, c b",
        "'c' calls random()",
    ),
    answered(
        "bare-names",
        "SELECT u.k, u.w FROM t RIGHT JOIN u ON t.v = u.w * 10 WHERE t.k IS NULL",
        (2, 4), (4, 6),
    ),
    answered(
        "bare-names",
        "SELECT u.k, one.k AS o FROM one CROSS JOIN t RIGHT JOIN u ON t.v = u.w * 10 "
        "WHERE t.k IS NULL",
        (2, 7), (4, None),
    ),
    answered(
        "bare-names",
        "SELECT a.k AS x, c.k AS y FROM t a RIGHT JOIN t c ON a.k = c.k AND a.v < c.v "
        "WHERE a.k IS NULL",
        (None, 1), (None, 2), (None, 3), (None, None),
    ),
)  # fmt: skip
