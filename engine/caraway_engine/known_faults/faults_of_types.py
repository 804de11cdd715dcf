"""Known faults of times, texts, lists and names."""

from caraway_engine.known_faults.known_fault import KnownFault, Remedy

OF_TYPES = (
    KnownFault(
        "zone-forgotten",
        "A TIMESTAMPTZ value has no zone, and takes the zone of the value it is compared with.",
        Remedy.REWRITTEN,
        "SELECT id FROM moments WHERE ny = TIMESTAMP '2024-06-01T10:00:00Z'",
        upstream=("datafusion#13212",),
    ),
    KnownFault(
        "intervals-by-parts",
        "Intervals are compared by months, then days, then the rest, so the difference of two "
        "times is less than one day.",
        Remedy.REWRITTEN,
        "SELECT INTERVAL '1 month' > INTERVAL '40 days'",
        upstream=("datafusion#8468",),
    ),
    KnownFault(
        "lists-with-null",
        "Lists of IN and NOT IN, and those that ORs of `=` become, are merged as if neither the "
        "value nor anything in them were NULL.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE k NOT IN (1) OR k NOT IN (2)",
        upstream=("datafusion#24246",),
        fixed_by="datafusion#24258",
    ),
    KnownFault(
        "similar-to",
        "The pattern of SIMILAR TO is taken for a regular expression that a part of the text may "
        "match, so `%` and `_` match only themselves.",
        Remedy.REWRITTEN,
        "SELECT s SIMILAR TO '%a' FROM texts",
        upstream=("datafusion#22263",),
        fixed_by="datafusion#23188",
    ),
    KnownFault(
        "any-text",
        "`x ~ '.*'` is false where x is NULL.",
        Remedy.REWRITTEN,
        "SELECT y ~* '.*' FROM texts",
        upstream=("datafusion#24379",),
        fixed_by="datafusion#24380",
    ),
    KnownFault(
        "repeated-keys",
        "A sort key that occurs twice in an aggregate or after DISTINCT ON is an error.",
        Remedy.REWRITTEN,
        "SELECT array_agg(v ORDER BY -v, -v) FROM t",
        upstream=("datafusion#25398",),
    ),
    KnownFault(
        "ordered-aggregates",
        "ORDER BY in an aggregate that does not depend on it is an error.",
        Remedy.REWRITTEN,
        "SELECT k, avg(v ORDER BY v) FROM t GROUP BY k",
        upstream=("datafusion#25401", "datafusion#25055"),
    ),
    KnownFault(
        "never-null",
        "Groups by IS TRUE and IS FALSE are an error, as are some values that are never NULL and "
        "occur twice in aggregates.",
        Remedy.SET,
        "SELECT DISTINCT (k = 1) IS TRUE FROM t",
        upstream=("datafusion#24096", "datafusion#25369"),
    ),
    KnownFault(
        "limited-groups-of-windows",
        "DISTINCT or GROUP BY with LIMIT over a window is an error.",
        Remedy.SET,
        "SELECT DISTINCT k, count(*) OVER (PARTITION BY k) FROM t LIMIT 9",
        upstream=("datafusion#25350",),
        fixed_by="datafusion#25349",
    ),
    KnownFault(
        "times-of-day",
        "TIME literals and casts are nanoseconds, which are not comparable with the microseconds "
        "of files and databases.",
        Remedy.REWRITTEN,
        "SELECT id FROM clock WHERE tod > TIME '12:00'",
        upstream=("datafusion#4171",),
    ),
    KnownFault(
        "finer-constants",
        "A timestamp with more digits than a column has is cut off before they are compared.",
        Remedy.REWRITTEN,
        "SELECT id FROM clock WHERE seen < TIMESTAMP '2024-06-01 09:00:00.0021'",
        upstream=("datafusion#22756",),
    ),
    KnownFault(
        "windows-by-range",
        "A window that sorts by times of day, bytes, durations, intervals, structs or maps is an "
        "error, unless its frame is ROWS or GROUPS.",
        Remedy.REWRITTEN,
        "SELECT id, rank() OVER (ORDER BY tod) FROM clock",
        upstream=("datafusion#24915", "datafusion#24514", "datafusion#24327"),
    ),
    KnownFault(
        "lists-in-from",
        "`unnest` of a column is an error in FROM.",
        Remedy.REWRITTEN,
        "SELECT id, x FROM lists, unnest(e) AS q(x)",
        upstream=("datafusion#10048", "datafusion#13659"),
    ),
    KnownFault(
        "names-of-casts",
        "A cast has the name of what it casts, so a cast and its column in aggregates or in one "
        "SELECT, and two casts in windows, are an error.",
        Remedy.REWRITTEN,
        "SELECT v, CAST(v AS TEXT) FROM t",
        upstream=("datafusion#4478", "datafusion#18975"),
    ),
    KnownFault(
        "hidden-names",
        "Two columns of one name are an error also where nobody sees their names: after UNION, "
        "EXCEPT and INTERSECT, in EXISTS, and where a list names the columns.",
        Remedy.REWRITTEN,
        "SELECT w FROM u WHERE EXISTS (SELECT v, v FROM t WHERE t.k = u.w)",
        upstream=("datafusion#10244", "datafusion#6543"),
    ),
    KnownFault(
        "empty-sides",
        "A UNION of different names is an error if its first side is always empty.",
        Remedy.REWRITTEN,
        "SELECT k FROM t WHERE 1 = 0 UNION ALL VALUES (1)",
    ),
    KnownFault(
        "recursive-union",
        "A recursive CTE with UNION loses rows after two that have one hash, such as rows with "
        "NULL in different columns.",
        Remedy.REWRITTEN,
        "WITH RECURSIVE r(n, k, v) AS (SELECT 0, * FROM (VALUES (NULL, 2), (2, NULL), (5, 5)) q "
        "UNION SELECT n, k, v FROM r) SELECT k, v FROM r",
    ),
    KnownFault(
        "recursive-types",
        "A recursive CTE is an error if CASE or a set operation in its first part has two types.",
        Remedy.REWRITTEN,
        "WITH RECURSIVE r(n, k) AS (SELECT 0, k FROM (SELECT 1::INT AS k UNION SELECT 2.5) q "
        "UNION ALL SELECT n + 1, k + 1 FROM r WHERE n < 1) SELECT * FROM r",
        upstream=("datafusion#9794",),
    ),
    KnownFault(
        "recursive-reads",
        "A recursive CTE that reads itself in a subquery of an expression, or twice, is an error.",
        Remedy.REFUSED,
        "WITH RECURSIVE r(k) AS (SELECT 1 UNION SELECT k FROM t WHERE k IN (SELECT k + 1 FROM r)) "
        "SELECT k FROM r",
    ),
    KnownFault(
        "lists-of-outer-columns",
        "A list in brackets does not find columns of an outer query.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND w = ANY([t.k, 3]))",
    ),
    KnownFault(
        "failed-rules",
        "GROUP BY with a column and its cast is an error: a rule of the optimizer fails.",
        Remedy.SET,
        "SELECT count(*) FROM t GROUP BY k, CAST(k AS INT)",
    ),
    KnownFault(
        "distinct-marks",
        "IN with a SELECT DISTINCT of an expression is an error below OR, NOT and CASE.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE k = 1 OR k IN (SELECT DISTINCT k + 1 FROM u)",
    ),
    KnownFault(
        "nested-keys",
        "Joins by lists and structs with NULL in them lose rows, because they filter one side by "
        "the least and greatest key of the other.",
        Remedy.PLANNED,
        "SELECT p.s FROM texts p JOIN texts q ON [p.y] = [q.y]",
    ),
)
