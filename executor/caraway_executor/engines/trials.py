"""Processes in which statements that ran while an engine ended run again, each by itself."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

from caraway_core.errors import OverloadedError
from caraway_executor.engines.seats import Seat

_LONGEST_WAIT_S = 60.0
_TURN_S = 30.0
"""What ends an engine does so within seconds; a statement that did nothing may take hours."""


_LONG_S = 0.2
_MOST_LONG = 1_000


class LongPlanning:
    """Knows statements whose planning keeps a whole process from answering.

    They run apart from the beginning, for as long as they take that long.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def took(self, key: str, seconds: float) -> None:
        """Note how long a statement took to begin, apart from all others."""
        self._keys.pop(key, None)
        if seconds > _LONG_S:
            self._keys[key] = None
            if len(self._keys) > _MOST_LONG:
                self._keys.popitem(last=False)


class Trials:
    """Gives each suspect a seat of its own; there are few, so others wait for their turn."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        self._free = list(seats)
        self._places = asyncio.Semaphore(len(seats))

    async def take(self) -> tuple[Seat, Callable[[], None]]:
        """Wait for a seat; returns what gives it back, which it does by itself after a while.

        Raises:
            OverloadedError: none was free for long.
        """
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await self._places.acquire()
        except TimeoutError:
            raise OverloadedError(
                "an engine ended while it ran the statement, and too many others run again before "
                "it; try again later",
                retry_after_s=10,
            ) from None
        held = [self._free.pop(0)]
        seat = held[0]

        def leave() -> None:
            timer.cancel()
            if held:
                self._free.append(held.pop())
                self._places.release()

        timer = asyncio.get_running_loop().call_later(_TURN_S, leave)
        return seat, leave
