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
class Fault:
    """A fault: its name, what is wrong in one sentence, and how it is kept from users."""

    name: str
    sentence: str
    remedy: Remedy


FAULTS = (
    Fault(
        "integer-overflow",
        "Whole numbers that overflow in `+`, `-`, `*` and negation wrap around.",
        Remedy.GUARDED,
    ),
    Fault(
        "sum-overflow", "A sum of BIGINT or DECIMAL that overflows wraps around.", Remedy.GUARDED
    ),
    Fault(
        "in-loses-null",
        "`x IN (subquery)` is false where it should be NULL: seen under NOT, OR, IS NULL, CASE.",
        Remedy.REWRITTEN,
    ),
    Fault(
        "count-of-nothing",
        "A correlated subquery that aggregates has no row where it should have one: seen in "
        "EXISTS, IN, ANY and ALL.",
        Remedy.REWRITTEN,
    ),
    Fault(
        "correlated-limit",
        "LIMIT and OFFSET of a correlated subquery in EXISTS, IN, ANY and ALL are applied to all "
        "outer rows together, or not at all.",
        Remedy.REFUSED,
    ),
    Fault(
        "except-all",
        "EXCEPT ALL and INTERSECT ALL do not count how often a row is there.",
        Remedy.REWRITTEN,
    ),
    Fault(
        "using-loses-right",
        "A column of USING is that of the left side, also in FULL and RIGHT joins.",
        Remedy.REWRITTEN,
    ),
    Fault(
        "null-safe-where",
        "`a = b` in WHERE lets NULL equal NULL where a join has IS NOT DISTINCT FROM.",
        Remedy.REWRITTEN,
    ),
)
