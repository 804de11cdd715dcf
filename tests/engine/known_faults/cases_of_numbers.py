"""Statements with overflow, NaN and zeros, with the answers for users."""

import datetime as dt
from decimal import Decimal

from tests.engine.known_faults.case import answered, refused

_NAN, _INF = float("nan"), float("inf")
_TWO_HUNDRED_YEARS = dt.timedelta(days=73_049)

OF_NUMBERS = (
    answered("cut-percentiles", "SELECT quantile_cont(v, 0.7) FROM t", (38.0,)),
    answered(
        "cut-percentiles",
        "SELECT k % 2 AS o, percentile_cont(0.3) WITHIN GROUP (ORDER BY w DESC) FROM u GROUP BY o",
        (None, 5.0), (1, 1.0), (0, 4.2),
    ),
    answered(
        "cut-percentiles",
        "SELECT v, percentile_cont(v, 0.7) OVER (ORDER BY v ROWS 2 PRECEDING) FROM t WHERE v > 20",
        (30, 30.0), (40, 37.0), (50, 44.0),
    ),
    answered(
        "cut-percentiles",
        "SELECT percentile_cont(0.0000001) WITHIN GROUP (ORDER BY c) FILTER (WHERE s > 0) FROM big",
        (1.5000001,),
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
)  # fmt: skip
