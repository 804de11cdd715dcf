"""One refresh of a dataset from its turn among the schedulers to the version that stands."""

import asyncio
from collections.abc import Callable

from caraway_scheduler.acceleration.refresh import refresh_events as events
from caraway_scheduler.acceleration.refresh.reloading import Reloading
from caraway_scheduler.acceleration.versions.head import CurrentVersion


class VersionTurns:
    """Waits until no other scheduler makes a version of the dataset, then makes one."""

    def __init__(self, head: CurrentVersion, reloading: Reloading) -> None:
        self._head = head
        self._reloading = reloading
        self._claim = head.claim()
        self._wishes = head.wishes()

    async def take(self, begin: events.BeginRun, on_begun: Callable[[], None]) -> int:
        """Return the number of the version that was made; `release` is to be called after it.

        Raises:
            CarawayError, ExceptionGroup: the refresh failed.
        """
        async with asyncio.TaskGroup() as tasks:
            await self._claim.wait()
            renewing = tasks.create_task(self._claim.keep())
            on_begun()
            number = await self._done_elsewhere(begin)
            if number is None:
                number = await self._make(begin)
                await self._wishes.done(begin.ask)
            renewing.cancel()
        return number

    async def release(self) -> None:
        """Let others have their turn."""
        await self._claim.release()

    async def _done_elsewhere(self, begin: events.BeginRun) -> int | None:
        """Return the version of a refresh that another scheduler did meanwhile."""
        if not begin.ask or await self._wishes.stands(begin.ask):
            return None
        await self._head.look()
        await self._head.show()
        shown = self._head.shown
        return shown.number if shown is not None else None

    async def _make(self, begin: events.BeginRun) -> int:
        head = self._head
        # Whoever has the claim builds on what is there now, and takes nothing back that comes
        # later: an append that was made of an older version would lose what is newer.
        async with head.moving:
            await head.look()
            standing = head.held
            await head.show()
        following = await head.loaded(await self._reloading.version(begin, standing))
        async with head.moving:
            await head.flip(following)
            await head.show()
        return following.version.number
