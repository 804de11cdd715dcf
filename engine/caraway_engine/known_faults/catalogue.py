"""The known faults of DataFusion 55, by name."""

from dataclasses import dataclass
from enum import Enum


class Remedy(Enum):
    """How a fault is kept from users."""

    REWRITTEN = "the statement is written otherwise"
    GUARDED = "a test of the values ends the statement with an error"
    REFUSED = "the statement is refused"
    SET = "a setting of the engine"
    PLANNED = "another plan"


@dataclass(frozen=True, slots=True)
class KnownFault:
    """A fault: its name, what is wrong in one sentence, and how it is kept from users."""

    name: str
    sentence: str
    remedy: Remedy


FAULTS = (
    KnownFault(
        "integer-overflow",
        "Whole numbers that overflow in `+`, `-`, `*` and negation wrap around.",
        Remedy.GUARDED,
    ),
    KnownFault(
        "sum-overflow",
        "A sum of BIGINT, DECIMAL or lengths of time that overflows wraps around, and so does the "
        "average of lengths of time.",
        Remedy.GUARDED,
    ),
    KnownFault(
        "sums-of-sums",
        "A sum of decimals beside a DISTINCT aggregate gets a wider type, and cannot be compared.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "in-loses-null",
        "`x IN (subquery)` is false where it should be NULL: seen under NOT, OR, IS NULL, CASE.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "count-of-nothing",
        "A correlated subquery that aggregates has no row where it should have one: seen in "
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
        "EXCEPT ALL and INTERSECT ALL do not count how often a row is there.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "using-loses-right",
        "A column of USING is that of the left side, also in FULL and RIGHT joins.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "using-ambiguous",
        "A column of USING without its table is ambiguous in WHERE and in the ON of other joins.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "null-safe-where",
        "`a = b` in WHERE lets NULL equal NULL where a join has IS NOT DISTINCT FROM.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "grouped-extremes",
        "Grouped `min` and `max` of floats pass over NaN, and `min` of infinities is the largest "
        "number.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "zeros-in-windows",
        "PARTITION BY and ORDER BY of windows keep 0.0 and -0.0 apart, which are equal.",
        Remedy.REWRITTEN,
    ),
    KnownFault("zeros-in-lists", "-0.0 is not in a list that holds 0.0.", Remedy.REWRITTEN),
    KnownFault(
        "moving-infinity",
        "A sum or an average over a moving frame stays NaN after an infinity has left the frame.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "nan-in-statistics",
        "Rows with NaN in Parquet files are lost where statistics choose row groups: comparisons, "
        "and the first rows by a float.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "zone-forgotten",
        "A value of type TIMESTAMPTZ has no zone, and counts as one of the zone that it meets.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "intervals-by-parts",
        "Intervals are compared by months, then days, then the rest: the difference of two moments "
        "is less than any days.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "lists-with-null",
        "IN and NOT IN over lists that hold columns are put together as if none of them was NULL.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "sorted-offset",
        "Rows that OFFSET skips some of are lost when they are sorted by the same key again.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "constant-in-outer-join",
        "A column that a filter holds to one value stays constant above an outer join that makes "
        "NULLs of it: ORDER BY leaves it out, and GROUP BY, DISTINCT and windows give a group "
        "twice.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "sorted-totals",
        "Grouping sets over sorted rows, or by a constant, are taken for sorted or constant, "
        "although their totals are NULL.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "window-names",
        "`OVER (w ROWS ...)` inside of another expression forgets what w is.",
        Remedy.REWRITTEN,
    ),
    KnownFault(
        "chance-in-cte",
        "A CTE that calls random() or uuid() is computed anew wherever it is read.",
        Remedy.REFUSED,
    ),
    KnownFault(
        "bare-names",
        "A filter above a join of columns with the same name lands on the other column.",
        Remedy.SET,
    ),
)
