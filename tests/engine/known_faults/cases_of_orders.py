"""Statements whose order the plain engine gets wrong, with the answers for users."""

import datetime as dt

from tests.engine.known_faults.case import answered

_DAYS = "(VALUES (TIMESTAMP '2024-01-01 10:00:00'), (TIMESTAMP '2024-01-02 09:00:00')) t(x)"

OF_ORDERS = (
    answered(
        "windows-by-chance",
        "SELECT row_number() OVER (ORDER BY random()) FROM t",
        (1,),
        (2,),
        (3,),
        (4,),
        (5,),
    ),
    answered(
        "windows-by-chance",
        "SELECT n FROM (SELECT *, ntile(2) OVER (PARTITION BY 1 ORDER BY uuid()) AS n FROM t) q",
        (1,),
        (1,),
        (1,),
        (2,),
        (2,),
    ),
    answered(
        "parts-in-parentheses",
        "SELECT count(*) FROM t GROUP BY ROLLUP ((k) + 1)",
        (1,),
        (1,),
        (1,),
        (2,),
        (5,),
    ),
    answered(
        "parts-in-parentheses",
        "SELECT (nested.s)['a'], count(*) FROM nested GROUP BY GROUPING SETS ((nested.s)['a'], ())",
        (1, 1),
        (2, 1),
        (None, 1),
        (None, 3),
    ),
    answered(
        "false-orders",
        "SELECT max(v) OVER (ORDER BY v DESC ROWS 1 PRECEDING) AS m FROM t ORDER BY m LIMIT 1",
        (20,),
    ),
    answered(
        "false-orders",
        "SELECT count(*) OVER (PARTITION BY k ORDER BY w ROWS 1 PRECEDING) AS n FROM u ORDER BY n "
        "LIMIT 4",
        (1,),
        (1,),
        (1,),
        (1,),
    ),
    answered(
        "false-orders",
        "SELECT m, rank() OVER (ORDER BY m) FROM (SELECT max(v) OVER (ORDER BY v DESC ROWS 1 "
        "PRECEDING) AS m FROM t) q",
        (20, 1),
        (30, 2),
        (40, 3),
        (50, 4),
        (50, 4),
    ),
    answered(
        "false-orders",
        "SELECT n, rank() OVER (ORDER BY n) FROM (SELECT count(*) OVER (PARTITION BY k ORDER BY w "
        "ROWS 1 PRECEDING) AS n FROM u) q",
        (1, 1),
        (1, 1),
        (1, 1),
        (1, 1),
        (2, 5),
        (2, 5),
    ),
    answered(
        "false-orders",
        f"SELECT CAST(x AS TIME) AS y FROM (SELECT x FROM {_DAYS} ORDER BY x LIMIT 2) q "
        "ORDER BY y LIMIT 1",
        (dt.time(9),),
    ),
    answered(
        "sorted-offset",
        "SELECT n FROM (SELECT coalesce(v, 0) AS n FROM one_file ORDER BY n LIMIT 1 OFFSET 1) q "
        "ORDER BY n",
        (20,),
    ),
    answered(
        "repeated-keys",
        "SELECT DISTINCT ON (k) v FROM t ORDER BY k, k, v",
        (10,),
        (20,),
        (50,),
        (40,),
    ),
    answered(
        "repeated-keys",
        "SELECT DISTINCT ON (k, t.k) k AS x, v FROM t ORDER BY 1, x, t.k, v DESC",
        (1, 10),
        (2, 30),
        (3, 50),
        (None, 40),
    ),
    answered(
        "repeated-keys",
        "SELECT k, first_value(v ORDER BY v DESC, t.v) FROM t GROUP BY k",
        (1, 10),
        (2, 30),
        (3, 50),
        (None, 40),
    ),
    answered(
        "repeated-keys", "SELECT array_agg(v ORDER BY -v, -v) FROM t", ([50, 40, 30, 20, 10],)
    ),
    answered(
        "limited-groups-of-windows",
        "SELECT DISTINCT k, count(*) OVER (PARTITION BY k) FROM t LIMIT 9",
        (1, 1),
        (2, 2),
        (3, 1),
        (None, 1),
    ),
    answered(
        "limited-groups-of-windows",
        "SELECT k, n FROM (SELECT k, count(*) OVER (PARTITION BY k) AS n FROM t) q "
        "GROUP BY k, n LIMIT 9",
        (1, 1),
        (2, 2),
        (3, 1),
        (None, 1),
    ),
    answered(
        "sorted-offset",
        "SELECT v FROM (SELECT v FROM one_file ORDER BY v LIMIT 1 OFFSET 1) q ORDER BY v",
        (20,),
    ),
    answered(
        "sorted-offset",
        "SELECT v, n FROM (SELECT v, count(*) OVER () AS n FROM one_file ORDER BY v LIMIT 2 OFFSET "
        "1) q ORDER BY n DESC",
        (20, 3),
        (30, 3),
    ),
    answered(
        "sorted-offset", "SELECT c FROM (SELECT c FROM named LIMIT 1 OFFSET 1) q ORDER BY c", (5,)
    ),
    answered(
        "sorted-offset",
        "WITH q AS (SELECT c FROM named LIMIT 1 OFFSET 1) SELECT c, rank() OVER (ORDER BY c) FROM "
        "q",
        (5, 1),
    ),
    answered(
        "sorted-offset",
        "SELECT array_agg(c ORDER BY c) FROM (SELECT c FROM named LIMIT 1 OFFSET 1) q",
        ([5],),
    ),
    answered(
        "constant-in-outer-join",
        "SELECT row_number() OVER (), c FROM (SELECT o.c FROM many t LEFT JOIN named o "
        "ON t.k = o.k AND o.c = 5 ORDER BY o.c DESC LIMIT 2) q",
        (1, None),
        (2, None),
    ),
    answered(
        "constant-in-outer-join",
        "SELECT DISTINCT count(*) OVER (PARTITION BY o.c) FROM many t LEFT JOIN named o "
        "ON t.k = o.k AND o.c > 3",
        (6667,),
        (13333,),
    ),
    answered(
        "constant-in-outer-join",
        "SELECT c, n, count(*) FROM (SELECT * FROM (SELECT *, count(*) OVER (PARTITION BY c) AS n "
        "FROM many t LEFT JOIN (SELECT 7 AS c, k AS k2 FROM named) o ON t.k = o.k2) q) p "
        "GROUP BY c, n",
        (7, 13333, 13333),
        (None, 6667, 6667),
    ),
    answered(
        "constant-in-outer-join",
        "SELECT count(*) FROM (SELECT c, rank() OVER (ORDER BY c) AS r FROM many t "
        "NATURAL FULL JOIN (SELECT * FROM named WHERE c = 5) o) q WHERE r = 13334",
        (6667,),
    ),
    answered(
        "sorted-totals",
        "SELECT sum(count(*)) OVER (PARTITION BY 1 + 1) AS n FROM t GROUP BY CUBE (v, 1 + 1)",
        *[(10,)] * 12,
    ),
    answered(
        "sorted-totals",
        "SELECT c, rank() OVER (ORDER BY c) AS n FROM (SELECT v, 'k' AS c FROM t GROUP BY "
        "ROLLUP (v, 'k')) q",
        *[("k", 1)] * 5,
        *[(None, 6)] * 6,
    ),
    answered(
        "sorted-totals",
        "SELECT 'a' AS c, grouping('a') AS g, lag(v) OVER (PARTITION BY 'a' ORDER BY v) AS w "
        "FROM t GROUP BY v, CUBE ('a')",
        *[(c, g, w) for c, g in (("a", 0), (None, 1)) for w in (None, 10, 20, 30, 40)],
    ),
    answered(
        "sorted-totals",
        "SELECT n, count(*) FROM (SELECT sum(count(*)) OVER (PARTITION BY coalesce(2, u.w)) AS n, "
        "coalesce(2, w) AS x FROM u GROUP BY ROLLUP (w, x)) q GROUP BY n",
        (6, 6),
        (12, 7),
    ),
    answered(
        "sorted-totals",
        "SELECT c, row_number() OVER (ORDER BY c) FROM (SELECT c, count(*) AS n FROM "
        "(SELECT row_number() OVER (ORDER BY k) AS c FROM t) q GROUP BY ROLLUP (c)) p",
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
        (5, 5),
        (None, 6),
    ),
    answered(
        "window-names",
        "SELECT v, 1 + sum(v) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM "
        "(SELECT v FROM t ORDER BY v DESC LIMIT 9) q WINDOW w AS (ORDER BY v)",
        (10, 11),
        (20, 31),
        (30, 51),
        (40, 71),
        (50, 91),
    ),
)
