"""Known faults of orders, constants and chance, which depend on the plan."""

from caraway_engine.known_faults.known_fault import KnownFault, Remedy

OF_PLANS = (
    KnownFault(
        "windows-by-chance",
        "A window that random values sort is an error if its SELECT reads no column.",
        Remedy.REWRITTEN,
        "SELECT row_number() OVER (ORDER BY random()) FROM t",
    ),
    KnownFault(
        "parts-in-parentheses",
        "A part of ROLLUP, CUBE and GROUPING SETS that begins with parentheses and does not end "
        "with them is a syntax error.",
        Remedy.REWRITTEN,
        "SELECT count(*) FROM t GROUP BY ROLLUP ((k) + 1)",
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
        upstream=("datafusion#25378",),
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
        "chance-in-coalesce",
        "random() and uuid() in `coalesce`, `nvl` and `ifnull` are computed again after they were "
        "compared with NULL.",
        Remedy.REFUSED,
        "SELECT count(coalesce(nullif(round(random()), 0), 1)) FROM many",
        upstream=("datafusion#25477",),
    ),
    KnownFault(
        "chance-compared",
        "Conditions with `floor(x) = 1`, a part of a time or CASE, of random values, compute them "
        "twice.",
        Remedy.REWRITTEN,
        "SELECT count(*) < 7800 FROM many WHERE floor(random() * 3) = 1",
    ),
    KnownFault(
        "chance-in-groups",
        "A condition on a group by random values is applied below the groups, to other values.",
        Remedy.REWRITTEN,
        "SELECT k FROM (SELECT random() < 0.5 AS k FROM many GROUP BY 1) q WHERE k",
        upstream=("datafusion#25415",),
        fixed_by="datafusion#25416",
    ),
    KnownFault(
        "chance-moved",
        "A condition with random values is applied below the joins, windows, groups and DISTINCT "
        "of its FROM, and HAVING below its own groups.",
        Remedy.REWRITTEN,
        "SELECT count(*) < 3 FROM (SELECT DISTINCT k FROM many) q WHERE random() < 0.01",
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
