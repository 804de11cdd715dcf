"""Statements whose NULLs the plain engine gets wrong, with the answers for users."""

from tests.engine.known_faults.case import answered, refused

OF_NULLS = (
    answered(
        "in-loses-null", "SELECT v FROM t WHERE (k IN (SELECT k FROM u)) IS NULL", (40,), (50,)
    ),
    answered("in-loses-null", "SELECT v FROM t WHERE k NOT IN (SELECT k FROM u) OR v = 10", (10,)),
    answered("in-loses-null", "SELECT v FROM t WHERE (k IN (SELECT k FROM u)) IS FALSE"),
    answered(
        "in-loses-null",
        "SELECT v FROM t WHERE coalesce(k IN (SELECT k FROM u), true)",
        (10,),
        (20,),
        (30,),
        (40,),
        (50,),
    ),
    answered(
        "in-loses-null",
        "SELECT v FROM t WHERE NOT (k IN (SELECT k FROM u) AND v > 20)",
        (10,),
        (20,),
    ),
    answered(
        "in-loses-null",
        "SELECT k, count(*) FROM t GROUP BY k HAVING NOT (k IN (SELECT k FROM u) AND count(*) > 0)",
    ),
    answered(
        "in-loses-null",
        "SELECT v FROM t WHERE (k IN (SELECT w FROM u WHERE u.k = t.k OR u.k IS NULL)) IS NULL",
        (40,),
    ),
    answered(
        "in-loses-null",
        "SELECT v FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.k = t.k)",
        (40,),
        (50,),
    ),
    answered(
        "captured-column",
        "SELECT v FROM t WHERE k = ALL (SELECT k FROM t WHERE k = 2)",
        (20,),
        (30,),
    ),
    answered(
        "captured-column",
        "SELECT v FROM t WHERE k > ANY (SELECT k FROM t WHERE k = 2)",
        (50,),
    ),
    answered(
        "captured-column",
        "SELECT v FROM matched_again WHERE v < ALL (SELECT v FROM matched_again WHERE v > 10)",
        (10,),
    ),
    answered(
        "captured-column",
        "SELECT t.v, u.w FROM t JOIN u ON t.k = u.k AND w >= ALL (SELECT w FROM u WHERE k = 2)",
        (20, 4),
        (30, 4),
    ),
    refused(
        "captured-column",
        "SELECT t.v FROM t LEFT JOIN u ON t.k = u.k AND v > ALL (SELECT v FROM t WHERE k = 1)",
        "in the ON of joins among which is an outer join",
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE NOT EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)",
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE EXISTS (SELECT max(w) FROM u WHERE u.k = t.k) AND v > 30",
        (40,),
        (50,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k HAVING count(*) = 0)",
        (40,),
        (50,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE 0 IN (SELECT count(*) FROM u WHERE u.k = t.k)",
        (40,),
        (50,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE 0 <> ALL (SELECT count(*) FROM u WHERE u.k = t.k)",
        (10,),
        (20,),
        (30,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE 0 = ANY (SELECT count(*) FROM u WHERE u.k = t.k)",
        (40,),
        (50,),
    ),
    refused(
        "correlated-limit",
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k OFFSET 2)",
        "row_number() OVER (PARTITION BY",
    ),
    answered(
        "lists-with-null",
        "SELECT s, y FROM texts WHERE s IN ('a', y) AND s NOT IN (y, 'b')",
        ("a", "c"),
    ),
    answered("lists-with-null", "SELECT v FROM t WHERE k NOT IN (1, NULL) AND k IN (1, 2)"),
    answered("lists-with-null", "SELECT v FROM t WHERE NOT (k IN (1, NULL) OR k NOT IN (1, 2))"),
    answered(
        "lists-with-null",
        "SELECT v, k NOT IN (1, NULL) AND k IN (1, 2) FROM t",
        (10, False),
        (20, None),
        (30, None),
        (40, None),
        (50, False),
    ),
    answered("lists-with-null", "SELECT v FROM t WHERE k = ANY([1, 2]) AND NOT k IN (1, NULL)"),
    answered(
        "lists-with-null",
        "SELECT v FROM t WHERE k NOT IN (1) OR k NOT IN (2)",
        (10,),
        (20,),
        (30,),
        (50,),
    ),
    answered(
        "lists-with-null",
        "SELECT v FROM t WHERE NOT ((k = 1 OR k = 2) AND (k = 3 OR k = 4))",
        (10,),
        (20,),
        (30,),
        (50,),
    ),
    answered(
        "lists-with-null",
        "SELECT v FROM (SELECT v, k IN (1, 9) AS a, k IN (2, 8) AS b FROM t) q "
        "WHERE (a AND b) IS NULL",
        (40,),
    ),
    answered(
        "distinct-from-too-far",
        "SELECT v FROM t WHERE (k = 2) IS DISTINCT FROM true AND v = 10",
        (10,),
    ),
    answered(
        "distinct-from-too-far",
        "SELECT v FROM t WHERE v < 30 AND k IS DISTINCT FROM 2 AND k IS NOT NULL OR v = 50",
        (10,),
        (50,),
    ),
    answered(
        "distinct-from-too-far",
        "SELECT v, NOT (k = 2) IS NOT DISTINCT FROM (v = 20) AND v < 40 FROM t",
        (10, False),
        (20, False),
        (30, True),
        (40, False),
        (50, False),
    ),
    answered(
        "null-safe-joins",
        "SELECT t.v FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k WHERE t.k = u.k AND t.v <> 20",
        (10,),
        (30,),
        (30,),
        (30,),
    ),
    answered(
        "null-safe-joins",
        "SELECT v FROM (SELECT t.v, t.k AS a, u.k AS b FROM t "
        "JOIN u ON t.k IS NOT DISTINCT FROM u.k) q WHERE a = b AND v <> 20",
        (10,),
        (30,),
        (30,),
        (30,),
    ),
    answered(
        "null-safe-joins",
        "SELECT v FROM matched WHERE a = b AND v <> 20",
        (10,),
        (30,),
        (30,),
        (30,),
    ),
    answered(
        "null-safe-joins",
        "SELECT v FROM matched_again WHERE a = b AND v <> 20",
        (10,),
        (30,),
        (30,),
        (30,),
    ),
    answered(
        "null-safe-joins",
        "SELECT a.v FROM t a JOIN u b ON a.k = b.k JOIN t c ON a.k IS NOT DISTINCT FROM c.k "
        "WHERE b.w IN (1, 5)",
        (10,),
    ),
    answered(
        "null-safe-joins",
        "SELECT c.v FROM t a JOIN u b ON NOT a.k IS DISTINCT FROM b.k JOIN t c ON a.v = c.v "
        "WHERE b.w = 5",
        (40,),
    ),
    answered(
        "null-safe-joins",
        "SELECT c.v FROM t a JOIN u b ON a.k IS NOT DISTINCT FROM b.k, t c WHERE a.v = c.v "
        "AND b.w IN (1, 5)",
        (10,),
        (40,),
    ),
    answered("constant-not-in", "SELECT v FROM t WHERE 7 NOT IN (SELECT k FROM u)"),
    answered("constant-not-in", "SELECT v FROM t WHERE NOT coalesce(7, k) IN (SELECT k FROM u)"),
    answered(
        "constant-not-in", "SELECT v FROM t WHERE (SELECT max(w) FROM u) NOT IN (SELECT k FROM u)"
    ),
    answered("rows-of-nothing", "SELECT n FROM (SELECT 1 c, count(*) n FROM t) q WHERE c = 2"),
    answered(
        "rows-of-nothing",
        "SELECT * FROM (SELECT 't' AS c, count(*) AS n FROM t UNION ALL SELECT 'u', count(*) FROM "
        "u) q WHERE c = 'u'",
        ("u", 6),
    ),
    answered(
        "rows-of-nothing",
        "SELECT c, n FROM counted WHERE c = 'u' AND n >= 0 ORDER BY c, n LIMIT 2",
        ("u", 6),
    ),
    answered(
        "rows-of-nothing",
        "SELECT v, n FROM t LEFT JOIN (SELECT count(*) AS n FROM u) q ON 1 = 0 WHERE v = 10",
        (10, None),
    ),
    answered(
        "rows-of-nothing",
        "SELECT n FROM (SELECT count(*) AS n FROM t) q WHERE (SELECT max(w) FROM u) = 7",
    ),
    answered(
        "rows-of-nothing",
        "SELECT k, n FROM (SELECT k, count(*) AS n, 1 AS c FROM t GROUP BY ROLLUP (k)) q "
        "WHERE c = 2",
    ),
    answered(
        "rows-of-nothing",
        "SELECT v FROM t WHERE 7 IN (SELECT 8 FROM (SELECT max(k) FROM u) q) OR v = 10",
        (10,),
    ),
    answered(
        "constant-in",
        "SELECT v FROM t WHERE 2 IN (SELECT k FROM u WHERE k = 2)",
        (10,),
        (20,),
        (30,),
        (40,),
        (50,),
    ),
    answered(
        "constant-in", "SELECT v FROM t WHERE 2 NOT IN (SELECT k FROM u WHERE k = 2 AND w > 2)"
    ),
    answered(
        "distinct-marks",
        "SELECT v FROM t WHERE k = 1 OR k IN (SELECT DISTINCT k + 1 FROM u)",
        (10,),
        (20,),
        (30,),
        (50,),
    ),
    answered(
        "distinct-marks",
        "SELECT v FROM t WHERE (k + 1 NOT IN (SELECT DISTINCT w AS k FROM u WHERE w > 2)) IS TRUE",
        (10,),
    ),
    answered(
        "distinct-marks",
        "SELECT v FROM t WHERE k = 3 OR k NOT IN (SELECT DISTINCT k + 1 FROM u ORDER BY 1 LIMIT 1)",
        (10,),
        (50,),
    ),
    answered("row-values", "SELECT v FROM t WHERE (k, v) < (2, 30)", (10,), (20,)),
    answered(
        "row-values",
        "SELECT v FROM t WHERE (k, v) NOT IN ((2, 40), (1, NULL))",
        (20,),
        (30,),
        (50,),
    ),
    answered("row-values", "SELECT id FROM floats WHERE (f, g) = (0.0, 3)", (6,), (7,)),
)
