"""How many statements run at once, and how many may wait for their turn."""

import asyncio
from collections import deque

from caraway_core.errors import OverloadedError


class Admission:
    """A bounded queue in front of a bounded number of places; first come, first served.

    `max_running` None means that nothing waits.
    """

    def __init__(self, max_running: int | None, max_queued: int, queue_timeout_s: float) -> None:
        self.max_running = max_running
        self.max_queued = max_queued
        self.running = 0
        self._queue_timeout_s = queue_timeout_s
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def queued(self) -> int:
        return len(self._waiting)

    async def enter(self) -> None:
        """Take a place; `leave` must follow.

        Raises:
            OverloadedError: the queue is full, or no place came free in time.
        """
        if self.max_running is None or (self.running < self.max_running and not self._waiting):
            self.running += 1
            return
        if len(self._waiting) >= self.max_queued:
            raise OverloadedError(
                f"{self.running} queries run and {self.queued} wait, which is the most that may; "
                "try again shortly, or raise runtime.query.max_queued_queries",
                retry_after_s=1,
            )
        await self._wait()

    def leave(self) -> None:
        """Give the place to the one who waits longest, or free it."""
        self.running -= 1
        self._admit()

    def bound(self, max_running: int | None) -> None:
        """Have so many places from now on; those who hold one beyond that keep it."""
        self.max_running = max_running
        self._admit()

    def _admit(self) -> None:
        while self._waiting and (self.max_running is None or self.running < self.max_running):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self.running += 1

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._queue_timeout_s):
                await turn
        except BaseException as exc:
            self._withdraw(turn)
            if isinstance(exc, TimeoutError):
                raise OverloadedError(
                    f"no query finished within {self._queue_timeout_s:g} s, so this one was not "
                    "started; try again later, or raise runtime.query.max_concurrent_queries",
                    retry_after_s=5,
                ) from exc
            raise

    def _withdraw(self, turn: asyncio.Future[None]) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif turn.done() and not turn.cancelled():
            # The place was handed over in the moment the wait ended; pass it on.
            self.leave()
