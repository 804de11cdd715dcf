"""Statements with times of day, casts, lists and structs, with the answers for users."""

import datetime as dt
from decimal import Decimal

from tests.engine.known_faults.case import answered, refused

OF_TYPES = (
    answered("fields-of-files", "SELECT s['a'] FROM required", (5,), (None,), (6,)),
    answered("fields-of-files", "SELECT id FROM required WHERE s['a'] IS NULL", (2,)),
    answered(
        "fields-of-files",
        "SELECT q.y.a, count(*) FROM (SELECT s AS y FROM required) q GROUP BY q.y.a",
        (5, 1), (None, 1), (6, 1),
    ),
    answered("fields-of-files", "SELECT get_field(s, 'a') FROM shown", (5,), (None,), (6,)),
    answered(
        "fields-of-files", "SELECT id, unnest(s) FROM required",
        (1, 5, "x"), (2, None, None), (3, 6, None),
    ),
    answered(
        "fields-of-files",
        "SELECT t.v FROM t LEFT JOIN required r ON t.k = r.id WHERE coalesce(r.s.a, 9) > 8",
        (20,), (30,), (40,),
    ),
    answered(
        "values-under-null", "SELECT nullif({a: k}, {a: 2})['a'] FROM t",
        (1,), (None,), (None,), (None,), (3,),
    ),
    answered(
        "values-under-null", "SELECT id, (CASE WHEN id > 1 THEN s END)['a'] FROM nested",
        (1, None), (2, 2), (3, None),
    ),
    answered(
        "values-under-null", "SELECT x['a'] FROM ones WHERE id IS NOT NULL", (1,), (None,), (None,)
    ),
    answered(
        "values-under-null",
        "SELECT map_extract(CASE WHEN id < 2 THEN m ELSE NULL END, 'k') FROM nested",
        ([1],), ([None],), ([None],),
    ),
    answered(
        "values-under-null",
        "SELECT array_append(nullif(e, [1, 2]), 7) FROM lists",
        ([7],), ([7],), ([7],), ([None, 2, 1, 7],),
    ),
    answered("times-of-day", "SELECT id FROM clock WHERE tod > TIME '12:00'", (1,), (4,)),
    answered(
        "finer-constants",
        "SELECT id FROM clock WHERE seen < TIMESTAMP '2024-06-01 09:00:00.0021'",
        (1,), (2,),
    ),
    answered(
        "finer-constants",
        "SELECT id FROM clock WHERE seen IN ('2024-06-01 09:00:00.0021', '2024-06-01 "
        "09:00:00.003')",
        (3,),
    ),
    answered(
        "windows-by-range",
        "SELECT id, rank() OVER (ORDER BY tod) FROM clock",
        (1, 2), (2, 4), (3, 1), (4, 2),
    ),
    answered(
        "windows-by-range",
        "SELECT id, count(*) OVER (ORDER BY encode(day::TEXT, 'hex')::BYTEA DESC) AS n FROM clock "
        "WHERE id < 4",
        (1, 3), (2, 1), (3, 3),
    ),
    answered(
        "windows-by-range",
        "SELECT id, sum(id) OVER (ORDER BY {x: tod} RANGE BETWEEN CURRENT ROW AND UNBOUNDED "
        "FOLLOWING) FROM clock",
        (1, 7), (2, 2), (3, 10), (4, 7),
    ),
    answered("times-of-day", "SELECT id FROM clock WHERE CAST(day AS TIME) = tod", (1,)),
    answered(
        "times-of-day",
        "SELECT coalesce(tod, TIME '00:00') AS x FROM clock WHERE id < 3",
        (dt.time(14),), (dt.time(0),),
    ),
    answered(
        "windows-by-range",
        "SELECT o.id, max(o.tod) OVER (ORDER BY o.tod DESC RANGE UNBOUNDED PRECEDING) FROM t LEFT "
        "JOIN clock o ON t.k = o.id AND o.id < 3 WHERE t.v < 30",
        (1, dt.time(14)), (2, None),
    ),
    answered(
        "lists-in-from",
        "SELECT id, x FROM lists, unnest(e) AS q(x)",
        (1, 1), (1, 2), (4, None), (4, 2), (4, 1),
    ),
    answered(
        "lists-in-from",
        "SELECT l.*, q.x, w.y FROM lists l CROSS JOIN unnest(l.e) AS q(x) JOIN unnest(l.s) w(y) ON "
        "true WHERE l.id = 4 AND q.x > 1",
        (4, [None, 2, 1], ["c", "d"], 2, "c"), (4, [None, 2, 1], ["c", "d"], 2, "d"),
    ),
    answered("names-of-casts", "SELECT v, CAST(v AS TEXT) FROM t WHERE k = 1", (10, "10")),
    answered(
        "names-of-casts",
        "SELECT v, CAST(v AS TEXT) FROM t",
        (10, "10"), (20, "20"), (30, "30"), (40, "40"), (50, "50"),
    ),
    answered(
        "names-of-casts",
        "SELECT sum(k) AS x, sum(CAST(k AS DOUBLE)) AS y, sum(k::DECIMAL(9, 1)) > 7 FROM t",
        (8, 8.0, True),
    ),
    answered(
        "names-of-casts",
        "SELECT k, count(v) AS n, count(CAST(v AS TEXT)) AS m FROM t GROUP BY k, CAST(k AS TEXT) "
        "HAVING count(CAST(v AS TEXT)) > 1",
        (2, 2, 2),
    ),
    answered(
        "failed-rules", "SELECT count(*) FROM t GROUP BY k, CAST(k AS INT)", (1,), (1,), (1,), (2,)
    ),
    answered(
        "failed-rules",
        "SELECT CAST(day AS DATE) AS d, day, count(*) AS n FROM clock WHERE id = 1 GROUP BY 1, 2",
        (dt.date(2024, 6, 10), dt.datetime(2024, 6, 10, 14), 1),
    ),
    answered(
        "nested-keys", "SELECT p.s FROM texts p JOIN texts q ON [p.y] = [q.y]", ("a",), ("a",)
    ),
    answered(
        "nested-keys",
        "SELECT count(*) FROM texts p WHERE [p.y] IN (SELECT [q.y] FROM texts q)",
        (2,),
    ),
    answered(
        "hidden-names", "WITH q(a, b) AS (SELECT k, k FROM t WHERE v > 20) SELECT a, b FROM q",
        (2, 2), (None, None), (3, 3),
    ),
    answered(
        "hidden-names",
        "SELECT k AS a, v AS b FROM t WHERE v < 20 UNION ALL SELECT w, w FROM u WHERE w < 3",
        (1, 10), (1, 1), (2, 2),
    ),
    answered(
        "hidden-names", "SELECT w FROM u WHERE EXISTS (SELECT v, v FROM t WHERE t.k = u.w)",
        (1,), (2,), (3,),
    ),
    answered("empty-sides", "SELECT k FROM t WHERE 1 = 0 UNION ALL VALUES (1)", (1,)),
    answered(
        "empty-sides",
        "WITH q AS (SELECT v FROM t WHERE false) SELECT v FROM q UNION (SELECT DISTINCT k FROM t)",
        (1,), (2,), (3,), (None,),
    ),
    answered(
        "recursive-union",
        "WITH RECURSIVE r(n, k, v) AS (SELECT 0, * FROM (VALUES (NULL, 2), (2, NULL), (5, 5)) q "
        "UNION SELECT n, k, v FROM r) SELECT k, v FROM r",
        (None, 2), (2, None), (5, 5),
    ),
    answered(
        "recursive-union",
        "WITH RECURSIVE r AS (SELECT 0 AS n, * FROM (VALUES (NULL, 2), (2, NULL), (5, 5)) q(k, v) "
        "UNION SELECT x.n + 1, x.v, x.k FROM r AS x WHERE n < 1) SELECT * FROM r",
        (0, None, 2), (0, 2, None), (0, 5, 5), (1, None, 2), (1, 2, None), (1, 5, 5),
    ),
    answered(
        "recursive-types",
        "WITH RECURSIVE r(n, k) AS (SELECT 0, CASE WHEN v > 10 THEN k::INT ELSE k END FROM t "
        "UNION ALL SELECT n + 1, k FROM r WHERE n < 1) SELECT n, sum(k) FROM r GROUP BY n",
        (0, 8), (1, 8),
    ),
    answered(
        "recursive-types",
        "WITH RECURSIVE r(n, k) AS (SELECT 0, k FROM (SELECT 1::INT AS k UNION SELECT 2.5) q "
        "UNION ALL SELECT n + 1, k + 1 FROM r WHERE n < 1) SELECT * FROM r",
        (0, Decimal("1.0")), (0, Decimal("2.5")), (1, Decimal("2.0")), (1, Decimal("3.5")),
    ),
    refused(
        "recursive-reads",
        "WITH RECURSIVE r(k) AS (SELECT 1 UNION SELECT k FROM t WHERE k IN (SELECT k + 1 FROM r)) "
        "SELECT k FROM r",
        "join 'r' in FROM",
    ),
    refused(
        "recursive-reads",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT k FROM t WHERE EXISTS (SELECT 1 FROM r "
        "WHERE n + 1 = k)) SELECT n FROM r",
        "join 'r' in FROM",
    ),
    refused(
        "recursive-reads",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT a.n + b.n FROM r a JOIN r b ON a.n = "
        "b.n WHERE a.n < 9) SELECT n FROM r",
        "reads itself 2 times",
    ),
    answered(
        "lists-of-outer-columns",
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND w = ANY([t.k, 3]))",
        (10,), (20,), (30,),
    ),
    answered(
        "lists-of-outer-columns",
        "SELECT v, [v] AS l FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND [[t.k], [w]] "
        "= [[u.k], [1]])",
        (10, [10]),
    ),
)  # fmt: skip
