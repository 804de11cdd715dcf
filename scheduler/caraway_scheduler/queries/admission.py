"""Limits how many statements run at once and how many wait."""

import asyncio
from collections import deque

from caraway_core.errors import OverloadedError


class Admission:
    """Admission control: a limited number of running statements and a bounded FIFO queue.

    If `max_running` is None, statements never wait.
    """

    def __init__(self, max_running: int | None, max_queued: int, queue_timeout_s: float) -> None:
        self.max_running = max_running
        self.max_queued = max_queued
        self.running = 0
        self._queue_timeout_s = queue_timeout_s
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def queued(self) -> int:
        """The number of statements that wait for a slot."""
        return len(self._waiting)

    async def enter(self) -> None:
        """Acquire a slot; the caller must call `leave` afterwards.

        Raises:
            OverloadedError: the queue is full, or no slot became free in time.
        """
        if self.max_running is None or (self.running < self.max_running and not self._waiting):
            self.running += 1
            return
        if len(self._waiting) >= self.max_queued:
            raise OverloadedError(
                f"{self.running} queries run and {self.queued} wait, and the queue is full; "
                "try again shortly, or raise runtime.query.max_queued_queries",
                retry_after_s=1,
            )
        await self._wait()

    def leave(self) -> None:
        """Release the slot and admit the statement that has waited longest."""
        self.running -= 1
        self._admit()

    def bound(self, max_running: int | None) -> None:
        """Change the number of slots; statements above a lower limit keep running."""
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
            # The slot was granted just as the wait ended, so pass it on.
            self.leave()
