"""Clocks that only tests advance."""

import asyncio
from dataclasses import dataclass
from datetime import datetime


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


class VirtualTimes:
    """A clock with dates that can be waited for; tests advance it."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._waiting: list[tuple[datetime, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    async def until(self, moment: datetime) -> None:
        if moment > self._now:
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((moment, woken))
            await woken

    @property
    def awaited(self) -> list[datetime]:
        """The moments that a waiting task has not reached."""
        return sorted(moment for moment, woken in self._waiting if not woken.done())

    def advance(self, now: datetime) -> None:
        """Show another moment, and wake those that waited for it."""
        self._now = now
        for moment, woken in self._waiting:
            if moment <= now and not woken.done():
                woken.set_result(None)
