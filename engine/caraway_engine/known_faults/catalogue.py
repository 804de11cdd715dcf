"""The known faults of DataFusion, by name, with what will make each remedy unnecessary.

`docs/reference/sql-limits.md` lists them; a test writes that list from this one.
"""

from dataclasses import dataclass
from enum import Enum


class Remedy(Enum):
    """The protection of users from a fault."""

    REWRITTEN = "the statement is rewritten"
    GUARDED = "a check of the values fails the statement"
    REFUSED = "the statement is refused"
    SET = "an engine setting is changed"
    PLANNED = "the plan is changed"


@dataclass(frozen=True, slots=True)
class KnownFault:
    """A fault and its remedy.

    `statement` is the smallest one that shows it, over the tables of its tests. `upstream` are
    issues and pull requests as `repository#number`; empty if none was found. `fixed_by` is a
    change that was merged after the newest version in `seen_in`: a release with it drops the
    remedy. Without it, the first version over which the tests of the fault fail does. `shown_in`
    is the module of its tests if the statement alone does not show it.
    """

    name: str
    sentence: str
    remedy: Remedy
    statement: str
    upstream: tuple[str, ...] = ()
    fixed_by: str = ""
    seen_in: tuple[str, ...] = ("55.0.0",)
    shown_in: str = ""


FAULTS = (
    KnownFault(
        "integer-overflow",
        "Integer overflow in `+`, `-`, `*` and negation wraps around silently.",
        Remedy.GUARDED,
        "SELECT x + 1 FROM big",
        upstream=("datafusion#17539", "datafusion#3520"),
    ),
    KnownFault(
        "sum-overflow",
        "A sum of BIGINT, DECIMAL or durations that overflows wraps around silently, as does the "
        "average of durations.",
        Remedy.GUARDED,
        "SELECT sum(x) FROM big",
        upstream=("datafusion#17539", "datafusion#16406"),
    ),
    KnownFault(
        "sums-of-sums",
        "A sum of decimals next to a DISTINCT aggregate gets a wider type that cannot be compared.",
        Remedy.REWRITTEN,
        "SELECT CASE WHEN sum(c) < 5 THEN 1 END, count(DISTINCT id) FROM big",
        upstream=("datafusion#17699",),
    ),
    KnownFault(
        "in-loses-null",
        "`x IN (subquery)` is false where it should be NULL, under NOT, OR, IS NULL and CASE, and "
        "NOT IN with a correlated subquery is false where that has no rows.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE (k IN (SELECT k FROM u)) IS NULL",
        upstream=("datafusion#25347", "datafusion#8241"),
    ),
    KnownFault(
        "captured-column",
        "In `x > ALL (subquery)` and ANY, a column of an outer table becomes the one of an inner "
        "table with the same name.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE k = ALL (SELECT k FROM t WHERE k = 2)",
        upstream=("datafusion#25258",),
    ),
    KnownFault(
        "count-of-nothing",
        "A correlated subquery with an aggregate returns no row instead of one, in EXISTS, IN, "
        "ANY and ALL.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE 0 IN (SELECT count(*) FROM u WHERE u.k = t.k)",
        upstream=("datafusion#24960",),
    ),
    KnownFault(
        "correlated-limit",
        "LIMIT and OFFSET of a correlated subquery in EXISTS, IN, ANY and ALL are applied to all "
        "outer rows together, or not at all.",
        Remedy.REFUSED,
        "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k OFFSET 2)",
        upstream=("datafusion#25283",),
    ),
    KnownFault(
        "late-comparisons",
        "A correlated subquery with windows, ROLLUP, CUBE or GROUPING SETS, or after LATERAL with "
        "HAVING and no GROUP BY, compares with the outer columns after it has computed these.",
        Remedy.REFUSED,
        "SELECT v FROM t WHERE v / 10 IN (SELECT count(*) OVER () FROM u WHERE u.k = t.k)",
        upstream=("datafusion#25519", "datafusion#21198"),
    ),
    KnownFault(
        "except-all",
        "EXCEPT ALL and INTERSECT ALL ignore how many times a row occurs.",
        Remedy.REWRITTEN,
        "SELECT k FROM u EXCEPT ALL SELECT k FROM t",
        upstream=("datafusion#12956", "datafusion#12955"),
    ),
    KnownFault(
        "using-loses-right",
        "A column of USING is taken from the left side, even in FULL and RIGHT joins.",
        Remedy.REWRITTEN,
        "SELECT * FROM t FULL JOIN u USING (k) WHERE v IS NULL",
        upstream=("datafusion#22881",),
    ),
    KnownFault(
        "using-ambiguous",
        "An unqualified column of USING is ambiguous in WHERE and in the ON of other joins.",
        Remedy.REWRITTEN,
        "SELECT v FROM t NATURAL JOIN u WHERE k IN (1, 5)",
        upstream=("datafusion#22998",),
    ),
    KnownFault(
        "null-safe-joins",
        "Of inner joins by `=` and IS NOT DISTINCT FROM, and `=` in WHERE above them, all let NULL "
        "equal NULL, or none does.",
        Remedy.REWRITTEN,
        "SELECT v FROM matched WHERE a = b AND v <> 20",
    ),
    KnownFault(
        "constant-not-in",
        "NOT IN with a subquery ignores its NULLs if the value before it is a constant.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE 7 NOT IN (SELECT k FROM u)",
    ),
    KnownFault(
        "constant-in",
        "A constant is not found by IN in a subquery that compares the column with it.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE 2 IN (SELECT k FROM u WHERE k = 2)",
    ),
    KnownFault(
        "constant-columns",
        "Two comparisons with a constant find no rows if it is on the left of one, or a column of "
        "a subquery or a view.",
        Remedy.REWRITTEN,
        "SELECT s FROM texts WHERE s = 'a' AND 'a' = s",
    ),
    KnownFault(
        "rows-of-nothing",
        "A filter that names no column is applied below an aggregate without GROUP BY or with "
        "grouping sets, which then has a row of nothing.",
        Remedy.REWRITTEN,
        "SELECT n FROM (SELECT 1 c, count(*) n FROM t) q WHERE c = 2",
    ),
    KnownFault(
        "negated-bits",
        "`-(a | b)` is computed as `-a & -b`, and `-(a & b)` as `-a | -b`.",
        Remedy.REWRITTEN,
        "SELECT -(k | 4) FROM t",
    ),
    KnownFault(
        "rounded-decimals",
        "`round(d, 1)` of a DECIMAL is compared without its scale, in joins, IN and set "
        "operations, or is an error.",
        Remedy.REWRITTEN,
        "SELECT a.id FROM big a JOIN big b ON round(a.c, 1) = b.c",
    ),
    KnownFault(
        "false-orders",
        "Running counts, minima and maxima count as sorted, whatever their frame is, as do the "
        "times of sorted timestamps: ORDER BY is left out, and windows and groups over them break.",
        Remedy.REWRITTEN,
        "SELECT max(v) OVER (ORDER BY v DESC ROWS 1 PRECEDING) AS m FROM t ORDER BY m LIMIT 1",
    ),
    KnownFault(
        "grouped-extremes",
        "Grouped `min` and `max` of floats ignore NaN, and `min` of infinities is the largest "
        "finite number.",
        Remedy.REWRITTEN,
        "SELECT g, min(f), max(f) FROM floats GROUP BY g",
        upstream=("datafusion#24432",),
    ),
    KnownFault(
        "zeros-in-windows",
        "PARTITION BY and ORDER BY of windows treat 0.0 and -0.0 as different.",
        Remedy.REWRITTEN,
        "SELECT id, rank() OVER (ORDER BY f) FROM floats WHERE g = 3",
    ),
    KnownFault(
        "zeros-in-keys",
        "ORDER BY puts -0.0 before 0.0, also in aggregates; `nullif`, CASE with an operand and "
        "DISTINCT in aggregates treat them as different.",
        Remedy.REWRITTEN,
        "SELECT id FROM floats WHERE g = 3 ORDER BY f DESC, id LIMIT 1",
    ),
    KnownFault(
        "signed-nan",
        "A NaN with a sign, which x86 computes, is less than all numbers and equals no other NaN.",
        Remedy.REWRITTEN,
        "SELECT id FROM floats WHERE i - i > 1",
    ),
    KnownFault(
        "zeros-in-lists",
        "-0.0 does not match 0.0 in an IN list, and a column is taken to have only one of them in "
        "`f <> -0.0 AND f = 0.0`.",
        Remedy.REWRITTEN,
        "SELECT id FROM floats WHERE f IN (7.5, 8.5, 9.5, 0.0)",
        upstream=("datafusion#25186",),
    ),
    KnownFault(
        "moving-infinity",
        "A sum or an average over a moving frame stays NaN after an infinity has left the frame.",
        Remedy.REWRITTEN,
        "SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM floats",
    ),
    KnownFault(
        "nan-in-statistics",
        "Rows with NaN in Parquet files are lost when row groups are pruned, in comparisons and "
        "top-k queries by a float.",
        Remedy.REWRITTEN,
        "SELECT id FROM floats WHERE f = 'NaN'",
        upstream=("datafusion#15812",),
    ),
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
    KnownFault(
        "distinct-from-too-far",
        "AND and OR after IS DISTINCT FROM are read as a part of its right side.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE (k = 2) IS DISTINCT FROM true AND v = 10",
        upstream=("datafusion#23692",),
        fixed_by="datafusion-sqlparser-rs#2436",
    ),
    KnownFault(
        "sorted-offset",
        "Rows are lost if the result of a LIMIT with OFFSET is sorted, by ORDER BY, a window or an "
        "aggregate.",
        Remedy.REWRITTEN,
        "SELECT c FROM (SELECT c FROM named LIMIT 1 OFFSET 1) q ORDER BY c",
        fixed_by="datafusion#24958",
    ),
    KnownFault(
        "order-of-offset",
        "A subquery with ORDER BY and OFFSET but without LIMIT skips any rows.",
        Remedy.REWRITTEN,
        "SELECT sum(v) FROM (SELECT k, v FROM t ORDER BY k, v DESC OFFSET 3) q",
        upstream=("datafusion#23534",),
        shown_in="tests/engine/known_faults/test_ordering.py",
    ),
    KnownFault(
        "constant-in-outer-join",
        "A column that a filter fixes to one value counts as constant above an outer join that "
        "makes it NULL: ORDER BY ignores it, and GROUP BY, DISTINCT and windows return a group "
        "twice.",
        Remedy.REWRITTEN,
        "SELECT DISTINCT count(*) OVER (PARTITION BY o.c) FROM many t LEFT JOIN named o ON t.k = "
        "o.k AND o.c > 3",
    ),
    KnownFault(
        "sorted-totals",
        "Grouping sets over sorted rows, or by a constant, count as sorted or constant, although "
        "their totals are NULL.",
        Remedy.REWRITTEN,
        "SELECT sum(count(*)) OVER (PARTITION BY 1 + 1) AS n FROM t GROUP BY CUBE (v, 1 + 1)",
    ),
    KnownFault(
        "window-names",
        "`OVER (w ROWS ...)` inside another expression loses the definition of w.",
        Remedy.REWRITTEN,
        "SELECT v, 1 + sum(v) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (SELECT v "
        "FROM t ORDER BY v DESC LIMIT 9) q WINDOW w AS (ORDER BY v)",
    ),
    KnownFault(
        "chance-in-cte",
        "A CTE that calls random() or uuid() is recomputed for each reference.",
        Remedy.REFUSED,
        "WITH c AS (SELECT random() AS r) SELECT a.r = b.r FROM c a, c b",
        upstream=("datafusion#10337",),
    ),
    KnownFault(
        "chance-between",
        "random() and uuid() before BETWEEN are computed for each bound.",
        Remedy.REFUSED,
        "SELECT random() BETWEEN 0.4 AND 0.6",
        upstream=("datafusion#25457",),
    ),
    KnownFault(
        "cancelled-xor",
        "Values that occur twice under XOR cancel each other also where they are NULL.",
        Remedy.REWRITTEN,
        "SELECT k ^ k FROM t",
        upstream=("datafusion#24246",),
        fixed_by="datafusion#24248",
    ),
    KnownFault(
        "bare-names",
        "A filter above a join with equal column names is applied to the wrong column.",
        Remedy.SET,
        "SELECT u.k, u.w FROM t RIGHT JOIN u ON t.v = u.w * 10 WHERE t.k IS NULL",
        upstream=("datafusion#25244", "datafusion#25296"),
        fixed_by="datafusion#25259",
    ),
    KnownFault(
        "shadowed-columns",
        "Where a field of a struct is read above, a column with the name of another one below it "
        "becomes that one or an error, and random values are computed again for each field.",
        Remedy.SET,
        "SELECT v, s['b'] FROM (SELECT -v AS v, s FROM structs WHERE v > 0) q",
        upstream=("datafusion#25414", "datafusion#25446", "datafusion#24678"),
        shown_in="tests/engine/known_faults/test_leaves.py",
    ),
    KnownFault(
        "spilled-products",
        "A join without equal keys that finds no memory spills, and loses or repeats rows.",
        Remedy.SET,
        "SELECT count(*) FROM t LEFT JOIN u ON t.k > u.k",
        upstream=("datafusion#24745", "datafusion#24676", "datafusion#22641"),
        shown_in="tests/engine/execution/test_unspilled.py",
    ),
)
