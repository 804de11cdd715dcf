"""Determines whether and when a failed refresh is retried."""

from dataclasses import dataclass

from caraway_core.concurrency.backoff import Delays

# The golden ratio gives about 1, 2, 3, 5, 8 ... seconds.
DELAYS = Delays(1.17, 300.0, factor=1.618, jitter=0.2)


@dataclass(frozen=True, slots=True)
class Retries:
    """The limit of retries of one refresh; without `max_attempts`, until it succeeds."""

    are_enabled: bool = True
    max_attempts: int | None = None

    def allow(self, attempt: int) -> bool:
        """Return whether a refresh is retried after this attempt failed; the first attempt is 1."""
        return self.are_enabled and (self.max_attempts is None or attempt <= self.max_attempts)
