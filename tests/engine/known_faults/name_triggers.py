"""The parts of statements that trigger each remedy, for random statements."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trigger:
    """The parts of a statement that trigger a remedy: a FROM, its columns, values, and conditions.

    `table` is the name that CTEs and derived tables of the statement may take.
    """

    table: str
    columns: tuple[str, ...]
    values: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    from_: str = ""
    always: str = ""
    groupings: tuple[str, ...] = ("{}",)
    shapes: tuple[str, ...] = ("plain", "grouped", "distinct", "set", "nested")


OF_T = ("k", "v")
_OF_FLOATS = ("id", "g", "f", "i")
# Zeros of both signs are one value in DuckDB; they are only in rows with a larger id.
_FEW = "id < 6"
TRIGGERS = {
    "fields-of-files": Trigger(
        "required", ("id",), ("s['a']", "required.s['a'] + id"), ("s['a'] > 5", "s['a'] IS NULL"),
        ("sum(s['a'])", "count(s['a'])", "max(s['b'])"),
    ),
    "values-under-null": Trigger(
        "nested", ("id",),
        ("nullif(s, {a: 2})['a']", "(CASE WHEN id < 2 THEN s END)['a']"),
        ("nullif(s, {a: 2})['a'] > 0", "(CASE WHEN id > 1 THEN s END)['a'] IS NULL"),
        ("sum(nullif(s, {a: 1})['a'])", "count((CASE WHEN id > 1 THEN s END)['a'])"),
    ),
    "nan-in-statistics": Trigger(
        "floats", _OF_FLOATS, ("1 - f", "f + 1"), ("f < 3", "i >= 1 OR f > 1"),
        ("count(f)", "min(id)"), always=_FEW,
    ),
    "grouped-extremes": Trigger(
        "floats", _OF_FLOATS, ("1 - f",), ("id <> 2",),
        ("min(f)", "max(f)", "max(i)", "min(i)"), always=_FEW, shapes=("grouped", "nested"),
    ),
    "zeros-in-windows": Trigger(
        "floats", ("id", "g"),
        ("row_number() OVER (PARTITION BY f ORDER BY id)", "count(*) OVER (PARTITION BY f, g)",
         "rank() OVER (ORDER BY f, id)"),
        shapes=("plain", "set", "nested"),
    ),
    "zeros-in-keys": Trigger(
        "floats", ("id", "g", "f"),
        ("nullif(f, 5)", "CASE f WHEN 0 THEN 1 ELSE 2 END"),
        ("nullif(f, 0) IS NULL",), ("count(DISTINCT f)", "sum(id)"), always="f < 9",
    ),
    "signed-nan": Trigger(
        "floats", ("id", "g"), ("i - i > 0.5", "g + id"),
        ("i - i > 0.5", "i - i BETWEEN -1 AND 1"), ("count(f)", "min(id)"),
    ),
    "zeros-in-lists": Trigger(
        "floats", ("id", "g"), ("g + id",), ("f IN (0, 5, 6, 7)", "f NOT IN (-0.0, 1, 6, 7)"),
        ("count(f)",),
    ),
    "cut-percentiles": Trigger(
        "t", OF_T, ("v - 1",), ("v > 10",),
        ("percentile_cont(0.7) WITHIN GROUP (ORDER BY v)", "quantile_cont(k + v, 0.3)",
         "percentile_cont(0.1) WITHIN GROUP (ORDER BY v DESC)"),
        shapes=("grouped", "nested"),
    ),
    "moving-infinity": Trigger(
        "floats", ("id", "g", "f"),
        ("sum(f) OVER (ORDER BY id ROWS 1 PRECEDING)",
         "avg(i) OVER (ORDER BY id ROWS 1 PRECEDING)"),
        always=_FEW, shapes=("plain", "set", "nested"),
    ),
    "integer-overflow": Trigger(
        "t", OF_T, ("k + v", "v - k", "k * v", "-v", "v + k + v - k", "-k"),
        ("k + v > 20", "-v < -10", "v - k < 40"), ("sum(k + v)", "max(-v)"),
    ),
    "sum-overflow": Trigger(
        "t", OF_T, ("v - 1",), ("v > 10",), ("sum(v)", "sum(k)", "avg(v)", "sum(v) + sum(k)"),
        shapes=("grouped", "nested"),
    ),
    "sums-of-sums": Trigger(
        "big", ("id", "c"), ("c + 1",), ("c > 1",),
        ("sum(c)", "count(DISTINCT id)", "sum(DISTINCT c)"), shapes=("grouped", "nested"),
    ),
    "in-loses-null": Trigger(
        "t", OF_T, ("v + 1",),
        ("(k IN (SELECT k FROM u)) IS NULL", "k NOT IN (SELECT k FROM u) OR v = 10",
         "(k IN (SELECT k FROM u WHERE w < v)) IS NOT TRUE", "NOT (v IN (SELECT w AS k FROM u))",
         "k NOT IN (SELECT k FROM u WHERE u.k = t.k)",
         "(k IN (SELECT k FROM t WHERE (k IN (SELECT k FROM u)) IS NULL)) IS NULL"),
        ("count(k)",),
    ),
    "captured-column": Trigger(
        "t", OF_T, ("v + 1",),
        ("v > ALL (SELECT v FROM t WHERE k = 2)", "k = ANY (SELECT k FROM t WHERE v < 30)",
         "v <> ALL (SELECT k AS v FROM t WHERE k IS NOT NULL)",
         "NOT (k >= ALL (SELECT k FROM u WHERE k < 3))", "v = (SELECT max(v) FROM t)",
         "EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND w < ANY (SELECT v FROM t))"),
        ("max(v)",),
    ),
    "count-of-nothing": Trigger(
        "t", OF_T, ("v + 1",),
        ("EXISTS (SELECT count(*) FROM u WHERE u.k = t.k)",
         "EXISTS (SELECT max(w) AS k FROM u WHERE u.k = t.k HAVING count(*) = 0)",
         "0 IN (SELECT count(*) AS v FROM u WHERE u.k = t.k)"),
        ("count(*)",),
    ),
    "using-loses-right": Trigger(
        "t", ("k", "v", "w"), ("v + w", "w"), ("k > 1", "k IS NULL", "w > 2"),
        ("count(*)", "max(w)"), from_="t FULL JOIN u USING (k)", shapes=("plain", "grouped", "set"),
    ),
    "using-ambiguous": Trigger(
        "t", ("k", "v", "w"), ("v + w", "w"), ("k > 1", "k IN (2, 3)"),
        ("count(*)", "max(w)"), from_="t LEFT JOIN u USING (k)", shapes=("plain", "grouped", "set"),
    ),
    "null-safe-joins": Trigger(
        "t", ("v", "w"), ("w + 1",), ("t.v = u.w * 10", "t.k = u.k", "v > 10 AND t.k = u.k"),
        ("count(*)", "max(w)"), from_="t JOIN u ON t.k IS NOT DISTINCT FROM u.k",
        shapes=("plain", "grouped", "set"),
    ),
    "constant-not-in": Trigger(
        "t", OF_T, ("v + 1",),
        ("7 NOT IN (SELECT k FROM u)", "NOT 7 IN (SELECT k FROM u WHERE k > 1)",
         "coalesce(2, k) NOT IN (SELECT w AS k FROM u WHERE w > 2)"),
        ("count(k)",),
    ),
    "constant-in": Trigger(
        "t", OF_T, ("v + 1",),
        ("2 IN (SELECT k FROM u WHERE k = 2)", "2 NOT IN (SELECT w AS k FROM u WHERE w = 9)",
         "3 IN (SELECT k FROM t WHERE v = 50) OR k = 1"),
        ("count(k)",),
    ),
    "constant-columns": Trigger(
        "q", ("k", "v", "d"), ("v + d",), ("k = d AND d + 0 = k", "d = k", "k >= d AND v > 20"),
        ("count(k)",), from_="(SELECT 2 AS d, k, v FROM t WHERE k = 2) AS q",
        shapes=("plain", "grouped", "set"),
    ),
    "rows-of-nothing": Trigger(
        "t", ("k", "c", "n"), ("n + k",), ("c = 2", "c = 1 AND n > 0"), ("sum(n)", "max(c)"),
        from_="t JOIN (SELECT 1 AS c, count(*) AS n FROM u) AS q ON t.k < q.n",
        shapes=("plain", "grouped", "set"),
    ),
    "negated-bits": Trigger(
        "t", OF_T, ("-(k | 4)", "-(v & 12)", "- -(k & v)"), ("-(k | 1) < -1", "-(v & k) = 0"),
        ("sum(-(k | v))", "max(-(k & 3))"),
    ),
    "rounded-decimals": Trigger(
        "big", ("id", "c"), ("round(c, 1)", "round(c, 0) + id"),
        ("round(c, 1) = c", "round(c, 1) IN (SELECT c FROM big)", "round(c, 0) > 1.50"),
        ("sum(round(c, 1))", "max(round(c, 1))"),
    ),
    "times-of-day": Trigger(
        "clock", ("id", "tod", "day"), ("coalesce(tod, TIME '01:00')", "CAST(day AS TIME)"),
        ("tod > TIME '12:00'", "CAST(day AS TIME) = tod", "tod IN (TIME '10:00', TIME '11:00')"),
        shapes=("plain", "distinct", "set", "nested"),
    ),
    "finer-constants": Trigger(
        "clock", ("id", "seen", "day"), ("seen < TIMESTAMP '2024-06-01 09:00:00.0021'",),
        ("seen >= '2024-06-01 09:00:00.0021'",
         "seen BETWEEN '2024-06-01 09:00:00.0011' AND '2024-06-01 09:00:00.0029'"),
        shapes=("plain", "distinct", "set", "nested"),
    ),
    "windows-by-range": Trigger(
        "clock", ("id", "tod", "day"),
        ("rank() OVER (ORDER BY tod)", "count(id) OVER (ORDER BY tod DESC, id)",
         "min(id) OVER (PARTITION BY day ORDER BY tod)"),
        shapes=("plain", "set", "nested"),
    ),
    "lists-in-from": Trigger(
        "lists", ("id", "x"), ("x + 1", "coalesce(q.x, id)"), ("x > 1", "q.x IS NULL OR id = 1"),
        ("count(x)", "max(q.x)"), from_="lists CROSS JOIN unnest(lists.e) AS q(x)",
        shapes=("plain", "grouped", "set"),
    ),
    "names-of-casts": Trigger(
        "t", OF_T, ("CAST(v AS TEXT)", "CAST(v AS DOUBLE)", "CAST(k AS TEXT)"), ("v > 10",),
        ("count(CAST(v AS TEXT))", "sum(CAST(v AS DOUBLE))", "sum(v)"),
        shapes=("plain", "grouped", "nested"),
    ),
    "hidden-names": Trigger(
        "t", OF_T, ("v + 1",), ("v > 10",), ("count(k)", "sum(v)"),
        from_="(WITH q(k, v) AS (SELECT v, v FROM t) SELECT * FROM q) AS t",
    ),
    "empty-sides": Trigger(
        "t", OF_T, ("v + 1",), ("v > 10",), ("count(k)", "sum(v)"),
        from_="(SELECT k, v FROM t WHERE 1 = 0 UNION ALL (SELECT DISTINCT v, k FROM t)) AS t",
    ),
    "row-values": Trigger(
        "t", OF_T, ("v + 1",), ("(k, v) < (2, 30)", "NOT (k, v) IN ((2, 30), (1, 40))"),
        ("count(k)",), always="k > 0",
    ),
    "lists-of-outer-columns": Trigger(
        "t", OF_T, ("v + 1",),
        ("EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND w < 9 AND array_has([t.k, 2], 2))",),
        ("count(k)",),
    ),
    "recursive-union": Trigger(
        "t", ("n", *OF_T), ("n + k",), ("v > 2",), ("count(k)", "sum(v)"),
        from_="(WITH RECURSIVE r(n, k, v) AS (SELECT 0, k, v FROM t UNION SELECT n + 1, v, k "
        "FROM r WHERE n < 2) SELECT * FROM r) AS t",
    ),
    "recursive-types": Trigger(
        "t", ("n", *OF_T), ("n + k",), ("v > 10",), ("count(k)", "sum(v)"),
        from_="(WITH RECURSIVE r(n, k, v) AS (SELECT 0, CASE WHEN v > 10 THEN CAST(k AS INT) "
        "ELSE k END, v FROM t UNION ALL SELECT n + 1, k, v FROM r WHERE n < 2) SELECT * FROM r) "
        "AS t",
    ),
    "distinct-marks": Trigger(
        "t", OF_T, ("v + 1",),
        ("k = 1 OR k IN (SELECT DISTINCT k + 1 FROM u)",
         "k + 1 NOT IN (SELECT DISTINCT w AS k FROM u WHERE w > 2)"),
        ("count(k)",),
    ),
    "false-orders": Trigger(
        "t", OF_T,
        ("max(k) OVER (ORDER BY v DESC, k ROWS 1 PRECEDING)", "min(k) OVER (ORDER BY v)",
         "count(*) OVER (PARTITION BY k ORDER BY v ROWS 1 PRECEDING)"),
        shapes=("plain", "set", "nested"),
    ),
    "constant-in-outer-join": Trigger(
        "t", ("v", "w"), ("w", "w + 1", "coalesce(w, 0)",
         "row_number() OVER (PARTITION BY w ORDER BY v)"),
        ("v > 10",), ("count(*)", "max(v)"),
        from_="t LEFT JOIN (SELECT k, w FROM u WHERE w = 2) AS u ON t.k = u.k",
        shapes=("plain", "grouped", "distinct", "set"),
    ),
    "sorted-totals": Trigger(
        "t", OF_T, (), ("k = 2", "v > 10"), ("count(*)", "sum(v)"),
        groupings=("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"), shapes=("grouped",),
    ),
    "window-names": Trigger(
        "t", OF_T,
        ("1 + sum(v) OVER (w ROWS 1 PRECEDING)", "count(*) OVER w"),
        from_="t", always="true WINDOW w AS (ORDER BY v)", shapes=("plain",),
    ),
    "zone-forgotten": Trigger(
        "moments", ("id", "ny"), ("id + 1",),
        ("\"at\" < TIMESTAMPTZ '2024-06-01 12:00:00+00'",
         "ny > TIMESTAMPTZ '2024-06-01 08:00:00-04'"),
        ("max(ny)",),
    ),
    "intervals-by-parts": Trigger(
        "spans", ("id", "d"), ("d",), ("d > INTERVAL '28 days'", "d <= INTERVAL '1 month'"),
        ("count(d)",),
        from_="(SELECT id, CASE id % 3 WHEN 1 THEN INTERVAL '1 month' "
        "WHEN 2 THEN INTERVAL '29 days' ELSE INTERVAL '5 days' END AS d FROM floats) AS spans",
        shapes=("plain", "set"),
    ),
    "lists-with-null": Trigger(
        "t", OF_T, ("v + 1",), ("k IN (1, NULL, v) OR k NOT IN (2, v)",
         "NOT (k IN (1, NULL) AND v IN (10))", "k NOT IN (1) OR k NOT IN (2)"),
        ("count(*)",),
    ),
    "repeated-keys": Trigger(
        "t", OF_T, ("v + 1",), ("v > 10",),
        ("string_agg(CAST(v AS VARCHAR), ',' ORDER BY v, v)", "count(v)"),
        shapes=("grouped", "nested"),
    ),
    "distinct-from-too-far": Trigger(
        "t", OF_T, ("v + 1",),
        ("k IS DISTINCT FROM 2 AND v > 10 OR k IS NULL", "NOT k IS NOT DISTINCT FROM 2 OR v = 10"),
        ("count(*)",),
    ),
    "sorted-offset": Trigger(
        "t", OF_T, ("v + 1",), ("v > 10",), ("count(*)",),
        from_="(SELECT k, v FROM t ORDER BY v, k LIMIT 4 OFFSET 1) AS t",
    ),
    "order-of-offset": Trigger(
        "t", OF_T, ("v + 1",), ("v > 10",), ("count(*)", "max(v)"),
        from_="(SELECT k, v FROM t ORDER BY v, k OFFSET 2) AS t",
    ),
    "ordered-aggregates": Trigger(
        "t", OF_T, (), ("k > 0",), ("count(v ORDER BY k)", "min(v ORDER BY k)", "sum(v)"),
        shapes=("grouped", "nested"),
    ),
    "similar-to": Trigger(
        "texts", ("s", "y"), ("s || y", "y SIMILAR TO 'c|d'"),
        ("y SIMILAR TO 'c|d'", "s NOT SIMILAR TO 'b+'"), ("count(y)", "min(s)"),
    ),
    "any-text": Trigger(
        "texts", ("s", "y"), ("y ~ '.*'", "s || y"), ("NOT (y ~ '.*')", "s ~ '.*'"), ("count(y)",),
    ),
    "except-all": Trigger("u", ("k", "w"), ("w + 1",), ("w > 1",), ("count(*)",), shapes=("set",)),
}  # fmt: skip
