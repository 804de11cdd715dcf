"""Whether a refresh that failed is tried again, and when."""

from dataclasses import dataclass

_LONGEST_S = 300.0


@dataclass(frozen=True, slots=True)
class Retries:
    """How often one refresh is tried again. `max_attempts` None: until it succeeds."""

    are_enabled: bool = True
    max_attempts: int | None = None

    def allow(self, attempt: int) -> bool:
        """Whether a refresh whose `attempt`-th try failed, the first being 1, is tried again."""
        return self.are_enabled and (self.max_attempts is None or attempt <= self.max_attempts)


def delay_s(failures: int, chance: float) -> float:
    """Go 1, 2, 3, 5, 8 seconds to five minutes by failures in a row.

    A chance in [0, 1) spreads it by up to a fifth.
    """
    delay, following = 1.0, 2.0
    for _ in range(failures - 1):
        if delay >= _LONGEST_S:
            break
        delay, following = following, delay + following
    return min(delay, _LONGEST_S) * (1 + chance / 5)
