"""Trials: retries statements that ran while an engine process ended, each alone."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

from caraway_core.errors import OverloadedError
from caraway_executor.engines.seats import Seat

_LONGEST_WAIT_S = 60.0
_TURN_S = 5.0
"""A statement that ends an engine does so within seconds; a harmless one may take hours."""


_LONG_S = 0.2
_MOST_LONG = 1_000


class LongPlanning:
    """Remembers statements whose planning keeps a whole process from answering.

    They run apart from the start, for as long as their planning takes that long.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def took(self, key: str, seconds: float) -> None:
        """Record how long a statement took to start, when it ran alone."""
        self._keys.pop(key, None)
        if seconds > _LONG_S:
            self._keys[key] = None
            if len(self._keys) > _MOST_LONG:
                self._keys.popitem(last=False)


class Trials:
    """Gives each suspect a seat of its own; there are few seats, so others wait."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        self.seats = tuple(seats)
        self._free = list(seats)
        self._places = asyncio.Semaphore(len(seats))

    async def await_seat(self) -> tuple[Seat, Callable[[], None]]:
        """Wait for a seat; return it with a callback that frees it. It is also freed after a while.

        Raises:
            OverloadedError: none became free in time.
        """
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await self._places.acquire()
        except TimeoutError:
            raise OverloadedError(
                "an engine ended while running the statement, and too many other statements are "
                "being retried before it; try again later",
                retry_after_s=10,
            ) from None
        seats = [self._free.pop(0)]
        seat = seats[0]

        def leave() -> None:
            timer.cancel()
            if seats:
                self._free.append(seats.pop())
                self._places.release()

        timer = asyncio.get_running_loop().call_later(_TURN_S, leave)
        return seat, leave
