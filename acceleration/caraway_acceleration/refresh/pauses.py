"""Pauses between the copies of datasets that follow others."""

import time

from caraway_core.concurrency.clocks import SecondsClock

_SHORTEST_S, _LONGEST_S = 1.0, 10.0


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
