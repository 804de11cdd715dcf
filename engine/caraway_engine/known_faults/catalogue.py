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
)
