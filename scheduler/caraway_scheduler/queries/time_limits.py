"""The time limit of statements: that of the manifest, or a lower one from outside."""

from dataclasses import dataclass
from typing import TypeVar

_Number = TypeVar("_Number", int, float)


@dataclass(slots=True)
class TimeLimits:
    """The time limit of the manifest, and the one of the limits file."""

    own_s: float | None
    bound_s: float | None = None

    @property
    def effective_s(self) -> float | None:
        """The limit in force; None: there is none."""
        return lower(self.own_s, self.bound_s)

    @property
    def remedy(self) -> str:
        """The advice for more time."""
        if self.effective_s == self.own_s:
            return "raise runtime.query.timeout"
        return "have the limit sql_query_timeout_secs raised"


def lower(own: _Number | None, bound: _Number | None) -> _Number | None:
    """Return the lower of two limits; None is no limit."""
    return min((each for each in (own, bound) if each is not None), default=None)
