"""The known faults of DataFusion 55, by name."""

from dataclasses import dataclass
from enum import Enum


class Remedy(Enum):
    """How users are protected from a fault."""

    REWRITTEN = "the statement is rewritten"
    GUARDED = "a check of the values fails the statement"
    REFUSED = "the statement is refused"
    SET = "an engine setting is changed"
    PLANNED = "the plan is changed"


@dataclass(frozen=True, slots=True)
class KnownFault:
    """A fault: its name, a sentence that describes it, and the remedy."""

    name: str
    sentence: str
    remedy: Remedy


FAULTS = (
    KnownFault(
        "integer-overflow",
        "Integer overflow in `+`, `-`, `*` and negation wraps around silently.",
        Remedy.GUARDED,
    ),
    KnownFault(
        "sum-overflow",
        "A sum of BIGINT, DECIMAL or durations that overflows wraps around silently, as does the "
        "average of durations.",
        Remedy.GUARDED,
    ),
    KnownFault(
        "sums-of-sums",
        "A sum of decimals next to a DISTINCT aggregate gets a wider type that cannot be compared.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "in-loses-null",
        "`x IN (subquery)` is false where it should be NULL, under NOT, OR, IS NULL and CASE, and "
        "NOT IN with a correlated subquery is false where that has no rows.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "captured-column",
        "In `x > ALL (subquery)` and ANY, a column of an outer table becomes the one of an inner "
        "table with the same name.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "count-of-nothing",
        "A correlated subquery with an aggregate returns no row instead of one, in "
        "EXISTS, IN, ANY and ALL.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "correlated-limit",
        "LIMIT and OFFSET of a correlated subquery in EXISTS, IN, ANY and ALL are applied to all "
        "outer rows together, or not at all.",
        Remedy.REFUSED,
    ),
    KnownFault(
        "except-all",
        "EXCEPT ALL and INTERSECT ALL ignore how many times a row occurs.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "using-loses-right",
        "A column of USING is taken from the left side, even in FULL and RIGHT joins.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "using-ambiguous",
        "An unqualified column of USING is ambiguous in WHERE and in the ON of other joins.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "null-safe-where",
        "`a = b` in WHERE lets NULL equal NULL if a join has IS NOT DISTINCT FROM.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "grouped-extremes",
        "Grouped `min` and `max` of floats ignore NaN, and `min` of infinities is the largest "
        "finite number.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "zeros-in-windows",
        "PARTITION BY and ORDER BY of windows treat 0.0 and -0.0 as different.",
        Remedy.REWRITTEN,
    ),
    KnownFault("zeros-in-lists", "-0.0 does not match 0.0 in an IN list.", Remedy.REWRITTEN),
    KnownFault(
        "moving-infinity",
        "A sum or an average over a moving frame stays NaN after an infinity has left the frame.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "nan-in-statistics",
        "Rows with NaN in Parquet files are lost when row groups are pruned, in comparisons "
        "and top-k queries by a float.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "zone-forgotten",
        "A TIMESTAMPTZ value has no zone, and takes the zone of the value it is compared with.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "intervals-by-parts",
        "Intervals are compared by months, then days, then the rest, so the difference of two "
        "times is less than one day.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "lists-with-null",
        "IN and NOT IN over lists with columns or NULL are merged as if none of them were NULL.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "distinct-from-too-far",
        "AND and OR after IS DISTINCT FROM are read as a part of its right side.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "sorted-offset",
        "Rows are lost if the result of an OFFSET is sorted by the same key again.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "constant-in-outer-join",
        "A column that a filter fixes to one value counts as constant above an outer join that "
        "makes it NULL: ORDER BY ignores it, and GROUP BY, DISTINCT and windows return a group "
        "twice.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "sorted-totals",
        "Grouping sets over sorted rows, or by a constant, count as sorted or constant, "
        "although their totals are NULL.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "window-names",
        "`OVER (w ROWS ...)` inside another expression loses the definition of w.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "chance-in-cte",
        "A CTE that calls random() or uuid() is recomputed for each reference.",
        Remedy.REFUSED,
    ),
    KnownFault(
        "bare-names",
        "A filter above a join with equal column names is applied to the wrong column.",
        Remedy.SET,
    ),
)
