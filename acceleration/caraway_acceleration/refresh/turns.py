"""Runs one refresh: waits for the claim, makes a version and publishes it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.reloading import Reloading
from caraway_acceleration.versions.current_version import CurrentVersion

ParentPosition = Callable[[], Awaitable[str | None]]
"""Tells apart the states of the datasets that a dataset copies; None: it copies none."""


class VersionTurns:
    """Waits until no other scheduler makes a version of the dataset, then makes one."""

    def __init__(self, current: CurrentVersion, reloading: Reloading) -> None:
        self.position: ParentPosition = _no_parents
        self._current = current
        self._reloading = reloading
        self._claim = current.claim()
        self._wishes = current.wishes()

    async def await_turn(self, begin: events.BeginRun) -> int:
        """Return the number of the version that was made; `release` is to be called after it.

        Raises:
            CarawayError, ExceptionGroup: the refresh failed.
        """
        async with asyncio.TaskGroup() as tasks:
            await self._claim.wait()
            renewing = tasks.create_task(self._claim.keep())
            # A state that is read before the rows is never newer than they are.
            position = await self.position() or ""
            number = await self._done_elsewhere(begin, position)
            if number is None:
                number = await self._make(begin, position)
                await self._wishes.done(begin.ask)
            renewing.cancel()
        return number

    async def release(self) -> None:
        """Release the claim, so that other schedulers can refresh."""
        await self._claim.release()

    async def _done_elsewhere(self, begin: events.BeginRun, position: str) -> int | None:
        """Return the version of this refresh if another scheduler has already done it."""
        if begin.is_following:
            held = await self._current.look()
            if not position or held is None or held.version.position != position:
                return None
        elif not begin.ask or await self._wishes.stands(begin.ask):
            return None
        else:
            await self._current.look()
        await self._current.show()
        shown = self._current.shown
        return shown.number if shown is not None else None

    async def _make(self, begin: events.BeginRun, position: str) -> int:
        current = self._current
        # The holder of the claim builds on the current version. An append that is based on an older
        # version would lose newer rows.
        async with current.moving:
            await current.look()
            standing = current.held
            await current.show()
        made = await self._reloading.version(begin, standing)
        if position:
            made = replace(made, version=replace(made.version, position=position))
        following = await current.loaded(made)
        async with current.moving:
            await current.flip(following)
            await current.show()
        return following.version.number


async def _no_parents() -> str | None:
    return None
