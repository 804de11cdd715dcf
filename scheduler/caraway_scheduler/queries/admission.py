"""Limits how many statements run at once and how many wait."""

import asyncio
from collections import Counter, deque

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import OverloadedError
from caraway_core.ids import PUBLIC, PrincipalId

_Turn = asyncio.Future[None]


class Admission:
    """Admission control: a limited number of running statements and a bounded queue.

    The principal with the fewest running statements is next, and its statements are in FIFO order.
    One principal may fill half of the queue; `PUBLIC` may fill all of it, because it is the only
    principal if no keys are configured. If `max_running` is None, statements never wait.
    """

    def __init__(self, max_running: int | None, max_queued: int, queue_timeout_s: float) -> None:
        self.max_running = max_running
        self.max_queued = max_queued
        self.running = 0
        self._queue_timeout_s = queue_timeout_s
        self.quota: Quota[_Turn] = Quota(
            "waiting queries",
            QuotaLimits(most=max_queued, most_each=(max_queued + 1) // 2, everybody=PUBLIC),
            may_go=lambda _turn: False,
        )
        self._waiting: dict[PrincipalId, deque[_Turn]] = {}
        self._running: Counter[PrincipalId] = Counter()

    @property
    def queued(self) -> int:
        """The number of statements that wait for a slot."""
        return len(self.quota)

    async def enter(self, principal: PrincipalId = PUBLIC) -> None:
        """Acquire a slot; the caller must call `leave` afterwards.

        Raises:
            OverloadedError: the queue is full, or no slot became free in time.
        """
        if self.max_running is None or (self.running < self.max_running and not self._waiting):
            self._begin(principal)
            return
        turn = asyncio.get_running_loop().create_future()
        try:
            self.quota.add(principal, turn)
        except OverloadedError as exc:
            own = len(self._waiting.get(principal, ()))
            whose = (
                "the queue is full"
                if self.queued >= self.max_queued
                else (f"{own} of these are of this key, the limit for one key")
            )
            raise OverloadedError(
                f"{self.running} queries run and {self.queued} wait, and {whose}; "
                "try again shortly, or raise runtime.query.max_queued_queries",
                retry_after_s=1,
            ) from exc
        self._waiting.setdefault(principal, deque()).append(turn)
        await self._wait(principal, turn)

    def leave(self, principal: PrincipalId = PUBLIC) -> None:
        """Release the slot and admit the statement that is next."""
        self.running -= 1
        self._running[principal] -= 1
        if not self._running[principal]:
            del self._running[principal]
        self._admit()

    def bound(self, max_running: int | None) -> None:
        """Change the number of slots; statements above a lower limit keep running."""
        self.max_running = max_running
        self._admit()

    def _begin(self, principal: PrincipalId) -> None:
        self.running += 1
        self._running[principal] += 1

    def _admit(self) -> None:
        while self._waiting and (self.max_running is None or self.running < self.max_running):
            principal = min(self._waiting, key=self._running.__getitem__)
            turns = self._waiting.pop(principal)
            turn = turns.popleft()
            self.quota.drop(turn)
            if turns:
                # Behind those with as many running statements.
                self._waiting[principal] = turns
            if not turn.done():
                turn.set_result(None)
                self._begin(principal)

    async def _wait(self, principal: PrincipalId, turn: _Turn) -> None:
        try:
            async with asyncio.timeout(self._queue_timeout_s):
                await turn
        except BaseException as exc:
            self._withdraw(principal, turn)
            if isinstance(exc, TimeoutError):
                raise OverloadedError(
                    f"no query finished within {self._queue_timeout_s:g} s, so this one was not "
                    "started; try again later, or raise runtime.query.max_concurrent_queries",
                    retry_after_s=5,
                ) from exc
            raise

    def _withdraw(self, principal: PrincipalId, turn: _Turn) -> None:
        if turn in self.quota:
            self.quota.drop(turn)
            turns = self._waiting[principal]
            turns.remove(turn)
            if not turns:
                del self._waiting[principal]
        elif turn.done() and not turn.cancelled():
            # The slot was granted just as the wait ended, so pass it on.
            self.leave(principal)
