"""Statements that the plain engine answers wrongly, with what users get."""

from dataclasses import dataclass

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A statement that shows a fault. `right` are its rows in any order, if it is answered.

    Otherwise `refusal` is a part of what the error says.
    """

    fault: str
    sql: str
    right: tuple[Row, ...] | None = None
    refusal: str = ""


def answered(fault: str, sql: str, *right: Row) -> Case:
    return Case(fault, sql, right)


def refused(fault: str, sql: str, refusal: str) -> Case:
    return Case(fault, sql, refusal=refusal)


CASES = (
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
    answered(
        "in-loses-null", "SELECT v FROM t WHERE (k IN (SELECT k FROM u)) IS NULL", (40,), (50,)
    ),
    answered("in-loses-null", "SELECT v FROM t WHERE k NOT IN (SELECT k FROM u) OR v = 10", (10,)),
    answered("in-loses-null", "SELECT v FROM t WHERE (k IN (SELECT k FROM u)) IS FALSE"),
    answered(
        "in-loses-null",
        "SELECT v FROM t WHERE coalesce(k IN (SELECT k FROM u), true)",
        (10,), (20,), (30,), (40,), (50,),
    ),
    answered(
        "in-loses-null",
        "SELECT v FROM t WHERE NOT (k IN (SELECT k FROM u) AND v > 20)",
        (10,), (20,),
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
        "count-of-nothing",
        "SELECT v FROM t WHERE NOT EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)",
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE EXISTS (SELECT max(w) FROM u WHERE u.k = t.k) AND v > 30",
        (40,), (50,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k HAVING count(*) = 0)",
        (40,), (50,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE 0 IN (SELECT count(*) FROM u WHERE u.k = t.k)",
        (40,), (50,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE 0 <> ALL (SELECT count(*) FROM u WHERE u.k = t.k)",
        (10,), (20,), (30,),
    ),
    answered(
        "count-of-nothing",
        "SELECT v FROM t WHERE 0 = ANY (SELECT count(*) FROM u WHERE u.k = t.k)",
        (40,), (50,),
    ),
    refused(
        "correlated-limit",
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k OFFSET 2)",
        "row_number() OVER (PARTITION BY",
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
        "null-safe-where",
        "SELECT t.v FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k WHERE t.k = u.k AND t.v <> 20",
        (10,), (30,), (30,), (30,),
    ),
    answered(
        "null-safe-where",
        "SELECT v FROM (SELECT t.v, t.k AS a, u.k AS b FROM t "
        "JOIN u ON t.k IS NOT DISTINCT FROM u.k) q WHERE a = b AND v <> 20",
        (10,), (30,), (30,), (30,),
    ),
)  # fmt: skip
