"""Statements that the plain engine answers wrongly, with the answers for users."""

from decimal import Decimal

import pyarrow as pa

from tests.engine.known_faults.case import answered, refused
from tests.engine.known_faults.cases_of_nulls import OF_NULLS
from tests.engine.known_faults.cases_of_numbers import OF_NUMBERS
from tests.engine.known_faults.cases_of_orders import OF_ORDERS
from tests.engine.known_faults.cases_of_types import OF_TYPES

_MONTH = pa.MonthDayNano([1, 0, 0])
_WAITS = (
    "(SELECT id, CASE WHEN id = 1 THEN INTERVAL '1 month' ELSE INTERVAL '40 days' END AS w, "
    "INTERVAL '31 days' AS v FROM big) q"
)


_HAVING = "(SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) > 1)"
_LATE = "would compare too late"


CASES = (
    *OF_NULLS,
    *OF_TYPES,
    *OF_NUMBERS,
    refused("chance-between", "SELECT random() BETWEEN 0.4 AND 0.6", "compute the value twice"),
    refused(
        "chance-between",
        "SELECT v FROM t WHERE NOT (1 + random() * v NOT BETWEEN 2 AND 3)",
        "compute the value twice",
    ),
    refused(
        "chance-in-coalesce",
        "SELECT count(coalesce(nullif(round(random()), 0), 1)) FROM many",
        "compute the value twice",
    ),
    answered(
        "chance-compared",
        "SELECT count(*) < 7800 FROM many WHERE floor(random() * 3) = 1",
        (True,),
    ),
    answered(
        "chance-compared",
        "SELECT count(*) FROM many WHERE CASE WHEN random() < 0.5 THEN k > -1 ELSE k < 9 END",
        (20_000,),
    ),
    answered(
        "chance-in-groups",
        "SELECT k FROM (SELECT random() < 0.5 AS k FROM many GROUP BY 1) q WHERE k",
        (True,),
    ),
    answered(
        "chance-in-groups",
        "SELECT random() < 0.5 AS c FROM many GROUP BY random() < 0.5 HAVING random() < 0.5",
        (True,),
    ),
    answered(
        "chance-moved",
        "SELECT count(*) < 3 FROM (SELECT DISTINCT k FROM many) q WHERE random() < 0.01",
        (True,),
    ),
    answered(
        "chance-moved",
        "SELECT count(*) = 0 FROM (SELECT count(*) AS n FROM many GROUP BY k HAVING random() < "
        "0.9) q WHERE n < 6500",
        (True,),
    ),
    answered(
        "chance-moved",
        "SELECT count(*) % 20000 > 0 AS c FROM t CROSS JOIN many m WHERE random() < 0.5",
        (True,),
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
