"""The back-off rule of every retry loop.

`Delays` is the pure rule. `Backoff` counts the failures of one loop. `Cooldown` serves callers that
have no loop: each of them tries once, unless the last tries failed.
"""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from caraway_core.concurrency.clocks import SecondsClock

_MOST_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Delays:
    """Waits that grow by a factor, from the first to the longest.

    `jitter` spreads processes that fail together: it lengthens each wait by up to that share.
    """

    first_s: float
    longest_s: float
    factor: float = 2.0
    jitter: float = 0.0

    def delay_s(self, failures: int, chance: float = 0.0) -> float:
        """Return the wait after a number of failures in a row.

        `chance`, in [0, 1), says how much of the jitter to add.
        """
        times = min(max(failures, 1) - 1, _MOST_TIMES)
        try:
            grown_s = self.first_s * self.factor**times
        except OverflowError:
            grown_s = self.longest_s
        return min(grown_s, self.longest_s) * (1 + self.jitter * chance)


USUAL = Delays(1.0, 60.0, jitter=0.2)
"""For background work."""


class Backoff:
    """Counts the failures of one loop in a row."""

    def __init__(self, delays: Delays, chance: Callable[[], float] = random.random) -> None:
        self._delays = delays
        self._chance = chance
        self.failures = 0

    def failed(self) -> float:
        """Count a failure; return the wait before the next try."""
        self.failures += 1
        return self._delays.delay_s(self.failures, self._chance())

    def succeeded(self) -> None:
        """Reset the count."""
        self.failures = 0


class Cooldown:
    """Makes callers wait after two failures in a row.

    The first retry is immediate, so a single failure costs no time.
    """

    def __init__(
        self,
        delays: Delays,
        clock: SecondsClock = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._again = Backoff(delays, chance)
        self._clock = clock
        self._has_failed = False
        self._over_s = -math.inf

    @property
    def left_s(self) -> float:
        """The remaining wait; 0 if callers may try."""
        return max(0.0, self._over_s - self._clock())

    def failed(self) -> None:
        """Count a failure; start a wait unless it is the first in a row."""
        if self._has_failed:
            self._over_s = self._clock() + self._again.failed()
        self._has_failed = True

    def succeeded(self) -> None:
        """Reset the count and end the wait."""
        self._again.succeeded()
        self._has_failed = False
        self._over_s = -math.inf
