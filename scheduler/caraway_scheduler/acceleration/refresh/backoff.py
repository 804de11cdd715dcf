"""Whether a refresh that failed is tried again, and when."""

from dataclasses import dataclass

from caraway_core.backoff import Delays

# The golden ratio gives about 1, 2, 3, 5, 8 ... seconds.
DELAYS = Delays(1.17, 300.0, factor=1.618, jitter=0.2)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often one refresh is tried again. `max_attempts` None: until it succeeds."""

    are_enabled: bool = True
    max_attempts: int | None = None

    def allow(self, attempt: int) -> bool:
        """Whether a refresh whose `attempt`-th try failed, the first being 1, is tried again."""
        return self.are_enabled and (self.max_attempts is None or attempt <= self.max_attempts)
