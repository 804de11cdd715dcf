"""Statements with times of day, casts, lists and structs, with the answers for users."""

import datetime as dt

from tests.engine.known_faults.case import answered

OF_TYPES = (
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
)  # fmt: skip
