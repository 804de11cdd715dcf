"""Known faults of numbers, NULL and joins by them."""

from caraway_engine.known_faults.known_fault import KnownFault, Remedy

OF_VALUES = (
    KnownFault(
        "fields-of-null",
        "A field of a NULL struct is not NULL: it is 0, an empty text, or any other value.",
        Remedy.READ,
        "SELECT s['a'] FROM structs",
        upstream=("datafusion#25120", "datafusion#25293"),
        fixed_by="datafusion#25122",
        shown_in="tests/engine/rows/test_null_structs.py",
    ),
    KnownFault(
        "fields-of-files",
        "A field of a NULL struct is not NULL in Arrow files, nor in Parquet files that declare it "
        "`required`.",
        Remedy.REWRITTEN,
        "SELECT s['a'] FROM required",
        upstream=("datafusion#25120", "datafusion#25293"),
        fixed_by="datafusion#25122",
    ),
    KnownFault(
        "values-under-null",
        "NULL of `nullif` and of CASE without ELSE keeps the fields of a struct, the entries of a "
        "map and the elements of a list.",
        Remedy.REWRITTEN,
        "SELECT nullif({a: k}, {a: 2})['a'] FROM t",
        upstream=("datafusion#25120",),
    ),
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
        upstream=("datafusion#25340",),
        fixed_by="datafusion#25348",
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
        upstream=("datafusion#24665",),
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
        upstream=("datafusion#22490",),
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
        "cut-percentiles",
        "`percentile_cont` and `quantile_cont` between two values cut their weight to six digits.",
        Remedy.REWRITTEN,
        "SELECT quantile_cont(v, 0.7) FROM t",
        upstream=("datafusion#25266",),
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
        "row-values",
        "Comparisons of rows take NULL for a value, less than all others.",
        Remedy.REWRITTEN,
        "SELECT v FROM t WHERE (k, v) < (2, 30)",
        upstream=("datafusion#21226", "datafusion#21054"),
    ),
)
