"""Tells callers how the refresh that they wait for ended."""

import asyncio

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.counting import Ended
from caraway_core.errors import CarawayError


class AwaitedRuns:
    """The callers that wait for runs of one dataset."""

    def __init__(self) -> None:
        self._awaited: list[tuple[events.RunNumber, asyncio.Future[None]]] = []

    async def wait(self, run: events.RunNumber) -> None:
        """Wait for the end of a run, or of a later one.

        Raises:
            CarawayError: the run failed or was stopped.
        """
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.append((run, ended))
        await ended

    def end(self, event: Ended) -> None:
        """Tell those who wait for this run, or for an earlier one."""
        over = [ended for run, ended in self._awaited if run <= event.run]
        self._awaited = [each for each in self._awaited if each[0] > event.run]
        for ended in over:
            if ended.done():
                continue
            match event:
                case events.Succeeded():
                    ended.set_result(None)
                case events.RunFailed(error=error):
                    ended.set_exception(CarawayError(error))
                case events.RunCancelled():
                    ended.set_exception(CarawayError("the refresh was stopped"))

    def cancel(self) -> None:
        """Cancel all who wait."""
        for _, ended in self._awaited:
            ended.cancel()
