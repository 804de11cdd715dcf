"""Determines whether and when a failed refresh is retried, and the pause after each copy."""

import time
from dataclasses import dataclass

from caraway_core.concurrency.backoff import Delays
from caraway_core.concurrency.clocks import SecondsClock

# The golden ratio gives about 1, 2, 3, 5, 8 ... seconds.
DELAYS = Delays(1.17, 300.0, factor=1.618, jitter=0.2)
_SHORTEST_S, _LONGEST_S = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class Retries:
    """The limit of retries of one refresh; without `max_attempts`, until it succeeds."""

    are_enabled: bool = True
    max_attempts: int | None = None

    def allow(self, attempt: int) -> bool:
        """Return whether a refresh is retried after this attempt failed; the first attempt is 1."""
        return self.are_enabled and (self.max_attempts is None or attempt <= self.max_attempts)


class CopyPauses:
    """A pause after each copy, as long as the copy took, so that copying takes half of the time.

    A dataset may move many times a second; each copy has all of its rows.
    """

    def __init__(self, clock: SecondsClock = time.monotonic) -> None:
        self._clock = clock
        self._began_s = self._next_s = clock()

    def rest_s(self) -> float:
        """Return the rest of the pause in seconds."""
        return max(0.0, self._next_s - self._clock())

    def begin(self) -> None:
        """Note that a copy begins."""
        self._began_s = self._clock()

    def end(self) -> None:
        """Note that it ended; the pause begins."""
        now_s = self._clock()
        self._next_s = now_s + min(max(now_s - self._began_s, _SHORTEST_S), _LONGEST_S)
